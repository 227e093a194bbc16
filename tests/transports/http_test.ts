// Invalid input over HTTP, with `fetch` and on a port. Each case has an expected status, error code and id, and the
// server keeps working. The tables of all invalid input are in tests/hostile.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { createServer, type Server, tool } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { toReply } from "../support/requests.ts";
import { toHello } from "../support/sessions.ts";

const META = "io.modelcontextprotocol/";
const VERSION = "2026-07-28";
const LIMIT = 4 * 1024 * 1024;

type Json = { readonly [key: string]: unknown };
type Body = string | Uint8Array<ArrayBuffer> | (() => ReadableStream<Uint8Array>);

/** A request and its expected response. */
interface Row {
  readonly name: string;
  readonly method?: string;
  /** Headers to merge into the headers of a valid request; `null` removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: Body;
  readonly status: number;
  readonly code?: number;
  /** The id in the response; `undefined` if the response has no id. */
  readonly id?: string | number | null;
  /** Text that the error must contain. */
  readonly says?: string;
}

type Send = (row: Omit<Row, "name" | "status">) => Promise<Response>;

const handlers = [
  tool({ name: "good", run: () => "good" }),
  tool({ name: "add", input: z.object({ a: z.number() }), run: ({ a }) => a }),
  tool({
    name: "region",
    input: {
      type: "object",
      properties: {
        region: { type: "string", "x-mcp-header": "Region" },
        count: { type: "integer", "x-mcp-header": "Count" },
      },
    },
    async run(_input, ctx) {
      return (await ctx.elicit("sure", { message: "?", schema: z.object({ ok: z.boolean() }) })).action;
    },
  }),
];

function meta(more: Json = {}): Json {
  return {
    [META + "protocolVersion"]: VERSION,
    [META + "clientInfo"]: { name: "wire", version: "1" },
    [META + "clientCapabilities"]: {},
    ...more,
  };
}

const goodMessage = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "good", arguments: {}, _meta: meta() },
};
const goodBody = JSON.stringify(goodMessage);
const goodHeaders = {
  accept: "application/json, text/event-stream",
  "content-type": "application/json",
  "mcp-protocol-version": VERSION,
  "mcp-method": "tools/call",
  "mcp-name": "good",
};

/** Runs with a server that is called through `fetch`, and then with a server on a port. */
async function withServers(run: (send: Send, server: Server) => Promise<void>): Promise<void> {
  for (const isReal of [false, true]) {
    const server = createServer({
      name: "wire",
      version: "1.0.0",
      handlers,
      observer: { fault: ({ error }) => faults.push(error) },
    });
    const faults: unknown[] = [];
    const host = isReal ? startHttpServer(server.fetch) : undefined;
    const origin = host?.origin ?? "http://localhost";
    try {
      await run(({ method = "POST", headers = {}, body = goodBody }) => {
        const all = new Headers(goodHeaders);
        for (const [name, value] of Object.entries(headers)) value === null ? all.delete(name) : all.set(name, value);
        // The body is sent as bytes, because a string body would set its own Content-Type.
        const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
        const request = new Request(`${origin}/mcp`, {
          method,
          headers: all,
          redirect: "manual",
          ...method === "POST" ? { body: typeof bytes === "function" ? bytes() : bytes, duplex: "half" } : {},
        });
        return isReal ? fetch(request) : server.fetch(request);
      }, server);
      assertEquals(faults, []);
    } finally {
      await host?.stop();
      await server.close();
    }
  }
}

/** Returns the single JSON-RPC message in a response, or `undefined`. */
async function readAnswer(response: Response): Promise<Json | undefined> {
  const text = await response.text();
  return text ? JSON.parse(toReply(text)) : undefined;
}

async function check(send: Send, row: Row): Promise<void> {
  const { name, status, code, id, says } = row;
  const response = await send(row);
  const answer = await readAnswer(response);
  const error = answer?.error as { readonly code: number; readonly message: string } | undefined; // the response is a JSON-RPC response
  assertEquals([response.status, error?.code], [status, code], `${name}: ${JSON.stringify(answer)?.slice(0, 500)}`);
  if (code !== undefined) {
    assertEquals(answer?.id, id, name);
    assertEquals(response.headers.get("content-type"), "application/json", name);
    assert(JSON.stringify(answer).length < 1000, `${name}: the response repeats the input`);
    assert(!/\bat \S+ \(|\.ts:\d/.test(JSON.stringify(answer)), `${name}: the response shows internals`);
  }
  if (says) assertStringIncludes(error?.message ?? "", says, name);
  const good = await readAnswer(await send({}));
  assertEquals(
    Object(good?.result).content,
    [{ type: "text", text: "good" }],
    `${name}: the server no longer works`,
  );
}

function table(title: string, rows: readonly Row[]): void {
  Deno.test(title, () =>
    withServers(async (send) => {
      for (const row of rows) await check(send, row);
    }));
}

const utf8 = (text: string) => new TextEncoder().encode(text);
const message = (change: Json) => JSON.stringify({ ...goodMessage, ...change });
const padded = (size: number) =>
  goodBody.replace('"arguments":{}', `"arguments":{"p":"${"x".repeat(size - goodBody.length - 6)}"}`);

function chunked(text: string): () => ReadableStream<Uint8Array> {
  return () => {
    const bytes = utf8(text);
    let at = 0;
    return new ReadableStream({
      pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(at, at += 65_536));
      },
    });
  };
}

