/*
 * The check of the guarantee, in exact integer arithmetic. Nothing here uses floating point: this
 * file is meant to be audited.
 *
 * Probabilities are integers over D = 2^32. A group of levels has in every part the chance of the
 * part, the chance `own` that a person's own item is named, and `other` over a denominator, the
 * chance that any other item is. Budgets become rationals at most e^epsilon, so what passes here
 * holds for the budget.
 *
 * What is proved, for every two inputs of levels i and j and every report y (the paper, Def. 2),
 * where r_ij is finite; r_ij and r_ji may differ:
 *
 *     Pr(y | i) <= e^{r_ij} Pr(y | j)
 *
 * Up to a factor common to all inputs, the probability of a report of one part given an item of a
 * group takes at most two values, its states:
 *
 *     named       chance own denominator / other
 *     not named   chance (D - own) denominator / (denominator - other)
 *     silent      chance D                           (own = other = 0: nothing is said of it)
 *     plain       chance D, and 0 for everybody else (own = D, other = 0: sent as it is)
 *
 * So it is enough to compare the largest state of every group with the smallest of every group. For
 * sets, "none" (an empty sample) is one more input, and always silent.
 *
 * A chance may be 0, and `own` may be D, where no budget forbids it: nobody of the group sends such
 * a report. 0 <= 0 holds, because neither of the two inputs sends it; a positive state against 0
 * fails. For sets every chance is positive, and `own` is below D.
 */
import { violation } from "../errors.js";
import { KINDS } from "../policy/kinds.js";
import { quoted } from "../policy/labels.js";
import { NOTIONS } from "../policy/notions.js";

export const D = 2 ** 32; // exact as a Number, and so is every numerator over it

// ---- rational numbers: a numerator and a positive denominator, not reduced

/** @typedef {[bigint, bigint]} Ratio */

export const [ZERO, ONE] = [[0n, 1n], [1n, 1n]];
export const integer = (n) => [BigInt(n), 1n];
export const product = (x, y) => [x[0] * y[0], x[1] * y[1]];
export const quotient = (x, y) => [x[0] * y[1], x[1] * y[0]];
export const inverse = ([n, d]) => [d, n];
export const square = (x) => product(x, x);
export const isLess = (x, y) => x[0] * y[1] < y[0] * x[1];
export const isMore = (x, y) => isLess(y, x);
export const smaller = (x, y) => (isLess(y, x) ? y : x);
export const larger = (x, y) => (isLess(x, y) ? y : x);
/** The smaller of two bounds, either of which may be missing. */
const tighter = (x, y) => (x && y ? smaller(x, y) : (x ?? y));

export function plus(x, y) {
  return x[1] === y[1] ? [x[0] + y[0], x[1]] : [x[0] * y[1] + y[0] * x[1], x[1] * y[1]];
}

/** The place of the value that no other is `before`. */
export function foremost(values, before) {
  return values.reduce((best, value, k) => (before(value, values[best]) ? k : best), 0);
}

// ---- budgets as factors

const BITS = 80n; // of the fraction of an irrational bound: 2^48 times finer than a probability
const CEILING = 45n; // a larger budget counts as this one

/** A rational at most the root-th root of n/d >= 1, in whole 2^-80ths. @returns {Ratio} */
export function rootDown(n, d, root) {
  const scaled = (n << (BITS * root)) / d;
  const bits = BigInt(scaled.toString(2).length);
  let guess = 1n << ((bits + root - 1n) / root); // above the root; Newton's steps come down to it
  for (;;) {
    const better = ((root - 1n) * guess + scaled / guess ** (root - 1n)) / root;
    if (better >= guess) return [guess, 1n << BITS];
    guess = better;
  }
}

/** A rational at most e^budget; exactly k for ln(k), else at most e^45. @returns {Ratio} */
function factorDown({ isLog, value: [n, d], root }) {
  if (isLog) return root === 1n ? [n, d] : rootDown(n, d, root);
  return n > CEILING * d ? taylor(CEILING, 1n) : taylor(n, d);
}

/** A rational at most e^(n/d): the Taylor series with every term rounded down. @returns {Ratio} */
export function taylor(n, d) {
  let total = 1n << BITS;
  for (let term = total, k = 1n; term; k += 1n) {
    term = (term * n) / (d * k);
    total += term;
  }
  return [total, 1n << BITS];
}

// ---- what the policy asks of groups

/**
 * @typedef {{names: string[], least: (Ratio | null)[], zeros: boolean, isMutual: boolean,
 *   brokenPair: (inputs: Extremes[]) => Extremes[] | null}} Terms
 *   the name of every group's first level; at most e^eps of every group's smallest budget, null
 *   where it is open; whether chances may be 0, and budgets are the same both ways; two inputs that
 *   differ by more than their pair budget, or null
 */

