// Checks the messages that tests quote. A test names the parts that a message must contain, such as an option, a handler
// or a path. The sentence itself stands in the file `messages.json` of the test's folder, which `deno task messages`
// writes. So a reworded message changes these files, and no test.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { getRunningTest, listRegistered, type RunningTest } from "./running.ts";

const root = new URL("../../", import.meta.url);

/** A sentence of a snapshot; by runtime, if the runtimes have different sentences. */
export type Stored = string | Readonly<Record<string, string>>;

/**
 * The sentences of a folder, by file and test, in the order in which a test checks them. A sentence that a test checks
 * several times in a row stands once.
 */
export type Snapshot = Readonly<Record<string, Readonly<Record<string, StoredList>>>>;

/** The sentences of a test; by runtime, if the runtimes have different numbers of sentences. */
export type StoredList = readonly Stored[] | Readonly<Record<string, readonly Stored[]>>;

/** A line of a record, as JSON: a registered test, a sentence that a test has checked, or the end of a passed test. */
export interface Recorded {
  readonly file: string;
  readonly test: string;
  readonly event: "registered" | "checked" | "passed";
  readonly sentence?: string;
}

/** A file for the checked sentences. If set, they are not compared. */
const recordPath = process.env.MESSAGES_RECORD;

const [OPEN, CLOSE] = ["\u{e000}", "\u{e001}"];
const PLACEHOLDER = new RegExp(`${OPEN}([^${CLOSE}]*)${CLOSE}`);

/**
 * Stands for a message in an expected value, also within a longer text. The message must contain all `names`, and equal
 * the sentence in `messages.json`. In `assertStringIncludes`, stands for the first line that contains all `names`.
 */
export function sentence(...names: readonly (string | number)[]): string {
  return OPEN + JSON.stringify(names.map(String)) + CLOSE;
}

/** Tests whether a text, or a part of a value, is made by {@linkcode sentence}. */
export function hasSentence(value: unknown): boolean {
  if (typeof value === "string") return value.includes(OPEN);
  if (Array.isArray(value)) return value.some(hasSentence);
  return isPlain(value) && Object.values(value).some(hasSentence);
}

/** Returns the expected value with each sentence replaced by the message in the actual value, which is checked. */
export function resolveSentences(actual: unknown, expected: unknown): unknown {
  if (!hasSentence(expected)) return expected;
  if (typeof expected === "string") return resolveText(actual, expected);
  if (Array.isArray(expected)) {
    return expected.map((each, at) => resolveSentences(Array.isArray(actual) ? actual[at] : undefined, each));
  }
  // The cast is safe, because only plain objects and arrays contain sentences.
  const entries = Object.entries(expected as object);
  return Object.fromEntries(
    entries.map(([key, each]) => [key, resolveSentences(isPlain(actual) ? actual[key] : undefined, each)]),
  );
}

/** Returns the first part of a text that the expected text with a sentence describes, or the expected text. */
export function findSentence(text: string, expected: string): string {
  const parts = expected.split(new RegExp(PLACEHOLDER, "g"));
  if (parts.length !== 3) throw new Error(`Cannot search for ${toReadable(expected)}: give exactly one sentence`);
  const [before, names, after] = parts;
  const candidates = before || after
    ? [...text.matchAll(new RegExp(`${escape(before)}(.*?)${escape(after)}`, "g"))].map(([, it]) => it)
    : text.split("\n").filter((line) => line.trim());
  const wanted: readonly string[] = JSON.parse(names);
  if (!wanted.length && candidates.length > 1) {
    throw new Error(
      `Cannot search for ${toReadable(expected)}: ${candidates.length} lines could be meant; name a part`,
    );
  }
  const found = candidates.find((each) => wanted.every((name) => each.includes(name)));
  if (found === undefined) return toReadable(expected);
  checkSentence(found);
  return before + found + after;
}

/** Escapes a text for a regular expression. Node 22 has no `RegExp.escape`. */
function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function resolveText(actual: unknown, expected: string): string {
  if (typeof actual !== "string") return toReadable(expected);
  const parts = expected.split(new RegExp(PLACEHOLDER, "g"));
  const pattern = parts.map((part, at) => at % 2 ? "([^]*)" : escape(part)).join("");
  const found = new RegExp(`^${pattern}$`).exec(actual)?.slice(1);
  if (!found) return toReadable(expected);
  const names: readonly (readonly string[])[] = parts.filter((_part, at) => at % 2).map((part) => JSON.parse(part));
  if (!found.every((text, at) => names[at].every((name) => text.includes(name)))) return toReadable(expected);
  found.forEach(checkSentence);
  return actual;
}

/** Returns an expected text for the difference that a failed assertion prints. */
function toReadable(expected: string): string {
  return expected.replaceAll(new RegExp(PLACEHOLDER, "g"), (_whole, names) => `<a message with ${names}>`);
}

