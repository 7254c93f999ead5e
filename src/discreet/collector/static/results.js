// Joined from the modules in results/ by `make js`: change those.

// The results page: asks for the estimate every two seconds and draws it. The organiser's token
// stays in this tab.

// ---- dom.js -------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

/** A new element with a text in it. */
function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** A cell that heads a row or a column. */
function heading(text, scope) {
  const made = element("th", text);
  made.scope = scope;
  return made;
}

/** The options of a list, if they have changed. */
function fill(list, options, value) {
  const text = JSON.stringify(options);
  if (list.dataset.options !== text) {
    list.replaceChildren(...options.map(([key, label]) => Object.assign(element("option", label), {
      value: key,
    })));
    list.dataset.options = text;
  }
  list.value = value;
}

/** Say what went wrong; nothing does not any more. */
function say(problem) {
  $("problem").hidden = !problem;
  $("problem").textContent = problem;
}

// ---- numbers.js ---------------------------------------------------------------------------------

const whole = (x) => (Math.round(x) + 0).toLocaleString(); // never "-0"

const percentOf = (count, n) => `${(100 * count / n + 0).toFixed(1)} %`;

// ---- state.js -----------------------------------------------------------------------------------

// What is looked at, and the last estimate of it.

const page = $("results");

const state = {
  token: page.dataset.token === undefined ? null : sessionStorage.getItem("discreet-token"),
  estimate: null, // the last one
  mark: "", // its ETag
  all: false, // whether every row is drawn
  chosen: { question: "", by: "", group: "" }, // beside the view
};

/** The name of the view; "" is the raw estimate. */
const view = () => document.querySelector('[name="view"]:checked').value;

/** The estimate of the chosen group, or of everybody. */
function shown() {
  const key = ({ group }) => Object.values(group).join(", ");
  const { groups } = state.estimate;
  return groups.find((group) => key(group) === state.chosen.group) ?? state.estimate;
}

// ---- wording.js ---------------------------------------------------------------------------------

// The survey's words in the reader's language.

const primary = (tag) => tag.split("-")[0];

/** The survey's words in the reader's language; none where it has no such translation. */
function translation() {
  const { language, translations } = state.estimate;
  const there = Object.keys(translations);
  let stored = null; // what the reader chose on the participant's page
  try {
    stored = localStorage.getItem("discreet-language");
  } catch { /* storage is blocked */ }
  for (const tag of [stored, ...navigator.languages, document.documentElement.lang]) {
    if (!tag) continue;
    if (language && primary(language) === primary(tag)) return {};
    const found = there.find((one) => one === tag)
      ?? there.find((one) => primary(one) === primary(tag));
    if (found) return translations[found];
  }
  return {};
}

/** What a question or a public one is called, and its items, in these words or in its own. */
const nameOf = ({ name }) => {
  const { questions, public: openly } = translation();
  return questions?.[name]?.text ?? openly?.[name]?.text ?? name;
};
const labelOf = (name, item) => {
  const { questions, public: openly } = translation();
  return (questions?.[name] ?? openly?.[name])?.items?.[item] ?? item;
};
const groupOf = ({ group }) => {
  return Object.entries(group).map(([name, item]) => labelOf(name, item)).join(", ");
};

/** The items of the question that is looked at, as they are read; a cell's by its two answers. */
function labels() {
  const { question, asked, margins } = state.estimate;
  const { of } = asked.find(({ name }) => name === question);
  if (!of.length) return (item) => labelOf(question, item);
  const [first, second] = margins.map(({ items }) => items.map(({ item }) => item));
  const cells = new Map((first ?? []).flatMap((x) => second.map((y) => {
    return [`${x} × ${y}`, `${labelOf(of[0], x)} × ${labelOf(of[1], y)}`];
  })));
  return (item) => cells.get(item) ?? item;
}

// ---- cross.js -----------------------------------------------------------------------------------

// Crossed questions.

