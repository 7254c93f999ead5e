import { Client, Ledger, cleaned, shortFingerprint } from "../discreet.js";
import { Choices, FEW } from "./choices.js";
import { $, hex } from "./dom.js";
import { showAbout } from "./invitation.js";
import { listPromises, showPromise } from "./promise.js";
import { showReceipt, showReport } from "./report.js";
import { showProblem, status } from "./status.js";
import { text } from "./words.js";

// What the page says of a report that this browser has already, by its state in the ledger.
const EARLIER = { shown: "knownShown", leaving: "knownLeaving", counted: "knownSent" };

/** An open question: choose, see what will be sent, send, receipt. */
export class Page {
  #person = 1; // of those who share this device
  #drawn = false; // the report is in the ledger, so no answer is needed any more
  #unsent = false; // the report may not have arrived; the network's return sends it again
  #agreedTo = 0; // the overlaps that the participant sees, and agrees to
  #shownPromises = {}; // what the example needs to know of the promises
  #prepared; // the report that is shown or sent
  #receipt; // the report that was counted, and the keys of the texts that say so

  constructor(client, name, { mechanism, keeps }, pinned) {
    Object.assign(this, { client, name, mechanism, keeps, pinned });
    this.choices = new Choices(mechanism, () => {
      this.#promise();
      this.#ready();
    });
  }

