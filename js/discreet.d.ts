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
  /** Of `ledger`: true where storage works, but what is stored cannot be read. */
  readonly isDamaged?: boolean;
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
  /** Of the first level over the second alone. */
  readonly oneWay: boolean;
}

/** Who asks, what for, from when to when (in UTC). */
export interface About {
  readonly organiser?: string;
  readonly contact?: string;
  /** The address of a privacy notice. */
  readonly notice?: string;
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
  readonly question: string;
  /** One item, a list that is protected as a whole, or item by item. */
  readonly kind: "single" | "set" | "each";
  readonly notion: "min" | "avg" | "one-way" | "blocks" | "scale";
  /** Whether all pairs have the smallest budget. */
  readonly strict: boolean;
  /** Of a scale, in steps, or 0. */
  readonly cap: number;
  /** Whether every pair is protected in both directions alike. */
  readonly isMutual: boolean;
  readonly items: readonly string[];
  readonly levelOf: readonly number[];
  readonly levels: readonly Level[];
  readonly pairs: readonly Pair[];
  /** Sums of items that have a name. */
  readonly totals: readonly Total[];
  /** Items that are shown after the others. */
  readonly last: readonly string[];
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
  readonly kind: "fixed" | "bits" | "ticket" | "hits" | "picks" | "each";
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
  /** With it: whether one-way protection is accepted. Say so to `prepare`, too. */
  oneWay?: boolean;
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
export type Reason = "length" | "part" | "tail" | "size" | "silent" | "ticket" | "residue"
  | "order";

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
  refusal(report: Uint8Array): Reason | null;
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
  /** The factor between any two answers, exactly: numerator and denominator; 0 below: no limit. */
  wholeRatio(): readonly [bigint, bigint];
  /** By how much odds of protected answers can rise, exactly, where only that has a limit. */
  raisedRatio(): readonly [bigint, bigint];
  /** By how much in all a report can raise the odds of a protected answer. */
  raiseEpsilon(): number;
  /** The promise for an answer of a level, as a sentence that calls the answer `what`. */
  promise(level: number, what: string): string;
  /** The factor of a level's promise, rounded up. */
  factor(level: number): number;
  /** The factor between an answer of a level and any answers of these others, rounded up. */
  factorAgainst(level: number, others: readonly number[]): number;
  /** The same for how far the odds of its answers can fall. */
  fall(level: number): number;
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

/** A question of a survey. */
export interface Question {
  readonly name: string;
  readonly mechanism: Mechanism;
  /** The two questions that it crosses, or null. */
  readonly of: readonly [string, string] | null;
}

/** A question that is asked and sent openly; results are counted by it. */
export interface PublicQuestion {
  readonly name: string;
  readonly text: string;
  readonly items: readonly string[];
}

/** A question in another language: its text, and labels by item. */
export interface Wording {
  readonly text?: string;
  readonly items?: Readonly<Record<string, string>>;
}

/** What people read in another language; the items stay the same. */
export interface Translation {
  readonly about?: Readonly<Record<string, string>>;
  readonly questions?: Readonly<Record<string, Wording>>;
  readonly public?: Readonly<Record<string, Wording>>;
}

/**
 * What people are invited to: questions, how many of them each device answers, and what is asked
 * openly. An object of this class is a checked promise about everything that one person sends.
 */
export class Survey {
  /** Verify the content of a survey file. */
  static read(bytes: Uint8Array, pinned?: Pinned): Promise<Survey>;
  /** Verify a survey document and the fingerprint that it carries. */
  static from(document: object, pinned?: Pinned): Promise<Survey>;
  private constructor();

  readonly name: string;
  readonly about: About;
  /** How many questions one device answers. */
  readonly answers: number;
  readonly questions: readonly Question[];
  /** The public questions. */
  readonly openly: readonly PublicQuestion[];
  /** By language tag. */
  readonly translations: Readonly<Record<string, Translation>>;
  readonly fingerprint: string;
  /** The question of a survey that has one; its mechanism. */
  readonly only: Question;
  readonly mechanism: Mechanism;
  /** Bytes between the id and the report in a frame. */
  readonly frontSize: number;

