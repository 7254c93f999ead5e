// The page around its tables.
import { drawCross } from "./cross.js";
import { $, element, fill } from "./dom.js";
import { whole } from "./numbers.js";
import { drawRows } from "./rows.js";
import { shown, state, view } from "./state.js";
import { groupOf, labels, nameOf } from "./wording.js";

// By the name of the view: what it is called here, and when to use it. "" is the raw estimate.
const VIEWS = {
  "": {
    label: "As counted",
    about: "As counted: right on average, and the one to compare with other surveys. Chance may put a number, or the end of an interval, below zero.",
  },
  shrunk: {
    label: "Best guess",
    about: "Best guess: rare answers are pulled towards what is usual, which is nearer to the truth for most of them. Use it to rank answers.",
  },
  consistent: {
    label: "Adds up to 100 %",
    about: "Adds up to 100 %: nothing below zero, and the answers of people who give one answer each sum to all of them. Use it for a chart or a table that must add up.",
  },
};

export function draw() {
  drawChoices();
  const { certificate, least, fake, odd } = state.estimate;
  const { n, items, telling, note, views } = shown();
  const smaller = Math.sqrt(n / Math.max(1, state.estimate.n)); // a group has errors of its own
  const levels = state.estimate.levels.map((level) => ({
    ...level, expected_stderr: smaller * level.expected_stderr,
    plain_stderr: level.plain_stderr && smaller * level.plain_stderr,
  }));
  $("published").textContent = state.estimate.published;
  const asked = !$("token").hidden;
  $("token").hidden = true;
  $("numbers").hidden = false;
  if (asked) document.querySelector("h1").focus(); // the form that had it is gone
  $("n").textContent = n.toLocaleString();
  $("note").textContent = note;
  $("certificate").hidden = !certificate;
  $("certificate").textContent = `Expected error, as the designer says: ${certificate}.`;
  $("fake").textContent = fake;
  $("odd").hidden = !odd.length;
  $("oddities").replaceChildren(...odd.map((sentence) => element("li", sentence)));
  drawViews(views);
  const end = { closed: " The collection is closed.", upcoming: " It has not opened yet." };
  $("rehearsal").hidden = !state.estimate.rehearsal;
  const happened = state.estimate.history.map(({ time, what }) => `${what} ${time}`).join(", ");
  $("history").textContent = happened && `What the organiser did: ${happened}.`;
  const more = end[state.estimate.state] ?? "";
  $("verdict").textContent = verdict(n, telling, items, levels, least) + more;
  drawHeadline(n, telling, items);
  drawLevels(n, levels);
  drawRows(items, new Map(levels.map((level, k) => [level.name, { ...level, k }])));
  drawCross(items);
}

/** Which question, by which public question, and which of its groups. */
function drawChoices() {
  const { asked, question, public: openly, groups } = state.estimate;
  const several = asked.length > 1;
  const mine = asked.find(({ name }) => name === question);
  $("choices").hidden = !several && !openly.length;
  $("questions").hidden = !several;
  $("asked").hidden = !several;
  const words = nameOf(mine);
  $("asked").textContent = words === mine.name ? mine.question || mine.name : words;
  if (!several && words !== mine.name) document.querySelector("h1").textContent = words;
  fill($("which"), asked.map(({ name, n }) => [name, `${name} (${n.toLocaleString()})`]), question);
  $("groups").hidden = !openly.length;
  const listed = openly.map((one) => [one.name, nameOf(one)]);
  fill($("by"), [["", "everybody"], ...listed], state.chosen.by);
  const names = groups.map(({ group, n, hidden }) => {
    const name = groupOf({ group });
    const many = hidden ? "too few to show" : n.toLocaleString();
    return [Object.values(group).join(", "), `${name} (${many})`];
  });
  $("shown-group").hidden = !groups.length;
  fill($("group"), [["", "all together"], ...names], state.chosen.group);
}

/** A choice for every view that this estimate has, beside the raw one. */
function drawViews(views) {
  $("views").hidden = !views.length;
  const chosen = views.find(({ name }) => name === view());
  $("about").textContent = VIEWS[view()]?.about ?? `Shown: ${chosen?.about}.`;
  const listed = new Set([...document.querySelectorAll('[name="view"]')].map(({ value }) => value));
  for (const { name } of views.filter(({ name }) => !listed.has(name))) {
    const [label, input] = [element("label"), element("input")];
    Object.assign(input, { type: "radio", name: "view", value: name });
    label.append(input, element("span", VIEWS[name]?.label ?? name));
    $("views").append(label);
  }
}

function verdict(n, telling, items, levels, least) {
  if (!n && least && !state.token) {
    return `Everyone sees results from ${least} reports on, in steps; the organiser sees them earlier.`;
  }
  if (!n) return "No report has arrived yet.";
  const best = Math.min(...levels.map((level) => level.expected_stderr));
  if (!telling) {
    const reports = `${n.toLocaleString()} report${n > 1 ? "s" : ""}`;
    return `So far nothing stands out: with ${reports} the error of a count is ` +
      `± ${whole(best)} people or more, so no bar is drawn. More reports will show more.`;
  }
  const all = items.length.toLocaleString();
  return `${telling.toLocaleString()} of ${all} items stand out from zero ` +
    "(with 95 % confidence in all of them together).";
}

/** The most frequent answer, in a sentence, if anything can be told from chance. */
function drawHeadline(n, telling, items) {
  $("headline").hidden = !telling || !items.length;
  if ($("headline").hidden) return;
  const most = items.reduce((x, y) => (y.count > x.count ? y : x));
  const percent = (x) => (100 * x).toFixed(1);
  $("headline").textContent = `About ${Math.round(100 * most.count / n)} in 100: “${labels()(most.item)}” `
    + `(${percent(most.share_low)} to ${percent(most.share_high)} %), the most frequent answer.`;
}

function drawLevels(n, levels) {
  if (levels.length > 24) {
    $("levels").replaceChildren();
    return;
  }
  $("levels").replaceChildren(...levels.map((level, k) => {
    const { name, epsilon, expected_stderr: mine, plain_stderr: plain } = level;
    const acts = level.acts_as;
    const less = acts === null ? "" : `, acts as ${Number(acts.toPrecision(4))}`;
    const card = element("div", "", `level-${k % 8}`);
    const change = plain ? Math.round(100 * (mine / plain - 1)) : 0;
    const side = `${Math.abs(change)} % ${change < 0 ? "below" : "above"}`;
    const against = change ? `${side} plain LDP’s ± ${whole(plain)}` : "as with plain LDP";
    card.append(element("strong", name), element("div", `budget ${epsilon}${less}`));
    const mineText = `expected error ± ${whole(mine)} people,`;
    if (n) card.append(element("div", mineText), element("div", against));
    return card;
  }));
}
