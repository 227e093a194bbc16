// Access by address, Host and Origin, with the connection info that the runtime or a router provides.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import { customAuth } from "../../src/auth/auth.ts";
import { isJsonType, readAccept } from "../../src/server/transports/http/accept.ts";
import { type ConnectionInfo, isKnownHost, isLoopbackHost } from "../../src/server/transports/http/access.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { sentence } from "../support/messages.ts";
import { readReply, toRequest, toStatus } from "../support/requests.ts";

const message = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "who",
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});

interface Caller {
  readonly url?: string;
  readonly host?: string;
  readonly origin?: string;
  readonly info?: ConnectionInfo;
  readonly options?: Partial<ServerOptions>;
}

/** Returns the status, and the reason if the request is refused. */
async function visit({ url, host, origin, info, options }: Caller): Promise<readonly [status: number, text: string]> {
  const who = tool({ name: "who", run: (_input, { principal }) => JSON.stringify(principal ?? null) });
  await using server = createServer({ name: "gate", version: "1.0.0", handlers: [who], ...options });
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "who",
    ...host === undefined ? {} : { host },
    ...origin === undefined ? {} : { origin },
  };

  const request = new Request(url ?? `http://${host ?? "localhost"}/mcp`, { method: "POST", headers, body: message });
  const response = await server.fetch(request, info);
  const { result, error } = await readReply(response);
  return [response.status, error?.message ?? result.content[0].text];
}

const deno = (hostname: string) => ({ remoteAddr: { transport: "tcp", hostname, port: 5 } });
const bun = (address: string | null) => ({ requestIP: () => address && { address, family: "IPv4", port: 5 } });
const far = ["192.168.1.5", "8.8.8.8", "::2", "2001:db8::1", "::ffff:10.0.0.1", "1127.0.0.1", "127", "::1:127.0.0.1"];
const near = ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "::FFFF:127.0.0.1", "localhost"];

Deno.test("a caller on this machine must use a loopback Host, and a remote caller can use any Host", async () => {
  for (const to of [deno, bun]) {
    for (const address of near) {
      assertEquals((await visit({ host: "evil.example", info: to(address) }))[0], 403, address);
      assertEquals((await visit({ host: "localhost", info: to(address) }))[0], 200, address);
    }
    for (const address of far) {
      assertEquals((await visit({ host: "mcp.example.com", info: to(address) }))[0], 200, address);
    }
  }
});

Deno.test("a caller whose address is unknown counts as a caller on this machine", async () => {
  const infos: readonly (ConnectionInfo | undefined)[] = [
    undefined,
    {},
    bun(null),
    { remoteAddr: undefined },
    { remoteAddr: "8.8.8.8" },
    { remoteAddr: null },
    { remoteAddr: { hostname: 5 } },
    { requestIP: "8.8.8.8" },
    { requestIP: () => ({ address: 5 }) },
  ];
  for (const info of infos) assertEquals((await visit({ host: "evil.example", info }))[0], 403, JSON.stringify(info));
});

Deno.test("the host in the URL is used if there is no Host header, as in HTTP/2", async () => {
  for (const info of [undefined, {}, deno("127.0.0.1"), bun("127.0.0.1")]) {
    assertEquals((await visit({ url: "http://localhost/mcp", info }))[0], 200);
    assertEquals((await visit({ url: "http://evil.example/mcp", info }))[0], 403);
    assertEquals((await visit({ url: "http://localhost/mcp", origin: "http://evil.example", info }))[0], 403);
    assertEquals((await visit({ url: "http://localhost:8/mcp", origin: "http://localhost:8", info }))[0], 200);
  }
  assertEquals((await visit({ url: "https://mcp.example.com/mcp", info: deno("8.8.8.8") }))[0], 200);
});

// Frameworks build the URL of a request from the address on which they listen. Deno takes the URL from the request target,
// if the target has a host.
const BUILT = ["http://localhost:41020/mcp", "http://0.0.0.0:3000/mcp", "https://other.example/mcp?a=//evil.example/"];

