// The rules of the ledger, on surveys of one question by name; and on one of several.
import assert from "node:assert/strict";
import { Checks, Storage, discreet, hex, input, refusal, sealed, surveyOf } from "./io.mjs";

const { Ledger, Survey } = discreet;

const KEY = "discreet-ledger/4";
const WIDE = "\uff28\uff29\uff36"; // HIV in full-width letters
const checks = new Checks();
const surveys = {};
for (const [name, document] of Object.entries(input.documents)) {
  surveys[name] = await surveyOf(document, name);
}
const { apart, sets, spelled } = surveys;
const toy = await surveyOf(input.documents.toy, "health");
const renamed = await surveyOf(input.documents.toy, "renamed");
const id = new Uint8Array(16).fill(7);
const levelsOf = ({ mechanism }) => mechanism.levelEpsilons();
const near = (x, y) => assert.ok(Math.abs(x - y) < 1e-9, `${x} is not ${y}`);

/** A report of the only question, with the state "shown". */
function reserve(ledger, origin, survey, answer = 0, report = survey.mechanism.perturb(answer),
  own = globalThis.crypto.getRandomValues(new Uint8Array(16))) {
  ledger.drawOnce(origin, survey);
  ledger.reserve(origin, survey, "question", report, own);
  return ledger.find(origin, survey)[0];
}

/** A report that may have left. */
function leave(ledger, origin, survey, answer = 0) {
  ledger.mark([reserve(ledger, origin, survey, answer).id], "leaving");
}

function leaveNamed(ledger, origin, survey, question) {
  ledger.drawOnce(origin, survey);
  const report = survey.mechanism.perturb(0);
  ledger.reserve(origin, survey, question, report, new Uint8Array(16).fill(9));
  ledger.mark([hex(new Uint8Array(16).fill(9))], "leaving");
}

function filled() {
  const storage = new Storage();
  const ledger = new Ledger(storage);
  const report = toy.mechanism.perturb("HIV");
  const shown = reserve(ledger, "https://a", toy, 0, report, id);
  assert.equal(shown.state, "shown");
  ledger.mark([hex(id)], "leaving");
  return { storage, ledger, report, entry: { ...shown, state: "leaving" } };
}

await checks.check("an empty ledger knows nothing", () => {
  const ledger = new Ledger(new Storage());
  assert.deepEqual(ledger.find("https://a", toy), []);
  assert.deepEqual(ledger.overlaps("https://a", toy), []);
  assert.equal(ledger.summed("https://a", toy, []), null);
});

await checks.check("an entry holds the report, the labels and the budgets, and nothing else",
  () => {
    const { storage, report } = filled();
    const { entries, ...rest } = JSON.parse(storage.getItem(KEY));
    assert.deepEqual(rest, {});
    assert.deepEqual(entries, [{
      origin: "https://a", name: "health", fingerprint: toy.fingerprint,
      question: "question", id: hex(id), report: hex(report), items: toy.mechanism.policy.items,
      told: [],
      budgets: {
        levels: levelsOf(toy), levelOf: toy.mechanism.policy.levelOf,
        whole: Math.max(...levelsOf(toy)), raised: Math.max(...levelsOf(toy)),
        oneWay: false,
      },
      state: "leaving",
    }]);
  },
);

await checks.check("the entry is of exactly this origin, name and fingerprint", () => {
  const { ledger, entry } = filled();
  const but = (changes) => Object.create(toy, Object.getOwnPropertyDescriptors(changes));
  assert.deepEqual(ledger.find("https://a", toy), [entry]);
  assert.deepEqual(ledger.find("https://b", toy), []);
  assert.deepEqual(ledger.find("https://a", but({ name: "wealth" })), []);
  assert.deepEqual(ledger.find("https://a", but({ fingerprint: spelled.fingerprint })), []);
});

