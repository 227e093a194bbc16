// What arrives on the wire, and what a server makes of it. The requests are written to sockets, because no client sends
// most of them.
import { createConnection, type Socket } from "node:net";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { createServer, mount, type Route, type Server, tool } from "../../mod.ts";
import { serve, type Serving } from "../../src/server/serve.ts";
import { connectTest } from "../../src/testing/connect.ts";
import { gate, until } from "../support/behaviour.ts";

const isBun = "Bun" in globalThis;
const isNode = !isBun && typeof Deno === "undefined";
const about = { name: "wired", version: "1.0.0" };

/** Responds with the parts of the request. */
const echo: Route = {
  path: "/echo",
  async fetch(request, { info }) {
    const { method, url, headers } = request;
    const { remoteAddr } = Object(info);
    const seen = { method, url, headers: [...headers], body: await request.text(), peer: remoteAddr?.hostname };
    return Response.json(seen);
  },
};

const ping = tool({ name: "ping", run: () => "pong" });

function make(options: { readonly routes?: readonly Route[]; readonly hosts?: readonly string[] } = {}): Server {
  return createServer({ ...about, handlers: [ping], routes: [echo], ...options });
}

/** A connection on which a test writes and reads text. */
class Wire implements AsyncDisposable {
  readonly socket: Socket;
  received = "";
  isClosed = false;

  constructor(port: number) {
    this.socket = createConnection({ host: "127.0.0.1", port });
    this.socket.setEncoding("latin1").on("data", (text) => this.received += text);
    this.socket.on("error", () => {}).on("close", () => this.isClosed = true);
  }

  write(...lines: readonly string[]): void {
    this.socket.write(lines.join("\r\n"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    await until(() => this.isClosed, "the connection is closed");
  }
}

/** Sends one request, and returns everything that the server sends until it closes the connection. */
async function exchange(port: number, ...lines: readonly string[]): Promise<string> {
  await using wire = new Wire(port);
  wire.write(...lines);
  await until(() => wire.isClosed, `the server closes the connection after ${lines[0].slice(0, 80)}`);
  return wire.received;
}

function toStatus(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
}

// deno-lint-ignore no-explicit-any
function toSeen(answer: string): any {
  return JSON.parse(/\{.*\}/s.exec(answer)?.[0] ?? "null");
}

async function withServer(server: Server, use: (served: Serving) => Promise<void>): Promise<void> {
  await using served = await serve(server, { port: 0, signals: false });
  await use(served);
}

/** Registers a test with a server that is created with the options. */
function test(
  name: string,
  run: (served: Serving) => Promise<void>,
  { ignore = false, ...options }: Parameters<typeof make>[0] & { readonly ignore?: boolean } = {},
): void {
  Deno.test({ name, ignore, fn: () => withServer(make(options), run) });
}

/** Sends requests on another connection, so that the server also reads what has arrived before. */
async function fetchOthers(port: number): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await fetch(`http://127.0.0.1:${port}/none`).then((response) => response.body?.cancel());
  }
}

/** Waits until a count stays the same while the server responds to another request. */
async function untilStill(port: number, count: () => number, message: string): Promise<void> {
  await until(async () => {
    const last = count();
    await fetchOthers(port);
    return last === count();
  }, message);
}

// Bun builds URLs from the Host header, and accepts more malformed requests.
const ignore = isBun;

