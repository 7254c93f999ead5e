// Crossed questions: one question about the pairs of answers to two others.
import { refused } from "../errors.js";
import { quoted } from "../policy/labels.js";

const CROSSED = ["min", "avg"]; // notions of questions that can be crossed

/** The label of a pair of answers. */
export const cell = (first, second) => `${first} × ${second}`;

/**
 * Refuse a question that is not the cross of these two: its items are the pairs, and the budget of
 * a pair is the smaller of its two.
 */
export function checkCross(name, crossed, first, second) {
  const plain = (policy) => policy.kind === "single" && CROSSED.includes(policy.notion)
    && !policy.pairs.length;
  const fail = (why) => {
    throw refused(`${quoted(name)} is not the cross of its two questions: ${why}`);
  };
  if (![crossed, first, second].every(plain)) fail("one of them cannot be crossed");
  const notions = new Set([crossed, first, second].map(({ notion }) => notion));
  if (notions.size > 1) fail("their notions differ");
  if (crossed.last.length) fail("it has items that are shown last");
  const pairs = first.items.flatMap((x, i) => second.items.map((y, j) => [cell(x, y), i, j]));
  if (pairs.length !== crossed.items.length) fail("it has other items");
  const levelAt = (policy, k) => policy.levels[policy.levelOf[k]];
  pairs.forEach(([pair, i, j], k) => {
    if (crossed.items[k] !== pair) fail("it has other items");
    const [x, y] = [levelAt(first, i), levelAt(second, j)];
    const { budget } = x.epsilon <= y.epsilon ? x : y;
    if (levelAt(crossed, k).budget !== budget) fail(`${quoted(pair)} has another budget`);
  });
}

/** The places of the cells that sum up each answer of the first (axis 0) or second question. */
export function cellsOf(axis, rows, columns) {
  const [outer, inner] = axis === 0 ? [rows, columns] : [columns, rows];
  return Array.from({ length: outer }, (_, i) => Array.from({ length: inner }, (_, j) => {
    return axis === 0 ? i * columns + j : j * columns + i;
  }));
}
