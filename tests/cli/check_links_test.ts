// `check` warns of tools that return only a resource link, which some clients do not pass to the model.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { run } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";
import { sentence } from "../support/messages.ts";

const source = `import { resourceLink, tool } from "@x/mcp";
const about = { description: "Works", input: { type: "object", properties: {} } };
export default [
  tool({ ...about, name: "bare", run: () => resourceLink("a://a") }),
  tool({ ...about, name: "described", run: () => ["Saved.", resourceLink("a://a")] }),
];`;

for (const { name, program } of runtimes) {
  testProcesses(`${name}: check warns of a tool that returns only a resource link`, async () => {
    await withFiles({ "s.ts": source }, async (cwd) => {
      const { code, stdout } = await run([...program, "check", "s.ts"], { cwd });
      assertEquals(code, 0);
      assertStringIncludes(stdout, `warning: ${sentence("bare", "link", "text")}\n`);
      assertEquals(stdout.match(/warning: /g)?.length, 1, stdout);
    });
  });
}