test("the checks see the Host header that arrived, whatever other headers and targets say", async ({ port }) => {
  const own = `127.0.0.1:${port}`;
  const ask = async (target: string, ...headers: readonly string[]) =>
    toStatus(await exchange(port, `GET ${target} HTTP/1.1`, ...headers, "connection: close", "", ""));
  for (const host of [own, "127.0.0.1", "LOCALHOST", "[::1]:80", "127.0.0.1:1"]) {
    assertEquals(await ask("/echo", `host: ${host}`), 200, host);
  }
  for (const host of ["evil.example", "127.1", "0x7f.1", "localhost.evil.example", "127.0.0.1.nip.example"]) {
    assertEquals(await ask("/echo", `host: ${host}`), 403, host);
    const forwarded = ["x-forwarded-host: localhost", `forwarded: host=${own}`];
    assertEquals(await ask("/echo", `host: ${host}`, ...forwarded), 403, host);
  }
  for (const host of ["a@127.0.0.1", "127.0.0.1/", "127.0.0.1#", "a b", "[::1", "127.0.0.1,evil.example", "%31"]) {
    assertEquals(await ask("/echo", `host: ${host}`), 400, host);
  }
  for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example"]) {
    assertEquals(await ask(`http://${host}/echo`, `host: ${own}`), 403, host);
    assertEquals(await ask(`http://${host}/echo`, `host: ${host}`), 403, host);
  }
  assertEquals(await ask(`http://127.0.0.1:${port}@evil.example/echo`, `host: ${own}`), 403);
}, { ignore });

test("a route gets the URL with the checked host, and no host from other headers", async ({ port }) => {
  const ask = async (target: string, ...headers: readonly string[]) =>
    toSeen(await exchange(port, `GET ${target} HTTP/1.1`, ...headers, "connection: close", "", "")).url;
  const forged = ["x-forwarded-host: evil.example", "x-forwarded-proto: https", "x-forwarded-for: 10.0.0.1"];
  assertEquals(
    await ask("/echo?a=%20b&c=//d", "host: localhost:1", ...forged),
    "http://localhost:1/echo?a=%20b&c=//d",
  );
  if (!isNode) return; // Deno does not normalize the path.
  assertEquals(await ask("/a/../echo", "host: localhost"), "http://localhost/echo");
  assertEquals(await ask("/./echo?q=/../x", "host: localhost"), "http://localhost/echo?q=/../x");
}, { ignore });

test("a listed host can end with a dot", async ({ port }) => {
  for (const host of ["box.example.", "box.example.:8080"]) {
    const head = ["GET /echo?a=//b HTTP/1.1", `host: ${host}`, "connection: close", "", ""];
    assertEquals(toSeen(await exchange(port, ...head)).url, `http://${host}/echo?a=//b`);
  }
}, { hosts: ["box.example."] });

test("a request that is not valid HTTP gets 400, and the server goes on", async ({ port }) => {
  const host = `host: 127.0.0.1:${port}`;
  const end = ["connection: close", "", ""];
  const cases: readonly (readonly string[])[] = [
    ["GET /echo HTTP/1.1", host, "a b: c", ...end],
    ["GET /echo HTTP/1.1", host, "a : c", ...end],
    ["POST /echo HTTP/1.1", host, "content-length: 1", "content-length: 2", ...end],
    ["POST /echo HTTP/1.1", host, "content-length: -1", ...end],
  ];
  for (const lines of cases) assertEquals(toStatus(await exchange(port, ...lines)), 400, lines.join(" "));
  // Deno accepts these requests, or closes the connection.
  const onNode: readonly (readonly string[])[] = [
    ["POST /echo HTTP/1.1", host, "transfer-encoding: chunked", "connection: close", "", "zz", ""],
    ["GET /echo HTTP/1.1", ...end],
    ["GET * HTTP/1.1", host, ...end],
    ["GET ftp://127.0.0.1/echo HTTP/1.1", host, ...end],
    ["GET http:///echo HTTP/1.1", host, ...end],
    ["GET http://a.127.0.0.1/echo HTTP/1.1", host, ...end],
    ["GET /echo HTTP/1.1", "host: 127.0.0.1:99999", ...end],
    ["GET /echo HTTP/1.1", "host: 127.0.0.1", "host: evil.example", ...end],
    [
      "POST /echo HTTP/1.1",
      host,
      "content-length: 2",
      "transfer-encoding: chunked",
      "connection: close",
      "",
      "0",
      "",
      "",
    ],
  ];
  if (isNode) {
    for (const lines of onNode) assertEquals(toStatus(await exchange(port, ...lines)), 400, lines.join(" "));
  }
  assertEquals(toStatus(await exchange(port, "GET /echo HTTP/1.1", host, ...end)), 200);
}, { ignore });

