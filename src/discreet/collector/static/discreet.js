// Joined from the modules in discreet/ by `make js`: change those.

/**
 * discreet on the participant's device: verify a survey, perturb the answers, remember it, send the
 * reports.
 *
 * One ES module for browsers and Node 20, without dependencies. It trusts nothing that a server
 * says: a Mechanism cannot exist unless its guarantee holds, checked here in integers. Only
 * `Client` uses the network.
 *
 *     const client = new Client("https://survey.example.org");
 *     const { survey } = await client.describe("health-survey", { fingerprint });
 *     const prepared = await client.prepare(survey, "anemia"); // or { age: …, strain: … }
 *     // show prepared.frames
 *     await client.send(prepared);
 */

// ---- errors.js ----------------------------------------------------------------------------------

/** Every refusal; `code` is for programs, the message is one sentence for people. */
class DiscreetError extends Error {
  /** @param {string} code @param {string} sentence @param {object} [details] further attributes */
  constructor(code, sentence, details = {}) {
    super(sentence);
    this.name = "DiscreetError";
    this.code = code;
    Object.assign(this, details);
  }
}

/** The error for a mechanism that is not written as discreet writes one. */
function refused(sentence) {
  const next = "do not answer, and ask the organiser for a correct mechanism";
  return new DiscreetError("mechanism", `${sentence}; ${next}`);
}

/** The error for a mechanism whose guarantee does not hold. */
function violation(sentence, details) {
  const next = "the promise does not hold; do not answer, and tell the organiser";
  return new DiscreetError("guarantee", `${sentence}: ${next}`, details);
}

// ---- policy/labels.js ---------------------------------------------------------------------------

// Texts that people read. The rules and tables are those of policy/labels.py; tests/vectors
// compares the two. Unassigned code points are allowed, because which ones are unassigned depends
// on the age of the browser. So does the category of the format controls from U+13430, which are
// written out and refused. Invisible characters are refused too, except for the joiners and
// selectors that Persian, Indic scripts, Mongolian, CJK and emoji need.
const SILENT = "\\u180b-\\u180d\\u180f\\u200c\\u200d\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";
const EMPTY = "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2065\\u2800\\u3164\\uffa0\\ufff0-\\ufff8"
  + "\\u{16fe4}\\u{1d159}\\u{e0000}-\\u{e00ff}\\u{e01f0}-\\u{e0fff}";
const FORMATS = "\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064"
  + "\\u2066-\\u206f\\ufeff\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}";
const CONTROLS = "\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}\\p{Noncharacter_Code_Point}"
  + "\\u{13430}-\\u{1345f}";
const HIDDEN = new RegExp(`(?![${SILENT}])[${CONTROLS}${EMPTY}]`, "gu");
const UNSEEN = new RegExp(`[${SILENT}${EMPTY}${FORMATS}]`, "gu");
const BLANKS = /[\s\x1c-\x1f\x85]+/g;
const LONGEST_SAID = 300; // characters shown of a text that a stranger wrote
// Each word is a plain character, then the Greek, Cyrillic, Latin or punctuation characters that
// look like it.
const TWINS = (
  "A\u0391\u0410 B\u0392\u0412 C\u03f9\u0421 E\u0395\u0415 G\u050c H\u0397\u041d\u04ba "
  + "I\u0399\u0406\u04c0 J\u037f\u0408 K\u039a\u041a M\u039c\u041c\u03fa N\u039d "
  + "O\u039f\u041e P\u03a1\u0420 Q\u051a S\u0405 T\u03a4\u0422 V\u0474 W\u051c "
  + "X\u03a7\u0425 Y\u03a5\u0423\u04ae Z\u0396 a\u03b1\u0430\u0251\u1d00 "
  + "b\u0432\u0299\u044c c\u03f2\u0441\u1d04 d\u0501\u1d05 e\u03b5\u0435\u1d07 "
  + "g\u0261\u0262 h\u04bb\u029c\u043d i\u03b9\u0456\u0131\u026a "
  + "j\u03f3\u0458\u0237\u1d0a k\u03ba\u043a\u1d0b l\u04cf\u029f m\u043c\u1d0d "
  + "n\u03b7\u0274 o\u03bf\u043e\u1d0f p\u03c1\u0440\u1d18 q\u051b\ua7af r\u0433\u0280 "
  + "s\u0455\ua731 t\u03c4\u0442\u1d1b u\u03c5\u1d1c v\u03bd\u0475\u1d20 w\u051d\u1d21 "
  + "x\u03c7\u0445 y\u03b3\u0443\u028f\u04af 3\u0417\u0437 6\u0431 \u0413\u0393 "
  + "\u041f\u03a0 \u0424\u03a6 \u0444\u03c6 f\ua730 z\u1d22 "
  + "-\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\u05be\u2796\u30fc\u2500\u2e3a "
  + "\u0027\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u02c8\u2032\u055a\ua78c\u00b4\u05f3"
  + "\u0060\u1ffd \u0022\u201c\u201d\u201e\u201f\u02ba\u02ee\u2033 /\u2044\u2215\u29f8\u2571\u27cb "
  + ":\u2236\ua789\u02d0\u0589\u05c3\ua4fd ,\u201a ~\u223c\u2053 |\u2223\u01c0 !\u01c3 "
  + "*\u2217\u204e =\ua78a <\u2039\u02c2 >\u203a\u02c3 \u00b7\u2022\u2219\u22c5\u2027 "
  + "F\u03dc (\u2768 )\u2769 +\u2795"
).split(" ");
const LETTER_OF = new Map(TWINS.flatMap(([letter, ...all]) => all.map((twin) => [twin, letter])));

/** A value as it was written, shortened. @param {unknown} value */
function quoted(value) {
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  const raw = typeof value === "string" ? JSON.stringify(value) : String(value);
  const text = raw.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}

/** Whether this is one line without control characters and invisible ones; any blanks. */
function isProse(text) {
  return typeof text === "string" && text.search(HIDDEN) < 0;
}

/** Whether this is prose with no other blank than the plain one. */
function isPrintable(text) {
  return isProse(text) && !/(?! )\p{Zs}/u.test(text);
}

/**
 * Make a stranger's text fit to be shown: one line of at most 300 characters, with U+FFFD in place
 * of control characters and invisible ones.
 * @param {string} text
 */
function cleaned(text) {
  const plain = text.replace(BLANKS, " ").trim().replace(HIDDEN, "\ufffd");
  const characters = Array.from(plain);
  if (characters.length <= LONGEST_SAID) return plain;
  return `${characters.slice(0, LONGEST_SAID - 1).join("")}…`;
}

/**
 * How a label looks to people. Two labels that share a look cannot be told apart. Looks leave out
 * invisible characters, the width and form of letters, case, and the number of blanks. The second
 * look also replaces letters and punctuation by the plain ones they resemble.
 * @param {string} text
 * @returns {string[]}
 */
function looks(text) {
  if (!/[^\0-\x7f]|`/.test(text)) return [folded(text)];
  const seen = text.replace(UNSEEN, "");
  return [folded(seen.normalize("NFKD")), folded(latin(latin(seen).normalize("NFKD")))];
}

function latin(text) {
  return text.replace(/[^\0-\x7f]|`/gu, (c) => LETTER_OF.get(c) ?? c);
}

/** The same as Python's casefold, by steps that both languages have: "ß" becomes "ss". */
function folded(text) {
  const lower = text.toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ");
  return lower.normalize("NFKD").replace(BLANKS, " ").trim();
}

/** The text itself, if it can be a label. */
function label(text, what) {
  if (!isPrintable(text) || !text.replace(UNSEEN, "").trim()) {
    const allowed = "a non-empty text without control characters and invisible characters";
    throw refused(`${what} is ${quoted(text)}, but must be ${allowed}`);
  }
  return text;
}

/** The labels themselves, if people can tell them apart. */
function distinct(texts, what) {
  const [seen, byLook] = [new Set(), new Map()];
  for (const text of texts) {
    if (seen.has(label(text, what))) throw refused(`${what} ${quoted(text)} is named twice`);
    seen.add(text);
    for (const look of looks(text)) {
      const first = byLook.get(look) ?? text;
      if (first !== text) {
        throw refused(`the ${what}s ${quoted(first)} and ${quoted(text)} look the same`);
      }
      byLook.set(look, text);
    }
  }
  return texts;
}

// ---- policy/fields.js ---------------------------------------------------------------------------

// Strict reading of a document: each function returns the value itself, or refuses it.

function object(raw, where) {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    throw refused(`${where} is ${quoted(raw)}, but must be an object`);
  }
  return raw;
}

/** Whether this is a plain table of keys and values. */
function isTable(raw) {
  if (typeof raw !== "object" || raw === null) return false;
  return [Object.prototype, null].includes(Object.getPrototypeOf(raw));
}

/** An object with exactly these keys, and perhaps some of the optional ones. */
function table(raw, keys, where, optional = []) {
  object(raw, where);
  const missing = keys.find((key) => !Object.hasOwn(raw, key));
  if (missing) throw refused(`${missing} is missing in ${where}`);
  const allowed = [...keys, ...optional];
  const unknown = Object.keys(raw).find((key) => !allowed.includes(key));
  if (unknown !== undefined) {
    const names = allowed.join(", ");
    throw refused(`${where} has the unknown key ${quoted(unknown)}, but may have ${names}`);
  }
  return raw;
}

function list(raw, where) {
  if (!Array.isArray(raw)) throw refused(`${where} is ${quoted(raw)}, but must be a list`);
  return raw;
}

function integers(raw, count, where) {
  if (list(raw, where).length !== count || !raw.every(Number.isInteger)) {
    throw refused(`${where} must be ${count} whole numbers, but is not`);
  }
  return raw;
}

function choice(key, value, allowed) {
  if (!allowed.includes(value)) {
    throw refused(`${key} is ${quoted(value)}, but must be one of ${allowed.join(", ")}`);
  }
  return value;
}

// ---- check/document.js --------------------------------------------------------------------------

// The canonical form of a document, its fingerprint, and reading it from bytes.

/**
 * JSON with sorted keys and no blanks: RFC 8785 restricted to texts, integers, true, false, null,
 * lists and objects.
 * @param {unknown} document
 * @returns {string}
 */
function canonicalJson(document) {
  return canonical(document, DEEPEST);
}

const DEEPEST = 100; // lists within lists; a mechanism has 5, and the stack holds more than this

function canonical(value, depth) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return canonicalText(value);
  if (Number.isSafeInteger(value)) return String(value);
  if (typeof value !== "object") {
    const allowed = "only texts and integers up to 2^53 - 1 are allowed";
    throw refused(`the document holds ${quoted(value)}, but ${allowed}`);
  }
  if (!depth) throw refused(`the document is nested more than ${DEEPEST} deep`);
  const within = (x) => canonical(x, depth - 1);
  if (Array.isArray(value)) return `[${Array.from(value, within).join(",")}]`;
  const keys = Object.keys(value).sort(byCodePoint);
  return `{${keys.map((key) => `${canonicalText(key)}:${within(value[key])}`).join(",")}}`;
}

function canonicalText(text) {
  if (/\p{Surrogate}/u.test(text)) {
    throw refused("the document holds half of a surrogate pair, which is no text");
  }
  return JSON.stringify(text); // escapes exactly what RFC 8785 and Python escape
}

/** Python's order; JavaScript's own compares UTF-16 units, which puts U+1F642 before U+FFFD. */
function byCodePoint(first, second) {
  const [x, y] = [Array.from(first), Array.from(second)];
  const k = x.findIndex((character, place) => character !== y[place]);
  if (k < 0) return x.length - y.length;
  return k < y.length ? x[k].codePointAt(0) - y[k].codePointAt(0) : 1;
}

/** The same content, as a copy that nobody can change. */
function frozenCopy(document) {
  return JSON.parse(canonicalJson(document), (_, value) => Object.freeze(value));
}

/**
 * The content of a file, as a copy that nobody can change, and its fingerprint. Refused unless that
 * is the one in the file, and the one that an invitation names.
 * @param {object} document @param {string} what in messages
 * @param {string | null | undefined} pinned
 * @param {(body: object) => object} [without] leaves out more of how it was designed
 */
async function verified(document, what, pinned, without = (body) => body) {
  const { fingerprint: claimed, ...content } = object(document, what);
  const body = frozenCopy(content);
  const fingerprint = await computeFingerprint(without(body));
  const short = (value) => `${shortFingerprint(cleaned(String(value)))}…`;
  const got = short(fingerprint);
  if (claimed !== fingerprint) {
    const change = "it was changed after it was made; get it again from the organiser";
    const said = `the content has fingerprint ${got} but says ${short(claimed)}`;
    throw new DiscreetError("fingerprint", `${said}: ${change}`);
  }
  if (pinned != null && pinned !== fingerprint) {
    const next = "do not answer, and ask who invited you";
    const said = `the invitation is for fingerprint ${short(pinned)} but this is ${got}`;
    throw new DiscreetError("pinned", `${said}; ${next}`);
  }
  return { body, fingerprint };
}

/** The document in the bytes of a file. */
function readFile(bytes, what) {
  try {
    return parse(bytes);
  } catch {
    throw refused(`${what} file is not JSON in UTF-8`);
  }
}

const STORY = ["model", "prior", "certificate"]; // how it was designed; no promise depends on it

/**
 * SHA-256, in hexadecimal, of the canonical JSON of everything that promises and counts depend on.
 * @param {object} document
 * @returns {Promise<string>}
 */
async function computeFingerprint(document) {
  return sha256(canonicalJson(covered(document)));
}

/** A mechanism's document without how it was designed. */
function covered(document) {
  const kept = Object.entries(document).filter(([key]) => !STORY.includes(key));
  return Object.fromEntries(kept);
}

