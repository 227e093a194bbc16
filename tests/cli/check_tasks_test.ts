// `check` warns of tasks that would repeat all their effects after a crash.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { withFiles } from "../support/command_line.ts";
import { runHere } from "./run_here.ts";
import { sentence } from "../support/messages.ts";

const source = `import { group, tool } from "@x/mcp";
import { task, tasks } from "@x/mcp/tasks";
const about = { description: "Works", input: { type: "object", properties: {} } };
const use = [task({ resume: true })];
export default [
  tasks(),
  tool({ ...about, name: "careless", use, run: async () => await fetch("https://example.com") }),
  tool({ ...about, name: "careful", use, run: async (_, { once }) => await once("a", () => 1) }),
  tool({ ...about, name: "once_only", use: [task()], run: () => "done" }),
  group("g", [tool({ ...about, name: "grouped", use, run: async () => await fetch("https://example.com") })]),
];`;

Deno.test("check warns of a task that resumes without ctx.once", async () => {
  await withFiles({ "s.ts": source }, async (cwd) => {
    const { code, stdout } = await runHere(["check", "s.ts"], { cwd });
    assertEquals(code, 0);
    assertStringIncludes(stdout, `warning: ${sentence("careless", "ctx.once", "testTask")}\n`);
    assertStringIncludes(stdout, "warning: tool g_grouped: ");
    assertEquals(stdout.match(/warning: /g)?.length, 2, stdout);
    assertEquals((await runHere(["check", "s.ts", "--strict"], { cwd })).code, 1);
  });
});
