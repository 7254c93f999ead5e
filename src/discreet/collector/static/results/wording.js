// The survey's words in the reader's language.
import { state } from "./state.js";
import { wantedLanguages, words } from "./words.js";

const primary = (tag) => tag.split("-")[0];

/** The translation that the reader knows best; nothing where that is the survey's own language. */
function translation() {
  const { language, translations } = state.estimate;
  const there = Object.keys(translations);
  for (const tag of [...wantedLanguages(), words.language]) {
    if (language && primary(language) === primary(tag)) return {};
    const found = there.find((one) => one === tag)
      ?? there.find((one) => primary(one) === primary(tag));
    if (found) return translations[found];
  }
  return {};
}

/** What a question or a public one is called. */
export function nameOf({ name }) {
  const { questions, public: openly } = translation();
  return questions?.[name]?.text ?? openly?.[name]?.text ?? name;
}

/** The words of a question that is looked at: translated, or its own. */
export function wordsOf(asked) {
  const name = nameOf(asked);
  return name === asked.name ? asked.question || asked.name : name;
}

export function labelOf(name, item) {
  const { questions, public: openly } = translation();
  return (questions?.[name] ?? openly?.[name])?.items?.[item] ?? item;
}

export function groupOf({ group }) {
  return Object.entries(group).map(([name, item]) => labelOf(name, item)).join(", ");
}

/** The items of the question that is looked at, as they are read; a cell's by its two answers. */
export function labels() {
  const { question, asked, margins } = state.estimate;
  const { of } = asked.find(({ name }) => name === question);
  const { questions, public: openly } = translation();
  const mine = (questions?.[question] ?? openly?.[question])?.items ?? {};
  if (!of.length) return (item) => mine[item] ?? item;
  const [first, second] = margins.map(({ items }) => items.map(({ item }) => item));
  const cells = new Map((first ?? []).flatMap((x) => second.map((y) => {
    return [`${x} × ${y}`, `${labelOf(of[0], x)} × ${labelOf(of[1], y)}`];
  })));
  return (item) => cells.get(item) ?? item;
}
