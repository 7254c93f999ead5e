import { Client, DiscreetError, ENGLISH, Ledger, askedNames, cleaned, shortFingerprint, speak } from "./discreet.js";

// Joined from the modules in answer/ by `make js`: change those.

// The participant's page: fetch and verify the survey, then hand over to page.js, which asks, shows
// what will be sent, and sends it.

// ---- dom.js -------------------------------------------------------------------------------------

const XHTML = "http://www.w3.org/1999/xhtml";

const $ = (id) => document.getElementById(id);

/** A new element with a text in it. */
function element(name, content = "", attributes = {}, space = XHTML) {
  const made = document.createElementNS(space, name);
  made.textContent = content;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const capital = (sentence) => sentence[0].toUpperCase() + sentence.slice(1);

const hex = (bytes, between = "") => {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(between);
};

// ---- words.js -----------------------------------------------------------------------------------

// The texts of the page, and the language in use.

const TEXTS = []; // texts/*.json, one per language, English first: filled in by the server
const STORED = "discreet-language"; // the key in the browser's storage of a chosen language

let [words] = TEXTS;

/** A text of the page, its placeholders filled in. */
function text(key, values = {}) {
  const form = words[key];
  const plural = () => new Intl.PluralRules(words.language).select(values.n);
  const chosen = typeof form === "string" ? form : form[plural()] ?? form.other;
  return chosen.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? figure(values[name]) : values[name];
  });
}

/** A label in the quotation marks of the language. */
const quoted = (what) => text("quoted", { what });

/** A number; in Arabic too with the digits that the factors have. */
const figure = (n) => n.toLocaleString(`${words.language}-u-nu-latn`);

/** A moment in the reader's time zone. */
function localTime(moment) {
  return new Date(moment).toLocaleString(`${words.language}-u-nu-latn`, {
    year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit",
    timeZoneName: "short",
  });
}

/** The language that the reader chose before, or null. */
function storedLanguage() {
  try {
    return window.localStorage.getItem(STORED);
  } catch { // storage is blocked, and the page says so when it matters
    return null;
  }
}

/** The language chosen before, or the first one that the browser asks for and the page has. */
function preferredWords() {
  const wanted = [storedLanguage(), ...navigator.languages].map((tag) => tag?.split("-")[0]);
  const first = wanted.find((tag) => TEXTS.some(({ language }) => language === tag));
  return TEXTS.find(({ language }) => language === first) ?? TEXTS[0];
}

function translate(chosen) {
  words = chosen;
  speak(words.sentences ?? ENGLISH);
  document.documentElement.lang = words.language;
  document.documentElement.dir = words.direction;
  for (const place of document.querySelectorAll("[data-text]")) {
    place.textContent = text(place.dataset.text);
  }
  $("groups").setAttribute("aria-label", text("groups"));
  $("chosen").setAttribute("aria-label", text("chosen"));
}

/** Remember the language that is in use. */
function storeLanguage() {
  try {
    window.localStorage.setItem(STORED, words.language);
  } catch { /* then the next visit asks again */ }
}

// ---- status.js ----------------------------------------------------------------------------------

// What is going on, and what went wrong.

const SLOW = 2_000; // milliseconds until a slow connection is called slow

let slowTimer;

/** Say what is happening. After two seconds the connection is called slow. */
function status(key) {
  clearTimeout(slowTimer);
  delete $("status").dataset.text; // from now on it has a text of its own
  $("status").hidden = !key;
  if (!key) return;
  $("status").textContent = text(navigator.onLine ? key : "offline");
  slowTimer = setTimeout(() => {
    $("status").textContent = text(navigator.onLine ? "slow" : "offline");
  }, SLOW);
}

/** Say that an attempt has failed, and that the next one is so many milliseconds away. */
function waiting(milliseconds) {
  clearTimeout(slowTimer);
  $("status").textContent = navigator.onLine
    ? text("away", { n: Math.max(1, Math.round(milliseconds / 1000)) }) : text("offline");
}

/** An error that is a text of the page: it is said in the language that is in use then. */
const spoken = (key, values) => new DiscreetError(key, text(key, values), { key, values });

let problem = []; // the arguments of showProblem, to say it again in another language

/**
 * Say what went wrong and what to do; behind a click the exact cause, in English for whoever helps.
 * `more` are the keys of further texts.
 */
