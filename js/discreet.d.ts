// The types of discreet.js. A test compares the names with the module's own.

/** What a `DiscreetError` is about. */
export type Code =
  | "answer" | "crypto" | "fingerprint" | "guarantee" | "ledger" | "mechanism" | "network"
  | "overlap" | "pinned" | "refused" | "report" | "server" | "total";

/** Everything this module refuses; `code` is for programs, the message is one sentence for people. */
export class DiscreetError extends Error {
  constructor(code: Code, sentence: string, details?: object);
  readonly name: "DiscreetError";
  readonly code: Code;
  /** Of `refused`: the HTTP status. */
  readonly status?: number;
  /** Of `overlap`: what would be told in all, and by which answers. */
  readonly summed?: Summed;
  readonly overlaps?: Overlap[];
  /** Of `total`: the sum of the budgets, and the most that is allowed. */
  readonly epsilon?: number;
  readonly limit?: number;
}

/** A sentence with names in braces, or a form of it per plural category. */
export type Text = string | Readonly<Partial<Record<Intl.LDMLPluralRule, string>>>;

/** Every sentence about promises and reports, by its key; `language` is a tag such as "en". */
export type Sentences = Readonly<Record<string, Text>> & { readonly language: string };

/** The sentences that are said unless `speak` was called. */
export const ENGLISH: Sentences;

/** Say all sentences in another language from now on: the same keys, the same names in braces. */
export function speak(sentences?: Sentences): void;

/** JSON with sorted keys and no blanks: texts, integers, true, false, null, lists and objects. */
export function canonicalJson(document: unknown): string;

/** The fingerprint of a mechanism's document, in hexadecimal. */
export function fingerprint(document: unknown): Promise<string>;

/** The digits of a fingerprint that people compare, in groups of four. */
export function shortFingerprint(fingerprint: string): string;

/** What a stranger says, fit to be shown: one line of at most 300 characters. */
export function cleaned(text: string): string;

/** Run work while no other tab of this browser does. */
export function locked<T>(work: () => T | Promise<T>): Promise<T>;

/** A group of items with one budget: as it was written, and as a number. */
export interface Level {
  readonly name: string;
  readonly budget: string;
  readonly epsilon: number;
  readonly count: number;
}

/** The budget of two levels; where they are not protected from each other, "" and Infinity. */
export interface Pair {
  readonly levels: readonly [string, string];
  readonly budget: string;
  readonly epsilon: number;
}

/** Who asks, what for, from when to when (in UTC): what is said of it. */
export interface About {
  readonly organiser?: string;
  readonly contact?: string;
  readonly purpose?: string;
  readonly consent?: string;
  readonly language?: string;
  readonly opens?: string;
  readonly closes?: string;
  /** Reports before results are shown to anyone. */
  readonly minimum?: number;
  /** Simulated people answer; nothing in it is real. */
  readonly rehearsal?: true;
}

/** Items, levels and budgets. */
export interface Policy {
  readonly name: string;
  readonly question: string;
  /** One item, a list that is protected as a whole, or item by item. */
  readonly kind: "single" | "set" | "each";
  readonly notion: "min" | "avg";
  /** Whether all pairs have the smallest budget. */
  readonly strict: boolean;
  readonly items: readonly string[];
  readonly levelOf: readonly number[];
  readonly levels: readonly Level[];
  readonly pairs: readonly Pair[];
  readonly about: About;
  /** Sums of items that have a name. */
  readonly totals: readonly Total[];
}

/** A sum of items. */
export interface Total {
  readonly name: string;
  readonly items: readonly string[];
}

/** What a person gives, and what of it is protected. */
export interface Kind {
  /** A person answers with a list of items. */
  readonly lists: boolean;
  /** The list is cut to a padding and protected as a whole. */
  readonly pads: boolean;
  /** Every item is protected on its own. */
  readonly alone: boolean;
}

