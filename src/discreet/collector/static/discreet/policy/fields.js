// Strict reading of a document: each function returns the value itself, or refuses it.
import { refused } from "../errors.js";
import { quoted } from "./labels.js";

export function object(raw, where) {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    throw refused(`${where} is ${quoted(raw)}, but must be an object`);
  }
  return raw;
}

/** Whether this is a plain table of keys and values. */
export function isTable(raw) {
  if (typeof raw !== "object" || raw === null) return false;
  return [Object.prototype, null].includes(Object.getPrototypeOf(raw));
}

/** An object with exactly these keys, and perhaps some of the optional ones. */
export function table(raw, keys, where, optional = []) {
  object(raw, where);
  const missing = keys.find((key) => !Object.hasOwn(raw, key));
  if (missing) throw refused(`${missing} is missing in ${where}`);
  const allowed = [...keys, ...optional];
  const unknown = Object.keys(raw).find((key) => !allowed.includes(key));
  if (unknown !== undefined) {
    const names = allowed.join(", ");
    throw refused(`${where} has the unknown key ${quoted(unknown)}, but may have ${names}`);
  }
  return raw;
}

export function list(raw, where) {
  if (!Array.isArray(raw)) throw refused(`${where} is ${quoted(raw)}, but must be a list`);
  return raw;
}

export function integers(raw, count, where) {
  if (list(raw, where).length !== count || !raw.every(Number.isInteger)) {
    throw refused(`${where} must be ${count} whole numbers, but is not`);
  }
  return raw;
}

export function choice(key, value, allowed) {
  if (!allowed.includes(value)) {
    throw refused(`${key} is ${quoted(value)}, but must be one of ${allowed.join(", ")}`);
  }
  return value;
}
