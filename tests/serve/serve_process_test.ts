// Programs that use `serve`, as processes on Deno, Bun and Node.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { until } from "../support/behaviour.ts";
import { withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { run, start } from "../support/processes.ts";
import { readReply, toStatus } from "../support/requests.ts";
import { toSessionRequest } from "../support/sessions.ts";
import { ignore, open, RUNTIMES, testOn, toProgram } from "./processes.ts";

const file = toProgram("program.ts");
const ERAS = ["2026-07-28", "2025-11-25"] as const;

/** Waits until the program refuses requests. */
async function untilClosing(url: string): Promise<void> {
  await until(async () => {
    return await toStatus(fetch(new URL("/ready", url))) === 503;
  }, "the server closes");
}

for (const name of RUNTIMES) {
  for (const version of ERAS) {
    testOn(
      name,
      `on SIGTERM, a running call ends and new calls are refused, on ${name} in ${version}`,
      async (words) => {
        await using running = await open(words, file, "0");
        const { url } = running;
        assertMatch(url, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
        await using client = await connect(url, { revisions: [version] });
        const call = client.callTool("wait");
        await running.waitFor(/started/);
        running.kill("SIGTERM");
        await untilClosing(url);
        const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
        const refused = await fetch(toSessionRequest(list, {}, { url }));
        assertEquals(refused.status, 503);
        assertEquals((await readReply(refused)).error.message, sentence());
        const alive = await fetch(new URL("/health", url));
        assertEquals([alive.status, await alive.text()], [200, "{}"]);
        await (await fetch(new URL("/release", url))).text();
        assertEquals((await call).content, [{ type: "text", text: "done" }]);
        await client.close().catch(() => {});
        const { code, stderr } = await running.finished;
        assertEquals(code, 0);
        assertMatch(stderr, /disposed\s+finished/);
      },
    );
  }

  for (const [signal, code] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
    testOn(name, `a second ${signal} ends the process immediately, on ${name}`, async (words) => {
      await using running = await open(words, file, "0");
      const client = await connect(running.url);
      const call = client.callTool("wait").then(() => "result", () => "error");
      await running.waitFor(/started/);
      running.kill(signal);
      await untilClosing(running.url);
      running.kill(signal);
      const { code: found, stderr } = await running.finished;
      assertEquals(found, code);
      assert(!stderr.includes("finished"));
      assertEquals(await call, "error");
      await client.close().catch(() => {});
    });
  }

  testOn(
    name,
    `a response that never ends does not keep the process alive after a signal, on ${name}`,
    async (words) => {
      await using running = await open(words, file, "0");
      const { status, body } = await fetch(new URL("/endless", running.url));
      assertEquals(status, 200);
      running.kill("SIGTERM");
      const { code, stderr } = await running.finished;
      assertEquals(code, 0);
      assertStringIncludes(stderr, "finished");
      await body?.cancel().catch(() => {});
    },
  );

  testOn(name, `if the port is in use, the error names the port, on ${name}`, async (words) => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = taken.addr;
    await using running = await start([...words, file, `${port}`], { input: "", timeoutMs: 60_000 });
    const { code, stderr } = await running.finished;
    assert(code !== 0);
    assertStringIncludes(stderr, sentence("program", `port ${port}`, "127.0.0.1"));
  });
}

Deno.test("if Deno lacks a permission, the error names the permission", { ignore }, async () => {
  const words = ["deno", "run", "--quiet", "--no-check", "--no-prompt", file, "3999"];
  await using running = await start(words, { input: "", timeoutMs: 60_000 });
  const { code, stderr } = await running.finished;
  assertEquals(code, 1);
  assertStringIncludes(stderr, sentence("program", "--allow-net=127.0.0.1:3999"));
});

const FOLDER = `import { createServer } from "@x/mcp";
import { folder } from "@x/mcp/handlers";
import { serve as start } from "@x/mcp/serve";
const docs = folder({ path: "./docs", uri: "docs://", name: "docs" });
await start(createServer({ name: "reader", version: "1.0.0", handlers: [docs] }), { port: 0 });`;

Deno.test("if Deno lacks a permission for a part of the server, the error names the part and the permission", {
  ignore,
}, async () => {
  await withFiles({ "reader.ts": FOLDER, "docs/a.md": "a" }, async (cwd) => {
    const words = ["deno", "run", "--quiet", "--no-check", "--no-prompt", `${cwd}/reader.ts`];
    const { code, stderr } = await run(words, { cwd });
    assertEquals(code, 1, stderr);
    assertStringIncludes(stderr, sentence("reader", "folder", "--allow-read=./docs"));
  });
});
