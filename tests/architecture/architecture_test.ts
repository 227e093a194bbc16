// Enforces the structure of src/: which imports are allowed, and which names files must not use.
import { assert, assertEquals } from "@std/assert";
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts";
import { pageFile, rows, toTable } from "../release/folders_page.ts";
import { withTables } from "../release/page_tables.ts";
import { findImports, findViolations } from "./rules.ts";
import config from "../../deno.json" with { type: "json" };
import { findCircles } from "./import_circles.ts";
import { readdir, readFile } from "node:fs/promises";

const root = new URL("../../", import.meta.url);
onDeno("every file of the library follows the rules for its folder, and the core imports no package", async () => {
  const paths = [...await listSources("src/"), "mod.ts"];
  assert(
    paths.includes("src/server/call/call.ts") && paths.includes("src/server/server.ts"),
    "the test did not find the library",
  );
  const violations: string[] = [];
  for (const path of paths) violations.push(...findViolations(path, await Deno.readTextFile(new URL(path, root))));
  assertEquals(violations, []);
});

interface Sample {
  readonly path: string;
  readonly source: string;
  /**
   * The rule that must report an error, on line 1 unless `line` is set; `undefined` if the code must pass all rules.
   */
  readonly rule?: string;
  readonly line?: number;
}

const samples: readonly Sample[] = [
  // import direction
  { path: "src/core/protocol/a.ts", source: `import { b } from "./b.ts";` },
  {
    path: "src/core/protocol/a.ts",
    source: `import type { b } from "../../server/call/call.ts";`,
    rule: "import-direction",
  },
  { path: "src/core/kit/a.ts", source: `import { b } from "./b.ts";` },
  { path: "src/core/kit/a.ts", source: `import type { b } from "../protocol/errors.ts";`, rule: "import-direction" },
  { path: "src/core/kit/a.ts", source: `import "../runtime.ts";`, rule: "import-direction" },
  { path: "src/core/protocol/a.ts", source: `import { b } from "../kit/printable.ts";` },
  { path: "src/server/capacity/a.ts", source: `import { b } from "../../core/kit/printable.ts";` },
  // the CLI
  {
    path: "src/cli/a.ts",
    source: `import { b } from "../core/kit/printable.ts";\nimport "../host.ts";\nimport "./b.ts";`,
  },
  { path: "src/cli/a.ts", source: `import "../library.ts";\nimport type { C } from "../client/client.ts";` },
  { path: "src/cli/doctor/a.ts", source: `export * from "../../server/transports/stdio/stdio.ts";` },
  { path: "src/cli/a.ts", source: `import "../client/calls.ts";`, rule: "import-direction" },
  { path: "src/cli/a.ts", source: `import type { D } from "../core/runtime.ts";`, rule: "import-direction" },
  { path: "src/cli/a.ts", source: `import { isObject } from "../core/protocol/jsonrpc.ts";`, rule: "import-direction" },
  { path: "src/cli/a.ts", source: `let a: import("../server/call/call.ts").Call;`, rule: "import-direction" },
  { path: "src/cli/a.ts", source: `import "../../mod.ts";` },
  { path: "src/cli/inspector/a.ts", source: `import "./browser/b.ts";\nimport "../platform.ts";` },
  { path: "src/cli/inspector/browser/a.ts", source: `import "./b.ts";\nimport "../../../core/schema/json_check.ts";` },
  { path: "src/cli/inspector/browser/a.ts", source: `import "../../../core/protocol/uri_template.ts";` },
  { path: "src/cli/inspector/browser/a.ts", source: `import "../../platform.ts";`, rule: "import-direction" },
  { path: "src/cli/inspector/browser/a.ts", source: `import "../../../client/client.ts";`, rule: "import-direction" },
  { path: "src/cli/a.ts", source: `a[INTERNALS].b;`, rule: "internal-key" },
  { path: "src/cli/a.ts", source: `const { [INTERNALS]: a } = b;`, rule: "internal-key" },
  { path: "src/cli/a.ts", source: `a[Symbol.for("mcp.internals")]; // INTERNALS`, rule: "internal-key" },
  { path: "src/client/a.ts", source: `a[INTERNALS].b;` },
  { path: "src/core/schema/a.ts", source: `export { b } from "../../server/call/call.ts";`, rule: "import-direction" },
  { path: "src/server/engine/a.ts", source: `export * from "../handlers/tool.ts";`, rule: "import-direction" },
  {
    path: "src/server/engine/a.ts",
    source: `const a = await import("../handlers/tool.ts");`,
    rule: "import-direction",
  },
  { path: "src/server/engine/a.ts", source: `const a = await import(name);`, rule: "computed-import" },
  { path: "src/cli/a.ts", source: `const a = await import(name);` },
  { path: "src/cli/a.ts", source: "await import(`../server/eras/eras.ts`);", rule: "import-direction" },
  { path: "src/server/engine/a.ts", source: `let a: import("../handlers/tool.ts").Tool;`, rule: "import-direction" },
  { path: "src/server/engine/a.ts", source: `import "../../../mod.ts";`, rule: "import-direction" },
  { path: "src/server/engine/a.ts", source: `import "../visibility/feature.ts";` },
  { path: "src/server/visibility/a.ts", source: `import "../call/call.ts";` },
  { path: "src/server/visibility/a.ts", source: `import type { Core } from "../core.ts";`, rule: "import-direction" },
  { path: "src/server/call/a.ts", source: `import "../services/lazy_container.ts";`, rule: "import-direction" },
  { path: "src/server/capacity/a.ts", source: `import "../call/call.ts";`, rule: "import-direction" },
  { path: "src/server/engine/a.ts", source: `// import "../../../mod.ts";\nconst a = 'import "../../../mod.ts"';` },
  { path: "src/server/handlers/a.ts", source: `import "../call/call.ts";` },
  { path: "src/server/handlers/a.ts", source: `import "../transports/http.ts";`, rule: "import-direction" },
  { path: "src/server/eras/a.ts", source: `import "../handlers/tool.ts";`, rule: "import-direction" },
  { path: "src/server/eras/modern/a.ts", source: `import "../../call/call.ts";` },
  { path: "src/server/eras/modern/a.ts", source: `import "../eras.ts";`, rule: "import-direction" },
  { path: "src/server/eras/eras.ts", source: `import "./modern/meta_keys.ts";` },
  { path: "src/server/eras/modern/a.ts", source: `import "../../transports/http.ts";`, rule: "import-direction" },
  { path: "src/server/eras/modern/a.ts", source: `import "../legacy/session.ts";`, rule: "import-direction" },
  { path: "src/server/eras/legacy/a.ts", source: `import "../modern/stamp.ts";`, rule: "import-direction" },
  { path: "src/server/eras/eras.ts", source: `import "./legacy/session.ts";`, rule: "import-direction" },
  { path: "src/server/transports/a.ts", source: `import "../eras/eras.ts";`, rule: "import-direction" },
  { path: "src/server/server.ts", source: `import "./eras/eras.ts";\nimport "./transports/http.ts";` },
  { path: "src/auth/a.ts", source: `import "../server/call/call.ts";` },
  { path: "src/auth/a.ts", source: `import "../stores/kv.ts";`, rule: "import-direction" },
  { path: "src/auth/a.ts", source: `import "./oauth/oauth.ts";`, rule: "import-direction" },
  { path: "src/auth/a.ts", source: `import { jwtVerify } from "jose";`, rule: "import-direction" },
  { path: "src/auth/oauth/a.ts", source: `import { jwtVerify } from "jose";\nimport "../principal.ts";` },
  { path: "src/auth/oauth/a.ts", source: `import { customFetch } from "oauth4webapi";` },
  { path: "src/client/a.ts", source: `import { customFetch } from "oauth4webapi";`, rule: "import-direction" },
  { path: "src/stores/a.ts", source: `import "../server/server.ts";`, rule: "import-direction" },
  {
    path: "src/testing/a.ts",
    source: `import "../server/server.ts";\nimport "../server/transports/http.ts";`,
  },
  { path: "src/client/a.ts", source: `import "../server/transports/channel.ts";` },
  { path: "src/client/a.ts", source: `import "../server/server.ts";`, rule: "import-direction" },
  { path: "src/client/a.ts", source: `import "../library.ts";`, rule: "import-direction" },
  { path: "src/server/server.ts", source: `import "../client/client.ts";`, rule: "import-direction" },
  { path: "src/client/a.ts", source: `import "../../mod.ts";`, rule: "import-direction" },
  { path: "src/library.ts", source: `import "./server/eras/legacy/session.ts";\nimport "./server/eras/eras.ts";` },
  { path: "src/library.ts", source: `import("./cli/main.ts");`, rule: "import-direction" },
  { path: "src/hand_over.ts", source: `import(name);` },
  { path: "src/hand_over.ts", source: `import("./cli/main.ts");`, rule: "import-direction" },
  { path: "src/client/a.ts", source: `import "../server/eras/eras.ts";`, rule: "import-direction" },
  { path: "src/new_folder/a.ts", source: `import "../server/call/call.ts";`, rule: "import-direction" },
  { path: "mod.ts", source: `import "./src/hand_over.ts";\nimport "./src/library.ts";` },
  { path: "mod.ts", source: `import("./src/cli/main.ts");`, rule: "import-direction" },
  { path: "mod.ts", source: `import(name);`, rule: "computed-import" },
  // packages
  { path: "src/server/engine/a.ts", source: `import { z } from "zod";`, rule: "import-direction" },
  { path: "src/stores/a.ts", source: `import type { R } from "npm:redis@5";`, rule: "import-direction" },
  { path: "src/server/engine/a.ts", source: `import "https://example.com/a.ts";`, rule: "import-direction" },
  { path: "mod.ts", source: `import { z } from "zod";`, rule: "import-direction" },
  { path: "src/cli/a.ts", source: `import { z } from "zod";\nlet a: typeof import("yaml");` },
  { path: "src/cli/a.ts", source: `import { z } from "npm:zod@4";`, rule: "import-direction" },
  { path: "src/cli/a.ts", source: `import { red } from "@std/fmt";`, rule: "import-direction" },
  // Words for eras.
  { path: "src/server/engine/a.ts", source: `const isLegacy = true;`, rule: "era-word" },
  { path: "src/server/transports/a.ts", source: `const a = 1; // the modern way`, rule: "era-word" },
  { path: "src/server/server.ts", source: `const a = ["2025-11-25"];`, rule: "era-word" },
  {
    path: "src/server/engine/a.ts",
    source: `/**\n * Pages, from \`specification/2026-07-28/server/tools\`.\n */\nconst a = 1;`,
  },
  { path: "src/server/engine/a.ts", source: `// as of 2026-07-28`, rule: "era-word" },
  { path: "src/server/engine/a.ts", source: `const a = "specification/2026-07-28/server/tools";`, rule: "era-word" },
  { path: "src/core/schema/a.ts", source: `const a = "draft/2020-12/schema";` },
  { path: "src/server/eras/modern/a.ts", source: `const a = "2026-07-28";` },
  { path: "src/testing/a.ts", source: `const a = "2026-07-28";` },
  // runtime names
  { path: "src/server/transports/a.ts", source: `process.exit(1);`, rule: "runtime-name" },
  {
    path: "src/server/transports/a.ts",
    source: `const a = 1;\nglobalThis.process.exit(a);`,
    rule: "runtime-name",
    line: 2,
  },
  { path: "src/client/a.ts", source: `globalThis["process"];`, rule: "runtime-name" },
  { path: "src/server/engine/a.ts", source: `Buffer.from("");`, rule: "runtime-name" },
  { path: "src/server/engine/a.ts", source: `const a = "node:fs";`, rule: "runtime-name" },
  { path: "src/server/engine/a.ts", source: `const a = new ArrayBuffer(1); // a Buffer would process this` },
  { path: "src/cli/a.ts", source: `process.exit(1);\nawait import("node:fs");` },
  { path: "src/core/runtime.ts", source: `process.exit(1);` },
  { path: "src/client/a.ts", source: `import "node:fs";`, rule: "import-direction runtime-name" },
  // runtime globals
  { path: "src/core/runtime.ts", source: `const { Deno: deno, Bun: bun } = globalThis as Globals; // typed here` },
  { path: "src/core/runtime.ts", source: `import "./schema/schema.ts";`, rule: "import-direction" },
  { path: "src/client/a.ts", source: `import { deno } from "../core/runtime.ts";` },
  { path: "src/server/engine/a.ts", source: `import { deno } from "../../core/runtime.ts";` },
  { path: "src/core/protocol/a.ts", source: `import { deno } from "../runtime.ts";`, rule: "import-direction" },
  { path: "src/cli/platform.ts", source: `Deno.exit(1);`, rule: "runtime-global" },
  { path: "src/client/a.ts", source: `const a = globalThis["Bun"];`, rule: "runtime-global" },
  { path: "src/client/a.ts", source: `const { Deno: deno } = globals;`, rule: "runtime-global" },
  {
    path: "src/client/a.ts",
    source: `// neither runtime has the other's types\nconst { alert } = globalThis as Page;`,
    rule: "runtime-global",
    line: 2,
  },
  { path: "src/client/a.ts", source: `const runtime = "deno"; // Deno or Bun` },
  // types
  { path: "src/server/engine/a.ts", source: `let a: any;`, rule: "any-type" },
  {
    path: "src/server/engine/a.ts",
    source: `// deno-lint-ignore no-explicit-any\nlet a: Array<any>;`,
    rule: "any-type",
    line: 2,
  },
  { path: "src/server/engine/a.ts", source: `const a = "any" as const; // for any caller` },
  { path: "src/server/engine/a.ts", source: `const a = ["b"] as const;` },
  { path: "src/server/engine/a.ts", source: `const a = b as constant;`, rule: "cast-reason" },
  { path: "src/server/engine/a.ts", source: `const a = b as string;`, rule: "cast-reason" },
  { path: "src/server/engine/a.ts", source: `const a = b as string; // checked by the caller` },
  { path: "src/server/engine/a.ts", source: `// checked by the caller\nconst a = b as string;` },
  {
    path: "src/server/engine/a.ts",
    source: `// a reason for something else\n\nconst a = b as string;`,
    rule: "cast-reason",
    line: 3,
  },
  {
    path: "src/server/engine/a.ts",
    source: `/** A name. */\nexport const a = b as string;`,
    rule: "cast-reason",
    line: 2,
  },
  { path: "src/server/engine/a.ts", source: `// @ts-ignore\nconst a = b as string;`, rule: "cast-reason", line: 2 },
  { path: "src/server/engine/a.ts", source: `const a = <string> b;`, rule: "cast-reason" },
  { path: "src/server/engine/a.ts", source: `import { a as b } from "./b.ts";` },
  // fields of calls
  { path: "src/layers/quota/a.ts", source: `call.timeoutMs = 1;`, rule: "call-field" },
  { path: "src/server/engine/grant.ts", source: `call.asks ??= true;`, rule: "call-field" },
  { path: "src/server/handlers/a.ts", source: `this.#inner.onRun = () => {};`, rule: "call-field" },
  { path: "src/server/eras/modern/a.ts", source: `outer.weight++;`, rule: "call-field" },
  { path: "src/server/eras/legacy/a.ts", source: `delete this.#call.inputs;`, rule: "call-field" },
  { path: "src/testing/a.ts", source: `sessionCall["asks"] = true;`, rule: "call-field" },
  { path: "src/server/engine/scheduler.ts", source: `call.onCancel = () => {};` },
  { path: "src/server/call/deadline.ts", source: `call.deadline = undefined;` },
  { path: "src/server/eras/legacy/a.ts", source: `session.call = call.id;` },
  { path: "src/server/eras/legacy/a.ts", source: `call.whenCancelled(() => {});` },
];

