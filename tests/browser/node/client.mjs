// The client against a small server (argv: its address), whose collections are named after what
// they do.
import assert from "node:assert/strict";
import { Checks, Storage, discreet, hex, input, refusal, sealed, surveyOf } from "./io.mjs";

const { Client, Ledger, Survey } = discreet;

const url = process.argv[2];
const KEY = "discreet-ledger/4";
const checks = new Checks();
const entriesOf = (storage) => JSON.parse(storage.getItem(KEY) ?? "{\"entries\":[]}").entries;
const body = (request) => request.body;
const named = (name) => surveyOf(input.mechanism, name);
const sole = ({ frames: [{ id, report }] }) => ({ id, report });

/** What the server has seen under a name. */
async function seen(name) {
  return (await fetch(`${url}/seen/${encodeURIComponent(name)}`)).json();
}

function fresh(options = {}) {
  const storage = new Storage();
  const ledger = new Ledger(storage);
  return { storage, client: new Client(url, { ledger, pause: 1, patience: 120_000, ...options }) };
}

/**
 * Do the work while timers fire at once and a clock of our own counts their delays; the pauses that
 * were made.
 */
async function virtually(work) {
  const { setTimeout } = globalThis;
  const { now } = performance;
  const pauses = [];
  globalThis.setTimeout = (call, delay) => { pauses.push(delay); return setTimeout(call, 0); };
  performance.now = () => pauses.reduce((sum, pause) => sum + pause, 0);
  try {
    await work();
    return pauses;
  } finally {
    globalThis.setTimeout = setTimeout;
    performance.now = now;
  }
}

const posts = async (name) => (await seen(name)).filter(({ method }) => method === "POST");

await checks.check("describe verifies what it is given", async () => {
  const { client, storage } = fresh();
  const { survey, state } = await client.describe("good");
  assert.equal(survey.fingerprint, input.fingerprint);
  assert.equal(state, "open");
  assert.equal((await client.describe("closed")).state, "closed");
  const pinned = await client.describe("good", { fingerprint: input.fingerprint });
  assert.equal(pinned.survey.mechanism.m, 5);
  await client.describe("good", { fingerprint: null });
  await refusal("pinned", () => client.describe("good", { fingerprint: "0".repeat(64) }));
  await refusal("pinned", () => client.describe("good", { fingerprint: "" }));
  await refusal("guarantee", () => client.describe("tampered"));
  await refusal("fingerprint", () => client.describe("changed"));
  await refusal("mechanism", () => client.describe("without"));
  await refusal("mechanism", () => client.describe("bare-mechanism"));
  await refusal("server", () => client.describe("stateless"));
  await refusal("server", () => client.describe("html"));
  await refusal("server", () => client.describe("latin-1"));
  assert.equal((await client.describe("marked")).survey.mechanism.m, 5); // a byte-order mark is ignored
  await refusal("server", () => client.describe("moved"));
  const another = await refusal("pinned", () => client.describe("another-name"));
  assert.match(another.message, /link is for "another-name", but .* called "good".*whole link/);
  assert.deepEqual(await seen("elsewhere"), []);
  assert.deepEqual(entriesOf(storage), []);
});

await checks.check("a refusal is said in the collector's words", async () => {
  const error = await refusal("refused", () => fresh().client.describe("missing"));
  assert.equal(error.message, "there is no collection of that name; see /v1/collections");
  assert.equal(error.status, 404);
  const bare = await refusal("refused", () => fresh().client.describe("bare"));
  assert.match(bare.message, /403/);
});

