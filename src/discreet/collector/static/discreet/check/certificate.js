// How good a design is; no promise depends on it.
import { refused } from "../errors.js";
import { table } from "../policy/fields.js";
import { isPrintable } from "../policy/labels.js";

export function checkCertificate(raw) {
  table(raw, ["value", "lower_bound", "note"], "the certificate");
  const { value, lower_bound: bound, note } = raw;
  if (!isDecimal(value) || !(bound === "" || isDecimal(bound))) {
    throw refused("value and lower_bound of the certificate must be decimals of at most 12 digits");
  }
  if (bound !== "" && Number(bound) > Number(value)) {
    throw refused("the certificate claims less error than its own lower bound");
  }
  if (!isPrintable(note) || Array.from(note).length > 400) {
    const allowed = "a text of at most 400 characters, none of them a control character";
    throw refused(`the certificate's note must be ${allowed}`);
  }
}

function isDecimal(text) {
  const plain = /^(0|[1-9][0-9]{0,29})(\.[0-9]{0,29}[1-9])?$/;
  if (typeof text !== "string" || !plain.test(text)) return false;
  return text.replace(".", "").replace(/^0+|0+$/g, "").length <= 12;
}