Deno.test("only the Host header decides whether a request is served, whatever host its URL has", async () => {
  const listed = { hosts: ["mcp.example.com"] };
  type Row = readonly [host: string, status: number, options?: Partial<ServerOptions>, origin?: string];
  const rows: readonly Row[] = [
    ["mcp.example.com", 200, listed],
    ["mcp.example.com:8443", 200, listed],
    ["evil.example", 403, listed],
    ["other.example", 403, listed],
    ["localhost.evil.example", 403, listed],
    ["evil.example", 403],
    ["other.example", 403],
    ["127.0.0.1:41020", 200],
    ["[::1]:41020", 200],
    ["mcp.example.com", 200, listed, "https://mcp.example.com"],
    ["mcp.example.com", 403, listed, "http://localhost:41020"],
    ["mcp.example.com", 403, listed, "https://other.example"],
    ["evil.example", 403, listed, "http://evil.example"],
    ["evil.example", 403, undefined, "http://evil.example"],
    ["a b", 400],
  ];
  for (const url of BUILT) {
    for (const [host, status, options, origin] of rows) {
      for (const info of [undefined, deno("127.0.0.1")]) {
        const [actual] = await visit({ url, host, origin, options, info });
        assertEquals(actual, status, `${url} with Host ${host}, origin ${origin}`);
      }
    }
  }
});

Deno.test("a Host that no URL can have is refused, whatever host the URL of the request has", async () => {
  for (const host of ["localhost:99999", "127.0.0.256", "a:b", "a b"]) {
    const [status] = await visit({
      url: "http://localhost/mcp",
      host,
      info: { remoteAddr: { hostname: "203.0.113.7" } },
    });
    assertEquals(status, 400, host);
  }
});

Deno.test("the author's code finds the checked host in the URL of a request", async () => {
  const seen: string[] = [];
  const note = (by: string, request: Request | undefined) => void seen.push(`${by} ${request?.url}`);
  const who = tool({
    name: "who",
    allow: ({ http }) => (note("allow", http), true),
    run: (_input, { http }) => (note("run", http), "ok"),
  });
  const auth = customAuth((request) => (note("authenticate", request), { id: "ada", scopes: [] }));
  const admit: ServerOptions["admit"] = ({ http }) => (note("admit", http), true);
  const options = { handlers: [who], hosts: ["mcp.example.com"], admit };
  for (const path of ["/mcp", "/tenants/:tenant/mcp"]) {
    for (const scheme of [undefined, auth]) {
      await using server = createServer({ name: "gate", version: "1.0.0", ...options, path, auth: scheme });
      const full = path.replace(":tenant", "a");
      for (const built of BUILT) {
        const url = built.replace("/mcp", full);
        // The second request is the same, because the server remembers the latest accepted host.
        for (let i = 0; i < 2; i++) {
          const { method, headers, body } = toRequest("tools/call", { name: "who" }, { host: "mcp.example.com:8443" });
          const init = { method, headers, body: await new Response(body).text() };
          const response = await server.fetch(new Request(url, init));
          assertEquals([response.status, (await readReply(response)).result.content[0].text], [200, "ok"]);
        }
        const { protocol, search } = new URL(url);
        const expected = ["admit", "allow", "run", ...scheme ? ["authenticate"] : []];
        const right = `${protocol}//mcp.example.com:8443${full}${search}`;
        assertEquals([...new Set(seen)].sort(), expected.map((by) => `${by} ${right}`).sort(), url);
        seen.length = 0;
      }
    }
  }
});

