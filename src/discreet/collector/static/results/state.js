// What is looked at, and the last estimate of it. The view is in the address behind "#", which no
// server sees: a link leads to it, and the back button to the one before.
import { $ } from "./dom.js";

export const page = $("results");

const START = { question: "", by: "", group: "", view: "", confidence: "0.95", find: "" };
const TYPING = 300; // milliseconds without a key
const FIRST = 50; // rows drawn before more are asked for

export const state = {
  token: page.dataset.token === undefined ? null : sessionStorage.getItem("discreet-token"),
  estimate: null, // the last one
  mark: "", // its ETag
  rows: FIRST, // so many are drawn
  noise: false, // whether numbers are shown that mean nothing yet
  badLink: false, // whether the address asked for what there is not
  chosen: readAddress(),
};

let later; // the timer of an address that follows

/** The view that the address names. */
function readAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  const known = [...named].filter(([key]) => key in START);
  return { ...START, ...Object.fromEntries(known) };
}

/** What differs from the first view, as it stands in the address. */
function fragment() {
  const said = Object.entries(state.chosen).filter(([key, value]) => value !== START[key]);
  const written = new URLSearchParams(said).toString();
  return written && `#${written}`;
}

/** Look at something else. A step that one can go back from, unless `isStep` is false. */
export function choose(changes, isStep = true) {
  take(changes);
  clearTimeout(later);
  const address = `${location.pathname}${location.search}${fragment()}`;
  history[isStep ? "pushState" : "replaceState"](null, "", address);
}

/** The same while somebody types: the address follows after a pause, as browsers want it. */
export function chooseSoon(changes) {
  take(changes);
  clearTimeout(later);
  later = setTimeout(() => choose({}, false), TYPING);
}

function take(changes) {
  state.chosen = { ...state.chosen, ...changes };
  Object.assign(state, { rows: FIRST, noise: false, badLink: false });
}

/** The view of the address, after a step back or another link. */
export function goToAddress() {
  state.chosen = readAddress();
  Object.assign(state, { rows: FIRST, noise: false, badLink: false, mark: "" });
}

/** The address asks for what there is not: the first view, and a word about it. */
export function startAgain() {
  choose(START, false);
  Object.assign(state, { badLink: true, mark: "" });
}

/** The public answers of a group, as they stand in the address. */
export const keyOf = ({ group }) => Object.values(group).join(", ");

/** The estimate of the chosen group, or of everybody. */
export function shown() {
  const { groups } = state.estimate;
  return groups.find((group) => keyOf(group) === state.chosen.group) ?? state.estimate;
}

/** Whether this is what everybody sees, without the token and away from the desk. */
export const isPublic = () => !state.token && page.dataset.desk === undefined;
