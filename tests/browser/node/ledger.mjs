// The rules of the ledger, on mechanisms by name.
import assert from "node:assert/strict";
import { Checks, Storage, discreet, hex, input, refusal } from "./io.mjs";

const { Ledger, Mechanism, locked } = discreet;

const KEY = "discreet-ledger/3";
const WIDE = "\uff28\uff29\uff36"; // HIV in full-width letters
const checks = new Checks();
const mechanisms = {};
for (const [name, document] of Object.entries(input.documents)) {
  mechanisms[name] = await Mechanism.from(document);
}
const { toy, spelled, apart, sets } = mechanisms;
const id = new Uint8Array(16).fill(7);
const near = (x, y) => assert.ok(Math.abs(x - y) < 1e-9, `${x} is not ${y}`);

/** A report that may have left. */
function leave(ledger, origin, name, mechanism, answer = 0) {
  ledger.reserve(origin, name, mechanism, mechanism.perturb(answer), id);
  ledger.mark(origin, name, mechanism.fingerprint, "leaving");
}

function filled() {
  const storage = new Storage();
  const ledger = new Ledger(storage);
  const report = toy.perturb("HIV");
  const shown = ledger.reserve("https://a", "health", toy, report, id);
  assert.equal(shown.state, "shown");
  ledger.mark("https://a", "health", toy.fingerprint, "leaving");
  return { storage, ledger, report, entry: { ...shown, state: "leaving" } };
}

await checks.check("an empty ledger knows nothing", () => {
  const ledger = new Ledger(new Storage());
  assert.equal(ledger.find("https://a", "health", toy.fingerprint), null);
  assert.deepEqual(ledger.overlaps("https://a", "health", toy), []);
  assert.equal(ledger.summed(toy, []), null);
});

await checks.check("an entry holds the report, the labels and the budgets, and nothing else",
  () => {
    const { storage, report } = filled();
    const { entries, ...rest } = JSON.parse(storage.getItem(KEY));
    assert.deepEqual(rest, {});
    assert.deepEqual(entries, [{
      origin: "https://a", name: "health", fingerprint: toy.fingerprint,
      id: hex(id), report: hex(report), items: toy.policy.items,
      budgets: {
        levels: toy.levelEpsilons(), levelOf: toy.policy.levelOf,
        whole: Math.max(...toy.levelEpsilons()), oneWay: false,
      },
      state: "leaving",
    }]);
  },
);

await checks.check("the entry is of exactly this origin, name and fingerprint", () => {
  const { ledger, entry } = filled();
  assert.deepEqual(ledger.find("https://a", "health", toy.fingerprint), entry);
  assert.equal(ledger.find("https://b", "health", toy.fingerprint), null);
  assert.equal(ledger.find("https://a", "wealth", toy.fingerprint), null);
  assert.equal(ledger.find("https://a", "health", spelled.fingerprint), null);
});

await checks.check("a second reservation gives the first entry and changes nothing", () => {
  const { storage, ledger, entry } = filled();
  const before = storage.getItem(KEY);
  const [other, report] = [new Uint8Array(16), toy.perturb("anemia")];
  assert.deepEqual(ledger.reserve("https://a", "health", toy, report, other), entry);
  assert.equal(storage.getItem(KEY), before);
});

await checks.check("a mark is of that entry alone", () => {
  const { storage, ledger } = filled();
  ledger.reserve("https://b", "health", toy, toy.perturb(0), new Uint8Array(16));
  ledger.mark("https://a", "health", toy.fingerprint, "counted");
  const { entries } = JSON.parse(storage.getItem(KEY));
  assert.deepEqual(entries.map((entry) => entry.state), ["counted", "shown"]);
});

await checks.check("what was only shown has told nobody anything", () => {
  const { ledger } = filled();
  ledger.mark("https://a", "health", toy.fingerprint, "shown");
  assert.deepEqual(ledger.overlaps("https://a", "renamed", toy), []);
  assert.deepEqual(
    ledger.total("https://a", "renamed", toy.fingerprint), { epsilon: 0, earlier: 0 },
  );
});

await checks.check(
  "another name, origin or fingerprint with a shared item overlaps, the same collection does not",
  () => {
    const { ledger, entry } = filled();
    assert.deepEqual(ledger.overlaps("https://a", "health", toy), []);
    const shared = [...toy.policy.items];
    assert.deepEqual(ledger.overlaps("https://a", "renamed", toy), [{ entry, shared }]);
    assert.deepEqual(ledger.overlaps("https://b", "health", toy), [{ entry, shared }]);
    assert.equal(ledger.overlaps("https://a", "health", spelled).length, 1);
  },
);

