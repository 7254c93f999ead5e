// The page around its tables.
import { drawCross, drawGroups } from "./cross.js";
import { $, element, setOptions, tell } from "./dom.js";
import { viewOf } from "./rows.js";
import { choose, isPublic, keyOf, shown, state } from "./state.js";
import { drawTable } from "./table.js";
import { figure, localTime, roughly, text, whole } from "./words.js";
import { groupOf, labels, nameOf, wordsOf } from "./wording.js";

const EVENTS = {
  closed: "wasClosed", "closed by its date": "wasClosedByDate", reopened: "wasReopened",
  moved: "wasMoved",
};
// by the name of the view, "" for the counts themselves: what it is called here
const VIEWS = { "": "counted", shrunk: "shrunk", consistent: "consistent" };
const CONFIDENCES = ["0.8", "0.9", "0.95", "0.99"];
const SEARCHED = 9; // answers, from which on one searches
const CARDS = 24; // levels that get a card

export function draw() {
  const { groups } = state.estimate;
  if (state.chosen.group && !groups.some((group) => keyOf(group) === state.chosen.group)) {
    choose({ group: "" }, false);
    state.badLink = true;
  }
  const isFirst = !$("token").hidden;
  $("token").hidden = true;
  $("numbers").hidden = false;
  if (isFirst) document.querySelector("h1").focus(); // the form that had it is gone
  $("bad-link").hidden = !state.badLink;
  $("rehearsal").hidden = !state.estimate.rehearsal;
  drawChoices();
  drawViews();
  drawWords();
  drawExactness();
  drawTables();
}

/** What a filter changes. */
export function drawTables() {
  const { telling, items } = shown();
  const isNoise = !telling && !state.noise;
  $("data").hidden = !items.length || isNoise;
  $("show-noise").hidden = !items.length || !isNoise;
  for (const button of document.querySelectorAll(".picture")) button.hidden = !telling;
  $("search").hidden = items.length < SEARCHED && !state.chosen.find;
  if ($("data").hidden) return;
  drawCross();
  drawGroups();
  drawTable();
}

/** How many reports; of what is not shown to everybody, fewer than that. */
function howMany(n) {
  return isPublic() && !n ? text("fewer", { n: state.estimate.least }) : whole(n);
}

/** Which question, by which public question, and which of its groups. */
function drawChoices() {
  const { asked, question, public: openly, groups } = state.estimate;
  const several = asked.length > 1;
  const mine = asked.find(({ name }) => name === question);
  $("choices").hidden = !several && !openly.length;
  $("questions").hidden = !several;
  tell("asked", several ? wordsOf(mine) : "");
  const title = document.querySelector("h1");
  if (!several) title.textContent = wordsOf(mine);
  document.title = text("title", { what: title.textContent });
  const listed = asked.map((one) => {
    return [one.name, text("option", { what: wordsOf(one), n: howMany(one.n) })];
  });
  setOptions($("which"), listed, question);
  $("groups").hidden = !openly.length;
  const ways = openly.map((one) => [one.name, nameOf(one)]);
  setOptions($("by"), [["", text("everybody")], ...ways], state.chosen.by);
  const names = groups.map((group) => {
    return [keyOf(group), text("option", { what: groupOf(group), n: howMany(group.n) })];
  });
  $("shown-group").hidden = !groups.length;
  setOptions($("group"), [["", text("together")], ...names], state.chosen.group);
  const known = [...new Set([...CONFIDENCES, state.chosen.confidence])].sort();
  const levels = known.map((x) => [x, text("percent", { n: sureness(x) })]);
  setOptions($("confidence"), levels, state.chosen.confidence);
}

/** A confidence in percent. */
const sureness = (x) => `${Number((100 * x).toPrecision(6))}`;

/** A choice for every view that this estimate has, beside the raw one. */
function drawViews() {
  const { views } = shown();
  const [name, names] = [viewOf(), ["", ...views.map((view) => view.name)]];
  $("views").hidden = !views.length;
  const shownAs = views.find((view) => view.name === name);
  $("about").textContent = VIEWS[name] === undefined
    ? text("otherView", { what: shownAs.about }) : text(`${VIEWS[name]}About`);
  const labelled = names.map((one) => VIEWS[one] === undefined ? one : text(VIEWS[one]));
  if ($("views").dataset.names !== JSON.stringify(labelled)) {
    $("views").dataset.names = JSON.stringify(labelled);
    $("view-list").replaceChildren(...names.map((one, k) => {
      const [label, input] = [element("label"), element("input")];
      Object.assign(input, { type: "radio", name: "view", value: one });
      label.append(input, element("span", labelled[k]));
      return label;
    }));
  }
  for (const input of $("view-list").querySelectorAll("input")) {
    input.checked = input.value === name;
  }
}

