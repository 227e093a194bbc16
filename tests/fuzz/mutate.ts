// Mutation testing: changes one comparison or guard at a time in the files that decide on access and trust, runs the
// quick tests of these files, and prints every mutation that no test detects.
//
// deno task mutate [--file PART_OF_A_PATH] [--since REVISION] [--minutes N] [--seed N]
//
// --since mutates only the files that have changed since a revision; "day" is the last revision that is a day older
// than HEAD. --minutes tries as many mutations as fit into this time, in random order. The tests run under Bun, which
// starts faster, in copies of the project. With --seed, the order is that of an earlier run.
import { readNumber, readOptions } from "../support/options.ts";
import { random } from "../support/random.ts";

const root = new URL("../../", import.meta.url).pathname;
const LANES = 2;
/**
 * Maximum time in milliseconds for the tests of a file without a mutation, on a machine that also runs other programs.
 */
const LATE_MS = 180_000;
/** Factor by which the tests can take longer with a mutation. */
const LATE_FACTOR = 3;
/** Percentage of mutations that the tests must detect. */
const LEAST_SCORE = 80;
/** Percentage for a run with few mutations, whose score varies. */
const LEAST_OF_FEW = 50;

/** A file to mutate, with its tests. */
interface Subject {
  readonly path: string;
  readonly tests: readonly string[];
}

const subjects: readonly Subject[] = [
  {
    path: "src/server/transports/http/access.ts",
    tests: ["transports/access_test.ts", "transports/http_test.ts", "hostile/http_origin_test.ts"],
  },
  { path: "src/server/transports/http/cors.ts", tests: ["hostile/http_origin_test.ts"] },
  {
    path: "src/server/transports/http/fetch.ts",
    tests: ["transports/access_test.ts", "hostile/http_headers_test.ts", "hostile/http_origin_test.ts"],
  },
  {
    path: "src/server/transports/http/request_body.ts",
    tests: ["hostile/http_headers_test.ts", "transports/sse_2024_test.ts", "hostile/life_limits_test.ts"],
  },
  { path: "src/core/protocol/message_parser.ts", tests: ["transports/http_test.ts", "hostile/http_framing_test.ts"] },
  {
    path: "src/server/eras/modern/modern.ts",
    tests: ["transports/http_test.ts", "hostile/http_envelope_test.ts", "behaviour/handshake_test.ts"],
  },
  {
    path: "src/server/eras/modern/envelope.ts",
    tests: ["schema/header_params_test.ts", "transports/http_test.ts", "hostile/http_envelope_test.ts"],
  },
  { path: "src/server/call/sealer.ts", tests: ["core/sealer_test.ts"] },
  { path: "src/server/eras/modern/modern_call.ts", tests: ["eras/question_state_test.ts", "behaviour/asking_test.ts"] },
  {
    path: "src/server/eras/modern/input_requests.ts",
    tests: ["eras/question_state_test.ts", "behaviour/asking_test.ts"],
  },
  {
    path: "src/server/eras/legacy/session_ids.ts",
    tests: ["eras/session_test.ts", "behaviour/handshake_test.ts", "hostile/http_sessions_test.ts"],
  },
  {
    path: "src/server/eras/legacy/session.ts",
    tests: [
      "eras/session_test.ts",
      "eras/ended_sessions_test.ts",
      "transports/http_test.ts",
      "behaviour/handshake_test.ts",
      "hostile/http_sessions_test.ts",
      "hostile/life_limits_test.ts",
    ],
  },
  { path: "src/server/call/scopes.ts", tests: ["behaviour/scopes_test.ts", "auth/principals_test.ts"] },
  { path: "src/server/call/principal.ts", tests: ["auth/principals_test.ts"] },
  { path: "src/server/capacity/account.ts", tests: ["core/pots_test.ts", "hostile/attack_accounts_test.ts"] },
  { path: "src/auth/secrets.ts", tests: ["auth/schemes_test.ts"] },
  { path: "src/server/transports/http/canonical_params.ts", tests: ["hostile/tenant_paths_test.ts"] },
];

/** A mutation of a file. */
interface Mutant {
  readonly subject: Subject;
  readonly at: number;
  readonly size: number;
  readonly by: string;
  readonly line: number;
  /** The original line, and the change within the line. */
  readonly title: string;
}