/** @param {Policy} policy @param {Budgets} budgets @param {number[]} groupOf of every level
 *  @returns {Terms} */
export function readTerms({ levels, kind, isMutual }, budgets, groupOf) {
  const { lists } = KINDS[kind];
  return { ...readBounds(levels, budgets, groupOf, lists), zeros: !lists, isMutual };
}

function readBounds(levels, budgets, groupOf, lists) {
  const [names, sizes] = [[], []];
  groupOf.forEach((group, k) => {
    if (group === names.length) names.push(levels[k].name);
    sizes[group] = (sizes[group] ?? 0) + levels[k].count;
  });
  const own = budgets.levels.map((budget) => (budget.epsilon < Infinity ? factorDown(budget) : null));
  if (budgets.strict) { // one factor for every pair, also for those without protection of their own
    const explicit = [...budgets.explicit.values()].filter((budget) => budget).map(factorDown);
    const least = names.map(() => [...own, ...explicit].reduce(smaller));
    return { names, least, brokenPair: onlyExtremes(brokenMinimum, least) };
  }
  const least = Array(names.length).fill(null);
  groupOf.forEach((group, level) => { least[group] = tighter(least[group], own[level]); });
  const closed = budgets.explicit.size ? undefined : CLOSED[budgets.notion];
  const lone = sizes.map((size) => size === 1 && !lists); // has no other answer to be told from
  const each = () => everyPair(pairSquares(budgets, groupOf, lone));
  const isJoined = NOTIONS[budgets.notion].ordered && names.length < levels.length;
  const brokenPair = closed && !isJoined ? onlyExtremes(closed, least, lone, budgets.cap) : each();
  return { names, least, brokenPair };
}

/**
 * At most e^{2 r} of every two groups, in this order, "none" last; null where nothing is protected.
 * @returns {(Ratio | null)[][]}
 */
function pairSquares({ levels, explicit, pair }, groupOf, lone) {
  const count = lone.length;
  const bounds = Array.from({ length: count + 1 }, () => Array(count + 1).fill(null));
  const each = [...levels, ...explicit.values()].filter((x) => x && x.epsilon < Infinity);
  const factors = new Map(each.map((budget) => [budget, factorDown(budget)]));
  const squareDown = (i, j) => pair(i, j)
    ?.map((budgets) => budgets.map((x) => factors.get(x)).reduce(product)).reduce(smaller) ?? null;
  groupOf.forEach((g, i) => groupOf.forEach((h, j) => {
    if (g !== h || !lone[g]) bounds[g][h] = tighter(bounds[g][h], squareDown(i, j));
  }));
  for (let g = 0; g < count; g++) {
    bounds[g][count] = bounds[g].slice(0, count).reduce(tighter);
    bounds[count][g] = bounds.slice(0, count).map((row) => row[g]).reduce(tighter);
  }
  return bounds;
}

// ---- the states of a part

/** Check the chances of the parts: they sum to 1, and only single answers may have a chance of 0. */
export function checkChances(parts, { names, zeros }) {
  names.forEach((name, g) => {
    checkColumn(parts.map(({ chance }) => chance[g]), ` for level ${quoted(name)}`, zeros);
  });
  if ("none" in parts[0]) checkColumn(parts.map(({ none }) => none), " for no item");
  if (!parts.every(({ chance }) => chance.some((x) => x > 0))) {
    throw violation("nobody can use a part: every chance is 0");
  }
}

export function checkColumn(chances, who = "", zeros = false) {
  if (!chances.every((chance) => chance > 0 || (zeros && chance === 0))) {
    throw violation(`a part's chance${who} is not positive`);
  }
  if (chances.reduce((total, chance) => total + chance, 0) !== D) {
    throw violation(`the chances of the parts${who} do not sum to 2^32`);
  }
}

/** @typedef {{high: Ratio, low: Ratio, name: string}} Extremes  the largest and smallest state */

/** @returns {Extremes} of an input with one state */
export const onlyState = (state, name) => ({ high: state, low: state, name });

