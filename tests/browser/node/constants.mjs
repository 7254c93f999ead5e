// The module spells what vectors/v2/constants.json does: seen in what it accepts, says and sends.
import assert from "node:assert/strict";
import { Checks, Storage, discreet, input, refusal, sealed, unhex } from "./io.mjs";

const { Client, Ledger, Mechanism, Survey, canonicalJson, cleaned, fingerprint } = discreet;

const {
  asking, cautions, constants, everything, limits, promised, refusals, surveyLimits, surveyWords,
  ticket, whole,
} = input;
const { names, keys, upload } = constants;
const checks = new Checks();

/** What is said about a changed and signed document, which must be refused. */
async function said(change) {
  const { fingerprint: _, ...body } = structuredClone(everything);
  change(body);
  const document = { ...body, fingerprint: await fingerprint(body) };
  return (await refusal("mechanism", () => Mechanism.from(document))).message;
}

const places = { // where a word or a table stands in a document
  format: (body) => [body, "format"],
  prior: (body) => [body, "prior"],
  kind: (body) => [body.policy, "kind"],
  notion: (body) => [body.policy, "notion"],
  encoding: (body) => [body.encoding, "kind"],
};
const tables = {
  "the mechanism": (body) => body,
  "the policy": (body) => body.policy,
  "a level": (body) => body.policy.levels[0],
  "a pair": (body) => body.policy.pairs[0],
  "a part": (body) => body.parts[0],
  "the certificate": (body) => body.certificate,
};

await checks.check("names", async () => {
  const all = { format: [constants.format], ...names };
  assert.deepEqual(Object.keys(all), Object.keys(places));
  for (const [key, allowed] of Object.entries(all)) {
    const message = await said((body) => {
      const [table, word] = places[key](body);
      table[word] = "zzz";
    });
    const expected = `${key} is "zzz", but must be one of ${allowed.join(", ")};`;
    assert.ok(message.startsWith(expected), message);
  }
});

await checks.check("models", async () => {
  const pattern = new RegExp(`^(${constants.model_pattern})$`);
  const most = constants.limits.model_characters;
  const texts = [
    "", "a", "A", "a1", "1a", "a-b", "a b", "ä", "a\n", "\na", "z9".repeat(most / 2),
    "a".repeat(most + 1),
  ];
  const { fingerprint: _, ...body } = everything;
  for (const model of texts) {
    const changed = { ...body, model };
    const read = async () => {
      return Mechanism.from({ ...changed, fingerprint: await fingerprint(changed) });
    };
    if (pattern.test(model)) assert.equal((await read()).model, model);
    else await refusal("mechanism", read);
  }
});

await checks.check("keys", async () => {
  assert.deepEqual(Object.keys(keys), Object.keys(tables));
  for (const [where, known] of Object.entries(keys)) {
    const message = await said((body) => { tables[where](body).zzz = 1; });
    const expected = `${where} has the unknown key "zzz", but may have ${known.join(", ")};`;
    assert.ok(message.startsWith(expected), message);
  }
  assert.deepEqual(Object.keys(constants.encoding_keys), names.encoding);
  for (const [kind, known] of Object.entries(constants.encoding_keys)) {
    const numbers = Object.fromEntries(known.map((key) => [key, 2]));
    const message = await said((body) => { body.encoding = { ...numbers, kind, zzz: 1 }; });
    const expected = `the encoding has the unknown key "zzz", but may have ${known.join(", ")};`;
    assert.ok(message.startsWith(expected), message);
  }
});

await checks.check("limits", async () => {
  for (const [name, [inside, beyond]] of Object.entries(limits)) {
    const fail = (error) => assert.fail(`${name}: ${error.message}`);
    await Mechanism.from(inside).catch(fail);
    await refusal("mechanism", () => Mechanism.from(beyond)).catch(fail);
  }
  const largest = constants.largest_integer;
  assert.equal(canonicalJson([largest, -largest]), `[${largest},-${largest}]`);
  for (const beyond of [largest + 1, -largest - 1]) {
    await refusal("mechanism", () => canonicalJson(beyond));
  }
  assert.equal((await Mechanism.from(ticket)).reportSize, constants.ticket_bytes);
});

/** What is said about a changed and sealed survey, which must be refused. */
async function saidOfSurvey(change) {
  const { fingerprint: _, ...body } = structuredClone(whole);
  change(body);
  return (await refusal("mechanism", async () => Survey.from(await sealed(body)))).message;
}

