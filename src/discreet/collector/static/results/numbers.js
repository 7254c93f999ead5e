export const whole = (x) => (Math.round(x) + 0).toLocaleString(); // never "-0"

export const percentOf = (count, n) => `${(100 * count / n + 0).toFixed(1)} %`;
