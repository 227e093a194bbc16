// Errors in a file that cannot be loaded. The message comes first, then the stack lines in the user's files.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { explainLoadError } from "../../src/cli/load_error.ts";
import { withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runHere } from "./run_here.ts";
import { findImportRemedy } from "../../src/cli/own_imports.ts";
import { root, withFolder } from "../support/folder.ts";
import { load } from "../../src/cli/load.ts";
import { handlerFiles } from "../discovery/handler_files.ts";

const files = {
  "tool.ts": `import { createServer } from "@x/mcp";
import { add } from "./my tools (1).ts";
export default createServer({ name: "s", version: "1.0.0", handlers: add() });`,
  "my tools (1).ts": `import { tool } from "@x/mcp";
export function add() {
  // Bun's stacks have no line for a function that returns the value of a call.
  return [tool({ name: "a b", run: () => "" })];
}`,
  "layer.ts": `import { createServer, group, tool } from "@x/mcp";
import { retry } from "@x/mcp/layers";
const tools = [tool({ name: "pay", run: () => "" })];
const handlers = [group("a", [group("b", [group("c", tools)])])];
export default createServer({ name: "s", version: "1.0.0", handlers, use: [retry()] });`,
  "read.ts": `import { readFileSync } from "node:fs";
export default readFileSync("/there/is/none");`,
  "json.ts": `export default JSON.parse("{");`,
  "package.ts": `import { shout } from "./node_modules/shout/main.js";
export default shout();`,
  "node_modules/shout/main.js": `export function shout() {
  throw new Error("too loud");
}`,
};

/** Files, each with the start of the expected message and the positions that must be printed first. */
const cases: readonly (readonly [file: string, message: string, places: readonly string[]])[] = [
  ["tool.ts", "TypeError: ", ["my tools (1).ts:4:11", "tool.ts:3:"]],
  ["read.ts", "Error: ENOENT", ["read.ts:2:"]],
  ["json.ts", "SyntaxError: ", ["json.ts:1:"]],
  ["package.ts", "Error: too loud", ["package.ts:2:"]],
  ["layer.ts", "TypeError: ", ["layer.ts:5:"]],
];

Deno.test("only the stack lines in the user's files are printed", async () => {
  await withFiles(files, async (cwd) => {
    for (const [file, message, places] of cases) {
      const { code, stderr } = await runHere(["check", file], { cwd });
      const [first, second, ...lines] = decodeURIComponent(stderr).split("\n");
      assertEquals([code, first], [2, sentence(file)]);
      assert(second.startsWith(message), stderr);
      if (file === "tool.ts") assertStringIncludes(second, sentence('"a b"'));
      for (const [at, place] of places.entries()) assert(lines[at].includes(`${cwd}/${place}`), stderr);
      const shown = lines.filter((line) => line.startsWith("    at "));
      assert(shown.every((line) => line.includes(cwd) && !line.includes("node_modules")), stderr);
      assertEquals(lines.filter(Boolean).at(-1), sentence(), stderr);
    }
  });
});

const FIX = { file: "Fix it.", packages: "Fix the packages." };
const library = root.replace(/\/$/, "");

/** Frames of a stack, and what is printed of them. */
const stacks: readonly (readonly [stack: readonly string[], printed: readonly string[]])[] = [
  [
    [
      `at tool (file://${library}/src/handlers/tool.ts:1:2)`,
      "at Module.parse (file:///home/me/node_modules/zod/parse.js:11:36)",
      "at make (file:///home/me/a%20(b)/make.ts:1:2)",
      "at parse (file:///home/me/.cache/deno/npm/registry.example/zod/4.0.0/parse.js:3:4)",
      "at new Thing (file:///home/me/thing.ts:5:6)",
      "at async file:///home/me/server.ts:7:8",
      `at async importFile (file://${library}/src/cli/import_file.ts:1:2)`,
    ],
    [
      "at make (file:///home/me/a%20(b)/make.ts:1:2)",
      "at new Thing (file:///home/me/thing.ts:5:6)",
      "at async file:///home/me/server.ts:7:8",
      "(3 more in this library, packages and the runtime)",
    ],
  ],
  [
    [
      "at open (ext:deno_node/fs.ts:1:2)",
      "at https://example.com/lib.ts:1:2",
      "at fn (C:\\me\\server.ts:3:4)",
      "at x (unknown)",
    ],
    ["at fn (C:\\me\\server.ts:3:4)", "(3 more in this library, packages and the runtime)"],
  ],
  [
    ["at fn (/root/.bun/install/cache/zod@4.0.0/parse.js:1:2)", "at <anonymous> (/home/100%/server.ts:3:4)"],
    ["at <anonymous> (/home/100%/server.ts:3:4)", "(1 more in this library, packages and the runtime)"],
  ],
  [["at fn (/home/me/server.ts:3:4)"], ["at fn (/home/me/server.ts:3:4)"]],
];

