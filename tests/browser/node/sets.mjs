// [{document, lists}] -> what a mechanism for sets promises, and for each of these lists.
import { discreet, input, output } from "./io.mjs";

const { Mechanism } = discreet;

const found = [];
for (const { document, lists } of input) {
  const mechanism = await Mechanism.from(document);
  found.push({
    levelEpsilons: mechanism.levelEpsilons(), wholeEpsilon: mechanism.wholeEpsilon(),
    promises: mechanism.promises(), lists: lists.map((items) => mechanism.promiseOf(items)),
  });
}
output(found);
