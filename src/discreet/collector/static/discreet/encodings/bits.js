import { D } from "../check/exact.js";
import { Bitmap } from "./packed.js";

/** Every item on its own, with chance other[g] / 2^32. */
export class Bits extends Bitmap {
  kind = "bits";

  denominator() {
    return D;
  }

  misuse({ other }, counts) {
    return counts.some((count, g) => count && !other[g]) ? "silent" : null;
  }

  write(draws, k, held, own) {
    const { other } = this.parts[k];
    const report = this.start(k);
    this.groups.groupOf.forEach((g, item) => {
      const named = item === held ? own : other[g] > 0 && draws.next() < other[g];
      if (named) this.name(report, item);
    });
    return report;
  }
}
