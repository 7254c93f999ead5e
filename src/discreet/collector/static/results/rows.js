// The rows of the estimate that is looked at: made once per estimate, so that a filter only picks.
import { shown, state } from "./state.js";
import { words } from "./words.js";
import { labels } from "./wording.js";

let latest = {}; // the rows that were made last, and of what

/** The name of the view that is shown; "" where the estimate does not have the chosen one. */
export function viewOf() {
  const { view } = state.chosen;
  return shown().items[0]?.[view] === undefined ? "" : view;
}

/** Every row, in the order in which they are shown. */
function allRows() {
  const [name, of, { language }] = [viewOf(), shown(), words];
  if (latest.of === of && latest.name === name && latest.language === language) return latest.rows;
  const [label, order] = [labels(), new Map(state.estimate.levels.map((x, k) => [x.name, k]))];
  const smaller = Math.sqrt(of.n / Math.max(1, state.estimate.n)); // a group has its own errors
  const sure = new Set(of.sure);
  const isSureOfAll = of.sure.length < of.telling; // only the first of them are named
  const rows = of.items.map((row) => {
    const k = order.get(row.level);
    const { plain_stderr: plain } = state.estimate.levels[k];
    return {
      ...numbersOf(row, name, of.n), item: label(row.item), level: row.level, k,
      plain: plain === null ? null : smaller * plain / of.n,
      isSure: sure.has(row.item) || (isSureOfAll && row.share_low > 0),
      found: `${label(row.item)} ${row.level}`.toLowerCase(),
    };
  });
  if (!state.estimate.ordered) rows.sort((x, y) => (y.count ?? -Infinity) - (x.count ?? -Infinity));
  latest = { of, name, language, rows };
  return rows;
}

/** What a row says in this view: people, then the share with its interval; unknown is null. */
function numbersOf(row, name, n) {
  if (!name) {
    const { count, stderr: error, lower, upper, share, share_low: low, share_high: high } = row;
    return { count, error, lower, upper, share: count === null ? null : share, low, high };
  }
  const [count, error] = [row[name], row[`${name}_sd`] ?? null];
  const [lower, upper] = [row[`${name}_lower`] ?? null, row[`${name}_upper`] ?? null];
  const part = (x) => (x === null ? null : x / n);
  return { count, error, lower, upper, share: part(count), low: part(lower), high: part(upper) };
}

/** Those that fit the search, those of them that are drawn, and the sums that fit. */
export function pickRows() {
  const wanted = state.chosen.find.trim().toLowerCase();
  const rows = allRows();
  const fitting = wanted ? rows.filter(({ found }) => found.includes(wanted)) : rows;
  const { totals, n } = shown();
  const sums = viewOf() ? [] : totals
    .filter(({ item }) => item.toLowerCase().includes(wanted))
    .map((row) => ({ ...numbersOf(row, "", n), item: row.item, level: "", k: -1, plain: null,
      isSure: row.share_low > 0 }));
  return { all: rows.length, fitting, drawn: fitting.slice(0, state.rows), sums };
}

/** The largest share to be drawn, and steps of an axis up to it. */
export function axisOf(rows, withBands) {
  const ends = rows.map(({ share, high, plain }) => {
    return Math.max(high ?? 0, share ?? 0, withBands && plain ? (share ?? 0) + 2 * plain : 0);
  });
  const top = Math.max(0.001, ...ends);
  const power = 10 ** Math.floor(Math.log10(top / 4));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => top / x <= 5);
  const ticks = Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, k) => k * step);
  return { top, step, ticks };
}