/** Mutations that have no observable effect, each with the reason. */
const equivalent: Readonly<Record<string, string>> = {
  "if (!bytes || bytes.length < 28) return; : < → <=":
    "28 bytes are a nonce and a tag around nothing, which is not JSON",
  "for (let i = 0; i < this.#secrets.length; i++) { : < → <=": "a missing secret opens nothing",
  "const state = (text.length <= calls.stateBytes * 2 ? await sealer.open(PURPOSE, text) : undefined) as : <= → <":
    "no issued state is half as long",
  "return a < b ? -1 : 1; : < → <=": "no object has two keys with one name",
  "const accepts = accept !== null && accept === goodAccept ? BOTH : readAccept(accept); : !== → ===":
    "the header is only read again",
  "if (accepts.json && accepts.stream && accept !== null) goodAccept = accept; : !== → ===":
    "the header is only read again",
  "if (host === null || !isKnownHost(host, options)) return; : === → !==": "the caller is only checked again",
  'const isFlat = arrays + text.length / 4 <= mostLevels || arrays + count(text, "{", mostLevels) <= mostLevels; : <= → <':
    "the levels are only counted",
  'const isFlat = arrays + text.length / 4 <= mostLevels || arrays + count(text, "{", mostLevels) <= mostLevels; : || → &&':
    "the levels are only counted",
  "if (isFlat && text.length < 2 * mostValues) return; : < → <=": "the values are only counted",
  "throw error; : throw error → nothing": "undefined gets the same response",
  "if (body.size <= SMALL) return; : <= → <": "a body at the threshold may take either path",
  "for (let i = 0; i < text.length; i++) { : < → <=": "past the end is no bracket",
  "for (let at = text.indexOf(character); at >= 0 && found <= most; at = text.indexOf(character, at + 1)) found++; : && → ||":
    "the levels are only counted",
};

const swaps: readonly (readonly [pattern: RegExp, by: string])[] = [
  [/ === /g, " !== "],
  [/ !== /g, " === "],
  [/ < /g, " <= "],
  [/ <= /g, " < "],
  [/ > /g, " >= "],
  [/ >= /g, " > "],
  [/ && /g, " || "],
  [/ \|\| /g, " && "],
  [/\breturn true\b/g, "return false"],
  [/\breturn false\b/g, "return true"],
  [/(?<=: |=> )true\b/g, "false"],
  [/(?<=: |=> )false\b/g, "true"],
  [/(?<![\w)\]!])!(?=[\w([])/g, ""],
];

/** Returns the source with comments, strings and regular expressions blanked, so that only other code is mutated. */
function mask(source: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, " ");
  const token =
    /\/\*[^]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|(?<=[(,=:!&|?{};[]\s*|return )\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/g;
  return source.replace(token, blank);
}

function listMutants(subject: Subject, source: string): Mutant[] {
  const code = mask(source);
  const mutants: Mutant[] = [];
  const add = (at: number, size: number, by: string) => {
    const line = source.slice(0, at).split("\n").length;
    const text = source.split("\n")[line - 1].trim();
    const title = `${text} : ${source.slice(at, at + size).trim() || "…"} → ${by.trim() || "nothing"}`;
    mutants.push({ subject, at, size, by, line, title });
  };
  for (const [pattern, by] of swaps) {
    for (const { 0: found, index } of code.matchAll(pattern)) add(index, found.length, by);
  }
  for (const { index } of code.matchAll(/\bthrow /g)) {
    let depth = 0;
    let at = index;
    for (; code[at] !== ";" || depth; at++) {
      depth += Number("([{".includes(code[at])) - Number(")]}".includes(code[at]));
    }
    add(index, at - index, "");
  }
  return mutants.sort((a, b) => a.at - b.at);
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory, isFile } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else if (isFile) await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

async function createCopy(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "mutate-" });
  for (const part of ["src", "tests"]) await copyFolder(root + part, `${folder}/${part}`);
  for (const part of ["mod.ts", "deno.json", "bunfig.toml"]) await Deno.copyFile(root + part, `${folder}/${part}`);
  await Deno.symlink(`${root}node_modules`, `${folder}/node_modules`);
  return folder;
}

function shuffle<T>(list: T[], seed: number): void {
  const { below } = random(seed);
  for (let i = list.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [list[i], list[j]] = [list[j], list[i]];
  }
}

/** Returns whether the tests pass. A run that exceeds `lateMs` counts as failed. */
async function passes(folder: string, tests: readonly string[], lateMs: number): Promise<boolean> {
  const child = new Deno.Command("bun", {
    args: ["test", "--bail", ...tests.map((test) => `./tests/${test}`)],
    cwd: folder,
    stdout: "null",
    stderr: "null",
  }).spawn();
  const late = setTimeout(() => child.kill("SIGKILL"), lateMs);
  const { success } = await child.status;
  clearTimeout(late);
  return success;
}

