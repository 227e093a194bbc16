// `doctor` with in-process servers. Each server has one defect.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { examine, type ExamineOptions } from "../../src/cli/doctor/examination.ts";
import type { Finding } from "../../src/cli/doctor/report.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { sentence } from "../support/messages.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { createLibrary } from "../client/server.ts";

type Fetch = (request: Request) => Promise<Response> | Response;

const url = "http://localhost:3000/mcp";
const page = "http://localhost:6274";
const annotations = { readOnlyHint: true };
const hello = tool({ name: "hello", description: "Says hello", annotations, run: () => "Hello!" });
const well = { name: "well", version: "1.0.0", handlers: [hello] } as const;

/** Examines a server whose `fetch` handles requests to every host. */
async function runDoctor(fetch: Fetch, options: Partial<ExamineOptions> = {}): Promise<readonly Finding[]> {
  return await examine({
    url,
    timeoutMs: 2000,
    fetch: async (request) => await fetch(request),
    sendAs: async (url, { headers, body }) => (await fetch(new Request(url, { method: "POST", headers, body }))).status,
    ...options,
  });
}

function listDefects(findings: readonly Finding[]): readonly string[] {
  return findings.filter(({ level }) => level !== "ok").map(({ level, check, message }) =>
    `${level}: ${check}: ${message}`
  );
}

/** Runs a function with the `fetch` of a server of this library. */
async function withServer<T>(
  use: (fetch: Fetch) => Promise<T>,
  options: Partial<ServerOptions> = {},
): Promise<T> {
  await using server = createServer({ ...well, ...options });
  return await use(server.fetch);
}

const NO_CORS = /^note: cors: .*http:\/\/localhost:6274 .*OPTIONS .*40[135]/;

Deno.test("doctor finds no problem with a server of this library", async () => {
  const findings = await withServer((fetch) => runDoctor(fetch, { heartbeatMs: 20 }));
  const bad = listDefects(findings).toSorted();
  assertMatch(bad[0], NO_CORS);
  assertEquals(bad[1], `note: stream: ${sentence("GET", "0.02 s")}`);
  assertEquals(bad[2], `note: stream: ${sentence("subscriptions/listen", "0.02 s")}`);
  assertEquals(bad.length, 3);
  const checks = new Set(findings.map(({ check }) => check));
  const all =
    "connection,2026-07-28,handshake,initialized,session,session missing,session unknown,content type,invalid JSON," +
    "accept,unknown method,version header,repeated headers,stream,foreign origin,foreign host,cors,latency,session end," +
    "lists";
  assertEquals([...checks].join(), all);
  const withPage = { origin: page, headers: { authorization: "Bearer abc" } };
  const asked = await withServer((fetch) => runDoctor(fetch, withPage), { cors: { origins: [page] } });
  assertEquals(listDefects(asked), [`note: token: ${sentence()}`]);
});

/** Handles the requests to a server with one defect. `next` is the correct server. */
type Break = (request: Request, next: Fetch) => Promise<Response> | Response;

const json = (value: unknown, init?: ResponseInit) => Response.json(value, init);
const hang = () => new Promise<never>(() => {});
const readBody = (request: Request) => request.clone().json().catch(() => undefined);

/** Returns the same request with other headers. */
function withHeaders(request: Request, change: (headers: Headers) => void): Request {
  const headers = new Headers(request.headers);
  change(headers);
  return new Request(request, { headers });
}

/** Returns the same response with other headers. */
function answerWith(response: Response, change: (headers: Headers) => void, status = response.status): Response {
  const headers = new Headers(response.headers);
  change(headers);
  return new Response(response.body, { status, headers });
}

