// Joined from the modules in results/ by `make js`: change those.

// The results page: asks for the estimate every two seconds and draws it. The organiser's token
// stays in this tab.

// ---- dom.js -------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

/** A new element with a text in it. */
function element(name, content = "", className = "") {
  const made = document.createElement(name);
  made.textContent = content;
  if (className) made.className = className;
  return made;
}

/** A cell that heads a row or a column. */
function heading(content, scope) {
  const made = element("th", content);
  made.scope = scope;
  made.dir = "auto";
  return made;
}

/** The options of a list, if they have changed. */
function setOptions(list, options, value) {
  const said = JSON.stringify(options);
  if (list.dataset.options !== said) {
    list.replaceChildren(...options.map(([key, label]) => Object.assign(element("option", label), {
      value: key,
    })));
    list.dataset.options = said;
  }
  list.value = value;
}

/** A text that may be missing. */
function tell(id, content) {
  $(id).hidden = !content;
  $(id).textContent = content;
}

/** Say what went wrong; of nothing, no more. */
const say = (problem) => tell("problem", problem);

// ---- state.js -----------------------------------------------------------------------------------

// What is looked at, and the last estimate of it. The view is in the address behind "#", which no
// server sees: a link leads to it, and the back button to the one before.

const page = $("results");

const START = { question: "", by: "", group: "", view: "", confidence: "0.95", find: "" };
const TYPING = 300; // milliseconds without a key
const FIRST = 50; // rows drawn before more are asked for

const state = {
  token: page.dataset.token === undefined ? null : sessionStorage.getItem("discreet-token"),
  estimate: null, // the last one
  mark: "", // its ETag
  rows: FIRST, // so many are drawn
  noise: false, // whether numbers are shown that mean nothing yet
  badLink: false, // whether the address asked for what there is not
  chosen: readAddress(),
};

let later; // the timer of an address that follows

/** The view that the address names. */
function readAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  const known = [...named].filter(([key]) => key in START);
  return { ...START, ...Object.fromEntries(known) };
}

/** What differs from the first view, as it stands in the address. */
function fragment() {
  const said = Object.entries(state.chosen).filter(([key, value]) => value !== START[key]);
  const written = new URLSearchParams(said).toString();
  return written && `#${written}`;
}

/** Look at something else. A step that one can go back from, unless `isStep` is false. */
function choose(changes, isStep = true) {
  take(changes);
  clearTimeout(later);
  const address = `${location.pathname}${location.search}${fragment()}`;
  history[isStep ? "pushState" : "replaceState"](null, "", address);
}

/** The same while somebody types: the address follows after a pause, as browsers want it. */
function chooseSoon(changes) {
  take(changes);
  clearTimeout(later);
  later = setTimeout(() => choose({}, false), TYPING);
}

function take(changes) {
  state.chosen = { ...state.chosen, ...changes };
  Object.assign(state, { rows: FIRST, noise: false, badLink: false });
}

/** The view of the address, after a step back or another link. */
function goToAddress() {
  state.chosen = readAddress();
  Object.assign(state, { rows: FIRST, noise: false, badLink: false, mark: "" });
}

/** The address asks for what there is not: the first view, and a word about it. */
function startAgain() {
  choose(START, false);
  Object.assign(state, { badLink: true, mark: "" });
}

/** The public answers of a group, as they stand in the address. */
const keyOf = ({ group }) => Object.values(group).join(", ");

/** The estimate of the chosen group, or of everybody. */
function shown() {
  const { groups } = state.estimate;
  return groups.find((group) => keyOf(group) === state.chosen.group) ?? state.estimate;
}

/** Whether this is what everybody sees, without the token and away from the desk. */
const isPublic = () => !state.token && page.dataset.desk === undefined;

// ---- words.js -----------------------------------------------------------------------------------

// The texts of the page, and how numbers and dates are written in the language in use.

const TEXTS = []; // texts/*.json, one per language, English first: filled in by the server
const STORED = "discreet-language"; // the key in the browser's storage of a chosen language

let [words] = TEXTS;
let picked = null; // a language that was chosen on this page

/** A text of the page, its placeholders filled in. */
function text(key, values = {}) {
  const form = words[key];
  const plural = () => new Intl.PluralRules(words.language).select(values.n);
  const found = typeof form === "string" ? form : form[plural()] ?? form.other;
  return found.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? figure(values[name]) : values[name];
  });
}

