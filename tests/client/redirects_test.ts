// Redirects: the client sends nothing to an origin other than the origin to which it connected.
import { assertEquals, assertRejects } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { RedirectError } from "../../src/client/redirects.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { connectTest as connectTest } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { textOf, until } from "../support/behaviour.ts";
import { createLibrary } from "./server.ts";
import { sentence } from "../support/messages.ts";

type Answer = Response | undefined;

/** A request that an origin has received. */
interface Heard {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: Headers;
}

interface Origins extends AsyncDisposable {
  /** URL to which the client connects. */
  readonly url: string;
  readonly origin: string;
  readonly heard: readonly Heard[];
  /** A second origin on another port of this machine. This origin responds to every request. */
  readonly otherOrigin: string;
  readonly otherHeard: readonly Heard[];
}

/** Starts the same server at two origins. The first origin responds with the result of `divert` if there is one. */
function startOrigins(divert: (heard: Heard, other: string) => Answer, wrap = createLibrary): Origins {
  const server = wrap();
  const [heard, otherHeard]: [Heard[], Heard[]] = [[], []];
  const record = async (request: Request, into: Heard[]) => {
    const { pathname, search } = new URL(request.url);
    const body = await request.clone().text();
    const entry = { method: request.method, path: pathname + search, body, headers: request.headers };
    into.push(entry);
    return entry;
  };
  const other = startHttpServer(async (request, info) => {
    await record(request, otherHeard);
    return await server.fetch(request, info);
  });
  const host = startHttpServer(async (request, info) => {
    const entry = await record(request, heard);
    return divert(entry, other.origin) ?? await server.fetch(request, info);
  });
  return {
    url: `${host.origin}/mcp`,
    origin: host.origin,
    heard,
    otherOrigin: other.origin,
    otherHeard,
    async [Symbol.asyncDispose]() {
      await server.close();
      await host.stop();
      await other.stop();
    },
  };
}

const redirect = (status: number, location: string) => new Response(null, { status, headers: { location } });
const headers = { "x-api-key": "secret", authorization: "Bearer secret" };

/** Asserts that a promise rejects with an error that contains the client's origin and the URL of the other origin. */
async function assertRefused(promise: Promise<unknown>, { origin, otherOrigin, otherHeard }: Origins): Promise<void> {
  await assertRejects(() => promise, RedirectError, sentence(origin, `${otherOrigin}/mcp`));
  assertEquals(otherHeard, []);
}

for (const status of [301, 302, 303, 307, 308]) {
  Deno.test(`while connecting, the client does not follow a redirect with ${status} to another origin`, async () => {
    for (const revisions of [["2026-07-28"], ["2025-11-25"], ["2026-07-28", "2025-11-25"]]) {
      await using origins = startOrigins((_, other) => redirect(status, `${other}/mcp`));
      await assertRefused(connect(origins.url, { headers, revisions }), origins);
      assertEquals(origins.heard.length, 1);
    }
  });

  Deno.test(`a connected client does not follow a redirect with ${status} to another origin`, async () => {
    for (const revisions of [["2026-07-28"], ["2025-11-25"]]) {
      await using origins = startOrigins(({ body }, other) =>
        body.includes("tools/call") ? redirect(status, `${other}/mcp`) : undefined
      );
      await using client = await connect(origins.url, { headers, revisions });
      await assertRefused(client.callTool("echo", { text: "secret" }), origins);
    }
  });
}

Deno.test("the client does not follow a redirect of the GET or the DELETE of a session to another origin", async () => {
  await using origins = startOrigins(({ method }, other) =>
    method === "POST" ? undefined : redirect(method === "GET" ? 302 : 307, `${other}/mcp`)
  );
  const client = await connect(origins.url, { headers, revisions: ["2025-11-25"] });
  await assertRefused(client.subscribe({ toolsListChanged: true }), origins);
  await client.close();
  assertEquals(origins.heard.slice(-1).map(({ method }) => method), ["DELETE"]);
  assertEquals(origins.otherHeard, []);
});