await checks.check("labels are compared without width, case and blanks", () => {
  const { ledger } = filled();
  assert.deepEqual(spelled.policy.items, [WIDE, "Head Ache", "  ANEMIA"]);
  assert.deepEqual(ledger.overlaps("https://b", "other", spelled)[0].shared, [WIDE, "  ANEMIA"]);
  assert.deepEqual(ledger.overlaps("https://b", "other", apart), []);
  leave(ledger, "https://c", "spelled", spelled);
  const respelled = ledger.overlaps("https://d", "x", mechanisms.respelled);
  assert.deepEqual(respelled.map(({ shared }) => shared), [["head   ache"]]);
  const folded = new Ledger(new Storage());
  leave(folded, "https://a", "street", mechanisms.street);
  const [{ shared }] = folded.overlaps("https://b", "streets", mechanisms.streets);
  assert.deepEqual(shared, ["STRASSE", "οδος", "ﬁt"]);
});

await checks.check("budgets add up, and the worst shared item is named", () => {
  const { ledger } = filled();
  leave(ledger, "https://b", "spelled", spelled);
  const overlaps = ledger.overlaps("https://c", "third", toy);
  assert.equal(overlaps.length, 2);
  const [serious, common] = toy.levelEpsilons();
  const { items, levelOf } = spelled.policy;
  const epsilons = spelled.levelEpsilons();
  const theirs = Object.fromEntries(items.map((item, k) => [item, epsilons[levelOf[k]]]));
  const totals = { HIV: 2 * serious + theirs[WIDE], anemia: 2 * common + theirs["  ANEMIA"] };
  const item = totals.HIV > totals.anemia ? "HIV" : "anemia";
  const summed = ledger.summed(toy, overlaps);
  assert.equal(summed.item, item);
  near(summed.epsilon, totals[item]);
  const exact = Math.exp(totals[item]);
  assert.ok(summed.factor >= exact * (1 - 1e-11) && summed.factor <= exact + 1);
  assert.match(
    summed.sentence,
    new RegExp(`^You already gave 2 earlier answers .*"${item}".*at most a factor of [0-9.,]+\\.$`),
  );
});

await checks.check("an item that is not shared is not the worst, whatever its budget", () => {
  const ledger = new Ledger(new Storage());
  // shares only HIV
  leave(ledger, "https://a", "strict", mechanisms.strict);
  const summed = ledger.summed(toy, ledger.overlaps("https://b", "health", toy));
  assert.equal(summed.item, "HIV");
  near(summed.epsilon, toy.levelEpsilons()[0] + mechanisms.strict.levelEpsilons()[0]);
  assert.match(summed.sentence, /an earlier answer/);
});

await checks.check("two spellings of an item in one question count once, with the larger budget",
  () => {
    const storage = new Storage();
    const ledger = new Ledger(storage);
    const { strict, twice } = mechanisms;
    leave(ledger, "https://a", "twice", twice);
    // as questions could be when this ledger was written
    storage.setItem(KEY, storage.getItem(KEY).replace("\"hi\"", "\"hiv\""));
    const summed = ledger.summed(strict, ledger.overlaps("https://b", "strict", strict));
    near(summed.epsilon, strict.levelEpsilons()[0] + Math.max(...twice.levelEpsilons()));
  },
);

await checks.check("the sum over all collections does not ask what they are about", () => {
  const { ledger } = filled();
  leave(ledger, "https://b", "apart", apart);
  const most = (mechanism) => Math.max(...mechanism.levelEpsilons());
  assert.equal(toy.wholeEpsilon(), most(toy));
  const all = ledger.total("https://c", "third", sets.fingerprint);
  near(all.epsilon, most(toy) + most(apart));
  assert.equal(all.earlier, 2);
  const others = ledger.total("https://a", "health", toy.fingerprint); // but this very collection
  near(others.epsilon, most(apart));
  assert.deepEqual(new Ledger(new Storage()).total("a", "b", "c"), { epsilon: 0, earlier: 0 });
});

await checks.check("of a set all that it tells counts, not what one item does", () => {
  for (const name of ["sets", "hits", "each"]) {
    const mechanism = mechanisms[name];
    const ledger = new Ledger(new Storage());
    leave(ledger, "https://a", name, mechanism, [0]);
    const { epsilon } = ledger.total("https://b", "other", toy.fingerprint);
    near(epsilon, input.whole[name]);
    assert.ok(epsilon > Math.max(...mechanism.levelEpsilons()) + 0.01, name);
  }
});

await checks.check("for sets the sentence speaks of having an item", () => {
  const { ledger } = filled();
  const { sentence } = ledger.summed(sets, ledger.overlaps("https://a", "sets", sets));
  assert.match(sentence, /having or not having "HIV"/);
});

