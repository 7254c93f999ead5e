// The canonical form of a document, its fingerprint, and reading it from bytes.
import { DiscreetError, refused } from "../errors.js";
import { object } from "../policy/fields.js";
import { cleaned, quoted } from "../policy/labels.js";

/**
 * JSON with sorted keys and no blanks: RFC 8785 restricted to texts, integers, true, false, null,
 * lists and objects.
 * @param {unknown} document
 * @returns {string}
 */
export function canonicalJson(document) {
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
export function frozenCopy(document) {
  return JSON.parse(canonicalJson(document), (_, value) => Object.freeze(value));
}

/**
 * The content of a file, as a copy that nobody can change, and its fingerprint. Refused unless that
 * is the one in the file, and the one that an invitation names.
 * @param {object} document @param {string} what in messages
 * @param {string | null | undefined} pinned
 * @param {(body: object) => object} [without] leaves out more of how it was designed
 */
export async function verified(document, what, pinned, without = (body) => body) {
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
export function readFile(bytes, what) {
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
export async function computeFingerprint(document) {
  return sha256(canonicalJson(covered(document)));
}

/** A mechanism's document without how it was designed. */
export function covered(document) {
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
export function shortFingerprint(hash) {
  return (hash.slice(0, COMPARED).match(/.{1,4}/gs) ?? []).join(" ");
}

export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/**
 * Parse JSON in UTF-8, with or without a byte-order mark. An object with a repeated key is refused:
 * readers would disagree about its value.
 */
export function parse(bytes) {
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
