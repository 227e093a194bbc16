// The HTTP+SSE transport of revision 2024-11-05, as bytes on a connection.
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { createServer, type PathServerOptions, type ServerOptions, tool } from "../../mod.ts";
import { customAuth } from "../../src/auth/auth.ts";
import { z } from "zod";
import { closeAtEnd } from "../support/running.ts";
import { until } from "../support/behaviour.ts";
import { httpSse, type HttpSseOptions } from "../../src/server/transports/http/sse_2024.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { readReply, toStatus } from "../support/requests.ts";
import { toHello } from "../support/sessions.ts";

const origin = "http://localhost:8000";
const initialize = toHello({ version: "2024-11-05" });

type Info = { principal: { id: string } };

/** Reads events one by one. */
function readEvents(response: Response): { next(): Promise<string | undefined>; leave(): Promise<void> } {
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    async next() {
      while (true) {
        const end = text.indexOf("\n\n");
        const event = text.slice(0, end);
        if (end >= 0) {
          text = text.slice(end + 2);
          if (!event.startsWith(":")) return event;
          continue;
        }
        const { done, value } = await reader.read();
        if (done) return;
        text += value;
      }
    },
    leave: () => reader.cancel(),
  };
}

function setUp(options: Partial<ServerOptions> = {}, paths?: HttpSseOptions) {
  const server = closeAtEnd(createServer({ name: "old", version: "1.0.0", ...options }));
  const service = httpSse(server, paths);

  function post(path: string, body: unknown, init: RequestInit = {}, info?: Info): Promise<Response> {
    const headers = { "content-type": "application/json", ...init.headers };
    const text = typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body);
    return service.fetch(new Request(origin + path, { method: "POST", body: text, ...init, headers }), info);
  }

  async function open(info?: Info) {
    const response = await service.fetch(new Request(`${origin}${paths?.path ?? "/sse"}`), info);
    const events = readEvents(response);
    const [, path = ""] = /^event: endpoint\ndata: (\S+)$/.exec(await events.next() ?? "") ?? [];
    return { response, events, path };
  }

  return { server, service, post, open };
}

Deno.test("the stream announces the URL for messages, and contains the server's responses", async () => {
  const { post, open } = setUp();
  const { response, events, path } = await open();
  assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
  assertMatch(path, /^\/messages\?sessionId=[0-9a-f-]{36}$/);
  assertEquals((await post(path, initialize)).status, 202);
  const event = await events.next() ?? "";
  assertEquals(event.startsWith("data: "), true);
  const { id, result } = JSON.parse(event.slice(6));
  assertEquals([id, result.protocolVersion], [1, "2024-11-05"]);
  await events.leave();
});

Deno.test("both paths can be configured, and requests to other paths go to the server", async () => {
  const { service, post, open } = setUp({}, { path: "/old/stream", messages: "/old/post" });
  const { events, path } = await open();
  assertMatch(path, /^\/old\/post\?sessionId=/);
  assertEquals((await post(path, initialize)).status, 202);
  assertEquals((await service.fetch(new Request(`${origin}/sse`))).status, 404);
  assertEquals((await post("/messages?sessionId=1", initialize)).status, 404);
  const accept = "application/json, text/event-stream";
  const answer = await post("/mcp", initialize, { headers: { accept } });
  assertEquals([answer.status, (await readReply(answer)).result.serverInfo.name], [200, "old"]);
  await events.leave();
});

Deno.test("an invalid message is refused", async () => {
  const { post, open } = setUp({ limits: { request: { bodyBytes: 1000 } } });
  const { events, path } = await open();
  const status = async (...args: Parameters<typeof post>) => (await post(...args)).status;
  assertEquals(await status(path, initialize, { headers: { "content-type": "text/plain" } }), 415);
  assertEquals(await status(path, new Blob([Uint8Array.of(123, 255, 125)])), 400);
  assertEquals(await status(path, JSON.stringify({ ...initialize, x: "x".repeat(1000) })), 413);
  assertEquals(await status("/messages", initialize), 404);
  assertEquals(await status(`/messages?sessionId=${crypto.randomUUID()}`, initialize), 404);
  assertEquals(await status(path, "no JSON"), 202);
  assertMatch(await events.next() ?? "", /"code":-32700/);
  await events.leave();
});

Deno.test("the server does not wait for a message that stops in the middle", async () => {
  const { service, open } = setUp({ limits: { request: { bodyMs: 100 } } });
  const { events, path } = await open();
  const lengths: readonly Record<string, string>[] = [{}, { "content-length": "100" }];
  for (const length of lengths) {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) });
    const headers = { "content-type": "application/json", ...length };
    const init = { method: "POST", headers, body, duplex: "half" };
    const response = await service.fetch(new Request(`${origin}${path}`, init));
    assertEquals(response.status, 408);
    assertMatch(await response.text(), /bodyMs/);
  }
  await events.leave();
});