for (const { path, source, rule, line = 1 } of samples) {
  onDeno(`the rule ${rule ?? "none"} reports ${path}: ${source.replaceAll("\n", " ⏎ ")}`, () => {
    const found = findViolations(path, source).map((text) => text.split(" ").slice(0, 2).join(" "));
    assertEquals(found, rule?.split(" ").map((rule) => `architecture/${rule} ${path}:${line}`) ?? []);
  });
}

onDeno("architecture.md lists each folder of src/ with its task, and with the folders that it can import", async () => {
  const folders = [...Deno.readDirSync(new URL("../../src/", import.meta.url))].filter((entry) => entry.isDirectory);
  assertEquals(folders.map(({ name }) => name).sort(), [...rows].sort());
  const page = await Deno.readTextFile(pageFile);
  assertEquals(
    page,
    withTables(page, [await toTable()]),
    'architecture.md is out of date; run "deno task docs:folders"',
  );
});

// The ready-made layers are built with the public contract, so that anybody can write the next one.

const FOLDER = "src/layers/";

/** What a layer of a third party can import too. `./layers` exports `layer` and its types from these files. */
const LAYER_PUBLIC = [
  "src/server/engine/added.ts",
  "src/server/engine/layers.ts",
  "src/server/handlers/added_parts.ts",
  "src/server/handlers/layer.ts",
  "src/library.ts",
  "src/extensions/extension.ts",
];

