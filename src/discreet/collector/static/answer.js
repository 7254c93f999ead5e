import { Client, DiscreetError, cleaned } from "./discreet.js";

// The participant's page: ask, verify, choose, show what will be sent, send, receipt. The answer
// never leaves this module.

const $ = (id) => document.getElementById(id);
const SHOWN = 60; // choices shown at once; a search narrows them
const NAMED = 24; // named answers shown one by one
const REPEATED = 5; // and of those, on the receipt
const QUOTED = 3; // chosen answers of one level that its promise names

const hex = (bytes, between = "") => {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(between);
};

/** A new element with text. */
function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** Quoted labels, as a promise about any one of them names them. */
function oneOf(labels) {
  const quoted = labels.slice(0, QUOTED).map((label) => `“${label}”`).join(", ");
  const more = labels.length - QUOTED;
  const rest = more > 0 ? ` and ${more.toLocaleString("en")} more` : "";
  return labels.length > 1 ? `one of ${quoted}${rest}` : quoted;
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
    const what = "This page needs an invitation";
    const form = "#server=https://host&collection=NAME&fingerprint=…";
    throw new DiscreetError("invitation", `${what}: its address must end with ${form}.`);
  }
  if (pinned && !/^[0-9a-f]{64}$/.test(pinned)) {
    const what = "What stands after # is not a fingerprint";
    throw new DiscreetError("invitation", `${what}; open the invitation again as you got it.`);
  }
  return { server, name, pinned };
}

class Page {
  chosen = new Set(); // indices of items

  constructor(client, name, mechanism, pinned) {
    const many = mechanism.policy.input === "set";
    Object.assign(this, { client, name, mechanism, pinned, many });
  }

  // ---- the question

  start() {
    const { policy, fingerprint } = this.mechanism;
    const name = cleaned(this.name); // as an invitation has it
    document.title = policy.question || name;
    $("question").textContent = policy.question || name;
    const { host } = new URL(this.client.url);
    const copy = window.location.origin === this.client.origin
      ? "" : `; this page is a copy at ${window.location.host || "your own device"}`;
    $("where").textContent = `discreet · ${name} · your report goes to ${host}${copy}`;
    const short = `${fingerprint.slice(0, 12)}…`;
    $("pinned").textContent = this.pinned
      ? "✓ This is the question you were invited to; its promise was verified on your device "
        + `(fingerprint ${short}).`
      : "✓ The promise was verified on your device. The invitation names no fingerprint to "
        + `compare (${short}).`;
    $("legend").textContent = this.many ? "Your answers, as many as apply" : "Your answer";
    if (policy.items.length > 12) {
      $("find").hidden = false;
      $("search").placeholder = `Search ${policy.items.length.toLocaleString()} answers`;
      $("search").setAttribute("aria-label", $("search").placeholder);
      $("search").addEventListener("input", () => this.list());
      $("search").addEventListener("keydown", (event) => {
        if (event.key === "Enter") event.preventDefault();
      });
    }
    for (const [k, promise] of this.mechanism.promises().entries()) {
      const row = element("tr");
      row.append(...this.cells(k, promise).map((text) => element("td", text)));
      $("promises").append(row);
    }
    $("choices").addEventListener("change", (event) => {
      this.choose(Number(event.target.value), event.target.checked);
    });
    $("form").addEventListener("submit", (event) => { event.preventDefault(); this.prepare(); });
    $("agree").addEventListener("change", () => this.ready());
    $("back").addEventListener("click", () => window.history.back());
    $("again").addEventListener("click", () => {
      $("thanks").textContent = "Your report is counted, once and for good.";
      this.receipt(this.earlier());
    });
    // the browser's own Back leads from a report or a receipt to the question
    window.addEventListener("popstate", () => this.ask());
    $("send").addEventListener("click", () => this.send());
    this.list();
    this.promise();
    $("status").hidden = true;
    this.ask(null);
  }

  /** What this browser remembers of this question. */
  earlier() {
    return this.client.ledger.find(this.client.origin, this.name, this.mechanism.fingerprint);
  }

