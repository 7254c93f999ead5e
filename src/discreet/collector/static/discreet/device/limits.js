// Limits that a person sets on what a question may reveal.
import { DiscreetError } from "../errors.js";
import { isTable } from "../policy/fields.js";
import { looks, quoted } from "../policy/labels.js";
import { toldBy, toldOpenly } from "../survey/told.js";

/** The limit itself, if it is one. */
export function readLimit(most) {
  if (typeof most !== "number" || !(most > 0)) {
    throw new DiscreetError("answer", `maxTotal is a positive number, got ${quoted(most)}`);
  }
  return most;
}

/**
 * Refuse a survey that may reveal more than the person allows: budgets per item, or one number for
 * every item and for everything that is sent together. One-way protection is refused unless the
 * person accepts it by name.
 */
export function checkSurvey(survey, limits, oneWay = false) {
  const { questions } = survey;
  if (!oneWay && questions.some(({ mechanism }) => !mechanism.policy.isMutual)) {
    const what = "this survey protects answers one way only: it may become known that an answer is "
      + "not yours";
    throw new DiscreetError("pinned", `${what}; do not answer, or accept that (oneWay)`);
  }
  if (isTable(limits)) {
    checkNamed(survey, limits);
    return;
  }
  refuseNoBudget(limits);
  for (const { mechanism } of questions) checkLevels(mechanism, limits);
  const whole = mostTogether(survey, questions.map(({ mechanism }) => {
    return mechanism.policy.isMutual ? mechanism.wholeEpsilon() : mechanism.raiseEpsilon();
  }));
  if (survey.answers > 1 && whole > limits + 1e-9) {
    const what = `all answers to this survey together have the budget ${brief(whole)}, above the `
      + `${brief(limits)} that you allow`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  }
}

function refuseNoBudget(most) {
  if (typeof most !== "number" || !(most > 0)) {
    throw new DiscreetError("answer", `maxEpsilon is a positive number, got ${quoted(most)}`);
  }
}

/** Every item of a question; open levels were accepted with one-way protection. */
function checkLevels(mechanism, most) {
  const { items, levelOf, levels } = mechanism.policy;
  const budgets = mechanism.levelBudgets();
  items.forEach((item, k) => {
    if (levels[levelOf[k]].epsilon < Infinity) refuseAbove(item, budgets[levelOf[k]], most);
  });
}

/**
 * The items that are named, in whatever language: what all questions that one device answers may
 * tell of each. Whoever names an open item does not accept that it is open.
 */
function checkNamed(survey, limits) {
  const entries = Object.entries(limits);
  if (!entries.length) {
    throw new DiscreetError("answer", "maxEpsilon names no item; give a number, or {item: budget}");
  }
  const tellings = survey.questions.map((question) => {
    const byLook = new Map();
    const { labels, levels, levelOf } = toldBy(survey, question, question.mechanism.levelBudgets());
    labels.forEach((text, k) => {
      for (const look of looks(text)) {
        byLook.set(look, Math.max(byLook.get(look) ?? 0, levels[levelOf[k]]));
      }
    });
    return byLook;
  });
  for (const [item, most] of entries) {
    refuseNoBudget(most);
    refuseOpenly(survey, item);
    const told = tellings.map((byLook) => looks(item).flatMap((look) => byLook.get(look) ?? []));
    if (!told.some((budgets) => budgets.length)) {
      const what = `${quoted(item)}, for which you pinned a budget, is not an item here`;
      throw new DiscreetError("pinned", `${what}; do not answer`);
    }
    refuseAbove(item, mostTogether(survey, told.map((budgets) => Math.max(0, ...budgets))), most);
  }
}

/** Whoever pins a budget for an item does not accept that a public question tells of it. */
function refuseOpenly(survey, item) {
  const here = looks(item);
  for (const question of survey.openly) {
    const told = [question.name, ...toldOpenly(survey, [question])].flatMap(looks);
    if (!here.some((look) => told.includes(look))) continue;
    const what = `${quoted(item)}, for which you pinned a budget, is asked openly in the question `
      + quoted(question.name);
    throw new DiscreetError("pinned", `${what}; do not answer`);
  }
}

function refuseAbove(item, budget, most) {
  if (!(budget > most + 1e-9)) return;
  const what = `${quoted(item)} has the budget ${brief(budget)} here, above the ${brief(most)} that `
    + "you allow";
  throw new DiscreetError("pinned", `${what}; do not answer`);
}

/** Of the questions that one device may answer. */
const mostTogether = ({ answers }, budgets) => {
  return [...budgets].sort((x, y) => y - x).slice(0, answers).reduce((sum, x) => sum + x, 0);
};

/** A budget in four digits. */
export const brief = (x) => String(Number(x.toPrecision(4)));