/** Helpers that check options, and recognize errors and promises, which a third party writes itself. */
const HELPERS = [
  "src/core/known_options.ts",
  "src/core/protocol/errors.ts",
  "src/core/protocol/promises.ts",
  "src/core/kit/",
];

// Only Deno has the parser.
onDeno("ready-made layers use only public names, and helpers that know nothing of a server", async () => {
  const found: string[] = [];
  let files = 0;
  for await (const { name, isFile } of Deno.readDir(new URL(FOLDER, root))) {
    // The quota has an internal companion, because its queues and counters would double the public interface.
    if (!isFile || !name.endsWith(".ts")) continue;
    files++;
    const path = FOLDER + name;
    const isAllowed = (target: string) =>
      LAYER_PUBLIC.includes(target) || [FOLDER, ...HELPERS].some((start) => target.startsWith(start));
    const source = await Deno.readTextFile(new URL(path, root));
    found.push(...findImports(path, source).filter((target) => !isAllowed(target)).map((to) => `${path}: ${to}`));
  }
  assertEquals(found, []);
  assertEquals(files > 5, true);
});

// The page about extensions names the functions that tasks, apps and skills import although no entry point exports them.

/** Entry points, and files whose names entry points export. */
const PUBLIC = [...Object.values(config.exports), "./src/library.ts"];