async function sha256(text) {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) {
    const why = "this page was not loaded over https, so the browser offers no SHA-256";
    throw new DiscreetError("crypto", `${why}; open it with https`);
  }
  return toHex(new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

const COMPARED = 32; // digits that people compare: too many for anybody to find two that share them

/** The digits of a fingerprint that people compare, in groups of four. @param {string} hash */
function shortFingerprint(hash) {
  return (hash.slice(0, COMPARED).match(/.{1,4}/gs) ?? []).join(" ");
}

function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/**
 * Parse JSON in UTF-8, with or without a byte-order mark. An object with a repeated key is refused:
 * readers would disagree about its value.
 */
function parse(bytes) {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  const value = JSON.parse(text);
  // in JSON the keys are exactly the strings before a colon
  const written = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"\s*:?/g) ?? [];
  if (written.filter((token) => token.endsWith(":")).length !== countKeys(value)) {
    throw new SyntaxError("a key is repeated");
  }
  return value;
}

function countKeys(value) {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce((total, x) => total + countKeys(x), own);
}

// ---- policy/kinds.js ----------------------------------------------------------------------------

/**
 * The kinds of answer. `lists`: a person answers with a list of items. `pads`: the list is cut to a
 * padding and protected as a whole. `alone`: every item is protected on its own.
 */
const KINDS = Object.freeze({
  single: Object.freeze({ lists: false, pads: false, alone: false }),
  set: Object.freeze({ lists: true, pads: true, alone: false }),
  each: Object.freeze({ lists: true, pads: false, alone: true }),
});

// ---- policy/notions.js --------------------------------------------------------------------------

/**
 * The notions: rules that give the budget of every ordered pair of levels from the levels' budgets.
 * `pair(i, j, terms)` lists levels; twice the budget of an answer of level i over one of level j is
 * the least of the sums of their budgets. null: not protected. `hits`: the check of counted hits
 * proves this notion. `mutual`: both directions are alike. `lists`: whole lists can be protected.
 * `complete`: every pair of answers is protected, but for open levels. `ordered`: the levels are
 * points in an order, one item each.
 */
const NOTIONS = Object.freeze({
  min: makeNotion((i, j) => [[i, i], [j, j]], { hits: true }),
  avg: makeNotion((i, j) => [[i, j]]),
  // an answer is protected by its own budget, whatever the other one is; levels may be open
  "one-way": makeNotion((i, j, { isOpen }) => (isOpen(i) ? null : [[i, i]]),
    { mutual: false, lists: false }),
  // which level an answer is in becomes known
  blocks: makeNotion((i, j) => (i === j ? [[i, i]] : null), { lists: false, complete: false }),
  // every level is a point, in their order; a budget per step between two points
  scale: makeNotion((i, j, { cap }) => {
    const steps = Math.min(Math.abs(i - j), cap || Infinity);
    return steps ? [Array(2 * steps).fill(i)] : null; // a point has one answer
  }, { lists: false, ordered: true }),
});

function makeNotion(pair, like = {}) {
  const usual = { hits: false, mutual: true, lists: true, complete: true, ordered: false };
  return Object.freeze({ pair, ...usual, ...like });
}

// ---- check/exact.js -----------------------------------------------------------------------------

/*
 * The check of the guarantee, in exact integer arithmetic. Nothing here uses floating point: this
 * file is meant to be audited.
 *
 * Probabilities are integers over D = 2^32. A group of levels has in every part the chance of the
 * part, the chance `own` that a person's own item is named, and `other` over a denominator, the
 * chance that any other item is. Budgets become rationals at most e^epsilon, so what passes here
 * holds for the budget.
 *
 * What is proved, for every two inputs of levels i and j and every report y (the paper, Def. 2),
 * where r_ij is finite; r_ij and r_ji may differ:
 *
 *     Pr(y | i) <= e^{r_ij} Pr(y | j)
 *
 * Up to a factor common to all inputs, the probability of a report of one part given an item of a
 * group takes at most two values, its states:
 *
 *     named       chance own denominator / other
 *     not named   chance (D - own) denominator / (denominator - other)
 *     silent      chance D                           (own = other = 0: nothing is said of it)
 *     plain       chance D, and 0 for everybody else (own = D, other = 0: sent as it is)
 *
 * So it is enough to compare the largest state of every group with the smallest of every group. For
 * sets, "none" (an empty sample) is one more input, and always silent.
 *
 * A chance may be 0, and `own` may be D, where no budget forbids it: nobody of the group sends such
 * a report. 0 <= 0 holds, because neither of the two inputs sends it; a positive state against 0
 * fails. For sets every chance is positive, and `own` is below D.
 */

const D = 2 ** 32; // exact as a Number, and so is every numerator over it

// ---- rational numbers: a numerator and a positive denominator, not reduced

/** @typedef {[bigint, bigint]} Ratio */

const [ZERO, ONE] = [[0n, 1n], [1n, 1n]];
const integer = (n) => [BigInt(n), 1n];
const product = (x, y) => [x[0] * y[0], x[1] * y[1]];
const quotient = (x, y) => [x[0] * y[1], x[1] * y[0]];
const inverse = ([n, d]) => [d, n];
const square = (x) => product(x, x);
const isLess = (x, y) => x[0] * y[1] < y[0] * x[1];
const isMore = (x, y) => isLess(y, x);
const smaller = (x, y) => (isLess(y, x) ? y : x);
const larger = (x, y) => (isLess(x, y) ? y : x);
/** The smaller of two bounds, either of which may be missing. */
const tighter = (x, y) => (x && y ? smaller(x, y) : (x ?? y));

function plus(x, y) {
  return x[1] === y[1] ? [x[0] + y[0], x[1]] : [x[0] * y[1] + y[0] * x[1], x[1] * y[1]];
}

/** The place of the value that no other is `before`. */
function foremost(values, before) {
  return values.reduce((best, value, k) => (before(value, values[best]) ? k : best), 0);
}

// ---- budgets as factors

const BITS = 80n; // of the fraction of an irrational bound: 2^48 times finer than a probability
const CEILING = 45n; // a larger budget counts as this one

/** A rational at most the root-th root of n/d >= 1, in whole 2^-80ths. @returns {Ratio} */
function rootDown(n, d, root) {
  const scaled = (n << (BITS * root)) / d;
  const bits = BigInt(scaled.toString(2).length);
  let guess = 1n << ((bits + root - 1n) / root); // above the root; Newton's steps come down to it
  for (;;) {
    const better = ((root - 1n) * guess + scaled / guess ** (root - 1n)) / root;
    if (better >= guess) return [guess, 1n << BITS];
    guess = better;
  }
}

/** A rational at most e^budget; exactly k for ln(k), else at most e^45. @returns {Ratio} */
function factorDown({ isLog, value: [n, d], root }) {
  if (isLog) return root === 1n ? [n, d] : rootDown(n, d, root);
  return n > CEILING * d ? taylor(CEILING, 1n) : taylor(n, d);
}

/** A rational at most e^(n/d): the Taylor series with every term rounded down. @returns {Ratio} */
function taylor(n, d) {
  let total = 1n << BITS;
  for (let term = total, k = 1n; term; k += 1n) {
    term = (term * n) / (d * k);
    total += term;
  }
  return [total, 1n << BITS];
}

// ---- what the policy asks of groups

/**
 * @typedef {{names: string[], least: (Ratio | null)[], zeros: boolean, isMutual: boolean,
 *   brokenPair: (inputs: Extremes[]) => Extremes[] | null}} Terms
 *   the name of every group's first level; at most e^eps of every group's smallest budget, null
 *   where it is open; whether chances may be 0, and budgets are the same both ways; two inputs that
 *   differ by more than their pair budget, or null
 */

/** @param {Policy} policy @param {Budgets} budgets @param {number[]} groupOf of every level
 *  @returns {Terms} */
function readTerms({ levels, kind, isMutual }, budgets, groupOf) {
  const { lists } = KINDS[kind];
  return { ...readBounds(levels, budgets, groupOf, lists), zeros: !lists, isMutual };
}

function readBounds(levels, budgets, groupOf, lists) {
  const [names, sizes] = [[], []];
  groupOf.forEach((group, k) => {
    if (group === names.length) names.push(levels[k].name);
    sizes[group] = (sizes[group] ?? 0) + levels[k].count;
  });
  const own = budgets.levels.map((budget) => (budget.epsilon < Infinity ? factorDown(budget) : null));
  if (budgets.strict) { // one factor for every pair, also for those without protection of their own
    const explicit = [...budgets.explicit.values()].filter((budget) => budget).map(factorDown);
    const least = names.map(() => [...own, ...explicit].reduce(smaller));
    return { names, least, brokenPair: onlyExtremes(brokenMinimum, least) };
  }
  const least = Array(names.length).fill(null);
  groupOf.forEach((group, level) => { least[group] = tighter(least[group], own[level]); });
  const closed = budgets.explicit.size ? undefined : CLOSED[budgets.notion];
  const lone = sizes.map((size) => size === 1 && !lists); // has no other answer to be told from
  const each = () => everyPair(pairSquares(budgets, groupOf, lone));
  const isJoined = NOTIONS[budgets.notion].ordered && names.length < levels.length;
  const brokenPair = closed && !isJoined ? onlyExtremes(closed, least, lone, budgets.cap) : each();
  return { names, least, brokenPair };
}

/**
 * At most e^{2 r} of every two groups, in this order, "none" last; null where nothing is protected.
 * @returns {(Ratio | null)[][]}
 */
function pairSquares({ levels, explicit, pair }, groupOf, lone) {
  const count = lone.length;
  const bounds = Array.from({ length: count + 1 }, () => Array(count + 1).fill(null));
  const each = [...levels, ...explicit.values()].filter((x) => x && x.epsilon < Infinity);
  const factors = new Map(each.map((budget) => [budget, factorDown(budget)]));
  const squareDown = (i, j) => pair(i, j)
    ?.map((budgets) => budgets.map((x) => factors.get(x)).reduce(product)).reduce(smaller) ?? null;
  groupOf.forEach((g, i) => groupOf.forEach((h, j) => {
    if (g !== h || !lone[g]) bounds[g][h] = tighter(bounds[g][h], squareDown(i, j));
  }));
  for (let g = 0; g < count; g++) {
    bounds[g][count] = bounds[g].slice(0, count).reduce(tighter);
    bounds[count][g] = bounds.slice(0, count).map((row) => row[g]).reduce(tighter);
  }
  return bounds;
}

// ---- the states of a part

/** Check the chances of the parts: they sum to 1, and only single answers may have a chance of 0. */
function checkChances(parts, { names, zeros }) {
  names.forEach((name, g) => {
    checkColumn(parts.map(({ chance }) => chance[g]), ` for level ${quoted(name)}`, zeros);
  });
  if ("none" in parts[0]) checkColumn(parts.map(({ none }) => none), " for no item");
  if (!parts.every(({ chance }) => chance.some((x) => x > 0))) {
    throw violation("nobody can use a part: every chance is 0");
  }
}

function checkColumn(chances, who = "", zeros = false) {
  if (!chances.every((chance) => chance > 0 || (zeros && chance === 0))) {
    throw violation(`a part's chance${who} is not positive`);
  }
  if (chances.reduce((total, chance) => total + chance, 0) !== D) {
    throw violation(`the chances of the parts${who} do not sum to 2^32`);
  }
}

/** @typedef {{high: Ratio, low: Ratio, name: string}} Extremes  the largest and smallest state */

/** @returns {Extremes} of an input with one state */
const onlyState = (state, name) => ({ high: state, low: state, name });

/** @returns {Extremes} of the items of group g, whose `other` is over the denominator */
function groupExtremes(part, g, denominator, name, zeros) {
  const [own, other] = [part.own[g], part.other[g]];
  const [chance, all, Q] = [part.chance[g], D, denominator].map(BigInt);
  if (own === 0 && other === 0) return onlyState([chance * all, 1n], name);
  if (!chance) throw violation(`level ${quoted(name)} cannot use a part that speaks about it`);
  if (zeros && own === D && other === 0) return { high: [chance * all, 1n], low: ZERO, name };
  // Without this the inequalities of sets can hold as 0 <= 0 while privacy is broken.
  if (!(own > 0 && (own < D || (zeros && own === D)) && other > 0 && other < denominator)) {
    const what = `own = ${own}/${D} and other = ${other}/${denominator} of level ${quoted(name)}`;
    throw violation(`${what} must both be 0 or both lie strictly between 0 and 1`);
  }
  const named = [chance * BigInt(own) * Q, BigInt(other)];
  const unnamed = [chance * (all - BigInt(own)) * Q, Q - BigInt(other)];
  return isLess(named, unnamed)
    ? { high: unnamed, low: named, name } : { high: named, low: unnamed, name };
}

/** Throw if two inputs of a part differ by more than their pair budget. @param {Terms} terms */
function checkPairs({ brokenPair }, inputs) {
  const broken = brokenPair(inputs);
  if (!broken) return;
  const levels = broken.map(({ name }) => name);
  const pair = `the pair of levels (${levels.map(quoted).join(", ")})`;
  throw violation(`${pair} is told apart by more than its pair budget`, { levels });
}

// ---- every pair of groups

/** The check of a part by every pair of groups. */
function everyPair(bounds) {
  return (inputs) => {
    const highs = inputs.map(({ high }) => square(high));
    const lows = inputs.map(({ low }) => square(low));
    for (let g = 0; g < inputs.length; g++) {
      for (let h = 0; h < inputs.length; h++) {
        const bound = bounds[g][h];
        if (bound && isLess(product(bound, lows[h]), highs[g])) return [inputs[g], inputs[h]];
      }
    }
    return null;
  };
}

/** The check of a part in O(groups); e is at most e^eps of every group, "none" has the smallest. */
function onlyExtremes(closed, e, lone = [], cap = 0) {
  const all = [...e, e.reduce(tighter)];
  return (inputs) => closed(inputs, all, lone, cap);
}

/** high_k <= e_k low_j for all j: only the two smallest lows matter. */
function brokenOneWay(inputs, e, lone) {
  const bottom = foremost(inputs, (x, y) => isLess(x.low, y.low));
  const others = inputs.filter((_, k) => k !== bottom);
  const second = others[foremost(others, (x, y) => isLess(x.low, y.low))];
  for (const [k, input] of inputs.entries()) {
    const rival = k === bottom && lone[k] ? second : inputs[bottom];
    if (e[k] && rival && isLess(product(e[k], rival.low), input.high)) return [input, rival];
  }
  return null;
}

/** Neighbours, whose factors multiply to those of points further apart; with a cap, the extremes. */
function brokenScale(inputs, [step], lone, cap) {
  const isBroken = (x, y, e) => isLess(product(e, y.low), x.high);
  for (let k = 1; k < inputs.length; k++) {
    const [x, y] = [inputs[k - 1], inputs[k]];
    if (isBroken(x, y, step)) return [x, y];
    if (isBroken(y, x, step)) return [y, x];
  }
  if (!cap) return null;
  const top = inputs[foremost(inputs, (x, y) => isLess(y.high, x.high))];
  const bottom = inputs[foremost(inputs, (x, y) => isLess(x.low, y.low))];
  const most = [step[0] ** BigInt(cap), step[1] ** BigInt(cap)];
  return isBroken(top, bottom, most) ? [top, bottom] : null;
}

/** high_k <= e_k low_j and high_i <= e_k low_k for all i, j: only the extremes matter. */
function brokenMinimum(inputs, e) {
  const top = inputs[foremost(inputs, (x, y) => isLess(y.high, x.high))];
  const bottom = inputs[foremost(inputs, (x, y) => isLess(x.low, y.low))];
  for (const [k, input] of inputs.entries()) {
    if (isLess(product(e[k], bottom.low), input.high)) return [input, bottom];
    if (isLess(product(e[k], input.low), top.high)) return [top, input];
  }
  return null;
}

/** high_i^2 / e_i <= e_j low_j^2 for all i, j: squares, so that no root is needed. */
function brokenAverage(inputs, e) {
  const highs = inputs.map(({ high }, k) => quotient(square(high), e[k]));
  const lows = inputs.map(({ low }, k) => product(square(low), e[k]));
  const i = foremost(highs, (x, y) => isLess(y, x));
  const j = foremost(lows, isLess);
  return isLess(lows[j], highs[i]) ? [inputs[i], inputs[j]] : null;
}

// Notions whose pairs need not be compared one by one; all others are.
const CLOSED = {
  min: brokenMinimum, avg: brokenAverage, "one-way": brokenOneWay, scale: brokenScale,
};

// ---- check/factors.js ---------------------------------------------------------------------------

// How much a part that passed the check reveals, exactly.

/** A ratio as a double, however large its integers are. */
function toNumber([n, d]) {
  if (!d) return Infinity;
  const hexDigits = (x) => x.toString(16).length;
  const shift = 4 * (20 + hexDigits(d) - hexDigits(n));
  const scaled = shift > 0 ? (n << BigInt(shift)) / d : n / (d << BigInt(-shift));
  return Number(scaled) * 2 ** -shift;
}

/** ln of a ratio, however large it is. */
function logarithm([n, d]) {
  if (!d) return Infinity;
  const shift = BigInt(4 * (n.toString(16).length - d.toString(16).length));
  const near = shift > 0n ? [n, d << shift] : [n << -shift, d];
  return Math.log(toNumber(near)) + Number(shift) * Math.LN2;
}

/** @param {Extremes[]} inputs @returns {{high: Ratio, low: Ratio}} */
function overallExtremes(inputs) {
  return {
    high: inputs.map(({ high }) => high).reduce(larger),
    low: inputs.map(({ low }) => low).reduce(smaller),
  };
}

/** The largest ratio, either way, of a value between `bottom` and `top` to any other state. */
function farthest(top, bottom, { high, low }) {
  return larger(quotient(top, low), quotient(high, bottom));
}

/** Per group, the largest factor of any part. @param {Ratio[][]} parts @returns {Ratio[]} */
function largestPerGroup(parts) {
  return parts[0].map((_, g) => parts.map((factors) => factors[g]).reduce(larger));
}

/** x / y; [n, 0n], above every ratio, if only y is 0, and 1 if both are: then nobody sends it. */
const ratioOf = (x, y) => (x[0] || y[0] ? quotient(x, y) : ONE);

/**
 * Single answers, per group: the largest ratio between one of its items and any other; one way, of
 * its items over others.
 * @param {Extremes[]} states @returns {Ratio[]}
 */
function answerFactors(states, sizes, oneWay) {
  if (sizes.length === 1 && sizes[0] === 1) return [ONE];
  const lone = sizes.map((size) => size === 1);
  const highest = firstOfOthers(states.map(({ high }) => high), lone, isMore);
  const lowest = firstOfOthers(states.map(({ low }) => low), lone, isLess);
  return states.map(({ high, low }, g) => {
    return [ratioOf(high, lowest(g)), ...oneWay ? [] : [ratioOf(highest(g), low)]].reduce(larger, ONE);
  });
}

/**
 * The same per level, over the answers that it is protected from. levels: the group of every level
 * and the groups that budgets lead to from it; without any, everything may become known.
 * @param {Extremes[]} states @param {{group: number, near: Set<number>}[]} levels
 * @returns {Ratio[]}
 */
function protectedFactors(states, oneWay, levels) {
  return levels.map(({ group: g, near }) => {
    const { high, low } = states[g];
    const others = [...near].map((h) => states[h]);
    if (!others.length) return [1n, 0n];
    return others.flatMap((other) => {
      return [ratioOf(high, other.low), ...oneWay ? [] : [ratioOf(other.high, low)]];
    }).reduce(larger, ONE);
  });
}

/** A function of a group: the foremost value of another input; its own, if it has two items. */
function firstOfOthers(values, lone, before) {
  const top = foremost(values, before);
  const rest = values.filter((_, k) => k !== top);
  const second = rest.length ? rest[foremost(rest, before)] : values[top];
  return (g) => (g === top && lone[g] ? second : values[top]);
}

/**
 * Padding-and-Sampling, per group: the largest ratio between any list with one of its items and the
 * same list without it. In a list of up to l items the item takes the place of "none", beside l - 1
 * others. In a longer list it makes l places l + 1. The others are those that make the ratio
 * largest.
 * @param {Extremes[]} states the last of "none" @param {number} l the padding @returns {Ratio[]}
 */
function samplingFactors(states, sizes, l) {
  const { high: none } = states.at(-1);
  const rows = (key) => sizes.map((size, g) => ({ g, size, value: states[g][key] }));
  const [lows, highs] = [rows("low"), rows("high")];
  const beside = sumOfFirst([...lows, { g: -1, size: Infinity, value: none }], l - 1, isLess);
  const crowded = sizes.reduce((total, size) => total + size, 0) > l;
  const leastSum = crowded && sumOfFirst(lows, l, isLess);
  const mostSum = crowded && sumOfFirst(highs, l, isMore);
  const share = [BigInt(l), BigInt(l + 1)];
  return sizes.map((_, g) => {
    const { high, low } = states[g];
    const others = beside(g);
    const without = plus(others, none);
    const ratios = [quotient(plus(others, high), without), quotient(without, plus(others, low))];
    if (crowded) {
      const [least, most] = [leastSum(g), mostSum(g)];
      ratios.push(product(share, quotient(plus(least, high), least)));
      ratios.push(quotient(most, product(share, plus(most, low))));
    }
    return ratios.reduce(larger, ONE);
  });
}

/** A function of a group: the sum of the k foremost values of items without one of its items. */
function sumOfFirst(rows, k, before) {
  const sorted = [...rows].sort((x, y) => {
    return before(x.value, y.value) ? -1 : before(y.value, x.value) ? 1 : 0;
  });
  let [total, left, next] = [ZERO, k, null]; // next: the value that replaces a removed one
  const taken = new Map();
  for (const { g, size, value } of sorted) {
    if (!left) {
      next ??= value;
      break;
    }
    const n = Math.min(left, size);
    total = plus(total, product(integer(n), value));
    taken.set(g, value);
    left -= n;
    if (n < size) next = value;
  }
  const minus = ([n, d]) => [-n, d];
  return (g) => (taken.has(g) ? plus(total, plus(next, minus(taken.get(g)))) : total);
}

// ---- device/randomness.js -----------------------------------------------------------------------

/** Uniform integers from Web Crypto, exactly: by rejection, never by a float or a plain modulo. */
class Draws {
  #pool = new Uint32Array(1024); // getRandomValues gives at most 65,536 bytes at once
  #next = this.#pool.length;

  /** A uniform 32-bit integer: below a numerator over 2^32 with exactly that probability. */
  next() {
    if (this.#next === this.#pool.length) {
      globalThis.crypto.getRandomValues(this.#pool);
      this.#next = 0;
    }
    return this.#pool[this.#next++];
  }

  /** A uniform integer in [0, bound), 1 <= bound <= 2^32. */
  below(bound) {
    const limit = D - (D % bound);
    for (;;) {
      const draw = this.next();
      if (draw < limit) return draw % bound;
    }
  }

  /** A uniform integer below 2^52. */
  mass() {
    return (this.next() >>> 12) * D + this.next();
  }

  /** The same as `below` for a positive BigInt of any size. */
  belowBig(bound) {
    const words = Math.ceil(bound.toString(16).length / 8);
    const all = 1n << BigInt(32 * words);
    const limit = all - (all % bound);
    for (;;) {
      let draw = 0n;
      for (let k = 0; k < words; k++) draw = (draw << 32n) | BigInt(this.next());
      if (draw < limit) return draw % bound;
    }
  }

  /** A uniform subset of so many of these. */
  subset(values, wanted) {
    const left = [...values];
    for (let k = 0; k < wanted; k++) {
      const place = k + this.below(left.length - k);
      [left[k], left[place]] = [left[place], left[k]];
    }
    return left.slice(0, wanted);
  }
}

// ---- check/certificate.js -----------------------------------------------------------------------

// How good a design is; no promise depends on it.

function checkCertificate(raw) {
  table(raw, ["value", "lower_bound", "note"], "the certificate");
  const { value, lower_bound: bound, note } = raw;
  if (!isDecimal(value) || !(bound === "" || isDecimal(bound))) {
    throw refused("value and lower_bound of the certificate must be decimals of at most 12 digits");
  }
  if (bound !== "" && Number(bound) > Number(value)) {
    throw refused("the certificate claims less error than its own lower bound");
  }
  if (!isPrintable(note) || Array.from(note).length > 400) {
    const allowed = "a text of at most 400 characters, none of them a control character";
    throw refused(`the certificate's note must be ${allowed}`);
  }
}

function isDecimal(text) {
  const plain = /^(0|[1-9][0-9]{0,29})(\.[0-9]{0,29}[1-9])?$/;
  if (typeof text !== "string" || !plain.test(text)) return false;
  return text.replace(".", "").replace(/^0+|0+$/g, "").length <= 12;
}

// ---- check/parts.js -----------------------------------------------------------------------------

// The integers of a mechanism: groups of levels, parts, and the padding of lists.

/**
 * @typedef {readonly number[]} Numbers
 * @typedef {{chance: Numbers, own: Numbers, other: Numbers, none?: number}} Part  per group, over
 *   2^32; `other` is over the encoding's denominator; silent where own = other = 0
 * @typedef {{chance: number, active: Numbers, limit: number, rows: readonly Numbers[]}} HitsPart
 *   active: 0 or 1 per group; rows: for 1 to `padding` own items, tau and the masses of the classes
 * @typedef {{chance: number, blocks: Numbers, sizes: Numbers, rows: readonly Numbers[][]}} PicksPart
 *   chance: of the cut; blocks: per group, from 1, 0 where it is silent; sizes: per block; rows: per
 *   class of people the bunches: their mass, the places of their vectors
 * @typedef {{m: number, groupOf: Numbers, members: readonly Numbers[], rank: Numbers}} Groups
 *   the group of every item, the items of every group, and the place of every item in its group
 */

/** @param {Numbers} raw the group of every level @returns {Groups} */
function readGroups(raw, { levels, levelOf }) {
  let count = 0;
  for (const group of integers(raw, levels.length, "groups")) {
    if (group < 0 || group > count) {
      throw refused("groups are not numbered from 0 by first appearance");
    }
    count += group === count;
  }
  const groupOf = levelOf.map((level) => raw[level]);
  const members = Array.from({ length: count }, () => []);
  const rank = groupOf.map((group, item) => members[group].push(item) - 1);
  members.forEach(Object.freeze);
  [groupOf, members, rank].forEach(Object.freeze);
  return Object.freeze({ m: groupOf.length, groupOf, members, rank });
}

/** Check the expected share of participants in every group; only estimates use it. */
function checkShares(raw, count) {
  const inRange = integers(raw, count, "shares").every((share) => share >= 0 && share <= D);
  if (!inRange || raw.reduce((sum, share) => sum + share, 0) !== D) {
    throw refused("the shares are not numbers from 0 to 2^32 that sum to 2^32");
  }
}

/** A list of at most so many parts; their content is not checked yet. */
function readPartList(raw, most = 256) {
  const { length } = list(raw, "parts");
  if (length < 1 || length > most) {
    const allowed = most === 1 ? "1" : `1 to ${most}`;
    throw refused(`the mechanism has ${length} parts, but must have ${allowed}`);
  }
  return raw;
}

function checkPadding(padding, { kind }) {
  const [least, most] = KINDS[kind].pads ? [1, 65536] : [0, 0];
  if (!Number.isInteger(padding) || padding < least || padding > most) {
    const allowed = most ? `a whole number from ${least} to ${most}` : "0";
    throw refused(`padding is ${quoted(padding)}, but must be ${allowed}`);
  }
}

// ---- device/perturb.js --------------------------------------------------------------------------

/** One person's report, with secure randomness. The only place where an answer becomes a report. */
function perturb(mechanism, answer) {
  return mechanism.encoding.report(new Draws(), placesInAnswer(mechanism, answer));
}

/**
 * The items of an answer, each once: of a single one a list with it. An error never repeats the
 * answer: errors end up in logs.
 * @returns {number[]}
 */
function placesInAnswer({ kind, policy }, answer) {
  if (!kind.lists) return [findPlace(policy, answer)];
  if (typeof answer === "string" || typeof answer?.[Symbol.iterator] !== "function") {
    const what = `this question takes a list of items, got ${kindOf(answer)}`;
    throw new DiscreetError("answer", `${what}; give a list, be it empty`);
  }
  return [...new Set(Array.from(answer, (item) => findPlace(policy, item)))];
}

function findPlace({ items }, item) {
  if (typeof item === "string") {
    const index = items.indexOf(item);
    if (index >= 0) return index;
    const next = `choose one of the ${items.length} items of the question`;
    throw new DiscreetError("answer", `the answer is not an item of this question; ${next}`);
  }
  if (Number.isInteger(item) && item >= 0 && item < items.length) return item;
  const allowed = `the label of an item or its index from 0 to ${items.length - 1}`;
  const what = `an answer is ${allowed}, got ${kindOf(item)}`;
  throw new DiscreetError("answer", `${what}; choose an item`);
}

/** What something is, without saying what it holds. */
function kindOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

// ---- words.js -----------------------------------------------------------------------------------

// Every sentence about promises and reports, and the language in which the page says it.

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const [FACTOR, CHANCE] = ["by at most a factor of {factor}.", "changes the chance of any report"];
const ODDS = "whoever sees your report can change their odds between";
const RAISE = "Whoever sees your report can raise their odds that";
const small = (text) => text[0].toLowerCase() + text.slice(1);
const KNOWN = "by at most a factor of {factor}; that it is not may become known.";
const LOWERED = "by at most a factor of {factor}, and lower them by at most a factor of {fall}.";
const RAISES = "raises the chance of any report by at most a factor of {factor}; that you do not "
  + "have it may become known.";
const AWAY = "Whoever sees your report can change their odds between your answer and one that is";
const EACH = "Whole lists: each answer is protected on its own and the factors multiply, to at most"
  + " {few} for a list of {answers} against an empty one";
const CHOSE = "The organiser chose not to protect which of";
const LEVELS = "answers of \"{first}\" and answers of \"{second}\" is yours: they are kept apart";
const SAME = "two answers of \"{first}\" is yours: they are kept apart";
const THROUGH = "only through others, by a factor of at most {factor}.";
const ONCE = "You already gave an earlier answer about";
const OFTEN = "You already gave {n} earlier answers about";
const TOGETHER = "the same items: together, whoever sees your reports can change their odds between"
  + ` {what} and any other answer ${FACTOR}`;
const CAUTION = "This is weak protection: one report can change the odds between {between} by up"
  + " to a factor of {factor}, so whoever sees yours may be almost sure what you answered.";
const weakProtection = (between) => CAUTION.replace("{between}", between);
const TOGETHER_HAVING = "the same items: together, having or not having {what} changes the chance"
  + ` of your reports ${FACTOR}`;
const TOGETHER_UNLIMITED = "the same items: together, your reports can change what is known about "
  + "{what} without any limit.";
const OTHER = "other questions of this survey: together, whoever sees your reports can change their"
  + " odds between your answers and any others";
const [ONCE_MORE, OFTEN_MORE] = [ONCE, OFTEN].map((text) => text.replace("about", "to"));
const TOGETHER_ONE_WAY = "the same items: together, whoever sees your reports can raise their odds "
  + "that {what} is your answer by at most a factor of {factor}; that it is not may become known.";


/** Every sentence about promises and reports; a form per plural category where a number counts. */
const ENGLISH = Object.freeze({
  language: "en",
  odds: `${capital(ODDS)} {what} and any other answer ${FACTOR}`,
  having: `Having or not having {what} ${CHANCE} ${FACTOR}`,
  oddsOfLevel: `{level} ({items}): ${ODDS} this answer and any other ${FACTOR}`,
  havingOfLevel: `{level} ({items}): having or not having it ${CHANCE} ${FACTOR}`,
  oddsOneWayKnown: `${RAISE} {what} is your answer, against any other, ${KNOWN}`,
  oddsOneWayLowered: `${RAISE} {what} is your answer, against any other, ${LOWERED}`,
  oddsOfLevelOneWayKnown: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other, ${KNOWN}`,
  oddsOfLevelOneWayLowered: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other, ${LOWERED}`,
  oddsOneWayProtected: `${RAISE} {what} is your answer, against any other that it is protected `
    + `from, ${KNOWN}`,
  oddsOfLevelOneWayProtected: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other that it is protected from, ${KNOWN}`,
  havingOneWay: `Having {what} ${RAISES}`,
  havingOfLevelOneWay: `{level} ({items}): having it ${RAISES}`,
  oddsInBlock: `${capital(ODDS)} {what} and any other answer of its group ${FACTOR}`,
  oddsOfLevelInBlock: `{level} ({items}): ${ODDS} this answer and any other of this group ${FACTOR}`,
  oddsProtected: `${capital(ODDS)} {what} and any other answer that it is protected from ${FACTOR}`,
  oddsOfLevelProtected: `{level} ({items}): ${ODDS} this answer and any other that it is protected `
    + `from ${FACTOR}`,
  shown: "Your report may show {what} as it is.",
  shownOfLevel: "{level} ({items}): your report may show this answer as it is.",
  away: Object.freeze({
    one: `${AWAY} {n} step away ${FACTOR}`, other: `${AWAY} {n} steps away ${FACTOR}`,
  }),
  farAway: Object.freeze({
    one: `${AWAY} {n} step away or more ${FACTOR}`,
    other: `${AWAY} {n} steps away or more ${FACTOR}`,
  }),
  quoted: "\"{what}\"",
  and: "{x} and {y}",
  more: "{items} and {n} more",
  anyTwoLists: `Whole lists: ${ODDS} any two lists of answers ${FACTOR}`,
  eachOfFew: `${EACH}.`,
  eachOfMany: `${EACH}, and to at most {many} for {n}.`,
  yourList: `Your whole list: ${ODDS} it and any other list ${FACTOR}`,
  yourListOfEach: `Your whole list is not protected as one: ${ODDS} it and an empty one ${FACTOR}`,
  yourListOneWay: `Your whole list is not protected as one: ${small(RAISE)} it is yours, against an `
    + "empty one, by at most a factor of {factor}; that you do not have anything else may become "
    + "known.",
  noList: "You ticked nothing. Lists are not protected as one, only each answer on its own.",
  apart: `${CHOSE} ${LEVELS} ${THROUGH}`,
  notApart: `${CHOSE} ${LEVELS} not at all.`,
  sameApart: `${CHOSE} ${SAME} ${THROUGH}`,
  sameNotApart: `${CHOSE} ${SAME} not at all.`,
  already: Object.freeze({ one: `${ONCE} ${TOGETHER}`, other: `${OFTEN} ${TOGETHER}` }),
  alreadyHaving: Object.freeze({
    one: `${ONCE} ${TOGETHER_HAVING}`, other: `${OFTEN} ${TOGETHER_HAVING}`,
  }),
  alreadyOneWay: Object.freeze({
    one: `${ONCE} ${TOGETHER_ONE_WAY}`, other: `${OFTEN} ${TOGETHER_ONE_WAY}`,
  }),
  alreadyUnlimited: Object.freeze({
    one: `${ONCE} ${TOGETHER_UNLIMITED}`, other: `${OFTEN} ${TOGETHER_UNLIMITED}`,
  }),
  alreadyOther: Object.freeze({
    one: `${ONCE_MORE} ${OTHER} ${FACTOR}`, other: `${OFTEN_MORE} ${OTHER} ${FACTOR}`,
  }),
  alreadyOtherUnlimited: Object.freeze({
    one: `${ONCE_MORE} ${OTHER} without any limit.`,
    other: `${OFTEN_MORE} ${OTHER} without any limit.`,
  }),
  alreadyLists: "Whole lists: together, whoever sees your reports can change their odds between "
    + `any two of them ${FACTOR}`,
  alreadyListsUnlimited: "Whole lists: together, whoever sees your reports can change their odds "
    + "between any two of them without any limit.",
  cautionOpen: "Some answers are not protected from each other: whoever sees your report may know "
    + "which of them is yours.",
  cautionBlocks: "It may become known which group of answers yours is in; it is protected within its "
    + "group only.",
  cautionLacking: "That you do not have something may become known.",
  cautionShown: "Answers of {names} are not protected: your report may show such an answer as it is."
    + " That one of the other answers is not yours may become known.",
  cautionAnswers: weakProtection("two answers"),
  cautionHaving: weakProtection("having and not having an answer"),
  cautionLists: weakProtection("two lists of answers"),
  cautionEach: "Each answer is protected on its own, but a list of several answers is not: whoever "
    + "sees your report may be almost sure of the list as a whole.",
  everything: "Whoever sees everything you send can change their odds between your answers and any "
    + `others ${FACTOR}`,
  everythingKnown: "What everything you send can tell has no limit: of some answers it may become "
    + "known that they are yours, or that they are not. Each question says which.",
  openlySent: "Answers to {names} are sent as they are; this does not cover them.",
  answerTogether: "Another question of this survey tells about this answer too: whoever sees "
    + `everything you send can change their odds between it and any other ${FACTOR}`,
  cautionEverything: "This is weak protection: everything you send together can change the odds "
    + "between two records by up to a factor of {factor}.",
  cautionEverythingRaised: "This is weak protection: everything you send together can raise the "
    + "odds of your answers by up to a factor of {factor}.",
  drawnQuestions: Object.freeze({
    one: "Your device draws {asked} of the {of} questions; the other is not asked.",
    other: "Your device draws {asked} of the {of} questions; the other {n} are not asked.",
  }),
  answers: Object.freeze({ one: "{n} answer", other: "{n} answers" }),
  none: "none",
  range: "{low} to {high}",
  fixed: "The report names {named} of {answers}, drawn at random: {chances}.",
  bits: "For each of {answers} it was drawn at random whether the report names it; it names "
    + "{named}: {chances}.",
  ticket: "The report is a number that stands for a random choice among {answers}; it names "
    + "{named}: {chances}.",
  hits: "The report is a row of numbers that stands for a random choice among {answers}; it names "
    + "{named}: {chances}.",
  nothing: "The report names no answer, whatever yours is.",
  chances: "{yours} is named with a chance of {mine}, one that is not yours with about {others}",
  own: "your own answer",
  ownOfThese: "your own answer, if it is one of these,",
  drawn: "one of yours, if one is drawn at random,",
  drawnOfThese: "one of yours, if one is drawn at random and is one of these,",
  yours: "one of yours",
  yoursOfThese: "one of yours, if it is one of these,",
  padded: Object.freeze({
    one: "{chances}; if more than {n} is yours, {n} of them, drawn at random, counts as yours",
    other: "{chances}; if more than {n} are yours, {n} of them, drawn at random, count as yours",
  }),
  silent: "It says nothing about {n} of the answers.",
  kinds: "It is one of {k} kinds, drawn at random {by}.",
  silentKinds: "It says nothing about {n} of the answers, and is one of {k} kinds, drawn at random "
    + "{by}.",
  byAnswer: "with chances that depend on your answer",
  byNothing: "whatever your answers are",
});

let current = ENGLISH; // the sentences of the language in use

/**
 * Switch to another language. Its sentences have the keys of ENGLISH and the same placeholders.
 * @param {typeof ENGLISH} sentences
 */
function speak(sentences = ENGLISH) {
  current = sentences;
}

/** Rewrite an English number with the marks of the language in use. @param {string} written */
function localise(written) {
  const parts = new Intl.NumberFormat(current.language).formatToParts(12_345.6);
  const mark = (type) => parts.find((part) => part.type === type)?.value ?? "";
  return written.replace(/[.,]/g, (c) => mark(c === "." ? "decimal" : "group"));
}

/** The sentence with this key, its placeholders filled in. */
function say(key, values = {}) {
  const form = current[key];
  const plural = () => new Intl.PluralRules(current.language).select(values.n);
  const text = typeof form === "string" ? form : form[plural()] ?? form.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? digits(values[name]) : values[name];
  });
}

/** A whole number. */
const digits = (n) => localise(n.toLocaleString("en"));

const percent = (share) => localise(`${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`);

/** The smallest and the largest of these shares, in percent. */
function percentRange(shares) {
  const ends = [Math.min, Math.max].map((end) => shares.reduce((x, y) => end(x, y)));
  const [low, high] = ends.map(percent);
  return low === high ? low : say("range", { low, high });
}

// ---- encodings/base.js --------------------------------------------------------------------------

// How a report names items. Nothing outside this folder knows one encoding from another. Each has
//   kind, its name in a file; keys, the parameters in its table there;
//   fits(context), and `needs`, what it needs if it does not fit;
//   readParts(raw, context), parts of the right shape;
//   prove(terms), the exact check, which throws unless every part keeps what the policy asks;
//   size, the bytes of a report; report(draws, items), a new one for the items of an answer;
//   refusal(report), why it is refused, or null;
//   partOf(report); named(report), the places of the items that it names;
//   meaning(k, named), what a report of part k that names so many items says, for people;
//   factors(), the promise of every group: by how much an answer of it, or (lists) having one of
//   its items or not, changes the chance of any report at most;
//   setFactor() and listFactor(items), the same between any two lists, and between one list and any
//   other; not where every item is protected on its own, because there the factors multiply.

/** @typedef {{groups: Groups, policy: Policy, padding: number}} Context */

/** Why bytes are not a report of a mechanism. */
const REASONS = Object.freeze({
  length: "a report of this mechanism has {size} bytes",
  part: "the first byte names a part that the mechanism does not have",
  tail: "a bit beyond the last item is set",
  size: "the report names another number of items of a level than every report does",
  silent: "the report names an item of a level that its part says nothing about",
  ticket: "the number is beyond the last ticket",
  residue: "a coefficient is not below the prime",
  order: "the numbers of the items do not go up, or one is beyond the last item",
});

class Encoding {
  static keys = [];

  /** @param {Context} context @param {readonly (Part | HitsPart | PicksPart)[]} parts */
  constructor({ groups, policy, padding }, parts) {
    Object.assign(this, { groups, policy, padding, parts });
    this.groupSizes = Object.freeze(groups.members.map(({ length }) => length));
  }

  /** How many shares a mechanism has: of every group, then of empty samples of lists. */
  get shareCount() {
    return this.groups.members.length + KINDS[this.policy.kind].lists;
  }

  /** The key of the sentence that describes a report. */
  get sentence() {
    return this.kind;
  }

  /** The part whose stretch of the cumulative chances a 32-bit integer falls into. */
  drawPart(draws, chanceIn) {
    const chances = this.parts.map(chanceIn);
    let k = 0;
    if (chances.length === 1) return k; // and nothing is drawn
    for (let draw = draws.next(); draw >= chances[k]; k++) draw -= chances[k];
    return k;
  }

  meaning(k, named) {
    const { parts, groupSizes, groups: { m } } = this;
    const speaking = groupSizes.flatMap((_, g) => (this.speaks(parts[k], g) ? [g] : []));
    const among = speaking.reduce((total, g) => total + groupSizes[g], 0);
    if (!among) return { mine: [0], others: [0], sentence: this.#addKinds(say("nothing"), 0) };
    const { mine, others } = this.chances(k, speaking);
    const yours = KINDS[this.policy.kind].lists ? this.yours : "own";
    const chances = this.addPadding(say("chances", {
      yours: say(among < m ? `${yours}OfThese` : yours),
      mine: percentRange(mine), others: percentRange(others),
    }));
    const first = say(this.sentence, {
      named: named ? digits(named) : say("none"), answers: say("answers", { n: among }), chances,
    });
    return { mine, others, sentence: this.#addKinds(first, m - among) };
  }

  /** Add how many answers the report is silent about, and how its part was drawn. */
  #addKinds(first, n) {
    const k = this.parts.length;
    const key = `${n ? "silent" : ""}${k > 1 ? "Kinds" : ""}`;
    if (!key) return first;
    return `${first} ${say(key === "Kinds" ? "kinds" : key, { n, k, by: say(this.by) })}`;
  }

  /** Add how a list longer than the padding is cut; nothing unless the encoding says so. */
  addPadding(chances) {
    return chances;
  }
}

// ---- encodings/sampling.js ----------------------------------------------------------------------

/** Whether a part holds answers as they are. */
const isPlain = ({ own, other }) => own.some((x, g) => x === D && !other[g]);

/** Reports about one item of an answer: the only one, or one drawn at random from a padded list. */
class Sampling extends Encoding {
  samples = true;
  static needs = "sets that are protected as a whole, or single answers";
  by = "byAnswer";
  yours = "drawn";
  #states; // per part, computed when first needed

  static fits({ policy }) {
    return !KINDS[policy.kind].alone;
  }

  /** @returns {readonly Part[]} */
  static readParts(raw, { groups, policy }, most = 256) {
    const keys = ["chance", "own", "other"];
    const { lists } = KINDS[policy.kind]; // then there is an input "none"
    for (const part of readPartList(raw, most)) {
      table(part, lists ? [...keys, "none"] : keys, "a part");
      for (const key of keys) integers(part[key], groups.members.length, `${key} of a part`);
      if (lists) integers([part.none], 1, "none of a part");
    }
    return raw;
  }

  prove(terms) {
    this.checkPlain();
    checkChances(this.parts, terms);
    for (const part of this.parts) checkPairs(terms, this.#inputs(part, terms.names));
  }

  /** Throw where answers are sent as they are: only tickets can, in their last part. */
  checkPlain(parts = this.parts) {
    if (parts.some(isPlain)) {
      throw violation("answers are sent as they are in the last part of tickets alone");
    }
  }

  /** The states of every group, then of "none". @returns {Extremes[]} */
  #inputs(part, names) {
    const zeros = !KINDS[this.policy.kind].lists;
    const inputs = names.map((name, g) => {
      return groupExtremes(part, g, this.denominator(g), name, zeros);
    });
    const none = () => onlyState(product(integer(part.none), integer(D)), "no item");
    return "none" in part ? [...inputs, none()] : inputs;
  }

  /** The same of every part. @returns {Extremes[][]} */
  get #allInputs() {
    const names = this.groupSizes.map(() => "");
    this.#states ??= this.parts.map((part) => this.#inputs(part, names));
    return this.#states;
  }

  report(draws, items) {
    const held = KINDS[this.policy.kind].pads ? this.#sample(draws, items) : items[0];
    const group = this.groups.groupOf[held];
    const k = this.drawPart(draws, ({ chance, none }) => (held < 0 ? none : chance[group]));
    const chance = held < 0 ? 0 : this.parts[k].own[group]; // 0 where the group is silent, too
    return this.write(draws, k, held, chance > 0 && draws.next() < chance);
  }

  /** Padding-and-Sampling (the paper, Algorithm 1): one of max(|x|, padding) places; or -1. */
  #sample(draws, items) {
    return items[draws.below(Math.max(items.length, this.padding))] ?? -1;
  }

  speaks({ own, other }, g) {
    return own[g] + other[g] > 0;
  }

  chances(k, speaking) {
    const part = this.parts[k];
    const mine = speaking.map((g) => part.own[g] / D);
    return { mine, others: speaking.flatMap((g) => this.others(part, g)) };
  }

  /** The chances that an item of group g is named for people with other answers. */
  others({ other }, g) {
    return [other[g] / this.denominator(g)];
  }

  /** Per group; with `levels` per level, over the groups that it is protected from. */
  factors({ oneWay = false, levels = null } = {}) {
    const { groupSizes, padding } = this;
    return largestPerGroup(this.#allInputs.map((states) => {
      if (KINDS[this.policy.kind].pads) return samplingFactors(states, groupSizes, padding);
      return levels ? protectedFactors(states, oneWay, levels)
        : answerFactors(states, groupSizes, oneWay);
    }));
  }

  setFactor() {
    return this.#allInputs.map(overallExtremes)
      .map(({ high, low }) => quotient(high, low)).reduce(larger);
  }

  listFactor(items) {
    const counts = this.groupSizes.map(() => 0);
    for (const item of items) counts[this.groups.groupOf[item]] += 1;
    const places = Math.max(items.length, this.padding);
    counts.push(places - items.length);
    return this.#allInputs.map((states) => {
      const mean = (key) => quotient(counts.reduce((total, n, g) => {
        return n ? plus(total, product(integer(n), states[g][key])) : total;
      }, ZERO), integer(places));
      return farthest(mean("high"), mean("low"), overallExtremes(states));
    }).reduce(larger);
  }
}

// ---- encodings/packed.js ------------------------------------------------------------------------

/** A bit per item, item k at byte k >> 3, bit k & 7; if there are several parts, the part first. */
class Bitmap extends Sampling {
  constructor(context, parts) {
    super(context, parts);
    this.head = parts.length > 1 ? 1 : 0;
    this.size = this.head + Math.ceil(this.groups.m / 8);
  }

  partOf(report) {
    return this.head ? report[0] : 0;
  }

  refusal(report) {
    const { m, groupOf } = this.groups;
    if (report.length !== this.size) return "length";
    if (this.partOf(report) >= this.parts.length) return "part";
    if (m % 8 && report.at(-1) >> m % 8) return "tail";
    const counts = this.groupSizes.map(() => 0);
    for (const item of this.named(report)) counts[groupOf[item]] += 1;
    return this.misuse(this.parts[this.partOf(report)], counts);
  }

  named(report) {
    const named = [];
    for (let item = 0; item < this.groups.m; item++) {
      if (this.isNamed(report, item)) named.push(item);
    }
    return named;
  }

  isNamed(report, item) {
    return ((report[this.head + (item >> 3)] >> (item & 7)) & 1) === 1;
  }

  name(report, item) {
    report[this.head + (item >> 3)] |= 1 << (item & 7);
  }

  /** An empty report of part k. */
  start(k) {
    const report = new Uint8Array(this.size);
    if (this.head) report[0] = k;
    return report;
  }
}

// ---- encodings/bits.js --------------------------------------------------------------------------

/** Every item on its own, with chance other[g] / 2^32. */
class Bits extends Bitmap {
  kind = "bits";

  denominator() {
    return D;
  }

  misuse({ other }, counts) {
    return counts.some((count, g) => count && !other[g]) ? "silent" : null;
  }

  write(draws, k, held, own) {
    const { other } = this.parts[k];
    const report = this.start(k);
    this.groups.groupOf.forEach((g, item) => {
      const named = item === held ? own : other[g] > 0 && draws.next() < other[g];
      if (named) this.name(report, item);
    });
    return report;
  }
}

// ---- check/exact_sets.js ------------------------------------------------------------------------

/*
 * The check of counted hits and of items that are asked one by one, in exact integer arithmetic. It
 * is meant to be audited, as exact.js is; check/exact_sets.py has the proof.
 *
 * Hits: the report is a polynomial that names item i of an active group if its value at i + 1 is
 * below the limit T. For a person with j active items, N of them named, the chance of a report over
 * that of a uniform one depends on j and N alone: it is f[j][N].
 */

const MASS = 2 ** 52; // of a row of hits; every mass is exact as a Number
const LARGEST_PADDING = 64; // of hits

/** n over k. @returns {bigint} */
function binomial(n, k) {
  let ways = 1n;
  for (let j = 1; j <= Math.min(k, n - k); j++) ways = (ways * BigInt(n - j + 1)) / BigInt(j);
  return ways;
}

/** w_N = C(j, N) T^N (P - T)^(j - N): how many of the P^j values of j items name N of them. */
function hitWeights(j, limit, prime) {
  const [hit, miss] = [BigInt(limit), BigInt(prime - limit)];
  return Array.from({ length: j + 1 }, (_, n) => {
    return binomial(j, n) * hit ** BigInt(n) * miss ** BigInt(j - n);
  });
}

/** The classes N > tau, N = tau and N < tau of a row: mass, smallest N, weights, their sum. */
function hitClasses([tau, hi, mid, lo], weights) {
  const part = (mass, first, end) => {
    const own = weights.slice(first, end);
    return { mass, first, weights: own, total: own.reduce((sum, weight) => sum + weight, 0n) };
  };
  return [part(hi, tau + 1), part(mid, tau, tau + 1), part(lo, 0, tau)];
}

/** f[j][N]: a report's chance over that of a uniform one, if N of j own items are named. */
function densities({ limit, rows }, prime) {
  const f = [[ONE]];
  rows.forEach((row, n) => {
    const j = n + 1;
    const all = BigInt(prime) ** BigInt(j);
    const classes = hitClasses(row, hitWeights(j, limit, prime)).reverse(); // from N = 0 up
    f.push(classes.flatMap(({ mass, weights, total }) => {
      return Array(weights.length).fill([BigInt(mass) * all, BigInt(MASS) * total]);
    }));
  });
  return f;
}

/** Check that the masses are chances. */
function checkRows({ limit, rows }, prime) {
  if (!(limit > 0 && limit < prime)) {
    throw violation(`limit = ${limit} of a part must lie strictly between 0 and ${prime}`);
  }
  rows.forEach(([tau, ...masses], n) => {
    const row = `row ${n + 1} of a part`;
    if (!(tau >= 0 && tau <= n + 1)) {
      throw violation(`tau = ${tau} in ${row} must lie between 0 and ${n + 1}`);
    }
    const [hi, , lo] = masses;
    if (masses.some((mass) => mass < 0) || masses.reduce((sum, mass) => sum + mass) !== MASS) {
      throw violation(`the masses of ${row} are not numbers from 0 that sum to 2^52`);
    }
    if ((tau === n + 1 && hi) || (tau === 0 && lo)) {
      throw violation(`a class of ${row} that cannot occur has a mass`);
    }
  });
}

/**
 * The largest factor, either way, between any list and the same list without one item: an item that
 * the part speaks about (there are `spoken` of them), and a silent one. A list of more than s items
 * is a mean over its s-subsets, and a ratio of means is extreme at s + 1 items.
 */
function hitFactors(f, s, spoken, m) {
  const largest = { active: ONE, silent: ONE };
  const meet = (who, x, y) => {
    const ratio = quotient(x, y);
    largest[who] = [ratio, inverse(ratio)].reduce(larger, largest[who]);
  };
  const mixed = (who, own, terms) => { // (own + sum) / (s + 1) own
    const sum = terms.reduce((total, [n, value]) => {
      return n ? plus(total, product(integer(n), value)) : total;
    }, own);
    meet(who, sum, product(integer(s + 1), own));
  };
  for (let j = 1; j <= Math.min(s, spoken); j++) {
    for (let n = 0; n < j; n++) for (const h of [0, 1]) meet("active", f[j][n + h], f[j - 1][n]);
  }
  // from here on there are s + 1 items; if m <= s the loops are empty
  for (let a = Math.max(0, s - (m - spoken)); a <= Math.min(s, spoken - 1); a++) {
    for (let n = 0; n <= a; n++) {
      for (const h of [0, 1]) {
        const [same, next] = [f[a], f[a + 1] ?? []];
        const terms = [[n, same[n - 1 + h]], [a - n, same[n + h]], [s - a, next[n + h]]];
        mixed("active", same[n], terms);
      }
    }
  }
  for (let a = Math.max(0, s - (m - spoken) + 1); a <= Math.min(s, spoken); a++) {
    for (let n = 0; n <= a; n++) {
      const [same, less] = [f[a], f[a - 1] ?? []];
      mixed("silent", same[n], [[n, less[n - 1]], [a - n, less[n]], [s - a, same[n]]]);
    }
  }
  return largest;
}

/**
 * Check counted hits for any two lists, and for any item.
 * @param {Terms} terms @param {readonly HitsPart[]} parts @param {number[]} sizes of every group
 * @returns {{ends: Extremes[], all: Extremes, factors: Ratio[]}[]} of every part the extremes of
 *   f[j], those of all lists there are, and the factor of every group
 */
function checkHits({ names, least }, parts, prime, sizes) {
  checkColumn(parts.map(({ chance }) => chance));
  const m = sizes.reduce((total, size) => total + size, 0);
  return parts.map((part) => {
    checkRows(part, prime);
    const f = densities(part, prime);
    const s = part.rows.length;
    const ends = f.map((values) => overallExtremes(values.map((value) => onlyState(value))));
    const [smallest, ofActive] = [least, least.filter((_, g) => part.active[g])]
      .map((bounds) => bounds.reduce(smaller));
    checkLists(ends.map((own, j) => {
      return { own, j: [j], bound: listBound([j], [ofActive], smallest, s) };
    }));
    const spoken = countSpoken(part, sizes);
    const { active, silent } = hitFactors(f, s, spoken, m);
    const factors = part.active.map((x) => (x ? active : silent));
    checkItems(factors, least, names);
    return { ends, all: overallExtremes(ends.slice(0, Math.min(s, spoken) + 1)), factors };
  });
}

/** All vectors of whole numbers from 0 to these limits, in their order. @param {number[]} limits */
function vectorsUpTo(limits) {
  if (!limits.length) return [[]];
  const rest = vectorsUpTo(limits.slice(1));
  return Array.from({ length: limits[0] + 1 }, (_, x) => rest.map((more) => [x, ...more])).flat();
}

const sumOf = (numbers) => numbers.reduce((total, x) => total + x, 0);

/**
 * The mean of the largest and of the smallest values of the classes that a list of so many items is
 * cut to. @param {(j: number[]) => Extremes} ends of a class @param {number[]} mine the class of all
 */
function meanOfCuts(ends, mine, size, padding) {
  const [idle, drawn] = [size - sumOf(mine), Math.min(padding, size)];
  const all = [binomial(size, drawn), 1n];
  let [high, low] = [ZERO, ZERO];
  for (const j of vectorsUpTo(mine)) {
    const rest = drawn - sumOf(j);
    if (rest >= 0 && rest <= idle) {
      const ways = j.reduce((total, x, b) => total * binomial(mine[b], x), binomial(idle, rest));
      high = plus(high, product([ways, 1n], ends(j).high));
      low = plus(low, product([ways, 1n], ends(j).low));
    }
  }
  return [quotient(high, all), quotient(low, all)];
}

/** The number of items that a part speaks about. */
function countSpoken({ active }, sizes) {
  return sizes.reduce((total, size, g) => total + active[g] * size, 0);
}

/** The factor R_j of lists of class j: own items of blocks with these factors, s places. */
function listBound(j, factors, smallest, s) {
  const own = j.map((x, b) => product(integer(x), factors[b]));
  return quotient(own.reduce(plus, product(integer(s - sumOf(j)), smallest)), integer(s));
}

/** max f_j <= R_j LO and HI <= R_j min f_j. @param {{own: Extremes, bound: Ratio, j: number[]}[]} all */
function checkLists(all) {
  const { high, low } = overallExtremes(all.map(({ own }) => own));
  if (!low[0]) throw violation("a class of a row has mass 0, so that some reports are ruled out");
  for (const { own, bound, j } of all) {
    if (isLess(product(bound, low), own.high) || isLess(product(bound, own.low), high)) {
      const who = `lists with ${j.join(" + ")} of the answers that a part speaks about`;
      throw violation(`${who} are told apart from others by more than their budget`, { row: sumOf(j) });
    }
  }
}

/** Throw if having an item or not changes more than the budget of its level allows. */
function checkItems(factors, least, names) {
  names.forEach((name, g) => {
    if (!isLess(least[g], factors[g])) return;
    const what = `having or not having an item of level ${quoted(name)} changes a report's chance`;
    throw violation(`${what} by more than its budget`, { levels: [name] });
  });
}

/** Check items that are asked one by one. @param {Terms} terms @param {Part} part the only one */
function checkEach({ names, least, isMutual }, part) {
  const isInside = (x) => x > 0 && x < D;
  names.forEach((name, g) => {
    const [own, other] = [part.own[g], part.other[g]];
    if (!(isInside(own) || (!isMutual && own === D)) || !isInside(other)) {
      const what = `own = ${own}/${D} and other = ${other}/${D} of level ${quoted(name)}`;
      throw violation(`${what} must lie strictly between 0 and 1`);
    }
  });
  checkItems(eachFactors(part, isMutual), least, names);
}

/**
 * Per group, by how much having or not having one of its items changes any report's chance; unless
 * it is mutual, by how much having it raises the chance.
 */
function eachFactors({ own, other }, isMutual) {
  return own.map((_, g) => {
    const [a, b, all] = [own[g], other[g], D].map(BigInt);
    const [named, unnamed] = [[a, b], [all - a, all - b]];
    const ratios = isMutual ? [named, inverse(named), unnamed, inverse(unnamed)] : [named, unnamed];
    return ratios.reduce(larger);
  });
}

// ---- encodings/each.js --------------------------------------------------------------------------

/** Bits for lists in which every item is protected on its own: nothing is sampled. */
class Each extends Bits {
  static needs = "kind = \"each\"";
  kind = "each";
  sentence = "bits";
  yours = "yours";

  static fits({ policy }) {
    return KINDS[policy.kind].alone;
  }

  static readParts(raw, context) {
    return super.readParts(raw, context, 1);
  }

  prove(terms) {
    checkChances(this.parts, terms);
    checkEach(terms, this.parts[0]);
  }

  report(draws, items) {
    const [{ own, other }] = this.parts;
    const [mine, report] = [new Set(items), this.start(0)];
    this.groups.groupOf.forEach((g, item) => {
      if (draws.next() < (mine.has(item) ? own : other)[g]) this.name(report, item);
    });
    return report;
  }

  chances(k) {
    const { own, other } = this.parts[k];
    return { mine: own.map((x) => x / D), others: other.map((x) => x / D) };
  }

  factors() {
    return eachFactors(this.parts[0], this.policy.isMutual);
  }
}

// ---- encodings/fixed.js -------------------------------------------------------------------------

/** Exactly other[g] items of every group g, as a uniform subset. */
class Fixed extends Bitmap {
  kind = "fixed";

  denominator(g) {
    return this.groupSizes[g];
  }

  misuse({ other }, counts) {
    return counts.some((count, g) => count !== other[g]) ? "size" : null;
  }

  write(draws, k, held, own) {
    const { groupOf, members, rank } = this.groups;
    const report = this.start(k);
    if (own) this.name(report, held);
    this.parts[k].other.forEach((wanted, g) => {
      if (!wanted) return;
      const mine = groupOf[held] === g;
      const skipped = mine ? rank[held] : members[g].length; // the held item is drawn already
      const other = (place) => members[g][place + (place >= skipped)];
      this.#subset(draws, report, other, members[g].length - mine, wanted - (mine && own));
    });
    return report;
  }

  /** Name a uniform subset of `wanted` of n items (Floyd's algorithm). */
  #subset(draws, report, item, n, wanted) {
    for (let end = n - wanted; end < n; end++) {
      const drawn = item(draws.below(end + 1));
      this.name(report, this.isNamed(report, drawn) ? item(end) : drawn);
    }
  }

  /** If the own item is named, one place less is left for the others of its group. */
  others(part, g) {
    const size = this.groupSizes[g];
    const sameGroup = (part.other[g] - part.own[g] / D) / (size - 1);
    const elsewhere = size < this.groups.m || "none" in part;
    return elsewhere ? [sameGroup, ...super.others(part, g)] : [sameGroup];
  }
}

// ---- encodings/arithmetic.js --------------------------------------------------------------------

// Arithmetic modulo a prime.

/**
 * A uniform polynomial with these values at these points: Newton's form, with uniform coefficients
 * where the points leave a choice.
 * @param {number[]} points all different @param {number[]} free uniform coefficients
 * @returns {number[]} coefficients, the constant first
 */
function interpolate(points, values, free, prime) {
  const slopes = [...values]; // divided differences
  for (let gap = 1; gap < points.length; gap++) {
    for (let k = points.length - 1; k >= gap; k--) {
      const [rise, run] = [slopes[k] - slopes[k - 1], points[k] - points[k - gap]];
      slopes[k] = times((rise + prime) % prime, reciprocal((run + prime) % prime, prime), prime);
    }
  }
  return points.reduceRight((poly, point, k) => {
    const next = [slopes[k], ...poly]; // poly (x - point) + slope
    poly.forEach((x, n) => { next[n] = (next[n] + prime - times(x, point, prime)) % prime; });
    return next;
  }, free);
}

/** x y mod a prime below 2^31, exactly: 16 bits of y at a time keep every product below 2^53. */
function times(x, y, prime) {
  return (((x * (y >>> 16)) % prime) * 2 ** 16 + x * (y & 0xffff)) % prime;
}

/** 1 / x mod a prime, 0 < x < prime: Euclid's algorithm. */
function reciprocal(x, prime) {
  let [r, next, t, step] = [prime, x, 0, 1];
  while (next) {
    const n = Math.floor(r / next);
    [r, next, t, step] = [next, r - n * next, step, t - n * step];
  }
  return t < 0 ? t + prime : t;
}

/** x^n, exact below 2^53; everything it is compared with is far smaller. */
function power(x, n) {
  return n ? x * power(x, n - 1) : 1;
}

function isPrime(q) {
  for (let k = 2; k * k <= q; k++) if (q % k === 0) return false;
  return q > 1;
}

// ---- encodings/hits.js --------------------------------------------------------------------------

/**
 * Counted hits: the report is a polynomial p of s + 2 coefficients mod a prime, and names item i of
 * an active group if p(i + 1) is below the limit T. Of at most s own items, of which j are active,
 * some number N is named: N > tau, N = tau or N < tau, with the masses of row j. Any s + 2 values
 * of a random p are independent and uniform, so a report's chance depends on j and N alone.
 */
class Hits extends Encoding {
  static keys = ["prime"];
  static needs = "sets that are protected as a whole, with notion = \"min\", no budgets of pairs "
    + `and a padding up to ${LARGEST_PADDING}`;
  kind = "hits";
  by = "byNothing";
  yours = "yours";
  #classes = new Map(); // of a part and a number of items, computed when first needed
  #proved = []; // per part, what the check computed

  static fits({ policy: { kind, strict, notion, pairs }, padding }) {
    return KINDS[kind].pads && NOTIONS[notion].hits && (strict || !pairs.length)
      && padding <= LARGEST_PADDING;
  }

  /** @returns {readonly HitsPart[]} */
  static readParts(raw, { groups, padding }) {
    for (const part of readPartList(raw)) {
      table(part, ["chance", "active", "limit", "rows"], "a part");
      integers([part.chance, part.limit], 2, "chance and limit of a part");
      const active = integers(part.active, groups.members.length, "active of a part");
      if (!active.every((x) => x === 0 || x === 1) || !active.includes(1)) {
        throw refused("active of a part must be 0 or 1 per group and 1 at least once, but is not");
      }
      const { length } = list(part.rows, "rows of a part");
      if (length !== padding) {
        throw refused(`a part has ${length} rows, but must have ${padding}, the padding`);
      }
      for (const row of part.rows) integers(row, 4, "a row of a part");
    }
    return raw;
  }

  /** @param {Context} context @param {readonly HitsPart[]} parts */
  constructor(context, parts, { prime }) {
    super(context, parts);
    const { m } = this.groups;
    const fits = Number.isInteger(prime) && prime >= 5 && prime > m && prime < 2 ** 31;
    if (!fits || !isPrime(prime)) {
      const allowed = `a prime above ${Math.max(m, 4)} and below 2^31`;
      throw refused(`prime of the encoding is ${quoted(prime)}, but must be ${allowed}`);
    }
    const width = prime < 2 ** 16 ? 2 : 4;
    Object.assign(this, { prime, width, size: 1 + (this.padding + 2) * width });
  }

  // -- a report

  report(draws, items) {
    const { prime, padding, groups: { groupOf } } = this;
    const k = this.drawPart(draws, ({ chance }) => chance);
    const { active, limit } = this.parts[k];
    // cut the list whatever its levels are; otherwise the promise for lists would not hold
    const kept = items.length > padding ? draws.subset(items, padding) : items;
    const own = kept.filter((item) => active[groupOf[item]]);
    const named = this.#drawNamed(draws, k, own.length);
    const values = own.map((_, place) => {
      return named.includes(place) ? draws.below(limit) : limit + draws.below(prime - limit);
    });
    const free = Array.from({ length: padding + 2 - own.length }, () => draws.below(prime));
    return this.#pack(k, interpolate(own.map((item) => item + 1), values, free, prime));
  }

  /** Which of j own items are named, by their places: first how many by the row, then which. */
  #drawNamed(draws, k, j) {
    if (!j) return [];
    const classes = this.#classesFor(k, j);
    let [mass, c] = [draws.mass(), 0];
    for (; mass >= classes[c].mass; c++) mass -= classes[c].mass;
    const { first, weights, total } = classes[c];
    let n = 0;
    for (let weight = draws.belowBig(total); weight >= weights[n]; n++) weight -= weights[n];
    return draws.subset(Array.from({ length: j }, (_, place) => place), first + n);
  }

  #classesFor(k, j) {
    const key = (LARGEST_PADDING + 1) * k + j;
    const { limit, rows } = this.parts[k];
    if (!this.#classes.has(key)) {
      this.#classes.set(key, hitClasses(rows[j - 1], hitWeights(j, limit, this.prime)));
    }
    return this.#classes.get(key);
  }

  #pack(k, coefficients) {
    const report = new Uint8Array(this.size);
    const view = new DataView(report.buffer);
    report[0] = k;
    coefficients.forEach((value, n) => {
      if (this.width === 2) view.setUint16(1 + 2 * n, value, true);
      else view.setUint32(1 + 4 * n, value, true);
    });
    return report;
  }

  #coefficients(report) {
    const view = new DataView(report.buffer, report.byteOffset, report.length);
    return Array.from({ length: this.padding + 2 }, (_, n) => {
      return this.width === 2 ? view.getUint16(1 + 2 * n, true) : view.getUint32(1 + 4 * n, true);
    });
  }

  refusal(report) {
    if (report.length !== this.size) return "length";
    if (this.partOf(report) >= this.parts.length) return "part";
    return this.#coefficients(report).some((value) => value >= this.prime) ? "residue" : null;
  }

  partOf(report) {
    return report[0];
  }

  named(report) {
    const { prime, groups: { groupOf } } = this;
    const { active, limit } = this.parts[this.partOf(report)];
    const falling = this.#coefficients(report).reverse();
    const named = [];
    groupOf.forEach((g, item) => {
      if (!active[g]) return;
      let value = 0;
      for (const x of falling) value = (times(value, item + 1, prime) + x) % prime;
      if (value < limit) named.push(item);
    });
    return named;
  }

  speaks({ active }, g) {
    return active[g] === 1;
  }

  chances(k) {
    const mine = Array.from({ length: this.#mostActive(k) }, (_, j) => this.#ownChance(k, j + 1));
    return { mine, others: [this.parts[k].limit / this.prime] };
  }

  addPadding(chances) {
    const { padding, groups: { m } } = this;
    return m <= padding ? chances : say("padded", { chances, n: padding });
  }

  /** The chance that one of j active own items is named. */
  #ownChance(k, j) {
    return this.#classesFor(k, j).reduce((total, { mass, first, weights, total: all }) => {
      if (!weights.length) return total;
      const hits = weights.reduce((sum, weight, n) => sum + BigInt(first + n) * weight, 0n);
      return total + (mass / MASS) * toNumber([hits, all]);
    }, 0) / j;
  }

  // -- the check, and the promises that it computes

  prove(terms) {
    this.#proved = checkHits(terms, this.parts, this.prime, this.groupSizes);
  }

  /** The most active items of part k that a reported list can hold. */
  #mostActive(k) {
    return Math.min(this.padding, countSpoken(this.parts[k], this.groupSizes));
  }

  factors() {
    return largestPerGroup(this.#proved.map(({ factors }) => factors));
  }

  setFactor() {
    return this.#proved.map(({ all: { high, low } }) => quotient(high, low)).reduce(larger);
  }

  listFactor(items) {
    const { padding, groups: { groupOf }, parts } = this;
    return this.#proved.map(({ ends, all }, k) => {
      const active = items.filter((item) => parts[k].active[groupOf[item]]).length;
      const [high, low] = meanOfCuts(([j]) => ends[j], [active], items.length, padding);
      return farthest(high, low, all);
    }).reduce(larger);
  }
}