Deno.test("the address of the client is known, whatever host the URL of a request has", async () => {
  const who = tool({ name: "who", run: (_input, { principal }) => principal?.id ?? "" });
  const auth = customAuth((_request, { peer }) => ({ id: `from ${peer}`, scopes: [] }));
  for (const path of ["/mcp", "/tenants/:tenant/mcp"]) {
    const options = { path, auth, handlers: [who], hosts: ["mcp.example.com"] };
    await using server = createServer({ name: "gate", version: "1.0.0", ...options });
    for (const url of BUILT) {
      const { method, headers, body } = toRequest("tools/call", { name: "who" }, { host: "mcp.example.com" });
      const full = url.replace("/mcp", path.replace(":tenant", "a"));
      const request = new Request(full, { method, headers, body: await new Response(body).text() });
      // Bun knows only the addresses of requests that it has created itself.
      const info = { requestIP: (asked: Request) => asked === request ? { address: "203.0.113.7" } : null };
      const response = await server.fetch(request, info);
      assertEquals((await readReply(response)).result.content[0].text, "from 203.0.113.7");
    }
  }
});

Deno.test("the error names the refused value and the option that allows it", async () => {
  const [, host] = await visit({ host: "box.local:80", info: deno("127.0.0.1") });
  assertEquals(host, sentence('"box.local:80"', 'hosts: ["box.local"]'));
  const [, origin] = await visit({ host: "localhost", origin: "https://app.example.com" });
  assertEquals(origin, sentence('origins: ["https://app.example.com"]'));
});

Deno.test("a page can call only the host that it comes from, over http or, for a public host, over https", async () => {
  type Row = readonly [host: string, origin: string, status: number, url?: string, options?: Partial<ServerOptions>];
  const rows: readonly Row[] = [
    ["localhost:80", "http://localhost", 200],
    ["localhost", "https://localhost", 403],
    ["localhost", "https://localhost", 200, "https://localhost/mcp"],
    ["localhost", "http://localhost", 403, "https://localhost/mcp"],
    ["mcp.example.com", "https://mcp.example.com", 200, undefined, { hosts: ["mcp.example.com"] }],
    ["mcp.example.com", "http://mcp.example.com", 200, undefined, { hosts: ["mcp.example.com"] }],
    ["192.168.1.5:8000", "http://192.168.1.5:8000", 200],
    ["[2001:db8::1]:8000", "http://[2001:db8::1]:8000", 200],
    ["mcp.example.com", "https://mcp.example.com.evil.example", 403],
    ["mcp.example.com", "https://mcp.example.com:8443", 403],
    ["mcp.example.com", "https://mcp.example.com/", 403],
    ["mcp.example.com", "null", 403],
    ["mcp.example.com", "", 200],
  ];
  for (const [host, origin, status, url, options] of rows) {
    const info = deno(host.startsWith("localhost") ? "127.0.0.1" : "8.8.8.8");
    assertEquals(
      (await visit({ host, origin, info, url, options }))[0],
      status,
      `a page of ${origin} calls ${url ?? host}`,
    );
  }
});

Deno.test("listed hosts apply to every caller, whatever its address is, and whether or not a page sent the request", async () => {
  const options = { hosts: ["mcp.example.com"] };
  for (const to of [deno, bun]) {
    for (const address of [...near, ...far]) {
      const info = to(address);
      for (const host of ["evil.example", "mcp.example.com.evil.example", "192.168.1.5", "172.17.0.1:8000", "[::2]"]) {
        for (const origin of [undefined, `http://${host}`]) {
          assertEquals((await visit({ host, origin, info, options }))[0], 403, `${host} from ${address}, ${origin}`);
        }
      }
      for (const host of ["mcp.example.com", "mcp.example.com:8443", "localhost:8000", "127.0.0.1"]) {
        for (const origin of [undefined, `http://${host}`]) {
          assertEquals((await visit({ host, origin, info, options }))[0], 200, `${host} from ${address}, ${origin}`);
        }
      }
    }
  }
});

