// What a draft lacks. The line at the foot says it at once and calmly. Beside a field it is said
// once the person has left the field, or has tried to publish.
import { $, h } from "./dom.js";

const SAID = 2; // at the foot, before "and more"
let isPressed = false; // a button of the mouse, or a finger

for (const [type, value] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
  document.addEventListener(type, () => { isPressed = value; }, true);
}

/** After the press that took the focus away: what is said moves the form under the pointer. */
function afterPress(work) {
  if (isPressed) document.addEventListener("pointerup", () => setTimeout(work), { once: true });
  else setTimeout(work);
}

const placeOf = (part) => document.querySelector(`[data-part="${part}"]`);

/** What is missing in a card: `part` is its place in the form, `input` the field to go on with. */
function missingIn({ row, where, name, others, least }) {
  const { key, answers } = row;
  const written = answers.filter(({ text }) => text.trim()).length;
  const next = answers.find(({ text }) => !text.trim()) ?? answers[0];
  const [count, to] = [least > 1 ? "at least two answers" : "an answer", others ? ` to ${name}` : ""];
  return [
    !row.text.trim() && !(row.kind && row.name.trim()) // a protected question may have its name alone
      && { where, part: `${key}-words`, input: `${key}-text`, sentence: "Write what you ask.", todo: `write ${name}` },
    written < least
      && { where, part: `${key}-answers`, input: `${next.key}-text`, sentence: `Write ${count}.`, todo: `write ${count}${to}` },
  ].filter((one) => one);
}

export class Todo {
  #model;
  #left = new Set(); // parts of the form that the person has left

  constructor(model) {
    this.#model = model;
  }

  /** In the order of the form. */
  missing() {
    const { questions, openly } = this.#model;
    const others = questions.length + openly.length > 1;
    return [
      ...questions.map((row, k) => ({
        row, where: `question.${k}`, others, name: questions.length > 1 ? `question ${k + 1}` : "the question",
        least: ["set", "each"].includes(row.kind) ? 1 : 2,
      })),
      ...openly.map((row, k) => ({ row, where: `public.${k}`, others, name: `public question ${k + 1}`, least: 2 })),
    ].flatMap(missingIn);
  }

  /** One line. */
  summary() {
    const listed = this.missing().map(({ todo }) => todo);
    const more = listed.length - SAID;
    return `To do: ${listed.slice(0, SAID).join(", ")}${more > 0 ? `, and ${more} more` : ""}.`;
  }

  /** The focus has left an element of the form. */
  leave(element) {
    const part = element.closest("[data-part]")?.dataset.part;
    if (!part) return;
    afterPress(() => {
      const place = placeOf(part); // the form may have been drawn anew
      if (!place || place.contains(document.activeElement)) return; // gone, or the person is still there
      this.#left.add(part);
      this.show();
    });
  }

  /** Say beside the fields what is missing in those that the person has left. */
  show() {
    for (const said of document.querySelectorAll(".missing-here")) said.remove();
    for (const input of document.querySelectorAll('[aria-describedby^="missing-"]')) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    for (const { part, input, sentence } of this.missing()) {
      const place = this.#left.has(part) && placeOf(part);
      if (!place) continue;
      const id = `missing-${part}`;
      place.append(h("p", { class: "wrong missing-here", id }, sentence));
      $(input).setAttribute("aria-invalid", "true");
      $(input).setAttribute("aria-describedby", id);
    }
  }

  /** Whether something is missing: it is said then, and the first such field has the focus. */
  refuses() {
    const all = this.missing();
    for (const { part } of all) this.#left.add(part);
    this.show();
    if (all.length) $(all[0].input)?.focus();
    return all.length > 0;
  }
}
