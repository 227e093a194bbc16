// `doctor` with in-process servers that require a token. Each server has one defect.
import { assert, assertEquals } from "@std/assert";
import { createServer, prompt, type ServerOptions, tool } from "../../mod.ts";
import { customAuth, refuseRequest } from "../../src/auth/auth.ts";
import { examine, type ExamineOptions } from "../../src/cli/doctor/examination.ts";
import type { Finding } from "../../src/cli/doctor/report.ts";
import { readChallenge } from "../../src/core/kit/bearer_challenge.ts";
import { sentence } from "../support/messages.ts";

type Fetch = (request: Request) => Promise<Response> | Response;

const url = "http://localhost:3000/mcp";
const origin = "http://localhost:3000";
const wellKnown = `${origin}/.well-known/oauth-protected-resource/mcp`;
const TOKEN = "good-token-of-the-user";
const withToken = { headers: { authorization: `Bearer ${TOKEN}` } };

const annotations = { readOnlyHint: true };
const hello = tool({ name: "hello", title: "Hello", description: "Says hello", annotations, run: () => "Hello!" });
const greet = prompt({ name: "greet", description: "Greets", run: () => "Greet." });

/** The replaceable parts of a correct protected server. */
interface Parts {
  /** The parameters of the challenge for a request without a token. */
  readonly challenge?: Readonly<Record<string, string>> | null;
  readonly scheme?: string;
  /** The status and the error code for an invalid token. */
  readonly wrong?: { readonly status?: 400 | 401 | 403; readonly error?: string };
  /** Members of the resource metadata; `null` for a server without resource metadata. */
  readonly resource?: Readonly<Record<string, unknown>> | null;
  /** Headers of the resource metadata. */
  readonly metadataHeaders?: Readonly<Record<string, string>>;
  /** Members of the issuer's metadata; `null` for an issuer without metadata. */
  readonly issuer?: Readonly<Record<string, unknown>> | null;
  /** Handles requests before the correct server does. */
  readonly before?: (request: Request, next: Fetch) => Promise<Response> | Response | undefined;
}

const cors = { "access-control-allow-origin": "*" };

/** Creates a server of this library that requires a token, behind metadata that the test provides. */
function guarded(parts: Parts): { readonly fetch: Fetch; close(): Promise<void> } {
  const { challenge = { resource_metadata: wellKnown }, scheme = "Bearer", wrong = {} } = parts;
  const auth = customAuth(({ headers }: Request) => {
    const authorization = headers.get("authorization");
    if (authorization === `Bearer ${TOKEN}`) return { id: "ada", scopes: [] };
    if (authorization === null) {
      return refuseRequest(401, { challenge: challenge === null ? [] : { scheme, params: challenge } });
    }
    const { status = 401, error = "invalid_token" } = wrong;
    const params = { ...challenge, ...error && { error }, error_description: "It is unknown" };
    return refuseRequest(status, { challenge: { scheme, params } });
  });
  const options: ServerOptions = { name: "well", version: "1.0.0", auth, handlers: [hello, greet] };
  const server = createServer(options);

  function serve(request: Request): Promise<Response> | Response {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/.well-known/") || pathname === "/meta") {
      assertEquals(request.headers.get("authorization"), null, "a metadata request contained a token");
    }
    if (pathname === "/.well-known/oauth-protected-resource/mcp" && parts.resource !== null) {
      const metadata = { resource: url, authorization_servers: [origin], ...parts.resource };
      return Response.json(metadata, { headers: parts.metadataHeaders ?? cors });
    }
    if (pathname === "/.well-known/oauth-authorization-server" && parts.issuer !== null) {
      return Response.json({
        issuer: origin,
        authorization_endpoint: `${origin}/a`,
        token_endpoint: `${origin}/t`,
        registration_endpoint: `${origin}/r`,
        code_challenge_methods_supported: ["S256"],
        ...parts.issuer,
      });
    }
    if (pathname === "/a") return new Response("no request", { status: 400 });
    if (pathname === "/t") return Response.json({ error: "invalid_request" }, { status: 400 });
    if (pathname !== "/mcp") return new Response(null, { status: 404 });
    return server.fetch(request);
  }

  return { fetch: (request) => parts.before?.(request, serve) ?? serve(request), close: () => server.close() };
}

