/**
 * discreet on the participant's device: verify a survey, perturb the answers, remember it, send the
 * reports.
 *
 * One ES module for browsers and Node 20, without dependencies. It trusts nothing that a server
 * says: a Mechanism cannot exist unless its guarantee holds, checked here in integers. Only
 * `Client` uses the network.
 *
 *     const client = new Client("https://survey.example.org");
 *     const { survey } = await client.describe("health-survey", { fingerprint });
 *     const prepared = await client.prepare(survey, "anemia"); // or { age: …, strain: … }
 *     // show prepared.frames
 *     await client.send(prepared);
 */
import { canonicalJson, computeFingerprint, shortFingerprint } from "./check/document.js";
import { Client } from "./device/client.js";
import { Ledger } from "./device/ledger.js";
import { DiscreetError } from "./errors.js";
import { Mechanism } from "./mechanism.js";
import { cleaned } from "./policy/labels.js";
import { askedNames } from "./device/answers.js";
import { Survey } from "./survey/survey.js";
import { ENGLISH, speak } from "./words.js";

export {
  Client, DiscreetError, ENGLISH, Ledger, Mechanism, Survey, askedNames, canonicalJson, cleaned,
  computeFingerprint as fingerprint, shortFingerprint, speak,
};
