// The official conformance suite as a program: starts it, and reads its results.

export type Status = "passed" | "failed" | "skipped";

export interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

export interface Scenario {
  readonly name: string;
  readonly status: Status;
  readonly failures: readonly string[];
  readonly warnings: readonly string[];
}

/** The suite is a separate program: no lock file, import map or node_modules of this project affects it. */
export async function runSuite(version: string, args: readonly string[]): Promise<string> {
  const suite = `npm:@modelcontextprotocol/conformance@${version}`;
  const flags = ["run", "-q", "-A", "--no-config", "--no-lock", "--node-modules-dir=none"];
  const { stdout, stderr } = await new Deno.Command("deno", {
    args: [...flags, suite, ...args],
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}

/** The scenarios that test a server, or a client, at one version of the specification. */
export async function listScenarios(version: string, side: "server" | "client", spec: string): Promise<string[]> {
  const text = await runSuite(version, ["list", `--${side}`]);
  const rows = [...text.matchAll(/^ {2}- (\S+) \[(.*)\]$/gm)];
  const names = rows.filter(([, , specs]) => specs.split(",").includes(spec)).map(([, name]) => name);
  if (names.length === 0) throw new Error(`Cannot list the scenarios of ${spec}: the suite printed\n${text}`);
  return names;
}

/** Reads the results of each scenario. A scenario without results has failed. */
export async function readScenarios(
  directory: string,
  side: "server" | "client",
  names: readonly string[],
  isStrict = false,
): Promise<Scenario[]> {
  const folders = await listFolders(directory);
  const prefix = side === "server" ? "server-" : "";
  return await Promise.all(names.map(async (name) => {
    const folder = folders.find((folder) => folder.replace(/-\d{4}-\d\d-\d\dT.*$/, "") === prefix + name);
    if (!folder) return toScenario(name, [{ id: "run", status: "FAILURE", errorMessage: "the suite left no result" }]);
    const checks: unknown = JSON.parse(await Deno.readTextFile(`${directory}/${folder}/checks.json`));
    if (!Array.isArray(checks) || !checks.every(isCheck)) throw new Error(`Cannot read the checks of ${name}`);
    return toScenario(name, isStrict ? checks.map(toStrict) : checks);
  }));
}

/** The folders of the results. A scenario with a slash in its name has nested folders. */
async function listFolders(directory: string): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(directory))).map((entry) => entry.name);
  if (!names.includes("auth")) return names;
  const inner = await Array.fromAsync(Deno.readDir(`${directory}/auth`));
  return [...names, ...inner.map((entry) => `auth/${entry.name}`)];
}

/**
 * A scenario passes if none of its checks failed, and at least one check would fail against a server that does not
 * respond.
 */
function toScenario(name: string, checks: readonly Check[]): Scenario {
  const toLine = (check: Check) => check.id + (check.errorMessage ? `: ${check.errorMessage}` : "");
  const failures = checks.filter((check) => check.status === "FAILURE").map(toLine);
  const warnings = checks.filter((check) => check.status === "WARNING").map(toLine);
  const tested = checks.some((check) => check.status === "SUCCESS" && check.id !== "wire-schema-valid");
  const status = failures.length > 0 ? "failed" : tested || warnings.length > 0 ? "passed" : "skipped";
  return { name, status, failures, warnings };
}

/** A fixture without a feature would pass the skipped checks of this feature. */
function toStrict(check: Check): Check {
  if (check.status !== "SKIPPED") return check;
  return { ...check, status: "FAILURE", errorMessage: `skipped: ${check.errorMessage ?? ""}` };
}

function isCheck(value: unknown): value is Check {
  return typeof value === "object" && value !== null && "id" in value && "status" in value;
}