onDeno("docs/reference/writing-an-extension.md names the internal functions that the extensions import", async () => {
  const page = await Deno.readTextFile(new URL("docs/reference/writing-an-extension.md", root));
  const unnamed: string[] = [];
  for (const path of await listSources("src/extensions/")) {
    if (/\/(client|browser)\//.test(path)) continue;
    const text = await Deno.readTextFile(new URL(path, root));
    for (const [, names, from] of text.matchAll(/^import (?!type )\{([^}]*)\} from "(\.\.\/[^"]+)";/gm)) {
      const file = new URL(from, new URL(path, root)).href.slice(root.href.length);
      if (/^src\/(core|extensions)\//.test(file) || PUBLIC.includes(`./${file}`)) continue;
      const values = names.split(",").map((name) => name.trim()).filter((name) => name && !name.startsWith("type "));
      unnamed.push(...values.filter((name) => !page.includes(`\`${name}\``)).map((name) => `${path}: ${name}`));
    }
  }
  assertEquals(unnamed, []);
});

// No file of the library imports itself through other files: circular imports by a value, a type or a literal
// `import()` are not allowed.

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

// A task extension, a token check and a metrics observer import only published entries, which shows that the public API
// is sufficient for them.

const published = Object.keys(config.exports).map((path) => config.name + path.slice(1));
const tests = new URL("../", import.meta.url);

/** By folder, the files of each program, and the packages that the program imports. */
const proofs = {
  "extensions/": { files: /^task_extension\.ts$/, packages: ["zod"] },
  "auth/": { files: /^token_check\.ts$/, packages: [] },
  "core/": { files: /^metrics(_program|_server)?\.ts$/, packages: [] },
};

for (const [folder, { files, packages }] of Object.entries(proofs)) {
  Deno.test(`${folder} has a program that imports only published entries`, async () => {
    const names = (await readdir(new URL(folder, tests))).filter((name) => files.test(name));
    assert(names.length, "the test did not find the files");
    const own = names.map((name) => `./${name}`);
    for (const name of names) {
      const source = await readFile(new URL(folder + name, tests), "utf8");
      const imports = [...source.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].map(([, name]) => name);
      assert(imports.some((name) => published.includes(name)), `${name} does not import the library`);
      const others = imports.filter((name) => ![...published, ...packages, ...own].includes(name));
      assertEquals(others, [], name);
    }
  });
}
