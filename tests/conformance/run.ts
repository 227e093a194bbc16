// Runs the official conformance suite against examples/everything.ts, which the CLI serves. A scenario passes if none
// of its checks failed. Failures in expected.json have a separate column, and are printed with their reason. The
// suite's own totals are not used, because some of its checks succeed even if the server does not respond.
//
//   deno task conformance [--runtime deno|bun|node] [--spec V] [--scenario S] [--cap V] [--old] [--tasks] [--skills]
//                         [--server FILE] [--proxy] [--behind V]
//
// --cap V sends `?cap=V`, so that the server negotiates at most revision V. Older revisions cannot be tested in another
// way, because the suite's client always proposes its newest legacy revision. --old uses the last release of the suite
// that tests only legacy revisions. --tasks and --skills run the scenarios of an extension, and a skipped check fails.
// --proxy tests a proxy in front of the server, where a skipped check fails too. With --behind V, the server behind the
// proxy serves only revision V.
import { readOptions } from "../support/options.ts";
import expected from "./expected.json" with { type: "json" };
import { readRuntime, type Runtime, serve, type Served } from "./serve.ts";
import { listScenarios, readScenarios, runSuite, type Scenario, type Status } from "./suite.ts";

/** A run of the suite: the server's runtime, and the version of the specification. */
interface Run {
  readonly runtime: Runtime;
  readonly spec: string;
  readonly cap?: string;
  readonly proxy?: string;
}

interface Expectation {
  readonly scenario: string;
  readonly spec: string;
  readonly runtime?: Runtime;
  /** Newest revision that the server negotiates in this run. If omitted, the run has no `--cap`. */
  readonly cap?: string;
  /** Revision of the server behind a proxy, or "all". If omitted, the run has no `--proxy`. */
  readonly proxy?: string;
  readonly reason: string;
}

interface Options {
  readonly runtimes: readonly Runtime[];
  readonly specs: readonly string[];
  readonly scenario?: string;
  /** Scenarios of an extension. The suite runs these scenarios one after another. */
  readonly extension?: readonly string[];
  readonly cap?: string;
  /** Revision of the server behind a proxy, or "all". `undefined` without a proxy. */
  readonly proxy?: string;
  readonly suite: string;
  readonly server: string;
}

const suites = {
  current: { version: "0.2.0-alpha.12", specs: ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] },
  old: { version: "0.1.16", specs: ["2025-06-18", "2025-11-25"] },
};

/** The scenarios of the tasks extension that have checks. */
const TASKS = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
];

const SKILLS = ["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"];

const PROXY = new URL("./proxy.ts", import.meta.url).pathname;

function toOptions(args: readonly string[]): Options {
  const values = readOptions(args, {
    values: ["--runtime", "--spec", "--scenario", "--cap", "--server", "--behind"],
    flags: ["--old", "--tasks", "--skills", "--proxy"],
  });
  const runtime = readRuntime(values.get("--runtime"));
  const suite = values.has("--old") ? suites.old : suites.current;
  const spec = values.get("--spec");
  if (spec !== undefined && !suite.specs.includes(spec)) {
    throw new Error(`Cannot test version "${spec}": suite ${suite.version} knows ${suite.specs.join(", ")}`);
  }
  const extension = values.has("--tasks") ? TASKS : values.has("--skills") ? SKILLS : undefined;
  return {
    runtimes: runtime ? [runtime] : ["deno", "bun"],
    specs: extension ? ["2026-07-28"] : spec ? [spec] : suite.specs,
    extension,
    scenario: values.get("--scenario"),
    cap: values.get("--cap"),
    proxy: values.get("--behind") ?? (values.has("--proxy") ? "all" : undefined),
    suite: suite.version,
    server: values.get("--server") ?? new URL("../../examples/everything.ts", import.meta.url).pathname,
  };
}

async function testVersion(server: Served, spec: string, options: Options): Promise<Scenario[]> {
  const output = await Deno.makeTempDir({ prefix: "mcp-conformance-" });
  try {
    const url = server.url + (options.cap ? `?cap=${options.cap}` : "");
    const choice = options.scenario ? ["--scenario", options.scenario] : ["--suite", "all"];
    const args = ["server", "--url", url, "--spec-version", spec, "-o", output];
    if (options.extension) {
      for (const name of options.extension) await runSuite(options.suite, [...args, "--scenario", name, "--force"]);
      return await readScenarios(output, "server", options.extension, true);
    }
    const text = await runSuite(options.suite, [...args, ...choice]);
    const names = options.scenario ? [options.scenario] : await listScenarios(options.suite, "server", spec);
    const scenarios = await readScenarios(output, "server", names, options.proxy !== undefined);
    if (options.scenario) console.log(text);
    return scenarios;
  } finally {
    await Deno.remove(output, { recursive: true });
  }
}