// The responses to most invalid requests.
const NOT_JSON = { status: 400, code: -32700 };
const INVALID_PARAMS = { status: 400, code: -32602, id: 1 };
const MISMATCH = { status: 400, code: -32020, id: 1 };
const UNKNOWN_METHOD = { status: 404, code: -32601, id: 1 };
const NOT_FOUND = { status: 404, code: -32600 };
const TOO_LARGE = { status: 413, code: -32600, says: "request.bodyBytes" };

table("the size of a body is bounded, with a length and without", [
  { name: "at the limit", body: padded(LIMIT), status: 200 },
  { name: "over the limit", body: padded(LIMIT + 1), ...TOO_LARGE },
  { name: "10 MB", body: padded(10_000_000), ...TOO_LARGE },
  { name: "at the limit in chunks", body: chunked(padded(LIMIT)), status: 200 },
  { name: "over the limit in chunks", body: chunked(padded(LIMIT + 1)), ...TOO_LARGE },
  { name: "10 MB in chunks", body: chunked(padded(10_000_000)), ...TOO_LARGE },
]);

const call = (name: unknown, args: unknown = {}, more: Json = {}) =>
  message({ params: { name, arguments: args, _meta: meta(), ...more } });

table("an unknown method or tool, and an incorrect way to call it, is refused with its reason", [
  { name: "unknown tool", headers: { "mcp-name": "gone" }, body: call("gone"), ...INVALID_PARAMS },
  { name: "name missing", headers: { "mcp-name": null }, body: call(undefined), ...INVALID_PARAMS },
  { name: "name a number", headers: { "mcp-name": null }, body: call(5), ...INVALID_PARAMS },
  { name: "arguments a list", body: call("good", []), ...INVALID_PARAMS },
  { name: "wrong arguments", headers: { "mcp-name": "add" }, body: call("add", { a: "1" }), status: 200 },
  {
    name: "unknown method",
    headers: { "mcp-method": "no/such", "mcp-name": null },
    body: message({ method: "no/such" }),
    ...UNKNOWN_METHOD,
  },
  { name: "empty method", headers: { "mcp-method": "" }, body: message({ method: "" }), ...UNKNOWN_METHOD },
  ...["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"].map((method) => ({
    name: method,
    headers: { "mcp-method": method },
    body: message({ method }),
    ...UNKNOWN_METHOD,
  })),
  {
    name: "a notification",
    body: message({ id: undefined, method: "notifications/x" }),
    headers: { "mcp-method": "notifications/x" },
    status: 202,
  },
  { name: "a request without an id", body: message({ id: undefined }), status: 202 },
]);

/** Faults in a request, in the order in which a server must check for them. */
const faults: readonly {
  readonly name: string;
  readonly headers?: Row["headers"];
  readonly meta?: Json;
  readonly broken?: boolean;
  readonly status: number;
  readonly code: number;
  readonly id?: number;
}[] = [
  { name: "a foreign origin", headers: { origin: "http://evil.example" }, status: 403, code: -32600 },
  { name: "no JSON", broken: true, ...NOT_JSON },
  { name: "no version in the body", meta: { [META + "protocolVersion"]: undefined }, ...INVALID_PARAMS },
  { name: "another version in the header", headers: { "mcp-protocol-version": "2027-01-01" }, ...MISMATCH },
  {
    name: "an unknown version in header and body",
    headers: { "mcp-protocol-version": "v999.0.0" },
    meta: { [META + "protocolVersion"]: "v999.0.0" },
    status: 400,
    code: -32022,
    id: 1,
  },
  { name: "no capabilities", meta: { [META + "clientCapabilities"]: undefined }, ...INVALID_PARAMS },
  { name: "another method in the header", headers: { "mcp-method": "tools/list" }, ...MISMATCH },
  { name: "another name in the header", headers: { "mcp-name": "good" }, ...MISMATCH },
  { name: "another argument in the header", headers: { "mcp-param-region": "us" }, ...MISMATCH },
  { name: "a missing capability", status: 400, code: -32021, id: 1 },
];

