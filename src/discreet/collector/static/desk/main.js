// The organiser's desk: log in; then a list of surveys, a form, or the page of one survey, as the
// part of the address after # says.
import { call, pathOf } from "./api.js";
import { $, announce, complain, h, show } from "./dom.js";
import { Editor, storedDraft } from "./editor.js";
import { drawList, drawNew } from "./list.js";
import { newSurvey, toFile } from "./model.js";
import { drawSurvey, update } from "./survey.js";

const LOOK = 3_000; // milliseconds between two looks at the counts

let basics = null; // words and templates; null while nobody is logged in
let editor = null;

const fragment = () => window.location.hash.slice(1);

/** Go to the page of a survey, or to the list. */
function goTo(name, error) {
  if (error?.status === 401) {
    askToken("Your session is over. Log in again: your draft is still here.");
    return;
  }
  window.location.hash = name ? `survey/${encodeURIComponent(name)}` : "";
}

/** Draw what the address says. */
async function drawPlace() {
  complain();
  const [what, name] = fragment().split("/").map(decodeURIComponent);
  try {
    basics ??= await call("/start");
    document.body.classList.add("in");
    if (what === "new") offerNew();
    else if (what === "edit" && storedDraft()) newEditor().open(storedDraft());
    else if (what === "survey") {
      drawSurvey(await call(pathOf(name)), goTo, storedDraft() !== null);
      show("survey");
    } else if (what === "log") await drawLog();
    else {
      await drawList();
      show("list");
    }
    for (const link of document.querySelectorAll("nav a")) {
      const isHere = link.hash.slice(1) === (what === "edit" ? "new" : what);
      if (isHere) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.querySelector("#desk > section:not([hidden]) h1")?.focus();
    window.scrollTo(0, 0);
  } catch (error) {
    sayFailure(error);
  }
}

function sayFailure(error) {
  if (error.status === 401) askToken();
  else complain(error.message);
}

function newEditor() {
  editor = new Editor(basics, goTo);
  return editor;
}

/** Begin a survey with an example, an empty one or a file. */
function offerNew() {
  const begin = async (toml) => {
    const { document: file } = await call("/open", { toml }).catch((error) => {
      complain(error.message);
      return {};
    });
    if (file) writeSurvey(file);
  };
  const words = basics.sensitivities;
  const draft = storedDraft();
  drawNew(basics, { begin, empty: () => writeSurvey(toFile(newSurvey(words), words)), stored: draft && (() => writeSurvey(draft)) });
}

function writeSurvey(file) {
  complain();
  window.history.pushState(null, "", "#edit");
  newEditor().open(file);
  $("edit-title").focus();
}

async function drawLog() {
  const { lines } = await call("/log");
  $("lines").replaceChildren(...lines.reverse().map(({ time, level, event, ...facts }) => h("tr", { class: level },
    h("td", {}, time.replace("T", " ").replace("Z", "")), h("td", {}, event),
    h("td", {}, Object.entries(facts).map(([key, fact]) => `${key}: ${fact}`).join(", ")))));
  $("no-lines").hidden = lines.length > 0;
  show("log");
}

// ---- logging in and out

function askToken(problem = "") {
  basics = null;
  document.body.classList.remove("in");
  show("login");
  complain(problem);
  $("token").focus();
}

$("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  complain();
  const token = $("token").value;
  $("token").value = ""; // it is not kept in the page
  try {
    await call("/login", { token });
  } catch (error) {
    complain(error.message);
    $("token").focus();
    return;
  }
  await drawPlace();
});

$("logout").addEventListener("click", async () => {
  try {
    await call("/logout", {});
    window.sessionStorage.clear();
    window.location.hash = "";
    askToken();
    announce("You are logged out.");
  } catch (error) {
    complain(error.message);
  }
});

// ---- live counts

async function lookAgain() {
  const [what, name] = fragment().split("/").map(decodeURIComponent);
  if (!document.hidden && basics) {
    try {
      if (what === "" && !$("list").hidden) await drawList();
      const isShown = what === "survey" && !$("survey").hidden;
      if (isShown) update(await call(pathOf(name)));
    } catch (error) {
      sayFailure(error);
    }
  }
  setTimeout(lookAgain, LOOK);
}

window.addEventListener("hashchange", drawPlace);
drawPlace();
setTimeout(lookAgain, LOOK);
