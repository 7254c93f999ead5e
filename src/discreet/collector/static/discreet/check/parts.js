// The integers of a mechanism: groups of levels, parts, and the padding of lists.
import { refused } from "../errors.js";
import { integers, list } from "../policy/fields.js";
import { KINDS } from "../policy/kinds.js";
import { quoted } from "../policy/labels.js";
import { D } from "./exact.js";

/**
 * @typedef {readonly number[]} Numbers
 * @typedef {{chance: Numbers, own: Numbers, other: Numbers, none?: number}} Part  per group, over
 *   2^32; `other` is over the encoding's denominator; silent where own = other = 0
 * @typedef {{chance: number, active: Numbers, limit: number, rows: readonly Numbers[]}} HitsPart
 *   active: 0 or 1 per group; rows: for 1 to `padding` own items, tau and the masses of the classes
 * @typedef {{chance: number, blocks: Numbers, sizes: Numbers, rows: readonly Numbers[][]}} PicksPart
 *   chance: of the cut; blocks: per group, from 1, 0 where it is silent; sizes: per block; rows: per
 *   class of people the bunches: their mass, the places of their vectors
 * @typedef {{m: number, groupOf: Numbers, members: readonly Numbers[], rank: Numbers}} Groups
 *   the group of every item, the items of every group, and the place of every item in its group
 */

/** @param {Numbers} raw the group of every level @returns {Groups} */
export function readGroups(raw, { levels, levelOf }) {
  let count = 0;
  for (const group of integers(raw, levels.length, "groups")) {
    if (group < 0 || group > count) {
      throw refused("groups are not numbered from 0 by first appearance");
    }
    count += group === count;
  }
  const groupOf = levelOf.map((level) => raw[level]);
  const members = Array.from({ length: count }, () => []);
  const rank = groupOf.map((group, item) => members[group].push(item) - 1);
  members.forEach(Object.freeze);
  [groupOf, members, rank].forEach(Object.freeze);
  return Object.freeze({ m: groupOf.length, groupOf, members, rank });
}

/** Check the expected share of participants in every group; only estimates use it. */
export function checkShares(raw, count) {
  const inRange = integers(raw, count, "shares").every((share) => share >= 0 && share <= D);
  if (!inRange || raw.reduce((sum, share) => sum + share, 0) !== D) {
    throw refused("the shares are not numbers from 0 to 2^32 that sum to 2^32");
  }
}

/** A list of at most so many parts; their content is not checked yet. */
export function readPartList(raw, most = 256) {
  const { length } = list(raw, "parts");
  if (length < 1 || length > most) {
    const allowed = most === 1 ? "1" : `1 to ${most}`;
    throw refused(`the mechanism has ${length} parts, but must have ${allowed}`);
  }
  return raw;
}

export function checkPadding(padding, { kind }) {
  const [least, most] = KINDS[kind].pads ? [1, 65536] : [0, 0];
  if (!Number.isInteger(padding) || padding < least || padding > most) {
    const allowed = most ? `a whole number from ${least} to ${most}` : "0";
    throw refused(`padding is ${quoted(padding)}, but must be ${allowed}`);
  }
}
