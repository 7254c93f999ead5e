// The participant's page: fetch and verify the survey, then hand over to page.js, which asks, shows
// what will be sent, and sends it.
import { Client, cleaned } from "../discreet.js";
import { $, element } from "./dom.js";
import { readInvitation, resultsOf, showAbout } from "./invitation.js";
import { Page } from "./page.js";
import { showProblem, spoken, status, waiting } from "./status.js";
import { Wording } from "./wording.js";
import {
  TEXTS, localTime, preferredWords, storeLanguage, translate, words,
} from "./words.js";

const WORTH_TRYING = ["network", "server", "refused", "ledger"]; // codes of errors that may pass

let repeat = () => {}; // says again, in another language, what was said last

/** Fetch and verify the question; when the network comes back, again. */
async function openQuestion() {
  status("fetching");
  $("problem").hidden = true;
  $("lead").hidden = false;
  try {
    const { server, name, pinned } = readInvitation(document.URL);
    $("where").textContent = `discreet · ${cleaned(name)}`;
    const client = new Client(server, { waiting });
    const collection = await client.describe(name, { fingerprint: pinned });
    if (collection.state !== "open") {
      repeat = () => showClosed(client, collection);
      repeat();
      return;
    }
    const page = new Page(client, collection, pinned);
    await page.start();
    repeat = () => page.speak();
  } catch (error) {
    repeat = () => {
      showProblem(error);
      $("lead").hidden = true; // there is nothing to answer
      $("retry").hidden = !WORTH_TRYING.includes(error.code) || error.status === 404;
    };
    repeat();
    if (error.code === "network") window.addEventListener("online", openQuestion, { once: true });
  }
}

/** A survey that has not opened yet, or is closed. */
function showClosed(client, { survey, state, keeps, openResults }) {
  const { opens, closes } = survey.about;
  const isOver = closes && Date.parse(closes) <= Date.now();
  const key = state === "upcoming" ? "upcoming" : isOver ? "closedOn" : "closed";
  showAbout(survey, new Wording(survey), keeps);
  const time = localTime(isOver ? closes : opens ?? 0);
  showProblem(spoken(key, { time }), state === "closed" ? tookPart(client, survey) : []);
  $("problem").classList.replace("problem", "good"); // nothing is wrong
  $("lead").hidden = true;
  $("see").hidden = state !== "closed" || !openResults;
  $("see-link").href = resultsOf(client, survey);
}

/** The keys of what this browser knows of a survey that is closed: whether it has answered. */
function tookPart(client, survey) {
  try {
    if (client.unsent(survey)) return ["lateUnsent"];
    return client.reports(survey).length ? ["took"] : [];
  } catch { // storage is blocked or damaged, which does not matter any more
    return [];
  }
}

/** Whether another website shows this page in a frame. */
function isFramed() {
  try {
    return window.parent !== window && !window.parent.document;
  } catch { // another website's
    return true;
  }
}

function listLanguages() {
  $("language").replaceChildren(...TEXTS.map(({ language, name }) => {
    return element("option", name, { value: language, lang: language });
  }));
  $("language").value = words.language;
  $("languages").hidden = false;
  $("language").addEventListener("change", ({ target }) => {
    translate(TEXTS.find(({ language }) => language === target.value));
    storeLanguage();
    repeat();
  });
}

translate(preferredWords());
listLanguages();
$("framed").hidden = !isFramed();
$("alone").href = document.URL;
document.documentElement.dataset.begun = ""; // this browser understands the script
if (AbortSignal.timeout) {
  window.addEventListener("hashchange", () => window.location.reload());
  $("try").addEventListener("click", openQuestion);
  openQuestion();
} else {
  repeat = () => showProblem(spoken("old"));
  repeat();
  $("lead").hidden = true;
}