/** A number with so many decimals; in Arabic too with the digits that the promises have. */
const figure = (x, decimals = 0) => {
  return (Number(x.toFixed(decimals)) + 0).toLocaleString(`${words.language}-u-nu-latn`, { // no -0
    minimumFractionDigits: decimals, maximumFractionDigits: decimals,
  });
};
const whole = (x) => figure(Math.round(x));
const tenths = (share) => figure(100 * share, 1); // of a percent
const percentOf = (share) => text("percent", { n: tenths(share) });
/** Percents that need few digits: 12, 2.5, 0.031. */
const roughly = (share) => {
  const x = Number((100 * share).toPrecision(2));
  return text("percent", { n: x.toLocaleString(`${words.language}-u-nu-latn`) });
};
/** A minute in the reader's time zone. */
const localTime = (moment) => {
  return new Date(moment).toLocaleString(`${words.language}-u-nu-latn`, {
    dateStyle: "long", timeStyle: "short",
  });
};
const today = () => new Date().toLocaleDateString(`${words.language}-u-nu-latn`, {
  year: "numeric", month: "long", day: "numeric",
});

/** The languages that the reader knows, the best one first. */
function wantedLanguages() {
  let stored = null; // what the reader chose on the participant's page
  try {
    stored = localStorage.getItem(STORED);
  } catch { /* storage is blocked */ }
  return [picked, stored, ...navigator.languages].filter(Boolean);
}

/** The page in the language that the reader knows best. */
function translate() {
  const first = wantedLanguages().map((tag) => tag.split("-")[0])
    .find((tag) => TEXTS.some(({ language }) => language === tag));
  words = TEXTS.find(({ language }) => language === first) ?? TEXTS[0];
  document.documentElement.lang = words.language;
  document.documentElement.dir = words.direction;
  for (const place of document.querySelectorAll("[data-text]")) {
    place.textContent = text(place.dataset.text);
  }
  for (const place of document.querySelectorAll("[data-note]")) {
    place.title = text(place.dataset.note);
  }
  for (const place of document.querySelectorAll("[data-label]")) {
    place.setAttribute("aria-label", text(place.dataset.label));
  }
  $("search").placeholder = text("search");
}

/** Choose a language, also for the next visit. */
function pickLanguage(language) {
  picked = language;
  try {
    localStorage.setItem(STORED, language);
  } catch { /* then the next visit asks again */ }
  translate();
}

// ---- wording.js ---------------------------------------------------------------------------------

// The survey's words in the reader's language.

const primary = (tag) => tag.split("-")[0];

/** The translation that the reader knows best; nothing where that is the survey's own language. */
function translation() {
  const { language, translations } = state.estimate;
  const there = Object.keys(translations);
  for (const tag of [...wantedLanguages(), words.language]) {
    if (language && primary(language) === primary(tag)) return {};
    const found = there.find((one) => one === tag)
      ?? there.find((one) => primary(one) === primary(tag));
    if (found) return translations[found];
  }
  return {};
}

/** What a question or a public one is called. */
function nameOf({ name }) {
  const { questions, public: openly } = translation();
  return questions?.[name]?.text ?? openly?.[name]?.text ?? name;
}

/** The words of a question that is looked at: translated, or its own. */
function wordsOf(asked) {
  const name = nameOf(asked);
  return name === asked.name ? asked.question || asked.name : name;
}

function labelOf(name, item) {
  const { questions, public: openly } = translation();
  return (questions?.[name] ?? openly?.[name])?.items?.[item] ?? item;
}

function groupOf({ group }) {
  return Object.entries(group).map(([name, item]) => labelOf(name, item)).join(", ");
}

/** The items of the question that is looked at, as they are read; a cell's by its two answers. */
function labels() {
  const { question, asked, margins } = state.estimate;
  const { of } = asked.find(({ name }) => name === question);
  const { questions, public: openly } = translation();
  const mine = (questions?.[question] ?? openly?.[question])?.items ?? {};
  if (!of.length) return (item) => mine[item] ?? item;
  const [first, second] = margins.map(({ items }) => items.map(({ item }) => item));
  const cells = new Map((first ?? []).flatMap((x) => second.map((y) => {
    return [`${x} × ${y}`, `${labelOf(of[0], x)} × ${labelOf(of[1], y)}`];
  })));
  return (item) => cells.get(item) ?? item;
}

