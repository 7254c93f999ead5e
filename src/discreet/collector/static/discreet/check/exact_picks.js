/*
 * The check of picks, sets that are reported as subsets of fixed sizes, in exact integer arithmetic.
 * It is meant to be audited, as exact.js is; check/exact_picks.py has the proof.
 *
 * Parts with the same blocks of groups are a cut, which a public chance draws. A person has a class:
 * how many own items every block has. By the row of the class a part and a bunch are drawn, some
 * vectors of how many own items of every block are named; then a vector of the bunch, then in every
 * block a subset that names so many, every choice alike. So the chance of a report over that of
 * uniform subsets depends on the class j and the vector n alone.
 */
import { violation } from "../errors.js";
import { D, ONE, inverse, larger, onlyState, quotient, smaller } from "./exact.js";
import {
  MASS, binomial, checkItems, checkLists, listBound, sumOf, vectorsUpTo,
} from "./exact_sets.js";
import { overallExtremes } from "./factors.js";

/** The classes of people with at most s active items, in the order of the rows. */
export function classesOf(blocks, s) {
  if (!blocks) return [[]];
  return Array.from({ length: s + 1 }, (_, j) => {
    return classesOf(blocks - 1, s - j).map((rest) => [j, ...rest]);
  }).flat();
}

/** Whether parts of so many blocks are checked within a limit, as in Python. */
export function areSoonChecked(blocksOf, s) {
  const compared = blocksOf.map((blocks) => binomial(s + 2 * blocks, s) * BigInt(blocks) ** 3n);
  return compared.reduce((total, x) => total + x, 0n) <= 1n << 20n;
}

/** How many there are. */
export const countClasses = (blocks, s) => Number(binomial(s + blocks, blocks));

/** How many items every block has. @returns {number[]} */
export function blockItems({ blocks, sizes }, groupSizes) {
  return sizes.map((_, b) => groupSizes.reduce((m, size, g) => m + (blocks[g] === b + 1 ? size : 0), 0));
}

/** n (n - 1) ... down to n - k + 1. */
function fallingProduct(n, k) {
  let total = 1n;
  for (let i = 0; i < k; i++) total *= BigInt(n - i);
  return total;
}

const bigProduct = (numbers) => numbers.reduce((total, x) => total * x, 1n);

/** How many of j own items of every block a subset of k of m can name, in their order. */
export function possible(m, k, j) {
  return vectorsUpTo(j).filter((n) => n.every((x, b) => x <= k[b] && k[b] - x <= m[b] - j[b]));
}

/** How often uniform subsets name n of j own items. */
const waysToName = (m, k, j, n) => bigProduct(n.map((x, b) => {
  return binomial(j[b], x) * fallingProduct(k[b], x) * fallingProduct(m[b] - k[b], j[b] - x);
}));

/** The bunches of a row: mass, vectors, weights, their sum. */
export function bunchesOf(m, { sizes }, j, row) {
  const vectors = possible(m, sizes, j);
  return row.map(([mass, ...places]) => {
    const mine = places.map((place) => vectors[place]);
    const weights = mine.map((n) => waysToName(m, sizes, j, n));
    return { mass, vectors: mine, weights, total: weights.reduce((sum, x) => sum + x, 0n) };
  });
}

/** The parts of every cut, by their places: those with the same blocks. */
export function cutsOf(parts) {
  const cuts = new Map();
  parts.forEach(({ blocks }, k) => cuts.set(`${blocks}`, [...cuts.get(`${blocks}`) ?? [], k]));
  return [...cuts.values()];
}

