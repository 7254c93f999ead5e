import { $, element } from "./dom.js";
import { text } from "./words.js";

const SHOWN = 60; // choices shown at once; a search narrows them, a button shows more
export const FEW = 12; // choices that need no search
const GROUPS = [2, 40]; // numbers of first letters between which choosing one helps

/** The order of the list: as in the file, with the items that come last after the others. */
function orderItems({ items, last = [] }) {
  const late = new Map(last.map((item, k) => [item, k]));
  const rank = (k) => late.get(items[k]) ?? -1;
  return items.map((_, k) => k).sort((x, y) => rank(x) - rank(y) || x - y);
}

/** The list of answers to choose from. */
export class Choices {
  chosen = new Set(); // indices of items
  #group = ""; // the first letter that is listed
  #most = SHOWN;

  /** @param {() => void} changed called after every choice */
  constructor(changed) {
    this.changed = changed;
  }

  /**
   * List the answers to another question.
   * @param {{items: string[], last?: string[], lists: boolean}} question @param {string[]} labels
   */
  ask(question, labels) {
    this.forget();
    this.order = orderItems(question);
    this.lists = question.lists;
    this.speak(labels);
  }

  /** The same answers in another language. */
  speak(labels) {
    this.items = labels;
    this.letters = labels.map((label) => {
      return Array.from(label.trim().normalize("NFD"))[0].toLocaleUpperCase();
    });
  }

  listen() {
    $("search").addEventListener("input", () => { this.#most = SHOWN; this.list(); });
    $("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault();
    });
    $("groups").addEventListener("click", ({ target }) => {
      if (target.matches("button")) this.#chooseGroup(target.dataset.letter);
    });
    $("show-more").addEventListener("click", () => {
      this.#most += SHOWN;
      this.list();
    });
    $("choices").addEventListener("change", (event) => {
      this.#choose(Number(event.target.value), event.target.checked);
    });
    $("chosen").addEventListener("click", ({ target }) => {
      const chip = target.closest("button");
      if (!chip) return;
      this.#choose(Number(chip.value), false);
      this.list();
      ($("chosen").querySelector("button") ?? $("search")).focus();
    });
  }

  /** The chosen items in the order of the file. */
  get sorted() {
    return [...this.chosen].sort((x, y) => x - y);
  }

  forget() {
    this.chosen.clear();
    [this.#group, this.#most] = ["", SHOWN];
  }

  #choose(k, on) {
    if (!this.lists) this.chosen.clear();
    if (on) this.chosen.add(k);
    else this.chosen.delete(k);
    this.changed();
  }

  #chooseGroup(letter) {
    [this.#group, this.#most] = [letter, SHOWN];
    for (const button of $("groups").children) {
      button.setAttribute("aria-pressed", button.dataset.letter === letter);
    }
    this.list();
  }

  /** First letters to choose from, if there are many answers. */
  listGroups() {
    const { compare } = new Intl.Collator();
    const letters = [...new Set(this.letters)].sort(compare);
    const [least, most] = GROUPS;
    const helps = this.items.length > SHOWN && letters.length >= least && letters.length <= most;
    $("groups").hidden = !helps;
    if (!helps) return;
    $("groups").replaceChildren(...["", ...letters].map((letter) => {
      return element("button", letter || text("all"), {
        type: "button", "data-letter": letter, "aria-pressed": letter === this.#group,
      });
    }));
  }

  list() {
    const wanted = $("search").value.trim().toLowerCase();
    const matches = this.order.filter((k) => {
      return this.items[k].toLowerCase().includes(wanted)
        && (!this.#group || wanted || this.letters[k] === this.#group);
    });
    const rest = matches.filter((k) => !this.chosen.has(k)).slice(0, this.#most);
    const shown = new Set([...this.chosen, ...rest]);
    const boxes = this.order.filter((k) => shown.has(k)).map((k) => this.#box(k));
    $("choices").replaceChildren($("legend"), ...boxes);
    const hidden = matches.filter((k) => !shown.has(k)).length;
    $("further").hidden = !hidden;
    $("count").textContent = !matches.length
      ? text("noMatch") : hidden ? text("hidden", { n: hidden }) : "";
  }

  #box(k) {
    const box = element("label");
    const input = element("input", "", {
      type: this.lists ? "checkbox" : "radio", name: "answer", value: k,
    });
    input.checked = this.chosen.has(k);
    box.append(input, element("span", this.items[k], { class: "what", dir: "auto" }));
    return box;
  }

  /** The chosen answers beside the button, if the list is long. */
  listChips() {
    const chosen = this.items.length > FEW ? [...this.chosen] : [];
    $("chosen").hidden = !chosen.length;
    $("chosen").replaceChildren(...chosen.map((k) => {
      const label = this.items[k];
      const chip = element("button", label, {
        type: "button", value: k, "aria-label": text("remove", { what: label }),
      });
      const entry = element("li");
      entry.append(chip);
      return entry;
    }));
  }
}