Deno.test("the client does not follow a redirect to another origin when it resumes a stream", async () => {
  await using origins = startOrigins(({ method, body }, other) => {
    if (method === "GET") return redirect(307, `${other}/mcp`);
    if (!body.includes("tools/call")) return;
    return new Response("id: 1\nretry: 1\ndata:\n\n", { headers: { "content-type": "text/event-stream" } });
  });
  await using client = await connect(origins.url, { headers, revisions: ["2025-11-25"] });
  await assertRefused(client.callTool("echo", { text: "secret" }), origins);
});

Deno.test("over HTTP+SSE, the client follows no redirect of the stream or the endpoint to another origin", async () => {
  for (const diverted of ["GET", "POST"]) {
    await using origins = startOrigins(
      ({ method, path }, other) => {
        // Refuse the POST to the stream's URL, so that the client uses HTTP+SSE.
        if (method === "POST" && path === "/sse") return new Response(null, { status: 405 });
        return method === diverted ? redirect(307, `${other}/mcp`) : undefined;
      },
      () => {
        const server = createLibrary();
        return { ...server, fetch: httpSse(server).fetch };
      },
    );
    await assertRefused(connect(`${origins.origin}/sse`, { headers, revisions: ["2024-11-05"] }), origins);
  }
});

Deno.test("the test kit's client does not follow a redirect to another origin", async () => {
  await using origins = startOrigins(() => undefined);
  const server = createLibrary();
  const fetch = () => Promise.resolve(redirect(307, `${origins.otherOrigin}/mcp`));
  for (const era of ["modern", "legacy"] as const) {
    for (const transport of ["memory", "http"] as const) {
      await assertRejects(
        async () => {
          await using client = await connectTest({ ...server, fetch }, { era, transport });
          await client.request("tools/list");
        },
        RedirectError,
        origins.otherOrigin,
      );
    }
  }
  assertEquals(origins.otherHeard, []);
});

// Redirects within the origin.

Deno.test("the client follows a 307 or 308 redirect within the server's path with the same method, headers and body", async () => {
  for (const status of [307, 308]) {
    for (const revisions of [["2026-07-28"], ["2025-11-25"]]) {
      await using origins = startOrigins(({ path }) =>
        path === "/mcp" ? redirect(status, "/a/../mcp?again") : undefined
      );
      await using client = await connect(origins.url, { headers, revisions });
      assertEquals(textOf(await client.callTool("echo", { text: "again" })), "again");
      const [asked, arrived] = origins.heard.filter(({ body }) => body.includes("tools/call"));
      assertEquals([asked.path, arrived.path], ["/mcp", "/mcp?again"]);
      assertEquals([arrived.method, arrived.body], ["POST", asked.body]);
      for (const name of ["x-api-key", "authorization", "mcp-session-id", "content-type", "mcp-protocol-version"]) {
        assertEquals(arrived.headers.get(name), asked.headers.get(name), name);
      }
    }
  }
});

Deno.test("the client follows every redirect of a GET within the origin", async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    await using origins = startOrigins(({ method, path }) =>
      method === "GET" && path === "/mcp" ? redirect(status, "?there") : undefined
    );
    await using client = await connect(origins.url, { headers, revisions: ["2025-11-25"] });
    await using subscription = await client.subscribe({ toolsListChanged: true });
    assertEquals(subscription.granted, { toolsListChanged: true });
    await until(() => origins.heard.filter(({ method }) => method === "GET").length > 1, "the stream was not opened");
  }
});