/** The sentences at the top. */
function drawWords() {
  const { n, items, telling, note } = shown();
  const { history, state: stage } = state.estimate;
  $("n").textContent = howMany(n);
  $("n-what").textContent = text("reports", { n: n || state.estimate.least });
  const happened = history.map(({ time, what }) => {
    const said = EVENTS[what] ? text(EVENTS[what]) : what;
    return text("event", { what: said, time: localTime(time) });
  });
  tell("history", happened.length ? text("history", { events: happened.join("; ") }) : "");
  const ends = { closed: "isClosed", upcoming: "isUpcoming" };
  const end = ends[stage] ? ` ${text(ends[stage])}` : "";
  $("verdict").textContent = verdict(n, telling, items.length) + end;
  tell("headline", telling && items.length ? headline() : "");
  tell("note", note);
}

function verdict(n, telling, m) {
  const { least, needed, common } = state.estimate;
  const isGroup = shown() !== state.estimate;
  if (!n && isPublic() && least) return text(isGroup ? "hiddenGroup" : "notYet", { n: least });
  if (!n) return text(isGroup ? "emptyGroup" : "none");
  if (telling) return text("telling", { k: telling, n: m });
  const { visible } = shown();
  return [
    visible ? text("nothing", { n, share: roughly(visible) }) : text("nothingAtAll", { n }),
    ...needed > n ? [text("needed", { n: roundUp(needed), k: 100 * common })] : [],
  ].join(" ");
}

/** A number of two digits, not below this one. */
function roundUp(n) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(n)) - 1);
  return Math.ceil(n / power) * power;
}

/** The most frequent answer, in a sentence. */
export function headline() {
  const { items } = shown();
  const most = items.reduce((x, y) => (y.count > x.count ? y : x));
  const { share, share_low: low, share_high: high } = most;
  const sentence = text(share < 0.015 ? "headlineRare" : "headline", {
    n: Math.round(100 * share), share: figure(100 * share, 1), low: figure(100 * low, 1),
    high: figure(100 * high, 1), what: text("quoted", { what: labels()(most.item) }),
  });
  if (shown() === state.estimate) return sentence;
  return text("inGroup", { group: groupOf(shown()), sentence });
}

/** What stands behind "How exact is this?", and an alarm. */
function drawExactness() {
  const { certificate, fake, published, odd } = state.estimate;
  tell("certificate", certificate && text("designer", { what: certificate }));
  $("fake").textContent = fake;
  tell("published", published);
  $("odd").hidden = !odd.length;
  $("oddities").replaceChildren(...odd.map((sentence) => element("li", sentence)));
  $("caption").textContent = text("caption", { n: sureness(state.chosen.confidence) });
  const { n } = shown();
  const smaller = Math.sqrt(n / Math.max(1, state.estimate.n)); // a group has its own errors
  const listed = state.estimate.levels.length > CARDS ? [] : state.estimate.levels;
  $("levels").replaceChildren(...listed.map((level, k) => drawLevel(level, k, n, smaller)));
}

function drawLevel(level, k, n, smaller) {
  const { name, epsilon, acts_as: acts } = level;
  const [mine, plain] = [smaller * level.expected_stderr, smaller * level.plain_stderr];
  const card = element("div", "", `level-${k % 8}`);
  const budget = acts === null ? text("budget", { epsilon })
    : text("budgetActing", { epsilon, n: `${Number(acts.toPrecision(4))}` });
  card.append(element("strong", name), element("div", budget));
  if (!n) return card;
  const change = plain ? Math.round(100 * (mine / plain - 1)) : 0;
  const against = change < 0 ? "below" : "above";
  card.append(
    element("div", text("expected", { n: whole(mine) })),
    element("div", change ? text(against, { k: Math.abs(change), n: whole(plain) }) : text("same")),
  );
  return card;
}
