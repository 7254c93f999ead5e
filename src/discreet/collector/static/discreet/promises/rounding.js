// Factors as people read them: rounded up, exactly, so that the promise stays true.
import { square } from "../check/exact.js";

/**
 * A factor, from its square.
 * @param {Ratio} squared
 * @returns {{factor: number, text: string}}
 */
export function roundUp([n, d]) {
  if (!d) return { factor: Infinity, text: "more than any number" };
  const hundredths = rootUp(10_000n * n, d);
  if (hundredths < 100_000n) {
    const factor = Number(hundredths) / 100;
    return { factor, text: String(factor) };
  }
  const whole = rootUp(n, d);
  const near = Number(whole);
  const factor = near < Infinity && BigInt(near) < whole ? near * (1 + Number.EPSILON) : near;
  if (whole >= 10n ** 9n) return { factor, text: powerOfTen(whole) };
  return { factor, text: String(whole).replace(/\B(?=(\d{3})+$)/g, ",") };
}

/** A whole number as two digits, rounded up, times a power of ten. */
function powerOfTen(whole) {
  const exponent = String(whole).length - 1;
  const unit = 10n ** BigInt(exponent - 1);
  const lead = Number((whole + unit - 1n) / unit);
  if (lead === 100) return `1.0 × 10^${exponent + 1}`;
  return `${Math.floor(lead / 10)}.${lead % 10} × 10^${exponent}`;
}

/** The same for a factor that was computed in floats: with a margin above their error. */
export function roundUpFloat(factor) {
  const x = factor * (1 + 1e-12);
  if (x === Infinity) return { factor: x, text: "more than any number" };
  const fine = 2 ** 40;
  const ratio = x < 2 ** 53 ? [BigInt(Math.ceil(x * fine)), BigInt(fine)] : [BigInt(x), 1n];
  return roundUp(square(ratio));
}

/** The least integer whose square is at least n / d. */
function rootUp(n, d) {
  const least = (n + d - 1n) / d;
  let root = 1n << BigInt(2 * least.toString(16).length); // above the root; Newton's steps down
  for (;;) {
    const next = (root + least / root) >> 1n;
    if (next >= root) break;
    root = next;
  }
  return root * root < least ? root + 1n : root;
}
