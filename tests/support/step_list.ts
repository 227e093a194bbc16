// The steps of `deno task ok`, in the order in which they run.
import type { Step } from "./steps.ts";
import { hasWays, listTests, type Tier, toTier } from "./tiers.ts";

/** A step and its tier. */
export interface TierStep extends Step {
  readonly tier: Tier;
}

/** Number of test files that run concurrently. It exceeds the number of cores, because tests mostly wait. */
const JOBS = 4;
/** Number of runs of each test that kills processes. */
const KILLS = 5;

/** Tasks in deno.json that no step runs, each with the reason. */
export const BY_HAND: Readonly<Record<string, string>> = {
  "test": "the step `test` runs the same files directly",
  "test:bun": "the step `test:bun` runs the same files directly",
  "ok": "runs these steps",
  "schema": "writes mcp.schema.json; a test compares it",
  "docs:limits": "writes a page; a test compares it",
  "docs:events": "writes a page; a test compares it",
  "inspector:page": "bundles the page; a test compares it",
  "apps:bridge": "bundles a script; a test compares it",
  "publish:prepare": "changes a folder before it is published; tests/release/registry_test.ts runs its code",
  "publish:npm": "writes the folder that is published; tests/release/npm_package_test.ts runs its code",
  "load:worst": "takes most of an hour, and must be measured on a machine without other load",
  "load:shares": "takes minutes; tests/hostile/shares_test.ts runs one phase of each step",
  "lines": "counts lines of code; no test uses the count",
  "figures": "must be measured on a machine without other load",
  "bench": "must be measured on a machine without other load",
  "bench:peers": "must be measured on a machine without other load",
};

/** The steps of both tiers. */
export async function listSteps(): Promise<readonly TierStep[]> {
  const tests = await listTests();
  const fast = tests.filter((path) => toTier(path) === "fast");
  const slow = tests.filter((path) => toTier(path) === "slow");
  const withWays = await Promise.all(fast.map(hasWays));
  const ways = fast.filter((_path, at) => withWays[at]);
  const few = { QUICK: "1" };
  return [
    check("check"),
    check("doc-lint"),
    check("lint"),
    check("fmt"),
    documents(),
    onDeno("test", "fast", fast, { env: few }),
    onBun("test:bun", "fast", fast, { env: few }),

    check("publish:dry", "slow"),
    onDeno("test:slow", "slow", [...slow, ...ways]),
    onBun("test:slow:bun", "slow", [...slow, ...ways]),
    ...Array.from(
      { length: KILLS },
      (_, i) => onDeno(`kills:${i + 1}`, "slow", ["tests/cli/team_notes_test.ts"], { filter: "is killed" }),
    ),
    count("conformance", []),
    count("conformance", ["--runtime", "node", "--spec", "2025-11-25"]),
    count("conformance", ["--runtime", "node", "--spec", "2026-07-28"]),
    count("conformance", ["--old"]),
    count("conformance", ["--tasks"]),
    count("conformance", ["--skills"]),
    ...["2025-06-18", "2025-03-26", "2024-11-05"].map((cap) =>
      count("conformance", ["--spec", "2025-11-25", "--cap", cap])
    ),
    count("conformance:client", []),
    count("test:instances", ["--store", "redis", "--runtime", "deno"]),
    count("test:instances", ["--store", "sqlite", "--runtime", "bun"]),
    count("load:kills", ["--kills", `${KILLS}`]),
    count("load:kills", ["--rolling", "--engine", "redis", "--kills", "3"]),
    count("load:kills", ["--skew", "30000", "--engine", "redis", "--kills", "3"]),
    count("load:tasks", ["--tasks", "10"]),
    count("load:task-memory", ["--tasks", "5000"]),
    count("load:outages", ["--seconds", "3"]),
    count("load:changes", ["--seconds", "5", "--subscriptions", "2000"]),
    count("test:workerd", []),
    count("test:node", []),
    count("fuzz", []),
    count("soak", ["--minutes", "0.2"]),
    count("mutate", ["--since", "day", "--minutes", "2"]),
  ];
}

/** Returns a step for a task in deno.json that passes or fails as a whole. */
function check(name: string, tier: Tier = "fast"): TierStep {
  const command = ["deno", "task", "--quiet", name];
  return { name, tier, command, kind: "check", again: `deno task ${name}`, minutes: 5 };
}

/** Returns a step for a task in deno.json that prints its counts at the end. */
function count(task: string, options: readonly string[]): TierStep {
  const again = ["deno", "task", task, ...options].join(" ");
  const command = ["deno", "task", "--quiet", task, ...options];
  return {
    name: [task, ...options].join(" "),
    tier: "slow",
    command,
    kind: "count",
    again,
    minutes: 10,
    isAlone: true,
  };
}

/** Returns the step that type-checks and runs the examples in doc comments. */
function documents(): TierStep {
  const command = ["deno", "test", "-A", "--doc", "--reporter=dot", "--junit-path=REPORT", "mod.ts", "src"];
  return { name: "doc-test", tier: "fast", command, kind: "report", again: "deno task doc-test", minutes: 5 };
}

interface Options {
  readonly env?: Readonly<Record<string, string>>;
  /** The step runs only the tests whose name contains this text. */
  readonly filter?: string;
}

function onDeno(name: string, tier: Tier, files: readonly string[], { env, filter }: Options = {}): TierStep {
  const command = [
    "deno",
    "test",
    "-A",
    "--no-check",
    "--unstable-kv",
    "--parallel",
    "--reporter=dot",
    "--junit-path=REPORT",
    ...filter ? ["--filter", filter] : [],
    ...files,
  ];
  return { ...toTests(name, tier, { command, files }), env: { DENO_JOBS: `${JOBS}`, ...env } };
}

function onBun(name: string, tier: Tier, files: readonly string[], { env }: Options = {}): TierStep {
  const command = [
    "bun",
    "test",
    `--parallel=${JOBS}`,
    "--dots",
    "--only-failures",
    "--reporter=junit",
    "--reporter-outfile=REPORT",
    ...files.map((path) => `./${path}`),
  ];
  return { ...toTests(name, tier, { command, files }), env };
}

function toTests(name: string, tier: Tier, rest: Pick<Step, "command" | "files">): TierStep {
  const again = `deno task ok --only ${name}`;
  return { name, tier, ...rest, kind: "report", again, minutes: tier === "fast" ? 5 : 20, isAlone: true };
}