Deno.test("without listed hosts, a page counts as same-origin only under a host that DNS cannot point elsewhere", async () => {
  const names = [
    "evil.example",
    "rebind.network",
    "box.local",
    "box",
    "1.2.3",

    "0x7f.0.0.1",
    "2130706433",
  ];
  for (const to of [deno, bun]) {
    for (const address of far) {
      for (const host of names.flatMap((name) => [name, `${name}:8000`])) {
        const [status, text] = await visit({ host, origin: `http://${host}`, info: to(address) });
        assertEquals(status, 403, `${host} from ${address}`);
        assertStringIncludes(text, "hosts: [");
      }
      for (const host of ["192.168.1.5", "172.17.0.1:8000", "[2001:db8::1]", "localhost:1", "[::1]:1"]) {
        assertEquals((await visit({ host, origin: `http://${host}`, info: to(address) }))[0], 200, host);
      }
    }
  }
});

Deno.test("a request with an invalid host is refused before its address is parsed", async () => {
  for (
    const host of [
      "",
      "a b",
      "a/b",
      "a?b",
      "a#b",
      "a@b",
      "a:",
      "a:123456",
      "[::1",
      "::1",
      "a..b",
      "a,b",
      "%61",
      "\u00e9",
    ]
  ) {
    const [status, text] = await visit({ url: "http://localhost/mcp", host, info: deno("127.0.0.1") });
    assertEquals([status, text], [400, sentence("Host")], host);
  }
  const [status] = await visit({
    url: "http://localhost/mcp",
    host: `${"a".repeat(64)}.example`,
    info: deno("8.8.8.8"),
  });
  assertEquals(status, 400);
});

Deno.test("a principal that is passed to fetch must be valid", async () => {
  const info = { ...deno("127.0.0.1"), principal: { id: "ada", role: "admin" } };
  assertEquals(await visit({ host: "localhost", info }), [200, '{"role":"admin","id":"ada"}']);
  assertEquals(await visit({ host: "localhost", info: { principal: undefined } }), [200, "null"]);
  for (const principal of [null, "ada", 5, {}, { id: 5 }, ["ada"]]) {
    const [status, text] = await visit({ host: "localhost", info: { principal } });
    assertEquals([status, text], [500, sentence()], JSON.stringify(principal));
  }
});

Deno.test("only application/json in UTF-8 is accepted as JSON", () => {
  for (
    const type of [
      "application/json",
      "Application/JSON",
      "application/json;charset=utf-8",
      'application/json; Charset="UTF-8" ; a=b',
    ]
  ) {
    assert(isJsonType(type), type);
  }
  for (
    const type of [null, "", "json", "text/json", "application/jsonp", "application/json;charset=latin1"]
      .concat([
        "application/json;charset=utf-8x",
        "application/json;charset=xutf-8",
        "application/json, x",
        "x;application/json",
      ])
      .concat(["application/json;a=b, text/plain", "application/json;a=b;charset=utf-16"])
  ) assert(!isJsonType(type), String(type));
});

Deno.test("the most specific of several ranges in Accept decides, wherever the range stands", () => {
  const rows: readonly (readonly [accept: string | null, json: boolean, stream: boolean])[] = [
    [null, true, true],
    ["", true, true],
    ["  ", true, true],
    ["*/*", true, true],
    ["application/json", true, false],
    ["text/event-stream", false, true],
    ["application/*, text/*", true, true],
    ["APPLICATION/JSON ; q=0.5,Text/Event-Stream;q=1", true, true],
    ["*/*;q=0", false, false],
    ["*/*;q=0.0, application/json", true, false],
    ["application/json, */*;q=0.000", true, false],
    ["text/event-stream;q=0, */*", true, false],
    ["*/*, text/event-stream;q=0", true, false],
    ["application/json;q=0, application/*", false, false],
    ["application/*;q=0, */*", false, true],
    ["application/json;q=0.001", true, false],
    ["application/json;x=q=0", true, false],
    ["text/html", false, false],
    [",;", false, false],
  ];
  for (const [accept, json, stream] of rows) assertEquals(readAccept(accept), { json, stream }, String(accept));
});