await checks.check("what the collector says is cleaned before it is shown", async () => {
  const detail = `no\u001b[2J\r\n  such \u202ename\u200b ${"x".repeat(999)}`;
  const answering = (body) => async () => Response.json(body, { status: 404 });
  const said = async (body) => {
    const { client } = fresh({ fetch: answering(body) });
    return (await refusal("refused", () => client.describe("x"))).message;
  };
  const message = await said({ detail });
  assert.match(message, /^no\ufffd\[2J such \ufffdname\ufffd x+…$/u);
  assert.equal(Array.from(message).length, 300);
  assert.equal(await said({ detail: " \n" }), "the collector refuses with 404");
  const odd = { state: "\u202e\u001bopen", survey: input.document };
  const strange = await refusal("server", () => {
    return fresh({ fetch: async () => Response.json(odd) }).client.describe("good");
  });
  const marked = await refusal("fingerprint", () => {
    const survey = { ...input.document, fingerprint: "\u001b[2J\u202e" };
    const body = { state: "open", survey };
    return fresh({ fetch: async () => Response.json(body) }).client.describe("good");
  });
  for (const error of [strange, marked]) assert.doesNotMatch(error.message, /[\p{Cc}\p{Cf}]/u);
});

await checks.check("a name is one segment of the path", async () => {
  await fresh().client.describe("good/../Prüfung?x");
  assert.equal((await seen("good/../Prüfung?x")).length, 1);
});

await checks.check("an answer is written down, then sent once", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("once");
  const prepared = await client.prepare(survey, "HIV");
  assert.deepEqual(entriesOf(storage).map(({ state }) => state), ["shown"]);
  assert.equal((await posts("once")).length, 0);
  const [frame] = prepared.frames;
  assert.equal(prepared.frames.length, 1);
  assert.equal(survey.mechanism.refusal(frame.report), null);
  assert.deepEqual(frame.content, frame.report); // one question, and nothing public
  assert.equal(frame.id.length, 16);
  const receipt = await client.send(prepared);
  assert.deepEqual(receipt, {
    accepted: 1, duplicates: 0, frames: prepared.frames, repeated: false,
  });
  const [request, ...others] = await posts("once");
  assert.equal(others.length, 0);
  assert.equal(request.path, "/v1/collections/once/reports");
  assert.equal(request.body, hex(frame.id) + hex(frame.report));
  assert.equal(request.headers["content-type"], "application/octet-stream");
  assert.equal(request.headers["discreet-survey"], survey.fingerprint);
  const { headers } = request;
  assert.ok(!("cookie" in headers) && !("authorization" in headers) && !("referer" in headers));
  const [entry] = entriesOf(storage);
  assert.equal(entry.state, "counted");
  assert.equal(entry.origin, new URL(url).origin);
});

await checks.check("the same collection gets the same report again, whatever the answer",
  async () => {
    const { client, storage } = fresh();
    const { survey } = await client.describe("again");
    const first = await client.answer(survey, "HIV");
    // the page was loaded again
    const later = new Client(url, { ledger: new Ledger(storage), pause: 1 });
    const prepared = await later.prepare(survey, "toothache");
    assert.equal(prepared.repeated, true);
    const second = await later.send(prepared);
    assert.deepEqual(second, {
      accepted: 0, duplicates: 1, frames: first.frames, repeated: true,
    });
    const [one, two] = (await posts("again")).map(body);
    assert.equal(one, two);
    assert.equal(entriesOf(storage).length, 1);
  },
);

await checks.check("two tabs that both prepared send one report", async () => {
  const { client, storage } = fresh();
  const other = new Client(url, { ledger: new Ledger(storage), pause: 1 });
  const { survey } = await client.describe("tabs");
  const [x, y] = await Promise.all([
    client.prepare(survey, 0), other.prepare(survey, 1),
  ]);
  assert.deepEqual(x.frames, y.frames); // the draw that is seen first is the draw
  const [first, second] = await Promise.all([client.send(x), other.send(y)]);
  assert.deepEqual(sole(first).id, sole(second).id);
  assert.deepEqual([first.repeated, second.repeated], [false, true]);
  assert.equal(first.accepted + second.accepted, 1);
  assert.equal(new Set((await posts("tabs")).map(body)).size, 1);
});

for (const name of ["busy", "failing", "dropped"]) {
  const what = "the same bytes are sent until the collector takes them";
  await checks.check(`${what}: ${name}`, async () => {
    const { client } = fresh();
    const { survey } = await client.describe(name);
    assert.equal((await client.answer(survey, 2)).accepted, 1);
    const bodies = (await posts(name)).map(body);
    assert.equal(bodies.length, 3);
    assert.equal(new Set(bodies).size, 1);
  });
}

