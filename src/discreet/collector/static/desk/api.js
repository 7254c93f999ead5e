// Requests to the collector. The session is a cookie that no script can read.

/** A refusal, in a sentence. */
export class Refused extends Error {
  constructor(sentence, status = 0) {
    super(sentence);
    this.status = status;
  }
}

/** What the collector answers; with `content` it is asked to do something. */
export async function call(path, content, { signal } = {}) {
  const options = content === undefined ? {} : {
    method: "POST", body: JSON.stringify(content),
    headers: { "Content-Type": "application/json", "Discreet-Desk": "1" },
  };
  let answer;
  try {
    answer = await fetch(`/desk${path}`, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The collector cannot be reached. Look at your network, then try again.");
  }
  if (answer.status === 204) return null;
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(asSentence(body.detail), answer.status);
  return body;
}

/** What a machine says, as a sentence. */
export function asSentence(text = "The collector refuses this.") {
  const end = /[.!?…]$/.test(text) ? "" : ".";
  return text[0].toUpperCase() + text.slice(1) + end;
}

export const pathOf = (name, rest = "") => `/surveys/${encodeURIComponent(name)}${rest}`;