async function diagnose(parts: Parts, options: Partial<ExamineOptions> = {}): Promise<readonly Finding[]> {
  const server = guarded(parts);
  const queries = new Set<string>();
  try {
    return await examine({
      url,
      timeoutMs: 2000,
      fetch: async (request) => {
        queries.add(new URL(request.url).search);
        return await server.fetch(request);
      },
      sendAs: async (url, { headers, body }) =>
        (await server.fetch(new Request(url, { method: "POST", headers, body }))).status,
      ...options,
    });
  } finally {
    await server.close();
    for (const query of queries) assert(!query.includes(TOKEN), "the user's token was sent in a query string");
  }
}

const REQUIRES_TOKEN = /^note: token: .*\(401\)$/;
const NO_CORS = /^note: cors: /;

function listDefects(findings: readonly Finding[]): readonly string[] {
  return findings.filter(({ level }) => level !== "ok").map(({ level, check, message }) =>
    `${level}: ${check}: ${message}`
  ).filter((each) => !NO_CORS.test(each));
}

Deno.test("doctor finds no problem with a protected server, with and without a token", async () => {
  assertEquals(listDefects(await diagnose({})), [`note: token: ${sentence("401")}`]);
  const findings = await diagnose({}, withToken);
  assertEquals(listDefects(findings), []);
  const checks = new Set(findings.map(({ check }) => check));
  for (
    const check of [
      "token",
      "challenge",
      "invalid token",
      "query token",
      "stream token",
      "metadata",
      "authorization server",
    ]
  ) assert(checks.has(check), `${check} did not run`);
});

const byQuery: Parts["before"] = (request, next) => {
  const token = new URL(request.url).searchParams.get("access_token");
  if (token === null) return;
  const headers = new Headers(request.headers);
  headers.set("authorization", `Bearer ${token}`);
  return next(new Request(request, { headers }));
};

