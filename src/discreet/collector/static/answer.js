import { Client, DiscreetError, ENGLISH, Ledger, cleaned, shortFingerprint, speak } from "./discreet.js";

// The participant's page: ask, verify, choose, show what will be sent, send, receipt. The answer
// never leaves this module.

const TEXTS = []; // texts/*.json, one per language, English first: put here when the page is built

const $ = (id) => document.getElementById(id);
const SHOWN = 60; // choices shown at once; a search narrows them, a button shows more
const FEW = 12; // choices that need no search
const GROUPS = [2, 40]; // first letters that are worth being chosen from
const NAMED = 24; // named answers shown one by one
const REPEATED = 5; // and of those, on the receipt
const FEW_OWN = 5; // answers of one's own in a list of any length
const QUOTED = 3; // chosen answers of one level that its promise names
const SLOW = 2_000; // milliseconds until a slow connection is called slow
const SAID = "discreet-language"; // in the browser's storage, once a language was chosen

const hex = (bytes, between = "") => {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(between);
};

/** A new element with text. */
function element(name, text = "", attributes = {}, space = "http://www.w3.org/1999/xhtml") {
  const made = document.createElementNS(space, name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const quoted = (label) => `“${label}”`;

// ---- languages

let [words] = TEXTS;

/** A text of the page, with what stands in braces filled in. */
function text(key, values = {}) {
  const form = words[key];
  const plural = () => new Intl.PluralRules(words.language).select(values.n);
  const chosen = typeof form === "string" ? form : form[plural()] ?? form.other;
  return chosen.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? figure(values[name]) : values[name];
  });
}

/** In Arabic too with the digits of the factors. */
const figure = (n) => n.toLocaleString(`${words.language}-u-nu-latn`);

/** A moment where the reader is. */
function time(moment) {
  return new Date(moment).toLocaleString(`${words.language}-u-nu-latn`, {
    year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit",
    timeZoneName: "short",
  });
}