await checks.check("a second reservation gives the first entry and changes nothing", () => {
  const { storage, ledger, entry } = filled();
  const before = storage.getItem(KEY);
  assert.deepEqual(reserve(ledger, "https://a", toy, "anemia"), entry);
  assert.equal(storage.getItem(KEY), before);
});

await checks.check("a mark is of that entry alone", () => {
  const { storage, ledger } = filled();
  reserve(ledger, "https://b", toy);
  ledger.mark([hex(id)], "counted");
  const { entries } = JSON.parse(storage.getItem(KEY));
  assert.deepEqual(entries.map((entry) => entry.state), ["counted", "shown"]);
});

await checks.check("what was only shown has told nobody anything", () => {
  const { ledger } = filled();
  ledger.mark([hex(id)], "shown");
  ledger.drawOnce("https://b", toy); // nor has what was only drawn
  assert.deepEqual(ledger.overlaps("https://a", renamed), []);
  assert.deepEqual(ledger.total("https://a", renamed), { epsilon: 0, raised: 0, earlier: 0 });
});

await checks.check(
  "another name, origin or fingerprint with a shared item overlaps, the same collection does not",
  () => {
    const { ledger, entry } = filled();
    assert.deepEqual(ledger.overlaps("https://a", toy), []);
    const shared = [...toy.mechanism.policy.items];
    assert.deepEqual(ledger.overlaps("https://a", renamed), [{ entry, shared }]);
    assert.deepEqual(ledger.overlaps("https://b", toy), [{ entry, shared }]);
    assert.equal(ledger.overlaps("https://a", spelled).length, 1);
  },
);

await checks.check("labels are compared without width, case and blanks", () => {
  const { ledger } = filled();
  assert.deepEqual(spelled.mechanism.policy.items, [WIDE, "Head Ache", "  ANEMIA"]);
  assert.deepEqual(ledger.overlaps("https://b", spelled)[0].shared, [WIDE, "  ANEMIA"]);
  assert.deepEqual(ledger.overlaps("https://b", apart), []);
  leave(ledger, "https://c", spelled);
  const respelled = ledger.overlaps("https://d", surveys.respelled);
  assert.deepEqual(respelled.map(({ shared }) => shared), [["head   ache"]]);
  const folded = new Ledger(new Storage());
  leave(folded, "https://a", surveys.street);
  const [{ shared }] = folded.overlaps("https://b", surveys.streets);
  assert.deepEqual(shared, ["STRASSE", "οδος", "ﬁt"]);
});

await checks.check("budgets add up, and the worst shared item is named", () => {
  const { ledger } = filled();
  leave(ledger, "https://b", spelled);
  const overlaps = ledger.overlaps("https://c", toy);
  assert.equal(overlaps.length, 2);
  const [serious, common] = levelsOf(toy);
  const { items, levelOf } = spelled.mechanism.policy;
  const epsilons = levelsOf(spelled);
  const theirs = Object.fromEntries(items.map((item, k) => [item, epsilons[levelOf[k]]]));
  const totals = { HIV: 2 * serious + theirs[WIDE], anemia: 2 * common + theirs["  ANEMIA"] };
  const item = totals.HIV > totals.anemia ? "HIV" : "anemia";
  const summed = ledger.summed("https://c", toy, overlaps);
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
  leave(ledger, "https://a", surveys.strict);
  const summed = ledger.summed("https://b", toy, ledger.overlaps("https://b", toy));
  assert.equal(summed.item, "HIV");
  near(summed.epsilon, levelsOf(toy)[0] + levelsOf(surveys.strict)[0]);
  assert.match(summed.sentence, /an earlier answer/);
});

await checks.check("two spellings of an item in one question count once, with the larger budget",
  () => {
    const storage = new Storage();
    const ledger = new Ledger(storage);
    const { strict, twice } = surveys;
    leave(ledger, "https://a", twice);
    // as questions could be when this ledger was written
    storage.setItem(KEY, storage.getItem(KEY).replace("\"hi\"", "\"hiv\""));
    const summed = ledger.summed("https://b", strict, ledger.overlaps("https://b", strict));
    near(summed.epsilon, levelsOf(strict)[0] + Math.max(...levelsOf(twice)));
  },
);

