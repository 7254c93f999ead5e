// What a caller can and cannot do with a mechanism; budgets so large that a report is its answer.
import assert from "node:assert/strict";
import { Checks, discreet, input, refusal } from "./io.mjs";

const { DiscreetError, Mechanism, fingerprint } = discreet;

const checks = new Checks();
const single = await Mechanism.from(input.single);
const sets = await Mechanism.from(input.sets);

await checks.check("an answer is a label or an index", async () => {
  for (const answer of ["anemia", 1]) assert.deepEqual(single.perturb(answer), Uint8Array.of(2));
  for (const answer of [
    "flu", "", "ANEMIA", "1", 3, -1, 0.5, NaN, Infinity, true, null, undefined, {}, [1],
    new Set([1]), 1n, () => 1, Symbol("x"),
  ]) {
    const error = await refusal("answer", () => single.perturb(answer));
    assert.ok(error instanceof DiscreetError && error instanceof Error);
  }
  const { message } = await refusal("answer", () => single.perturb("x".repeat(1e6)));
  assert.match(message, /^.{0,200}$/);
});

await checks.check("an error never repeats the answer", async () => {
  for (const [mechanism, answer] of [
    [single, "secret"], [single, ["secret"]], [single, new Set(["secret"])], [single, { secret: 1 }],
    [sets, "secret"], [sets, ["secret"]], [sets, [["secret"]]], [sets, { secret: 1 }],
  ]) {
    const error = await refusal("answer", () => mechanism.perturb(answer));
    assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)}`, /secret/);
  }
});

await checks.check("a set is anything that lists labels and indices", async () => {
  const generator = function* () { yield "anemia"; };
  for (const answer of [
    ["anemia"], [1], new Set(["anemia", 1]), Uint8Array.of(1), generator(), ["anemia", "anemia", 1],
  ]) {
    assert.deepEqual(sets.perturb(answer), Uint8Array.of(2));
  }
  assert.deepEqual(sets.perturb([]), Uint8Array.of(0));
  // larger than the padding: one of its own items
  assert.ok([1, 4].includes(sets.perturb([0, 2])[0]));
  for (const answer of ["anemia", 1, null, undefined, {}, true]) {
    await refusal("answer", () => sets.perturb(answer));
  }
  for (const answer of [["flu"], [3], [[0]], [null], [0.5], ["anemia", "flu"]]) {
    await refusal("answer", () => sets.perturb(answer));
  }
});

await checks.check("a report is bytes", async () => {
  for (const report of ["02", [2], null, new Uint16Array(1), new ArrayBuffer(1)]) {
    await refusal("report", () => single.refusal(report));
    await refusal("report", () => single.bits(report));
    await refusal("report", () => single.meaning(report));
  }
  assert.deepEqual(single.bits(Uint8Array.of(5)), Uint8Array.of(1, 0, 1));
  assert.equal(single.refusal(Buffer.from([5])), null);
});

await checks.check("what was verified cannot be changed", async () => {
  const document = structuredClone(input.toy);
  const mechanism = await Mechanism.from(document);
  const { own } = mechanism.parts[0];
  const { encoding, policy, parts } = mechanism;
  const before = [...own];
  document.parts[0].own[0] = 2 ** 32 - 1;
  document.policy.items[0] = "flu";
  assert.deepEqual(parts[0].own, before);
  assert.equal(policy.items[0], "HIV");
  for (const change of [
    () => { own[0] = 1; }, () => { parts[0].own = []; }, () => { mechanism.parts = []; },
    () => { mechanism.padding = 9; },
    () => { policy.items[0] = "x"; }, () => { policy.levelOf[0] = 1; }, () => { mechanism.m = 1; },
    () => { policy.levels[0].budget = "9"; }, () => { policy.levels[0] = {}; },
    () => { mechanism.perturb = null; }, () => { mechanism.encoding = {}; },
    () => { encoding.write = null; }, () => { encoding.parts = []; },
    () => { encoding.size = 1; }, () => { encoding.groups.groupOf[0] = 1; },
    () => { encoding.groups.members[1][0] = 0; },
    () => { encoding.groups.rank[0] = 1; }, () => { mechanism.groups[0] = 1; },
  ]) assert.throws(change, TypeError);
  const hits = await Mechanism.from(input.hits);
  const [{ rows, active }] = hits.parts;
  for (const change of [
    () => { rows[0][1] = 0; }, () => { rows[0] = []; }, () => { active[0] = 0; },
    () => { hits.parts[0].limit = 1; }, () => { hits.encoding.prime = 7; },
    () => { hits.encoding.report = null; }, () => { hits.policy.strict = true; },
  ]) assert.throws(change, TypeError);
});

await checks.check("a getter cannot show one thing to the fingerprint and another to the check",
  async () => {
    let reads = 0;
    const document = structuredClone(input.toy);
    const good = document.parts;
    const bad = structuredClone(good);
    bad[0].own[0] = 2 ** 32 - 1;
    const get = () => (reads++ ? bad : good);
    Object.defineProperty(document, "parts", { enumerable: true, get });
    assert.deepEqual((await Mechanism.from(document)).parts, good);
  },
);

await checks.check("without https there is no SHA-256, and that is said", async () => {
  const { crypto } = globalThis;
  const value = { getRandomValues: (x) => crypto.getRandomValues(x) };
  Object.defineProperty(globalThis, "crypto", { value, configurable: true });
  try {
    assert.match((await refusal("crypto", () => Mechanism.from(input.toy))).message, /https/);
    await refusal("crypto", () => fingerprint({}));
  } finally {
    Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
  }
});

await checks.check("a file is UTF-8, with or without a byte-order mark", async () => {
  const text = new TextEncoder().encode(JSON.stringify(input.toy));
  const { fingerprint: good } = input.toy;
  const mark = [0xef, 0xbb, 0xbf];
  assert.equal((await Mechanism.read(text)).fingerprint, good);
  const marked = Uint8Array.of(...mark, ...text);
  assert.equal((await Mechanism.read(marked, { fingerprint: good })).fingerprint, good);
  for (const bytes of [
    [...mark, ...mark, ...text], [...text, ...mark], [...text, 0xff], text.slice(1), [],
  ]) {
    await refusal("mechanism", () => Mechanism.read(Uint8Array.from(bytes)));
  }
  await refusal("pinned", () => Mechanism.read(text, { fingerprint: "0".repeat(64) }));
});

await checks.check("a document that is too deep is refused in a sentence", async () => {
  const deep = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`);
  for (const document of [{ deep }, { ...input.toy, deep }]) {
    await refusal("mechanism", () => Mechanism.from(document));
  }
});