/** How a report names items. */
export interface Encoding {
  readonly kind: "fixed" | "bits" | "ticket" | "hits" | "each";
  /** Bytes of a report. */
  readonly size: number;
}

/** An item (label or index), or several for lists. */
export type Answer = string | number | Iterable<string | number>;

/** The only fingerprint to accept, from an invitation. */
export interface Pinned {
  fingerprint?: string | null;
}

/** What a collection must be: its fingerprint, and the largest budget, of all items or of each. */
export interface Pins extends Pinned {
  maxEpsilon?: number | Record<string, number>;
}

/** What a participant is told; `factor` and the number in the sentence are rounded up. */
export interface Promised {
  /** Null where it is not about one level. */
  level: string | null;
  items: number;
  examples: string[];
  factor: number;
  sentence: string;
  /** The promise for whole lists. */
  whole?: true;
}

/** Why bytes are not a report. */
export type Reason = "length" | "part" | "tail" | "size" | "silent" | "ticket" | "residue";

/** The public parameters that both sides share; an object of this class is a checked promise. */
export class Mechanism {
  /** Verify the content of a mechanism file. */
  static read(bytes: Uint8Array, pinned?: Pinned): Promise<Mechanism>;
  /** Verify a mechanism document and the fingerprint that it carries. */
  static from(document: object, pinned?: Pinned): Promise<Mechanism>;
  private constructor();

  readonly policy: Policy;
  readonly kind: Kind;
  readonly model: string;
  readonly encoding: Encoding;
  readonly padding: number;
  /** The group of every level. */
  readonly groups: readonly number[];
  /** The checked integers; their shape is the encoding's. */
  readonly parts: readonly object[];
  /** The number of items. */
  readonly m: number;
  /** Bytes of a report. */
  readonly reportSize: number;
  readonly fingerprint: string;

  /** One person's report, with secure randomness. */
  perturb(answer: Answer): Uint8Array;
  /** Why this is not a report of the mechanism, or null. */
  check(report: Uint8Array): Reason | null;
  /** A bit per item: 1 where the report names it. */
  bits(report: Uint8Array): Uint8Array;
  /**
   * What a report means: its part, the places of the items that it names, a sentence, and the
   * chances of an item to be named where it is one's own and where it is not.
   */
  meaning(report: Uint8Array): {
    part: number; named: number[]; mine: number[]; others: number[]; sentence: string;
  };
  /** Per level, the largest log-ratio of any report. */
  levelEpsilons(): number[];
  /** The largest log-ratio of any report between any two answers. */
  wholeEpsilon(): number;
  /** The promise for an answer of a level, as a sentence that calls the answer `what`. */
  promise(level: number, what: string): string;
  /** The factor of a level's promise, rounded up. */
  factor(level: number): number;
  /** What a participant is told: per level, of whole lists, of pairs that are not protected. */
  promises(): Promised[];
  /** A warning in place of any sentence that reassures; "" where none is needed. */
  caution(): string;
  /** Per level what counts against a limit such as `maxEpsilon`. */
  levelBudgets(): number[];
  /** The places of an answer's items, each once; refuses an answer that is none. */
  places(answer: Answer): number[];
  /** The promise for one person's whole list; for lists only. */
  promiseOf(answer: Iterable<string | number>): { factor: number; sentence: string };
}

/** What the ledger remembers of a collection, in hexadecimal; never the answer, never a time. */
export interface Entry {
  readonly origin: string;
  readonly name: string;
  readonly fingerprint: string;
  readonly id: string;
  readonly report: string;
  readonly items: readonly string[];
  readonly budgets: {
    readonly levels: readonly number[];
    readonly levelOf: readonly number[];
    readonly whole: number;
  };
  /** Shown to its sender alone, then it may have left, then the collector has it for certain. */
  readonly state: State;
}

export type State = "shown" | "leaving" | "counted";

/** An earlier answer that shares items; the labels are the new question's. */
export interface Overlap {
  readonly entry: Entry;
  readonly shared: string[];
}

