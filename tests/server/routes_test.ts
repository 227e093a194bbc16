// The checks of requests for routes next to the MCP endpoint: Host, Origin and the size of the body.
import { createConnection, type Socket } from "node:net";
import { assertEquals, assertInstanceOf, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, mount, type RouteInfo, type Server, type ServerOptions } from "../../mod.ts";
import { health, prometheus } from "../../src/observe/observe.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

/** A route that returns the length of the body. */
const upload = { path: "/upload", fetch: async (request: Request) => new Response(`${(await request.text()).length}`) };
const about = { name: "routed", version: "1.0.0" };

/** A request to a server, by default from this machine. */
interface Visit {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: BodyInit;
  readonly peer?: string;
}

async function visit(
  server: Pick<Server, "fetch">,
  { path = "/upload", headers = {}, body, peer = "127.0.0.1" }: Visit,
): Promise<[status: number, text: string]> {
  const host = headers.host ?? "localhost";
  const init = { method: body === undefined ? "GET" : "POST", headers, body };
  const request = new Request(`http://${host}${path}`, Object.assign(init, { duplex: "half" }));
  const response = await server.fetch(request, { remoteAddr: { hostname: peer } });
  return [response.status, await response.text()];
}

/** Opens a connection, and sends the beginning of a request. */
function open(origin: string, text: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = createConnection({ port: Number(new URL(origin).port), host: "127.0.0.1" }, () => resolve(socket));
  socket.on("error", reject);
  socket.write(text);
  return promise;
}

/** Sends a request as text, and returns the response. */
async function exchange(origin: string, text: string): Promise<string> {
  const socket = await open(origin, text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
  const { promise, resolve } = Promise.withResolvers<string>();
  let answer = "";
  socket.on("data", (bytes) => answer += bytes);
  socket.on("error", () => resolve(answer));
  socket.on("close", () => resolve(answer));
  return await promise;
}

async function withServers(
  options: Partial<ServerOptions>,
  use: (server: Server) => Promise<void>,
): Promise<void> {
  for (const isMounted of [false, true]) {
    const { routes, ...others } = options;
    const server = createServer({ ...about, ...others, routes: isMounted ? undefined : routes });
    await using whole = isMounted ? mount([server], { routes }) : server;
    await use(whole);
  }
}

Deno.test("a route gets only requests whose Host and Origin the endpoint would accept", async () => {
  const options = {
    hosts: ["mcp.example.com"],
    origins: ["https://listed.example"],
    cors: { origins: ["https://app.example"], credentials: true },
    routes: [upload],
  };
  await withServers(options, async (server) => {
    const cases: readonly (readonly [headers: Readonly<Record<string, string>>, status: number])[] = [
      [{ host: "localhost" }, 200],
      [{ host: "mcp.example.com" }, 200],
      [{ host: "evil.example" }, 403],
      [{ host: "10.0.0.7:8000" }, 403],
      [{ host: "mcp.example.com", origin: "https://mcp.example.com" }, 200],
      [{ host: "mcp.example.com", origin: "https://listed.example" }, 200],
      [{ host: "mcp.example.com", origin: "https://app.example" }, 200],
      [{ host: "mcp.example.com", origin: "https://evil.example" }, 403],
      [{ host: "localhost", origin: "https://evil.example" }, 403],
      [{ host: "mcp.example.com", origin: "null" }, 403],
    ];
    for (const [headers, status] of cases) {
      const [found, text] = await visit(server, { headers, peer: "203.0.113.7" });
      assertEquals(found, status, JSON.stringify(headers));
      if (status === 403) assertStringIncludes(text, "host" in headers ? sentence("Cannot") : "");
    }
  });
});

Deno.test("a page cannot reach the routes of a server on this machine through its own host name", async () => {
  await withServers({ routes: [upload] }, async (server) => {
    assertEquals((await visit(server, { headers: { host: "rebound.example" } }))[0], 403);
    assertEquals((await visit(server, { headers: { host: "127.0.0.1:3000" } }))[0], 200);
  });
});

/** Returns a body without a Content-Length header. */
function toStream(bytes: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  const chunk = new Uint8Array(1000).fill(97);
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close();
      controller.enqueue(chunk.slice(0, left));
      left -= chunk.length;
    },
  });
}

