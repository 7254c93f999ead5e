// Joined from the modules in desk/ by `make js`: change those.

// The organiser's desk: log in; then a list of surveys, a form, or the page of one survey, as the
// part of the address after # says.

// ---- api.js -------------------------------------------------------------------------------------

// Requests to the collector. The session is a cookie that no script can read.

/** A refusal, in a sentence. */
class Refused extends Error {
  constructor(sentence, status = 0) {
    super(sentence);
    this.status = status;
  }
}

/** What the collector answers; with `content` it is asked to do something. */
async function call(path, content, { signal } = {}) {
  const options = content === undefined ? {} : {
    method: "POST", body: JSON.stringify(content),
    headers: { "Content-Type": "application/json", "Discreet-Desk": "1" },
  };
  let answer;
  try {
    answer = await fetch(`/desk${path}`, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The collector cannot be reached. Look at your network, then try again.");
  }
  if (answer.status === 204) return null;
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(asSentence(body.detail), answer.status);
  return body;
}

/** What a machine says, as a sentence. */
function asSentence(text = "The collector refuses this.") {
  const end = /[.!?…]$/.test(text) ? "" : ".";
  return text[0].toUpperCase() + text.slice(1) + end;
}

const pathOf = (name, rest = "") => `/surveys/${encodeURIComponent(name)}${rest}`;

// ---- dom.js -------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

/** A new element: attributes, `on…` listeners, and what is in it. Empty children are left out. */
function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  const { value, ...rest } = attributes;
  for (const [key, given] of Object.entries(rest)) {
    if (given === undefined || given === null || given === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), given);
    else made.setAttribute(key, given === true ? "" : given);
  }
  made.append(...children.flat(3).filter((child) => child || child === 0));
  if (value !== undefined) made.value = value; // of a list, once its options are there
  return made;
}

/** A button that does something. */
function button(label, work, attributes = {}) {
  return h("button", { type: "button", class: "button", onclick: work, ...attributes }, label);
}

/** Only this section is shown. */
function show(id) {
  for (const section of document.querySelectorAll("#desk > section")) {
    section.hidden = section.id !== id;
  }
}

/** Say what went wrong, or nothing. */
function complain(sentence = "") {
  $("problem").textContent = sentence;
  $("problem").hidden = !sentence;
  if (sentence) $("problem").scrollIntoView({ block: "nearest" });
}

/** Say what was done; it goes away by itself. */
function announce(sentence) {
  $("done").textContent = sentence;
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => { $("done").textContent = ""; }, 6_000);
}

/** Copy a text; where the browser refuses, say so and select it. */
async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied.");
  } catch {
    source?.focus();
    source?.select?.();
    announce("Your browser does not let us copy. The text is selected: press Ctrl+C.");
  }
}