/** Defects, each with the findings that it causes. With `needsToken`, doctor finds the defect only with a token. */
const rows: readonly (readonly [
  title: string,
  parts: Parts,
  found: readonly string[],
  options?: Partial<ExamineOptions>,
  needsToken?: boolean,
])[] = [
  ["sends no challenge", { before: async (request, next) => withoutHeader(await next(request), "www-authenticate") }, [
    `problem: challenge: ${sentence(401, "WWW-Authenticate")}`,
    `note: invalid token: ${sentence()}`,
  ]],
  ["uses another scheme", { scheme: "Token" }, [
    `note: challenge: ${sentence("WWW-Authenticate", "Bearer", "Token resource_metadata=")}`,
  ]],
  ["names no metadata", { challenge: { realm: "notes" } }, [
    `note: challenge: ${sentence("WWW-Authenticate", "resource_metadata")}`,
  ]],
  ["names metadata by a path without an origin", { challenge: { resource_metadata: "/meta" } }, [
    `problem: challenge: ${sentence("resource_metadata", "/meta")}`,
  ]],
  ["names metadata that does not exist", { challenge: { resource_metadata: `${origin}/meta` } }, [
    `problem: metadata: ${sentence(`${origin}/meta`, 404)}`,
  ]],
  ["names metadata over plain HTTP", { challenge: { resource_metadata: "http://mcp.example/meta" } }, [
    `problem: metadata: ${sentence("http://mcp.example/meta", "https")}`,
  ]],
  ["has an error in the first challenge, and requests offline_access", {
    challenge: { resource_metadata: wellKnown, error: "invalid_token", scope: "a offline_access" },
  }, [`note: challenge: ${sentence("invalid_token")}`, `note: challenge: ${sentence("offline_access")}`]],
  ["rejects a wrong token with 403", { wrong: { status: 403 } }, [`problem: invalid token: ${sentence(403)}`]],
  ["gives no error for a wrong token", { wrong: { error: "" } }, [`note: invalid token: ${sentence()}`]],
  ["accepts every token", {
    before(request, next) {
      if (!request.headers.has("authorization")) return;
      const headers = new Headers(request.headers);
      headers.set("authorization", `Bearer ${TOKEN}`);
      return next(new Request(request, { headers }));
    },
  }, [`problem: invalid token: ${sentence()}`]],
  ["reads tokens from the query string", { before: byQuery }, [`problem: query token: ${sentence()}`]],
  [
    "prefers tokens in the query string",
    { before: byQuery },
    [`problem: query token: ${sentence()}`, `problem: query token: ${sentence()}`],
    withToken,
    true,
  ],
  ["opens streams without a token", {
    before: (request) =>
      request.method === "GET" && new URL(request.url).pathname === "/mcp"
        ? new Response("", { headers: { "content-type": "text/event-stream" } })
        : undefined,
  }, [`problem: stream token: ${sentence("GET", 200)}`]],
  ["has no metadata", { resource: null, challenge: {} }, [
    `note: challenge: ${sentence("WWW-Authenticate", "resource_metadata")}`,
    `note: metadata: ${sentence(wellKnown, `${origin}/.well-known/oauth-protected-resource,`)}`,
  ]],
  ["has metadata only at the URL in its challenge", {
    challenge: { resource_metadata: `${origin}/meta` },
    resource: null,
    before: (request) =>
      request.url === `${origin}/meta`
        ? Response.json({ resource: url, authorization_servers: [origin] }, { headers: cors })
        : undefined,
  }, [`note: metadata: ${sentence(wellKnown)}`]],
  ["has two different metadata documents", {
    challenge: { resource_metadata: `${origin}/meta` },
    resource: { authorization_servers: ["https://login.example"] },
    before: (request) =>
      request.url === `${origin}/meta`
        ? Response.json({ resource: url, authorization_servers: [origin] }, { headers: cors })
        : undefined,
  }, [`problem: metadata: ${sentence(wellKnown, `${origin}/meta`)}`]],
  ["has metadata only at the root", {
    challenge: {},
    resource: null,
    before: (request) =>
      request.url === `${origin}/.well-known/oauth-protected-resource`
        ? Response.json({ resource: origin, authorization_servers: [origin] }, { headers: cors })
        : undefined,
  }, [
    `note: challenge: ${sentence("WWW-Authenticate", "resource_metadata")}`,
    `note: metadata: ${sentence(`${origin}/.well-known/oauth-protected-resource`, origin)}`,
  ]],
  ["has the metadata of another server", { resource: { resource: "https://other.example/mcp" } }, [
    `problem: metadata: ${sentence(wellKnown, '"https://other.example/mcp"')}`,
  ]],
  ["has a resource with a fragment", { resource: { resource: `${url}#part` } }, [
    `problem: metadata: ${sentence(wellKnown, `"${url}#part"`)}`,
  ]],
  ["trusts the Host header behind a proxy", { resource: { resource: "http://10.0.0.7:8080/mcp" } }, [
    `problem: metadata: ${sentence(wellKnown, '"http://10.0.0.7:8080/mcp"')}`,
  ]],
  ["names issuers without TLS", { resource: { authorization_servers: [origin, "http://login.example", 5] } }, [
    `problem: metadata: ${sentence(wellKnown, '"http://login.example"')}`,
    `problem: metadata: ${sentence(wellKnown, "5")}`,
  ]],
  ["names no issuer", { resource: { authorization_servers: [] } }, [`problem: metadata: ${sentence(wellKnown)}`]],
  ["has invalid members in its metadata", {
    resource: { scopes_supported: "a b", bearer_methods_supported: ["header", "query"] },
  }, [
    `problem: metadata: ${sentence("scopes_supported", wellKnown)}`,
    `problem: metadata: ${sentence("bearer_methods_supported", wellKnown, '["header","query"]')}`,
  ]],
  ["lists offline_access", { resource: { scopes_supported: ["a", "offline_access"] } }, [
    `note: metadata: ${sentence("scopes_supported", "offline_access")}`,
  ]],
  ["hides its metadata from web pages, and sends it as text", { metadataHeaders: { "content-type": "text/plain" } }, [
    `note: metadata: ${sentence(wellKnown, "application/json")}`,
    `note: metadata: ${sentence("http://localhost:6274", wellKnown, "GET", 200, "Access-Control-Allow-Origin")}`,
  ]],
  ["shows its metadata to only one other origin", {
    metadataHeaders: { "content-type": "application/json", "access-control-allow-origin": "http://x.example" },
  }, [`note: metadata: ${sentence(wellKnown, "Access-Control-Allow-Origin: http://x.example")}`]],
  ["has an issuer without metadata", { issuer: null }, [`problem: authorization server: ${sentence(origin)}`]],
  ["has an unusable authorization server", {
    issuer: { issuer: `${origin}/`, code_challenge_methods_supported: [], token_endpoint: 1 },
  }, [
    `problem: authorization server: ${sentence(`"${origin}/"`)}`,
    `problem: authorization server: ${sentence("token_endpoint")}`,
    `problem: authorization server: ${sentence("PKCE")}`,
  ]],
  ["is behind a proxy that forwards only the path of the MCP server", {
    before: ({ url }) => /\/[at]$/.test(url) ? new Response("<h1>Not found</h1>", { status: 404 }) : undefined,
  }, [
    `problem: authorization server: ${sentence("authorization_endpoint", 404)}`,
    `problem: authorization server: ${sentence("token_endpoint", 404, "JSON")}`,
  ]],
  ["is behind a proxy that sends another host", {
    before: ({ url }) => url.endsWith("/a") ? new Response("host", { status: 403 }) : undefined,
  }, [`problem: authorization server: ${sentence("authorization_endpoint", 403)}`]],
  ["has an authorization server without TLS and registration", {
    issuer: { token_endpoint: "http://login.example/t", registration_endpoint: undefined },
  }, [
    `problem: authorization server: ${sentence("token_endpoint", "https")}`,
    `note: authorization server: ${sentence()}`,
  ]],
  ["rejects the user's token", {}, [`problem: token: ${sentence(401, "(It is unknown)")}`], {
    headers: { authorization: "Bearer old" },
  }, true],
  [
    "requires no token",
    {
      before(request, next) {
        const headers = new Headers(request.headers);
        headers.set("authorization", `Bearer ${TOKEN}`);
        return next(new Request(request, { headers }));
      },
    },
    [`note: token: ${sentence()}`],
    withToken,
    true,
  ],
  [
    "refuses missing scopes without an error",
    { before: forbidLists({}) },
    [`note: scopes: ${sentence(403, "insufficient_scope")}`, `problem: lists: ${sentence()}`],
    withToken,
    true,
  ],
  [
    "refuses missing scopes without their names",
    { before: forbidLists({ "www-authenticate": 'Bearer error="insufficient_scope"' }) },
    [`note: scopes: ${sentence(403)}`, `problem: lists: ${sentence()}`],
    withToken,
    true,
  ],
  [
    "refuses missing scopes without metadata",
    { before: forbidLists({ "www-authenticate": 'Bearer error="insufficient_scope", scope="a"' }) },
    [`note: scopes: ${sentence(403, "resource_metadata")}`, `problem: lists: ${sentence()}`],
    withToken,
    true,
  ],
];