await checks.check("a report is marked in the ledger of who sends it", async () => {
  const { storage, client } = fresh();
  const { survey } = await client.describe("good");
  const sending = client.send(await client.prepare(survey, "anemia"));
  client.ledger = new Ledger(storage, 2); // somebody else sits down
  await client.prepare(survey, "HIV");
  await sending;
  const states = [KEY, `${KEY}/2`].map((key) => JSON.parse(storage.getItem(key)).entries[0].state);
  assert.deepEqual(states, ["counted", "shown"]);
});

await checks.check("a question is over when it says so, whatever the collector says", async () => {
  const { client } = fresh();
  assert.equal((await client.describe("over")).state, "closed");
  assert.equal((await client.describe("just-over")).state, "open"); // clocks may differ
  await refusal("server", () => client.describe("timeless"));
});

await checks.check("an acknowledgement that was lost is a duplicate", async () => {
  const { client } = fresh();
  const { survey } = await client.describe("lost");
  const { accepted, duplicates } = await client.answer(survey, 2);
  assert.deepEqual([accepted, duplicates], [0, 1]);
});

await checks.check("4xx is not retried, the report stays, and goes out the next time", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("refusing");
  const error = await refusal("refused", () => client.answer(survey, 0));
  assert.equal(error.message, "the collection is closed; nothing was counted");
  assert.equal(error.status, 409);
  assert.equal((await posts("refusing")).length, 1);
  assert.equal(entriesOf(storage)[0].state, "leaving");
  const receipt = await client.answer(survey, 1);
  assert.equal(receipt.repeated, true);
  const [one, two] = (await posts("refusing")).map(body);
  assert.equal(one, two);
  assert.equal(entriesOf(storage)[0].state, "counted");
});

await checks.check("what was on its way is sent again", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("garbled2");
  assert.equal(client.unsent(survey), null);
  const prepared = await client.prepare(survey, 0);
  assert.equal(client.unsent(survey), null); // nothing has left
  client.ledger.mark([hex(sole(prepared).id)], "leaving");
  const later = new Client(url, { ledger: new Ledger(storage), pause: 1 });
  const unsent = later.unsent(survey);
  assert.deepEqual(unsent.frames, prepared.frames);
  assert.equal((await later.send(unsent)).accepted, 1);
  assert.equal(entriesOf(storage)[0].state, "counted");
  assert.equal(later.unsent(survey), null);
});

await checks.check("a report that was drawn needs no answer any more", async () => {
  const { client } = fresh();
  const { survey } = await client.describe("drawn");
  await refusal("answer", () => client.prepare(survey));
  const { frames } = await client.prepare(survey, 0);
  const again = await client.prepare(survey);
  assert.deepEqual([again.frames, again.repeated], [frames, true]);
});

await checks.check("a budget can be pinned for all items or for each", async () => {
  const { client } = fresh();
  const { survey } = await client.describe("good");
  const most = Math.max(...survey.mechanism.levelBudgets());
  const pinned = (maxEpsilon) => client.describe("good", { maxEpsilon });
  await pinned(most);
  await refusal("pinned", () => pinned(most - 1e-3));
  const [serious] = survey.mechanism.levelBudgets();
  await pinned({ HIV: serious });
  for (const label of ["HIV", "hiv", "НІV"]) {
    await refusal("pinned", () => pinned({ [label]: serious - 1e-3 }));
  }
  await refusal("pinned", () => pinned({ HIV: serious, flu: 9 }));
  const boxed = [new Map([["HIV", 9]]), new Set(), new Number(9), [9], {}];
  for (const wrong of [0, -1, NaN, "1", null, { HIV: 0 }, ...boxed]) {
    await refusal("answer", () => pinned(wrong));
  }
});

