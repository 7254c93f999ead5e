/** Every refusal; `code` is for programs, the message is one sentence for people. */
export class DiscreetError extends Error {
  /** @param {string} code @param {string} sentence @param {object} [details] further attributes */
  constructor(code, sentence, details = {}) {
    super(sentence);
    this.name = "DiscreetError";
    this.code = code;
    Object.assign(this, details);
  }
}

/** The error for a mechanism that is not written as discreet writes one. */
export function refused(sentence) {
  const next = "do not answer, and ask the organiser for a correct mechanism";
  return new DiscreetError("mechanism", `${sentence}; ${next}`);
}

/** The error for a mechanism whose guarantee does not hold. */
export function violation(sentence, details) {
  const next = "the promise does not hold; do not answer, and tell the organiser";
  return new DiscreetError("guarantee", `${sentence}: ${next}`, details);
}
