// What this device has already sent, and to whom.
import { toHex } from "../check/document.js";
import { DiscreetError } from "../errors.js";
import { looks } from "../policy/labels.js";
import { roundUpFloat } from "../promises/rounding.js";
import { toldBy, toldOpenly } from "../survey/told.js";
import { localise, say } from "../words.js";

/**
 * @typedef {{origin: string, name: string, fingerprint: string, question: string, id: string,
 *   report: string, items: string[], told: string[],
 *   budgets: {levels: (number | null)[], levelOf: number[], whole: number | null,
 *   raised: number | null, oneWay: boolean},
 *   state: "drawn" | "shown" | "leaving" | "counted"}}
 *   Entry  of a question, in hexadecimal; never the answer, never a time. A question is drawn; its
 *   report is first shown to its sender alone, then it may have left, then the collector has
 *   acknowledged it. report: with what stands before it in a frame; told: items that were told
 *   openly. A budget of null has no limit; raised: the whole, of raised odds alone;
 *   oneWay: the levels' budgets are of these too
 * @typedef {{entry: Entry, shared: string[]}} Overlap  the labels are the new survey's
 * @typedef {{item: string, epsilon: number, factor: number, sentence: string}} Summed
 */

const VERSION = 4;
const keyOf = (person, version = VERSION) => {
  return `discreet-ledger/${version}${person === 1 ? "" : `/${person}`}`;
};
const OLDER = [3, 2, 1];
const SETTLE = 150; // milliseconds in which tabs see what one of them wrote
const STATES = ["drawn", "shown", "leaving", "counted"];

/**
 * Averaging over repeats is the classic attack. So the same question always gets the same report,
 * and the budgets of different questions about the same items add up.
 */
export class Ledger {
  #storage;
  #shared; // with other tabs
  #isFresh = false; // other tabs may not see yet what was written
  #key;
  #person;

  /**
   * @param {{getItem: Function, setItem: Function}} [storage] the browser's localStorage unless
   *   given
   * @param {number} [person] people who share a device each have a ledger of their own
   */
  constructor(storage, person = 1) {
    // late: reading it may throw where storage is blocked
    this.#storage = () => storage ?? globalThis.localStorage;
    this.#shared = !storage;
    this.#person = person;
    this.#key = keyOf(person);
  }

  /** Whether a ledger of this person is in the browser's storage. @param {number} person */
  static isKept(person) {
    return globalThis.localStorage.getItem(keyOf(person)) !== null;
  }

  /**
   * Run work while no other tab of this browser does, until all of them see what it wrote. Otherwise
   * two tabs could both draw a report, or send two that need consent to their sum.
   */
  async locked(work) {
    this.#read(); // where storage is blocked, so are locks, and those do not say why
    const settling = async () => {
      try {
        return await work();
      } finally {
        await this.settled();
      }
    };
    const locks = globalThis.navigator?.locks;
    return locks ? locks.request(keyOf(1), settling) : settling();
  }

  /** The entries of exactly this survey, in the order of its questions. @returns {Entry[]} */
  find(origin, survey) {
    const places = new Map(survey.questions.map(({ name }, k) => [name, k]));
    const mine = this.#read().filter(isFor(origin, survey));
    if (mine.some(({ question }) => !places.has(question))) {
      const what = "the ledger holds a question that this survey does not have";
      throw new DiscreetError("ledger", `${what}, so nothing is sent`, { isDamaged: true });
    }
    return mine.sort((x, y) => places.get(x.question) - places.get(y.question));
  }

  /**
   * The drawn questions of a survey, drawn now if they were not before. They are written down
   * before anything is shown: who could draw again would tell more.
   * @param {string} origin @param {Survey} survey
   * @returns {Entry[]}
   */
  drawOnce(origin, survey) {
    const mine = this.find(origin, survey);
    if (mine.length) return mine;
    const fresh = survey.draw().map((question) => newEntry(origin, survey, question));
    this.#write([...this.#read(), ...fresh]);
    return this.find(origin, survey);
  }

