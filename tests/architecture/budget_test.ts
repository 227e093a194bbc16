// The cost of a server: bytes in a bundle, and library functions run by one call.
import { assert, assertEquals, assertGreater } from "@std/assert";
import { type CallPath, listCalledFunctions, PATHS, toFile } from "./budget_calls.ts";
import { BUNDLES, weighServer } from "./budget_size.ts";

const root = new URL("../../", import.meta.url).pathname;
const ignore = typeof Deno === "undefined"; // coverage comes from Deno, and the figures are the same on every machine

for (const { library, limit } of BUNDLES) {
  Deno.test({
    name: `a one-tool HTTP server on ${library} weighs at most ${limit} KiB minified`,
    ignore,
    async fn() {
      const { bytes } = await weighServer(library);
      assertGreater(bytes, 1024, "the bundle contains no server");
      assert(bytes <= limit * 1024, `${library}: ${bytes} bytes, ${bytes - limit * 1024} too many`);
    },
  });
}

Deno.test({
  name: "one tools/call runs at most 50 functions in at most 14 files outside the schema folder",
  ignore,
  async fn() {
    const functions = await listCalledFunctions("modern http", { kind: "plain" });
    const files = [...new Set(functions.map(toFile))].filter((path) => !path.startsWith("src/schema/"));
    const list = `\n${functions.join("\n")}`;
    assert(functions.some((key) => toFile(key) === "src/handlers/tool.ts"), `the tool did not run:${list}`);
    assert(functions.length <= 50, `${functions.length} functions:${list}`);
    assert(files.length <= 14, `${files.length} files: ${files.join(", ")}`);
  },
});

/** Functions of the library run by one asynchronous call that reports progress once. */
const mostFunctions: Readonly<Record<CallPath, number>> = {
  "modern http": 64,
  "modern stdio": 56,
  "legacy http": 92,
  "legacy stdio": 58,
};

for (const path of PATHS) {
  Deno.test({
    name: `one asynchronous call with progress, ${path}, runs at most ${mostFunctions[path]} functions`,
    ignore,
    async fn() {
      const functions = await listCalledFunctions(path);
      const list = `\n${functions.join("\n")}`;
      assertGreater(functions.length, 10, `the tool did not run:${list}`);
      assert(functions.length <= mostFunctions[path], `${functions.length} functions:${list}`);
    },
  });
}

/** The number of files that load with an entry, and their paths. */
async function listModules(entry: string): Promise<readonly string[]> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json", `${root}${entry}`] }).output();
  const { modules }: { modules: readonly Module[] } = JSON.parse(new TextDecoder().decode(stdout));
  const found = new Set<string>([new URL(`../../${entry}`, import.meta.url).href]);
  for (const url of found) {
    const { dependencies = [] } = modules.find(({ specifier }) => specifier === url) ?? {};
    // Type-only imports are not loaded, and dynamic imports are loaded later.
    for (const { code, isDynamic } of dependencies) if (code && !isDynamic) found.add(code.specifier);
  }
  return [...found].map((url) => url.replace(new URL("../../", import.meta.url).href, ""));
}

interface Module {
  readonly specifier: string;
  readonly dependencies?: readonly { readonly isDynamic?: boolean; readonly code?: { readonly specifier: string } }[];
}

for (
  const entry of [
    "mod.ts",
    "src/modern.ts",
    "src/transports/stdio/stdio.ts",
    "src/transports/http/sse_2024.ts",
    "src/transports/websocket.ts",
    "src/auth/auth.ts",
    "src/testing/testing.ts",
    "src/client/client.ts",
  ]
) {
  Deno.test({
    name: `${entry} loads no package, and no part of the command line`,
    ignore,
    async fn() {
      const modules = await listModules(entry);
      assert(modules.length > 1);
      const foreign = (name: string) => name.startsWith("src/cli/") || !name.startsWith("src/") && name !== "mod.ts";
      assertEquals(modules.filter(foreign), []);
    },
  });
}