/** The shared item about which most would be told in all. */
export interface Summed {
  readonly item: string;
  readonly epsilon: number;
  readonly factor: number;
  readonly sentence: string;
}

/** Where a ledger is kept: localStorage, or anything like it. */
export interface Storing {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** What this device has already told, and to whom. */
export class Ledger {
  /** Several people may share a device: each has a ledger of their own. */
  constructor(storage?: Storing, person?: number);
  /** Whether a ledger of this person, from 2 on, is in the browser's storage. */
  static isKept(person: number): boolean;
  /** After a write, inside the lock: until every other tab sees it. */
  settled(): Promise<void>;
  /** The entry of exactly this collection, or null. */
  find(origin: string, name: string, fingerprint: string): Entry | null;
  /** Earlier answers to other collections that share an item, however its label is spelled. */
  overlaps(origin: string, name: string, mechanism: Mechanism): Overlap[];
  /** What would be told in all about the shared items; null without overlaps. */
  summed(mechanism: Mechanism, overlaps: readonly Overlap[]): Summed | null;
  /** The sum of the budgets over all collections but this one, and their number. */
  total(origin: string, name: string, fingerprint: string): { epsilon: number; earlier: number };
  /** Write a report down before anybody sees it; an earlier entry of the collection counts. */
  reserve(
    origin: string, name: string, mechanism: Mechanism, report: Uint8Array, id: Uint8Array,
  ): Entry;
  /** The report is about to leave, or the collector has acknowledged it. */
  mark(origin: string, name: string, fingerprint: string, state: State): void;
}

export interface ClientOptions {
  fetch?: typeof fetch;
  ledger?: Ledger;
  /** What the ledger calls the collector; the origin of its address unless given. */
  origin?: string;
  /** Milliseconds after which retries end. */
  patience?: number;
  /** Milliseconds before the first retry. */
  pause?: number;
  /** Caps the sum of the budgets over all collections in the ledger. */
  maxTotal?: number;
  /** Is told when an attempt has failed, and how long it is until the next. */
  waiting?: (milliseconds: number) => void;
}

export interface AnswerOptions {
  /** To the summed budget of overlapping questions. */
  agree?: boolean | number;
  maxTotal?: number;
}

/** What will be sent, if `send` is called. */
export interface Prepared {
  readonly name: string;
  readonly mechanism: Mechanism;
  readonly id: Uint8Array;
  readonly report: Uint8Array;
  readonly repeated: boolean;
  readonly overlaps: readonly Overlap[];
  readonly summed: Summed | null;
  readonly maxTotal: number;
}

export interface Receipt {
  readonly accepted: number;
  readonly duplicates: number;
  readonly id: Uint8Array;
  readonly report: Uint8Array;
  readonly repeated: boolean;
}

/** Fetches a mechanism, verifies it, and uploads one perturbed report, once. */
export class Client {
  constructor(url: string, options?: ClientOptions);

  url: string;
  ledger: Ledger;
  origin: string;
  patience: number;
  pause: number;
  maxTotal: number;
  waiting: (milliseconds: number) => void;

  /** The collection's mechanism, verified. */
  describe(
    name: string, pins?: Pins,
  ): Promise<{
    mechanism: Mechanism; state: "upcoming" | "open" | "closed"; keeps: "counts" | "reports";
  }>;
  /**
   * Perturb an answer and write the report down; nothing is sent yet. Where a report was drawn
   * before, the answer may be left out.
   */
  prepare(
    name: string, mechanism: Mechanism, answer?: Answer, options?: AnswerOptions,
  ): Promise<Prepared>;
  /** The report that was on its way when something went wrong, to be sent again; or null. */
  unsent(name: string, mechanism: Mechanism): Prepared | null;
  /** Upload the report, again and again while the collector is away: it is counted once. */
  send(prepared: Prepared): Promise<Receipt>;
  /** Prepare and send. */
  answer(
    name: string, mechanism: Mechanism, answer: Answer, options?: AnswerOptions,
  ): Promise<Receipt>;
}
