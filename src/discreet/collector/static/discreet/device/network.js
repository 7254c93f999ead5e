// The only part that talks to a server.
import { parse } from "../check/document.js";
import { DiscreetError } from "../errors.js";
import { cleaned } from "../policy/labels.js";

const LATER = new Set([408, 425, 429]); // refusals after which the same request is sent again
const LONGEST = 20_000; // milliseconds of one attempt, and of one pause

/**
 * The JSON that the collector answers. Retried while it is away or busy, with growing pauses that
 * depend on nothing but its answers.
 */
export async function requestJson(url, options, { fetch, server, patience, pause, waiting }) {
  const end = performance.now() + patience;
  let why = "it cannot be reached"; // or its last answer
  for (let growing = pause; ; growing *= 2) {
    let asked = 0; // the pause that the collector asks for
    try {
      const left = Math.min(LONGEST, end - performance.now());
      const signal = AbortSignal.timeout(Math.ceil(Math.max(1, left)));
      const response = await fetch(url, {
        ...options, signal, credentials: "omit", referrerPolicy: "no-referrer",
        cache: "no-store", redirect: "manual",
      });
      const bytes = await response.arrayBuffer();
      const final = response.status < 500 && !LATER.has(response.status);
      if (final) return readAnswer(response, bytes);
      why = `it answers ${response.status}`;
      asked = 1000 * (Number(response.headers.get("Retry-After")) || 0);
    } catch (error) {
      if (error instanceof DiscreetError) throw error;
    }
    const wait = Math.min(LONGEST, Math.max(asked, growing * (0.5 + Math.random())));
    if (performance.now() + wait > end) {
      const what = `the collector at ${cleaned(server)} does not take the request (${why})`;
      const next = options.body
        ? "try again later: the same report will be sent" : "try again later";
      throw new DiscreetError("network", `${what}; ${next}`);
    }
    waiting(wait);
    await sleep(wait);
  }
}

/** Wait so many milliseconds, or less if the network comes back. */
function sleep(wait) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.("online", done);
      resolve();
    };
    const timer = setTimeout(done, wait);
    globalThis.addEventListener?.("online", done);
  });
}

function readAnswer(response, bytes) {
  let body;
  try {
    body = parse(bytes);
  } catch { /* judged below */ }
  if (response.ok && typeof body === "object" && body !== null) return body;
  if (response.ok) {
    const what = "the collector did not answer in JSON";
    throw new DiscreetError("server", `${what}; check the address and the network`);
  }
  if (response.status < 400) {
    const what = "the collector names another address";
    throw new DiscreetError("server", `${what}; use it if you trust it`);
  }
  const detail = typeof body?.detail === "string" ? cleaned(body.detail) : "";
  const sentence = detail || `the collector refuses with ${response.status}`;
  throw new DiscreetError("refused", sentence, { status: response.status });
}