function showProblem(error, more = []) {
  problem = [error, more];
  const ours = error instanceof DiscreetError;
  if (!ours) console.error(error);
  const message = !ours ? text("wrong") : error.key ? text(error.key, error.values) : error.message;
  const key = error.status === 410 ? "late" : error.status === 404 ? "missing"
    : error.isDamaged ? "damaged" : error.code;
  const kind = ours && words.errors[key];
  $("trouble").textContent = [kind || message, ...more.map((one) => text(one))].join(" ");
  $("help").hidden = !kind;
  $("help").open = false;
  $("cause").textContent = kind ? capital(message) : "";
  $("see").hidden = $("retry").hidden = true;
  $("problem").className = "card problem";
  $("problem").hidden = false;
  status(null);
}

/** The same, in the language that is in use now. */
const repeatProblem = () => showProblem(...problem);

// ---- invitation.js ------------------------------------------------------------------------------

const KEYS = ["server", "collection", "fingerprint"]; // of a fragment, each once

/**
 * Server, collection and pinned fingerprint of the page's address: /c/NAME#FINGERPRINT here,
 * #server=…&collection=…&fingerprint=… in a copy elsewhere.
 */
function readInvitation(address) {
  const { origin, pathname, hash } = new URL(address);
  const fragment = new URLSearchParams(/=/.test(hash) ? hash.slice(1) : "");
  const path = /^(.*)\/c\/([^/]+)\/?$/.exec(pathname);
  const server = fragment.get("server") ?? (path && origin !== "null" ? origin + path[1] : null);
  const name = fragment.get("collection") ?? (path && decoded(path[2]));
  const pinned = (/=/.test(hash) ? fragment.get("fingerprint") : hash.slice(1)) || null;
  if (!server || !name) {
    const form = "\u2066#server=https://host&collection=NAME&fingerprint=…\u2069"; // left to right
    throw spoken("uninvited", { form });
  }
  // strictly: what stands beside or instead of a fingerprint could only seem to pin the question
  const keys = [...fragment.keys()];
  const isOdd = keys.some((key, k) => !KEYS.includes(key) || keys.indexOf(key) < k);
  if (isOdd || (pinned && !/^[0-9a-f]{64}$/.test(pinned))) {
    throw spoken("noFingerprint");
  }
  const isSpelled = !path || (spellings(name).includes(path[2]) && pathname.endsWith(path[2]));
  if (!isSpelled || !isPlain(address) || !isPlain(server)) {
    throw spoken("personal");
  }
  return { server, name, pinned };
}

