// The table of items, with a bar for each.
import { $, element } from "./dom.js";
import { whole } from "./numbers.js";
import { shown, state, view } from "./state.js";
import { labels } from "./wording.js";

const FIRST = 100; // rows drawn before "Show all"

export function drawRows(items, place) {
  const name = items.length && items[0][view()] !== undefined ? view() : "";
  const pick = name
    ? (row) => ({
      count: row[name], lower: row[`${name}_lower`], upper: row[`${name}_upper`],
      error: row[`${name}_sd`],
    })
    : ({ count, lower, upper, stderr }) => ({ count, lower, upper, error: stderr });
  const wanted = $("search").value.trim().toLowerCase();
  const isWanted = ({ item, level }) => `${item} ${level}`.toLowerCase().includes(wanted);
  const label = labels();
  const rows = items.map((row) => ({ ...row, item: label(row.item) })).filter(isWanted)
    .map((row) => ({ ...row, ...pick(row), plain: place.get(row.level).plain_stderr }))
    .sort((x, y) => (state.estimate.ordered ? 0 : (y.count ?? -Infinity) - (x.count ?? -Infinity)));
  const sums = name ? [] : shown().totals.filter(isWanted)
    .map((row) => ({ ...row, error: row.stderr, plain: null }));
  const listed = state.all ? rows : rows.slice(0, FIRST);
  const end = ({ upper, count, plain }) => Math.max(upper ?? 0, (count ?? 0) + 1.96 * plain);
  const top = Math.max(1, ...listed.map(end), ...sums.map(end));
  const drawn = listed.map((row) => drawRow(row, place.get(row.level).k, top));
  $("rows").replaceChildren(...drawn, ...sums.map((row) => drawRow(row, -1, top)));
  $("more").hidden = listed.length === rows.length;
  $("more").textContent = `Show all ${rows.length.toLocaleString()}`;
}

function drawRow(values, k, top) {
  const { item, level, count, lower = null, upper = null, error = null, plain } = values;
  const row = element("tr", "", k < 0 ? "total" : `level-${k % 8}`);
  const head = element("th", item);
  head.append(element("small", level, "quiet"));
  head.scope = "row";
  head.title = `${item} (${level})`;
  const chart = element("td", "", "chart");
  if (shown().telling) chart.append(drawPlot(count, lower, upper, plain, top)); // else it is noise
  const [low, high] = [lower, upper].map(whole);
  const interval = lower === null ? "–" : `${low} to ${high}`;
  const errors = [error, plain].map((x) => (x === null ? "–" : whole(x))).join(" / ");
  row.append(
    head, chart, people(count, interval), share(values),
    element("td", interval, "number interval faint"),
    element("td", errors, "number plain-ldp faint"),
  );
  return row;
}

function people(count, interval) {
  const cell = element("td", count === null ? "–" : whole(count), "number");
  cell.append(element("small", interval, "phone faint"));
  return cell;
}

/** The share of the population, with its interval where the raw estimate is shown. */
function share({ count, share: raw, share_low: low, share_high: high }) {
  const percent = (x) => (100 * x).toFixed(1);
  if (count === null) return element("td", "–", "number");
  const { n } = shown();
  const cell = element("td", `${percent(count / n)} %`, "number share");
  const isRaw = Math.abs(raw - count / n) < 1e-9;
  if (isRaw) cell.append(element("small", `${percent(low)} to ${percent(high)}`, "faint"));
  return cell;
}

/** A bar for the estimate, a line for its interval, a pale band for plain LDP's; all from zero. */
function drawPlot(count, lower, upper, plain, top) {
  const plot = element("div", "", "plot");
  plot.setAttribute("aria-hidden", "true");
  if (count === null) return plot;
  const at = (x) => 100 * Math.min(1, Math.max(0, x / top));
  const piece = (name, from, to) => {
    const made = element("i", "", name);
    made.style.left = `${at(from)}%`;
    made.style.width = `${Math.max(0, at(to) - at(from))}%`;
    plot.append(made);
  };
  if (plain !== null) piece("band", count - 1.96 * plain, count + 1.96 * plain);
  piece("bar", 0, count);
  if (lower !== null) piece("line", lower, upper);
  return plot;
}