function isExpected(run: Run, name: string): (row: Expectation) => boolean {
  return (row) =>
    row.scenario === name && row.spec === run.spec && (row.runtime ?? run.runtime) === run.runtime &&
    row.cap === run.cap && row.proxy === run.proxy;
}

/** Lists unexpected failures, and expected failures that pass. The exit code depends on whether there are any. */
function findProblems(run: Run, scenarios: readonly Scenario[], rows: readonly Expectation[]): string[] {
  return scenarios.flatMap(({ name, status, failures }) => {
    const listed = rows.some(isExpected(run, name));
    if (status === "failed" && !listed) return failures.map((line) => `${name} | ${line}`);
    if (status !== "failed" && listed) return [`${name} | passes: remove it from expected.json`];
    return [];
  });
}

/** Throws if the server ignores `?cap=`. Otherwise, the run would pass without testing the older revision. */
async function checkCap(server: Served, cap: string): Promise<void> {
  const clientInfo = { name: "conformance-cap", version: "1.0.0" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const response = await fetch(`${server.url}?cap=${cap}`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
  const text = await response.text();
  if (!text.includes(`"protocolVersion":"${cap}"`)) {
    throw new Error(`Cannot test at most ${cap}: the server ignores ?cap=, and responded with ${text.slice(0, 200)}`);
  }
}

async function main(args: readonly string[]): Promise<number> {
  const options = toOptions(args);
  const table: string[] = [];
  const problems: string[] = [];
  const known: string[] = [];
  const sums: Record<Status | "known", number> = { passed: 0, failed: 0, known: 0, skipped: 0 };
  const warnings: string[] = [];
  for (const runtime of options.runtimes) {
    const { proxy } = options;
    await using behind = await serve(runtime, options.server, proxy && proxy !== "all" ? { MCP_REVISIONS: proxy } : {});
    await using gateway = proxy ? await serve(runtime, PROXY, { MCP_UPSTREAM: behind.url }) : undefined;
    const server = gateway ?? behind;
    if (options.cap) await checkCap(server, options.cap);
    for (const spec of options.specs) {
      const scenarios = await testVersion(server, spec, options);
      const run = { runtime, spec, cap: options.cap, proxy };
      const counts: typeof sums = { passed: 0, failed: 0, known: 0, skipped: 0 };
      for (const { name, status } of scenarios) {
        const row = expected.find(isExpected(run, name));
        // A scenario that passes although expected.json lists it counts as failed, because the list is out of date.
        counts[row ? status === "failed" ? "known" : "failed" : status]++;
        if (row && status === "failed") known.push(`${runtime} ${spec} ${name} | ${row.reason}`);
      }
      const cells = `${runtime.padEnd(8)}${spec.padEnd(12)}${(options.cap ?? proxy ?? "-").padEnd(12)}`;
      const checks = scenarios.reduce((sum, each) => sum + each.checks, 0);
      table.push(cells + [...Object.values(counts), checks].map((count) => String(count).padStart(8)).join(""));
      for (const name of ["passed", "failed", "known", "skipped"] as const) sums[name] += counts[name];
      for (const line of findProblems(run, scenarios, expected)) problems.push(`${runtime} ${spec} ${line}`);
      for (const { name, warnings: lines } of scenarios) {
        for (const line of lines) warnings.push(`${runtime} ${spec} ${name} | ${line}`);
      }
    }
  }
  console.log(`suite ${options.suite}\nruntime spec        cap           passed  failed   known skipped  checks`);
  for (const row of table) console.log(row);
  for (const line of warnings) console.log(`WARNING ${line}`);
  for (const line of problems) console.log(`FAILURE ${line}`);
  for (const line of known) console.log(`KNOWN ${line}`);
  const skipped = sums.known + sums.skipped;
  console.log(`${sums.passed} passed, ${sums.failed} failed${skipped ? `, ${skipped} skipped` : ""}`);
  return problems.length === 0 && sums.failed === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
