// [[document, document]] -> whether the ledger, with the first answered, sees an item of it in the
// second.
import { Storage, discreet, input, output } from "./io.mjs";

const { Ledger, Mechanism } = discreet;

const found = [];
for (const documents of input) {
  const [first, second] = await Promise.all(documents.map((x) => Mechanism.from(x)));
  const ledger = new Ledger(new Storage());
  ledger.reserve("https://a", "first", first, first.perturb(0), new Uint8Array(16));
  ledger.mark("https://a", "first", first.fingerprint, "leaving");
  const overlaps = ledger.overlaps("https://b", "second", second);
  const told = ledger.summed(second, overlaps);
  found.push(overlaps.length > 0 && told.item === second.policy.items[0]);
}
output(found);
