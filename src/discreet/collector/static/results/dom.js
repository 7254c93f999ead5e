export const $ = (id) => document.getElementById(id);

/** A new element with a text in it. */
export function element(name, content = "", className = "") {
  const made = document.createElement(name);
  made.textContent = content;
  if (className) made.className = className;
  return made;
}

/** A cell that heads a row or a column. */
export function heading(content, scope) {
  const made = element("th", content);
  made.scope = scope;
  made.dir = "auto";
  return made;
}

/** The options of a list, if they have changed. */
export function setOptions(list, options, value) {
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
export function tell(id, content) {
  $(id).hidden = !content;
  $(id).textContent = content;
}

/** Say what went wrong; of nothing, no more. */
export const say = (problem) => tell("problem", problem);
