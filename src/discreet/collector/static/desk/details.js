// The rest of the form: public questions, who asks, dates, languages.
import { answerRows } from "./answers.js";
import { button, h } from "./dom.js";
import { choice, field, numberInput, textInput, timeInput } from "./fields.js";
import { newAnswer, newOpenly } from "./model.js";
import { ordering } from "./order.js";

/** Questions that are answered openly. */
export function openlyPart(model, { changed, redraw }) {
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
export function aboutPart(model, { changed, redraw }) {
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
export function languagesPart(model, { changed, redraw }) {
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
