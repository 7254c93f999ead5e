// What a report says: before it is sent, and on the receipt.
import { $, element, hex, quoted } from "./dom.js";
import { figure, text } from "./words.js";

const NAMED = 24; // named answers shown one by one
const REPEATED = 5; // the same on the receipt
const FEW_OWN = 5; // answers that people give in a list of any length
const WHOLE_BYTES = 64; // bytes of a report that the receipt shows in full

export function showReport(mechanism, { report, repeated }) {
  const { lists } = mechanism.kind;
  const { named, mine, others, sentence } = mechanism.meaning(report);
  const { shown, rest } = listLabels(mechanism, named, NAMED);
  const own = lists ? mechanism.padding || FEW_OWN : 1; // at most, or most often
  const key = lists && mechanism.encoding.samples ? "oftenDrawn" : "often";
  const often = [text(key, { mine: percents(mine), others: percents(others) })];
  if (named.length > 2 * own) often.push(text("chance"));
  if (!named.length) often.unshift(text("nothingNamed"));
  if (repeated) often.unshift(text("again"));
  $("often").textContent = often.join(" ");
  $("meaning").textContent = sentence;
  $("bytes").textContent = hex(report, " ");
  $("bits").replaceChildren(...[...shown, ...rest].map((label) => {
    return element("li", label, { dir: "auto" });
  }));
}

/** The counted report, as the ledger keeps it; `thanked` are the keys of the texts that say so. */
export function showReceipt(mechanism, { report, id }, thanked) {
  $("thanks").textContent = thanked.map((key) => text(key)).join(" ");
  const bytes = Uint8Array.from(report.match(/../g), (pair) => parseInt(pair, 16));
  const { shown, rest } = listLabels(mechanism, mechanism.meaning(bytes).named, REPEATED);
  const listed = shown.map(quoted).join(", ");
  $("named").textContent = listed ? [listed, ...rest].join(" ") : text("noAnswer");
  const start = report.slice(0, 2 * WHOLE_BYTES);
  $("sent").textContent = bytes.length > WHOLE_BYTES
    ? text("bytesMore", { start, n: bytes.length }) : report;
  $("id").textContent = id;
  $("mechanism").textContent = mechanism.fingerprint;
}

/** The labels of the first so many items, and how many more there are. */
function listLabels({ policy: { items } }, named, most) {
  const n = named.length - most;
  return {
    shown: named.slice(0, most).map((k) => items[k]),
    rest: n > 0 ? [text("more", { n })] : [],
  };
}

/** Chances of 100 people: one number, or the ends of a range. */
function percents(chances) {
  const ends = [Math.min(...chances), Math.max(...chances)]
    .map((share) => figure(Math.round(100 * share)));
  return ends[0] === ends[1] ? ends[0] : `${ends[0]}–${ends[1]}`;
}
