// What is going on, and what went wrong.
import { DiscreetError } from "../discreet.js";
import { $, capital, element } from "./dom.js";
import { text, words } from "./words.js";

const SLOW = 2_000; // milliseconds until a slow connection is called slow

let slowTimer;

/** Say what is happening. After two seconds the connection is called slow. */
export function status(key) {
  clearTimeout(slowTimer);
  delete $("status").dataset.text; // from now on it has a text of its own
  $("status").hidden = !key;
  if (!key) return;
  $("status").textContent = text(navigator.onLine ? key : "offline");
  slowTimer = setTimeout(() => {
    $("status").textContent = text(navigator.onLine ? "slow" : "offline");
  }, SLOW);
}

/** Say that an attempt has failed, and that the next one is so many milliseconds away. */
export function waiting(milliseconds) {
  clearTimeout(slowTimer);
  $("status").textContent = navigator.onLine
    ? text("away", { n: Math.max(1, Math.round(milliseconds / 1000)) }) : text("offline");
}

/** Say what went wrong: in the language of the page, and in English for whoever helps. */
export function showProblem(error, more = []) {
  const ours = error instanceof DiscreetError;
  if (!ours) console.error(error);
  const message = ours ? error.message : text("wrong");
  const translated = ours && words.errors[error.status === 410 ? "late" : error.code];
  const stop = /[.!?…]$/.test(message) ? "" : ".";
  $("problem").textContent = [translated || capital(message) + stop, ...more].join(" ");
  if (translated) $("problem").append(element("small", message, { lang: "en", dir: "ltr" }));
  $("problem").hidden = false;
  status(null);
}
