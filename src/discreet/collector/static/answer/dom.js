const XHTML = "http://www.w3.org/1999/xhtml";

export const $ = (id) => document.getElementById(id);

/** A new element with a text in it. */
export function element(name, content = "", attributes = {}, space = XHTML) {
  const made = document.createElementNS(space, name);
  made.textContent = content;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export const capital = (sentence) => sentence[0].toUpperCase() + sentence.slice(1);

export const hex = (bytes, between = "") => {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(between);
};