await checks.check("storage that throws is one sentence, and nothing is kept", async () => {
  const full = { getItem: () => null, setItem: () => { throw new Error("quota"); } };
  const reserve = (ledger) => ledger.reserve("https://a", "health", toy, toy.perturb(0), id);
  await refusal("ledger", () => reserve(new Ledger(full)));
  const blocked = { getItem: () => { throw new Error("blocked"); }, setItem: () => {} };
  const calls = [
    (x) => x.find("a", "b", "c"),
    (x) => x.overlaps("a", "b", toy),
    (x) => x.reserve("a", "b", toy, toy.perturb(0), id),
  ];
  for (const call of calls) {
    assert.match((await refusal("ledger", () => call(new Ledger(blocked)))).message, /blocked/);
  }
  await refusal("ledger", () => new Ledger().find("a", "b", "c")); // no localStorage here
});

const entry = () => JSON.parse(filled().storage.getItem(KEY)).entries[0];
const damaged = {
  "empty": "", "not JSON": "{\"entries\":[", "null": "null", "a number": "3", "a list": "[]",
  "no entries": "{}",
  "entries is an object": "{\"entries\":{}}", "entry is null": "{\"entries\":[null]}",
  "entries is a text": "{\"entries\":\"\"}", "a text": "\"entries\"",
  "entries is like a list": "{\"entries\":{\"length\":0}}",
  "another key": "{\"entries\":[],\"more\":1}", "another key alone": "{\"entry\":[]}",
};
const change = (changes) => JSON.stringify({ entries: [{ ...entry(), ...changes }] });
for (const key of Object.keys(entry())) damaged[`no ${key}`] = change({ [key]: undefined });
damaged["an id that is cut"] = change({ id: "00" });
damaged["half a byte"] = change({ report: "000" });
damaged["upper case"] = change({ report: "AB" });
damaged["a state that there is not"] = change({ state: "true" });
const budgets = (levels, levelOf, whole = 1, oneWay = false) => {
  return { budgets: { levels, levelOf, whole, oneWay } };
};
const one = { items: ["x"], ...budgets([1], [0]) };
damaged["items is a text"] = change({ items: "HIV", ...budgets([1], [0, 0, 0]) });
damaged["an item is a number"] = change({ ...one, items: [1] });
damaged["a level too many"] = change(budgets([1], [0]));
damaged["a level that is not there"] = change({ ...one, ...budgets([1], [1]) });
damaged["no items"] = change({ items: [], ...budgets([1], []) });
damaged["levels is an object"] = change({ ...one, ...budgets({}, [0]) });
damaged["a negative budget"] = change({ ...one, ...budgets([-1], [0]) });
damaged["a budget that is a text"] = change({ ...one, ...budgets(["1"], [0]) });
damaged["no budget of whole answers"] = change({
  ...one, budgets: { levels: [1], levelOf: [0], oneWay: false },
});
damaged["no direction"] = change({ ...one, budgets: { levels: [1], levelOf: [0], whole: 1 } });
for (const oneWay of [null, 0, "false"]) {
  damaged[`the direction is ${oneWay}`] = change({ ...one, ...budgets([1], [0], 1, oneWay) });
}
for (const whole of [-1, "1"]) { // null: there is no limit
  damaged[`whole answers have ${whole}`] = change({ ...one, ...budgets([1], [0], whole) });
}

await checks.check("a damaged ledger is never started anew", async () => {
  const undamaged = new Ledger(filled().storage); // the twins
  assert.equal(undamaged.find("https://a", "health", toy.fingerprint).state, "leaving");
  const changed = new Storage();
  changed.setItem(KEY, change(one));
  assert.deepEqual(new Ledger(changed).find("https://a", "health", toy.fingerprint).items, ["x"]);
  for (const [what, text] of Object.entries(damaged)) {
    const storage = new Storage();
    storage.setItem(KEY, text);
    const ledger = new Ledger(storage);
    for (const call of [
      () => ledger.find("a", "b", "c"),
      () => ledger.reserve("a", "b", toy, toy.perturb(0), id),
      () => ledger.mark("a", "b", "c", "counted"),
    ]) {
      const error = await refusal("ledger", call).catch((wrong) => {
        throw new Error(`${what}: ${wrong.message}`);
      });
      assert.match(error.message, /damaged.*restore it/);
    }
    assert.equal(storage.getItem(KEY), text, what);
  }
});

await checks.check("work is done under the browser's lock where there is one", async () => {
  assert.equal(await locked(() => 3), 3);
  const seen = [];
  let last = Promise.resolve();
  const locks = {
    request(name, work) {
      seen.push(name);
      last = last.then(() => work());
      return last;
    },
  };
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
  assert.equal(await locked(async () => 4), 4);
  delete globalThis.navigator;
  assert.deepEqual(seen, [KEY]);
});

checks.done();