await checks.check("a pinned item counts all questions and languages; a number counts their sum",
  async () => {
    const { client } = fresh();
    const { survey } = await client.describe("translated");
    const [ill, , both] = survey.questions.map(({ mechanism }) => mechanism);
    const pinned = (maxEpsilon) => client.describe("translated", { maxEpsilon });
    const largest = (mechanism) => Math.max(...mechanism.levelBudgets());
    for (const label of ["anemia", "Anämie", "ANÄMIE"]) {
      const most = largest(ill) + largest(both);
      await pinned({ [label]: most });
      await refusal("pinned", () => pinned({ [label]: most - 1e-3 }));
    }
    assert.equal(survey.openly.length, 1);
    for (const label of survey.openly.flatMap(({ name, items }) => [name, ...items])) {
      const { message } = await refusal("pinned", () => pinned({ [label]: 100 }));
      assert.match(message, /is asked openly in the question/);
    }
    const wholes = survey.questions.map(({ mechanism }) => mechanism.wholeEpsilon());
    const [first, second] = wholes.sort((x, y) => y - x);
    await pinned(first + second);
    await refusal("pinned", () => pinned(first + second - 1e-3));
  });

await checks.check("patience ends, and the report stays", async () => {
  const { survey } = await fresh().client.describe("never");
  const attempts = [];
  const busy = (_, { body }) => {
    attempts.push(hex(body));
    return Promise.resolve(new Response("", { status: 503 }));
  };
  const { client, storage } = fresh({ fetch: busy, patience: 60_000, pause: 500 });
  const pauses = await virtually(async () => {
    const error = await refusal("network", () => client.answer(survey, 0));
    assert.match(error.message, /503.*same report/);
  });
  assert.equal(attempts.length, pauses.length + 1);
  assert.ok(attempts.length >= 6); // 1.5 times 500, 1000, ... 16,000 is less than 60,000
  assert.equal(new Set(attempts).size, 1);
  assert.ok(pauses.reduce((sum, pause) => sum + pause) <= 60_000);
  assert.equal(entriesOf(storage)[0].state, "leaving");
});

await checks.check("who does not answer at all is given up", async () => {
  const start = performance.now();
  await refusal("network", () => fresh({ patience: 50 }).client.describe("hanging"));
  // an attempt is cut off too: this one would hang for 30 s
  assert.ok(performance.now() - start < 20_000);
  const ledger = new Ledger(new Storage());
  const nowhere = new Client("http://127.0.0.1:1", { ledger, pause: 1, patience: 50 });
  await refusal("network", () => nowhere.describe("x"));
});

await checks.check("an acknowledgement that says nothing is none", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("garbled");
  for (let k = 0; k < 4; k++) await refusal("server", () => client.answer(survey, 0));
  assert.equal(entriesOf(storage)[0].state, "leaving");
  assert.equal(new Set((await posts("garbled")).map(body)).size, 1);
});

await checks.check("an overlapping question needs agreement to the summed budget", async () => {
  const { client } = fresh();
  const { survey } = await client.describe("first");
  const renamed = await named("renamed");
  await client.answer(survey, 0);
  const error = await refusal("overlap", () => client.answer(renamed, 0));
  assert.ok(error.message.startsWith(error.summed.sentence.slice(0, -1)));
  const most = Math.max(...survey.mechanism.levelEpsilons());
  assert.ok(Math.abs(error.summed.epsilon - 2 * most) < 1e-9);
  assert.equal(error.overlaps.length, 1);
  await refusal("overlap", () => client.prepare(renamed, 0));
  assert.equal((await posts("renamed")).length, 0);
  const prepared = await client.prepare(renamed, 0, { agree: true });
  assert.deepEqual(prepared.summed, error.summed);
  assert.equal((await client.send(prepared)).accepted, 1);
  assert.equal((await posts("renamed")).length, 1);
  // a repeat tells nothing new, so it needs no agreement
  const again = await client.answer(survey, 3);
  assert.deepEqual([again.repeated, again.duplicates], [true, 1]);
});

