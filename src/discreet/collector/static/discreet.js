/**
 * discreet on the participant's device: verify a mechanism, perturb an answer, remember it, send the report.
 *
 * One ES module for browsers and Node 20, without dependencies or a build step. It trusts nothing that a server says:
 * a Mechanism cannot exist unless its guarantee holds, checked here in integers. Only `Client` uses the network.
 *
 *     const client = new Client("https://survey.example.org");
 *     const { mechanism } = await client.describe("health-survey", { fingerprint });
 *     const prepared = client.prepare("health-survey", mechanism, "anemia");   // show prepared.report
 *     await client.send(prepared);
 *
 * The sections follow the flow: errors, canonical JSON, policy, exact check, mechanism, randomness, promises, ledger, client.
 */

const { freeze } = Object;
const D = 2 ** 32; // probabilities are integers over D; D and every numerator are exact as Numbers
const P = 2 ** 31 - 1; // the prime of compact reports

/** Everything this module refuses; `code` is for programs, the message is one sentence for people. */
export class DiscreetError extends Error {
  /** @param {string} code @param {string} sentence @param {object} [details] further attributes */
  constructor(code, sentence, details = {}) {
    super(sentence);
    this.name = "DiscreetError";
    this.code = code;
    Object.assign(this, details);
  }
}

/** A value as it was written, short. @param {unknown} value */
function show(value) {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}

// ---- canonical JSON and fingerprint ---------------------------------------------------------------------

/**
 * JSON with sorted keys and no blanks: RFC 8785 restricted to texts, integers, true, false, null, lists and objects.
 * @param {unknown} document
 * @returns {string}
 */
export function canonicalJson(document) {
  if (document === null || typeof document === "boolean") return String(document);
  if (typeof document === "string") return canonicalText(document);
  if (Number.isSafeInteger(document)) return String(document);
  if (Array.isArray(document)) return `[${Array.from(document, canonicalJson).join(",")}]`;
  if (typeof document !== "object") {
    throw refused(`the document holds ${show(document)}, but only texts and integers up to 2^53 - 1 are allowed`);
  }
  const keys = Object.keys(document).sort(byCodePoint);
  return `{${keys.map((key) => `${canonicalText(key)}:${canonicalJson(document[key])}`).join(",")}}`;
}

function canonicalText(text) {
  if (/\p{Surrogate}/u.test(text)) throw refused("the document holds half of a surrogate pair, which is no text");
  return JSON.stringify(text); // escapes exactly what RFC 8785 and Python escape
}

/** Python's order; JavaScript's own compares UTF-16 units, which puts U+1F642 before U+FFFD. */
function byCodePoint(first, second) {
  const [x, y] = [Array.from(first), Array.from(second)];
  const k = x.findIndex((character, place) => character !== y[place]);
  if (k < 0) return x.length - y.length;
  return k < y.length ? x[k].codePointAt(0) - y[k].codePointAt(0) : 1;
}

/** SHA-256 of the canonical JSON, in hexadecimal. @param {unknown} document @returns {Promise<string>} */
export async function fingerprint(document) {
  return sha256(canonicalJson(document));
}

async function sha256(text) {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) {
    throw new DiscreetError("crypto", "this page was not loaded over https, so the browser offers no SHA-256; open it with https");
  }
  return toHex(new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// ---- policy: parsed once, strictly, into frozen objects --------------------------------------------------

/**
 * @typedef {{name: string, budget: string, epsilon: number, count: number}} Level
 * @typedef {{levels: [string, string], budget: string, epsilon: number}} Pair  not protected: "" and Infinity
 * @typedef {{name: string, question: string, input: "single" | "set", notion: "min" | "avg", items: readonly string[],
 *   levelOf: readonly number[], levels: readonly Level[], pairs: readonly Pair[]}} Policy
 * @typedef {[bigint, bigint]} Ratio  a numerator and a positive denominator
 * @typedef {{of: Ratio[], explicit: Map<number, Ratio | null>}} Factors  at most e^eps per level; e^r at i * levels + j
 */

function refused(sentence) {
  return new DiscreetError("mechanism", `${sentence}; do not answer, and ask the organiser for a correct mechanism`);
}

function object(raw, where) {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    throw refused(`${where} is ${show(raw)}, but must be an object`);
  }
  return raw;
}

/** The object itself, if it has exactly these keys. */
function table(raw, keys, where, optional = []) {
  const missing = keys.find((key) => !Object.hasOwn(object(raw, where), key));
  if (missing) throw refused(`${missing} is missing in ${where}`);
  const known = [...keys, ...optional];
  const unknown = Object.keys(raw).find((key) => !known.includes(key));
  if (unknown !== undefined) throw refused(`${where} has the unknown key ${show(unknown)}, but may have ${known.join(", ")}`);
  return raw;
}

function list(raw, where) {
  if (!Array.isArray(raw)) throw refused(`${where} is ${show(raw)}, but must be a list`);
  return raw;
}

function choice(key, value, allowed) {
  if (!allowed.includes(value)) throw refused(`${key} is ${show(value)}, but must be one of ${allowed.join(", ")}`);
  return value;
}

// What Python calls not printable, except code points that are not assigned yet: which those are depends on the browser's age.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Noncharacter_Code_Point}]|(?! )\p{Z}/u;

/** Without the two invisible characters that Persian, Indic scripts and emoji are spelled with. */
function withoutJoiners(text) {
  return text.replace(/[\u200c\u200d]/g, "");
}

function label(text, what) {
  if (typeof text !== "string" || !withoutJoiners(text).trim() || UNPRINTABLE.test(withoutJoiners(text))) {
    throw refused(`${what} is ${show(text)}, but must be a non-empty text without control characters`);
  }
  return text;
}

function distinct(texts, what) {
  const seen = new Set();
  for (const text of texts) {
    if (seen.has(label(text, what))) throw refused(`${what} ${show(text)} is named twice`);
    seen.add(text);
  }
  return texts;
}

