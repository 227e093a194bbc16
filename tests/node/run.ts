// Runs the behaviour suite, and tests of features that differ between runtimes, on each supported version of Node.
// Deno runs the tests that start processes. Their processes are the npm package's program on Node.
//
// deno task test:node [--newest] [--differing] [--filter NAME] [--report PATH] [file...]
//
// With --newest, runs on the newest version only. With --differing, runs only the tests of code that differs on Node. With
// --filter, runs only the tests whose name contains NAME, or matches it if NAME is a pattern between slashes. With
// --report, writes a JUnit file.
import { parseArgs } from "node:util";
import { install } from "../release/npm_install.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { type Case, readCases, writeCases } from "../support/test_report.ts";
import { listTests } from "../support/tiers.ts";

const root = new URL("../../", import.meta.url).pathname;

/** Test files and folders of code that is the same on each runtime. */
const SAME = [
  "tests/apps/",
  "tests/behaviour/",
  "tests/examples/planned_test.ts",
  "tests/examples/reasons_test.ts",
  "tests/observe/health_test.ts",
  "tests/testing/",
];

/** Test files and folders of code that differs on Node, or that calls what differs: files, sockets, streams, threads. */
const DIFFERING = [
  "tests/auth/",
  "tests/cli/sign_in/",
  "tests/client/oauth/",
  "tests/code/",
  "tests/discovery/discovery_test.ts",
  "tests/kit/base64_test.ts",
  "tests/serve/serve_test.ts",
  "tests/serve/wire_test.ts",
  "tests/stores/redis_clients_test.ts",
  "tests/transports/stdio_test.ts",
  "tests/transports/stdout_guard_test.ts",
  "tests/worker/",
];

/** Test files and folders whose tests start processes with the commands in tests/support/runtimes.ts. */
const PROCESSES = [
  "tests/cli/auth_test.ts",
  "tests/cli/bridge_test.ts",
  "tests/cli/gateway_example_test.ts",
  "tests/cli/gateway_test.ts",
  "tests/cli/rejections_test.ts",
  "tests/cli/inspector/sign_in_test.ts",
  "tests/cli/sign_in/",
  "tests/examples/sign_in_test.ts",
];

/**
 * Names of tests that cannot run on Node, because they replace the global `Worker`, need Deno's worker threads, or
 * serve WebSocket.
 */
const SKIPPED = [
  "^WebSocket: ",
  "messages on a WebSocket use the renewed principal",
  "a list authenticates callers over WebSocket too",
  "other transports serve a single server, and refuse the mounted servers with an error that names them",
  "a thread that fails before its first call fails the call",
  "a call waits for the end of a thread that (fails|exits), however long it takes",
  "a terminated thread counts until it has ended, and calls are refused until then",
  "if no thread can be created, every call fails, and no call waits",
  "if no further thread can be created, every waiting call gets an error or a result",
  "calls that are cancelled while their thread starts do not each start a thread",
];

/** Number of test files that run concurrently. */
const JOBS = 2;

/** Returns the pattern for a filter, which is part of a name, or a pattern between slashes. */
function toPattern(filter: string): string {
  return /^\/.*\/$/.test(filter) ? filter : `/${RegExp.escape(filter)}/`;
}

/** Runs tests in processes of Node. */
async function runTests(node: string, files: readonly string[]): Promise<readonly Case[]> {
  if (!files.length) return [];
  const env = {
    NO_COLOR: "1",
    // Each process and each thread would remove the types of all modules again, which takes most of its time.
    NODE_COMPILE_CACHE: `${folder}/compiled`,
  };
  const cases: Case[] = [];
  const left = files.values();
  await Promise.all(Array.from({ length: JOBS }, async () => {
    for (const file of left) cases.push(...await runFile(node, file, env));
  }));
  return cases;
}