function withoutHeader(response: Response, name: string): Response {
  const headers = new Headers(response.headers);
  headers.delete(name);
  return new Response(response.body, { status: response.status, headers });
}

/** Makes the list of tools require a scope that the token lacks. */
function forbidLists(headers: Readonly<Record<string, string>>): Parts["before"] {
  return async (request, next) => {
    const body = await request.clone().text();
    const isList = body.includes('"tools/list"') && request.headers.get("authorization") === `Bearer ${TOKEN}`;
    return isList ? new Response(null, { status: 403, headers }) : await next(request);
  };
}

for (const [title, parts, found, options, needsToken = false] of rows) {
  Deno.test(`doctor finds the defect of a protected server that ${title}`, async () => {
    const findings = await diagnose(parts, options);
    const bad = listDefects(findings).filter((each) => needsToken || !REQUIRES_TOKEN.test(each));
    assertEquals(bad, found);
    for (const { level, fix } of findings) assertEquals(level === "ok", fix === undefined);
  });
}

Deno.test("doctor shows the scopes in a refusal", async () => {
  const challenge = `Bearer error="insufficient_scope", scope="notes:read", resource_metadata="${wellKnown}"`;
  const findings = await diagnose({ before: forbidLists({ "www-authenticate": challenge }) }, withToken);
  const [scopes] = findings.filter(({ check }) => check === "scopes");
  assertEquals(scopes.message, sentence(403, "notes:read"));
});