// ---- rows.js ------------------------------------------------------------------------------------

// The rows of the estimate that is looked at: made once per estimate, so that a filter only picks.

let latest = {}; // the rows that were made last, and of what

/** The name of the view that is shown; "" where the estimate does not have the chosen one. */
function viewOf() {
  const { view } = state.chosen;
  return shown().items[0]?.[view] === undefined ? "" : view;
}

/** Every row, in the order in which they are shown. */
function allRows() {
  const [name, of, { language }] = [viewOf(), shown(), words];
  if (latest.of === of && latest.name === name && latest.language === language) return latest.rows;
  const [label, order] = [labels(), new Map(state.estimate.levels.map((x, k) => [x.name, k]))];
  const smaller = Math.sqrt(of.n / Math.max(1, state.estimate.n)); // a group has its own errors
  const sure = new Set(of.sure);
  const isSureOfAll = of.sure.length < of.telling; // only the first of them are named
  const rows = of.items.map((row) => {
    const k = order.get(row.level);
    const { plain_stderr: plain } = state.estimate.levels[k];
    return {
      ...numbersOf(row, name, of.n), item: label(row.item), level: row.level, k,
      plain: plain === null ? null : smaller * plain / of.n,
      isSure: sure.has(row.item) || (isSureOfAll && row.share_low > 0),
      found: `${label(row.item)} ${row.level}`.toLowerCase(),
    };
  });
  if (!state.estimate.ordered) rows.sort((x, y) => (y.count ?? -Infinity) - (x.count ?? -Infinity));
  latest = { of, name, language, rows };
  return rows;
}

/** What a row says in this view: people, then the share with its interval; unknown is null. */
function numbersOf(row, name, n) {
  if (!name) {
    const { count, stderr: error, lower, upper, share, share_low: low, share_high: high } = row;
    return { count, error, lower, upper, share: count === null ? null : share, low, high };
  }
  const [count, error] = [row[name], row[`${name}_sd`] ?? null];
  const [lower, upper] = [row[`${name}_lower`] ?? null, row[`${name}_upper`] ?? null];
  const part = (x) => (x === null ? null : x / n);
  return { count, error, lower, upper, share: part(count), low: part(lower), high: part(upper) };
}

/** Those that fit the search, those of them that are drawn, and the sums that fit. */
function pickRows() {
  const wanted = state.chosen.find.trim().toLowerCase();
  const rows = allRows();
  const fitting = wanted ? rows.filter(({ found }) => found.includes(wanted)) : rows;
  const { totals, n } = shown();
  const sums = viewOf() ? [] : totals
    .filter(({ item }) => item.toLowerCase().includes(wanted))
    .map((row) => ({ ...numbersOf(row, "", n), item: row.item, level: "", k: -1, plain: null,
      isSure: row.share_low > 0 }));
  return { all: rows.length, fitting, drawn: fitting.slice(0, state.rows), sums };
}

/** The largest share to be drawn, and steps of an axis up to it. */
function axisOf(rows, withBands) {
  const ends = rows.map(({ share, high, plain }) => {
    return Math.max(high ?? 0, share ?? 0, withBands && plain ? (share ?? 0) + 2 * plain : 0);
  });
  const top = Math.max(0.001, ...ends);
  const power = 10 ** Math.floor(Math.log10(top / 4));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => top / x <= 5);
  const ticks = Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, k) => k * step);
  return { top, step, ticks };
}

// ---- cross.js -----------------------------------------------------------------------------------

// Tables of two directions: the cells of a crossed question, and shares by group.

const GROUPED = 30; // rows of the table by group

/** A share with its interval below. */
function shareBox({ share, share_low: low, share_high: high }, className) {
  if (share === null || share === undefined) return element("td", "–", className);
  const cell = element("td", percentOf(share), className);
  const interval = text("range", { low: tenths(low), high: tenths(high) });
  cell.append(element("small", interval, "faint"));
  return cell;
}