Deno.test("requests with a foreign Origin or Host are rejected on the stream path and on the messages path", async () => {
  const { service, post, open } = setUp();
  const { events, path } = await open();
  for (const name of ["origin", "host"]) {
    const headers = { [name]: name === "host" ? "evil.example" : "https://evil.example" };
    assertEquals(await toStatus(service.fetch(new Request(`${origin}/sse`, { headers }))), 403);
    assertEquals((await post(path, initialize, { headers })).status, 403);
  }
  await events.leave();
});

Deno.test("a caller cannot post to the stream of another caller", async () => {
  const whoami = tool({ name: "whoami", run: (_, ctx) => ctx.principal?.id ?? "nobody" });
  const { post, open } = setUp({ handlers: [whoami] });
  const ada = { principal: { id: "ada" } };
  const { events, path } = await open(ada);
  const statuses = [undefined, { principal: { id: "eve" } }, ada].map(async (info) =>
    (await post(path, initialize, {}, info)).status
  );
  assertEquals(await Promise.all(statuses), [404, 404, 202]);
  assertMatch(await events.next() ?? "", /"protocolVersion"/);
  await post(path, { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "whoami" } }, {}, ada);
  assertMatch(await events.next() ?? "", /"text":"ada"/);
  await events.leave();
});

Deno.test("when a client disconnects, its calls are cancelled, and its URL for messages becomes unknown", async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  const wait = tool({
    name: "wait",
    run: (_, ctx) => {
      begun.resolve(ctx.signal);
      return new Promise<string>((resolve) => ctx.signal.addEventListener("abort", () => resolve("left")));
    },
  });
  const { post, open } = setUp({ handlers: [wait] });
  const { events, path } = await open();
  await post(path, initialize);
  await post(path, { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "wait" } });
  const signal = await begun.promise;
  assert(!signal.aborted);
  await events.leave();
  await until(() => signal.aborted, "the call is cancelled");
  assertEquals((await post(path, initialize)).status, 404);
});

Deno.test("streams end with the server", async () => {
  const { server, service, post, open } = setUp();
  const { events, path } = await open();
  await post(path, initialize);
  assertMatch(await events.next() ?? "", /"protocolVersion"/);
  await server.close();
  assertEquals(await events.next(), undefined);
  assertEquals((await post(path, initialize)).status, 503);
  assertEquals((await service.fetch(new Request(`${origin}/sse`))).status, 503);
});

Deno.test("the number of streams is limited", async () => {
  const { service, open } = setUp({ limits: { connections: { streams: 2 } } });
  const first = await open();
  const second = await open();
  const refused = await service.fetch(new Request(`${origin}/sse`));
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
  await first.events.leave();
  let third = first;
  await until(async () => (third = await open()).response.status === 200, "there is room again");
  await second.events.leave();
  await third.events.leave();
});

const tenantPaths = { path: "/tenants/:tenant/sse", messages: "/tenants/:tenant/messages" };

function setUpTenants(options: Partial<PathServerOptions> = {}) {
  const whoami = tool({ name: "whoami", run: (_, ctx) => `${ctx.principal?.id} of ${ctx.pathParams().tenant}` });
  const path = "/tenants/:tenant/mcp";
  const server = closeAtEnd(createServer({ name: "old", version: "1.0.0", path, handlers: [whoami], ...options }));
  const { fetch } = httpSse(server, tenantPaths);
  const open = async (tenant: string, info?: Info) => {
    const response = await fetch(new Request(`${origin}/tenants/${tenant}/sse`), info);
    const events = readEvents(response);
    const [, path = ""] = /^event: endpoint\ndata: (\S+)$/.exec(await events.next() ?? "") ?? [];
    return { response, events, path };
  };
  const post = async (path: string, body: unknown, info?: Info) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(
      new Request(origin + path, { method: "POST", headers, body: JSON.stringify(body) }),
      info,
    );
    return [response.status, await response.text()] as const;
  };
  return { server, fetch, open, post };
}

const callWhoami = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "whoami" } };

Deno.test("each tenant has separate streams, and its sessions are refused on another tenant's path", async () => {
  const { open, post } = setUpTenants();
  const ada = { principal: { id: "ada" } };
  for (const [spelling, tenant] of [["acme", "acme"], ["%61cme", "acme"], ["a%20b%3F", "a b?"]]) {
    const { response, events, path } = await open(spelling, ada);
    assertEquals(response.status, 200);
    const address = `/tenants/${encodeURIComponent(tenant)}/messages?sessionId=`;
    assert(path.startsWith(address), path);
    assertEquals((await post(path, initialize, ada))[0], 202);
    assertMatch(await events.next() ?? "", /"protocolVersion":"2024-11-05"/);
    assertEquals((await post(path, callWhoami, ada))[0], 202);
    assert((await events.next())?.includes(`ada of ${tenant}`));
    for (const other of ["bee", "ACME", "acme%20"]) {
      const refused = await post(path.replace(address, `/tenants/${other}/messages?sessionId=`), callWhoami, ada);
      assertEquals(refused, [404, sentence()]);
    }
    assertEquals((await post(path, callWhoami, { principal: { id: "eve" } }))[0], 404);
    await events.leave();
  }
});

