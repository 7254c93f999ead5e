// The participant's page: fetch and verify the survey, then hand over to page.js, which asks, shows
// what will be sent, and sends it.
import { Client, DiscreetError, cleaned } from "../discreet.js";
import { $, element } from "./dom.js";
import { readInvitation, showAbout } from "./invitation.js";
import { Page } from "./page.js";
import { showProblem, status, waiting } from "./status.js";
import { Wording } from "./wording.js";
import {
  TEXTS, localTime, preferredWords, storeLanguage, text, translate, words,
} from "./words.js";

let repeat = () => {}; // says again, in another language, what was said last

/** Fetch and verify the question; when the network comes back, again. */
async function openQuestion() {
  status("fetching");
  $("problem").hidden = true;
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
    repeat = () => showProblem(error);
    repeat();
    if (error.code === "network") window.addEventListener("online", openQuestion, { once: true });
  }
}

/** A survey that has not opened yet, or is closed. */
function showClosed(client, { survey, state, keeps }) {
  const { opens, closes } = survey.about;
  const isOver = closes && Date.parse(closes) <= Date.now();
  const key = state === "upcoming" ? "upcoming" : isOver ? "closedOn" : "closed";
  showAbout(survey, new Wording(survey), keeps);
  const said = text(key, { time: localTime(isOver ? closes : opens ?? 0) });
  const lost = client.unsent(survey) ? [text("lateUnsent")] : [];
  showProblem(new DiscreetError(state, said), lost);
}

function listLanguages() {
  $("language").replaceChildren(...TEXTS.map(({ language, name }) => {
    return element("option", name, { value: language, lang: language });
  }));
  $("language").value = words.language;
  $("language").addEventListener("change", ({ target }) => {
    translate(TEXTS.find(({ language }) => language === target.value));
    storeLanguage();
    repeat();
  });
}

window.addEventListener("hashchange", () => window.location.reload());
translate(preferredWords());
listLanguages();
openQuestion();