/** @returns {{policy: Policy, factors: Factors}} */
function readPolicy(raw) {
  table(raw, ["name", "question", "input", "notion", "items", "level_of", "levels", "pairs"], "the policy");
  label(raw.name, "the policy's name");
  if (typeof raw.question !== "string") throw refused(`question is ${show(raw.question)}, but must be a text`);
  choice("input", raw.input, ["single", "set"]);
  choice("notion", raw.notion, ["min", "avg"]);
  const items = distinct(list(raw.items, "items"), "item");
  const rows = list(raw.levels, "levels").map((row) => table(row, ["name", "epsilon", "weight"], "a level"));
  const names = distinct(rows.map((row) => row.name), "level");
  const levelOf = list(raw.level_of, "level_of");
  const counts = names.map(() => 0);
  for (const k of levelOf) {
    if (!Number.isInteger(k) || !(k in counts)) throw refused(`level_of holds ${show(k)}, but must hold places of levels, from 0`);
    counts[k] += 1;
  }
  if (!items.length || levelOf.length !== items.length) {
    throw refused(`${items.length} items have ${levelOf.length} levels, but need one each, and at least one item`);
  }
  if (counts.includes(0)) throw refused(`level ${show(names[counts.indexOf(0)])} has no items, but needs at least one`);
  rows.forEach(({ weight }) => checkWeight(weight));
  const budgets = rows.map(({ epsilon }) => readBudget(epsilon));
  const levels = rows.map((row, k) => {
    return freeze({ name: row.name, budget: row.epsilon, epsilon: budgets[k].epsilon, count: counts[k] });
  });
  const { pairs, explicit } = readPairs(raw.pairs, names);
  const { name, question, input, notion } = raw;
  const policy = freeze({ name, question, input, notion, items, levelOf, levels: freeze(levels), pairs: freeze(pairs) });
  return { policy, factors: { of: budgets.map(({ factor }) => factor), explicit } };
}

/** A positive number as Python's format(x, ".17g") writes it; the design used it, nothing here does. */
function checkWeight(text) {
  const bare = (digits) => digits.replace(/\.?0+$/, "");
  const [digits, exponent] = Number(text).toExponential(16).split("e");
  const small = `${bare(digits)}e-${String(exponent).slice(1).padStart(2, "0")}`;
  const positive = Number(text) > 0 && Number(text) <= 1e12;
  if (!positive || text !== (exponent < -4 ? small : bare(Number(text).toFixed(16 - exponent)))) {
    throw refused(`weight is ${show(text)}, but must be a positive number as discreet writes it`);
  }
}

function readPairs(raw, names) {
  const rows = list(raw, "pairs").map((row) => table(row, ["levels", "epsilon"], "a pair"));
  if (rows.length && names.length > 200) throw refused(`${names.length} levels have explicit pairs, but at most 200 may`);
  const [explicit, written] = [new Map(), new Map()];
  const pairs = rows.map(({ levels, epsilon: budget }) => {
    const places = list(levels, "levels of a pair").map((name) => names.indexOf(name));
    const both = levels.map(show).join(", ");
    if (places.length !== 2 || places.includes(-1)) throw refused(`a pair names the levels ${both}, but must name two that exist`);
    const { epsilon, factor } = budget === "" ? { epsilon: Infinity, factor: null } : readBudget(budget);
    const [i, j] = places;
    for (const key of [i * names.length + j, j * names.length + i]) {
      if ((written.get(key) ?? budget) !== budget) throw refused(`the pair of levels ${both} has two budgets, but must have one`);
      written.set(key, budget);
      explicit.set(key, factor);
    }
    return freeze({ levels, budget, epsilon });
  });
  return { pairs, explicit };
}

/** A budget in its only spelling: a plain decimal, or ln(k) with k > 1 reduced. @returns {{epsilon: number, factor: Ratio}} */
function readBudget(text) {
  const written = typeof text === "string" && text.length <= 100 ? text : "";
  const log = /^ln\(([1-9]\d*)(?:\/([1-9]\d*))?\)$/.exec(written);
  if (log) {
    const [n, d] = [BigInt(log[1]), BigInt(log[2] ?? 1)];
    const reduced = log[2] === undefined || (d > 1n && gcd(n, d) === 1n);
    if (n > d && reduced) return { epsilon: Math.log(Number(n)) - Math.log(Number(d)), factor: [n, d] };
  }
  const decimal = /^(?!0$|0\.0{29})(0|[1-9]\d{0,29})(?:\.(\d*[1-9]))?$/.exec(written); // from 1e-29 to below 1e30
  if (decimal) {
    const [, whole, fraction = ""] = decimal;
    return { epsilon: Number(written), factor: expLower(BigInt(whole + fraction), 10n ** BigInt(fraction.length)) };
  }
  throw refused(`epsilon is ${show(text)}, but must be a positive decimal or ln(k) with k > 1, as discreet writes it`);
}

function gcd(x, y) {
  return y ? gcd(y, x % y) : x;
}

// ---- the exact check ------------------------------------------------------------------------------------
// For every two inputs of levels i and j and every report y: Pr(y | i) <= e^{r_ij} Pr(y | j)  (the paper, Def. 2).
// BigInt throughout; e^eps is replaced by a rational at most as large, so what passes here holds for the budget.

const BITS = 80n; // of the fraction of an irrational bound: 2^48 times finer than a probability
const CEILING = 45n; // every ratio of two probabilities here is below 2^64 < e^45

/** A rational at most e^(n/d): the Taylor series with every term rounded down. @returns {Ratio} */
function expLower(n, d) {
  if (n > CEILING * d) [n, d] = [CEILING, 1n];
  let total = 1n << BITS;
  for (let term = total, k = 1n; term; k += 1n) {
    term = (term * n) / (d * k);
    total += term;
  }
  return [total, 1n << BITS];
}

const product = (x, y) => [x[0] * y[0], x[1] * y[1]];
const smaller = (x, y) => (y[0] * x[1] < x[0] * y[1] ? y : x);

/** At most e^{2 r} of two levels' factors. Squares need no roots under `avg`, where 2 r = eps_i + eps_j. */
function squareOf(notion, x, y) {
  return notion === "avg" ? product(x, y) : product(smaller(x, y), smaller(x, y));
}

