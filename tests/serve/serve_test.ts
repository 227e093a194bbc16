// The function `serve`.
import { createConnection } from "node:net";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, mount, type Server, type ServerOptions, service, tool, toolProvider } from "../../mod.ts";
import { layer } from "../../src/layers/layers.ts";
import { connect } from "../../src/client/client.ts";
import { serve } from "../../src/server/serve.ts";
import { gate, raise, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { readReply } from "../support/requests.ts";

const about = { name: "served", version: "1.0.0" };
const ping = tool({ name: "ping", run: () => "pong" });

function make(path = "/mcp"): Server {
  return createServer({ ...about, path, handlers: [ping] });
}

async function call(url: string, revision: string): Promise<unknown> {
  await using client = await connect(url, { revisions: [revision] });
  return (await client.callTool("ping")).content;
}

Deno.test("a served server responds in both eras, and closes at the end of the block", async () => {
  const server = make();
  let url;
  {
    await using served = await serve(server, { port: 0, signals: false });
    url = served.url;
    assertEquals(url, `http://127.0.0.1:${served.port}/mcp`);
    for (const revision of ["2026-07-28", "2025-11-25"]) {
      assertEquals(await call(url, revision), [{ type: "text", text: "pong" }]);
    }
  }
  assertEquals(server.stats().isClosing, true);
  await assertRejects(() => fetch(new URL("/mcp", url)));
});

Deno.test("an idle connection stays open for longer than proxies keep idle connections", async () => {
  await using served = await serve(make(), { port: 0, signals: false });
  const response = await fetch(served.url, { method: "POST" });
  await response.body?.cancel();
  // Only Node sends this header.
  const [, seconds] = /^timeout=(\d+)$/.exec(response.headers.get("keep-alive") ?? "timeout=255") ?? [];
  assert(Number(seconds) > 60, `${response.headers.get("keep-alive")}`);
});

Deno.test("aborting the signal closes the server, and a running call gets its result", async () => {
  const { pass, open } = gate();
  const wait = tool({ name: "wait", run: () => pass.then(() => "done") });
  const server = createServer({ ...about, handlers: [wait] });
  const end = new AbortController();
  await using served = await serve(server, { port: 0, signals: false, signal: end.signal });
  await using client = await connect(served.url);
  const called = client.callTool("wait");
  await until(() => server.stats().running === 1, "the call runs");
  end.abort();
  const refused = await fetch(served.url, { method: "POST" });
  assertEquals(refused.status, 503);
  assertEquals((await readReply(refused)).error.message, sentence());
  open();
  assertEquals((await called).content, [{ type: "text", text: "done" }]);
  await served.finished;
});

Deno.test("a signal that is already aborted closes the server immediately", async () => {
  const served = await serve(make(), { port: 0, signals: false, signal: AbortSignal.abort() });
  await served.finished;
});

Deno.test("a client that does not read its response does not delay the closing", async () => {
  const start = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(1));
  const endless = { path: "/endless", fetch: () => new Response(new ReadableStream({ start })) };
  const server = createServer({ ...about, routes: [endless] });
  const served = await serve(server, { port: 0, signals: false });
  const response = await fetch(new URL("/endless", served.url));
  assertEquals(response.status, 200);
  await served.close();
  await response.body?.cancel().catch(() => {});
});

/** Sends a request with any target, which `fetch` cannot do. Returns the status and the code of the error. */
async function sendRaw(port: number, target: string, host: string): Promise<readonly [status: number, code: unknown]> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const lines = [`POST ${target} HTTP/1.1`, `host: ${host}`, "content-type: application/json", "connection: close"];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let received = "";
  const socket = createConnection({ host: "127.0.0.1", port }, () => {
    socket.write([...lines, `content-length: ${body.length}`, "", body].join("\r\n"));
  });
  socket.setEncoding("utf8").on("data", (text) => received += text).on("end", () => resolve(received));
  socket.on("error", reject);
  const answer = await promise;
  socket.destroy();
  const [, status = ""] = /^HTTP\/1\.1 (\d+)/.exec(answer) ?? [];
  return [Number(status), Number(/"code":(-\d+)/.exec(answer)?.[1])];
}

