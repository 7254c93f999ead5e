// Arithmetic modulo a prime.

/**
 * A uniform polynomial with these values at these points: Newton's form, with uniform coefficients
 * where the points leave a choice.
 * @param {number[]} points all different @param {number[]} free uniform coefficients
 * @returns {number[]} coefficients, the constant first
 */
export function interpolate(points, values, free, prime) {
  const slopes = [...values]; // divided differences
  for (let gap = 1; gap < points.length; gap++) {
    for (let k = points.length - 1; k >= gap; k--) {
      const [rise, run] = [slopes[k] - slopes[k - 1], points[k] - points[k - gap]];
      slopes[k] = times((rise + prime) % prime, reciprocal((run + prime) % prime, prime), prime);
    }
  }
  return points.reduceRight((poly, point, k) => {
    const next = [slopes[k], ...poly]; // poly (x - point) + slope
    poly.forEach((x, n) => { next[n] = (next[n] + prime - times(x, point, prime)) % prime; });
    return next;
  }, free);
}

/** x y mod a prime below 2^31, exactly: 16 bits of y at a time keep every product below 2^53. */
export function times(x, y, prime) {
  return (((x * (y >>> 16)) % prime) * 2 ** 16 + x * (y & 0xffff)) % prime;
}

/** 1 / x mod a prime, 0 < x < prime: Euclid's algorithm. */
function reciprocal(x, prime) {
  let [r, next, t, step] = [prime, x, 0, 1];
  while (next) {
    const n = Math.floor(r / next);
    [r, next, t, step] = [next, r - n * next, step, t - n * step];
  }
  return t < 0 ? t + prime : t;
}

/** x^n, exact below 2^53; everything it is compared with is far smaller. */
export function power(x, n) {
  return n ? x * power(x, n - 1) : 1;
}

export function isPrime(q) {
  for (let k = 2; k * k <= q; k++) if (q % k === 0) return false;
  return q > 1;
}