/** @returns {Extremes} of the items of group g, whose `other` is over the denominator */
export function groupExtremes(part, g, denominator, name, zeros) {
  const [own, other] = [part.own[g], part.other[g]];
  const [chance, all, Q] = [part.chance[g], D, denominator].map(BigInt);
  if (own === 0 && other === 0) return onlyState([chance * all, 1n], name);
  if (!chance) throw violation(`level ${quoted(name)} cannot use a part that speaks about it`);
  if (zeros && own === D && other === 0) return { high: [chance * all, 1n], low: ZERO, name };
  // Without this the inequalities of sets can hold as 0 <= 0 while privacy is broken.
  if (!(own > 0 && (own < D || (zeros && own === D)) && other > 0 && other < denominator)) {
    const what = `own = ${own}/${D} and other = ${other}/${denominator} of level ${quoted(name)}`;
    throw violation(`${what} must both be 0 or both lie strictly between 0 and 1`);
  }
  const named = [chance * BigInt(own) * Q, BigInt(other)];
  const unnamed = [chance * (all - BigInt(own)) * Q, Q - BigInt(other)];
  return isLess(named, unnamed)
    ? { high: unnamed, low: named, name } : { high: named, low: unnamed, name };
}

/** Throw if two inputs of a part differ by more than their pair budget. @param {Terms} terms */
export function checkPairs({ brokenPair }, inputs) {
  const broken = brokenPair(inputs);
  if (!broken) return;
  const levels = broken.map(({ name }) => name);
  const pair = `the pair of levels (${levels.map(quoted).join(", ")})`;
  throw violation(`${pair} is told apart by more than its pair budget`, { levels });
}

// ---- every pair of groups

/** The check of a part by every pair of groups. */
function everyPair(bounds) {
  return (inputs) => {
    const highs = inputs.map(({ high }) => square(high));
    const lows = inputs.map(({ low }) => square(low));
    for (let g = 0; g < inputs.length; g++) {
      for (let h = 0; h < inputs.length; h++) {
        const bound = bounds[g][h];
        if (bound && isLess(product(bound, lows[h]), highs[g])) return [inputs[g], inputs[h]];
      }
    }
    return null;
  };
}

/** The check of a part in O(groups); e is at most e^eps of every group, "none" has the smallest. */
function onlyExtremes(closed, e, lone = [], cap = 0) {
  const all = [...e, e.reduce(tighter)];
  return (inputs) => closed(inputs, all, lone, cap);
}

/** high_k <= e_k low_j for all j: only the two smallest lows matter. */
function brokenOneWay(inputs, e, lone) {
  const bottom = foremost(inputs, (x, y) => isLess(x.low, y.low));
  const others = inputs.filter((_, k) => k !== bottom);
  const second = others[foremost(others, (x, y) => isLess(x.low, y.low))];
  for (const [k, input] of inputs.entries()) {
    const rival = k === bottom && lone[k] ? second : inputs[bottom];
    if (e[k] && rival && isLess(product(e[k], rival.low), input.high)) return [input, rival];
  }
  return null;
}

/** Neighbours, whose factors multiply to those of points further apart; with a cap, the extremes. */
function brokenScale(inputs, [step], lone, cap) {
  const isBroken = (x, y, e) => isLess(product(e, y.low), x.high);
  for (let k = 1; k < inputs.length; k++) {
    const [x, y] = [inputs[k - 1], inputs[k]];
    if (isBroken(x, y, step)) return [x, y];
    if (isBroken(y, x, step)) return [y, x];
  }
  if (!cap) return null;
  const top = inputs[foremost(inputs, (x, y) => isLess(y.high, x.high))];
  const bottom = inputs[foremost(inputs, (x, y) => isLess(x.low, y.low))];
  const most = [step[0] ** BigInt(cap), step[1] ** BigInt(cap)];
  return isBroken(top, bottom, most) ? [top, bottom] : null;
}

/** high_k <= e_k low_j and high_i <= e_k low_k for all i, j: only the extremes matter. */
function brokenMinimum(inputs, e) {
  const top = inputs[foremost(inputs, (x, y) => isLess(y.high, x.high))];
  const bottom = inputs[foremost(inputs, (x, y) => isLess(x.low, y.low))];
  for (const [k, input] of inputs.entries()) {
    if (isLess(product(e[k], bottom.low), input.high)) return [input, bottom];
    if (isLess(product(e[k], input.low), top.high)) return [top, input];
  }
  return null;
}

/** high_i^2 / e_i <= e_j low_j^2 for all i, j: squares, so that no root is needed. */
function brokenAverage(inputs, e) {
  const highs = inputs.map(({ high }, k) => quotient(square(high), e[k]));
  const lows = inputs.map(({ low }, k) => product(square(low), e[k]));
  const i = foremost(highs, (x, y) => isLess(y, x));
  const j = foremost(lows, isLess);
  return isLess(lows[j], highs[i]) ? [inputs[i], inputs[j]] : null;
}

// Notions whose pairs need not be compared one by one; all others are.
const CLOSED = {
  min: brokenMinimum, avg: brokenAverage, "one-way": brokenOneWay, scale: brokenScale,
};
