// Runs the behaviour suite, and tests of features that differ between runtimes, on each supported version of Node.
// Deno runs the tests that start processes. Their processes are the npm package's program on Node.
//
// deno task test:node [--newest] [file...]
//
// With --newest, runs on the newest version only.
import { startOidc } from "../auth/oidc.ts";
import { install } from "../release/npm_install.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { listTests } from "../support/tiers.ts";

const root = new URL("../../", import.meta.url).pathname;

/** Test files and folders that run if the command line names no files. */
const TESTED = [
  "tests/apps/",
  "tests/auth/",
  "tests/behaviour/",
  "tests/cli/sign_in/",
  "tests/client/oauth/",
  "tests/discovery/discovery_test.ts",
  "tests/kit/base64_test.ts",
  "tests/observe/health_test.ts",
  "tests/serve/serve_test.ts",
  "tests/serve/wire_test.ts",
  "tests/stores/redis_clients_test.ts",
  "tests/testing/",
  "tests/transports/stdio_test.ts",
  "tests/transports/stdio_end_test.ts",
  "tests/transports/stdout_guard_test.ts",
  "tests/worker/",
];

/** Test files and folders whose tests start processes with the commands in tests/support/runtimes.ts. */
const PROCESSES = [
  "tests/cli/auth_test.ts",
  "tests/cli/bridge_test.ts",
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

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const NONE: Counts = { passed: 0, failed: 0, skipped: 0 };

/** Runs tests in a process of Node. */
async function runTests(node: string, files: readonly string[]): Promise<Counts> {
  if (!files.length) return NONE;
  await using oidc = await startOidc();
  const { stdout } = await new Deno.Command(node, {
    args: [
      "--import",
      `${root}tests/support/node_preload.ts`,
      "--test",
      "--test-concurrency=2",
      "--test-reporter=tap",
      ...SKIPPED.map((name) => `--test-skip-pattern=${name}`),
      ...files,
    ],
    cwd: root,
    env: { NO_COLOR: "1", OIDC_ISSUERS: JSON.stringify(oidc.issuers) },
    stderr: "inherit",
  }).output();
  const text = new TextDecoder().decode(stdout);
  const read = (name: string) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  const counts = { passed: read("pass"), failed: read("fail") + read("cancelled"), skipped: read("skipped") };
  if (counts.failed || !counts.passed) console.log(toFailures(text));
  return { ...counts, failed: counts.failed + (counts.passed ? 0 : 1) };
}

/** Runs tests whose processes run the npm package's program on Node. */
async function runProcesses(node: string, files: readonly string[], program: string): Promise<Counts> {
  if (!files.length) return NONE;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--no-check", ...files],
    cwd: root,
    env: { NO_COLOR: "1", TEST_NODE: JSON.stringify([node, program]) },
    stderr: "inherit",
  }).output();
  const text = new TextDecoder().decode(stdout);
  const [, summary = ""] = /^(?:ok|FAILED) \| (.*)$/m.exec(text) ?? [];
  const read = (name: string) => Number(new RegExp(`(\\d+) ${name}`).exec(summary)?.[1] ?? 0);
  const counts = { passed: read("passed"), failed: read("failed"), skipped: read("ignored") };
  if (counts.failed || !counts.passed) console.log(text);
  return { ...counts, failed: counts.failed + (counts.passed ? 0 : 1) };
}

/** Returns the part of a test report that explains the failures. */
function toFailures(text: string): string {
  const blocks = [...text.matchAll(/^ *not ok [^]*?^ +\.\.\.$/gm)].map(([block]) => block);
  return blocks.length ? blocks.join("\n") : text;
}

const all = await listTests();
const isIn = (list: readonly string[]) => (path: string) => list.some((start) => path.startsWith(start));
const versions = Deno.args.includes("--newest") ? NODE_VERSIONS.slice(-1) : NODE_VERSIONS;
const named = Deno.args.filter((word) => word !== "--newest");
const given = named.length ? named : all.filter(isIn([...TESTED, ...PROCESSES]));
const withProcesses = given.filter(isIn(PROCESSES));
const files = given.filter((path) => !isIn(PROCESSES)(path) || isIn(TESTED)(path));
const folder = await Deno.makeTempDir({ prefix: "mcp-node-tests-" });
const program = withProcesses.length ? `${await install(folder, `${folder}/project`)}/bin.js` : "";
let [passed, failed, skipped] = [0, 0, 0];
for (const version of versions) {
  const found = await findNode(version);
  if ("missing" in found) {
    console.log(`Skipped: ${found.missing}`);
    if (Deno.env.get("REQUIRE_ALL")) failed++;
    else skipped++;
    continue;
  }
  for (const counts of [await runTests(found.path, files), await runProcesses(found.path, withProcesses, program)]) {
    passed += counts.passed;
    failed += counts.failed;
    skipped += counts.skipped;
  }
  console.log(`Node ${version}: ${passed} passed, ${failed} failed so far`);
}
await Deno.remove(folder, { recursive: true });
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
Deno.exit(failed ? 1 : 0);
