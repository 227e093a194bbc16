// Writes the snapshots of messages that tests quote, and prints the difference:
//
// deno task messages [--bun] [FILE...]
//
// Runs the test files serially on Deno; without names, all files that quote messages. With --bun, runs them on Bun too,
// and adds the sentences that differ there. Keeps the sentences of tests that fail or are skipped.
import {
  readSnapshot,
  type Recorded,
  type Snapshot,
  type Stored,
  type StoredList,
  toList,
  toSharedName,
  toSnapshotPath,
} from "./messages.ts";
import { listTests } from "./tiers.ts";

const root = new URL("../../", import.meta.url);

/** By file and test, the sentences of a test that has passed, or `undefined` for any other registered test. */
type Sentences = ReadonlyMap<string, ReadonlyMap<string, readonly string[] | undefined>>;

type Runtime = "deno" | "bun";

const COMMANDS: Readonly<Record<Runtime, readonly string[]>> = {
  deno: ["deno", "test", "-A", "--no-check", "--unstable-kv", "--reporter=dot"],
  bun: ["bun", "test", "--dots", "--only-failures"],
};

/** Runs test files, and returns the sentences of the tests that have passed. */
async function runTests(runtime: Runtime, files: readonly string[]): Promise<Sentences> {
  const path = await Deno.makeTempFile();
  try {
    const [command, ...args] = COMMANDS[runtime];
    const child = new Deno.Command(command, {
      args: [...args, ...files.map((file) => `./${file}`)],
      cwd: root.pathname,
      env: { MESSAGES_RECORD: path },
    });
    const { success } = await child.spawn().status;
    if (!success) console.log(`Some tests failed on ${runtime}; their sentences are unchanged.`);
    const lines = (await Deno.readTextFile(path)).split("\n").filter(Boolean);
    return collect(lines.map((line): Recorded => JSON.parse(line)));
  } finally {
    await Deno.remove(path);
  }
}

function collect(records: readonly Recorded[]): Sentences {
  const found = new Map<string, Map<string, readonly string[] | undefined>>();
  const open = new Map<string, string[]>();
  for (const { file, test, event, sentence } of records) {
    const tests = found.get(file) ?? new Map<string, readonly string[] | undefined>();
    found.set(file, tests);
    const key = JSON.stringify([file, test]);
    if (event === "registered") tests.set(test, undefined);
    else if (sentence !== undefined) open.set(key, [...open.get(key) ?? [], sentence]);
    else tests.set(test, open.get(key));
  }
  return found;
}

/** Joins the behaviours whose sentences are the same in all combinations of revision and transport. */
function joinWays<T extends Stored>(tests: ReadonlyMap<string, readonly T[]>): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, (readonly [name: string, list: readonly T[]])[]>();
  for (const entry of tests) {
    const shared = toSharedName(entry[0]);
    groups.set(shared, [...groups.get(shared) ?? [], entry]);
  }
  const joined = new Map<string, readonly T[]>();
  for (const [shared, ways] of groups) {
    const isSame = new Set(ways.map(([, list]) => JSON.stringify(list))).size === 1;
    if (isSame) joined.set(shared, ways[0][1]);
    else for (const [name, list] of ways) joined.set(name, list);
  }
  return joined;
}

/** Returns the stored sentences with the sentences of the other runtime. */
function joinRuntimes(stored: StoredList, other: readonly string[]): StoredList {
  const own = toList(stored, "deno");
  if (own.length !== other.length) return own.length ? { deno: own, bun: other } : { deno: [], bun: other };
  return own.map((each, at) => {
    const deno = typeof each === "object" ? each.deno : each;
    return deno === other[at] ? deno : { deno, bun: other[at] };
  });
}

/** Returns Deno's sentences with the other runtime's sentences of the snapshot, where Deno's have not changed. */
function keepOthers(list: readonly string[], old: StoredList): StoredList {
  if (!Array.isArray(old)) return { ...old, deno: list };
  return list.map((deno, at) => {
    const stored: Stored | undefined = old[at];
    return typeof stored === "object" && stored.deno === deno ? stored : deno;
  });
}

async function write(path: string, snapshot: Snapshot): Promise<void> {
  const sort = <T>(record: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(record).sort(([a], [b]) => a < b ? -1 : 1));
  const files = Object.entries(sort(snapshot)).filter(([, tests]) => Object.keys(tests).length);
  const sorted = Object.fromEntries(files.map(([file, tests]) => [file, sort(tests)]));
  const url = new URL(path, root);
  if (files.length) await Deno.writeTextFile(url, JSON.stringify(sorted, null, 2) + "\n");
  else await Deno.remove(url).catch(() => {});
}

/** Puts the sentences of the tests that have run into the snapshots. */
async function update(sentences: Sentences, runtime: Runtime): Promise<void> {
  for (const [file, tests] of sentences) {
    const path = toSnapshotPath(file);
    const name = file.slice(path.length - "messages.json".length);
    const snapshot = readSnapshot(path);
    const old = snapshot[name] ?? {};
    const passed = new Map([...tests].flatMap(([test, list]) => list ? [[test, list] as const] : []));
    const names = [...passed.keys()];
    const isRun = (test: string) => names.some((run) => run === test || toSharedName(run) === test);
    const isGone = (test: string) => ![...tests.keys()].some((each) => each === test || toSharedName(each) === test);
    const kept = Object.entries(old).filter(([test]) => !isRun(test) && !(runtime === "deno" && isGone(test)));
    const joined = [...joinWays(passed)].map(([test, list]) => {
      const stored = old[test] ?? old[toSharedName(test)] ?? [];
      return [test, runtime === "deno" ? keepOthers(list, stored) : joinRuntimes(stored, list)] as const;
    });
    await write(path, { ...snapshot, [name]: Object.fromEntries([...kept, ...joined]) });
  }
}

const words = [...Deno.args];
const withBun = words.includes("--bun");
const named = words.filter((word) => word !== "--bun").map((word) => word.replace(/^\.\//, ""));
const all = await listTests();
for (const name of named) {
  if (!all.includes(name)) throw new Error(`Cannot write the messages of ${name}: there is no such test file`);
}
const quoting = await Promise.all(all.map(async (file) => {
  return /\bsentence\(|support\/messages\.ts/.test(await Deno.readTextFile(new URL(file, root)));
}));
const files = named.length ? named : all.filter((_file, at) => quoting[at]);
await update(await runTests("deno", files), "deno");
if (withBun) await update(await runTests("bun", files), "bun");
await new Deno.Command("git", { args: ["--no-pager", "diff", "--", "tests/**/messages.json"], cwd: root.pathname })
  .spawn().status;
