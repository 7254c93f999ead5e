// The card of a question: its words, its answers in the order in which people see them, and how
// sensitive each of them is.
import { answerRows } from "./answers.js";
import { button, figure, h } from "./dom.js";
import { choice, field, numberInput, textInput } from "./fields.js";
import { newAnswer } from "./model.js";
import { called, labelled, ordering } from "./order.js";

const KINDS = [
  ["single", "One answer"],
  ["scale", "One answer on a scale, in order"],
  ["set", "Several answers, the list protected as a whole"],
  ["each", "Several answers, each protected by itself"],
];
const MOST_ROWS = 500; // of answers in the form
const BASE = "hardly sensitive"; // of a new answer

/** How far odds can move, from a budget as a file has it: "ln(3)", 1.2 or "1.2". */
export function factorOf(epsilon) {
  const log = /^\s*ln\(\s*([\d.]+)(?:\/([\d.]+))?\s*\)\s*$/.exec(String(epsilon));
  const factor = log ? log[1] / (log[2] ?? 1) : Math.exp(Number(epsilon));
  return Number.isFinite(factor) ? String(Number(factor.toPrecision(3))) : "?";
}

export function questionCard(model, question, k, { words, steps, changed, redraw }) {
  const { questions } = model;
  const title = `Question ${k + 1}`;
  const several = questions.length > 1 || question.name;
  const order = questions.length > 1 && ordering(questions, question, title, redraw);
  const changeKind = () => {
    const level = question.kind === "scale" ? null : BASE;
    for (const answer of question.answers) answer.level = level && (answer.level ?? level);
    redraw(`${question.key}-kind`);
  };
  const remove = button("Remove", () => {
    questions.splice(questions.indexOf(question), 1);
    model.crosses = model.crosses.filter(({ of }) => !of.includes(question));
    redraw("add-question");
  }, { class: "button plain small", "aria-label": `Remove ${title}` });
  return h("article", { class: "card question", "data-key": question.key, "data-where": `question.${k}` },
    h("div", { class: "row top" }, h("h3", {}, order && order.handle, title),
      questions.length > 1 && h("span", { class: "row" }, order.arrows, remove)),
    field("What do you ask?", textInput(question, "text", changed, {
      id: `${question.key}-text`, placeholder: "Which of these strained you most this month?",
    }), { part: `${question.key}-words` }),
    h("div", { class: "pair" },
      field("How do people answer?", choice(question, "kind", KINDS, changeKind, { id: `${question.key}-kind` })),
      several && field("Short name", textInput(question, "name", changed, { placeholder: `question ${k + 1}` }),
        { note: "a heading of the results" }),
      question.kind === "set" && field("How many does a person choose?",
        numberInput(question, "padding", changed, { min: 1, max: 1000 }), { note: "about" })),
    question.kind === "scale" ? scaleStep(question, steps, changed) : "",
    answerList(question, words, changed, redraw), keptKeys(question));
}

function answerList(question, words, changed, redraw) {
  if (question.answers.length > MOST_ROWS) {
    const many = figure(question.answers.length);
    return h("p", { class: "quiet" }, `${many} answers: too many for a form. Change them in the file.`);
  }
  const isScale = question.kind === "scale";
  const level = () => (isScale ? null : question.answers.at(-1)?.level ?? BASE);
  const adder = `${question.key}-add`;
  const { list, insert } = answerRows(question.answers, {
    changed, redraw, adder,
    fresh: (answer) => newAnswer("", isScale ? null : answer.level),
    beside: (answer) => !isScale
      && sensitivity(question, answer, words, () => redraw(`${answer.key}-level`)),
  });
  const add = (answer) => insert(question.answers.length, answer);
  const heads = h("p", { class: "heads quiet", "aria-hidden": "true" }, h("span", {}, "Answers, as people see them"),
    !isScale && h("span", {}, "How sensitive? (odds ×)"));
  return h("div", { "data-part": `${question.key}-answers` }, heads, list, h("p", { class: "row" },
    button("Add an answer", () => add(newAnswer("", level())), { class: "button plain small", id: adder }),
    !isScale && !question.answers.some(({ text }) => text === "prefer not to say")
      && button("Add “prefer not to say”", () => {
        const order = words.map(({ name }) => name);
        const used = question.answers.map((answer) => answer.level);
        const most = order.find((name) => used.includes(name)) ?? used[0]; // it stands for them
        add(newAnswer("prefer not to say", most));
      }, { class: "button plain small" })));
}

/** How sensitive an answer is, in words, with the factor on the odds beside them. */
function sensitivity(question, answer, words, redraw) {
  const own = question.levels.filter(({ name }) => !words.some((word) => word.name === name));
  const custom = ({ open, epsilon }) => (open ? "open" : `× ${factorOf(epsilon)}`);
  const budget = ({ name, factor }) => {
    const written = question.levels.find((level) => level.name === name);
    return written ? custom(written) : `× ${factor}`;
  };
  const options = [
    ...own.map((level) => [level.name, `${level.name} · ${custom(level)}`]),
    ...words.map((word) => [word.name, `${word.name} · ${budget(word)}`]),
  ];
  const place = options.findIndex(([name]) => name === answer.level);
  return choice(answer, "level", options, redraw, {
    id: `${answer.key}-level`, ...labelled("How sensitive is {}?", called(answer)),
    class: `sensitivity level-${Math.max(0, place)}`,
  });
}

function scaleStep(question, steps, changed) {
  const known = steps.some(({ epsilon }) => epsilon === question.step);
  const label = ({ name, factor }) => `${name} · neighbours odds × ${factor}`;
  const options = [
    ...known ? [] : [[String(question.step), `as in the file · neighbours odds × ${factorOf(question.step)}`]],
    ...steps.map((step) => [step.epsilon, label(step)]),
  ];
  return field("How much is each step protected?", choice(question, "step", options, changed),
    { note: "Write the answers in their order. The further apart two are, the less they are protected from each other." });
}

/** What the file says and the form has no field for. */
function keptKeys({ rest, totals }) {
  const names = [...Object.keys(rest), ...totals.length ? ["totals"] : []];
  return names.length ? h("p", { class: "quiet" }, `Also in the file: ${names.join(", ")}. Change it there.`) : "";
}
