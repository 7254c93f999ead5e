import { fromHex, toHex } from "../check/document.js";
import { DiscreetError } from "../errors.js";
import { quoted } from "../policy/labels.js";
import { Survey } from "../survey/survey.js";
import { byName, checkAnswers, frameOf, perturbed } from "./answers.js";
import { Ledger } from "./ledger.js";
import { brief, checkSurvey, readLimit } from "./limits.js";
import { requestJson } from "./network.js";
import { Draws } from "./randomness.js";

/**
 * @typedef {{question: string, id: Uint8Array, content: Uint8Array, report: Uint8Array}} Frame
 *   content: the report with what stands before it
 * @typedef {{survey: Survey, frames: Frame[], missing: string[], repeated: boolean,
 *   overlaps: Overlap[], summed: Summed | null, maxTotal: number, oneWay: boolean}} Prepared
 *   what will be sent if `send` is called; missing: drawn questions that have no report yet
 * @typedef {{accepted: number, duplicates: number, frames: Frame[], repeated: boolean}} Receipt
 */

const SENT = ["leaving", "counted"]; // states of a report that may have left
const STATES_OF_COLLECTION = ["upcoming", "open", "closed"];
const LATE = 3_600_000; // milliseconds after a question's end at which it is closed for certain

/**
 * Fetches a survey, verifies it, and uploads each perturbed report, once. Requests depend on nothing
 * but the reports.
 */
export class Client {
  #fetch;

  /**
   * @param {string} url where the collector is
   * @param {{fetch?: typeof fetch, ledger?: Ledger, origin?: string, patience?: number,
   *   pause?: number, maxTotal?: number, waiting?: (milliseconds: number) => void}} [options]
   *   patience: milliseconds after which retries end; pause: before the first retry; maxTotal: caps
   *   the sum of the budgets over all collections in the ledger, whatever they ask about; waiting:
   *   called when an attempt has failed, with the milliseconds until the next
   */
  constructor(url, {
    fetch = globalThis.fetch, ledger = new Ledger(), origin, patience = 60_000, pause = 500,
    maxTotal = Infinity, waiting = () => {},
  } = {}) {
    this.waiting = waiting;
    this.maxTotal = readLimit(maxTotal);
    this.#fetch = (...args) => fetch(...args);
    this.url = url.replace(/\/+$/, "");
    this.ledger = ledger;
    this.origin = origin ?? new URL(url).origin;
    this.patience = patience;
    this.pause = pause;
  }

