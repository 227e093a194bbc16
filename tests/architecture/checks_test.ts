// `deno task checks` measures a copy of the server without its checks, which it makes by replacing texts of the source.
import { readFile } from "node:fs/promises";
import { assert, assertNotEquals } from "@std/assert";
import { EDITS, removeChecks } from "../load/checks_edits.ts";

for (const path of new Set(EDITS.map((edit) => edit.path))) {
  Deno.test(`every check that the comparison removes from ${path} is found exactly once`, async () => {
    const source = await readFile(new URL(`../../${path}`, import.meta.url), "utf8");
    const bare = removeChecks(path, source);
    assertNotEquals(bare, source);
    for (const { what, to } of EDITS.filter((edit) => edit.path === path)) assert(bare.includes(to), what);
  });
}