/** A cell, darker for a larger share. */
function heat(cell, share, most) {
  cell.style.setProperty("--heat", `${Math.round(60 * Math.max(0, share ?? 0) / most)}%`);
  return cell;
}

function tableRow(...cells) {
  const row = element("tr");
  row.append(...cells);
  return row;
}

/** The table of a crossed question's cells, with the answers to each of its questions around it. */
function drawCross() {
  const { items, sure, margins } = shown();
  $("cross").hidden = !margins.length || !items.length;
  if ($("cross").hidden) return;
  const [first, second] = margins;
  const [cells, certain, label] = [new Map(items.map((x) => [x.item, x])), new Set(sure), labels()];
  const most = Math.max(...items.map(({ share }) => share), 0.001);
  const heads = second.items.map(({ item }) => heading(labelOf(second.question, item), "col"));
  const body = first.items.map((row) => tableRow(
    heading(labelOf(first.question, row.item), "row"),
    ...second.items.map((other) => {
      const found = cells.get(`${row.item} × ${other.item}`);
      return drawCell(found, label(found.item), most, certain.has(found.item));
    }),
    shareBox(row, "sum"),
  ));
  const foot = tableRow(
    heading(text("all"), "row"), ...second.items.map((row) => shareBox(row, "sum")),
    element("td"),
  );
  const [down, across] = [first, second].map(({ question: name }) => nameOf({ name }));
  $("crossed").textContent = text("crossed", { down, across });
  $("cells").replaceChildren(
    tableRow(element("td"), ...heads, heading(text("all"), "col")), ...body, foot,
  );
}

function drawCell(found, label, most, isSure) {
  const cell = heat(shareBox(found, isSure ? "cell sure" : "cell"), found.share, most);
  const { count, lower, upper } = found;
  const range = text("range", { low: whole(lower), high: whole(upper) });
  cell.title = `${label}: ${whole(count)} (${range})`;
  if (isSure) cell.append(element("span", ` ${text("sure")}`, "hidden"));
  return cell;
}

/** All groups beside each other, while none of them is chosen. */
function drawGroups() {
  const { groups, public: openly, by: [chosen] } = state.estimate;
  const there = groups.filter(({ items }) => items.length);
  $("grouped").hidden = !there.length || shown() !== state.estimate;
  if ($("grouped").hidden) return;
  const by = openly.find(({ name }) => name === chosen);
  $("by-what").textContent = text("grouped", { what: nameOf(by) });
  const label = labels();
  const tables = there.map(({ items }) => new Map(items.map((row) => [label(row.item), row])));
  const rows = pickRows().fitting.slice(0, GROUPED).map(({ item }) => item);
  const most = Math.max(...rows.flatMap((x) => tables.map((t) => t.get(x).share)), 0.001);
  const heads = there.map((group) => {
    const head = heading(groupOf(group), "col");
    head.append(element("small", whole(group.n), "faint"));
    head.dataset.group = keyOf(group);
    return head;
  });
  $("by-group").replaceChildren(tableRow(element("td"), ...heads), ...rows.map((item) => tableRow(
    heading(item, "row"),
    ...tables.map((t) => heat(shareBox(t.get(item), "cell"), t.get(item).share, most)),
  )));
}

/** Say so where a table is wider than the window, and fade the side on which more of it stands. */
function watchWideTables() {
  const update = (box) => {
    const beyond = box.scrollWidth - box.clientWidth;
    const passed = Math.abs(box.scrollLeft); // from the right, it is negative
    box.previousElementSibling.hidden = beyond < 2;
    box.classList.toggle("more", beyond - passed > 1);
  };
  for (const box of document.querySelectorAll(".wide-table")) {
    const watcher = new ResizeObserver(() => update(box));
    for (const one of [box, box.firstElementChild]) watcher.observe(one);
    box.addEventListener("scroll", () => update(box), { passive: true });
  }
}

// ---- table.js -----------------------------------------------------------------------------------

// The table of answers, with a bar for each: shares first, people small.

const ADDED = 200; // rows that are added at a time
const LIMIT = 1000; // rows that are drawn at all

const showMore = () => { state.rows = Math.min(LIMIT, state.rows + ADDED); };