await checks.check("surveys", async () => {
  const { format, keys: known } = constants.survey;
  const message = await saidOfSurvey((body) => { body.format = "zzz"; });
  assert.ok(message.startsWith(`format is "zzz", but must be one of ${format};`), message);
  const places_ = {
    "the survey": (body) => body, "a question": (body) => body.questions[0],
    "a public question": (body) => body.public[0], "about": (body) => body.about,
  };
  const all = { ...known, about: constants.about.keys };
  assert.deepEqual(Object.keys(all), Object.keys(places_));
  for (const [where, names_] of Object.entries(all)) {
    const found = await saidOfSurvey((body) => { places_[where](body).zzz = 1; });
    const expected = `${where} has the unknown key "zzz", but may have ${names_.join(", ")};`;
    assert.ok(found.startsWith(expected), found);
  }
  for (const [name, [inside, beyond]] of Object.entries(surveyLimits)) {
    const fail = (error) => assert.fail(`${name}: ${error.message}`);
    await Survey.from(inside).catch(fail);
    await refusal("mechanism", () => Survey.from(beyond)).catch(fail);
  }
});

await checks.check("reasons", async () => {
  const reasons = [];
  for (const { document, report, why } of refusals) {
    const mechanism = await Mechanism.from(document);
    const reason = mechanism.refusal(unhex(report));
    reasons.push(reason);
    const { message } = await refusal("report", () => mechanism.bits(unhex(report)));
    assert.ok(message.includes(`(${reason}): ${why};`), message);
  }
  assert.deepEqual(reasons, constants.reasons);
});

await checks.check("promises", async () => {
  for (const [document, sentences] of promised) {
    const mechanism = await Mechanism.from(document);
    assert.deepEqual(mechanism.promises().map(({ sentence }) => sentence), sentences);
  }
});

await checks.check("cautions", async () => {
  for (const [document, caution] of cautions) {
    assert.equal((await Mechanism.from(document)).caution(), caution);
  }
});

await checks.check("surveys in words", async () => {
  for (const [document, ...words] of surveyWords) {
    const survey = await Survey.from(document);
    const each = survey.questions.map(({ name }) => survey.answerPromise(name));
    assert.deepEqual([survey.promise().sentence, survey.drawn(), survey.caution(), ...each], words);
  }
});

await checks.check("twins", async () => {
  for (const [letter, twins] of Object.entries(constants.twins)) {
    for (const twin of twins) {
      const message = await said((body) => { body.policy.items = [letter, twin]; });
      assert.match(message, /^the items .* look the same/, `${letter} ${twin}`);
    }
  }
  assert.equal(Array.from(cleaned("a".repeat(999))).length, constants.said_characters);
});

/**
 * What a client sends to a collector that answers with these statuses, one after another, and how
 * that ends.
 */
async function sent(statuses) {
  const [requests, storage] = [[], new Storage()];
  const fetch = async (url, { method, headers, body }) => {
    requests.push({ path: new URL(url).pathname, method, headers, body });
    const status = statuses[requests.length - 1];
    return new Response(JSON.stringify({ accepted: 1, duplicates: 0 }), { status });
  };
  const ledger = new Ledger(storage);
  const client = new Client("http://collector.example", { fetch, ledger, pause: 1 });
  const survey = await Survey.from(asking);
  let code = "";
  await client.answer(survey, 0).catch((error) => { code = error.code; });
  return { requests, storage, survey, code, client };
}

await checks.check("uploads", async () => {
  const { requests: [request], survey, client } = await sent([200]);
  assert.equal(request.path, upload.path.replace("{name}", "survey"));
  const written = JSON.stringify(upload.headers);
  const headers = JSON.parse(written.replace("{fingerprint}", survey.fingerprint));
  assert.deepEqual(request.headers, headers);
  assert.equal(request.body.length, upload.id_bytes + survey.mechanism.reportSize);
  assert.equal(client.patience, 1000 * upload.patience_seconds);
  for (const status of upload.retried) {
    const { requests, code } = await sent([status, 200]);
    assert.deepEqual([requests.length, code], [2, ""], `${status}`);
    assert.deepEqual(requests[0], requests[1]);
  }
  for (const status of upload.final) {
    const { requests, code } = await sent([status, 200]);
    assert.deepEqual([requests.length, code], [1, "refused"], `${status}`);
  }
});

await checks.check("ledger", async () => {
  const { storage } = await sent([200]);
  const { entries: [entry] } = JSON.parse(storage.getItem(constants.ledger));
  assert.deepEqual(Object.keys(entry), constants.ledger_keys);
  assert.deepEqual(Object.keys(entry.budgets), constants.ledger_budget_keys);
  assert.equal(entry.id.length, 2 * upload.id_bytes);
});

checks.done();