// Deno rejects such a request.
test("HTTP/1.0 without a Host header is served with the address of the listener", async ({ port }) => {
  const seen = toSeen(await exchange(port, "GET /echo HTTP/1.0", "", ""));
  assertEquals(seen.url, `http://127.0.0.1:${port}/echo`);
}, { ignore: !isNode });

// Other runtimes have higher limits.
test("a head over 16 KiB is refused", async ({ port }) => {
  const host = `host: 127.0.0.1:${port}`;
  const long = "a".repeat(20_000);
  assertEquals(toStatus(await exchange(port, `GET /echo?${long} HTTP/1.1`, host, "", "")), 431);
  assertEquals(toStatus(await exchange(port, "GET /echo HTTP/1.1", host, `x: ${long}`, "", "")), 431);
}, { ignore: !isNode });

test(
  "repeated headers are joined as in a Request, and the peer's address is that of the connection",
  async ({ port }) => {
    const lines = ["x-a: 1", "x-a: 2", "cookie: a=1", "cookie: b=2", "content-type: x/a", "content-type: x/b"];
    const head = ["POST /echo HTTP/1.1", `host: 127.0.0.1:${port}`, ...lines, "x-forwarded-for: 10.0.0.1"];
    const seen = toSeen(await exchange(port, ...head, "content-length: 2", "connection: close", "", "hi"));
    const headers = new Map<string, string>(seen.headers);
    assertEquals([headers.get("x-a"), headers.get("cookie")], ["1, 2", "a=1; b=2"]);
    assertEquals(headers.get("content-type"), "x/a, x/b");
    assertEquals([seen.method, seen.body, seen.peer], ["POST", "hi", "127.0.0.1"]);
  },
  { ignore },
);

test("pipelined requests get their responses in order, and Expect: 100-continue is answered", async ({ port }) => {
  const head = (path: string) => [`POST /echo?${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, "content-length: 1"];
  const all = await exchange(port, ...head("1"), "", "a" + head("2").join("\r\n"), "connection: close", "", "b");
  assertEquals([...all.matchAll(/echo\?(\d)[^]*?"body":"(.)"/g)].map(([, at, body]) => at + body), ["1a", "2b"]);
  await using wire = new Wire(port);
  wire.write(...head("3"), "expect: 100-continue", "connection: close", "", "");
  await until(() => wire.received.startsWith("HTTP/1.1 100 "), "the server asks for the body");
  wire.write("c");
  await until(() => wire.isClosed, "the server has responded");
  assertMatch(wire.received, /"body":"c"/);
}, { ignore });

/** Reads a part of the body, or cancels the body, or does not read the body. */
const partly: readonly Route[] = [
  { path: "/unread", fetch: () => new Response("ok") },
  { path: "/public", public: true, fetch: () => new Response("ok") },
  {
    path: "/cancelled",
    async fetch(request) {
      await request.body?.cancel();
      return new Response("ok");
    },
  },
  {
    path: "/part",
    async fetch(request) {
      await request.body?.getReader().read();
      return new Response("ok");
    },
  },
];

// Deno closes some of these connections.
test(
  "a body that is too large, cancelled or not read to its end does not block the next request, nor end the server",
  async ({ port }) => {
    const host = `host: 127.0.0.1:${port}`;
    const next = ["GET /next HTTP/1.1", host, "connection: close", "", ""].join("\r\n");
    const type = ["content-type: application/json", "accept: application/json, text/event-stream"];
    const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${"a".repeat(bytes)}\r\n`;
    const cases = [
      ...partly.map(({ path }) => ({ path, status: 200, text: chunk(1000).repeat(1000) })),
      ...partly.map(({ path }) => ({ path, status: 200, text: chunk(1_000_000) })),
      { path: "/mcp", status: 413, text: chunk(1000).repeat(8000) },
      { path: "/mcp", status: 413, text: chunk(1_000_000).repeat(8) },
      { path: "/mcp", status: 400, text: chunk(8).repeat(100_000) },
      { path: "/echo", status: 413, text: chunk(1000).repeat(8000) },
      { path: "/echo", status: 400, text: chunk(8).repeat(100_000) },
    ];
    for (const { path, status, text } of cases) {
      if (!isNode && path === "/part") continue; // Deno waits for the reader.
      const head = [`POST ${path} HTTP/1.1`, host, ...type, "transfer-encoding: chunked", "", ""];
      const all = await exchange(port, head.join("\r\n") + text + "0\r\n\r\n" + next);
      assertEquals([...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code)), [status, 404], path);
    }
  },
  { ignore, routes: [echo, ...partly] },
);