/** At most e^{2 r_ij}; null where the pair is not protected. */
function pairSquare(policy, factors, i, j) {
  const given = factors.explicit.get(i * policy.levels.length + j);
  if (given === undefined) return squareOf(policy.notion, factors.of[i], factors.of[j]);
  return given && product(given, given);
}

const exceeds = (high, low, square) => square !== null && high * high * square[1] > square[0] * low * low;

function violation(sentence, details) {
  return new DiscreetError("guarantee", `${sentence}: the promise does not hold; do not answer, and tell the organiser`, details);
}

function broken(policy, i, j) {
  const levels = [policy.levels[i].name, policy.levels[j].name];
  return violation(`the pair of levels (${levels.map(show).join(", ")}) is told apart by more than its pair budget`, { levels });
}

/** Throws unless 0 < b <= a < 1 and a_i (1 - b_j) <= e^{r_ij} b_i (1 - a_j) for every part and pair; b is over q. */
function checkUnary(policy, factors, parts, q) {
  if (parts.some(({ share }) => !Number.isInteger(share) || share <= 0 || share > D)) {
    throw violation("a part's share is not a positive integer up to 2^32");
  }
  if (parts.reduce((sum, { share }) => sum + share, 0) !== D) throw violation("the shares of the parts do not sum to 2^32");
  for (const part of parts) checkPart(policy, factors, part, q);
}

function checkPart(policy, factors, { a, b }, q) {
  const t = policy.levels.length;
  if (a.length !== t || b.length !== t || ![...a, ...b].every(Number.isInteger)) {
    throw violation(`a part does not have ${t} integers a and ${t} integers b, one per level`);
  }
  for (let i = 0; i < t; i++) {
    // Without this the inequality below can hold as 0 <= 0 while privacy is broken.
    if (!(b[i] > 0 && b[i] < q && a[i] > 0 && a[i] < D && BigInt(b[i]) * BigInt(D) <= BigInt(a[i]) * BigInt(q))) {
      throw violation(`a = ${a[i]}/${D}, b = ${b[i]}/${q} of level ${show(policy.levels[i].name)} break 0 < b <= a < 1`);
    }
  }
  const [A, B] = [a.map(BigInt), b.map(BigInt)];
  const part = { A, B, notA: A.map((x) => BigInt(D) - x), notB: B.map((x) => BigInt(q) - x) };
  if (policy.pairs.length) checkEveryPair(policy, factors, part);
  else if (policy.notion === "avg") checkAverages(policy, factors.of, part);
  else checkMinima(policy, factors.of, part);
}

function checkEveryPair(policy, factors, { A, B, notA, notB }) {
  for (let i = 0; i < A.length; i++) {
    for (let j = 0; j < A.length; j++) {
      if (exceeds(A[i] * notB[j], B[i] * notA[j], pairSquare(policy, factors, i, j))) throw broken(policy, i, j);
    }
  }
}

/** Every pair in O(t): with alpha = a/b and gamma = (1-b)/(1-a), alpha_i gamma_j <= min(e_i, e_j), so only the largest matter. */
function checkMinima(policy, e, { A, B, notA, notB }) {
  const [i, j] = [largest(A, B), largest(notB, notA)];
  e.forEach(([n, d], k) => {
    if (A[k] * notB[j] * d > n * B[k] * notA[j]) throw broken(policy, k, j);
    if (A[i] * notB[k] * d > n * B[i] * notA[k]) throw broken(policy, i, k);
  });
}

/** Every pair in O(t): (alpha_i^2 / e_i) (gamma_j^2 / e_j) <= 1, so only the largest of either matter. */
function checkAverages(policy, e, { A, B, notA, notB }) {
  const by = (place, values) => values.map((x, k) => x * x * e[k][place]);
  const i = largest(by(1, A), by(0, B));
  const j = largest(by(1, notB), by(0, notA));
  if (exceeds(A[i] * notB[j], B[i] * notA[j], product(e[i], e[j]))) throw broken(policy, i, j);
}

/** The place of the largest of the ratios top / bottom. */
function largest(tops, bottoms) {
  let best = 0;
  for (let k = 1; k < tops.length; k++) if (tops[k] * bottoms[best] > tops[best] * bottoms[k]) best = k;
  return best;
}

/** Throws unless rows sum to 1 and every two entries of a column are within the pair budget of their rows. */
function checkDirect(policy, factors, { groups, diagonal, off }) {
  const all = diagonal.map((_, c) => c);
  const named = groups.every((group) => all.includes(group)) && all.every((group) => groups.includes(group));
  const square = off.length === all.length && off.every((row) => row.length === all.length);
  if (groups.length !== policy.levels.length || !named || !square) {
    throw violation("the matrix does not have a row and a column for every group of levels");
  }
  if (![...diagonal, ...off.flat()].every((x) => Number.isInteger(x) && x >= 0 && x <= D)) {
    throw violation("an entry of the matrix is not an integer from 0 to 2^32");
  }
  const sizes = groupSizes(policy, { groups, diagonal });
  for (const c of all) {
    const wrong = all.find((d) => (off[c][d] > 0) !== (c !== d || sizes[c] > 1)); // a lone item has no other of its group
    if (wrong !== undefined) throw violation(`entry (${c}, ${wrong}) of the matrix is ${off[c][wrong]}, which no mechanism has`);
    const others = all.reduce((sum, d) => sum + BigInt(sizes[d] - (c === d)) * BigInt(off[c][d]), 0n);
    if (!diagonal[c] || others + BigInt(diagonal[c]) !== BigInt(D)) throw violation(`row ${c} of the matrix does not sum to 2^32`);
  }
  const bound = groupSquares(policy, factors, groups, all);
  for (const d of all) {
    // A column: the item's own row, then one row of every group of other inputs.
    const column = [[d, diagonal[d]], ...all.filter((c) => c !== d || sizes[c] > 1).map((c) => [c, off[c][d]])];
    column.forEach(([c, high], k) => column.forEach(([c2, low], l) => {
      if (k !== l && exceeds(BigInt(high), BigInt(low), bound[c][c2])) throw broken(policy, groups.indexOf(c), groups.indexOf(c2));
    }));
  }
}

function groupSizes(policy, { groups, diagonal }) {
  const sizes = diagonal.map(() => 0);
  policy.levels.forEach(({ count }, k) => { sizes[groups[k]] += count; });
  return sizes;
}

