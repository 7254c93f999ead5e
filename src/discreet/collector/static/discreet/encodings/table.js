import { refused } from "../errors.js";
import { choice, object, table } from "../policy/fields.js";
import { quoted } from "../policy/labels.js";
import { Bits } from "./bits.js";
import { Each } from "./each.js";
import { Fixed } from "./fixed.js";
import { Hits } from "./hits.js";
import { Picks } from "./picks.js";
import { Ticket } from "./ticket.js";

// To add an encoding: a file in this folder, and its name here.
const ENCODINGS = {
  fixed: Fixed, bits: Bits, ticket: Ticket, hits: Hits, picks: Picks, each: Each,
};

/** @param {object} body of a mechanism file @param {Context} context */
export function readEncoding({ encoding: raw, parts }, context) {
  const kind = choice("encoding", object(raw, "the encoding").kind, Object.keys(ENCODINGS));
  const Named = ENCODINGS[kind];
  table(raw, ["kind", ...Named.keys], "the encoding");
  if (!Named.fits(context)) throw refused(`the encoding ${quoted(kind)} needs ${Named.needs}`);
  return Object.freeze(new Named(context, Named.readParts(parts, context), raw));
}
