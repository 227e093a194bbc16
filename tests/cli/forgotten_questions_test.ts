// A handler that does not await its question is reported to the person who runs the server, in every command.
import { assertEquals } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { start } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";

/** A server whose tool `remove` ignores the answer of the user, and whose tool `keep` does not. */
const source = `import { createServer, tool } from "@x/mcp";
const schema = { type: "object", properties: { ok: { type: "boolean", default: true } } };
const ask = (ctx) => ctx.elicit("sure", { message: "Remove everything?", schema });
export default createServer({ name: "files", version: "1", handlers: [
  tool({ name: "remove", run: (_input, ctx) => { ask(ctx); return "removed"; } }),
  tool({ name: "keep", run: async (_input, ctx) => (await ask(ctx)).action }),
] });
`;

/** Returns the lines about questions that a program printed. */
function toReports(stderr: string): string[] {
  return stderr.split("\n").filter((line) => line.includes("ctx.elicit"));
}

const report = sentence('ctx.elicit("sure")', 'tools/call "remove"');

Deno.test("mcp call prints a report about a question that the handler does not await", async () => {
  await withFiles({ "server.js": source }, async (cwd) => {
    const words = ["--answer", "accept"];
    const removed = await runHere(["call", "server.js", "remove", ...words], { cwd });
    assertEquals([removed.code, removed.stdout.trim()], [0, "removed"], removed.stderr);
    assertEquals(toReports(removed.stderr), [report]);
    const kept = await runHere(["call", "server.js", "keep", ...words], { cwd });
    assertEquals([kept.stdout.trim(), toReports(kept.stderr)], ["accept", []], kept.stderr);
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: mcp serve prints one report about a question that the handler does not await`, async () => {
    await withFiles({ "server.js": source }, async (cwd) => {
      for (const revision of ["2026-07-28", "2025-11-25"] as const) {
        await using running = await start([...program, "server.js", "--http", "--port", "0"], { cwd });
        const [url] = await running.waitFor(/http:\/\/\S+\/mcp/);
        await using client = await connect(url, {
          revisions: [revision],
          onElicit: () => ({ action: "accept", content: { ok: true } }),
        });
        for (const tool of ["keep", "remove", "remove"]) await client.callTool(tool);
        await running.waitFor(/ctx\.elicit/);
        running.kill("SIGTERM");
        const { stderr } = await running.finished;
        assertEquals(toReports(stderr), [report], revision);
      }
    });
  });
}
