// The list of surveys, and the beginning of a new one.
import { call } from "./api.js";
import { $, button, h, figure, show, localTime } from "./dom.js";

const STATES = { open: "open", upcoming: "not open yet", closed: "closed" };

export const stateChip = ({ state, rehearsal, damaged }) => [
  rehearsal && h("span", { class: "chip rehearsal" }, "rehearsal"),
  h("span", { class: `chip state ${state}` }, damaged ? "damaged" : STATES[state]),
];

/** How many reports there are; few are not counted. */
export const countOf = ({ n, least }) => (n === null ? `fewer than ${figure(least)}` : figure(n));

export const datesOf = ({ opens, closes, state }) => [
  opens && state === "upcoming" && `opens ${localTime(opens)}`, closes && `${state === "closed" ? "closed" : "closes"} ${localTime(closes)}`,
].filter((x) => x).join(", ");

export async function drawList() {
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
export function drawNew({ templates }, { begin, empty, stored }) {
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