await checks.check("the sum over all collections does not ask what they are about", () => {
  const { ledger } = filled();
  leave(ledger, "https://b", apart);
  const most = (survey) => Math.max(...levelsOf(survey));
  assert.equal(toy.mechanism.wholeEpsilon(), most(toy));
  const all = ledger.total("https://c", sets);
  near(all.epsilon, most(toy) + most(apart));
  near(all.raised, most(toy) + most(apart));
  assert.equal(all.earlier, 2);
  const others = ledger.total("https://a", toy); // but this very collection
  near(others.epsilon, most(apart));
  assert.deepEqual(new Ledger(new Storage()).total("a", toy), { epsilon: 0, raised: 0, earlier: 0 });
});

await checks.check("of a set all that it tells counts, not what one item does", () => {
  for (const name of ["sets", "hits", "each"]) {
    const survey = surveys[name];
    const ledger = new Ledger(new Storage());
    leave(ledger, "https://a", survey, [0]);
    const { epsilon } = ledger.total("https://b", toy);
    near(epsilon, input.whole[name]);
    assert.ok(epsilon > Math.max(...levelsOf(survey)) + 0.01, name);
  }
});

await checks.check("for sets the sentence speaks of having an item", () => {
  const { ledger } = filled();
  const { sentence } = ledger.summed("https://a", sets, ledger.overlaps("https://a", sets));
  assert.match(sentence, /having or not having "HIV"/);
});

