// [[document, document]] -> whether the ledger, with the first answered, sees an item of it in the
// second. The documents are of mechanisms.
import { Storage, discreet, input, output, surveyOf } from "./io.mjs";

const { Ledger } = discreet;

const found = [];
for (const documents of input) {
  const [first, second] = await Promise.all(documents.map((x, k) => surveyOf(x, `survey ${k}`)));
  const ledger = new Ledger(new Storage());
  ledger.drawOnce("https://a", first);
  ledger.reserve("https://a", first, "question", first.mechanism.perturb(0), new Uint8Array(16));
  ledger.mark(["0".repeat(32)], "leaving");
  const overlaps = ledger.overlaps("https://b", second);
  const told = ledger.summed("https://b", second, overlaps);
  found.push(overlaps.length > 0 && told.item === second.mechanism.policy.items[0]);
}
output(found);
