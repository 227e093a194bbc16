// Runs the official conformance suite as a process, and reads its results.

export type Status = "passed" | "failed" | "skipped";

export interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

export interface Scenario {
  readonly name: string;
  readonly status: Status;
  /** The number of checks that passed. */
  readonly checks: number;
  readonly failures: readonly string[];
  readonly warnings: readonly string[];
}

/** What the suite tests. */
export type Side = "server" | "client" | "authorization";

/** Starts the suite. The lock file, import map and node_modules of this project do not affect the suite. */
export function startSuite(version: string, args: readonly string[]): Deno.ChildProcess {
  const suite = `npm:@modelcontextprotocol/conformance@${version}`;
  const flags = ["run", "-q", "-A", "--no-config", "--no-lock", "--node-modules-dir=none"];
  return new Deno.Command("deno", {
    args: [...flags, suite, ...args],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Runs the suite, and returns its output. */
export async function runSuite(version: string, args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await startSuite(version, args).output();
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}

/** Lists the scenarios that test one side with one version of the specification. */
export async function listScenarios(version: string, side: Side, spec: string): Promise<string[]> {
  const text = await runSuite(version, ["list", `--${side}`]);
  const rows = [...text.matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)];
  const names = rows.filter(([, , specs]) => specs.split(",").includes(spec)).map(([, name]) => name);
  if (names.length === 0) throw new Error(`Cannot list the scenarios of ${spec}: the suite printed\n${text}`);
  return names;
}

/** How the names of the folders with results begin. */
const PREFIXES: Readonly<Record<Side, string>> = {
  server: "server-",
  client: "",
  authorization: "authorization-server-",
};

/** Reads the results of each scenario. A scenario without results counts as failed. */
export async function readScenarios(
  directory: string,
  side: Side,
  names: readonly string[],
  isStrict = false,
): Promise<Scenario[]> {
  const folders = await listFolders(directory);
  const prefix = PREFIXES[side];
  return await Promise.all(names.map(async (name) => {
    const folder = folders.find((folder) => folder.replace(/-\d{4}-\d\d-\d\dT.*$/, "") === prefix + name);
    if (!folder) return toScenario(name, [{ id: "run", status: "FAILURE", errorMessage: "the suite left no result" }]);
    const checks: unknown = JSON.parse(await Deno.readTextFile(`${directory}/${folder}/checks.json`));
    if (!Array.isArray(checks) || !checks.every(isCheck)) throw new Error(`Cannot read the checks of ${name}`);
    return toScenario(name, isStrict ? checks.map(toStrict) : checks);
  }));
}

/** Lists the folders with results. The folder of a scenario is nested if its name contains a slash. */
async function listFolders(directory: string): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(directory))).map((entry) => entry.name);
  if (!names.includes("auth")) return names;
  const inner = await Array.fromAsync(Deno.readDir(`${directory}/auth`));
  return [...names, ...inner.map((entry) => `auth/${entry.name}`)];
}

/** A scenario passes if no check failed, and if at least one check has passed that would fail without a response. */
function toScenario(name: string, checks: readonly Check[]): Scenario {
  const toLine = (check: Check) => check.id + (check.errorMessage ? `: ${check.errorMessage}` : "");
  const failures = checks.filter((check) => check.status === "FAILURE").map(toLine);
  const warnings = checks.filter((check) => check.status === "WARNING").map(toLine);
  const passed = checks.filter((check) => check.status === "SUCCESS");
  const tested = passed.some((check) => check.id !== "wire-schema-valid");
  const status = failures.length > 0 ? "failed" : tested || warnings.length > 0 ? "passed" : "skipped";
  return { name, status, checks: passed.length, failures, warnings };
}

/**
 * Converts a skipped check to a failure. Otherwise, a server without a feature would pass the scenarios for the
 * feature.
 */
function toStrict(check: Check): Check {
  if (check.status !== "SKIPPED") return check;
  return { ...check, status: "FAILURE", errorMessage: `skipped: ${check.errorMessage ?? ""}` };
}

function isCheck(value: unknown): value is Check {
  return typeof value === "object" && value !== null && "id" in value && "status" in value;
}
