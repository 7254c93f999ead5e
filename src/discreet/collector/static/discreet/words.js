// Every sentence about promises and reports, and the language in which the page says it.

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

const [FACTOR, CHANCE] = ["by at most a factor of {factor}.", "changes the chance of any report"];
const ODDS = "whoever sees your report can change their odds between";
const RAISE = "Whoever sees your report can raise their odds that";
const small = (text) => text[0].toLowerCase() + text.slice(1);
const KNOWN = "by at most a factor of {factor}; that it is not may become known.";
const LOWERED = "by at most a factor of {factor}, and lower them by at most a factor of {fall}.";
const RAISES = "raises the chance of any report by at most a factor of {factor}; that you do not "
  + "have it may become known.";
const AWAY = "Whoever sees your report can change their odds between your answer and one that is";
const EACH = "Whole lists: each answer is protected on its own and the factors multiply, to at most"
  + " {few} for a list of {answers} against an empty one";
const CHOSE = "The organiser chose not to protect which of";
const LEVELS = "answers of \"{first}\" and answers of \"{second}\" is yours: they are kept apart";
const SAME = "two answers of \"{first}\" is yours: they are kept apart";
const THROUGH = "only through others, by a factor of at most {factor}.";
const ONCE = "You already gave an earlier answer about";
const OFTEN = "You already gave {n} earlier answers about";
const TOGETHER = "the same items: together, whoever sees your reports can change their odds between"
  + ` {what} and any other answer ${FACTOR}`;
const CAUTION = "This is weak protection: one report can change the odds between {between} by up"
  + " to a factor of {factor}, so whoever sees yours may be almost sure what you answered.";
const weakProtection = (between) => CAUTION.replace("{between}", between);
const TOGETHER_HAVING = "the same items: together, having or not having {what} changes the chance"
  + ` of your reports ${FACTOR}`;
const TOGETHER_UNLIMITED = "the same items: together, your reports can change what is known about "
  + "{what} without any limit.";
const OTHER = "other questions of this survey: together, whoever sees your reports can change their"
  + " odds between your answers and any others";
const [ONCE_MORE, OFTEN_MORE] = [ONCE, OFTEN].map((text) => text.replace("about", "to"));
const TOGETHER_ONE_WAY = "the same items: together, whoever sees your reports can raise their odds "
  + "that {what} is your answer by at most a factor of {factor}; that it is not may become known.";