  question(name: string): Question;
  /** The questions that one device answers: a uniform subset, whatever the answers. */
  draw(): Question[];
  /** The bytes before a report: the question, and the places of the public answers. */
  front(question: Question, group: readonly number[]): Uint8Array;
  /** The largest log-ratio of everything that one person sends. */
  epsilon(): number;
  /** What is promised about everything that one person sends; the factor is rounded up. */
  promise(names?: readonly string[]): { factor: number; sentence: string };
  /** What is sent as it is: the public questions, under these names or their own. */
  openPromise(names?: readonly string[]): string;
  /** What holds for the answer to one question, if all answers are seen. */
  answerPromise(name: string): string;
  /** What the device draws; "" where everyone answers everything. */
  drawn(): string;
  /** A warning in place of any sentence that reassures; "" where none is needed. */
  caution(): string;
}

/** The names of what a person is asked: public questions, then the others. */
export function askedNames(survey: Survey): string[];

/** Answers by the names of the questions, public ones too. */
export type Answers = Readonly<Record<string, Answer>>;

/**
 * What the ledger remembers of a question that was drawn, in hexadecimal; never the answer, never a
 * time.
 */
export interface Entry {
  readonly origin: string;
  /** Of the survey. */
  readonly name: string;
  readonly fingerprint: string;
  readonly question: string;
  /** "" while the question is only drawn. */
  readonly id: string;
  /** The report with what stands before it in a frame; "" while the question is only drawn. */
  readonly report: string;
  readonly items: readonly string[];
  /** Items that were told openly. */
  readonly told: readonly string[];
  /** A budget of null has no limit. */
  readonly budgets: {
    readonly levels: readonly (number | null)[];
    readonly levelOf: readonly number[];
    readonly whole: number | null;
    /** The same, of raised odds alone. */
    readonly raised: number | null;
    /** The levels' budgets are of raised odds too. */
    readonly oneWay: boolean;
  };
  readonly state: State;
}

/**
 * A question is drawn; its report is first shown to its sender alone, then it may have left, then
 * the collector has acknowledged it.
 */
export type State = "drawn" | "shown" | "leaving" | "counted";

/** An earlier answer that shares items; the labels are the new survey's. */
export interface Overlap {
  readonly entry: Entry;
  readonly shared: string[];
}

/** The shared item about which most would be told in all; without a limit, Infinity. */
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
  /** Run work while no other tab of this browser does, until all of them see what it wrote. */
  locked<T>(work: () => T | Promise<T>): Promise<T>;
  /** After a write, inside the lock: until every other tab sees it. */
  settled(): Promise<void>;
  /** The entries of exactly this survey, in the order of its questions. */
  find(origin: string, survey: Survey): Entry[];
  /** The entries of the drawn questions, which are drawn now if they were not before. */
  drawOnce(origin: string, survey: Survey): Entry[];
  /** Earlier answers to other surveys that share an item, however its label is spelled. */
  overlaps(origin: string, survey: Survey): Overlap[];
  /** What would be told in all about the shared items; null without overlaps. */
  summed(origin: string, survey: Survey, overlaps: readonly Overlap[]): Summed | null;
  /** The sums of the budgets over all surveys but this one, and the number of their reports. */
  total(origin: string, survey: Survey): { epsilon: number; raised: number; earlier: number };
  /** The same sums of this survey. */
  own(origin: string, survey: Survey): { epsilon: number; raised: number };
  /** Write a report down before anybody sees it; an earlier report on the question counts. */
  reserve(
    origin: string, survey: Survey, question: string, content: Uint8Array, id: Uint8Array,
  ): void;
  /** Bring back what was prepared, if the ledger was removed meanwhile. */
  restore(origin: string, survey: Survey, frames: readonly Frame[]): Entry[];
  /** The reports with these ids are about to leave, or the collector has acknowledged them. */
  mark(ids: readonly string[], state: State): void;
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
  /** To the summed budget of overlapping surveys, or of so many. */
  agree?: boolean | number;
  maxTotal?: number;
  /** `maxTotal` limits how far odds are raised alone. */
  oneWay?: boolean;
  /** Drawn questions may be left for later. */
  partial?: boolean;
}

/** What is sent for one question. */
export interface Frame {
  readonly question: string;
  readonly id: Uint8Array;
  /** The report with what stands before it. */
  readonly content: Uint8Array;
  readonly report: Uint8Array;
}

/** What will be sent, if `send` is called. */
export interface Prepared {
  readonly survey: Survey;
  readonly frames: readonly Frame[];
  /** Drawn questions that have no report yet. */
  readonly missing: readonly string[];
  readonly repeated: boolean;
  readonly overlaps: readonly Overlap[];
  readonly summed: Summed | null;
  readonly maxTotal: number;
  readonly oneWay: boolean;
}

export interface Receipt {
  readonly accepted: number;
  readonly duplicates: number;
  readonly frames: readonly Frame[];
  readonly repeated: boolean;
}

/** Fetches a survey, verifies it, and uploads each perturbed report, once. */
export class Client {
  constructor(url: string, options?: ClientOptions);

  url: string;
  ledger: Ledger;
  origin: string;
  patience: number;
  pause: number;
  maxTotal: number;
  waiting: (milliseconds: number) => void;

  /** The collection's survey, verified. */
  describe(
    name: string, pins?: Pins,
  ): Promise<{
    survey: Survey; state: "upcoming" | "open" | "closed"; keeps: "counts" | "reports";
  }>;
  /** The questions that this device answers, which are drawn once, whatever the answers are. */
  draw(survey: Survey): Promise<Question[]>;
  /**
   * Perturb answers and write the reports down; nothing is sent yet. Give the answer to the only
   * question, or answers by name. Where all reports were drawn before, they may be left out.
   */
  prepare(survey: Survey, answer?: Answer | Answers, options?: AnswerOptions): Promise<Prepared>;
  /** The reports that were on their way when something went wrong, to be sent again; or null. */
  unsent(survey: Survey): Prepared | null;
  /** The reports of a survey that this device has. */
  reports(survey: Survey): Frame[];
  /** Upload the reports, again and again while the collector is away: each is counted once. */
  send(prepared: Prepared): Promise<Receipt>;
  /** Prepare and send. */
  answer(survey: Survey, answer: Answer | Answers, options?: AnswerOptions): Promise<Receipt>;
}