  /** The question, with what this browser remembers of it. */
  ask(focus = "question") {
    const earlier = this.earlier();
    const reason = "whatever you choose now: who could choose among several draws would tell more.";
    $("before").hidden = !earlier;
    $("once").hidden = Boolean(earlier);
    $("seen").hidden = earlier?.state !== "counted";
    $("known").textContent = earlier?.state === "shown"
      ? `The report was drawn when you looked at it, and has not been sent. It stays the same, ${reason}`
      : "This browser has answered this question. The same report is sent again, byte for byte, and "
        + `counted once, ${reason}`;
    this.overlap();
    this.ready();
    this.show("form", focus);
  }

  /** Whom a promise is about, and what it says. */
  cells(k, { level, items, examples, sentence, whole }) {
    if (whole) return ["Whole lists", capital(sentence.replace("Whole lists: ", ""))];
    if (level === null) return ["Not protected", sentence];
    const more = items > examples.length ? ", …" : "";
    const says = this.mechanism.promise(k, "one of these");
    return [`${level}: ${examples.join(", ")}${more}`, says];
  }

  list() {
    const wanted = $("search").value.trim().toLowerCase();
    const { items } = this.mechanism.policy;
    const found = items.map((label, k) => [label, k])
      .filter(([label]) => label.toLowerCase().includes(wanted));
    const rest = found.filter(([, k]) => !this.chosen.has(k)).slice(0, SHOWN);
    const chosen = [...this.chosen].map((k) => [items[k], k]);
    const listed = [...chosen, ...rest].sort((x, y) => x[1] - y[1]);
    const legend = $("legend");
    $("choices").replaceChildren(legend, ...listed.map(([label, k]) => {
      const box = element("label");
      const input = element("input", "", {
        type: this.many ? "checkbox" : "radio", name: "answer", value: k,
      });
      input.checked = this.chosen.has(k);
      box.append(input, element("span", label, { class: "what" }));
      return box;
    }));
    const hidden = found.length - listed.length;
    $("count").textContent = !found.length
      ? "No answer matches."
      : hidden > 0 ? `${hidden.toLocaleString()} more; type to narrow them.` : "";
  }

  choose(k, on) {
    if (!this.many) this.chosen.clear();
    if (on) this.chosen.add(k);
    else this.chosen.delete(k);
    this.promise();
    this.ready();
  }

