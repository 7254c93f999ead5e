// Rows that can be put in another order: by dragging their handle, with the arrow keys on it, or with
// buttons.
import { announce, h } from "./dom.js";

/**
 * The handle and the two buttons of a row. `moved` draws the rows again and gives the focus back.
 * @param {object[]} rows @param {object} row @param {string} what it is called
 * @param {(focus: string) => void} moved
 */
export function ordering(rows, row, what, moved) {
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
export const labelled = (label, what) => ({ "aria-label": label.replace("{}", what), "data-label": label });

/** Name everything in a row after its text. */
export function rename(row, what) {
  for (const one of row.querySelectorAll("[data-label]")) {
    one.setAttribute("aria-label", one.dataset.label.replace("{}", what));
  }
}

/** What a row is called. */
export const called = ({ text }) => (text.trim() ? `“${text.trim()}”` : "an empty answer");

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
