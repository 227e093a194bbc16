// `doctor`, asked about servers of which each has one thing wrong. All are in this process.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { examine, type ExamineOptions } from "../../src/cli/doctor/examine.ts";
import type { Finding } from "../../src/cli/doctor/report.ts";
import { createServer as createModernServer } from "../../src/modern.ts";
import { httpSse } from "../../src/transports/http/sse_2024.ts";

type Fetch = (request: Request) => Promise<Response> | Response;

const url = "http://localhost:3000/mcp";
const page = "http://localhost:6274";
const hello = tool({ name: "hello", description: "Says hello", run: () => "Hello!" });
const well = { name: "well", version: "1.0.0", handlers: [hello] } as const;

/** What is found, beside what is well. `fetch` answers requests to a host of any name as well. */
async function find(fetch: Fetch, options: Partial<ExamineOptions> = {}): Promise<readonly Finding[]> {
  return await examine({
    url,
    timeoutMs: 2000,
    fetch: async (request) => await fetch(request),
    sendAs: async (url, { headers, body }) => (await fetch(new Request(url, { method: "POST", headers, body }))).status,
    ...options,
  });
}

function listBad(findings: readonly Finding[]): readonly string[] {
  return findings.filter(({ level }) => level !== "ok").map(({ level, check, what }) => `${level}: ${check}: ${what}`);
}

/** Runs with a server of this library behind something that breaks it. */
async function withServer<T>(
  use: (fetch: Fetch) => Promise<T>,
  options: Partial<ServerOptions> = {},
): Promise<T> {
  const server = createServer({ ...well, ...options });
  try {
    return await use(server.fetch);
  } finally {
    await server.close();
  }
}

const NO_CORS = /^note: cors: a page of http:\/\/localhost:6274 may not call: OPTIONS is answered with 40[135]/;

Deno.test("doctor finds nothing wrong with a server of this library", async () => {
  const findings = await withServer((fetch) => find(fetch, { heartbeatMs: 20 }));
  const bad = listBad(findings).toSorted();
  assertMatch(bad[0], NO_CORS);
  assertMatch(bad[1], /^note: stream: the quiet stream of GET says nothing for 0\.02 s/);
  assertMatch(bad[2], /^note: stream: the quiet stream of subscriptions\/listen says nothing for 0\.02 s/);
  assertEquals(bad.length, 3);
  const checks = new Set(findings.map(({ check }) => check));
  const all =
    "reach,2026-07-28,handshake,initialized,session,session missing,session unknown,content type,broken JSON," +
    "accept,unknown method,version header,repeated headers,stream,foreign origin,foreign host,cors,latency,session end," +
    "offer";
  assertEquals([...checks].join(), all);
  const withPage = { origin: page, headers: { authorization: "Bearer abc" } };
  const asked = await withServer((fetch) => find(fetch, withPage), { cors: { origins: [page] } });
  assertEquals(listBad(asked), ["note: token: it answers without the token as well"]);
});

/** What a broken server does: `next` is the server that is well. */
interface Broken {
  readonly says: string;
  readonly fetch: (request: Request, next: Fetch) => Promise<Response> | Response;
  /** What is found beside what a server that is well gets: patterns of `level: check: what`. */
  readonly found: readonly RegExp[];
  readonly server?: Partial<ServerOptions>;
  readonly options?: Partial<ExamineOptions>;
}

const json = (value: unknown, init?: ResponseInit) => Response.json(value, init);
const hang = () => new Promise<never>(() => {});
const readBody = (request: Request) => request.clone().json().catch(() => undefined);

/** The same request with other headers. */
function withHeaders(request: Request, change: (headers: Headers) => void): Request {
  const headers = new Headers(request.headers);
  change(headers);
  return new Request(request, { headers });
}

/** The same response with other headers. */
function answerWith(response: Response, change: (headers: Headers) => void, status = response.status): Response {
  const headers = new Headers(response.headers);
  change(headers);
  return new Response(response.body, { status, headers });
}

