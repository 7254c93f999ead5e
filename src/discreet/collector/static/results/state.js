// What is looked at, and the last estimate of it.
import { $ } from "./dom.js";

export const page = $("results");

export const state = {
  token: page.dataset.token === undefined ? null : sessionStorage.getItem("discreet-token"),
  estimate: null, // the last one
  mark: "", // its ETag
  all: false, // whether every row is drawn
  chosen: { question: "", by: "", group: "" }, // beside the view
};

/** The name of the view; "" is the raw estimate. */
export const view = () => document.querySelector('[name="view"]:checked').value;

/** The estimate of the chosen group, or of everybody. */
export function shown() {
  const key = ({ group }) => Object.values(group).join(", ");
  const { groups } = state.estimate;
  return groups.find((group) => key(group) === state.chosen.group) ?? state.estimate;
}