Deno.test("the client does not follow a redirect to another path of the origin, which may belong to another party", async () => {
  const others = [
    "/evil/mcp",
    "/",
    "/mc",
    "/mcpx",
    "/mcp/../evil",
    "/mcp/%2e%2e/evil",
    "/mcp/..%2fevil",
    "/mcp/..%5cevil",
    "/mcp/%252e%252e/evil",
    "/mcp/..;/evil",
    "/mcp/..%3ba=b/evil",
    "/mcp/..%20/evil",
    "/mcp/..,a=b/evil",
    "/mcp/.%C2%A0./evil",
    "/mcp/%EF%BC%8E%EF%BC%8E/evil",
    "/mcp/%0a/evil",
    "/MCP",
    "/evil/mcp?/mcp",
  ];
  for (const target of others) {
    for (const status of [302, 307]) {
      let isDiverting = false;
      await using origins = startOrigins(({ method, body }) => {
        const isDiverted = isDiverting && (status === 302 ? method === "GET" : body.includes("tools/call"));
        return isDiverted ? redirect(status, target) : undefined;
      });
      await using client = await connect(origins.url, {
        headers,
        revisions: [status === 302 ? "2025-11-25" : "2026-07-28"],
      });
      isDiverting = true;
      const before = origins.heard.length;
      await assertRejects(
        () =>
          status === 302 ? client.subscribe({ toolsListChanged: true }) : client.callTool("echo", { text: "secret" }),
        RedirectError,
        sentence(origins.url),
      );
      const paths = origins.heard.slice(before).map(({ path }) => path);
      assertEquals(paths.filter((path) => path !== "/mcp"), [], target);
    }
  }
});

Deno.test("a redirect must not change the query of the server's URL, and may end the path with a slash", async () => {
  let location = "";
  const asked: string[] = [];
  const fetch = (request: Request) => {
    asked.push(request.url);
    return Promise.resolve(asked.length === 1 ? redirect(308, location) : Response.json({}));
  };
  const start = "https://mcp.example.com/mcp?tenant=a";
  for (const [target, isFollowed] of [["/mcp/?tenant=a", true], ["/mcp/?tenant=b", false], ["/mcp/", false]] as const) {
    location = target;
    asked.length = 0;
    const error = await assertRejects(() => connect(start, { fetch, headers, revisions: ["2026-07-28"] }), Error);
    assertEquals([error instanceof RedirectError, asked.length > 1], [!isFollowed, isFollowed], target);
  }
});

Deno.test("the client refuses a redirect that would turn POST into GET", async () => {
  for (const status of [301, 302, 303]) {
    await using origins = startOrigins(() => redirect(status, "/mcp/there"));
    const message = sentence(status, "POST", "GET", `${origins.origin}/mcp/there`);
    await assertRejects(() => connect(origins.url, { headers }), RedirectError, message);
    assertEquals(origins.heard.length, 1);
  }
});

Deno.test("the client stops after five redirects", async () => {
  await using origins = startOrigins(() => redirect(307, "/mcp"));
  await assertRejects(() => connect(origins.url), RedirectError, sentence(origins.url, 5));
  assertEquals(origins.heard.length, 6);
});

const odd: readonly { readonly what: string; readonly response: () => Response; readonly target?: string }[] = [
  {
    what: "a runtime does not reveal",
    // The `Response` constructor cannot create a response of this type.
    response: () => Object.defineProperty(Response.error(), "type", { value: "opaqueredirect" }),
  },
  { what: "leads to no URL", response: () => redirect(307, "http://") },
  { what: "leads to a file", response: () => redirect(307, "file:///etc/passwd"), target: "file:" },
  { what: "leads to data", response: () => redirect(307, "data:text/plain,x"), target: "data:" },
  { what: "leads to TLS", response: () => redirect(308, "https://localhost/mcp"), target: "https://localhost" },
  {
    what: "looks like the origin",
    response: () => redirect(307, "//localhost@evil.example/mcp"),
    target: "http://evil.example",
  },
];

for (const { what, response, target = "" } of odd) {
  Deno.test(`a redirect that ${what} is refused`, async () => {
    let count = 0;
    const fetch = () => (count++, Promise.resolve(response()));
    await assertRejects(
      () => connect("http://localhost/mcp", { fetch }),
      RedirectError,
      sentence("http://localhost", target),
    );
    assertEquals(count, 1);
  });
}