/** The language chosen before, or the first that the browser asks for and we have. */
function preferred() {
  let before = null;
  try {
    before = window.localStorage.getItem(SAID);
  } catch { /* storage is blocked, and the page says so when it matters */ }
  const wanted = [before, ...navigator.languages].map((tag) => tag?.split("-")[0]);
  const known = wanted.find((tag) => TEXTS.some(({ language }) => language === tag));
  return TEXTS.find(({ language }) => language === known) ?? TEXTS[0];
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

// ---- what goes on

let slow; // the timer of a connection that takes long

/** Say what is happening; what takes long is called slow, unless something else is said first. */
function status(key) {
  clearTimeout(slow);
  delete $("status").dataset.text; // it says something of its own from now on
  $("status").hidden = !key;
  if (!key) return;
  $("status").textContent = text(navigator.onLine ? key : "offline");
  slow = setTimeout(() => {
    $("status").textContent = text(navigator.onLine ? "slow" : "offline");
  }, SLOW);
}

/** An attempt has failed, and the next one is so many milliseconds away. */
function waiting(wait) {
  clearTimeout(slow);
  $("status").textContent = navigator.onLine
    ? text("away", { n: Math.max(1, Math.round(wait / 1000)) }) : text("offline");
}

/**
 * Server, collection and pinned fingerprint: /c/NAME#FINGERPRINT here,
 * #server=…&collection=…&fingerprint=… in a copy elsewhere.
 */
function invitation({ origin, pathname, hash }) {
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

/** What happens to an answer, who asks, what for, from when to when. */
function tell(mechanism, name, keeps) {
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
    ...["opens", "closes"].map((key) => [key, about[key] && time(about[key])]),
    ["minimum", about.minimum && text("minimumText", { n: about.minimum })],
  ].filter(([, said]) => said);
  if (rows.length || keeps === "reports") rows.push(["keeps", text(`${keeps}Kept`)]);
  $("about").hidden = !rows.length;
  $("told").replaceChildren(...rows.flatMap(([key, said]) => {
    const ours = ["opens", "closes", "minimum", "keeps"].includes(key) ? { lang: words.language } : {};
    const heading = element("dt", text(key), { lang: words.language });
    return [heading, element("dd", said, { dir: "auto", ...ours })];
  }));
}

/**
 * The items as they are listed: many by alphabet; few as the file has them, but where it has them
 * level by level, the levels that need the most protection come last.
 */
function ordered({ items, levelOf, levels }) {
  const places = items.map((_, k) => k);
  if (items.length > FEW) {
    const { compare } = new Intl.Collator(undefined, { numeric: true });
    return places.sort((x, y) => compare(items[x], items[y]) || x - y);
  }
  if (levelOf.some((level, k) => level < levelOf[k - 1])) return places;
  const epsilon = (k) => levels[levelOf[k]].epsilon;
  return places.sort((x, y) => epsilon(y) - epsilon(x) || x - y);
}

class Page {
  chosen = new Set(); // indices of items
  person = 1; // of those who share this device
  group = ""; // the first letter that is listed
  most = SHOWN;

  constructor(client, name, { mechanism, keeps }, pinned) {
    const many = mechanism.policy.input === "set";
    Object.assign(this, { client, name, mechanism, keeps, pinned, many });
    this.order = ordered(mechanism.policy);
    this.letters = mechanism.policy.items.map((label) => {
      return Array.from(label.trim().normalize("NFD"))[0].toLocaleUpperCase();
    });
  }

  // ---- the question

  start() {
    $("search").addEventListener("input", () => { this.most = SHOWN; this.list(); });
    $("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault();
    });
    $("groups").addEventListener("click", ({ target }) => {
      if (target.matches("button")) this.choosing(target.dataset.letter);
    });
    $("show-more").addEventListener("click", () => {
      this.most += SHOWN;
      this.list();
    });
    $("choices").addEventListener("change", (event) => {
      this.choose(Number(event.target.value), event.target.checked);
    });
    $("chosen").addEventListener("click", ({ target }) => {
      const chip = target.closest("button");
      if (!chip) return;
      this.choose(Number(chip.value), false);
      this.list();
      ($("chosen").querySelector("button") ?? $("search")).focus();
    });
    $("form").addEventListener("submit", (event) => { event.preventDefault(); this.prepare(); });
    $("agree").addEventListener("change", () => this.ready());
    $("back").addEventListener("click", () => window.history.back());
    $("again").addEventListener("click", () => {
      this.receipt(this.earlier(), ["counted"]);
    });
    $("another").addEventListener("click", () => this.somebodyElse());
    // the browser's own Back leads from a report or a receipt to the question
    window.addEventListener("popstate", () => this.ask());
    $("send").addEventListener("click", () => this.send());
    window.addEventListener("online", () => {
      if (!$("send").disabled) this.resume();
    });
    this.speak();
    status(null);
    this.ask(null);
    this.resume();
    this.resumeOthers();
  }

  /** A report that was on its way when this page was left is sent again, by itself. */
  async resume() {
    const { name, mechanism, client } = this;
    const unsent = client.unsent(name, mechanism);
    if (unsent) {
      this.prepared = unsent;
      await this.send();
    }
  }

  /** The same for others who answered on this device; nobody is there to be told. */
  async resumeOthers() {
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

  /** All that is said in words, in the language that is chosen now. */
  speak() {
    const { mechanism, many } = this;
    tell(mechanism, this.name, this.keeps);
    $("final").textContent = text(this.keeps === "counts" ? "final" : "finalKept");
    $("note").textContent = text(this.keeps === "counts" ? "receiptNote" : "receiptNoteKept");
    const said = { name: cleaned(this.name), host: new URL(this.client.url).host };
    const here = window.location.host || text("device");
    $("where").textContent = window.location.origin === this.client.origin
      ? text("where", said) : text("copy", { ...said, here });
    const fingerprint = shortFingerprint(mechanism.fingerprint);
    $("pinned").textContent = text(this.pinned ? "pinned" : "unpinned", { fingerprint });
    $("legend").textContent = text(many ? "yourAnswers" : "yourAnswer");
    const n = mechanism.m;
    $("find").hidden = n <= FEW;
    $("foot").classList.toggle("stays", n > FEW);
    $("search").placeholder = text("search", { n });
    $("search").setAttribute("aria-label", $("search").placeholder);
    const promises = mechanism.promises();
    this.weak = mechanism.caution() !== "";
    this.whole = promises.find(({ whole }) => whole)?.factor; // of any two lists
    $("promises").replaceChildren(...promises.map((promise, k) => {
      const row = element("tr");
      row.append(...this.cells(k, promise).map((cell) => element("td", cell)));
      return row;
    }));
    this.listGroups();
    this.list();
    this.promise();
    if (!$("form").hidden) this.ask(null);
    if (!$("check").hidden) this.explain(this.prepared);
    if (!$("receipt").hidden) this.receipt(this.done, this.thanked);
  }

  /** What this browser remembers of this question. */
  earlier() {
    return this.client.ledger.find(this.client.origin, this.name, this.mechanism.fingerprint);
  }

  /** Another person on the same device, with a ledger of their own. */
  somebodyElse() {
    this.person += 1;
    this.client.ledger = new Ledger(undefined, this.person);
    this.forget();
    this.ask();
    this.resume();
  }

  /** Nothing that a person typed, chose, opened or agreed to is left on the page or in memory. */
  forget() {
    this.chosen.clear();
    $("form").reset();
    Object.assign(this, { group: "", most: SHOWN, told: 0 });
    for (const details of $("form").querySelectorAll("details")) details.open = false;
    this.listGroups();
    this.list();
    this.promise();
  }

  /** The question, with what this browser remembers of it. */
  ask(focus = "question") {
    const earlier = this.earlier();
    this.unsent = earlier?.state === "leaving"; // then the network's return sends it
    this.drawn = earlier !== null;
    const counted = earlier?.state === "counted";
    $("before").hidden = !earlier && this.person === 1;
    $("once").hidden = Boolean(earlier);
    $("again").hidden = !counted;
    $("person").hidden = this.person === 1;
    $("person").textContent = text("person", { n: this.person });
    const known = { shown: "knownShown", leaving: "knownLeaving", counted: "knownSent" };
    $("known").textContent = earlier ? text(known[earlier.state]) : "";
    this.overlap();
    // not before a report is counted: who could look at another draw instead would tell more
    $("shared").hidden = !counted && (Boolean(earlier) || $("consent").hidden);
    this.ready();
    this.show("form", focus);
  }

  /** Whom a promise is about, and what it says. */
  cells(k, { level, items, examples, sentence, whole }) {
    if (whole) return [text("wholeLists"), capital(sentence.replace(/^[^:]*: */, ""))];
    if (level === null) return [text("notProtected"), sentence];
    const more = items > examples.length ? ", …" : "";
    const says = this.mechanism.promise(k, text("ofThese"));
    return [`${level}: ${examples.join(", ")}${more}`, says];
  }

  // ---- the list

  /** First letters to choose from, where there are many answers. */
  listGroups() {
    const { compare } = new Intl.Collator();
    const letters = [...new Set(this.letters)].sort(compare);
    const [few, many] = GROUPS;
    const worth = this.mechanism.m > SHOWN && letters.length >= few && letters.length <= many;
    $("groups").hidden = !worth;
    if (!worth) return;
    $("groups").replaceChildren(...["", ...letters].map((letter) => {
      return element("button", letter || text("all"), {
        type: "button", "data-letter": letter, "aria-pressed": letter === this.group,
      });
    }));
  }

  choosing(letter) {
    Object.assign(this, { group: letter, most: SHOWN });
    for (const button of $("groups").children) {
      button.setAttribute("aria-pressed", button.dataset.letter === letter);
    }
    this.list();
  }

  list() {
    const wanted = $("search").value.trim().toLowerCase();
    const { items } = this.mechanism.policy;
    const found = this.order.filter((k) => {
      return items[k].toLowerCase().includes(wanted)
        && (!this.group || wanted || this.letters[k] === this.group);
    });
    const rest = found.filter((k) => !this.chosen.has(k)).slice(0, this.most);
    const shown = new Set([...this.chosen, ...rest]);
    $("choices").replaceChildren($("legend"), ...this.order.filter((k) => shown.has(k)).map((k) => {
      const box = element("label");
      const input = element("input", "", {
        type: this.many ? "checkbox" : "radio", name: "answer", value: k,
      });
      input.checked = this.chosen.has(k);
      box.append(input, element("span", items[k], { class: "what", dir: "auto" }));
      return box;
    }));
    const hidden = found.filter((k) => !shown.has(k)).length;
    $("further").hidden = !hidden;
    $("count").textContent = !found.length
      ? text("noMatch") : hidden ? text("hidden", { n: hidden }) : "";
  }

  choose(k, on) {
    if (!this.many) this.chosen.clear();
    if (on) this.chosen.add(k);
    else this.chosen.delete(k);
    this.promise();
    this.ready();
  }

  /** The chosen ones beside the button, where the list is long. */
  chips() {
    const chosen = this.mechanism.m > FEW ? [...this.chosen] : [];
    $("chosen").hidden = !chosen.length;
    $("chosen").replaceChildren(...chosen.map((k) => {
      const label = this.mechanism.policy.items[k];
      const chip = element("button", label, {
        type: "button", value: k, "aria-label": text("remove", { what: label }),
      });
      const entry = element("li");
      entry.append(chip);
      return entry;
    }));
  }

  // ---- what is promised

  /** For what is chosen: an example in numbers of people, then exactly, level by level. */
  promise() {
    const { items, levelOf } = this.mechanism.policy;
    const levels = new Map();
    for (const k of [...this.chosen].sort((x, y) => x - y)) {
      levels.set(levelOf[k], [...levels.get(levelOf[k]) ?? [], items[k]]);
    }
    const sentences = Array.from(levels, ([level, labels]) => {
      const what = this.oneOf(labels);
      return this.mechanism.promise(level, this.many ? text("anyElse", { what }) : what);
    });
    const { padding, encoding } = this.mechanism;
    if (padding && encoding.samples && this.chosen.size) sentences.push(text("tickedOne"));
    else if (padding && this.chosen.size > padding) {
      sentences.push(text("ticked", { n: padding, k: this.chosen.size }));
    }
    if (this.many) sentences.push(this.mechanism.promiseOf(this.chosen).sentence);
    $("promise").classList.toggle("warn", this.mechanism.policy.protect === "item");
    $("promise").hidden = !sentences.length;
    $("sentences").replaceChildren(...sentences.map((sentence) => element("p", sentence)));
    this.example(levels);
    this.chips();
  }

  /** Quoted labels, as a promise about any one of them names them. */
  oneOf(labels) {
    if (labels.length === 1) return quoted(labels[0]);
    const listed = labels.slice(0, QUOTED).map(quoted).join(", ");
    const n = labels.length - QUOTED;
    return n > 0 ? text("oneOfMore", { items: listed, n }) : text("oneOf", { items: listed });
  }

  /**
   * If 10 of 100 people hold the chosen answer, how many may among those who send one report: by
   * Bayes, from the factor, rounded away from 10. People with and without an item may differ in
   * their other items, too, so of a list it is the factor of whole lists; where those are not
   * protected, nothing can be said.
   */
  example(levels) {
    const [first] = levels.keys();
    const { mechanism } = this;
    const alone = mechanism.policy.protect === "item";
    $("exact").open ||= alone;
    $("example").hidden = alone || first === undefined || this.weak;
    $("frequencies").textContent = ""; // what is hidden names nothing either
    $("people").replaceChildren();
    if ($("example").hidden) return;
    const factor = this.many ? this.whole : mechanism.factor(first);
    const high = factor < 1e6 ? Math.ceil(1000 * factor / (10 * factor + 90) - 1e-9) : 100;
    const low = Math.floor(1000 / (10 + 90 * factor) + 1e-9);
    const what = quoted(levels.get(first)[0]);
    $("frequencies").textContent = text(this.many ? "exampleHaving" : "example", {
      what, low, high,
    });
    $("people").replaceChildren(...Array.from({ length: 100 }, (_, k) => {
      return element("circle", "", {
        cx: 5 + 10 * (k % 10), cy: 5 + 10 * Math.floor(k / 10), r: 3.6,
        class: k < low ? "surely" : k < high ? "perhaps" : "others",
      }, "http://www.w3.org/2000/svg");
    }));
  }

  /**
   * Questions about the same items under another name or fingerprint: shown what they sum to,
   * before anything is drawn.
   */
  overlap() {
    const { client, name, mechanism } = this;
    const earlier = this.earlier();
    const told = earlier && earlier.state !== "shown";
    const overlaps = told ? [] : client.ledger.overlaps(client.origin, name, mechanism);
    $("consent").hidden = !overlaps.length;
    this.told = overlaps.length; // what she is shown, and agrees to
    if (overlaps.length) {
      $("summed").textContent = client.ledger.summed(mechanism, overlaps).sentence;
    }
  }

  /** A report that was drawn needs no answer any more: the answer was forgotten then. */
  ready() {
    const waits = !$("consent").hidden && !$("agree").checked;
    const none = !this.chosen.size && !this.drawn;
    $("prepare").disabled = waits || (!this.many && none);
    $("prepare").textContent = text(this.many && none ? "prepareNone" : "prepare");
  }

  // ---- what will be sent

  async prepare() {
    await this.guard(async () => {
      const agree = $("agree").checked ? this.told : 0;
      const chosen = [...this.chosen].sort((x, y) => x - y);
      const answer = this.drawn && !chosen.length ? undefined : this.many ? chosen : chosen[0];
      $("prepare").disabled = $("another").disabled = true; // until the report is drawn, once
      this.prepared = await this.client.prepare(this.name, this.mechanism, answer, { agree });
      this.forget(); // it is written down: the answer is needed no more
      this.explain(this.prepared);
      this.step("check");
    });
    $("another").disabled = false;
  }

  explain({ report, repeated }) {
    const { named, mine, others, sentence } = this.mechanism.meaning(report);
    const { shown, rest } = this.labels(named, NAMED);
    const own = this.many ? this.mechanism.padding || FEW_OWN : 1; // at most, or most often
    const key = this.many && this.mechanism.encoding.samples ? "oftenDrawn" : "often";
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

  /** The labels of the first so many items, and how many more there are. */
  labels(named, most) {
    const { items } = this.mechanism.policy;
    const n = named.length - most;
    return {
      shown: named.slice(0, most).map((k) => items[k]),
      rest: n > 0 ? [text("more", { n })] : [],
    };
  }

  // ---- send

  async send() {
    $("send").disabled = $("back").disabled = $("another").disabled = true;
    $("problem").hidden = true;
    this.unsent = true; // until it is known, the network's return sends it again
    status("sending");
    await this.guard(async () => {
      const { accepted, id, report, repeated } = await this.client.send(this.prepared);
      const thanked = [accepted ? "counted" : "had", ...repeated ? ["madeBefore"] : []];
      this.receipt({ report: hex(report), id: hex(id) }, thanked);
    });
    status(null);
    $("send").disabled = $("back").disabled = $("another").disabled = false;
    if (!$("check").hidden) $("send").focus(); // a disabled button loses it
  }

  /** What was counted, as the ledger keeps it, and the keys of the texts that say so. */
  receipt({ report, id }, thanked) {
    Object.assign(this, { unsent: false, done: { report, id }, thanked });
    $("thanks").textContent = thanked.map((key) => text(key)).join(" ");
    const bytes = Uint8Array.from(report.match(/../g), (pair) => parseInt(pair, 16));
    $("named").textContent = this.repeat(bytes);
    $("sent").textContent = bytes.length > 64
      ? text("bytesMore", { start: report.slice(0, 128), n: bytes.length }) : report;
    $("id").textContent = id;
    $("mechanism").textContent = this.mechanism.fingerprint;
    this.step("receipt");
  }

  /** What the report that was sent names, in short. */
  repeat(report) {
    const { shown, rest } = this.labels(this.mechanism.meaning(report).named, REPEATED);
    const listed = shown.map(quoted).join(", ");
    return listed ? [listed, ...rest].join(" ") : text("noAnswer");
  }

  // ---- around

  /** A step that the browser's Back leads back from; sending is not one of its own. */
  step(section) {
    if (!$("form").hidden) window.history.pushState(null, "");
    this.show(section, `${section}-title`);
  }

  show(section, focus) {
    for (const id of ["form", "check", "receipt"]) $(id).hidden = id !== section;
    $("about").classList.toggle("aside", section !== "form");
    $("problem").hidden = true;
    if (focus) $(focus).focus();
  }

  async guard(work) {
    try {
      await work();
    } catch (error) {
      if (error.code !== "network") this.unsent = false;
      if (error.code === "overlap") {
        // answered in another tab meanwhile: ask for consent
        $("agree").checked = false;
        this.ask();
      }
      if (error.code === "answer") this.ask(); // the ledger was removed meanwhile
      this.ready();
      say(error, this.unsent ? [text("kept")] : []);
    }
  }
}

/** Chances of 100 people: one number, or the ends of a range. */
function percents(chances) {
  const ends = [Math.min(...chances), Math.max(...chances)]
    .map((share) => figure(Math.round(100 * share)));
  return ends[0] === ends[1] ? ends[0] : `${ends[0]}–${ends[1]}`;
}

/** What went wrong: in the language of the page, and in English what a helper needs to know. */
function say(error, more = []) {
  const known = error instanceof DiscreetError;
  if (!known) console.error(error);
  const message = known ? error.message : text("wrong");
  const told = known && words.errors[error.status === 410 ? "late" : error.code];
  const stop = /[.!?…]$/.test(message) ? "" : ".";
  $("problem").textContent = [told || capital(message) + stop, ...more].join(" ");
  if (told) $("problem").append(element("small", message, { lang: "en", dir: "ltr" }));
  $("problem").hidden = false;
  status(null);
}

/** Fetch and verify the question; when the network comes back, again. */
async function main() {
  status("fetching");
  $("problem").hidden = true;
  try {
    const { server, name, pinned } = invitation(window.location);
    $("where").textContent = `discreet · ${cleaned(name)}`;
    const client = new Client(server, { waiting });
    const found = await client.describe(name, { fingerprint: pinned });
    const { mechanism, state, keeps } = found;
    if (state !== "open") {
      const { opens, closes } = mechanism.policy.about;
      const over = closes && Date.parse(closes) <= Date.now();
      const key = state === "upcoming" ? "upcoming" : over ? "closedOn" : "closed";
      const lost = client.unsent(name, mechanism) ? ["lateUnsent"] : [];
      heard = () => {
        tell(mechanism, name, keeps);
        const said = text(key, { time: time(over ? closes : opens ?? 0) });
        say(new DiscreetError(state, said), lost.map((more) => text(more)));
      };
      heard();
      return;
    }
    const page = new Page(client, name, found, pinned);
    page.start();
    heard = () => page.speak();
  } catch (error) {
    heard = () => say(error);
    heard();
    if (error.code === "network") window.addEventListener("online", main, { once: true });
  }
}

let heard = () => {}; // says again what was said last, in another language

function languages() {
  $("language").replaceChildren(...TEXTS.map(({ language, name }) => {
    return element("option", name, { value: language, lang: language });
  }));
  $("language").value = words.language;
  $("language").addEventListener("change", ({ target }) => {
    translate(TEXTS.find(({ language }) => language === target.value));
    try {
      window.localStorage.setItem(SAID, words.language);
    } catch { /* then it is asked for again */ }
    heard();
  });
}

window.addEventListener("hashchange", () => window.location.reload());
translate(preferred());
languages();
main();
