// What this device has already sent, and to whom.
import { foremost } from "../check/exact.js";
import { fromHex, toHex } from "../check/document.js";
import { DiscreetError } from "../errors.js";
import { looks } from "../policy/labels.js";
import { roundUpFloat } from "../promises/rounding.js";
import { localise, say } from "../words.js";

/**
 * @typedef {{origin: string, name: string, fingerprint: string, id: string, report: string,
 *   items: string[],
 *   budgets: {levels: (number | null)[], levelOf: number[], whole: number | null, oneWay: boolean},
 *   state: "shown" | "leaving" | "counted"}}
 *   Entry  in hexadecimal; never the answer, never a time. A report is first shown to its sender
 *   alone, then it may have left, then the collector has acknowledged it. A budget of null has no
 *   limit; oneWay: the levels' budgets are of raised odds alone
 * @typedef {{entry: Entry, shared: string[]}} Overlap  the labels are the new question's
 * @typedef {{item: string, epsilon: number, factor: number, sentence: string}} Summed
 */

const LEDGER = "discreet-ledger/3";
const SETTLE = 150; // milliseconds in which tabs see what one of them wrote
const STATES = ["shown", "leaving", "counted"];

/** Run work while no other tab of this browser does: two tabs must not both draw a report. */
export async function locked(work) {
  const locks = globalThis.navigator?.locks;
  // async: Node 24 never releases a lock whose work throws at once
  return locks ? locks.request(LEDGER, async () => work()) : work();
}

/**
 * Averaging over repeats is the classic attack. So the same question always gets the same report,
 * and the budgets of different questions about the same items add up.
 */
export class Ledger {
  #storage;
  #shared; // with other tabs
  #key;

  /**
   * @param {{getItem: Function, setItem: Function}} [storage] the browser's localStorage unless
   *   given
   * @param {number} [person] people who share a device each have a ledger of their own
   */
  constructor(storage, person = 1) {
    // late: reading it may throw where storage is blocked
    this.#storage = () => storage ?? globalThis.localStorage;
    this.#shared = !storage;
    this.#key = person === 1 ? LEDGER : `${LEDGER}/${person}`;
  }

  /** Whether a ledger of this person is in the browser's storage. @param {number} person */
  static isKept(person) {
    return globalThis.localStorage.getItem(`${LEDGER}/${person}`) !== null;
  }

  /** The entry of exactly this collection, or null. @returns {Entry | null} */
  find(origin, name, fingerprint) {
    return this.#read().find(isFor(origin, name, fingerprint)) ?? null;
  }

