// The results page: asks for the estimate every two seconds and draws it. The organiser's token
// stays in this tab.
import { watchWideTables } from "./cross.js";
import { draw, drawTables } from "./draw.js";
import { $, element } from "./dom.js";
import { look } from "./look.js";
import { listenToShare } from "./share.js";
import { choose, chooseSoon, goToAddress, state } from "./state.js";
import { showMore } from "./table.js";
import { TEXTS, pickLanguage, translate, words } from "./words.js";

const PAUSE = 2000; // milliseconds between two looks
const BREATH = 10; // times as long as a look took, if that is longer

function lookAnew() {
  state.mark = "";
  return look();
}

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = $("secret").value.trim();
  sessionStorage.setItem("discreet-token", state.token);
  lookAnew();
});
$("which").addEventListener("change", ({ target }) => {
  choose({ question: target.value, group: "" });
  lookAnew();
});
$("by").addEventListener("change", ({ target }) => {
  choose({ by: target.value, group: "" });
  lookAnew();
});
$("group").addEventListener("change", ({ target }) => {
  choose({ group: target.value });
  draw();
});
$("confidence").addEventListener("change", ({ target }) => {
  choose({ confidence: target.value });
  lookAnew();
});
$("views").addEventListener("change", ({ target }) => {
  choose({ view: target.value });
  lookAnew();
});
$("search").addEventListener("input", ({ target }) => {
  chooseSoon({ find: target.value });
  if (state.estimate) drawTables();
});
$("more").addEventListener("click", () => { showMore(); drawTables(); });
$("noise").addEventListener("click", () => { state.noise = true; drawTables(); });
$("exactly").addEventListener("toggle", () => state.estimate && drawTables());
window.addEventListener("popstate", () => {
  goToAddress();
  $("search").value = state.chosen.find;
  look();
});

function listLanguages() {
  $("language").replaceChildren(...TEXTS.map(({ language, name }) => {
    return Object.assign(element("option", name), { value: language, lang: language });
  }));
  $("language").value = words.language;
  $("language").addEventListener("change", ({ target }) => {
    pickLanguage(target.value);
    if (state.estimate) draw();
  });
}

async function forever() {
  const start = performance.now();
  if (!document.hidden || !state.estimate) await look();
  setTimeout(forever, Math.max(PAUSE, BREATH * (performance.now() - start)));
}

translate();
listLanguages();
listenToShare();
watchWideTables();
$("search").value = state.chosen.find;
forever();