// Deno reads such a body to its end.
Deno.test("a body that a route reads after its response fails", { ignore: !isNode && !isBun }, async () => {
  let read: Promise<unknown> | undefined;
  const late: Route = {
    path: "/late",
    fetch(request) {
      read = request.text().then((text) => text.length, ({ name }) => name);
      return new Response("ok");
    },
  };
  await withServer(make({ routes: [late] }), async ({ port }) => {
    const head = ["POST /late HTTP/1.1", `host: 127.0.0.1:${port}`, "content-length: 1000000", ""];
    await using wire = new Wire(port);
    wire.write(...head, "a".repeat(100_000));
    await until(() => isWhole(wire.received), "the response has arrived");
    assertEquals(await read, "TypeError");
  });
});

Deno.test("a body that breaks off fails its request only, and a body without its declared end is not a body", {
  ignore,
}, async () => {
  const server = make();
  await withServer(server, async ({ port }) => {
    const head = ["POST /mcp HTTP/1.1", `host: 127.0.0.1:${port}`, "content-type: application/json"];
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    for (const path of ["/mcp", "/echo"]) {
      const wire = new Wire(port);
      wire.write(head[0].replace("/mcp", path), ...head.slice(1), `content-length: ${text.length + 9}`, "", text);
      await until(() => wire.socket.bytesWritten > text.length, "the request is sent");
      wire.socket.destroy();
      await until(() => wire.isClosed, "the connection is closed");
    }
    const rest = [`content-length: ${text.length}`, "connection: close", "", text];
    assertEquals(toStatus(await exchange(port, ...head, ...rest)), 200);
    assertEquals(server.stats().running, 0);
  });
});

test("HEAD gets the headers of the response, and no body", async ({ port }) => {
  const ask = (path: string) =>
    exchange(port, `HEAD ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, "connection: close", "", "");
  const text = await ask("/text");
  assertEquals([toStatus(text), text.includes("long text")], [200, false]);
  const refused = await ask("/mcp");
  assertEquals([toStatus(refused), /\r\n\r\n$/.test(refused)], [405, true]);
}, { ignore, routes: [{ path: "/text", fetch: () => new Response("long text") }] });

Deno.test("HEAD cancels a body without end, and the connection serves the next request", async () => {
  let cancelled = 0;
  const cancel = () => void cancelled++;
  const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(1000));
  const routes: readonly Route[] = [
    { path: "/silent", fetch: () => new Response(new ReadableStream({ cancel })) },
    { path: "/endless", fetch: () => new Response(new ReadableStream({ pull, cancel })) },
  ];
  await withServer(make({ routes }), async ({ port }) => {
    const host = `host: 127.0.0.1:${port}`;
    for (const { path } of routes) {
      const next = ["GET /next HTTP/1.1", host, "connection: close", "", ""];
      const all = await exchange(port, `HEAD ${path} HTTP/1.1`, host, "", next.join("\r\n"));
      assertEquals([...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code)), [200, 404], path);
    }
    await until(() => cancelled === 2, "both bodies are cancelled");
  });
});

// Other runtimes print an error, and Deno ends the process for a header value with a control character.
Deno.test("a response that cannot be sent gets 500, and its body is cancelled", { ignore: !isNode }, async () => {
  let isCancelled = false;
  const cancel = () => {
    isCancelled = true;
  };
  const routes: readonly Route[] = [
    { path: "/error", fetch: () => Response.error() },
    {
      path: "/used",
      async fetch() {
        const response = new Response("text");
        await response.text();
        return response;
      },
    },
    { path: "/header", fetch: () => new Response(new ReadableStream({ cancel }), { headers: { "x-a": "a\x01b" } }) },
  ];
  await withServer(make({ routes }), async ({ port }) => {
    for (const { path } of routes) {
      const head = [`GET ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, "connection: close", "", ""];
      assertEquals(toStatus(await exchange(port, ...head)), 500, path);
    }
    await until(() => isCancelled, "the body is cancelled");
  });
});