  /**
   * Earlier answers to other surveys that share an item, however its label is spelled, with a
   * question of this one, drawn or not: else a survey under another name would be drawn, and
   * answered, once more.
   * @param {string} origin @param {Survey} survey
   * @returns {Overlap[]}
   */
  overlaps(origin, survey) {
    const items = [...new Set(survey.questions.flatMap((q) => newEntry(origin, survey, q).items))];
    const openly = toldOpenly(survey);
    return this.#sentElsewhere(origin, survey).flatMap((entry) => {
      const there = new Set(entry.items.flatMap(looks));
      const told = new Set(entry.told.flatMap(looks));
      const shared = [
        ...items.filter((item) => looks(item).some((look) => there.has(look) || told.has(look))),
        ...openly.filter((item) => looks(item).some((look) => there.has(look))),
      ];
      return shared.length ? [{ entry, shared }] : [];
    });
  }

  /**
   * The shared item with the largest sum of budgets, the new survey included; null without
   * overlaps. Where the earlier answers were to other questions than those that are drawn now, the
   * sum is that of everything, and the item is "".
   * @param {string} origin @param {Survey} survey @param {Overlap[]} overlaps
   * @returns {Summed | null}
   */
  summed(origin, survey, overlaps) {
    if (!overlaps.length) return null;
    const mine = this.#mine(origin, survey);
    const earlier = overlaps.map(({ entry }) => entry);
    const { epsilon: most, item, n } = largestSum(mine, earlier.map(spentBy), survey.answers);
    const whole = summedUp(earlier).epsilon + this.own(origin, survey).epsilon;
    const epsilon = n ? most : whole;
    const { factor, text } = roundUpFloat(Math.exp(epsilon));
    const lists = survey.questions.some(({ mechanism }) => mechanism.kind.lists);
    const oneWay = [...earlier, ...mine].some(({ budgets }) => budgets.oneWay);
    const key = epsilon === Infinity ? "alreadyUnlimited" : oneWay ? "alreadyOneWay"
      : lists ? "alreadyHaving" : "already";
    const others = overlaps.length - n;
    const sentences = [
      n && say(key, { n, what: say("quoted", { what: item }), factor: localise(text) }),
      others && unlimited("alreadyOther", whole, others),
      n && lists && unlimited("alreadyLists", whole),
    ];
    return { item, epsilon, factor, sentence: sentences.filter((one) => one).join(" ") };
  }

  /**
   * The sum of the budgets of whole answers over all other surveys, and their number. It counts
   * every survey, whatever it asks about, because labels can be rewritten. Public answers have no
   * budget and are not in it. There are two sums: of what is told either way, and of how far odds
   * are raised.
   * @returns {{epsilon: number, raised: number, earlier: number}}
   */
  total(origin, survey) {
    const others = this.#sentElsewhere(origin, survey);
    return { ...summedUp(others), earlier: others.length };
  }

  /** The same sums of this survey: of the questions that are drawn, or may be. */
  own(origin, survey) {
    const mine = this.#mine(origin, survey); // as many as are answered, once they are drawn
    const most = (key) => mine.map(({ budgets }) => stored(budgets[key])).sort((x, y) => y - x)
      .slice(0, survey.answers).reduce((sum, x) => sum + x, 0);
    return { epsilon: most("whole"), raised: most("raised") };
  }

  /**
   * Write a report down before anybody sees it. If the question has one already, that one counts.
   * @param {string} origin @param {Survey} survey @param {string} question
   * @param {Uint8Array} content @param {Uint8Array} id
   */
  reserve(origin, survey, question, content, id) {
    const same = isFor(origin, survey);
    this.#write(this.#read().map((entry) => {
      const isMine = same(entry) && entry.question === question && entry.state === "drawn";
      return isMine ? { ...entry, id: toHex(id), report: toHex(content), state: "shown" } : entry;
    }));
  }

  /** Bring back what was prepared, if the ledger was removed meanwhile. @returns {Entry[]} */
  restore(origin, survey, frames) {
    if (!this.find(origin, survey).length) {
      const entries = frames.map(({ question, id, content }) => {
        const entry = newEntry(origin, survey, survey.question(question));
        return { ...entry, id: toHex(id), report: toHex(content), state: "shown" };
      });
      this.#write([...this.#read(), ...entries]);
    }
    return this.find(origin, survey).filter(({ state }) => state !== "drawn");
  }

  /**
   * Wait, inside the lock, until every other tab sees what was written. Tabs keep copies of
   * localStorage, which catch up a little later than the lock is handed on.
   */
  async settled() {
    if (!this.#isFresh) return;
    await new Promise((resolve) => { setTimeout(resolve, SETTLE); });
    this.#isFresh = false;
  }

  /** The reports with these ids are about to leave, or the collector has acknowledged them. */
  mark(ids, state) {
    this.#write(this.#read().map((entry) => (ids.includes(entry.id) ? { ...entry, state } : entry)));
  }

  /** The entries of the drawn questions; before they are drawn, of all. @returns {Entry[]} */
  #mine(origin, survey) {
    const drawn = this.find(origin, survey);
    return drawn.length ? drawn
      : survey.questions.map((question) => newEntry(origin, survey, question));
  }

  /** The entries of other surveys whose report may have left. @returns {Entry[]} */
  #sentElsewhere(origin, survey) {
    const same = isFor(origin, survey);
    return this.#read().filter((entry) => !same(entry)
      && (entry.state === "leaving" || entry.state === "counted"));
  }

  /** @returns {Entry[]} */
  #read() {
    let text;
    let older;
    try {
      const storage = this.#storage();
      text = storage.getItem(this.#key);
      older = OLDER.map((version) => keyOf(this.#person, version))
        .find((key) => storage.getItem(key) != null);
    } catch (error) {
      const what = `the ledger cannot be read (${error.message}), so nothing is sent`;
      throw new DiscreetError("ledger", `${what}; let it be stored`);
    }
    if (text == null && older) {
      const what = `the ledger stored as "${older}" is of an earlier version, so nothing is sent`;
      const next = "remove it if you accept that earlier answers are forgotten";
      throw new DiscreetError("ledger", `${what}; ${next}`, { isDamaged: true });
    }
    if (text == null) return [];
    try {
      const { entries, ...more } = JSON.parse(text);
      const shape = Array.isArray(entries) && !Object.keys(more).length;
      if (shape && entries.every(isEntry)) return entries;
    } catch { /* refused below */ }
    const what = `the ledger stored as "${this.#key}" is damaged, so nothing is sent`;
    const next = "restore it, or remove it if you accept that earlier answers are forgotten";
    throw new DiscreetError("ledger", `${what}; ${next}`, { isDamaged: true });
  }

  #write(entries) {
    try {
      this.#storage().setItem(this.#key, JSON.stringify({ entries }));
      this.#isFresh = this.#shared;
    } catch (error) {
      const what = `the ledger cannot be written (${error.message}), so nothing is sent`;
      const next = "make room, or leave the private window";
      throw new DiscreetError("ledger", `${what}; ${next}`);
    }
  }
}