/** Runs the tests of a file without a mutation. Returns the time limit for runs with a mutation. */
async function findLimit(folder: string, { path, tests }: Subject): Promise<number> {
  const begun = performance.now();
  if (await passes(folder, tests, LATE_MS)) return LATE_FACTOR * (performance.now() - begun);
  throw new Error(`Cannot test mutations of ${path}: its tests fail without a mutation; fix them first`);
}

/** Returns the stored value for a key. If there is none, creates and stores a value. */
function find<K, V>(known: Map<K, V>, key: K, make: () => V): V {
  const found = known.get(key) ?? make();
  known.set(key, found);
  return found;
}

/** Returns the files that have changed since a revision. */
async function listChanged(since: string): Promise<readonly string[]> {
  const git = async (...args: readonly string[]) => {
    const { success, stdout, stderr } = await new Deno.Command("git", { args: [...args], cwd: root }).output();
    if (!success) throw new Error(`Cannot find what has changed: ${new TextDecoder().decode(stderr).trim()}`);
    return new TextDecoder().decode(stdout).trim();
  };
  const time = Number(await git("log", "-1", "--format=%ct")) - 24 * 60 * 60;
  const day = since === "day" ? await git("rev-list", "-1", `--before=${time}`, "HEAD") : since;
  // There is no such revision if the history is younger than a day, or if the clone has no history. In that case, all
  // files are mutated.
  return day ? (await git("diff", "--name-only", day)).split("\n") : subjects.map(({ path }) => path);
}

const options = readOptions(Deno.args, { values: ["--file", "--since", "--minutes", "--seed"] });
const part = options.get("--file") ?? "";
const since = options.get("--since");
const changed = since === undefined ? undefined : await listChanged(since);
const chosen = subjects.filter(({ path }) => path.includes(part) && (changed?.includes(path) ?? true));
if (!chosen.length && !changed) throw new Error(`Cannot begin: no file has "${part}" in its path`);
const isBounded = options.has("--minutes");
const end = isBounded ? performance.now() + readNumber(options, "--minutes", 0, { hasParts: true }) * 60_000 : Infinity;
const sources = new Map<string, string>();
for (const { path } of chosen) sources.set(path, await Deno.readTextFile(root + path));
const waiting = chosen.flatMap((subject) => listMutants(subject, sources.get(subject.path) ?? ""));
const seed = readNumber(options, "--seed", Date.now() % 2 ** 31);
if (isBounded) shuffle(waiting, seed);
/** Time limits for the tests of each file, in milliseconds. */
const limits = new Map<string, Promise<number>>();
const copies = await Promise.all(Array.from({ length: LANES }, createCopy));
let total = 0;
const survivors: Mutant[] = [];
const started = performance.now();
try {
  await Promise.all(copies.map(async (folder) => {
    for (let mutant = waiting.shift(); mutant && performance.now() < end; mutant = waiting.shift()) {
      total++;
      const { subject: { path, tests }, at, size, by } = mutant;
      const lateMs = await find(limits, path, () => findLimit(folder, mutant.subject));
      const source = sources.get(path) ?? "";
      await Deno.writeTextFile(`${folder}/${path}`, source.slice(0, at) + by + source.slice(at + size));
      if (await passes(folder, tests, lateMs)) survivors.push(mutant);
      await Deno.writeTextFile(`${folder}/${path}`, source);
    }
  }));
} finally {
  for (const folder of copies) await Deno.remove(folder, { recursive: true });
}

const unexplained = survivors.filter(({ title }) => !(title in equivalent));
for (const { path } of chosen) {
  const own = survivors.filter(({ subject }) => subject.path === path).sort((a, b) => a.at - b.at);
  for (const { line, title } of own) {
    console.log(`${path}:${line} ${title}${title in equivalent ? `\n    (${equivalent[title]})` : ""}`);
  }
}
const killed = total - survivors.length;
const score = 100 * killed / (total - (survivors.length - unexplained.length));
const seconds = ((performance.now() - started) / 1000).toFixed(0);
console.log(
  `${total} mutations, ${killed} detected, ${survivors.length - unexplained.length} without an effect, ` +
    `${unexplained.length} not detected: ${total ? score.toFixed(1) : "no"} % (${seconds} s, seed ${seed})`,
);
const isGood = !total || score >= (isBounded ? LEAST_OF_FEW : LEAST_SCORE);
console.log(isGood ? "1 passed, 0 failed" : "0 passed, 1 failed");
if (!isGood) Deno.exit(1);