table("the error names the first of several faults in the order of the specification", [
  ...faults.map((fault, at) => {
    // The request has this fault and all later faults. If two faults set different versions, the earlier fault takes
    // precedence.
    const later = faults.slice(at).toReversed();
    const params = {
      name: "region",
      arguments: { region: "eu" },
      _meta: meta(Object.assign({}, ...later.map(({ meta }) => meta))),
    };
    return {
      ...fault,
      headers: Object.assign(
        { "mcp-name": "region", "mcp-param-region": "eu" },
        ...later.map(({ headers }) => headers),
      ),
      body: fault.broken || later.some(({ broken }) => broken) ? "{" : message({ params }),
    };
  }),
  { name: "an unknown method with another method in the header", body: message({ method: "no/such" }), ...MISMATCH },
  {
    name: "an unknown method and no capabilities",
    headers: { "mcp-method": "no/such" },
    body: message({ method: "no/such", params: { _meta: meta({ [META + "clientCapabilities"]: undefined }) } }),
    ...INVALID_PARAMS,
  },
]);

Deno.test("a request with an unsupported version is refused with the list of supported versions", () =>
  withServers(async (send) => {
    const body = message({ params: { name: "good", _meta: meta({ [META + "protocolVersion"]: "v999.0.0" }) } });
    const answer = await readAnswer(await send({ headers: { "mcp-protocol-version": "v999.0.0" }, body }));
    assertEquals(Object(answer?.error).data, { supported: [VERSION], requested: "v999.0.0" });
  }));

Deno.test("the error names the missing capability", () =>
  withServers(async (send) => {
    const params = { name: "region", arguments: {}, _meta: meta() };
    const answer = await readAnswer(await send({ headers: { "mcp-name": "region" }, body: message({ params }) }));
    assertEquals(Object(answer?.error).data, { requiredCapabilities: { elicitation: { form: {} } } });
  }));

Deno.test("HEAD is refused with 405", () =>
  withServers(async (send) => {
    const response = await send({ method: "HEAD" });
    assertEquals([response.status, response.headers.get("allow")], [405, "GET, POST, DELETE"]);
    await response.body?.cancel();
  }));

Deno.test("the headers of a stream prevent proxies from buffering it", () =>
  withServers(async (send) => {
    const response = await send({ headers: { accept: "text/event-stream" } });
    assertEquals(response.headers.get("x-accel-buffering"), "no");
    assertMatch(response.headers.get("cache-control") ?? "", /no-cache/);
    const text = await response.text();
    assertEquals(text.match(/^data: /gm)?.length, 1);
  }));

Deno.test("a request from a foreign origin is refused before its body is read", async () => {
  await using server = createServer({ name: "wire", version: "1.0.0", handlers });
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>({ pull: () => void pulled++ }, { highWaterMark: 0 });
  const headers = { ...goodHeaders, origin: "http://evil.example" };
  const init = { method: "POST", headers, body, duplex: "half" };
  const response = await server.fetch(new Request("http://localhost/mcp", init));
  assertEquals([response.status, pulled], [403, 0]);
});

const initialize = JSON.stringify(toHello({ id: 0 }));
const OLD = { "mcp-protocol-version": "2025-11-25", "mcp-method": null, "mcp-name": null };

/** Opens a legacy session, and returns its id. */
async function shake(send: Send, version = "2025-11-25"): Promise<string> {
  const response = await send({
    headers: { ...OLD, "mcp-protocol-version": null },
    body: initialize.replace("2025-11-25", version),
  });
  assertEquals(response.status, 200);
  assertEquals(Object((await readAnswer(response))?.result).protocolVersion, version);
  const id = response.headers.get("mcp-session-id") ?? "";
  assertMatch(id, /^[\x21-\x7e]{22,}$/);
  return id;
}

Deno.test("a session has its own stream, and a session that has ended stays ended", () =>
  withServers(async (send) => {
    const headers = { ...OLD, "mcp-session-id": await shake(send) };
    const stream = await send({ method: "GET", headers });
    assertEquals([stream.status, stream.headers.get("content-type")], [200, "text/event-stream"]);
    // A client that has lost its stream opens another stream, possibly before the server detects the loss.
    const second = await send({ method: "GET", headers });
    assertEquals([second.status, second.headers.get("content-type")], [200, "text/event-stream"]);
    const ended = await send({ method: "DELETE", headers });
    assertEquals(ended.status, 204);
    await ended.text();
    await Promise.all([stream.text(), second.text()]);
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    await check(send, { name: "a call", headers, body: list, ...NOT_FOUND, id: 1 });
    await check(send, { name: "a stream", method: "GET", headers, ...NOT_FOUND });
    await check(send, { name: "ending it again", method: "DELETE", headers, ...NOT_FOUND });
  }));
