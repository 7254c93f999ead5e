// How much a part that passed the check reveals, exactly.
import {
  ONE, ZERO, foremost, integer, isLess, isMore, larger, plus, product, quotient, smaller,
} from "./exact.js";

/** A ratio as a double, however large its integers are. */
export function toNumber([n, d]) {
  if (!d) return Infinity;
  const hexDigits = (x) => x.toString(16).length;
  const shift = 4 * (20 + hexDigits(d) - hexDigits(n));
  const scaled = shift > 0 ? (n << BigInt(shift)) / d : n / (d << BigInt(-shift));
  return Number(scaled) * 2 ** -shift;
}

/** ln of a ratio, however large it is. */
export function logarithm([n, d]) {
  if (!d) return Infinity;
  const shift = BigInt(4 * (n.toString(16).length - d.toString(16).length));
  const near = shift > 0n ? [n, d << shift] : [n << -shift, d];
  return Math.log(toNumber(near)) + Number(shift) * Math.LN2;
}

/** @param {Extremes[]} inputs @returns {{high: Ratio, low: Ratio}} */
export function overallExtremes(inputs) {
  return {
    high: inputs.map(({ high }) => high).reduce(larger),
    low: inputs.map(({ low }) => low).reduce(smaller),
  };
}

/** The largest ratio, either way, of a value between `bottom` and `top` to any other state. */
export function farthest(top, bottom, { high, low }) {
  return larger(quotient(top, low), quotient(high, bottom));
}

/** Per group, the largest factor of any part. @param {Ratio[][]} parts @returns {Ratio[]} */
export function largestPerGroup(parts) {
  return parts[0].map((_, g) => parts.map((factors) => factors[g]).reduce(larger));
}

/** x / y; [n, 0n], above every ratio, if only y is 0, and 1 if both are: then nobody sends it. */
const ratioOf = (x, y) => (x[0] || y[0] ? quotient(x, y) : ONE);

/**
 * Single answers, per group: the largest ratio between one of its items and any other; one way, of
 * its items over others.
 * @param {Extremes[]} states @returns {Ratio[]}
 */
export function answerFactors(states, sizes, oneWay) {
  if (sizes.length === 1 && sizes[0] === 1) return [ONE];
  const lone = sizes.map((size) => size === 1);
  const highest = firstOfOthers(states.map(({ high }) => high), lone, isMore);
  const lowest = firstOfOthers(states.map(({ low }) => low), lone, isLess);
  return states.map(({ high, low }, g) => {
    return [ratioOf(high, lowest(g)), ...oneWay ? [] : [ratioOf(highest(g), low)]].reduce(larger, ONE);
  });
}

/**
 * The same per level, over the answers that it is protected from. levels: the group of every level
 * and the groups that budgets lead to from it; without any, everything may become known.
 * @param {Extremes[]} states @param {{group: number, near: Set<number>}[]} levels
 * @returns {Ratio[]}
 */
export function protectedFactors(states, oneWay, levels) {
  return levels.map(({ group: g, near }) => {
    const { high, low } = states[g];
    const others = [...near].map((h) => states[h]);
    if (!others.length) return [1n, 0n];
    return others.flatMap((other) => {
      return [ratioOf(high, other.low), ...oneWay ? [] : [ratioOf(other.high, low)]];
    }).reduce(larger, ONE);
  });
}

/** A function of a group: the foremost value of another input; its own, if it has two items. */
function firstOfOthers(values, lone, before) {
  const top = foremost(values, before);
  const rest = values.filter((_, k) => k !== top);
  const second = rest.length ? rest[foremost(rest, before)] : values[top];
  return (g) => (g === top && lone[g] ? second : values[top]);
}

/**
 * Padding-and-Sampling, per group: the largest ratio between any list with one of its items and the
 * same list without it. In a list of up to l items the item takes the place of "none", beside l - 1
 * others. In a longer list it makes l places l + 1. The others are those that make the ratio
 * largest.
 * @param {Extremes[]} states the last of "none" @param {number} l the padding @returns {Ratio[]}
 */
export function samplingFactors(states, sizes, l) {
  const { high: none } = states.at(-1);
  const rows = (key) => sizes.map((size, g) => ({ g, size, value: states[g][key] }));
  const [lows, highs] = [rows("low"), rows("high")];
  const beside = sumOfFirst([...lows, { g: -1, size: Infinity, value: none }], l - 1, isLess);
  const crowded = sizes.reduce((total, size) => total + size, 0) > l;
  const leastSum = crowded && sumOfFirst(lows, l, isLess);
  const mostSum = crowded && sumOfFirst(highs, l, isMore);
  const share = [BigInt(l), BigInt(l + 1)];
  return sizes.map((_, g) => {
    const { high, low } = states[g];
    const others = beside(g);
    const without = plus(others, none);
    const ratios = [quotient(plus(others, high), without), quotient(without, plus(others, low))];
    if (crowded) {
      const [least, most] = [leastSum(g), mostSum(g)];
      ratios.push(product(share, quotient(plus(least, high), least)));
      ratios.push(quotient(most, product(share, plus(most, low))));
    }
    return ratios.reduce(larger, ONE);
  });
}

/** A function of a group: the sum of the k foremost values of items without one of its items. */
function sumOfFirst(rows, k, before) {
  const sorted = [...rows].sort((x, y) => {
    return before(x.value, y.value) ? -1 : before(y.value, x.value) ? 1 : 0;
  });
  let [total, left, next] = [ZERO, k, null]; // next: the value that replaces a removed one
  const taken = new Map();
  for (const { g, size, value } of sorted) {
    if (!left) {
      next ??= value;
      break;
    }
    const n = Math.min(left, size);
    total = plus(total, product(integer(n), value));
    taken.set(g, value);
    left -= n;
    if (n < size) next = value;
  }
  const minus = ([n, d]) => [-n, d];
  return (g) => (taken.has(g) ? plus(total, plus(next, minus(taken.get(g)))) : total);
}