/** A server whose answer to one method is another one. */
function onMethod(
  method: string,
  change: (result: Record<string, unknown>, response: Response, request: Request) => unknown,
): Broken["fetch"] {
  return async (request, next) => {
    const body = await readBody(request);
    const response = await next(request);
    if (body?.method !== method || !response.ok) return response;
    const message = await response.json();
    const changed = await change(message.result ?? {}, response, request);
    if (changed instanceof Response) return changed;
    return json({ ...message, ...changed ?? {} }, { headers: response.headers });
  };
}

/** An OAuth server's metadata, and those of a resource, around a server that wants the token "good". */
function guarded(
  { challenge = 'Bearer resource_metadata="http://localhost:3000/meta"', resource = {}, issuer = {} }: {
    readonly challenge?: string | null;
    readonly resource?: Record<string, unknown> | null;
    readonly issuer?: Record<string, unknown> | null;
  },
): Broken["fetch"] {
  return (request, next) => {
    const { pathname, origin } = new URL(request.url);
    if (resource && ["/meta", "/.well-known/oauth-protected-resource/mcp"].includes(pathname)) {
      assertEquals(request.headers.get("authorization"), null, "a token was sent where it was not wanted");
      return json({ resource: url, authorization_servers: [origin], ...resource });
    }
    if (issuer && pathname === "/.well-known/oauth-authorization-server") {
      return json({
        issuer: origin,
        authorization_endpoint: `${origin}/a`,
        token_endpoint: `${origin}/t`,
        registration_endpoint: `${origin}/r`,
        code_challenge_methods_supported: ["S256"],
        ...issuer,
      });
    }
    if (pathname !== "/mcp") return new Response(null, { status: 404 });
    if (request.headers.get("authorization") === "Bearer good") return next(request);
    return new Response(null, { status: 401, headers: challenge === null ? {} : { "www-authenticate": challenge } });
  };
}

const WANTS = /^note: token: it wants a token \(401\)$/;

/** A preflight as `cors` answers it, with one thing changed. */
function withPreflight(change: (headers: Headers) => void): Broken["fetch"] {
  return async (request, next) => {
    const response = await next(request);
    return request.method === "OPTIONS" ? answerWith(response, change) : response;
  };
}

