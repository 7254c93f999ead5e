// The page of one survey: share it, watch it, close and reopen it, take its counts along, delete it.
import { call, pathOf } from "./api.js";
import { countOf, datesOf, stateChip } from "./list.js";
import { $, announce, ask, button, complain, copy, h } from "./dom.js";

/** Draw the page; it is drawn once, and its count is brought up to date. */
export function drawSurvey(survey, leave, draft = false) {
  const { title, name, rehearsal } = survey;
  const warning = "A rehearsal: simulated people answer, and nothing here is real. It shows the form of your results, not what people will say.";
  const back = draft ? h("a", { href: "#edit" }, "Back to your survey") : h("a", { href: "#" }, "All surveys");
  $("survey").replaceChildren(
    h("p", { class: "quiet" }, rehearsal ? back : h("a", { href: "#" }, "All surveys")),
    h("h1", { tabindex: "-1" }, title),
    ...rehearsal ? [h("p", { class: "card problem" }, warning)] : [],
    h("div", { class: "two" }, h("div", {}, statePart(survey), !rehearsal && sharePart(survey), promisePart(survey)),
      h("div", {}, runPart(survey, leave))),
  );
  update(survey);
  $("survey").dataset.name = name;
}

/** Bring the numbers up to date. */
export function update(survey) {
  $("n").textContent = countOf(survey);
  $("n-note").textContent = survey.n === null ? `reports: you see the number from ${survey.least} on` : "reports";
  $("state").replaceChildren(...stateChip(survey).filter((x) => x));
  $("dates").textContent = datesOf(survey);
}

function statePart({ results, open_results: open, least }) {
  const everybody = `This collector shows results to everybody, in batches of ${least} reports or more.`;
  return h("div", { class: "card now" },
    h("p", { class: "count" }, h("strong", { id: "n" }), h("span", { class: "quiet", id: "n-note" })),
    h("p", { class: "row", id: "state" }), h("p", { class: "quiet", id: "dates" }),
    h("p", {}, h("a", { class: "button", href: results }, "See the results")),
    open && h("p", { class: "quiet everybody" }, everybody));
}

function sharePart({ name, invitation, fingerprint, button: snippet }) {
  const file = (rest) => `/desk${pathOf(name, rest)}`;
  const link = h("input", { type: "text", readonly: true, value: invitation, id: "link", "aria-label": "Invitation", dir: "ltr" });
  const html = h("textarea", { readonly: true, rows: 4, id: "snippet", "aria-label": "HTML of a link button", dir: "ltr" }, snippet);
  const here = /^https?:\/\/(localhost|127\.|\[::1\])/.test(invitation);
  return h("div", { class: "card share" }, h("h2", {}, "Invite people"),
    h("p", {}, "Send everybody the whole link. The part after # is the fingerprint: with it, the page refuses a survey that was changed."),
    h("div", { class: "row" }, link, button("Copy", () => copy(invitation, link), { class: "button small" })),
    here && h("p", { class: "wrong" }, "This link works on this machine only. Start the collector with --public-url, or with --lan to try it on a telephone."),
    h("div", { class: "code" }, h("img", { src: file("/code.svg"), alt: "QR code of the invitation", width: 180, height: 180 }),
      h("ul", { class: "plain" }, [["/poster", "Poster to print"], ["/code.png", "Code as PNG"], ["/code.svg", "Code as SVG"]].map(([rest, label]) => {
        return h("li", {}, h("a", { href: file(rest), target: "_blank", rel: "noopener", download: rest === "/poster" ? null : `${name}${rest.slice(5)}` }, label));
      }))),
    h("details", {}, h("summary", {}, "A button for your website"), html, h("p", {}, button("Copy the HTML", () => copy(snippet, html), { class: "button plain small" }))),
    h("details", {}, h("summary", {}, "Fingerprint, to publish elsewhere"),
      h("p", {}, "Print it where the server cannot change it: in a letter, on your website. People can compare it on the page."),
      h("code", { class: "bytes" }, fingerprint.match(/.{4}/g).join(" "))));
}

function promisePart({ promise, caution }) {
  return h("details", { class: "card" }, h("summary", {}, "What people are promised"),
    caution && h("p", { class: "wrong" }, caution), h("ul", {}, promise.map((one) => h("li", {}, one))));
}

function runPart(survey, leave) {
  const { name, state, history, keeps, moved, rehearsal, closes } = survey;
  const file = (rest) => `/desk${pathOf(name, rest)}`;
  const isOver = closes && Date.parse(closes) <= Date.now();
  const act = (what, done) => async () => {
    const made = await call(pathOf(name, `/${what}`), {});
    announce(done);
    drawSurvey(made, leave);
    return made;
  };
  const close = () => ask(`Close “${name}”?`, h("p", {}, "It takes no more reports. Its counts stay, and you can reopen it while its results are not public."), "Close it", act("close", "Closed."));
  const reopen = () => act("reopen", "Open again.")().catch((error) => complain(error.message));
  return [
    h("div", { class: "card" }, h("h2", {}, "Run it"),
      h("p", { class: "row" },
        state !== "closed" && button("Close", close, { class: "button plain", id: "close" }),
        state === "closed" && !isOver && !moved && button("Reopen", reopen, { class: "button plain", id: "reopen" }),
        h("a", { class: "button plain", href: file("/export"), download: `${name}.zip`, id: "export" }, "Export the counts"),
        h("a", { class: "button plain", href: file("/backup"), download: `${name}.sqlite`, id: "backup" }, "Backup")),
      h("p", { class: "quiet" }, keeps === "reports" ? "The collector keeps the reports: others can count them again." : "The collector keeps the counts and the random numbers of the reports. A report itself is kept only until it is counted."),
      h("h3", {}, "What was done"),
      history.length ? h("ul", { class: "plain" }, history.map(({ time, what }) => h("li", {}, `${what} · ${time.replace("T", " ").replace("Z", " UTC")}`)))
        : h("p", { class: "quiet" }, "Nothing yet: published, and never closed.")),
    h("div", { class: "card" }, h("h2", {}, rehearsal ? "Remove the rehearsal" : "Delete it"),
      h("p", { class: "quiet" }, rehearsal ? "It can go at any time." : "The counts are gone for good. Backups that you made stay."),
      button(rehearsal ? "Remove" : "Delete…", () => deleteSurvey(survey, leave), { class: "button danger plain", id: "delete" })),
  ];
}

async function deleteSurvey({ name, rehearsal, state }, leave) {
  if (!rehearsal && state !== "closed") {
    complain("Close the survey before you delete it.");
    return;
  }
  const typed = h("input", { type: "text", id: "typed", autocomplete: "off", spellcheck: "false", "aria-label": "The survey’s name" });
  const content = rehearsal ? h("p", {}, "Simulated reports are deleted.")
    : [h("p", {}, "This cannot be taken back. Type the survey’s name: ", h("strong", {}, name)), typed];
  const gone = await ask(`Delete “${name}”?`, content, "Delete for good", async () => {
    await call(pathOf(name, "/delete"), { name: typed.value });
    return true;
  }, { danger: true });
  if (!gone) return;
  announce(`“${name}” is deleted.`);
  leave("");
}