/** Save a text as a file. */
function download(name, text, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

/**
 * Ask something in a dialog: the promise is what `work` returns, or undefined if it was left. A
 * refusal is said in the dialog, which stays open.
 */
function ask(title, content, label, work, { danger = false } = {}) {
  const problem = h("p", { class: "wrong", role: "alert", hidden: true });
  return new Promise((resolve) => {
    const go = h("button", { class: danger ? "button danger" : "button" }, label);
    const form = h("form", { method: "dialog" },
      h("h2", { id: "dialog-title", tabindex: "-1" }, title), content, problem,
      h("p", { class: "row end" }, button("Cancel", () => dialog.close(), { class: "button plain" }), go));
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    let done;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        done = await work();
        dialog.close();
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
      }
      go.disabled = false;
    });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(done); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const figure = (n) => n.toLocaleString("en");

/** A moment in the organiser's own time. */
function localTime(time) {
  return new Date(time).toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
}

// ---- fields.js ----------------------------------------------------------------------------------

// The fields of the form.

let fieldCount = 0;

/**
 * A labelled field. `where` is the place in the survey file that it writes: what is wrong there is
 * said under it; `part` is what `Todo` calls it.
 */
function field(label, input, { note, where, part, wide } = {}) {
  fieldCount += 1;
  input.id ||= `f${fieldCount}`;
  return h("div", { class: wide ? "field wide" : "field", "data-where": where, "data-part": part },
    h("label", { for: input.id }, label), input, note && h("small", { class: "quiet" }, note));
}

function textInput(row, name, changed, attributes = {}) {
  const read = ({ target }) => {
    row[name] = target.value;
    changed();
  };
  const { lines, ...rest } = attributes;
  const common = { oninput: read, value: row[name] ?? "", autocomplete: "off", dir: "auto", ...rest };
  return lines ? h("textarea", { rows: lines, ...common }) : h("input", { type: "text", ...common });
}

function numberInput(row, name, changed, attributes = {}) {
  const read = ({ target }) => {
    const n = target.valueAsNumber;
    if (!Number.isInteger(n)) return;
    row[name] = n;
    changed();
  };
  const shown = { value: row[name] ?? "", inputmode: "numeric", step: 1, ...attributes };
  return h("input", { type: "number", oninput: read, ...shown });
}

/** A moment: in the file in UTC, here in the organiser's own time. */
function timeInput(row, name, changed) {
  const local = (time) => {
    const at = new Date(time);
    return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  };
  const read = ({ target }) => {
    row[name] = target.value && `${new Date(target.value).toISOString().slice(0, 19)}Z`;
    changed();
  };
  const known = row[name] && !Number.isNaN(Date.parse(row[name]));
  return h("input", { type: "datetime-local", onchange: read, value: known ? local(row[name]) : "" });
}

/** A list to choose from: [value, label] each. */
function choice(row, name, options, changed, attributes = {}) {
  const read = ({ target }) => {
    row[name] = target.value;
    changed();
  };
  const listed = options.map(([value, label]) => h("option", { value }, label));
  return h("select", { onchange: read, value: row[name] ?? "", ...attributes }, listed);
}

// ---- order.js -----------------------------------------------------------------------------------

// Rows that can be put in another order: by dragging their handle, with the arrow keys on it, or with
// buttons.

/**
 * The handle and the two buttons of a row. `moved` draws the rows again and gives the focus back.
 * @param {object[]} rows @param {object} row @param {string} what it is called
 * @param {(focus: string) => void} moved
 */
function ordering(rows, row, what, moved) {
  const move = (by, focus) => {
    const at = rows.indexOf(row);
    if (at + by < 0 || at + by >= rows.length) return;
    rows.splice(at, 1);
    rows.splice(at + by, 0, row);
    moved(`${row.key}-${focus}`);
    announce(`${what} is now at place ${at + by + 1} of ${rows.length}.`);
  };
  const keys = { ArrowUp: -1, ArrowDown: 1 };
  const handle = h("button", {
    type: "button", class: "handle", id: `${row.key}-handle`, ...labelled("Move {}: drag, or use the arrow keys", what),
    onkeydown: (event) => {
      if (!keys[event.key]) return;
      event.preventDefault();
      move(keys[event.key], "handle");
    },
    onpointerdown: (event) => dragRow(event, rows, row, moved),
  });
  handle.append(h("span", { "aria-hidden": "true" }, "⠿"));
  const arrow = (sign, name, by) => h("button", {
    type: "button", class: "icon", id: `${row.key}-${name}`, ...labelled(`Move {} ${name}`, what),
    disabled: by < 0 ? rows[0] === row : rows.at(-1) === row, onclick: () => move(by, name),
  }, sign);
  return { handle, arrows: h("span", { class: "arrows" }, arrow("↑", "up", -1), arrow("↓", "down", 1)) };
}

/** A name for an element that speaks of another text; `rename` follows when that changes. */
const labelled = (label, what) => ({ "aria-label": label.replace("{}", what), "data-label": label });

/** Name everything in a row after its text. */
function rename(row, what) {
  for (const one of row.querySelectorAll("[data-label]")) {
    one.setAttribute("aria-label", one.dataset.label.replace("{}", what));
  }
}

/** What a row is called. */
const called = ({ text }) => (text.trim() ? `“${text.trim()}”` : "an empty answer");

/** Follow the pointer until it is let go; the rows' elements have the key as data-key. */
function dragRow(event, rows, row, moved) {
  if (event.button !== 0) return;
  event.preventDefault();
  const mine = event.currentTarget.closest("[data-key]");
  const list = mine.parentElement;
  const others = () => [...list.querySelectorAll(":scope > [data-key]")];
  mine.classList.add("dragged");
  const follow = ({ clientY }) => {
    const next = others().filter((one) => one !== mine)
      .find((one) => clientY < one.getBoundingClientRect().top + one.offsetHeight / 2);
    if (next) list.insertBefore(mine, next);
    else others().at(-1).after(mine);
  };
  const stop = () => {
    document.removeEventListener("pointermove", follow);
    document.removeEventListener("pointerup", stop);
    document.removeEventListener("pointercancel", stop);
    mine.classList.remove("dragged");
    const place = new Map(others().map((one, k) => [one.dataset.key, k]));
    rows.sort((x, y) => place.get(x.key) - place.get(y.key));
    moved(`${row.key}-handle`);
  };
  // of the document: a row that moves in it loses the pointer
  document.addEventListener("pointermove", follow);
  document.addEventListener("pointerup", stop);
  document.addEventListener("pointercancel", stop);
}

// ---- answers.js ---------------------------------------------------------------------------------

// Rows of answers: they are written, put in order and removed; Enter begins one below.

/**
 * The list, and what puts an answer into it.
 * @param {object[]} answers
 * @param {object} terms `adder` is the id of the button that gets the focus when a row is removed;
 *   `fresh(answer)` makes the answer below one; `beside(answer)` stands beside it, if given
 */
function answerRows(answers, { changed, redraw, adder, fresh, beside = () => null }) {
  const insert = (place, answer) => {
    answers.splice(place, 0, answer);
    redraw(`${answer.key}-text`);
  };
  const rows = answers.map((answer) => {
    const what = called(answer);
    const { handle, arrows } = ordering(answers, answer, what, redraw);
    const text = textInput(answer, "text", () => { rename(item, called(answer)); changed(); }, {
      id: `${answer.key}-text`, "aria-label": "Answer", placeholder: "Answer",
      onkeydown: (event) => {
        if (event.key !== "Enter" || event.isComposing) return;
        event.preventDefault();
        insert(answers.indexOf(answer) + 1, fresh(answer));
      },
    });
    const remove = h("button", {
      type: "button", class: "icon", ...labelled("Remove {}", what), disabled: answers.length < 3,
      onclick: () => {
        answers.splice(answers.indexOf(answer), 1);
        redraw(adder);
      },
    }, "×");
    const other = beside(answer);
    const item = h("li", { class: other ? "answer" : "answer scale", "data-key": answer.key }, handle, text, other, arrows, remove);
    return item;
  });
  return { list: h("ol", { class: "answers" }, rows), insert };
}

// ---- model.js -----------------------------------------------------------------------------------

// A survey file as the form shows it, and back. Keys that the form has no field for are kept.

const ONLY = "question"; // the name of a question that nobody named
const STEP = "ln(2)"; // of a scale
const TOP = ["name", "about", "answers", "public", "translations", "cross"];

let serial = 0;
const newKey = () => { serial += 1; return `k${serial}`; };

const newAnswer = (text = "", level = null) => ({ key: newKey(), text, level, words: {} });

function newQuestion(words) {
  const [, sensitive, , hardly] = words;
  return {
    key: newKey(), name: "", text: "", kind: "single", padding: 2, step: STEP, levels: [], rest: {},
    words: {}, totals: [],
    answers: [newAnswer("", sensitive.name), newAnswer("", hardly.name)],
  };
}

const newOpenly = () => ({ key: newKey(), name: "", text: "", words: {}, answers: [newAnswer(), newAnswer()] });

function newSurvey(words) {
  return {
    name: "my-survey", about: {}, rest: {}, answers: 1, crosses: [], languages: [], aboutWords: {},
    questions: [newQuestion(words)], openly: [],
  };
}

// ---- from a file

/** The form's content of a survey file's. */
function fromFile(file) {
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
function toFile(model, words) {
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
function usedLevels({ levels, answers }, words) {
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

// ---- details.js ---------------------------------------------------------------------------------

// The rest of the form: public questions, who asks, dates, languages.

/** Questions that are answered openly. */
function openlyPart(model, { changed, redraw }) {
  const { openly } = model;
  const cards = openly.map((row, k) => {
    const title = `Public question ${k + 1}`;
    const order = openly.length > 1 && ordering(openly, row, title, redraw);
    const remove = button("Remove", () => {
      openly.splice(k, 1);
      redraw("add-openly");
    }, { class: "button plain small", "aria-label": `Remove ${title}` });
    return h("article", { class: "card question", "data-key": row.key, "data-where": `public.${k}` },
      h("div", { class: "row top" }, h("h3", {}, order && order.handle, title), h("span", { class: "row" }, order && order.arrows, remove)),
      h("div", { class: "pair" },
        field("What do you ask?", textInput(row, "text", changed, { id: `${row.key}-text`, placeholder: "Where do you work?" }),
          { part: `${row.key}-words` }),
        field("Short name", textInput(row, "name", changed, { placeholder: "region" }), { note: "a column of the results" })),
      plainAnswers(row, changed, redraw));
  });
  return h("section", { class: "part" }, h("h2", {}, "Asked openly"),
    h("p", { class: "quiet" }, "A region, a department, an age group: sent as it is, so that you can count by it. The page says so."),
    h("div", {}, cards),
    h("p", {}, button("Add a public question", () => {
      const row = newOpenly();
      openly.push(row);
      redraw(`${row.key}-text`);
    }, { class: "button plain small", id: "add-openly" })));
}

function plainAnswers(row, changed, redraw) {
  const adder = `${row.key}-add`;
  const { list, insert } = answerRows(row.answers, { changed, redraw, adder, fresh: () => newAnswer() });
  return h("div", { "data-part": `${row.key}-answers` }, list, button("Add an answer", () => insert(row.answers.length, newAnswer()),
    { class: "button plain small", id: adder }));
}

const ABOUT = [
  ["organiser", "Who asks?", "City of Ghent", {}],
  ["purpose", "What for?", "To plan the offers of the health service.", { lines: 2 }],
  ["contact", "Whom can people ask?", "survey@example.org", {}],
  ["notice", "Address of the privacy notice", "https://example.org/privacy", { type: "url" }],
  ["consent", "What do people agree to by sending?", "", { lines: 2 }],
];

/** Who asks, what for, from when to when. */
function aboutPart(model, { changed, redraw }) {
  const { about, questions } = model;
  const most = questions.length + model.crosses.length;
  const count = { answers: String(model.answers) };
  const setCount = () => {
    model.answers = /^\d+$/.test(count.answers) ? Number(count.answers) : count.answers;
    redraw("how-many");
  };
  const counts = [
    ...Array.from({ length: most }, (_, k) => [String(k + 1), k ? `${k + 1} of ${most}` : `1 of ${most} (most exact for most surveys)`]),
    ["auto", "as many as give the smallest error"], ["all", "all of them"],
  ];
  return h("section", { class: "part" }, h("h2", {}, "About the survey"), h("div", { class: "card" },
    field("Name in the link", textInput(model, "name", changed, { id: "survey-name", spellcheck: "false", dir: "ltr" }),
      { where: "name", note: "short, without slashes; it cannot be changed later" }),
    most > 1 && field("How many questions does each person answer?", choice(count, "answers", counts, setCount, { id: "how-many" }),
      { where: "answers", note: "drawn by their device; a person who answers fewer is protected more by each" }),
    ABOUT.map(([key, label, placeholder, more]) => {
      return field(label, textInput(about, key, changed, { placeholder, ...more }), { where: `about.${key}` });
    }),
    h("div", { class: "pair" },
      field("Opens", timeInput(about, "opens", changed), { where: "about.opens", note: "empty: at once" }),
      field("Closes", timeInput(about, "closes", changed), { where: "about.closes", note: "empty: when you close it" })),
    h("div", { class: "pair" },
      field("Language of the questions", textInput(about, "language", changed, { placeholder: "en", dir: "ltr" }), { where: "about.language" }),
      field("Show results to others from", numberInput(about, "minimum", changed, { min: 50, placeholder: "50" }),
        { where: "about.minimum", note: "reports; 50 at least" }))));
}

/** Other languages. */
function languagesPart(model, { changed, redraw }) {
  const next = { tag: "" };
  const add = () => {
    const tag = next.tag.trim();
    if (!tag || model.languages.includes(tag)) return;
    model.languages.push(tag);
    model.aboutWords[tag] = {};
    redraw(`language-${tag}`);
  };
  const cards = model.languages.map((tag) => {
    const remove = button("Remove", () => {
      model.languages = model.languages.filter((one) => one !== tag);
      redraw("new-language");
    }, { class: "button plain small", "aria-label": `Remove the language ${tag}` });
    const line = (row, name, label) => label.trim() && field(label, textInput(row, name, changed, { lang: tag }));
    const words = (row) => [
      line(row.words, tag, row.text), ...row.answers.map((answer) => line(answer.words, tag, answer.text)),
    ];
    const told = ABOUT.filter(([key]) => model.about[key])
      .map(([key]) => line(model.aboutWords[tag], key, model.about[key]));
    return h("article", { class: "card translation", "data-where": "translations" },
      h("div", { class: "row top" }, h("h3", { id: `language-${tag}`, tabindex: "-1" }, languageName(tag)), remove),
      h("p", { class: "quiet" }, "What you leave empty is shown as it is."),
      [...model.questions, ...model.openly].map(words), told);
  });
  return h("section", { class: "part" }, h("h2", {}, "Other languages"), cards,
    h("div", { class: "row add-language" },
      field("Add a language", textInput(next, "tag", () => {}, {
        id: "new-language", placeholder: "de", dir: "ltr",
        onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); add(); } },
      })), button("Add", add, { class: "button plain small" })));
}

function languageName(tag) {
  try {
    return `${new Intl.DisplayNames("en", { type: "language" }).of(tag)} (${tag})`;
  } catch {
    return tag;
  }
}

// ---- panel.js -----------------------------------------------------------------------------------

// Beside the form: what so many people will be able to tell you, the participant's page, the file.

const MOST_LEVELS = 8; // that have a bar
const PEOPLE = "discreet-people"; // the key of the number of people in this tab

/** What N people will be able to tell you. */
function drawForecast(told, groups, words) {
  const { questions, caution, promise } = told;
  const several = questions.length > 1;
  $("forecast").replaceChildren(h("div", {},
    caution && h("p", { class: "card problem" }, caution),
    ...questions.map((question) => h("article", { class: "told" },
      several && h("h3", {}, question.text || question.name),
      several && h("p", { class: "quiet" }, `about ${figure(question.people)} of them answer this`),
      h("ul", { class: "sees" }, question.levels.slice(0, MOST_LEVELS).map((level, k) => sees(level, colour(level, k, words), question.levels.length))),
      question.levels.length > MOST_LEVELS
        && h("p", { class: "quiet" }, `and ${question.levels.length - MOST_LEVELS} more levels`),
      question.warnings.map((warning) => h("p", { class: "wrong" }, warning)),
      h("details", {}, h("summary", {}, "Exactly"), h("ul", {}, question.sentences.map((one) => h("li", {}, one)))))),
    groups && h("p", { class: "quiet" }, groups),
    caution ? "" : h("div", { class: "promise" }, h("p", { class: "quiet" }, "What people are promised"), h("p", {}, promise)),
    h("p", { class: "quiet" }, `Fingerprint ${told.fingerprint.slice(0, 16)}…`),
  ));
}

/** The colour of a level: that of its word in the form. */
function colour({ name }, k, words) {
  const place = words.findIndex((word) => word.name === name);
  return place < 0 ? k % 8 : place;
}

/** In a few words, from which share on answers will show. */
function summary({ users, questions }) {
  const shares = questions.flatMap(({ levels }) => levels.map(({ sees: share }) => share));
  const [least, most] = [Math.min(...shares), Math.max(...shares)].map(percentOf);
  if (Math.min(...shares) >= 1) return `${figure(users)} people are too few: nothing will show.`;
  const range = least === most ? `${least} %` : `${least} to ${most} %`;
  return `With ${figure(users)} people, an answer shows from ${range} on.`;
}

function percentOf(share) {
  const percent = 100 * share;
  return percent >= 9.95 ? percent.toFixed(0) : percent.toPrecision(2);
}

/** From which share on an answer of a level is seen, as a bar: what lies in the grey is missed. */
function sees({ name, factor, sees: share }, k, count) {
  const bar = h("span", { class: "see", "aria-hidden": "true" }, h("i", { class: `level-${k}` }));
  bar.firstChild.style.width = `${Math.max(1, 100 - 100 * share)}%`;
  const said = share >= 1 ? "too few people: nothing will show" : `shows if at least ${percentOf(share)} % have it`;
  return h("li", {},
    h("div", { class: "row top" }, h("strong", {}, count > 1 ? name : "Every answer"),
      h("span", { class: "chip" }, factor === null ? "no limit" : `odds × ${Number(factor.toPrecision(3))}`)),
    bar, h("span", { class: "quiet" }, said));
}

/** The participant's page with this draft; it is loaded anew if the draft has changed. */
function drawPreview(preview) {
  const text = JSON.stringify(preview);
  if (!preview || (text === window.sessionStorage.getItem("discreet-preview") && $("preview").src)) return;
  window.sessionStorage.setItem("discreet-preview", text);
  if ($("preview-tab").getAttribute("aria-selected") === "true") loadPreview();
  else $("preview").dataset.old = "";
}

/** Show the preview. In a frame, so that it is as narrow as a telephone. */
function loadPreview() {
  const preview = JSON.parse(window.sessionStorage.getItem("discreet-preview") ?? "null");
  if (!preview) return;
  delete $("preview").dataset.old;
  const frame = h("iframe", {
    id: "preview", title: "Preview of the participant’s page",
    src: `/desk/preview/c/${encodeURIComponent(preview.name)}#${preview.fingerprint}`,
  });
  $("preview").replaceWith(frame);
}

/** The file as text; it can be changed, opened and downloaded. */
function filePart(name, use) {
  const area = h("textarea", { id: "toml", spellcheck: "false", dir: "ltr", rows: 22, "aria-label": "The survey file" });
  const open = h("input", {
    type: "file", accept: ".toml,.json,text/plain", id: "file", class: "hidden",
    onchange: async ({ target }) => {
      if (target.files[0]) use(await target.files[0].text());
      target.value = "";
    },
  });
  return h("div", { "data-where": "file" }, area, h("p", { class: "row" },
    button("Use this text", () => use(area.value), { class: "button plain small", id: "use-file" }),
    button("Download", () => download(`${name()}.toml`, area.value, "application/toml"), { class: "button plain small", id: "save-file" }),
    h("label", { for: "file", class: "button plain small" }, "Open a file"), open),
  h("p", { class: "quiet" }, "Everything about the survey is in this file. ", h("code", {}, "discreet serve"), " takes the same one."));
}

/** The content of a survey file that is a text. */
const openFile = async (toml) => (await call("/open", { toml })).document;

/** Tabs: one panel at a time; the arrow keys move between them. */
function tabs(named) {
  const select = (id, focus) => {
    for (const [other] of named) {
      const tab = $(`${other}-tab`);
      tab.setAttribute("aria-selected", other === id);
      tab.tabIndex = other === id ? 0 : -1;
      $(`${other}-panel`).hidden = other !== id;
    }
    if (focus) $(`${id}-tab`).focus();
    if (id === "preview" && (!$("preview").src || $("preview").dataset.old === "")) loadPreview();
  };
  const step = { ArrowLeft: -1, ArrowRight: 1 };
  const list = h("div", { role: "tablist", class: "tabs", "aria-label": "Beside the form" }, named.map(([id, label], k) => {
    return h("button", {
      type: "button", role: "tab", id: `${id}-tab`, "aria-controls": `${id}-panel`, "aria-selected": String(!k), tabindex: k ? "-1" : "0",
      onclick: () => select(id), onkeydown: ({ key }) => step[key] && select(named.at((k + step[key]) % named.length)[0], true),
    }, label);
  }));
  const panels = named.map(([id, , content], k) => {
    return h("div", { role: "tabpanel", id: `${id}-panel`, "aria-labelledby": `${id}-tab`, hidden: k > 0 }, content);
  });
  return h("div", { class: "side" }, list, panels);
}

// ---- question.js --------------------------------------------------------------------------------

// The card of a question: its words, its answers in the order in which people see them, and how
// sensitive each of them is.

const KINDS = [
  ["single", "One answer"],
  ["scale", "One answer on a scale, in order"],
  ["set", "Several answers, the list protected as a whole"],
  ["each", "Several answers, each protected by itself"],
];
const MOST_ROWS = 500; // of answers in the form
const BASE = "hardly sensitive"; // of a new answer

/** How far odds can move, from a budget as a file has it: "ln(3)", 1.2 or "1.2". */
function factorOf(epsilon) {
  const log = /^\s*ln\(\s*([\d.]+)(?:\/([\d.]+))?\s*\)\s*$/.exec(String(epsilon));
  const factor = log ? log[1] / (log[2] ?? 1) : Math.exp(Number(epsilon));
  return Number.isFinite(factor) ? String(Number(factor.toPrecision(3))) : "?";
}

function questionCard(model, question, k, { words, steps, changed, redraw }) {
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

// ---- todo.js ------------------------------------------------------------------------------------

// What a draft lacks. The line at the foot says it at once and calmly. Beside a field it is said
// once the person has left the field, or has tried to publish.

const SAID = 2; // at the foot, before "and more"
let isPressed = false; // a button of the mouse, or a finger

for (const [type, value] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
  document.addEventListener(type, () => { isPressed = value; }, true);
}

/** After the press that took the focus away: what is said moves the form under the pointer. */
function afterPress(work) {
  if (isPressed) document.addEventListener("pointerup", () => setTimeout(work), { once: true });
  else setTimeout(work);
}

const placeOf = (part) => document.querySelector(`[data-part="${part}"]`);

/** What is missing in a card: `part` is its place in the form, `input` the field to go on with. */
function missingIn({ row, where, name, others, least }) {
  const { key, answers } = row;
  const written = answers.filter(({ text }) => text.trim()).length;
  const next = answers.find(({ text }) => !text.trim()) ?? answers[0];
  const [count, to] = [least > 1 ? "at least two answers" : "an answer", others ? ` to ${name}` : ""];
  return [
    !row.text.trim() && !(row.kind && row.name.trim()) // a protected question may have its name alone
      && { where, part: `${key}-words`, input: `${key}-text`, sentence: "Write what you ask.", todo: `write ${name}` },
    written < least
      && { where, part: `${key}-answers`, input: `${next.key}-text`, sentence: `Write ${count}.`, todo: `write ${count}${to}` },
  ].filter((one) => one);
}

class Todo {
  #model;
  #left = new Set(); // parts of the form that the person has left

  constructor(model) {
    this.#model = model;
  }

  /** In the order of the form. */
  missing() {
    const { questions, openly } = this.#model;
    const others = questions.length + openly.length > 1;
    return [
      ...questions.map((row, k) => ({
        row, where: `question.${k}`, others, name: questions.length > 1 ? `question ${k + 1}` : "the question",
        least: ["set", "each"].includes(row.kind) ? 1 : 2,
      })),
      ...openly.map((row, k) => ({ row, where: `public.${k}`, others, name: `public question ${k + 1}`, least: 2 })),
    ].flatMap(missingIn);
  }

  /** One line. */
  summary() {
    const listed = this.missing().map(({ todo }) => todo);
    const more = listed.length - SAID;
    return `To do: ${listed.slice(0, SAID).join(", ")}${more > 0 ? `, and ${more} more` : ""}.`;
  }

  /** The focus has left an element of the form. */
  leave(element) {
    const part = element.closest("[data-part]")?.dataset.part;
    if (!part) return;
    afterPress(() => {
      const place = placeOf(part); // the form may have been drawn anew
      if (!place || place.contains(document.activeElement)) return; // gone, or the person is still there
      this.#left.add(part);
      this.show();
    });
  }

  /** Say beside the fields what is missing in those that the person has left. */
  show() {
    for (const said of document.querySelectorAll(".missing-here")) said.remove();
    for (const input of document.querySelectorAll('[aria-describedby^="missing-"]')) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    for (const { part, input, sentence } of this.missing()) {
      const place = this.#left.has(part) && placeOf(part);
      if (!place) continue;
      const id = `missing-${part}`;
      place.append(h("p", { class: "wrong missing-here", id }, sentence));
      $(input).setAttribute("aria-invalid", "true");
      $(input).setAttribute("aria-describedby", id);
    }
  }

  /** Whether something is missing: it is said then, and the first such field has the focus. */
  refuses() {
    const all = this.missing();
    for (const { part } of all) this.#left.add(part);
    this.show();
    if (all.length) $(all[0].input)?.focus();
    return all.length > 0;
  }
}

// ---- editor.js ----------------------------------------------------------------------------------

// The form of a survey that is not published yet. It lives in this tab alone.

const DRAFT = "discreet-draft"; // the key of the draft in this tab
const PAUSE = 350; // milliseconds after the last change until the draft is checked

/** The draft that this tab has, as a file's content; or null. */
function storedDraft() {
  return JSON.parse(window.sessionStorage.getItem(DRAFT) ?? "null");
}

class Editor {
  #model;
  #todo; // what the draft lacks
  #start; // words and templates, from the collector
  #timer;
  #asking; // the request under way
  #checked = null; // what the collector said of the draft as it is now
  #people = { users: Number(window.sessionStorage.getItem(PEOPLE)) || 1000 };
  #leave; // (name) => void: go to the page of a survey

  constructor(start, leave) {
    this.#start = start;
    this.#leave = leave;
  }

  /** Show the form of a survey file's content. */
  open(file) {
    this.#model = fromFile(file);
    this.#todo = new Todo(this.#model);
    this.#build();
    show("edit");
    this.#changed();
  }

  /** Open a survey file that is a text. */
  async openText(toml) {
    try {
      this.open(await openFile(toml));
      announce("Opened.");
    } catch (error) {
      this.#wrong({ where: "file", detail: error.message });
      if (!$("file-panel")) complain(error.message);
    }
  }

  #build() {
    const people = numberInput(this.#people, "users", () => {
      window.sessionStorage.setItem(PEOPLE, this.#people.users);
      this.#changed();
    }, { id: "people", min: 1, max: 1_000_000_000 });
    const presets = [100, 1_000, 10_000, 100_000].map((n) => button(figure(n), () => {
      people.value = n;
      people.dispatchEvent(new Event("input"));
    }, { class: "button plain small" }));
    const forecast = h("div", {}, h("h2", {}, "What people will be able to tell you"),
      field("If so many people take part", people), h("p", { class: "row" }, presets),
      h("div", { id: "forecast" }, h("p", { class: "quiet" }, "Write a question and its answers. Then you see here how many people must give an answer before it shows.")));
    const preview = h("div", {}, h("p", { class: "quiet" }, "The real page. Nothing is sent or stored: try it."),
      h("div", { class: "phone" }, h("iframe", { id: "preview", title: "Preview of the participant’s page" })));
    const beside = tabs([
      ["learn", "What you learn", forecast], ["preview", "Preview", preview],
      ["file", "File", filePart(() => this.#model.name, (toml) => this.openText(toml))],
    ]);
    const bar = h("div", { class: "bar foot" }, h("p", { id: "checked", role: "status" }), h("span", { class: "row" },
      button("Try it…", () => this.#rehearse(), { id: "try", class: "button plain" }),
      button("Publish…", () => this.#publish(), { id: "publish" })));
    $("edit").replaceChildren(h("div", { class: "two" }, h("form", { id: "form", autocomplete: "off", novalidate: true }), beside), bar);
    $("form").addEventListener("submit", (event) => event.preventDefault());
    $("form").addEventListener("focusout", ({ target }) => this.#todo.leave(target));
    this.#draw();
  }

  /** Draw the form again, and give the focus to this element. */
  #draw(focus) {
    const model = this.#model;
    const { sensitivities: words, steps } = this.#start;
    const tools = {
      words, steps, changed: () => this.#changed(), redraw: (next) => { this.#draw(next); this.#changed(); },
    };
    const add = button("Add a question", () => {
      const question = newQuestion(words);
      model.questions.push(question);
      tools.redraw(`${question.key}-text`);
    }, { id: "add-question", class: "button plain" });
    $("form").replaceChildren(
      h("section", { class: "part" }, h("h1", { tabindex: "-1", id: "edit-title" }, "Your survey"), this.#help(),
        h("div", {}, model.questions.map((question, k) => questionCard(model, question, k, tools))), h("p", {}, add)),
      openlyPart(model, tools), aboutPart(model, tools), languagesPart(model, tools),
    );
    if (focus) $(focus)?.focus();
  }

  #help() {
    const rows = this.#start.sensitivities.map(({ name, factor, when }, k) => {
      return h("tr", { class: `level-${k}` }, h("th", { scope: "row" }, h("i", { class: "dot" }), ` ${name}`), h("td", {}, when), h("td", {}, `odds × ${factor}`));
    });
    return h("details", {}, h("summary", {}, "How sensitive is an answer?"),
      h("table", { class: "promises" }, h("tbody", {}, rows)),
      h("p", { class: "quiet" }, "“Odds × 3” means: whoever sees a report can change the odds between two answers by a factor of 3 at most, whatever they know. A more sensitive answer is mixed with more chance, so it takes more people to see it. “None of these” hardly needs protection."));
  }

  // ---- checking

  /** The draft has changed: keep it in this tab, and ask the collector what it says. */
  #changed() {
    window.sessionStorage.setItem(DRAFT, JSON.stringify(this.#file()));
    this.#asking?.abort(); // what it says is about an earlier draft
    this.#checked = null;
    for (const id of ["try", "publish"]) $(id).disabled = true;
    $("checked").textContent = "Checking…";
    this.#todo.show();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), PAUSE);
  }

  #file() {
    return toFile(this.#model, this.#start.sensitivities);
  }

  async #check() {
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    try {
      const told = await call("/draft", { document: this.#file(), people: this.#people.users }, { signal });
      if (signal.aborted) return;
      const isMissing = this.#todo.missing().some(({ where }) => where === told.problem?.where);
      this.#wrong(isMissing ? null : told.problem);
      if (isMissing) this.#ready();
      if (told.problem) return;
      this.#checked = told;
      $("toml").value = told.toml;
      drawForecast(told.forecast, told.groups, this.#start.sensitivities);
      drawPreview(told.preview);
      if (told.taken) this.#wrong({ where: "name", detail: "There is another survey of this name. Choose another one." });
      else this.#ready(summary(told.forecast));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) this.#leave("", error);
      $("checked").textContent = error.message;
    }
  }

  /** Nothing is wrong; something may still be missing. */
  #ready(sentence) {
    $("checked").textContent = this.#todo.missing().length ? this.#todo.summary() : sentence;
    for (const id of ["try", "publish"]) $(id).disabled = false;
  }

  /** Say what is wrong beside the field where it is wrong. */
  #wrong(problem) {
    for (const said of document.querySelectorAll(".wrong-here")) said.remove();
    for (const input of document.querySelectorAll("[aria-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    this.#todo.show();
    if (!problem) return;
    const { where, detail } = problem;
    const place = where && document.querySelector(`[data-where="${CSS.escape(where)}"]`);
    $("checked").textContent = place ? "Something is wrong: see the form." : asSentence(detail);
    if (where === "file") $("checked").textContent = "The text of the file is wrong.";
    if (!place) return;
    place.append(h("p", { class: "wrong wrong-here", id: "wrong-here", role: "alert" }, asSentence(detail)));
    const input = place.querySelector("input, select, textarea");
    input?.setAttribute("aria-invalid", "true");
    input?.setAttribute("aria-describedby", "wrong-here");
  }

  // ---- trying and publishing

  /** What is sent is what was shown: the collector compares the fingerprints. */
  #shown() {
    const { toml, forecast } = this.#checked;
    return { toml, fingerprint: forecast.fingerprint };
  }

  async #rehearse() {
    if (this.#todo.refuses()) return;
    const wanted = { people: 500 };
    const most = this.#start.rehearsed;
    const made = await ask("Try it with simulated people", [
      h("p", {}, "Simulated people answer a copy of your survey. The copy has another name and another fingerprint, and says “Rehearsal” everywhere. Nothing of it can be counted with real answers. Anybody who opens this server's list sees it, with your questions."),
      field("How many people?", numberInput(wanted, "people", () => {}, { min: 1, max: most, required: true })),
    ], "Try it", () => call("/rehearsals", { ...this.#shown(), ...wanted }));
    if (made) this.#leave(made.name);
  }

  async #publish() {
    if (this.#todo.refuses()) return;
    const options = { reports: false };
    const keep = h("input", { type: "checkbox", onchange: ({ target }) => { options.reports = target.checked; } });
    const made = await ask(`Publish “${this.#model.name}”?`, [
      h("p", {}, "From then on people can answer, and nothing of the survey can change: they answer under this promise."),
      h("p", {}, "Keep the file, too: download it under “File”."),
      this.#start.open_results && h("p", {}, "This collector shows results to everybody, in batches."),
      h("label", { class: "row check" }, keep, h("span", {}, "Also keep the reports, so that others can count them again. Answers are mixed with chance in them, but for those to public questions.")),
    ], "Publish", () => call("/surveys", { ...this.#shown(), keep: options.reports ? "reports" : "counts" }));
    if (!made) return;
    window.sessionStorage.removeItem(DRAFT);
    this.#leave(made.name);
  }
}

// ---- list.js ------------------------------------------------------------------------------------

// The list of surveys, and the beginning of a new one.

const STATES = { open: "open", upcoming: "not open yet", closed: "closed" };

const stateChip = ({ state, rehearsal, damaged }) => [
  rehearsal && h("span", { class: "chip rehearsal" }, "rehearsal"),
  h("span", { class: `chip state ${state}` }, damaged ? "damaged" : STATES[state]),
];

/** How many reports there are; few are not counted. */
const countOf = ({ n, least }) => (n === null ? `fewer than ${figure(least)}` : figure(n));

const datesOf = ({ opens, closes, state }) => [
  opens && state === "upcoming" && `opens ${localTime(opens)}`, closes && `${state === "closed" ? "closed" : "closes"} ${localTime(closes)}`,
].filter((x) => x).join(", ");

async function drawList() {
  const told = await call("/surveys");
  const { surveys, unreadable } = told;
  const text = JSON.stringify(told);
  if ($("surveys").dataset.told === text) return; // so that nobody loses their place
  $("surveys").dataset.told = text;
  const real = surveys.filter(({ rehearsal }) => !rehearsal);
  const tried = surveys.filter(({ rehearsal }) => rehearsal);
  const empty = h("div", { class: "card empty" }, h("h2", {}, "No survey yet"),
    h("p", {}, "Write your first one: you see what it will tell you before anybody is asked."),
    h("p", {}, h("a", { class: "button", href: "#new" }, "New survey")));
  $("surveys").replaceChildren(
    ...surveys.length ? [] : [empty],
    ...real.length ? [surveyCards(real)] : [],
    ...tried.length ? [h("h2", {}, "Rehearsals"), surveyCards(tried)] : [],
    ...unreadable.map((name) => h("p", { class: "card problem" }, `“${name}” cannot be read: its survey is damaged.`)),
  );
}

function surveyCards(surveys) {
  return h("ul", { class: "surveys" }, surveys.map((one) => h("li", { class: "card" },
    h("div", { class: "who" },
      h("h3", {}, h("a", { href: `#survey/${encodeURIComponent(one.name)}` }, one.title)),
      h("p", { class: "quiet" }, [one.title === one.name ? "" : one.name, datesOf(one)].filter((x) => x).join(" · ")),
      h("p", { class: "row" }, stateChip(one))),
    h("p", { class: "count" }, h("strong", {}, countOf(one)), h("span", { class: "quiet" }, one.n === 1 ? "report" : "reports")),
    h("p", { class: "row go" }, h("a", { class: "button plain small", href: one.results }, "Results")))));
}

/** Templates, an empty survey, or a file. */
function drawNew({ templates }, { begin, empty, stored }) {
  const open = h("input", {
    type: "file", accept: ".toml,.json,text/plain", id: "open-file", class: "hidden",
    onchange: async ({ target }) => {
      if (target.files[0]) begin(await target.files[0].text());
      target.value = "";
    },
  });
  const card = (title, about, work) => h("li", {}, h("button", { type: "button", class: "card template", onclick: work },
    h("strong", {}, title), h("span", { class: "quiet" }, about)));
  $("new").replaceChildren(h("h1", { tabindex: "-1" }, "New survey"),
    h("p", { class: "lead" }, "Begin with an example, and change what you like. Nothing is stored on the server until you publish."),
    h("ul", { class: "templates" },
      stored && card("Go on", "with the survey that you were writing in this tab", stored),
      card("Empty", "one question, two answers", empty),
      templates.map(({ about, toml }) => {
        const [title, ...rest] = about.split(": ");
        return card(title, rest.join(": "), () => begin(toml));
      })),
    h("p", { class: "row" }, h("label", { for: "open-file", class: "button plain" }, "Open a survey file"), open,
      button("Back", () => { window.location.hash = ""; }, { class: "button plain" })));
  show("new");
}

// ---- survey.js ----------------------------------------------------------------------------------

// The page of one survey: share it, watch it, close and reopen it, take its counts along, delete it.

/** Draw the page; it is drawn once, and its count is brought up to date. */
function drawSurvey(survey, leave, draft = false) {
  const { title, name, rehearsal } = survey;
  const warning = "A rehearsal: simulated people answer, and nothing here is real. It shows the form of your results, not what people will say.";
  const back = draft ? h("a", { href: "#edit" }, "Back to your survey") : h("a", { href: "#" }, "All surveys");
  $("survey").replaceChildren(
    h("p", { class: "quiet" }, rehearsal ? back : h("a", { href: "#" }, "All surveys")),
    h("h1", { tabindex: "-1" }, title),
    ...rehearsal ? [h("p", { class: "card problem" }, warning)] : [],
    h("div", { class: "two" }, h("div", {}, statePart(survey), !rehearsal && sharePart(survey), promisePart(survey)),
      h("div", {}, runPart(survey, leave))),
  );
  update(survey);
  $("survey").dataset.name = name;
}

/** Bring the numbers up to date. */
function update(survey) {
  $("n").textContent = countOf(survey);
  $("n-note").textContent = survey.n === null ? `reports: you see the number from ${survey.least} on` : "reports";
  $("state").replaceChildren(...stateChip(survey).filter((x) => x));
  $("dates").textContent = datesOf(survey);
}

function statePart({ results, open_results: open, least }) {
  const everybody = `This collector shows results to everybody, in batches of ${least} reports or more.`;
  return h("div", { class: "card now" },
    h("p", { class: "count" }, h("strong", { id: "n" }), h("span", { class: "quiet", id: "n-note" })),
    h("p", { class: "row", id: "state" }), h("p", { class: "quiet", id: "dates" }),
    h("p", {}, h("a", { class: "button", href: results }, "See the results")),
    open && h("p", { class: "quiet everybody" }, everybody));
}

function sharePart({ name, invitation, fingerprint, button: snippet }) {
  const file = (rest) => `/desk${pathOf(name, rest)}`;
  const link = h("input", { type: "text", readonly: true, value: invitation, id: "link", "aria-label": "Invitation", dir: "ltr" });
  const html = h("textarea", { readonly: true, rows: 4, id: "snippet", "aria-label": "HTML of a link button", dir: "ltr" }, snippet);
  const here = /^https?:\/\/(localhost|127\.|\[::1\])/.test(invitation);
  return h("div", { class: "card share" }, h("h2", {}, "Invite people"),
    h("p", {}, "Send everybody the whole link. The part after # is the fingerprint: with it, the page refuses a survey that was changed."),
    h("div", { class: "row" }, link, button("Copy", () => copy(invitation, link), { class: "button small" })),
    here && h("p", { class: "wrong" }, "This link works on this machine only. Start the collector with --public-url, or with --lan to try it on a telephone."),
    h("div", { class: "code" }, h("img", { src: file("/code.svg"), alt: "QR code of the invitation", width: 180, height: 180 }),
      h("ul", { class: "plain" }, [["/poster", "Poster to print"], ["/code.png", "Code as PNG"], ["/code.svg", "Code as SVG"]].map(([rest, label]) => {
        return h("li", {}, h("a", { href: file(rest), target: "_blank", rel: "noopener", download: rest === "/poster" ? null : `${name}${rest.slice(5)}` }, label));
      }))),
    h("details", {}, h("summary", {}, "A button for your website"), html, h("p", {}, button("Copy the HTML", () => copy(snippet, html), { class: "button plain small" }))),
    h("details", {}, h("summary", {}, "Fingerprint, to publish elsewhere"),
      h("p", {}, "Print it where the server cannot change it: in a letter, on your website. People can compare it on the page."),
      h("code", { class: "bytes" }, fingerprint.match(/.{4}/g).join(" "))));
}

function promisePart({ promise, caution }) {
  return h("details", { class: "card" }, h("summary", {}, "What people are promised"),
    caution && h("p", { class: "wrong" }, caution), h("ul", {}, promise.map((one) => h("li", {}, one))));
}

function runPart(survey, leave) {
  const { name, state, history, keeps, moved, rehearsal, closes } = survey;
  const file = (rest) => `/desk${pathOf(name, rest)}`;
  const isOver = closes && Date.parse(closes) <= Date.now();
  const act = (what, done) => async () => {
    const made = await call(pathOf(name, `/${what}`), {});
    announce(done);
    drawSurvey(made, leave);
    return made;
  };
  const close = () => ask(`Close “${name}”?`, h("p", {}, "It takes no more reports. Its counts stay, and you can reopen it while its results are not public."), "Close it", act("close", "Closed."));
  const reopen = () => act("reopen", "Open again.")().catch((error) => complain(error.message));
  return [
    h("div", { class: "card" }, h("h2", {}, "Run it"),
      h("p", { class: "row" },
        state !== "closed" && button("Close", close, { class: "button plain", id: "close" }),
        state === "closed" && !isOver && !moved && button("Reopen", reopen, { class: "button plain", id: "reopen" }),
        h("a", { class: "button plain", href: file("/export"), download: `${name}.zip`, id: "export" }, "Export the counts"),
        h("a", { class: "button plain", href: file("/backup"), download: `${name}.sqlite`, id: "backup" }, "Backup")),
      h("p", { class: "quiet" }, keeps === "reports" ? "The collector keeps the reports: others can count them again." : "The collector keeps the counts and the random numbers of the reports. A report itself is kept only until it is counted."),
      h("h3", {}, "What was done"),
      history.length ? h("ul", { class: "plain" }, history.map(({ time, what }) => h("li", {}, `${what} · ${time.replace("T", " ").replace("Z", " UTC")}`)))
        : h("p", { class: "quiet" }, "Nothing yet: published, and never closed.")),
    h("div", { class: "card" }, h("h2", {}, rehearsal ? "Remove the rehearsal" : "Delete it"),
      h("p", { class: "quiet" }, rehearsal ? "It can go at any time." : "The counts are gone for good. Backups that you made stay."),
      button(rehearsal ? "Remove" : "Delete…", () => deleteSurvey(survey, leave), { class: "button danger plain", id: "delete" })),
  ];
}

async function deleteSurvey({ name, rehearsal, state }, leave) {
  if (!rehearsal && state !== "closed") {
    complain("Close the survey before you delete it.");
    return;
  }
  const typed = h("input", { type: "text", id: "typed", autocomplete: "off", spellcheck: "false", "aria-label": "The survey’s name" });
  const content = rehearsal ? h("p", {}, "Simulated reports are deleted.")
    : [h("p", {}, "This cannot be taken back. Type the survey’s name: ", h("strong", {}, name)), typed];
  const gone = await ask(`Delete “${name}”?`, content, "Delete for good", async () => {
    await call(pathOf(name, "/delete"), { name: typed.value });
    return true;
  }, { danger: true });
  if (!gone) return;
  announce(`“${name}” is deleted.`);
  leave("");
}

const LOOK = 3_000; // milliseconds between two looks at the counts

let basics = null; // words and templates; null while nobody is logged in
let editor = null;

const fragment = () => window.location.hash.slice(1);

/** Go to the page of a survey, or to the list. */
function goTo(name, error) {
  if (error?.status === 401) {
    askToken("Your session is over. Log in again: your draft is still here.");
    return;
  }
  window.location.hash = name ? `survey/${encodeURIComponent(name)}` : "";
}

/** Draw what the address says. */
async function drawPlace() {
  complain();
  const [what, name] = fragment().split("/").map(decodeURIComponent);
  try {
    basics ??= await call("/start");
    document.body.classList.add("in");
    if (what === "new") offerNew();
    else if (what === "edit" && storedDraft()) newEditor().open(storedDraft());
    else if (what === "survey") {
      drawSurvey(await call(pathOf(name)), goTo, storedDraft() !== null);
      show("survey");
    } else if (what === "log") await drawLog();
    else {
      await drawList();
      show("list");
    }
    for (const link of document.querySelectorAll("nav a")) {
      const isHere = link.hash.slice(1) === (what === "edit" ? "new" : what);
      if (isHere) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.querySelector("#desk > section:not([hidden]) h1")?.focus();
    window.scrollTo(0, 0);
  } catch (error) {
    sayFailure(error);
  }
}

function sayFailure(error) {
  if (error.status === 401) askToken();
  else complain(error.message);
}

function newEditor() {
  editor = new Editor(basics, goTo);
  return editor;
}

/** Begin a survey with an example, an empty one or a file. */
function offerNew() {
  const begin = async (toml) => {
    const { document: file } = await call("/open", { toml }).catch((error) => {
      complain(error.message);
      return {};
    });
    if (file) writeSurvey(file);
  };
  const words = basics.sensitivities;
  const draft = storedDraft();
  drawNew(basics, { begin, empty: () => writeSurvey(toFile(newSurvey(words), words)), stored: draft && (() => writeSurvey(draft)) });
}

function writeSurvey(file) {
  complain();
  window.history.pushState(null, "", "#edit");
  newEditor().open(file);
  $("edit-title").focus();
}

async function drawLog() {
  const { lines } = await call("/log");
  $("lines").replaceChildren(...lines.reverse().map(({ time, level, event, ...facts }) => h("tr", { class: level },
    h("td", {}, time.replace("T", " ").replace("Z", "")), h("td", {}, event),
    h("td", {}, Object.entries(facts).map(([key, fact]) => `${key}: ${fact}`).join(", ")))));
  $("no-lines").hidden = lines.length > 0;
  show("log");
}

// ---- logging in and out

function askToken(problem = "") {
  basics = null;
  document.body.classList.remove("in");
  show("login");
  complain(problem);
  $("token").focus();
}

$("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  complain();
  const token = $("token").value;
  $("token").value = ""; // it is not kept in the page
  try {
    await call("/login", { token });
  } catch (error) {
    complain(error.message);
    $("token").focus();
    return;
  }
  await drawPlace();
});

$("logout").addEventListener("click", async () => {
  try {
    await call("/logout", {});
    window.sessionStorage.clear();
    window.location.hash = "";
    askToken();
    announce("You are logged out.");
  } catch (error) {
    complain(error.message);
  }
});

// ---- live counts

async function lookAgain() {
  const [what, name] = fragment().split("/").map(decodeURIComponent);
  if (!document.hidden && basics) {
    try {
      if (what === "" && !$("list").hidden) await drawList();
      const isShown = what === "survey" && !$("survey").hidden;
      if (isShown) update(await call(pathOf(name)));
    } catch (error) {
      sayFailure(error);
    }
  }
  setTimeout(lookAgain, LOOK);
}

window.addEventListener("hashchange", drawPlace);
drawPlace();
setTimeout(lookAgain, LOOK);
