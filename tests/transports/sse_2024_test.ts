// The HTTP+SSE transport of revision 2024-11-05, as bytes on a connection.
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { customAuth } from "../../src/auth/auth.ts";
import { z } from "zod";
import { until } from "../support/behaviour.ts";
import { httpSse, type HttpSseOptions } from "../../src/server/transports/http/sse_2024.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { readReply, toStatus } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";
import { toHello } from "../support/sessions.ts";
import { serveOld } from "../hostile/sse.ts";

const origin = "http://localhost";
const initialize = toHello({ version: "2024-11-05" });

function setUp(options: Partial<ServerOptions> = {}, paths?: HttpSseOptions) {
  const server = openServer({ name: "old", ...options });
  return { server, ...serveOld(server, paths) };
}

Deno.test("the stream announces the URL for messages, and contains the server's responses", async () => {
  const { fetch, post } = setUp();
  const response = await fetch(new Request(`${origin}/sse`));
  assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  const [, path = ""] = /^event: endpoint\ndata: (\S+)\n\n$/.exec((await reader.read()).value ?? "") ?? [];
  assertMatch(path, /^\/messages\?sessionId=[0-9a-f-]{36}$/);
  assertEquals((await post(path, initialize)).status, 202);
  const [, data = ""] = /^data: (.*)\n\n$/.exec((await reader.read()).value ?? "") ?? [];
  const { id, result } = JSON.parse(data);
  assertEquals([id, result.protocolVersion], [1, "2024-11-05"]);
  await reader.cancel();
});

Deno.test("both paths can be configured, and requests to other paths go to the server", async () => {
  const { fetch, post, open } = setUp({}, { path: "/old/stream", messages: "/old/post" });
  const { address: path, leave } = await open("/old/stream");
  assertMatch(path, /^\/old\/post\?sessionId=/);
  assertEquals((await post(path, initialize)).status, 202);
  assertEquals((await fetch(new Request(`${origin}/sse`))).status, 404);
  assertEquals((await post("/messages?sessionId=1", initialize)).status, 404);
  const accept = "application/json, text/event-stream";
  const answer = await post("/mcp", initialize, { headers: { accept } });
  assertEquals([answer.status, (await readReply(answer)).result.serverInfo.name], [200, "old"]);
  await leave();
});

Deno.test("an invalid message is refused", async () => {
  const { post, open } = setUp({ limits: { request: { bodyBytes: 1000 } } });
  const { address: path, next, leave } = await open();
  const status = async (...args: Parameters<typeof post>) => (await post(...args)).status;
  assertEquals(await status(path, initialize, { headers: { "content-type": "text/plain" } }), 415);
  assertEquals(await status(path, new Blob([Uint8Array.of(123, 255, 125)]).stream()), 400);
  assertEquals(await status(path, JSON.stringify({ ...initialize, x: "x".repeat(1000) })), 413);
  assertEquals(await status("/messages", initialize), 404);
  assertEquals(await status(`/messages?sessionId=${crypto.randomUUID()}`, initialize), 404);
  assertEquals(await status(path, "no JSON"), 202);
  assertMatch(await next() ?? "", /"code":-32700/);
  await leave();
});

Deno.test("the server does not wait for a message that stops in the middle", async () => {
  const { fetch, open } = setUp({ limits: { request: { bodyMs: 100 } } });
  const { address: path, leave } = await open();
  const lengths: readonly Record<string, string>[] = [{}, { "content-length": "100" }];
  for (const length of lengths) {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) });
    const headers = { "content-type": "application/json", ...length };
    const init = { method: "POST", headers, body, duplex: "half" };
    const response = await fetch(new Request(`${origin}${path}`, init));
    assertEquals(response.status, 408);
    assertMatch(await response.text(), /bodyMs/);
  }
  await leave();
});

Deno.test("requests with a foreign Origin or Host are rejected on the stream path and on the messages path", async () => {
  const { fetch, post, open } = setUp();
  const { address: path, leave } = await open();
  for (const name of ["origin", "host"]) {
    const headers = { [name]: name === "host" ? "evil.example" : "https://evil.example" };
    assertEquals(await toStatus(fetch(new Request(`${origin}/sse`, { headers }))), 403);
    assertEquals((await post(path, initialize, { headers })).status, 403);
  }
  await leave();
});