/** The smallest squared factor of any two levels of two groups; null where none is protected. */
function groupSquares(policy, factors, groups, all) {
  const least = (squares) => squares.reduce((old, e) => (old && e ? smaller(old, e) : (old ?? e)), null);
  if (policy.pairs.length) {
    const members = all.map((c) => groups.flatMap((group, k) => (group === c ? [k] : [])));
    const between = (c, d) => members[c].flatMap((i) => members[d].map((j) => pairSquare(policy, factors, i, j)));
    return all.map((c) => all.map((d) => least(between(c, d))));
  }
  const e = all.map((c) => least(factors.of.filter((_, k) => groups[k] === c)));
  return e.map((x) => e.map((y) => squareOf(policy.notion, x, y)));
}

// ---- mechanism ------------------------------------------------------------------------------------------

/**
 * The public parameters that both sides share. For all inputs of levels i and j and every report y,
 * Pr(y | i) <= e^{r_ij} Pr(y | j): proved on construction, so an object of this class is a checked promise.
 */
export class Mechanism {
  #draw; // what a direct mechanism looks up

  /**
   * Verify a mechanism document and the fingerprint that it carries.
   * @param {object} document the content of a mechanism file
   * @param {{fingerprint?: string | null}} [pinned] the only fingerprint to accept, from an invitation
   * @returns {Promise<Mechanism>}
   */
  static async from(document, { fingerprint: pinned } = {}) {
    const { fingerprint: claimed, ...body } = object(document, "the mechanism");
    const text = canonicalJson(body);
    const got = await sha256(text);
    const short = (value) => `${String(value).slice(0, 16)}…`;
    if (claimed !== got) {
      const change = "it was changed after it was made; get it again from the organiser";
      throw new DiscreetError("fingerprint", `the content has fingerprint ${short(got)} but says ${short(claimed)}: ${change}`);
    }
    if (pinned != null && pinned !== got) {
      const next = "do not answer, and ask who invited you";
      throw new DiscreetError("pinned", `the invitation is for fingerprint ${short(pinned)} but this is ${short(got)}; ${next}`);
    }
    return new Mechanism(text, got);
  }

  /** Use `Mechanism.from`: this checks all but the fingerprint. @param {string} text canonical JSON @param {string} fingerprint */
  constructor(text, fingerprint) {
    const body = JSON.parse(text, (_, value) => freeze(value)); // a copy that nobody can change after the check
    const direct = body.encoding === "item";
    const keys = ["format", "policy", "model", "prior", "encoding", "padding", direct ? "matrix" : "parts"];
    table(body, keys, "the mechanism", ["certificate"]);
    choice("format", body.format, ["discreet-mechanism/1"]);
    choice("encoding", body.encoding, ["bits", "compact", "item"]);
    choice("model", body.model, direct ? ["direct", "grr"] : ["mixed", "opt0", "opt1", "opt2", "rappor", "oue"]);
    choice("prior", body.prior, ["uniform", "worst", "given"]);
    if ("certificate" in body) checkCertificate(body.certificate);
    const { policy, factors } = readPolicy(body.policy);
    const { padding } = body;
    if (!Number.isInteger(padding) || padding < 0 || padding > 65536) {
      throw refused(`padding is ${show(padding)}, but must be a whole number from 0 to 65536`);
    }
    if (padding > 0 !== (policy.input === "set") || (direct && padding)) {
      throw refused(`padding is ${padding}, but sets need one, and single input and direct mechanisms have 0`);
    }

    this.policy = policy;
    this.model = body.model;
    this.encoding = body.encoding;
    this.padding = padding;
    this.parts = direct ? freeze([]) : readParts(body.parts);
    this.matrix = direct ? readMatrix(body.matrix) : null;
    this.m = policy.items.length;
    this.reportSize = direct ? 4 : (body.encoding === "compact" ? 12 : Math.ceil(this.m / 8)) + (this.parts.length > 1);
    this.fingerprint = fingerprint;
    if (direct) checkDirect(policy, factors, this.matrix);
    else checkUnary(policy, factors, this.parts, body.encoding === "compact" ? P : D);
    this.#draw = direct ? groupsOfItems(policy, this.matrix) : null;
    freeze(this);
  }

  // -- a report of one's own

  /**
   * One person's report, with secure randomness.
   * @param {string | number | Iterable<string | number>} answer an item (label or index), or for set input several
   * @returns {Uint8Array}
   */
  perturb(answer) {
    const draws = new Draws(this.encoding === "bits" ? this.m + 3 : 8);
    const held = this.policy.input === "set" ? this.#sample(draws, answer) : this.#index(answer);
    if (this.matrix) return this.#direct(draws, held);
    const report = new Uint8Array(this.reportSize);
    let k = 0;
    if (this.parts.length > 1) {
      for (let draw = draws.next(); draw >= this.parts[k].share; k++) draw -= this.parts[k].share;
      report[0] = k;
    }
    const body = report.subarray(this.parts.length > 1 ? 1 : 0);
    if (this.encoding === "compact") this.#compact(draws, this.parts[k], held, body);
    else this.#bits(draws, this.parts[k], held, body);
    return report;
  }