// Bun builds the URL from the Host header, and hides the target.
Deno.test(
  "serve refuses a request target with another host than the Host header",
  { ignore: "Bun" in globalThis },
  async () => {
    await using served = await serve(make(), { port: 0, signals: false });
    const { port } = served;
    const own = `127.0.0.1:${port}`;
    for (const host of ["evil.example", `evil.example:${port}`, "localhost", "127.0.0.2", "127.0.0.1.evil.example"]) {
      assertEquals(await sendRaw(port, `http://${host}/mcp`, own), [403, -32600], host);
    }
    for (const target of ["/mcp", `http://${own}/mcp`, "http://127.0.0.1/mcp", `http://${own}/mcp?a=//b/`]) {
      assertEquals(await sendRaw(port, target, own), [200, NaN], target);
    }
    // The host in both places is still checked.
    assertEquals(await sendRaw(port, "http://evil.example/mcp", "evil.example"), [403, -32600]);
    assertEquals(await sendRaw(port, "http://evil.example/mcp", "a b"), [400, -32600]);
  },
);

Deno.test("serve accepts the result of mount", async () => {
  await using served = await serve(mount([make("/one"), make("/two")]), { port: 0, signals: false });
  assertEquals(new URL(served.url).pathname, "/one");
  assertEquals(await call(served.url.replace("/one", "/two"), "2026-07-28"), [{ type: "text", text: "pong" }]);
});

Deno.test("if a service fails, serve throws an error with the failure as its cause, and the server stays open", async () => {
  let isBroken = true;
  const db = service("db", () => {
    if (isBroken) throw new Error("no database");
    return {};
  });
  const read = tool({ name: "read", services: { db }, run: () => "" });
  await using server = createServer({ ...about, handlers: [read], observer: { fault() {} } });
  const error = await assertRejects(() => serve(server, { port: 0, signals: false }), Error);
  assertEquals(error.message, sentence(about.name, 'service "db"'));
  assertStringIncludes(String(error.cause), "no database");
  isBroken = false;
  await using served = await serve(server, { port: 0, signals: false });
  assertEquals(served.port > 0, true);
});

const breakdown = () => raise(new Error("out of order"));
const needed = service("needed", breakdown);
const needing = service("needing", async ({ get }) => await get(needed));
const broken: Readonly<Record<string, readonly [name: string, options: Partial<ServerOptions>]>> = {
  "a route": ['route "/hook"', { routes: [{ path: "/hook", start: breakdown, fetch: () => new Response() }] }],
  "a provider": ['tool provider "other"', {
    handlers: [toolProvider({ name: "other", start: breakdown, list: () => [], find: () => undefined })],
  }],
  "a layer": ['layer "team/audit"', { use: [layer(() => ({ name: "team/audit", start: breakdown }))] }],
  "a service that another service uses": ['service "needed"', {
    handlers: [tool({ name: "t", services: { needing }, run: () => "" })],
  }],
};
for (const [subject, [name, options]] of Object.entries(broken)) {
  Deno.test(`if ${subject} fails to start, the error of serve names it`, async () => {
    await using server = createServer({ ...about, ...options, observer: { fault() {} } });
    const error = await assertRejects(() => serve(server, { port: 0, signals: false }), Error);
    assertEquals(error.message, sentence(about.name, name));
    assertEquals(String(error.cause), "Error: out of order");
  });
}

Deno.test("if the port is in use, the error names the port, and the server can listen on another port", async () => {
  await using first = await serve(make(), { port: 0, signals: false });
  await using server = make();
  await assertRejects(
    () => serve(server, { port: first.port, signals: false }),
    Error,
    sentence(about.name, first.port, "127.0.0.1"),
  );
  await using second = await serve(server, { port: 0, signals: false });
  assertEquals(await call(second.url, "2026-07-28"), [{ type: "text", text: "pong" }]);
});

Deno.test("invalid options throw before the server listens", async () => {
  await using server = make();
  await assertRejects(() => serve(server, { port: 70_000 }), TypeError, sentence("port"));
  await assertRejects(() => serve(server, { hostname: "" }), TypeError, sentence("hostname"));
  // Without types, as from JavaScript.
  // deno-lint-ignore no-explicit-any
  await assertRejects(() => serve({} as any), TypeError, sentence());
});
