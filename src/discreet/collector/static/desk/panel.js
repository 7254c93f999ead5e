// Beside the form: what so many people will be able to tell you, the participant's page, the file.
import { call } from "./api.js";
import { $, button, download, h, figure } from "./dom.js";

const MOST_LEVELS = 8; // that have a bar
export const PEOPLE = "discreet-people"; // the key of the number of people in this tab

/** What N people will be able to tell you. */
export function drawForecast(told, groups, words) {
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
export function summary({ users, questions }) {
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
export function drawPreview(preview) {
  const text = JSON.stringify(preview);
  if (!preview || (text === window.sessionStorage.getItem("discreet-preview") && $("preview").src)) return;
  window.sessionStorage.setItem("discreet-preview", text);
  if ($("preview-tab").getAttribute("aria-selected") === "true") loadPreview();
  else $("preview").dataset.old = "";
}

/** Show the preview. In a frame, so that it is as narrow as a telephone. */
export function loadPreview() {
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
export function filePart(name, use) {
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
export const openFile = async (toml) => (await call("/open", { toml })).document;

/** Tabs: one panel at a time; the arrow keys move between them. */
export function tabs(named) {
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
