import { DiscreetError } from "../errors.js";
import { Draws } from "./randomness.js";

/** One person's report, with secure randomness. The only place where an answer becomes a report. */
export function perturb(mechanism, answer) {
  return mechanism.encoding.report(new Draws(), placesInAnswer(mechanism, answer));
}

/**
 * The items of an answer, each once: of a single one a list with it. An error never repeats the
 * answer: errors end up in logs.
 * @returns {number[]}
 */
export function placesInAnswer({ kind, policy }, answer) {
  if (!kind.lists) return [findPlace(policy, answer)];
  if (typeof answer === "string" || typeof answer?.[Symbol.iterator] !== "function") {
    const what = `this question takes a list of items, got ${kindOf(answer)}`;
    throw new DiscreetError("answer", `${what}; give a list, be it empty`);
  }
  return [...new Set(Array.from(answer, (item) => findPlace(policy, item)))];
}

function findPlace({ items }, item) {
  if (typeof item === "string") {
    const index = items.indexOf(item);
    if (index >= 0) return index;
    const next = `choose one of the ${items.length} items of the question`;
    throw new DiscreetError("answer", `the answer is not an item of this question; ${next}`);
  }
  if (Number.isInteger(item) && item >= 0 && item < items.length) return item;
  const allowed = `the label of an item or its index from 0 to ${items.length - 1}`;
  const what = `an answer is ${allowed}, got ${kindOf(item)}`;
  throw new DiscreetError("answer", `${what}; choose an item`);
}

/** What something is, without saying what it holds. */
function kindOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
