// A proxy of a command: its process, the questions of several callers at the same time, and what a crash costs.
import { execFile } from "node:child_process";
import process from "node:process";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { proxy, type ProxyOptions } from "../../src/proxy/proxy.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { withFolder } from "../support/folder.ts";
import { sentence } from "../support/messages.ts";

const file = new URL("./stdio_upstream.ts", import.meta.url).pathname;

function proxyOfCommand(hasSessions: boolean, options: ProxyOptions = {}) {
  const args = typeof Deno === "undefined" ? [file] : ["run", "-A", "--no-check", file];
  const env: Record<string, string> = hasSessions ? { SESSIONS: "1" } : {};
  return proxy({ command: process.execPath, args, env }, { name: "booking", ...options });
}

for (const hasSessions of [false, true]) {
  const kind = hasSessions ? "with sessions" : "without sessions";
  behaviour(`four users book three times each, at the same time, over a command ${kind}`, async (connect) => {
    const { server, join } = await connect({ handlers: [proxyOfCommand(hasSessions)] });
    const users = await Promise.all(["ada", "bob", "eve", "kim"].map(async (id) => {
      const onElicit = () => ({ action: "accept" as const, content: { by: id } });
      return { id, client: await join({ principal: { id }, onElicit }) };
    }));
    const booked = await Promise.all(
      users.flatMap(({ id, client }) => [1, 2, 3].map(async () => [id, textOf(await client.callTool("book"))])),
    );
    assertEquals(booked, users.flatMap(({ id }) => Array(3).fill([id, `booked by ${id}`])));
    const pids = await Promise.all(users.map(async ({ client }) => textOf(await client.callTool("pid"))));
    assertEquals(new Set(pids).size, hasSessions ? 4 : 1);
    await server.close();
  }, { transports: ["http"], perInstance: "services" });

  behaviour(`a command ${kind} that ends during a call says so, and is started again`, async (connect) => {
    const { client, server, takeFaults } = await connect({ handlers: [proxyOfCommand(hasSessions)] }, {
      principal: { id: "ada" },
    });
    const before = textOf(await client.callTool("pid"));
    const { isError, content } = await client.callTool("crash");
    assertEquals([isError, Object(content[0]).text], [true, sentence("may have run")]);
    const after = textOf(await client.callTool("pid"));
    assertNotEquals(after, before);
    assert(Number(after) > 0, after);
    takeFaults();
    await server.close();
  }, { transports: ["http"], perInstance: "services" });
}

behaviour("a command that cannot be started stops neither the server nor its other tools", async (connect) => {
  const missing = proxy({ command: "no-such-command-of-the-test" }, { prefix: "no_" });
  const { client, server, takeFaults } = await connect({ handlers: [missing, proxyOfCommand(false)] });
  assertEquals((await client.listTools()).map(({ name }) => name), ["book", "crash", "pid"]);
  const { isError } = await client.callTool("no_tool");
  assert(isError);
  assert(takeFaults().length > 0);
  await server.close();
}, { transports: ["http"], eras: ["modern"], perInstance: "services" });

// Ends when its input has ended and its request for roots has an answer, like programs on the official SDK.
const asking = `
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const timer = setTimeout(() => {}, 110_000);
let rest = "";
process.stdin.on("data", (bytes) => {
  const lines = (rest + bytes).split("\\n");
  rest = lines.pop();
  for (const { id, method, params } of lines.filter(Boolean).map((line) => JSON.parse(line))) {
    const { protocolVersion } = params ?? {};
    const tool = { name: "pid", inputSchema: { type: "object" } };
    if (method === "initialize") {
      say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "asking", version: "1.0.0" } } });
    } else if (method === "tools/list") say({ id, result: { tools: [tool] } });
    else if (method === "tools/call") say({ id, result: { content: [{ type: "text", text: String(process.pid) }] } });
    else if (method === "notifications/initialized") setTimeout(() => say({ id: "r", method: "roots/list" }), 100);
    else if (id === "r") clearTimeout(timer);
    else if (id !== undefined) say({ id, error: { code: -32601, message: "no" } });
  }
});
`;

behaviour("no process of a command that asks for roots at its start remains", async (connect) => {
  await withFolder({ "asking.mjs": `import process from "node:process"; ${asking}` }, async (folder) => {
    const path = `${folder}/asking.mjs`;
    const args = typeof Deno === "undefined" ? [path] : ["run", "-A", path];
    const handlers = [proxy({ command: process.execPath, args, exitMs: 120_000 }, { name: "asking" })];
    const { client, server } = await connect({ handlers }, { principal: { id: "ada" } });
    const pid = textOf(await client.callTool("pid"));
    const running = () =>
      new Promise<string>((resolve) => execFile("pgrep", ["-f", path], (_error, found) => resolve(found.trim())));
    await until(async () => await running() === pid, "only the process of the caller runs");
    await server.close();
    await until(async () => await running() === "", "no process runs");
  });
}, { transports: ["http"], eras: ["modern"], perInstance: "services" });
