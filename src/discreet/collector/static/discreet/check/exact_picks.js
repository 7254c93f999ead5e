/*
 * The check of picks, sets that are reported as subsets of fixed size, in exact integer arithmetic.
 * It is meant to be audited, as exact.js is; check/exact_picks.py has the proof.
 *
 * Parts with the same active groups are a cut, which a public chance draws. A person with j of its
 * m active items draws by row j of the cut a part and a run of numbers n of own items to name, then
 * n within the run, then a subset of k that names n of the own ones, every choice alike. So the
 * chance of a report over that of a uniform subset depends on j and n alone: it is f[j].get(n).
 */
import { violation } from "../errors.js";
import {
  D, ONE, ZERO, integer, inverse, larger, onlyState, plus, product, quotient, smaller,
} from "./exact.js";
import { MASS, binomial, checkItems, checkLists, countSpoken } from "./exact_sets.js";
import { overallExtremes } from "./factors.js";

/** The smallest and the largest number of j own items that a subset of k of m items can name. */
export const possible = (m, k, j) => [Math.max(0, k + j - m), Math.min(j, k)];

/** The runs of a row: mass, smallest n, weights C(j, n) C(m - j, k - n), their sum. */
export function pickRuns(m, k, j, row) {
  let [first] = possible(m, k, j);
  return row.map(([last, mass]) => {
    const weights = [];
    for (let n = first; n <= last; n++) weights.push(binomial(j, n) * binomial(m - j, k - n));
    const run = { mass, first, weights, total: weights.reduce((sum, x) => sum + x, 0n) };
    first = last + 1;
    return run;
  });
}

/** The parts of every cut, by their places: those with the same active groups. */
export function cutsOf(parts) {
  const cuts = new Map();
  parts.forEach(({ active }, k) => cuts.set(`${active}`, [...cuts.get(`${active}`) ?? [], k]));
  return [...cuts.values()];
}

/** Check that the runs go up and cover every number of own items that a subset can name. */
function checkRuns({ size: k, rows }, m) {
  if (!(k >= 0 && k < m)) {
    throw violation(`size = ${k} of a part must be from 0 to ${m - 1}, fewer than it speaks about`);
  }
  rows.forEach((row, j) => {
    const [first, end] = possible(m, k, j);
    let before = first - 1;
    for (const [last, mass] of row) {
      if (last <= before || mass <= 0) {
        throw violation(`the runs of row ${j} of a part must go up, each with a positive mass`);
      }
      before = last;
    }
    if (first <= end ? before !== end : row.length) {
      throw violation(`the runs of row ${j} of a part must cover every number that can be named`);
    }
  });
}

/** Check the chances of the cuts, and the masses of the parts of every cut. */
function checkCuts(parts) {
  let total = 0;
  for (const cut of cutsOf(parts)) {
    const [{ chance, rows }] = cut.map((k) => parts[k]);
    if (!(chance > 0) || cut.some((k) => parts[k].chance !== chance)) {
      throw violation("every part of a cut must have the cut's chance, a positive number");
    }
    total += chance;
    rows.forEach((first, j) => {
      const masses = cut.flatMap((k) => parts[k].rows[j].map(([, mass]) => mass));
      if (first.length && masses.reduce((sum, mass) => sum + BigInt(mass), 0n) !== BigInt(MASS)) {
        throw violation(`the masses of row ${j} do not sum to 2^52 over the parts of a cut`);
      }
    });
  }
  if (total !== D) throw violation("the chances of the cuts do not sum to 2^32");
}

/** f[j].get(n): a report's chance over that of a uniform subset. @returns {Map<number, Ratio>[]} */
function pickDensities({ size: k, rows }, m) {
  const all = binomial(m, k);
  return rows.map((row, j) => new Map(pickRuns(m, k, j, row).flatMap((run) => {
    const value = [BigInt(run.mass) * all, BigInt(MASS) * run.total];
    return run.weights.map((_, n) => [run.first + n, value]);
  })));
}

/**
 * The largest factor, either way, between any list and the same list without one item: an item that
 * the part speaks about (there are m of them), and a silent one, of `others`. Only reports that
 * exist are compared.
 */
function pickFactors(f, m, others) {
  const s = f.length - 1;
  const largest = { active: ONE, silent: ONE };
  const meet = (who, x, y) => {
    const ratio = quotient(x, y);
    largest[who] = [ratio, inverse(ratio)].reduce(larger, largest[who]);
  };
  const mixed = (who, own, terms) => { // (own + sum) / (s + 1) own
    const real = terms.filter(([n]) => n);
    if (real.some(([, value]) => !value)) return; // there is no such report
    const sum = real.reduce((total, [n, value]) => plus(total, product(integer(n), value)), own);
    meet(who, sum, product(integer(s + 1), own));
  };
  for (let j = 1; j <= s; j++) {
    for (const [n, value] of f[j]) {
      for (const h of [0, 1]) if (f[j - 1].has(n - h)) meet("active", value, f[j - 1].get(n - h));
    }
  }
  // from here on there are s + 1 items
  f.forEach((same, a) => {
    if (s - a > others) return;
    const [next, less] = [f[a + 1] ?? new Map(), f[a - 1] ?? new Map()];
    for (const [n, own] of same) {
      for (const h of a < m ? [0, 1] : []) {
        const terms = [[n, same.get(n - 1 + h)], [a - n, same.get(n + h)], [s - a, next.get(n + h)]];
        mixed("active", own, terms);
      }
      if (s - a < others) {
        mixed("silent", own, [[n, less.get(n - 1)], [a - n, less.get(n)], [s - a, own]]);
      }
    }
  });
  return largest;
}

/**
 * Check picks for any two lists, and for any item.
 * @param {Terms} terms @param {readonly PicksPart[]} parts @param {number[]} sizes of every group
 * @returns {{ends: Extremes[], all: Extremes, factors: Ratio[]}[]} of every part the extremes of
 *   f[j], those of all lists there are, and the factor of every group
 */
export function checkPicks({ names, least }, parts, sizes) {
  const items = sizes.reduce((total, size) => total + size, 0);
  const proved = parts.map((part) => {
    const m = countSpoken(part, sizes);
    checkRuns(part, m);
    const f = pickDensities(part, m);
    const ends = f.filter((row) => row.size).map((row) => {
      return overallExtremes([...row.values()].map((value) => onlyState(value)));
    });
    const ofActive = least.filter((_, g) => part.active[g]).reduce(smaller);
    checkLists(ends, least.reduce(smaller), ofActive, f.length - 1);
    const { active, silent } = pickFactors(f, m, items - m);
    const factors = part.active.map((x) => (x ? active : silent));
    checkItems(factors, least, names);
    return { ends, all: overallExtremes(ends), factors };
  });
  checkCuts(parts);
  return proved;
}

/** Per number j of active items, the chance of the part in its cut, and how many are named. */
export function pickMeans({ size: k, rows }, m) {
  const all = [0n, BigInt(MASS)];
  return rows.map((row, j) => pickRuns(m, k, j, row).reduce(({ used, named }, run) => {
    const sum = run.weights.reduce((total, w, n) => total + BigInt(run.first + n) * w, 0n);
    const mass = [BigInt(run.mass), BigInt(MASS)];
    return { used: plus(used, mass), named: plus(named, product(mass, [sum, run.total])) };
  }, { used: all, named: ZERO }));
}
