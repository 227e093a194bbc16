// Invalid input over HTTP. Each case has an expected status, error code and id, and the server keeps working.
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
  /** Appended to the endpoint's URL. A value that begins with a slash replaces the path. */
  readonly path?: string;
  /** Headers to merge into the headers of a valid request; `null` removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: Body;
  readonly status: number;
  readonly code?: number;
  /** The id in the response; `undefined` if the response has no id. */
  readonly id?: string | number | null;
  /** Text that the error must contain. */
  readonly says?: string;
  /** A header that the response must have. */
  readonly header?: readonly [name: string, value: string | null];
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
      await run(({ method = "POST", path = "", headers = {}, body = goodBody }) => {
        const all = new Headers(goodHeaders);
        for (const [name, value] of Object.entries(headers)) value === null ? all.delete(name) : all.set(name, value);
        // The body is sent as bytes, because a string body would set its own Content-Type.
        const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
        const request = new Request(path.startsWith("/") ? origin + path : `${origin}/mcp${path}`, {
          method,
          headers: all,
          redirect: "manual",
          ...method === "POST" || method === "PUT" || method === "PATCH"
            ? { body: typeof bytes === "function" ? bytes() : bytes, duplex: "half" }
            : {},
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
  const { name, status, code, id, says, header } = row;
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
  if (header) assertEquals(response.headers.get(header[0]), header[1], name);
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
const deep = (levels: number) =>
  goodBody.replace('"arguments":{}', `"arguments":${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`);

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
const INVALID = { status: 400, code: -32600 };
const INVALID_REQUEST = { ...INVALID, id: 1 };
const INVALID_PARAMS = { status: 400, code: -32602, id: 1 };
const MISMATCH = { status: 400, code: -32020, id: 1 };
const UNKNOWN_METHOD = { status: 404, code: -32601, id: 1 };
const NOT_FOUND = { status: 404, code: -32600 };
const TOO_LARGE = { status: 413, code: -32600, says: "request.bodyBytes" };

table("a body that is not JSON gets the error -32700", [
  { name: "empty", body: "", ...NOT_JSON },
  { name: "white space", body: " \r\n\t", ...NOT_JSON },
  { name: "truncated", body: goodBody.slice(0, -1), ...NOT_JSON },
  { name: "two documents", body: goodBody + goodBody, ...NOT_JSON },
  { name: "trailing garbage", body: `${goodBody}x`, ...NOT_JSON },
  { name: "single quotes", body: goodBody.replaceAll('"', "'"), ...NOT_JSON },
  { name: "a byte order mark", body: utf8(`\ufeff${goodBody}`), ...NOT_JSON },
  { name: "UTF-16", body: new Uint8Array(Uint16Array.from(goodBody, (c) => c.charCodeAt(0)).buffer), ...NOT_JSON },
  { name: "overlong UTF-8", body: Uint8Array.from([...utf8('{"a":"'), 0xc0, 0xaf, ...utf8('"}')]), ...NOT_JSON },
  {
    name: "surrogates in UTF-8",
    body: Uint8Array.from([...utf8('{"a":"'), 0xed, 0xa0, 0x80, ...utf8('"}')]),
    ...NOT_JSON,
  },
  { name: "binary", body: Uint8Array.from({ length: 256 }, (_, i) => i), ...NOT_JSON },
]);

table("JSON that is not a request gets -32600, or -32602 if only its params are invalid", [
  ...["null", "42", '"x"', "true", "{}"].map((body) => ({ name: body, body, ...INVALID })),
  ...["[]", '[1,"x",null]', `[${goodBody}]`].map((body) => ({ name: body.slice(0, 20), body, ...INVALID })),
  ...[undefined, "1.0", 2.0, "2.0 ", null].map((jsonrpc) => ({
    name: `jsonrpc ${jsonrpc}`,
    body: message({ jsonrpc }),
    ...INVALID_REQUEST,
  })),
  ...["null", "{}", "[]", "true", "1.5", "1e400", "9007199254740993"].map((id) => ({
    name: `id ${id}`,
    body: goodBody.replace('"id":1', `"id":${id}`),
    ...INVALID,
  })),
  { name: "id too long", body: message({ id: "x".repeat(257) }), ...INVALID, says: "request.idCharacters" },
  ...[undefined, null, 5, {}, []].map((method) => ({
    name: `method ${method}`,
    body: message({ method }),
    ...INVALID_REQUEST,
  })),
  {
    name: "method too long",
    body: message({ method: "x".repeat(100_000) }),
    ...INVALID_REQUEST,
    says: "request.methodCharacters",
  },
  ...[null, [], [{}], "x", 5].map((params) => ({
    name: `params ${JSON.stringify(params)}`,
    body: message({ params }),
    ...INVALID_PARAMS,
  })),
  { name: "keys in different case", body: goodBody.replace('"method"', '"Method"'), ...INVALID_REQUEST },
  { name: "a look-alike key", body: goodBody.replace('"params"', '"param\u017f"'), ...INVALID_PARAMS },
  { name: "a response", body: '{"jsonrpc":"2.0","id":7,"result":{}}', ...INVALID },
  { name: "an error", body: '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}', ...INVALID },
  {
    name: "result and error",
    body: '{"jsonrpc":"2.0","id":7,"result":{},"error":{}}',
    status: 400,
    code: -32600,
    id: 7,
  },
  { name: "a request with a result", body: message({ result: {} }), ...INVALID_REQUEST },
  { name: "1,000 levels", body: deep(1000), ...INVALID, says: "request.depth" },
  { name: "brackets only", body: "[".repeat(1_000_000), ...INVALID, says: "request.depth" },
  { name: "200,001 values", body: `[${"{},".repeat(199_999)}1]`, ...INVALID, says: "request.values" },
  {
    name: "nested objects and arrays in turn",
    body: goodBody.replace('"arguments":{}', `"arguments":${'{"a":['.repeat(70)}1${"]}".repeat(70)}`),
    ...INVALID,
    says: "request.depth",
  },
]);

table("unusual but valid requests are served", [
  { name: "id 0", body: message({ id: 0 }), status: 200 },
  { name: "id -1", body: message({ id: -1 }), status: 200 },
  { name: "an empty id", body: message({ id: "" }), status: 200 },
  { name: "further keys", body: message({ extra: { a: 1 } }), status: 200 },
  { name: "levels below the limit", body: deep(100), status: 200 },
  { name: "the replacement character", body: message({ extra: "\ufffd" }), status: 200 },
  {
    name: "more brackets in a string than levels allowed",
    body: message({ extra: Array(200).fill([]), more: Array(200).fill({}) }),
    status: 200,
  },
  {
    name: "duplicate keys, the last of which is valid",
    body: goodBody.replace('"id":1', '"id":null,"id":1'),
    status: 200,
  },
  {
    name: "big numbers",
    body: goodBody.replace('"arguments":{}', `"arguments":{"n":1e999,"m":${"9".repeat(5000)}}`),
    status: 200,
  },
  {
    name: "a session id and an event id",
    headers: { "mcp-session-id": "x", "last-event-id": "y" },
    status: 200,
    header: ["mcp-session-id", null],
  },
  { name: "a query", path: "?a=1", status: 200 },
  {
    name: "no client info",
    body: message({ params: { name: "good", _meta: meta({ [META + "clientInfo"]: undefined }) } }),
    status: 200,
  },
  { name: "a lone surrogate", body: goodBody.replace('"arguments":{}', '"arguments":{"s":"\\ud800"}'), status: 200 },
  { name: "spaces around the name", headers: { "mcp-name": "  good\t" }, status: 200 },
  { name: "an encoded name", headers: { "mcp-name": `=?base64?${btoa("good")}?=` }, status: 200 },
]);

table("the size of a body is bounded, with a length and without", [
  { name: "at the limit", body: padded(LIMIT), status: 200 },
  { name: "over the limit", body: padded(LIMIT + 1), ...TOO_LARGE },
  { name: "10 MB", body: padded(10_000_000), ...TOO_LARGE },
  { name: "at the limit in chunks", body: chunked(padded(LIMIT)), status: 200 },
  { name: "over the limit in chunks", body: chunked(padded(LIMIT + 1)), ...TOO_LARGE },
  { name: "10 MB in chunks", body: chunked(padded(10_000_000)), ...TOO_LARGE },
]);

table("only JSON in UTF-8 is read", [
  ...[
    null,
    "",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonp",
    "application/json-patch+json",
    "application/json, text/plain",
    'text/plain; a="application/json"',
    "application/json; charset=utf-16",
    "application/json; charset=latin1",
  ].map((type) => ({ name: `type ${type}`, headers: { "content-type": type }, status: 415, code: -32600 })),
  ...["APPLICATION/JSON; charset=UTF-8", 'application/json;charset="utf-8"', "application/json ; x=y"].map((type) => ({
    name: `type ${type}`,
    headers: { "content-type": type },
    status: 200,
  })),
  { name: "compressed", headers: { "content-encoding": "gzip" }, status: 415, code: -32600, says: "Content-Encoding" },
]);

table("the response has a content type that the client accepts", [
  ...[null, "*/*", "application/*", "application/json", "APPLICATION/JSON", "text/html, application/json;q=0.1"].map((
    accept,
  ) => ({
    name: `accept ${accept}`,
    headers: { accept },
    status: 200,
    header: ["content-type", "application/json"] as const,
  })),
  ...["text/event-stream", "application/json;q=0, text/event-stream", "text/*"].map((accept) => ({
    name: `accept ${accept}`,
    headers: { accept },
    status: 200,
    header: ["content-type", "text/event-stream"] as const,
  })),
  ...["text/html", "application/json;q=0", "image/*", ",,,;;;"].map((accept) => ({
    name: `accept ${accept}`,
    headers: { accept },
    status: 406,
    code: -32600,
  })),
  { name: "errors are JSON, whatever Accept lists", headers: { accept: "text/event-stream" }, body: "x", ...NOT_JSON },
]);

table("only the endpoint responds, only to known methods, and only to allowed pages", [
  ...["/", "/other", "/mcp/", "/MCP", "/mcp;x", "/mcp%2f", "/mcp/x"].map((path) => ({
    name: path,
    path,
    ...NOT_FOUND,
  })),
  ...["PUT", "PATCH"].map((method) => ({
    name: method,
    method,
    status: 405,
    code: -32600,
    header: ["allow", "GET, POST, DELETE"] as const,
  })),
  // 2026-07-28 clients have no streams to open and no sessions to end.
  { name: "GET", method: "GET", status: 405, header: ["allow", "POST"] },
  { name: "DELETE", method: "DELETE", status: 405, header: ["allow", "POST"] },
  ...[
    "http://evil.example",
    "http://localhost.evil.example",
    "http://127.0.0.1.nip.io",
    "http://localhost:80@evil.example",
    "http://evil.example#localhost",
    "file://",
    "null",
    "garbage",
  ].map((origin) => ({
    name: `origin ${origin}`,
    headers: { origin },
    body: "not even JSON",
    status: 403,
    code: -32600,
    says: "origins",
  })),
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

table("the envelope is validated field by field", [
  { name: "no params", body: message({ params: undefined }), ...INVALID_PARAMS },
  ...([
    ["_meta missing", undefined],
    ["_meta null", null],
    ["_meta a text", "x"],
    ["_meta empty", {}],
    ["version a number", meta({ [META + "protocolVersion"]: 20260728 })],
    ["capabilities missing", meta({ [META + "clientCapabilities"]: undefined })],
    ["capabilities a list", meta({ [META + "clientCapabilities"]: [] })],
    ["client info as a string", meta({ [META + "clientInfo"]: "x" })],
    ["client info without a version", meta({ [META + "clientInfo"]: { name: "x" } })],
    ["log level unknown", meta({ [META + "logLevel"]: "loud" })],
    ["progress token as an object", meta({ progressToken: {} })],
    ["progress token as a fraction", meta({ progressToken: 1.5 })],
  ] as const).map(([name, _meta]) => ({ name, body: message({ params: { name: "good", _meta } }), ...INVALID_PARAMS })),
]);

const region = (args: Json, headers: Row["headers"] = {}) => ({
  headers: { "mcp-name": "region", ...headers },
  body: message({
    params: { name: "region", arguments: args, _meta: meta({ [META + "clientCapabilities"]: { elicitation: {} } }) },
  }),
});

table("headers repeat the body, or the request is refused with -32020", [
  ...["mcp-protocol-version", "mcp-method", "mcp-name"].map((name) => ({
    name: `no ${name}`,
    headers: { [name]: null },
    ...MISMATCH,
  })),
  ...["Tools/Call", "tools/list", "tools/call2", ""].map((method) => ({
    name: `method ${method}`,
    headers: { "mcp-method": method },
    ...MISMATCH,
  })),
  ...["Good", "go od", "", "=?base64?Z29vZA?=", "=?BASE64?Z29vZA==?=", "=?base64?Z29v!A==?=", "g\u00f6\u00f6d"].map((
    name,
  ) => ({ name: `name ${name}`, headers: { "mcp-name": name }, ...MISMATCH })),
  { name: "another version in the header", headers: { "mcp-protocol-version": "2026-07-29" }, ...MISMATCH },
  { name: "an argument that is not repeated", ...region({ region: "eu" }), ...MISMATCH },
  {
    name: "an argument that is repeated with another value",
    ...region({ region: "eu" }, { "mcp-param-region": "us" }),
    ...MISMATCH,
  },
  { name: "a header without an argument", ...region({}, { "mcp-param-region": "us" }), ...MISMATCH },
  { name: "null as argument", ...region({ region: null }, { "mcp-param-region": "us" }), ...MISMATCH },
  { name: "argument repeated", ...region({ region: "eu" }, { "Mcp-Param-REGION": "eu" }), status: 200 },
  {
    name: "argument encoded",
    ...region({ region: "e\u00fc" }, { "mcp-param-region": "=?base64?ZcO8?=" }),
    status: 200,
  },
  { name: "a number compared as a number", ...region({ count: 42 }, { "mcp-param-count": "42.0" }), status: 200 },
  { name: "another number", ...region({ count: 42 }, { "mcp-param-count": "43" }), ...MISMATCH },
  { name: "a header that no schema names", ...region({}, { "mcp-param-other": "x" }), status: 200 },
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

Deno.test("a session responds to invalid input as its revision defines", () =>
  withServers(async (send) => {
    const session = await shake(send);
    const headers = { ...OLD, "mcp-session-id": session };
    const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const rows: readonly Row[] = [
      { name: "a request", headers, body: list, status: 200 },
      { name: "no version header", headers: { ...headers, "mcp-protocol-version": null }, body: list, status: 200 },
      {
        name: "another known version",
        headers: { ...headers, "mcp-protocol-version": "2025-03-26" },
        body: list,
        status: 200,
      },
      {
        name: "an unknown version",
        headers: { ...headers, "mcp-protocol-version": "1999-01-01" },
        body: list,
        ...INVALID_REQUEST,
      },
      { name: "no session", headers: OLD, body: list, status: 200 },
      ...["x", "__proto__", `${session}x`, session.slice(0, -1), session.toUpperCase(), "x".repeat(5000), "a, b"].map((
        id,
      ) => ({
        name: `session ${id.slice(0, 20)}`,
        headers: { ...headers, "mcp-session-id": id },
        body: list,
        ...NOT_FOUND,
        id: 1,
      })),
      { name: "no JSON", headers, body: "{", ...NOT_JSON },
      { name: "no request", headers, body: "{}", ...INVALID },
      { name: "id null", headers, body: list.replace('"id":1', '"id":null'), ...INVALID },
      { name: "params a list", headers, body: list.replace("}", ',"params":[]}'), ...INVALID_PARAMS },
      { name: "1,000 levels", headers, body: deep(1000), ...INVALID, says: "request.depth" },
      { name: "200,001 values", headers, body: `[${"{},".repeat(199_999)}1]`, ...INVALID, says: "request.values" },
      { name: "10 MB", headers, body: padded(10_000_000), ...TOO_LARGE },
      { name: "a batch", headers, body: `[${list}]`, ...INVALID },
      {
        name: "an unknown method",
        headers,
        body: list.replace("tools/list", "no/such"),
        status: 200,
        code: -32601,
        id: 1,
      },
      { name: "an unknown tool", headers, body: call("gone"), status: 200, code: -32602, id: 1 },
      { name: "a notification", headers, body: '{"jsonrpc":"2.0","method":"notifications/initialized"}', status: 202 },
      { name: "a response without a question", headers, body: '{"jsonrpc":"2.0","id":7,"result":{}}', status: 202 },
      { name: "a second handshake", headers, body: initialize, status: 400, code: -32600, id: 0 },
      {
        name: "a handshake without params",
        headers: OLD,
        body: initialize.replace(/,"params.*/, "}"),
        status: 400,
        code: -32602,
        id: 0,
      },
      {
        name: "GET for JSON",
        method: "GET",
        headers: { ...headers, accept: "application/json" },
        status: 406,
        code: -32600,
      },
      { name: "GET without a session", method: "GET", headers: OLD, status: 405, code: -32600 },
      {
        name: "GET of an unknown session",
        method: "GET",
        headers: { ...headers, "mcp-session-id": "x" },
        ...NOT_FOUND,
      },
      ...["garbage", "1e30", "__proto__", "a_b_c", "x".repeat(5000), `${crypto.randomUUID().slice(0, 13)}_1`].map((
        id,
      ) => ({
        name: `GET after event ${id.slice(0, 20)}`,
        method: "GET",
        headers: { ...headers, "last-event-id": id },
        ...INVALID,
      })),
      { name: "DELETE without a session", method: "DELETE", headers: OLD, status: 405, code: -32600 },
      {
        name: "DELETE of an unknown session",
        method: "DELETE",
        headers: { ...headers, "mcp-session-id": "x" },
        ...NOT_FOUND,
      },
      { name: "the session stays open", headers, body: list, status: 200 },
    ];
    // Calls in a session have no `_meta` envelope.
    for (const row of rows) {
      await check(send, { ...row, body: row.body === undefined ? undefined : withoutMeta(row.body) });
    }
  }));

function withoutMeta(body: Body): Body {
  return typeof body === "string" ? body.replace(/,"_meta":\{.*?\{.*?\}.*?\}\}/, "") : body;
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

Deno.test("a session of revision 2025-03-26 can send batches", () =>
  withServers(async (send) => {
    const headers = { ...OLD, "mcp-protocol-version": null, "mcp-session-id": await shake(send, "2025-03-26") };
    const one = (id: unknown, method = "ping") => JSON.stringify({ jsonrpc: "2.0", id, method });
    const note = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
    const response = await send({ headers, body: `[${one(1)},${note},${one("b", "no/such")},5]` });
    assertEquals(response.status, 200);
    const answers = JSON.parse(toReply(await response.text())).map((
      answer: Json,
    ) => [answer.id, Object(answer.error).code]);
    assertEquals(answers, [[1, undefined], ["b", -32601], [null, -32600]]);
    const quiet = await send({ headers, body: `[${note},${note}]` });
    assertEquals([quiet.status, await quiet.text()], [202, ""]);
    const bad = [
      "[]",
      `[${one(1)},${one(1)}]`,
      `[${initialize}]`,
      `[${Array.from({ length: 101 }, (_, id) => one(id))}]`,
    ];
    for (const body of bad) {
      await check(send, { name: body.slice(0, 60), headers, body, status: 400, code: -32600, id: null });
    }
  }));
