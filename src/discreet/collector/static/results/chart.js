// The chart as a picture: the numbers that the table shows, with what one must know to read them.
// Light colours, whatever the screen has: it will stand on paper and in slides.
import { element } from "./dom.js";
import { headline } from "./draw.js";
import { axisOf, pickRows, viewOf } from "./rows.js";
import { page, shown, state } from "./state.js";
import { percentOf, roughly, tenths, text, today, words } from "./words.js";
import { groupOf, wordsOf } from "./wording.js";

const WIDTH = 960;
const EDGE = 32;
const LABEL = 250; // of an answer
const VALUE = 190; // of its share and interval
const ROW = 30;
const BARS = 50; // answers
const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif";
const INK = "#17211f";
const QUIET = "#5a6b67";
const LINE = "#dbe3e0";
const BAR = "#0f766e";
const PALE = "#9fcac5";
const SPACE = "http://www.w3.org/2000/svg";

let ruler; // measures texts

function widthOf(content, size, weight) {
  ruler ??= element("canvas").getContext("2d");
  ruler.font = `${weight} ${size}px ${FONT}`;
  return ruler.measureText(content).width;
}

/** The text in lines that fit. */
function wrapped(content, size, weight, width) {
  const lines = [""];
  for (const word of content.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (widthOf(longer, size, weight) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.filter(Boolean);
}

/** The beginning that fits. */
function cut(content, size, width) {
  if (widthOf(content, size, 400) <= width) return content;
  let end = content.length;
  while (end && widthOf(`${content.slice(0, end)}…`, size, 400) > width) end -= 1;
  return `${content.slice(0, end)}…`;
}

/** Draws from the side where reading begins: in Arabic everything is mirrored. */
class Sheet {
  constructor() {
    this.isMirrored = words.direction === "rtl";
    this.root = document.createElementNS(SPACE, "svg");
    this.y = EDGE;
  }

  add(name, attributes, content = "") {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = content;
    this.root.append(made);
    return made;
  }

  rect(x, y, width, height, fill) {
    this.add("rect", { x: this.isMirrored ? WIDTH - x - width : x, y, width, height, fill });
  }

  write(content, x, y, { size = 14, weight = 400, fill = INK, anchor = "start" } = {}) {
    const isolated = this.isMirrored ? `\u2068${content}\u2069` : content;
    return this.add("text", {
      x: this.isMirrored ? WIDTH - x : x, y, fill, "font-size": size, "font-weight": weight,
      "text-anchor": anchor,
    }, isolated);
  }

  /** Lines of a text, below what is there. */
  paragraph(content, size, weight, fill) {
    for (const row of wrapped(content, size, weight, WIDTH - 2 * EDGE)) {
      this.y += Math.round(size * 1.35);
      this.write(row, EDGE, this.y, { size, weight, fill });
    }
  }
}

/** About whom, how many, when: without it the picture means nothing. */
function sources(all, drawn) {
  const { asked, fingerprint, rehearsal } = state.estimate;
  const name = viewOf();
  const sure = `${Number((100 * state.chosen.confidence).toPrecision(6))}`;
  const hasInterval = drawn.some(({ low }) => low !== null);
  const whom = name ? hasInterval ? "sourceAnswered" : "sourceNoInterval" : "sourcePopulation";
  const { n } = shown();
  const short = fingerprint.slice(0, 32).match(/.{4}/g).join(" ");
  return [
    ...rehearsal ? [text("rehearsal")] : [],
    ...drawn.some(({ isSure }) => !isSure) ? [text("pale")] : [],
    [
      text("sourceReports", { n }), text(whom, { n: sure }),
      text(name === "" ? "counted" : name), today(),
      ...drawn.length < all ? [text("shownOf", { k: drawn.length, n: all })] : [],
    ].join(" · "),
    ["discreet", page.dataset.name, ...asked.length > 1 ? [state.estimate.question] : [],
      text("fingerprint", { what: `\u2066${short}\u2069` })].join(" · "),
  ];
}

/** The chart of what is looked at: an SVG, and its size. */
export function drawChart() {
  const sheet = new Sheet();
  const { all, drawn: rows } = pickRows();
  const drawn = rows.slice(0, BARS);
  const mine = state.estimate.asked.find(({ name }) => name === state.estimate.question);
  const title = wordsOf(mine);
  const background = sheet.add("rect", { width: WIDTH, fill: "#fff" });
  sheet.paragraph(title, 24, 700, INK);
  sheet.y += 4;
  if (shown() !== state.estimate) sheet.paragraph(groupOf(shown()), 16, 600, INK);
  sheet.paragraph(headline(), 15, 400, QUIET);
  sheet.y += 34;
  drawBars(sheet, drawn);
  sheet.y += 8;
  for (const source of sources(all, drawn)) sheet.paragraph(source, 12, 400, QUIET);
  const height = sheet.y + EDGE - 8;
  background.setAttribute("height", height);
  const attributes = {
    width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, "font-family": FONT, role: "img",
    direction: words.direction, "xml:lang": words.language, "aria-label": title,
  };
  for (const [key, value] of Object.entries(attributes)) sheet.root.setAttribute(key, value);
  return { svg: new XMLSerializer().serializeToString(sheet.root), width: WIDTH, height };
}

function drawBars(sheet, drawn) {
  const { top, ticks } = axisOf(drawn, false);
  const [start, end] = [EDGE + LABEL, WIDTH - EDGE - VALUE];
  const at = (share) => start + (end - start) * Math.min(1, Math.max(0, share / top));
  const height = ROW * drawn.length;
  for (const share of ticks) {
    sheet.rect(at(share), sheet.y, 1, height, LINE);
    const style = { size: 12, fill: QUIET, anchor: "middle" };
    sheet.write(roughly(share), at(share), sheet.y - 8, style);
  }
  for (const row of drawn) {
    drawBar(sheet, row, at);
    sheet.y += ROW;
  }
}

function drawBar(sheet, { item, share, low, high, isSure }, at) {
  const middle = sheet.y + ROW / 2;
  const label = sheet.write(cut(item, 14, LABEL - 14), EDGE, middle + 5);
  const fullName = document.createElementNS(SPACE, "title");
  fullName.textContent = item;
  label.append(fullName);
  if (share === null) return;
  const zero = at(0);
  sheet.rect(zero, middle - 7, Math.max(1, at(share) - zero), 14, isSure ? BAR : PALE);
  const values = sheet.write(percentOf(share), WIDTH - EDGE, middle + 5, { weight: 600, anchor: "end" });
  if (low !== null) {
    const interval = document.createElementNS(SPACE, "tspan");
    interval.setAttribute("font-weight", 400);
    interval.textContent = ` (${text("range", { low: tenths(low), high: tenths(high) })})`;
    values.append(interval);
  }
  if (low === null) return;
  sheet.rect(at(low), middle - 0.75, Math.max(0, at(high) - at(low)), 1.5, INK);
  for (const tip of [low, high]) sheet.rect(at(tip) - 0.75, middle - 5, 1.5, 10, INK);
}