/** Runs a test file in a process of its own, because a report of Node does not name the files of its tests. */
async function runFile(node: string, file: string, env: Readonly<Record<string, string>>): Promise<readonly Case[]> {
  const report = await Deno.makeTempFile({ dir: folder });
  const { success, stdout } = await new Deno.Command(node, {
    args: [
      ...["--import", `${root}tests/support/node_preload.ts`, "--test"],
      ...["--test-reporter=tap", "--test-reporter-destination=stdout"],
      ...["--test-reporter=junit", `--test-reporter-destination=${report}`],
      ...pattern ? [`--test-name-pattern=${pattern}`] : [],
      ...SKIPPED.map((name) => `--test-skip-pattern=${name}`),
      file,
    ],
    cwd: root,
    env: { ...env },
    stderr: "inherit",
  }).output();
  const cases = readCases(await Deno.readTextFile(report))
    // A file without tests, and a process that fails, are listed as a test.
    .filter(({ name, state }) => name !== file || state === "failed")
    .map((each) => ({ ...each, file }));
  if (!success) console.log(`${file}\n${toFailures(new TextDecoder().decode(stdout))}`);
  return complete(cases, { success, file });
}

/** Runs tests whose processes run the npm package's program on Node. */
async function runProcesses(node: string, files: readonly string[], program: string): Promise<readonly Case[]> {
  if (!files.length) return [];
  const report = await Deno.makeTempFile({ dir: folder });
  const filter = pattern ? ["--filter", pattern] : [];
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--no-check", `--junit-path=${report}`, ...filter, ...files],
    cwd: root,
    env: { NO_COLOR: "1", TEST_NODE: JSON.stringify([node, program]) },
    stderr: "inherit",
  }).output();
  if (!success) console.log(new TextDecoder().decode(stdout));
  return complete(readCases(await Deno.readTextFile(report)), { success, file: files.join(" ") });
}

/** Adds a failure to the tests of a process that failed without a failed test. */
function complete(
  cases: readonly Case[],
  { success, file }: { readonly success: boolean; readonly file: string },
): readonly Case[] {
  if (success || cases.some(({ state }) => state === "failed")) return cases;
  return [...cases, { name: `the process of ${file} fails`, file, state: "failed", seconds: 0 }];
}

/** Returns the part of a test report that explains the failures. */
function toFailures(text: string): string {
  const blocks = [...text.matchAll(/^ *not ok [^]*?^ +\.\.\.$/gm)].map(([block]) => block);
  return blocks.length ? blocks.join("\n") : text;
}

const { values, positionals } = parseArgs({
  args: Deno.args,
  options: {
    newest: { type: "boolean" },
    differing: { type: "boolean" },
    filter: { type: "string" },
    report: { type: "string" },
  },
  allowPositionals: true,
});
const pattern = values.filter === undefined ? undefined : toPattern(values.filter);
const all = await listTests();
const isIn = (list: readonly string[]) => (path: string) => list.some((start) => path.startsWith(start));
const versions = values.newest ? NODE_VERSIONS.slice(-1) : NODE_VERSIONS;
const TESTED = [...DIFFERING, ...values.differing ? [] : SAME];
const given = positionals.length ? [...new Set(positionals)] : all.filter(isIn([...TESTED, ...PROCESSES]));
const withProcesses = given.filter(isIn(PROCESSES));
const files = given.filter((path) => !isIn(PROCESSES)(path) || isIn(TESTED)(path));
const folder = await Deno.makeTempDir({ prefix: "mcp-node-tests-" });
const program = withProcesses.length ? `${await install(folder, `${folder}/project`)}/bin.js` : "";
const cases: Case[] = [];
const count = (state: Case["state"]) => cases.filter((each) => each.state === state).length;
const toCounts = () => `${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`;
for (const version of versions) {
  const found = await findNode(version);
  if ("missing" in found) {
    const { missing } = found;
    cases.push(
      Deno.env.get("REQUIRE_ALL")
        ? { name: missing, file: "tests/support/node_versions.ts", state: "failed", seconds: 0 }
        : { name: `Node ${version} (skipped: ${missing})`, file: "", state: "skipped", seconds: 0 },
    );
    continue;
  }
  const running = [runTests(found.path, files), runProcesses(found.path, withProcesses, program)];
  cases.push(...(await Promise.all(running)).flat());
  console.log(`Node ${version}: ${toCounts()} so far`);
}
await Deno.remove(folder, { recursive: true });
if (values.report) await Deno.writeTextFile(values.report, writeCases(cases));
console.log(toCounts());
Deno.exit(count("failed") || !count("passed") ? 1 : 0);
