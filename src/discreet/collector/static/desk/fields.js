// The fields of the form.
import { h } from "./dom.js";

let fieldCount = 0;

/**
 * A labelled field. `where` is the place in the survey file that it writes: what is wrong there is
 * said under it; `part` is what `Todo` calls it.
 */
export function field(label, input, { note, where, part, wide } = {}) {
  fieldCount += 1;
  input.id ||= `f${fieldCount}`;
  return h("div", { class: wide ? "field wide" : "field", "data-where": where, "data-part": part },
    h("label", { for: input.id }, label), input, note && h("small", { class: "quiet" }, note));
}

export function textInput(row, name, changed, attributes = {}) {
  const read = ({ target }) => {
    row[name] = target.value;
    changed();
  };
  const { lines, ...rest } = attributes;
  const common = { oninput: read, value: row[name] ?? "", autocomplete: "off", dir: "auto", ...rest };
  return lines ? h("textarea", { rows: lines, ...common }) : h("input", { type: "text", ...common });
}

export function numberInput(row, name, changed, attributes = {}) {
  const read = ({ target }) => {
    const n = target.valueAsNumber;
    if (!Number.isInteger(n)) return;
    row[name] = n;
    changed();
  };
  const shown = { value: row[name] ?? "", inputmode: "numeric", step: 1, ...attributes };
  return h("input", { type: "number", oninput: read, ...shown });
}

/** A moment: in the file in UTC, here in the organiser's own time. */
export function timeInput(row, name, changed) {
  const local = (time) => {
    const at = new Date(time);
    return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  };
  const read = ({ target }) => {
    row[name] = target.value && `${new Date(target.value).toISOString().slice(0, 19)}Z`;
    changed();
  };
  const known = row[name] && !Number.isNaN(Date.parse(row[name]));
  return h("input", { type: "datetime-local", onchange: read, value: known ? local(row[name]) : "" });
}

/** A list to choose from: [value, label] each. */
export function choice(row, name, options, changed, attributes = {}) {
  const read = ({ target }) => {
    row[name] = target.value;
    changed();
  };
  const listed = options.map(([value, label]) => h("option", { value }, label));
  return h("select", { onchange: read, value: row[name] ?? "", ...attributes }, listed);
}