Deno.test("a caller cannot post to the stream of another caller", async () => {
  const whoami = tool({ name: "whoami", run: (_, ctx) => ctx.principal?.id ?? "nobody" });
  const { post, open } = setUp({ handlers: [whoami] });
  const ada = { principal: { id: "ada" } };
  const { address: path, next, leave } = await open("/sse", { info: ada });
  const statuses = [undefined, { principal: { id: "eve" } }, ada].map(async (info) =>
    (await post(path, initialize, { info })).status
  );
  assertEquals(await Promise.all(statuses), [404, 404, 202]);
  assertMatch(await next() ?? "", /"protocolVersion"/);
  await post(path, { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "whoami" } }, { info: ada });
  assertMatch(await next() ?? "", /"text":"ada"/);
  await leave();
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
  const { address: path, leave } = await open();
  await post(path, initialize);
  await post(path, { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "wait" } });
  const signal = await begun.promise;
  assert(!signal.aborted);
  await leave();
  await until(() => signal.aborted, "the call is cancelled");
  assertEquals((await post(path, initialize)).status, 404);
});

Deno.test("streams end with the server", async () => {
  const { server, fetch, post, open } = setUp();
  const { address: path, next } = await open();
  await post(path, initialize);
  assertMatch(await next() ?? "", /"protocolVersion"/);
  await server.close();
  assertEquals(await next(), undefined);
  assertEquals((await post(path, initialize)).status, 503);
  assertEquals((await fetch(new Request(`${origin}/sse`))).status, 503);
});

Deno.test("the number of streams is limited", async () => {
  const { fetch, open } = setUp({ limits: { connections: { streams: 2 } } });
  const first = await open();
  const second = await open();
  const refused = await fetch(new Request(`${origin}/sse`));
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
  await first.leave();
  let third = first;
  await until(async () => (third = await open()).response.status === 200, "there is room again");
  await second.leave();
  await third.leave();
});

const tenantPaths = { path: "/tenants/:tenant/sse", messages: "/tenants/:tenant/messages" };

function setUpTenants() {
  const whoami = tool({ name: "whoami", run: (_, ctx) => `${ctx.principal?.id} of ${ctx.pathParams().tenant}` });
  const server = openServer({ name: "old", path: "/tenants/:tenant/mcp", handlers: [whoami] });
  return { server, ...serveOld(server, tenantPaths) };
}

const callWhoami = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "whoami" } };

Deno.test("each tenant has separate streams, and its sessions are refused on another tenant's path", async () => {
  const { open, post } = setUpTenants();
  const ada = { info: { principal: { id: "ada" } } };
  for (const [spelling, tenant] of [["acme", "acme"], ["%61cme", "acme"], ["a%20b%3F", "a b?"]]) {
    const { response, address, next, leave } = await open(`/tenants/${spelling}/sse`, ada);
    assertEquals(response.status, 200);
    const start = `/tenants/${encodeURIComponent(tenant)}/messages?sessionId=`;
    assert(address.startsWith(start), address);
    assertEquals((await post(address, initialize, ada)).status, 202);
    assertMatch(await next() ?? "", /"protocolVersion":"2024-11-05"/);
    assertEquals((await post(address, callWhoami, ada)).status, 202);
    assert((await next())?.includes(`ada of ${tenant}`));
    for (const other of ["bee", "ACME", "acme%20"]) {
      const refused = await post(address.replace(start, `/tenants/${other}/messages?sessionId=`), callWhoami, ada);
      assertEquals([refused.status, await refused.text()], [404, sentence()]);
    }
    assertEquals((await post(address, callWhoami, { info: { principal: { id: "eve" } } })).status, 404);
    await leave();
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
  const streams = [await open("/tenants/acme/sse"), await open("/tenants/bee/sse")];
  await server.close();
  for (const { next } of streams) assertEquals(await next(), undefined);
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