Deno.test("a foreign host that is allowed for a remote caller is refused for a caller on this machine", async () => {
  await using server = createServer({ name: "gate", version: "1.0.0" });
  const visit = async (host: string, address: string) => {
    const request = new Request(`http://${host}/mcp`, toRequest("server/discover", {}, { host }));
    return await toStatus(server.fetch(request, deno(address)));
  };
  for (let i = 0; i < 2; i++) {
    assertEquals(await visit("mcp.example.com", "8.8.8.8"), 200);
    assertEquals(await visit("mcp.example.com", "127.0.0.1"), 403);
    assertEquals(await visit("localhost", "127.0.0.1"), 200);
  }
});

Deno.test("the cached result for one Accept header is not used for another Accept header", async () => {
  await using server = createServer({ name: "gate", version: "1.0.0" });
  const accepts = [
    "application/json, text/event-stream",
    "text/html",
    "text/event-stream",
    "application/json",
    "*/*;q=0",
  ];
  // Each header is used twice in a row, and after each of the other headers.
  for (const [at, accept] of [...accepts, ...accepts].flatMap((accept) => [accept, accept]).entries()) {
    const response = await server.fetch(toRequest("server/discover", {}, { accept }));
    const type = accept === "text/event-stream" ? accept : "application/json";
    const isGood = /json|stream/.test(accept);
    assertEquals(
      [response.status, response.headers.get("content-type")],
      [isGood ? 200 : 406, type],
      `${accept} at ${at}`,
    );
    await response.body?.cancel();
  }
});

Deno.test("a stream is opened only if the Accept header allows text/event-stream", async () => {
  await using server = createServer({ name: "gate", version: "1.0.0" });
  for (
    const [accept, status] of [
      ["text/event-stream", 405],
      ["text/html, Text/Event-Stream;q=0.1", 405],
      ["text/event-stream;q=0", 406],
      ["text/event-stream;q=0, */*", 406],
      ["*/*", 405],
      ["text/*", 405],
      ["", 406],
      ["application/json", 406],
    ] as const
  ) {
    // The status 405 shows that the Accept header was accepted: without a session, there is no stream to open.
    const response = await server.fetch(new Request("http://localhost/mcp", { headers: { accept } }));
    assertEquals([response.status, (await response.json()).error.code], [status, -32600], accept);
  }
});

/** Runs a function with globals of another platform. */
async function withGlobals<T>(globals: Readonly<Record<string, unknown>>, run: () => Promise<T>): Promise<T> {
  const kept = Object.keys(globals).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { configurable: true, writable: true, value });
  }
  try {
    return await run();
  } finally {
    for (const [name, property] of kept) {
      if (property) Object.defineProperty(globalThis, name, property);
      else Reflect.deleteProperty(globalThis, name);
    }
  }
}

Deno.test("on a platform where callers are never on the same machine, callers with an unknown address can use any Host", async () => {
  const request = new Request("http://mcp.example.com/mcp", { headers: { host: "mcp.example.com" } });
  const options = { hosts: [], origins: [], allows: () => undefined };
  let copies = 0;
  // The platform is detected once per copy of the module, so each attempt loads a new copy.
  const isLetIn = async (globals: Readonly<Record<string, unknown>>) => {
    const copy = `../../src/server/transports/http/access.ts?copy=${++copies}`;
    const gate: typeof import("../../src/server/transports/http/access.ts") = await import(copy);
    return await withGlobals(
      globals,
      () => Promise.resolve(gate.checkCaller(request, undefined, options) === undefined),
    );
  };
  const deno = (state: string, id?: string) => ({
    Deno: { permissions: { querySync: () => ({ state }) }, env: { get: () => id } },
  });
  const here = { userAgent: "Here/1" };
  assertEquals(await isLetIn({ ...deno("granted"), navigator: { userAgent: "Cloudflare-Workers" } }), true);
  assertEquals(await isLetIn({ ...deno("granted", "a1b2"), navigator: here }), true);
  assertEquals(await isLetIn({ ...deno("prompt", "a1b2"), navigator: here }), false);
  assertEquals(await isLetIn({ ...deno("granted", ""), navigator: here }), false);
  assertEquals(await isLetIn({ ...deno("granted"), navigator: here }), false);
  assertEquals(await isLetIn({ Deno: { env: { get: () => "a1b2" } }, navigator: here }), false);
  assertEquals(await isLetIn({ Deno: undefined, navigator: here }), false);
  assertEquals(await isLetIn({ Deno: undefined, navigator: undefined }), false);
});