/** Changes the response of a server to one method. */
function onMethod(
  method: string,
  change: (result: Record<string, unknown>, response: Response, request: Request) => unknown,
): Break {
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

/** Changes the headers of the response to a preflight request. */
function withPreflight(change: (headers: Headers) => void): Break {
  return async (request, next) => {
    const response = await next(request);
    return request.method === "OPTIONS" ? answerWith(response, change) : response;
  };
}

/** Servers with one defect, and the findings that a correct server does not cause, in the form `level: check: message`. */
const broken: readonly (readonly [
  title: string,
  fetch: Break,
  found: readonly string[],
  options?: Partial<ExamineOptions> & Pick<ServerOptions, "cors">,
])[] = [
  ["never responds", hang, [`problem: connection: ${sentence("0.03 s")}`], { timeoutMs: 30 }],
  ["stops responding", async (request, next) => {
    const body = await readBody(request);
    return ["server/discover", "initialize", undefined].includes(body?.method) ? next(request) : hang();
  }, [
    `problem: initialized: ${sentence("1 s")}`,
    `problem: session missing: ${sentence("1 s")}`,
    `problem: session unknown: ${sentence("1 s")}`,
    `problem: end: ${sentence(3)}`,
  ], { timeoutMs: 1000 }],
  ["is a website", () => new Response("<h1>Hello</h1>", { headers: { "content-type": "text/html; charset=utf-8" } }), [
    `problem: path: ${sentence("/mcp", 200)}`,
  ]],
  ["serves another path", (request, next) => next(request), [`problem: path: ${sentence("/api", 404, -32600)}`], {
    url: "http://localhost:3000/api",
  }],
  ["redirects", () => new Response(null, { status: 307, headers: { location: "/mcp/" } }), [
    `problem: connection: ${sentence("http://localhost:3000/mcp/", 307)}`,
  ]],
  ["is behind a proxy that cannot reach it", () => new Response("<h1>Bad gateway</h1>", { status: 502 }), [
    `problem: connection: ${sentence(502)}`,
  ]],
  [
    "rejects all clients",
    () => json({ jsonrpc: "2.0", error: { code: -32600, message: "No\x1b[2J\u202e\u061cgo" } }, { status: 403 }),
    [`problem: connection: ${sentence(403, -32600, '"No\\u001b[2J\\u{202e}\\u{61c}go"')}`],
  ],
  [
    "does not list its revision",
    onMethod("server/discover", (result) => ({ result: { ...result, supportedVersions: ["2025-11-25"] } })),
    [`problem: 2026-07-28: ${sentence("server/discover", "2026-07-28")}`],
  ],
  ["does not identify itself", onMethod("initialize", ({ serverInfo: _, ...result }) => ({ result })), [
    `problem: handshake: ${sentence("initialize")}`,
  ]],
  [
    "responds with an unknown revision",
    onMethod("initialize", (result) => ({ result: { ...result, protocolVersion: "2023-01-01" } })),
    [`problem: handshake: ${sentence("initialize", '"2023-01-01"')}`],
  ],
  ["rejects notifications", async (request, next) => {
    const body = await readBody(request);
    const response = await next(request);
    return body?.method === "notifications/initialized" ? new Response(null, { status: 500 }) : response;
  }, [`problem: initialized: ${sentence(500)}`]],
  ["does not reject unknown sessions", async (request, next) => {
    const response = await next(request);
    return response.status === 404 && request.headers.has("mcp-session-id")
      ? new Response("Bad session", { status: 400 })
      : response;
  }, [`problem: session unknown: ${sentence(400)}`, `problem: session end: ${sentence("DELETE", 204, 400)}`]],
  [
    "does not end sessions",
    (request, next) => request.method === "DELETE" ? new Response(null, { status: 200 }) : next(request),
    [`problem: session end: ${sentence("DELETE", 200)}`],
  ],
  [
    "does not support DELETE",
    (request, next) => request.method === "DELETE" ? new Response(null, { status: 405 }) : next(request),
    [`note: session end: ${sentence("DELETE", 405)}`],
  ],
  ["responds to a missing session with 404", async (request, next) => {
    const body = await readBody(request);
    const isWithout = body?.method === "ping" && !request.headers.has("mcp-session-id");
    return isWithout ? new Response(null, { status: 404 }) : next(request);
  }, [`note: session missing: ${sentence("Mcp-Session-Id", 404)}`]],
  ["accepts any content type", (request, next) =>
    next(
      request.method === "POST"
        ? withHeaders(request, (headers) => headers.set("content-type", "application/json"))
        : request,
    ), [`problem: content type: ${sentence("text/plain")}`]],
  ["fails on invalid JSON", async (request, next) => {
    const response = await next(request);
    return response.status === 400 && request.method === "POST" && (await readBody(response.clone() as never))?.error
          ?.code === -32700
      ? new Response("<h1>Oops</h1>", { status: 500 })
      : response;
  }, [`problem: invalid JSON: ${sentence(500)}`]],
  ["streams to clients that do not accept streams", async (request, next) => {
    const isPlain = request.headers.get("accept") === "application/json";
    const response = await next(request);
    if (!isPlain || !response.ok) return response;
    return new Response(`data: ${await response.text()}\n\n`, { headers: { "content-type": "text/event-stream" } });
  }, [`problem: accept: ${sentence("application/json")}`]],
  ["responds to unknown methods with the wrong status", async (request, next) => {
    const body = await readBody(request);
    const response = await next(request);
    return body?.method === "doctor/unknown" ? answerWith(response, () => {}, response.ok ? 404 : 200) : response;
  }, [
    `problem: unknown method: ${sentence(200, -32601, "2026-07-28")}`,
    `problem: unknown method: ${sentence(404, -32601, "2025-11-25")}`,
  ]],
  ["ignores headers", async (request, next) => {
    const body = await readBody(request);
    const meta = body?.params?._meta;
    const version = request.headers.get("mcp-protocol-version");
    return next(withHeaders(request, (headers) => {
      if (version === "1999-01-01" && !meta) headers.delete("mcp-protocol-version");
      if (meta && request.headers.has("mcp-method")) headers.set("mcp-method", body.method);
    }));
  }, [
    `problem: repeated headers: ${sentence("Mcp-Method", 200)}`,
    `problem: version header: ${sentence("MCP-Protocol-Version", 200, "2025-11-25")}`,
  ]],
  [
    "responds to GET with an HTML page",
    (request, next) =>
      request.method === "GET" ? new Response("Hello", { headers: { "content-type": "text/plain" } }) : next(request),
    [`problem: stream: ${sentence("GET", 200, "text/plain: Hello", "2025-11-25")}`],
  ],
  ["has no stream", (request, next) => request.method === "GET" ? new Response(null, { status: 405 }) : next(request), [
    `note: stream: ${sentence("GET", "2025-11-25")}`,
  ]],
  [
    "is behind a buffering proxy",
    async (request, next) => {
      const response = await next(request);
      const isStream = response.headers.get("content-type") === "text/event-stream";
      return isStream ? hang() : response;
    },
    [`problem: stream: ${sentence("1 s")}`, `problem: stream: ${sentence("1 s")}`],
    { timeoutMs: 1000 },
  ],
  [
    "opens a compressed stream without events",
    (request, next) =>
      request.method === "GET"
        ? new Response(new ReadableStream(), {
          headers: { "content-type": "text/event-stream", "content-encoding": "gzip" },
        })
        : next(request),
    [
      `note: stream: ${sentence("GET", "N ms", "2025-11-25")}`,
      `note: stream: ${sentence('"X-Accel-Buffering: no"')}`,
      `note: stream: ${sentence("gzip")}`,
    ],
    { timeoutMs: 1000 },
  ],
  [
    "accepts requests of web pages of every origin",
    (request, next) => next(withHeaders(request, (headers) => headers.delete("origin"))),
    [`problem: foreign origin: ${sentence("https://stranger.invalid")}`],
  ],
  ["accepts any Host header", (request, next) => next(withHeaders(request, (headers) => headers.delete("host"))), [
    `problem: foreign host: ${sentence("stranger.invalid", 200)}`,
  ]],
  [
    "does not accept requests of the given origin",
    (request, next) => request.method === "OPTIONS" ? new Response(null, { status: 401 }) : next(request),
    [`problem: cors: ${sentence(page, "OPTIONS", 401)}`],
    { origin: page },
  ],
  [
    "does not allow a header",
    withPreflight((headers) => headers.set("access-control-allow-headers", "content-type, last-event-id")),
    [`problem: cors: ${sentence(page, "mcp-protocol-version, mcp-session-id")}`],
    { cors: { origins: [page] } },
  ],
  ["does not allow DELETE", withPreflight((headers) => headers.set("access-control-allow-methods", "GET, POST")), [
    `problem: cors: ${sentence(page)}`,
  ], { cors: { origins: [page] } }],
  [
    "hides the session ID from web pages",
    async (request, next) =>
      answerWith(await next(request), (headers) => headers.delete("access-control-expose-headers")),
    [`problem: cors: ${sentence(page, "Mcp-Session-Id")}`],
    { cors: { origins: [page] } },
  ],
  [
    "allows CORS for every origin",
    async (request, next) =>
      answerWith(await next(request), (headers) => headers.set("access-control-allow-origin", "*")),
    [`problem: foreign origin: ${sentence("https://stranger.invalid")}`, `problem: cors: ${sentence()}`],
    { cors: { origins: "*" } },
  ],
  [
    "lists unusable tools",
    onMethod("tools/list", (result) => ({
      result: {
        ...result,
        tools: [
          { name: 5, inputSchema: { type: "object" } },
          { name: "a", description: "A", inputSchema: { type: "object" }, annotations },
          { name: "a", description: "A", inputSchema: { type: "object" }, annotations },
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
          { name: "e", inputSchema: { type: "object" }, annotations },
        ],
      },
    })),
    [
      `problem: lists: ${sentence("d")}`,
      `problem: lists: ${sentence("tool 1", "name", "5")}`,
      `problem: lists: ${sentence('tool "b"', "inputSchema")}`,
      `problem: lists: ${sentence('tool "c"', "inputSchema")}`,
      `problem: lists: ${sentence('tool "a"')}`,
      `problem: lists: ${sentence("tool e")}`,
    ],
  ],
  [
    "lists tools in endless pages",
    async (request, next) => {
      const body = await readBody(request);
      if (body?.method !== "tools/list") return next(request);
      // Fixed wait: a server that takes a fixed time for each page, and a client that stops during a read.
      await new Promise((resolve) => setTimeout(resolve, 5));
      const page = { tools: [], nextCursor: crypto.randomUUID() };
      return json({ jsonrpc: "2.0", id: body.id, result: { ...page, resultType: "complete", ttlMs: 0 } });
    },
    [`problem: lists: ${sentence("4 s")}`],
    { timeoutMs: 1000 },
  ],
  ["fails", () => new Response("x".repeat(1000), { status: 500, headers: { "content-type": "text/plain" } }), [
    `problem: path: ${sentence("/mcp", 500, `text/plain: ${"x".repeat(120)}`)}`,
  ]],
  [
    "cannot list its tools",
    onMethod("tools/list", () => ({ result: undefined, error: { code: -32603, message: "Internal error" } })),
    [`problem: lists: ${sentence("tools", "Internal error")}`],
  ],
];

for (const [title, fetch, found, { cors, ...options } = {}] of broken) {
  Deno.test(`doctor finds the defect of a server that ${title}`, async () => {
    const findings = await withServer((next) => runDoctor((request) => fetch(request, next), options), { cors });
    const bad = listDefects(findings).filter((each) => !NO_CORS.test(each));
    assertEquals(bad.map((each) => each.replace(/\b\d+ ms\b/, "N ms")), found);
    for (const { level, fix } of findings) assertEquals(level === "ok", fix === undefined);
  });
}

Deno.test("doctor calls no tool and ends every session that it starts, even if doctor is stopped", async () => {
  for (const stopsAt of [undefined, "GET", "notifications/initialized", "initialize"]) {
    const open = new Set<string | null>();
    const methods = new Set<string>();
    const stop = new AbortController();
    await withServer((next) =>
      runDoctor(async (request) => {
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

Deno.test("doctor reports no problem for a check that was not finished", async () => {
  for (const stopsAt of ["GET", "server/discover", "tools/list"]) {
    const stop = new AbortController();
    const findings = await withServer((next) =>
      runDoctor(async (request) => {
        const body = await readBody(request);
        const response = await next(request);
        // Fixed wait: a server that takes a fixed time for each page, and a client that stops during a read.
        if (request.method === stopsAt) setTimeout(() => stop.abort(), 100);
        else if (body?.method === stopsAt) stop.abort();
        return response;
      }, { signal: stop.signal, heartbeatMs: 60_000 })
    );
    assertEquals(listDefects(findings).filter((each) => !NO_CORS.test(each)), [], `stopped at ${stopsAt}`);
  }
});

Deno.test("doctor suggests another path at which the server responds", async () => {
  const findings = await withServer((fetch) => runDoctor(fetch, { url: "http://localhost:3000/" }));
  assertEquals(findings.at(-1)?.fix, sentence("http://localhost:3000/mcp", "2026-07-28"));
});

Deno.test("doctor reports unsupported revisions", async () => {
  await using server = createServer({ ...well, revisions: ["2026-07-28"] });
  const bad = listDefects(await runDoctor(server.fetch));
  assertEquals(bad[0], `note: handshake: ${sentence("2025-11-25")}`);
  assertMatch(bad[1], NO_CORS);
  assertEquals(bad.length, 2);
});

Deno.test("doctor recognizes the HTTP+SSE transport and reads its lists", async () => {
  await using server = createServer(well);
  const old = httpSse(server);
  const findings = await runDoctor(old.fetch, { url: "http://localhost:3000/sse" });
  assertEquals(listDefects(findings), [`note: HTTP+SSE: ${sentence("2024-11-05")}`]);
  assertEquals(findings.at(-1)?.message, sentence(1));
});

/** Creates a server with the official library, as in its documentation. */
function createOfficial(): McpServer {
  const server = new McpServer({ name: "official", version: "1.0.0" });
  server.registerTool("hello", { description: "Says hello" }, () => ({ content: [{ type: "text", text: "Hello!" }] }));
  return server;
}

const OFFICIAL = [
  `problem: foreign origin: ${sentence("https://stranger.invalid")}`,
  `problem: foreign host: ${sentence("stranger.invalid", 200)}`,
];

Deno.test("doctor finds the known problems of the official library's server", async () => {
  const transports = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const findings = await runDoctor(async (request) => {
    const known = transports.get(request.headers.get("mcp-session-id") ?? "");
    if (known) return await known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id: string) => void transports.set(id, transport),
    });
    await createOfficial().connect(transport);
    return await transport.handleRequest(request);
  }, { timeoutMs: 1000 });
  assertEquals(listDefects(findings).filter((each) => each.startsWith("problem")), [
    `problem: session unknown: ${sentence(400, -32000, '"Bad Request: Server not initialized"')}`,
    ...OFFICIAL,
  ]);
});

Deno.test("doctor reports a server that accepts only one client", async () => {
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => crypto.randomUUID() });
  await createOfficial().connect(transport);
  const findings = await runDoctor((request) => transport.handleRequest(request), { timeoutMs: 1000 });
  assertEquals(listDefects(findings).filter((each) => each.startsWith("problem")), [
    `problem: handshake: ${sentence("initialize", 400, -32600, '"Invalid Request: Server already initialized"')}`,
    ...OFFICIAL,
    `problem: lists: ${sentence("Session not found")}`,
  ]);
});

Deno.test("a server with streams: false has only notes about missing streams", async () => {
  const found = await withServer(async (fetch) => listDefects(await runDoctor(fetch)), { streams: false });
  assertEquals(found.filter((each) => each.startsWith("problem") || each.includes("stream")).toSorted(), [
    `note: stream: ${sentence("GET is not supported")}`,
    `note: stream: ${sentence("subscriptions/listen is not supported")}`,
  ]);
});

// Redirects: doctor sends requests only to the origin that it examines.

Deno.test("doctor sends nothing to another origin", async () => {
  const server = createLibrary();
  const others: string[] = [];
  const other = startHttpServer((request) => {
    others.push(request.url);
    return server.fetch(request);
  });
  let [count, first] = [0, 0];
  const named = startHttpServer(async (request, info) => {
    const location = `${other.origin}/mcp`;
    return count++ < first
      ? await server.fetch(request, info)
      : new Response(null, { status: 307, headers: { location } });
  });
  try {
    // Each run redirects from a later request than the run before, until a run has no redirect.
    for (let isRedirected = true; isRedirected; first += 3) {
      count = 0;
      const url = `${named.origin}/mcp`;
      assert((await examine({ url, headers: { "x-api-key": "k" }, timeoutMs: 2000 })).length);
      assertEquals(others, [], `with redirects from request ${first}`);
      isRedirected = count > first;
    }
  } finally {
    await named.stop();
    await other.stop();
    await server.close();
  }
});

Deno.test("doctor --for reports what a directory refuses: the URL, tokens without OAuth, and tools", async () => {
  const directories = ["claude", "chatgpt"] as const;
  const toNumbers = (findings: readonly Finding[]) =>
    findings.flatMap(({ level, message }) => /\[D\d\d\]$/.test(message) ? [`${level} ${message.slice(-4, -1)}`] : []);
  const open = await withServer((fetch) => runDoctor(fetch, { directories }));
  assertEquals(toNumbers(open), ["problem D20", "problem D01", "problem D02", "note D18"]);
  const keyed = await withServer((fetch) => runDoctor(fetch, { directories }), {
    auth: apiKey({ keys: { ada: "k".repeat(40) } }),
  });
  assertEquals(toNumbers(keyed), ["problem D20", "problem D21"]);
  const forChatGpt = { directories: ["chatgpt"] as const };
  const chatgpt = await withServer((fetch) => runDoctor(fetch, forChatGpt), {
    auth: apiKey({ keys: { ada: "k".repeat(40) } }),
  });
  assertEquals(toNumbers(chatgpt), ["problem D20"]);
  const plain = await withServer((fetch) => runDoctor(fetch));
  assertEquals(toNumbers(plain), []);
});
