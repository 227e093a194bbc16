// Errors in a file that cannot be loaded. The message comes first, then the stack lines in the user's files.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { explainLoadError } from "../../src/cli/load_error.ts";
import { withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runHere } from "./run_here.ts";
import { root } from "../support/processes.ts";

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
