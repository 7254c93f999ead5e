import { Client, Ledger } from "../discreet.js";

/**
 * Send again what was on its way for others who answered on this device, without a word: they are
 * not here. @param {string} url @param {Survey} survey
 */
export async function resumeOthers(url, survey) {
  for (let person = 2; Ledger.isKept(person); person++) {
    const client = new Client(url, { ledger: new Ledger(undefined, person) });
    try {
      const unsent = client.unsent(survey);
      if (unsent) await client.send(unsent);
    } catch (error) {
      console.warn(`person ${person}: ${error.message}`); // the next visit tries again
    }
  }
}
