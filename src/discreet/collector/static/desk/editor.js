// The form of a survey that is not published yet. It lives in this tab alone.
import { asSentence, call } from "./api.js";
import { aboutPart, languagesPart, openlyPart } from "./details.js";
import { $, announce, ask, button, complain, h, figure, show } from "./dom.js";
import { field, numberInput } from "./fields.js";
import { fromFile, newQuestion, toFile } from "./model.js";
import { PEOPLE, drawForecast, drawPreview, filePart, openFile, summary, tabs } from "./panel.js";
import { questionCard } from "./question.js";
import { Todo } from "./todo.js";

const DRAFT = "discreet-draft"; // the key of the draft in this tab
const PAUSE = 350; // milliseconds after the last change until the draft is checked

/** The draft that this tab has, as a file's content; or null. */
export function storedDraft() {
  return JSON.parse(window.sessionStorage.getItem(DRAFT) ?? "null");
}

export class Editor {
  #model;
  #todo; // what the draft lacks
  #start; // words and templates, from the collector
  #timer;
  #asking; // the request under way
  #checked = null; // what the collector said of the draft as it is now
  #people = { users: Number(window.sessionStorage.getItem(PEOPLE)) || 1000 };
  #leave; // (name) => void: go to the page of a survey

  constructor(start, leave) {
    this.#start = start;
    this.#leave = leave;
  }

  /** Show the form of a survey file's content. */
  open(file) {
    this.#model = fromFile(file);
    this.#todo = new Todo(this.#model);
    this.#build();
    show("edit");
    this.#changed();
  }

  /** Open a survey file that is a text. */
  async openText(toml) {
    try {
      this.open(await openFile(toml));
      announce("Opened.");
    } catch (error) {
      this.#wrong({ where: "file", detail: error.message });
      if (!$("file-panel")) complain(error.message);
    }
  }

