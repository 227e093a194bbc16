// No file of the library imports itself through other files: circular imports by a value, a type or a literal
// `import()` are not allowed.
import { assert, assertEquals } from "@std/assert";
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts"; // Deno's linter provides the syntax tree.
import { findCircles } from "./import_circles.ts";
import { findImports } from "./rules.ts";

const root = new URL("../../", import.meta.url);
onDeno("the library has no circular imports of values or types, or by literal import()", async () => {
  const graph = new Map<string, readonly string[]>();
  for (const path of [...await listSources("src/"), "mod.ts"]) {
    graph.set(path, findImports(path, await Deno.readTextFile(new URL(path, root))));
  }
  assert(graph.get("mod.ts")?.includes("src/library.ts") && graph.size > 300, "the test did not find the library");
  // All imported paths must be files of the graph, because the search would not follow any other path.
  assertEquals([...graph.values()].flat().filter((path) => path.endsWith(".ts") && !graph.has(path)), []);
  assertEquals(findCircles(graph), [], "move the code that both files need to a third file that both import");
});

const imports: readonly (readonly [source: string, imports: readonly string[]])[] = [
  [`import { a } from "./b.ts";\nimport "../server/call/call.ts";`, ["src/cli/b.ts", "src/server/call/call.ts"]],
  [`import type { a } from "./b.ts";\nimport { type c } from "./d.ts";`, ["src/cli/b.ts", "src/cli/d.ts"]],
  [`export * from "./b.ts";\nexport type { a } from "./c.ts";`, ["src/cli/b.ts", "src/cli/c.ts"]],
  [`let a: import("./b.ts").B;`, ["src/cli/b.ts"]],
  [`let a: typeof import("./b.ts");`, ["src/cli/b.ts"]],
  [`load<typeof import("./b.ts")>(name);`, ["src/cli/b.ts"]],
  [`function a() {\n  return import("./b.ts").then(c);\n}`, ["src/cli/b.ts"]],
  ["await import(`./b.ts`);", ["src/cli/b.ts"]],
  [`import a from "./b.ts";\nimport c from "./b.ts";`, ["src/cli/b.ts"]],
  [`import config from "../../deno.json" with { type: "json" };`, ["deno.json"]],
  [`import { z } from "zod";\nawait import(name);`, []],
  [`// import "./b.ts";\nconst a = 'import "./b.ts"';`, []],
];

for (const [source, found] of imports) {
  onDeno(`the search finds the imports in ${source.replaceAll("\n", " ⏎ ")}`, () => {
    assertEquals(findImports("src/cli/a.ts", source), found);
  });
}

/** Graphs such as `a>b b>c`, each with the imports in each cycle. */
const graphs: readonly (readonly [graph: string, circles: readonly string[]])[] = [
  ["a>b a>c b>c", []],
  ["a>a", ["a>a"]],
  ["a>b b>a", ["a>b b>a"]],
  ["a>b b>c c>b", ["b>c c>b"]],
  ["a>b b>c c>a c>d d>e", ["a>b b>c c>a"]],
  ["a>b b>a c>d d>c a>c", ["a>b b>a", "c>d d>c"]],
  ["a>b b>a b>c c>b", ["a>b b>a b>c c>b"]],
  ["a>x x>a", ["a>x x>a"]],
];

for (const [text, circles] of graphs) {
  Deno.test(`the cycles in the graph ${text} are ${circles.join(", ") || "none"}`, () => {
    const graph = new Map<string, string[]>();
    for (const [from, to] of text.split(" ").map((edge) => edge.split(">"))) {
      graph.set(from, [...graph.get(from) ?? [], to]);
      if (!graph.has(to)) graph.set(to, []);
    }
    const found = findCircles(graph).map((edges) => edges.map((edge) => edge.replace(" imports ", ">")).join(" "));
    assertEquals(found, circles);
  });
}