/** The table of a crossed question's cells, with the answers to each of its questions around it. */
function drawCross(items) {
  const { n, sure, margins } = shown();
  $("cross").hidden = !margins.length || !items.length;
  if ($("cross").hidden) return;
  const [first, second] = margins;
  const cells = new Map(items.map((row) => [row.item, row]));
  const certain = new Set(sure);
  const most = Math.max(...items.map(({ count }) => count), 1);
  const at = (x, y) => cells.get(`${x.item} × ${y.item}`);
  const [corner, label] = [element("td"), labels()];
  const head = element("tr");
  const heads = second.items.map(({ item }) => heading(labelOf(second.question, item), "col"));
  head.append(corner, ...heads, heading("All", "col"));
  const body = first.items.map((row) => {
    const line = element("tr");
    line.append(heading(labelOf(first.question, row.item), "row"), ...second.items.map((other) => {
      const found = at(row, other);
      const shownAs = { ...found, item: label(found.item) };
      return drawCell(shownAs, n, most, certain.has(found.item));
    }), drawSum(row, n));
    return line;
  });
  const foot = element("tr");
  foot.append(heading("All", "row"), ...second.items.map((row) => drawSum(row, n)), element("td"));
  const [down, across] = [first, second].map(({ question: name }) => nameOf({ name }));
  $("crossed").textContent = `Share of people by ${down} (down) and ${across} (across)`;
  $("cells").replaceChildren(head, ...body, foot);
}

/** A cell, darker for a larger share; bold and marked where it is surely above zero. */
function drawCell({ item, count, lower, upper }, n, most, isSure) {
  const cell = element("td", percentOf(count, n), isSure ? "cell sure" : "cell");
  cell.style.setProperty("--heat", `${Math.round(70 * Math.max(0, count) / most)}%`);
  cell.title = `${item}: ${whole(count)} people, ${whole(lower)} to ${whole(upper)}`;
  if (isSure) cell.append(element("span", " surely above zero", "hidden"));
  return cell;
}

function drawSum({ count, share_low: low, share_high: high }, n) {
  const cell = element("td", percentOf(count, n), "sum");
  cell.append(element("small", `${percentOf(low, 1)} to ${percentOf(high, 1)}`, "faint"));
  return cell;
}

// ---- rows.js ------------------------------------------------------------------------------------

// The table of items, with a bar for each.

const FIRST = 100; // rows drawn before "Show all"

function drawRows(items, place) {
  const name = items.length && items[0][view()] !== undefined ? view() : "";
  const pick = name
    ? (row) => ({
      count: row[name], lower: row[`${name}_lower`], upper: row[`${name}_upper`],
      error: row[`${name}_sd`],
    })
    : ({ count, lower, upper, stderr }) => ({ count, lower, upper, error: stderr });
  const wanted = $("search").value.trim().toLowerCase();
  const isWanted = ({ item, level }) => `${item} ${level}`.toLowerCase().includes(wanted);
  const label = labels();
  const rows = items.map((row) => ({ ...row, item: label(row.item) })).filter(isWanted)
    .map((row) => ({ ...row, ...pick(row), plain: place.get(row.level).plain_stderr }))
    .sort((x, y) => (state.estimate.ordered ? 0 : (y.count ?? -Infinity) - (x.count ?? -Infinity)));
  const sums = name ? [] : shown().totals.filter(isWanted)
    .map((row) => ({ ...row, error: row.stderr, plain: null }));
  const listed = state.all ? rows : rows.slice(0, FIRST);
  const end = ({ upper, count, plain }) => Math.max(upper ?? 0, (count ?? 0) + 1.96 * plain);
  const top = Math.max(1, ...listed.map(end), ...sums.map(end));
  const drawn = listed.map((row) => drawRow(row, place.get(row.level).k, top));
  $("rows").replaceChildren(...drawn, ...sums.map((row) => drawRow(row, -1, top)));
  $("more").hidden = listed.length === rows.length;
  $("more").textContent = `Show all ${rows.length.toLocaleString()}`;
}

function drawRow(values, k, top) {
  const { item, level, count, lower = null, upper = null, error = null, plain } = values;
  const row = element("tr", "", k < 0 ? "total" : `level-${k % 8}`);
  const head = element("th", item);
  head.append(element("small", level, "quiet"));
  head.scope = "row";
  head.title = `${item} (${level})`;
  const chart = element("td", "", "chart");
  if (shown().telling) chart.append(drawPlot(count, lower, upper, plain, top)); // else it is noise
  const [low, high] = [lower, upper].map(whole);
  const interval = lower === null ? "–" : `${low} to ${high}`;
  const errors = [error, plain].map((x) => (x === null ? "–" : whole(x))).join(" / ");
  row.append(
    head, chart, people(count, interval), share(values),
    element("td", interval, "number interval faint"),
    element("td", errors, "number plain-ldp faint"),
  );
  return row;
}

