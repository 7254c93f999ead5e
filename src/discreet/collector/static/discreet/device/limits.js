// Limits that a person sets on what a question may reveal.
import { DiscreetError } from "../errors.js";
import { looks, quoted } from "../policy/labels.js";

/** The limit itself, if it is one. */
export function readLimit(most) {
  if (typeof most !== "number" || !(most > 0)) {
    throw new DiscreetError("answer", `maxTotal is a positive number, got ${quoted(most)}`);
  }
  return most;
}

/**
 * Refuse a survey that may reveal more than the person allows: about an item, and if the limit is
 * one number, also in all that is sent together.
 */
export function checkSurvey(survey, limits, oneWay = false) {
  const { questions } = survey;
  if (limits?.constructor === Object) {
    const here = new Set(questions.flatMap(({ mechanism }) => mechanism.policy.items.flatMap(looks)));
    const unknown = Object.keys(limits).find((item) => !looks(item).some((look) => here.has(look)));
    if (unknown !== undefined) {
      const what = `${quoted(unknown)}, for which you pinned a budget, is not an item here`;
      throw new DiscreetError("pinned", `${what}; do not answer`);
    }
  }
  for (const { mechanism } of questions) checkBudgets(mechanism, limits, oneWay);
  const whole = survey.answers > 1 ? survey.epsilon() : 0;
  if (typeof limits === "number" && whole < Infinity && whole > limits + 1e-9) {
    const what = `all answers to this survey together have the budget ${brief(whole)}, above the `
      + `${brief(limits)} that you allow`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  }
}

/**
 * Refuse a mechanism that may reveal more about an item than the person allows. One-way protection
 * is refused unless the person accepts it by name; then open levels are not compared, unless the
 * person names one of their items.
 */
function checkBudgets(mechanism, limits, oneWay) {
  const { items, levelOf, levels, isMutual } = mechanism.policy;
  if (!isMutual && !oneWay) {
    const what = "answers here are protected one way only: that one is not yours may become known";
    throw new DiscreetError("pinned", `${what}; do not answer, or accept that (oneWay)`);
  }
  const entries = limits?.constructor === Object ? Object.entries(limits) : [];
  const given = entries.length ? entries : null;
  const pinned = new Map(); // by every look of its item; the smaller of two pins counts
  for (const [item, most] of given ?? [["", limits]]) {
    if (typeof most !== "number" || !(most > 0)) {
      throw new DiscreetError("answer", `maxEpsilon is a positive number, got ${quoted(most)}`);
    }
    for (const look of looks(item)) pinned.set(look, Math.min(pinned.get(look) ?? Infinity, most));
  }
  const allowed = (item) => (given
    ? Math.min(...looks(item).map((look) => pinned.get(look) ?? Infinity)) : limits);
  const budgets = mechanism.levelBudgets();
  items.forEach((item, k) => {
    const isCompared = given || levels[levelOf[k]].epsilon < Infinity;
    const budget = isCompared ? budgets[levelOf[k]] : 0;
    if (!(budget > allowed(item) + 1e-9)) return;
    const what = `${quoted(item)} has the budget ${brief(budget)} here, above the `
      + `${brief(allowed(item))} that you allow`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  });
}

/** A budget in four digits. */
export const brief = (x) => String(Number(x.toPrecision(4)));
