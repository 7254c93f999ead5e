// What a caller can and cannot do with a mechanism; budgets so large that a report is its answer.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { DiscreetError, Mechanism, fingerprint } from "../../../src/discreet/collector/static/discreet.js";
import { Checks, input, refusal } from "./io.mjs";

const checks = new Checks();
const single = await Mechanism.from(input.single);
const sets = await Mechanism.from(input.sets);

await checks.check("an answer is a label or an index", async () => {
  for (const answer of ["anemia", 1]) assert.deepEqual(single.perturb(answer), Uint8Array.of(2));
  const texts = ["flu", "", "ANEMIA", "1"];
  for (const answer of [...texts, 3, -1, 0.5, NaN, Infinity, true, null, undefined, {}, [1], new Set([1]), 1n, () => 1, Symbol("x")]) {
    const error = await refusal("answer", () => single.perturb(answer));
    assert.ok(error instanceof DiscreetError && error instanceof Error);
  }
  assert.match((await refusal("answer", () => single.perturb("x".repeat(1e6)))).message, /^.{0,200}$/);
});

await checks.check("a set is anything that lists labels and indices", async () => {
  const generator = function* () { yield "anemia"; };
  for (const answer of [["anemia"], [1], new Set(["anemia", 1]), Uint8Array.of(1), generator(), ["anemia", "anemia", 1]]) {
    assert.deepEqual(sets.perturb(answer), Uint8Array.of(2));
  }
  assert.deepEqual(sets.perturb([]), Uint8Array.of(0));
  assert.ok([1, 4].includes(sets.perturb([0, 2])[0])); // larger than the padding: one of its own items
  for (const answer of ["anemia", 1, null, undefined, {}, true]) await refusal("answer", () => sets.perturb(answer));
  for (const answer of [["flu"], [3], [[0]], [null], [0.5], ["anemia", "flu"]]) await refusal("answer", () => sets.perturb(answer));
});

await checks.check("a report is bytes", async () => {
  for (const report of ["02", [2], null, new Uint16Array(1), new ArrayBuffer(1)]) {
    await refusal("report", () => single.check(report));
    await refusal("report", () => single.bits(report));
  }
  assert.deepEqual(single.bits(Uint8Array.of(5)), Uint8Array.of(1, 0, 1));
  assert.equal(single.check(Buffer.from([5])), null);
});

await checks.check("what was verified cannot be changed", async () => {
  const document = structuredClone(input.toy);
  const mechanism = await Mechanism.from(document);
  const { a } = mechanism.parts[0];
  const before = [...a];
  document.parts[0].a[0] = 2 ** 32 - 1;
  document.policy.items[0] = "flu";
  assert.deepEqual(mechanism.parts[0].a, before);
  assert.equal(mechanism.policy.items[0], "HIV");
  for (const change of [
    () => { a[0] = 1; }, () => { mechanism.parts[0].a = []; }, () => { mechanism.parts = []; }, () => { mechanism.padding = 9; },
    () => { mechanism.policy.items[0] = "x"; }, () => { mechanism.policy.levelOf[0] = 1; }, () => { mechanism.m = 1; },
    () => { mechanism.policy.levels[0].budget = "9"; }, () => { mechanism.policy.levels[0] = {}; },
    () => { mechanism.perturb = null; },
  ]) assert.throws(change, TypeError);
});

await checks.check("a getter cannot show one thing to the fingerprint and another to the check", async () => {
  let reads = 0;
  const document = structuredClone(input.toy);
  const good = document.parts;
  const bad = structuredClone(good);
  bad[0].a[0] = 2 ** 32 - 1;
  Object.defineProperty(document, "parts", { enumerable: true, get: () => (reads++ ? bad : good) });
  assert.deepEqual((await Mechanism.from(document)).parts, good);
});

await checks.check("without https there is no SHA-256, and that is said", async () => {
  const { crypto } = globalThis;
  Object.defineProperty(globalThis, "crypto", { value: { getRandomValues: (x) => crypto.getRandomValues(x) }, configurable: true });
  try {
    assert.match((await refusal("crypto", () => Mechanism.from(input.toy))).message, /https/);
    await refusal("crypto", () => fingerprint({}));
  } finally {
    Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
  }
});

await checks.check("products modulo the prime are exact up to its end", async () => {
  // Only more than 4 million items would reach these, so the function is taken out of the module's text.
  const source = await readFile(new URL("../../../src/discreet/collector/static/discreet.js", import.meta.url), "utf8");
  const [P, times] = [2 ** 31 - 1, /function times\(x, y\) \{(.*?)\n\}/s.exec(source)[1]];
  const multiply = new Function("x", "y", "P", times);
  const edges = [0, 1, 2, 65535, 65536, 65537, 2 ** 22, 2 ** 30, P - 65536, P - 2, P - 1];
  let step = 12345;
  const others = Array.from({ length: 200 }, () => { step = (step * 48271) % P; return step; });
  for (const x of [...edges, ...others]) {
    for (const y of [...edges, ...others]) assert.equal(BigInt(multiply(x, y, P)), (BigInt(x) * BigInt(y)) % BigInt(P));
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
    assert.ok(spent(start) < 10, `${spent(start)} s`); // about 0.5 when this was written; every pair would take minutes
    assert.ok(mechanism.policy.levels.length > 16_000);
  }
});

await checks.check("a report of 41,270 bits takes milliseconds", async () => {
  const mechanism = await Mechanism.from(input.kosarak);
  const start = process.cpuUsage();
  for (let k = 0; k < 20; k++) mechanism.perturb(k);
  assert.ok(spent(start) < 20 * 0.05, `${spent(start)} s for 20`); // about 0.03 when this was written
});

checks.done();
