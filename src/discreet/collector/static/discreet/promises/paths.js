// Pairs of levels that the policy leaves out: they may still be protected through other levels.
import { ONE, foremost, plus, product, rootDown, smaller, taylor } from "../check/exact.js";
import { KINDS } from "../policy/kinds.js";
import { NOTIONS } from "../policy/notions.js";
import { localise, say } from "../words.js";
import { roundUp, roundUpFloat } from "./rounding.js";

/** The budget that binds every level: its own, or the smallest of all if the policy is strict. */
export function effectiveBudgets({ levels, pairs, strict }) {
  const own = levels.map(({ epsilon }) => epsilon);
  if (!strict) return own;
  const least = [...own, ...pairs.map(({ epsilon }) => epsilon)].reduce((x, y) => Math.min(x, y));
  return own.map(() => least);
}

/** The pair budgets of every two levels, and the shortest paths along them. */
function shortestPaths(levels, { pair }) {
  const half = (budgets) => budgets.reduce((sum, { epsilon }) => sum + epsilon, 0) / 2;
  const edges = levels.map((_, i) => levels.map((__, j) => {
    return pair(i, j)?.map(half).reduce((x, y) => Math.min(x, y)) ?? Infinity;
  }));
  const paths = edges.map((row) => [...row]);
  levels.forEach((_, k) => paths.forEach((row) => row.forEach((x, j) => {
    row[j] = Math.min(x, row[k] + paths[k][j]);
  })));
  return { edges, paths };
}

/**
 * What is said of the pairs that the policy leaves out, with the bound that they still have through
 * other levels: the shortest path of pair budgets.
 */
export function unprotectedPairs({ levels, pairs, strict }, budgets) {
  const open = strict ? [] : pairs.filter(({ budget, oneWay }) => !budget && !oneWay);
  if (!open.length) return [];
  const place = new Map(levels.map(({ name }, k) => [name, k]));
  const { edges, paths } = shortestPaths(levels, budgets);
  return open.flatMap(({ levels: [first, second] }) => {
    const [i, j] = [place.get(first), place.get(second)];
    if (i === j && levels[i].count === 1) return [];
    const { factor, text } = factorAlong(budgets, edges, paths, i, j);
    const keys = i === j ? ["sameApart", "sameNotApart"] : ["apart", "notApart"];
    const key = keys[paths[i][j] < Infinity ? 0 : 1];
    const sentence = say(key, { first, second, factor: localise(text) });
    return [{ level: null, items: 0, examples: [], factor, sentence }];
  });
}

/** At most the factor between two levels: along the shortest path, each step at least e^r. */
function factorAlong(budgets, edges, paths, i, j) {
  const bound = Math.exp(paths[i][j]);
  let [squared, here] = [ONE, i];
  for (let steps = 0; bound < Infinity && steps < edges.length; steps++) {
    const ways = edges[here].map((budget, k) => budget + paths[k][j]);
    const next = foremost(ways, (x, y) => x < y);
    const direct = edges[here][j] <= ways[next];
    squared = product(squared, squareUp(budgets, here, direct ? j : next));
    if (direct) return roundUp(squared);
    here = next;
  }
  return roundUpFloat(bound); // no bound, or budgets too small for floats to tell from 0
}

/** At least e^{2 r} of two levels. @returns {Ratio} */
function squareUp({ pair }, i, j) {
  return pair(i, j).map((budgets) => budgets.map(factorUp).reduce(product)).reduce(smaller);
}

/**
 * The group of every level, and the groups that budgets lead to from it; null where every pair is
 * protected, apart from open levels.
 */
export function protectedGroups({ levels, kind, notion, pairs, strict }, budgets, groupOf) {
  const isComplete = NOTIONS[notion].complete && pairs.every(({ budget }) => budget);
  if (strict || isComplete) return null;
  const { paths } = shortestPaths(levels, budgets);
  const isGap = (path, i, j) => path === Infinity && levels[i].epsilon < Infinity
    && (i !== j || levels[i].count > 1 || KINDS[kind].lists);
  const hasGaps = paths.some((row, i) => row.some((path, j) => isGap(path, i, j)));
  if (!hasGaps) return null;
  return groupOf.map((group, i) => {
    const isNear = (j) => paths[i][j] < Infinity && (i !== j || levels[i].count > 1);
    return { group, near: new Set(groupOf.filter((_, j) => isNear(j))) };
  });
}

/** A rational at least e^budget, for a budget up to 710; exactly k for ln(k). @returns {Ratio} */
export function factorUp({ isLog, value: [n, d], root }) {
  if (isLog && root === 1n) return [n, d];
  if (isLog) return plus(rootDown(n, d, root), [1n, 1n << 80n]);
  // the Taylor sum has at most 2,000 terms, and each is less than 2^-80 e^x too small
  const margin = [(1n << 60n) + 1n, 1n << 60n];
  return product(taylor(n, d), margin);
}