/** Whether an address has no user, no query and no empty folder, which nobody would see. */
function isPlain(address) {
  try {
    const { username, password, pathname } = new URL(address);
    const isBare = !username && !password && !pathname.includes("//");
    return isBare && !address.replace(/#.*/s, "").includes("?");
  } catch {
    return false;
  }
}

/** How a name stands in an address: as this module and as `discreet serve` write it. */
function spellings(name) {
  const plain = encodeURIComponent(name);
  const escaped = (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`;
  return [plain, plain.replace(/[!'()*]/g, escaped)];
}

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // it is spelled as no name is
  }
}

const OURS = ["opens", "closes", "minimum", "keeps"]; // rows in the language of the page

/** Show what happens to an answer, who asks, what for, from when to when. */
function showAbout(survey, wording, keeps) {
  const { about, name } = survey;
  $("facts").hidden = false;
  const caution = survey.caution();
  const isAlone = survey.questions.some(({ mechanism }) => mechanism.kind.alone);
  $("safe").textContent = caution ? "" : text(isAlone ? "safeAlone" : "safe");
  $("caution").hidden = !caution;
  $("caution").textContent = caution;
  const title = survey.questions.length === 1 ? wording.question(survey.only.name) : "";
  document.title = title || cleaned(name);
  $("question").textContent = document.title;
  $("rehearsal").hidden = !about.rehearsal;
  for (const id of ["question", "choices", "told"]) {
    if (wording.language) $(id).setAttribute("lang", wording.language);
  }
  const rows = [
    ...["organiser", "purpose", "consent", "contact", "notice"]
      .map((key) => [key, wording.about(key)]),
    ...["opens", "closes"].map((key) => [key, about[key] && localTime(about[key])]),
    ["minimum", about.minimum && text("minimumText", { n: about.minimum })],
  ].filter(([, said]) => said);
  if (rows.length || keeps === "reports") rows.push(["keeps", text(`${keeps}Kept`)]);
  const who = wording.about("organiser");
  $("about-title").textContent = text(who ? "whoAsksNamed" : "whoAsks", { who });
  $("trust-title").textContent = text("trustTitle");
  $("own").hidden = !about.consent;
  $("own-text").textContent = about.consent ? text("agreeOwn", { consent: wording.about("consent") }) : "";
  $("told").replaceChildren(...rows.flatMap(([key, said]) => {
    const language = OURS.includes(key) ? { lang: words.language } : {};
    const heading = element("dt", text(key), { lang: words.language });
    return [heading, element("dd", said, { dir: "auto", ...language })];
  }));
}

/** Where the results of a survey are. */
const resultsOf = ({ url }, { name }) => `${url}/c/${encodeURIComponent(name)}/results`;

/**
 * Say where the page is and where reports go, with the paths: one of their own would tell who
 * somebody is. And what the page verified, and what all answers together tell.
 */
function showPlace(client, survey, wording, pinned) {
  const { host, pathname } = new URL(client.url);
  const place = { name: cleaned(survey.name), host: host + pathname.replace(/\/$/, "") };
  const page = window.location;
  const here = page.host ? page.host + page.pathname : text("device");
  const isCopy = page.origin + page.pathname.replace(/\/c\/[^/]+$/, "") !== client.url;
  $("where").textContent = isCopy ? text("copy", { ...place, here }) : text("where", place);
  const fingerprint = shortFingerprint(survey.fingerprint);
  $("pinned").textContent = text(pinned ? "pinned" : "unpinned", { fingerprint });
  const several = survey.questions.length > 1;
  $("everything").hidden = !several;
  $("everything").textContent = several
    ? [survey.drawn(), survey.promise(wording.openly).sentence].join(" ").trim() : "";
}

// ---- choices.js ---------------------------------------------------------------------------------

const SHOWN = 60; // choices shown at once; a search narrows them, a button shows more
const FEW = 12; // choices that need no search
const GROUPS = [2, 40]; // numbers of first letters between which choosing one helps

/** The order of the list: as in the file, with the items that come last after the others. */
function orderItems({ items, last = [] }) {
  const late = new Map(last.map((item, k) => [item, k]));
  const rank = (k) => late.get(items[k]) ?? -1;
  return items.map((_, k) => k).sort((x, y) => rank(x) - rank(y) || x - y);
}

/** The list of answers to choose from. */
class Choices {
  chosen = new Set(); // indices of items
  #group = ""; // the first letter that is listed
  #most = SHOWN;

  /** @param {() => void} changed called after every choice */
  constructor(changed) {
    this.changed = changed;
  }

  /**
   * List the answers to another question.
   * @param {{items: string[], last?: string[], lists: boolean}} question @param {string[]} labels
   */
  ask(question, labels) {
    this.forget();
    this.order = orderItems(question);
    this.lists = question.lists;
    this.speak(labels);
  }

  /** The same answers in another language. */
  speak(labels) {
    this.items = labels;
    this.letters = labels.map((label) => {
      return Array.from(label.trim().normalize("NFD"))[0].toLocaleUpperCase();
    });
  }

  listen() {
    $("search").addEventListener("input", () => { this.#most = SHOWN; this.list(); });
    $("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault();
    });
    $("groups").addEventListener("click", ({ target }) => {
      if (target.matches("button")) this.#chooseGroup(target.dataset.letter);
    });
    $("show-more").addEventListener("click", () => {
      this.#most += SHOWN;
      this.list();
    });
    $("choices").addEventListener("change", (event) => {
      this.#choose(Number(event.target.value), event.target.checked);
    });
    $("chosen").addEventListener("click", ({ target }) => {
      const chip = target.closest("button");
      if (!chip) return;
      this.#choose(Number(chip.value), false);
      this.list();
      ($("chosen").querySelector("button") ?? $("search")).focus();
    });
  }

  /** The chosen items in the order of the file. */
  get sorted() {
    return [...this.chosen].sort((x, y) => x - y);
  }

  forget() {
    this.chosen.clear();
    [this.#group, this.#most] = ["", SHOWN];
  }

  #choose(k, on) {
    if (!this.lists) this.chosen.clear();
    if (on) this.chosen.add(k);
    else this.chosen.delete(k);
    this.changed();
  }

  #chooseGroup(letter) {
    [this.#group, this.#most] = [letter, SHOWN];
    for (const button of $("groups").children) {
      button.setAttribute("aria-pressed", button.dataset.letter === letter);
    }
    this.list();
  }

  /** First letters to choose from, if there are many answers. */
  listGroups() {
    const { compare } = new Intl.Collator();
    const letters = [...new Set(this.letters)].sort(compare);
    const [least, most] = GROUPS;
    const helps = this.items.length > SHOWN && letters.length >= least && letters.length <= most;
    $("groups").hidden = !helps;
    if (!helps) return;
    $("groups").replaceChildren(...["", ...letters].map((letter) => {
      return element("button", letter || text("all"), {
        type: "button", "data-letter": letter, "aria-pressed": letter === this.#group,
      });
    }));
  }

  list() {
    const wanted = $("search").value.trim().toLowerCase();
    const matches = this.order.filter((k) => {
      return this.items[k].toLowerCase().includes(wanted)
        && (!this.#group || wanted || this.letters[k] === this.#group);
    });
    const rest = matches.filter((k) => !this.chosen.has(k)).slice(0, this.#most);
    const shown = new Set([...this.chosen, ...rest]);
    const boxes = this.order.filter((k) => shown.has(k)).map((k) => this.#box(k));
    $("choices").replaceChildren($("legend"), ...boxes);
    const hidden = matches.filter((k) => !shown.has(k)).length;
    $("further").hidden = !hidden;
    $("count").textContent = !matches.length
      ? text("noMatch") : hidden ? text("hidden", { n: hidden }) : "";
  }

  #box(k) {
    const box = element("label");
    const input = element("input", "", {
      type: this.lists ? "checkbox" : "radio", name: "answer", value: k,
    });
    input.checked = this.chosen.has(k);
    box.append(input, element("span", this.items[k], { class: "what", dir: "auto" }));
    return box;
  }

  /** The chosen answers beside the button, if the list is long. */
  listChips() {
    const chosen = this.items.length > FEW ? [...this.chosen] : [];
    $("chosen").hidden = !chosen.length;
    $("chosen").replaceChildren(...chosen.map((k) => {
      const label = this.items[k];
      const chip = element("button", label, {
        type: "button", value: k, "aria-label": text("remove", { what: label }),
      });
      const entry = element("li");
      entry.append(chip);
      return entry;
    }));
  }
}

// ---- others.js ----------------------------------------------------------------------------------

/**
 * Send again what was on its way for others who answered on this device, without a word: they are
 * not here. @param {string} url @param {Survey} survey
 */
async function resumeOthers(url, survey) {
  for (let person = 2; Ledger.isKept(person); person++) {
    const client = new Client(url, { ledger: new Ledger(undefined, person) });
    try {
      const unsent = client.unsent(survey);
      if (unsent) await client.send(unsent);
    } catch (error) {
      console.warn(`person ${person}: ${error.message}`); // the next visit tries again
    }
  }
}

// ---- promise.js ---------------------------------------------------------------------------------

// What is promised for the chosen answers.

const QUOTED = 3; // chosen answers of one level that its promise names

/** The table of all promises. */
function listPromises(mechanism, promises, labels) {
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
function showPromise(mechanism, chosen, { isWeak, wholeFactor }, items) {
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
function showTogether(sentence) {
  $("together").hidden = !sentence;
  $("together").textContent = sentence;
}

/** Of a public question there is only one thing to say. */
function showOpenly() {
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

// ---- report.js ----------------------------------------------------------------------------------

// What a report says: before it is sent, and on the receipt.

const NAMED = 24; // named answers shown one by one
const REPEATED = 5; // the same on the receipt
const FEW_OWN = 5; // answers that people give in a list of any length
const WHOLE_BYTES = 64; // bytes of a report that the receipt shows in full

/**
 * Show every report that will be sent. `labels` gives the labels of a question by its name.
 * @param {Survey} survey @param {Prepared} prepared @param {Wording} wording
 */
function showReports(survey, { frames, repeated }, wording) {
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
function showReceipt(survey, frames, thanked, wording, url) {
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
async function copyProof() {
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
function listLabels(items, named, most) {
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

// ---- wording.js ---------------------------------------------------------------------------------

// A survey in the reader's language, where it has one; otherwise in its own.

const primary = (tag) => tag.split("-")[0];

/** The language of the survey that the reader knows best; "" for its own. */
function bestLanguage({ about, translations }) {
  const there = Object.keys(translations);
  for (const tag of [storedLanguage(), ...navigator.languages, words.language]) {
    if (!tag) continue;
    if (about.language && primary(about.language) === primary(tag)) return "";
    const found = there.find((one) => one === tag)
      ?? there.find((one) => primary(one) === primary(tag));
    if (found) return found;
  }
  return "";
}

/** What people read of a survey. */
class Wording {
  #survey;
  #translation;

  constructor(survey) {
    const language = bestLanguage(survey);
    this.#survey = survey;
    this.#translation = survey.translations[language] ?? {};
    this.language = language || survey.about.language;
  }

  /** A text of who asks, and what for. */
  about(key) {
    return this.#translation.about?.[key] ?? this.#survey.about[key];
  }

  /** The words of a question, public or not. */
  question(name) {
    const open = this.#open(name);
    if (open) return this.#translation.public?.[name]?.text ?? open.text;
    const own = this.#survey.question(name).mechanism.policy.question;
    return this.#translation.questions?.[name]?.text ?? own;
  }

  /** What the public questions are called: by their words, if those are translated. */
  get openly() {
    return this.#survey.openly.map(({ name }) => this.#translation.public?.[name]?.text ?? name);
  }

  /** The labels of its items, by their places. */
  labels(name) {
    const open = this.#open(name);
    const rows = open ? this.#translation.public : this.#translation.questions;
    const items = open ? open.items : this.#items(name);
    return items.map((item) => rows?.[name]?.items?.[item] ?? item);
  }

  #items(name) {
    const { mechanism, of } = this.#survey.question(name);
    if (!of) return mechanism.policy.items;
    const [first, second] = of.map((one) => this.labels(one));
    return first.flatMap((x) => second.map((y) => `${x} × ${y}`));
  }

  #open(name) {
    return this.#survey.openly.find((question) => question.name === name);
  }
}

// ---- page.js ------------------------------------------------------------------------------------

// What the page says of reports that this browser has already, by their state in the ledger.
const EARLIER = { shown: "knownShown", leaving: "knownLeaving", counted: "knownSent" };
const ORDER = ["leaving", "shown", "counted"]; // which of several states is said
const BUTTONS = ["prepare", "another", "go", "change"];

/** An open survey: answer the drawn questions, see what will be sent, send, receipt. */
class Page {
  #person = 1; // of those who share this device
  #steps = []; // the names of the questions that are still asked, public ones first
  #answers = {}; // by name: public ones, and those that a crossed question still needs
  #answered = 0; // questions of this visit that are done
  #unsent = false; // a report may not have arrived; the network's return sends it again
  #agreedTo = 0; // the overlaps that the participant sees, and agrees to
  #shownPromises = {}; // what the example needs to know of the promises
  #prepared; // the reports that are shown or sent
  #receipt; // the reports that were counted, and the keys of the texts that say so

  constructor(client, { survey, keeps, openResults }, pinned) {
    Object.assign(this, { client, survey, keeps, openResults, pinned });
    this.wording = new Wording(survey);
    this.choices = new Choices(() => {
      this.#promise();
      this.#ready();
    });
  }

  async start() {
    this.choices.listen();
    $("form").addEventListener("submit", (event) => { event.preventDefault(); this.#confirm(); });
    for (const id of ["agree", "agree-own"]) $(id).addEventListener("change", () => this.#ready());
    for (const id of ["back", "change"]) $(id).addEventListener("click", () => window.history.back());
    $("go").addEventListener("click", () => this.#next());
    $("copy").addEventListener("click", copyProof);
    $("again").addEventListener("click", () => this.#showReceipt(this.#frames(), ["counted"]));
    $("another").addEventListener("click", () => this.#somebodyElse());
    // the browser's own Back leads from a report or a receipt to the question
    window.addEventListener("popstate", () => this.#ask());
    $("send").addEventListener("click", () => this.#send());
    window.addEventListener("online", () => {
      if (!$("send").disabled) this.#resume();
    });
    await this.client.draw(this.survey);
    this.#plan();
    this.speak();
    status(null);
    this.#ask(null);
    this.#resume();
    resumeOthers(this.client.url, this.survey);
  }

  /** Say everything in the language in use. */
  speak() {
    const { survey, keeps, client, pinned } = this;
    const isWrong = !$("problem").hidden;
    this.wording = new Wording(survey);
    showAbout(survey, this.wording, keeps);
    $("final").textContent = text(keeps === "counts" ? "final" : "finalKept");
    $("note").textContent = text(keeps === "counts" ? "receiptNote" : "receiptNoteKept");
    showPlace(client, survey, this.wording, pinned);
    this.#showQuestion();
    this.#listChoices();
    if (!$("form").hidden) this.#ask(null);
    if (!$("sure").hidden) this.#showChosen();
    if (!$("check").hidden) showReports(survey, this.#prepared, this.wording);
    if (!$("receipt").hidden) this.#showReceipt(this.#receipt.frames, this.#receipt.thanked);
    this.#showHeadline();
    if (isWrong) repeatProblem();
  }

  /** The question that is asked; beside reports of several questions, what the survey is called. */
  #showHeadline() {
    if (this.#mine.length < 2) return;
    const name = this.#current;
    $("question").textContent = $("form").hidden && $("sure").hidden ? document.title
      : this.wording.question(name) || cleaned(name);
  }

  // ---- the questions

  /** The question that is asked now; of a survey that is answered, its first. */
  get #current() {
    return this.#steps[0] ?? this.#mine[0];
  }

  /** What this person is asked: public questions, then those that were drawn. */
  get #mine() {
    const drawn = this.#entries().flatMap(({ question }) => {
      return this.survey.question(question).of ?? [question];
    });
    const openly = this.survey.openly.map(({ name }) => name);
    return askedNames(this.survey).filter((name) => openly.includes(name) || drawn.includes(name));
  }

  /** Plan which questions are still to be asked. */
  #plan() {
    const { survey } = this;
    const undone = this.#entries().filter(({ state }) => state === "drawn");
    const needed = undone.flatMap(({ question }) => survey.question(question).of ?? [question]);
    const earlier = this.#frames()[0];
    if (earlier) { // the public answers of a visit that was interrupted
      const start = Number(survey.questions.length > 1);
      survey.openly.forEach(({ name }, k) => { this.#answers[name] = earlier.content[start + k]; });
    }
    const isOpen = (name) => this.#open(name) && !Object.hasOwn(this.#answers, name);
    this.#steps = undone.length
      ? askedNames(survey).filter((name) => isOpen(name) || needed.includes(name)) : [];
    this.#answered = this.#mine.length - this.#steps.length;
    this.#askCurrent();
  }

  #open(name) {
    return this.survey.openly.find((question) => question.name === name);
  }

  /** List the answers of the question that is asked now. */
  #askCurrent() {
    const name = this.#current;
    const open = this.#open(name);
    const mechanism = open ? null : this.survey.question(name).mechanism;
    this.mechanism = mechanism;
    const question = open ? { items: open.items, lists: false }
      : { ...mechanism.policy, lists: mechanism.kind.lists };
    this.choices.ask(question, this.wording.labels(name));
  }

  /** The question that is asked now, in words. */
  #showQuestion() {
    const name = this.#current;
    const total = this.#mine.length;
    this.#showHeadline();
    const at = Math.min(this.#answered + 1, total);
    $("progress").textContent = total < 2 ? "" : text("progress", { k: at, n: total });
    this.choices.speak(this.wording.labels(name));
    const { lists, order } = this.choices;
    $("legend").textContent = text(lists ? "yourAnswers" : "yourAnswer");
    $("find").hidden = order.length <= FEW;
    $("search").placeholder = text("search", { n: order.length });
    $("search").setAttribute("aria-label", $("search").placeholder);
    $("all").hidden = !this.mechanism;
    showTogether(this.mechanism ? this.survey.answerPromise(name) : "");
    if (!this.mechanism) return;
    const promises = this.mechanism.promises();
    this.#shownPromises = {
      isWeak: this.mechanism.caution() !== "",
      wholeFactor: promises.find(({ whole }) => whole)?.factor,
    };
    listPromises(this.mechanism, promises, this.choices.items);
  }

  #listChoices() {
    this.choices.listGroups();
    this.choices.list();
    this.#promise();
  }

  #promise() {
    if (this.mechanism) {
      showPromise(this.mechanism, this.choices.sorted, this.#shownPromises, this.choices.items);
    } else showOpenly();
    this.choices.listChips();
  }

  /** What this browser remembers of this survey. */
  #entries() {
    return this.client.ledger.find(this.client.origin, this.survey);
  }

  /** The reports that this browser has of this survey. */
  #frames() {
    return this.client.reports(this.survey);
  }

  /** The state of the reports that is said; undefined without any. */
  get #state() {
    const states = this.#entries().map(({ state }) => state);
    if (this.#steps.length && !states.includes("leaving")) return undefined;
    return ORDER.find((state) => states.includes(state));
  }

  /** Show the question, with what this browser remembers of it. */
  #ask(focus = "question") {
    const state = this.#state;
    this.#unsent = state === "leaving";
    const isCounted = state === "counted";
    $("before").hidden = !state && this.#person === 1;
    $("again").hidden = !isCounted;
    $("person").hidden = this.#person === 1;
    $("person").textContent = text("person", { n: this.#person });
    $("known").textContent = state ? text(EARLIER[state]) : "";
    this.#showOverlap();
    // not before a report is counted: choosing between two draws would reveal more
    const begun = this.#frames().length > 0;
    $("shared").hidden = !isCounted && (begun || $("consent").hidden);
    this.#ready();
    this.#show("form", focus);
  }

  /**
   * Surveys about the same items under another name or fingerprint: show what they sum to, before
   * anything is drawn.
   */
  #showOverlap() {
    const { client, survey } = this;
    const isSent = this.#entries().every(({ state }) => state === "leaving" || state === "counted");
    const overlaps = isSent ? [] : client.ledger.overlaps(client.origin, survey);
    $("consent").hidden = !overlaps.length;
    this.#agreedTo = overlaps.length;
    if (overlaps.length) {
      $("summed").textContent = client.ledger.summed(client.origin, survey, overlaps).sentence;
    }
  }

  /** Enable the button once there is an answer, or all reports: with them answers were forgotten. */
  #ready() {
    const waits = (!$("consent").hidden && !$("agree").checked)
      || (!$("own").hidden && !$("agree-own").checked);
    const { lists } = this.choices;
    const isEmpty = !this.choices.chosen.size && this.#steps.length > 0;
    $("prepare").disabled = waits || (!lists && isEmpty);
    const key = this.#steps.length < 2 ? "prepare" : "next";
    $("prepare").textContent = text(lists && isEmpty ? `${key}None` : key);
  }

  /** Another person on the same device, with a ledger of their own. */
  async #somebodyElse() {
    this.choices.forget(); // at once: drawing takes a moment, and may fail
    $("sure-title").textContent = "";
    this.#answers = {};
    $("form").reset();
    $("form").hidden = true;
    this.#person += 1;
    this.client.ledger = new Ledger(undefined, this.#person);
    await this.#guard(async () => {
      await this.client.draw(this.survey);
      this.#plan();
      this.#forget();
      this.#ask();
      this.#resume();
    });
  }

  /** Remove from the page and from memory everything that a person typed, chose or opened. */
  #forget() {
    this.choices.forget();
    const goesOn = this.#steps.length > 0 && this.#answered > 0; // consent is to the whole survey
    const [agreed, own] = ["agree", "agree-own"].map((id) => goesOn && $(id).checked);
    $("form").reset();
    [$("agree").checked, $("agree-own").checked] = [agreed, own];
    if (!agreed) this.#agreedTo = 0;
    $("sure-title").textContent = "";
    for (const details of $("form").querySelectorAll("details")) details.open = false;
    this.#showQuestion();
    this.#listChoices();
  }

  // ---- the reports

  /** Show what was chosen, before anything is drawn: a slip can still be mended. */
  #confirm() {
    if (!this.#steps.length) { // it was drawn before
      this.#next();
      return;
    }
    this.#showChosen();
    this.#step("sure");
  }

  #showChosen() {
    const { sorted, items: labels } = this.choices;
    const { shown, rest } = listLabels(labels, sorted, FEW);
    const items = [...shown.map(quoted), ...rest].join(", ");
    const key = this.mechanism ? "sure" : "sureOpenly";
    $("sure-title").textContent = text(sorted.length ? key : "sureNone", { items });
  }

  /** Take the answer; then the next question, or what will be sent. */
  async #next() {
    await this.#guard(async () => {
      const { client, survey } = this;
      const agree = $("agree").checked ? this.#agreedTo : 0;
      const [name] = this.#steps;
      const chosen = this.choices.sorted;
      if (name !== undefined) this.#answers[name] = this.choices.lists ? chosen : chosen[0];
      for (const id of BUTTONS) $(id).disabled = true; // until the report is drawn, once
      const options = { agree, partial: this.#steps.length > 1 };
      this.#prepared = await client.prepare(survey, this.#answers, options);
      if (name !== undefined) {
        this.#steps = this.#steps.filter((step) => step !== name);
        this.#answered += 1;
      }
      // a report is written down, so its answer is not needed any more
      this.#keepNeeded(this.#prepared.missing);
      this.#askCurrent();
      this.#forget();
      if (this.#steps.length) {
        this.#ask();
        return;
      }
      showReports(survey, this.#prepared, this.wording);
      this.#step("check");
    });
    for (const id of BUTTONS) $(id).disabled = id === "prepare" && $(id).disabled;
  }

  /** Forget every answer but public ones and those that a question still needs. */
  #keepNeeded(missing) {
    const needed = missing.flatMap((name) => this.survey.question(name).of ?? []);
    for (const name of Object.keys(this.#answers)) {
      if (!this.#open(name) && !needed.includes(name)) delete this.#answers[name];
    }
  }

  async #send() {
    $("send").disabled = $("back").disabled = $("another").disabled = true;
    $("problem").hidden = true;
    this.#unsent = true;
    status("sending");
    await this.#guard(async () => {
      const { accepted, frames, repeated } = await this.client.send(this.#prepared);
      const thanked = [accepted ? "counted" : "had", ...repeated ? ["madeBefore"] : []];
      if (!this.#entries().some(({ state }) => state === "drawn")) {
        [this.#steps, this.#answers] = [[], {}]; // another tab may have drawn what is chosen here
        this.#forget();
      }
      if (this.#steps.length) { // reports of an interrupted visit; there are questions left
        this.#ask();
        return;
      }
      this.#showReceipt(frames, thanked);
    });
    status(null);
    $("send").disabled = $("back").disabled = $("another").disabled = false;
    if (!$("check").hidden) $("send").focus(); // a disabled button loses the focus
  }

  #showReceipt(frames, thanked) {
    this.#unsent = false;
    this.#receipt = { frames, thanked };
    const results = this.openResults && resultsOf(this.client, this.survey);
    showReceipt(this.survey, frames, thanked, this.wording, results);
    this.#step("receipt");
  }

  /** Send reports again that were on their way when this page was left, or say that they arrived. */
  async #resume() {
    const unsent = this.client.unsent(this.survey);
    if (unsent) {
      this.#prepared = unsent;
      await this.#send();
    } else if (this.#unsent && this.#state === "counted") {
      this.#showReceipt(this.#frames(), ["counted"]); // another tab has sent them meanwhile
    }
  }

  // ---- around

  /** A step that the browser's Back leads back from; sending is not one of its own. */
  #step(section) {
    if (!$("form").hidden) window.history.pushState(null, "");
    this.#show(section, `${section}-title`);
  }

  #show(section, focus) {
    for (const id of ["form", "sure", "check", "receipt"]) $(id).hidden = id !== section;
    this.#showHeadline();
    $("problem").hidden = true;
    if (focus) $(focus).focus();
  }

  async #guard(work) {
    try {
      await work();
    } catch (error) {
      if (error.code !== "network") this.#unsent = false;
      if (error.code === "overlap") {
        // answered in another tab meanwhile: ask for consent
        $("agree").checked = false;
        this.#ask();
      }
      if (error.code === "answer") { // the ledger was removed meanwhile
        this.#plan();
        this.#forget();
        this.#ask();
      }
      this.#ready();
      showProblem(error, this.#unsent ? ["kept"] : []);
    }
  }
}

const WORTH_TRYING = ["network", "server", "refused", "ledger"]; // codes of errors that may pass

let repeat = () => {}; // says again, in another language, what was said last

/** Fetch and verify the question; when the network comes back, again. */
async function openQuestion() {
  status("fetching");
  $("problem").hidden = true;
  $("lead").hidden = false;
  try {
    const { server, name, pinned } = readInvitation(document.URL);
    $("where").textContent = `discreet · ${cleaned(name)}`;
    const client = new Client(server, { waiting });
    const collection = await client.describe(name, { fingerprint: pinned });
    if (collection.state !== "open") {
      repeat = () => showClosed(client, collection);
      repeat();
      return;
    }
    const page = new Page(client, collection, pinned);
    await page.start();
    repeat = () => page.speak();
  } catch (error) {
    repeat = () => {
      showProblem(error);
      $("lead").hidden = true; // there is nothing to answer
      $("retry").hidden = !WORTH_TRYING.includes(error.code) || error.status === 404;
    };
    repeat();
    if (error.code === "network") window.addEventListener("online", openQuestion, { once: true });
  }
}

/** A survey that has not opened yet, or is closed. */
function showClosed(client, { survey, state, keeps, openResults }) {
  const { opens, closes } = survey.about;
  const isOver = closes && Date.parse(closes) <= Date.now();
  const key = state === "upcoming" ? "upcoming" : isOver ? "closedOn" : "closed";
  showAbout(survey, new Wording(survey), keeps);
  const time = localTime(isOver ? closes : opens ?? 0);
  showProblem(spoken(key, { time }), state === "closed" ? tookPart(client, survey) : []);
  $("problem").classList.replace("problem", "good"); // nothing is wrong
  $("lead").hidden = true;
  $("see").hidden = state !== "closed" || !openResults;
  $("see-link").href = resultsOf(client, survey);
}

/** The keys of what this browser knows of a survey that is closed: whether it has answered. */
function tookPart(client, survey) {
  try {
    if (client.unsent(survey)) return ["lateUnsent"];
    return client.reports(survey).length ? ["took"] : [];
  } catch { // storage is blocked or damaged, which does not matter any more
    return [];
  }
}

/** Whether another website shows this page in a frame. */
function isFramed() {
  try {
    return window.parent !== window && !window.parent.document;
  } catch { // another website's
    return true;
  }
}

function listLanguages() {
  $("language").replaceChildren(...TEXTS.map(({ language, name }) => {
    return element("option", name, { value: language, lang: language });
  }));
  $("language").value = words.language;
  $("languages").hidden = false;
  $("language").addEventListener("change", ({ target }) => {
    translate(TEXTS.find(({ language }) => language === target.value));
    storeLanguage();
    repeat();
  });
}

translate(preferredWords());
listLanguages();
$("framed").hidden = !isFramed();
$("alone").href = document.URL;
document.documentElement.dataset.begun = ""; // this browser understands the script
if (AbortSignal.timeout) {
  window.addEventListener("hashchange", () => window.location.reload());
  $("try").addEventListener("click", openQuestion);
  openQuestion();
} else {
  repeat = () => showProblem(spoken("old"));
  repeat();
  $("lead").hidden = true;
}
