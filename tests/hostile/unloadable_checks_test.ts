// A check that cannot be loaded or throws refuses the request, on every way in. It never counts as passed.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, extension, type ServerOptions, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { prepareWith } from "../../src/server/core.ts";
import { type Connection, RpcError } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/transports/http/sse_2024.ts";
import { serveStdio } from "../../src/transports/stdio/stdio.ts";
import { webSocket } from "../../src/transports/websocket.ts";
import { behaviour } from "../support/behaviour.ts";

const secret = tool({ name: "secret", tags: ["admin"], run: () => "the secret" });

/** Handlers whose visibility cannot be changed while `isBroken`, because a check of an extension throws. */
function makeHandlers() {
  const state = { isBroken: false };
  const views = extension({ id: "com.example/views" });
  const check = () => {
    if (state.isBroken) throw new Error("the check is broken");
    return undefined;
  };
  const shown = tool({ name: "shown", extensions: [views.attribute({ check })], run: () => "shown" });
  return { state, handlers: [views, shown, secret] };
}

/** Asks for the secret, and returns the code of the refusal. */
async function refusedWith(client: Connection): Promise<unknown> {
  const error = await assertRejects(() => client.callTool("secret"), RpcError);
  assert(!error.message.includes("broken"), error.message);
  return error.code;
}

behaviour(
  "while the rules of disable cannot be applied, every call is refused, and later calls obey them",
  async (join) => {
    const { state, handlers } = makeHandlers();
    const { client, server, takeFaults } = await join({ handlers });
    assertEquals((await client.callTool("secret")).isError, undefined);
    state.isBroken = true;
    server.handlers.disable({ tag: "admin" });
    for (let i = 0; i < 3; i++) assertEquals(await refusedWith(client), -32603);
    await assertRejects(() => client.listTools(), RpcError, "Internal error");
    const faults = takeFaults();
    assertEquals(faults.length, 4);
    assertStringIncludes(`${faults[0].error}`, "the check is broken");
    state.isBroken = false;
    assertEquals((await client.listTools()).map(({ name }) => name), ["shown"]);
    assertEquals(await refusedWith(client), -32602);
  },
  { transports: ["memory", "http", "pipe"] },
);

/** A server that cannot load a part before it may serve. */
function makeUnprepared(options: Partial<ServerOptions> & { readonly path?: string } = {}) {
  const faults: unknown[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  const server = createServer({ name: "s", version: "1.0.0", handlers: [secret], ...options, observer });
  const state = { isBroken: true };
  prepareWith(server[INTERNALS].engine.core, () => {
    return state.isBroken ? Promise.reject(new Error("the chunk is gone")) : Promise.resolve();
  });
  return { server, faults, state };
}

const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });

function post(path: string): Request {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return new Request(`http://localhost${path}`, { method: "POST", headers, body });
}

Deno.test("over HTTP, HTTP+SSE and WebSocket the status is 500 until the part is loaded, and fetch does not throw", async () => {
  const { server, faults, state } = makeUnprepared();
  const sse = httpSse(server);
  const sockets = webSocket(server);
  const upgrade = { upgrade: "websocket", connection: "upgrade" };
  const requests: readonly (readonly [fetch: (request: Request) => Promise<Response>, make: () => Request])[] = [
    [server.fetch, () => post("/mcp")],
    [server.fetch, () => new Request("http://localhost/mcp", { headers: { accept: "text/event-stream" } })],
    [server.fetch, () => new Request("http://localhost/mcp", { method: "OPTIONS" })],
    [sse.fetch, () => new Request("http://localhost/sse", { headers: { accept: "text/event-stream" } })],
    [sse.fetch, () => post("/messages?sessionId=x")],
    [sockets.fetch, () => new Request("http://localhost/ws", { headers: upgrade })],
    [sockets.fetch, () => post("/mcp")],
  ];
  for (const [fetch, make] of requests) {
    const response = await fetch(make());
    assertEquals(response.status, 500, make().url);
    assert(!(await response.text()).includes("chunk"));
  }
  assertEquals(faults.length, requests.length);
  state.isBroken = false;
  const served = await server.fetch(post("/mcp"));
  assertEquals(served.status, 200);
  assertStringIncludes(await served.text(), '"secret"');
  await server.close();
});

Deno.test("a path with parameters answers with status 500 until the part is loaded", async () => {
  const { server, state } = makeUnprepared({ path: "/t/:tenant/mcp" });
  assertEquals((await server.fetch(post("/t/acme/mcp"))).status, 500);
  state.isBroken = false;
  assertEquals((await server.fetch(post("/t/acme/mcp"))).status, 200);
  await server.close();
});

Deno.test("over stdio each request gets an error with its id, and a notification nothing", async () => {
  const { server, faults } = makeUnprepared();
  const lines = [body, '{"jsonrpc":"2.0","method":"notifications/initialized"}', "not JSON", `[${body}]`];
  const written: string[] = [];
  await serveStdio(server, {
    input: new Blob([lines.join("\n") + "\n"]).stream(),
    output: (bytes) => Promise.resolve(written.push(new TextDecoder().decode(bytes))),
  });
  const answers = written.join("").trim().split("\n").map((line) => JSON.parse(line));
  assertEquals(answers.map(({ id, error }) => [id, error.code]), [[1, -32603], [undefined, -32603], [
    undefined,
    -32603,
  ]]);
  assertEquals(faults.length, 4);
  await server.close();
});
