// Public questions: asked and sent openly; results are counted by them.
import { refused } from "../errors.js";
import { list, table } from "../policy/fields.js";
import { distinct, isProse, quoted } from "../policy/labels.js";

const [LEAST_ITEMS, MOST_ITEMS] = [2, 255]; // the chosen one is a byte of the frame
const RESERVED = [ // columns of files of reports, of tables of results, and of populations
  "report", "count", "fingerprint", "question", "people",
  "item", "level", "stderr", "lower", "upper", "share", "share_low", "share_high",
  "n", "confidence", "about", "effective_n",
  "shrunk", "shrunk_sd", "shrunk_lower", "shrunk_upper", "consistent",
];

/** @typedef {{name: string, text: string, items: readonly string[]}} Public */

/** @returns {Public} */
export function readPublic(raw) {
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