function drawTable() {
  const { all, fitting, drawn, sums } = pickRows();
  const isExact = $("exactly").open;
  const axis = axisOf([...drawn, ...sums], isExact);
  const hasBars = shown().telling > 0; // else they are noise
  drawAxis(axis, hasBars);
  $("rows").replaceChildren(...drawn.map((row) => drawRow(row, axis, hasBars, isExact)));
  $("sums").replaceChildren(...sums.map((row) => drawRow(row, axis, hasBars, isExact)));
  $("sums-head").hidden = !sums.length;
  const rest = fitting.length - drawn.length;
  $("more").hidden = !rest || drawn.length >= LIMIT;
  $("more").textContent = text("showMore", { n: Math.min(ADDED, rest) });
  const said = [
    ...fitting.length < all ? [text("shownOf", { k: fitting.length, n: all })] : [],
    ...all && !fitting.length && !sums.length ? [text("noMatch")] : [],
    ...drawn.length >= LIMIT && rest ? [text("tooMany", { n: rest })] : [],
  ];
  tell("found", said.join(" "));
  $("pale").hidden = !hasBars || drawn.every(({ isSure }) => isSure);
}

function drawAxis({ top, step, ticks }, hasBars) {
  $("table").style.setProperty("--step", `${100 * step / top}%`);
  $("axis").replaceChildren(...(hasBars ? ticks : []).map((share) => {
    const tick = element("span", roughly(share), share > 0.93 * top ? "last" : "");
    tick.style.insetInlineStart = `${100 * share / top}%`;
    return tick;
  }));
}

function drawRow(row, axis, hasBars, isExact) {
  const { item, level, k, isSure, count, lower, upper, error, plain } = row;
  const line = element("tr", "", k < 0 ? "total" : `level-${k % 8}`);
  const head = heading(item, "row");
  head.append(element("small", level, "quiet"));
  head.title = level ? `${item} (${level})` : item;
  const chart = element("td", "", "chart");
  if (hasBars) chart.append(drawPlot(row, axis, isSure, isExact));
  const errors = [error, plain === null ? null : plain * shown().n].map((x) => {
    return x === null ? "–" : whole(x);
  });
  line.append(
    head, chart, shareCell(row), peopleCell(count, lower, upper),
    element("td", errors.join(" / "), "number plain-ldp faint"),
  );
  return line;
}

/** A number with its interval below. */
function withInterval(value, interval, className) {
  const cell = element("td", value, className);
  if (interval) cell.append(element("small", interval, "faint"));
  return cell;
}

function shareCell({ share, low, high }) {
  if (share === null) return withInterval("–", "", "number share");
  const interval = low === null ? "" : text("range", { low: tenths(low), high: tenths(high) });
  return withInterval(percentOf(share), interval, "number share");
}

function peopleCell(count, lower, upper) {
  if (count === null) return withInterval("–", "", "number people faint");
  const interval = lower === null ? "" : text("range", { low: whole(lower), high: whole(upper) });
  return withInterval(whole(count), interval, "number people faint");
}

/** A bar for the share, a line for its interval, a pale band for plain LDP's; all from zero. */
function drawPlot({ share, low, high, plain }, { top }, isSure, isExact) {
  const plot = element("div", "", isSure ? "plot" : "plot unsure");
  plot.setAttribute("aria-hidden", "true");
  if (share === null) return plot;
  const at = (x) => 100 * Math.min(1, Math.max(0, x / top));
  const piece = (name, from, to) => {
    const drawn = element("i", "", name);
    drawn.style.insetInlineStart = `${at(from)}%`;
    drawn.style.width = `${Math.max(0, at(to) - at(from))}%`;
    plot.append(drawn);
  };
  if (isExact && plain !== null) piece("band", share - 1.96 * plain, share + 1.96 * plain);
  piece("bar", 0, share);
  if (low !== null) piece("line", low, high);
  return plot;
}

// ---- draw.js ------------------------------------------------------------------------------------

// The page around its tables.

const EVENTS = {
  closed: "wasClosed", "closed by its date": "wasClosedByDate", reopened: "wasReopened",
  moved: "wasMoved",
};
// by the name of the view, "" for the counts themselves: what it is called here
const VIEWS = { "": "counted", shrunk: "shrunk", consistent: "consistent" };
const CONFIDENCES = ["0.8", "0.9", "0.95", "0.99"];
const SEARCHED = 9; // answers, from which on one searches
const CARDS = 24; // levels that get a card