Deno.test("the body of a request to a route is limited, with and without a stated length", async () => {
  const options = { routes: [upload], limits: { request: { bodyBytes: 5000 } }, observer: { fault() {} } };
  await withServers(options, async (server) => {
    for (const [bytes, status] of [[4000, 200], [5000, 200], [5001, 413], [50_000, 413]] as const) {
      for (const body of ["a".repeat(bytes), toStream(bytes)]) {
        const headers = typeof body === "string" ? { "content-length": `${bytes}` } : undefined;
        const [found, text] = await visit(server, { body, headers });
        assertEquals(found, status, `${typeof body} of ${bytes} bytes`);
        assertEquals(text, status === 200 ? `${bytes}` : sentence("request.bodyBytes"));
      }
    }
  });
});

Deno.test("the body of a request to a route is limited, whatever length its headers state", async () => {
  const options = { routes: [upload], limits: { request: { bodyBytes: 5000 } } };
  await withServers(options, async (server) => {
    for (const length of ["9000, 9000", "10, 10", "9000;", "nine", "1e9", "-", "0x1fff", "Infinity"]) {
      const [found, text] = await visit(server, { body: "a".repeat(9000), headers: { "content-length": length } });
      assertEquals([found, text], [413, sentence("request.bodyBytes")], length);
    }
    // Code in front of the server may have decompressed the body, or changed it in another way.
    for (const body of ["a".repeat(9000), toStream(9000)]) {
      const [found, text] = await visit(server, { body, headers: { "content-length": "40" } });
      assertEquals([found, text], [413, sentence("request.bodyBytes")]);
    }
  });
});

/** Returns a body of `count` pieces, each in a buffer as large as those of Deno. */
function toPieces(count: number, size: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = count;
  return new ReadableStream({
    pull: (controller) =>
      left-- > 0 ? controller.enqueue(new Uint8Array(65_536).subarray(0, size)) : controller.close(),
  });
}

Deno.test("a body that arrives in too many small pieces is refused, except by a public route", async () => {
  const routes = [upload, { ...upload, path: "/all", public: true }];
  await withServers({ routes, observer: { fault() {} } }, async (server) => {
    assertEquals(await visit(server, { body: toPieces(10_000, 1) }), [200, "10000"]);
    assertEquals(await visit(server, { body: toPieces(10_001, 1) }), [400, sentence("small chunks")]);
    assertEquals(await visit(server, { body: toPieces(10_001, 64) }), [200, "640064"]);
    assertEquals(await visit(server, { path: "/all", body: toPieces(10_001, 1) }), [200, "10001"]);
  });
});

Deno.test("small pieces of an upload that wait to be joined take little memory", async () => {
  const route = {
    path: "/buffers",
    async fetch({ body }: Request) {
      let bytes = 0;
      for await (const piece of body ?? []) bytes += piece.buffer.byteLength;
      return new Response(`${bytes}`);
    },
  };
  await withServers({ routes: [route, { ...route, path: "/all", public: true }] }, async (server) => {
    for (const path of ["/buffers", "/all"]) {
      assertEquals(await visit(server, { path, body: toPieces(100, 10) }), [200, "1000"]);
      assertEquals(await visit(server, { path, body: toPieces(2, 65_536) }), [200, "131072"]);
    }
  });
});

Deno.test("two equal Content-Length headers do not switch off the limit of a route", async () => {
  await using server = createServer({ ...about, routes: [upload], limits: { request: { bodyBytes: 5000 } } });
  const served = await openHttpServer(server.fetch);
  const lengths = "Content-Length: 9000\r\n".repeat(2);
  const answer = await exchange(
    served.origin,
    `POST /upload HTTP/1.1\r\nHost: localhost\r\n${lengths}\r\n${"a".repeat(9000)}`,
  );
  assertMatch(answer, /^HTTP\/1\.1 (413|400) /);
  await served.stop();
});

