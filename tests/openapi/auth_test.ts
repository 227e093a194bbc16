// Tests of the credentials that `openapi()` adds to requests, and of apps in the same process.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { listWarnings } from "../../src/host.ts";
import { openapi, type OpenApiOptions, principalOf, readOpenApi } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { testClient, testServer } from "../support/test_server.ts";
import { withApi } from "../ready/api.ts";
import { toDocument, withEcho } from "./echo.ts";

const securitySchemes = {
  bearer: { type: "http", scheme: "bearer" },
  basic: { type: "http", scheme: "Basic" },
  oauth: { type: "oauth2", flows: {} },
  oidc: { type: "openIdConnect", openIdConnectUrl: "https://id.example/" },
  header: { type: "apiKey", in: "header", name: "X-Key" },
  query: { type: "apiKey", in: "query", name: "api_key" },
  cookie: { type: "apiKey", in: "cookie", name: "session" },
  digest: { type: "http", scheme: "digest" },
  tls: { type: "mutualTLS" },
};
const components = { securitySchemes };
const SECRET = "secret+/=&value";
const toSecurity = (...alternatives: readonly (readonly string[])[]) => ({
  security: alternatives.map((names) => Object.fromEntries(names.map((name) => [name, []]))),
});

Deno.test("each kind of credential is written in its place, after the arguments", async () => {
  const names = ["bearer", "basic", "oauth", "oidc", "header", "query"];
  const parameters = [
    ...["X-Key", "Authorization", "other"].map((name) => ({ name, in: "header", schema: { type: "string" } })),
    ...["api_key", "q"].map((name) => ({ name, in: "query", schema: { type: "string" } })),
    ...["session", "seen"].map((name) => ({ name, in: "cookie", schema: { type: "string" } })),
  ];
  const operations = Object.fromEntries(
    [...names, "cookie"].map((name) => [name, { ...toSecurity([name]), parameters }]),
  );
  const document = toDocument({ ...operations, both: { ...toSecurity(["header", "query"]), parameters } }, {
    components,
  });
  const auth = {
    ...Object.fromEntries(names.map((name) => [name, () => Promise.resolve(SECRET)])),
    basic: () => ({ username: "ada", password: "päss:word" }),
    cookie: () => "abc%20def",
  };
  await withEcho(document, { auth }, async ({ send, client }) => {
    const args = { "X-Key": "forged", api_key: "forged", session: "forged" };
    for (const { name, inputSchema } of await client.listTools()) {
      const own = Object.keys(args).filter((each) => Object.hasOwn(Object(inputSchema.properties), each));
      const given = Object.fromEntries(own.map((each) => [each, "mine"]));
      const { headers, target } = await send(name, { ...given, q: "1", seen: "yes", other: "o" });
      const found = [headers.authorization, headers["x-key"], new URL(target, "http://a").searchParams.get("api_key")];
      const expected: Record<string, readonly (string | null | undefined)[]> = {
        basic: [`Basic ${btoa(unescape(encodeURIComponent("ada:päss:word")))}`, "mine", "mine"],
        header: [undefined, SECRET, "mine"],
        query: [undefined, "mine", SECRET],
        both: [undefined, SECRET, SECRET],
        cookie: [undefined, "mine", "mine"],
      };
      assertEquals(found, expected[name] ?? [`Bearer ${SECRET}`, "mine", "mine"], name);
      const cookies = name === "cookie" ? "seen=yes; session=abc%20def" : "session=mine; seen=yes";
      assertEquals(headers.cookie, cookies, name);
    }
  });
});

