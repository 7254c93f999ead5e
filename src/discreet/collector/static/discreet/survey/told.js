// What the report of a question tells about: its items, under every label that people read.
import { cellsOf } from "./crosses.js";
import { translated } from "./translations.js";

/**
 * Labels, and the budget of the item that each names, if the levels of the question have these
 * budgets. A crossed question is about the items of both of its questions. A label counts in every
 * language: otherwise four surveys with one translation could ask for one item four times.
 * @param {Survey} survey @param {Question} question @param {number[]} levels
 * @returns {{labels: string[], levels: number[], levelOf: number[]}}
 */
export function toldBy(survey, { name, mechanism, of }, levels) {
  const { levelOf } = mechanism.policy;
  if (!of) return spread(labelsOf(survey, name), levels, levelOf);
  const [first, second] = of.map((one) => labelsOf(survey, one));
  const most = [0, 1].flatMap((axis) => cellsOf(axis, first.length, second.length))
    .map((cells) => Math.max(...cells.map((k) => levels[levelOf[k]])));
  return spread([...first, ...second], most, most.map((_, k) => k));
}

function spread(items, levels, levelOf) {
  return { labels: items.flat(), levels, levelOf: items.flatMap((all, k) => all.map(() => levelOf[k])) };
}

/** The labels of every item of a question, in the languages of the survey: its own first. */
export function labelsOf(survey, name) {
  const { items } = survey.question(name).mechanism.policy;
  return items.map((item) => inAllLanguages(survey, "questions", name, item));
}

/** The labels of all public answers, or of these questions'. */
export function toldOpenly(survey, openly = survey.openly) {
  return openly.flatMap(({ name, items }) => {
    return items.flatMap((item) => inAllLanguages(survey, "public", name, item));
  });
}

function inAllLanguages({ translations }, part, name, item) {
  const shown = Object.values(translations).map((words) => translated(words, part, name, item));
  return [...new Set([item, ...shown])];
}