await checks.check("storage that throws is one sentence, and nothing is kept", async () => {
  const full = { getItem: () => null, setItem: () => { throw new Error("quota"); } };
  await refusal("ledger", () => reserve(new Ledger(full), "https://a", toy));
  const blocked = { getItem: () => { throw new Error("blocked"); }, setItem: () => {} };
  const calls = [
    (x) => x.find("a", toy),
    (x) => x.overlaps("a", toy),
    (x) => x.drawOnce("a", toy),
    (x) => x.reserve("a", toy, "question", toy.mechanism.perturb(0), id),
  ];
  for (const call of calls) {
    assert.match((await refusal("ledger", () => call(new Ledger(blocked)))).message, /blocked/);
  }
  await refusal("ledger", () => new Ledger().find("a", toy)); // no localStorage here
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
damaged["a report of what was only drawn"] = change({ state: "drawn" });
damaged["no report of what was shown"] = change({ id: "", report: "" });
damaged["told is a text"] = change({ told: "HIV" });
damaged["told is a number"] = change({ told: [1] });
damaged["a question is a number"] = change({ question: 1 });
const budgets = (levels, levelOf, whole = 1, oneWay = false, raised = 1) => {
  return { budgets: { levels, levelOf, whole, raised, oneWay } };
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
  ...one, budgets: { levels: [1], levelOf: [0], raised: 1, oneWay: false },
});
damaged["no budget of raised odds"] = change({
  ...one, budgets: { levels: [1], levelOf: [0], whole: 1, oneWay: false },
});
damaged["no direction"] = change({
  ...one, budgets: { levels: [1], levelOf: [0], whole: 1, raised: 1 },
});
for (const oneWay of [null, 0, "false"]) {
  damaged[`the direction is ${oneWay}`] = change({ ...one, ...budgets([1], [0], 1, oneWay) });
}
for (const whole of [-1, "1"]) { // null: there is no limit
  damaged[`whole answers have ${whole}`] = change({ ...one, ...budgets([1], [0], whole) });
  damaged[`raised odds have ${whole}`] = change({ ...one, ...budgets([1], [0], 1, true, whole) });
}

await checks.check("a damaged ledger is never started anew", async () => {
  const undamaged = new Ledger(filled().storage); // the twins
  assert.equal(undamaged.find("https://a", toy)[0].state, "leaving");
  const changed = new Storage();
  changed.setItem(KEY, change(one));
  assert.deepEqual(new Ledger(changed).find("https://a", toy)[0].items, ["x"]);
  for (const [what, text] of Object.entries(damaged)) {
    const storage = new Storage();
    storage.setItem(KEY, text);
    const ledger = new Ledger(storage);
    for (const call of [
      () => ledger.find("a", toy),
      () => ledger.drawOnce("a", toy),
      () => ledger.reserve("a", toy, "question", toy.mechanism.perturb(0), id),
      () => ledger.mark([hex(id)], "counted"),
    ]) {
      const error = await refusal("ledger", call).catch((wrong) => {
        throw new Error(`${what}: ${wrong.message}`);
      });
      assert.match(error.message, /damaged.*restore it/);
    }
    assert.equal(storage.getItem(KEY), text, what);
  }
});

/** Locks as a browser's: one after another, and each name is written down. */
function queue(names) {
  let last = Promise.resolve();
  return {
    request(name, work) {
      names.push(name);
      const done = last.then(() => work());
      last = done.catch(() => {});
      return done;
    },
  };
}

await checks.check("work is done under the browser's lock where there is one", async () => {
  const ledger = new Ledger(new Storage());
  assert.equal(await ledger.locked(() => 3), 3);
  const seen = [];
  Object.defineProperty(globalThis, "navigator", {
    value: { locks: queue(seen) }, configurable: true,
  });
  assert.equal(await ledger.locked(async () => 4), 4);
  delete globalThis.navigator;
  assert.deepEqual(seen, [KEY]);
});

await checks.check("the lock is handed on once every tab sees what was written", async () => {
  Object.defineProperty(globalThis, "navigator", {
    value: { locks: queue([]) }, configurable: true,
  });
  Object.defineProperty(globalThis, "localStorage", { value: new Storage(), configurable: true });
  const others = (work) => { // what happens first: other tabs see it, or the lock is handed on
    const ledger = new Ledger();
    const order = [];
    ledger.locked(() => {
      setTimeout(() => order.push("seen"), 100);
      return work(ledger);
    }).catch(() => {});
    return ledger.locked(() => order.push("next")).then(() => order[0]);
  };
  const write = (ledger) => reserve(ledger, "https://a", toy, "HIV");
  assert.equal(await others(write), "seen");
  assert.equal(await others((ledger) => {
    ledger.mark([ledger.find("https://a", toy)[0].id], "leaving");
    throw new Error("and then it fails");
  }), "seen");
  assert.equal(await others((ledger) => ledger.find("https://a", apart)), "next");
  delete globalThis.navigator;
  delete globalThis.localStorage;
});

// ---- several questions

const REGION = { name: "region", text: "Where?", items: ["north", "HIV clinic"] };

async function several(name = "several", answers = 2) {
  const { toy: one, strict: two, cells } = input.documents;
  return Survey.from(await sealed({
    name, answers, public: [REGION],
    questions: [
      { name: "ill", mechanism: one }, { name: "strict", mechanism: two },
      { name: "both", mechanism: cells, of: ["ill", "strict"] },
    ],
  }));
}

await checks.check("what is drawn is drawn once, and written down in the order of the survey",
  async () => {
    const survey = await several();
    const order = survey.questions.map((question) => question.name);
    const seen = new Map();
    for (let k = 0; k < 600; k++) {
      const storage = new Storage();
      const names = new Ledger(storage).drawOnce("https://a", survey).map((entry) => entry.question);
      const again = new Ledger(storage).drawOnce("https://a", survey).map((entry) => entry.question);
      assert.deepEqual(again, names);
      assert.equal(names.length, 2);
      assert.ok(order.indexOf(names[0]) < order.indexOf(names[1]));
      seen.set(names.join(), (seen.get(names.join()) ?? 0) + 1);
    }
    // each of three with a chance of a third: 200 of 600, and 5 standard errors of 11.5
    assert.equal(seen.size, 3);
    for (const count of seen.values()) assert.ok(Math.abs(count - 200) < 58, `${count}`);
  },
);

await checks.check("a crossed report counts for the items of both questions", async () => {
  const survey = await several("several", 3);
  const ledger = new Ledger(new Storage());
  const [, , both] = ledger.drawOnce("https://a", survey);
  const [ill, strict] = survey.questions.map(({ mechanism }) => mechanism.policy.items);
  assert.deepEqual(both.items, [...ill, ...strict]);
  const cells = survey.question("both").mechanism;
  const budget = (k) => cells.levelEpsilons()[cells.policy.levelOf[k]];
  const row = (i) => Math.max(...strict.map((_, j) => budget(i * strict.length + j)));
  const column = (j) => Math.max(...ill.map((_, i) => budget(i * strict.length + j)));
  const expected = [...ill.map((_, i) => row(i)), ...strict.map((_, j) => column(j))];
  both.items.forEach((_, k) => near(both.budgets.levels[both.budgets.levelOf[k]], expected[k]));
});

await checks.check("a public answer is told: it overlaps, without a limit", async () => {
  const survey = await several();
  const ledger = new Ledger(new Storage());
  for (const { question } of ledger.drawOnce("https://a", survey)) {
    ledger.reserve("https://a", survey, question, Uint8Array.of(0, 0, 1), id);
  }
  ledger.mark([hex(id)], "leaving");
  const region = await surveyOf(input.documents.clinic, "clinic");
  const overlaps = ledger.overlaps("https://b", region);
  assert.deepEqual(overlaps.map(({ shared }) => shared), [["HIV clinic"], ["HIV clinic"]]);
  const summed = ledger.summed("https://b", region, overlaps);
  assert.equal(summed.epsilon, Infinity);
  assert.equal(summed.sentence, "You already gave 2 earlier answers about the same items: together, "
    + "your reports can change what is known about \"HIV clinic\" without any limit.");
  assert.deepEqual(ledger.overlaps("https://b", await surveyOf(input.documents.nobody)), []);
});

await checks.check("the questions that are not drawn overlap too", async () => {
  // else whoever asks again under another name draws again, until every answer is told
  const { strict: ill, letters } = input.documents;
  const survey = await Survey.from(await sealed({
    name: "two", answers: 1,
    questions: [{ name: "ill", mechanism: ill }, { name: "letters", mechanism: letters }],
  }));
  const { ledger, entry } = filled();
  const all = ledger.overlaps("https://b", survey);
  assert.deepEqual(all.map(({ shared }) => shared), [["HIV"]]);
  const seen = new Set();
  for (let k = 0; k < 60; k++) { // one of both is missed once in 10^17
    const origin = `https://b${k}`;
    const [{ question, budgets }] = ledger.drawOnce(origin, survey);
    seen.add(question);
    const overlaps = ledger.overlaps(origin, survey);
    assert.deepEqual(overlaps, all);
    const { item, epsilon, sentence } = ledger.summed(origin, survey, overlaps);
    if (question === "ill") {
      assert.equal(item, ledger.summed("https://b", survey, all).item);
      continue;
    }
    assert.equal(item, "");
    near(epsilon, entry.budgets.whole + budgets.whole);
    const told = /^You already gave an earlier answer to other questions .* at most a factor of /;
    assert.match(sentence, told);
  }
  assert.equal(seen.size, 2);
});

await checks.check("the sum for whole lists counts what is drawn", async () => {
  const survey = await Survey.from(await sealed({
    name: "lists", answers: 1,
    questions: [{ name: "sets", mechanism: input.documents.sets },
      { name: "letters", mechanism: input.documents.letters }],
  }));
  const ledger = new Ledger(new Storage());
  leave(ledger, "https://a", sets, []);
  const factor = (origin) => {
    const told = ledger.summed(origin, survey, ledger.overlaps(origin, survey));
    return Number(/(?:Whole lists|other questions).* factor of ([0-9.,]+)\.$/.exec(told.sentence)[1]);
  };
  const [one, more] = survey.questions.map(({ mechanism }) => mechanism.wholeEpsilon());
  assert.ok(more > one + 1);
  const says = (found, epsilon) => {
    assert.ok(found >= Math.exp(epsilon) * (1 - 1e-11) && found <= Math.exp(epsilon) + 1);
  };
  says(factor("https://b"), one + more); // not drawn: the largest
  for (let k = 0; k < 60; k++) {
    const origin = `https://b${k}`;
    const [{ question }] = ledger.drawOnce(origin, survey);
    says(factor(origin), question === "sets" ? 2 * one : one + more);
  }
});

await checks.check("whole lists without a limit say so", () => {
  const storage = new Storage();
  const ledger = new Ledger(storage);
  leave(ledger, "https://a", sets, []);
  const sentence = () => {
    return ledger.summed("https://b", sets, ledger.overlaps("https://b", sets)).sentence;
  };
  assert.match(sentence(), /any two of them by at most a factor of [0-9.,]+\.$/);
  const changed = storage.getItem(KEY).replace(/"whole":[0-9.e-]+/, "\"whole\":null");
  storage.setItem(KEY, changed);
  assert.match(sentence(), /Whole lists: .* any two of them without any limit\.$/);
});

await checks.check("a question that the survey does not have is refused", async () => {
  const survey = await several();
  const storage = new Storage();
  new Ledger(storage).drawOnce("https://a", survey);
  storage.setItem(KEY, storage.getItem(KEY).replaceAll(/"question":"\w+"/g, "\"question\":\"x\""));
  await refusal("ledger", () => new Ledger(storage).find("https://a", survey));
});

await checks.check("an item counts in every language of a survey", async () => {
  const storage = new Storage();
  const ledger = new Ledger(storage);
  const survey = await Survey.from(await sealed({
    name: "sprachen", answers: 1,
    about: { language: "en" },
    questions: [{ name: "ill", mechanism: input.documents.apart }],
    translations: { de: { questions: { ill: { items: { "HIV test": "anemia" } } } } },
  }));
  assert.deepEqual(ledger.overlaps("https://a", toy), []);
  leaveNamed(ledger, "https://b", survey, "ill");
  assert.equal(ledger.overlaps("https://a", toy).length, 1); // the toy asks for anemia
  const { entries: [{ items, budgets: { levelOf } }] } = JSON.parse(storage.getItem(KEY));
  assert.deepEqual([items, levelOf], [["HIV test", "anemia", "anaemia"], [0, 0, 0]]);
});

await checks.check("public answers are told in every language", async () => {
  const storage = new Storage();
  const ledger = new Ledger(storage);
  const survey = await Survey.from(await sealed({
    name: "offen", answers: 1,
    about: { language: "en" },
    questions: [{ name: "ill", mechanism: input.documents.apart }],
    public: [{ name: "sick", text: "Sick?", items: ["yes", "no"] }],
    translations: { de: { public: { sick: { items: { yes: "headache", no: "nein" } } } } },
  }));
  leaveNamed(ledger, "https://b", survey, "ill");
  const { entries: [{ told }] } = JSON.parse(storage.getItem(KEY));
  assert.deepEqual(told, ["yes", "headache", "no", "nein"]);
  assert.equal(ledger.overlaps("https://a", toy).length, 1);
});

await checks.check("a ledger of an earlier version is not forgotten in silence", async () => {
  for (const key of ["discreet-ledger/3", "discreet-ledger/2", "discreet-ledger/1"]) {
    const storage = new Storage();
    storage.setItem(key, JSON.stringify({ entries: [] }));
    const ledger = new Ledger(storage);
    const error = await refusal("ledger", () => ledger.find("https://a", toy));
    assert.match(error.message, new RegExp(`"${key}" is of an earlier version`));
    assert.deepEqual(new Ledger(storage, 2).find("https://a", toy), []); // of another person
  }
});

checks.done();
