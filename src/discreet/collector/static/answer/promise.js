// What is promised for the chosen answers.
import { $, capital, element } from "./dom.js";
import { quoted, text } from "./words.js";

const QUOTED = 3; // chosen answers of one level that its promise names

/** The table of all promises. */
export function listPromises(mechanism, promises, labels) {
  $("promises").replaceChildren(...promises.map((promise, k) => {
    const row = element("tr");
    row.append(...cells(mechanism, k, promise, labels).map((cell) => element("td", cell)));
    return row;
  }));
}

/** Whom a promise is about, and what it says. */
function cells(mechanism, k, { level, items, examples, sentence, whole }, labels) {
  if (whole) return [text("wholeLists"), capital(sentence.replace(/^[^:]*: */, ""))];
  if (level === null) return [text("notProtected"), sentence];
  const more = items > examples.length ? ", …" : "";
  const places = examples.map((item) => labels[mechanism.policy.items.indexOf(item)]);
  return [`${level}: ${places.join(", ")}${more}`, mechanism.promise(k, text("ofThese"))];
}

/**
 * For the chosen items: an example in numbers of people, then the exact promises, level by level.
 * `wholeFactor` is the factor between any two lists; `items` are the labels.
 */
export function showPromise(mechanism, chosen, { isWeak, wholeFactor }, items) {
  showLead(false);
  const { kind, padding, encoding, policy: { levelOf } } = mechanism;
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
  if (kind.alone) $("exact").open = true;
  const [first] = levels.keys();
  const hidden = kind.alone || first === undefined || isWeak;
  clearExample(hidden);
  if (hidden) return;
  const rise = kind.lists ? wholeFactor : mechanism.factor(first);
  const fall = kind.lists ? wholeFactor : mechanism.fall(first);
  showExample(quoted(levels.get(first)[0]), rise, fall, kind.lists ? "exampleHaving" : "example");
}

/** What all reports together tell of this answer; nothing where only one report tells of it. */
export function showTogether(sentence) {
  $("together").hidden = !sentence;
  $("together").textContent = sentence;
}

/** Of a public question there is only one thing to say. */
export function showOpenly() {
  showLead(true);
  $("promise").hidden = false;
  $("promise").classList.add("warn");
  clearExample(true);
  $("sentences").replaceChildren(element("p", text("openly")));
  $("exact").open = true;
}

/** A hidden example must not keep an answer either. */
function clearExample(hidden) {
  $("example").hidden = hidden;
  $("frequencies").textContent = "";
  $("people").replaceChildren();
}

const svgPart = (name, attributes) => element(name, "", attributes, "http://www.w3.org/2000/svg");

/** Quoted labels, as a promise about any one of them names them. */
function oneOf(labels) {
  if (labels.length === 1) return quoted(labels[0]);
  const listed = labels.slice(0, QUOTED).map(quoted).join(", ");
  const n = labels.length - QUOTED;
  return n > 0 ? text("oneOfMore", { items: listed, n }) : text("oneOf", { items: listed });
}

/**
 * If 10 of 100 people hold the answer, how many may hold it among those who send one report: by
 * Bayes, from how far odds can rise and fall, rounded away from 10. People with and without an item may differ in their
 * other items too, so for a list it is the factor of whole lists.
 */
function showExample(what, rise, fall, key) {
  const high = rise < 1e6 ? Math.ceil(1000 * rise / (10 * rise + 90) - 1e-9) : 100;
  const low = Math.floor(1000 / (10 + 90 * fall) + 1e-9);
  $("frequencies").textContent = text(key, { what, low, high });
  $("people").replaceChildren(...Array.from({ length: 100 }, (_, k) => {
    const [x, y] = [5 + 10 * (k % 10), 3 + 10 * Math.floor(k / 10)];
    const person = svgPart("g", { class: k < low ? "surely" : k < high ? "perhaps" : "others" });
    const shoulders = `M${x - 3.4} ${y + 5.5}a3.4 3.2 0 0 1 6.8 0z`;
    person.append(svgPart("circle", { cx: x, cy: y, r: 1.9 }), svgPart("path", { d: shoulders }));
    return person;
  }));
}

/** The sentence above the answers: chance protects this one, or it is sent as it is. */
function showLead(isOpen) {
  $("lead").hidden = isOpen;
  $("lead-open").hidden = !isOpen;
}