Deno.test("only the stack frames in the user's files are printed, if there are any, in their order", () => {
  for (const [frames, printed] of stacks) {
    const error = new Error("broken\n    at fake (file:///home/me/fake.ts:1:2)");
    error.stack = `Error: ${error.message}\n${frames.map((frame) => `    ${frame}`).join("\n")}`;
    assertEquals(
      explainLoadError(error, FIX),
      [
        sentence(),
        `Error: ${error.message}`,
        ...printed.map((frame) => `    ${frame}`),
        "Fix it.",
      ].join("\n"),
    );
  }
});

Deno.test("an error without a message or without a stack is explained too", () => {
  const bare = Object.assign(new Error(), { stack: undefined });
  assertEquals(explainLoadError(bare, FIX), `${sentence()}\nError\nFix it.`);
  const own = Object.assign(new RangeError("far"), { stack: "no stack" });
  assertEquals(explainLoadError(own, FIX), `${sentence()}\nRangeError: far\nFix it.`);
  const long = Object.assign(new Error("x".repeat(100_000)), { stack: undefined });
  assert(explainLoadError(long, FIX).length < 3000);
});

Deno.test("the place of a syntax error is printed, as Node begins the stack with it, and no other first line", () => {
  const places = ["/home/me/my tools (1).ts:28", "C:\\me\\server.ts:3", "file:///home/me/a%20b.ts:1"];
  for (const place of places) {
    const error = new SyntaxError("Expression expected");
    error.stack = `${place}\nconst a = = 1;\n          ^\n\nSyntaxError: ${error.message}\n    at parse (node:a:1:2)`;
    assertEquals(explainLoadError(error, FIX), `Expression expected\n    at ${place}\nFix it.`);
  }
  for (const first of ["SyntaxError: in /home/me/a.ts:1", "12:30", "/home/me/a.ts", "see http://example.com:80"]) {
    const error = Object.assign(new SyntaxError("far"), { stack: `${first}\n    at parse (node:a:1:2)` });
    assert(!explainLoadError(error, FIX).includes("    at /"), first);
  }
});

Deno.test("the colors in a runtime's hint are not printed as escape codes", async () => {
  const source = 'import { z } from "no-such-package";\nexport default [z];';
  await withFiles({ "s.ts": source, "deno.json": {} }, async (cwd) => {
    for (const env of [{ FORCE_COLOR: "1", NO_COLOR: "" }, { FORCE_COLOR: "3", NO_COLOR: "" }]) {
      const { code, stderr } = await runHere(["check", "s.ts"], { cwd, env });
      assertEquals(code, 2);
      assertStringIncludes(stderr, "no-such-package");
      assertEquals(stderr.includes("\\u{1b}"), false, stderr);
    }
  });
});

Deno.test("an error in a package is not blamed on the file that imports the package", async () => {
  const loud = 'throw new Error("too loud");\n';
  const nested = 'export const all = [1].map(() => { throw new Error("too loud"); });\n';
  for (const main of [loud, nested]) {
    const source = 'import "./node_modules/loud/main.js";\nexport default [];';
    const files = { "package.json": { type: "module" }, "node_modules/loud/main.js": main, "s.ts": source };
    await withFiles(files, async (cwd) => {
      const { code, stderr } = await runHere(["check", "s.ts"], { cwd });
      assertEquals(code, 2, stderr);
      assertStringIncludes(stderr, "too loud");
      assertEquals(stderr.trim().split("\n").at(-1), sentence("packages"), stderr);
    });
  }
});

// An import of an entry point or of a name that the package does not have: the remedy names the right one, for the messages
// of each runtime. npm_start_test.ts runs such files with the packed package.