test("a request to upgrade the connection gets an ordinary response", async ({ port }) => {
  const upgrade = ["upgrade: websocket", "connection: Upgrade, close", "sec-websocket-version: 13"];
  const key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
  const answer = await exchange(port, "GET /echo HTTP/1.1", `host: localhost:${port}`, ...upgrade, key, "", "");
  assertEquals(toStatus(answer), 200);
}, { ignore });

Deno.test("code of the author gets requests that it can copy, clone and send", async () => {
  const route: Route = {
    path: "/copy",
    async fetch(request) {
      const copies = [new Request(request.clone()), request.clone(), new Request(request, { headers: { "x-b": "2" } })];
      const texts = await Promise.all(copies.map((each) => each.text()));
      assert(request instanceof Request && !request.signal.aborted);
      return Response.json([
        texts,
        copies.map(({ method, headers }) => [method, headers.get("x-a"), headers.get("x-b")]),
      ]);
    },
  };
  const seen: unknown[] = [];
  const tell = (request: Request) => {
    // On other runtimes, the body of a request cannot be copied after it was read.
    const copy = isNode ? new Request(request) : request;
    seen.push([copy.url, copy.method, copy.headers.get("x-a"), request.signal.aborted]);
  };
  const look = tool({
    name: "look",
    run(_, ctx) {
      if (ctx.http) tell(ctx.http);
      return String(ctx.http === ctx.http);
    },
  });
  const auth = (request: Request) => {
    tell(request);
    return { id: "ada" };
  };
  for (const options of [{}, { auth }]) {
    seen.length = 0;
    const server = createServer({ ...about, handlers: [look], routes: [route], ...options });
    await withServer(server, async ({ url }) => {
      for (const method of ["GET", "POST"]) {
        const body = method === "POST" ? "text" : undefined;
        const response = await fetch(new URL("/copy", url), { method, body, headers: { "x-a": "1" } });
        const text = body ?? "";
        assertEquals(await response.json(), [[text, text, text], [[method, "1", null], [method, "1", null], [
          method,
          null,
          "2",
        ]]]);
      }
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "look", arguments: {} } };
      const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "x-a": "1" };
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
      assertMatch(await response.text(), /"text":"true"/);
      assertEquals(seen, Array(Object.keys(options).length + 1).fill([url, "POST", "1", false]));
    });
  }
});

Deno.test("a fetch that wraps the fetch of a server gets requests that it can copy, wherever the server is served", async () => {
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "ping", arguments: {} } };
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const ask = (url: string) => fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
  const wrap = <S extends Server>(server: S): S => ({
    ...server,
    async fetch(request, info) {
      const copy = new Request(request, { body: await request.clone().text() });
      copy.headers.set("x-a", "1");
      const { body, headers } = await server.fetch(copy, info);
      return new Response(body, { headers: { ...Object.fromEntries(headers), "x-b": copy.headers.get("x-a") ?? "" } });
    },
  });
  for (
    const served of [wrap(make()), mount([wrap(make())]), wrap(mount([make()])), mount([wrap(make())], { routes: [] })]
  ) {
    await withServer(served, async ({ port }) => {
      const response = await ask(`http://127.0.0.1:${port}/mcp`);
      assertEquals([response.headers.get("x-b"), /"text":"pong"/.test(await response.text())], ["1", true]);
    });
  }
  await using client = await connectTest(wrap(make()), { transport: "http" });
  assertEquals((await client.callTool("ping")).content, [{ type: "text", text: "pong" }]);
});