await checks.check("a promise is said once, with the number of the list of promises", async () => {
  for (const mechanism of [single, sets, await Mechanism.from(input.toy)]) {
    const promises = mechanism.promises().filter(({ level }) => level !== null);
    promises.forEach(({ sentence }, level) => {
      const said = mechanism.promise(level, "“x”");
      assert.match(said, mechanism.padding
        ? /^Having or not having “x” / : /^Whoever .* between “x” and any other answer /);
      assert.equal(/by at most .*/.exec(said)[0], /by at most .*/.exec(sentence)[0]);
    });
  }
});

await checks.check("a list has a promise of its own, where lists are asked for", async () => {
  const [whole] = sets.promises().filter(({ level }) => level === null);
  assert.equal(whole.whole, true);
  for (const answer of [[], ["anemia"], [0, 1, 2], new Set([1])]) {
    const { factor, sentence } = sets.promiseOf(answer);
    const told = /^Your whole list: .* any other list by at most a factor of [\d.,]+( × 10\^\d+)?\.$/;
    assert.match(sentence, told);
    assert.ok(factor <= whole.factor);
  }
  assert.equal(sets.promiseOf([1]).factor, sets.promiseOf(["anemia", 1]).factor);
  for (const answer of ["anemia", 1, ["flu"], null]) {
    await refusal("answer", () => sets.promiseOf(answer));
  }
  await refusal("answer", () => single.promiseOf(["anemia"]));
  assert.ok(single.promises().every(({ whole: none }) => none === undefined));
});

await checks.check("what a report means is said in a sentence with its chances", async () => {
  assert.equal(
    single.meaning(Uint8Array.of(5)).sentence,
    "For each of 3 answers it was drawn at random whether the report names it; it names 2: your "
    + "own answer is named with a chance of 100 %, one that is not yours with about 0.0 %.",
  );
  for (const [name, { report, sentence, named, part }] of Object.entries(input.meanings)) {
    const mechanism = await Mechanism.from(input[name]);
    const { mine, others, ...found } = mechanism.meaning(Buffer.from(report, "hex"));
    assert.deepEqual(found, { part, named, sentence });
    assert.ok([...mine, ...others].every((chance) => chance >= 0 && chance <= 1));
  }
});

/** Seconds of processor time since a moment: other programs on the machine do not count. */
function spent(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
}

await checks.check("16,470 budgets are verified in seconds at most", async () => {
  for (const notion of ["min", "avg"]) {
    const start = process.cpuUsage();
    const mechanism = await Mechanism.from(input[notion]);
    // about 0.5 when this was written; every pair would take minutes
    assert.ok(spent(start) < 10, `${spent(start)} s`);
    assert.ok(mechanism.policy.levels.length > 16_000);
    const promised = process.cpuUsage();
    // the page says them all
    for (let level = 0; level < 16_000; level++) mechanism.promise(level, "x");
    assert.ok(spent(promised) < 5, `${spent(promised)} s`);
  }
});

await checks.check("a report takes milliseconds at most", async () => {
  // when this was written: 3 ms, 0.04 ms and 0.01 ms
  for (const [name, most] of [["kosarak", 0.05], ["thousand", 0.005], ["tickets", 0.005]]) {
    const mechanism = await Mechanism.from(input[name]);
    const start = process.cpuUsage();
    for (let k = 0; k < 100; k++) mechanism.perturb(k);
    assert.ok(spent(start) < 100 * most, `${name}: ${spent(start)} s for 100`);
  }
});

checks.done();
