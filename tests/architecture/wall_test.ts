// The library and the CLI are separate. Without src/cli/, the library and its tests still compile. src/cli/ compiles
// with only the published entries, src/host.ts and src/core/kit/.
import { existsSync } from "node:fs";
import { assert, assertEquals } from "@std/assert";
import { toSnapshotPath } from "../support/messages.ts";
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts"; // Deno provides the syntax tree and the type check.
import { findImports, OPEN } from "./rules.ts";

const root = new URL("../../", import.meta.url);
const isOfTool = (path: string) => path.startsWith("src/cli/") || path.startsWith("tests/cli/");

/** Tests of the whole project, including the CLI. */
const OF_PROJECT = ["tests/architecture/", "tests/release/"];

/** Returns the imports of each file, by path. */
async function readGraph(folders: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const paths = ["mod.ts", ...(await Promise.all(folders.map(listSources))).flat()];
  const toEntry = async (path: string) =>
    [path, findImports(path, await Deno.readTextFile(new URL(path, root)))] as const;
  return new Map(await Promise.all(paths.map(toEntry)));
}

/** Type-checks a copy of the given project files, and runs some of their tests. */
async function checkCopy(paths: readonly string[], tests: readonly string[] = []): Promise<void> {
  const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", root)));
  const members: readonly string[] = config.workspace;
  const workspace = members.filter((member) => paths.some((path) => path.startsWith(`${member}/`)));
  const others = [
    "deno.lock",
    "tests/clients/packages.json",
    "tests/conformance/expected.json",
    ...workspace.map((member) => `${member}/deno.json`),
    ...tests.map(toSnapshotPath).filter((path) => existsSync(new URL(path, root))),
  ];
  const folder = await Deno.makeTempDir({ prefix: "wall-" });
  try {
    for (const path of [...paths, ...others]) {
      await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.copyFile(new URL(path, root), `${folder}/${path}`);
    }
    // The copy gets its packages from Deno's cache, so it needs no node_modules.
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ ...config, workspace, nodeModulesDir: "none" }));
    const runs = [["check", "--quiet", ...paths.filter((path) => path.endsWith(".ts"))]];
    if (tests.length) runs.push(["test", "-A", "--no-check", ...tests]);
    for (const args of runs) {
      const options = { args, cwd: folder, env: { NO_COLOR: "1" } };
      const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), options).output();
      assert(success, new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr));
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

onDeno("no file, example or test of the library imports the CLI", async () => {
  const graph = await readGraph(["src/", "tests/", "examples/"]);
  assert(
    graph.has("src/cli/main.ts") && graph.has("tests/client/calls_test.ts"),
    "the test did not find the sources",
  );
  const users = [...graph].flatMap(([path, imports]) => {
    if (isOfTool(path) || OF_PROJECT.some((folder) => path.startsWith(folder))) return [];
    return imports.filter(isOfTool).map((target) => `${path} imports ${target}`);
  });
  assertEquals(users, []);
});

onDeno("without src/cli/, the library and its tests compile, and the tests pass", async () => {
  const graph = await readGraph(["src/", "tests/", "examples/", "bench/"]);
  const isLeftOut = (path: string) => isOfTool(path) || OF_PROJECT.some((folder) => path.startsWith(folder));
  const leftOut = new Set([...graph.keys()].filter(isLeftOut));
  // Leave out a file that imports a left-out file.
  for (const each of leftOut) {
    for (const [path, imports] of graph) if (imports.includes(each)) leftOut.add(path);
  }
  const paths = [...graph.keys()].filter((path) => !leftOut.has(path));
  assert(paths.length > 500, `${paths.length} files`);
  // Together, these tests load entries by name, start a process, and load a folder.
  await checkCopy(
    paths,
    ["server/options", "client/fixture", "discovery/discovery"].map((name) => `tests/${name}_test.ts`),
  );
});

onDeno(
  "src/cli/ compiles with only src/host.ts, src/core/kit/ and the published entries with their imports",
  async () => {
    const graph = await readGraph(["src/"]);
    const isOpen = (path: string) => OPEN.some((each) => each.endsWith("/") ? path.startsWith(each) : path === each);
    const kept = new Set([...graph.keys()].filter((path) => isOpen(path) || path.startsWith("src/cli/")));
    for (const path of kept) for (const next of graph.get(path) ?? []) kept.add(next);
    await checkCopy([...kept]);
  },
);
