// Measures how long the npm package's command line takes to start a server file, up to the first response over stdio.
// Between these starts, the benchmark starts a minimal stdio server that loads zod. Runs a JavaScript and a TypeScript
// file on Node, Bun and Deno.
//
// deno run -A bench/node_starts.ts [number of starts]
import { install } from "../tests/release/npm_install.ts";
import { findNode, NODE_VERSIONS } from "../tests/support/node_versions.ts";
import { toMedian } from "./machine.ts";
import { timeStarts } from "./start.ts";
import { type Row, toTable } from "./table.ts";

const SCHEMA = `z.object({ a: z.number(), b: z.number() })`;
const RESULT = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "bench", version: "1.0.0" } };
const FLOOR = `import process from "node:process";
import { z } from "zod";
${SCHEMA};
const answer = ${JSON.stringify(JSON.stringify({ jsonrpc: "2.0", id: 1, result: RESULT }))};
process.stdin.on("data", () => process.stdout.write(answer + "\\n"));
`;
const SERVER = `import { createServer, tool } from "@x/mcp";
import { z } from "zod";
const add = tool({ name: "add", input: ${SCHEMA}, run: ({ a, b }) => a + b });
export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });
`;

/** Returns the command lines that run a file, keyed by runtime. */
async function listRunners(): Promise<ReadonlyMap<string, readonly string[]>> {
  const runners = new Map<string, readonly string[]>();
  for (const version of NODE_VERSIONS) {
    const found = await findNode(version);
    if ("path" in found) runners.set(`Node ${version}`, [found.path]);
  }
  return runners.set("Bun", ["bun"]).set("Deno", ["deno", "run", "-A", "--quiet"]);
}

const count = Number(Deno.args[0] ?? 30);
const folder = await Deno.makeTempDir({ prefix: "mcp-starts-" });
try {
  const project = `${folder}/project`;
  const installed = await install(folder, project);
  for (const type of ["js", "ts"]) {
    await Deno.writeTextFile(`${project}/floor.${type}`, FLOOR);
    await Deno.writeTextFile(`${project}/server.${type}`, SERVER);
  }
  const rows = new Map<string, Row>();
  for (const [name, words] of await listRunners()) {
    for (const type of ["js", "ts"]) {
      const programs = [
        [...words, `${project}/floor.${type}`],
        [...words, `${installed}/bin.js`, `${project}/server.${type}`],
      ];
      const [floor, own] = (await timeStarts(programs, count)).map((series) => ({
        ms: toMedian(series.map(({ ms }) => ms)),
        cpu: toMedian(series.map(({ cpu }) => cpu)),
      }));
      const row: Row = new Map([
        ["floor: ms", floor.ms.toFixed(1)],
        ["served: ms", own.ms.toFixed(1)],
        ["ratio", (own.ms / floor.ms).toFixed(2)],
        ["CPU ratio", (own.cpu / floor.cpu).toFixed(2)],
      ]);
      rows.set(`${name}, .${type}`, row);
    }
  }
  console.log(toTable("Start of a file that the command line of the npm package serves", rows));
} finally {
  await Deno.remove(folder, { recursive: true });
}