function draw() {
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
function drawTables() {
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
function headline() {
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

// ---- look.js ------------------------------------------------------------------------------------

// The requests.

/** The address of the estimate that is looked at. */
function addressOf(more = {}) {
  const { question, by, view, confidence } = state.chosen;
  const named = { confidence, ...(view && { views: view }), ...(question && { question }),
    ...(by && { by }), ...more };
  return `${page.dataset.estimate}?${new URLSearchParams(named)}`;
}

const headers = () => (state.token ? { Authorization: `Bearer ${state.token}` } : {});

/** Fetch the estimate, if it has changed, and draw it. */
async function look() {
  if (page.dataset.token !== undefined && !state.token) {
    if ($("token").hidden) ask();
    return;
  }
  const asked = addressOf();
  try {
    const condition = state.mark ? { "If-None-Match": state.mark } : {};
    const answer = await fetch(asked, { headers: { ...headers(), ...condition } });
    if (asked !== addressOf()) return; // something else is looked at meanwhile
    if (answer.status === 304) say("");
    else if (answer.status === 401) ask(state.token ? text("tokenWrong") : "");
    else if (answer.status === 400) await fallBack(asked, await answer.json());
    else await accept(answer);
  } catch {
    say(text("away"));
  }
}

/** The address asks for what this survey does not have. */
async function fallBack(asked, { detail }) {
  startAgain();
  if (asked === addressOf()) say(detail);
  else await look();
}

async function accept(answer) {
  const found = await answer.json();
  if (!answer.ok) {
    say(found.detail);
    return;
  }
  state.mark = answer.headers.get("ETag") ?? "";
  state.estimate = found;
  say("");
  draw();
}

function ask(problem = "") {
  state.token = null;
  sessionStorage.removeItem("discreet-token");
  $("token").hidden = false;
  $("numbers").hidden = true;
  say(problem);
}

// ---- chart.js -----------------------------------------------------------------------------------

// The chart as a picture: the numbers that the table shows, with what one must know to read them.
// Light colours, whatever the screen has: it will stand on paper and in slides.

const WIDTH = 960;
const EDGE = 32;
const LABEL = 250; // of an answer
const VALUE = 190; // of its share and interval
const ROW = 30;
const BARS = 50; // answers
const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif";
const INK = "#17211f";
const QUIET = "#5a6b67";
const LINE = "#dbe3e0";
const BAR = "#0f766e";
const PALE = "#9fcac5";
const SPACE = "http://www.w3.org/2000/svg";

let ruler; // measures texts

function widthOf(content, size, weight) {
  ruler ??= element("canvas").getContext("2d");
  ruler.font = `${weight} ${size}px ${FONT}`;
  return ruler.measureText(content).width;
}

/** The text in lines that fit. */
function wrapped(content, size, weight, width) {
  const lines = [""];
  for (const word of content.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (widthOf(longer, size, weight) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.filter(Boolean);
}

/** The beginning that fits. */
function cut(content, size, width) {
  if (widthOf(content, size, 400) <= width) return content;
  let end = content.length;
  while (end && widthOf(`${content.slice(0, end)}…`, size, 400) > width) end -= 1;
  return `${content.slice(0, end)}…`;
}

/** Draws from the side where reading begins: in Arabic everything is mirrored. */
class Sheet {
  constructor() {
    this.isMirrored = words.direction === "rtl";
    this.root = document.createElementNS(SPACE, "svg");
    this.y = EDGE;
  }

  add(name, attributes, content = "") {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = content;
    this.root.append(made);
    return made;
  }

  rect(x, y, width, height, fill) {
    this.add("rect", { x: this.isMirrored ? WIDTH - x - width : x, y, width, height, fill });
  }

  write(content, x, y, { size = 14, weight = 400, fill = INK, anchor = "start" } = {}) {
    const isolated = this.isMirrored ? `\u2068${content}\u2069` : content;
    return this.add("text", {
      x: this.isMirrored ? WIDTH - x : x, y, fill, "font-size": size, "font-weight": weight,
      "text-anchor": anchor,
    }, isolated);
  }

  /** Lines of a text, below what is there. */
  paragraph(content, size, weight, fill) {
    for (const row of wrapped(content, size, weight, WIDTH - 2 * EDGE)) {
      this.y += Math.round(size * 1.35);
      this.write(row, EDGE, this.y, { size, weight, fill });
    }
  }
}

/** About whom, how many, when: without it the picture means nothing. */
function sources(all, drawn) {
  const { asked, fingerprint, rehearsal } = state.estimate;
  const name = viewOf();
  const sure = `${Number((100 * state.chosen.confidence).toPrecision(6))}`;
  const hasInterval = drawn.some(({ low }) => low !== null);
  const whom = name ? hasInterval ? "sourceAnswered" : "sourceNoInterval" : "sourcePopulation";
  const { n } = shown();
  const short = fingerprint.slice(0, 32).match(/.{4}/g).join(" ");
  return [
    ...rehearsal ? [text("rehearsal")] : [],
    ...drawn.some(({ isSure }) => !isSure) ? [text("pale")] : [],
    [
      text("sourceReports", { n }), text(whom, { n: sure }),
      text(name === "" ? "counted" : name), today(),
      ...drawn.length < all ? [text("shownOf", { k: drawn.length, n: all })] : [],
    ].join(" · "),
    ["discreet", page.dataset.name, ...asked.length > 1 ? [state.estimate.question] : [],
      text("fingerprint", { what: `\u2066${short}\u2069` })].join(" · "),
  ];
}

/** The chart of what is looked at: an SVG, and its size. */
function drawChart() {
  const sheet = new Sheet();
  const { all, drawn: rows } = pickRows();
  const drawn = rows.slice(0, BARS);
  const mine = state.estimate.asked.find(({ name }) => name === state.estimate.question);
  const title = wordsOf(mine);
  const background = sheet.add("rect", { width: WIDTH, fill: "#fff" });
  sheet.paragraph(title, 24, 700, INK);
  sheet.y += 4;
  if (shown() !== state.estimate) sheet.paragraph(groupOf(shown()), 16, 600, INK);
  sheet.paragraph(headline(), 15, 400, QUIET);
  sheet.y += 34;
  drawBars(sheet, drawn);
  sheet.y += 8;
  for (const source of sources(all, drawn)) sheet.paragraph(source, 12, 400, QUIET);
  const height = sheet.y + EDGE - 8;
  background.setAttribute("height", height);
  const attributes = {
    width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, "font-family": FONT, role: "img",
    direction: words.direction, "xml:lang": words.language, "aria-label": title,
  };
  for (const [key, value] of Object.entries(attributes)) sheet.root.setAttribute(key, value);
  return { svg: new XMLSerializer().serializeToString(sheet.root), width: WIDTH, height };
}

function drawBars(sheet, drawn) {
  const { top, ticks } = axisOf(drawn, false);
  const [start, end] = [EDGE + LABEL, WIDTH - EDGE - VALUE];
  const at = (share) => start + (end - start) * Math.min(1, Math.max(0, share / top));
  const height = ROW * drawn.length;
  for (const share of ticks) {
    sheet.rect(at(share), sheet.y, 1, height, LINE);
    const style = { size: 12, fill: QUIET, anchor: "middle" };
    sheet.write(roughly(share), at(share), sheet.y - 8, style);
  }
  for (const row of drawn) {
    drawBar(sheet, row, at);
    sheet.y += ROW;
  }
}

function drawBar(sheet, { item, share, low, high, isSure }, at) {
  const middle = sheet.y + ROW / 2;
  const label = sheet.write(cut(item, 14, LABEL - 14), EDGE, middle + 5);
  const fullName = document.createElementNS(SPACE, "title");
  fullName.textContent = item;
  label.append(fullName);
  if (share === null) return;
  const zero = at(0);
  sheet.rect(zero, middle - 7, Math.max(1, at(share) - zero), 14, isSure ? BAR : PALE);
  const values = sheet.write(percentOf(share), WIDTH - EDGE, middle + 5, { weight: 600, anchor: "end" });
  if (low !== null) {
    const interval = document.createElementNS(SPACE, "tspan");
    interval.setAttribute("font-weight", 400);
    interval.textContent = ` (${text("range", { low: tenths(low), high: tenths(high) })})`;
    values.append(interval);
  }
  if (low === null) return;
  sheet.rect(at(low), middle - 0.75, Math.max(0, at(high) - at(low)), 1.5, INK);
  for (const tip of [low, high]) sheet.rect(at(tip) - 0.75, middle - 5, 1.5, 10, INK);
}

// ---- share.js -----------------------------------------------------------------------------------

// What can be taken away: a link, the table, the chart, a page on paper.

const SCALE = 2; // pixels of the PNG per unit of the chart

/** Save a file under the name of what is looked at. */
function save(content, ending) {
  const { asked, question } = state.estimate;
  const name = asked.length > 1 ? `${page.dataset.name}-${question}` : page.dataset.name;
  const link = element("a");
  link.href = URL.createObjectURL(content);
  link.download = `${name.replace(/[^\p{L}\p{N}]+/gu, "-")}.${ending}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

async function saveTable() {
  const asked = addressOf({ format: "csv", explained: "true" });
  const answer = await fetch(asked, { headers: headers() }).catch(() => null);
  if (answer?.ok) save(await answer.blob(), "csv");
  else say(text("noTable"));
}

const asFile = ({ svg }) => new Blob([svg], { type: "image/svg+xml" });

/** The same chart, drawn by the browser. */
async function savePixels() {
  const made = drawChart();
  const address = URL.createObjectURL(asFile(made));
  const [image, canvas] = [new Image(), element("canvas")];
  image.src = address;
  await image.decode();
  Object.assign(canvas, { width: SCALE * made.width, height: SCALE * made.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  save(await new Promise((done) => canvas.toBlob(done, "image/png")), "png");
}

/** Copy the link to this view; where the browser refuses, show it to be copied by hand. */
async function copyLink() {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // refused, or there is no clipboard
    isCopied = false;
  }
  $("copied").textContent = text(isCopied ? "copied" : "copyRefused");
  $("link").hidden = isCopied;
  if (isCopied) return;
  $("link").value = location.href;
  $("link").select();
}

function listenToShare() {
  $("copy").addEventListener("click", copyLink);
  $("csv").addEventListener("click", saveTable);
  $("svg").addEventListener("click", () => save(asFile(drawChart()), "svg"));
  $("png").addEventListener("click", savePixels);
  $("print").addEventListener("click", () => window.print());
}

const PAUSE = 2000; // milliseconds between two looks
const BREATH = 10; // times as long as a look took, if that is longer

function lookAnew() {
  state.mark = "";
  return look();
}

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = $("secret").value.trim();
  sessionStorage.setItem("discreet-token", state.token);
  lookAnew();
});
$("which").addEventListener("change", ({ target }) => {
  choose({ question: target.value, group: "" });
  lookAnew();
});
$("by").addEventListener("change", ({ target }) => {
  choose({ by: target.value, group: "" });
  lookAnew();
});
$("group").addEventListener("change", ({ target }) => {
  choose({ group: target.value });
  draw();
});
$("confidence").addEventListener("change", ({ target }) => {
  choose({ confidence: target.value });
  lookAnew();
});
$("views").addEventListener("change", ({ target }) => {
  choose({ view: target.value });
  lookAnew();
});
$("search").addEventListener("input", ({ target }) => {
  chooseSoon({ find: target.value });
  if (state.estimate) drawTables();
});
$("more").addEventListener("click", () => { showMore(); drawTables(); });
$("noise").addEventListener("click", () => { state.noise = true; drawTables(); });
$("exactly").addEventListener("toggle", () => state.estimate && drawTables());
window.addEventListener("popstate", () => {
  goToAddress();
  $("search").value = state.chosen.find;
  look();
});

function listLanguages() {
  $("language").replaceChildren(...TEXTS.map(({ language, name }) => {
    return Object.assign(element("option", name), { value: language, lang: language });
  }));
  $("language").value = words.language;
  $("language").addEventListener("change", ({ target }) => {
    pickLanguage(target.value);
    if (state.estimate) draw();
  });
}

async function forever() {
  const start = performance.now();
  if (!document.hidden || !state.estimate) await look();
  setTimeout(forever, Math.max(PAUSE, BREATH * (performance.now() - start)));
}

translate();
listLanguages();
listenToShare();
watchWideTables();
$("search").value = state.chosen.find;
forever();