  #index(item) {
    const { items } = this.policy;
    if (typeof item === "string") {
      const place = items.indexOf(item);
      if (place >= 0) return place;
      throw new DiscreetError("answer", `${show(item)} is not an item; choose one of the ${this.m} items of the question`);
    }
    if (Number.isInteger(item) && item >= 0 && item < this.m) return item;
    const allowed = `the label of an item or its index from 0 to ${this.m - 1}`;
    throw new DiscreetError("answer", `an answer is ${allowed}, got ${show(item)}; choose an item`);
  }

  /** Padding-and-Sampling (the paper, Algorithm 1): one of max(|x|, padding) places; -1 where it is a dummy. */
  #sample(draws, answer) {
    if (typeof answer === "string" || typeof answer?.[Symbol.iterator] !== "function") {
      throw new DiscreetError("answer", `this question takes a list of items, got ${show(answer)}; give a list, be it empty`);
    }
    const chosen = [...new Set(Array.from(answer, (item) => this.#index(item)))];
    return chosen[draws.below(Math.max(chosen.length, this.padding))] ?? -1;
  }

  #bits(draws, { a, b }, held, body) {
    const { levelOf } = this.policy;
    for (let k = 0; k < this.m; k++) {
      const chance = k === held ? a[levelOf[k]] : b[levelOf[k]];
      if (draws.next() < chance) body[k >> 3] |= 1 << (k & 7);
    }
  }

  /** A random quadratic s + t c + r c^2 mod P whose value at c = held + 1 is below the item's threshold, or not. */
  #compact(draws, { a, b }, held, body) {
    const level = this.policy.levelOf[Math.max(held, 0)];
    const one = draws.next() < a[level];
    const [low, end] = held < 0 ? [0, P] : one ? [0, b[level]] : [b[level], P]; // a dummy: any triple
    const [value, t, r] = [low + draws.below(end - low), draws.below(P), draws.below(P)];
    const c = Math.max(held, 0) + 1;
    const s = (value + P - times(c, (t + times(r, c)) % P)) % P;
    const view = new DataView(body.buffer, body.byteOffset);
    [s, t, r].forEach((x, k) => view.setUint32(4 * k, x, true));
  }

  /** One uniform 32-bit integer decides the item: its place in the row's cumulative probabilities. */
  #direct(draws, held) {
    const { group, members, rank } = this.#draw;
    const row = group[held];
    const report = new Uint8Array(4);
    let sent = held;
    let draw = draws.next() - this.matrix.diagonal[row];
    for (let d = 0; draw >= 0; d++) {
      const each = this.matrix.off[row][d];
      const count = members[d].length - (d === row);
      if (draw < each * count) {
        const place = Math.floor(draw / each);
        sent = members[d][place + (d === row && place >= rank[held])]; // skips the item itself
      }
      draw -= each * count;
    }
    new DataView(report.buffer).setUint32(0, sent, true);
    return report;
  }

  // -- reading a report

  /**
   * Why this is not a report of the mechanism, or null.
   * @param {Uint8Array} report
   * @returns {null | "length" | "part" | "padding" | "range" | "item"}
   */
  check(report) {
    if (!(report instanceof Uint8Array)) {
      throw new DiscreetError("report", `a report is a Uint8Array, got ${show(report)}; pass the bytes that perturb made`);
    }
    if (report.length !== this.reportSize) return "length";
    if (this.matrix) return words(report)[0] < this.m ? null : "item";
    const { part, body } = this.#split(report);
    if (part >= this.parts.length) return "part";
    if (this.encoding === "compact") return words(body).every((x) => x < P) ? null : "range";
    return this.m % 8 && body.at(-1) >> this.m % 8 ? "padding" : null;
  }

  /** What a report means: a bit per item; of a direct mechanism the only 1 is the item sent. @param {Uint8Array} report */
  bits(report) {
    const reason = this.check(report);
    if (reason) throw new DiscreetError("report", `this is not a report of the mechanism (${reason}); perturb the answer again`);
    const bits = new Uint8Array(this.m);
    if (this.matrix) return bits.fill(1, words(report)[0], words(report)[0] + 1);
    const { part, body } = this.#split(report);
    if (this.encoding === "bits") return bits.map((_, k) => (body[k >> 3] >> (k & 7)) & 1);
    const [s, t, r] = words(body);
    const { b } = this.parts[part];
    return bits.map((_, k) => (s + times(k + 1, (t + times(r, k + 1)) % P)) % P < b[this.policy.levelOf[k]]);
  }

  #split(report) {
    return this.parts.length > 1 ? { part: report[0], body: report.subarray(1) } : { part: 0, body: report };
  }

  // -- what is promised, in numbers and in words

  /**
   * Per level, the largest log-ratio of any report: between an answer of the level and any other answer (single input), or
   * between having and not having one of its items (set input).
   * @returns {number[]}
   */
  levelEpsilons() {
    const { levels, input } = this.policy;
    if (this.m === 1 && input === "single") return [0];
    if (this.matrix) {
      const table = directRatios(this.matrix, groupSizes(this.policy, this.matrix));
      return this.matrix.groups.map((group) => Math.max(...table[group]));
    }
    const worst = levels.map(() => 0);
    for (const part of this.parts) {
      const q = this.encoding === "compact" ? P : D;
      const u = part.a.map((a, k) => Math.log(a / D / (part.b[k] / q))); // what a 1 can tell
      const w = part.a.map((a, k) => Math.log((1 - part.b[k] / q) / (1 - a / D))); // what a 0 can tell
      const [others, others2] = [largestOfOthers(w, levels, input), largestOfOthers(u, levels, input)];
      worst.forEach((x, k) => { worst[k] = Math.max(x, u[k] + others(k), w[k] + others2(k)); });
    }
    return worst;
  }

  /**
   * What a participant is told: one entry per level, then one (level null) per pair of levels that is not protected.
   * `factor` and the number in the sentence are rounded up, so that they stay true.
   * @returns {{level: string | null, items: number, examples: string[], factor: number, sentence: string}[]}
   */
  promises() {
    const { policy } = this;
    const examples = policy.levels.map(() => []);
    policy.items.forEach((item, i) => {
      if (examples[policy.levelOf[i]].length < 3) examples[policy.levelOf[i]].push(item);
    });
    const promise = policy.input === "set"
      ? "having or not having it changes the chance of any report by at most a factor of"
      : "whoever sees your report can change their odds between this answer and any other by at most a factor of";
    const epsilons = this.levelEpsilons();
    const protectedOnes = policy.levels.map(({ name, count }, k) => {
      const more = count - examples[k].length;
      const who = examples[k].map((item) => `"${item}"`).join(", ") + (more ? ` and ${more} more` : "");
      const factor = roundUp(Math.exp(epsilons[k]));
      const sentence = `${name} (${who}): ${promise} ${inWords(factor)}.`;
      return { level: name, items: count, examples: examples[k], factor, sentence };
    });
    return [...protectedOnes, ...unprotected(policy)];
  }
}