  /**
   * Earlier answers to other collections that share an item, however its label is spelled.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism
   * @returns {Overlap[]}
   */
  overlaps(origin, name, mechanism) {
    const here = mechanism.policy.items.map(looks);
    return this.#sentElsewhere(origin, name, mechanism.fingerprint).flatMap((entry) => {
      const there = new Set(entry.items.flatMap(looks));
      const shared = mechanism.policy.items.filter((_, k) => here[k].some((x) => there.has(x)));
      return shared.length ? [{ entry, shared }] : [];
    });
  }

  /**
   * The shared item with the largest sum of budgets, the new question included; null without
   * overlaps.
   * @param {Mechanism} mechanism @param {Overlap[]} overlaps
   * @returns {Summed | null}
   */
  summed(mechanism, overlaps) {
    if (!overlaps.length) return null;
    const spent = overlaps.map(({ entry }) => spentBy(entry));
    const { kind: { lists }, policy: { items, levelOf } } = mechanism;
    const own = mechanism.levelEpsilons();
    const total = items.map((item, k) => {
      const itemLooks = looks(item);
      const earlier = spent.flatMap((byLook) => {
        const budgets = itemLooks.flatMap((look) => byLook.get(look) ?? []);
        return budgets.length ? [Math.max(...budgets)] : [];
      });
      return earlier.length ? earlier.reduce((sum, x) => sum + x, own[levelOf[k]]) : -Infinity;
    });
    const worst = foremost(total, (x, y) => x > y);
    const { factor, text } = roundUpFloat(Math.exp(total[worst]));
    const oneWay = !mechanism.policy.isMutual || overlaps.some(({ entry }) => entry.budgets.oneWay);
    const sentences = [say(oneWay ? "alreadyOneWay" : lists ? "alreadyHaving" : "already", {
      n: overlaps.length, what: `"${items[worst]}"`, factor: localise(text),
    })];
    if (lists) {
      const whole = overlaps.reduce((sum, { entry }) => sum + stored(entry.budgets.whole),
        mechanism.wholeEpsilon());
      const { text: wholeText } = roundUpFloat(Math.exp(whole));
      sentences.push(say("alreadyLists", { factor: localise(wholeText) }));
    }
    const sentence = sentences.join(" ");
    return { item: items[worst], epsilon: total[worst], factor, sentence };
  }

  /**
   * The sum of the budgets of whole answers over all other collections, and their number. It counts
   * every collection, whatever it asks about, because labels can be rewritten.
   * @returns {{epsilon: number, earlier: number}}
   */
  total(origin, name, fingerprint) {
    const others = this.#sentElsewhere(origin, name, fingerprint);
    const epsilon = others.reduce((sum, { budgets }) => sum + stored(budgets.whole), 0);
    return { epsilon, earlier: others.length };
  }

  /**
   * Write a report down before anybody sees it. If this collection has an entry already, that entry
   * counts.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism
   * @param {Uint8Array} report @param {Uint8Array} id
   * @returns {Entry}
   */
  reserve(origin, name, mechanism, report, id) {
    const entries = this.#read();
    const earlier = entries.find(isFor(origin, name, mechanism.fingerprint));
    if (earlier) return earlier;
    const { policy: { items, levelOf }, fingerprint } = mechanism;
    const finite = (epsilon) => (epsilon < Infinity ? epsilon : null);
    const budgets = {
      levels: mechanism.levelEpsilons().map(finite), levelOf,
      whole: finite(mechanism.wholeEpsilon()), oneWay: !mechanism.policy.isMutual,
    };
    const entry = {
      origin, name, fingerprint, id: toHex(id), report: toHex(report), items, budgets,
      state: "shown",
    };
    this.#write([...entries, entry]);
    return entry;
  }

  /**
   * Wait, inside the lock, until every other tab sees what was written. Tabs keep copies of
   * localStorage, which catch up a little later than the lock is handed on.
   */
  async settled() {
    if (this.#shared) await new Promise((resolve) => { setTimeout(resolve, SETTLE); });
  }

  /** The report is about to leave, or the collector has acknowledged it. */
  mark(origin, name, fingerprint, state) {
    const same = isFor(origin, name, fingerprint);
    this.#write(this.#read().map((entry) => (same(entry) ? { ...entry, state } : entry)));
  }

  /** The entries of other collections whose report may have left. @returns {Entry[]} */
  #sentElsewhere(origin, name, fingerprint) {
    const same = isFor(origin, name, fingerprint);
    return this.#read().filter((entry) => !same(entry) && entry.state !== "shown");
  }

  /** @returns {Entry[]} */
  #read() {
    let text;
    try {
      text = this.#storage().getItem(this.#key);
    } catch (error) {
      const what = `the ledger cannot be read (${error.message}), so nothing is sent`;
      throw new DiscreetError("ledger", `${what}; let it be stored`);
    }
    if (text == null) return [];
    try {
      const { entries, ...more } = JSON.parse(text);
      const shape = Array.isArray(entries) && !Object.keys(more).length;
      if (shape && entries.every(isEntry)) return entries;
    } catch { /* refused below */ }
    const what = `the ledger stored as "${this.#key}" is damaged, so nothing is sent`;
    const next = "restore it, or remove it if you accept that earlier answers are forgotten";
    throw new DiscreetError("ledger", `${what}; ${next}`);
  }

  #write(entries) {
    try {
      this.#storage().setItem(this.#key, JSON.stringify({ entries }));
    } catch (error) {
      const what = `the ledger cannot be written (${error.message}), so nothing is sent`;
      const next = "make room, or leave the private window";
      throw new DiscreetError("ledger", `${what}; ${next}`);
    }
  }
}

/** The part of an entry that is sent. @param {Entry} entry */
export const sendable = (name, mechanism, { id, report }) => {
  return { name, mechanism, id: fromHex(id), report: fromHex(report) };
};

/** A budget that is stored: null has no limit. */
const stored = (epsilon) => epsilon ?? Infinity;

function isFor(origin, name, fingerprint) {
  return (entry) => {
    return entry.origin === origin && entry.name === name && entry.fingerprint === fingerprint;
  };
}

/** The budget of every look of an item; the larger one if two labels share a look. */
function spentBy({ items, budgets: { levels, levelOf } }) {
  const byLook = new Map();
  items.forEach((item, k) => looks(item).forEach((look) => {
    byLook.set(look, Math.max(byLook.get(look) ?? 0, stored(levels[levelOf[k]])));
  }));
  return byLook;
}

function isEntry({ origin, name, fingerprint, id, report, items, budgets, state }) {
  const texts = Array.isArray(items) && items.length > 0
    && [origin, name, fingerprint, ...items].every((text) => typeof text === "string");
  const { levels, levelOf, whole, oneWay } = budgets;
  const numbers = Array.isArray(levels) && typeof oneWay === "boolean"
    && [...levels, whole].every((x) => x === null || (Number.isFinite(x) && x >= 0));
  const placed = Array.isArray(levelOf) && levelOf.length === items.length
    && levelOf.every((k) => Number.isInteger(k) && k in levels);
  const bytes = /^[0-9a-f]{32}$/.test(id) && /^([0-9a-f]{2})+$/.test(report);
  return texts && numbers && placed && bytes && STATES.includes(state);
}
