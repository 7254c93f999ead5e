import { refused } from "../errors.js";
import { quoted } from "./labels.js";

/**
 * @typedef {{text: string, epsilon: number, isLog: boolean, value: [bigint, bigint],
 *   root: bigint}} Budget
 *   value: epsilon itself, or k where epsilon = ln(k) / root; a numerator and a positive denominator
 */

const MOST_ROOTS = 1000n;

/** The budget of an open level: nothing is promised. */
export const OPEN = Object.freeze({
  text: "open", epsilon: Infinity, isLog: false, value: Object.freeze([1n, 0n]), root: 1n,
});

/**
 * A budget in its only spelling: a plain decimal, a reduced ratio where decimals never end, or ln(k)
 * with k > 1 reduced, which may be divided by a whole number.
 * @returns {Budget}
 */
export function readBudget(raw) {
  const text = typeof raw === "string" && raw.length <= 100 ? raw : "";
  const log = /^ln\(([1-9]\d*)(?:\/([1-9]\d*))?\)(?:\/([1-9]\d{0,3}))?$/.exec(text);
  if (log) {
    const [n, d, root] = [log[1], log[2] ?? 1, log[3] ?? 1].map(BigInt);
    const isReduced = log[2] === undefined || (d > 1n && gcd(n, d) === 1n);
    if (n > d && isReduced && (log[3] === undefined || (root > 1n && root <= MOST_ROOTS))) {
      const epsilon = (Math.log(Number(n)) - Math.log(Number(d))) / Number(root);
      return { text, epsilon, isLog: true, value: [n, d], root };
    }
  }
  const ratio = /^([1-9]\d*)\/([1-9]\d*)$/.exec(text);
  if (ratio) {
    const [n, d] = [BigInt(ratio[1]), BigInt(ratio[2])];
    const fits = n < 10n ** 30n * d && d <= 10n ** 29n * n;
    if (gcd(n, d) === 1n && !terminates(d) && fits) {
      return { text, epsilon: Number(n) / Number(d), isLog: false, value: [n, d], root: 1n };
    }
  }
  // from 1e-29 to below 1e30
  const decimal = /^(?!0$|0\.0{29})(0|[1-9]\d{0,29})(?:\.(\d*[1-9]))?$/.exec(text);
  if (decimal) {
    const [, whole, fraction = ""] = decimal;
    const value = [BigInt(whole + fraction), 10n ** BigInt(fraction.length)];
    return { text, epsilon: Number(text), isLog: false, value, root: 1n };
  }
  const allowed = "a positive decimal or ln(k) with k > 1, as discreet writes it";
  throw refused(`epsilon is ${quoted(raw)}, but must be ${allowed}`);
}

function gcd(x, y) {
  return y ? gcd(y, x % y) : x;
}

/** Whether decimals with this denominator come to an end. */
function terminates(denominator) {
  let rest = denominator;
  for (const prime of [2n, 5n]) while (rest % prime === 0n) rest /= prime;
  return rest === 1n;
}
