// The requests.
import { draw } from "./draw.js";
import { $, say } from "./dom.js";
import { page, state, view } from "./state.js";

const query = (more) => {
  const { question, by } = state.chosen;
  return new URLSearchParams({
    views: view(), ...(question ? { question } : {}), ...(by ? { by } : {}), ...more,
  });
};
export const address = (more = {}) => `${page.dataset.estimate}?${query(more)}`;
export const headers = () => (state.token ? { Authorization: `Bearer ${state.token}` } : {});

export async function look() {
  if (page.dataset.token !== undefined && !state.token) {
    if ($("token").hidden) ask();
    return undefined;
  }
  try {
    const condition = state.mark ? { "If-None-Match": state.mark } : {};
    const answer = await fetch(address(), { headers: { ...headers(), ...condition } });
    if (answer.status === 304) return say("");
    const document_ = await answer.json();
    if (answer.status === 401) return ask(state.token ? "That token is not the organiser’s." : "");
    if (!answer.ok) return say(document_.detail);
    state.mark = answer.headers.get("ETag") ?? "";
    state.estimate = document_;
    say("");
    draw();
  } catch {
    say("The collector cannot be reached; trying again.");
  }
}

function ask(problem = "") {
  state.token = null;
  sessionStorage.removeItem("discreet-token");
  $("token").hidden = false;
  $("numbers").hidden = true;
  say(problem);
}