function checkCertificate(raw) {
  table(raw, ["objective", "value", "lower_bound", "note"], "the certificate");
  const texts = Object.values(raw).every((text) => typeof text === "string");
  const number = /^(-?(\d+(\.\d+)?(e[+-]\d\d+)?|inf)|nan)$/;
  if (!texts || !number.test(raw.value) || !(raw.lower_bound === "" || number.test(raw.lower_bound))) {
    throw refused("the certificate holds something else than texts and numbers written as texts");
  }
}

function readParts(raw) {
  const rows = list(raw, "parts").map((row) => table(row, ["share", "a", "b"], "a part"));
  if (rows.length < 1 || rows.length > 256) throw refused(`the mechanism has ${rows.length} parts, but must have 1 to 256`);
  for (const { a, b } of rows) [a, b].forEach((numbers) => list(numbers, "a or b of a part"));
  return raw;
}

function readMatrix(raw) {
  table(raw, ["groups", "diagonal", "off"], "the matrix");
  for (const row of [raw.groups, raw.diagonal, ...list(raw.off, "off of the matrix")]) list(row, "a row of the matrix");
  return raw;
}

function groupsOfItems(policy, { groups, diagonal }) {
  const members = diagonal.map(() => []);
  const group = policy.levelOf.map((level) => groups[level]);
  const rank = group.map((c, item) => members[c].push(item) - 1);
  return { group, members, rank };
}

// ---- randomness and arithmetic ----------------------------------------------------------------------------

/** Uniform integers from Web Crypto: exact, by comparison and rejection, never by a float or a plain modulo. */
class Draws {
  #pool;
  #next = 0;

  /** @param {number} expected about how many words will be drawn */
  constructor(expected) {
    this.#pool = new Uint32Array(Math.min(expected, 65536 / 4)); // getRandomValues gives at most 65,536 bytes at once
    globalThis.crypto.getRandomValues(this.#pool);
  }

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
}

/** x y mod P for x, y < P, exactly: x (y >> 16) < 2^46, its rest times 2^16 is below 2^47, and so is x (y mod 2^16). */
function times(x, y) {
  return (((x * (y >>> 16)) % P) * 65536 + x * (y & 65535)) % P;
}

/** 4-byte little-endian integers. */
function words(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 4 }, (_, k) => view.getUint32(4 * k, true));
}

// ---- promises: floats computed from the checked integers, for people to read ----------------------------------

/** A function of a level: the largest value of another input's level (sets: of any level). */
function largestOfOthers(values, levels, input) {
  const top = values.indexOf(values.reduce((x, y) => Math.max(x, y)));
  const second = values.reduce((old, x, k) => (k === top ? old : Math.max(old, x)), -Infinity);
  const alone = input === "single" && levels[top].count === 1 && levels.length > 1;
  return (k) => (k === top && alone ? second : values[top]);
}

/** The largest |log-ratio| of any report between two different inputs of every two groups. */
function directRatios({ diagonal, off }, sizes) {
  return diagonal.map((_, c) => diagonal.map((_, d) => {
    if (c === d && sizes[c] === 1) return 0;
    const seen = [diagonal[c] / off[d][c], diagonal[d] / off[c][d]];
    sizes.forEach((size, e) => { if (size > (e === c) + (e === d)) seen.push(off[c][e] / off[d][e]); }); // sent: a third item
    return Math.max(...seen.map((ratio) => Math.abs(Math.log(ratio))));
  }));
}

/** What the policy leaves out, with the bound that it still has through other levels: the shortest path of pair budgets. */
function unprotected({ levels, pairs, notion }) {
  const open = pairs.filter(({ budget }) => !budget);
  if (!open.length) return [];
  const place = new Map(levels.map(({ name }, k) => [name, k]));
  const r = levels.map((x) => levels.map((y) => (notion === "min" ? Math.min(x.epsilon, y.epsilon) : (x.epsilon + y.epsilon) / 2)));
  for (const { levels: [first, second], epsilon } of pairs) {
    r[place.get(first)][place.get(second)] = r[place.get(second)][place.get(first)] = epsilon;
  }
  levels.forEach((_, k) => r.forEach((row) => row.forEach((x, j) => { row[j] = Math.min(x, row[k] + r[k][j]); })));
  return open.flatMap(({ levels: [first, second] }) => {
    if (first === second && levels[place.get(first)].count === 1) return [];
    const bound = r[place.get(first)][place.get(second)];
    const factor = roundUp(Math.exp(bound));
    const what = first === second ? `two answers of "${first}"` : `answers of "${first}" and answers of "${second}"`;
    const still = bound < Infinity ? `only through others, by a factor of at most ${inWords(factor)}` : "not at all";
    const sentence = `The organiser chose not to protect which of ${what} is yours: they are kept apart ${still}.`;
    return [{ level: null, items: 0, examples: [], factor, sentence }];
  });
}

/** A factor as people read it: rounded up, so that the promise stays true. */
function roundUp(factor) {
  const x = factor * (1 - 1e-12); // the floats' own error must not turn 4 into 4.01
  return x >= 1000 ? Math.ceil(x) : Math.ceil(x * 100) / 100;
}

function inWords(factor) {
  if (factor === Infinity) return "more than any number";
  return factor > 1000 ? String(BigInt(factor)).replace(/\B(?=(\d{3})+$)/g, ",") : String(factor);
}

// ---- ledger: what this device has already told, and to whom --------------------------------------------------

/**
 * @typedef {{origin: string, name: string, fingerprint: string, id: string, report: string, items: string[],
 *   budgets: {levels: number[], levelOf: number[]}, sent: boolean}} Entry  in hexadecimal; never the answer, never a time
 * @typedef {{entry: Entry, shared: string[]}} Overlap  the labels are the new question's
 * @typedef {{item: string, epsilon: number, factor: number, sentence: string}} Summed
 */

const LEDGER = "discreet-ledger/1";

/** Run work while no other tab of this browser does: two of them must not both draw a report. */
export async function locked(work) {
  const locks = globalThis.navigator?.locks;
  return locks ? locks.request(LEDGER, work) : work();
}

/** Averaging over repeats is the classic attack, so the same question gets the same report, and what is told adds up. */
export class Ledger {
  #storage;

