// The requests.
import { draw } from "./draw.js";
import { $, say } from "./dom.js";
import { page, startAgain, state } from "./state.js";
import { text } from "./words.js";

/** The address of the estimate that is looked at. */
export function addressOf(more = {}) {
  const { question, by, view, confidence } = state.chosen;
  const named = { confidence, ...(view && { views: view }), ...(question && { question }),
    ...(by && { by }), ...more };
  return `${page.dataset.estimate}?${new URLSearchParams(named)}`;
}

export const headers = () => (state.token ? { Authorization: `Bearer ${state.token}` } : {});

/** Fetch the estimate, if it has changed, and draw it. */
export async function look() {
  if (page.dataset.token !== undefined && !state.token) {
    if ($("token").hidden) ask();
    return;
  }
  const asked = addressOf();
  try {
    const condition = state.mark ? { "If-None-Match": state.mark } : {};
    const answer = await fetch(asked, { headers: { ...headers(), ...condition } });
    if (asked !== addressOf()) return; // something else is looked at meanwhile
    if (answer.status === 304) say("");
    else if (answer.status === 401) ask(state.token ? text("tokenWrong") : "");
    else if (answer.status === 400) await fallBack(asked, await answer.json());
    else await accept(answer);
  } catch {
    say(text("away"));
  }
}

/** The address asks for what this survey does not have. */
async function fallBack(asked, { detail }) {
  startAgain();
  if (asked === addressOf()) say(detail);
  else await look();
}

async function accept(answer) {
  const found = await answer.json();
  if (!answer.ok) {
    say(found.detail);
    return;
  }
  state.mark = answer.headers.get("ETag") ?? "";
  state.estimate = found;
  say("");
  draw();
}

function ask(problem = "") {
  state.token = null;
  sessionStorage.removeItem("discreet-token");
  $("token").hidden = false;
  $("numbers").hidden = true;
  say(problem);
}