await checks.check("a cap on the sum over all collections is not lifted by agreeing", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("capped");
  const own = Math.max(...survey.mechanism.levelEpsilons());
  const [second, third] = [await named("capped 2"), await named("capped 3")];
  const agree = true;
  const small = await refusal("total", () => {
    return client.prepare(survey, 0, { agree, maxTotal: own / 2 });
  });
  assert.match(small.message, /^this answer has the budget .* even if you agree$/);
  await client.answer(survey, 0, { maxTotal: own });
  const again = () => client.prepare(second, 0, { agree, maxTotal: 1.99 * own });
  const error = await refusal("total", again);
  assert.match(error.message, /^this answer and an earlier answer together have the budget/);
  assert.ok(Math.abs(error.epsilon - 2 * own) < 1e-9);
  const capped = new Client(url, { ledger: new Ledger(storage), pause: 1, maxTotal: 1.99 * own });
  await refusal("total", () => capped.answer(second, 0, { agree, maxTotal: 99 }));
  assert.equal((await posts("capped 2")).length, 0);
  assert.equal((await capped.answer(survey, 1)).duplicates, 1); // tells nothing new
  // what was answered meanwhile counts
  const late = await client.prepare(second, 0, { agree, maxTotal: 2 * own });
  await client.answer(third, 0, { agree });
  await refusal("total", () => client.send(late));
  for (const maxTotal of [0, -1, NaN, "1", null]) {
    await refusal("answer", () => client.prepare(survey, 0, { maxTotal }));
    await refusal("answer", () => new Client(url, { maxTotal }));
  }
});

await checks.check("a cap counts one-way answers by name only", async () => {
  const { client, storage } = fresh();
  const way = await surveyOf(input.oneWay, "way"); // 1, 2 and an open level
  assert.equal(way.mechanism.wholeEpsilon(), Infinity);
  assert.ok(Math.abs(way.mechanism.raiseEpsilon() - 2) < 1e-6);
  const error = await refusal("total", () => client.prepare(way, 0, { maxTotal: 9 }));
  assert.match(error.message, /raised odds have 2: accept that \(oneWay\)$/);
  const tight = { maxTotal: 1.9, oneWay: true };
  const more = await refusal("total", () => client.prepare(way, 0, tight));
  assert.match(more.message, /^this answer has the budget 2, .* even if you agree$/);
  const prepared = await client.prepare(way, 0, { maxTotal: 2.01, oneWay: true });
  const [{ budgets }] = entriesOf(storage);
  assert.equal(budgets.whole, null);
  assert.ok(Math.abs(budgets.raised - 2) < 1e-6);
  await refusal("total", () => client.send({ ...prepared, oneWay: false }));
  assert.equal((await client.send(prepared)).accepted, 1);
  const { survey: plain } = await client.describe("good");
  const own = plain.mechanism.raiseEpsilon();
  assert.equal(own, plain.mechanism.wholeEpsilon());
  await refusal("total", () => client.prepare(plain, 0, { maxTotal: 99 }));
  await refusal("total", () => {
    return client.prepare(plain, 0, { maxTotal: own + 1.99, oneWay: true });
  });
  await client.prepare(plain, 0, { maxTotal: own + 2.01, oneWay: true });
});

await checks.check("what another tab answered meanwhile counts", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("meanwhile");
  const prepared = await client.prepare(survey, 0);
  await new Client(url, { ledger: new Ledger(storage) }).answer(await named("elsewhere2"), 0);
  await refusal("overlap", () => client.send(prepared));
  assert.equal((await posts("meanwhile")).length, 0);
  assert.deepEqual(entriesOf(storage).map(({ state }) => state), ["shown", "counted"]);
});

await checks.check("what another tab wrote meanwhile is what is shown", async () => {
  // tabs without a common lock: theirs was written later, so it is the one that counts
  const storage = new Storage();
  Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
  const other = fresh();
  const { survey } = await other.client.describe("good");
  const theirs = await other.client.prepare(survey, 0);
  const client = new Client(url, { ledger: new Ledger() });
  setTimeout(() => storage.setItem(KEY, other.storage.getItem(KEY)), 20);
  const shown = await client.prepare(survey, 0);
  assert.deepEqual(sole(shown), sole(theirs));
  delete globalThis.localStorage;
});