Deno.test("a page that needs CORS can call a route only if it may send cookies", async () => {
  const wanted = { "https://app.example": true, "https://any.example": false };
  const rules: readonly (readonly [cors: ServerOptions["cors"], status: number])[] = [
    [{ origins: "*" }, 403],
    [{ origins: ["https://app.example"] }, 403],
    [(origin) => origin in wanted, 403],
    [{ origins: ["https://app.example"], credentials: true }, 200],
    [(origin) => origin in wanted && { credentials: true }, 200],
    [() => ({ credentials: false }), 403],
  ];
  for (const [cors, status] of rules) {
    await withServers({ hosts: ["mcp.example.com"], cors, routes: [upload] }, async (server) => {
      for (const body of [undefined, "delete=all"]) {
        const headers = { host: "mcp.example.com", origin: "https://app.example", cookie: "session=ada" };
        const [found, text] = await visit(server, { headers, body, peer: "203.0.113.7" });
        assertEquals(found, status, JSON.stringify(cors));
        if (status === 403) assertStringIncludes(text, sentence("https://app.example", "origins"));
      }
    });
  }
});

/** A route that returns the URL of its request. */
const where = { path: "/where", fetch: ({ url, method }: Request) => new Response(`${method} ${url}`) };

Deno.test("a route finds the checked host in the URL of a request", async () => {
  await withServers({ hosts: ["mcp.example.com"], routes: [where] }, async (server) => {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      for (const target of ["http://evil.example", "https://evil.example:81", "http://0.0.0.0:3000"]) {
        const request = new Request(`${target}/where?a=//b`, { method, headers: { host: "mcp.example.com:8443" } });
        const response = await server.fetch(request, { remoteAddr: { hostname: "203.0.113.7" } });
        const expected = `${method} ${new URL(target).protocol}//mcp.example.com:8443/where?a=//b`;
        assertEquals([response.status, await response.text()], [200, expected]);
      }
    }
  });
});

Deno.test("a route gets no request with a method that the Fetch standard forbids", async () => {
  await using server = createServer({ ...about, routes: [where, { ...where, path: "/all", public: true }] });
  const faults: unknown[] = [];
  const served = await openHttpServer(async (request, info) => {
    try {
      return await server.fetch(request, info);
    } catch (error) {
      faults.push(error);
      return new Response(null, { status: 500 });
    }
  });
  for (const method of ["TRACE", "TRACK", "get"]) {
    for (const path of ["/where", "/all"]) {
      const target = `${method} http://evil.example${path} HTTP/1.1`;
      const answer = await exchange(served.origin, `${target}\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi`);
      if (path === "/where") assertEquals(answer.includes("evil.example"), false, answer);
      assertEquals([faults, / 500 /.test(answer)], [[], false], answer);
    }
  }
  await served.stop();
});

