// Measures the bundle size of a server, and the time to check its types.
import { BUNDLE_KIB, weighServer } from "../tests/architecture/budget_size.ts";
import { bundleEntries } from "../tests/release/npm_package.ts";
import { toMedian } from "./machine.ts";
import { type Row, toTable } from "./table.ts";

const root = new URL("../", import.meta.url).pathname;

/** Measures the bundle size of a one-tool server. Returns a Markdown table. */
export async function measureBundles(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "mcp-npm-" });
  try {
    await bundleEntries(root, folder);
    const rows = new Map([
      ["from source", (await weigh("mod.ts")).set("KiB allowed", `${BUNDLE_KIB}`)],
      ["from the npm package", await weigh(`${folder}/index.js`)],
    ]);
    return toTable("Bundle size of an HTTP server with one tool, without zod", rows);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function weigh(library: string): Promise<Row> {
  const { bytes, gzip } = await weighServer(library);
  return new Map([["KiB minified", toKb(bytes)], ["KiB gzipped", toKb(gzip)]]);
}

function toKb(bytes: number): string {
  return (bytes / 1024).toFixed(1);
}

const COUNT = 300;
const LIBRARY = `import { createServer, tool } from "${root}mod.ts";`;
const FLOOR = "plain objects, with the library imported";
/** The first lines of a file, and the text before and after the object of each tool. */
const files: Readonly<Record<string, readonly [head: string, before: string, after: string]>> = {
  "plain objects, without the library": ["", "(", ")"],
  [FLOOR]: [LIBRARY, "(", ")"],
  "tool()": [LIBRARY, "tool(", ")"],
};

// Declare the input of plain objects, because their types cannot be inferred.
function toSource([head, before, after]: readonly [string, string, string], round: number): string {
  const isTool = before === "tool(";
  const tools = Array.from({ length: COUNT }, (_, i) => {
    const input = `z.object({
  text${i}: z.string(), limit: z.number().int(), order: z.enum(["newest", "oldest"]), tags: z.array(z.string()).optional(),
})`;
    const declared = isTool ? "" : `const input${i} = ${input};\n`;
    const type = isTool ? "" : `: z.output<typeof input${i}>`;
    const run = `run: ({ text${i}, limit, tags }${type}) => text${i}.slice(limit) + (tags ?? []).join()`;
    const given = isTool ? `input: ${input}` : `input: input${i}`;
    return `${declared}export const tool${i} = ${before}{ name: "tool_${i}", ${given}, ${run} }${after};\n`;
  });
  const used = head ? 'export const server = createServer({ name: "bench", version: "1.0.0" });\n' : "";
  return `import { z } from "zod";\n${head}\n// round ${round}\n${used}${tools.join("")}`;
}

/** Returns the CPU time of all awaited child processes in seconds. */
function readChildren(): number {
  const text = Deno.readTextFileSync("/proc/self/stat");
  const stat = text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
  return (stat[13] + stat[14]) / 100;
}

/** Measures the CPU time of type checks. Returns a Markdown table. */
async function measureChecks(count: number): Promise<string> {
  const folder = await Deno.makeTempDir({ dir: root, prefix: ".bench-" });
  const times = new Map(Object.keys(files).map((name) => [name, [] as number[]]));
  try {
    for (let round = 0; round < count; round++) {
      for (const [name, parts] of Object.entries(files)) {
        // Use a new file for each round, because Deno caches the check of a file.
        const file = `${folder}/${times.size}_${round}_${name.length}.ts`;
        await Deno.writeTextFile(file, toSource(parts, Date.now()));
        const before = readChildren();
        const args = ["check", "--quiet", file];
        const { success, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd: root }).output();
        if (!success) throw new Error(`Cannot check ${name}: ${new TextDecoder().decode(stderr)}`);
        times.get(name)?.push(readChildren() - before);
      }
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  const floor = times.get(FLOOR) ?? [];
  const rows = new Map<string, Row>();
  for (const [name, seconds] of times) {
    const ratio = toMedian(seconds.map((each, i) => each / floor[i])).toFixed(2);
    rows.set(name, new Map([["s CPU", toMedian(seconds).toFixed(2)], ["× plain objects", ratio]]));
  }
  return toTable(`Time of deno check for ${COUNT} tools, each with a zod schema of four properties`, rows);
}

/** Measures bundles and type checks. Returns Markdown tables. */
export async function measureSize(count: number): Promise<string> {
  return await measureBundles() + "\n" + await measureChecks(count);
}