  /** What is promised for what is chosen: a sentence per level, then one about the whole list. */
  promise() {
    const { items, levelOf } = this.mechanism.policy;
    const levels = new Map();
    for (const k of [...this.chosen].sort((x, y) => x - y)) {
      levels.set(levelOf[k], [...levels.get(levelOf[k]) ?? [], items[k]]);
    }
    const sentences = Array.from(levels, ([level, labels]) => {
      const whatever = this.many ? ", whatever else you tick," : "";
      return this.mechanism.promise(level, oneOf(labels) + whatever);
    });
    const { padding } = this.mechanism;
    if (padding && this.chosen.size > padding) {
      const drawn = padding === 1 ? "one of them is" : `${padding} of them are`;
      const rest = "drawn at random, and nothing else is reported.";
      sentences.push(`You ticked ${this.chosen.size}: ${drawn} ${rest}`);
    }
    if (this.many) sentences.push(this.mechanism.promiseOf(this.chosen).sentence);
    $("promise").classList.toggle("warn", this.mechanism.policy.protect === "item");
    $("promise").hidden = !sentences.length;
    $("promise").replaceChildren(...sentences.map((text) => element("p", text)));
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

  ready() {
    const waiting = !$("consent").hidden && !$("agree").checked;
    $("prepare").disabled = waiting || (!this.many && !this.chosen.size);
    $("prepare").textContent = this.many && !this.chosen.size
      ? "None of these: show what will be sent" : "Show what will be sent";
  }

  // ---- what will be sent

  prepare() {
    return this.guard(async () => {
      const answer = this.many ? [...this.chosen].sort((x, y) => x - y) : [...this.chosen][0];
      const agree = $("agree").checked ? this.told : 0;
      this.prepared = await this.client.prepare(this.name, this.mechanism, answer, { agree });
      this.explain(this.prepared);
      this.step("check");
    });
  }

  explain({ report, repeated }) {
    const { named, sentence } = this.mechanism.meaning(report);
    const { shown, rest } = this.labels(named, NAMED);
    const again = repeated ? "This is the report that this browser made before. " : "";
    $("meaning").textContent = again + sentence;
    $("bytes").textContent = hex(report, " ");
    $("bits").replaceChildren(...[...shown, ...rest].map((text) => element("li", text)));
  }

  /** The labels of the first so many items, and how many more there are. */
  labels(named, most) {
    const { items } = this.mechanism.policy;
    const more = named.length - most;
    return {
      shown: named.slice(0, most).map((k) => items[k]),
      rest: more > 0 ? [`and ${more.toLocaleString("en")} more`] : [],
    };
  }

  // ---- send

  async send() {
    $("send").disabled = true;
    $("status").hidden = false;
    $("status").textContent = "Sending …";
    await this.guard(async () => {
      const { accepted, id, report, repeated } = await this.client.send(this.prepared);
      $("thanks").textContent = accepted
        ? "Your report is counted, once and for good."
        : "The collector had this report already; it is counted once.";
      if (repeated) {
        $("thanks").textContent += " It is the report that this browser had made before.";
      }
      this.receipt({ report: hex(report), id: hex(id) });
    });
    $("status").hidden = true;
    $("send").disabled = false;
    if (!$("check").hidden) $("send").focus(); // a disabled button loses it
  }

  /** What was counted, as the ledger keeps it. */
  receipt({ report, id }) {
    const bytes = Uint8Array.from(report.match(/../g), (pair) => parseInt(pair, 16));
    $("named").textContent = this.repeat(bytes);
    $("sent").textContent = bytes.length > 64
      ? `${report.slice(0, 128)}… (${bytes.length} bytes)` : report;
    $("id").textContent = id;
    $("mechanism").textContent = this.mechanism.fingerprint;
    this.step("receipt");
  }

  /** What the report that was sent names, in short. */
  repeat(report) {
    const { shown, rest } = this.labels(this.mechanism.meaning(report).named, REPEATED);
    const quoted = shown.map((label) => `“${label}”`).join(", ");
    return quoted ? [quoted, ...rest].join(" ") : "no answer";
  }

  // ---- around

  /** A step that the browser's Back leads back from; sending is not one of its own. */
  step(section) {
    if (!$("form").hidden) window.history.pushState(null, "");
    this.show(section, `${section}-title`);
  }

  show(section, focus) {
    for (const id of ["form", "check", "receipt"]) $(id).hidden = id !== section;
    $("problem").hidden = true;
    if (focus) $(focus).focus();
  }

  async guard(work) {
    try {
      await work();
    } catch (error) {
      if (error.code === "overlap") {
        // answered in another tab meanwhile: ask for consent
        $("agree").checked = false;
        this.ask();
      }
      say(error);
    }
  }
}

function say(error) {
  if (!(error instanceof DiscreetError)) console.error(error);
  const text = error instanceof DiscreetError
    ? error.message : "Something went wrong on this page; nothing was sent. Load it again.";
  const stop = /[.!?…]$/.test(text) ? "" : ".";
  $("problem").textContent = capital(text) + stop;
  $("problem").hidden = false;
  $("status").hidden = true;
}

async function main() {
  try {
    const { server, name, pinned } = invitation(window.location);
    $("where").textContent = `discreet · ${cleaned(name)}`;
    const client = new Client(server);
    const { mechanism, state } = await client.describe(name, { fingerprint: pinned });
    if (state === "closed") {
      $("question").textContent = mechanism.policy.question || cleaned(name);
      throw new DiscreetError("closed", "This question is closed; it takes no more answers.");
    }
    new Page(client, name, mechanism, pinned).start();
  } catch (error) {
    say(error);
  }
}

window.addEventListener("hashchange", () => window.location.reload());
main();