// ---- check/exact_picks.js -----------------------------------------------------------------------

/*
 * The check of picks, sets that are reported as subsets of fixed sizes, in exact integer arithmetic.
 * It is meant to be audited, as exact.js is; check/exact_picks.py has the proof.
 *
 * Parts with the same blocks of groups are a cut, which a public chance draws. A person has a class:
 * how many own items every block has. By the row of the class a part and a bunch are drawn, some
 * vectors of how many own items of every block are named; then a vector of the bunch, then in every
 * block a subset that names so many, every choice alike. So the chance of a report over that of
 * uniform subsets depends on the class j and the vector n alone.
 */

/** The classes of people with at most s active items, in the order of the rows. */
function classesOf(blocks, s) {
  if (!blocks) return [[]];
  return Array.from({ length: s + 1 }, (_, j) => {
    return classesOf(blocks - 1, s - j).map((rest) => [j, ...rest]);
  }).flat();
}

/** Whether parts of so many blocks are checked within a limit, as in Python. */
function areSoonChecked(blocksOf, s) {
  const compared = blocksOf.map((blocks) => binomial(s + 2 * blocks, s) * BigInt(blocks) ** 3n);
  return compared.reduce((total, x) => total + x, 0n) <= 1n << 20n;
}

/** How many there are. */
const countClasses = (blocks, s) => Number(binomial(s + blocks, blocks));

