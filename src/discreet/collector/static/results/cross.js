// Crossed questions.
import { $, element, heading } from "./dom.js";
import { percentOf, whole } from "./numbers.js";
import { shown } from "./state.js";
import { labelOf, labels, nameOf } from "./wording.js";

/** The table of a crossed question's cells, with the answers to each of its questions around it. */
export function drawCross(items) {
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
