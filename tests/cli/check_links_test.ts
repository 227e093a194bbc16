// `check` warns of tools that return only a resource link, which some clients do not pass to the model.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { withFiles } from "../support/command_line.ts";
import { runHere } from "./run_here.ts";
import { sentence } from "../support/messages.ts";

const source = `import { resourceLink, tool } from "@x/mcp";
const about = { description: "Works", input: { type: "object", properties: {} } };
export default [
  tool({ ...about, name: "bare", run: () => resourceLink("a://a") }),
  tool({ ...about, name: "described", run: () => ["Saved.", resourceLink("a://a")] }),
];`;

Deno.test("check warns of a tool that returns only a resource link", async () => {
  await withFiles({ "s.ts": source }, async (cwd) => {
    const { code, stdout } = await runHere(["check", "s.ts"], { cwd });
    assertEquals(code, 0);
    assertStringIncludes(stdout, `warning: ${sentence("bare", "link", "text")}\n`);
    assertEquals(stdout.match(/warning: /g)?.length, 1, stdout);
  });
});
