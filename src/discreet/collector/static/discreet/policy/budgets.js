import { refused } from "../errors.js";
import { quoted } from "./labels.js";

/**
 * @typedef {{text: string, epsilon: number, isLog: boolean, value: [bigint, bigint]}} Budget
 *   value: epsilon itself, or k where epsilon = ln(k); a numerator and a positive denominator
 */

/** The budget of an open level: nothing is promised. */
export const OPEN = Object.freeze({
  text: "open", epsilon: Infinity, isLog: false, value: Object.freeze([1n, 0n]),
});

/** A budget in its only spelling: a plain decimal, or ln(k), k > 1 reduced. @returns {Budget} */
export function readBudget(raw) {
  const text = typeof raw === "string" && raw.length <= 100 ? raw : "";
  const log = /^ln\(([1-9]\d*)(?:\/([1-9]\d*))?\)$/.exec(text);
  if (log) {
    const [n, d] = [BigInt(log[1]), BigInt(log[2] ?? 1)];
    const isReduced = log[2] === undefined || (d > 1n && gcd(n, d) === 1n);
    if (n > d && isReduced) {
      const epsilon = Math.log(Number(n)) - Math.log(Number(d));
      return { text, epsilon, isLog: true, value: [n, d] };
    }
  }
  // from 1e-29 to below 1e30
  const decimal = /^(?!0$|0\.0{29})(0|[1-9]\d{0,29})(?:\.(\d*[1-9]))?$/.exec(text);
  if (decimal) {
    const [, whole, fraction = ""] = decimal;
    const value = [BigInt(whole + fraction), 10n ** BigInt(fraction.length)];
    return { text, epsilon: Number(text), isLog: false, value };
  }
  const allowed = "a positive decimal or ln(k) with k > 1, as discreet writes it";
  throw refused(`epsilon is ${quoted(raw)}, but must be ${allowed}`);
}

function gcd(x, y) {
  return y ? gcd(y, x % y) : x;
}