Deno.test("a tenant that does not exist has no stream, and posting messages never creates handlers", async () => {
  const made: unknown[] = [];
  const pathSchema = z.object({ tenant: z.string().regex(/^[a-z]+$/) });
  const limits = testLimits({ endpoints: { open: 1 } });
  await using server = createServer({
    name: "old",
    version: "1.0.0",
    path: "/tenants/:tenant/mcp",
    pathSchema,
    limits,
    handlers: ({ tenant }) => (made.push(tenant), tenant === "nobody" ? undefined : []),
  });
  const { fetch } = httpSse(server, tenantPaths);
  const ask = (tenant: string) => fetch(new Request(`${origin}/tenants/${tenant}/sse`));
  for (const tenant of ["ACME", "%2e%2e", "a%2fb", "nobody", "a".repeat(2000)]) {
    assertEquals((await ask(tenant)).status, 404, tenant);
  }
  assertEquals(made, ["nobody"]);
  const body = JSON.stringify(initialize);
  const posted = await fetch(new Request(`${origin}/tenants/acme/messages?sessionId=x`, { method: "POST", body }));
  assertEquals([posted.status, made], [404, ["nobody"]]);
  const stream = await ask("acme");
  assertEquals(stream.status, 200);
  const busy = await ask("bee");
  assertEquals([busy.status, busy.headers.get("retry-after")], [503, "1"]);
  assertMatch(await busy.text(), /endpoints.open/);
  await stream.body?.cancel();
  await until(async () => (await ask("bee")).status === 200, "there is room for another path");
});

Deno.test("the paths for streams and messages must contain the server's path parameters", async () => {
  const { server, fetch } = setUpTenants();
  const wrong: readonly HttpSseOptions[] = [
    {},
    { path: "/tenants/:tenant/sse" },
    { path: "/:tenant/sse", messages: "/:other/messages" },
    { path: "/:tenant/:more/sse", messages: "/:tenant/messages" },
  ];
  for (const options of wrong) {
    assertThrows(() => httpSse(server, options), TypeError, sentence("tenant"));
  }
  const plain = createServer({ name: "plain", version: "1.0.0" });
  assertThrows(() => httpSse(plain, tenantPaths), TypeError, sentence('"/tenants/:tenant/sse"'));
  const accept = "application/json, text/event-stream";
  const headers = { "content-type": "application/json", accept };
  const request = { method: "POST", headers, body: JSON.stringify(initialize) };
  assertEquals((await fetch(new Request(`${origin}/tenants/acme/mcp`, request))).status, 200);
  assertEquals((await fetch(new Request(`${origin}/sse`))).status, 404);
});

Deno.test("streams of tenants end when the server closes", async () => {
  const { server, open } = setUpTenants();
  const streams = [await open("acme"), await open("bee")];
  await server.close();
  for (const { events } of streams) assertEquals(await events.next(), undefined);
});

Deno.test("a stream request with cookies must have an Origin, or must be marked as same-origin by the browser", async () => {
  const whoami = tool({ name: "whoami", run: (_, { principal }) => String(principal?.id) });
  const auth = customAuth(() => ({ id: "site:ada" }), { cookies: ["sid"] });
  await using server = createServer({ name: "x", version: "1.0.0", auth, handlers: [whoami] });
  const { fetch } = httpSse(server);
  const cases: readonly (readonly [headers: Record<string, string>, status: number])[] = [
    [{ cookie: "sid=1" }, 403],
    [{ cookie: "sid=1", "sec-fetch-site": "cross-site" }, 403],
    [{ cookie: "sid=1", "sec-fetch-site": "same-site" }, 403],
    [{ cookie: "sid=1", "sec-fetch-site": "none" }, 403],
    [{ cookie: "sid=1", origin: "https://evil.example" }, 403],
    [{ cookie: "sid=1", "sec-fetch-site": "same-origin" }, 200],
    [{ cookie: "sid=1", origin: "http://localhost" }, 200],
    // A browser also sends a password that its user has entered before.
    [{ authorization: "Basic YTpi", "sec-fetch-site": "cross-site" }, 403],
    [{ authorization: "Basic YTpi", "sec-fetch-site": "same-site" }, 403],
    [{ authorization: "Basic YTpi", "sec-fetch-site": "none" }, 200],
    [{ authorization: "Basic YTpi" }, 200],
    [{}, 200],
  ];
  for (const [headers, status] of cases) {
    assertEquals(
      await toStatus(fetch(new Request("http://localhost/sse", { headers }))),
      status,
      JSON.stringify(headers),
    );
  }
});