  #build() {
    const people = numberInput(this.#people, "users", () => {
      window.sessionStorage.setItem(PEOPLE, this.#people.users);
      this.#changed();
    }, { id: "people", min: 1, max: 1_000_000_000 });
    const presets = [100, 1_000, 10_000, 100_000].map((n) => button(figure(n), () => {
      people.value = n;
      people.dispatchEvent(new Event("input"));
    }, { class: "button plain small" }));
    const forecast = h("div", {}, h("h2", {}, "What people will be able to tell you"),
      field("If so many people take part", people), h("p", { class: "row" }, presets),
      h("div", { id: "forecast" }, h("p", { class: "quiet" }, "Write a question and its answers. Then you see here how many people must give an answer before it shows.")));
    const preview = h("div", {}, h("p", { class: "quiet" }, "The real page. Nothing is sent or stored: try it."),
      h("div", { class: "phone" }, h("iframe", { id: "preview", title: "Preview of the participant’s page" })));
    const beside = tabs([
      ["learn", "What you learn", forecast], ["preview", "Preview", preview],
      ["file", "File", filePart(() => this.#model.name, (toml) => this.openText(toml))],
    ]);
    const bar = h("div", { class: "bar foot" }, h("p", { id: "checked", role: "status" }), h("span", { class: "row" },
      button("Try it…", () => this.#rehearse(), { id: "try", class: "button plain" }),
      button("Publish…", () => this.#publish(), { id: "publish" })));
    $("edit").replaceChildren(h("div", { class: "two" }, h("form", { id: "form", autocomplete: "off", novalidate: true }), beside), bar);
    $("form").addEventListener("submit", (event) => event.preventDefault());
    $("form").addEventListener("focusout", ({ target }) => this.#todo.leave(target));
    this.#draw();
  }

  /** Draw the form again, and give the focus to this element. */
  #draw(focus) {
    const model = this.#model;
    const { sensitivities: words, steps } = this.#start;
    const tools = {
      words, steps, changed: () => this.#changed(), redraw: (next) => { this.#draw(next); this.#changed(); },
    };
    const add = button("Add a question", () => {
      const question = newQuestion(words);
      model.questions.push(question);
      tools.redraw(`${question.key}-text`);
    }, { id: "add-question", class: "button plain" });
    $("form").replaceChildren(
      h("section", { class: "part" }, h("h1", { tabindex: "-1", id: "edit-title" }, "Your survey"), this.#help(),
        h("div", {}, model.questions.map((question, k) => questionCard(model, question, k, tools))), h("p", {}, add)),
      openlyPart(model, tools), aboutPart(model, tools), languagesPart(model, tools),
    );
    if (focus) $(focus)?.focus();
  }

  #help() {
    const rows = this.#start.sensitivities.map(({ name, factor, when }, k) => {
      return h("tr", { class: `level-${k}` }, h("th", { scope: "row" }, h("i", { class: "dot" }), ` ${name}`), h("td", {}, when), h("td", {}, `odds × ${factor}`));
    });
    return h("details", {}, h("summary", {}, "How sensitive is an answer?"),
      h("table", { class: "promises" }, h("tbody", {}, rows)),
      h("p", { class: "quiet" }, "“Odds × 3” means: whoever sees a report can change the odds between two answers by a factor of 3 at most, whatever they know. A more sensitive answer is mixed with more chance, so it takes more people to see it. “None of these” hardly needs protection."));
  }

  // ---- checking

  /** The draft has changed: keep it in this tab, and ask the collector what it says. */
  #changed() {
    window.sessionStorage.setItem(DRAFT, JSON.stringify(this.#file()));
    this.#asking?.abort(); // what it says is about an earlier draft
    this.#checked = null;
    for (const id of ["try", "publish"]) $(id).disabled = true;
    $("checked").textContent = "Checking…";
    this.#todo.show();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), PAUSE);
  }

  #file() {
    return toFile(this.#model, this.#start.sensitivities);
  }

  async #check() {
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    try {
      const told = await call("/draft", { document: this.#file(), people: this.#people.users }, { signal });
      if (signal.aborted) return;
      const isMissing = this.#todo.missing().some(({ where }) => where === told.problem?.where);
      this.#wrong(isMissing ? null : told.problem);
      if (isMissing) this.#ready();
      if (told.problem) return;
      this.#checked = told;
      $("toml").value = told.toml;
      drawForecast(told.forecast, told.groups, this.#start.sensitivities);
      drawPreview(told.preview);
      if (told.taken) this.#wrong({ where: "name", detail: "There is another survey of this name. Choose another one." });
      else this.#ready(summary(told.forecast));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) this.#leave("", error);
      $("checked").textContent = error.message;
    }
  }

  /** Nothing is wrong; something may still be missing. */
  #ready(sentence) {
    $("checked").textContent = this.#todo.missing().length ? this.#todo.summary() : sentence;
    for (const id of ["try", "publish"]) $(id).disabled = false;
  }

  /** Say what is wrong beside the field where it is wrong. */
  #wrong(problem) {
    for (const said of document.querySelectorAll(".wrong-here")) said.remove();
    for (const input of document.querySelectorAll("[aria-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    this.#todo.show();
    if (!problem) return;
    const { where, detail } = problem;
    const place = where && document.querySelector(`[data-where="${CSS.escape(where)}"]`);
    $("checked").textContent = place ? "Something is wrong: see the form." : asSentence(detail);
    if (where === "file") $("checked").textContent = "The text of the file is wrong.";
    if (!place) return;
    place.append(h("p", { class: "wrong wrong-here", id: "wrong-here", role: "alert" }, asSentence(detail)));
    const input = place.querySelector("input, select, textarea");
    input?.setAttribute("aria-invalid", "true");
    input?.setAttribute("aria-describedby", "wrong-here");
  }

  // ---- trying and publishing

  /** What is sent is what was shown: the collector compares the fingerprints. */
  #shown() {
    const { toml, forecast } = this.#checked;
    return { toml, fingerprint: forecast.fingerprint };
  }

  async #rehearse() {
    if (this.#todo.refuses()) return;
    const wanted = { people: 500 };
    const most = this.#start.rehearsed;
    const made = await ask("Try it with simulated people", [
      h("p", {}, "Simulated people answer a copy of your survey. The copy has another name and another fingerprint, and says “Rehearsal” everywhere. Nothing of it can be counted with real answers. Anybody who opens this server's list sees it, with your questions."),
      field("How many people?", numberInput(wanted, "people", () => {}, { min: 1, max: most, required: true })),
    ], "Try it", () => call("/rehearsals", { ...this.#shown(), ...wanted }));
    if (made) this.#leave(made.name);
  }

  async #publish() {
    if (this.#todo.refuses()) return;
    const options = { reports: false };
    const keep = h("input", { type: "checkbox", onchange: ({ target }) => { options.reports = target.checked; } });
    const made = await ask(`Publish “${this.#model.name}”?`, [
      h("p", {}, "From then on people can answer, and nothing of the survey can change: they answer under this promise."),
      h("p", {}, "Keep the file, too: download it under “File”."),
      this.#start.open_results && h("p", {}, "This collector shows results to everybody, in batches."),
      h("label", { class: "row check" }, keep, h("span", {}, "Also keep the reports, so that others can count them again. Answers are mixed with chance in them, but for those to public questions.")),
    ], "Publish", () => call("/surveys", { ...this.#shown(), keep: options.reports ? "reports" : "counts" }));
    if (!made) return;
    window.sessionStorage.removeItem(DRAFT);
    this.#leave(made.name);
  }
}