Deno.test("a client that does not read slows the body down, and its disconnect cancels the body", async () => {
  let pulls = 0;
  let isCancelled = false;
  const endless: Route = {
    path: "/endless",
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            pulls++;
            controller.enqueue(new Uint8Array(65_536));
          },
          cancel() {
            isCancelled = true;
          },
        }, { highWaterMark: 0 }),
      ),
  };
  await withServer(make({ routes: [endless] }), async ({ port }) => {
    const wire = new Wire(port);
    wire.socket.pause();
    wire.write("GET /endless HTTP/1.1", `host: 127.0.0.1:${port}`, "", "");
    await until(() => pulls > 0, "the body is read");
    // The kernel takes some megabytes. Wait until the server reads no more.
    await untilStill(port, () => pulls, "the server has stopped reading");
    assert(pulls < 1000, `${pulls} pieces`);
    assertEquals(isCancelled, false);
    wire.socket.destroy();
    await until(() => isCancelled, "the body is cancelled");
  });
});

Deno.test("a client that sends many requests at once and does not read waits for its responses", async () => {
  let runs = 0;
  // On Node, eight requests of a connection can wait.
  const count = isNode ? 9 : 200;
  const text = "a".repeat(200_000_000 / count);
  const large: Route = {
    path: "/large",
    fetch() {
      runs++;
      return new Response(text);
    },
  };
  await withServer(make({ routes: [large] }), async ({ port }) => {
    await using wire = new Wire(port);
    wire.socket.pause();
    wire.socket.write(["GET /large HTTP/1.1", `host: 127.0.0.1:${port}`, "", ""].join("\r\n").repeat(count));
    await until(() => runs > 0, "the first request runs");
    await untilStill(port, () => runs, "the server runs no more requests");
    assert(runs < count / 4, `${runs} requests`);
    if (isBun) return; // Bun does not continue.
    wire.socket.resume();
    await until(() => runs === count, "the server has run all requests");
  });
});

/** A route whose response ends when `end` is called, or the client disconnects. */
class OpenRoute implements Route {
  readonly path = "/open";
  isOpen = false;
  isCancelled = false;
  end = () => {};

  fetch = () => {
    const start = (controller: ReadableStreamDefaultController) => {
      controller.enqueue(new TextEncoder().encode("open"));
      this.isOpen = true;
      this.end = () => controller.close();
    };
    const cancel = () => {
      this.isCancelled = true;
    };
    return new Response(new ReadableStream({ start, cancel }));
  };
}

/** Requests without a body, by what is special about them. `$` stands for the Host header. */
const bodyless: Readonly<Record<string, readonly string[]>> = {
  "a path": ["GET /echo HTTP/1.1", "$", "", ""],
  "an unknown path": ["DELETE / HTTP/1.1", "$", "", ""],
  "the endpoint": ["GET /mcp HTTP/1.1", "$", "accept: text/event-stream", "", ""],
  "no Host header": ["GET /echo HTTP/1.1", "", ""],
  "a foreign Host header": ["GET /echo HTTP/1.1", "host: evil.example", "", ""],
  "a bad target": ["GET * HTTP/1.1", "$", "", ""],
  "an unknown expectation": ["POST /echo HTTP/1.1", "$", "expect: patience", "content-length: 0", "", ""],
  "an expectation": ["POST /echo HTTP/1.1", "$", "expect: 100-continue", "content-length: 0", "", ""],
};

/** Opens a stream, and then sends a text on the same connection. */
async function sendBehindStream(
  text: string,
  use: (wire: Wire, route: OpenRoute, port: number) => Promise<void>,
): Promise<void> {
  const route = new OpenRoute();
  await withServer(make({ routes: [echo, route] }), async ({ port }) => {
    const host = `host: 127.0.0.1:${port}`;
    await using wire = new Wire(port);
    wire.write("GET /open HTTP/1.1", host, "", "");
    await until(() => route.isOpen && wire.received.includes("open"), "the stream is open");
    wire.socket.write(text.replaceAll("$", host));
    await use(wire, route, port);
  });
}