const broken: readonly Broken[] = [
  {
    says: "never answers",
    fetch: hang,
    options: { timeoutMs: 30 },
    found: [/^problem: reach: no answer came in 0\.03 s$/],
  },
  {
    says: "stops answering",
    fetch: async (request, next) => {
      const body = await readBody(request);
      return ["server/discover", "initialize", undefined].includes(body?.method) ? next(request) : hang();
    },
    options: { timeoutMs: 1000 },
    found: [
      /^problem: initialized: no answer came in 1 s$/,
      /^problem: session missing: no answer/,
      /^problem: session unknown: no answer/,
      /^problem: end: 3 requests got no answer, so nothing more was asked$/,
    ],
  },
  {
    says: "is a web site",
    fetch: () => new Response("<h1>Hello</h1>", { headers: { "content-type": "text/html; charset=utf-8" } }),
    found: [/^problem: path: nobody speaks MCP at \/mcp: it answers 200 with a web page$/],
  },
  {
    says: "is somewhere else",
    fetch: (request, next) => next(request),
    options: { url: "http://localhost:3000/api" },
    found: [/^problem: path: nobody speaks MCP at \/api: it answers 404 with the error -32600, /],
  },
  {
    says: "redirects",
    fetch: () => new Response(null, { status: 307, headers: { location: "/mcp/" } }),
    found: [/^problem: reach: it redirects to http:\/\/localhost:3000\/mcp\/ \(307\)/],
  },
  {
    says: "is behind a proxy that does not reach it",
    fetch: () => new Response("<h1>Bad gateway</h1>", { status: 502 }),
    found: [/^problem: reach: what stands in front of the server cannot reach it \(502\)$/],
  },
  {
    says: "lets nobody in",
    fetch: () => json({ jsonrpc: "2.0", error: { code: -32600, message: "No\x1b[2J\u202e\u061cgo" } }, { status: 403 }),
    // What would steer a terminal is escaped.
    found: [
      /^problem: reach: it refuses this client: 403 with the error -32600, "No\\u001b\[2J\\u\{202e\}\\u\{61c\}go"$/,
    ],
  },
  {
    says: "does not name the revision that it speaks",
    fetch: onMethod("server/discover", (result) => ({ result: { ...result, supportedVersions: ["2025-11-25"] } })),
    // Its own client goes by what the server says.
    found: [/^problem: 2026-07-28: server\/discover does not name 2026-07-28/],
  },
  {
    says: "does not say who it is",
    fetch: onMethod("initialize", ({ serverInfo: _, ...result }) => ({ result })),
    found: [/^problem: handshake: initialize does not say who the server is$/],
  },
  {
    says: "speaks a revision of its own",
    fetch: onMethod("initialize", (result) => ({ result: { ...result, protocolVersion: "2023-01-01" } })),
    found: [
      /^problem: handshake: initialize is answered with the revision "2023-01-01", which no client knows$/,
    ],
  },
  {
    says: "answers notifications",
    fetch: async (request, next) => {
      const body = await readBody(request);
      const response = await next(request);
      return body?.method === "notifications/initialized" ? new Response(null, { status: 500 }) : response;
    },
    found: [/^problem: initialized: a notification is answered with 500$/],
  },
  {
    says: "does not say that a session is not known",
    fetch: async (request, next) => {
      const response = await next(request);
      return response.status === 404 && request.headers.has("mcp-session-id")
        ? new Response("Bad session", { status: 400 })
        : response;
    },
    found: [
      /^problem: session unknown: a session that is not known is answered with 400/,
      /^problem: session end: DELETE is answered with 204, but a request of the session then with 400/,
    ],
  },
  {
    says: "does not end sessions",
    fetch: (request, next) => request.method === "DELETE" ? new Response(null, { status: 200 }) : next(request),
    found: [
      /^problem: session end: DELETE is answered with 200, but a request of the session then with 200 with a res/,
    ],
  },
  {
    says: "lets no session be ended",
    fetch: (request, next) => request.method === "DELETE" ? new Response(null, { status: 405 }) : next(request),
    found: [/^note: session end: DELETE is answered with 405: clients cannot end their sessions$/],
  },
  {
    says: "takes a missing session for one that has ended",
    fetch: async (request, next) => {
      const body = await readBody(request);
      const isWithout = body?.method === "ping" && !request.headers.has("mcp-session-id");
      return isWithout ? new Response(null, { status: 404 }) : next(request);
    },
    found: [/^note: session missing: a request without Mcp-Session-Id is answered with 404$/],
  },
  {
    says: "takes any type of body",
    fetch: (request, next) =>
      next(
        request.method === "POST"
          ? withHeaders(request, (headers) => headers.set("content-type", "application/json"))
          : request,
      ),
    found: [/^problem: content type: a body of text\/plain is answered as if it were JSON/],
  },
  {
    says: "fails over broken JSON",
    fetch: async (request, next) => {
      const response = await next(request);
      return response.status === 400 && request.method === "POST" && (await readBody(response.clone() as never))?.error
            ?.code === -32700
        ? new Response("<h1>Oops</h1>", { status: 500 })
        : response;
    },
    found: [/^problem: broken JSON: broken JSON is answered with 500/],
  },
  {
    says: "streams to those who want none",
    fetch: async (request, next) => {
      const isPlain = request.headers.get("accept") === "application/json";
      const response = await next(request);
      if (!isPlain || !response.ok) return response;
      return new Response(`data: ${await response.text()}\n\n`, { headers: { "content-type": "text/event-stream" } });
    },
    found: [/^problem: accept: a client whose Accept lists application\/json alone gets a stream$/],
  },
  {
    says: "has its own way with methods that it does not know",
    fetch: async (request, next) => {
      const body = await readBody(request);
      const response = await next(request);
      return body?.method === "doctor/unknown" ? answerWith(response, () => {}, response.ok ? 404 : 200) : response;
    },
    found: [
      /^problem: unknown method: a method that is not there is answered with 200 with the error -32601.*\(2026-07-28\)$/,
      /^problem: unknown method: a method that is not there is answered with 404 with the error -32601.*\(2025-11-25\)$/,
    ],
  },
  {
    says: "does not look at headers",
    fetch: async (request, next) => {
      const body = await readBody(request);
      const meta = body?.params?._meta;
      const version = request.headers.get("mcp-protocol-version");
      return next(withHeaders(request, (headers) => {
        if (version === "1999-01-01" && !meta) headers.delete("mcp-protocol-version");
        if (meta && request.headers.has("mcp-method")) headers.set("mcp-method", body.method);
      }));
    },
    found: [
      /^problem: repeated headers: a Mcp-Method header that the body contradicts is answered with 200 with a result$/,
      /^problem: version header: a MCP-Protocol-Version that nobody knows is answered with 200 .* \(2025-11-25\)$/,
    ],
  },
  {
    says: "answers GET with a page",
    fetch: (request, next) =>
      request.method === "GET" ? new Response("Hello", { headers: { "content-type": "text/plain" } }) : next(request),
    found: [/^problem: stream: GET is answered with 200 with text\/plain: Hello \(2025-11-25\)$/],
  },
  {
    says: "has no stream",
    fetch: (request, next) => request.method === "GET" ? new Response(null, { status: 405 }) : next(request),
    found: [/^note: stream: GET is not served \(2025-11-25\): clients hear of no changes$/],
  },
  {
    says: "is held back by a proxy",
    fetch: async (request, next) => {
      const response = await next(request);
      const isStream = response.headers.get("content-type") === "text/event-stream";
      return isStream ? hang() : response;
    },
    options: { timeoutMs: 1000 },
    found: [/^problem: stream: no answer came in 1 s$/],
  },
  {
    says: "opens a stream that says nothing, and is compressed",
    options: { timeoutMs: 200 },
    fetch: (request, next) =>
      request.method === "GET"
        ? new Response(new ReadableStream(), {
          headers: { "content-type": "text/event-stream", "content-encoding": "gzip" },
        })
        : next(request),
    found: [
      /^note: stream: the stream of GET opens in \d+ ms, and then no byte comes \(2025-11-25\): some proxies hold it/,
      /^note: stream: the stream has no header X-Accel-Buffering: no/,
      /^note: stream: the stream is compressed \(gzip\), which holds events back$/,
    ],
  },
  {
    says: "lets pages of every origin in",
    fetch: (request, next) => next(withHeaders(request, (headers) => headers.delete("origin"))),
    found: [
      /^problem: foreign origin: a page of any origin is answered: https:\/\/stranger\.invalid got a result, and/,
    ],
  },
  {
    says: "takes any name for its own",
    fetch: (request, next) => next(withHeaders(request, (headers) => headers.delete("host"))),
    found: [/^problem: foreign host: a request for the host stranger\.invalid is answered \(200\): with DNS rebinding/],
  },
  {
    says: "does not let the page in that it should",
    fetch: (request, next) => request.method === "OPTIONS" ? new Response(null, { status: 401 }) : next(request),
    options: { origin: page },
    found: [
      /^problem: cors: a page of http:\/\/localhost:6274 may not call: OPTIONS is answered with 401 and no Access/,
    ],
  },
  {
    says: "forgets a header that pages send",
    server: { cors: { origins: [page] } },
    fetch: withPreflight((headers) => headers.set("access-control-allow-headers", "content-type, last-event-id")),
    found: [/^problem: cors: pages of http:\/\/localhost:6274 may not send mcp-protocol-version, mcp-session-id$/],
  },
  {
    says: "does not let pages end sessions",
    server: { cors: { origins: [page] } },
    fetch: withPreflight((headers) => headers.set("access-control-allow-methods", "GET, POST")),
    found: [/^problem: cors: pages of http:\/\/localhost:6274 may not end sessions$/],
  },
  {
    says: "hides the session from pages",
    server: { cors: { origins: [page] } },
    fetch: async (request, next) =>
      answerWith(await next(request), (headers) => headers.delete("access-control-expose-headers")),
    found: [/^problem: cors: pages of http:\/\/localhost:6274 cannot read Mcp-Session-Id/],
  },
  {
    says: "lets every page read everything",
    server: { cors: { origins: "*" } },
    fetch: async (request, next) =>
      answerWith(await next(request), (headers) => headers.set("access-control-allow-origin", "*")),
    found: [
      /^problem: foreign origin: a page of any origin is answered/,
      /^problem: cors: every web page may call this server and read its answers$/,
    ],
  },
  { says: "wants a token, and says all about it", fetch: guarded({}), found: [WANTS] },
  {
    says: "wants a token, and does not say so",
    fetch: guarded({ challenge: null }),
    found: [WANTS, /^problem: challenge: the 401 has no WWW-Authenticate header$/],
  },
  {
    says: "wants a token, and has no metadata",
    fetch: guarded({ resource: null }),
    found: [
      WANTS,
      /^problem: metadata: there is no metadata of the protected resource at http:\/\/localhost:3000\/meta$/,
    ],
  },
  {
    says: "has the metadata of another server",
    fetch: guarded({ resource: { resource: "https://other.example/mcp" } }),
    found: [
      WANTS,
      /^problem: metadata: the metadata at \S+ is for "https:\/\/other\.example\/mcp", not for this server$/,
    ],
  },
  {
    says: "has an authorization server that nobody may use",
    fetch: guarded({
      issuer: { issuer: "https://x.example", code_challenge_methods_supported: [], token_endpoint: 1 },
    }),
    found: [
      WANTS,
      /^problem: authorization server: the metadata at \S+ is that of "https:\/\/x\.example"$/,
      /^problem: authorization server: the metadata at \S+ has no token_endpoint$/,
      /^problem: authorization server: the metadata at \S+ does not say that PKCE works/,
    ],
  },
  {
    says: "does not take the token",
    fetch: guarded({}),
    options: { headers: { authorization: "Bearer bad" } },
    found: [/^problem: token: the token is not taken: it answers 401$/],
  },
  {
    says: "wants a token, and gets it",
    fetch: guarded({}),
    options: { headers: { authorization: "Bearer good" } },
    found: [],
  },
  {
    says: "lists tools that nobody can use",
    fetch: onMethod("tools/list", (result) => ({
      result: {
        ...result,
        tools: [
          { name: 5, inputSchema: { type: "object" } },
          { name: "a", description: "A", inputSchema: { type: "object" } },
          { name: "a", description: "A", inputSchema: { type: "object" } },
          { name: "b", description: "B" },
          { name: "c", description: "C", inputSchema: { type: "array" } },
          {
            name: "d",
            description: "D",
            inputSchema: {
              type: "object",
              properties: { n: { type: "number", description: "N", "x-mcp-header": "n" } },
            },
          },
          { name: "e", inputSchema: { type: "object" } },
        ],
      },
    })),
    found: [
      /^problem: offer: Cannot offer the tool d: /,
      /^problem: offer: tool 5: its name is no text$/,
      /^problem: offer: tool "a": it is listed twice$/,
      /^problem: offer: tool "b": it has no inputSchema$/,
      /^problem: offer: tool "c": the type of its inputSchema is "array", not "object"$/,
      /^problem: offer: tool e: it has no description, so a model cannot know when to call it$/,
    ],
  },
  {
    says: "lists pages without end",
    fetch: async (request, next) => {
      const body = await readBody(request);
      if (body?.method !== "tools/list") return next(request);
      await new Promise((resolve) => setTimeout(resolve, 5));
      const page = { tools: [], nextCursor: crypto.randomUUID() };
      return json({ jsonrpc: "2.0", id: body.id, result: { ...page, resultType: "complete", ttlMs: 0 } });
    },
    options: { timeoutMs: 200 },
    found: [/^problem: offer: its lists cannot be read to their end: it takes longer than 0\.8 s$/],
  },
  {
    says: "fails",
    fetch: () => new Response("x".repeat(1000), { status: 500, headers: { "content-type": "text/plain" } }),
    found: [/^problem: path: nobody speaks MCP at \/mcp: it answers 500 with text\/plain: x{120}$/],
  },
  {
    says: "cannot list its tools",
    fetch: onMethod("tools/list", () => ({ result: undefined, error: { code: -32603, message: "Internal error" } })),
    found: [/^problem: offer: tools: they cannot be listed: Internal error$/],
  },
];

