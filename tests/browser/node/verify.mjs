// [{document, pinned?}] -> the verdict on each, and what an accepted mechanism says of itself.
import { Mechanism } from "../../../src/discreet/collector/static/discreet.js";
import { codeOf, input, output } from "./io.mjs";

const found = [];
for (const { document, pinned } of input) {
  try {
    const mechanism = await Mechanism.from(document, { fingerprint: pinned });
    const { policy, model, encoding, padding, parts, matrix, m, reportSize, fingerprint } = mechanism;
    found.push({
      code: "ok", policy, model, encoding, padding, parts, matrix, m, reportSize, fingerprint,
      levelEpsilons: mechanism.levelEpsilons(), promises: mechanism.promises(),
    });
  } catch (error) {
    found.push({ code: codeOf(error), message: error.message });
  }
}
output(found);