/** How many items every block has. @returns {number[]} */
function blockItems({ blocks, sizes }, groupSizes) {
  return sizes.map((_, b) => groupSizes.reduce((m, size, g) => m + (blocks[g] === b + 1 ? size : 0), 0));
}

/** n (n - 1) ... down to n - k + 1. */
function fallingProduct(n, k) {
  let total = 1n;
  for (let i = 0; i < k; i++) total *= BigInt(n - i);
  return total;
}

const bigProduct = (numbers) => numbers.reduce((total, x) => total * x, 1n);

/** How many of j own items of every block a subset of k of m can name, in their order. */
function possible(m, k, j) {
  return vectorsUpTo(j).filter((n) => n.every((x, b) => x <= k[b] && k[b] - x <= m[b] - j[b]));
}

/** How often uniform subsets name n of j own items. */
const waysToName = (m, k, j, n) => bigProduct(n.map((x, b) => {
  return binomial(j[b], x) * fallingProduct(k[b], x) * fallingProduct(m[b] - k[b], j[b] - x);
}));

/** The bunches of a row: mass, vectors, weights, their sum. */
function bunchesOf(m, { sizes }, j, row) {
  const vectors = possible(m, sizes, j);
  return row.map(([mass, ...places]) => {
    const mine = places.map((place) => vectors[place]);
    const weights = mine.map((n) => waysToName(m, sizes, j, n));
    return { mass, vectors: mine, weights, total: weights.reduce((sum, x) => sum + x, 0n) };
  });
}

/** The parts of every cut, by their places: those with the same blocks. */
function cutsOf(parts) {
  const cuts = new Map();
  parts.forEach(({ blocks }, k) => cuts.set(`${blocks}`, [...cuts.get(`${blocks}`) ?? [], k]));
  return [...cuts.values()];
}

/** Check that the bunches of every row hold each vector that can be named once. */
function checkBunches({ sizes, rows }, m, classes) {
  sizes.forEach((k, b) => {
    if (!(k >= 0 && k < m[b])) {
      throw violation(`a size of a part is ${k}, but must be from 0 to ${m[b] - 1}, fewer than its `
        + "block's items");
    }
  });
  rows.forEach((row, r) => {
    if (row.some(([mass]) => mass <= 0)) {
      throw violation(`the bunches of row ${r} of a part must have positive masses`);
    }
    const places = row.flatMap(([, ...mine]) => mine).sort((a, b) => a - b);
    const count = classes[r].some((x, b) => x > m[b]) ? 0 : possible(m, sizes, classes[r]).length;
    if (places.length !== count || places.some((place, n) => place !== n)) {
      throw violation(`the bunches of row ${r} of a part must hold each of its ${count} vectors once`);
    }
  });
}

/** Check the chances of the cuts, and the masses of the parts of every cut. */
function checkCuts(parts) {
  let total = 0;
  for (const cut of cutsOf(parts)) {
    const [{ chance, rows }] = cut.map((k) => parts[k]);
    if (!(chance > 0) || cut.some((k) => parts[k].chance !== chance)) {
      throw violation("every part of a cut must have the cut's chance, a positive number");
    }
    total += chance;
    rows.forEach((first, r) => {
      const masses = cut.flatMap((k) => parts[k].rows[r].map(([mass]) => BigInt(mass)));
      if (first.length && masses.reduce((sum, mass) => sum + mass, 0n) !== BigInt(MASS)) {
        throw violation(`the masses of row ${r} do not sum to 2^52 over the parts of a cut`);
      }
    });
  }
  if (total !== D) throw violation("the chances of the cuts do not sum to 2^32");
}

/**
 * The densities of a part, times one number that makes all of them whole: of every class and vector,
 * by their texts. @returns {Map<string, Map<string, bigint>>}
 */
function pickDensities(part, m, classes) {
  const rows = classes.map((j, r) => {
    const all = bigProduct(j.map((x, b) => fallingProduct(m[b], x)));
    return bunchesOf(m, part, j, part.rows[r]).map((bunch) => ({ ...bunch, all }));
  });
  const scale = rows.flat().reduce((lcm, { total }) => (lcm / divisor(lcm, total)) * total, 1n);
  return new Map(classes.map((j, r) => {
    const cells = rows[r].flatMap(({ mass, vectors, total, all }) => {
      const value = BigInt(mass) * all * (scale / total);
      return vectors.map((n) => [`${n}`, value]);
    });
    return [`${j}`, new Map(cells)];
  }));
}

const divisor = (a, b) => (b ? divisor(b, a % b) : a);

const added = (vector, b, more) => vector.map((x, c) => (c === b ? x + more : x));

/**
 * The largest factor, either way, between any list and the same list without one item: an item of
 * every block, and a silent one, of `others`. Only reports that exist are compared.
 */
function pickFactors(f, m, s, classes, others) {
  const held = m.map(() => ONE);
  let silent = ONE;
  const largest = (before, ratio) => [ratio, inverse(ratio)].reduce(larger, before);
  const at = (j, n) => f.get(`${j}`)?.get(`${n}`);
  /** Item i joins s others of class j: it takes the place of one of them, or stays out. */
  const replaced = (j, n, idle, b, h) => {
    const [joined, named] = [added(j, b, 1), added(n, b, h)];
    const terms = [[idle, at(joined, named)]];
    j.forEach((x, c) => {
      const out = added(joined, c, -1);
      if (n[c]) terms.push([n[c], at(out, added(named, c, -1))]);
      if (x > n[c]) terms.push([x - n[c], at(out, named)]);
    });
    const real = terms.filter(([places]) => places);
    if (real.some(([, value]) => value === undefined)) return ONE; // there is no such report
    const own = at(j, n);
    const sum = real.reduce((total, [places, value]) => total + BigInt(places) * value, own);
    return [sum, BigInt(s + 1) * own];
  };
  for (const j of classes) {
    const idle = s - sumOf(j);
    for (const text of f.get(`${j}`).keys()) {
      const n = text.split(",").map(Number);
      m.forEach((size, b) => {
        for (const h of [0, 1]) {
          const less = at(added(j, b, -1), added(n, b, -h));
          if (less !== undefined) held[b] = largest(held[b], [at(j, n), less]);
          if (idle <= others && j[b] < size) held[b] = largest(held[b], replaced(j, n, idle, b, h));
        }
      });
      if (idle < others) silent = largest(silent, replaced(j, n, idle, -1, 0));
    }
  }
  return { held, silent };
}

/**
 * Check picks for any two lists, and for any item.
 * @param {Terms} terms @param {readonly PicksPart[]} parts @param {number[]} groupSizes
 * @param {number} s the padding
 * @returns {{ends: Map<string, Extremes>, all: Extremes, factors: Ratio[]}[]} of every part the
 *   extremes of every class, those of all lists there are, and the factor of every group
 */
function checkPicks({ names, least }, parts, groupSizes, s) {
  const proved = parts.map((part) => {
    const m = blockItems(part, groupSizes);
    const classes = classesOf(m.length, s);
    checkBunches(part, m, classes);
    const f = pickDensities(part, m, classes);
    const people = classes.filter((j) => f.get(`${j}`).size);
    const ends = new Map(people.map((j) => {
      const states = [...f.get(`${j}`).values()].map((value) => onlyState([value, 1n]));
      return [`${j}`, overallExtremes(states)];
    }));
    const smallest = least.reduce(smaller);
    const ofBlock = m.map((_, b) => {
      return least.filter((_x, g) => part.blocks[g] === b + 1).reduce(smaller);
    });
    checkLists(people.map((j) => {
      return { own: ends.get(`${j}`), j, bound: listBound(j, ofBlock, smallest, s) };
    }));
    const { held, silent } = pickFactors(f, m, s, people, sumOf(groupSizes) - sumOf(m));
    const factors = part.blocks.map((block) => (block ? held[block - 1] : silent));
    checkItems(factors, least, names);
    return { ends, all: overallExtremes([...ends.values()]), factors };
  });
  checkCuts(parts);
  return proved;
}

/**
 * Of every class of people and every block: how many own items a report of the part names on
 * average, as a ratio; with the class. @returns {{j: number[], named: Ratio[]}[]}
 */
function pickMeans(part, m, s) {
  return classesOf(m.length, s).flatMap((j, r) => {
    const bunches = bunchesOf(m, part, j, part.rows[r]);
    if (!bunches.length) return [];
    const mass = bunches.reduce((total, bunch) => total + BigInt(bunch.mass), 0n);
    const scale = bigProduct(bunches.map(({ total }) => total));
    const named = m.map((_, b) => {
      const sum = bunches.reduce((all, { mass: own, vectors, weights, total }) => {
        const mine = vectors.reduce((x, n, i) => x + BigInt(n[b]) * weights[i], 0n);
        return all + BigInt(own) * mine * (scale / total);
      }, 0n);
      return quotient([sum, scale], [mass, 1n]);
    });
    return [{ j, named }];
  });
}

// ---- encodings/picks.js -------------------------------------------------------------------------

/**
 * Picks: the report is a part and, for every block of items that the part speaks about, a subset of
 * k of its m items. It names more of the own ones than chance would: how many of every block is
 * drawn together with the part, by the row of the person's class, and after that every subset is
 * alike. A block is written as m bits, or as k numbers in ascending order where that is shorter.
 */
class Picks extends Encoding {
  static keys = ["size"];
  static needs = Hits.needs;
  static fits = Hits.fits;
  kind = "picks";
  sentence = "fixed";
  by = "byAnswer";
  yours = "yours";
  #cuts;
  #layouts;
  #proved = []; // per part, what the check computed

  /** @returns {readonly PicksPart[]} */
  static readParts(raw, { groups, padding }) {
    const blocksOf = readPartList(raw).map((part) => (Array.isArray(part?.sizes) ? part.sizes.length : 0));
    if (!areSoonChecked(blocksOf, padding)) {
      throw refused(`${raw.length} parts of so many blocks at padding ${padding} take too long to `
        + "check");
    }
    for (const part of raw) {
      table(part, ["chance", "blocks", "sizes", "rows"], "a part");
      integers([part.chance], 1, "chance of a part");
      const blocks = integers(part.blocks, groups.members.length, "blocks of a part");
      const named = [...new Set(blocks)].filter((block) => block);
      if (!named.length || named.some((block, b) => block !== b + 1)) {
        throw refused("blocks of a part must be, per group, 0 or the number of a block, from 1 in "
          + "their order, but are not");
      }
      integers(part.sizes, named.length, "sizes of a part");
      const { length } = list(part.rows, "rows of a part");
      const wanted = countClasses(named.length, padding);
      if (length !== wanted) {
        throw refused(`a part has ${length} rows, but must have ${wanted}, one per class of people`);
      }
      for (const row of part.rows) {
        for (const bunch of list(row, "a row of a part")) {
          integers(bunch, Math.max(2, list(bunch, "a bunch of a part").length), "a bunch of a part");
        }
      }
    }
    return raw;
  }

  /** @param {Context} context @param {readonly PicksPart[]} parts */
  constructor(context, parts, { size }) {
    super(context, parts);
    this.#cuts = cutsOf(parts);
    this.#layouts = parts.map((part) => {
      let first = 0;
      return blockItems(part, this.groupSizes).map((m, b) => {
        const items = this.groups.groupOf.flatMap((g, item) => (part.blocks[g] === b + 1 ? [item] : []));
        const [k, width] = [part.sizes[b], m > 1 ? 32 - Math.clz32(m - 1) : 1];
        const asNumbers = k * width < m;
        const block = { first, m, k, width, items, asNumbers, used: asNumbers ? k * width : m };
        first += block.used;
        return block;
      });
    });
    const wanted = 1 + Math.max(...parts.map((_, k) => Math.ceil(this.#used(k) / 8)));
    if (size !== wanted) {
      throw refused(`size of the encoding is ${quoted(size)}, but must be ${wanted}, the bytes of `
        + "a report");
    }
    Object.assign(this, { size });
  }

  /** The bits of a report of part k. */
  #used(k) {
    const { first, used } = this.#layouts[k].at(-1);
    return first + used;
  }

  /** How many items every block of part k has. */
  #items(k) {
    return this.#layouts[k].map(({ m }) => m);
  }

  /** Empty samples are told apart by how many items people have. */
  get shareCount() {
    return this.groups.members.length + this.padding;
  }

  // -- a report

  report(draws, items) {
    const { padding } = this;
    const cut = this.#drawCut(draws);
    // cut the list whatever its levels are; otherwise the promise for lists would not hold
    const kept = new Set(items.length > padding ? draws.subset(items, padding) : items);
    const ranks = this.#layouts[cut[0]].map((block) => block.items.map((_, rank) => rank));
    const isOwn = (b) => (rank) => kept.has(this.#layouts[cut[0]][b].items[rank]);
    const own = ranks.map((mine, b) => mine.filter(isOwn(b)));
    const others = ranks.map((mine, b) => mine.filter((rank) => !isOwn(b)(rank)));
    const [k, named] = this.#drawPart(draws, cut, own.map(({ length }) => length));
    return this.#pack(k, named.map((n, b) => {
      const rest = draws.subset(others[b], this.parts[k].sizes[b] - n);
      return [...draws.subset(own[b], n), ...rest];
    }));
  }

  #drawCut(draws) {
    const cuts = this.#cuts;
    let c = 0;
    if (cuts.length === 1) return cuts[c]; // and nothing is drawn
    const chance = (place) => this.parts[cuts[place][0]].chance;
    for (let draw = draws.next(); draw >= chance(c); c++) draw -= chance(c);
    return cuts[c];
  }

  /** The part, and how many of j own items are named: first the bunch, then within it. */
  #drawPart(draws, cut, j) {
    const r = classesOf(j.length, this.padding).findIndex((other) => `${other}` === `${j}`);
    const bunches = cut.flatMap((k) => {
      const part = this.parts[k];
      return bunchesOf(this.#items(k), part, j, part.rows[r]).map((bunch) => ({ k, ...bunch }));
    });
    let [mass, i] = [draws.mass(), 0];
    for (; mass >= bunches[i].mass; i++) mass -= bunches[i].mass;
    const { k, vectors, weights, total } = bunches[i];
    let n = 0;
    for (let left = draws.belowBig(total); left >= weights[n]; n++) left -= weights[n];
    return [k, vectors[n]];
  }

  /** @param {number[][]} ranks of every block */
  #pack(k, ranks) {
    const report = new Uint8Array(this.size);
    const set = (bit) => { report[1 + (bit >> 3)] |= 1 << (bit & 7); };
    report[0] = k;
    this.#layouts[k].forEach(({ first, asNumbers, width }, b) => {
      if (!asNumbers) return ranks[b].forEach((rank) => set(first + rank));
      return [...ranks[b]].sort((x, y) => x - y).forEach((rank, n) => {
        for (let bit = 0; bit < width; bit++) if ((rank >> bit) & 1) set(first + n * width + bit);
      });
    });
    return report;
  }

  /** The ranks that a report names in every block, as they are written. */
  #ranks(report) {
    const bit = (place) => (report[1 + (place >> 3)] >> (place & 7)) & 1;
    return this.#layouts[this.partOf(report)].map(({ first, asNumbers, width, m, k }) => {
      const places = Array.from({ length: asNumbers ? k : m }, (_, n) => n);
      if (!asNumbers) return places.filter((n) => bit(first + n));
      return places.map((n) => {
        let rank = 0;
        for (let b = 0; b < width; b++) rank += bit(first + n * width + b) << b;
        return rank;
      });
    });
  }

  refusal(report) {
    if (report.length !== this.size) return "length";
    const k = this.partOf(report);
    if (k >= this.parts.length) return "part";
    for (let place = this.#used(k); place < 8 * (this.size - 1); place++) {
      if ((report[1 + (place >> 3)] >> (place & 7)) & 1) return "tail";
    }
    const found = this.#ranks(report);
    const blocks = this.#layouts[k];
    if (found.some((ranks, b) => ranks.length !== blocks[b].k)) return "size";
    const rises = (ranks, b) => ranks.every((rank, n) => {
      return rank < blocks[b].m && (!n || ranks[n - 1] < rank);
    });
    return found.every(rises) ? null : "order";
  }

  partOf(report) {
    return report[0];
  }

  named(report) {
    const blocks = this.#layouts[this.partOf(report)];
    return this.#ranks(report).flatMap((ranks, b) => ranks.map((rank) => blocks[b].items[rank]))
      .sort((x, y) => x - y);
  }

  speaks({ blocks }, g) {
    return blocks[g] > 0;
  }

  /** The chances that an item is named in reports of part k, whatever one has. */
  chances(k) {
    const [mine, others] = [[], []];
    for (const { j, named } of pickMeans(this.parts[k], this.#items(k), this.padding)) {
      this.#layouts[k].forEach(({ m, k: size }, b) => {
        const own = toNumber(named[b]);
        if (j[b]) mine.push(own / j[b]);
        if (j[b] < m) others.push((size - own) / (m - j[b]));
      });
    }
    return { mine, others };
  }

  addPadding(chances) {
    const { padding, groups: { m } } = this;
    return m <= padding ? chances : say("padded", { chances, n: padding });
  }

  // -- the check, and the promises that it computes

  prove(terms) {
    this.#proved = checkPicks(terms, this.parts, this.groupSizes, this.padding);
  }

  factors() {
    return largestPerGroup(this.#proved.map(({ factors }) => factors));
  }

  setFactor() {
    return this.#proved.map(({ all: { high, low } }) => quotient(high, low)).reduce(larger);
  }

  listFactor(items) {
    const { padding, groups: { groupOf }, parts } = this;
    return this.#proved.map(({ ends, all }, k) => {
      const blocks = items.map((item) => parts[k].blocks[groupOf[item]]);
      const mine = parts[k].sizes.map((_, b) => blocks.filter((block) => block === b + 1).length);
      const [high, low] = meanOfCuts((j) => ends.get(`${j}`), mine, items.length, padding);
      return farthest(high, low, all);
    }).reduce(larger);
  }
}

