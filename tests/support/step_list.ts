// The steps of `deno task ok`, in the order in which they run.
import type { Step } from "./steps.ts";
import { hasRuntimes, hasWays, listTests, startsProcesses, type Tier, toTier, WAITING } from "./tiers.ts";

/** A step and its tier. */
export interface TierStep extends Step {
  readonly tier: Tier;
}

/**
 * Number of test files that run concurrently in a step. It exceeds the number of cores, because tests mostly wait. In the
 * fast and in the slow tier, two steps run at the same time.
 */
const JOBS = 3;
const JOBS_ALONE = 4;
/** Number of runs of each test that kills processes, in the long tier. */
const KILLS = 5;
/** The newest legacy revisions that the official suite tests only through a capped server. */
const CAPS = ["2025-06-18", "2025-03-26", "2024-11-05"];
/** Matches the names of tests that run in several combinations of revision and transport. */
const WAYS = " over [\\w+-]+\\)$";
const ENGINES = ["redis", "postgres", "sqlite", "denokv"];

/** Tasks in deno.json that no step runs, each with the reason. */
export const BY_HAND: Readonly<Record<string, string>> = {
  "test": "the step `test` runs the same files directly",
  "test:bun": "the step `test:bun` runs the same files directly",
  "ok": "runs these steps",
  "messages": "writes the snapshots that tests compare",
  "schema": "writes mcp.schema.json; a test compares it",
  "docs:clients": "writes a page; a test compares it",
  "docs:limits": "writes a page; a test compares it",
  "docs:events": "writes a page; a test compares it",
  "docs:folders": "writes a table of a page; a test compares it",
  "docs:pictures": "makes screenshots and a recording, which differ in each run",
  "docs:plots": "writes plots and figures; a test compares them",
  "site": "writes the folder that is published; tests/site/site_test.ts runs its code",
  "docs:words": "prints figures; a test compares them with their limits",
  "recipes:bundle": "bundles the recipes; a test compares the bundle",
  "inspector:page": "bundles the page; a test compares it",
  "apps:bridge": "bundles a script; a test compares it",
  "web:script": "bundles a script; a test compares it",
  "publish:prepare": "changes a folder before it is published; tests/release/registry_test.ts runs its code",
  "publish:npm": "writes the folder that is published; tests/release/npm_package_test.ts runs its code",
  "load:worst": "takes most of an hour, and must be measured on a machine without other load",
  "load:stores": "must be measured on a machine without other load",
  "load:shares": "takes minutes; tests/hostile/shares_test.ts runs one phase of each step",
  "code:savings": "prints a table of a page, which has no check",
  "lines": "counts lines of code; no test uses the count",
  "figures": "must be measured on a machine without other load",
  "bench": "must be measured on a machine without other load",
  "bench:peers": "must be measured on a machine without other load",
};

/** The steps of all tiers. */
export async function listSteps(): Promise<readonly TierStep[]> {
  const tests = await listTests();
  const fast = [...WAITING, ...tests.filter((path) => toTier(path) === "fast" && !WAITING.includes(path))];
  const slow = tests.filter((path) => toTier(path) === "slow");
  const long = tests.filter((path) => toTier(path) === "long");
  const withWays = await Promise.all(fast.map(hasWays));
  const ways = fast.filter((_path, at) => withWays[at]);
  const withRuntimes = await Promise.all(slow.map(hasRuntimes));
  const processes = slow.filter((_path, at) => withRuntimes[at]);
  const few = { QUICK: "1" };
  const others = { QUICK: "0" };
  return [
    // In each tier, the longest step begins first, and the other steps run beside it.
    onDeno("test", "fast", fast, { env: few }),
    check("fmt"),
    check("lint"),
    check("doc-lint"),
    check("check"),
    documents(),
    onBun("test:bun", "fast", fast, { env: few }),

    onDeno("test:slow", "slow", slow, { env: { ONE_RUNTIME: "1" } }),
    onBun("test:slow:bun", "slow", slow.filter((path) => !startsProcesses(path))),
    // The behaviours run on Node in the long tier, because their code is the same on each runtime.
    onNode("slow", ["--newest", "--differing"], { env: few }),
    onDeno("test:ways", "slow", ways, { env: others, filter: WAYS }),
    check("publish:dry", "slow"),
    count("conformance", []),
    ...["2025-11-25", "2026-07-28"].map((spec) => count("conformance", ["--runtime", "node", "--spec", spec])),
    count("conformance", ["--tasks"]),
    count("conformance", ["--tasks", "--proxy"]),
    count("conformance", ["--skills"]),
    count("conformance:authorization", []),
    count("test:workerd", []),
    count("frameworks", ["fastify"]),
    count("load:kills", ["--kills", "1"], { isAboutRaces: true }),
    count("load:outages", ["--seconds", "1"], { isAboutRaces: true }),

    ...Array.from(
      { length: KILLS },
      (_, i) => onDeno(`kills:${i + 1}`, "long", ["tests/cli/team_notes_test.ts"], { filter: "is killed" }),
    ),
    onBun("test:ways:bun", "long", ways, { env: others, filter: WAYS }),
    onDeno("test:long", "long", [...long, ...processes]),
    onBun("test:long:bun", "long", [...long, ...slow.filter(startsProcesses)]),
    onNode("long", []),
    onNode("long", ["--newest", "tests/stores/postgres_clients_test.ts"]),
    // The scenarios differ by revision and by authorization server, and tests/client and tests/auth test both too.
    series("conformance:client", []),
    series("conformance", ["--old"]),
    series("conformance", ["--proxy"]),
    series("conformance", ["--behind", "2025-11-25"]),
    ...CAPS.map((cap) => series("conformance", ["--spec", "2025-11-25", "--cap", cap])),
    ...["redis", "postgres", "sqlite"].flatMap((store) =>
      ["deno", "bun"].map((runtime) => series("test:instances", ["--store", store, "--runtime", runtime]))
    ),
    ...ENGINES.map((engine) => series("load:kills", ["--engine", engine, "--kills", "20"])),
    ...["2025-11-25", "2026-07-28"].map((behind) => series("load:kills", ["--proxy", behind, "--kills", "20"])),
    series("load:kills", ["--pause", "--engine", "redis", "--kills", "20"]),
    series("load:kills", ["--pause", "--engine", "postgres", "--kills", "20"]),
    series("load:kills", ["--rolling", "--engine", "redis", "--kills", "3"]),
    series("load:kills", ["--skew", "30000", "--engine", "redis", "--kills", "3"]),
    series("load:tasks", ["--tasks", "10"]),
    series("load:task-memory", ["--tasks", "5000"]),
    series("load:outages", ["--seconds", "3"]),
    series("load:changes", ["--seconds", "5", "--subscriptions", "2000"]),
    series("fuzz", []),
    series("soak", ["--minutes", "1"]),
    series("mutate", ["--since", "day", "--minutes", "2"]),

    { ...series("frameworks", []), tier: "weekly" },
    { ...series("clients", []), tier: "weekly" },
  ];
}

