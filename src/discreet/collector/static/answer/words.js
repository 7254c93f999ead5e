// The texts of the page, and the language in use.
import { ENGLISH, speak } from "../discreet.js";
import { $ } from "./dom.js";

export const TEXTS = []; // texts/*.json, one per language, English first: filled in by the server
const STORED = "discreet-language"; // the key in the browser's storage of a chosen language

export let [words] = TEXTS;

/** A text of the page, its placeholders filled in. */
export function text(key, values = {}) {
  const form = words[key];
  const plural = () => new Intl.PluralRules(words.language).select(values.n);
  const chosen = typeof form === "string" ? form : form[plural()] ?? form.other;
  return chosen.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? figure(values[name]) : values[name];
  });
}

/** A label in the quotation marks of the language. */
export const quoted = (what) => text("quoted", { what });

/** A number; in Arabic too with the digits that the factors have. */
export const figure = (n) => n.toLocaleString(`${words.language}-u-nu-latn`);

/** A moment in the reader's time zone. */
export function localTime(moment) {
  return new Date(moment).toLocaleString(`${words.language}-u-nu-latn`, {
    year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit",
    timeZoneName: "short",
  });
}

/** The language that the reader chose before, or null. */
export function storedLanguage() {
  try {
    return window.localStorage.getItem(STORED);
  } catch { // storage is blocked, and the page says so when it matters
    return null;
  }
}

/** The language chosen before, or the first one that the browser asks for and the page has. */
export function preferredWords() {
  const wanted = [storedLanguage(), ...navigator.languages].map((tag) => tag?.split("-")[0]);
  const first = wanted.find((tag) => TEXTS.some(({ language }) => language === tag));
  return TEXTS.find(({ language }) => language === first) ?? TEXTS[0];
}

export function translate(chosen) {
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

/** Remember the language that is in use. */
export function storeLanguage() {
  try {
    window.localStorage.setItem(STORED, words.language);
  } catch { /* then the next visit asks again */ }
}