// ---- encodings/ticket.js ------------------------------------------------------------------------

/**
 * A 32-bit number whose digits in base q are the part and y_0, …, y_t. It names an item of group
 * g if the mark y_0 + y_1 c_1 + … + y_t c_t mod q is below other[g], where c is the item's code.
 * Two codes differ, so two marks are independent and uniform. The last part may be plain: its
 * digits are the place of an answer that nobody needs to hide.
 */
class Ticket extends Sampling {
  static keys = ["q", "t"];
  kind = "ticket";
  size = 4;

  /** @param {Context} context @param {{q: number, t: number}} sizes */
  constructor(context, parts, { q, t }) {
    super(context, parts);
    const { m } = this.groups;
    const fits = [q, t].every(Number.isInteger) && t >= 2 && t <= 31 && q > t
      && parts.length * power(q, t + 1) <= D && isPrime(q) && power(q, t) >= m;
    if (!fits) {
      const what = `${m} items and ${parts.length} parts`;
      throw refused(`a ticket of q = ${quoted(q)}, t = ${quoted(t)} does not fit ${what}`);
    }
    const plain = isPlain(parts.at(-1)) ? parts.length - 1 : -1;
    Object.assign(this, { q, t, tickets: power(q, t + 1), plain });
  }

  checkPlain() {
    if (this.plain < 0) return super.checkPlain();
    const { chance, own, other } = this.parts[this.plain];
    if (other.some((x) => x) || own.some((x, g) => x !== (chance[g] ? D : 0))) {
      throw violation("a part of answers that are sent as they are holds nothing else");
    }
    return super.checkPlain(this.parts.slice(0, -1));
  }

  denominator() {
    return this.q;
  }

  refusal(report) {
    if (report.length !== this.size) return "length";
    const [k, item] = [this.partOf(report), readUint32(report) % this.tickets];
    const isKnown = k !== this.plain || this.parts[k].chance[this.groups.groupOf[item]] > 0;
    return k < this.parts.length && isKnown ? null : "ticket";
  }

  partOf(report) {
    return Math.floor(readUint32(report) / this.tickets);
  }

  named(report) {
    const { q, t, groups } = this;
    if (this.partOf(report) === this.plain) return [readUint32(report) % this.tickets];
    const { other } = this.parts[this.partOf(report)];
    const y = [];
    let rest = readUint32(report);
    for (; y.length <= t; rest = Math.floor(rest / q)) y.unshift(rest % q);
    const [first, ...others] = y;
    const named = [];
    groups.groupOf.forEach((g, item) => { // `other` of a silent group is 0, so no mark is below it
      if ((first + this.#sum(others, item)) % q < other[g]) named.push(item);
    });
    return named;
  }

  write(draws, k, held, own) {
    const { q, t } = this;
    if (k === this.plain) return this.#pack(k * this.tickets + held);
    const threshold = held < 0 ? 0 : this.parts[k].other[this.groups.groupOf[held]];
    // A silent group draws every ticket alike; a mark of its own would give its items away.
    if (!threshold) return this.#pack(k * this.tickets + draws.below(this.tickets));
    const mark = own ? draws.below(threshold) : threshold + draws.below(q - threshold);
    const others = Array.from({ length: t }, () => draws.below(q));
    const first = (mark + q - (this.#sum(others, held) % q)) % q;
    return this.#pack([first, ...others].reduce((sum, digit) => sum * q + digit, k));
  }

  /**
   * y_1 c_1 + … + y_t c_t: c_1 is the item's first digit x in base q, c_j its digit j plus x^j.
   */
  #sum(y, item) {
    const x = item % this.q;
    let [sum, rest, bent] = [y[0] * x, item, x];
    for (let j = 1; j < this.t; j++) {
      rest = Math.floor(rest / this.q);
      bent = (bent * x) % this.q;
      sum += y[j] * ((rest + bent) % this.q);
    }
    return sum;
  }

  #pack(value) {
    const report = new Uint8Array(this.size);
    new DataView(report.buffer).setUint32(0, value, true);
    return report;
  }
}

/** The 4-byte little-endian integer. */
function readUint32(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
}

// ---- encodings/table.js -------------------------------------------------------------------------

// To add an encoding: a file in this folder, and its name here.
const ENCODINGS = {
  fixed: Fixed, bits: Bits, ticket: Ticket, hits: Hits, picks: Picks, each: Each,
};

/** @param {object} body of a mechanism file @param {Context} context */
function readEncoding({ encoding: raw, parts }, context) {
  const kind = choice("encoding", object(raw, "the encoding").kind, Object.keys(ENCODINGS));
  const Named = ENCODINGS[kind];
  table(raw, ["kind", ...Named.keys], "the encoding");
  if (!Named.fits(context)) throw refused(`the encoding ${quoted(kind)} needs ${Named.needs}`);
  return Object.freeze(new Named(context, Named.readParts(parts, context), raw));
}

// ---- policy/budgets.js --------------------------------------------------------------------------

/**
 * @typedef {{text: string, epsilon: number, isLog: boolean, value: [bigint, bigint],
 *   root: bigint}} Budget
 *   value: epsilon itself, or k where epsilon = ln(k) / root; a numerator and a positive denominator
 */

const MOST_ROOTS = 1000n;

/** The budget of an open level: nothing is promised. */
const OPEN = Object.freeze({
  text: "open", epsilon: Infinity, isLog: false, value: Object.freeze([1n, 0n]), root: 1n,
});

/**
 * A budget in its only spelling: a plain decimal, a reduced ratio where decimals never end, or ln(k)
 * with k > 1 reduced, which may be divided by a whole number.
 * @returns {Budget}
 */
function readBudget(raw) {
  const text = typeof raw === "string" && raw.length <= 100 ? raw : "";
  const log = /^ln\(([1-9]\d*)(?:\/([1-9]\d*))?\)(?:\/([1-9]\d{0,3}))?$/.exec(text);
  if (log) {
    const [n, d, root] = [log[1], log[2] ?? 1, log[3] ?? 1].map(BigInt);
    const isReduced = log[2] === undefined || (d > 1n && gcd(n, d) === 1n);
    if (n > d && isReduced && (log[3] === undefined || (root > 1n && root <= MOST_ROOTS))) {
      const epsilon = (Math.log(Number(n)) - Math.log(Number(d))) / Number(root);
      return { text, epsilon, isLog: true, value: [n, d], root };
    }
  }
  const ratio = /^([1-9]\d*)\/([1-9]\d*)$/.exec(text);
  if (ratio) {
    const [n, d] = [BigInt(ratio[1]), BigInt(ratio[2])];
    const fits = n < 10n ** 30n * d && d <= 10n ** 29n * n;
    if (gcd(n, d) === 1n && !terminates(d) && fits) {
      return { text, epsilon: Number(n) / Number(d), isLog: false, value: [n, d], root: 1n };
    }
  }
  // from 1e-29 to below 1e30
  const decimal = /^(?!0$|0\.0{29})(0|[1-9]\d{0,29})(?:\.(\d*[1-9]))?$/.exec(text);
  if (decimal) {
    const [, whole, fraction = ""] = decimal;
    const value = [BigInt(whole + fraction), 10n ** BigInt(fraction.length)];
    return { text, epsilon: Number(text), isLog: false, value, root: 1n };
  }
  const allowed = "a positive decimal or ln(k) with k > 1, as discreet writes it";
  throw refused(`epsilon is ${quoted(raw)}, but must be ${allowed}`);
}

function gcd(x, y) {
  return y ? gcd(y, x % y) : x;
}

/** Whether decimals with this denominator come to an end. */
function terminates(denominator) {
  let rest = denominator;
  for (const prime of [2n, 5n]) while (rest % prime === 0n) rest /= prime;
  return rest === 1n;
}

// ---- policy/policy.js ---------------------------------------------------------------------------

// A policy, parsed once and strictly into frozen objects.

/**
 * @typedef {{name: string, budget: string, epsilon: number, count: number}} Level
 * @typedef {{levels: [string, string], budget: string, epsilon: number, oneWay: boolean}} Pair
 *   not protected: "" and Infinity; oneWay: of the first level over the second alone
 * @typedef {{question: string, kind: string, notion: string, strict: boolean,
 *   cap: number, isMutual: boolean, items: readonly string[], levelOf: readonly number[],
 *   levels: readonly Level[], pairs: readonly Pair[], totals: readonly Total[],
 *   last: readonly string[]}} Policy
 *   strict: all pairs have the smallest budget; last: items that are shown after the others; cap: of
 *   a scale, in steps, or 0; isMutual: every pair is protected in both directions alike
 * @typedef {{name: string, items: readonly string[]}} Total  a sum of items that has a name
 * @typedef {{levels: Budget[], explicit: Map<number, Budget | null>, notion: string,
 *   strict: boolean, cap: number, pair: (i: number, j: number) => Budget[][] | null}} Budgets
 *   twice the budget of an answer of level i over one of level j is the least of the sums of
 *   `pair`; null where the pair is not protected
 */

const MOST_LEVELS = 200; // with explicit pairs, or as blocks
const MOST_POINTS = 50; // of a scale
const POLICY_KEYS = ["question", "kind", "notion", "items", "level_of", "levels", "pairs"];

/** @returns {{policy: Policy, budgets: Budgets}} */
function readPolicy(raw) {
  const pads = KINDS[object(raw, "the policy").kind]?.pads; // an unknown kind is refused below
  const more = [...pads ? ["strict"] : [], ...NOTIONS[raw.notion]?.ordered ? ["cap"] : []];
  table(raw, [...POLICY_KEYS, ...more], "the policy", ["totals", "last"]);
  if (!isProse(raw.question)) {
    const allowed = "a text of one line, without control characters and invisible characters";
    throw refused(`question is ${quoted(raw.question)}, but must be ${allowed}`);
  }
  choice("kind", raw.kind, Object.keys(KINDS));
  choice("notion", raw.notion, Object.keys(NOTIONS));
  const items = distinct(list(raw.items, "items"), "item");
  const rows = list(raw.levels, "levels").map((row) => table(row, ["name", "epsilon"], "a level"));
  const names = distinct(rows.map((row) => row.name), "level");
  const levelOf = list(raw.level_of, "level_of");
  const counts = countItems(levelOf, names, items);
  const own = rows.map(({ epsilon }) => (epsilon === OPEN.text ? OPEN : readBudget(epsilon)));
  const levels = own.map(({ text, epsilon }, k) => {
    return Object.freeze({ name: names[k], budget: text, epsilon, count: counts[k] });
  });
  const { pairs, explicit } = readPairs(raw.pairs, names);
  if (NOTIONS[raw.notion].ordered) checkScale(raw);
  const { question, kind, notion } = raw;
  const strict = readStrict(raw);
  const cap = raw.cap ?? 0;
  const isMutual = NOTIONS[notion].mutual && !pairs.some(({ oneWay }) => oneWay);
  const policy = Object.freeze({
    question, kind, notion, strict, cap, isMutual, items, levelOf, levels: Object.freeze(levels),
    pairs: Object.freeze(pairs), totals: Object.freeze(readTotals(raw, items)),
    last: readLast(raw, items),
  });
  checkNotion(policy, own);
  const terms = { cap, isOpen: (i) => own[i] === OPEN };
  const pair = (i, j) => pairBudgets(own, explicit, notion, terms, i, j);
  return { policy, budgets: { levels: own, explicit, notion, strict, cap, pair } };
}

/** Refuse open levels, one-way pairs, blocks and scales where they cannot be kept. */
function checkNotion({ kind, notion, levels, pairs, isMutual }, own) {
  const { pads, alone, lists } = KINDS[kind];
  const rule = NOTIONS[notion];
  const open = own.filter((budget) => budget === OPEN).length;
  if (open && (rule.mutual || lists)) {
    throw refused("a level is open, which goes with the notion one-way and single answers only");
  }
  if (open === own.length && !pairs.length) throw refused("every level is open");
  if (pads && (!rule.lists || !isMutual)) {
    throw refused(`the notion ${quoted(notion)} or a one-way pair cannot protect whole lists`);
  }
  if (alone && (rule.ordered || !rule.complete)) {
    throw refused(`the notion ${quoted(notion)} is about two answers, and items stand alone here`);
  }
  if (!rule.complete && levels.length > MOST_LEVELS) {
    throw refused(`${levels.length} levels are blocks, but at most ${MOST_LEVELS} may be`);
  }
}

/** Refuse a scale whose levels are not its items, in their order and of one budget. */
function checkScale({ items, level_of: levelOf, levels, pairs, cap }) {
  const m = items.length;
  const lone = levels.length === m && levels.every(({ name, epsilon }, k) => {
    return levelOf[k] === k && name === items[k] && epsilon === levels[0].epsilon;
  });
  if (!lone || pairs.length || m < 2 || m > MOST_POINTS) {
    throw refused(`a scale has 2 to ${MOST_POINTS} items, a level each, of one budget and in order`);
  }
  if (!Number.isInteger(cap) || cap < 0 || cap >= m) {
    throw refused(`cap is ${quoted(cap)}, but must be a number of steps from 1 to ${m - 1}, or 0`);
  }
}

/** The number of items of every level. */
function countItems(levelOf, names, items) {
  const counts = names.map(() => 0);
  for (const k of levelOf) {
    if (!Number.isInteger(k) || !(k in counts)) {
      throw refused(`level_of holds ${quoted(k)}, but must hold places of levels, from 0`);
    }
    counts[k] += 1;
  }
  if (!items.length || levelOf.length !== items.length) {
    const what = `${items.length} items have ${levelOf.length} levels`;
    throw refused(`${what}, but need one each, and at least one item`);
  }
  if (counts.includes(0)) {
    const empty = names[counts.indexOf(0)];
    throw refused(`level ${quoted(empty)} has no items, but needs at least one`);
  }
  return counts;
}

function pairBudgets(own, explicit, notion, terms, i, j) {
  const given = explicit.get(i * own.length + j);
  if (given !== undefined) return given && [[given, given]];
  return NOTIONS[notion].pair(i, j, terms)?.map((places) => places.map((k) => own[k])) ?? null;
}

/** Whether all pairs have the smallest budget; only sets that are protected as a whole say so. */
function readStrict({ kind, strict, pairs }) {
  const { pads, alone } = KINDS[kind];
  if (pads) return choice("strict", strict, [true, false]);
  if (alone && pairs.length) {
    const what = `kind is "${kind}" and there are budgets of pairs`;
    throw refused(`${what}, but an item on its own has its level's budget`);
  }
  return false;
}

/** Sums of items that have a name; results show them. */
function readTotals({ kind, totals }, items) {
  if (totals === undefined) return [];
  const rows = list(totals, "totals").map((row) => table(row, ["name", "items"], "a total"));
  if (!rows.length) throw refused("totals is empty, but must name some or be left out");
  if (KINDS[kind].lists) {
    throw refused(`kind is "${kind}" and there are totals, but a person may hold several items`);
  }
  distinct([...items, ...rows.map(({ name }) => name)], "item or total");
  const known = new Set(items);
  return rows.map(({ name, items: summed }) => {
    const strange = distinct(list(summed, "items of a total"), "item").find((x) => !known.has(x));
    if (strange !== undefined || !summed.length) {
      throw refused(`the total ${quoted(name)} must name some of the items, each once`);
    }
    return Object.freeze({ name, items: Object.freeze([...summed]) });
  });
}

/** The items that people are shown after the others. */
function readLast({ last, notion }, items) {
  if (last === undefined) return [];
  const known = new Set(items);
  const strange = distinct(list(last, "last"), "item").find((item) => !known.has(item));
  if (!last.length || strange !== undefined || NOTIONS[notion].ordered) {
    throw refused("last must name some of the items, each once, and not those of a scale");
  }
  return last;
}

/** The explicit pair budgets; also by place, at i * levels + j. */
function readPairs(raw, names) {
  const rows = list(raw, "pairs").map((row) => {
    return table(row, ["levels", "epsilon"], "a pair", ["one_way"]);
  });
  if (rows.length && names.length > MOST_LEVELS) {
    throw refused(`${names.length} levels have explicit pairs, but at most ${MOST_LEVELS} may`);
  }
  const [explicit, written] = [new Map(), new Map()];
  const pairs = rows.map(({ levels, epsilon: text, one_way: direction }) => {
    const places = list(levels, "levels of a pair").map((name) => names.indexOf(name));
    const both = levels.map(quoted).join(", ");
    if (places.length !== 2 || places.includes(-1)) {
      throw refused(`a pair names the levels ${both}, but must name two that exist`);
    }
    const budget = text === "" ? null : readBudget(text);
    const [i, j] = places;
    const oneWay = direction === true;
    if (direction !== undefined && (!oneWay || i === j)) {
      throw refused(`one_way of the pair ${both} must be true, and of two levels, or left out`);
    }
    const ways = [i * names.length + j, ...oneWay ? [] : [j * names.length + i]];
    for (const key of ways) {
      if ((written.get(key) ?? text) !== text) {
        throw refused(`the pair of levels ${both} has two budgets, but must have one`);
      }
      written.set(key, text);
      explicit.set(key, budget);
    }
    return Object.freeze({ levels, budget: text, epsilon: budget?.epsilon ?? Infinity, oneWay });
  });
  return { pairs, explicit };
}

// ---- promises/rounding.js -----------------------------------------------------------------------

// Factors as people read them: rounded up, exactly, so that the promise stays true.

/**
 * A factor, from its square.
 * @param {Ratio} squared
 * @returns {{factor: number, text: string}}
 */
function roundUp([n, d]) {
  if (!d) return { factor: Infinity, text: "more than any number" };
  const hundredths = rootUp(10_000n * n, d);
  if (hundredths < 100_000n) {
    const factor = Number(hundredths) / 100;
    return { factor, text: String(factor) };
  }
  const whole = rootUp(n, d);
  const near = Number(whole);
  const factor = near < Infinity && BigInt(near) < whole ? near * (1 + Number.EPSILON) : near;
  if (whole >= 10n ** 9n) return { factor, text: powerOfTen(whole) };
  return { factor, text: String(whole).replace(/\B(?=(\d{3})+$)/g, ",") };
}

/** A whole number as two digits, rounded up, times a power of ten. */
function powerOfTen(whole) {
  const exponent = String(whole).length - 1;
  const unit = 10n ** BigInt(exponent - 1);
  const lead = Number((whole + unit - 1n) / unit);
  if (lead === 100) return `1.0 × 10^${exponent + 1}`;
  return `${Math.floor(lead / 10)}.${lead % 10} × 10^${exponent}`;
}

/** The same for a factor that was computed in floats: with a margin above their error. */
function roundUpFloat(factor) {
  const x = factor * (1 + 1e-12);
  if (x === Infinity) return { factor: x, text: "more than any number" };
  const fine = 2 ** 40;
  const ratio = x < 2 ** 53 ? [BigInt(Math.ceil(x * fine)), BigInt(fine)] : [BigInt(x), 1n];
  return roundUp(square(ratio));
}

/** The least integer whose square is at least n / d. */
function rootUp(n, d) {
  const least = (n + d - 1n) / d;
  let root = 1n << BigInt(2 * least.toString(16).length); // above the root; Newton's steps down
  for (;;) {
    const next = (root + least / root) >> 1n;
    if (next >= root) break;
    root = next;
  }
  return root * root < least ? root + 1n : root;
}

// ---- promises/paths.js --------------------------------------------------------------------------

// Pairs of levels that the policy leaves out: they may still be protected through other levels.

/** The budget that binds every level: its own, or the smallest of all if the policy is strict. */
function effectiveBudgets({ levels, pairs, strict }) {
  const own = levels.map(({ epsilon }) => epsilon);
  if (!strict) return own;
  const least = [...own, ...pairs.map(({ epsilon }) => epsilon)].reduce((x, y) => Math.min(x, y));
  return own.map(() => least);
}

/** The pair budgets of every two levels, and the shortest paths along them. */
function shortestPaths(levels, { pair }) {
  const half = (budgets) => budgets.reduce((sum, { epsilon }) => sum + epsilon, 0) / 2;
  const edges = levels.map((_, i) => levels.map((__, j) => {
    return pair(i, j)?.map(half).reduce((x, y) => Math.min(x, y)) ?? Infinity;
  }));
  const paths = edges.map((row) => [...row]);
  levels.forEach((_, k) => paths.forEach((row) => row.forEach((x, j) => {
    row[j] = Math.min(x, row[k] + paths[k][j]);
  })));
  return { edges, paths };
}

/**
 * What is said of the pairs that the policy leaves out, with the bound that they still have through
 * other levels: the shortest path of pair budgets.
 */
function unprotectedPairs({ levels, pairs, strict }, budgets) {
  const open = strict ? [] : pairs.filter(({ budget, oneWay }) => !budget && !oneWay);
  if (!open.length) return [];
  const place = new Map(levels.map(({ name }, k) => [name, k]));
  const { edges, paths } = shortestPaths(levels, budgets);
  return open.flatMap(({ levels: [first, second] }) => {
    const [i, j] = [place.get(first), place.get(second)];
    if (i === j && levels[i].count === 1) return [];
    const { factor, text } = factorAlong(budgets, edges, paths, i, j);
    const keys = i === j ? ["sameApart", "sameNotApart"] : ["apart", "notApart"];
    const key = keys[paths[i][j] < Infinity ? 0 : 1];
    const sentence = say(key, { first, second, factor: localise(text) });
    return [{ level: null, items: 0, examples: [], factor, sentence }];
  });
}

/** At most the factor between two levels: along the shortest path, each step at least e^r. */
function factorAlong(budgets, edges, paths, i, j) {
  const bound = Math.exp(paths[i][j]);
  let [squared, here] = [ONE, i];
  for (let steps = 0; bound < Infinity && steps < edges.length; steps++) {
    const ways = edges[here].map((budget, k) => budget + paths[k][j]);
    const next = foremost(ways, (x, y) => x < y);
    const direct = edges[here][j] <= ways[next];
    squared = product(squared, squareUp(budgets, here, direct ? j : next));
    if (direct) return roundUp(squared);
    here = next;
  }
  return roundUpFloat(bound); // no bound, or budgets too small for floats to tell from 0
}

/** At least e^{2 r} of two levels. @returns {Ratio} */
function squareUp({ pair }, i, j) {
  return pair(i, j).map((budgets) => budgets.map(factorUp).reduce(product)).reduce(smaller);
}

/**
 * The group of every level, and the groups that budgets lead to from it; null where every pair is
 * protected, apart from open levels.
 */
function protectedGroups({ levels, kind, notion, pairs, strict }, budgets, groupOf) {
  const isComplete = NOTIONS[notion].complete && pairs.every(({ budget }) => budget);
  if (strict || isComplete) return null;
  const { paths } = shortestPaths(levels, budgets);
  const isGap = (path, i, j) => path === Infinity && levels[i].epsilon < Infinity
    && (i !== j || levels[i].count > 1 || KINDS[kind].lists);
  const hasGaps = paths.some((row, i) => row.some((path, j) => isGap(path, i, j)));
  if (!hasGaps) return null;
  return groupOf.map((group, i) => {
    const isNear = (j) => paths[i][j] < Infinity && (i !== j || levels[i].count > 1);
    return { group, near: new Set(groupOf.filter((_, j) => isNear(j))) };
  });
}

/** A rational at least e^budget, for a budget up to 710; exactly k for ln(k). @returns {Ratio} */
function factorUp({ isLog, value: [n, d], root }) {
  if (isLog && root === 1n) return [n, d];
  if (isLog) return plus(rootDown(n, d, root), [1n, 1n << 80n]);
  // the Taylor sum has at most 2,000 terms, and each is less than 2^-80 e^x too small
  const margin = [(1n << 60n) + 1n, 1n << 60n];
  return product(taylor(n, d), margin);
}

// ---- promises/whole.js --------------------------------------------------------------------------

// What is promised about whole answers: one answer, a list protected as a whole, or item by item.

const [FEW, SEVERAL] = [5, 20]; // answers of a list for which the factors are multiplied
const WEAK = 100; // the largest factor between two answers that is not called weak

/** The warning with this key if the factor is above WEAK, otherwise "". @param {Ratio} ratio */
function weakness(ratio, key) {
  if (!isLess([BigInt(WEAK), 1n], ratio)) return "";
  return say(key, { factor: localise(roundUp(square(ratio)).text) });
}

/**
 * Per kind, given the encoding and the exact factor of every group:
 *   keys of the sentences about one answer, about one of a level, and of the warning;
 *   ratio, the largest factor between two whole answers, exactly;
 *   epsilon, the largest log-ratio of any report between two whole answers;
 *   caution, a warning about whole lists, or "";
 *   promises, what is said about whole lists;
 *   promiseFor(items, isMutual), the promise for one list.
 */
const WHOLE_ANSWERS = {
  single: {
    keys: { one: "odds", level: "oddsOfLevel", caution: "cautionAnswers" },
    ratio: (encoding, ratios) => ratios.reduce(larger),
    epsilon: (encoding, ratios) => logarithms(ratios).reduce((x, y) => Math.max(x, y)),
    caution: () => "",
    promises: () => [],
    promiseFor() {
      const what = "this question takes one answer, so there is no list to promise something for";
      throw new DiscreetError("answer", `${what}; ask for the promise of its level`);
    },
  },
  set: {
    keys: { one: "having", level: "havingOfLevel", caution: "cautionHaving" },
    ratio: (encoding) => encoding.setFactor(),
    epsilon: (encoding) => Math.log(toNumber(encoding.setFactor())),
    caution: (encoding) => weakness(encoding.setFactor(), "cautionLists"),
    promises: (encoding) => [sentenceWith("anyTwoLists", encoding.setFactor())],
    promiseFor: (encoding, ratios, items) => sentenceWith("yourList", encoding.listFactor(items)),
  },
  each: {
    keys: { one: "having", level: "havingOfLevel", caution: "cautionHaving" },
    ratio: ({ groupSizes }, ratios) => ratios.reduce((total, [n, d], g) => {
      return product(total, [n ** BigInt(groupSizes[g]), d ** BigInt(groupSizes[g])]);
    }, ONE),
    epsilon: sumOfAll,
    caution: (encoding, ratios) => {
      return sumOfAll(encoding, ratios) > Math.log(WEAK) ? say("cautionEach") : "";
    },
    promises: (encoding, ratios) => [multiplied(encoding, ratios)],
    promiseFor({ groups: { groupOf } }, ratios, items, isMutual) {
      const ratio = items.reduce((total, item) => product(total, ratios[groupOf[item]]), ONE);
      const key = isMutual ? "yourListOfEach" : "yourListOneWay";
      return sentenceWith(items.length ? key : "noList", ratio);
    },
  },
};

const logarithms = (ratios) => ratios.map((ratio) => Math.log(toNumber(ratio)));

function sentenceWith(key, ratio) {
  const { factor, text } = roundUp(square(ratio));
  return { factor, sentence: say(key, { factor: localise(text) }) };
}

/** Every item on its own: the log-ratio between an empty list and one of all items. */
function sumOfAll({ groupSizes, groups: { m } }, ratios) {
  return largestValues(logarithms(ratios), groupSizes, m, (x, y) => y - x)
    .reduce((total, [epsilon, n]) => total + n * epsilon, 0);
}

/** The promise where items are protected on their own: for lists of the most revealing ones. */
function multiplied({ groupSizes, groups: { m } }, ratios) {
  const falling = (x, y) => (isLess(x, y) ? 1 : isLess(y, x) ? -1 : 0);
  const most = (k) => {
    const factors = largestValues(ratios, groupSizes, k, falling);
    return roundUp(square(factors.reduce((total, [[n, d], copies]) => {
      return product(total, [n ** BigInt(copies), d ** BigInt(copies)]);
    }, ONE)));
  };
  const [few, several] = [most(Math.min(m, FEW)), most(Math.min(m, SEVERAL))];
  const sentence = say(m > FEW ? "eachOfMany" : "eachOfFew", {
    few: localise(few.text), many: localise(several.text),
    answers: say("answers", { n: Math.min(m, FEW) }), n: Math.min(m, SEVERAL),
  });
  return { factor: several.factor, sentence };
}

/** The k largest values of items, of which group g has sizes[g]; each with its number. */
function largestValues(values, sizes, k, falling) {
  const order = values.map((value, g) => [value, sizes[g]]);
  order.sort(([x], [y]) => falling(x, y));
  let left = k;
  return order.flatMap(([value, size]) => {
    const n = Math.min(left, size);
    left -= n;
    return n ? [[value, n]] : [];
  });
}

// ---- promises/guarantee.js ----------------------------------------------------------------------

const EXAMPLES = 3; // items of a level that its promise names

/** What a checked mechanism promises, in numbers and in words. */
class Guarantee {
  #policy;
  #budgets;
  #encoding;
  #groupOf; // of every level
  #whole; // what is promised about whole answers
  // computed when first needed
  #ratios; // per group the promise for an answer, exactly
  #bothWays; // the same either way
  #near; // per level the groups that it is protected from, or null
  #rounded; // per level the promise as people read it

  /** @param {Policy} policy @param {Budgets} budgets @param {Encoding} encoding proved */
  constructor(policy, budgets, encoding, groupOf) {
    [this.#policy, this.#budgets, this.#encoding] = [policy, budgets, encoding];
    [this.#groupOf, this.#whole] = [groupOf, WHOLE_ANSWERS[policy.kind]];
  }

  /** What is told of every group, of its answers over others where protection is one-way. */
  get #exact() {
    this.#ratios ??= this.#encoding.factors({ oneWay: !this.#policy.isMutual });
    return this.#ratios;
  }

  /** The same either way. */
  get #eitherWay() {
    this.#bothWays ??= this.#policy.isMutual ? this.#exact : this.#encoding.factors();
    return this.#bothWays;
  }

  /** Per level its group and those that it is protected from; null if it is from all others. */
  get #protected() {
    if (this.#near === undefined) {
      this.#near = protectedGroups(this.#policy, this.#budgets, this.#groupOf);
    }
    return this.#near;
  }

  /** Per level, over the answers that each is protected from. */
  get #promised() {
    const { isMutual, kind } = this.#policy;
    const levels = KINDS[kind].lists ? null : this.#protected;
    if (!levels) return this.#groupOf.map((g) => this.#exact[g]);
    return this.#encoding.factors({ oneWay: !isMutual, levels });
  }

