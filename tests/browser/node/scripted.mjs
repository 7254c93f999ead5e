// [{document, cases: [{answer, draws}]}] -> the report of each answer when Web Crypto gives exactly
// these 32-bit integers. A draw beyond the script reads the marker 0xdeadbeef.
import { codeOf, discreet, hex, input, output } from "./io.mjs";

const { Mechanism } = discreet;

let script = [];
const { subtle } = globalThis.crypto;
const getRandomValues = (words) => {
  if (words.byteLength > 65536) {
    throw new Error("QuotaExceededError: more than 65,536 bytes at once");
  }
  for (let k = 0; k < words.length; k++) words[k] = script.length ? script.shift() : 0xdeadbeef;
  return words;
};
Object.defineProperty(globalThis, "crypto", { value: { subtle, getRandomValues } });

const found = [];
for (const { document, cases } of input) {
  const mechanism = await Mechanism.from(document);
  found.push(cases.map(({ answer, draws }) => {
    script = [...draws];
    try {
      return { report: hex(mechanism.perturb(answer)) };
    } catch (error) {
      return { code: codeOf(error), message: error.message };
    }
  }));
}
output(found);
