// A survey in the reader's language, where it has one; otherwise in its own.
import { storedLanguage, words } from "./words.js";

const primary = (tag) => tag.split("-")[0];

/** The language of the survey that the reader knows best; "" for its own. */
function bestLanguage({ about, translations }) {
  const there = Object.keys(translations);
  for (const tag of [storedLanguage(), ...navigator.languages, words.language]) {
    if (!tag) continue;
    if (about.language && primary(about.language) === primary(tag)) return "";
    const found = there.find((one) => one === tag)
      ?? there.find((one) => primary(one) === primary(tag));
    if (found) return found;
  }
  return "";
}

/** What people read of a survey. */
export class Wording {
  #survey;
  #translation;

  constructor(survey) {
    const language = bestLanguage(survey);
    this.#survey = survey;
    this.#translation = survey.translations[language] ?? {};
    this.language = language || survey.about.language;
  }

  /** A text of who asks, and what for. */
  about(key) {
    return this.#translation.about?.[key] ?? this.#survey.about[key];
  }

  /** The words of a question, public or not. */
  question(name) {
    const open = this.#open(name);
    if (open) return this.#translation.public?.[name]?.text ?? open.text;
    const own = this.#survey.question(name).mechanism.policy.question;
    return this.#translation.questions?.[name]?.text ?? own;
  }

  /** What the public questions are called: by their words, if those are translated. */
  get openly() {
    return this.#survey.openly.map(({ name }) => this.#translation.public?.[name]?.text ?? name);
  }

  /** The labels of its items, by their places. */
  labels(name) {
    const open = this.#open(name);
    const rows = open ? this.#translation.public : this.#translation.questions;
    const items = open ? open.items : this.#items(name);
    return items.map((item) => rows?.[name]?.items?.[item] ?? item);
  }

  #items(name) {
    const { mechanism, of } = this.#survey.question(name);
    if (!of) return mechanism.policy.items;
    const [first, second] = of.map((one) => this.labels(one));
    return first.flatMap((x) => second.map((y) => `${x} × ${y}`));
  }

  #open(name) {
    return this.#survey.openly.find((question) => question.name === name);
  }
}