Deno.test("facts about the connection also answer for the request that a route gets", async () => {
  const asked: unknown[] = [];
  const original = (url: string, body?: BodyInit) => {
    const headers = { host: "localhost", ...typeof body === "string" ? { "content-length": `${body.length}` } : {} };
    return new Request(url, Object.assign({ method: body ? "POST" : "GET", headers, body }, { duplex: "half" }));
  };
  /** Knows only the requests that it has created, like Bun's server. Its methods need the object as `this`. */
  class Runtime {
    readonly #known = new Set<unknown>();
    add(request: Request): Request {
      this.#known.add(request);
      return request;
    }
    requestIP(request: unknown): unknown {
      return this.#known.has(request) ? { address: "127.0.0.1" } : null;
    }
    timeout(request: unknown, seconds: number): void {
      asked.push([this.#known.has(request), seconds]);
    }
  }
  const route = {
    path: "/ask",
    async fetch(request: Request, { info }: RouteInfo) {
      const runtime = Object(info?.info ?? info);
      runtime.timeout(request, 9);
      const stranger = runtime.requestIP(new Request("http://localhost/"));
      const facts = { is: Object(info).principal, ip: runtime.requestIP(request)?.address, stranger };
      return Response.json({ ...facts, text: await request.text() });
    },
  };
  await withServers({ routes: [route, { ...route, path: "/public", public: true }] }, async (server) => {
    for (const path of ["/ask", "/public"]) {
      for (const url of [`http://localhost${path}`, `http://built.example${path}`]) {
        for (const body of [undefined, "text", toStream(4)]) {
          for (const isNested of [false, true]) {
            const runtime = new Runtime();
            const request = runtime.add(original(url, body && typeof body !== "string" ? toStream(4) : body));
            const info = isNested ? Object.freeze({ info: runtime, principal: 5 }) : runtime;
            const response = await server.fetch(request, info);
            const { is, ip, stranger, text } = await response.json();
            assertEquals([is, ip, stranger], [isNested ? 5 : undefined, "127.0.0.1", null], url);
            assertEquals(text.length, body ? 4 : 0);
            assertEquals(asked.splice(0), [[true, 9]]);
          }
        }
      }
    }
  });
});

Deno.test("the signal of a request reaches the route with a limited body", async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<unknown>();
  const route = {
    path: "/wait",
    fetch({ signal }: Request) {
      signal.addEventListener("abort", () => resolve(signal.reason));
      return new Response("waiting");
    },
  };
  await using server = createServer({ ...about, routes: [route] });
  const end = new AbortController();
  const init = { method: "POST", headers: { host: "localhost" }, body: toStream(10), signal: end.signal };
  await server.fetch(new Request("http://localhost/wait", Object.assign(init, { duplex: "half" })));
  end.abort("gone");
  assertEquals(await aborted, "gone");
});

Deno.test("an upload that breaks off is not reported as a fault of the server", async () => {
  for (const isPublic of [false, true]) {
    const faults: unknown[] = [];
    const refused: unknown[] = [];
    const tried: string[] = [];
    const route = {
      ...upload,
      public: isPublic,
      async fetch(request: Request) {
        tried.push("begun");
        return new Response(`${(await request.bytes()).length}`);
      },
    };
    const observer = {
      fault: (error: unknown) => void faults.push(error),
      refused: (e: unknown) => void refused.push(e),
    };
    await using server = createServer({ ...about, routes: [route], observer });
    const served = await openHttpServer(server.fetch);
    const lines = ["Content-Length: 9000\r\n\r\naaaa", "Transfer-Encoding: chunked\r\n\r\n5\r\naaaaa\r\n"];
    for (const [at, line] of lines.entries()) {
      const socket = await open(served.origin, `POST /upload HTTP/1.1\r\nHost: localhost\r\n${line}`);
      await until(() => tried.length > at, "the route reads the body");
      socket.destroy();
      await until(() => refused.length > at || faults.length > 0, "the upload has ended");
    }
    // Without a network, the error is the one that the stream of the body throws.
    const broken = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: (controller) => controller.error(new TypeError("the connection is gone")),
    });
    assertEquals((await visit(server, { body: broken }))[0], 400);
    assertEquals(faults, []);
    await served.stop();
  }
});

Deno.test("a route that stops because the client has disconnected causes no fault", async () => {
  const faults: unknown[] = [];
  const begun: string[] = [];
  const route = {
    path: "/wait",
    fetch: ({ signal }: Request) =>
      new Promise<Response>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        begun.push("begun");
      }),
  };
  await using server = createServer({
    ...about,
    routes: [route],
    observer: { fault: (error) => void faults.push(error) },
  });
  const { promise: ended, resolve } = Promise.withResolvers<Response>();
  const served = await openHttpServer(async (request, info) => {
    const response = await server.fetch(request, info);
    resolve(response);
    return response;
  });
  const socket = await open(served.origin, "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until(() => begun.length, "the route waits");
  socket.destroy();
  assertEquals([(await ended).status, faults], [500, []]);
  await served.stop();
});

