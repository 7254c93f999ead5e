// The results page: asks for the estimate every two seconds and draws it. The organiser's token
// stays in this tab.
import { draw } from "./draw.js";
import { $, element, say } from "./dom.js";
import { address, headers, look } from "./look.js";
import { state } from "./state.js";

const PAUSE = 2000; // milliseconds between two looks

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = $("secret").value.trim();
  sessionStorage.setItem("discreet-token", state.token);
  state.mark = "";
  look();
});
for (const [id, key] of [["which", "question"], ["by", "by"]]) {
  $(id).addEventListener("change", ({ target }) => {
    state.chosen = { ...state.chosen, [key]: target.value, group: "" };
    state.mark = "";
    look();
  });
}
$("group").addEventListener("change", ({ target }) => {
  state.chosen = { ...state.chosen, group: target.value };
  draw();
});
$("search").addEventListener("input", () => state.estimate && draw());
$("views").addEventListener("change", () => { state.mark = ""; look(); });
$("more").addEventListener("click", () => { state.all = true; draw(); });
$("print").addEventListener("click", () => {
  $("exactly").open = true;
  window.print();
});
$("csv").addEventListener("click", async () => {
  const answer = await fetch(address({ format: "csv" }), { headers: headers() });
  if (!answer.ok) return say("The table cannot be fetched; try again.");
  const link = element("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = "estimate.csv";
  link.click();
  URL.revokeObjectURL(link.href);
});

async function forever() {
  if (!document.hidden || !state.estimate) await look();
  setTimeout(forever, PAUSE);
}
forever();