await checks.check("a report is remembered before anybody sees it", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("shown");
  const first = await client.prepare(survey, 0);
  for (let k = 0; k < 40; k++) {
    const loaded = new Client(url, { ledger: new Ledger(storage), pause: 1 });
    const { frames, repeated } = await loaded.prepare(survey, k % 3);
    assert.deepEqual([frames, repeated], [first.frames, true]);
  }
  const other = new Client(url, { ledger: new Ledger(storage), pause: 1 });
  await other.answer(await named("seen"), 0); // what was only shown asks for no consent
  await refusal("overlap", () => client.prepare(survey, 0));
  const agreed = await client.prepare(survey, 0, { agree: true });
  assert.deepEqual((await client.send(agreed)).frames, first.frames);
  assert.equal((await posts("shown")).length, 1);
});

await checks.check("without a ledger every preparation is another draw", async () => {
  const { survey } = await fresh().client.describe("twin");
  const drawn = new Set();
  for (let k = 0; k < 40; k++) {
    drawn.add(hex(sole(await fresh().client.prepare(survey, 0)).report));
  }
  assert.ok(drawn.size > 1);
});

await checks.check("without a ledger nothing is sent", async () => {
  const full = { getItem: () => null, setItem: () => { throw new Error("quota"); } };
  const client = new Client(url, { ledger: new Ledger(full), pause: 1 });
  const { survey } = await client.describe("full");
  await refusal("ledger", () => client.answer(survey, 0));
  // Node has no localStorage
  await refusal("ledger", () => new Client(url).answer(survey, 0));
  assert.equal((await posts("full")).length, 0);
});

await checks.check("a bad answer is refused before anything is written or sent", async () => {
  const { client, storage } = fresh();
  const { survey } = await client.describe("bad");
  for (const answer of ["flu", 5, -1, 0.5, true, null, ["HIV"], NaN, { question: "flu" }]) {
    await refusal("answer", () => client.answer(survey, answer));
  }
  assert.deepEqual(entriesOf(storage), []);
  for (const none of [undefined, {}]) { // no answer at all: the question has been drawn
    await refusal("answer", () => client.answer(survey, none));
    assert.deepEqual(entriesOf(storage).map(({ id, report }) => [id, report]), [["", ""]]);
  }
  assert.equal((await posts("bad")).length, 0);
});

await checks.check("requests carry no cookie, no referrer and follow no redirect", async () => {
  const calls = [];
  const { client } = fresh({ fetch: (...call) => { calls.push(call); return fetch(...call); } });
  const { survey } = await client.describe("options");
  await client.answer(survey, 0);
  assert.equal(calls.length, 2);
  for (const [, { credentials, referrerPolicy, cache, redirect }] of calls) {
    const found = [credentials, referrerPolicy, cache, redirect];
    assert.deepEqual(found, ["omit", "no-referrer", "no-store", "manual"]);
  }
});

await checks.check(
  "pauses double, with jitter, and what the collector asks for is kept up to a cap",
  async () => {
    const ask = (times, header) => () => Promise.resolve(times-- > 0
      ? new Response("", { status: 503, headers: header === null ? {} : { "Retry-After": header } })
      : Response.json({ state: "open", survey: input.document }));
    const describe = (fetch, patience) => virtually(() => {
      const ledger = new Ledger(new Storage());
      return new Client(url, { ledger, fetch, patience }).describe("good");
    });
    const pauses = await describe(ask(9, null), 1e7);
    assert.equal(pauses.length, 9);
    const within = (pause, k) => {
      return pause >= Math.min(20_000, 250 * 2 ** k) && pause <= Math.min(20_000, 750 * 2 ** k);
    };
    pauses.forEach((pause, k) => assert.ok(within(pause, k), `${k}: ${pause}`));
    for (const [header, expected] of [
      ["7", 7000], ["3600", 20_000], ["Wed, 21 Oct 2065 07:28:00 GMT", null], ["-5", null],
    ]) {
      const [pause, ...others] = await describe(ask(1, header), 1e7);
      assert.equal(others.length, 0);
      const kept = expected === null ? pause >= 250 && pause <= 750 : pause === expected;
      assert.ok(kept, `${header}: ${pause}`);
    }
    await refusal("network", () => describe(ask(1, "7"), 5000));
  },
);

