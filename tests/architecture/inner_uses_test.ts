// What the command line still takes from inside the library. The lists may only shrink.
import { assert, assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { listSources } from "../support/sources.ts";
import { findInnerUses } from "./rules.ts";

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // the syntax tree comes from Deno's linter

/** The files that the command line may import. `src/library.ts` is the entry `.`, without the start of a program. */
const open = [...Object.values(config.exports).map((path) => path.slice(2)), "src/library.ts", "src/host.ts"];
const isOpen = (path: string) => open.includes(path) || path.startsWith("src/kit/");

/** Other files of the library, each with the number of files of the command line that import it. */
const INNER_IMPORTS: Readonly<Record<string, number>> = {
  "src/client/delay.ts": 4,
  "src/client/detect_era.ts": 2,
  "src/client/form_answer.ts": 1,
  "src/client/message.ts": 1,
  "src/core/call/internals.ts": 1,
  "src/core/capacity/limits.ts": 1,
  "src/discovery/exported_handlers.ts": 2,
  "src/discovery/handler_file.ts": 1,
  "src/protocol/errors.ts": 6,
  "src/protocol/jsonrpc.ts": 23,
  "src/protocol/types.ts": 3,
  "src/runtime.ts": 7,
  "src/schema/header_params.ts": 1,
  "src/schema/json_check.ts": 1,
  "src/schema/json_schema.ts": 1,
  "src/transports/http/accept.ts": 1,
  "src/transports/http/access.ts": 6,
  "src/transports/http/access_options.ts": 1,
  "src/transports/stdio/stdout_guard.ts": 2,
};

/** How often files of the command line use the key of internal state. */
const KEYS: Readonly<Record<string, number>> = { "src/cli/config/server.ts": 1 };

Deno.test({
  name: "src/cli imports published entries, src/host.ts and src/kit/, except for a list that only shrinks",
  ignore,
  async fn() {
    const paths = await listSources("src/cli/");
    assert(paths.includes("src/cli/serve.ts") && paths.includes("src/cli/doctor/report.ts"), "src/cli was not found");
    const imports: Record<string, number> = {};
    const keys: Record<string, number> = {};
    for (const path of paths) {
      const uses = findInnerUses(path, await Deno.readTextFile(new URL(path, root)));
      for (const target of uses.imports) if (!isOpen(target)) imports[target] = (imports[target] ?? 0) + 1;
      if (uses.keys) keys[path] = uses.keys;
    }
    const state = "take what you need from an entry or src/host.ts; if a number went down, write the new one";
    assertEquals(imports, INNER_IMPORTS, state);
    assertEquals(keys, KEYS, state);
  },
});

const samples: readonly (readonly [source: string, imports: readonly string[], keys: number])[] = [
  [`import { a } from "../core/call/call.ts";\nimport type { b } from "../core/call/call.ts";`, [
    "src/core/call/call.ts",
  ], 0],
  [`export * from "../client/calls.ts";\nexport { a } from "./args.ts";`, ["src/client/calls.ts"], 0],
  [
    `let a: import("../core/call/call.ts").Call;\nawait import("../host.ts");`,
    ["src/core/call/call.ts", "src/host.ts"],
    0,
  ],
  [`import { z } from "zod";\nawait import(name);`, [], 0],
  [`import { INTERNALS } from "../core/call/internals.ts";\na[INTERNALS].b;`, ["src/core/call/internals.ts"], 1],
  [`const { [INTERNALS]: a } = b;\nc[Symbol.for("mcp.internals")]; // INTERNALS`, [], 2],
];

for (const [source, imports, keys] of samples) {
  Deno.test({
    name: `inner uses are found: ${source.replaceAll("\n", " ⏎ ")}`,
    ignore,
    fn() {
      assertEquals(findInnerUses("src/cli/a.ts", source), { imports, keys });
    },
  });
}
