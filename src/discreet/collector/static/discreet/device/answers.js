// Answers to a survey, by the names of its questions, and the frames that are sent for them.
import { fromHex } from "../check/document.js";
import { DiscreetError } from "../errors.js";
import { isTable } from "../policy/fields.js";
import { quoted } from "../policy/labels.js";
import { cell } from "../survey/crosses.js";

/** Answers by name; the answer to the only question may be given as it is. */
export function byName(survey, answer) {
  if (answer === undefined) return {};
  if (isTable(answer)) return answer;
  if (survey.questions.length > 1 || survey.openly.length) {
    const what = `this survey asks ${askedNames(survey).map(quoted).join(", ")}`;
    throw new DiscreetError("answer", `${what}; give the answers by name`);
  }
  return { [survey.only.name]: answer };
}

/** The names of what a person is asked: public questions, then the others. */
export function askedNames({ openly, questions }) {
  return [...openly, ...questions.filter(({ of }) => !of)].map(({ name }) => name);
}

/** Refuse answers to questions that there are not, and what is no answer. */
export function checkAnswers(survey, answers) {
  const known = askedNames(survey);
  for (const [name, answer] of Object.entries(answers)) {
    if (!known.includes(name)) {
      const what = `${quoted(name)} is not a question of this survey`;
      throw new DiscreetError("answer", `${what}; it asks ${known.map(quoted).join(", ")}`);
    }
    const open = survey.openly.find((question) => question.name === name);
    if (open) placeOf(open, answer);
    else survey.question(name).mechanism.places(answer);
  }
}

/** The place of a public answer. */
function placeOf({ name, items }, answer) {
  const place = typeof answer === "string" ? items.indexOf(answer) : answer;
  if (Number.isInteger(place) && place >= 0 && place < items.length) return place;
  const what = `the public question ${quoted(name)} needs one of its ${items.length} answers`;
  throw new DiscreetError("answer", `${what}; choose one`);
}

/**
 * A fresh report on a question, with what stands before it; null where an answer to it is missing
 * and may be.
 * @returns {Uint8Array | null}
 */
export function perturbed(survey, question, answers, partial) {
  const { mechanism, of } = question;
  const needed = [...survey.openly.map(({ name }) => name), ...of ?? [question.name]];
  const missing = needed.find((name) => !Object.hasOwn(answers, name));
  if (missing !== undefined) {
    if (partial) return null;
    const what = `the question ${quoted(missing)} has no answer`;
    throw new DiscreetError("answer", `${what}; it was drawn, so answer it`);
  }
  const group = survey.openly.map((open) => placeOf(open, answers[open.name]));
  const given = of ? cell(...of.map((name) => labelOf(survey, name, answers[name])))
    : answers[question.name];
  const [front, report] = [survey.front(question, group), mechanism.perturb(given)];
  return Uint8Array.from([...front, ...report]);
}

function labelOf(survey, name, answer) {
  const { mechanism } = survey.question(name);
  return mechanism.policy.items[mechanism.places(answer)[0]];
}

/** What is sent for an entry of the ledger. @returns {Frame} */
export function frameOf(survey, { question, id, report }) {
  const content = fromHex(report);
  return { question, id: fromHex(id), content, report: content.slice(survey.frontSize) };
}
