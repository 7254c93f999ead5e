import { Ledger, askedNames, cleaned } from "../discreet.js";
import { Choices, FEW } from "./choices.js";
import { $ } from "./dom.js";
import { resultsOf, showAbout, showPlace } from "./invitation.js";
import { resumeOthers } from "./others.js";
import { listPromises, showOpenly, showPromise, showTogether } from "./promise.js";
import { copyProof, listLabels, showReceipt, showReports } from "./report.js";
import { repeatProblem, showProblem, status } from "./status.js";
import { Wording } from "./wording.js";
import { quoted, text } from "./words.js";

// What the page says of reports that this browser has already, by their state in the ledger.
const EARLIER = { shown: "knownShown", leaving: "knownLeaving", counted: "knownSent" };
const ORDER = ["leaving", "shown", "counted"]; // which of several states is said
const BUTTONS = ["prepare", "another", "go", "change"];

/** An open survey: answer the drawn questions, see what will be sent, send, receipt. */
export class Page {
  #person = 1; // of those who share this device
  #steps = []; // the names of the questions that are still asked, public ones first
  #answers = {}; // by name: public ones, and those that a crossed question still needs
  #answered = 0; // questions of this visit that are done
  #unsent = false; // a report may not have arrived; the network's return sends it again
  #agreedTo = 0; // the overlaps that the participant sees, and agrees to
  #shownPromises = {}; // what the example needs to know of the promises
  #prepared; // the reports that are shown or sent
  #receipt; // the reports that were counted, and the keys of the texts that say so

  constructor(client, { survey, keeps, openResults }, pinned) {
    Object.assign(this, { client, survey, keeps, openResults, pinned });
    this.wording = new Wording(survey);
    this.choices = new Choices(() => {
      this.#promise();
      this.#ready();
    });
  }

  async start() {
    this.choices.listen();
    $("form").addEventListener("submit", (event) => { event.preventDefault(); this.#confirm(); });
    for (const id of ["agree", "agree-own"]) $(id).addEventListener("change", () => this.#ready());
    for (const id of ["back", "change"]) $(id).addEventListener("click", () => window.history.back());
    $("go").addEventListener("click", () => this.#next());
    $("copy").addEventListener("click", copyProof);
    $("again").addEventListener("click", () => this.#showReceipt(this.#frames(), ["counted"]));
    $("another").addEventListener("click", () => this.#somebodyElse());
    // the browser's own Back leads from a report or a receipt to the question
    window.addEventListener("popstate", () => this.#ask());
    $("send").addEventListener("click", () => this.#send());
    window.addEventListener("online", () => {
      if (!$("send").disabled) this.#resume();
    });
    await this.client.draw(this.survey);
    this.#plan();
    this.speak();
    status(null);
    this.#ask(null);
    this.#resume();
    resumeOthers(this.client.url, this.survey);
  }

  /** Say everything in the language in use. */
  speak() {
    const { survey, keeps, client, pinned } = this;
    const isWrong = !$("problem").hidden;
    this.wording = new Wording(survey);
    showAbout(survey, this.wording, keeps);
    $("final").textContent = text(keeps === "counts" ? "final" : "finalKept");
    $("note").textContent = text(keeps === "counts" ? "receiptNote" : "receiptNoteKept");
    showPlace(client, survey, this.wording, pinned);
    this.#showQuestion();
    this.#listChoices();
    if (!$("form").hidden) this.#ask(null);
    if (!$("sure").hidden) this.#showChosen();
    if (!$("check").hidden) showReports(survey, this.#prepared, this.wording);
    if (!$("receipt").hidden) this.#showReceipt(this.#receipt.frames, this.#receipt.thanked);
    this.#showHeadline();
    if (isWrong) repeatProblem();
  }

  /** The question that is asked; beside reports of several questions, what the survey is called. */
  #showHeadline() {
    if (this.#mine.length < 2) return;
    const name = this.#current;
    $("question").textContent = $("form").hidden && $("sure").hidden ? document.title
      : this.wording.question(name) || cleaned(name);
  }

  // ---- the questions

  /** The question that is asked now; of a survey that is answered, its first. */
  get #current() {
    return this.#steps[0] ?? this.#mine[0];
  }

  /** What this person is asked: public questions, then those that were drawn. */
  get #mine() {
    const drawn = this.#entries().flatMap(({ question }) => {
      return this.survey.question(question).of ?? [question];
    });
    const openly = this.survey.openly.map(({ name }) => name);
    return askedNames(this.survey).filter((name) => openly.includes(name) || drawn.includes(name));
  }

  /** Plan which questions are still to be asked. */
  #plan() {
    const { survey } = this;
    const undone = this.#entries().filter(({ state }) => state === "drawn");
    const needed = undone.flatMap(({ question }) => survey.question(question).of ?? [question]);
    const earlier = this.#frames()[0];
    if (earlier) { // the public answers of a visit that was interrupted
      const start = Number(survey.questions.length > 1);
      survey.openly.forEach(({ name }, k) => { this.#answers[name] = earlier.content[start + k]; });
    }
    const isOpen = (name) => this.#open(name) && !Object.hasOwn(this.#answers, name);
    this.#steps = undone.length
      ? askedNames(survey).filter((name) => isOpen(name) || needed.includes(name)) : [];
    this.#answered = this.#mine.length - this.#steps.length;
    this.#askCurrent();
  }

  #open(name) {
    return this.survey.openly.find((question) => question.name === name);
  }

  /** List the answers of the question that is asked now. */
  #askCurrent() {
    const name = this.#current;
    const open = this.#open(name);
    const mechanism = open ? null : this.survey.question(name).mechanism;
    this.mechanism = mechanism;
    const question = open ? { items: open.items, lists: false }
      : { ...mechanism.policy, lists: mechanism.kind.lists };
    this.choices.ask(question, this.wording.labels(name));
  }

  /** The question that is asked now, in words. */
  #showQuestion() {
    const name = this.#current;
    const total = this.#mine.length;
    this.#showHeadline();
    const at = Math.min(this.#answered + 1, total);
    $("progress").textContent = total < 2 ? "" : text("progress", { k: at, n: total });
    this.choices.speak(this.wording.labels(name));
    const { lists, order } = this.choices;
    $("legend").textContent = text(lists ? "yourAnswers" : "yourAnswer");
    $("find").hidden = order.length <= FEW;
    $("search").placeholder = text("search", { n: order.length });
    $("search").setAttribute("aria-label", $("search").placeholder);
    $("all").hidden = !this.mechanism;
    showTogether(this.mechanism ? this.survey.answerPromise(name) : "");
    if (!this.mechanism) return;
    const promises = this.mechanism.promises();
    this.#shownPromises = {
      isWeak: this.mechanism.caution() !== "",
      wholeFactor: promises.find(({ whole }) => whole)?.factor,
    };
    listPromises(this.mechanism, promises, this.choices.items);
  }

  #listChoices() {
    this.choices.listGroups();
    this.choices.list();
    this.#promise();
  }

  #promise() {
    if (this.mechanism) {
      showPromise(this.mechanism, this.choices.sorted, this.#shownPromises, this.choices.items);
    } else showOpenly();
    this.choices.listChips();
  }

  /** What this browser remembers of this survey. */
  #entries() {
    return this.client.ledger.find(this.client.origin, this.survey);
  }

  /** The reports that this browser has of this survey. */
  #frames() {
    return this.client.reports(this.survey);
  }

