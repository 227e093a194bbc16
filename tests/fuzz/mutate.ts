// Mutation testing: changes one comparison or guard at a time in the files that decide on access and trust, runs their
// quick tests, and names every mutation that no test detects.
//
//   deno task mutate [--file PART_OF_A_PATH]
//
// The tests run under Bun, which starts faster, in copies of the project.

import { readOptions } from "../support/options.ts";

const root = new URL("../../", import.meta.url).pathname;
const LANES = 2;
const LATE_MS = 30_000;

/** A file, the part of it that is mutated, and its tests. */
interface Subject {
  readonly path: string;
  /** The range between the first text and the second is changed. */
  readonly from?: string;
  readonly to?: string;
  readonly tests: readonly string[];
}

const subjects: readonly Subject[] = [
  {
    path: "src/transports/http/access.ts",
    tests: ["transports/access_test.ts", "transports/http_test.ts", "hostile/http_origin_test.ts"],
  },
  { path: "src/transports/http/cors.ts", tests: ["hostile/http_origin_test.ts"] },
  {
    path: "src/transports/http/fetch.ts",
    from: "function fetch(",
    to: "async function serve(",
    tests: ["transports/access_test.ts", "transports/http_test.ts", "hostile/http_origin_test.ts"],
  },
  {
    path: "src/transports/http/request_body.ts",
    tests: ["transports/http_test.ts", "transports/sse_2024_test.ts", "hostile/life_limits_test.ts"],
  },
  { path: "src/protocol/jsonrpc.ts", tests: ["transports/http_test.ts", "hostile/http_framing_test.ts"] },
  {
    path: "src/eras/modern/modern.ts",
    from: "function isModern(",
    to: "function invalid(",
    tests: ["transports/http_test.ts", "hostile/http_envelope_test.ts", "behaviour/handshake_test.ts"],
  },
  {
    path: "src/eras/modern/request_headers.ts",
    tests: ["schema/header_params_test.ts", "transports/http_test.ts", "hostile/http_envelope_test.ts"],
  },
  { path: "src/core/sealer.ts", tests: ["core/sealer_test.ts"] },
  { path: "src/eras/modern/input_requests.ts", tests: ["eras/question_state_test.ts", "behaviour/asking_test.ts"] },
  {
    path: "src/eras/legacy/session.ts",
    tests: [
      ...[
        "eras/session_test.ts",
        "transports/http_test.ts",
        "behaviour/handshake_test.ts",
        "hostile/http_sessions_test.ts",
      ],
      "hostile/life_limits_test.ts",
    ],
  },
];

/** One mutation. */
interface Mutant {
  readonly subject: Subject;
  readonly at: number;
  readonly size: number;
  readonly by: string;
  readonly line: number;
  /** The line before it, and the change within the line. */
  readonly title: string;
}

/** Mutations without an observable effect, with the reason. */
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
  "if (known || id.length > MOST_ID) return known; : || → &&":
    "a known session is found again after its id is opened, and an id that is too long was never sealed",
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

/** The source with comments, strings and patterns blanked, so that only code is mutated. */
function mask(source: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, " ");
  const token =
    /\/\*[^]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|(?<=[(,=:!&|?{};[]\s*|return )\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/g;
  return source.replace(token, blank);
}

function listMutants(subject: Subject, source: string): Mutant[] {
  const code = mask(source);
  const start = subject.from ? source.indexOf(subject.from) : 0;
  const end = subject.to ? source.indexOf(subject.to) : source.length;
  if (start < 0 || end < 0) throw new Error(`Cannot find the part of ${subject.path}`);
  const mutants: Mutant[] = [];
  const add = (at: number, size: number, by: string) => {
    if (at < start || at >= end) return;
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

/** Whether the tests pass. A run that hangs counts as failed. */
async function passes(folder: string, tests: readonly string[]): Promise<boolean> {
  const child = new Deno.Command("bun", {
    args: ["test", "--bail", ...tests.map((test) => `./tests/${test}`)],
    cwd: folder,
    stdout: "null",
    stderr: "null",
  }).spawn();
  const late = setTimeout(() => child.kill("SIGKILL"), LATE_MS);
  const { success } = await child.status;
  clearTimeout(late);
  return success;
}

const part = readOptions(Deno.args, { values: ["--file"] }).get("--file") ?? "";
const chosen = subjects.filter(({ path }) => path.includes(part));
if (!chosen.length) throw new Error(`Cannot begin: no file has "${part}" in its path`);
const sources = new Map<string, string>();
for (const { path } of chosen) sources.set(path, await Deno.readTextFile(root + path));
const waiting = chosen.flatMap((subject) => listMutants(subject, sources.get(subject.path) ?? ""));
const copies = await Promise.all(Array.from({ length: LANES }, createCopy));
const total = waiting.length;
const survivors: Mutant[] = [];
const started = performance.now();
try {
  for (const { path, tests } of chosen) {
    if (!await passes(copies[0], tests)) throw new Error(`Cannot judge ${path}: its tests fail without any change`);
  }
  await Promise.all(copies.map(async (folder) => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const { subject: { path, tests }, at, size, by } = mutant;
      const source = sources.get(path) ?? "";
      await Deno.writeTextFile(`${folder}/${path}`, source.slice(0, at) + by + source.slice(at + size));
      if (await passes(folder, tests)) survivors.push(mutant);
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
  `${total} changes, ${killed} noticed, ${survivors.length - unexplained.length} make no difference, ` +
    `${unexplained.length} unnoticed: ${score.toFixed(1)} % (${seconds} s)`,
);
if (score < 80) Deno.exit(1);
