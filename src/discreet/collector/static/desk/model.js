// A survey file as the form shows it, and back. Keys that the form has no field for are kept.

const ONLY = "question"; // the name of a question that nobody named
const STEP = "ln(2)"; // of a scale
const TOP = ["name", "about", "answers", "public", "translations", "cross"];

let serial = 0;
const newKey = () => { serial += 1; return `k${serial}`; };

export const newAnswer = (text = "", level = null) => ({ key: newKey(), text, level, words: {} });

export function newQuestion(words) {
  const [, sensitive, , hardly] = words;
  return {
    key: newKey(), name: "", text: "", kind: "single", padding: 2, step: STEP, levels: [], rest: {},
    words: {}, totals: [],
    answers: [newAnswer("", sensitive.name), newAnswer("", hardly.name)],
  };
}

export const newOpenly = () => ({ key: newKey(), name: "", text: "", words: {}, answers: [newAnswer(), newAnswer()] });

export function newSurvey(words) {
  return {
    name: "my-survey", about: {}, rest: {}, answers: 1, crosses: [], languages: [], aboutWords: {},
    questions: [newQuestion(words)], openly: [],
  };
}

// ---- from a file

/** The form's content of a survey file's. */
export function fromFile(file) {
  const translations = file.translations ?? {};
  const languages = Object.keys(translations);
  const several = Array.isArray(file.question);
  const rows = several ? file.question : [without(file, TOP)];
  const questions = rows.map((row) => readQuestion(row, several, translations));
  const named = Object.fromEntries(questions.map((question) => [question.name, question]));
  return {
    name: file.name ?? "survey", about: { ...file.about }, answers: file.answers ?? 1, languages,
    aboutWords: each(languages, (tag) => ({ ...translations[tag].about })),
    questions,
    openly: (file.public ?? []).map((row) => {
      const told = (tag) => translations[tag].public?.[row.name];
      return {
        key: newKey(), name: row.name ?? "", text: row.text ?? row.name ?? "",
        words: each(languages, (tag) => told(tag)?.text ?? ""),
        answers: (row.items ?? []).map((item) => {
          return { ...newAnswer(item), words: each(languages, (tag) => told(tag)?.items?.[item] ?? "") };
        }),
      };
    }),
    crosses: (file.cross ?? []).map((row) => ({ ...row, of: (row.of ?? []).map((x) => named[x] ?? x) })),
    rest: several ? without(file, [...TOP, "question"]) : {},
  };
}

function readQuestion(row, several, translations) {
  const languages = Object.keys(translations);
  const name = several ? row.name ?? "" : "";
  const told = (tag) => translations[tag].questions?.[name || ONLY];
  const isScale = row.scale !== undefined;
  const levels = isScale ? [] : (row.level ?? []).map((level) => without(level, ["items"]));
  const listed = isScale ? (row.items ?? []).map((item) => [item, null])
    : (row.level ?? []).flatMap(({ name: level, items = [] }) => items.map((item) => [item, level]));
  const last = row.last ?? [];
  const rank = ([item]) => last.indexOf(item);
  const shown = [
    ...listed.filter((one) => rank(one) < 0),
    ...listed.filter((one) => rank(one) >= 0).sort((x, y) => rank(x) - rank(y)),
  ];
  const answers = shown.map(([item, level]) => {
    return { ...newAnswer(item, level), words: each(languages, (tag) => told(tag)?.items?.[item] ?? "") };
  });
  while (answers.length < 2) {
    answers.push(newAnswer("", isScale ? null : answers.length ? "hardly sensitive" : "sensitive"));
  }
  const answerOf = (item) => answers.find(({ text }) => text === item);
  const keys = ["name", "text", "question", "kind", "padding", "level", "scale", "items", "last", "totals"];
  return {
    key: newKey(), name, text: (several ? row.text : row.question) ?? "",
    kind: isScale ? "scale" : row.kind ?? "single", padding: row.padding ?? 2,
    step: isScale ? row.scale : STEP,
    saysKind: row.kind !== undefined, levels, answers, last: last.map(answerOf), rest: without(row, keys),
    words: each(languages, (tag) => told(tag)?.text ?? ""),
    totals: Object.entries(row.totals ?? {}).map(([total, items]) => [total, items.map(answerOf)]),
  };
}

// ---- to a file

