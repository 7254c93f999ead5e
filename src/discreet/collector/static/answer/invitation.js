import { cleaned, shortFingerprint } from "../discreet.js";
import { $, element } from "./dom.js";
import { spoken } from "./status.js";
import { localTime, text, words } from "./words.js";

const KEYS = ["server", "collection", "fingerprint"]; // of a fragment, each once

/**
 * Server, collection and pinned fingerprint of the page's address: /c/NAME#FINGERPRINT here,
 * #server=…&collection=…&fingerprint=… in a copy elsewhere.
 */
export function readInvitation(address) {
  const { origin, pathname, hash } = new URL(address);
  const fragment = new URLSearchParams(/=/.test(hash) ? hash.slice(1) : "");
  const path = /^(.*)\/c\/([^/]+)\/?$/.exec(pathname);
  const server = fragment.get("server") ?? (path && origin !== "null" ? origin + path[1] : null);
  const name = fragment.get("collection") ?? (path && decoded(path[2]));
  const pinned = (/=/.test(hash) ? fragment.get("fingerprint") : hash.slice(1)) || null;
  if (!server || !name) {
    const form = "\u2066#server=https://host&collection=NAME&fingerprint=…\u2069"; // left to right
    throw spoken("uninvited", { form });
  }
  // strictly: what stands beside or instead of a fingerprint could only seem to pin the question
  const keys = [...fragment.keys()];
  const isOdd = keys.some((key, k) => !KEYS.includes(key) || keys.indexOf(key) < k);
  if (isOdd || (pinned && !/^[0-9a-f]{64}$/.test(pinned))) {
    throw spoken("noFingerprint");
  }
  const isSpelled = !path || (spellings(name).includes(path[2]) && pathname.endsWith(path[2]));
  if (!isSpelled || !isPlain(address) || !isPlain(server)) {
    throw spoken("personal");
  }
  return { server, name, pinned };
}

/** Whether an address has no user, no query and no empty folder, which nobody would see. */
function isPlain(address) {
  try {
    const { username, password, pathname } = new URL(address);
    const isBare = !username && !password && !pathname.includes("//");
    return isBare && !address.replace(/#.*/s, "").includes("?");
  } catch {
    return false;
  }
}

/** How a name stands in an address: as this module and as `discreet serve` write it. */
function spellings(name) {
  const plain = encodeURIComponent(name);
  const escaped = (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`;
  return [plain, plain.replace(/[!'()*]/g, escaped)];
}

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // it is spelled as no name is
  }
}

const OURS = ["opens", "closes", "minimum", "keeps"]; // rows in the language of the page

/** Show what happens to an answer, who asks, what for, from when to when. */
export function showAbout(survey, wording, keeps) {
  const { about, name } = survey;
  $("facts").hidden = false;
  const caution = survey.caution();
  const isAlone = survey.questions.some(({ mechanism }) => mechanism.kind.alone);
  $("safe").textContent = caution ? "" : text(isAlone ? "safeAlone" : "safe");
  $("caution").hidden = !caution;
  $("caution").textContent = caution;
  const title = survey.questions.length === 1 ? wording.question(survey.only.name) : "";
  document.title = title || cleaned(name);
  $("question").textContent = document.title;
  $("rehearsal").hidden = !about.rehearsal;
  for (const id of ["question", "choices", "told"]) {
    if (wording.language) $(id).setAttribute("lang", wording.language);
  }
  const rows = [
    ...["organiser", "purpose", "consent", "contact", "notice"]
      .map((key) => [key, wording.about(key)]),
    ...["opens", "closes"].map((key) => [key, about[key] && localTime(about[key])]),
    ["minimum", about.minimum && text("minimumText", { n: about.minimum })],
  ].filter(([, said]) => said);
  if (rows.length || keeps === "reports") rows.push(["keeps", text(`${keeps}Kept`)]);
  const who = wording.about("organiser");
  $("about-title").textContent = text(who ? "whoAsksNamed" : "whoAsks", { who });
  $("trust-title").textContent = text("trustTitle");
  $("own").hidden = !about.consent;
  $("own-text").textContent = about.consent ? text("agreeOwn", { consent: wording.about("consent") }) : "";
  $("told").replaceChildren(...rows.flatMap(([key, said]) => {
    const language = OURS.includes(key) ? { lang: words.language } : {};
    const heading = element("dt", text(key), { lang: words.language });
    return [heading, element("dd", said, { dir: "auto", ...language })];
  }));
}

/** Where the results of a survey are. */
export const resultsOf = ({ url }, { name }) => `${url}/c/${encodeURIComponent(name)}/results`;

/**
 * Say where the page is and where reports go, with the paths: one of their own would tell who
 * somebody is. And what the page verified, and what all answers together tell.
 */
export function showPlace(client, survey, wording, pinned) {
  const { host, pathname } = new URL(client.url);
  const place = { name: cleaned(survey.name), host: host + pathname.replace(/\/$/, "") };
  const page = window.location;
  const here = page.host ? page.host + page.pathname : text("device");
  const isCopy = page.origin + page.pathname.replace(/\/c\/[^/]+$/, "") !== client.url;
  $("where").textContent = isCopy ? text("copy", { ...place, here }) : text("where", place);
  const fingerprint = shortFingerprint(survey.fingerprint);
  $("pinned").textContent = text(pinned ? "pinned" : "unpinned", { fingerprint });
  const several = survey.questions.length > 1;
  $("everything").hidden = !several;
  $("everything").textContent = several
    ? [survey.drawn(), survey.promise(wording.openly).sentence].join(" ").trim() : "";
}
