import { D } from "../check/exact.js";
import { Bitmap } from "./packed.js";

/** Exactly other[g] items of every group g, as a uniform subset. */
export class Fixed extends Bitmap {
  kind = "fixed";

  denominator(g) {
    return this.groupSizes[g];
  }

  misuse({ other }, counts) {
    return counts.some((count, g) => count !== other[g]) ? "size" : null;
  }

  write(draws, k, held, own) {
    const { groupOf, members, rank } = this.groups;
    const report = this.start(k);
    if (own) this.name(report, held);
    this.parts[k].other.forEach((wanted, g) => {
      if (!wanted) return;
      const mine = groupOf[held] === g;
      const skipped = mine ? rank[held] : members[g].length; // the held item is drawn already
      const other = (place) => members[g][place + (place >= skipped)];
      this.#subset(draws, report, other, members[g].length - mine, wanted - (mine && own));
    });
    return report;
  }

  /** Name a uniform subset of `wanted` of n items (Floyd's algorithm). */
  #subset(draws, report, item, n, wanted) {
    for (let end = n - wanted; end < n; end++) {
      const drawn = item(draws.below(end + 1));
      this.name(report, this.isNamed(report, drawn) ? item(end) : drawn);
    }
  }

  /** If the own item is named, one place less is left for the others of its group. */
  others(part, g) {
    const size = this.groupSizes[g];
    const sameGroup = (part.other[g] - part.own[g] / D) / (size - 1);
    const elsewhere = size < this.groups.m || "none" in part;
    return elsewhere ? [sameGroup, ...super.others(part, g)] : [sameGroup];
  }
}