Deno.test("hosts and origins that can never match are refused when the server is created", () => {
  const make = (options: Partial<ServerOptions>) => () => createServer({ name: "x", version: "1", ...options });
  for (const host of ["https://mcp.example.com", "mcp.example.com/mcp", "", "*"]) {
    assertThrows(make({ hosts: [host] }), TypeError, sentence(`"${host}"`));
  }
  for (const origin of ["app.example.com", "https://app.example.com/", "*", "https://app.example.com/path"]) {
    assertThrows(make({ origins: [origin] }), TypeError, sentence(`"${origin}"`));
    if (origin !== "*") assertThrows(make({ cors: { origins: [origin] } }), TypeError, sentence(`"${origin}"`));
  }
  for (const each of ["chrome-extension://abc", "vscode-webview://1a2b", "tauri://localhost", "null"]) {
    make({ origins: [each], cors: { origins: [each] } })();
  }
});

Deno.test("listed hosts and origins are compared as a whole, in any spelling", async () => {
  const info = deno("127.0.0.1");
  const options = { hosts: ["Box.Local"], origins: ["HTTPS://App.Example.com:443"] };
  const host = "box.local";
  assertEquals((await visit({ host, info, options }))[0], 200);
  for (const listed of [options, { ...options, origins: [], cors: { origins: options.origins } }]) {
    assertEquals((await visit({ host, info, options: listed, origin: "https://app.example.com" }))[0], 200);
    assertEquals((await visit({ host, info, options: listed, origin: "https://app.example.com:444" }))[0], 403);
  }
});

Deno.test("a host is valid for every caller if the host is loopback or listed", () => {
  const options = { hosts: ["box.local"], origins: [], allows: () => undefined };
  for (
    const [host, isLoopback, isKnown] of [
      ["localhost:80", true, true],
      ["127.9.9.9", true, true],
      ["box.local:80", false, true],
      ["mcp.example.com", false, false],
      ["not a host", false, false],
    ] as const
  ) {
    assertEquals([isLoopbackHost(host), isKnownHost(host, options)], [isLoopback, isKnown], host);
  }
});

Deno.test("creating a server throws for a path that no request can have", async () => {
  const make = (path: string) => createServer({ name: "s", version: "1", path });
  const bad = [
    "",
    "mcp",
    "/x:tenant/mcp",
    "/mcp/{id}",
    "/mcp/*",
    "*",
    "/a b",
    "/mcp?x=1",
    "/mcp#x",
    "//mcp",
    "//[",
    "/a/../b",
    "/a/./b",
    "/a/%2e%2e/b",
    "/a\\b",
    "/\u00fc",
    "http://localhost/mcp",
    "/mcp\n",
    " /mcp",
    ...[null, 5] as unknown as string[],
  ];
  for (const path of bad) {
    assertThrows(() => make(path), TypeError, sentence("/mcp"), JSON.stringify(path));
    const server = createServer({ name: "s", version: "1" });
    assertThrows(() => webSocket(server, { path }), TypeError, sentence("/mcp"), String(path));
    assertThrows(() => httpSse(server, { path }), TypeError, sentence("/mcp"), String(path));
    assertThrows(() => httpSse(server, { messages: path }), TypeError, sentence("/mcp"), String(path));
  }
  for (
    const [path, odd] of [
      ["/a;b/x:tenant", ":"],
      ["/mcp/{id}", "{"],
      ["/mcp/*", "*"],
      ["/a b", " "],
      ["/mcp?x", "?"],
      ["/a\\b", "\\"],
      ["/\u{1f600}", "\u{1f600}"],
    ] as const
  ) {
    assertThrows(() => make(path), TypeError, sentence(JSON.stringify(path), "/mcp", JSON.stringify(odd)));
  }
  assertThrows(() => make("mcp"), TypeError, sentence('"mcp"', "/mcp"));
  for (const path of ["/", "/mcp", "/mcp/", "/a/b-c_d.e~f", "/%C3%BC", "/a%20b", "/a;b=c,d@e!$&'()+"]) {
    await using server = make(path);
    const { method, headers, body } = toRequest("server/discover");
    const url = `http://localhost${path}`;
    const response = await server.fetch(new Request(url, { method, headers, body: await new Response(body).text() }));
    assertEquals(response.status, 200, path);
    await response.text();
  }
});

