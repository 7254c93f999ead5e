// {documents, reports: [{mechanism, report}]} -> why each is refused, or what it means.
import { codeOf, discreet, input, output, unhex } from "./io.mjs";

const { Mechanism } = discreet;

const mechanisms = {};
for (const [name, document] of Object.entries(input.documents)) {
  mechanisms[name] = await Mechanism.from(document);
}

/** The code of what reading a refused report ends with. */
function codeOfReading(read) {
  try {
    read();
    return "none";
  } catch (error) {
    return codeOf(error);
  }
}

output(input.reports.map(({ mechanism: name, report }) => {
  const [mechanism, bytes] = [mechanisms[name], unhex(report)];
  const refused = mechanism.refusal(bytes);
  if (refused) {
    const codes = [() => mechanism.bits(bytes), () => mechanism.meaning(bytes)].map(codeOfReading);
    return { refused, codes };
  }
  const ones = Array.from(mechanism.bits(bytes).entries())
    .filter(([, bit]) => bit).map(([item]) => item);
  return { ones, ...mechanism.meaning(bytes) };
}));
