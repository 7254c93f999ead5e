// The survey's words in the reader's language.
import { state } from "./state.js";

const primary = (tag) => tag.split("-")[0];

/** The survey's words in the reader's language; none where it has no such translation. */
function translation() {
  const { language, translations } = state.estimate;
  const there = Object.keys(translations);
  let stored = null; // what the reader chose on the participant's page
  try {
    stored = localStorage.getItem("discreet-language");
  } catch { /* storage is blocked */ }
  for (const tag of [stored, ...navigator.languages, document.documentElement.lang]) {
    if (!tag) continue;
    if (language && primary(language) === primary(tag)) return {};
    const found = there.find((one) => one === tag)
      ?? there.find((one) => primary(one) === primary(tag));
    if (found) return translations[found];
  }
  return {};
}

/** What a question or a public one is called, and its items, in these words or in its own. */
export const nameOf = ({ name }) => {
  const { questions, public: openly } = translation();
  return questions?.[name]?.text ?? openly?.[name]?.text ?? name;
};
export const labelOf = (name, item) => {
  const { questions, public: openly } = translation();
  return (questions?.[name] ?? openly?.[name])?.items?.[item] ?? item;
};
export const groupOf = ({ group }) => {
  return Object.entries(group).map(([name, item]) => labelOf(name, item)).join(", ");
};

/** The items of the question that is looked at, as they are read; a cell's by its two answers. */
export function labels() {
  const { question, asked, margins } = state.estimate;
  const { of } = asked.find(({ name }) => name === question);
  if (!of.length) return (item) => labelOf(question, item);
  const [first, second] = margins.map(({ items }) => items.map(({ item }) => item));
  const cells = new Map((first ?? []).flatMap((x) => second.map((y) => {
    return [`${x} × ${y}`, `${labelOf(of[0], x)} × ${labelOf(of[1], y)}`];
  })));
  return (item) => cells.get(item) ?? item;
}