/** Check that the bunches of every row hold each vector that can be named once. */
function checkBunches({ sizes, rows }, m, classes) {
  sizes.forEach((k, b) => {
    if (!(k >= 0 && k < m[b])) {
      throw violation(`a size of a part is ${k}, but must be from 0 to ${m[b] - 1}, fewer than its `
        + "block's items");
    }
  });
  rows.forEach((row, r) => {
    if (row.some(([mass]) => mass <= 0)) {
      throw violation(`the bunches of row ${r} of a part must have positive masses`);
    }
    const places = row.flatMap(([, ...mine]) => mine).sort((a, b) => a - b);
    const count = classes[r].some((x, b) => x > m[b]) ? 0 : possible(m, sizes, classes[r]).length;
    if (places.length !== count || places.some((place, n) => place !== n)) {
      throw violation(`the bunches of row ${r} of a part must hold each of its ${count} vectors once`);
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
    rows.forEach((first, r) => {
      const masses = cut.flatMap((k) => parts[k].rows[r].map(([mass]) => BigInt(mass)));
      if (first.length && masses.reduce((sum, mass) => sum + mass, 0n) !== BigInt(MASS)) {
        throw violation(`the masses of row ${r} do not sum to 2^52 over the parts of a cut`);
      }
    });
  }
  if (total !== D) throw violation("the chances of the cuts do not sum to 2^32");
}

/**
 * The densities of a part, times one number that makes all of them whole: of every class and vector,
 * by their texts. @returns {Map<string, Map<string, bigint>>}
 */
function pickDensities(part, m, classes) {
  const rows = classes.map((j, r) => {
    const all = bigProduct(j.map((x, b) => fallingProduct(m[b], x)));
    return bunchesOf(m, part, j, part.rows[r]).map((bunch) => ({ ...bunch, all }));
  });
  const scale = rows.flat().reduce((lcm, { total }) => (lcm / divisor(lcm, total)) * total, 1n);
  return new Map(classes.map((j, r) => {
    const cells = rows[r].flatMap(({ mass, vectors, total, all }) => {
      const value = BigInt(mass) * all * (scale / total);
      return vectors.map((n) => [`${n}`, value]);
    });
    return [`${j}`, new Map(cells)];
  }));
}

const divisor = (a, b) => (b ? divisor(b, a % b) : a);

const added = (vector, b, more) => vector.map((x, c) => (c === b ? x + more : x));

/**
 * The largest factor, either way, between any list and the same list without one item: an item of
 * every block, and a silent one, of `others`. Only reports that exist are compared.
 */
function pickFactors(f, m, s, classes, others) {
  const held = m.map(() => ONE);
  let silent = ONE;
  const largest = (before, ratio) => [ratio, inverse(ratio)].reduce(larger, before);
  const at = (j, n) => f.get(`${j}`)?.get(`${n}`);
  /** Item i joins s others of class j: it takes the place of one of them, or stays out. */
  const replaced = (j, n, idle, b, h) => {
    const [joined, named] = [added(j, b, 1), added(n, b, h)];
    const terms = [[idle, at(joined, named)]];
    j.forEach((x, c) => {
      const out = added(joined, c, -1);
      if (n[c]) terms.push([n[c], at(out, added(named, c, -1))]);
      if (x > n[c]) terms.push([x - n[c], at(out, named)]);
    });
    const real = terms.filter(([places]) => places);
    if (real.some(([, value]) => value === undefined)) return ONE; // there is no such report
    const own = at(j, n);
    const sum = real.reduce((total, [places, value]) => total + BigInt(places) * value, own);
    return [sum, BigInt(s + 1) * own];
  };
  for (const j of classes) {
    const idle = s - sumOf(j);
    for (const text of f.get(`${j}`).keys()) {
      const n = text.split(",").map(Number);
      m.forEach((size, b) => {
        for (const h of [0, 1]) {
          const less = at(added(j, b, -1), added(n, b, -h));
          if (less !== undefined) held[b] = largest(held[b], [at(j, n), less]);
          if (idle <= others && j[b] < size) held[b] = largest(held[b], replaced(j, n, idle, b, h));
        }
      });
      if (idle < others) silent = largest(silent, replaced(j, n, idle, -1, 0));
    }
  }
  return { held, silent };
}

/**
 * Check picks for any two lists, and for any item.
 * @param {Terms} terms @param {readonly PicksPart[]} parts @param {number[]} groupSizes
 * @param {number} s the padding
 * @returns {{ends: Map<string, Extremes>, all: Extremes, factors: Ratio[]}[]} of every part the
 *   extremes of every class, those of all lists there are, and the factor of every group
 */
export function checkPicks({ names, least }, parts, groupSizes, s) {
  const proved = parts.map((part) => {
    const m = blockItems(part, groupSizes);
    const classes = classesOf(m.length, s);
    checkBunches(part, m, classes);
    const f = pickDensities(part, m, classes);
    const people = classes.filter((j) => f.get(`${j}`).size);
    const ends = new Map(people.map((j) => {
      const states = [...f.get(`${j}`).values()].map((value) => onlyState([value, 1n]));
      return [`${j}`, overallExtremes(states)];
    }));
    const smallest = least.reduce(smaller);
    const ofBlock = m.map((_, b) => {
      return least.filter((_x, g) => part.blocks[g] === b + 1).reduce(smaller);
    });
    checkLists(people.map((j) => {
      return { own: ends.get(`${j}`), j, bound: listBound(j, ofBlock, smallest, s) };
    }));
    const { held, silent } = pickFactors(f, m, s, people, sumOf(groupSizes) - sumOf(m));
    const factors = part.blocks.map((block) => (block ? held[block - 1] : silent));
    checkItems(factors, least, names);
    return { ends, all: overallExtremes([...ends.values()]), factors };
  });
  checkCuts(parts);
  return proved;
}

/**
 * Of every class of people and every block: how many own items a report of the part names on
 * average, as a ratio; with the class. @returns {{j: number[], named: Ratio[]}[]}
 */
export function pickMeans(part, m, s) {
  return classesOf(m.length, s).flatMap((j, r) => {
    const bunches = bunchesOf(m, part, j, part.rows[r]);
    if (!bunches.length) return [];
    const mass = bunches.reduce((total, bunch) => total + BigInt(bunch.mass), 0n);
    const scale = bigProduct(bunches.map(({ total }) => total));
    const named = m.map((_, b) => {
      const sum = bunches.reduce((all, { mass: own, vectors, weights, total }) => {
        const mine = vectors.reduce((x, n, i) => x + BigInt(n[b]) * weights[i], 0n);
        return all + BigInt(own) * mine * (scale / total);
      }, 0n);
      return quotient([sum, scale], [mass, 1n]);
    });
    return [{ j, named }];
  });
}
