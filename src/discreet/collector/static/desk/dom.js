export const $ = (id) => document.getElementById(id);

/** A new element: attributes, `on…` listeners, and what is in it. Empty children are left out. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  const { value, ...rest } = attributes;
  for (const [key, given] of Object.entries(rest)) {
    if (given === undefined || given === null || given === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), given);
    else made.setAttribute(key, given === true ? "" : given);
  }
  made.append(...children.flat(3).filter((child) => child || child === 0));
  if (value !== undefined) made.value = value; // of a list, once its options are there
  return made;
}

/** A button that does something. */
export function button(label, work, attributes = {}) {
  return h("button", { type: "button", class: "button", onclick: work, ...attributes }, label);
}

/** Only this section is shown. */
export function show(id) {
  for (const section of document.querySelectorAll("#desk > section")) {
    section.hidden = section.id !== id;
  }
}

/** Say what went wrong, or nothing. */
export function complain(sentence = "") {
  $("problem").textContent = sentence;
  $("problem").hidden = !sentence;
  if (sentence) $("problem").scrollIntoView({ block: "nearest" });
}

/** Say what was done; it goes away by itself. */
export function announce(sentence) {
  $("done").textContent = sentence;
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => { $("done").textContent = ""; }, 6_000);
}

/** Copy a text; where the browser refuses, say so and select it. */
export async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied.");
  } catch {
    source?.focus();
    source?.select?.();
    announce("Your browser does not let us copy. The text is selected: press Ctrl+C.");
  }
}

/** Save a text as a file. */
export function download(name, text, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

/**
 * Ask something in a dialog: the promise is what `work` returns, or undefined if it was left. A
 * refusal is said in the dialog, which stays open.
 */
export function ask(title, content, label, work, { danger = false } = {}) {
  const problem = h("p", { class: "wrong", role: "alert", hidden: true });
  return new Promise((resolve) => {
    const go = h("button", { class: danger ? "button danger" : "button" }, label);
    const form = h("form", { method: "dialog" },
      h("h2", { id: "dialog-title", tabindex: "-1" }, title), content, problem,
      h("p", { class: "row end" }, button("Cancel", () => dialog.close(), { class: "button plain" }), go));
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    let done;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        done = await work();
        dialog.close();
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
      }
      go.disabled = false;
    });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(done); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export const figure = (n) => n.toLocaleString("en");

/** A moment in the organiser's own time. */
export function localTime(time) {
  return new Date(time).toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });
}
