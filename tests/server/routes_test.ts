// The checks of requests for routes next to the MCP endpoint: Host, Origin and the size of the body.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, mount, type Server, type ServerOptions } from "../../mod.ts";
import { health, prometheus } from "../../src/observe/observe.ts";
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

async function withServers(
  options: Partial<ServerOptions>,
  use: (server: Server) => Promise<void>,
): Promise<void> {
  for (const isMounted of [false, true]) {
    const { routes, ...others } = options;
    const server = createServer({ ...about, ...others, routes: isMounted ? undefined : routes });
    const whole = isMounted ? mount([server], { routes }) : server;
    await use(whole);
    await whole.close();
  }
}

Deno.test("a route gets only requests whose Host and Origin the endpoint would accept", async () => {
  const options = {
    hosts: ["mcp.example.com"],
    origins: ["https://listed.example"],
    cors: { origins: ["https://app.example"] },
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
