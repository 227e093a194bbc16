// `check --verbose` lists the layers and middleware around each handler.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { withFiles } from "../support/command_line.ts";
import { runHere } from "./run_here.ts";

const source = `import { createServer, prompt, tool } from "@x/mcp";
import { confirm, idempotent, retry } from "@x/mcp/layers";
import { task, tasks } from "@x/mcp/tasks";
const audit = (ctx, next) => next();
const pay = tool({
  name: "pay",
  description: "Pays",
  annotations: { idempotentHint: true },
  use: [audit, retry(), confirm("Pay?"), idempotent(() => "1"), task()],
  run: () => "paid",
});
const ask = prompt({ name: "ask", description: "Asks", run: () => "?" });
export default createServer({ name: "s", version: "1.0.0", handlers: [tasks(), pay, ask], use: [audit] });`;

const steps = `
Layers and middleware, in the order in which they run:
  tool pay
    around  io.modelcontextprotocol/tasks
    around  audit
    inside  audit
    key     idempotent
    run     confirm
    run     retry
  prompt ask
    around  audit
`;

Deno.test("check --verbose lists the steps of each handler in the order in which they run", async () => {
  await withFiles({ "s.js": source }, async (cwd) => {
    const { code, stdout } = await runHere(["check", "s.js", "--verbose"], { cwd });
    assertEquals(code, 0);
    assertStringIncludes(stdout, steps);
    const json = await runHere(["check", "s.js", "--verbose", "--json"], { cwd });
    assertEquals(JSON.parse(json.stdout).steps[1], {
      place: "prompt ask",
      steps: [{ step: "around", layer: "audit" }],
    });
  });
});