/** Messages of the runtimes about a missing name. */
const names: readonly ((name: string, module: string) => string)[] = [
  (name, module) => `The requested module '${module}' does not provide an export named '${name}'`,
  (name, module) => `Export named '${name}' not found in module '${module}'.`,
];

Deno.test("the remedy for a missing name is the entry that exports it, or the most similar name", async () => {
  for (const toMessage of names) {
    const find = (name: string, module: string) => findImportRemedy(new SyntaxError(toMessage(name, module)));
    for (const module of ["@x/mcp", "jsr:@x/mcp@^0.1.0", "npm:@x/mcp", `${root}mod.ts`]) {
      assertEquals(await find("memoryStore", module), sentence("@x/mcp/stores"));
    }
    assertEquals(await find("creatServer", "@x/mcp"), sentence("createServer"));
    assertEquals(await find("quotas", "jsr:@x/mcp@0.1.0/stores"), sentence("quota", "@x/mcp/layers"));
    // A type must not lead to a function such as `connect`.
    assertEquals(await find("Context", "@x/mcp"), sentence("type Context"));
    assertEquals(await find("zzzzzzzz", "@x/mcp"), undefined);
    for (const module of ["./local.ts", "@x/mcpx", "other", `${root}src/core/kit/json.ts`]) {
      assertEquals(await find("memoryStore", module), undefined);
    }
  }
  for (const message of [names[0]("default", "@x/mcp"), "Missing 'default' export in module '@x/mcp'."]) {
    assertEquals(await findImportRemedy(new SyntaxError(message)), sentence("default"));
  }
});

Deno.test("the remedy for a missing entry is the most similar entry, or the list of entries", async () => {
  await withFolder({ "a.ts": `import { a } from '@x/mcp/auth';\nimport { b } from '@x/mcp/store';\n` }, async (cwd) => {
    const toMessages = (entry: string) => [
      `Package subpath './${entry}' is not defined by "exports" in /home/me/node_modules/@x/mcp/package.json imported from x`,
      `[ERR_PACKAGE_PATH_NOT_EXPORTED] Package subpath './${entry}' is not defined by "exports" in 'C:\\me\\@x/mcp\\package.json'`,
      `Unknown export './${entry}' for '@x/mcp@0.1.0'.\n  Package exports:\n * .`,
      `Loading unprepared module: file:///home/me/@x/mcp/${entry}, imported from: file:///home/me/a.ts`,
    ];
    const find = (message: string) => findImportRemedy(new Error(message));
    for (const message of [...toMessages("store"), `Cannot find package '@x/mcp' imported from ${cwd}/a.ts`]) {
      assertEquals(await find(message), sentence("@x/mcp/stores"));
    }
    for (const message of toMessages("redis")) assertEquals(await find(message), sentence("@x/mcp/stores/redis"));
    for (const message of toMessages("zzzzzzzz")) assertEquals(await find(message), sentence("@x/mcp/testing"));
  });
  await withFolder({ "a.ts": `import { a } from '@x/mcp/auth';\n` }, async (cwd) => {
    assertEquals(
      await findImportRemedy(new Error(`Cannot find package '@x/mcp' imported from ${cwd}/a.ts`)),
      undefined,
    );
  });
});

// Servers made from the handlers in all files that match a pattern. `discover` loads the same files.

Deno.test("a pattern serves the handlers of the matching files, and each handler is served once", async () => {
  await withFolder(handlerFiles, async (folder) => {
    for (const pattern of ["{a,b}.ts", "*.ts", "*", "{*,*/*}.ts", "{*,_*,.*}.ts", "**/*.ts"]) {
      await using server = (await load(`${folder}/${pattern}`)).server;
      const names = server.handlers.list().map(({ name }) => name);
      assertEquals(names, pattern.includes("/") ? ["a", "b", "c"] : ["a", "b"], pattern);
    }
  });
});

Deno.test("a pattern without handlers is an error that names the pattern", async () => {
  await withFolder(
    { "x/none.ts": "export const one = 1;", "z/_a.ts": "" },
    async (folder) => {
      for (
        const [pattern, name] of [
          ["x/*.ts", "/x/none.ts"],
          ["w/*.ts", "/w/*.ts"],
          ["z/*.ts", "/z/*.ts: z/_a.ts"],
          ["x/*.js", "/x/*.js"],
        ]
      ) {
        await assertRejects(() => load(`${folder}/${pattern}`), Error, sentence(folder + name));
      }
    },
  );
});
