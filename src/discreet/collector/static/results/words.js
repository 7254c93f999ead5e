// The texts of the page, and how numbers and dates are written in the language in use.
import { $ } from "./dom.js";

export const TEXTS = []; // texts/*.json, one per language, English first: filled in by the server
const STORED = "discreet-language"; // the key in the browser's storage of a chosen language

export let [words] = TEXTS;
let picked = null; // a language that was chosen on this page

/** A text of the page, its placeholders filled in. */
export function text(key, values = {}) {
  const form = words[key];
  const plural = () => new Intl.PluralRules(words.language).select(values.n);
  const found = typeof form === "string" ? form : form[plural()] ?? form.other;
  return found.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? figure(values[name]) : values[name];
  });
}

/** A number with so many decimals; in Arabic too with the digits that the promises have. */
export const figure = (x, decimals = 0) => {
  return (Number(x.toFixed(decimals)) + 0).toLocaleString(`${words.language}-u-nu-latn`, { // no -0
    minimumFractionDigits: decimals, maximumFractionDigits: decimals,
  });
};
export const whole = (x) => figure(Math.round(x));
export const tenths = (share) => figure(100 * share, 1); // of a percent
export const percentOf = (share) => text("percent", { n: tenths(share) });
/** Percents that need few digits: 12, 2.5, 0.031. */
export const roughly = (share) => {
  const x = Number((100 * share).toPrecision(2));
  return text("percent", { n: x.toLocaleString(`${words.language}-u-nu-latn`) });
};
/** A minute in the reader's time zone. */
export const localTime = (moment) => {
  return new Date(moment).toLocaleString(`${words.language}-u-nu-latn`, {
    dateStyle: "long", timeStyle: "short",
  });
};
export const today = () => new Date().toLocaleDateString(`${words.language}-u-nu-latn`, {
  year: "numeric", month: "long", day: "numeric",
});

/** The languages that the reader knows, the best one first. */
export function wantedLanguages() {
  let stored = null; // what the reader chose on the participant's page
  try {
    stored = localStorage.getItem(STORED);
  } catch { /* storage is blocked */ }
  return [picked, stored, ...navigator.languages].filter(Boolean);
}

/** The page in the language that the reader knows best. */
export function translate() {
  const first = wantedLanguages().map((tag) => tag.split("-")[0])
    .find((tag) => TEXTS.some(({ language }) => language === tag));
  words = TEXTS.find(({ language }) => language === first) ?? TEXTS[0];
  document.documentElement.lang = words.language;
  document.documentElement.dir = words.direction;
  for (const place of document.querySelectorAll("[data-text]")) {
    place.textContent = text(place.dataset.text);
  }
  for (const place of document.querySelectorAll("[data-note]")) {
    place.title = text(place.dataset.note);
  }
  for (const place of document.querySelectorAll("[data-label]")) {
    place.setAttribute("aria-label", text(place.dataset.label));
  }
  $("search").placeholder = text("search");
}

/** Choose a language, also for the next visit. */
export function pickLanguage(language) {
  picked = language;
  try {
    localStorage.setItem(STORED, language);
  } catch { /* then the next visit asks again */ }
  translate();
}
