/**
 * discreet on the participant's device: verify a mechanism, perturb an answer, remember it, send
 * the report.
 *
 * One ES module for browsers and Node 20, without dependencies. It trusts nothing that a server
 * says: a Mechanism cannot exist unless its guarantee holds, checked here in integers. Only
 * `Client` uses the network.
 *
 *     const client = new Client("https://survey.example.org");
 *     const { mechanism } = await client.describe("health-survey", { fingerprint });
 *     const prepared = await client.prepare("health-survey", mechanism, "anemia");
 *     // show prepared.report
 *     await client.send(prepared);
 */
import { canonicalJson, computeFingerprint, shortFingerprint } from "./check/document.js";
import { Client } from "./device/client.js";
import { Ledger, locked } from "./device/ledger.js";
import { DiscreetError } from "./errors.js";
import { Mechanism } from "./mechanism.js";
import { cleaned } from "./policy/labels.js";
import { ENGLISH, speak } from "./words.js";

export {
  Client, DiscreetError, ENGLISH, Ledger, Mechanism, canonicalJson, cleaned,
  computeFingerprint as fingerprint, locked, shortFingerprint, speak,
};
