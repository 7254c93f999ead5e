import { refused } from "../errors.js";

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
export const UNSEEN = new RegExp(`[${SILENT}${EMPTY}${FORMATS}]`, "gu");
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
export function quoted(value) {
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  const raw = typeof value === "string" ? JSON.stringify(value) : String(value);
  const text = raw.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}

/** Whether this is one line without control characters and invisible ones; any blanks. */
export function isProse(text) {
  return typeof text === "string" && text.search(HIDDEN) < 0;
}

/** Whether this is prose with no other blank than the plain one. */
export function isPrintable(text) {
  return isProse(text) && !/(?! )\p{Zs}/u.test(text);
}

/**
 * Make a stranger's text fit to be shown: one line of at most 300 characters, with U+FFFD in place
 * of control characters and invisible ones.
 * @param {string} text
 */
export function cleaned(text) {
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
export function looks(text) {
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
export function label(text, what) {
  if (!isPrintable(text) || !text.replace(UNSEEN, "").trim()) {
    const allowed = "a non-empty text without control characters and invisible characters";
    throw refused(`${what} is ${quoted(text)}, but must be ${allowed}`);
  }
  return text;
}

/** The labels themselves, if people can tell them apart. */
export function distinct(texts, what) {
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