/** What is remembered of a question that was drawn. @returns {Entry} */
function newEntry(origin, survey, question) {
  const { name, fingerprint } = survey;
  const { mechanism } = question;
  const finite = (epsilon) => (epsilon < Infinity ? epsilon : null);
  const { labels: items, levels, levelOf } = toldBy(survey, question, mechanism.levelEpsilons());
  const budgets = {
    levels: levels.map(finite), levelOf, whole: finite(mechanism.wholeEpsilon()),
    raised: finite(mechanism.raiseEpsilon()), oneWay: !mechanism.policy.isMutual,
  };
  const told = toldOpenly(survey);
  return {
    origin, name, fingerprint, question: question.name, id: "", report: "", items, told, budgets,
    state: "drawn",
  };
}

function summedUp(entries) {
  const sum = (key) => entries.reduce((total, { budgets }) => total + stored(budgets[key]), 0);
  return { epsilon: sum("whole"), raised: sum("raised") };
}

/** A budget that is stored: null has no limit. */
const stored = (epsilon) => epsilon ?? Infinity;

function isFor(origin, { name, fingerprint }) {
  return (entry) => {
    return entry.origin === origin && entry.name === name && entry.fingerprint === fingerprint;
  };
}

/** Every protected item with its budget. @param {Entry} entry @returns {[string, number][]} */
function budgetsOf({ items, budgets: { levels, levelOf } }) {
  return items.map((item, k) => [item, stored(levels[levelOf[k]])]);
}

