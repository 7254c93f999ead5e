import { fromHex, toHex } from "../check/document.js";
import { DiscreetError } from "../errors.js";
import { Mechanism } from "../mechanism.js";
import { quoted } from "../policy/labels.js";
import { Ledger, locked, sendable } from "./ledger.js";
import { brief, checkBudgets, readLimit } from "./limits.js";
import { requestJson } from "./network.js";

/**
 * @typedef {{name: string, mechanism: Mechanism, id: Uint8Array, report: Uint8Array,
 *   repeated: boolean, overlaps: Overlap[], summed: Summed | null, maxTotal: number}} Prepared
 *   what will be sent if `send` is called
 * @typedef {{accepted: number, duplicates: number, id: Uint8Array, report: Uint8Array,
 *   repeated: boolean}} Receipt
 */

const STATES_OF_COLLECTION = ["upcoming", "open", "closed"];
const LATE = 3_600_000; // milliseconds after a question's end at which it is closed for certain

/**
 * Fetches a mechanism, verifies it, and uploads one perturbed report, once. Requests depend on
 * nothing but the report.
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
   * The collection's mechanism, verified. Only two words of the collector are used beside it: the
   * state, until the question's own end, and what the collector keeps.
   * @param {string} name
   * @param {{fingerprint?: string | null, maxEpsilon?: number | Record<string, number>,
   *   oneWay?: boolean}} [pins]
   *   the only fingerprint to accept; the largest budget to accept, of all items or of each by its
   *   label; with it, whether one-way protection is accepted
   * @returns {Promise<{mechanism: Mechanism, state: "upcoming" | "open" | "closed",
   *   keeps: "counts" | "reports"}>}
   */
  async describe(name, { fingerprint: pinned, maxEpsilon, oneWay = false } = {}) {
    const { mechanism: document, state, keeps } = await this.#request(this.#path(name), {});
    if (!STATES_OF_COLLECTION.includes(state)) {
      const what = `the collection's state is ${quoted(state)}`
        + ", but must be upcoming, open or closed";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const mechanism = await Mechanism.from(document, { fingerprint: pinned });
    if (mechanism.policy.name !== name) {
      const what = `the link is for ${quoted(name)}, but the question there is called `
        + quoted(mechanism.policy.name);
      const next = "a link of your own could tell who you are: do not answer, and compare the whole"
        + " link with somebody else's";
      throw new DiscreetError("pinned", `${what}; ${next}`);
    }
    if (maxEpsilon !== undefined) checkBudgets(mechanism, maxEpsilon, oneWay);
    const { opens, closes } = mechanism.policy.about;
    if (state === "upcoming" && !opens) {
      const what = "the collector says that the question has not opened, which has no such time";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const over = closes && Date.now() > Date.parse(closes) + LATE;
    return {
      mechanism, state: over ? "closed" : state,
      keeps: keeps === "counts" ? "counts" : "reports", // unless it says so, it may keep reports
    };
  }

  /**
   * Perturb an answer and write the report down; nothing is sent yet. A report is drawn once: if
   * the collection has one already, that report is given again, whatever the answer, which may then
   * be left out.
   * @param {string} name @param {Mechanism} mechanism
   * @param {{agree?: boolean | number, maxTotal?: number}} [options] agree: to the summed budget of
   *   overlapping questions, or of so many of them; maxTotal, here or of the client, is not lifted
   *   by it
   * @returns {Promise<Prepared>}
   */
  async prepare(name, mechanism, answer, { agree = false, maxTotal = Infinity } = {}) {
    const most = Math.min(readLimit(maxTotal), this.maxTotal);
    const { ledger } = this; // somebody else may take over the client meanwhile
    if (answer !== undefined) mechanism.places(answer); // refuses what is not an answer
    return locked(async () => {
      const earlier = ledger.find(this.origin, name, mechanism.fingerprint);
      const agreed = agree === true ? Infinity : Number(agree);
      const overlaps = earlier && earlier.state !== "shown"
        ? [] : this.#consented(ledger, name, mechanism, most, agreed);
      if (!earlier) {
        const id = globalThis.crypto.getRandomValues(new Uint8Array(16));
        ledger.reserve(this.origin, name, mechanism, mechanism.perturb(answer), id);
        await ledger.settled();
      }
      const entry = ledger.find(this.origin, name, mechanism.fingerprint);
      return Object.freeze({
        ...sendable(name, mechanism, entry), repeated: earlier !== null, overlaps,
        summed: ledger.summed(mechanism, overlaps), maxTotal: most,
      });
    });
  }

  /**
   * The report that was on its way when something went wrong, so that it may have arrived or not.
   * Send it again; its id makes sure that it is counted once.
   * @param {string} name @param {Mechanism} mechanism
   * @returns {Prepared | null}
   */
  unsent(name, mechanism) {
    const entry = this.ledger.find(this.origin, name, mechanism.fingerprint);
    if (entry?.state !== "leaving") return null;
    return Object.freeze({
      ...sendable(name, mechanism, entry), repeated: true, overlaps: [], summed: null,
      maxTotal: Infinity,
    });
  }

  /**
   * Upload the report, again and again while the collector is away: it is counted once.
   * @param {Prepared} prepared
   * @returns {Promise<Receipt>}
   */
  async send({ name, mechanism, id, report, repeated, overlaps, maxTotal }) {
    const { ledger } = this; // somebody else may take over the client meanwhile
    const entry = await locked(() => {
      const reserved = ledger.reserve(this.origin, name, mechanism, report, id);
      if (reserved.state === "shown") {
        this.#consented(ledger, name, mechanism, maxTotal, overlaps.length);
        ledger.mark(this.origin, name, mechanism.fingerprint, "leaving");
      }
      return reserved;
    });
    const { accepted, duplicates } = await this.#request(`${this.#path(name)}/reports`, {
      method: "POST",
      headers: {
        "Content-Type": "application/octet-stream",
        "Discreet-Mechanism": mechanism.fingerprint,
      },
      body: fromHex(entry.id + entry.report),
    });
    if (accepted + duplicates !== 1) {
      const what = "the collector did not say that it has the report";
      throw new DiscreetError("server", `${what}; send it again later`);
    }
    try {
      await locked(() => ledger.mark(this.origin, name, mechanism.fingerprint, "counted"));
    } catch {
      // the entry stays "leaving": then the same bytes may be sent again, and are counted once
    }
    const other = entry.id !== toHex(id);
    return {
      accepted, duplicates, id: fromHex(entry.id), report: fromHex(entry.report),
      repeated: repeated || other,
    };
  }

  /** Prepare and send. @returns {Promise<Receipt>} */
  async answer(name, mechanism, answer, options = {}) {
    return this.send(await this.prepare(name, mechanism, answer, options));
  }

  /** Refuse overlaps without consent, and a sum of budgets above the person's limit. */
  #consented(ledger, name, mechanism, most, agreed) {
    this.#checkTotal(ledger, name, mechanism, most);
    const overlaps = ledger.overlaps(this.origin, name, mechanism);
    if (overlaps.length <= agreed) return overlaps;
    const summed = ledger.summed(mechanism, overlaps);
    const sentence = `${summed.sentence.slice(0, -1)}; answer only if you agree to that.`;
    throw new DiscreetError("overlap", sentence, { summed, overlaps });
  }

  #checkTotal(ledger, name, mechanism, most) {
    const spent = ledger.total(this.origin, name, mechanism.fingerprint);
    const epsilon = spent.epsilon + mechanism.wholeEpsilon();
    if (!(epsilon > most + 1e-9)) return;
    const before = spent.earlier === 1 ? "an earlier answer" : `${spent.earlier} earlier answers`;
    const what = spent.earlier ? `this answer and ${before} together have` : "this answer has";
    const allowed = `above the ${brief(most)} that you allow in all`;
    const sentence = `${what} the budget ${brief(epsilon)}, ${allowed}`;
    const next = "it is not sent, even if you agree";
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