for (const { says, fetch, found, server, options } of broken) {
  Deno.test(`doctor names what is wrong with a server that ${says}`, async () => {
    const findings = await withServer((next) => find((request) => fetch(request, next), options), server);
    const bad = listBad(findings).filter((each) => !NO_CORS.test(each));
    for (const each of bad) assert(found.some((pattern) => pattern.test(each)), `not expected: ${each}`);
    for (const pattern of found) {
      assert(bad.some((each) => pattern.test(each)), `${pattern} is not in\n${bad.join("\n")}`);
    }
    for (const { level, mend } of findings) assertEquals(level === "ok", mend === undefined);
  });
}

Deno.test("doctor calls no tool, and ends every session that it begins, also when it is stopped", async () => {
  for (const stopsAt of [undefined, "GET", "notifications/initialized", "initialize"]) {
    const open = new Set<string | null>();
    const methods = new Set<string>();
    const stop = new AbortController();
    await withServer((next) =>
      find(async (request) => {
        const body = await readBody(request);
        methods.add(body?.method);
        if (stopsAt !== undefined && [request.method, body?.method].includes(stopsAt) && open.size) stop.abort();
        const response = await next(request);
        const id = response.headers.get("mcp-session-id");
        if (id !== null) open.add(id);
        if (request.method === "DELETE" && response.ok) open.delete(request.headers.get("mcp-session-id"));
        return response;
      }, { signal: stop.signal })
    );
    assertEquals([...open], [], `stopped at ${stopsAt}`);
    assert(!methods.has("tools/call") && methods.has("initialize"));
  }
});