Deno.test("an operation without a usable credential is left out with the reason, unless it also works without", async () => {
  const document = toDocument({
    known: toSecurity(["digest"], ["header"]),
    unknown: toSecurity(["other"]),
    missing: toSecurity(["query"]),
    half: toSecurity(["header", "query"]),
    tls: toSecurity(["tls"]),
    digest: toSecurity(["digest"]),
    optional: toSecurity(["query"], []),
    open: { security: [] },
    inherited: {},
    none: toSecurity(["cookie"]),
  }, { components, security: [{ bearer: [] }] });
  await withEcho(document, { auth: { header: () => "k", digest: () => "x", cookie: false } }, async ({ api, send }) => {
    const reasons = Object.fromEntries(api.operations.map(({ id, kind, reason }) => [id, reason ?? kind]));
    assertEquals(reasons, {
      known: "tool",
      unknown: sentence("other", "not defined"),
      missing: sentence("query", "auth"),
      half: sentence("query", "auth"),
      tls: sentence("tls", "mutualTLS"),
      digest: sentence("digest"),
      optional: "tool",
      open: "tool",
      inherited: sentence("bearer", "auth"),
      none: "tool",
    });
    assertEquals((await send("optional")).target, "/optional");
    assertEquals((await send("known")).headers["x-key"], "k");
    assertEquals((await send("none")).headers.cookie, undefined);
  });
});

Deno.test("a call without a credential fails, and a credential that cannot be sent does too", async () => {
  const document = toDocument({
    a: toSecurity(["header"]),
    optional: toSecurity(["header"], []),
  }, { components });
  let credential: unknown;
  await withEcho(
    document,
    { auth: { header: () => credential as never }, observer: { fault: () => {} } },
    async ({ call, received, send }) => {
      assertEquals((await call("a")).text, sentence("GET /a", "header"));
      assertEquals((await send("optional")).headers["x-key"], undefined);
      assertEquals(received.length, 1);
      credential = "a\r\nx-other: b";
      assertEquals((await call("a")).text, sentence("line break"));
      for (credential of [{}, 7, "", null]) {
        // The author's own function fails, so the client gets only an error id.
        assert(/Internal error/.test((await call("a")).text), String(credential));
      }
      assertEquals(received.length, 1);
    },
  );
});

Deno.test("a call uses the first alternative with all credentials of the caller", async () => {
  const parameters = [
    { name: "X-Key", in: "header", schema: { type: "string" } },
    { name: "api_key", in: "query", schema: { type: "string" } },
  ];
  const document = toDocument({
    either: { ...toSecurity(["header"], ["query"]), parameters },
    partial: { ...toSecurity(["header", "bearer"], ["query"]), parameters },
    optional: { ...toSecurity([], ["header"], ["query"]), parameters },
    free: { ...toSecurity(["header"], ["cookie"]), parameters },
    repeated: { ...toSecurity(["header"], ["header", "bearer"], ["query"]), parameters },
  }, { components });
  let given: Readonly<Record<string, unknown>> = {};
  const asked: string[] = [];
  const find = (name: string) => () => {
    asked.push(name);
    const credential = given[name];
    if (credential instanceof Error) throw credential;
    return credential as string | undefined;
  };
  const auth = { header: find("header"), query: find("query"), bearer: find("bearer"), cookie: false as const };
  await withEcho(document, { auth, observer: { fault: () => {} } }, async ({ client, call, send, received }) => {
    for (const { name, inputSchema } of await client.listTools()) {
      const own = Object.keys(Object(inputSchema.properties));
      assertEquals(own, name === "free" ? ["api_key"] : [], name);
    }
    const sent = async (name: string, credentials: typeof given) => {
      given = credentials;
      const { headers, target } = await send(name);
      const key = new URL(target, "http://a").searchParams.get("api_key") ?? undefined;
      return [headers["x-key"] as string | undefined, headers.authorization, key];
    };
    assertEquals(await sent("either", { header: "h", query: "q" }), ["h", undefined, undefined]);
    assertEquals(await sent("either", { query: "q" }), [undefined, undefined, "q"]);
    // A credential of an incomplete alternative is not sent.
    assertEquals(await sent("partial", { header: "h", query: "q" }), [undefined, undefined, "q"]);
    assertEquals(await sent("partial", { header: "h", bearer: "b" }), ["h", "Bearer b", undefined]);
    assertEquals(await sent("optional", { query: "q" }), [undefined, undefined, "q"]);
    assertEquals(await sent("optional", {}), [undefined, undefined, undefined]);
    assertEquals(await sent("free", { header: "h" }), ["h", undefined, undefined]);
    assertEquals(await sent("free", {}), [undefined, undefined, undefined]);
    asked.length = 0;
    assertEquals(await sent("repeated", { query: "q" }), [undefined, undefined, "q"]);
    assertEquals(asked.toSorted(), ["bearer", "header", "query"]);
    const count = received.length;
    given = {};
    assertEquals((await call("either")).text, sentence("GET /either", "header or query"));
    for (const header of [new Error("no"), "", null, 7]) {
      given = { header, query: "q" };
      // The author's own function fails, so no other alternative is tried.
      assert(/Internal error/.test((await call("either")).text), String(header));
    }
    assertEquals(received.length, count);
  });
});

