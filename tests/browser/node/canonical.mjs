// JSON texts -> their canonical form and fingerprint, or the code of the refusal.
import { codeOf, discreet, input, output } from "./io.mjs";

const { canonicalJson, fingerprint } = discreet;

const found = [];
for (const text of input) {
  try {
    const document = JSON.parse(text);
    found.push({ canonical: canonicalJson(document), sha256: await fingerprint(document) });
  } catch (error) {
    found.push({ code: codeOf(error), message: error.message });
  }
}
output(found);
