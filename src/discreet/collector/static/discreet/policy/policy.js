// A policy, parsed once and strictly into frozen objects.
import { refused } from "../errors.js";
import { OPEN, readBudget } from "./budgets.js";
import { choice, list, object, table } from "./fields.js";
import { KINDS } from "./kinds.js";
import { distinct, isProse, quoted } from "./labels.js";
import { NOTIONS } from "./notions.js";

/**
 * @typedef {{name: string, budget: string, epsilon: number, count: number}} Level
 * @typedef {{levels: [string, string], budget: string, epsilon: number, oneWay: boolean}} Pair
 *   not protected: "" and Infinity; oneWay: of the first level over the second alone
 * @typedef {{question: string, kind: string, notion: string, strict: boolean,
 *   cap: number, isMutual: boolean, items: readonly string[], levelOf: readonly number[],
 *   levels: readonly Level[], pairs: readonly Pair[], totals: readonly Total[],
 *   last: readonly string[]}} Policy
 *   strict: all pairs have the smallest budget; last: items that are shown after the others; cap: of
 *   a scale, in steps, or 0; isMutual: every pair is protected in both directions alike
 * @typedef {{name: string, items: readonly string[]}} Total  a sum of items that has a name
 * @typedef {{levels: Budget[], explicit: Map<number, Budget | null>, notion: string,
 *   strict: boolean, cap: number, pair: (i: number, j: number) => Budget[][] | null}} Budgets
 *   twice the budget of an answer of level i over one of level j is the least of the sums of
 *   `pair`; null where the pair is not protected
 */

const MOST_LEVELS = 200; // with explicit pairs, or as blocks
const MOST_POINTS = 50; // of a scale
const POLICY_KEYS = ["question", "kind", "notion", "items", "level_of", "levels", "pairs"];

/** @returns {{policy: Policy, budgets: Budgets}} */
export function readPolicy(raw) {
  const pads = KINDS[object(raw, "the policy").kind]?.pads; // an unknown kind is refused below
  const more = [...pads ? ["strict"] : [], ...NOTIONS[raw.notion]?.ordered ? ["cap"] : []];
  table(raw, [...POLICY_KEYS, ...more], "the policy", ["totals", "last"]);
  if (!isProse(raw.question)) {
    const allowed = "a text of one line, without control characters and invisible characters";
    throw refused(`question is ${quoted(raw.question)}, but must be ${allowed}`);
  }
  choice("kind", raw.kind, Object.keys(KINDS));
  choice("notion", raw.notion, Object.keys(NOTIONS));
  const items = distinct(list(raw.items, "items"), "item");
  const rows = list(raw.levels, "levels").map((row) => table(row, ["name", "epsilon"], "a level"));
  const names = distinct(rows.map((row) => row.name), "level");
  const levelOf = list(raw.level_of, "level_of");
  const counts = countItems(levelOf, names, items);
  const own = rows.map(({ epsilon }) => (epsilon === OPEN.text ? OPEN : readBudget(epsilon)));
  const levels = own.map(({ text, epsilon }, k) => {
    return Object.freeze({ name: names[k], budget: text, epsilon, count: counts[k] });
  });
  const { pairs, explicit } = readPairs(raw.pairs, names);
  if (NOTIONS[raw.notion].ordered) checkScale(raw);
  const { question, kind, notion } = raw;
  const strict = readStrict(raw);
  const cap = raw.cap ?? 0;
  const isMutual = NOTIONS[notion].mutual && !pairs.some(({ oneWay }) => oneWay);
  const policy = Object.freeze({
    question, kind, notion, strict, cap, isMutual, items, levelOf, levels: Object.freeze(levels),
    pairs: Object.freeze(pairs), totals: Object.freeze(readTotals(raw, items)),
    last: readLast(raw, items),
  });
  checkNotion(policy, own);
  const terms = { cap, isOpen: (i) => own[i] === OPEN };
  const pair = (i, j) => pairBudgets(own, explicit, notion, terms, i, j);
  return { policy, budgets: { levels: own, explicit, notion, strict, cap, pair } };
}

/** Refuse open levels, one-way pairs, blocks and scales where they cannot be kept. */
function checkNotion({ kind, notion, levels, pairs, isMutual }, own) {
  const { pads, alone, lists } = KINDS[kind];
  const rule = NOTIONS[notion];
  const open = own.filter((budget) => budget === OPEN).length;
  if (open && (rule.mutual || lists)) {
    throw refused("a level is open, which goes with the notion one-way and single answers only");
  }
  if (open === own.length && !pairs.length) throw refused("every level is open");
  if (pads && (!rule.lists || !isMutual)) {
    throw refused(`the notion ${quoted(notion)} or a one-way pair cannot protect whole lists`);
  }
  if (alone && (rule.ordered || !rule.complete)) {
    throw refused(`the notion ${quoted(notion)} is about two answers, and items stand alone here`);
  }
  if (!rule.complete && levels.length > MOST_LEVELS) {
    throw refused(`${levels.length} levels are blocks, but at most ${MOST_LEVELS} may be`);
  }
}

