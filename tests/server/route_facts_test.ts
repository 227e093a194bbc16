// The peer, the rates and the pages of routes: of `createServer`, of `mount` and of an authentication.
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { type Authentication, createServer, mount, type Route, type Server, type ServerOptions } from "../../mod.ts";
import type { AuthRoute } from "../../src/auth/auth.ts";
import { fakeClock } from "../../src/testing/testing.ts";

const about = { name: "routed", version: "1.0.0", hosts: ["notes.example.com"] };
type Fetch = (request: Request, info: Parameters<Route["fetch"]>[1] | Parameters<AuthRoute["fetch"]>[1]) => Response;
type Shape = { readonly path: string; readonly page?: boolean | string; readonly fetch: Fetch };

/** Serves a route in each of the places that a route can have. */
const places: Readonly<Record<string, (route: Shape, options?: Partial<ServerOptions>) => Pick<Server, "fetch">>> = {
  server: (route, options) => createServer({ ...about, ...options, routes: [route] }),
  mount: (route, options) => mount([createServer({ ...about, ...options })], { routes: [route] }),
  auth: (route, options) => createServer({ ...about, ...options, auth: toAuth(route) }),
  "auth of a path with parameters": (route, options) =>
    createServer({
      ...about,
      ...options,
      path: "/at/:tenant/mcp",
      auth: toAuth({ ...route, path: "/at/:tenant/route" }),
    }),
};

function toAuth(route: AuthRoute): Authentication {
  return { authenticate: () => undefined, routes: [route] };
}

function visitor(server: Pick<Server, "fetch">, place: string) {
  return async (
    { headers = {}, from = "192.0.2.1", method = "GET" }: {
      readonly headers?: Readonly<Record<string, string>>;
      readonly from?: string | null;
      readonly method?: string;
    } = {},
  ) => {
    const path = place.includes("parameters") ? "/at/ada/route" : "/route";
    const request = new Request(`http://notes.example.com${path}`, {
      method,
      headers: { host: "notes.example.com", ...headers },
    });
    return await server.fetch(request, from === null ? undefined : { remoteAddr: { hostname: from } });
  };
}

for (const [place, serve] of Object.entries(places)) {
  Deno.test(`a route of ${place} gets the peer behind the proxies of the server`, async () => {
    const route: Shape = { path: "/route", fetch: (_request, { peer }) => new Response(peer ?? "unknown") };
    const visit = visitor(serve(route, { proxies: ["192.0.2.1"] }), place);
    const forwarded = { "x-forwarded-for": "203.0.113.9, 192.0.2.1" };
    const cases = [
      [{ headers: forwarded }, "203.0.113.9"],
      [{ headers: forwarded, from: "198.51.100.7" }, "198.51.100.7"],
      [{ from: "2001:db8:1:2:3:4:5:6" }, "2001:db8:1:2"],
      [{ from: null }, "unknown"],
    ] as const;
    for (const [request, peer] of cases) assertEquals(await (await visit(request)).text(), peer);
  });

  Deno.test(`a route of ${place} limits the rate of each peer`, async () => {
    const clock = fakeClock();
    const events: unknown[] = [];
    const route: Shape = {
      path: "/route",
      fetch: ({ method }, { rate }) =>
        rate(method, { calls: method === "GET" ? 3 : 1, perMs: 60_000 }) ?? new Response("served"),
    };
    const options = {
      clock,
      observer: { limit: ({ limit, client }: { limit: string; client?: string }) => events.push([limit, client]) },
    };
    const visit = visitor(serve(route, options), place);
    const read = async (...given: Parameters<typeof visit>) => (await visit(...given)).status;
    for (let at = 0; at < 3; at++) assertEquals(await read(), 200);
    const refused = await visit();
    assertEquals([refused.status, refused.headers.get("retry-after")], [429, "20"]);
    assertStringIncludes(await refused.text(), "try again in 20 s (route.rate)");
    assertEquals(events, [["route.rate", "peer 192.0.2.1"]]);
    // Another name, another peer, and requests without an address have a rate of their own.
    assertEquals(await read({ method: "POST" }), 200);
    assertEquals(await read({ method: "POST" }), 429);
    for (let at = 0; at < 3; at++) assertEquals(await read({ from: "192.0.2.2" }), 200);
    for (let at = 0; at < 9; at++) assertEquals(await read({ from: null }), 200);
    // An IPv6 /56 network is one peer.
    for (let at = 0; at < 3; at++) assertEquals(await read({ from: `2001:db8:1:${at}::1` }), 200);
    assertEquals(await read({ from: "2001:db8:1:9::1" }), 429);
    await clock.advance(20_000);
    assertEquals([await read(), await read()], [200, 429]);
  });

  Deno.test(`a rate of ${place} with numbers that are not positive is an error`, async () => {
    const errors: string[] = [];
    const route: Shape = {
      path: "/route",
      fetch(_request, { rate }) {
        for (const wrong of [{ calls: 0, perMs: 1 }, { calls: 1, perMs: 0 }, { calls: NaN, perMs: 1 }]) {
          errors.push(assertThrows(() => rate("x", wrong), TypeError).message);
        }
        return new Response();
      },
    };
    await visitor(serve(route), place)();
    assertEquals(errors.length, 3);
    for (const each of errors) {
      assertMatch(each, /^Cannot count requests for x: .*; write \{ calls: 60, perMs: 60_000 \}$/);
    }
  });

  Deno.test(`a page of ${place} has the headers of a page, and refuses pages of other origins`, async () => {
    const own = "https://notes.example.com";
    const fetch = () => new Response("page", { headers: { "cache-control": "max-age=60" } });
    for (const page of [true, own]) {
      const visit = visitor(serve({ path: "/route", page, fetch }), place);
      const { status, headers } = await visit();
      assertEquals(status, 200);
      const policy = headers.get("content-security-policy") ?? "";
      assertStringIncludes(policy, "frame-ancestors 'none'");
      assertEquals(policy.includes("form-action"), false);
      assertEquals(headers.get("referrer-policy"), "same-origin");
      assertEquals(headers.get("x-frame-options"), "DENY");
      // The author's own header stays.
      assertEquals(headers.get("cache-control"), "max-age=60");
      const from = async (origin: string) => (await visit({ method: "POST", headers: { origin } })).status;
      for (const origin of ["https://evil.example", "null", "https://notes.example.com.evil.example"]) {
        assertEquals(await from(origin), 403, origin);
      }
      assertEquals(await from(page === true ? "http://notes.example.com" : own), 200);
    }
    const plain = visitor(serve({ path: "/route", fetch }), place);
    assertEquals((await plain()).headers.has("content-security-policy"), false);
  });

  Deno.test(`a page of ${place} must be true or an origin`, async () => {
    for (const page of ["notes.example.com", "https://notes.example.com/x", "", 7]) {
      const route = { path: "/route", page, fetch: () => new Response() } as unknown as Shape;
      const faults: unknown[] = [];
      const open = async () => {
        const server = serve(route, { observer: { fault: ({ error }) => faults.push(error) } });
        return (await visitor(server, place)()).status;
      };
      // The code of routes loads with the first request.
      assertEquals(await open().catch(() => "refused") === 200, false, `${page}`);
    }
  });
}
