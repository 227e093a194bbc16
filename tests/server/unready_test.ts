// Frameworks load the module of a server while they build an app, without the secrets of production. So a server can be
// created without them. It does not start, and serves nobody.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer, mount, type Server, type ServerOptions, tool } from "../../mod.ts";
import { apiKey, basicAuth, customAuth } from "../../src/auth/auth.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { connect } from "../../src/client/client.ts";
import { health, prometheus } from "../../src/observe/observe.ts";
import { serve } from "../../src/server/serve.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { customStore } from "../../src/stores/stores.ts";
import { sentence } from "../support/messages.ts";
import { toRequest } from "../support/requests.ts";
import { toHello, toSessionRequest } from "../support/sessions.ts";

/** The environment of a build. */
const unset: Readonly<Record<string, string | undefined>> = { EMPTY: "" };
const KEY = "ada-2f6c1e0b9d4a7853";
const store = () => customStore(() => Promise.reject(new Error("it connects")));
const resource = { resource: "https://mcp.example.com/mcp", issuers: ["https://login.example.com"] };

/** Options of which one value is not set, each with words of the error. */
const servers: Readonly<Record<string, () => readonly [Partial<ServerOptions>, ...words: string[]]>> = {
  "the secret of a shared store": () => [{ store: store(), secret: unset.SECRET }, "secret", "store"],
  "the secret, which is empty": () => [{ secret: unset.EMPTY }, "secret", "environment variable"],
  "an API key": () => [{ auth: apiKey({ keys: { ada: unset.KEY } }) }, '"ada"', "environment variable"],
  "one of two API keys": () => [{ auth: apiKey({ keys: { ada: KEY, bob: unset.EMPTY } }) }, '"bob"'],
  "an API key with scopes": () => [{ auth: apiKey({ keys: { ada: { key: unset.KEY, scopes: ["a"] } } }) }, '"ada"'],
  "a new API key": () => [{ auth: apiKey({ keys: { ada: { key: [KEY, unset.KEY as never] } } }) }, '"ada"'],
  "a password": () => [{ auth: basicAuth({ users: { bob: unset.PASSWORD } }) }, '"bob"', "environment variable"],
  "an empty password": () => [{ auth: basicAuth({ users: { bob: { password: unset.EMPTY as string } } }) }, '"bob"'],
  "a key in a list of schemes": () => [
    { auth: [basicAuth({ users: { eve: "hunter2" } }), apiKey({ keys: { ada: unset.KEY } })] },
    '"ada"',
  ],
  "a key in a copied scheme": () => [{ auth: { ...apiKey({ keys: { ada: unset.KEY } }) } }, '"ada"'],
  "the secret of an OAuth client": () => [
    { auth: oauth({ ...resource, introspection: { clientId: "a", clientSecret: unset.SECRET } }) },
    "introspection",
    "clientSecret",
  ],
  "the id of an OAuth client": () => [
    { auth: oauth({ ...resource, exchange: { clientId: unset.ID as string, clientSecret: "b" } }) },
    "exchange",
    "clientId",
  ],
};

function create(options: Partial<ServerOptions>, faults: unknown[]): Server {
  return createServer({
    name: "unready",
    version: "1.0.0",
    handlers: [tool({ name: "hello", run: () => "Hello!" })],
    routes: [health()],
    observer: { fault: ({ error }) => void faults.push(error) },
    ...options,
  });
}

const credentials: readonly Record<string, string>[] = [
  {},
  { authorization: "Bearer " },
  { authorization: `Bearer ${KEY}` },
  { authorization: "Bearer undefined" },
  { authorization: "Bearer unset 0 ada" },
  { authorization: `Basic ${btoa("bob:")}` },
  { authorization: `Basic ${btoa("eve:hunter2")}` },
  { authorization: `Basic ${btoa(":bob")}` },
];

for (const [name, make] of Object.entries(servers)) {
  Deno.test(`a server can be created without ${name}, but does not start, and serves nobody`, async () => {
    const faults: unknown[] = [];
    const [options, ...words] = make();
    await using server = create(options, faults);
    const expected = sentence(...words);
    for (const headers of credentials) {
      for (const sent of [toRequest("tools/list", {}, headers), toSessionRequest(toHello(), headers)]) {
        const response = await server.fetch(sent);
        assertEquals(response.status, 503);
        assert((await response.json()).error.message.length > 20);
      }
    }
    const [fault, ...others] = faults;
    assert(fault instanceof TypeError);
    assertEquals([fault.message, others], [expected, []]);
    const probe = (path: string) => server.fetch(new Request(`http://localhost${path}`));
    assertEquals([(await probe("/health")).status, (await probe("/ready")).status], [200, 503]);
    const { message } = await assertRejects(() => server.ready(), TypeError);
    assertEquals(message, fault.message);
    await assertRejects(() => serve(server, { port: 0, signals: false }), Error);
    await assertRejects(() => connect(server), TypeError, fault.message);
  });
}

Deno.test("every way into a server that is not ready is closed", async () => {
  const faults: unknown[] = [];
  await using server = create({ auth: apiKey({ keys: { ada: unset.KEY } }), path: "/t/:tenant/mcp" }, faults);
  await using other = create({ auth: apiKey({ keys: { ada: unset.KEY } }) }, faults);
  const mounted = mount([other]);
  const at = (path: string, sent: Request) => new Request(new URL(path, sent.url), sent);
  const responses = [
    await server.fetch(at("/t/a/mcp", toRequest("tools/list"))),
    await mounted.fetch(toRequest("tools/list")),
    await httpSse(other).fetch(new Request("http://localhost/sse", { headers: { accept: "text/event-stream" } })),
    await webSocket(other).fetch(
      new Request("http://localhost/mcp/ws", { headers: { upgrade: "websocket", connection: "upgrade" } }),
    ),
  ];
  for (const response of responses) {
    assert(response.status >= 400, `${response.status}`);
    await response.body?.cancel();
  }
  assertEquals(responses.slice(0, 3).map(({ status }) => status), [503, 503, 503]);
  await assertRejects(() => mounted.ready(), TypeError, sentence('"ada"'));
});

Deno.test("the author's own use of an authentication whose key is not set fails", async () => {
  const auth = apiKey({ keys: { ada: unset.KEY } });
  const inner = customAuth((request, info, server) => auth.authenticate(request, info, server), { form: "bearer" });
  const faults: unknown[] = [];
  await using server = create({ auth: inner }, faults);
  const response = await server.fetch(toRequest("tools/list", {}, { authorization: `Bearer ${KEY}` }));
  assert(response.status >= 500, `${response.status}`);
  assertEquals(faults.length, 1);
  await response.body?.cancel();
});

Deno.test("metrics whose token is not set are served to nobody, and the server does not start", async () => {
  for (const token of [unset.TOKEN, unset.EMPTY]) {
    const metrics = prometheus({ token });
    for (const authorization of ["", "Bearer ", "Bearer undefined"]) {
      const response = await metrics.fetch(new Request("http://localhost/metrics", { headers: { authorization } }));
      assertEquals([response.status, await response.text()], [503, ""]);
    }
    await using server = create({ routes: [metrics] }, []);
    await assertRejects(() => server.ready(), TypeError, sentence("token"));
  }
});

Deno.test("a value that is set, but not valid, is an error when the server is created", () => {
  assertThrows(() => apiKey({ keys: { ada: "short" } }), TypeError, sentence('"ada"'));
  assertThrows(() => create({ store: store(), secret: "short" }, []), TypeError, sentence("secret"));
});
