// A survey in more languages. Items stay the same items: only what people read changes.
import { refused } from "../errors.js";
import { object, table } from "../policy/fields.js";
import { distinct, isProse, quoted } from "../policy/labels.js";
import { PROSE, isLanguage, isNotice } from "./about.js";

/**
 * @typedef {{text?: string, items?: Record<string, string>}} Wording
 * @typedef {{about?: Record<string, string>, questions?: Record<string, Wording>,
 *   public?: Record<string, Wording>}} Translation
 */

/** The value of a key; an item may have the name of something that every object has. */
const ownValue = (table_, key) => (Object.hasOwn(table_ ?? {}, key) ? table_[key] : undefined);

/** An item as a translation says it. @param {"questions" | "public"} part */
export function translated(translation, part, name, item) {
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
export function readTranslations(raw, { questions, openly }) {
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
