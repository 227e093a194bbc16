// Standard output is reserved for the protocol: other output is redirected.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { toCommand } from "../../src/testing/http_server.ts";
import { startTalk } from "../support/stdio_talk.ts";

Deno.test("no console function writes to standard output while it is guarded, and all functions do afterwards", async () => {
  await using talk = startTalk(toCommand(new URL("./stdout_program.ts", import.meta.url)));
  const { code, lines, stderr } = await talk.end();
  assertEquals(lines, ["restored", "restored: 1"], stderr);
  assertEquals(code, 0);
  for (const text of ["forged", "Trace:", ": 2", "done"]) assertStringIncludes(stderr, text);
});