for (const [name, lines] of Object.entries(bodyless)) {
  Deno.test(`behind a stream, eight requests with ${name} wait, and their client's disconnect ends the stream`, () =>
    sendBehindStream(lines.join("\r\n").repeat(8), async (wire, route, port) => {
      await fetchOthers(port);
      if (!isBun) assertEquals([wire.isClosed, route.isCancelled], [false, false]);
      wire.socket.destroy();
      await until(() => route.isCancelled, "the stream is cancelled");
    }));

  // Deno does not read the requests before the stream has ended. On Bun, the first request ends it.
  Deno.test(
    `behind a stream, the ninth request with ${name} ends the connection`,
    { ignore: !isNode },
    () =>
      sendBehindStream(lines.join("\r\n").repeat(9), async (wire, route) => {
        await until(() => wire.isClosed && route.isCancelled, "the connection is closed");
      }),
  );
}

// Other runtimes end the response when its stream closes.
Deno.test("a client that has a whole response sends a large request, although the stream of the response is open", {
  ignore: !isNode,
}, async () => {
  let controller: ReadableStreamDefaultController | undefined;
  let isCancelled = false;
  const start = (each: ReadableStreamDefaultController) => {
    controller = each;
    controller.enqueue(new TextEncoder().encode("whole"));
  };
  const cancel = () => void (isCancelled = true);
  const whole: Route = {
    path: "/whole",
    fetch: () => new Response(new ReadableStream({ start, cancel }), { headers: { "content-length": "5" } }),
  };
  await withServer(make({ routes: [echo, whole] }), async ({ port }) => {
    const host = `host: 127.0.0.1:${port}`;
    await using wire = new Wire(port);
    wire.write("GET /whole HTTP/1.1", host, "", "");
    await until(() => wire.received.endsWith("whole"), "the response has arrived");
    const sent = "a".repeat(20_000);
    wire.write("POST /echo HTTP/1.1", host, `content-length: ${sent.length}`, "connection: close", "", sent);
    await until(() => wire.isClosed, "the next request has its response");
    assertEquals([toSeen(wire.received).body, isCancelled], [sent, false]);
    controller?.close();
  });
});

Deno.test("a client that sends megabytes of requests behind a stream can disconnect", async () => {
  const text = bodyless["a path"].join("\r\n").repeat(50_000);
  await sendBehindStream(text, async (wire, route, port) => {
    await fetchOthers(port);
    wire.socket.destroy();
    await until(() => route.isCancelled, "the stream is cancelled");
  });
});

// As above.
Deno.test(
  "behind a stream, a request whose body may exceed the buffer ends the connection",
  { ignore: !isNode },
  async () => {
    const head = ["POST /echo HTTP/1.1", "$"];
    for (const [length, body] of [["content-length: 3000000", "a"], ["transfer-encoding: chunked", "1\r\na\r\n"]]) {
      await sendBehindStream([...head, length, "", body].join("\r\n"), async (wire, route) => {
        await until(() => wire.isClosed && route.isCancelled, `${length}: the connection is closed`);
      });
    }
  },
);

// On Bun, such a request ends the connection.
Deno.test("requests that wait behind a stream get their responses in order when the stream has ended", {
  ignore: isBun,
}, async () => {
  const toRequest = (body: string) => ["POST /echo HTTP/1.1", "$", `content-length: ${body.length}`, "", body];
  const bodies = Array.from({ length: 8 }, (_, i) => `${i}`.repeat(2000));
  await sendBehindStream(bodies.map((body) => toRequest(body).join("\r\n")).join(""), async (wire, route, port) => {
    await fetchOthers(port);
    route.end();
    const find = () => [...wire.received.matchAll(/"body":"(\d+)"/g)].map(([, body]) => body);
    await until(() => find().length === 8, "all responses have arrived");
    assertEquals(find(), bodies);
    // None waits any more, so eight further requests can wait.
    wire.socket.write(["GET /echo HTTP/1.1", `host: 127.0.0.1:${port}`, "", ""].join("\r\n").repeat(9));
    await until(() => wire.received.match(/HTTP\/1.1 200/g)?.length === 18, "all further responses have arrived");
  });
});

