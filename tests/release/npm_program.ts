// The npm package's program, installed into a folder, and run in another folder without installed packages.
import { assertEquals, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { run } from "../support/processes.ts";
import { DEPENDENCIES, install } from "./npm_install.ts";
import { type NpmRegistry, serveNpmPackages } from "./npm_registry.ts";

/** The file `server.ts` in the empty folder. */
export const SERVER = `import { createServer, tool } from "${config.name}";
import { connectTest } from "${config.name}/testing";

const input = { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const;
const inc = tool({ name: "inc", description: "Adds one.", input, run: (input) => Object(input).a + 1 });
const self = tool({
  name: "self",
  description: "Calls a server of the same copy.",
  async run() {
    const client = await connectTest(createServer({ name: "inner", version: "1.0.0", handlers: [inc] }));
    const { content } = await client.callTool("inc", { a: 40 });
    await client.close();
    return content;
  },
});
export default createServer({ name: "calc", version: "1.0.0", handlers: [inc, self] });
`;

/** Returns the tarball of an installed package. */
export function toTarball(installed: string): string {
  return installed.replace(/\/project\/.*$/, "/package.tgz");
}

/**
 * Runs a function with the folder of the installed package, an empty folder, and a registry with the package and its
 * dependencies.
 */
export async function withPackage(
  run: (installed: string, folder: string, registry: NpmRegistry) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "mcp-program-" });
  try {
    const installed = await install(folder, `${folder}/project`);
    await Deno.mkdir(`${folder}/empty`);
    await Deno.writeTextFile(`${folder}/empty/server.ts`, SERVER);
    const own = { folder: installed, tarball: toTarball(installed) };
    await using registry = await serveNpmPackages({ own, others: DEPENDENCIES });
    await run(installed, `${folder}/empty`, registry);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Where the program runs, with further environment variables. */
export interface Options {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Calls tools of `server.ts`, and lists them. `words` start the program. */
export async function checkCommands(words: readonly string[], options: Options): Promise<void> {
  const called = await run([...words, "call", "server.ts", "inc", "a=1"], { ...options, timeoutMs: 60_000 });
  assertEquals([called.code, called.stdout], [0, "2\n"], called.stderr);
  const self = await run([...words, "call", "server.ts", "self"], { ...options, timeoutMs: 60_000 });
  assertEquals([self.code, self.stdout], [0, "41\n"], self.stderr);
  const inspected = await run([...words, "inspect", "server.ts"], { ...options, timeoutMs: 60_000 });
  assertEquals(inspected.code, 0, inspected.stderr);
  assertStringIncludes(inspected.stdout, "inc");
  await Deno.writeTextFile(`${options.cwd}/broken.ts`, "const a = 1;\nexport default = a;\n");
  const broken = await run([...words, "check", "broken.ts"], { ...options, timeoutMs: 60_000 });
  assertEquals(broken.code, 2);
  assertStringIncludes(broken.stderr, "/broken.ts:2");
}