Deno.test("hostile: the members of an object cannot replace or double a credential", async () => {
  const object = { type: "object", additionalProperties: { type: "string" } };
  const whole = [{
    name: "all",
    in: "querystring",
    content: { "application/x-www-form-urlencoded": { schema: object } },
  }];
  const document = toDocument({
    query: { ...toSecurity(["query"]), parameters: [{ name: "filter", in: "query", schema: object }] },
    whole: { ...toSecurity(["query"]), parameters: whole },
    reserved: { ...toSecurity(["query"]), parameters: [{ name: "q", in: "query", allowReserved: true }] },
    cookie: { ...toSecurity(["cookie"]), parameters: [{ name: "filter", in: "cookie", schema: object }] },
  }, { components });
  await withEcho(
    document,
    { auth: { query: () => "mine", cookie: () => "mine" } },
    async ({ send, call, received }) => {
      for (const name of ["api_key", "API_KEY", "api_key[]", "api.key", "api%5Fkey"]) {
        assert((await call("query", { filter: { [name]: "forged", a: "1" } })).isError, name);
        assert((await call("whole", { all: { [name]: "forged", a: "1" } })).isError, name);
      }
      assert((await call("cookie", { filter: { session: "forged", a: "1" } })).isError);
      assertEquals(received, []);
      assertEquals((await send("query", { filter: { a: "1" } })).target, "/query?a=1&api_key=mine");
      const { target } = await send("reserved", { q: "a;api_key=forged" });
      assert(target.startsWith("/reserved?q=a%3Bapi_key%3Dforged&"), target);
      const { headers } = await send("cookie", { filter: { a: "1" } });
      assertEquals(headers.cookie, "a=1; session=mine");
    },
  );
});

Deno.test("hostile: no credential appears in a result, in an error, or on another origin", async () => {
  const document = toDocument(
    Object.fromEntries(["bearer", "header", "query", "cookie", "basic"].map((name) => [name, toSecurity([name])])),
    { components },
  );
  const secret = "s3cr3t-t0ken-value";
  const auth = {
    ...Object.fromEntries(["bearer", "header", "query", "cookie"].map((name) => [name, () => secret])),
    basic: () => `ada:${secret}`,
  };
  const seen: string[] = [];
  await withApi((request) => {
    seen.push(JSON.stringify([request.url, ...request.headers]));
    return new Response("other");
  }, async (other) => {
    for (const mode of ["echo", "fail", "leave", "tls"]) {
      await withApi(async (request) => {
        const echo = JSON.stringify([request.url, ...request.headers]);
        if (mode === "leave") return new Response(null, { status: 307, headers: { location: `http://${other}/x` } });
        const link = `<${request.url}&page=2>; rel="next"`;
        return await Promise.resolve(new Response(echo, { status: mode === "fail" ? 500 : 200, headers: { link } }));
      }, async (host) => {
        const faults: string[] = [];
        const api = openapi(document, {
          auth,
          baseUrl: `${mode === "tls" ? "https" : "http"}://${host}`,
          allowPrivate: [host, other],
        });
        const observer = {
          fault: (event: object) => void faults.push(JSON.stringify(event, Object.getOwnPropertyNames)),
        };
        await using client = await testClient({ handlers: [api], observer });
        for (const name of Object.keys(auth)) {
          const result = await client.callTool(name).catch(({ message }) => message);
          const text = JSON.stringify([result, faults]);
          assert(!text.includes(secret) && !text.includes(btoa(`ada:${secret}`)), `${mode} ${name} ${text}`);
        }
      });
    }
  });
  assertEquals(seen.length, 5);
  assert(!seen.some((each) => each.includes(secret) || each.includes(btoa(`ada:${secret}`))), seen.join());
});