Deno.test("doctor tells where else the server answers", async () => {
  const findings = await withServer((fetch) => find(fetch, { url: "http://localhost:3000/" }));
  assertEquals(findings.at(-1)?.mend, "use http://localhost:3000/mcp (2026-07-28)");
});

Deno.test("doctor tells which revisions are not served", async () => {
  const server = createModernServer(well);
  const bad = listBad(await find(server.fetch));
  assertMatch(bad[0], /^note: handshake: no handshake is taken: clients of 2025-11-25 and before/);
  assertMatch(bad[1], NO_CORS);
  assertEquals(bad.length, 2);
  await server.close();
});

Deno.test("doctor knows the first transport, and lists over it", async () => {
  const server = createServer(well);
  const old = httpSse(server);
  const findings = await find(old.fetch, { url: "http://localhost:3000/sse" });
  assertEquals(listBad(findings), [
    "note: first transport: it speaks the transport of 2024-11-05 alone, HTTP with SSE, which newer clients give up",
  ]);
  assertMatch(findings.at(-1)?.what ?? "", /^it lists 1 tool, /);
  await server.close();
});

/** A server of the official library, as its documentation begins one. */
function createOfficial(): McpServer {
  const server = new McpServer({ name: "official", version: "1.0.0" });
  server.registerTool("hello", { description: "Says hello" }, () => ({ content: [{ type: "text", text: "Hello!" }] }));
  return server;
}