Deno.test("an error of a route is reported, also if the route has read the body", async () => {
  const faults: unknown[] = [];
  const route = {
    path: "/fails",
    async fetch(request: Request): Promise<Response> {
      await request.text();
      throw new Error("no disk");
    },
  };
  await using server = createServer({
    ...about,
    routes: [route],
    observer: { fault: (error) => void faults.push(error) },
  });
  assertEquals((await visit(server, { path: "/fails", body: "text" }))[0], 500);
  assertEquals(faults.length, 1);
});

/** Returns a body that breaks off after two pieces. */
function toBroken(): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = 2;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(new Uint8Array(1000).fill(97));
      else controller.error(new TypeError("the connection is gone"));
    },
  });
}

Deno.test("an error of a route is reported although the body fails, unless the body is the cause", async () => {
  const faults: unknown[] = [];
  const route = {
    path: "/stores",
    async fetch(request: Request): Promise<Response> {
      const error = await request.text().catch((error) => error);
      const fault = request.headers.get("fault");
      if (fault === "body") throw error;
      if (fault === "own") throw new Error("no disk");
      // `fetch` of Deno throws an error with a copy as the cause, if a body that it forwards fails.
      throw new TypeError("no text", { cause: fault === "copy" ? new Error(error.message) : error });
    },
  };
  const options = {
    routes: [route],
    limits: { request: { bodyBytes: 5000 } },
    observer: { fault: (error: unknown) => void faults.push(error) },
  };
  await withServers(options, async (server) => {
    for (const [create, refusal] of [[() => toStream(9000), 413], [toBroken, 400]] as const) {
      const find = async (fault: string) => {
        const [status] = await visit(server, { path: "/stores", headers: { fault }, body: create() });
        return [status, faults.splice(0).length];
      };
      assertEquals(await find("own"), [500, 1]);
      for (const fault of ["body", "cause", "copy"]) assertEquals(await find(fault), [refusal, 0], fault);
    }
  });
});

Deno.test("if the body fails after the response has begun, a response that is the body ends, and other readers get the error", async () => {
  const late: Promise<unknown>[] = [];
  const routes = [
    { path: "/echo", fetch: ({ body }: Request) => new Response(body) },
    {
      path: "/later",
      fetch(request: Request) {
        late.push(turn().then(() => request.text()).then(() => "complete", (error) => error));
        return new Response("accepted");
      },
    },
  ];
  await withServers({ routes, limits: { request: { bodyBytes: 5000 } } }, async (server) => {
    assertEquals(await visit(server, { path: "/echo", body: toStream(5000) }), [200, "a".repeat(5000)]);
    assertEquals(await visit(server, { path: "/echo", body: toStream(9000) }), [200, "a".repeat(5000)]);
    assertEquals(await visit(server, { path: "/echo", body: toBroken() }), [200, "a".repeat(2000)]);
    for (const body of [toStream(9000), toBroken()]) {
      assertEquals(await visit(server, { path: "/later", body }), [200, "accepted"]);
      assertInstanceOf(await late.pop(), Error);
    }
  });
});

Deno.test("a public route gets all requests, and so do health checks and metrics", async () => {
  const metrics = prometheus();
  const options = {
    hosts: ["mcp.example.com"],
    limits: { request: { bodyBytes: 5000 } },
    routes: [{ ...upload, public: true }, health(), metrics],
  };
  await withServers(options, async (server) => {
    const headers = { host: "10.0.0.7:8000", origin: "https://evil.example" };
    for (const path of ["/health", "/ready", "/metrics"]) {
      assertEquals((await visit(server, { path, headers }))[0], 200);
    }
    for (const body of ["a".repeat(9000), toStream(9000)]) {
      assertEquals(await visit(server, { headers, body }), [200, "9000"]);
    }
  });
});

Deno.test("public must be a boolean", async () => {
  // deno-lint-ignore no-explicit-any -- A JavaScript program can pass any value.
  const routes: any = [{ ...upload, public: "yes" }];
  await using server = createServer({ ...about, routes, observer: { fault() {} } });
  await assertRejects(() => server.ready(), TypeError, sentence("0"));
});