Deno.test("an app in this process gets the caller, and no client can forge it", async () => {
  const app = {
    fetch(request: Request): Response {
      const { pathname } = new URL(request.url);
      if (pathname === "/old") return Response.redirect("http://localhost/me");
      return Response.json({ id: principalOf(request)?.id, forged: request.headers.get("x-principal") });
    },
  };
  const header = [{ name: "x-principal", in: "header", schema: { type: "string" } }];
  const document = toDocument({ me: { parameters: header }, old: {} });
  const api = openapi(document, { fetch: app.fetch });
  const direct = tool({ name: "direct", run: async () => await app.fetch(new Request("http://localhost/me")).json() });
  const server = testServer({ handlers: [api, direct] });
  await using ada = await connectTest(server, { principal: { id: "ada" } });
  await using nobody = await connectTest(server);
  const me = async (client: typeof ada, name: string, args = {}) =>
    (await client.callTool(name, args)).structuredContent;
  assertEquals(await me(ada, "me", { "x-principal": "eve" }), { id: "ada", forged: "eve" });
  assertEquals(await me(ada, "old"), { id: "ada", forged: null });
  assertEquals(await me(nobody, "me"), { forged: null });
  assertEquals(await me(ada, "direct"), { forged: null });
});

Deno.test("a document states its servers and security schemes, which are only proposals", () => {
  const document = toDocument({ a: { tags: ["x"] } }, {
    components,
    servers: [{ url: "http://169.254.169.254/latest" }, { url: "/v1" }, {}, 7],
  });
  const { servers, schemes, title, version, format, operations } = readOpenApi(document);
  assertEquals([title, version, format], ["Echo", "1.0.0", "3.1.0"]);
  assertEquals(servers, ["http://169.254.169.254/latest", "/v1"]);
  assertEquals(schemes[0], { name: "bearer", type: "http bearer" });
  assertEquals(operations.map(({ id, method, path, tags }) => [id, method, path, tags]), [["a", "GET", "/a", ["x"]]]);
});