  /** The state of the reports that is said; undefined without any. */
  get #state() {
    const states = this.#entries().map(({ state }) => state);
    if (this.#steps.length && !states.includes("leaving")) return undefined;
    return ORDER.find((state) => states.includes(state));
  }

  /** Show the question, with what this browser remembers of it. */
  #ask(focus = "question") {
    const state = this.#state;
    this.#unsent = state === "leaving";
    const isCounted = state === "counted";
    $("before").hidden = !state && this.#person === 1;
    $("again").hidden = !isCounted;
    $("person").hidden = this.#person === 1;
    $("person").textContent = text("person", { n: this.#person });
    $("known").textContent = state ? text(EARLIER[state]) : "";
    this.#showOverlap();
    // not before a report is counted: choosing between two draws would reveal more
    const begun = this.#frames().length > 0;
    $("shared").hidden = !isCounted && (begun || $("consent").hidden);
    this.#ready();
    this.#show("form", focus);
  }

  /**
   * Surveys about the same items under another name or fingerprint: show what they sum to, before
   * anything is drawn.
   */
  #showOverlap() {
    const { client, survey } = this;
    const isSent = this.#entries().every(({ state }) => state === "leaving" || state === "counted");
    const overlaps = isSent ? [] : client.ledger.overlaps(client.origin, survey);
    $("consent").hidden = !overlaps.length;
    this.#agreedTo = overlaps.length;
    if (overlaps.length) {
      $("summed").textContent = client.ledger.summed(client.origin, survey, overlaps).sentence;
    }
  }

