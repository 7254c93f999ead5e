// [{document, answers, each}] -> the reports of `each` people per answer, concatenated, with Web
// Crypto's randomness.
import { discreet, input, output } from "./io.mjs";

const { Mechanism } = discreet;

const found = [];
for (const { document, answers, each } of input) {
  const mechanism = await Mechanism.from(document);
  const size = mechanism.reportSize;
  const rows = new Uint8Array(answers.length * each * size);
  answers.forEach((answer, k) => {
    for (let person = 0; person < each; person++) {
      rows.set(mechanism.perturb(answer), (k * each + person) * size);
    }
  });
  found.push(Buffer.from(rows).toString("base64"));
}
output(found);
