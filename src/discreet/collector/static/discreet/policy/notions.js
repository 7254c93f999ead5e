/**
 * The notions: rules that give the budget of every ordered pair of levels from the levels' budgets.
 * `pair(i, j, terms)` lists levels; twice the budget of an answer of level i over one of level j is
 * the least of the sums of their budgets. null: not protected. `hits`: the check of counted hits
 * proves this notion. `mutual`: both directions are alike. `lists`: whole lists can be protected.
 * `complete`: every pair of answers is protected, but for open levels. `ordered`: the levels are
 * points in an order, one item each.
 */
export const NOTIONS = Object.freeze({
  min: makeNotion((i, j) => [[i, i], [j, j]], { hits: true }),
  avg: makeNotion((i, j) => [[i, j]]),
  // an answer is protected by its own budget, whatever the other one is; levels may be open
  "one-way": makeNotion((i, j, { isOpen }) => (isOpen(i) ? null : [[i, i]]),
    { mutual: false, lists: false }),
  // which level an answer is in becomes known
  blocks: makeNotion((i, j) => (i === j ? [[i, i]] : null), { lists: false, complete: false }),
  // every level is a point, in their order; a budget per step between two points
  scale: makeNotion((i, j, { cap }) => {
    const steps = Math.min(Math.abs(i - j), cap || Infinity);
    return steps ? [Array(2 * steps).fill(i)] : null; // a point has one answer
  }, { lists: false, ordered: true }),
});

function makeNotion(pair, like = {}) {
  const usual = { hits: false, mutual: true, lists: true, complete: true, ordered: false };
  return Object.freeze({ pair, ...usual, ...like });
}
