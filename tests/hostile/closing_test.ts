// A closing server responds to every accepted request, whatever the request is waiting for.
import { assert, assertEquals } from "@std/assert";
import { createServer, type PathServerOptions, type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { z } from "zod";
import { turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { serve } from "../peers/runtime.ts";
import { soon, start, toCall } from "./attack.ts";
import { connectRaw } from "./raw.ts";
import { serveOld } from "./sse.ts";
import { readReply } from "../support/requests.ts";

const never = new Promise<never>(() => {});
const quick = tool({ name: "quick", input: { type: "object" }, run: () => "" });

function startTenants(options: Partial<PathServerOptions>): Server {
  return createServer({
    name: "tenants",
    version: "1.0.0",
    path: "/:tenant/mcp",
    observer: { fault() {} },
    ...options,
  });
}

function atTenant(): Request {
  return new Request("http://localhost/acme/mcp", toCall("quick"));
}

/** Creates a call whose body stops after the given number of bytes. */
function toHalf(headers: Record<string, string> = {}, bytes = 1): Request {
  const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(bytes).fill(32)) });
  const { url, headers: own } = toCall("quick");
  const init = { method: "POST", headers: { ...Object.fromEntries(own), ...headers }, body, duplex: "half" };
  return new Request(url, init);
}

async function closeWhile(server: Server, ...waiting: readonly Promise<Response>[]): Promise<void> {
  await turn(10);
  assert(await soon(server.close().then(() => true)), "the server does not close");
  for (const answer of waiting) {
    const response = await soon(answer);
    assert(response, "a request waits forever");
    assertEquals([response.status, response.headers.get("retry-after")], [503, "1"]);
    assertEquals((await readReply(response)).error.message, sentence());
  }
}

Deno.test("a request gets a response if the server closes while its caller is being authenticated", async () => {
  const signals: AbortSignal[] = [];
  const server = start({
    auth: {
      authenticate(_, { signal }) {
        signals.push(signal);
        return never;
      },
    },
  });
  const { fetch } = serveOld(server);
  await closeWhile(server, server.fetch(toCall("quick")), fetch(new Request("http://localhost/sse")));
  assertEquals(signals.map(({ aborted }) => aborted), [true, true]);
});

Deno.test("a request gets a response if the server closes while its body arrives", async () => {
  const server = start({ handlers: [quick] });
  const bodies = [
    toHalf(),
    toHalf({}, 100_000),
    toHalf({ "content-length": "100" }),
    toHalf({ "content-length": "60000" }),
    toHalf({ "content-length": "100000" }, 80_000),
  ];
  await closeWhile(server, ...bodies.map((body) => server.fetch(body)));
  assertEquals(server[INTERNALS].engine.accounts.memory.used, 0);
});

Deno.test("a request gets a response if the server closes after the first bytes of its body", async () => {
  const server = start({ handlers: [quick] });
  await (await server.fetch(toCall("quick"))).text();
  const answers = [toHalf(), toHalf({ "content-length": "100" })].map((body) => server.fetch(body));
  await server.close();
  for (const answer of answers) assertEquals((await soon(answer))?.status, 503);
});

Deno.test("requests whose bodies wait in a queue get a response, and their handlers do not run", async () => {
  let ran = 0;
  const block = tool({
    name: "block",
    input: { type: "object" },
    run() {
      ran++;
      for (const end = performance.now() + 30; performance.now() < end;);
    },
  });
  const server = start({ handlers: [block] });
  for (const size of [60_000, 200_000]) {
    await (await server.fetch(toCall("block", { text: "x".repeat(size) }))).text();
  }
  ran = 0;
  const answers = Array.from(
    { length: 20 },
    (_, i) => server.fetch(toCall("block", { text: "x".repeat(i % 2 ? 60_000 : 200_000) })),
  );
  await until(() => ran > 0, "the first body has its turn");
  const closing = server.close();
  const statuses = [];
  for (const answer of answers) statuses.push((await soon(answer))?.status);
  await closing;
  const served = statuses.filter((status) => status === 200).length;
  assertEquals([served, statuses.filter((status) => status === 503).length], [ran, 20 - ran]);
  assert(ran < 20, `all of ${ran} ran after the server began to close`);
  assertEquals(server[INTERNALS].engine.accounts.memory.used, 0);
});

Deno.test("a request gets a response if the server closes while it validates the path or creates the handlers", async () => {
  const pathSchema = z.object({ tenant: z.string().refine(() => never) });
  const checking = createServer({ name: "tenants", version: "1.0.0", path: "/:tenant/mcp", pathSchema });
  await closeWhile(checking, checking.fetch(atTenant()));
  const making = startTenants({ handlers: () => never });
  await closeWhile(making, making.fetch(atTenant()), making.fetch(atTenant()));
});

Deno.test("the server opens no stream and no socket after it has closed", async () => {
  const known = Promise.withResolvers<{ readonly id: string }>();
  const admitted = Promise.withResolvers<true>();
  const handlers = Promise.withResolvers<[]>();
  const late: Promise<Response>[] = [];
  const servers = [
    { server: start({ auth: { authenticate: () => known.promise } }), prefix: "" },
    { server: start({ admit: () => admitted.promise }), prefix: "" },
    { server: startTenants({ handlers: () => handlers.promise }), prefix: "/:tenant" },
  ];
  for (const { server, prefix } of servers) {
    const { fetch } = serveOld(server, { path: `${prefix}/sse`, messages: `${prefix}/messages` });
    const sockets = webSocket(server, { path: `${prefix}/ws` });
    const at = (path: string, headers = {}) => new Request(`http://localhost${prefix}${path}`, { headers });
    late.push(fetch(at("/sse")), sockets.fetch(at("/ws", { upgrade: "websocket" })));
  }
  await turn(10);
  await Promise.all(servers.map(({ server }) => server.close()));
  known.resolve({ id: "ada" });
  admitted.resolve(true);
  handlers.resolve([]);
  for (const answer of late) assertEquals((await soon(answer))?.status, 503);
});

Deno.test("after the body timeout, a body is no longer charged to its client, even if the connection stays open", async () => {
  const limits = { request: { bodyMs: 200 }, memory: { bytesPerClient: 400_000 } };
  const server = start({ handlers: [quick], limits });
  await using port = serve(server);
  const { accounts } = server[INTERNALS].engine;
  const connections = [];
  const head = `POST /mcp HTTP/1.1\r\nHost: ${port.host}\r\nContent-Type: application/json\r\n`;
  for (const length of [1000, 60_000]) {
    const connection = await connectRaw(Number(port.host.split(":")[1]));
    await connection.write(`${head}Content-Length: ${length}\r\n\r\n{`);
    connections.push(connection);
  }
  await until(() => accounts.memory.used > 0, "slow bodies are charged");
  for (const connection of connections) assertEquals((await connection.read())?.status, 408);
  assertEquals(accounts.memory.used, 0);
  for (const connection of connections) connection.close();
  await server.close();
});