/** Returns a step for a task in deno.json that passes or fails as a whole. */
function check(name: string, tier: Tier = "fast"): TierStep {
  const command = ["deno", "task", "--quiet", name];
  return { name, tier, command, kind: "check", again: `deno task ${name}`, minutes: 30 };
}

/** Returns a step of the slow tier for a task in deno.json that prints its counts at the end. */
function count(
  task: string,
  options: readonly string[],
  { isAboutRaces = false }: { readonly isAboutRaces?: boolean } = {},
): TierStep {
  const again = ["deno", "task", task, ...options].join(" ");
  return {
    name: [task, ...options].join(" "),
    tier: "slow",
    command: ["deno", "task", "--quiet", task, ...options],
    kind: "count",
    again,
    minutes: 60,
    // Steps that measure rates need all cores.
    isAlone: task.startsWith("load:"),
    isRepeated: !isAboutRaces,
  };
}

/** Returns a step of the long tier. These steps measure rates and rare events, so none is repeated. */
function series(task: string, options: readonly string[]): TierStep {
  return { ...count(task, options, { isAboutRaces: true }), tier: "long", isAlone: true };
}

/** Returns the step that type-checks and runs the examples in doc comments. */
function documents(): TierStep {
  const command = ["deno", "test", "-A", "--doc", "--reporter=dot", "--junit-path=REPORT", "mod.ts", "src"];
  return { name: "doc-test", tier: "fast", command, kind: "report", again: "deno task doc-test", minutes: 30 };
}

interface Options {
  readonly env?: Readonly<Record<string, string>>;
  /** The step runs only the tests whose name matches this pattern. */
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
    ...filter ? ["--filter", `/${filter}/`] : [],
    ...files,
  ];
  return { ...toTests(name, tier, { command, files }), env: { DENO_JOBS: `${toJobs(tier)}`, ...env } };
}

function onBun(name: string, tier: Tier, files: readonly string[], { env, filter }: Options = {}): TierStep {
  const command = [
    "bun",
    "test",
    `--parallel=${toJobs(tier)}`,
    "--dots",
    "--only-failures",
    "--reporter=junit",
    "--reporter-outfile=REPORT",
    ...filter ? ["-t", filter] : [],
    ...files.map((path) => `./${path}`),
  ];
  return { ...toTests(name, tier, { command, files }), runtime: "Bun", env };
}

function toJobs(tier: Tier): number {
  return tier === "long" ? JOBS_ALONE : JOBS;
}

/** Returns a step that runs tests on Node. */
function onNode(tier: Tier, words: readonly string[], { env }: Pick<Options, "env"> = {}): TierStep {
  const command = ["deno", "run", "-A", "--no-check", "tests/node/run.ts", "--report=REPORT", ...words];
  const name = ["test:node", ...words].join(" ");
  const again = `deno task ${name}`;
  return { ...toTests(name, tier, { command }), runtime: "Node", env, again };
}

function toTests(name: string, tier: Tier, rest: Pick<Step, "command" | "files">): TierStep {
  const again = `deno task ok --only ${name}`;
  return {
    name,
    tier,
    ...rest,
    kind: "report",
    again,
    minutes: tier === "fast" ? 30 : 60,
    isAlone: tier === "long",
    isRepeated: tier === "slow",
  };
}
