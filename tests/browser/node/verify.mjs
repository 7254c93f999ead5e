// [{document or bytes (base64), pinned?}] -> the verdict on each, and what an accepted mechanism
// says of itself.
import { codeOf, discreet, input, output } from "./io.mjs";

const { Mechanism } = discreet;

const found = [];
for (const { document, bytes, pinned } of input) {
  try {
    const options = { fingerprint: pinned };
    const mechanism = bytes === undefined
      ? await Mechanism.from(document, options)
      : await Mechanism.read(Uint8Array.from(Buffer.from(bytes, "base64")), options);
    const {
      policy, model, encoding, padding, groups, parts, m, reportSize, fingerprint,
    } = mechanism;
    found.push({
      code: "ok", policy, model, kind: encoding.kind, padding, groups, parts, m, reportSize,
      fingerprint,
      levelEpsilons: mechanism.levelEpsilons(), promises: mechanism.promises(),
    });
  } catch (error) {
    found.push({ code: codeOf(error), message: error.message });
  }
}
output(found);
