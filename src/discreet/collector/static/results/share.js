// What can be taken away: a link, the table, the chart, a page on paper.
import { drawChart } from "./chart.js";
import { $, element, say } from "./dom.js";
import { addressOf, headers } from "./look.js";
import { page, state } from "./state.js";
import { text } from "./words.js";

const SCALE = 2; // pixels of the PNG per unit of the chart

/** Save a file under the name of what is looked at. */
function save(content, ending) {
  const { asked, question } = state.estimate;
  const name = asked.length > 1 ? `${page.dataset.name}-${question}` : page.dataset.name;
  const link = element("a");
  link.href = URL.createObjectURL(content);
  link.download = `${name.replace(/[^\p{L}\p{N}]+/gu, "-")}.${ending}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

async function saveTable() {
  const asked = addressOf({ format: "csv", explained: "true" });
  const answer = await fetch(asked, { headers: headers() }).catch(() => null);
  if (answer?.ok) save(await answer.blob(), "csv");
  else say(text("noTable"));
}

const asFile = ({ svg }) => new Blob([svg], { type: "image/svg+xml" });

/** The same chart, drawn by the browser. */
async function savePixels() {
  const made = drawChart();
  const address = URL.createObjectURL(asFile(made));
  const [image, canvas] = [new Image(), element("canvas")];
  image.src = address;
  await image.decode();
  Object.assign(canvas, { width: SCALE * made.width, height: SCALE * made.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  save(await new Promise((done) => canvas.toBlob(done, "image/png")), "png");
}

/** Copy the link to this view; where the browser refuses, show it to be copied by hand. */
async function copyLink() {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // refused, or there is no clipboard
    isCopied = false;
  }
  $("copied").textContent = text(isCopied ? "copied" : "copyRefused");
  $("link").hidden = isCopied;
  if (isCopied) return;
  $("link").value = location.href;
  $("link").select();
}

export function listenToShare() {
  $("copy").addEventListener("click", copyLink);
  $("csv").addEventListener("click", saveTable);
  $("svg").addEventListener("click", () => save(asFile(drawChart()), "svg"));
  $("png").addEventListener("click", savePixels);
  $("print").addEventListener("click", () => window.print());
}