function people(count, interval) {
  const cell = element("td", count === null ? "–" : whole(count), "number");
  cell.append(element("small", interval, "phone faint"));
  return cell;
}

/** The share of the population, with its interval where the raw estimate is shown. */
function share({ count, share: raw, share_low: low, share_high: high }) {
  const percent = (x) => (100 * x).toFixed(1);
  if (count === null) return element("td", "–", "number");
  const { n } = shown();
  const cell = element("td", `${percent(count / n)} %`, "number share");
  const isRaw = Math.abs(raw - count / n) < 1e-9;
  if (isRaw) cell.append(element("small", `${percent(low)} to ${percent(high)}`, "faint"));
  return cell;
}

/** A bar for the estimate, a line for its interval, a pale band for plain LDP's; all from zero. */
function drawPlot(count, lower, upper, plain, top) {
  const plot = element("div", "", "plot");
  plot.setAttribute("aria-hidden", "true");
  if (count === null) return plot;
  const at = (x) => 100 * Math.min(1, Math.max(0, x / top));
  const piece = (name, from, to) => {
    const made = element("i", "", name);
    made.style.left = `${at(from)}%`;
    made.style.width = `${Math.max(0, at(to) - at(from))}%`;
    plot.append(made);
  };
  if (plain !== null) piece("band", count - 1.96 * plain, count + 1.96 * plain);
  piece("bar", 0, count);
  if (lower !== null) piece("line", lower, upper);
  return plot;
}

// ---- draw.js ------------------------------------------------------------------------------------

// The page around its tables.

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

function draw() {
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

// ---- look.js ------------------------------------------------------------------------------------

// The requests.

const query = (more) => {
  const { question, by } = state.chosen;
  return new URLSearchParams({
    views: view(), ...(question ? { question } : {}), ...(by ? { by } : {}), ...more,
  });
};
const address = (more = {}) => `${page.dataset.estimate}?${query(more)}`;
const headers = () => (state.token ? { Authorization: `Bearer ${state.token}` } : {});

async function look() {
  if (page.dataset.token !== undefined && !state.token) {
    if ($("token").hidden) ask();
    return undefined;
  }
  try {
    const condition = state.mark ? { "If-None-Match": state.mark } : {};
    const answer = await fetch(address(), { headers: { ...headers(), ...condition } });
    if (answer.status === 304) return say("");
    const document_ = await answer.json();
    if (answer.status === 401) return ask(state.token ? "That token is not the organiser’s." : "");
    if (!answer.ok) return say(document_.detail);
    state.mark = answer.headers.get("ETag") ?? "";
    state.estimate = document_;
    say("");
    draw();
  } catch {
    say("The collector cannot be reached; trying again.");
  }
}

function ask(problem = "") {
  state.token = null;
  sessionStorage.removeItem("discreet-token");
  $("token").hidden = false;
  $("numbers").hidden = true;
  say(problem);
}

const PAUSE = 2000; // milliseconds between two looks

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = $("secret").value.trim();
  sessionStorage.setItem("discreet-token", state.token);
  state.mark = "";
  look();
});
for (const [id, key] of [["which", "question"], ["by", "by"]]) {
  $(id).addEventListener("change", ({ target }) => {
    state.chosen = { ...state.chosen, [key]: target.value, group: "" };
    state.mark = "";
    look();
  });
}
$("group").addEventListener("change", ({ target }) => {
  state.chosen = { ...state.chosen, group: target.value };
  draw();
});
$("search").addEventListener("input", () => state.estimate && draw());
$("views").addEventListener("change", () => { state.mark = ""; look(); });
$("more").addEventListener("click", () => { state.all = true; draw(); });
$("print").addEventListener("click", () => {
  $("exactly").open = true;
  window.print();
});
$("csv").addEventListener("click", async () => {
  const answer = await fetch(address({ format: "csv" }), { headers: headers() });
  if (!answer.ok) return say("The table cannot be fetched; try again.");
  const link = element("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = "estimate.csv";
  link.click();
  URL.revokeObjectURL(link.href);
});

async function forever() {
  if (!document.hidden || !state.estimate) await look();
  setTimeout(forever, PAUSE);
}
forever();
