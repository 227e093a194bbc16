// What a server costs: bytes in a bundle, and library functions run by one call.
import { assert, assertEquals, assertGreater } from "@std/assert";
import { listCalledFunctions, toFile } from "./budget_calls.ts";

const root = new URL("../", import.meta.url).pathname;
const ignore = typeof Deno === "undefined"; // coverage comes from Deno, and the figures are the same wherever they are taken

/** The bytes that a one-tool server loads at its start, minified, without zod. */
async function weighServer(library: string): Promise<number> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${folder}/server.ts`,
      `import { z } from "zod";
import { createServer, tool } from "${root}${library}";
const add = tool({ name: "add", input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b });
export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });
`,
    );
    // Splitting keeps what is only loaded on demand, such as the command line, in files of its own.
    const args = [
      "build",
      "--minify",
      "--splitting",
      "--target=bun",
      "--packages=external",
      "--outdir",
      `${folder}/out`,
    ];
    const { success, stderr } = await new Deno.Command("bun", { args: [...args, `${folder}/server.ts`] }).output();
    assert(success, new TextDecoder().decode(stderr));
    return await weighFiles(`${folder}/out`, "./server.js");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The size of a bundled file and of all that it imports statically. */
async function weighFiles(folder: string, entry: string): Promise<number> {
  const files = new Map<string, number>();
  const waiting = [entry];
  for (const name of waiting) {
    if (files.has(name)) continue;
    const source = await Deno.readTextFile(`${folder}/${name}`);
    files.set(name, new TextEncoder().encode(source).length);
    for (const [, path] of source.matchAll(/\b(?:from|import)\s*["'](\.\/[^"']+)["']/g)) waiting.push(path);
  }
  return files.values().reduce((sum, bytes) => sum + bytes, 0);
}

for (const { library, limit } of [{ library: "mod.ts", limit: 66 }, { library: "src/modern.ts", limit: 53 }]) {
  Deno.test({
    name: `a one-tool HTTP server on ${library} weighs at most ${limit} KB minified`,
    ignore,
    async fn() {
      const bytes = await weighServer(library);
      assertGreater(bytes, 1024, "the bundle holds no server");
      assert(bytes <= limit * 1024, `${library}: ${bytes} bytes, ${bytes - limit * 1024} too many`);
    },
  });
}

Deno.test({
  name: "one tools/call runs at most 45 functions in at most 6 files beside the schema room",
  ignore,
  async fn() {
    const functions = await listCalledFunctions();
    const files = [...new Set(functions.map(toFile))].filter((path) => !path.startsWith("src/schema/"));
    const list = `\n${functions.join("\n")}`;
    assert(functions.some((key) => toFile(key) === "src/handlers/tool.ts"), `the tool did not run:${list}`);
    assert(functions.length <= 45, `${functions.length} functions:${list}`);
    assert(files.length <= 6, `${files.length} files: ${files.join(", ")}`);
  },
});

/** How many files load with an entry, and which. */
async function listModules(entry: string): Promise<readonly string[]> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json", `${root}${entry}`] }).output();
  const { modules }: { modules: readonly Module[] } = JSON.parse(new TextDecoder().decode(stdout));
  const found = new Set<string>([new URL(`../${entry}`, import.meta.url).href]);
  for (const url of found) {
    const { dependencies = [] } = modules.find(({ specifier }) => specifier === url) ?? {};
    // What is imported only for its types is not loaded, and what is imported by a call is loaded later.
    for (const { code, isDynamic } of dependencies) if (code && !isDynamic) found.add(code.specifier);
  }
  return [...found].map((url) => url.replace(new URL("../", import.meta.url).href, ""));
}

interface Module {
  readonly specifier: string;
  readonly dependencies?: readonly { readonly isDynamic?: boolean; readonly code?: { readonly specifier: string } }[];
}

const most: Readonly<Record<string, number>> = {
  "mod.ts": 48,
  "src/modern.ts": 40,
  "src/transports/stdio.ts": 11,
  "src/transports/http_sse.ts": 12,
  "src/transports/websocket.ts": 12,
  "src/testing/testing.ts": 33,
  "src/client/client.ts": 33,
  "src/cli/main.ts": 10,
  "src/cli/serve.ts": 62,
};

for (const [entry, limit] of Object.entries(most)) {
  Deno.test({
    name: `${entry} loads at most ${limit} files, and no package`,
    ignore,
    async fn() {
      const modules = await listModules(entry);
      assert(modules.length <= limit, `${modules.length} files: ${modules.join(", ")}`);
      assertEquals(modules.filter((name) => !name.startsWith("src/") && name !== "mod.ts"), []);
    },
  });
}