/** Refuse a scale whose levels are not its items, in their order and of one budget. */
function checkScale({ items, level_of: levelOf, levels, pairs, cap }) {
  const m = items.length;
  const lone = levels.length === m && levels.every(({ name, epsilon }, k) => {
    return levelOf[k] === k && name === items[k] && epsilon === levels[0].epsilon;
  });
  if (!lone || pairs.length || m < 2 || m > MOST_POINTS) {
    throw refused(`a scale has 2 to ${MOST_POINTS} items, a level each, of one budget and in order`);
  }
  if (!Number.isInteger(cap) || cap < 0 || cap >= m) {
    throw refused(`cap is ${quoted(cap)}, but must be a number of steps from 1 to ${m - 1}, or 0`);
  }
}

/** The number of items of every level. */
function countItems(levelOf, names, items) {
  const counts = names.map(() => 0);
  for (const k of levelOf) {
    if (!Number.isInteger(k) || !(k in counts)) {
      throw refused(`level_of holds ${quoted(k)}, but must hold places of levels, from 0`);
    }
    counts[k] += 1;
  }
  if (!items.length || levelOf.length !== items.length) {
    const what = `${items.length} items have ${levelOf.length} levels`;
    throw refused(`${what}, but need one each, and at least one item`);
  }
  if (counts.includes(0)) {
    const empty = names[counts.indexOf(0)];
    throw refused(`level ${quoted(empty)} has no items, but needs at least one`);
  }
  return counts;
}

function pairBudgets(own, explicit, notion, terms, i, j) {
  const given = explicit.get(i * own.length + j);
  if (given !== undefined) return given && [[given, given]];
  return NOTIONS[notion].pair(i, j, terms)?.map((places) => places.map((k) => own[k])) ?? null;
}

/** Whether all pairs have the smallest budget; only sets that are protected as a whole say so. */
function readStrict({ kind, strict, pairs }) {
  const { pads, alone } = KINDS[kind];
  if (pads) return choice("strict", strict, [true, false]);
  if (alone && pairs.length) {
    const what = `kind is "${kind}" and there are budgets of pairs`;
    throw refused(`${what}, but an item on its own has its level's budget`);
  }
  return false;
}

/** Sums of items that have a name; results show them. */
function readTotals({ kind, totals }, items) {
  if (totals === undefined) return [];
  const rows = list(totals, "totals").map((row) => table(row, ["name", "items"], "a total"));
  if (!rows.length) throw refused("totals is empty, but must name some or be left out");
  if (KINDS[kind].lists) {
    throw refused(`kind is "${kind}" and there are totals, but a person may hold several items`);
  }
  distinct([...items, ...rows.map(({ name }) => name)], "item or total");
  const known = new Set(items);
  return rows.map(({ name, items: summed }) => {
    const strange = distinct(list(summed, "items of a total"), "item").find((x) => !known.has(x));
    if (strange !== undefined || !summed.length) {
      throw refused(`the total ${quoted(name)} must name some of the items, each once`);
    }
    return Object.freeze({ name, items: Object.freeze([...summed]) });
  });
}

/** The items that people are shown after the others. */
function readLast({ last, notion }, items) {
  if (last === undefined) return [];
  const known = new Set(items);
  const strange = distinct(list(last, "last"), "item").find((item) => !known.has(item));
  if (!last.length || strange !== undefined || NOTIONS[notion].ordered) {
    throw refused("last must name some of the items, each once, and not those of a scale");
  }
  return last;
}

/** The explicit pair budgets; also by place, at i * levels + j. */
function readPairs(raw, names) {
  const rows = list(raw, "pairs").map((row) => {
    return table(row, ["levels", "epsilon"], "a pair", ["one_way"]);
  });
  if (rows.length && names.length > MOST_LEVELS) {
    throw refused(`${names.length} levels have explicit pairs, but at most ${MOST_LEVELS} may`);
  }
  const [explicit, written] = [new Map(), new Map()];
  const pairs = rows.map(({ levels, epsilon: text, one_way: direction }) => {
    const places = list(levels, "levels of a pair").map((name) => names.indexOf(name));
    const both = levels.map(quoted).join(", ");
    if (places.length !== 2 || places.includes(-1)) {
      throw refused(`a pair names the levels ${both}, but must name two that exist`);
    }
    const budget = text === "" ? null : readBudget(text);
    const [i, j] = places;
    const oneWay = direction === true;
    if (direction !== undefined && (!oneWay || i === j)) {
      throw refused(`one_way of the pair ${both} must be true, and of two levels, or left out`);
    }
    const ways = [i * names.length + j, ...oneWay ? [] : [j * names.length + i]];
    for (const key of ways) {
      if ((written.get(key) ?? text) !== text) {
        throw refused(`the pair of levels ${both} has two budgets, but must have one`);
      }
      written.set(key, text);
      explicit.set(key, budget);
    }
    return Object.freeze({ levels, budget: text, epsilon: budget?.epsilon ?? Infinity, oneWay });
  });
  return { pairs, explicit };
}