/**
 * Examines a server that only sends 401 responses and metadata documents by URL. Returns the findings, and the
 * requested URLs in order.
 */
async function visit(
  target: string,
  challenge: string,
  documents: Readonly<Record<string, unknown>>,
  addresses: Readonly<Record<string, readonly string[]>> = {},
): Promise<{ readonly findings: readonly Finding[]; readonly visited: readonly string[] }> {
  const visited: string[] = [];
  const findings = await examine({
    url: target,
    timeoutMs: 100,
    lookUp: (name) => Promise.resolve(addresses[name] ?? ["93.184.215.14"]),
    fetch(request) {
      visited.push(request.url);
      if (request.url.startsWith(target)) {
        return Promise.resolve(new Response(null, { status: 401, headers: { "www-authenticate": challenge } }));
      }
      assertEquals(request.headers.get("authorization"), null);
      const found = documents[request.url];
      if (found === "hangs") {
        return new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(new Error("late"))));
      }
      if (found instanceof Response) return Promise.resolve(found.clone());
      return Promise.resolve(found === undefined ? new Response(null, { status: 404 }) : Response.json(found));
    },
  });
  return { findings, visited: visited.filter((each) => !each.startsWith(target)) };
}

Deno.test("doctor follows no URL that a server on another machine gives to this machine or to another scheme", async () => {
  const target = "https://mcp.example/mcp";
  for (
    const url of [
      "http://127.0.0.1:6379/",
      "http://localhost/x",
      "http://10.0.0.1/meta",
      "file:///etc/passwd",
      "data:,{}",
    ]
  ) {
    const { findings, visited } = await visit(target, `Bearer resource_metadata="${url}"`, {});
    assertEquals(visited.filter((each) => !each.startsWith("https://mcp.example/")), [], url);
    assert(findings.some(({ level, check }) => level === "problem" && check === "metadata"));
  }
  const resource = {
    resource: target,
    authorization_servers: ["http://127.0.0.1:9200", "file:///etc", "https://a.example"],
  };
  const issuer = {
    issuer: "https://a.example",
    authorization_endpoint: "https://a.example/a",
    token_endpoint: "http://127.0.0.1:1/t",
    code_challenge_methods_supported: ["S256"],
  };
  const { findings, visited } = await visit(target, "Bearer", {
    "https://mcp.example/.well-known/oauth-protected-resource/mcp": resource,
    "https://a.example/.well-known/oauth-authorization-server": issuer,
  });
  assertEquals(visited.filter((each) => !/^https:\/\/(mcp|a)\.example\//.test(each)), []);
  const problems = findings.filter(({ level }) => level === "problem").map(({ message }) => message);
  assertEquals(problems.length, 3, problems.join("\n"));
});

const privateHosts = [
  ...["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"],
  ...["169.254.169.254", "100.64.0.1", "198.18.0.1", "[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[::ffff:10.0.0.1]"],
  ...["[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost", "localhost.", "a.localhost", "intranet.example"],
  ...["mixed.example", "mapped.example", "none.example", "unknown.example"],
];
const addresses = {
  "intranet.example": ["10.1.2.3"],
  "mixed.example": ["93.184.215.14", "fe80::1"],
  "mapped.example": ["::ffff:127.0.0.1"],
  "none.example": [],
  get "unknown.example"(): never {
    throw new Error("there is no such name");
  },
};

for (const host of privateHosts) {
  Deno.test(`doctor does not request https://${host}, given by a server on another machine`, async () => {
    const target = "https://mcp.example/mcp";
    const isElsewhere = (url: string) => !url.startsWith("https://mcp.example/");
    const byChallenge = await visit(target, `Bearer resource_metadata="https://${host}/meta"`, {}, addresses);
    assertEquals(byChallenge.visited.filter(isElsewhere), []);
    assert(byChallenge.findings.some(({ level, check }) => level === "problem" && check === "metadata"));
    const resource = { resource: target, authorization_servers: [`https://${host}`, `https://${host}:8443/a`] };
    const documents = { "https://mcp.example/.well-known/oauth-protected-resource/mcp": resource };
    const byMetadata = await visit(target, "Bearer", documents, addresses);
    assertEquals(byMetadata.visited.filter(isElsewhere), []);
    const found = byMetadata.findings.filter(({ check }) => check === "authorization server");
    assertEquals(found.map(({ message }) => message), [
      sentence(`https://${host} `),
      sentence(`https://${host}:8443/a `),
    ]);
  });
}

Deno.test("doctor requests public hosts, and hosts in its own network only if the server is in this network too", async () => {
  for (
    const [server, host, isVisited] of [
      ["mcp.example", "login.example", true],
      ["mcp.example", "8.8.8.8", true],
      ["mcp.example", "[2606:4700::1]", true],
      ["10.0.0.1", "intranet.example", true],
      ["intranet.example", "10.0.0.1", true],
      ["localhost:1", "127.0.0.1:2", true],
      ["mixed.example", "10.0.0.1", false],
      ["unknown.example", "10.0.0.1", false],
    ] as const
  ) {
    const target = `https://${server}/mcp`;
    const wellKnown = `https://${server}/.well-known/oauth-protected-resource/mcp`;
    const resource = { resource: target, authorization_servers: [`https://${host}`] };
    const { visited } = await visit(target, "Bearer", { [wellKnown]: resource }, addresses);
    assertEquals(visited.some((url) => url.startsWith(`https://${host}/`)), isVisited, `${server} ${host}`);
  }
});

Deno.test("doctor follows no redirects of metadata requests, and accepts unusual metadata documents", async () => {
  const target = "https://mcp.example/mcp";
  const meta = "https://mcp.example/meta";
  const odd: Readonly<Record<string, unknown>> = {
    redirect: new Response(null, { status: 302, headers: { location: "https://other.example/" } }),
    text: new Response("not JSON"),
    list: [1],
    nothing: "hangs",
    "needs a token": new Response(null, { status: 401 }),
    huge: new Response("[".repeat(5_000_000)),
  };
  for (const [title, document] of Object.entries(odd)) {
    const { findings, visited } = await visit(target, `Bearer resource_metadata="${meta}"`, { [meta]: document });
    assert(!visited.includes("https://other.example/"), title);
    assert(findings.some(({ level, check }) => level === "problem" && check === "metadata"), title);
  }
});

Deno.test("doctor requests only some of many issuers, and prints no control characters that the server sends", async () => {
  const target = "https://mcp.example/mcp";
  const servers = Array.from({ length: 500 }, (_, i) => `https://issuer${i}.example`);
  const { findings, visited } = await visit(target, 'Bearer realm="\t\u00e9"', {
    "https://mcp.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.example/\u001b[31mmcp\u0007",
      authorization_servers: [...servers, "\u001b]0;title\u0007"],
      scopes_supported: ["\u001b[2J"],
    },
  });
  assert(visited.length < 30, `${visited.length} requests`);
  // deno-lint-ignore no-control-regex
  for (const { message } of findings) assert(!/[\u0000-\u001f\u007f-\u009f]/.test(message), JSON.stringify(message));
});

Deno.test("doctor parses challenges of every form, and long challenges in a short time", () => {
  const read = (header: string | null) => {
    const { scheme, params } = readChallenge(header) ?? {};
    return [scheme, Object.fromEntries(params ?? [])];
  };
  assertEquals(read(null), [undefined, {}]);
  assertEquals(read('bearer realm="a, \\"b\\"" , scope = x'), ["bearer", { realm: 'a, "b"', scope: "x" }]);
  assertEquals(read('Basic realm="x", Bearer error="e"'), ["bearer", { error: "e" }]);
  assertEquals(read('Basic realm="Bearer error=x"'), ["basic", { realm: "Bearer error=x" }]);
  assertEquals(read("Negotiate"), ["negotiate", {}]);
  const started = performance.now();
  read(`Bearer ${'a="'.repeat(100_000)}`);
  read(`Bearer ${"a".repeat(100_000)}`);
  assert(performance.now() - started < 2000, "doctor takes too long to parse a long challenge");
});
