// What is promised about whole answers: one answer, a list protected as a whole, or item by item.
import { ONE, isLess, larger, product, square } from "../check/exact.js";
import { toNumber } from "../check/factors.js";
import { DiscreetError } from "../errors.js";
import { localise, say } from "../words.js";
import { roundUp } from "./rounding.js";

const [FEW, SEVERAL] = [5, 20]; // answers of a list for which the factors are multiplied
export const WEAK = 100; // the largest factor between two answers that is not called weak

/** The warning with this key if the factor is above WEAK, otherwise "". @param {Ratio} ratio */
export function weakness(ratio, key) {
  if (!isLess([BigInt(WEAK), 1n], ratio)) return "";
  return say(key, { factor: localise(roundUp(square(ratio)).text) });
}

/**
 * Per kind, given the encoding and the exact factor of every group:
 *   keys of the sentences about one answer, about one of a level, and of the warning;
 *   ratio, the largest factor between two whole answers, exactly;
 *   epsilon, the largest log-ratio of any report between two whole answers;
 *   caution, a warning about whole lists, or "";
 *   promises, what is said about whole lists;
 *   promiseFor(items, isMutual), the promise for one list.
 */
export const WHOLE_ANSWERS = {
  single: {
    keys: { one: "odds", level: "oddsOfLevel", caution: "cautionAnswers" },
    ratio: (encoding, ratios) => ratios.reduce(larger),
    epsilon: (encoding, ratios) => logarithms(ratios).reduce((x, y) => Math.max(x, y)),
    caution: () => "",
    promises: () => [],
    promiseFor() {
      const what = "this question takes one answer, so there is no list to promise something for";
      throw new DiscreetError("answer", `${what}; ask for the promise of its level`);
    },
  },
  set: {
    keys: { one: "having", level: "havingOfLevel", caution: "cautionHaving" },
    ratio: (encoding) => encoding.setFactor(),
    epsilon: (encoding) => Math.log(toNumber(encoding.setFactor())),
    caution: (encoding) => weakness(encoding.setFactor(), "cautionLists"),
    promises: (encoding) => [sentenceWith("anyTwoLists", encoding.setFactor())],
    promiseFor: (encoding, ratios, items) => sentenceWith("yourList", encoding.listFactor(items)),
  },
  each: {
    keys: { one: "having", level: "havingOfLevel", caution: "cautionHaving" },
    ratio: ({ groupSizes }, ratios) => ratios.reduce((total, [n, d], g) => {
      return product(total, [n ** BigInt(groupSizes[g]), d ** BigInt(groupSizes[g])]);
    }, ONE),
    epsilon: sumOfAll,
    caution: (encoding, ratios) => {
      return sumOfAll(encoding, ratios) > Math.log(WEAK) ? say("cautionEach") : "";
    },
    promises: (encoding, ratios) => [multiplied(encoding, ratios)],
    promiseFor({ groups: { groupOf } }, ratios, items, isMutual) {
      const ratio = items.reduce((total, item) => product(total, ratios[groupOf[item]]), ONE);
      const key = isMutual ? "yourListOfEach" : "yourListOneWay";
      return sentenceWith(items.length ? key : "noList", ratio);
    },
  },
};

export const logarithms = (ratios) => ratios.map((ratio) => Math.log(toNumber(ratio)));

function sentenceWith(key, ratio) {
  const { factor, text } = roundUp(square(ratio));
  return { factor, sentence: say(key, { factor: localise(text) }) };
}

/** Every item on its own: the log-ratio between an empty list and one of all items. */
function sumOfAll({ groupSizes, groups: { m } }, ratios) {
  return largestValues(logarithms(ratios), groupSizes, m, (x, y) => y - x)
    .reduce((total, [epsilon, n]) => total + n * epsilon, 0);
}

/** The promise where items are protected on their own: for lists of the most revealing ones. */
function multiplied({ groupSizes, groups: { m } }, ratios) {
  const falling = (x, y) => (isLess(x, y) ? 1 : isLess(y, x) ? -1 : 0);
  const most = (k) => {
    const factors = largestValues(ratios, groupSizes, k, falling);
    return roundUp(square(factors.reduce((total, [[n, d], copies]) => {
      return product(total, [n ** BigInt(copies), d ** BigInt(copies)]);
    }, ONE)));
  };
  const [few, several] = [most(Math.min(m, FEW)), most(Math.min(m, SEVERAL))];
  const sentence = say(m > FEW ? "eachOfMany" : "eachOfFew", {
    few: localise(few.text), many: localise(several.text),
    answers: say("answers", { n: Math.min(m, FEW) }), n: Math.min(m, SEVERAL),
  });
  return { factor: several.factor, sentence };
}

/** The k largest values of items, of which group g has sizes[g]; each with its number. */
function largestValues(values, sizes, k, falling) {
  const order = values.map((value, g) => [value, sizes[g]]);
  order.sort(([x], [y]) => falling(x, y));
  let left = k;
  return order.flatMap(([value, size]) => {
    const n = Math.min(left, size);
    left -= n;
    return n ? [[value, n]] : [];
  });
}