/** The parts of a message that differ in each run, each with its replacement. The order matters. */
const VOLATILE: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [new RegExp(escape(root.href), "g"), "<project>/"],
  [new RegExp(escape(root.pathname), "g"), "<project>/"],
  [/\/tmp\/[\w.-]+/g, "<temporary folder>"],
  [/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/g, "<uuid>"],
  [/(?<=\b(?:127\.0\.0\.1|localhost):|\[::1\]:)\d{4,5}\b/g, "<number>"],
  [/(?<=\bports? )\d{4,5}\b/g, "<number>"],
];

function toStable(sentence: string): string {
  return VOLATILE.reduce((text, [pattern, replacement]) => text.replaceAll(pattern, replacement), sentence);
}

/** The number of different sentences in a row that each running test has checked, and the last one. */
const progress = new WeakMap<RunningTest, { count: number; last?: string }>();

/** Compares a message with its sentence in the snapshot, or records it. */
export function checkSentence(message: string): void {
  const test = getRunningTest();
  if (!test) throw new Error("Cannot check a message: no test is running");
  let state = progress.get(test);
  if (!state) {
    state = { count: 0 };
    progress.set(test, state);
    test.atEnd.push(() => checkEnd(test));
  }
  const actual = toStable(message);
  if (actual === state.last) return;
  const at = state.count++;
  state.last = actual;
  if (recordPath) return record(test, "checked", actual);
  const stored = readStored(test)[at];
  const expected = typeof stored === "object" ? stored[runtime] ?? stored.deno : stored;
  if (actual === expected) return;
  const place = `${toSnapshotPath(test.file)}, "${test.name}", ${at}`;
  throw new Error(
    `A message differs from its snapshot (${place}):\n  actual:   ${actual}\n  expected: ${expected ?? "(none)"}\n` +
      toRemedy(test.file),
  );
}

function toRemedy(file: string): string {
  return `If the message is right, run: deno task messages ${file}`;
}

function checkEnd(test: RunningTest): void {
  if (recordPath) return record(test, "passed");
  const [count, stored] = [progress.get(test)?.count ?? 0, readStored(test).length];
  if (count === stored) return;
  throw new Error(
    `"${test.name}" checked ${count} messages, but ${toSnapshotPath(test.file)} has ${stored}\n${toRemedy(test.file)}`,
  );
}

const runtime = "Bun" in globalThis ? "bun" : "Deno" in globalThis ? "deno" : "node";

let recordedTests = 0;

function record({ file, name }: RunningTest, event: Recorded["event"], sentence?: string): void {
  const lines: Recorded[] = listRegistered().slice(recordedTests)
    .map((test) => ({ file: test.file, test: test.name, event: "registered" }));
  recordedTests += lines.length;
  lines.push({ file, test: name, event, sentence });
  writeFileSync(recordPath ?? "", lines.map((line) => JSON.stringify(line) + "\n").join(""), { flag: "a" });
}

const snapshots = new Map<string, Snapshot>();

/** Returns the path of the snapshot for a test file, relative to the project. */
export function toSnapshotPath(file: string): string {
  return file.replace(/[^/]*$/, "messages.json");
}

/** Reads a snapshot. A missing file is an empty snapshot. */
export function readSnapshot(path: string): Snapshot {
  const url = new URL(path, root);
  return existsSync(url) ? JSON.parse(readFileSync(url, "utf8")) : {};
}

/** Matches the combination of revision and transport in the name of a behaviour. */
const WAY = / \([^()]+ over [^()]+\)$/;

/**
 * Returns the name under which a behaviour's sentences are stored if they are the same in all combinations of revision
 * and transport.
 */
export function toSharedName(test: string): string {
  return test.replace(WAY, "");
}

function readStored({ file, name }: RunningTest): readonly Stored[] {
  const path = toSnapshotPath(file);
  const snapshot = snapshots.get(path) ?? readSnapshot(path);
  snapshots.set(path, snapshot);
  const tests = snapshot[file.slice(path.length - "messages.json".length)] ?? {};
  // Tests of processes on Node have no snapshots of their own, because only `test:node` runs them.
  return toList(tests[name] ?? tests[toSharedName(name)] ?? tests[name.replace(/^node: /, "deno: ")] ?? [], runtime);
}

/** Returns the sentences of a test on one runtime. */
export function toList(stored: StoredList, runtime: string): readonly Stored[] {
  // The cast is safe: Array.isArray does not narrow a readonly array.
  if (Array.isArray(stored)) return stored as readonly Stored[];
  const lists = stored as Readonly<Record<string, readonly Stored[]>>; // no array
  return lists[runtime] ?? lists.deno ?? [];
}