/** The budget of every look, the larger one if two labels share it; the looks told openly. */
function spentBy(entry) {
  const byLook = new Map();
  for (const [item, budget] of budgetsOf(entry)) {
    for (const look of looks(item)) byLook.set(look, Math.max(byLook.get(look) ?? 0, budget));
  }
  return { byLook, told: new Set(entry.told.flatMap(looks)) };
}

/** A sentence with the factor of a budget, or the one for no limit. */
function unlimited(key, epsilon, n) {
  const factor = localise(roundUpFloat(Math.exp(epsilon)).text);
  return say(epsilon === Infinity ? `${key}Unlimited` : key, { n, factor });
}

/**
 * The item about which most was told, the sum of its budgets, and how many earlier reports are about
 * any of mine. A crossed report tells of an item, too: of mine, as many count as are answered.
 * @param {Entry[]} mine
 */
function largestSum(mine, spent, answers) {
  const mineSpent = mine.map(spentBy);
  const own = mine.flatMap((entry) => [
    ...budgetsOf(entry), ...entry.told.map((item) => [item, Infinity, true]),
  ]);
  let most = { epsilon: -Infinity, item: "" };
  const about = new Set();
  for (const [item, budget, openly = false] of own) {
    const itemLooks = looks(item);
    const earlier = spent.flatMap(({ byLook, told }, k) => {
      const budgets = itemLooks.flatMap((look) => byLook.get(look) ?? []);
      // what was told openly both times was never protected
      if (!openly && itemLooks.some((look) => told.has(look))) budgets.push(Infinity);
      if (budgets.length) about.add(k);
      return budgets.length ? [Math.max(...budgets)] : [];
    });
    const now = mineSpent.map(({ byLook }) => {
      return Math.max(0, ...itemLooks.flatMap((look) => byLook.get(look) ?? []));
    }).sort((x, y) => y - x).slice(0, answers).reduce((sum, x) => sum + x, 0);
    const epsilon = earlier.reduce((sum, x) => sum + x, budget === Infinity ? budget : now);
    if (earlier.length && epsilon > most.epsilon) most = { epsilon, item };
  }
  return { ...most, n: about.size };
}

function isEntry({ origin, name, fingerprint, question, id, report, items, told, budgets, state }) {
  const texts = Array.isArray(items) && items.length > 0 && Array.isArray(told)
    && [origin, name, fingerprint, question, ...items, ...told]
      .every((text) => typeof text === "string");
  const { levels, levelOf, whole, raised, oneWay } = budgets;
  const numbers = Array.isArray(levels) && typeof oneWay === "boolean"
    && [...levels, whole, raised].every((x) => x === null || (Number.isFinite(x) && x >= 0));
  const placed = Array.isArray(levelOf) && levelOf.length === items.length
    && levelOf.every((k) => Number.isInteger(k) && k in levels);
  const bytes = state === "drawn" ? id === "" && report === ""
    : /^[0-9a-f]{32}$/.test(id) && /^([0-9a-f]{2})+$/.test(report);
  return texts && numbers && placed && bytes && STATES.includes(state);
}