await checks.check(
  "change the answer, fix the randomness so that the report stays, and no byte changes",
  async () => {
    const real = globalThis.crypto;
    const fixed = { subtle: real.subtle, getRandomValues: (x) => x.fill(0) };
    Object.defineProperty(globalThis, "crypto", { value: fixed, configurable: true });
    try {
      for (const answer of [0, "toothache"]) {
        const { client } = fresh();
        const { survey } = await client.describe("traffic");
        await client.answer(survey, answer);
      }
    } finally {
      Object.defineProperty(globalThis, "crypto", { value: real, configurable: true });
    }
    const { client } = fresh(); // the twin: another report is another request
    await client.answer((await client.describe("traffic")).survey, 0);
    const raw = (await seen("traffic")).map((request) => request.raw);
    assert.equal(raw.length, 6);
    assert.deepEqual(raw.slice(0, 2), raw.slice(2, 4));
    assert.notDeepEqual(raw.slice(0, 2), raw.slice(4, 6));
  },
);

// ---- several questions

/** A client, and a survey of two questions, their cross and a public one. */
async function three(name, answers = 2) {
  return { ...fresh(), survey: await surveyOfThree(name, answers) };
}

async function surveyOfThree(name, answers) {
  const { ill, age, both } = input.several;
  return Survey.from(await sealed({
    name, answers, public: [{ name: "region", text: "Where?", items: ["north", "south"] }],
    questions: [
      { name: "ill", mechanism: ill }, { name: "age", mechanism: age },
      { name: "both", mechanism: both, of: ["ill", "age"] },
    ],
  }));
}

const EVERYTHING = { region: "south", ill: "HIV", age: "old" };

await checks.check("the drawn questions are answered, each in a frame of its own", async () => {
  const places = new Set();
  const orders = new Set();
  for (let k = 0; k < 40; k++) {
    const name = `three-${k}`;
    const { client, survey, storage } = await three(name);
    const drawn = (await client.draw(survey)).map((question) => question.name);
    assert.deepEqual((await client.draw(survey)).map((question) => question.name), drawn);
    const receipt = await client.answer(survey, EVERYTHING);
    assert.deepEqual([receipt.accepted, receipt.duplicates], [2, 0]);
    assert.deepEqual(receipt.frames.map(({ question }) => question), drawn);
    const sent = (await posts(name)).map(body);
    assert.equal(sent.length, 2);
    for (const { question, id, content, report } of receipt.frames) {
      const place = survey.questions.findIndex((one) => one.name === question);
      places.add(place);
      assert.deepEqual([...content.slice(0, 2)], [place, 1]); // the question, and "south"
      assert.deepEqual(content.slice(2), report);
      assert.equal(survey.questions[place].mechanism.refusal(report), null);
      assert.ok(sent.includes(hex(id) + hex(content)));
    }
    assert.equal(new Set(receipt.frames.map(({ id }) => hex(id))).size, 2);
    orders.add(sent[0].slice(0, 32) === hex(receipt.frames[0].id));
    assert.deepEqual(entriesOf(storage).map(({ state }) => state), ["counted", "counted"]);
  }
  assert.deepEqual([...places].sort(), [0, 1, 2]);
  assert.equal(orders.size, 2); // they leave in random order: one alone with a chance of 2^-39
});

await checks.check("an answer to a question that was not drawn changes nothing", async () => {
  const { client, survey } = await three("undrawn", 1);
  const [question] = await client.draw(survey);
  const needed = question.of ?? [question.name];
  const least = Object.fromEntries([...needed, "region"].map((name) => [name, EVERYTHING[name]]));
  const { frames, missing } = await client.prepare(survey, least);
  assert.deepEqual([frames.length, missing], [1, []]);
  const again = await client.prepare(survey, EVERYTHING);
  assert.deepEqual([again.frames, again.repeated], [frames, true]);
});

