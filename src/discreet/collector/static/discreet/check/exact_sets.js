/*
 * The check of counted hits and of items that are asked one by one, in exact integer arithmetic. It
 * is meant to be audited, as exact.js is; check/exact_sets.py has the proof.
 *
 * Hits: the report is a polynomial that names item i of an active group if its value at i + 1 is
 * below the limit T. For a person with j active items, N of them named, the chance of a report over
 * that of a uniform one depends on j and N alone: it is f[j][N].
 */
import { violation } from "../errors.js";
import { quoted } from "../policy/labels.js";
import {
  D, ONE, ZERO, checkColumn, integer, inverse, isLess, larger, onlyState, plus, product, quotient,
  smaller,
} from "./exact.js";
import { overallExtremes } from "./factors.js";

export const MASS = 2 ** 52; // of a row of hits; every mass is exact as a Number
export const LARGEST_PADDING = 64; // of hits

/** n over k. @returns {bigint} */
export function binomial(n, k) {
  let ways = 1n;
  for (let j = 1; j <= Math.min(k, n - k); j++) ways = (ways * BigInt(n - j + 1)) / BigInt(j);
  return ways;
}

/** w_N = C(j, N) T^N (P - T)^(j - N): how many of the P^j values of j items name N of them. */
export function hitWeights(j, limit, prime) {
  const [hit, miss] = [BigInt(limit), BigInt(prime - limit)];
  return Array.from({ length: j + 1 }, (_, n) => {
    return binomial(j, n) * hit ** BigInt(n) * miss ** BigInt(j - n);
  });
}

/** The classes N > tau, N = tau and N < tau of a row: mass, smallest N, weights, their sum. */
export function hitClasses([tau, hi, mid, lo], weights) {
  const part = (mass, first, end) => {
    const own = weights.slice(first, end);
    return { mass, first, weights: own, total: own.reduce((sum, weight) => sum + weight, 0n) };
  };
  return [part(hi, tau + 1), part(mid, tau, tau + 1), part(lo, 0, tau)];
}

/** f[j][N]: a report's chance over that of a uniform one, if N of j own items are named. */
function densities({ limit, rows }, prime) {
  const f = [[ONE]];
  rows.forEach((row, n) => {
    const j = n + 1;
    const all = BigInt(prime) ** BigInt(j);
    const classes = hitClasses(row, hitWeights(j, limit, prime)).reverse(); // from N = 0 up
    f.push(classes.flatMap(({ mass, weights, total }) => {
      return Array(weights.length).fill([BigInt(mass) * all, BigInt(MASS) * total]);
    }));
  });
  return f;
}

/** Check that the masses are chances. */
function checkRows({ limit, rows }, prime) {
  if (!(limit > 0 && limit < prime)) {
    throw violation(`limit = ${limit} of a part must lie strictly between 0 and ${prime}`);
  }
  rows.forEach(([tau, ...masses], n) => {
    const row = `row ${n + 1} of a part`;
    if (!(tau >= 0 && tau <= n + 1)) {
      throw violation(`tau = ${tau} in ${row} must lie between 0 and ${n + 1}`);
    }
    const [hi, , lo] = masses;
    if (masses.some((mass) => mass < 0) || masses.reduce((sum, mass) => sum + mass) !== MASS) {
      throw violation(`the masses of ${row} are not numbers from 0 that sum to 2^52`);
    }
    if ((tau === n + 1 && hi) || (tau === 0 && lo)) {
      throw violation(`a class of ${row} that cannot occur has a mass`);
    }
  });
}

/**
 * The largest factor, either way, between any list and the same list without one item: an item that
 * the part speaks about (there are `spoken` of them), and a silent one. A list of more than s items
 * is a mean over its s-subsets, and a ratio of means is extreme at s + 1 items.
 */
function hitFactors(f, s, spoken, m) {
  const largest = { active: ONE, silent: ONE };
  const meet = (who, x, y) => {
    const ratio = quotient(x, y);
    largest[who] = [ratio, inverse(ratio)].reduce(larger, largest[who]);
  };
  const mixed = (who, own, terms) => { // (own + sum) / (s + 1) own
    const sum = terms.reduce((total, [n, value]) => {
      return n ? plus(total, product(integer(n), value)) : total;
    }, own);
    meet(who, sum, product(integer(s + 1), own));
  };
  for (let j = 1; j <= Math.min(s, spoken); j++) {
    for (let n = 0; n < j; n++) for (const h of [0, 1]) meet("active", f[j][n + h], f[j - 1][n]);
  }
  // from here on there are s + 1 items; if m <= s the loops are empty
  for (let a = Math.max(0, s - (m - spoken)); a <= Math.min(s, spoken - 1); a++) {
    for (let n = 0; n <= a; n++) {
      for (const h of [0, 1]) {
        const [same, next] = [f[a], f[a + 1] ?? []];
        const terms = [[n, same[n - 1 + h]], [a - n, same[n + h]], [s - a, next[n + h]]];
        mixed("active", same[n], terms);
      }
    }
  }
  for (let a = Math.max(0, s - (m - spoken) + 1); a <= Math.min(s, spoken); a++) {
    for (let n = 0; n <= a; n++) {
      const [same, less] = [f[a], f[a - 1] ?? []];
      mixed("silent", same[n], [[n, less[n - 1]], [a - n, less[n]], [s - a, same[n]]]);
    }
  }
  return largest;
}

