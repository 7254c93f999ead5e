// Tables of two directions: the cells of a crossed question, and shares by group.
import { $, element, heading } from "./dom.js";
import { pickRows } from "./rows.js";
import { keyOf, shown, state } from "./state.js";
import { percentOf, tenths, text, whole } from "./words.js";
import { groupOf, labelOf, labels, nameOf } from "./wording.js";

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
export function drawCross() {
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
export function drawGroups() {
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
export function watchWideTables() {
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
