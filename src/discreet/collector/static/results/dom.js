export const $ = (id) => document.getElementById(id);

/** A new element with a text in it. */
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** A cell that heads a row or a column. */
export function heading(text, scope) {
  const made = element("th", text);
  made.scope = scope;
  return made;
}

/** The options of a list, if they have changed. */
export function fill(list, options, value) {
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
export function say(problem) {
  $("problem").hidden = !problem;
  $("problem").textContent = problem;
}