// Bun sends a complete response.
Deno.test("a body that fails without a reason ends the connection", { ignore }, () => {
  const broken: Route = {
    path: "/broken",
    fetch: () => {
      let count = 0;
      const pull = (controller: ReadableStreamDefaultController) =>
        count++ ? controller.error() : controller.enqueue(new TextEncoder().encode("part"));
      return new Response(new ReadableStream({ pull }));
    },
  };
  return withServer(make({ routes: [broken] }), async ({ port }) => {
    const answer = await exchange(port, "GET /broken HTTP/1.1", `host: 127.0.0.1:${port}`, "", "");
    assertEquals([toStatus(answer), answer.includes("\r\n0\r\n")], [200, false]);
  });
});

Deno.test("a client that disconnects before its response cancels the call, with an AbortError", async () => {
  const { pass, open } = gate();
  let reason: unknown;
  let isRunning = false;
  const slow: Route = {
    path: "/slow",
    async fetch(request) {
      request.signal.addEventListener("abort", () => {
        reason = request.signal.reason;
      });
      isRunning = true;
      await pass;
      return new Response("late");
    },
  };
  await withServer(make({ routes: [slow] }), async ({ port }) => {
    const wire = new Wire(port);
    wire.write("POST /slow HTTP/1.1", `host: 127.0.0.1:${port}`, "content-length: 2", "", "ab");
    await until(() => isRunning, "the route runs");
    wire.socket.destroy();
    await until(() => reason !== undefined, "the route notices the disconnect");
    assertEquals(Object(reason).name, "AbortError");
    open();
  });
});

// On other runtimes, the runtime decides which connections it closes.
Deno.test("a request that is on its way when the server stops listening gets a response, which closes the connection", {
  ignore: !isNode,
}, async () => {
  const server = make();
  const served = await serve(server, { port: 0, signals: false });
  const head = ["GET /echo HTTP/1.1", `host: 127.0.0.1:${served.port}`, "", ""];
  await using wire = new Wire(served.port);
  wire.write(...head);
  await until(() => isWhole(wire.received), "the first response has arrived");
  assertEquals([/connection: close/i.test(wire.received), wire.isClosed], [false, false]);
  wire.received = "";
  const closed = served.close();
  await until(() => fetch(served.url).then((response) => response.body?.cancel(), () => true), "the server is deaf");
  wire.write(...head);
  await until(() => wire.isClosed, "the server closes the connection");
  assertMatch(wire.received, /^HTTP\/1\.1 \d+ [^]*connection: close/i);
  await closed;
});

Deno.test("under load, the shutdown breaks no request", { ignore: !isNode }, async () => {
  const server = make();
  const served = await serve(server, { port: 0, signals: false });
  const head = ["GET /echo HTTP/1.1", `host: 127.0.0.1:${served.port}`, "", ""].join("\r\n");
  const counts = { answered: 0, broken: 0 };
  const wires = Array.from({ length: 24 }, () => new Wire(served.port));
  const run = async (wire: Wire, at: number) => {
    for (;;) {
      // Fixed wait: clients that pause between requests have idle connections when the server stops.
      if (at % 3) await new Promise((resolve) => setTimeout(resolve, at));
      if (wire.isClosed) return;
      wire.received = "";
      wire.socket.write(head);
      await until(() => wire.isClosed || isWhole(wire.received), "the response has arrived");
      if (!isWhole(wire.received)) return counts.broken++;
      counts.answered++;
      if (/connection: close/i.test(wire.received)) return;
    }
  };
  const runs = Promise.all(wires.map(run));
  await until(() => counts.answered > 200, "the load is running");
  await served.close();
  await runs;
  assertEquals(counts.broken, 0, `${counts.answered} answered`);
  for (const wire of wires) await wire[Symbol.asyncDispose]();
});

function isWhole(text: string): boolean {
  const [head, body] = text.split("\r\n\r\n");
  if (body === undefined) return false;
  const [, length] = /content-length: (\d+)/i.exec(head) ?? [];
  return length === undefined
    ? body.includes("\r\n0\r\n") || text.endsWith("0\r\n\r\n")
    : body.length >= Number(length);
}
