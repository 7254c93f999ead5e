// What is going on, and what went wrong.
import { DiscreetError } from "../discreet.js";
import { $, capital } from "./dom.js";
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

/** An error that is a text of the page: it is said in the language that is in use then. */
export const spoken = (key, values) => new DiscreetError(key, text(key, values), { key, values });

let problem = []; // the arguments of showProblem, to say it again in another language

/**
 * Say what went wrong and what to do; behind a click the exact cause, in English for whoever helps.
 * `more` are the keys of further texts.
 */
export function showProblem(error, more = []) {
  problem = [error, more];
  const ours = error instanceof DiscreetError;
  if (!ours) console.error(error);
  const message = !ours ? text("wrong") : error.key ? text(error.key, error.values) : error.message;
  const key = error.status === 410 ? "late" : error.status === 404 ? "missing"
    : error.isDamaged ? "damaged" : error.code;
  const kind = ours && words.errors[key];
  $("trouble").textContent = [kind || message, ...more.map((one) => text(one))].join(" ");
  $("help").hidden = !kind;
  $("help").open = false;
  $("cause").textContent = kind ? capital(message) : "";
  $("see").hidden = $("retry").hidden = true;
  $("problem").className = "card problem";
  $("problem").hidden = false;
  status(null);
}

/** The same, in the language that is in use now. */
export const repeatProblem = () => showProblem(...problem);
