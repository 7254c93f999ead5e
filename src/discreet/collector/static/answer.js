import { Client, DiscreetError, ENGLISH, Ledger, cleaned, shortFingerprint, speak } from "./discreet.js";

// Joined from the modules in answer/ by `make js`: change those.

// The participant's page: ask, verify, choose, show what will be sent, send, receipt. The answer
// never leaves this script.

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
const quoted = (label) => `“${label}”`;

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

/** A number; in Arabic too with the digits that the factors have. */
const figure = (n) => n.toLocaleString(`${words.language}-u-nu-latn`);

/** A moment in the reader's time zone. */
function localTime(moment) {
  return new Date(moment).toLocaleString(`${words.language}-u-nu-latn`, {
    year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit",
    timeZoneName: "short",
  });
}

/** The language chosen before, or the first one that the browser asks for and the page has. */
function preferredWords() {
  let before = null;
  try {
    before = window.localStorage.getItem(STORED);
  } catch { /* storage is blocked, and the page says so when it matters */ }
  const wanted = [before, ...navigator.languages].map((tag) => tag?.split("-")[0]);
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

// ---- invitation.js ------------------------------------------------------------------------------

/**
 * Server, collection and pinned fingerprint: /c/NAME#FINGERPRINT here,
 * #server=…&collection=…&fingerprint=… in a copy elsewhere.
 */
function readInvitation({ origin, pathname, hash }) {
  const fragment = new URLSearchParams(
    /=/.test(hash) ? hash.slice(1) : `fingerprint=${hash.slice(1)}`,
  );
  const path = /^(.*)\/c\/([^/]+)\/?$/.exec(pathname);
  const server = fragment.get("server") ?? (path && origin !== "null" ? origin + path[1] : null);
  const name = fragment.get("collection") ?? (path && decodeURIComponent(path[2]));
  const pinned = fragment.get("fingerprint") || null;
  if (!server || !name) {
    const form = "#server=https://host&collection=NAME&fingerprint=…";
    throw new DiscreetError("invitation", text("uninvited", { form }));
  }
  if (pinned && !/^[0-9a-f]{64}$/.test(pinned)) {
    throw new DiscreetError("invitation", text("noFingerprint"));
  }
  return { server, name, pinned };
}

const OURS = ["opens", "closes", "minimum", "keeps"]; // rows in the language of the page

/** Show what happens to an answer, who asks, what for, from when to when. */
function showAbout(mechanism, name, keeps) {
  const { policy } = mechanism;
  const { about } = policy;
  const caution = mechanism.caution();
  $("safe").textContent = caution ? "" : text("safe");
  $("caution").hidden = !caution;
  $("caution").textContent = caution;
  document.title = policy.question || cleaned(name);
  $("question").textContent = policy.question || cleaned(name);
  $("rehearsal").hidden = !about.rehearsal;
  for (const id of ["question", "choices", "told"]) {
    if (about.language) $(id).setAttribute("lang", about.language);
  }
  const rows = [
    ...["organiser", "purpose", "consent", "contact"].map((key) => [key, about[key]]),
    ...["opens", "closes"].map((key) => [key, about[key] && localTime(about[key])]),
    ["minimum", about.minimum && text("minimumText", { n: about.minimum })],
  ].filter(([, said]) => said);
  if (rows.length || keeps === "reports") rows.push(["keeps", text(`${keeps}Kept`)]);
  $("about").hidden = !rows.length;
  $("told").replaceChildren(...rows.flatMap(([key, said]) => {
    const language = OURS.includes(key) ? { lang: words.language } : {};
    const heading = element("dt", text(key), { lang: words.language });
    return [heading, element("dd", said, { dir: "auto", ...language })];
  }));
}

// ---- choices.js ---------------------------------------------------------------------------------

const SHOWN = 60; // choices shown at once; a search narrows them, a button shows more
const FEW = 12; // choices that need no search
const GROUPS = [2, 40]; // numbers of first letters between which choosing one helps

/**
 * The order of the list: more than 12 items by alphabet; fewer as in the file. If the file has them
 * level by level, the levels that need the most protection come last.
 */
function orderItems({ items, levelOf, levels }) {
  const places = items.map((_, k) => k);
  if (items.length > FEW) {
    const { compare } = new Intl.Collator(undefined, { numeric: true });
    return places.sort((x, y) => compare(items[x], items[y]) || x - y);
  }
  if (levelOf.some((level, k) => level < levelOf[k - 1])) return places;
  const epsilon = (k) => levels[levelOf[k]].epsilon;
  return places.sort((x, y) => epsilon(y) - epsilon(x) || x - y);
}

/** The list of answers to choose from. */
class Choices {
  chosen = new Set(); // indices of items
  #group = ""; // the first letter that is listed
  #most = SHOWN;

  /** @param {() => void} changed called after every choice */
  constructor({ policy, kind }, changed) {
    Object.assign(this, { items: policy.items, lists: kind.lists, changed });
    this.order = orderItems(policy);
    this.letters = policy.items.map((label) => {
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

// ---- promise.js ---------------------------------------------------------------------------------

// What is promised for the chosen answers.

const QUOTED = 3; // chosen answers of one level that its promise names

/** The table of all promises. */
function listPromises(mechanism, promises) {
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
function showPromise(mechanism, chosen, { isWeak, wholeFactor }) {
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

// ---- report.js ----------------------------------------------------------------------------------

// What a report says: before it is sent, and on the receipt.

const NAMED = 24; // named answers shown one by one
const REPEATED = 5; // the same on the receipt
const FEW_OWN = 5; // answers that people give in a list of any length
const WHOLE_BYTES = 64; // bytes of a report that the receipt shows in full

function showReport(mechanism, { report, repeated }) {
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
function showReceipt(mechanism, { report, id }, thanked) {
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

/** Say what went wrong: in the language of the page, and in English for whoever helps. */
function showProblem(error, more = []) {
  const ours = error instanceof DiscreetError;
  if (!ours) console.error(error);
  const message = ours ? error.message : text("wrong");
  const translated = ours && words.errors[error.status === 410 ? "late" : error.code];
  const stop = /[.!?…]$/.test(message) ? "" : ".";
  $("problem").textContent = [translated || capital(message) + stop, ...more].join(" ");
  if (translated) $("problem").append(element("small", message, { lang: "en", dir: "ltr" }));
  $("problem").hidden = false;
  status(null);
}

// ---- page.js ------------------------------------------------------------------------------------

// What the page says of a report that this browser has already, by its state in the ledger.
const EARLIER = { shown: "knownShown", leaving: "knownLeaving", counted: "knownSent" };

/** An open question: choose, see what will be sent, send, receipt. */
class Page {
  #person = 1; // of those who share this device
  #drawn = false; // the report is in the ledger, so no answer is needed any more
  #unsent = false; // the report may not have arrived; the network's return sends it again
  #agreedTo = 0; // the overlaps that the participant sees, and agrees to
  #shownPromises = {}; // what the example needs to know of the promises
  #prepared; // the report that is shown or sent
  #receipt; // the report that was counted, and the keys of the texts that say so

  constructor(client, name, { mechanism, keeps }, pinned) {
    Object.assign(this, { client, name, mechanism, keeps, pinned });
    this.choices = new Choices(mechanism, () => {
      this.#promise();
      this.#ready();
    });
  }

  start() {
    this.choices.listen();
    $("form").addEventListener("submit", (event) => { event.preventDefault(); this.#prepare(); });
    $("agree").addEventListener("change", () => this.#ready());
    $("back").addEventListener("click", () => window.history.back());
    $("again").addEventListener("click", () => this.#showReceipt(this.#earlier(), ["counted"]));
    $("another").addEventListener("click", () => this.#somebodyElse());
    // the browser's own Back leads from a report or a receipt to the question
    window.addEventListener("popstate", () => this.#ask());
    $("send").addEventListener("click", () => this.#send());
    window.addEventListener("online", () => {
      if (!$("send").disabled) this.#resume();
    });
    this.speak();
    status(null);
    this.#ask(null);
    this.#resume();
    this.#resumeOthers();
  }

  /** Say everything in the language in use. */
  speak() {
    const { mechanism, keeps, name, client, pinned } = this;
    showAbout(mechanism, name, keeps);
    $("final").textContent = text(keeps === "counts" ? "final" : "finalKept");
    $("note").textContent = text(keeps === "counts" ? "receiptNote" : "receiptNoteKept");
    const place = { name: cleaned(name), host: new URL(client.url).host };
    const here = window.location.host || text("device");
    $("where").textContent = window.location.origin === client.origin
      ? text("where", place) : text("copy", { ...place, here });
    const fingerprint = shortFingerprint(mechanism.fingerprint);
    $("pinned").textContent = text(pinned ? "pinned" : "unpinned", { fingerprint });
    $("legend").textContent = text(mechanism.kind.lists ? "yourAnswers" : "yourAnswer");
    const n = mechanism.m;
    $("find").hidden = n <= FEW;
    $("foot").classList.toggle("stays", n > FEW);
    $("search").placeholder = text("search", { n });
    $("search").setAttribute("aria-label", $("search").placeholder);
    const promises = mechanism.promises();
    this.#shownPromises = {
      isWeak: mechanism.caution() !== "",
      wholeFactor: promises.find(({ whole }) => whole)?.factor,
    };
    listPromises(mechanism, promises);
    this.#listChoices();
    if (!$("form").hidden) this.#ask(null);
    if (!$("check").hidden) showReport(mechanism, this.#prepared);
    if (!$("receipt").hidden) this.#showReceipt(this.#receipt.entry, this.#receipt.thanked);
  }

  #listChoices() {
    this.choices.listGroups();
    this.choices.list();
    this.#promise();
  }

  #promise() {
    showPromise(this.mechanism, this.choices.sorted, this.#shownPromises);
    this.choices.listChips();
  }

  // ---- the question

  /** What this browser remembers of this question. */
  #earlier() {
    return this.client.ledger.find(this.client.origin, this.name, this.mechanism.fingerprint);
  }

  /** Show the question, with what this browser remembers of it. */
  #ask(focus = "question") {
    const earlier = this.#earlier();
    this.#unsent = earlier?.state === "leaving";
    this.#drawn = earlier !== null;
    const isCounted = earlier?.state === "counted";
    $("before").hidden = !earlier && this.#person === 1;
    $("once").hidden = Boolean(earlier);
    $("again").hidden = !isCounted;
    $("person").hidden = this.#person === 1;
    $("person").textContent = text("person", { n: this.#person });
    $("known").textContent = earlier ? text(EARLIER[earlier.state]) : "";
    this.#showOverlap(earlier);
    // not before a report is counted: choosing between two draws would reveal more
    $("shared").hidden = !isCounted && (Boolean(earlier) || $("consent").hidden);
    this.#ready();
    this.#show("form", focus);
  }

  /**
   * Questions about the same items under another name or fingerprint: show what they sum to, before
   * anything is drawn.
   */
  #showOverlap(earlier) {
    const { client, name, mechanism } = this;
    const isSent = earlier && earlier.state !== "shown";
    const overlaps = isSent ? [] : client.ledger.overlaps(client.origin, name, mechanism);
    $("consent").hidden = !overlaps.length;
    this.#agreedTo = overlaps.length;
    if (overlaps.length) {
      $("summed").textContent = client.ledger.summed(mechanism, overlaps).sentence;
    }
  }

  /** Enable the button once there is an answer, or a report: with it the answer was forgotten. */
  #ready() {
    const waits = !$("consent").hidden && !$("agree").checked;
    const { lists } = this.mechanism.kind;
    const isEmpty = !this.choices.chosen.size && !this.#drawn;
    $("prepare").disabled = waits || (!lists && isEmpty);
    $("prepare").textContent = text(lists && isEmpty ? "prepareNone" : "prepare");
  }

  /** Another person on the same device, with a ledger of their own. */
  #somebodyElse() {
    this.#person += 1;
    this.client.ledger = new Ledger(undefined, this.#person);
    this.#forget();
    this.#ask();
    this.#resume();
  }

  /** Remove from the page and from memory everything that a person typed, chose or opened. */
  #forget() {
    this.choices.forget();
    this.#agreedTo = 0;
    $("form").reset();
    for (const details of $("form").querySelectorAll("details")) details.open = false;
    this.#listChoices();
  }

  // ---- the report

  async #prepare() {
    await this.#guard(async () => {
      const agree = $("agree").checked ? this.#agreedTo : 0;
      const chosen = this.choices.sorted;
      const given = this.mechanism.kind.lists ? chosen : chosen[0];
      const answer = this.#drawn && !chosen.length ? undefined : given;
      $("prepare").disabled = $("another").disabled = true; // until the report is drawn, once
      this.#prepared = await this.client.prepare(this.name, this.mechanism, answer, { agree });
      this.#forget(); // the report is written down, so the answer is not needed any more
      showReport(this.mechanism, this.#prepared);
      this.#step("check");
    });
    $("another").disabled = false;
  }

  async #send() {
    $("send").disabled = $("back").disabled = $("another").disabled = true;
    $("problem").hidden = true;
    this.#unsent = true;
    status("sending");
    await this.#guard(async () => {
      const { accepted, id, report, repeated } = await this.client.send(this.#prepared);
      const thanked = [accepted ? "counted" : "had", ...repeated ? ["madeBefore"] : []];
      this.#showReceipt({ report: hex(report), id: hex(id) }, thanked);
    });
    status(null);
    $("send").disabled = $("back").disabled = $("another").disabled = false;
    if (!$("check").hidden) $("send").focus(); // a disabled button loses the focus
  }

  #showReceipt(entry, thanked) {
    this.#unsent = false;
    this.#receipt = { entry, thanked };
    showReceipt(this.mechanism, entry, thanked);
    this.#step("receipt");
  }

  /** Send a report again that was on its way when this page was left, or say that it arrived. */
  async #resume() {
    const unsent = this.client.unsent(this.name, this.mechanism);
    if (unsent) {
      this.#prepared = unsent;
      await this.#send();
    } else if (this.#unsent && this.#earlier()?.state === "counted") {
      this.#showReceipt(this.#earlier(), ["counted"]); // another tab has sent it meanwhile
    }
  }

  /** The same for others who answered on this device, without a word: they are not here. */
  async #resumeOthers() {
    const { name, mechanism, client: { url } } = this;
    for (let person = 2; Ledger.isKept(person); person++) {
      const client = new Client(url, { ledger: new Ledger(undefined, person) });
      try {
        const unsent = client.unsent(name, mechanism);
        if (unsent) await client.send(unsent);
      } catch (error) {
        console.warn(`person ${person}: ${error.message}`); // the next visit tries again
      }
    }
  }

  // ---- around

  /** A step that the browser's Back leads back from; sending is not one of its own. */
  #step(section) {
    if (!$("form").hidden) window.history.pushState(null, "");
    this.#show(section, `${section}-title`);
  }

  #show(section, focus) {
    for (const id of ["form", "check", "receipt"]) $(id).hidden = id !== section;
    $("about").classList.toggle("aside", section !== "form");
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
      if (error.code === "answer") this.#ask(); // the ledger was removed meanwhile
      this.#ready();
      showProblem(error, this.#unsent ? [text("kept")] : []);
    }
  }
}

let repeat = () => {}; // says again, in another language, what was said last

/** Fetch and verify the question; when the network comes back, again. */
async function openQuestion() {
  status("fetching");
  $("problem").hidden = true;
  try {
    const { server, name, pinned } = readInvitation(window.location);
    $("where").textContent = `discreet · ${cleaned(name)}`;
    const client = new Client(server, { waiting });
    const collection = await client.describe(name, { fingerprint: pinned });
    if (collection.state !== "open") {
      repeat = () => showClosed(client, name, collection);
      repeat();
      return;
    }
    const page = new Page(client, name, collection, pinned);
    page.start();
    repeat = () => page.speak();
  } catch (error) {
    repeat = () => showProblem(error);
    repeat();
    if (error.code === "network") window.addEventListener("online", openQuestion, { once: true });
  }
}

/** A question that has not opened yet, or is closed. */
function showClosed(client, name, { mechanism, state, keeps }) {
  const { opens, closes } = mechanism.policy.about;
  const isOver = closes && Date.parse(closes) <= Date.now();
  const key = state === "upcoming" ? "upcoming" : isOver ? "closedOn" : "closed";
  showAbout(mechanism, name, keeps);
  const said = text(key, { time: localTime(isOver ? closes : opens ?? 0) });
  const lost = client.unsent(name, mechanism) ? [text("lateUnsent")] : [];
  showProblem(new DiscreetError(state, said), lost);
}

function listLanguages() {
  $("language").replaceChildren(...TEXTS.map(({ language, name }) => {
    return element("option", name, { value: language, lang: language });
  }));
  $("language").value = words.language;
  $("language").addEventListener("change", ({ target }) => {
    translate(TEXTS.find(({ language }) => language === target.value));
    storeLanguage();
    repeat();
  });
}

window.addEventListener("hashchange", () => window.location.reload());
translate(preferredWords());
listLanguages();
openQuestion();