  start() {
    this.choices.listen();
    $("form").addEventListener("submit", (event) => { event.preventDefault(); this.#prepare(); });
    $("agree").addEventListener("change", () => this.#ready());
    $("back").addEventListener("click", () => window.history.back());
    $("again").addEventListener("click", () => this.#showReceipt(this.#earlier(), ["counted"]));
    $("another").addEventListener("click", () => this.#somebodyElse());
    // the browser's own Back leads from a report or a receipt to the question
    window.addEventListener("popstate", () => this.#ask());
    $("send").addEventListener("click", () => this.#send());
    window.addEventListener("online", () => {
      if (!$("send").disabled) this.#resume();
    });
    this.speak();
    status(null);
    this.#ask(null);
    this.#resume();
    this.#resumeOthers();
  }

  /** Say everything in the language in use. */
  speak() {
    const { mechanism, keeps, name, client, pinned } = this;
    showAbout(mechanism, name, keeps);
    $("final").textContent = text(keeps === "counts" ? "final" : "finalKept");
    $("note").textContent = text(keeps === "counts" ? "receiptNote" : "receiptNoteKept");
    const place = { name: cleaned(name), host: new URL(client.url).host };
    const here = window.location.host || text("device");
    $("where").textContent = window.location.origin === client.origin
      ? text("where", place) : text("copy", { ...place, here });
    const fingerprint = shortFingerprint(mechanism.fingerprint);
    $("pinned").textContent = text(pinned ? "pinned" : "unpinned", { fingerprint });
    $("legend").textContent = text(mechanism.kind.lists ? "yourAnswers" : "yourAnswer");
    const n = mechanism.m;
    $("find").hidden = n <= FEW;
    $("foot").classList.toggle("stays", n > FEW);
    $("search").placeholder = text("search", { n });
    $("search").setAttribute("aria-label", $("search").placeholder);
    const promises = mechanism.promises();
    this.#shownPromises = {
      isWeak: mechanism.caution() !== "",
      wholeFactor: promises.find(({ whole }) => whole)?.factor,
    };
    listPromises(mechanism, promises);
    this.#listChoices();
    if (!$("form").hidden) this.#ask(null);
    if (!$("check").hidden) showReport(mechanism, this.#prepared);
    if (!$("receipt").hidden) this.#showReceipt(this.#receipt.entry, this.#receipt.thanked);
  }

  #listChoices() {
    this.choices.listGroups();
    this.choices.list();
    this.#promise();
  }

  #promise() {
    showPromise(this.mechanism, this.choices.sorted, this.#shownPromises);
    this.choices.listChips();
  }

  // ---- the question

  /** What this browser remembers of this question. */
  #earlier() {
    return this.client.ledger.find(this.client.origin, this.name, this.mechanism.fingerprint);
  }

  /** Show the question, with what this browser remembers of it. */
  #ask(focus = "question") {
    const earlier = this.#earlier();
    this.#unsent = earlier?.state === "leaving";
    this.#drawn = earlier !== null;
    const isCounted = earlier?.state === "counted";
    $("before").hidden = !earlier && this.#person === 1;
    $("once").hidden = Boolean(earlier);
    $("again").hidden = !isCounted;
    $("person").hidden = this.#person === 1;
    $("person").textContent = text("person", { n: this.#person });
    $("known").textContent = earlier ? text(EARLIER[earlier.state]) : "";
    this.#showOverlap(earlier);
    // not before a report is counted: choosing between two draws would reveal more
    $("shared").hidden = !isCounted && (Boolean(earlier) || $("consent").hidden);
    this.#ready();
    this.#show("form", focus);
  }

  /**
   * Questions about the same items under another name or fingerprint: show what they sum to, before
   * anything is drawn.
   */
  #showOverlap(earlier) {
    const { client, name, mechanism } = this;
    const isSent = earlier && earlier.state !== "shown";
    const overlaps = isSent ? [] : client.ledger.overlaps(client.origin, name, mechanism);
    $("consent").hidden = !overlaps.length;
    this.#agreedTo = overlaps.length;
    if (overlaps.length) {
      $("summed").textContent = client.ledger.summed(mechanism, overlaps).sentence;
    }
  }

  /** Enable the button once there is an answer, or a report: with it the answer was forgotten. */
  #ready() {
    const waits = !$("consent").hidden && !$("agree").checked;
    const { lists } = this.mechanism.kind;
    const isEmpty = !this.choices.chosen.size && !this.#drawn;
    $("prepare").disabled = waits || (!lists && isEmpty);
    $("prepare").textContent = text(lists && isEmpty ? "prepareNone" : "prepare");
  }

  /** Another person on the same device, with a ledger of their own. */
  #somebodyElse() {
    this.#person += 1;
    this.client.ledger = new Ledger(undefined, this.#person);
    this.#forget();
    this.#ask();
    this.#resume();
  }

  /** Remove from the page and from memory everything that a person typed, chose or opened. */
  #forget() {
    this.choices.forget();
    this.#agreedTo = 0;
    $("form").reset();
    for (const details of $("form").querySelectorAll("details")) details.open = false;
    this.#listChoices();
  }

  // ---- the report

  async #prepare() {
    await this.#guard(async () => {
      const agree = $("agree").checked ? this.#agreedTo : 0;
      const chosen = this.choices.sorted;
      const given = this.mechanism.kind.lists ? chosen : chosen[0];
      const answer = this.#drawn && !chosen.length ? undefined : given;
      $("prepare").disabled = $("another").disabled = true; // until the report is drawn, once
      this.#prepared = await this.client.prepare(this.name, this.mechanism, answer, { agree });
      this.#forget(); // the report is written down, so the answer is not needed any more
      showReport(this.mechanism, this.#prepared);
      this.#step("check");
    });
    $("another").disabled = false;
  }

  async #send() {
    $("send").disabled = $("back").disabled = $("another").disabled = true;
    $("problem").hidden = true;
    this.#unsent = true;
    status("sending");
    await this.#guard(async () => {
      const { accepted, id, report, repeated } = await this.client.send(this.#prepared);
      const thanked = [accepted ? "counted" : "had", ...repeated ? ["madeBefore"] : []];
      this.#showReceipt({ report: hex(report), id: hex(id) }, thanked);
    });
    status(null);
    $("send").disabled = $("back").disabled = $("another").disabled = false;
    if (!$("check").hidden) $("send").focus(); // a disabled button loses the focus
  }

  #showReceipt(entry, thanked) {
    this.#unsent = false;
    this.#receipt = { entry, thanked };
    showReceipt(this.mechanism, entry, thanked);
    this.#step("receipt");
  }

  /** Send a report again that was on its way when this page was left, or say that it arrived. */
  async #resume() {
    const unsent = this.client.unsent(this.name, this.mechanism);
    if (unsent) {
      this.#prepared = unsent;
      await this.#send();
    } else if (this.#unsent && this.#earlier()?.state === "counted") {
      this.#showReceipt(this.#earlier(), ["counted"]); // another tab has sent it meanwhile
    }
  }

  /** The same for others who answered on this device, without a word: they are not here. */
  async #resumeOthers() {
    const { name, mechanism, client: { url } } = this;
    for (let person = 2; Ledger.isKept(person); person++) {
      const client = new Client(url, { ledger: new Ledger(undefined, person) });
      try {
        const unsent = client.unsent(name, mechanism);
        if (unsent) await client.send(unsent);
      } catch (error) {
        console.warn(`person ${person}: ${error.message}`); // the next visit tries again
      }
    }
  }

  // ---- around

  /** A step that the browser's Back leads back from; sending is not one of its own. */
  #step(section) {
    if (!$("form").hidden) window.history.pushState(null, "");
    this.#show(section, `${section}-title`);
  }

  #show(section, focus) {
    for (const id of ["form", "check", "receipt"]) $(id).hidden = id !== section;
    $("about").classList.toggle("aside", section !== "form");
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
      if (error.code === "answer") this.#ask(); // the ledger was removed meanwhile
      this.#ready();
      showProblem(error, this.#unsent ? [text("kept")] : []);
    }
  }
}
