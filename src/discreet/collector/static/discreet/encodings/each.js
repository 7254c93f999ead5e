import { D, checkChances } from "../check/exact.js";
import { checkEach, eachFactors } from "../check/exact_sets.js";
import { KINDS } from "../policy/kinds.js";
import { Bits } from "./bits.js";

/** Bits for lists in which every item is protected on its own: nothing is sampled. */
export class Each extends Bits {
  static needs = "kind = \"each\"";
  kind = "each";
  sentence = "bits";
  yours = "yours";

  static fits({ policy }) {
    return KINDS[policy.kind].alone;
  }

  static readParts(raw, context) {
    return super.readParts(raw, context, 1);
  }

  prove(terms) {
    checkChances(this.parts, terms);
    checkEach(terms, this.parts[0]);
  }

  report(draws, items) {
    const [{ own, other }] = this.parts;
    const [mine, report] = [new Set(items), this.start(0)];
    this.groups.groupOf.forEach((g, item) => {
      if (draws.next() < (mine.has(item) ? own : other)[g]) this.name(report, item);
    });
    return report;
  }

  chances(k) {
    const { own, other } = this.parts[k];
    return { mine: own.map((x) => x / D), others: other.map((x) => x / D) };
  }

  factors() {
    return eachFactors(this.parts[0], this.policy.isMutual);
  }
}
