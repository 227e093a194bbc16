// Standard output is reserved for the protocol, so other output is redirected.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { toCommand } from "../../src/testing/http_server.ts";
import { startTalk } from "../support/stdio_talk.ts";

Deno.test("while standard output is guarded, no console function writes to it; after the guard ends, all functions do", async () => {
  await using talk = startTalk(toCommand(new URL("./stdout_program.ts", import.meta.url)));
  const { code, lines, stderr } = await talk.end();
  assertEquals(lines, ["restored", "restored: 1"], stderr);
  assertEquals(code, 0);
  for (const text of ["forged", "Trace:", ": 2", "done"]) assertStringIncludes(stderr, text);
});