/** The content of a survey file. */
export function toFile(model, words) {
  const { name, about, answers, questions, openly, crosses, rest } = model;
  const several = questions.length > 1 || Boolean(questions[0]?.name) || crosses.length > 0;
  const names = new Map(questions.map((question, k) => [question, question.name.trim() || `question ${k + 1}`]));
  const file = { name, ...rest };
  if (answers !== 1) file.answers = answers;
  const one = several ? {} : writeQuestion(questions[0], words);
  const tables = ["level", "pair", "totals"];
  const plain = without(one, tables);
  Object.assign(file, plain);
  const told = filled(about);
  if (Object.keys(told).length) file.about = told;
  for (const table of tables) if (one[table]) file[table] = one[table];
  if (several) {
    file.question = questions.map((question) => {
      const { question: text, ...row } = writeQuestion(question, words);
      return { name: names.get(question), ...text ? { text } : {}, ...row };
    });
  }
  const crossed = crosses.map((row) => ({ ...row, of: row.of.map((x) => names.get(x) ?? x) }));
  if (crossed.length) file.cross = crossed;
  if (openly.length) {
    file.public = openly.map((row) => ({
      name: row.name.trim() || row.text.trim(), text: row.text.trim(), items: texts(row.answers),
    }));
  }
  const translations = writeTranslations(model, several ? names : new Map([[questions[0], ONLY]]));
  if (Object.keys(translations).length) file.translations = translations;
  return file;
}

function writeQuestion(question, words) {
  const { text, kind, padding, step, rest } = question;
  const row = text.trim() ? { question: text.trim() } : {};
  if (kind === "scale") return { ...row, scale: step, items: texts(question.answers), ...rest };
  if (kind !== "single" || question.saysKind) row.kind = kind;
  if (kind === "set") row.padding = padding;
  const answers = question.answers.filter((answer) => answer.text.trim());
  const levels = usedLevels(question, words);
  const place = (answer) => levels.findIndex(({ name }) => name === answer.level);
  const last = lastOf(question, answers, place);
  if (last.length) row.last = last;
  Object.assign(row, rest);
  row.level = levels.map((level) => {
    return { ...level, items: texts(answers.filter((answer) => answer.level === level.name)) };
  });
  const totals = question.totals.map(([name, items]) => [name, texts(items.filter((x) => answers.includes(x)))])
    .filter(([, items]) => items.length);
  if (totals.length) row.totals = Object.fromEntries(totals);
  return row;
}

/** The levels that have answers: as in the file, and further ones by how sensitive they are. */
export function usedLevels({ levels, answers }, words) {
  const isUsed = (name) => answers.some(({ text, level }) => level === name && text.trim());
  const rank = ({ name }) => words.findIndex((word) => word.name === name);
  const known = new Set(levels.map(({ name }) => name));
  const more = words.filter(({ name }) => !known.has(name))
    .map(({ name, epsilon }) => ({ name, epsilon }));
  const used = [...levels, ...more].filter(({ name }) => isUsed(name));
  const ours = used.every((level) => rank(level) >= 0);
  return ours ? used.sort((x, y) => rank(x) - rank(y)) : used;
}

/**
 * The answers that stand after the others, so that all are shown in the order of the form: as few
 * as possible, or those that the file names if they do.
 */
function lastOf({ last = [] }, answers, place) {
  const inFile = (some) => some.every((x, k) => !k || place(some[k - 1]) <= place(x));
  const kept = last.filter((answer) => answers.includes(answer));
  const rest = answers.slice(0, answers.length - kept.length);
  const same = kept.every((answer, k) => answer === answers[rest.length + k]);
  if (kept.length && same && inFile(rest)) return texts(kept);
  let length = answers.length;
  while (!inFile(answers.slice(0, length))) length -= 1;
  return texts(answers.slice(length));
}

function writeTranslations({ languages, aboutWords, questions, openly }, names) {
  const written = each(languages, (tag) => {
    const wording = ({ words, answers }) => {
      const items = answers.filter((x) => x.text.trim() && x.words[tag]?.trim())
        .map((x) => [x.text.trim(), x.words[tag].trim()]);
      return {
        ...words[tag]?.trim() ? { text: words[tag].trim() } : {},
        ...items.length ? { items: Object.fromEntries(items) } : {},
      };
    };
    const table = (rows, name) => Object.fromEntries(rows.map((row) => [name(row), wording(row)])
      .filter(([, said]) => Object.keys(said).length));
    const parts = {
      about: filled(aboutWords[tag] ?? {}),
      questions: table(questions, (question) => names.get(question)),
      public: table(openly, (row) => row.name.trim() || row.text.trim()),
    };
    return Object.fromEntries(Object.entries(parts).filter(([, said]) => Object.keys(said).length));
  });
  return written;
}

// ---- small things

const texts = (answers) => answers.map(({ text }) => text.trim()).filter((text) => text);
const each = (tags, value) => Object.fromEntries(tags.map((tag) => [tag, value(tag)]));
const without = (row, keys) => Object.fromEntries(Object.entries(row).filter(([name]) => !keys.includes(name)));
const filled = (row) => Object.fromEntries(Object.entries(row).filter(([, said]) => said !== "" && said !== undefined));
