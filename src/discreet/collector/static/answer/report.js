// What a report says: before it is sent, and on the receipt.
import { $, element, hex } from "./dom.js";
import { figure, localTime, quoted, text } from "./words.js";

const NAMED = 24; // named answers shown one by one
const REPEATED = 5; // the same on the receipt
const FEW_OWN = 5; // answers that people give in a list of any length
const WHOLE_BYTES = 64; // bytes of a report that the receipt shows in full

/**
 * Show every report that will be sent. `labels` gives the labels of a question by its name.
 * @param {Survey} survey @param {Prepared} prepared @param {Wording} wording
 */
export function showReports(survey, { frames, repeated }, wording) {
  const blocks = frames.map((frame) => reportOf(survey, frame, wording));
  const [first, ...rest] = blocks;
  const isMixed = !survey.caution();
  $("check-title").textContent = text(isMixed ? "checkTitle" : "checkTitlePlain");
  $("may-be").hidden = !isMixed;
  $("repeated").hidden = !repeated;
  $("repeated").textContent = text("again");
  $("told-openly").hidden = !first.openly.length;
  $("told-openly").replaceChildren(...first.openly.map((said) => element("li", said)));
  $("often").textContent = first.often;
  $("meaning").textContent = first.meaning;
  $("bytes").textContent = first.bytes;
  $("bits").replaceChildren(...first.bits);
  $("first-report").hidden = !rest.length;
  $("first-report").textContent = first.title;
  $("more-reports").replaceChildren(...rest.flatMap(({ title, often, meaning, bytes, bits }) => {
    const list = element("ul", "", { class: "bits" });
    list.append(...bits);
    const code = element("code", bytes, { class: "bytes", dir: "ltr" });
    const details = element("details");
    details.append(element("summary", text("inDetail")), element("p", meaning));
    return [element("h3", title, { dir: "auto" }), element("p", often), list, details, code];
  }));
}

function reportOf(survey, { question, content, report }, wording) {
  const { mechanism } = survey.question(question);
  const { lists } = mechanism.kind;
  const { named, mine, others, sentence } = mechanism.meaning(report);
  const { shown, rest } = listLabels(wording.labels(question), named, NAMED);
  const own = lists ? mechanism.padding || FEW_OWN : 1; // at most, or most often
  const key = lists && mechanism.encoding.samples ? "oftenDrawn" : "often";
  const often = [text(key, { mine: percents(mine), others: percents(others) })];
  if (named.length > 2 * own) often.push(text("chance"));
  if (!named.length) often.unshift(text("nothingNamed"));
  const openly = survey.openly.map(({ name }, k) => {
    const place = content[Number(survey.questions.length > 1) + k];
    return text("toldOpenly", { what: `${wording.question(name)} ${wording.labels(name)[place]}` });
  });
  return {
    title: titleOf(survey, question, wording), openly, often: often.join(" "),
    meaning: sentence, bytes: hex(content, " "),
    bits: [...shown, ...rest].map((label) => element("li", label, { dir: "auto" })),
  };
}

/** What a report is about: its question, or both of a crossed one. */
function titleOf(survey, name, wording) {
  const { of } = survey.question(name);
  return (of ?? [name]).map((one) => wording.question(one) || one).join(" × ");
}

/** The counted reports; `thanked` are the keys of the texts that say so. */
export function showReceipt(survey, frames, thanked, wording, url) {
  const { closes, minimum } = survey.about;
  $("afterwards").textContent = [
    ...closes ? [text("nextCloses", { time: localTime(closes) })] : [],
    text(minimum ? "nextMinimum" : "nextOrganiser", { n: minimum }),
  ].join(" ");
  $("results").hidden = !url;
  if (url) $("results-link").href = url;
  $("copied").textContent = "";
  $("thanks").textContent = thanked.map((key) => text(key)).join(" ");
  const rows = frames.map((frame) => receiptOf(survey, frame, wording));
  const [first, ...rest] = rows;
  $("named").textContent = first.named;
  $("sent").textContent = first.sent;
  $("id").textContent = first.id;
  $("survey").textContent = survey.fingerprint;
  $("more-receipts").replaceChildren(...rest.map(({ sent, named, id }) => {
    const list = element("dl", "", { class: "receipt" });
    for (const [head, value, code] of [
      ["reportHead", sent, true], ["namesHead", named, false], ["numberHead", id, true],
    ]) {
      const cell = element("dd");
      cell.append(code ? element("code", value, { dir: "ltr" }) : value);
      list.append(element("dt", text(head)), cell);
    }
    return list;
  }));
  $("save").href = `data:text/plain;charset=utf-8,${encodeURIComponent(proofText())}`;
}

/** The receipt as a text, to copy or to save. */
function proofText() {
  const said = [...$("proof").querySelectorAll("dt, dd")].map(({ textContent }) => textContent);
  const lines = said.map((one, k) => (k % 2 ? `${one}\n` : `${one}: `));
  return `${document.title}\n${lines.join("")}`;
}

/** Copy it; where the browser does not allow that, mark it and say so. */
export async function copyProof() {
  try {
    await navigator.clipboard.writeText(proofText());
    $("copied").textContent = text("copied");
  } catch {
    window.getSelection().selectAllChildren($("receipt-lines"));
    $("copied").textContent = text("copyRefused");
  }
}

function receiptOf(survey, { question, id, content, report }, wording) {
  const { mechanism } = survey.question(question);
  const labels = wording.labels(question);
  const { shown, rest } = listLabels(labels, mechanism.meaning(report).named, REPEATED);
  const listed = shown.map(quoted).join(", ");
  const all = hex(content);
  const start = all.slice(0, 2 * WHOLE_BYTES);
  return {
    named: listed ? [listed, ...rest].join(" ") : text("noAnswer"),
    sent: content.length > WHOLE_BYTES ? text("bytesMore", { start, n: content.length }) : all,
    id: hex(id),
  };
}

/** The labels of the first so many items, and how many more there are. */
export function listLabels(items, named, most) {
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
