// A server with several authentication schemes: which scheme checks a request, and to which scheme a principal belongs.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { type Authentication, mount, type Server, type ServerOptions, tool } from "../../mod.ts";
import {
  allScopes,
  apiKey,
  authScheme,
  basicAuth,
  customAuth,
  findPrincipal,
  refuseRequest,
  requirePrincipal,
} from "../../src/auth/auth.ts";
import { oauth, toPrincipalId } from "../../src/auth/oauth/oauth.ts";
import { connect } from "../../src/client/client.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
// @ts-types="@modelcontextprotocol/sdk/client/auth"
import { extractWWWAuthenticateParams } from "@modelcontextprotocol/sdk/client/auth.js";
import { connectTest, fakeClock, McpError } from "../../src/testing/testing.ts";
import { openPort } from "../peers/runtime.ts";
import { until } from "../support/behaviour.ts";
import { RESOURCE, TestIssuer } from "../support/issuer.ts";
import { METADATA } from "../support/protected.ts";
import { readReply, toReply, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const KEY = "ada-2f6c1e0b9d4a7853";
const OTHER = "bob-8d3f5a7c6e1b9042";
const BASIC = `Basic ${btoa("ada:secret")}`;

const whoami = tool({
  name: "whoami",
  run: (_, ctx) => ({ id: ctx.principal?.id, seen: [...ctx.http?.headers ?? []].join("\n") + ctx.http?.url }),
});
const wipe = tool({ name: "wipe", scopes: ["notes:write"], run: () => "Wiped." });

function start(auth: readonly Authentication[], options: Partial<ServerOptions> = {}): Server {
  const handlers = [whoami, ...options.handlers ?? []];
  return openServer({ auth, observer: { fault() {} }, ...options, handlers });
}

interface Answer {
  readonly status: number;
  readonly challenge: string | null;
  readonly text: string;
  readonly id?: string;
  readonly seen?: string;
}

type Headers = Record<string, string>;

async function send(server: Pick<Server, "fetch">, headers: Headers, query = "", name = "whoami"): Promise<Answer> {
  const request = toRequest("tools/call", { name }, headers);
  const response = await server.fetch(query ? new Request(request.url + query, request) : request);
  const text = await response.text();
  const { id, seen } = JSON.parse(toReply(text)).result?.structuredContent ?? {};
  return { status: response.status, challenge: response.headers.get("www-authenticate"), text, id, seen };
}

/** Creates a list of schemes. `asked` records the scheme of each check. */
function counted() {
  const asked: string[] = [];
  const count = (auth: Authentication, name: string): Authentication => ({
    ...auth,
    authenticate: (request, info, server) => {
      asked.push(name);
      return auth.authenticate(request, info, server);
    },
  });
  const bearer = count(
    customAuth(({ headers }) => headers.get("authorization") === "Bearer good" ? { id: "eve" } : undefined, {
      form: "bearer",
      prefix: "site",
    }),
    "bearer",
  );
  const basic = count(basicAuth({ users: { ada: "secret" } }), "basic");
  const key = count(apiKey({ keys: { ada: KEY }, header: "X-Api-Key", cookie: "key", query: "key" }), "key");
  return { asked, list: [bearer, basic, key] };
}

Deno.test("the form of a credential selects the scheme, and only that scheme checks it", async () => {
  const { asked, list } = counted();
  await using server = start(list);
  const good: readonly (readonly [Headers, string, string, string])[] = [
    [{ authorization: "Bearer good" }, "", "bearer", "site:eve"],
    [{ authorization: BASIC }, "", "basic", "basic:ada"],
    [{ authorization: BASIC.replace("Basic", "bASIC") }, "", "basic", "basic:ada"],
    [{ "x-api-key": KEY }, "", "key", "apikey:ada"],
    [{ cookie: `theme=dark; key=${KEY}` }, "", "key", "apikey:ada"],
    [{}, `?key=${KEY}`, "key", "apikey:ada"],
  ];
  for (const [headers, query, name, id] of good) {
    const answer = await send(server, headers, query);
    assertEquals([answer.status, answer.id, asked.splice(0)], [200, id, [name]]);
    for (const secret of ["good", BASIC, KEY]) assert(!answer.seen?.includes(secret), answer.seen);
  }
  const refused: readonly (readonly [Headers, string, string])[] = [
    // Each of these credentials would be valid for another scheme.
    [{ authorization: `Bearer ${KEY}` }, "", "bearer"],
    [{ authorization: `Basic ${KEY}` }, "", "basic"],
    [{ "x-api-key": "Bearer good" }, "", "key"],
    [{ "x-api-key": BASIC }, "", "key"],
    [{ cookie: "key=good" }, "", "key"],
    // Empty and malformed credentials.
    [{ authorization: "Bearer" }, "", "bearer"],
    [{ authorization: "Basic" }, "", "basic"],
    [{ authorization: "basic =" }, "", "basic"],
    [{ "x-api-key": "" }, "", "key"],
    [{ cookie: "key=" }, "", "key"],
    [{}, "?key=", "key"],
  ];
  for (const [headers, query, name] of refused) {
    const answer = await send(server, headers, query);
    assertEquals([answer.status, asked.splice(0)], [401, [name]], JSON.stringify(headers));
    for (const scheme of ["Bearer", "Basic", "ApiKey"]) assertStringIncludes(String(answer.challenge), scheme);
  }
});

Deno.test("a request without a matching credential gets the challenges of all schemes, and no scheme checks the request", async () => {
  const { asked, list } = counted();
  await using server = start(list);
  const without: readonly (readonly [Headers, string])[] = [
    [{}, ""],
    [{ authorization: "" }, ""],
    [{ authorization: KEY }, ""],
    [{ authorization: "Digest good" }, ""],
    [{ authorization: "Bearer\tgood" }, ""],
    [{ authorization: "BearerX good" }, ""],
    [{ authorization: "Bearer\u00a0good" }, ""],
    [{ cookie: `theme=key; Key=${KEY}; xkey=${KEY}` }, ""],
    [{}, "?KEY=x&other=key"],
    [{ "x-api-keys": KEY, key: KEY }, ""],
  ];
  for (const [headers, query] of without) {
    const { status, challenge } = await send(server, headers, query);
    const all = `Bearer, Basic realm="mcp", charset="UTF-8", ApiKey`;
    assertEquals([status, challenge, asked], [401, all, []], JSON.stringify(headers));
  }
});

Deno.test("a request with credentials for two schemes gets 400, and no scheme checks the request", async () => {
  const { asked, list } = counted();
  await using server = start(list);
  const two: readonly (readonly [Headers, string])[] = [
    [{ authorization: "Bearer good", "x-api-key": KEY }, ""],
    [{ authorization: "Bearer good", "x-api-key": "" }, ""],
    [{ authorization: "", "x-api-key": KEY }, ""],
    [{ authorization: "Digest good", "x-api-key": KEY }, ""],
    [{ authorization: "Bearer good", cookie: `key=${KEY}` }, ""],
    [{ authorization: BASIC }, `?key=${KEY}`],
    [{ authorization: `Bearer good, ${BASIC}` }, ""],
    [{ authorization: `${BASIC}, Bearer good` }, ""],
    [{ authorization: "Bearer good, Bearer good" }, ""],
    [{ authorization: "Bearer good," }, ""],
    [{ authorization: ", Bearer good" }, ""],
  ];
  for (const [headers, query] of two) {
    const { status, challenge } = await send(server, headers, query);
    assertEquals([status, asked], [400, []], JSON.stringify(headers));
    assertStringIncludes(String(challenge), 'Bearer error="invalid_request"');
  }
});

Deno.test("a request with two Authorization headers gets 400 over a TCP connection", async () => {
  const { asked, list } = counted();
  await using server = start(list);
  await using served = await openPort({ fetch: (request: Request) => server.fetch(request) });
  const [hostname, port] = served.host.split(":");
  for (const [first, second] of [["Bearer good", BASIC], [BASIC, "Bearer good"], ["Bearer good", "Bearer good"]]) {
    const head = [
      "POST /mcp HTTP/1.1",
      `Host: ${served.host}`,
      "Content-Type: application/json",
      "Content-Length: 2",
      "Connection: close",
      `Authorization: ${first}`,
      `authorization: ${second}`,
    ];
    const text = await exchange({ hostname, port: Number(port) }, `${head.join("\r\n")}\r\n\r\n{}`);
    assertEquals([text.split(" ")[1], asked], ["400", []], text);
  }
});

/** Sends a raw request over TCP. Returns the response, or its beginning if the connection stays open. */
async function exchange(
  to: { readonly hostname: string; readonly port: number },
  request: string,
  isFirst = false,
): Promise<string> {
  const { connect } = await import("node:net");
  return await new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(to.port, to.hostname, () => socket.write(request));
    socket.on("data", (data) => {
      text += data;
      if (isFirst) socket.destroy();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
  });
}

Deno.test("createServer() throws if two schemes in a list match the same credential", () => {
  const refuse = (auth: readonly unknown[], ...names: readonly string[]) => {
    // The cast passes lists that the types forbid, because a program can run without a type check.
    assertThrows(() => start(auth as readonly Authentication[]), TypeError, sentence(...names));
  };
  const verify = () => undefined;
  const keys = { ada: KEY };
  const issued = oauth({ resource: RESOURCE, issuers: ["https://login.example.com"] });
  refuse(
    [issued, apiKey({ keys })],
    "oauth() (auth[0])",
    "apiKey() (auth[1])",
    "bearer",
    'apiKey({ keys, header: "x-api-key" })',
  );
  refuse([issued, customAuth(verify, { form: "dpop" })], "dpop");
  refuse([basicAuth({ users: { a: "b" } }), customAuth(verify, { form: "basic" })], "basic");
  refuse([apiKey({ keys, header: "X-Key" }), customAuth(verify, { form: { header: "x-key" } })], "x-key");
  refuse([apiKey({ keys, cookie: "k" }), apiKey({ keys, header: "x-key", cookie: "k", prefix: "b" })], '"k"');
  refuse([apiKey({ keys, cookie: "k" }), apiKey({ keys, header: "Cookie", prefix: "b" })], "cookie");
  refuse([apiKey({ keys, header: "x-key", query: "access_token" }), issued], '"access_token"');
  refuse([apiKey({ keys }), apiKey({ keys: { bob: OTHER }, header: "x-key" })], '"apikey:"', "prefix");
  refuse([apiKey({ keys }), customAuth(verify, { form: "basic", prefix: "apikey" })], '"apikey:"');
  refuse(
    [customAuth(verify, { form: "basic" }), customAuth(verify, { form: "bearer" })],
    "customAuth() (auth[0])",
    "customAuth() (auth[1])",
    '{ prefix: "site" }',
  );
  for (const auth of [[customAuth(verify), apiKey({ keys })], [apiKey({ keys }), customAuth(verify)]]) {
    refuse(auth, 'customAuth(verify, { form: "bearer" })');
  }
  refuse([apiKey({ keys }), verify], "(auth[1])");
  const own = { authenticate: verify };
  refuse([apiKey({ keys }), own], "(auth[1])", "scheme: authScheme(");
  refuse([own, apiKey({ keys })], "(auth[0])", "scheme: authScheme(");
  refuse([apiKey({ keys }), { ...own, scheme: authScheme({ name: "own" }) }], "own (auth[1])", "schemes");
  refuse([own, own], "scheme: authScheme(");
  refuse([apiKey({ keys }), undefined], "(auth[1])");
  refuse([apiKey({ keys }), { ...basicAuth({ users: { a: "b" } }), authenticate: undefined }], "(auth[1])");
  refuse([apiKey({ keys }), { ...basicAuth({ users: { a: "b" } }), satisfy: verify }], "auth[1].satisfy");
  for (const auth of [[], [verify], [undefined], [null], [[apiKey({ keys })]]]) refuse(auth, "auth");
});

Deno.test("customAuth throws for an unknown form", () => {
  const forms: readonly unknown[] = ["Bearer", "digest", {}, { header: "" }, { header: "Authorization" }, null, 1, []];
  for (const form of [...forms, { header: "a b" }, { cookie: "sid" }, { header: ["x"] }, "toString"]) {
    // The cast passes values that the types forbid.
    const options = { form } as unknown as { form: "bearer" };
    assertThrows(() => customAuth(() => undefined, options), TypeError, "customAuth()", JSON.stringify(form));
  }
  for (const prefix of ["", "a:b", "a b", "\u00e4", "x".repeat(65)]) {
    assertThrows(() => customAuth(() => undefined, { prefix }), TypeError, "prefix");
    assertThrows(() => apiKey({ keys: { ada: KEY }, prefix }), TypeError, "prefix");
  }
});

Deno.test("customAuth with a form uses its scheme in the challenge, and hides its header from handlers", async () => {
  const verify = ({ headers }: Request) => headers.get("x-user") === "ada" ? { id: "ada" } : undefined;
  await using server = start([customAuth(verify, { form: { header: "X-User" } })]);
  const { status, id, seen } = await send(server, { "x-user": "ada" });
  assertEquals([status, id, seen?.includes("x-user")], [200, "ada", false]);
  assertEquals((await send(server, {})).challenge, "ApiKey");
  const toChallenge = async (form: "bearer" | "dpop" | "basic") => {
    const custom = start([customAuth(() => undefined, { form })]);
    return (await send(custom, {})).challenge;
  };
  assertEquals(await toChallenge("dpop"), "DPoP");
  assertEquals(await toChallenge("basic"), 'Basic realm="mcp", charset="UTF-8"');
});

Deno.test("a list in which no scheme reads the Authorization header ignores this header", async () => {
  await using server = start([
    apiKey({ keys: { ada: KEY }, header: "x-one" }),
    apiKey({ keys: { ada: OTHER }, header: "x-two", prefix: "two" }),
  ]);
  assertEquals((await send(server, { "x-one": KEY, authorization: "Basic x, y" })).id, "apikey:ada");
  assertEquals((await send(server, { "x-two": OTHER })).id, "two:ada");
  assertEquals((await send(server, { "x-two": KEY })).status, 401);
  assertEquals((await send(server, { authorization: `Bearer ${KEY}` })).status, 401);
});

Deno.test("a caller is refused if a scheme returns an id with the prefix of another scheme", async () => {
  const faults: unknown[] = [];
  let id = "";
  const custom = customAuth(() => ({ id, scopes: allScopes }), { form: "bearer" });
  const key = apiKey({ keys: { ada: KEY }, header: "x-api-key" });
  const stray = { ...basicAuth({ users: { ada: "secret" } }), authenticate: () => ({ id }) };
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  await using server = start([custom, key, stray], { observer });
  for (id of ["apikey:ada", "basic:ada", "apikey:"]) {
    assertEquals((await send(server, { authorization: "Bearer x" })).status, 500, id);
    assertStringIncludes(String(faults.pop()), sentence("(auth[0])", id));
  }
  for (id of ["ada", "Apikey:ada", "apikey", "oauth:ada"]) {
    assertEquals((await send(server, { authorization: "Bearer x" })).id, id);
  }
  for (id of ["ada", "apikey:ada"]) {
    assertEquals((await send(server, { authorization: "Basic x" })).status, 500, id);
    assertStringIncludes(String(faults.pop()), sentence("basicAuth() (auth[2])", id));
  }
  id = "basic:eve";
  assertEquals((await send(server, { authorization: "Basic x" })).id, id);
});

Deno.test("customAuth adds its prefix to the id that the function returns, and does not change other fields", async () => {
  const answers: unknown[] = [
    { id: "apikey:ada", scopes: ["a"], expiresAt: Date.now() + 60_000, team: { name: "red" } },
    Promise.resolve({ id: "ada" }),
    undefined,
    Promise.resolve(null),
    refuseRequest(403, { reason: "closed" }),
    { id: "" },
    { id: 1 },
    "ada",
    { id: "ada", expiresAt: 1 },
  ];
  const verify = () => answers.shift() as undefined; // The cast returns values of any type.
  await using server = start([
    customAuth(verify, { form: "bearer", prefix: "site" }),
    apiKey({ keys: { ada: KEY }, header: "x" }),
  ]);
  const authorization = "Bearer x";
  assertEquals((await send(server, { authorization })).id, "site:apikey:ada");
  assertEquals((await send(server, { authorization })).id, "site:ada");
  for (const status of [401, 401, 403, 500, 500, 500, 401]) {
    assertEquals((await send(server, { authorization })).status, status);
  }
});

Deno.test("a caller with too few scopes gets only the challenge of the scheme that authenticated the caller", async () => {
  await using issuer = await TestIssuer.start();
  const auth = [
    apiKey({
      keys: { ada: { key: KEY, scopes: ["notes"] }, bob: { key: OTHER, scopes: ["notes:write"] } },
      header: "x-api-key",
      realm: "notes",
    }),
    oauth({ resource: RESOURCE, issuers: [issuer.name], satisfies: (granted) => granted.includes("notes") }),
  ];
  await using server = start(auth, { handlers: [wipe] });
  const broad = await issuer.sign({ claims: { scope: "notes" } });
  const exact = await issuer.sign({ claims: { scope: "notes:write" } });
  const call = async (headers: Headers) => {
    const { status, challenge } = await send(server, headers, "", "wipe");
    return [status, challenge];
  };
  assertEquals(await call({ "x-api-key": KEY }), [
    403,
    'ApiKey error="insufficient_scope", scope="notes:write", realm="notes"',
  ]);
  assertEquals(await call({ "x-api-key": OTHER }), [200, null]);
  assertEquals(await call({ authorization: `Bearer ${broad}` }), [200, null]);
  assertEquals(await call({ authorization: `Bearer ${exact}` }), [
    403,
    `Bearer error="insufficient_scope", scope="notes:write", resource_metadata="${METADATA}"`,
  ]);
  // A principal that is passed to `fetch` belongs to the scheme whose prefix its id has.
  const scopes = ["notes"];
  const passed = { "x": 403, "apikey:x": 403, [toPrincipalId(issuer.name, "x")]: 200 };
  for (const [id, status] of Object.entries(passed)) {
    const response = await server.fetch(toRequest("tools/call", { name: "wipe" }), { principal: { id, scopes } });
    await response.body?.cancel();
    assertEquals(response.status, status, id);
  }
  // Bearer comes first, because some clients read only the first challenge.
  const refused = await send(server, { "x-api-key": "wrong" });
  assertEquals(
    refused.challenge,
    `Bearer resource_metadata="${METADATA}", ApiKey realm="notes", error="invalid_token"`,
  );
});

Deno.test("a handler is accepted if the callers of at least one scheme have its scopes", async () => {
  const keys = apiKey({ keys: { ada: KEY } });
  const users = (scopes: readonly string[]) => basicAuth({ users: { ada: { password: "secret", scopes } } });
  assertThrows(() => start([keys, users([])], { handlers: [wipe] }), TypeError, sentence("wipe", "notes:write"));
  await start([keys, users(["notes:write"])], { handlers: [wipe] }).close();
  const unknown = customAuth(() => undefined, { form: "basic" });
  await start([keys, unknown], { handlers: [wipe] }).close();
});

Deno.test("the metadata of a scheme in a list is served, also with mount, and each scheme is closed once", async () => {
  const closed: string[] = [];
  const auth = [
    {
      ...oauth({ resource: RESOURCE, issuers: ["https://login.example.com"] }),
      start: () => () => void closed.push("oauth"),
    },
    {
      ...apiKey({ keys: { ada: KEY }, header: "x-api-key" }),
      start: () => () => {
        closed.push("key");
        throw new Error("stuck");
      },
    },
    { ...basicAuth({ users: { ada: "b" } }), start: () => () => Promise.resolve(void closed.push("basic")) },
  ];
  const faults: unknown[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  const mounted = mount([start(auth, { observer })]);
  const { pathname } = new URL(METADATA);
  const response = await mounted.fetch(new Request(`http://localhost${pathname}`));
  assertEquals((await response.json()).resource, RESOURCE);
  assertEquals((await send(mounted, { "x-api-key": KEY })).id, "apikey:ada");
  await mounted.close();
  assertEquals([closed.sort(), faults.map(String)], [["basic", "key", "oauth"], ["Error: stuck"]]);
});

Deno.test("oauth() in a list has a separate resource for each concrete path", async () => {
  await using issuer = await TestIssuer.start();
  const auth = [
    oauth({ resource: ({ tenant }) => `https://mcp.example.com/${tenant}/mcp`, issuers: [issuer.name] }),
    customAuth(({ headers }, { pathParams }) => {
      const { tenant } = pathParams() as { readonly tenant: string }; // The cast is safe, because a parameter without a schema is a string.
      return headers.get("x-tenant-key") === tenant ? { id: `tenant:${tenant}` } : undefined;
    }, { form: { header: "x-tenant-key" } }),
  ];
  await using server = start(auth, { path: "/:tenant/mcp" });
  const at = async (tenant: string, headers: Headers) => {
    const request = toRequest("tools/call", { name: "whoami" }, headers);
    const response = await server.fetch(new Request(`http://localhost/${tenant}/mcp`, request));
    const { result } = await readReply(response);
    return [response.status, result?.structuredContent.id ?? response.headers.get("www-authenticate")];
  };
  const authorization = `Bearer ${await issuer.sign({ claims: { aud: "https://mcp.example.com/acme/mcp" } })}`;
  assertEquals(await at("acme", { authorization }), [200, `oauth:${JSON.stringify([issuer.name, "ada"])}`]);
  assertEquals((await at("bee", { authorization }))[0], 401);
  assertEquals(await at("bee", { "x-tenant-key": "bee" }), [200, "tenant:bee"]);
  assertEquals((await at("acme", { "x-tenant-key": "bee" }))[0], 401);
  const metadata = (tenant: string) => `https://mcp.example.com/.well-known/oauth-protected-resource/${tenant}/mcp`;
  assertEquals(await at("bee", {}), [401, `Bearer resource_metadata="${metadata("bee")}", ApiKey`]);
  const found = await server.fetch(new Request("http://localhost/.well-known/oauth-protected-resource/bee/mcp"));
  assertEquals((await found.json()).resource, "https://mcp.example.com/bee/mcp");
  assertThrows(
    () => start([oauth({ resource: RESOURCE, issuers: [issuer.name] })], { path: "/:tenant/mcp" }),
    TypeError,
    sentence("oauth()", "/:tenant/mcp"),
  );
});

Deno.test("only the scheme that authenticated the caller of a stream renews and rechecks the caller", async () => {
  const clock = fakeClock();
  let isLocked = false;
  const asked: string[] = [];
  const once = customAuth(() => {
    asked.push("once");
    return { id: "a", expiresAt: clock.date() + 300_000 };
  }, { form: "bearer", prefix: "once" });
  const renewed: Authentication = {
    ...customAuth(() => ({ id: "b", expiresAt: clock.date() + 30_000 }), { form: "basic", prefix: "renewed" }),
    renew(principal) {
      asked.push(`renew ${principal.id}`);
      return { ...principal, expiresAt: clock.date() + 30_000 };
    },
  };
  const locked = customAuth(() => isLocked ? undefined : { id: "c" }, { form: { header: "x-key" }, prefix: "locked" });
  await using server = start([once, renewed, locked], { clock });
  const listen = async (headers: Headers) => {
    const request = toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }, headers);
    const response = await server.fetch(request);
    assertEquals(response.status, 200);
    const reader = response.body?.getReader();
    const state = { ended: false, cancel: async () => await reader?.cancel() };
    void (async () => {
      while (!(await reader?.read())?.done);
      state.ended = true;
    })();
    return state;
  };
  const first = await listen({ authorization: "Bearer x" });
  const second = await listen({ authorization: "Basic x" });
  const third = await listen({ "x-key": "x" });
  await clock.advance(65_000);
  await until(() => asked.filter((each) => each === "renew renewed:b").length >= 2, "renewals");
  // The server does not recheck a caller whose credentials have an expiry, because such credentials may be valid only
  // once.
  assertEquals(asked.filter((each) => each === "once").length, 1);
  assertEquals([first.ended, second.ended, third.ended], [false, false, false]);
  isLocked = true;
  await clock.advance(60_000);
  await until(() => third.ended, "the caller of the locked scheme is disconnected");
  assertEquals([first.ended, second.ended], [false, false]);
  for (const { cancel } of [first, second]) await cancel();
});