const OFFICIAL = [
  "problem: foreign origin: a page of any origin is answered: https://stranger.invalid got a result, and with DNS " +
  "rebinding any web page can use this server",
  "problem: foreign host: a request for the host stranger.invalid is answered (200): with DNS rebinding any web page " +
  "can use this server",
];

Deno.test("doctor knows what the official server leaves to others", async () => {
  const transports = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const findings = await find(async (request) => {
    const known = transports.get(request.headers.get("mcp-session-id") ?? "");
    if (known) return await known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id: string) => void transports.set(id, transport),
    });
    await createOfficial().connect(transport);
    return await transport.handleRequest(request);
  }, { timeoutMs: 1000 });
  assertEquals(listBad(findings).filter((each) => each.startsWith("problem")), [
    "problem: session unknown: a session that is not known is answered with 400 with the error -32000, " +
    '"Bad Request: Server not initialized"',
    ...OFFICIAL,
  ]);
});

Deno.test("doctor tells a server that takes one client only", async () => {
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => crypto.randomUUID() });
  await createOfficial().connect(transport);
  const findings = await find((request) => transport.handleRequest(request), { timeoutMs: 1000 });
  assertEquals(listBad(findings).filter((each) => each.startsWith("problem")), [
    'problem: handshake: initialize was taken once; the next one got 400 with the error -32600, "Invalid Request: ' +
    'Server already initialized"',
    ...OFFICIAL,
    "problem: offer: a client cannot connect: Session not found",
  ]);
});