// The server remembers hosts and paths that it has accepted. What it remembers decides about no other request.

const add = tool({ name: "add", run: () => "3" });
const base = { name: "calc", version: "1.0.0" };

/** Sends a call, and returns the status of the response. */
async function send(server: Server, url: string, headers: Record<string, string> = {}): Promise<number> {
  const { host } = new URL(url);
  return await toStatus(server.fetch(new Request(url, toRequest("tools/call", { name: "add" }, { host, ...headers }))));
}

for (const [path, url] of [["/mcp", "/mcp"], ["/:tenant/mcp", "/ada/mcp"]] as const) {
  Deno.test(`a host that was accepted at ${path} is remembered for requests of this host only`, async () => {
    const hosts = ["a.example.com", "b.example.com"];
    await using server = createServer({ ...base, handlers: [add], hosts, path });
    for (let round = 0; round < 2; round++) {
      for (const host of [...hosts, "localhost:8000", "127.0.0.1"]) {
        assertEquals(await send(server, `http://${host}${url}`), 200);
        assertEquals(await send(server, `http://${host}${url}?a=1`), 200);
        assertEquals(await send(server, `http://${host}${url}`, { origin: "https://evil.example" }), 403);
        assertEquals(await send(server, `http://${host}${url}x`), 404);
        assertEquals(await send(server, `http://${host}/other`), 404);
      }
      for (const host of ["c.example.com", "a.example.com.evil.example", "a.example.co", "a.example.com:1x"]) {
        assertEquals(await send(server, `http://a.example.com${url}`, { host }), host.endsWith("x") ? 400 : 403, host);
      }
      assertEquals(await send(server, `http://evil.example${url}`), 403);
    }
  });

  Deno.test(`a closing server refuses requests of remembered hosts at ${path}`, async () => {
    const server = createServer({ ...base, handlers: [add], path });
    for (let round = 0; round < 2; round++) assertEquals(await send(server, `http://localhost${url}`), 200);
    await server.close();
    assertEquals(await send(server, `http://localhost${url}`), 503);
  });
}

Deno.test("all spellings of a path lead to the same tenant, also the second time", async () => {
  const made: string[] = [];
  const handlers = ({ tenant }: Readonly<Record<string, string>>) => {
    made.push(tenant);
    return [add];
  };
  await using server = createServer({ ...base, path: "/:tenant/mcp", handlers });
  for (let round = 0; round < 3; round++) {
    for (const name of ["ada", "%61da", "x/../ada", "./ada", "ada?tenant=eve"]) {
      const [path, query] = name.split("?");
      assertEquals(await send(server, `http://localhost/${path}/mcp${query ? `?${query}` : ""}`), 200, name);
    }
    for (const name of ["ada/x", "ada%2fx", ".."]) {
      assertEquals(await send(server, `http://localhost/${name}/mcp`), 404, name);
    }
  }
  assertEquals(made, ["ada"]);
});

Deno.test("a schema decides about the path of each request", async () => {
  const open = new Set(["ada"]);
  const pathSchema = z.object({ tenant: z.string().refine((tenant) => open.has(tenant)) });
  await using server = createServer({ ...base, path: "/:tenant/mcp", pathSchema, handlers: [add] });
  for (let round = 0; round < 2; round++) assertEquals(await send(server, "http://localhost/ada/mcp"), 200);
  open.delete("ada");
  assertEquals(await send(server, "http://localhost/ada/mcp"), 404);
});