Deno.test("clients find the Bearer challenge among the challenges of several schemes", async () => {
  await using issuer = await TestIssuer.start();
  const keys = apiKey({ keys: { ada: KEY }, header: "x-api-key", realm: "keys" });
  await using server = start([
    keys,
    basicAuth({ users: { ada: "b" } }),
    oauth({ resource: RESOURCE, issuers: [issuer.name] }),
  ]);
  const refused: unknown[] = [];
  const tokens = ["wrong", await issuer.sign()];
  const client = await connect("http://localhost/mcp", {
    fetch: async (request) => await server.fetch(request),
    auth: {
      token: () => tokens[0],
      refresh({ status, params }) {
        refused.push([status, params.error, params.resource_metadata, params.realm]);
        return tokens.shift() !== undefined;
      },
    },
  });
  assertEquals(Object(await client.callTool("whoami")).isError, undefined);
  assertEquals(refused, [[401, "invalid_token", METADATA, undefined]]);
  await client.close();
  const response = await server.fetch(toRequest("ping", {}));
  assertEquals(extractWWWAuthenticateParams(response).resourceMetadataUrl?.href, METADATA);
  await response.body?.cancel();
});

const openings: Readonly<Record<string, (host: string, headers: Headers) => Promise<number>>> = {
  async "HTTP+SSE"(host, headers) {
    const response = await fetch(`http://${host}/sse`, { headers: { accept: "text/event-stream", ...headers } });
    await response.body?.cancel();
    return response.status;
  },
  async WebSocket(host, headers) {
    const upgrade = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": btoa("0123456789abcdef"),
    };
    const [hostname, port] = host.split(":");
    const lines = Object.entries({ host, ...upgrade, ...headers }).map(([name, value]) => `${name}: ${value}`);
    const request = `GET /ws HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
    return Number((await exchange({ hostname, port: Number(port) }, request, true)).split(" ")[1]);
  },
};

for (const [name, open] of Object.entries(openings)) {
  Deno.test(`a list authenticates callers over ${name} too`, async () => {
    const { asked, list } = counted();
    await using server = start(list);
    await using served = await openPort(name === "WebSocket" ? webSocket(server) : httpSse(server));
    const cases: readonly (readonly [Headers, number, readonly string[]])[] = [
      [{ authorization: BASIC }, name === "WebSocket" ? 101 : 200, ["basic"]],
      [{ "x-api-key": "wrong" }, 401, ["key"]],
      [{ authorization: `Bearer ${KEY}` }, 401, ["bearer"]],
      [{ authorization: BASIC, "x-api-key": KEY }, 400, []],
      [{}, 401, []],
    ];
    for (const [headers, status, schemes] of cases) {
      assertEquals([await open(served.host, headers), asked.splice(0)], [status, schemes], JSON.stringify(headers));
    }
  });
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a handler can test which scheme authenticated its caller (${era})`, async () => {
    const machines = apiKey({ keys: { bot: KEY }, header: "x-api-key" });
    const people = basicAuth({ users: { ada: "secret" } });
    const sync = tool({
      name: "sync",
      allow: (ctx) => findPrincipal(ctx, machines) !== undefined,
      run: (_, ctx) => requirePrincipal(ctx, machines).id,
    });
    const hello = tool({ name: "hello", run: (_, ctx) => requirePrincipal(ctx, people).id });
    await using server = start([machines, people], { handlers: [sync, hello] });
    await using bot = await connectTest(server, { era, transport: "http", headers: { "x-api-key": KEY } });
    await using ada = await connectTest(server, { era, transport: "http", headers: { authorization: BASIC } });
    const names = async (client: typeof bot) => (await client.listTools()).map(({ name }) => name).sort();
    assertEquals(await names(bot), ["hello", "sync", "whoami"]);
    assertEquals(await names(ada), ["hello", "whoami"]);
    assertEquals((await bot.callTool("sync")).content, [{ type: "text", text: "apikey:bot" }]);
    assertEquals((await ada.callTool("hello")).content, [{ type: "text", text: "basic:ada" }]);
    const error = await bot.callTool("hello").catch((error) => error);
    assert(error instanceof McpError && error.code === -31401, String(error));
  });
}

Deno.test("findPrincipal and requirePrincipal throw for a scheme without a prefix", () => {
  const ctx = { principal: { id: "ada" } };
  const auth = customAuth(() => undefined);
  assertThrows(() => findPrincipal(ctx, auth), TypeError, "customAuth(verify, { prefix })");
  assertThrows(() => requirePrincipal(ctx, auth), TypeError, "prefix");
  // In a circular import, `auth` can still be `undefined`. An undefined `auth` must not match every caller.
  assertThrows(() => requirePrincipal(ctx, undefined as unknown as Authentication), TypeError, "prefix");
});