  /**
   * The collection's survey, verified. Only two words of the collector are used beside it: the
   * state, until the survey's own end, and what the collector keeps.
   * @param {string} name
   * @param {{fingerprint?: string | null, maxEpsilon?: number | Record<string, number>,
   *   oneWay?: boolean}} [pins]
   *   the only fingerprint to accept; the largest budget to accept, of all items or of each by its
   *   label; with it, whether one-way protection is accepted (say so to `prepare`, too)
   * @returns {Promise<{survey: Survey, state: "upcoming" | "open" | "closed",
   *   keeps: "counts" | "reports"}>}
   */
  async describe(name, { fingerprint: pinned, maxEpsilon, oneWay = false } = {}) {
    const { survey: document, state, keeps, open_results: openResults } = await this.#request(
      this.#path(name), {},
    );
    if (!STATES_OF_COLLECTION.includes(state)) {
      const what = `the collection's state is ${quoted(state)}`
        + ", but must be upcoming, open or closed";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const survey = await Survey.from(document, { fingerprint: pinned });
    if (survey.name !== name) {
      const what = `the link is for ${quoted(name)}, but the survey there is called `
        + quoted(survey.name);
      const next = "a link that only you have could tell who you are: do not answer, and compare the"
        + " whole link with somebody else's";
      throw new DiscreetError("pinned", `${what}; ${next}`);
    }
    if (maxEpsilon !== undefined) checkSurvey(survey, maxEpsilon, oneWay);
    const { opens, closes } = survey.about;
    if (state === "upcoming" && !opens) {
      const what = "the collector says that the survey has not opened, which has no such time";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const over = closes && Date.now() > Date.parse(closes) + LATE;
    return {
      survey, state: over ? "closed" : state, keeps: keeps === "counts" ? keeps : "reports",
      openResults: openResults === true,
    };
  }

  /**
   * The questions that this device answers. They are drawn once, whatever the answers are, and
   * written down before anything is shown.
   * @param {Survey} survey
   * @returns {Promise<Question[]>}
   */
  async draw(survey) {
    const { ledger } = this;
    const entries = await ledger.locked(() => {
      ledger.drawOnce(this.origin, survey);
      return ledger.find(this.origin, survey);
    });
    return entries.map(({ question }) => survey.question(question));
  }

  /**
   * Perturb answers and write the reports down; nothing is sent yet. A report is drawn once, inside
   * a lock and before anybody sees it: a survey whose reports have been prepared gives them again,
   * whatever the answers.
   * @param {Survey} survey
   * @param {unknown} answer to the only question; or answers by the names of the questions, public
   *   ones too. Those to questions that were not drawn are not looked at. Without an answer, what
   *   was prepared before
   * @param {{agree?: boolean | number, maxTotal?: number, oneWay?: boolean, partial?: boolean}}
   *   [options]
   *   agree: consent to the summed budget of earlier answers about the same items, or to that of so
   *   many; maxTotal caps the sum of the budgets over all surveys, and is not lifted by agreeing;
   *   oneWay: maxTotal limits how far odds are raised alone; partial: whether drawn questions may be left for later
   * @returns {Promise<Prepared>}
   */
  async prepare(survey, answer, {
    agree = false, maxTotal = Infinity, oneWay = false, partial = false,
  } = {}) {
    const most = Math.min(readLimit(maxTotal), this.maxTotal);
    const { ledger, origin } = this; // somebody else may take over the client meanwhile
    const answers = byName(survey, answer);
    checkAnswers(survey, answers);
    return ledger.locked(async () => {
      const before = ledger.find(origin, survey);
      const isSent = before.length > 0 && before.every(({ state }) => SENT.includes(state));
      const agreed = agree === true ? Infinity : Number(agree);
      const overlaps = isSent ? [] : this.#refuseUnlessAgreed(ledger, survey, { most, agreed, oneWay });
      const undrawn = ledger.drawOnce(origin, survey).filter(({ state }) => state === "drawn");
      const fresh = undrawn.flatMap(({ question }) => {
        const content = perturbed(survey, survey.question(question), answers, partial);
        return content ? [{ question, content }] : [];
      });
      for (const { question, content } of fresh) {
        const id = globalThis.crypto.getRandomValues(new Uint8Array(16));
        ledger.reserve(origin, survey, question, content, id);
      }
      if (fresh.length) await ledger.settled();
      const mine = ledger.find(origin, survey);
      const ready = mine.filter(({ state }) => state !== "drawn");
      return Object.freeze({
        survey, frames: ready.map((entry) => frameOf(survey, entry)),
        missing: mine.filter(({ state }) => state === "drawn").map(({ question }) => question),
        repeated: !fresh.length, overlaps, summed: ledger.summed(origin, survey, overlaps),
        maxTotal: most, oneWay,
      });
    });
  }

  /**
   * The reports that were on their way when something went wrong, so that they may have arrived or
   * not. Send them again; their ids make sure that each is counted once.
   * @param {Survey} survey
   * @returns {Prepared | null}
   */
  unsent(survey) {
    const mine = this.ledger.find(this.origin, survey);
    if (!mine.some(({ state }) => state === "leaving")) return null;
    const frames = mine.filter(({ state }) => SENT.includes(state))
      .map((entry) => frameOf(survey, entry));
    return Object.freeze({
      survey, frames, missing: [], repeated: true, overlaps: [], summed: null, maxTotal: Infinity,
      oneWay: false,
    });
  }

  /** The reports of a survey that this device has. @param {Survey} survey @returns {Frame[]} */
  reports(survey) {
    return this.ledger.find(this.origin, survey).filter(({ state }) => state !== "drawn")
      .map((entry) => frameOf(survey, entry));
  }

  /**
   * Upload the reports, one by one and in random order, again and again while the collector is away:
   * each is counted once. Nothing in them says that they belong together; whoever sees the connections
   * may guess it from address and time.
   * @param {Prepared} prepared
   * @returns {Promise<Receipt>}
   */
  async send({ survey, frames: wanted, repeated, overlaps, maxTotal, oneWay }) {
    const { ledger } = this; // somebody else may take over the client meanwhile
    const entries = await ledger.locked(() => {
      const mine = ledger.restore(this.origin, survey, wanted);
      const leaving = mine.filter(({ state }) => state === "shown").map(({ id }) => id);
      if (leaving.length) {
        const limits = { most: maxTotal, agreed: overlaps.length, oneWay };
        this.#refuseUnlessAgreed(ledger, survey, limits);
        ledger.mark(leaving, "leaving");
      }
      return mine;
    });
    const counted = { accepted: 0, duplicates: 0 };
    for (const entry of new Draws().subset(entries, entries.length)) {
      const { accepted, duplicates } = await this.#upload(survey, entry);
      counted.accepted += accepted;
      counted.duplicates += duplicates;
      try {
        await ledger.locked(() => ledger.mark([entry.id], "counted"));
      } catch {
        // the entry stays "leaving": then the same bytes may be sent again, and are counted once
      }
    }
    const ids = new Set(wanted.map(({ id }) => toHex(id)));
    const other = entries.some(({ id }) => !ids.has(id));
    return {
      ...counted, frames: entries.map((entry) => frameOf(survey, entry)),
      repeated: repeated || other,
    };
  }

  async #upload({ name, fingerprint }, { id, report }) {
    const { accepted, duplicates } = await this.#request(`${this.#path(name)}/reports`, {
      method: "POST",
      headers: {
        "Content-Type": "application/octet-stream",
        "Discreet-Survey": fingerprint,
      },
      body: fromHex(id + report),
    });
    if (accepted + duplicates !== 1) {
      const what = "the collector did not say that it has the report";
      throw new DiscreetError("server", `${what}; send it again later`);
    }
    return { accepted, duplicates };
  }

  /** Prepare and send. @returns {Promise<Receipt>} */
  async answer(survey, answer, options = {}) {
    return this.send(await this.prepare(survey, answer, options));
  }

  /** Refuse overlaps without consent, and a sum of budgets above the person's limit. */
  #refuseUnlessAgreed(ledger, survey, { most, agreed, oneWay }) {
    this.#checkTotal(ledger, survey, most, oneWay);
    const overlaps = ledger.overlaps(this.origin, survey);
    if (overlaps.length <= agreed) return overlaps;
    const summed = ledger.summed(this.origin, survey, overlaps);
    const sentence = `${summed.sentence.slice(0, -1)}; answer only if you agree to that.`;
    throw new DiscreetError("overlap", sentence, { summed, overlaps });
  }

  #checkTotal(ledger, survey, most, oneWay) {
    const spent = ledger.total(this.origin, survey);
    const own = ledger.own(this.origin, survey);
    const raised = spent.raised + own.raised;
    const epsilon = oneWay ? raised : spent.epsilon + own.epsilon;
    if (!(epsilon > most + 1e-9)) return;
    const before = spent.earlier === 1 ? "an earlier answer" : `${spent.earlier} earlier answers`;
    const what = spent.earlier ? `this answer and ${before} together have` : "this answer has";
    const allowed = `above the ${brief(most)} that you allow in all`;
    const sentence = `${what} the budget ${brief(epsilon)}, ${allowed}`;
    const hint = `; its raised odds have ${brief(raised)}: accept that (oneWay)`;
    const next = `it is not sent, even if you agree${raised > most + 1e-9 ? "" : hint}`;
    throw new DiscreetError("total", `${sentence}; ${next}`, { epsilon, limit: most });
  }

  #path(name) {
    return `${this.url}/v1/collections/${encodeURIComponent(name)}`;
  }

  #request(url, options) {
    const { url: server, patience, pause, waiting } = this;
    return requestJson(url, options, { fetch: this.#fetch, server, patience, pause, waiting });
  }
}