  /** @param {{getItem: Function, setItem: Function}} [storage] the browser's localStorage unless given */
  constructor(storage) {
    this.#storage = () => storage ?? globalThis.localStorage; // late: reading it may throw where storage is blocked
  }

  /** The entry of exactly this collection, or null. @returns {Entry | null} */
  find(origin, name, fingerprint) {
    return this.#read().find(isOf(origin, name, fingerprint)) ?? null;
  }

  /**
   * Earlier entries of other collections that share an item, however its label is spelled.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism
   * @returns {Overlap[]}
   */
  overlaps(origin, name, mechanism) {
    const plain = mechanism.policy.items.map(plainly);
    const same = isOf(origin, name, mechanism.fingerprint);
    return this.#read().filter((entry) => !same(entry)).flatMap((entry) => {
      const known = new Set(entry.items.map(plainly));
      const shared = mechanism.policy.items.filter((_, k) => known.has(plain[k]));
      return shared.length ? [{ entry, shared }] : [];
    });
  }

  /**
   * The shared item about which most would be told in all, the new question included; null without overlaps.
   * @param {Mechanism} mechanism @param {Overlap[]} overlaps
   * @returns {Summed | null}
   */
  summed(mechanism, overlaps) {
    const spent = new Map();
    for (const { entry: { items, budgets } } of overlaps) {
      const each = new Map(); // two labels of one question may be the same item: the larger budget counts
      items.map(plainly).forEach((item, k) => each.set(item, Math.max(each.get(item) ?? 0, budgets.levels[budgets.levelOf[k]])));
      each.forEach((epsilon, item) => spent.set(item, (spent.get(item) ?? 0) + epsilon));
    }
    const { items, levelOf, input } = mechanism.policy;
    const own = mechanism.levelEpsilons();
    const total = items.map((item, k) => (spent.get(plainly(item)) ?? -Infinity) + own[levelOf[k]]);
    const worst = total.reduce((best, epsilon, k) => (epsilon > total[best] ? k : best), 0);
    if (!overlaps.length) return null;
    const factor = roundUp(Math.exp(total[worst]));
    const before = overlaps.length === 1 ? "an earlier answer" : `${overlaps.length} earlier answers`;
    const what = input === "set"
      ? `having or not having "${items[worst]}" changes the chance of your reports`
      : `whoever sees your reports can change their odds between "${items[worst]}" and any other answer`;
    const most = `by at most a factor of ${inWords(factor)}`;
    const sentence = `You already gave ${before} about the same items: together, ${what} ${most}.`;
    return { item: items[worst], epsilon: total[worst], factor, sentence };
  }

  /**
   * Write down what is about to be sent, before it is; if this collection has an entry already, that one counts.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism @param {Uint8Array} report @param {Uint8Array} id
   * @returns {Entry}
   */
  reserve(origin, name, mechanism, report, id) {
    const entries = this.#read();
    const earlier = entries.find(isOf(origin, name, mechanism.fingerprint));
    if (earlier) return earlier;
    const { policy: { items, levelOf }, fingerprint } = mechanism;
    const budgets = { levels: mechanism.levelEpsilons(), levelOf };
    const entry = { origin, name, fingerprint, id: toHex(id), report: toHex(report), items, budgets, sent: false };
    this.#write([...entries, entry]);
    return entry;
  }

  /** The collector has acknowledged the report. */
  markSent(origin, name, fingerprint) {
    const same = isOf(origin, name, fingerprint);
    this.#write(this.#read().map((entry) => (same(entry) ? { ...entry, sent: true } : entry)));
  }

  /** @returns {Entry[]} */
  #read() {
    let text;
    try {
      text = this.#storage().getItem(LEDGER);
    } catch (error) {
      throw new DiscreetError("ledger", `the ledger cannot be read (${error.message}), so nothing is sent; let it be stored`);
    }
    if (text == null) return [];
    try {
      const { entries } = JSON.parse(text);
      if (entries.every(isEntry)) return entries;
    } catch { /* said below */ }
    const next = "restore it, or remove it if you accept that earlier answers are forgotten";
    throw new DiscreetError("ledger", `the ledger stored as "${LEDGER}" is damaged, so nothing is sent; ${next}`);
  }

  #write(entries) {
    try {
      this.#storage().setItem(LEDGER, JSON.stringify({ entries }));
    } catch (error) {
      const next = "make room, or leave the private window";
      throw new DiscreetError("ledger", `the ledger cannot be written (${error.message}), so nothing is sent; ${next}`);
    }
  }
}

function isOf(origin, name, fingerprint) {
  return (entry) => entry.origin === origin && entry.name === name && entry.fingerprint === fingerprint;
}

/** A label without what people do not see as a difference: width and form of letters, case, blanks, joiners. */
function plainly(text) {
  const folded = withoutJoiners(text).normalize("NFKC").toLowerCase().toUpperCase().toLowerCase(); // as Python's casefold: "ß" is "ss"
  return folded.replace(/\s+/g, " ").trim();
}

function isEntry({ origin, name, fingerprint, id, report, items, budgets, sent }) {
  const texts = Array.isArray(items) && [origin, name, fingerprint, ...items].every((text) => typeof text === "string");
  const { levels, levelOf } = budgets;
  const known = levels.every((epsilon) => Number.isFinite(epsilon) && epsilon >= 0);
  const placed = levelOf.length === items.length && levelOf.every((k) => Number.isInteger(k) && k in levels);
  const bytes = /^[0-9a-f]{32}$/.test(id) && /^([0-9a-f]{2})+$/.test(report);
  return texts && known && placed && bytes && typeof sent === "boolean";
}

// ---- client: the only part that talks to a server ------------------------------------------------------------

/**
 * @typedef {{name: string, mechanism: Mechanism, id: Uint8Array, report: Uint8Array, repeated: boolean, sent: boolean,
 *   overlaps: Overlap[], summed: Summed | null}} Prepared  what will be sent, if `send` is called
 * @typedef {{accepted: number, duplicates: number, id: Uint8Array, report: Uint8Array, repeated: boolean}} Receipt
 */

const LATER = new Set([408, 425, 429]); // refusals that ask for the same again
const LONGEST = 20_000; // milliseconds of one attempt, and of a pause, whatever the collector asks for

