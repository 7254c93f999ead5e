// {documents, reports: [{mechanism, report}]} -> why each is refused, or the items whose bit is 1.
import { Mechanism } from "../../../src/discreet/collector/static/discreet.js";
import { codeOf, input, output, unhex } from "./io.mjs";

const mechanisms = {};
for (const [name, document] of Object.entries(input.documents)) mechanisms[name] = await Mechanism.from(document);
output(input.reports.map(({ mechanism: name, report }) => {
  const [mechanism, bytes] = [mechanisms[name], unhex(report)];
  const refused = mechanism.check(bytes);
  if (!refused) return { ones: Array.from(mechanism.bits(bytes).entries()).filter(([, bit]) => bit).map(([item]) => item) };
  try {
    mechanism.bits(bytes);
    return { refused, code: "none" };
  } catch (error) {
    return { refused, code: codeOf(error) };
  }
}));
