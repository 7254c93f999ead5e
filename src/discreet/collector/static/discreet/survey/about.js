import { refused } from "../errors.js";
import { table } from "../policy/fields.js";
import { UNSEEN, isProse, quoted } from "../policy/labels.js";

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
export const isLanguage = (tag) => {
  return typeof tag === "string" && /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/.test(tag);
};

/** What is said in a language of its own. */
export const PROSE = {
  organiser: isText(LINE), contact: isText(LINE), notice: isText(LINE),
  purpose: isText(TEXT, true), consent: isText(TEXT, true),
};

/** Whether this is the address of a page. */
export const isNotice = (url) => PROSE.notice(url) && /^https?:\/\//.test(url);

const ABOUT = {
  ...PROSE,
  notice: isNotice,
  language: isLanguage,
  opens: isTime, closes: isTime,
  minimum: (n) => Number.isInteger(n) && n >= LEAST && n <= MOST,
  rehearsal: (flag) => flag === true,
};

/** Who asks, what for, from when to when; each part is optional and has one spelling. */
export function readAbout(raw) {
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