  /** Enable the button once there is an answer, or all reports: with them answers were forgotten. */
  #ready() {
    const waits = (!$("consent").hidden && !$("agree").checked)
      || (!$("own").hidden && !$("agree-own").checked);
    const { lists } = this.choices;
    const isEmpty = !this.choices.chosen.size && this.#steps.length > 0;
    $("prepare").disabled = waits || (!lists && isEmpty);
    const key = this.#steps.length < 2 ? "prepare" : "next";
    $("prepare").textContent = text(lists && isEmpty ? `${key}None` : key);
  }

  /** Another person on the same device, with a ledger of their own. */
  async #somebodyElse() {
    this.choices.forget(); // at once: drawing takes a moment, and may fail
    $("sure-title").textContent = "";
    this.#answers = {};
    $("form").reset();
    $("form").hidden = true;
    this.#person += 1;
    this.client.ledger = new Ledger(undefined, this.#person);
    await this.#guard(async () => {
      await this.client.draw(this.survey);
      this.#plan();
      this.#forget();
      this.#ask();
      this.#resume();
    });
  }

  /** Remove from the page and from memory everything that a person typed, chose or opened. */
  #forget() {
    this.choices.forget();
    const goesOn = this.#steps.length > 0 && this.#answered > 0; // consent is to the whole survey
    const [agreed, own] = ["agree", "agree-own"].map((id) => goesOn && $(id).checked);
    $("form").reset();
    [$("agree").checked, $("agree-own").checked] = [agreed, own];
    if (!agreed) this.#agreedTo = 0;
    $("sure-title").textContent = "";
    for (const details of $("form").querySelectorAll("details")) details.open = false;
    this.#showQuestion();
    this.#listChoices();
  }

  // ---- the reports

  /** Show what was chosen, before anything is drawn: a slip can still be mended. */
  #confirm() {
    if (!this.#steps.length) { // it was drawn before
      this.#next();
      return;
    }
    this.#showChosen();
    this.#step("sure");
  }

  #showChosen() {
    const { sorted, items: labels } = this.choices;
    const { shown, rest } = listLabels(labels, sorted, FEW);
    const items = [...shown.map(quoted), ...rest].join(", ");
    const key = this.mechanism ? "sure" : "sureOpenly";
    $("sure-title").textContent = text(sorted.length ? key : "sureNone", { items });
  }

  /** Take the answer; then the next question, or what will be sent. */
  async #next() {
    await this.#guard(async () => {
      const { client, survey } = this;
      const agree = $("agree").checked ? this.#agreedTo : 0;
      const [name] = this.#steps;
      const chosen = this.choices.sorted;
      if (name !== undefined) this.#answers[name] = this.choices.lists ? chosen : chosen[0];
      for (const id of BUTTONS) $(id).disabled = true; // until the report is drawn, once
      const options = { agree, partial: this.#steps.length > 1 };
      this.#prepared = await client.prepare(survey, this.#answers, options);
      if (name !== undefined) {
        this.#steps = this.#steps.filter((step) => step !== name);
        this.#answered += 1;
      }
      // a report is written down, so its answer is not needed any more
      this.#keepNeeded(this.#prepared.missing);
      this.#askCurrent();
      this.#forget();
      if (this.#steps.length) {
        this.#ask();
        return;
      }
      showReports(survey, this.#prepared, this.wording);
      this.#step("check");
    });
    for (const id of BUTTONS) $(id).disabled = id === "prepare" && $(id).disabled;
  }

  /** Forget every answer but public ones and those that a question still needs. */
  #keepNeeded(missing) {
    const needed = missing.flatMap((name) => this.survey.question(name).of ?? []);
    for (const name of Object.keys(this.#answers)) {
      if (!this.#open(name) && !needed.includes(name)) delete this.#answers[name];
    }
  }

  async #send() {
    $("send").disabled = $("back").disabled = $("another").disabled = true;
    $("problem").hidden = true;
    this.#unsent = true;
    status("sending");
    await this.#guard(async () => {
      const { accepted, frames, repeated } = await this.client.send(this.#prepared);
      const thanked = [accepted ? "counted" : "had", ...repeated ? ["madeBefore"] : []];
      if (!this.#entries().some(({ state }) => state === "drawn")) {
        [this.#steps, this.#answers] = [[], {}]; // another tab may have drawn what is chosen here
        this.#forget();
      }
      if (this.#steps.length) { // reports of an interrupted visit; there are questions left
        this.#ask();
        return;
      }
      this.#showReceipt(frames, thanked);
    });
    status(null);
    $("send").disabled = $("back").disabled = $("another").disabled = false;
    if (!$("check").hidden) $("send").focus(); // a disabled button loses the focus
  }

  #showReceipt(frames, thanked) {
    this.#unsent = false;
    this.#receipt = { frames, thanked };
    const results = this.openResults && resultsOf(this.client, this.survey);
    showReceipt(this.survey, frames, thanked, this.wording, results);
    this.#step("receipt");
  }

  /** Send reports again that were on their way when this page was left, or say that they arrived. */
  async #resume() {
    const unsent = this.client.unsent(this.survey);
    if (unsent) {
      this.#prepared = unsent;
      await this.#send();
    } else if (this.#unsent && this.#state === "counted") {
      this.#showReceipt(this.#frames(), ["counted"]); // another tab has sent them meanwhile
    }
  }

  // ---- around

  /** A step that the browser's Back leads back from; sending is not one of its own. */
  #step(section) {
    if (!$("form").hidden) window.history.pushState(null, "");
    this.#show(section, `${section}-title`);
  }

  #show(section, focus) {
    for (const id of ["form", "sure", "check", "receipt"]) $(id).hidden = id !== section;
    this.#showHeadline();
    $("problem").hidden = true;
    if (focus) $(focus).focus();
  }

  async #guard(work) {
    try {
      await work();
    } catch (error) {
      if (error.code !== "network") this.#unsent = false;
      if (error.code === "overlap") {
        // answered in another tab meanwhile: ask for consent
        $("agree").checked = false;
        this.#ask();
      }
      if (error.code === "answer") { // the ledger was removed meanwhile
        this.#plan();
        this.#forget();
        this.#ask();
      }
      this.#ready();
      showProblem(error, this.#unsent ? ["kept"] : []);
    }
  }
}
