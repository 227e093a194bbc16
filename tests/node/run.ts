// Runs the behaviour suite, and tests of features that differ between runtimes, on each supported version of Node.
//
// deno task test:node [file...]
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { listTests } from "../support/tiers.ts";

const root = new URL("../../", import.meta.url).pathname;

/** Test files and folders that run if the command line names no files. */
const TESTED = [
  "tests/apps/",
  "tests/behaviour/",
  "tests/discovery/discovery_test.ts",
  "tests/kit/base64_test.ts",
  "tests/observe/health_test.ts",
  "tests/serve/serve_test.ts",
  "tests/testing/",
  "tests/transports/stdio_test.ts",
  "tests/transports/stdio_end_test.ts",
  "tests/transports/stdout_guard_test.ts",
  "tests/worker/",
];

/**
 * Names of tests that cannot run on Node, because they replace the global `Worker`, need Deno's worker threads, or
 * serve WebSocket.
 */
const SKIPPED = [
  "other transports serve a single server, and refuse the mounted servers with an error that names them",
  "a thread that fails before its first call fails the call",
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

async function runTests(node: string, files: readonly string[]): Promise<Counts> {
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
    env: { NO_COLOR: "1" },
    stderr: "inherit",
  }).output();
  const text = new TextDecoder().decode(stdout);
  const read = (name: string) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  const counts = { passed: read("pass"), failed: read("fail") + read("cancelled"), skipped: read("skipped") };
  if (counts.failed || !counts.passed) console.log(toFailures(text));
  return counts;
}

/** Returns the part of a test report that explains the failures. */
function toFailures(text: string): string {
  const blocks = [...text.matchAll(/^ *not ok [^]*?^ +\.\.\.$/gm)].map(([block]) => block);
  return blocks.length ? blocks.join("\n") : text;
}

const all = await listTests();
const files = Deno.args.length ? Deno.args : all.filter((path) => TESTED.some((start) => path.startsWith(start)));
let [passed, failed, skipped] = [0, 0, 0];
for (const version of NODE_VERSIONS) {
  const found = await findNode(version);
  if ("missing" in found) {
    console.log(`Skipped: ${found.missing}`);
    if (Deno.env.get("REQUIRE_ALL")) failed++;
    else skipped++;
    continue;
  }
  const counts = await runTests(found.path, files);
  console.log(`Node ${version}: ${counts.passed} passed, ${counts.failed} failed`);
  passed += counts.passed;
  failed += counts.failed + (counts.passed ? 0 : 1);
  skipped += counts.skipped;
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
Deno.exit(failed ? 1 : 0);
