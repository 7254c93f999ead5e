// What is promised for the chosen answers.
import { $, capital, element, quoted } from "./dom.js";
import { text } from "./words.js";

const QUOTED = 3; // chosen answers of one level that its promise names

/** The table of all promises. */
export function listPromises(mechanism, promises) {
  $("promises").replaceChildren(...promises.map((promise, k) => {
    const row = element("tr");
    row.append(...cells(mechanism, k, promise).map((cell) => element("td", cell)));
    return row;
  }));
}

/** Whom a promise is about, and what it says. */
function cells(mechanism, k, { level, items, examples, sentence, whole }) {
  if (whole) return [text("wholeLists"), capital(sentence.replace(/^[^:]*: */, ""))];
  if (level === null) return [text("notProtected"), sentence];
  const more = items > examples.length ? ", …" : "";
  return [`${level}: ${examples.join(", ")}${more}`, mechanism.promise(k, text("ofThese"))];
}

/**
 * For the chosen items: an example in numbers of people, then the exact promises, level by level.
 * `wholeFactor` is the factor between any two lists.
 */
export function showPromise(mechanism, chosen, { isWeak, wholeFactor }) {
  const { kind, padding, encoding, policy: { items, levelOf } } = mechanism;
  const levels = new Map();
  for (const k of chosen) levels.set(levelOf[k], [...levels.get(levelOf[k]) ?? [], items[k]]);
  const sentences = Array.from(levels, ([level, labels]) => {
    const what = oneOf(labels);
    return mechanism.promise(level, kind.lists ? text("anyElse", { what }) : what);
  });
  if (padding && encoding.samples && chosen.length) sentences.push(text("tickedOne"));
  else if (padding && chosen.length > padding) {
    sentences.push(text("ticked", { n: padding, k: chosen.length }));
  }
  if (kind.lists) sentences.push(mechanism.promiseOf(chosen).sentence);
  $("promise").classList.toggle("warn", kind.alone);
  $("promise").hidden = !sentences.length;
  $("sentences").replaceChildren(...sentences.map((sentence) => element("p", sentence)));
  $("exact").open ||= kind.alone;
  const [first] = levels.keys();
  const hidden = kind.alone || first === undefined || isWeak;
  $("example").hidden = hidden;
  $("frequencies").textContent = ""; // a hidden example must not keep an answer either
  $("people").replaceChildren();
  if (hidden) return;
  const factor = kind.lists ? wholeFactor : mechanism.factor(first);
  showExample(quoted(levels.get(first)[0]), factor, kind.lists ? "exampleHaving" : "example");
}

/** Quoted labels, as a promise about any one of them names them. */
function oneOf(labels) {
  if (labels.length === 1) return quoted(labels[0]);
  const listed = labels.slice(0, QUOTED).map(quoted).join(", ");
  const n = labels.length - QUOTED;
  return n > 0 ? text("oneOfMore", { items: listed, n }) : text("oneOf", { items: listed });
}

/**
 * If 10 of 100 people hold the answer, how many may hold it among those who send one report: by
 * Bayes, from the factor, rounded away from 10. People with and without an item may differ in their
 * other items too, so for a list it is the factor of whole lists.
 */
function showExample(what, factor, key) {
  const high = factor < 1e6 ? Math.ceil(1000 * factor / (10 * factor + 90) - 1e-9) : 100;
  const low = Math.floor(1000 / (10 + 90 * factor) + 1e-9);
  $("frequencies").textContent = text(key, { what, low, high });
  $("people").replaceChildren(...Array.from({ length: 100 }, (_, k) => {
    return element("circle", "", {
      cx: 5 + 10 * (k % 10), cy: 5 + 10 * Math.floor(k / 10), r: 3.6,
      class: k < low ? "surely" : k < high ? "perhaps" : "others",
    }, "http://www.w3.org/2000/svg");
  }));
}