  /** The factor of a level, rounded up. @returns {{factor: number, text: string}} */
  factor(level) {
    this.#rounded ??= this.#promised.map((ratio) => roundUp(square(ratio)));
    return this.#rounded[level];
  }

  /** The same between an answer of a level and any answers of these others. */
  factorAgainst(level, others) {
    const row = { group: this.#groupOf[level], near: new Set(others.map((k) => this.#groupOf[k])) };
    const [ratio] = this.#encoding.factors({ levels: [row] });
    return roundUp(square(ratio)).factor;
  }

  levelEpsilons() {
    const epsilons = logarithms(this.#exact);
    return this.#groupOf.map((group) => epsilons[group]);
  }

  wholeEpsilon() {
    const { kind, isMutual } = this.#policy;
    if (KINDS[kind].lists && !isMutual) return Infinity; // that an item is lacking may become known
    return this.#whole.epsilon(this.#encoding, this.#eitherWay);
  }

  wholeRatio() {
    const { kind, isMutual } = this.#policy;
    if (KINDS[kind].lists && !isMutual) return [1n, 0n];
    return this.#whole.ratio(this.#encoding, this.#eitherWay);
  }

  /** How far odds can rise, of protected answers, where only that has a limit; else wholeRatio. */
  raisedRatio() {
    const { kind, isMutual } = this.#policy;
    if (isMutual) return this.wholeRatio();
    if (KINDS[kind].lists) return this.#whole.ratio(this.#encoding, this.#exact);
    return this.#promised.filter(([, d]) => d).reduce(larger, ONE);
  }

  raiseEpsilon() {
    const { kind, isMutual, levels } = this.#policy;
    if (isMutual) return this.wholeEpsilon();
    if (KINDS[kind].lists) return this.#whole.epsilon(this.#encoding, this.#exact);
    const told = this.levelEpsilons().filter((_, k) => levels[k].epsilon < Infinity);
    return told.length ? told.reduce((x, y) => Math.max(x, y)) : Infinity;
  }

  levelBudgets() {
    const { lists, pads } = KINDS[this.#policy.kind];
    const realised = this.levelEpsilons();
    if (!lists) return realised;
    const own = effectiveBudgets(this.#policy);
    const whole = pads ? this.wholeEpsilon() : 0;
    const excess = whole > own.reduce((x, y) => Math.max(x, y)) + 1e-9 ? whole : 0;
    return realised.map((epsilon, k) => Math.max(epsilon, own[k], excess));
  }

  promise(level, what) {
    const { factor, text } = this.factor(level);
    if (NOTIONS[this.#policy.notion].ordered) {
      return this.#distances().map(({ sentence }) => sentence).join(" ");
    }
    if (factor === Infinity) return say("shown", { what });
    return capital(say(this.#key("one", level), this.#values(level, { what, factor: text })));
  }

  /** The key of the sentence about one answer, or about one of a level, that is true here. */
  #key(place, level) {
    const { kind, notion, isMutual } = this.#policy;
    const key = this.#whole.keys[place];
    if (KINDS[kind].lists) return isMutual ? key : `${key}OneWay`;
    if (!isMutual) {
      if (this.#protected) return `${key}OneWayProtected`;
      return `${key}OneWay${this.fall(level) === Infinity ? "Known" : "Lowered"}`;
    }
    if (!NOTIONS[notion].complete) return `${key}InBlock`;
    return this.#protected ? `${key}Protected` : key;
  }

  /** How far the odds of a level's answer can change in either direction. */
  fall(level) {
    return roundUp(square(this.#eitherWay[this.#groupOf[level]])).factor;
  }

  #values(level, { factor, ...more }) {
    const values = { ...more, factor: localise(factor) };
    if (this.#policy.isMutual || KINDS[this.#policy.kind].lists) return values;
    const fall = logarithms(this.#eitherWay)[this.#groupOf[level]];
    return { ...values, fall: localise(roundUpFloat(Math.exp(fall)).text) };
  }

  promises() {
    const whole = this.#whole.promises(this.#encoding, this.#exact).map((promise) => {
      return { level: null, items: 0, examples: [], ...promise, whole: true };
    });
    const open = unprotectedPairs(this.#policy, this.#budgets);
    if (NOTIONS[this.#policy.notion].ordered) return this.#distances();
    return [...this.#levelPromises(), ...whole, ...open];
  }

  /** Of a scale: for neighbours, for two steps, and for the largest distance that counts. */
  #distances() {
    const { items, cap } = this.#policy;
    const most = cap || items.length - 1;
    const [n, d] = factorUp(this.#budgets.levels[0]);
    return [...new Set([1, Math.min(2, most), most])].map((steps) => {
      const step = [n ** BigInt(steps), d ** BigInt(steps)];
      const { factor, text } = roundUp(square(step));
      const key = steps === cap ? "farAway" : "away";
      const sentence = say(key, { n: steps, factor: localise(text) });
      return { level: null, items: 0, examples: [], factor, sentence };
    });
  }

  #levelPromises() {
    const { levels, items, levelOf } = this.#policy;
    const examples = levels.map(() => []);
    items.forEach((item, i) => {
      if (examples[levelOf[i]].length < EXAMPLES) examples[levelOf[i]].push(item);
    });
    return levels.map(({ name, count }, k) => {
      const n = count - examples[k].length;
      const listed = examples[k].map((item) => `"${item}"`).join(", ");
      const { factor, text } = this.factor(k);
      const who = { level: name, items: n ? say("more", { items: listed, n: String(n) }) : listed };
      const sentence = factor === Infinity ? say("shownOfLevel", who)
        : say(this.#key("level", k), this.#values(k, { ...who, factor: text }));
      return { level: name, items: count, examples: examples[k], factor, sentence };
    });
  }

  promiseFor(items) {
    return this.#whole.promiseFor(this.#encoding, this.#exact, items, this.#policy.isMutual);
  }

  caution() {
    const { notion, kind, levels, isMutual } = this.#policy;
    const found = [];
    if (!NOTIONS[notion].complete) found.push(say("cautionBlocks"));
    else if (kind === "each" && !isMutual) found.push(say("cautionLacking"));
    else if (this.#protected) found.push(say("cautionOpen"));
    const shown = levels.filter(({ epsilon }) => epsilon === Infinity);
    if (shown.length) {
      const names = shown.map(({ name }) => `"${name}"`).reduce((x, y) => say("and", { x, y }));
      found.push(say("cautionShown", { names }));
    }
    const finite = [...this.#promised, ...KINDS[kind].lists ? [] : this.#eitherWay]
      .filter(([, d]) => d);
    found.push(weakness(finite.reduce(larger, ONE), this.#whole.keys.caution));
    return found.filter((text) => text).join(" ")
      || this.#whole.caution(this.#encoding, this.#exact);
  }
}

// ---- mechanism.js -------------------------------------------------------------------------------

const MECHANISM_KEYS = [
  "format", "policy", "model", "prior", "encoding", "padding", "groups", "shares", "parts",
];

/**
 * The public parameters that both sides share. For all inputs of levels i and j and every report y,
 * Pr(y | i) <= e^{r_ij} Pr(y | j), and for sets the same with the paper's budget of a set or, where
 * items are protected on their own, item by item: proved on construction, so an object of this
 * class is a checked promise.
 */
class Mechanism {
  #guarantee;

  /**
   * Verify the content of a mechanism file.
   * @param {Uint8Array} bytes
   * @param {{fingerprint?: string | null}} [pinned] as for `from`
   * @returns {Promise<Mechanism>}
   */
  static async read(bytes, pinned = {}) {
    return Mechanism.from(readFile(bytes, "the mechanism"), pinned);
  }

  /**
   * Verify a mechanism document and the fingerprint that it carries.
   * @param {object} document the content of a mechanism file
   * @param {{fingerprint?: string | null}} [pinned] the only fingerprint to accept, from an
   *   invitation
   * @returns {Promise<Mechanism>}
   */
  static async from(document, { fingerprint: pinned } = {}) {
    const { body, fingerprint } = await verified(document, "the mechanism", pinned);
    return new Mechanism(body, fingerprint);
  }

  /**
   * Use `Mechanism.from`: this checks all but the fingerprint.
   * @param {object} body frozen @param {string} fingerprint
   */
  constructor(body, fingerprint) {
    choice("format", body.format, ["discreet-mechanism/3"]);
    table(body, MECHANISM_KEYS, "the mechanism", ["certificate"]);
    if (typeof body.model !== "string" || !/^[a-z][a-z0-9]{0,19}$/.test(body.model)) {
      throw refused(`model is ${quoted(body.model)}, but must be a word of a-z and 0-9, up to 20`);
    }
    choice("prior", body.prior, ["uniform", "worst", "given"]);
    if ("certificate" in body) checkCertificate(body.certificate);
    const { policy, budgets } = readPolicy(body.policy);
    const { padding } = body;
    checkPadding(padding, policy);
    const groups = readGroups(body.groups, policy);
    const kind = KINDS[policy.kind];
    const encoding = readEncoding(body, { groups, policy, padding });
    checkShares(body.shares, encoding.shareCount);
    encoding.prove(readTerms(policy, budgets, body.groups));

    this.policy = policy;
    this.kind = kind;
    this.model = body.model;
    this.encoding = encoding;
    this.padding = padding;
    this.groups = body.groups;
    this.parts = encoding.parts;
    this.m = groups.m;
    this.reportSize = encoding.size;
    this.fingerprint = fingerprint;
    this.#guarantee = new Guarantee(policy, budgets, encoding, body.groups);
    Object.freeze(this);
  }

  // -- a report of one's own

  /**
   * One person's report, with secure randomness.
   * @param {string | number | Iterable<string | number>} answer an item (label or index), or for
   *   lists several
   * @returns {Uint8Array}
   */
  perturb(answer) {
    return perturb(this, answer);
  }

  /** The items of an answer, each once. Refuses an answer that is none. @returns {number[]} */
  places(answer) {
    return placesInAnswer(this, answer);
  }

  // -- reading a report

  /**
   * Why this is not a report of the mechanism, or null.
   * @param {Uint8Array} report
   * @returns {null | "length" | "part" | "tail" | "size" | "silent" | "ticket" | "residue"
   *   | "order"}
   */
  refusal(report) {
    if (!(report instanceof Uint8Array)) {
      const what = `a report is a Uint8Array, got ${quoted(report)}`;
      throw new DiscreetError("report", `${what}; pass the bytes that perturb made`);
    }
    return this.encoding.refusal(report);
  }

  /** A bit per item: 1 where the report names it. @param {Uint8Array} report */
  bits(report) {
    const bits = new Uint8Array(this.m);
    for (const item of this.#read(report).named) bits[item] = 1;
    return bits;
  }

  /**
   * What a report means: its part, the places of the items that it names, a sentence on that, and
   * the chances in it: of an item to be named where it is one's own (`mine`), and where it is not.
   * @param {Uint8Array} report
   * @returns {{part: number, named: number[], mine: number[], others: number[], sentence: string}}
   */
  meaning(report) {
    const { part, named } = this.#read(report);
    return { part, named, ...this.encoding.meaning(part, named.length) };
  }

  #read(report) {
    const reason = this.refusal(report);
    if (reason) {
      const why = REASONS[reason].replace("{size}", this.reportSize);
      const what = `this is not a report of the mechanism (${reason}): ${why}`;
      throw new DiscreetError("report", `${what}; perturb the answer again`);
    }
    return { part: this.encoding.partOf(report), named: this.encoding.named(report) };
  }

  // -- what is promised: promises/guarantee.js

  /**
   * Per level, the largest log-ratio of any report: between an answer of the level and any other
   * answer, or for lists between having and not having one of its items.
   * @returns {number[]}
   */
  levelEpsilons() {
    return this.#guarantee.levelEpsilons();
  }

  /**
   * The largest log-ratio of any report between any two answers. Where the items of a list are
   * protected on their own, between an empty list and one of all items.
   * @returns {number}
   */
  wholeEpsilon() {
    return this.#guarantee.wholeEpsilon();
  }

  /** The factor between any two answers, exactly; its denominator is 0 where there is no limit. */
  wholeRatio() {
    return this.#guarantee.wholeRatio();
  }

  /** By how much odds of protected answers can rise, exactly, where only that has a limit. */
  raisedRatio() {
    return this.#guarantee.raisedRatio();
  }

  /**
   * By how much in all a report can raise the odds of a protected answer; of items on their own, of
   * all of them. Where both directions are protected alike, what `wholeEpsilon` says.
   * @returns {number}
   */
  raiseEpsilon() {
    return this.#guarantee.raiseEpsilon();
  }

  /**
   * Per level what counts against a limit: the log-ratio that is realised for one of its answers.
   * For lists no less than the level's budget, which a list may use up, and no less than what is
   * realised between two lists where that is above all budgets.
   * @returns {number[]}
   */
  levelBudgets() {
    return this.#guarantee.levelBudgets();
  }

  /**
   * The promise for an answer, as a sentence.
   * @param {number} level the place of its level in the policy
   * @param {string} what how the sentence calls the answer
   */
  promise(level, what) {
    return this.#guarantee.promise(level, what);
  }

  /** The factor of a level's promise, rounded up, so that it stays true. @param {number} level */
  factor(level) {
    return this.#guarantee.factor(level).factor;
  }

  /**
   * The factor between an answer of a level and any answers of these others.
   * @param {number} level @param {number[]} others
   */
  factorAgainst(level, others) {
    return this.#guarantee.factorAgainst(level, others);
  }

  /** The same for how far the odds of its answers can fall. @param {number} level */
  fall(level) {
    return this.#guarantee.fall(level);
  }

  /**
   * What a participant reads: one entry per level, then (level null) one about whole lists, if the
   * question takes them, and one per pair of levels that is not protected. `factor` and the number
   * in the sentence are rounded up, so that they stay true.
   * @returns {{level: string | null, items: number, examples: string[], factor: number,
   *   sentence: string, whole?: true}[]}
   */
  promises() {
    return this.#guarantee.promises();
  }

  /**
   * A warning that replaces every sentence that reassures: where one report can change the odds
   * between two answers by more than 100, or a pair of answers is not protected at all; otherwise
   * "".
   * @returns {string}
   */
  caution() {
    return this.#guarantee.caution();
  }

  /**
   * The promise for one person's whole list; for lists only.
   * @param {Iterable<string | number>} answer
   * @returns {{factor: number, sentence: string}}
   */
  promiseOf(answer) {
    return this.#guarantee.promiseFor(this.kind.lists ? this.places(answer) : []);
  }
}

// ---- survey/about.js ----------------------------------------------------------------------------

const [LINE, TEXT] = [200, 4000]; // characters of a line, and of a longer text
const [LEAST, MOST] = [50, 1e9]; // reports before results are shown

const isText = (most, lines) => (text) => {
  return isProse(lines ? text?.replaceAll?.("\n", " ") : text) && text === text.trim()
    && text.replace(UNSEEN, "").trim() !== "" && Array.from(text).length <= most;
};

const isTime = (text) => {
  const pattern = /^(19[7-9]\d|[2-9]\d{3})-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
  return typeof text === "string" && pattern.test(text) && !Number.isNaN(Date.parse(text))
    && new Date(text).toISOString() === text.replace("Z", ".000Z");
};

/** Whether this is a language tag, such as "en" or "pt-BR". */
const isLanguage = (tag) => {
  return typeof tag === "string" && /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/.test(tag);
};

/** What is said in a language of its own. */
const PROSE = {
  organiser: isText(LINE), contact: isText(LINE), notice: isText(LINE),
  purpose: isText(TEXT, true), consent: isText(TEXT, true),
};

/** Whether this is the address of a page. */
const isNotice = (url) => PROSE.notice(url) && /^https?:\/\//.test(url);

const ABOUT = {
  ...PROSE,
  notice: isNotice,
  language: isLanguage,
  opens: isTime, closes: isTime,
  minimum: (n) => Number.isInteger(n) && n >= LEAST && n <= MOST,
  rehearsal: (flag) => flag === true,
};

/** Who asks, what for, from when to when; each part is optional and has one spelling. */
function readAbout(raw) {
  if (raw === undefined) return {};
  const keys = Object.keys(table(raw, [], "about", Object.keys(ABOUT)));
  const wrong = keys.find((key) => !ABOUT[key](raw[key]));
  if (!keys.length || wrong || (raw.opens && raw.closes && raw.opens >= raw.closes)) {
    const what = wrong
      ? `${wrong} of about is ${quoted(raw[wrong])}` : "about is empty, or closes before it opens";
    throw refused(`${what}, but must be as discreet writes it`);
  }
  return raw;
}

// ---- survey/crosses.js --------------------------------------------------------------------------

// Crossed questions: one question about the pairs of answers to two others.

const CROSSED = ["min", "avg"]; // notions of questions that can be crossed

/** The label of a pair of answers. */
const cell = (first, second) => `${first} × ${second}`;

/**
 * Refuse a question that is not the cross of these two: its items are the pairs, and the budget of
 * a pair is the smaller of its two.
 */
function checkCross(name, crossed, first, second) {
  const plain = (policy) => policy.kind === "single" && CROSSED.includes(policy.notion)
    && !policy.pairs.length;
  const fail = (why) => {
    throw refused(`${quoted(name)} is not the cross of its two questions: ${why}`);
  };
  if (![crossed, first, second].every(plain)) fail("one of them cannot be crossed");
  const notions = new Set([crossed, first, second].map(({ notion }) => notion));
  if (notions.size > 1) fail("their notions differ");
  if (crossed.last.length) fail("it has items that are shown last");
  const pairs = first.items.flatMap((x, i) => second.items.map((y, j) => [cell(x, y), i, j]));
  if (pairs.length !== crossed.items.length) fail("it has other items");
  const levelAt = (policy, k) => policy.levels[policy.levelOf[k]];
  pairs.forEach(([pair, i, j], k) => {
    if (crossed.items[k] !== pair) fail("it has other items");
    const [x, y] = [levelAt(first, i), levelAt(second, j)];
    const { budget } = x.epsilon <= y.epsilon ? x : y;
    if (levelAt(crossed, k).budget !== budget) fail(`${quoted(pair)} has another budget`);
  });
}

/** The places of the cells that sum up each answer of the first (axis 0) or second question. */
function cellsOf(axis, rows, columns) {
  const [outer, inner] = axis === 0 ? [rows, columns] : [columns, rows];
  return Array.from({ length: outer }, (_, i) => Array.from({ length: inner }, (_, j) => {
    return axis === 0 ? i * columns + j : j * columns + i;
  }));
}

// ---- survey/public.js ---------------------------------------------------------------------------

// Public questions: asked and sent openly; results are counted by them.

const [LEAST_ITEMS, MOST_ITEMS] = [2, 255]; // the chosen one is a byte of the frame
const RESERVED = [ // columns of files of reports, of tables of results, and of populations
  "report", "count", "fingerprint", "question", "people",
  "item", "level", "stderr", "lower", "upper", "share", "share_low", "share_high",
  "n", "confidence", "about", "effective_n",
  "shrunk", "shrunk_sd", "shrunk_lower", "shrunk_upper", "consistent",
];

/** @typedef {{name: string, text: string, items: readonly string[]}} Public */

/** @returns {Public} */
function readPublic(raw) {
  const { name, text, items } = table(raw, ["name", "text", "items"], "a public question");
  if (RESERVED.includes(name)) {
    const what = "has the name of a column of every table of reports or results; call it something else";
    throw refused(`the public question ${quoted(name)} ${what}`);
  }
  distinct(list(items, "items"), "item");
  if (!isProse(text) || items.length < LEAST_ITEMS || items.length > MOST_ITEMS) {
    const allowed = `a text of one line and ${LEAST_ITEMS} to ${MOST_ITEMS} items`;
    throw refused(`the public question ${quoted(name)} must have ${allowed}`);
  }
  return raw;
}

// ---- survey/translations.js ---------------------------------------------------------------------

// A survey in more languages. Items stay the same items: only what people read changes.

/**
 * @typedef {{text?: string, items?: Record<string, string>}} Wording
 * @typedef {{about?: Record<string, string>, questions?: Record<string, Wording>,
 *   public?: Record<string, Wording>}} Translation
 */

/** The value of a key; an item may have the name of something that every object has. */
const ownValue = (table_, key) => (Object.hasOwn(table_ ?? {}, key) ? table_[key] : undefined);

/** An item as a translation says it. @param {"questions" | "public"} part */
function translated(translation, part, name, item) {
  return ownValue(ownValue(translation[part], name)?.items, item) ?? item;
}

/** @param {Record<string, readonly string[]>} known the items of every question, by its name */
function checkWordings(rows, known, where) {
  if (rows === undefined) return;
  if (!Object.keys(object(rows, where)).length) throw refused(`${where} is empty`);
  for (const [name, wording] of Object.entries(rows)) {
    if (!Object.hasOwn(known, name)) throw refused(`${where} has no ${quoted(name)} to translate`);
    const { text, items } = table(wording, [], where, ["text", "items"]);
    if (text !== undefined && (!text || !isProse(text))) {
      throw refused(`text of ${quoted(name)} in ${where} must be a text of one line`);
    }
    if (items === undefined) continue;
    const strange = Object.keys(object(items, where)).find((item) => !known[name].includes(item));
    if (strange !== undefined || !Object.keys(items).length) {
      throw refused(`${where} translates ${quoted(strange)}, which is not an item`);
    }
    distinct(known[name].map((item) => ownValue(items, item) ?? item), `label in ${where}`);
  }
}

/** @returns {Record<string, Translation>} */
function readTranslations(raw, { questions, openly }) {
  if (raw === undefined) return {};
  if (!Object.keys(object(raw, "translations")).length) throw refused("translations is empty");
  for (const [language, translation] of Object.entries(raw)) {
    const where = `the translation ${quoted(language)}`;
    if (!isLanguage(language)) throw refused(`${where} is not named by a language tag`);
    table(translation, [], where, ["about", "questions", "public"]);
    const { about } = translation;
    if (about !== undefined) {
      const keys = Object.keys(table(about, [], `about in ${where}`, Object.keys(PROSE)));
      const isFine = (key) => PROSE[key](about[key]) && (key !== "notice" || isNotice(about[key]));
      if (!keys.length || !keys.every(isFine)) {
        throw refused(`about in ${where} must be as discreet writes it`);
      }
    }
    checkWordings(translation.questions, questions, `questions in ${where}`);
    checkWordings(translation.public, openly, `public in ${where}`);
  }
  return raw;
}

// ---- survey/survey.js ---------------------------------------------------------------------------

// What people are invited to. Its fingerprint is what an invitation pins.

const SURVEY_KEYS = ["format", "name", "answers", "questions"];
const [MOST_QUESTIONS, MOST_PUBLIC, MOST_GROUPS] = [100, 8, 10_000];
const LONGEST_NAME = 200; // characters

/**
 * @typedef {{name: string, mechanism: Mechanism, of: readonly [string, string] | null}} Question
 *   of: the two questions that it crosses
 */

/**
 * One or more questions, how many of them each device answers, and what is asked openly. For any
 * two whole records of answers, whatever is drawn, the chance of everything that is sent differs by
 * at most the factor that `promise` states: computed exactly from the questions, so an object of
 * this class is a checked promise.
 */
class Survey {
  /**
   * Verify the content of a survey file.
   * @param {Uint8Array} bytes
   * @param {{fingerprint?: string | null}} [pinned] as for `from`
   * @returns {Promise<Survey>}
   */
  static async read(bytes, pinned = {}) {
    return Survey.from(readFile(bytes, "the survey"), pinned);
  }

  /**
   * Verify a survey document and the fingerprint that it carries.
   * @param {object} document the content of a survey file
   * @param {{fingerprint?: string | null}} [pinned] the only fingerprint to accept, from an
   *   invitation
   * @returns {Promise<Survey>}
   */
  static async from(document, { fingerprint: pinned } = {}) {
    const { body, fingerprint } = await verified(document, "the survey", pinned, withoutStories);
    const questions = await Promise.all(list(body.questions, "questions").map(readQuestion));
    return new Survey(body, questions, fingerprint);
  }

  /**
   * Use `Survey.from`: this checks all but the fingerprint.
   * @param {object} body frozen @param {Question[]} questions @param {string} fingerprint
   */
  constructor(body, questions, fingerprint) {
    choice("format", body.format, ["discreet-survey/1"]);
    table(body, SURVEY_KEYS, "the survey", ["about", "public", "translations"]);
    const count = questions.length;
    if (!count || count > MOST_QUESTIONS) {
      throw refused(`there are ${count} questions, but must be 1 to ${MOST_QUESTIONS}`);
    }
    if (!Number.isInteger(body.answers) || body.answers < 1 || body.answers > count) {
      throw refused(`answers is ${quoted(body.answers)}, but must be from 1 to ${count}`);
    }
    const openly = readOpenly(body);
    checkNames(body.name, questions, openly);
    for (const question of questions) {
      if (question.of) checkOf(question, questions);
    }
    const itemsOf = (rows) => Object.fromEntries(rows);
    this.name = body.name;
    this.about = Object.freeze(readAbout(body.about));
    this.answers = body.answers;
    this.questions = Object.freeze(questions);
    this.openly = Object.freeze(openly);
    this.translations = readTranslations(body.translations, {
      questions: itemsOf(questions.filter(({ of }) => !of)
        .map(({ name, mechanism }) => [name, mechanism.policy.items])),
      openly: itemsOf(openly.map(({ name, items }) => [name, items])),
    });
    if (Object.hasOwn(this.translations, this.about.language ?? "")) {
      throw refused("the survey is translated into the language that it is in");
    }
    this.fingerprint = fingerprint;
    Object.freeze(this);
  }

  /** The question of a survey that has one. @returns {Question} */
  get only() {
    if (this.questions.length > 1) {
      const names = this.questions.map(({ name }) => quoted(name)).join(", ");
      throw new DiscreetError("answer", `the survey has several questions; name one: ${names}`);
    }
    return this.questions[0];
  }

  /** The mechanism of a survey of one question. */
  get mechanism() {
    return this.only.mechanism;
  }

  /** @param {string} name @returns {Question} */
  question(name) {
    const found = this.questions.find((question) => question.name === name);
    if (found) return found;
    const names = this.questions.map((question) => quoted(question.name)).join(", ");
    const what = `${quoted(name)} is not a question of this survey`;
    throw new DiscreetError("answer", `${what}; it asks ${names}`);
  }

  /** The questions that one device answers: a uniform subset, whatever the answers. */
  draw() {
    return new Draws().subset(this.questions, this.answers);
  }

  /** Bytes between the id and the report in a frame. */
  get frontSize() {
    return Number(this.questions.length > 1) + this.openly.length;
  }

  /** These bytes, for a question and the places of the public answers. */
  front(question, group) {
    const number = this.questions.length > 1 ? [this.questions.indexOf(question)] : [];
    return Uint8Array.from([...number, ...group]);
  }

  // -- what is promised about everything that one person sends

  /** The factor, exactly; its denominator is 0 where there is no limit. */
  get #ratio() {
    return this.#productOf((mechanism) => mechanism.wholeRatio());
  }

  #productOf(factorOf) {
    return productOf(this.questions, this.answers, factorOf);
  }

  /** The same as a budget. */
  epsilon() {
    return logarithm(this.#ratio);
  }

  /** @param {string[]} [names] as for `openPromise` @returns {{factor: number, sentence: string}} */
  promise(names) {
    const ratio = this.#ratio;
    const { factor, text } = roundUp(square(ratio));
    const sentence = ratio[1] ? say("everything", { factor: localise(text) })
      : say("everythingKnown");
    return { factor, sentence: [sentence, this.openPromise(names)].filter((text) => text).join(" ") };
  }

  /**
   * Public answers are outside every promise; "" where there are none.
   * @param {string[]} names what the public questions are called
   */
  openPromise(names = this.openly.map(({ name }) => name)) {
    if (!names.length) return "";
    const quotes = names.map((what) => say("quoted", { what }));
    return say("openlySent", { names: quotes.reduce((x, y) => say("and", { x, y })) });
  }

  /**
   * What everything that is sent tells of the answer to one question, where that is more than its
   * own report tells; otherwise "". @param {string} name
   */
  answerPromise(name) {
    const about = this.questions.filter((one) => one.name === name || one.of?.includes(name));
    const ratio = productOf(about, this.answers, (mechanism) => mechanism.wholeRatio());
    const own = this.question(name);
    const more = this.answers > 1 && isLess(own.mechanism.wholeRatio(), ratio);
    if (!more && !about.some((one) => one.of && this.#tellsMore(one, own))) return "";
    return say("answerTogether", { factor: localise(roundUp(square(ratio)).text) });
  }

  /**
   * Whether a crossed report can tell more of an answer than the promise of its level: a mechanism
   * may keep less than its budgets allow, and another one use all of them.
   */
  #tellsMore({ of, mechanism }, own) {
    const [rows, columns] = of.map((one) => this.question(one).mechanism.policy.items.length);
    const levels = cellsOf(of.indexOf(own.name), rows, columns)
      .map((cells) => new Set(cells.map((place) => mechanism.policy.levelOf[place])));
    const counts = mechanism.policy.levels.map((_, k) => levels.filter((all) => all.has(k)).length);
    const seen = new Set(); // answers that are alike
    return levels.some((mine, k) => {
      const others = [...counts.keys()].filter((other) => counts[other] > Number(mine.has(other)));
      const level = own.mechanism.policy.levelOf[k];
      const key = JSON.stringify([level, [...mine].sort(), others]);
      if (seen.has(key)) return false;
      seen.add(key);
      const limit = own.mechanism.factor(level);
      return [...mine].some((one) => mechanism.factorAgainst(one, others) > limit);
    });
  }

  /** What the device draws; "" where everyone answers everything. */
  drawn() {
    const [asked, n] = [this.answers, this.questions.length];
    if (asked === n) return "";
    return say("drawnQuestions", { asked: String(asked), of: String(n), n: n - asked });
  }

  /** A warning that replaces every sentence that reassures; "" where none is needed. */
  caution() {
    if (this.questions.length === 1) return this.mechanism.caution();
    const each = this.questions.map(({ name, mechanism }) => [name, mechanism.caution()]);
    const found = each.filter(([, caution]) => caution).map((row) => row.join(": "));
    const together = this.#productOf((mechanism) => mechanism.raisedRatio());
    if (this.answers > 1 || !found.length) {
      const isLimited = !isLess(together, this.#ratio);
      found.push(weakness(together, isLimited ? "cautionEverything" : "cautionEverythingRaised"));
    }
    return found.filter((text) => text).join(" ");
  }
}

/** Of the largest factors of some questions, as many as one device answers. */
function productOf(questions, answers, factorOf) {
  const ratios = questions.map(({ mechanism }) => factorOf(mechanism));
  ratios.sort((x, y) => (isLess(x, y) ? 1 : isLess(y, x) ? -1 : 0));
  return ratios.slice(0, answers).reduce(product, ONE);
}

/** What the fingerprint covers: not how the mechanisms were found. */
const withoutStories = (body) => {
  const { questions } = body;
  return Array.isArray(questions) ? { ...body, questions: questions.map(withoutStory) } : body;
};

const withoutStory = (row) => {
  const mechanism = row?.mechanism;
  return typeof mechanism === "object" && mechanism && !Array.isArray(mechanism)
    ? { ...row, mechanism: covered(mechanism) } : row;
};

/** @returns {Promise<Question>} */
async function readQuestion(row) {
  table(row, ["name", "mechanism"], "a question", ["of"]);
  const { name, mechanism: body, of = null } = row;
  object(body, "a mechanism");
  if ("of" in row && (list(of, "of").length !== 2 || of[0] === of[1])) {
    throw refused(`of is ${quoted(of)}, but must name two questions`);
  }
  const mechanism = new Mechanism(body, await computeFingerprint(body));
  return Object.freeze({ name, mechanism, of });
}

function readOpenly({ public: rows }) {
  if (rows === undefined) return [];
  const openly = list(rows, "public").map(readPublic);
  const groups = openly.reduce((n, { items }) => n * items.length, 1);
  if (!openly.length || openly.length > MOST_PUBLIC || groups > MOST_GROUPS) {
    const allowed = `1 to ${MOST_PUBLIC}, with at most ${MOST_GROUPS} groups`;
    throw refused(`there are ${openly.length} public questions, but must be ${allowed}`);
  }
  return openly;
}

function checkNames(name, questions, openly) {
  const names = [...questions, ...openly].map((question) => question.name);
  for (const text of [name, ...names]) {
    label(text, "name");
    if (Array.from(text).length > LONGEST_NAME || text !== text.trim()) {
      throw refused(`name is ${quoted(text)}, but must have at most ${LONGEST_NAME} characters`);
    }
  }
  const strange = distinct(names, "question").find((text) => text.includes(":"));
  if (strange) throw refused(`the name ${quoted(strange)} of a question must not have a colon`);
}

function checkOf({ name, mechanism, of }, questions) {
  const [first, second] = of.map((one) => questions.find((q) => q.name === one && !q.of));
  if (!first || !second) throw refused(`${quoted(name)} crosses questions that there are not`);
  checkCross(name, mechanism.policy, first.mechanism.policy, second.mechanism.policy);
}

// ---- device/answers.js --------------------------------------------------------------------------

// Answers to a survey, by the names of its questions, and the frames that are sent for them.

/** Answers by name; the answer to the only question may be given as it is. */
function byName(survey, answer) {
  if (answer === undefined) return {};
  if (isTable(answer)) return answer;
  if (survey.questions.length > 1 || survey.openly.length) {
    const what = `this survey asks ${askedNames(survey).map(quoted).join(", ")}`;
    throw new DiscreetError("answer", `${what}; give the answers by name`);
  }
  return { [survey.only.name]: answer };
}

/** The names of what a person is asked: public questions, then the others. */
function askedNames({ openly, questions }) {
  return [...openly, ...questions.filter(({ of }) => !of)].map(({ name }) => name);
}

/** Refuse answers to questions that there are not, and what is no answer. */
function checkAnswers(survey, answers) {
  const known = askedNames(survey);
  for (const [name, answer] of Object.entries(answers)) {
    if (!known.includes(name)) {
      const what = `${quoted(name)} is not a question of this survey`;
      throw new DiscreetError("answer", `${what}; it asks ${known.map(quoted).join(", ")}`);
    }
    const open = survey.openly.find((question) => question.name === name);
    if (open) placeOf(open, answer);
    else survey.question(name).mechanism.places(answer);
  }
}

/** The place of a public answer. */
function placeOf({ name, items }, answer) {
  const place = typeof answer === "string" ? items.indexOf(answer) : answer;
  if (Number.isInteger(place) && place >= 0 && place < items.length) return place;
  const what = `the public question ${quoted(name)} needs one of its ${items.length} answers`;
  throw new DiscreetError("answer", `${what}; choose one`);
}

/**
 * A fresh report on a question, with what stands before it; null where an answer to it is missing
 * and may be.
 * @returns {Uint8Array | null}
 */
function perturbed(survey, question, answers, partial) {
  const { mechanism, of } = question;
  const needed = [...survey.openly.map(({ name }) => name), ...of ?? [question.name]];
  const missing = needed.find((name) => !Object.hasOwn(answers, name));
  if (missing !== undefined) {
    if (partial) return null;
    const what = `the question ${quoted(missing)} has no answer`;
    throw new DiscreetError("answer", `${what}; it was drawn, so answer it`);
  }
  const group = survey.openly.map((open) => placeOf(open, answers[open.name]));
  const given = of ? cell(...of.map((name) => labelOf(survey, name, answers[name])))
    : answers[question.name];
  const [front, report] = [survey.front(question, group), mechanism.perturb(given)];
  return Uint8Array.from([...front, ...report]);
}

function labelOf(survey, name, answer) {
  const { mechanism } = survey.question(name);
  return mechanism.policy.items[mechanism.places(answer)[0]];
}

/** What is sent for an entry of the ledger. @returns {Frame} */
function frameOf(survey, { question, id, report }) {
  const content = fromHex(report);
  return { question, id: fromHex(id), content, report: content.slice(survey.frontSize) };
}

// ---- survey/told.js -----------------------------------------------------------------------------

// What the report of a question tells about: its items, under every label that people read.

/**
 * Labels, and the budget of the item that each names, if the levels of the question have these
 * budgets. A crossed question is about the items of both of its questions. A label counts in every
 * language: otherwise four surveys with one translation could ask for one item four times.
 * @param {Survey} survey @param {Question} question @param {number[]} levels
 * @returns {{labels: string[], levels: number[], levelOf: number[]}}
 */
function toldBy(survey, { name, mechanism, of }, levels) {
  const { levelOf } = mechanism.policy;
  if (!of) return spread(labelsOf(survey, name), levels, levelOf);
  const [first, second] = of.map((one) => labelsOf(survey, one));
  const most = [0, 1].flatMap((axis) => cellsOf(axis, first.length, second.length))
    .map((cells) => Math.max(...cells.map((k) => levels[levelOf[k]])));
  return spread([...first, ...second], most, most.map((_, k) => k));
}

function spread(items, levels, levelOf) {
  return { labels: items.flat(), levels, levelOf: items.flatMap((all, k) => all.map(() => levelOf[k])) };
}

/** The labels of every item of a question, in the languages of the survey: its own first. */
function labelsOf(survey, name) {
  const { items } = survey.question(name).mechanism.policy;
  return items.map((item) => inAllLanguages(survey, "questions", name, item));
}

/** The labels of all public answers, or of these questions'. */
function toldOpenly(survey, openly = survey.openly) {
  return openly.flatMap(({ name, items }) => {
    return items.flatMap((item) => inAllLanguages(survey, "public", name, item));
  });
}

function inAllLanguages({ translations }, part, name, item) {
  const shown = Object.values(translations).map((words) => translated(words, part, name, item));
  return [...new Set([item, ...shown])];
}

// ---- device/ledger.js ---------------------------------------------------------------------------

// What this device has already sent, and to whom.

/**
 * @typedef {{origin: string, name: string, fingerprint: string, question: string, id: string,
 *   report: string, items: string[], told: string[],
 *   budgets: {levels: (number | null)[], levelOf: number[], whole: number | null,
 *   raised: number | null, oneWay: boolean},
 *   state: "drawn" | "shown" | "leaving" | "counted"}}
 *   Entry  of a question, in hexadecimal; never the answer, never a time. A question is drawn; its
 *   report is first shown to its sender alone, then it may have left, then the collector has
 *   acknowledged it. report: with what stands before it in a frame; told: items that were told
 *   openly. A budget of null has no limit; raised: the whole, of raised odds alone;
 *   oneWay: the levels' budgets are of these too
 * @typedef {{entry: Entry, shared: string[]}} Overlap  the labels are the new survey's
 * @typedef {{item: string, epsilon: number, factor: number, sentence: string}} Summed
 */

const VERSION = 4;
const keyOf = (person, version = VERSION) => {
  return `discreet-ledger/${version}${person === 1 ? "" : `/${person}`}`;
};
const OLDER = [3, 2, 1];
const SETTLE = 150; // milliseconds in which tabs see what one of them wrote
const STATES = ["drawn", "shown", "leaving", "counted"];

/**
 * Averaging over repeats is the classic attack. So the same question always gets the same report,
 * and the budgets of different questions about the same items add up.
 */
class Ledger {
  #storage;
  #shared; // with other tabs
  #isFresh = false; // other tabs may not see yet what was written
  #key;
  #person;

  /**
   * @param {{getItem: Function, setItem: Function}} [storage] the browser's localStorage unless
   *   given
   * @param {number} [person] people who share a device each have a ledger of their own
   */
  constructor(storage, person = 1) {
    // late: reading it may throw where storage is blocked
    this.#storage = () => storage ?? globalThis.localStorage;
    this.#shared = !storage;
    this.#person = person;
    this.#key = keyOf(person);
  }

  /** Whether a ledger of this person is in the browser's storage. @param {number} person */
  static isKept(person) {
    return globalThis.localStorage.getItem(keyOf(person)) !== null;
  }

  /**
   * Run work while no other tab of this browser does, until all of them see what it wrote. Otherwise
   * two tabs could both draw a report, or send two that need consent to their sum.
   */
  async locked(work) {
    this.#read(); // where storage is blocked, so are locks, and those do not say why
    const settling = async () => {
      try {
        return await work();
      } finally {
        await this.settled();
      }
    };
    const locks = globalThis.navigator?.locks;
    return locks ? locks.request(keyOf(1), settling) : settling();
  }

  /** The entries of exactly this survey, in the order of its questions. @returns {Entry[]} */
  find(origin, survey) {
    const places = new Map(survey.questions.map(({ name }, k) => [name, k]));
    const mine = this.#read().filter(isFor(origin, survey));
    if (mine.some(({ question }) => !places.has(question))) {
      const what = "the ledger holds a question that this survey does not have";
      throw new DiscreetError("ledger", `${what}, so nothing is sent`, { isDamaged: true });
    }
    return mine.sort((x, y) => places.get(x.question) - places.get(y.question));
  }

  /**
   * The drawn questions of a survey, drawn now if they were not before. They are written down
   * before anything is shown: who could draw again would tell more.
   * @param {string} origin @param {Survey} survey
   * @returns {Entry[]}
   */
  drawOnce(origin, survey) {
    const mine = this.find(origin, survey);
    if (mine.length) return mine;
    const fresh = survey.draw().map((question) => newEntry(origin, survey, question));
    this.#write([...this.#read(), ...fresh]);
    return this.find(origin, survey);
  }

  /**
   * Earlier answers to other surveys that share an item, however its label is spelled, with a
   * question of this one, drawn or not: else a survey under another name would be drawn, and
   * answered, once more.
   * @param {string} origin @param {Survey} survey
   * @returns {Overlap[]}
   */
  overlaps(origin, survey) {
    const items = [...new Set(survey.questions.flatMap((q) => newEntry(origin, survey, q).items))];
    const openly = toldOpenly(survey);
    return this.#sentElsewhere(origin, survey).flatMap((entry) => {
      const there = new Set(entry.items.flatMap(looks));
      const told = new Set(entry.told.flatMap(looks));
      const shared = [
        ...items.filter((item) => looks(item).some((look) => there.has(look) || told.has(look))),
        ...openly.filter((item) => looks(item).some((look) => there.has(look))),
      ];
      return shared.length ? [{ entry, shared }] : [];
    });
  }

  /**
   * The shared item with the largest sum of budgets, the new survey included; null without
   * overlaps. Where the earlier answers were to other questions than those that are drawn now, the
   * sum is that of everything, and the item is "".
   * @param {string} origin @param {Survey} survey @param {Overlap[]} overlaps
   * @returns {Summed | null}
   */
  summed(origin, survey, overlaps) {
    if (!overlaps.length) return null;
    const mine = this.#mine(origin, survey);
    const earlier = overlaps.map(({ entry }) => entry);
    const { epsilon: most, item, n } = largestSum(mine, earlier.map(spentBy), survey.answers);
    const whole = summedUp(earlier).epsilon + this.own(origin, survey).epsilon;
    const epsilon = n ? most : whole;
    const { factor, text } = roundUpFloat(Math.exp(epsilon));
    const lists = survey.questions.some(({ mechanism }) => mechanism.kind.lists);
    const oneWay = [...earlier, ...mine].some(({ budgets }) => budgets.oneWay);
    const key = epsilon === Infinity ? "alreadyUnlimited" : oneWay ? "alreadyOneWay"
      : lists ? "alreadyHaving" : "already";
    const others = overlaps.length - n;
    const sentences = [
      n && say(key, { n, what: say("quoted", { what: item }), factor: localise(text) }),
      others && unlimited("alreadyOther", whole, others),
      n && lists && unlimited("alreadyLists", whole),
    ];
    return { item, epsilon, factor, sentence: sentences.filter((one) => one).join(" ") };
  }

  /**
   * The sum of the budgets of whole answers over all other surveys, and their number. It counts
   * every survey, whatever it asks about, because labels can be rewritten. Public answers have no
   * budget and are not in it. There are two sums: of what is told either way, and of how far odds
   * are raised.
   * @returns {{epsilon: number, raised: number, earlier: number}}
   */
  total(origin, survey) {
    const others = this.#sentElsewhere(origin, survey);
    return { ...summedUp(others), earlier: others.length };
  }

  /** The same sums of this survey: of the questions that are drawn, or may be. */
  own(origin, survey) {
    const mine = this.#mine(origin, survey); // as many as are answered, once they are drawn
    const most = (key) => mine.map(({ budgets }) => stored(budgets[key])).sort((x, y) => y - x)
      .slice(0, survey.answers).reduce((sum, x) => sum + x, 0);
    return { epsilon: most("whole"), raised: most("raised") };
  }

  /**
   * Write a report down before anybody sees it. If the question has one already, that one counts.
   * @param {string} origin @param {Survey} survey @param {string} question
   * @param {Uint8Array} content @param {Uint8Array} id
   */
  reserve(origin, survey, question, content, id) {
    const same = isFor(origin, survey);
    this.#write(this.#read().map((entry) => {
      const isMine = same(entry) && entry.question === question && entry.state === "drawn";
      return isMine ? { ...entry, id: toHex(id), report: toHex(content), state: "shown" } : entry;
    }));
  }

  /** Bring back what was prepared, if the ledger was removed meanwhile. @returns {Entry[]} */
  restore(origin, survey, frames) {
    if (!this.find(origin, survey).length) {
      const entries = frames.map(({ question, id, content }) => {
        const entry = newEntry(origin, survey, survey.question(question));
        return { ...entry, id: toHex(id), report: toHex(content), state: "shown" };
      });
      this.#write([...this.#read(), ...entries]);
    }
    return this.find(origin, survey).filter(({ state }) => state !== "drawn");
  }

  /**
   * Wait, inside the lock, until every other tab sees what was written. Tabs keep copies of
   * localStorage, which catch up a little later than the lock is handed on.
   */
  async settled() {
    if (!this.#isFresh) return;
    await new Promise((resolve) => { setTimeout(resolve, SETTLE); });
    this.#isFresh = false;
  }

  /** The reports with these ids are about to leave, or the collector has acknowledged them. */
  mark(ids, state) {
    this.#write(this.#read().map((entry) => (ids.includes(entry.id) ? { ...entry, state } : entry)));
  }

  /** The entries of the drawn questions; before they are drawn, of all. @returns {Entry[]} */
  #mine(origin, survey) {
    const drawn = this.find(origin, survey);
    return drawn.length ? drawn
      : survey.questions.map((question) => newEntry(origin, survey, question));
  }

  /** The entries of other surveys whose report may have left. @returns {Entry[]} */
  #sentElsewhere(origin, survey) {
    const same = isFor(origin, survey);
    return this.#read().filter((entry) => !same(entry)
      && (entry.state === "leaving" || entry.state === "counted"));
  }

  /** @returns {Entry[]} */
  #read() {
    let text;
    let older;
    try {
      const storage = this.#storage();
      text = storage.getItem(this.#key);
      older = OLDER.map((version) => keyOf(this.#person, version))
        .find((key) => storage.getItem(key) != null);
    } catch (error) {
      const what = `the ledger cannot be read (${error.message}), so nothing is sent`;
      throw new DiscreetError("ledger", `${what}; let it be stored`);
    }
    if (text == null && older) {
      const what = `the ledger stored as "${older}" is of an earlier version, so nothing is sent`;
      const next = "remove it if you accept that earlier answers are forgotten";
      throw new DiscreetError("ledger", `${what}; ${next}`, { isDamaged: true });
    }
    if (text == null) return [];
    try {
      const { entries, ...more } = JSON.parse(text);
      const shape = Array.isArray(entries) && !Object.keys(more).length;
      if (shape && entries.every(isEntry)) return entries;
    } catch { /* refused below */ }
    const what = `the ledger stored as "${this.#key}" is damaged, so nothing is sent`;
    const next = "restore it, or remove it if you accept that earlier answers are forgotten";
    throw new DiscreetError("ledger", `${what}; ${next}`, { isDamaged: true });
  }

  #write(entries) {
    try {
      this.#storage().setItem(this.#key, JSON.stringify({ entries }));
      this.#isFresh = this.#shared;
    } catch (error) {
      const what = `the ledger cannot be written (${error.message}), so nothing is sent`;
      const next = "make room, or leave the private window";
      throw new DiscreetError("ledger", `${what}; ${next}`);
    }
  }
}

/** What is remembered of a question that was drawn. @returns {Entry} */
function newEntry(origin, survey, question) {
  const { name, fingerprint } = survey;
  const { mechanism } = question;
  const finite = (epsilon) => (epsilon < Infinity ? epsilon : null);
  const { labels: items, levels, levelOf } = toldBy(survey, question, mechanism.levelEpsilons());
  const budgets = {
    levels: levels.map(finite), levelOf, whole: finite(mechanism.wholeEpsilon()),
    raised: finite(mechanism.raiseEpsilon()), oneWay: !mechanism.policy.isMutual,
  };
  const told = toldOpenly(survey);
  return {
    origin, name, fingerprint, question: question.name, id: "", report: "", items, told, budgets,
    state: "drawn",
  };
}

function summedUp(entries) {
  const sum = (key) => entries.reduce((total, { budgets }) => total + stored(budgets[key]), 0);
  return { epsilon: sum("whole"), raised: sum("raised") };
}

/** A budget that is stored: null has no limit. */
const stored = (epsilon) => epsilon ?? Infinity;

function isFor(origin, { name, fingerprint }) {
  return (entry) => {
    return entry.origin === origin && entry.name === name && entry.fingerprint === fingerprint;
  };
}

/** Every protected item with its budget. @param {Entry} entry @returns {[string, number][]} */
function budgetsOf({ items, budgets: { levels, levelOf } }) {
  return items.map((item, k) => [item, stored(levels[levelOf[k]])]);
}

/** The budget of every look, the larger one if two labels share it; the looks told openly. */
function spentBy(entry) {
  const byLook = new Map();
  for (const [item, budget] of budgetsOf(entry)) {
    for (const look of looks(item)) byLook.set(look, Math.max(byLook.get(look) ?? 0, budget));
  }
  return { byLook, told: new Set(entry.told.flatMap(looks)) };
}

/** A sentence with the factor of a budget, or the one for no limit. */
function unlimited(key, epsilon, n) {
  const factor = localise(roundUpFloat(Math.exp(epsilon)).text);
  return say(epsilon === Infinity ? `${key}Unlimited` : key, { n, factor });
}

/**
 * The item about which most was told, the sum of its budgets, and how many earlier reports are about
 * any of mine. A crossed report tells of an item, too: of mine, as many count as are answered.
 * @param {Entry[]} mine
 */
function largestSum(mine, spent, answers) {
  const mineSpent = mine.map(spentBy);
  const own = mine.flatMap((entry) => [
    ...budgetsOf(entry), ...entry.told.map((item) => [item, Infinity, true]),
  ]);
  let most = { epsilon: -Infinity, item: "" };
  const about = new Set();
  for (const [item, budget, openly = false] of own) {
    const itemLooks = looks(item);
    const earlier = spent.flatMap(({ byLook, told }, k) => {
      const budgets = itemLooks.flatMap((look) => byLook.get(look) ?? []);
      // what was told openly both times was never protected
      if (!openly && itemLooks.some((look) => told.has(look))) budgets.push(Infinity);
      if (budgets.length) about.add(k);
      return budgets.length ? [Math.max(...budgets)] : [];
    });
    const now = mineSpent.map(({ byLook }) => {
      return Math.max(0, ...itemLooks.flatMap((look) => byLook.get(look) ?? []));
    }).sort((x, y) => y - x).slice(0, answers).reduce((sum, x) => sum + x, 0);
    const epsilon = earlier.reduce((sum, x) => sum + x, budget === Infinity ? budget : now);
    if (earlier.length && epsilon > most.epsilon) most = { epsilon, item };
  }
  return { ...most, n: about.size };
}

function isEntry({ origin, name, fingerprint, question, id, report, items, told, budgets, state }) {
  const texts = Array.isArray(items) && items.length > 0 && Array.isArray(told)
    && [origin, name, fingerprint, question, ...items, ...told]
      .every((text) => typeof text === "string");
  const { levels, levelOf, whole, raised, oneWay } = budgets;
  const numbers = Array.isArray(levels) && typeof oneWay === "boolean"
    && [...levels, whole, raised].every((x) => x === null || (Number.isFinite(x) && x >= 0));
  const placed = Array.isArray(levelOf) && levelOf.length === items.length
    && levelOf.every((k) => Number.isInteger(k) && k in levels);
  const bytes = state === "drawn" ? id === "" && report === ""
    : /^[0-9a-f]{32}$/.test(id) && /^([0-9a-f]{2})+$/.test(report);
  return texts && numbers && placed && bytes && STATES.includes(state);
}

// ---- device/limits.js ---------------------------------------------------------------------------

// Limits that a person sets on what a question may reveal.

/** The limit itself, if it is one. */
function readLimit(most) {
  if (typeof most !== "number" || !(most > 0)) {
    throw new DiscreetError("answer", `maxTotal is a positive number, got ${quoted(most)}`);
  }
  return most;
}

/**
 * Refuse a survey that may reveal more than the person allows: budgets per item, or one number for
 * every item and for everything that is sent together. One-way protection is refused unless the
 * person accepts it by name.
 */
function checkSurvey(survey, limits, oneWay = false) {
  const { questions } = survey;
  if (!oneWay && questions.some(({ mechanism }) => !mechanism.policy.isMutual)) {
    const what = "this survey protects answers one way only: it may become known that an answer is "
      + "not yours";
    throw new DiscreetError("pinned", `${what}; do not answer, or accept that (oneWay)`);
  }
  if (isTable(limits)) {
    checkNamed(survey, limits);
    return;
  }
  refuseNoBudget(limits);
  for (const { mechanism } of questions) checkLevels(mechanism, limits);
  const whole = mostTogether(survey, questions.map(({ mechanism }) => {
    return mechanism.policy.isMutual ? mechanism.wholeEpsilon() : mechanism.raiseEpsilon();
  }));
  if (survey.answers > 1 && whole > limits + 1e-9) {
    const what = `all answers to this survey together have the budget ${brief(whole)}, above the `
      + `${brief(limits)} that you allow`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  }
}

function refuseNoBudget(most) {
  if (typeof most !== "number" || !(most > 0)) {
    throw new DiscreetError("answer", `maxEpsilon is a positive number, got ${quoted(most)}`);
  }
}

/** Every item of a question; open levels were accepted with one-way protection. */
function checkLevels(mechanism, most) {
  const { items, levelOf, levels } = mechanism.policy;
  const budgets = mechanism.levelBudgets();
  items.forEach((item, k) => {
    if (levels[levelOf[k]].epsilon < Infinity) refuseAbove(item, budgets[levelOf[k]], most);
  });
}

/**
 * The items that are named, in whatever language: what all questions that one device answers may
 * tell of each. Whoever names an open item does not accept that it is open.
 */
function checkNamed(survey, limits) {
  const entries = Object.entries(limits);
  if (!entries.length) {
    throw new DiscreetError("answer", "maxEpsilon names no item; give a number, or {item: budget}");
  }
  const tellings = survey.questions.map((question) => {
    const byLook = new Map();
    const { labels, levels, levelOf } = toldBy(survey, question, question.mechanism.levelBudgets());
    labels.forEach((text, k) => {
      for (const look of looks(text)) {
        byLook.set(look, Math.max(byLook.get(look) ?? 0, levels[levelOf[k]]));
      }
    });
    return byLook;
  });
  for (const [item, most] of entries) {
    refuseNoBudget(most);
    refuseOpenly(survey, item);
    const told = tellings.map((byLook) => looks(item).flatMap((look) => byLook.get(look) ?? []));
    if (!told.some((budgets) => budgets.length)) {
      const what = `${quoted(item)}, for which you pinned a budget, is not an item here`;
      throw new DiscreetError("pinned", `${what}; do not answer`);
    }
    refuseAbove(item, mostTogether(survey, told.map((budgets) => Math.max(0, ...budgets))), most);
  }
}

/** Whoever pins a budget for an item does not accept that a public question tells of it. */
function refuseOpenly(survey, item) {
  const here = looks(item);
  for (const question of survey.openly) {
    const told = [question.name, ...toldOpenly(survey, [question])].flatMap(looks);
    if (!here.some((look) => told.includes(look))) continue;
    const what = `${quoted(item)}, for which you pinned a budget, is asked openly in the question `
      + quoted(question.name);
    throw new DiscreetError("pinned", `${what}; do not answer`);
  }
}

function refuseAbove(item, budget, most) {
  if (!(budget > most + 1e-9)) return;
  const what = `${quoted(item)} has the budget ${brief(budget)} here, above the ${brief(most)} that `
    + "you allow";
  throw new DiscreetError("pinned", `${what}; do not answer`);
}

/** Of the questions that one device may answer. */
const mostTogether = ({ answers }, budgets) => {
  return [...budgets].sort((x, y) => y - x).slice(0, answers).reduce((sum, x) => sum + x, 0);
};

/** A budget in four digits. */
const brief = (x) => String(Number(x.toPrecision(4)));

// ---- device/network.js --------------------------------------------------------------------------

// The only part that talks to a server.

const LATER = new Set([408, 425, 429]); // refusals after which the same request is sent again
const LONGEST = 20_000; // milliseconds of one attempt, and of one pause

/**
 * The JSON that the collector answers. Retried while it is away or busy, with growing pauses that
 * depend on nothing but its answers.
 */
async function requestJson(url, options, { fetch, server, patience, pause, waiting }) {
  const end = performance.now() + patience;
  let why = "it cannot be reached"; // or its last answer
  for (let growing = pause; ; growing *= 2) {
    let asked = 0; // the pause that the collector asks for
    try {
      const left = Math.min(LONGEST, end - performance.now());
      const signal = AbortSignal.timeout(Math.ceil(Math.max(1, left)));
      const response = await fetch(url, {
        ...options, signal, credentials: "omit", referrerPolicy: "no-referrer",
        cache: "no-store", redirect: "manual",
      });
      const bytes = await response.arrayBuffer();
      const final = response.status < 500 && !LATER.has(response.status);
      if (final) return readAnswer(response, bytes);
      why = `it answers ${response.status}`;
      asked = 1000 * (Number(response.headers.get("Retry-After")) || 0);
    } catch (error) {
      if (error instanceof DiscreetError) throw error;
    }
    const wait = Math.min(LONGEST, Math.max(asked, growing * (0.5 + Math.random())));
    if (performance.now() + wait > end) {
      const what = `the collector at ${cleaned(server)} does not take the request (${why})`;
      const next = options.body
        ? "try again later: the same report will be sent" : "try again later";
      throw new DiscreetError("network", `${what}; ${next}`);
    }
    waiting(wait);
    await sleep(wait);
  }
}

/** Wait so many milliseconds, or less if the network comes back. */
function sleep(wait) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.("online", done);
      resolve();
    };
    const timer = setTimeout(done, wait);
    globalThis.addEventListener?.("online", done);
  });
}

function readAnswer(response, bytes) {
  let body;
  try {
    body = parse(bytes);
  } catch { /* judged below */ }
  if (response.ok && typeof body === "object" && body !== null) return body;
  if (response.ok) {
    const what = "the collector did not answer in JSON";
    throw new DiscreetError("server", `${what}; check the address and the network`);
  }
  if (response.status < 400) {
    const what = "the collector names another address";
    throw new DiscreetError("server", `${what}; use it if you trust it`);
  }
  const detail = typeof body?.detail === "string" ? cleaned(body.detail) : "";
  const sentence = detail || `the collector refuses with ${response.status}`;
  throw new DiscreetError("refused", sentence, { status: response.status });
}

// ---- device/client.js ---------------------------------------------------------------------------

/**
 * @typedef {{question: string, id: Uint8Array, content: Uint8Array, report: Uint8Array}} Frame
 *   content: the report with what stands before it
 * @typedef {{survey: Survey, frames: Frame[], missing: string[], repeated: boolean,
 *   overlaps: Overlap[], summed: Summed | null, maxTotal: number, oneWay: boolean}} Prepared
 *   what will be sent if `send` is called; missing: drawn questions that have no report yet
 * @typedef {{accepted: number, duplicates: number, frames: Frame[], repeated: boolean}} Receipt
 */

const SENT = ["leaving", "counted"]; // states of a report that may have left
const STATES_OF_COLLECTION = ["upcoming", "open", "closed"];
const LATE = 3_600_000; // milliseconds after a question's end at which it is closed for certain

/**
 * Fetches a survey, verifies it, and uploads each perturbed report, once. Requests depend on nothing
 * but the reports.
 */
class Client {
  #fetch;

  /**
   * @param {string} url where the collector is
   * @param {{fetch?: typeof fetch, ledger?: Ledger, origin?: string, patience?: number,
   *   pause?: number, maxTotal?: number, waiting?: (milliseconds: number) => void}} [options]
   *   patience: milliseconds after which retries end; pause: before the first retry; maxTotal: caps
   *   the sum of the budgets over all collections in the ledger, whatever they ask about; waiting:
   *   called when an attempt has failed, with the milliseconds until the next
   */
  constructor(url, {
    fetch = globalThis.fetch, ledger = new Ledger(), origin, patience = 60_000, pause = 500,
    maxTotal = Infinity, waiting = () => {},
  } = {}) {
    this.waiting = waiting;
    this.maxTotal = readLimit(maxTotal);
    this.#fetch = (...args) => fetch(...args);
    this.url = url.replace(/\/+$/, "");
    this.ledger = ledger;
    this.origin = origin ?? new URL(url).origin;
    this.patience = patience;
    this.pause = pause;
  }

  /**
   * The collection's survey, verified. Only two words of the collector are used beside it: the
   * state, until the survey's own end, and what the collector keeps.
   * @param {string} name
   * @param {{fingerprint?: string | null, maxEpsilon?: number | Record<string, number>,
   *   oneWay?: boolean}} [pins]
   *   the only fingerprint to accept; the largest budget to accept, of all items or of each by its
   *   label; with it, whether one-way protection is accepted (say so to `prepare`, too)
   * @returns {Promise<{survey: Survey, state: "upcoming" | "open" | "closed",
   *   keeps: "counts" | "reports"}>}
   */
  async describe(name, { fingerprint: pinned, maxEpsilon, oneWay = false } = {}) {
    const { survey: document, state, keeps, open_results: openResults } = await this.#request(
      this.#path(name), {},
    );
    if (!STATES_OF_COLLECTION.includes(state)) {
      const what = `the collection's state is ${quoted(state)}`
        + ", but must be upcoming, open or closed";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const survey = await Survey.from(document, { fingerprint: pinned });
    if (survey.name !== name) {
      const what = `the link is for ${quoted(name)}, but the survey there is called `
        + quoted(survey.name);
      const next = "a link that only you have could tell who you are: do not answer, and compare the"
        + " whole link with somebody else's";
      throw new DiscreetError("pinned", `${what}; ${next}`);
    }
    if (maxEpsilon !== undefined) checkSurvey(survey, maxEpsilon, oneWay);
    const { opens, closes } = survey.about;
    if (state === "upcoming" && !opens) {
      const what = "the collector says that the survey has not opened, which has no such time";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const over = closes && Date.now() > Date.parse(closes) + LATE;
    return {
      survey, state: over ? "closed" : state, keeps: keeps === "counts" ? keeps : "reports",
      openResults: openResults === true,
    };
  }

  /**
   * The questions that this device answers. They are drawn once, whatever the answers are, and
   * written down before anything is shown.
   * @param {Survey} survey
   * @returns {Promise<Question[]>}
   */
  async draw(survey) {
    const { ledger } = this;
    const entries = await ledger.locked(() => {
      ledger.drawOnce(this.origin, survey);
      return ledger.find(this.origin, survey);
    });
    return entries.map(({ question }) => survey.question(question));
  }

  /**
   * Perturb answers and write the reports down; nothing is sent yet. A report is drawn once, inside
   * a lock and before anybody sees it: a survey whose reports have been prepared gives them again,
   * whatever the answers.
   * @param {Survey} survey
   * @param {unknown} answer to the only question; or answers by the names of the questions, public
   *   ones too. Those to questions that were not drawn are not looked at. Without an answer, what
   *   was prepared before
   * @param {{agree?: boolean | number, maxTotal?: number, oneWay?: boolean, partial?: boolean}}
   *   [options]
   *   agree: consent to the summed budget of earlier answers about the same items, or to that of so
   *   many; maxTotal caps the sum of the budgets over all surveys, and is not lifted by agreeing;
   *   oneWay: maxTotal limits how far odds are raised alone; partial: whether drawn questions may be left for later
   * @returns {Promise<Prepared>}
   */
  async prepare(survey, answer, {
    agree = false, maxTotal = Infinity, oneWay = false, partial = false,
  } = {}) {
    const most = Math.min(readLimit(maxTotal), this.maxTotal);
    const { ledger, origin } = this; // somebody else may take over the client meanwhile
    const answers = byName(survey, answer);
    checkAnswers(survey, answers);
    return ledger.locked(async () => {
      const before = ledger.find(origin, survey);
      const isSent = before.length > 0 && before.every(({ state }) => SENT.includes(state));
      const agreed = agree === true ? Infinity : Number(agree);
      const overlaps = isSent ? [] : this.#refuseUnlessAgreed(ledger, survey, { most, agreed, oneWay });
      const undrawn = ledger.drawOnce(origin, survey).filter(({ state }) => state === "drawn");
      const fresh = undrawn.flatMap(({ question }) => {
        const content = perturbed(survey, survey.question(question), answers, partial);
        return content ? [{ question, content }] : [];
      });
      for (const { question, content } of fresh) {
        const id = globalThis.crypto.getRandomValues(new Uint8Array(16));
        ledger.reserve(origin, survey, question, content, id);
      }
      if (fresh.length) await ledger.settled();
      const mine = ledger.find(origin, survey);
      const ready = mine.filter(({ state }) => state !== "drawn");
      return Object.freeze({
        survey, frames: ready.map((entry) => frameOf(survey, entry)),
        missing: mine.filter(({ state }) => state === "drawn").map(({ question }) => question),
        repeated: !fresh.length, overlaps, summed: ledger.summed(origin, survey, overlaps),
        maxTotal: most, oneWay,
      });
    });
  }

  /**
   * The reports that were on their way when something went wrong, so that they may have arrived or
   * not. Send them again; their ids make sure that each is counted once.
   * @param {Survey} survey
   * @returns {Prepared | null}
   */
  unsent(survey) {
    const mine = this.ledger.find(this.origin, survey);
    if (!mine.some(({ state }) => state === "leaving")) return null;
    const frames = mine.filter(({ state }) => SENT.includes(state))
      .map((entry) => frameOf(survey, entry));
    return Object.freeze({
      survey, frames, missing: [], repeated: true, overlaps: [], summed: null, maxTotal: Infinity,
      oneWay: false,
    });
  }

  /** The reports of a survey that this device has. @param {Survey} survey @returns {Frame[]} */
  reports(survey) {
    return this.ledger.find(this.origin, survey).filter(({ state }) => state !== "drawn")
      .map((entry) => frameOf(survey, entry));
  }

  /**
   * Upload the reports, one by one and in random order, again and again while the collector is away:
   * each is counted once. Nothing in them says that they belong together; whoever sees the connections
   * may guess it from address and time.
   * @param {Prepared} prepared
   * @returns {Promise<Receipt>}
   */
  async send({ survey, frames: wanted, repeated, overlaps, maxTotal, oneWay }) {
    const { ledger } = this; // somebody else may take over the client meanwhile
    const entries = await ledger.locked(() => {
      const mine = ledger.restore(this.origin, survey, wanted);
      const leaving = mine.filter(({ state }) => state === "shown").map(({ id }) => id);
      if (leaving.length) {
        const limits = { most: maxTotal, agreed: overlaps.length, oneWay };
        this.#refuseUnlessAgreed(ledger, survey, limits);
        ledger.mark(leaving, "leaving");
      }
      return mine;
    });
    const counted = { accepted: 0, duplicates: 0 };
    for (const entry of new Draws().subset(entries, entries.length)) {
      const { accepted, duplicates } = await this.#upload(survey, entry);
      counted.accepted += accepted;
      counted.duplicates += duplicates;
      try {
        await ledger.locked(() => ledger.mark([entry.id], "counted"));
      } catch {
        // the entry stays "leaving": then the same bytes may be sent again, and are counted once
      }
    }
    const ids = new Set(wanted.map(({ id }) => toHex(id)));
    const other = entries.some(({ id }) => !ids.has(id));
    return {
      ...counted, frames: entries.map((entry) => frameOf(survey, entry)),
      repeated: repeated || other,
    };
  }

  async #upload({ name, fingerprint }, { id, report }) {
    const { accepted, duplicates } = await this.#request(`${this.#path(name)}/reports`, {
      method: "POST",
      headers: {
        "Content-Type": "application/octet-stream",
        "Discreet-Survey": fingerprint,
      },
      body: fromHex(id + report),
    });
    if (accepted + duplicates !== 1) {
      const what = "the collector did not say that it has the report";
      throw new DiscreetError("server", `${what}; send it again later`);
    }
    return { accepted, duplicates };
  }

  /** Prepare and send. @returns {Promise<Receipt>} */
  async answer(survey, answer, options = {}) {
    return this.send(await this.prepare(survey, answer, options));
  }

  /** Refuse overlaps without consent, and a sum of budgets above the person's limit. */
  #refuseUnlessAgreed(ledger, survey, { most, agreed, oneWay }) {
    this.#checkTotal(ledger, survey, most, oneWay);
    const overlaps = ledger.overlaps(this.origin, survey);
    if (overlaps.length <= agreed) return overlaps;
    const summed = ledger.summed(this.origin, survey, overlaps);
    const sentence = `${summed.sentence.slice(0, -1)}; answer only if you agree to that.`;
    throw new DiscreetError("overlap", sentence, { summed, overlaps });
  }

  #checkTotal(ledger, survey, most, oneWay) {
    const spent = ledger.total(this.origin, survey);
    const own = ledger.own(this.origin, survey);
    const raised = spent.raised + own.raised;
    const epsilon = oneWay ? raised : spent.epsilon + own.epsilon;
    if (!(epsilon > most + 1e-9)) return;
    const before = spent.earlier === 1 ? "an earlier answer" : `${spent.earlier} earlier answers`;
    const what = spent.earlier ? `this answer and ${before} together have` : "this answer has";
    const allowed = `above the ${brief(most)} that you allow in all`;
    const sentence = `${what} the budget ${brief(epsilon)}, ${allowed}`;
    const hint = `; its raised odds have ${brief(raised)}: accept that (oneWay)`;
    const next = `it is not sent, even if you agree${raised > most + 1e-9 ? "" : hint}`;
    throw new DiscreetError("total", `${sentence}; ${next}`, { epsilon, limit: most });
  }

  #path(name) {
    return `${this.url}/v1/collections/${encodeURIComponent(name)}`;
  }

  #request(url, options) {
    const { url: server, patience, pause, waiting } = this;
    return requestJson(url, options, { fetch: this.#fetch, server, patience, pause, waiting });
  }
}

export {
  Client, DiscreetError, ENGLISH, Ledger, Mechanism, Survey, askedNames, canonicalJson, cleaned,
  computeFingerprint as fingerprint, shortFingerprint, speak,
};