/** Fetches a mechanism, verifies it, and uploads one perturbed report, once. Requests are a function of the report alone. */
export class Client {
  #fetch;

  /**
   * @param {string} url where the collector is
   * @param {{fetch?: typeof fetch, ledger?: Ledger, origin?: string, patience?: number, pause?: number}} [options]
   *   patience: milliseconds after which retries end; pause: before the first retry
   */
  constructor(url, { fetch = globalThis.fetch, ledger = new Ledger(), origin, patience = 60_000, pause = 500 } = {}) {
    this.#fetch = (...args) => fetch(...args);
    this.url = url.replace(/\/+$/, "");
    this.ledger = ledger;
    this.origin = origin ?? new URL(url).origin;
    this.patience = patience;
    this.pause = pause;
  }

  /**
   * The collection's mechanism, verified; nothing else that the collector says is used.
   * @param {string} name @param {{fingerprint?: string | null}} [pinned]
   * @returns {Promise<{mechanism: Mechanism, state: "open" | "closed"}>}
   */
  async describe(name, pinned = {}) {
    const { mechanism, state } = await this.#request(this.#path(name), {});
    if (state !== "open" && state !== "closed") {
      throw new DiscreetError("server", `the collection's state is ${show(state)}, but must be open or closed; check the address`);
    }
    return { mechanism: await Mechanism.from(mechanism, pinned), state };
  }

  /**
   * What would be sent; nothing is sent or stored yet. A collection answered before gives its report again, whatever the answer.
   * @param {string} name @param {Mechanism} mechanism
   * @param {{agree?: boolean}} [options] agree: to the summed budget of overlapping questions
   * @returns {Prepared}
   */
  prepare(name, mechanism, answer, { agree = false } = {}) {
    const entry = this.ledger.find(this.origin, name, mechanism.fingerprint);
    if (entry) {
      const earlier = { id: fromHex(entry.id), report: fromHex(entry.report), repeated: true, sent: entry.sent };
      return freeze({ name, mechanism, ...earlier, overlaps: [], summed: null });
    }
    const overlaps = this.#overlaps(name, mechanism, agree ? Infinity : 0);
    const summed = this.ledger.summed(mechanism, overlaps);
    const id = globalThis.crypto.getRandomValues(new Uint8Array(16));
    const report = mechanism.perturb(answer);
    return freeze({ name, mechanism, id, report, repeated: false, sent: false, overlaps, summed });
  }

  /** Write the report down, then upload it. @param {Prepared} prepared @returns {Promise<Receipt>} */
  async send({ name, mechanism, id, report, repeated, overlaps }) {
    const entry = await locked(() => {
      const earlier = this.ledger.find(this.origin, name, mechanism.fingerprint); // another tab may have been quicker
      if (earlier) return earlier;
      this.#overlaps(name, mechanism, overlaps.length);
      return this.ledger.reserve(this.origin, name, mechanism, report, id);
    });
    const { accepted, duplicates } = await this.#request(`${this.#path(name)}/reports`, {
      method: "POST",
      headers: { "Content-Type": "application/octet-stream", "Discreet-Mechanism": mechanism.fingerprint },
      body: fromHex(entry.id + entry.report),
    });
    if (accepted + duplicates !== 1) {
      throw new DiscreetError("server", "the collector did not say that it has the report; send it again later");
    }
    try {
      await locked(() => this.ledger.markSent(this.origin, name, mechanism.fingerprint));
    } catch { /* the entry stays "not sent": then the same bytes may be sent again, and are counted once */ }
    const other = entry.id !== toHex(id);
    return { accepted, duplicates, id: fromHex(entry.id), report: fromHex(entry.report), repeated: repeated || other };
  }

  /** Prepare and send. @returns {Promise<Receipt>} */
  async answer(name, mechanism, answer, options = {}) {
    return this.send(this.prepare(name, mechanism, answer, options));
  }

  #overlaps(name, mechanism, agreed) {
    const overlaps = this.ledger.overlaps(this.origin, name, mechanism);
    if (overlaps.length <= agreed) return overlaps;
    const summed = this.ledger.summed(mechanism, overlaps);
    throw new DiscreetError("overlap", `${summed.sentence.slice(0, -1)}; answer only if you agree to that.`, { summed, overlaps });
  }

  #path(name) {
    return `${this.url}/v1/collections/${encodeURIComponent(name)}`;
  }

  /** The JSON that the collector answers; retried while it is away or busy, with growing pauses that depend on nothing said. */
  async #request(url, options) {
    const end = performance.now() + this.patience;
    for (let pause = this.pause; ; pause *= 2) {
      let why = "it cannot be reached";
      let asked = 0;
      try {
        const signal = AbortSignal.timeout(Math.ceil(Math.max(1, Math.min(LONGEST, end - performance.now()))));
        const response = await this.#fetch(url, {
          ...options, signal, credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", redirect: "manual",
        });
        const text = await response.text();
        if (response.status < 500 && !LATER.has(response.status)) return readAnswer(response, text);
        why = `it answers ${response.status}`;
        asked = 1000 * (Number(response.headers.get("Retry-After")) || 0);
      } catch (error) {
        if (error instanceof DiscreetError) throw error;
      }
      const wait = Math.min(LONGEST, Math.max(asked, pause * (0.5 + Math.random())));
      if (performance.now() + wait > end) {
        const next = options.body ? "try again later: the same report will be sent" : "try again later";
        throw new DiscreetError("network", `the collector at ${this.url} does not take the request (${why}); ${next}`);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

function readAnswer(response, text) {
  let body;
  try {
    body = JSON.parse(text);
  } catch { /* judged below */ }
  if (response.ok && typeof body === "object" && body !== null) return body;
  if (response.ok) throw new DiscreetError("server", "the collector did not answer in JSON; check the address and the network");
  if (response.status < 400) throw new DiscreetError("server", "the collector names another address; use it if you trust it");
  const detail = typeof body?.detail === "string" ? body.detail.slice(0, 500) : `the collector refuses with ${response.status}`;
  throw new DiscreetError("refused", detail, { status: response.status });
}
