// What every script here does: read JSON from standard input, write JSON to standard output.
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

// The joined file that is served, unless the environment names another.
const served = new URL("../../../src/discreet/collector/static/discreet.js", import.meta.url);
const { DISCREET_MODULE: other } = process.env;
export const discreet = await import(other ? pathToFileURL(other) : served);

export const input = JSON.parse((await text(process.stdin)) || "null");

export function output(value) {
  process.stdout.write(JSON.stringify(value));
}

/** The error's code, or what it is if it is not one of ours. */
export function codeOf(error) {
  return error.code && error.name === "DiscreetError" ? error.code : String(error.stack);
}

export const hex = (bytes) => Buffer.from(bytes).toString("hex");
export const unhex = (text) => Uint8Array.from(Buffer.from(text, "hex"));

/** Where a ledger can live without a browser. */
export class Storage {
  #map = new Map();
  getItem(key) { return this.#map.get(key) ?? null; }
  setItem(key, value) { this.#map.set(key, String(value)); }
  removeItem(key) { this.#map.delete(key); }
}

/** Named checks, run one after another: {name: null or what went wrong}. */
export class Checks {
  #found = {};

  async check(name, work) {
    try {
      await work();
      this.#found[name] = null;
    } catch (error) {
      this.#found[name] = String(error.stack);
    }
  }

  done() {
    output(this.#found);
  }
}

/**
 * The error that the work ends with; there must be one, and it must have this code and be one
 * sentence.
 */
export async function refusal(code, work) {
  try {
    await work();
  } catch (error) {
    if (codeOf(error) !== code) throw new Error(`code ${codeOf(error)}, not ${code}`);
    if (!error.message || error.message.includes("\n")) {
      throw new Error(`not one sentence: ${error.message}`);
    }
    return error;
  }
  throw new Error(`nothing was refused, not even with ${code}`);
}

/** A survey's document, with its fingerprint; the questions are mechanisms' documents. */
export async function sealed({ questions, ...more }) {
  const rows = questions.map(({ mechanism: { fingerprint: _, ...mechanism }, ...row }) => {
    return { ...row, mechanism };
  });
  const covered = rows.map(({ mechanism: { model, prior, certificate, ...mechanism }, ...row }) => {
    return { ...row, mechanism };
  });
  const body = { format: "discreet-survey/1", answers: 1, ...more };
  const fingerprint = await discreet.fingerprint({ ...body, questions: covered });
  return { ...body, questions: rows, fingerprint };
}

/** A survey of one question, whose mechanism has this document. */
export async function surveyOf(mechanism, name = "survey") {
  return discreet.Survey.from(await sealed({ name, questions: [{ name: "question", mechanism }] }));
}