await checks.check("answers may come one by one, and are resumed", async () => {
  const { client, survey, storage } = await three("resumed", 3);
  const partial = true;
  const first = await client.prepare(survey, { region: 0, ill: "HIV" }, { partial });
  assert.deepEqual(first.frames.map(({ question }) => question), ["ill"]);
  assert.deepEqual(first.missing, ["age", "both"]);
  const later = new Client(url, { ledger: new Ledger(storage), pause: 1 });
  await refusal("answer", () => later.prepare(survey, { region: 0, age: "old" })); // no "ill"
  const rest = await later.prepare(survey, { region: 0, age: "old", ill: 1 }, { partial });
  assert.deepEqual(rest.missing, []);
  assert.deepEqual(rest.frames[0], first.frames[0]); // whatever is answered the second time
  assert.deepEqual(await later.send(rest).then(({ accepted }) => accepted), 3);
});

await checks.check("answers to several questions go by name", async () => {
  const { client, survey, storage } = await three("by-name", 3);
  for (const wrong of [
    "HIV", 0, undefined, {}, { ...EVERYTHING, zzz: 1 }, { ...EVERYTHING, both: 0 },
    { ...EVERYTHING, region: "east" }, { ...EVERYTHING, region: 2 }, { ...EVERYTHING, ill: "flu" },
    { ill: "HIV", age: "old" },
  ]) {
    const before = entriesOf(storage).filter(({ state }) => state !== "drawn");
    await refusal("answer", () => client.answer(survey, wrong));
    assert.deepEqual(before, []);
  }
  assert.equal((await posts("by-name")).length, 0);
});

await checks.check("consent is asked for once, for everything that is sent", async () => {
  const { client, survey } = await three("consented", 3);
  await client.answer(survey, EVERYTHING);
  const other = await surveyOfThree("consented again", 3);
  const error = await refusal("overlap", () => client.prepare(other, EVERYTHING));
  assert.equal(error.overlaps.length, 3);
  const partial = true;
  const one = await client.prepare(other, { region: 0, ill: 0 }, { agree: true, partial });
  await refusal("overlap", () => client.prepare(other, EVERYTHING)); // nothing has left yet
  const all = await client.prepare(other, EVERYTHING, { agree: 3 });
  assert.deepEqual(all.frames[0], one.frames[0]);
  assert.equal((await client.send(all)).accepted, 3);
});

await checks.check("what is left of a survey needs consent to what was told meanwhile", async () => {
  const { client, survey, storage } = await three("begun", 3);
  const partial = true;
  const one = await client.prepare(survey, { region: 0, ill: 0 }, { partial });
  assert.equal((await client.send(one)).accepted, 1);
  const other = await surveyOfThree("meanwhile", 3);
  await client.answer(other, EVERYTHING, { agree: true });
  const before = entriesOf(storage);
  const error = await refusal("overlap", () => client.prepare(survey, EVERYTHING));
  assert.equal(error.overlaps.length, 3);
  const limits = { agree: true, maxTotal: client.ledger.total(client.origin, survey).epsilon };
  await refusal("total", () => client.prepare(survey, EVERYTHING, limits));
  assert.deepEqual(entriesOf(storage), before);
  const rest = await client.prepare(survey, EVERYTHING, { agree: true });
  assert.equal((await client.send(rest)).accepted, 2);
  await client.prepare(survey, EVERYTHING); // all of it is counted: nothing new is told
});

await checks.check("two records with the same reports are the same bytes", async () => {
  const real = globalThis.crypto;
  const fixed = { subtle: real.subtle, getRandomValues: (x) => x.fill(0) };
  const record = async (name, answers) => {
    const { client, survey } = await three(name, 3);
    await client.answer(survey, answers);
    return (await posts(name)).map(({ raw }) => raw.map((line) => line.replace(name, "")));
  };
  Object.defineProperty(globalThis, "crypto", { value: fixed, configurable: true });
  try {
    const one = await record("same", EVERYTHING);
    assert.equal(one.length, 3);
    const two = await record("sane", { region: 1, ill: "anemia", age: "young" });
    const sizes = (requests) => requests.map((raw) => raw.at(-1).length);
    assert.deepEqual(sizes(one), sizes(two));
    const but = (requests) => requests.map((raw) => raw.filter((line) => !/survey:/i.test(line)));
    assert.deepEqual(but(one), but(two));
  } finally {
    Object.defineProperty(globalThis, "crypto", { value: real, configurable: true });
  }
});

checks.done();