/**
 * Check counted hits for any two lists, and for any item.
 * @param {Terms} terms @param {readonly HitsPart[]} parts @param {number[]} sizes of every group
 * @returns {{ends: Extremes[], all: Extremes, factors: Ratio[]}[]} of every part the extremes of
 *   f[j], those of all lists there are, and the factor of every group
 */
export function checkHits({ names, least }, parts, prime, sizes) {
  checkColumn(parts.map(({ chance }) => chance));
  const m = sizes.reduce((total, size) => total + size, 0);
  return parts.map((part) => {
    checkRows(part, prime);
    const f = densities(part, prime);
    const s = part.rows.length;
    const ends = f.map((values) => overallExtremes(values.map((value) => onlyState(value))));
    const [smallest, ofActive] = [least, least.filter((_, g) => part.active[g])]
      .map((bounds) => bounds.reduce(smaller));
    checkLists(ends.map((own, j) => {
      return { own, j: [j], bound: listBound([j], [ofActive], smallest, s) };
    }));
    const spoken = countSpoken(part, sizes);
    const { active, silent } = hitFactors(f, s, spoken, m);
    const factors = part.active.map((x) => (x ? active : silent));
    checkItems(factors, least, names);
    return { ends, all: overallExtremes(ends.slice(0, Math.min(s, spoken) + 1)), factors };
  });
}

/** All vectors of whole numbers from 0 to these limits, in their order. @param {number[]} limits */
export function vectorsUpTo(limits) {
  if (!limits.length) return [[]];
  const rest = vectorsUpTo(limits.slice(1));
  return Array.from({ length: limits[0] + 1 }, (_, x) => rest.map((more) => [x, ...more])).flat();
}

export const sumOf = (numbers) => numbers.reduce((total, x) => total + x, 0);

/**
 * The mean of the largest and of the smallest values of the classes that a list of so many items is
 * cut to. @param {(j: number[]) => Extremes} ends of a class @param {number[]} mine the class of all
 */
export function meanOfCuts(ends, mine, size, padding) {
  const [idle, drawn] = [size - sumOf(mine), Math.min(padding, size)];
  const all = [binomial(size, drawn), 1n];
  let [high, low] = [ZERO, ZERO];
  for (const j of vectorsUpTo(mine)) {
    const rest = drawn - sumOf(j);
    if (rest >= 0 && rest <= idle) {
      const ways = j.reduce((total, x, b) => total * binomial(mine[b], x), binomial(idle, rest));
      high = plus(high, product([ways, 1n], ends(j).high));
      low = plus(low, product([ways, 1n], ends(j).low));
    }
  }
  return [quotient(high, all), quotient(low, all)];
}

/** The number of items that a part speaks about. */
export function countSpoken({ active }, sizes) {
  return sizes.reduce((total, size, g) => total + active[g] * size, 0);
}

/** The factor R_j of lists of class j: own items of blocks with these factors, s places. */
export function listBound(j, factors, smallest, s) {
  const own = j.map((x, b) => product(integer(x), factors[b]));
  return quotient(own.reduce(plus, product(integer(s - sumOf(j)), smallest)), integer(s));
}

/** max f_j <= R_j LO and HI <= R_j min f_j. @param {{own: Extremes, bound: Ratio, j: number[]}[]} all */
export function checkLists(all) {
  const { high, low } = overallExtremes(all.map(({ own }) => own));
  if (!low[0]) throw violation("a class of a row has mass 0, so that some reports are ruled out");
  for (const { own, bound, j } of all) {
    if (isLess(product(bound, low), own.high) || isLess(product(bound, own.low), high)) {
      const who = `lists with ${j.join(" + ")} of the answers that a part speaks about`;
      throw violation(`${who} are told apart from others by more than their budget`, { row: sumOf(j) });
    }
  }
}

/** Throw if having an item or not changes more than the budget of its level allows. */
export function checkItems(factors, least, names) {
  names.forEach((name, g) => {
    if (!isLess(least[g], factors[g])) return;
    const what = `having or not having an item of level ${quoted(name)} changes a report's chance`;
    throw violation(`${what} by more than its budget`, { levels: [name] });
  });
}

/** Check items that are asked one by one. @param {Terms} terms @param {Part} part the only one */
export function checkEach({ names, least, isMutual }, part) {
  const isInside = (x) => x > 0 && x < D;
  names.forEach((name, g) => {
    const [own, other] = [part.own[g], part.other[g]];
    if (!(isInside(own) || (!isMutual && own === D)) || !isInside(other)) {
      const what = `own = ${own}/${D} and other = ${other}/${D} of level ${quoted(name)}`;
      throw violation(`${what} must lie strictly between 0 and 1`);
    }
  });
  checkItems(eachFactors(part, isMutual), least, names);
}

/**
 * Per group, by how much having or not having one of its items changes any report's chance; unless
 * it is mutual, by how much having it raises the chance.
 */
export function eachFactors({ own, other }, isMutual) {
  return own.map((_, g) => {
    const [a, b, all] = [own[g], other[g], D].map(BigInt);
    const [named, unnamed] = [[a, b], [all - a, all - b]];
    const ratios = isMutual ? [named, inverse(named), unnamed, inverse(unnamed)] : [named, unnamed];
    return ratios.reduce(larger);
  });
}
