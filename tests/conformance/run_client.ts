// Runs the client scenarios of the official conformance suite with client.ts on both runtimes.
//
// deno task conformance:client [--runtime deno|bun] [--spec V] [--scenario S]
import { readOptions } from "../support/options.ts";
import { listScenarios, readScenarios, runSuite, type Scenario } from "./suite.ts";

const suite = "0.2.0-alpha.12";
const versions = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/** Scenarios of the authorization extensions. These scenarios do not belong to a revision. */
const AUTHORIZATION = [
  "client-credentials-jwt",
  "client-credentials-basic",
  "enterprise-managed-authorization",
  "dpop",
  "dpop-nonce",
  "wif-jwt-bearer",
].map((name) => `auth/${name}`);
const SKILLS = ["no-prefetch", "verify-digest", "verify-size", "verify-frontmatter"].map((name) =>
  `sep-2640-client-${name}`
);
const EXTENSIONS = [...SKILLS, ...AUTHORIZATION];
const program = new URL("./client.ts", import.meta.url).pathname;
const commands: Readonly<Record<string, string>> = {
  deno: `deno run -q -A --no-check ${program}`,
  bun: `bun ${program}`,
};

async function test(command: string, name: string, spec: string): Promise<Scenario> {
  const output = await Deno.makeTempDir({ prefix: "mcp-conformance-" });
  try {
    const text = await runSuite(suite, [
      ...["client", "--command", command, "--scenario", name, "--spec-version", spec, "-o", output],
      ...EXTENSIONS.includes(name) ? ["--force"] : [],
    ]);
    const [scenario] = await readScenarios(output, "client", [name], EXTENSIONS.includes(name));
    // Whether client.ts has failed or timed out.
    const trouble = /CLIENT TIMED OUT|CLIENT EXITED WITH ERROR/.exec(text)?.[0];
    // Treat warnings in authorization scenarios as failures, because the suite only warns about forbidden uses of
    // tokens, such as another grant after a refusal.
    if (!trouble) {
      return name.startsWith("auth/") && scenario.warnings.length ? { ...scenario, status: "failed" } : scenario;
    }
    return { ...scenario, status: "failed", failures: [...scenario.failures, `${trouble}\n${text}`] };
  } finally {
    await Deno.remove(output, { recursive: true });
  }
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args, { values: ["--runtime", "--spec", "--scenario"] });
  const table: string[] = [];
  const notes: string[] = [];
  let failures = 0;
  for (const spec of versions.filter((each) => each === (options.get("--spec") ?? each))) {
    const listed = await listScenarios(suite, "client", spec);
    const names = [...new Set([...listed, ...spec === "2026-07-28" ? EXTENSIONS : []])].filter((name) =>
      name === (options.get("--scenario") ?? name)
    );
    for (const [runtime, command] of Object.entries(commands)) {
      if (runtime !== (options.get("--runtime") ?? runtime)) continue;
      for (const name of names) {
        const scenario = await test(command, name, spec);
        table.push(`${runtime.padEnd(8)}${spec.padEnd(12)}${name.padEnd(40)}${scenario.status}`);
        for (const line of scenario.warnings) notes.push(`WARNING ${runtime} ${spec} ${name} | ${line}`);
        for (const line of scenario.failures) notes.push(`FAILURE ${runtime} ${spec} ${name} | ${line}`);
        if (scenario.status !== "passed") failures++;
      }
    }
  }
  console.log(`suite ${suite}\nruntime spec        scenario                                result`);
  for (const line of [...table, ...notes]) console.log(line);
  console.log(`${table.length - failures} passed, ${failures} failed`);
  return failures === 0 && table.length > 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