/** Every sentence about promises and reports; a form per plural category where a number counts. */
export const ENGLISH = Object.freeze({
  language: "en",
  odds: `${capital(ODDS)} {what} and any other answer ${FACTOR}`,
  having: `Having or not having {what} ${CHANCE} ${FACTOR}`,
  oddsOfLevel: `{level} ({items}): ${ODDS} this answer and any other ${FACTOR}`,
  havingOfLevel: `{level} ({items}): having or not having it ${CHANCE} ${FACTOR}`,
  oddsOneWayKnown: `${RAISE} {what} is your answer, against any other, ${KNOWN}`,
  oddsOneWayLowered: `${RAISE} {what} is your answer, against any other, ${LOWERED}`,
  oddsOfLevelOneWayKnown: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other, ${KNOWN}`,
  oddsOfLevelOneWayLowered: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other, ${LOWERED}`,
  oddsOneWayProtected: `${RAISE} {what} is your answer, against any other that it is protected `
    + `from, ${KNOWN}`,
  oddsOfLevelOneWayProtected: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other that it is protected from, ${KNOWN}`,
  havingOneWay: `Having {what} ${RAISES}`,
  havingOfLevelOneWay: `{level} ({items}): having it ${RAISES}`,
  oddsInBlock: `${capital(ODDS)} {what} and any other answer of its group ${FACTOR}`,
  oddsOfLevelInBlock: `{level} ({items}): ${ODDS} this answer and any other of this group ${FACTOR}`,
  oddsProtected: `${capital(ODDS)} {what} and any other answer that it is protected from ${FACTOR}`,
  oddsOfLevelProtected: `{level} ({items}): ${ODDS} this answer and any other that it is protected `
    + `from ${FACTOR}`,
  shown: "Your report may show {what} as it is.",
  shownOfLevel: "{level} ({items}): your report may show this answer as it is.",
  away: Object.freeze({
    one: `${AWAY} {n} step away ${FACTOR}`, other: `${AWAY} {n} steps away ${FACTOR}`,
  }),
  farAway: Object.freeze({
    one: `${AWAY} {n} step away or more ${FACTOR}`,
    other: `${AWAY} {n} steps away or more ${FACTOR}`,
  }),
  quoted: "\"{what}\"",
  and: "{x} and {y}",
  more: "{items} and {n} more",
  anyTwoLists: `Whole lists: ${ODDS} any two lists of answers ${FACTOR}`,
  eachOfFew: `${EACH}.`,
  eachOfMany: `${EACH}, and to at most {many} for {n}.`,
  yourList: `Your whole list: ${ODDS} it and any other list ${FACTOR}`,
  yourListOfEach: `Your whole list is not protected as one: ${ODDS} it and an empty one ${FACTOR}`,
  yourListOneWay: `Your whole list is not protected as one: ${small(RAISE)} it is yours, against an `
    + "empty one, by at most a factor of {factor}; that you do not have anything else may become "
    + "known.",
  noList: "You ticked nothing. Lists are not protected as one, only each answer on its own.",
  apart: `${CHOSE} ${LEVELS} ${THROUGH}`,
  notApart: `${CHOSE} ${LEVELS} not at all.`,
  sameApart: `${CHOSE} ${SAME} ${THROUGH}`,
  sameNotApart: `${CHOSE} ${SAME} not at all.`,
  already: Object.freeze({ one: `${ONCE} ${TOGETHER}`, other: `${OFTEN} ${TOGETHER}` }),
  alreadyHaving: Object.freeze({
    one: `${ONCE} ${TOGETHER_HAVING}`, other: `${OFTEN} ${TOGETHER_HAVING}`,
  }),
  alreadyOneWay: Object.freeze({
    one: `${ONCE} ${TOGETHER_ONE_WAY}`, other: `${OFTEN} ${TOGETHER_ONE_WAY}`,
  }),
  alreadyUnlimited: Object.freeze({
    one: `${ONCE} ${TOGETHER_UNLIMITED}`, other: `${OFTEN} ${TOGETHER_UNLIMITED}`,
  }),
  alreadyOther: Object.freeze({
    one: `${ONCE_MORE} ${OTHER} ${FACTOR}`, other: `${OFTEN_MORE} ${OTHER} ${FACTOR}`,
  }),
  alreadyOtherUnlimited: Object.freeze({
    one: `${ONCE_MORE} ${OTHER} without any limit.`,
    other: `${OFTEN_MORE} ${OTHER} without any limit.`,
  }),
  alreadyLists: "Whole lists: together, whoever sees your reports can change their odds between "
    + `any two of them ${FACTOR}`,
  alreadyListsUnlimited: "Whole lists: together, whoever sees your reports can change their odds "
    + "between any two of them without any limit.",
  cautionOpen: "Some answers are not protected from each other: whoever sees your report may know "
    + "which of them is yours.",
  cautionBlocks: "It may become known which group of answers yours is in; it is protected within its "
    + "group only.",
  cautionLacking: "That you do not have something may become known.",
  cautionShown: "Answers of {names} are not protected: your report may show such an answer as it is."
    + " That one of the other answers is not yours may become known.",
  cautionAnswers: weakProtection("two answers"),
  cautionHaving: weakProtection("having and not having an answer"),
  cautionLists: weakProtection("two lists of answers"),
  cautionEach: "Each answer is protected on its own, but a list of several answers is not: whoever "
    + "sees your report may be almost sure of the list as a whole.",
  everything: "Whoever sees everything you send can change their odds between your answers and any "
    + `others ${FACTOR}`,
  everythingKnown: "What everything you send can tell has no limit: of some answers it may become "
    + "known that they are yours, or that they are not. Each question says which.",
  openlySent: "Answers to {names} are sent as they are; this does not cover them.",
  answerTogether: "Another question of this survey tells about this answer too: whoever sees "
    + `everything you send can change their odds between it and any other ${FACTOR}`,
  cautionEverything: "This is weak protection: everything you send together can change the odds "
    + "between two records by up to a factor of {factor}.",
  cautionEverythingRaised: "This is weak protection: everything you send together can raise the "
    + "odds of your answers by up to a factor of {factor}.",
  drawnQuestions: Object.freeze({
    one: "Your device draws {asked} of the {of} questions; the other is not asked.",
    other: "Your device draws {asked} of the {of} questions; the other {n} are not asked.",
  }),
  answers: Object.freeze({ one: "{n} answer", other: "{n} answers" }),
  none: "none",
  range: "{low} to {high}",
  fixed: "The report names {named} of {answers}, drawn at random: {chances}.",
  bits: "For each of {answers} it was drawn at random whether the report names it; it names "
    + "{named}: {chances}.",
  ticket: "The report is a number that stands for a random choice among {answers}; it names "
    + "{named}: {chances}.",
  hits: "The report is a row of numbers that stands for a random choice among {answers}; it names "
    + "{named}: {chances}.",
  nothing: "The report names no answer, whatever yours is.",
  chances: "{yours} is named with a chance of {mine}, one that is not yours with about {others}",
  own: "your own answer",
  ownOfThese: "your own answer, if it is one of these,",
  drawn: "one of yours, if one is drawn at random,",
  drawnOfThese: "one of yours, if one is drawn at random and is one of these,",
  yours: "one of yours",
  yoursOfThese: "one of yours, if it is one of these,",
  padded: Object.freeze({
    one: "{chances}; if more than {n} is yours, {n} of them, drawn at random, counts as yours",
    other: "{chances}; if more than {n} are yours, {n} of them, drawn at random, count as yours",
  }),
  silent: "It says nothing about {n} of the answers.",
  kinds: "It is one of {k} kinds, drawn at random {by}.",
  silentKinds: "It says nothing about {n} of the answers, and is one of {k} kinds, drawn at random "
    + "{by}.",
  byAnswer: "with chances that depend on your answer",
  byNothing: "whatever your answers are",
});

let current = ENGLISH; // the sentences of the language in use

/**
 * Switch to another language. Its sentences have the keys of ENGLISH and the same placeholders.
 * @param {typeof ENGLISH} sentences
 */
export function speak(sentences = ENGLISH) {
  current = sentences;
}

/** Rewrite an English number with the marks of the language in use. @param {string} written */
export function localise(written) {
  const parts = new Intl.NumberFormat(current.language).formatToParts(12_345.6);
  const mark = (type) => parts.find((part) => part.type === type)?.value ?? "";
  return written.replace(/[.,]/g, (c) => mark(c === "." ? "decimal" : "group"));
}

/** The sentence with this key, its placeholders filled in. */
export function say(key, values = {}) {
  const form = current[key];
  const plural = () => new Intl.PluralRules(current.language).select(values.n);
  const text = typeof form === "string" ? form : form[plural()] ?? form.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? digits(values[name]) : values[name];
  });
}

/** A whole number. */
export const digits = (n) => localise(n.toLocaleString("en"));

const percent = (share) => localise(`${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`);

/** The smallest and the largest of these shares, in percent. */
export function percentRange(shares) {
  const ends = [Math.min, Math.max].map((end) => shares.reduce((x, y) => end(x, y)));
  const [low, high] = ends.map(percent);
  return low === high ? low : say("range", { low, high });
}
