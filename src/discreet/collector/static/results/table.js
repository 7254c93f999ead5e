// The table of answers, with a bar for each: shares first, people small.
import { $, element, heading, tell } from "./dom.js";
import { axisOf, pickRows } from "./rows.js";
import { shown, state } from "./state.js";
import { percentOf, roughly, tenths, text, whole } from "./words.js";

const ADDED = 200; // rows that are added at a time
const LIMIT = 1000; // rows that are drawn at all

export const showMore = () => { state.rows = Math.min(LIMIT, state.rows + ADDED); };

export function drawTable() {
  const { all, fitting, drawn, sums } = pickRows();
  const isExact = $("exactly").open;
  const axis = axisOf([...drawn, ...sums], isExact);
  const hasBars = shown().telling > 0; // else they are noise
  drawAxis(axis, hasBars);
  $("rows").replaceChildren(...drawn.map((row) => drawRow(row, axis, hasBars, isExact)));
  $("sums").replaceChildren(...sums.map((row) => drawRow(row, axis, hasBars, isExact)));
  $("sums-head").hidden = !sums.length;
  const rest = fitting.length - drawn.length;
  $("more").hidden = !rest || drawn.length >= LIMIT;
  $("more").textContent = text("showMore", { n: Math.min(ADDED, rest) });
  const said = [
    ...fitting.length < all ? [text("shownOf", { k: fitting.length, n: all })] : [],
    ...all && !fitting.length && !sums.length ? [text("noMatch")] : [],
    ...drawn.length >= LIMIT && rest ? [text("tooMany", { n: rest })] : [],
  ];
  tell("found", said.join(" "));
  $("pale").hidden = !hasBars || drawn.every(({ isSure }) => isSure);
}

function drawAxis({ top, step, ticks }, hasBars) {
  $("table").style.setProperty("--step", `${100 * step / top}%`);
  $("axis").replaceChildren(...(hasBars ? ticks : []).map((share) => {
    const tick = element("span", roughly(share), share > 0.93 * top ? "last" : "");
    tick.style.insetInlineStart = `${100 * share / top}%`;
    return tick;
  }));
}

function drawRow(row, axis, hasBars, isExact) {
  const { item, level, k, isSure, count, lower, upper, error, plain } = row;
  const line = element("tr", "", k < 0 ? "total" : `level-${k % 8}`);
  const head = heading(item, "row");
  head.append(element("small", level, "quiet"));
  head.title = level ? `${item} (${level})` : item;
  const chart = element("td", "", "chart");
  if (hasBars) chart.append(drawPlot(row, axis, isSure, isExact));
  const errors = [error, plain === null ? null : plain * shown().n].map((x) => {
    return x === null ? "–" : whole(x);
  });
  line.append(
    head, chart, shareCell(row), peopleCell(count, lower, upper),
    element("td", errors.join(" / "), "number plain-ldp faint"),
  );
  return line;
}

/** A number with its interval below. */
function withInterval(value, interval, className) {
  const cell = element("td", value, className);
  if (interval) cell.append(element("small", interval, "faint"));
  return cell;
}

function shareCell({ share, low, high }) {
  if (share === null) return withInterval("–", "", "number share");
  const interval = low === null ? "" : text("range", { low: tenths(low), high: tenths(high) });
  return withInterval(percentOf(share), interval, "number share");
}

function peopleCell(count, lower, upper) {
  if (count === null) return withInterval("–", "", "number people faint");
  const interval = lower === null ? "" : text("range", { low: whole(lower), high: whole(upper) });
  return withInterval(whole(count), interval, "number people faint");
}

/** A bar for the share, a line for its interval, a pale band for plain LDP's; all from zero. */
function drawPlot({ share, low, high, plain }, { top }, isSure, isExact) {
  const plot = element("div", "", isSure ? "plot" : "plot unsure");
  plot.setAttribute("aria-hidden", "true");
  if (share === null) return plot;
  const at = (x) => 100 * Math.min(1, Math.max(0, x / top));
  const piece = (name, from, to) => {
    const drawn = element("i", "", name);
    drawn.style.insetInlineStart = `${at(from)}%`;
    drawn.style.width = `${Math.max(0, at(to) - at(from))}%`;
    plot.append(drawn);
  };
  if (isExact && plain !== null) piece("band", share - 1.96 * plain, share + 1.96 * plain);
  piece("bar", 0, share);
  if (low !== null) piece("line", low, high);
  return plot;
}