Deno.test("hostile: an encoded credential in an answer, a status or a location is hidden too", async () => {
  const secret = 'abc/def+ghi=="<&>\\x';
  const escape = (text: string, chosen: RegExp) =>
    text.replace(chosen, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const quoted = JSON.stringify({ token: secret });
  const bodies = [
    ...[quoted, quoted.replaceAll("/", "\\/"), escape(quoted, /[<>&+=]/g), escape(quoted, /[a-c]/g)],
    ...[escape(quoted, /[<>&+=]/g).replace(/u003C/gi, "u003c"), JSON.stringify({ [secret]: [secret] })],
  ];
  const type = { "content-type": "application/json" };
  const answers = bodies.flatMap((body) => [
    () => new Response(body, { headers: type }),
    () => new Response(body, { headers: type, status: 400 }),
  ]);
  const plain = "plain-secret-of-ada";
  const document = toDocument({ a: toSecurity(["header"]) }, { components });
  for (
    const [credential, respond] of [
      ...answers.map((answer) => [secret, answer] as const),
      [plain, () => new Response("x", { status: 500, statusText: `Bad ${plain}` })],
      [plain, () => new Response(null, { status: 200, statusText: `Bad ${plain}` })],
      [plain, () => new Response(null, { status: 302, headers: { location: `http://[x/?key=${plain}` } })],
      [plain, () => new Response(new Uint8Array([0]), { headers: { "content-type": `image/${plain}` } })],
    ] as const
  ) {
    for (const kind of ["tool", "resource"] as const) {
      const api = openapi(document, { auth: { header: () => credential }, fetch: respond, as: () => kind });
      await using client = await connectTest(createServer({ name: "s", version: "1.0.0", handlers: [api] }));
      const result = kind === "tool"
        ? await client.callTool("a")
        : await client.readResource("api://echo/a").catch(({ message }) => ({ message }));
      const texts: string[] = [];
      JSON.stringify(result, (key, value) => {
        texts.push(key);
        if (typeof value !== "string") return value;
        texts.push(value);
        if (value.startsWith("{")) {
          JSON.stringify(JSON.parse(value), (key, each) => (texts.push(key, String(each)), each));
        }
        return value;
      });
      assert(!texts.some((text) => text.includes(credential)), `${kind} ${respond} ${JSON.stringify(result)}`);
    }
  }
});

Deno.test("hostile: a cookie argument cannot replace a credential in the header Cookie", async () => {
  const schemes = { jar: { type: "apiKey", in: "header", name: "Cookie" } };
  const parameters = [{ name: "session", in: "cookie", schema: { type: "string" } }];
  const document = toDocument({ a: { ...toSecurity(["jar"]), parameters } }, {
    components: { securitySchemes: { jar: schemes.jar } },
  });
  await withEcho(document, { auth: { jar: () => "session=mine" } }, async ({ call, send }) => {
    assert((await call("a", { session: "forged" })).isError);
    assertEquals((await send("a")).headers.cookie, "session=mine");
  });
});

Deno.test("auth names schemes of the document: another name is an error that suggests the scheme", () => {
  const make = (auth: Record<string, () => string>, others: object) => () =>
    openapi(toDocument({ list: {} }, others), { fetch: () => new Response(), auth });
  const key = () => SECRET;
  assertThrows(make({ bearr: key }, { components }), TypeError, sentence("bearr", "bearer"));
  assertThrows(
    make({ BEARER_TOKEN_OF_ADA: key }, { components }),
    TypeError,
    sentence("BEARER_TOKEN_OF_ADA", "bearer"),
  );
  assertThrows(make({ constructor: key }, {}), TypeError, sentence("constructor"));
  // Documents also require schemes that they do not define.
  const undefinedScheme = openapi(toDocument({ list: {} }, { security: [{ session: [] }] }), {
    fetch: () => new Response(),
    auth: { session: false },
  });
  assertEquals(undefinedScheme.operations.map(({ kind }) => kind), ["tool"]);
  const { operations } = openapi(
    { swagger: "2.0", securityDefinitions: { key: { type: "apiKey", in: "header", name: "X-Key" } }, paths: {} },
    { fetch: () => new Response(), auth: { key } },
  );
  assertEquals(operations, []);
});

Deno.test("mcp check warns if no operation has its credential, and names the reason", () => {
  const document = toDocument({ list: {}, add: { method: "post" } }, { components, ...toSecurity(["bearer"]) });
  const warn = (options: OpenApiOptions) => {
    const handlers = [openapi(document, { fetch: () => new Response(), ...options })];
    return listWarnings(createServer({ name: "api", version: "1.0.0", handlers })).map(({ state }) => state);
  };
  assertEquals(warn({}), [sentence("list", "bearer", "auth")]);
  assertEquals(warn({ readOnly: true }), [sentence("bearer")]);
  assertEquals(warn({ auth: { bearer: () => SECRET } }), []);
  // The author has left out all operations.
  assertEquals(warn({ as: () => "none" }), []);
});

Deno.test("a signed-in caller without a credential is not asked to sign in, and the log names the caller", async () => {
  const faults: string[] = [];
  const observer = { fault: ({ error }: FaultEvent) => void faults.push(String(Object(error).message)) };
  const document = toDocument({ a: toSecurity(["bearer"], ["header"]) }, { components });
  const auth = { bearer: () => undefined, header: () => undefined };
  await withEcho(document, { auth, observer, principal: { id: "apikey:ada" } }, async ({ call, received }) => {
    assertEquals(await call("a"), { text: sentence("bearer or header"), isError: true });
    assertEquals(faults, [sentence("apikey:ada", "bearer or header", "GET /a")]);
    assertEquals(received.length, 0);
  });
  faults.length = 0;
  await withEcho(document, { auth, observer }, async ({ call }) => {
    assertEquals(await call("a"), { text: sentence("sign in"), isError: true });
    assertEquals(faults, []);
  });
});
