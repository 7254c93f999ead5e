import { Sampling } from "./sampling.js";

/** A bit per item, item k at byte k >> 3, bit k & 7; if there are several parts, the part first. */
export class Bitmap extends Sampling {
  constructor(context, parts) {
    super(context, parts);
    this.head = parts.length > 1 ? 1 : 0;
    this.size = this.head + Math.ceil(this.groups.m / 8);
  }

  partOf(report) {
    return this.head ? report[0] : 0;
  }

  refusal(report) {
    const { m, groupOf } = this.groups;
    if (report.length !== this.size) return "length";
    if (this.partOf(report) >= this.parts.length) return "part";
    if (m % 8 && report.at(-1) >> m % 8) return "tail";
    const counts = this.groupSizes.map(() => 0);
    for (const item of this.named(report)) counts[groupOf[item]] += 1;
    return this.misuse(this.parts[this.partOf(report)], counts);
  }

  named(report) {
    const named = [];
    for (let item = 0; item < this.groups.m; item++) {
      if (this.isNamed(report, item)) named.push(item);
    }
    return named;
  }

  isNamed(report, item) {
    return ((report[this.head + (item >> 3)] >> (item & 7)) & 1) === 1;
  }

  name(report, item) {
    report[this.head + (item >> 3)] |= 1 << (item & 7);
  }

  /** An empty report of part k. */
  start(k) {
    const report = new Uint8Array(this.size);
    if (this.head) report[0] = k;
    return report;
  }
}
