// Requests from web pages, Host headers (DNS rebinding), and spellings of the path.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer, type ServerOptions } from "../../mod.ts";
import {
  type Case,
  cases,
  checkSecrecy,
  type HeaderLines,
  LEGACY,
  MODERN,
  readError,
  runtime,
  startFixture,
} from "./http.ts";

const APP = "https://app.example.com";
const EVIL = "http://evil.example";
const invalid = { status: 400, code: -32600 };
const notFound = { status: 404, code: -32600 };
const refused = { status: 403, code: -32600 };

/** Headers that clients in web pages send, by revision. */
const ASKED = [
  "content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-param-region, authorization",
  "content-type, mcp-protocol-version, mcp-session-id, last-event-id, authorization",
];

function preflight(origin: string, asked: string): { readonly method: string; readonly headers: HeaderLines } {
  return {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": asked,
      "mcp-protocol-version": null,
      "mcp-session-id": null,
    },
  };
}

const list = (text: string | null) => (text ?? "").toLowerCase().split(",").map((name) => name.trim());

const kinds: readonly {
  readonly name: string;
  readonly cors: ServerOptions["cors"];
  readonly credentials?: boolean;
}[] = [
  { name: "a list", cors: { origins: [APP] } },
  { name: "a list with credentials", cors: { origins: [APP], credentials: true }, credentials: true },
  { name: "a function", cors: (origin) => origin === APP },
  {
    name: "a function with credentials",
    cors: (origin) => origin === APP ? { credentials: true } : false,
    credentials: true,
  },
  { name: "every page", cors: { origins: "*" } },
];

const createNewest: typeof createServer = (options) => createServer({ ...options, revisions: ["2026-07-28"] });

for (
  const { title, create, version } of [
    { title: "both eras", create: createServer, version: undefined },
    { title: "a session", create: createServer, version: LEGACY },
    { title: "only one revision", create: createNewest, version: undefined },
  ]
) {
  Deno.test(`web pages of other origins are served only if the cors option allows the origin, ${title}`, async (t) => {
    for (const { name, cors, credentials = false } of kinds) {
      await using fixture = await startFixture({ version, create, server: { cors } });
      const granted = {
        "access-control-allow-origin": APP,
        "access-control-allow-credentials": credentials ? "true" : null,
      };
      await t.step(`a preflight from a web page that ${name} allows gets 204`, async () => {
        for (const asked of ASKED) {
          const answer = await fixture.send(preflight(APP, asked));
          assertEquals([answer?.status, answer?.body], [204, ""]);
          for (const [header, value] of Object.entries(granted)) assertEquals(answer?.headers.get(header), value);
          const allowed = list(answer?.headers.get("access-control-allow-headers") ?? null);
          for (const header of list(asked)) assert(allowed.includes(header), `${header} is not in ${allowed}`);
          assert(list(answer?.headers.get("vary") ?? null).includes("origin"));
          assert(list(answer?.headers.get("access-control-allow-methods") ?? null).includes("POST".toLowerCase()));
        }
      });
      await t.step(`a web page that ${name} allows can read responses and errors`, async () => {
        for (const body of [undefined, "{"]) {
          const answer = await fixture.send({ headers: { origin: APP }, body });
          assertEquals(answer?.status, body ? 400 : 200);
          for (const [header, value] of Object.entries(granted)) assertEquals(answer?.headers.get(header), value);
          const exposed = list(answer?.headers.get("access-control-expose-headers") ?? null);
          assert(exposed.includes("mcp-session-id") && exposed.includes("www-authenticate"), String(exposed));
          assert(list(answer?.headers.get("vary") ?? null).includes("origin"));
        }
        fixture.ran.length = 0;
        await fixture.checkAlive("after this");
      });
      await t.step(
        `an OPTIONS request from a web page that ${name} allows is a preflight only if it requests a method`,
        async () => {
          const asks = { origin: APP, "access-control-request-method": "POST" };
          assertEquals((await fixture.send({ headers: asks }))?.status, 200);
          assertEquals((await fixture.send({ method: "OPTIONS", headers: { origin: APP } }))?.status, 405);
          fixture.ran.length = 0;
        },
      );
      if (name === "every page") continue;
      for (const origin of [EVIL, `${APP}.evil.example`, `${APP}:8443`, "null"]) {
        await t.step(`${name} refuses preflights and calls from ${origin}`, async () => {
          for (const request of [preflight(origin, ASKED[0]), { headers: { origin } }]) {
            const answer = await fixture.send(request);
            assertEquals(answer?.status, 403);
            assertEquals(answer?.headers.get("access-control-allow-origin"), null);
          }
          assertEquals(fixture.ran, []);
          await fixture.checkAlive("after this");
        });
      }
    }
  });

  cases(`pages of other origins are refused without cors or with "none", ${title}`, { version, create }, () => [
    { name: "a preflight gets 403", ...preflight(APP, ASKED[0]), ...refused, says: "origins" },
    {
      name: "a preflight of the server's own page gets 405, because it needs no preflight",
      method: "OPTIONS",
      headers: { "access-control-request-method": "POST" },
      status: 405,
      code: -32600,
      has: { "access-control-allow-origin": null },
    },
    { name: "a call gets 403", headers: { origin: EVIL }, ...refused, says: "origins" },
    { name: "a call gets 403 before its body is parsed", headers: { origin: EVIL }, body: "{", ...refused },
    { name: "GET gets 403", method: "GET", headers: { origin: EVIL }, ...refused },
    { name: "DELETE gets 403", method: "DELETE", headers: { origin: EVIL }, ...refused },
    ...[
      "http://localhost.evil.example",
      "http://127.0.0.1.nip.io",
      "http://localhost:80@evil.example",
      "http://evil.example#localhost",
      "http://evil.example?localhost",
      "http://evil.example/127.0.0.1",
      "garbage",
      "null",
      "*",
      "//127.0.0.1",
      "127.0.0.1",
      "http:127.0.0.1",
      "http://",
      "\xff",
      "file:///",
      "file://",
      "data:text/html,x",
    ].map((origin) => ({ name: `the origin ${JSON.stringify(origin)}`, headers: { origin }, ...refused })),
    { name: "an empty Origin counts as a missing Origin", headers: { origin: "" }, status: 200 },
  ]);
}

cases("the server's own origin is served, and similar origins are refused", {}, ({ port }) => {
  const own = `127.0.0.1:${port}`;
  const good = (name: string, origin: string, host = own): Case => ({ name, headers: { origin, host }, status: 200 });
  const bad = (name: string, origin: string | string[], host = own): Case => ({
    name,
    headers: { origin, host },
    ...refused,
  });
  return [
    good("the server's own origin", `http://${own}`),
    good("the own origin in different case", `HTTP://LOCALHOST:${port}`, `localhost:${port}`),
    good("a Host in different case", `http://localhost:${port}`, `LocalHost:${port}`),
    good("the default port written explicitly", "http://localhost:80", "localhost"),
    good("the default port omitted", "http://localhost", "localhost:80"),
    good("IPv6", `http://[::1]:${port}`, `[::1]:${port}`),
    bad("another scheme", `https://${own}`),
    bad("another port", "http://127.0.0.1:1"),
    bad("another loopback name", `http://localhost:${port}`),
    bad("a path after the own origin", `http://${own}/`),
    bad("user information before the own origin", `http://x@${own}`),
    bad("two origins, the own origin first", [`http://${own}`, EVIL]),
    bad("two origins, the own origin last", [EVIL, `http://${own}`]),
    bad("two origins on one line", `http://${own} ${EVIL}`),
  ];
});

cases("only loopback names of this machine are valid Hosts", {}, ({ port }) => [
  ...["localhost", "LOCALHOST:5", "127.0.0.1", "127.8.9.10:1", "[::1]", `[::1]:${port}`].map((host) => ({
    name: `the Host ${host} is loopback`,
    headers: { host },
    status: 200,
  })),
  ...[
    "evil.example",
    "0.0.0.0",
    `0.0.0.0:${port}`,
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "[::ffff:127.0.0.1]",
    "[::]",
    "localhost.",
    "localhost.evil.example",
    "128.0.0.1",
    "127.0.0.1.nip.io",
    "xn--localhost",
  ].map((host) => ({ name: `the Host ${host} is not loopback`, headers: { host }, ...refused })),
  ...["localhost:99999", "127.0.0.256", "127.999.0.1"].map((host) => ({
    name: `the Host ${host} is invalid in a URL and gets 404`,
    headers: { host },
    ...notFound,
  })),
  ...[
    "x/public?",
    "localhost/mcp?",
    "user@localhost",
    "localhost:",
    "localhost:80:80",
    "local host",
    "\xff",
    "localhost,evil.example",
    "localhost#",
    "localhost\\x",
    "%6cocalhost",
    "localhost%00",
    "::1",
    "[::1",
    "-",
    "localhost..",
  ].map((host) => ({
    name: `the Host ${JSON.stringify(host)} is not a host`,
    headers: { host },
    ...host === "-" ? refused : { ...invalid },
  })),
  { name: "an empty Host", headers: { host: "" }, ...invalid },
  // Deno does not reveal whether a request without Host is an HTTP/2 request, which has no Host. Browsers always send
  // Host or :authority.
  {
    name: "without a Host the connection's own address is used",
    headers: { host: null },
    status: 200,
    dropped: { bun: 400 },
  },
  {
    name: "HTTP/1.0 without a Host (read as far as its body on Deno)",
    raw: "POST /mcp HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    ...invalid,
    id: runtime === "deno" ? null : undefined,
  },
  ...[[`127.0.0.1:${port}`, "evil.example"], ["evil.example", `127.0.0.1:${port}`]].map((host) => ({
    name: `two Hosts, ${host[0].startsWith("evil") ? "a foreign Host first" : "a valid Host first"}`,
    headers: { host },
    ...invalid,
    dropped: { deno: 400 },
  })),
  { name: "two equal Host headers", headers: { host: ["localhost", "localhost"] }, ...invalid, dropped: { deno: 400 } },
  // Only Host counts, because frameworks build the URL of a request themselves. tests/serve/serve_test.ts checks the
  // target of requests to the library's own listener.
  ...["http://evil.example/mcp", "https://evil.example/mcp", "ws://evil.example/mcp", "x-y.z+1://evil.example/mcp"].map(
    (target) => ({
      name: `the absolute-form target ${target}`,
      target,
      status: 200,
      dropped: { bun: target.startsWith("http") ? 200 : 400 },
    }),
  ),
  {
    name: "an absolute-form target and a Host that are both foreign",
    target: "http://evil.example/mcp",
    headers: { host: "evil.example" },
    ...refused,
  },
  { name: "an absolute-form target that is the server's own", target: `http://127.0.0.1:${port}/mcp`, status: 200 },
  {
    name: "an absolute-form target with user information",
    target: `http://evil.example@127.0.0.1:${port}/mcp`,
    status: 200,
  },
  { name: "an absolute-form target without a host", target: "http:///mcp", ...notFound, dropped: { bun: 200 } },
]);

cases("only paths that a URL parser maps to the endpoint are served", {}, () => [
  ...[
    "/mcp/../admin",
    "/mcp/%2e%2e/admin",
    "/mcp%2f",
    "//mcp",
    "/mcp;x",
    "/MCP",
    "/%6dcp",
    "/mcp/",
    "/mcp/x",
    "/other",
    "/mcp\\",
    "/mcp%00",
    "//evil.example/mcp",
    "/",
    "/?/mcp",
  ].map((target) => ({ name: `${target} is not the endpoint`, target, ...notFound })),
  ...["/mcp?x", "/mcp?", "/mcp#f", "/mcp?http://evil.example", "/admin/../mcp", "/./mcp", "/x/%2e%2e/mcp"].map((
    target,
  ) => ({ name: `${target} is the endpoint after parsing`, target, status: 200 })),
  ...["mcp", "*", "?x", "\\mcp"].map((target) => ({
    name: `the target ${target}`,
    target,
    status: 400,
    dropped: { deno: 400, bun: 400 },
  })),
  {
    name: "a target of 70,000 characters",
    target: `/mcp?${"x".repeat(70_000)}`,
    status: 414,
    dropped: { deno: 400, bun: 431 },
  },
  { name: "a byte that is not ASCII", target: "/mcp\xff", status: 404, code: -32600, dropped: { deno: 400 } },
]);

Deno.test("hosts in the hosts option are allowed, with any port or with the listed port", async (t) => {
  await using fixture = await startFixture({ server: { hosts: ["box.local", "other.example:8080"] } });
  const each: readonly Case[] = [
    ...["box.local", "BOX.local:9", "other.example:8080"].map((host) => ({
      name: `${host} is listed`,
      headers: { host },
      status: 200,
    })),
    ...["other.example", "other.example:8081", "x.box.local", "box.local.evil.example"].map((host) => ({
      name: `${host} is not listed`,
      headers: { host },
      ...refused,
      says: "hosts",
    })),
    { name: "a page of a listed host", headers: { host: "box.local", origin: "http://box.local" }, status: 200 },
    {
      name: "a page of a listed host, behind a proxy that terminates TLS",
      headers: { host: "box.local", origin: "https://box.local" },
      status: 200,
    },
  ];
  for (const one of each) await t.step(one.name, () => fixture.check(one));
});

Deno.test("an allowed origin must match exactly, apart from its spelling", async (t) => {
  await using fixture = await startFixture({ server: { origins: ["https://App.Example.com:443"] } });
  for (const [origin, status] of [["https://app.example.com", 200], ["https://app.example.com:444", 403]] as const) {
    const one = { name: `${origin}`, headers: { origin }, status, ...status === 403 ? { code: -32600 } : {} };
    await t.step(one.name, () => fixture.check(one));
  }
});

Deno.test("createServer() throws if the cors option allows credentials for every origin", () => {
  for (const create of [createServer, createNewest]) {
    assertThrows(
      () => create({ name: "x", version: "1", cors: { origins: "*", credentials: true } }),
      TypeError,
      "credentials",
    );
  }
});

Deno.test("a cors function that throws refuses the web page, and the response does not contain the error", async () => {
  const cors = (origin: string) => new URL(origin).hostname === "app.example.com";
  await using fixture = await startFixture({ server: { cors } });
  const good = await fixture.send({ headers: { origin: APP } });
  assertEquals(good?.status, 200);
  fixture.ran.length = 0;
  for (const request of [{ headers: { origin: "garbage" } }, preflight("garbage", ASKED[0])]) {
    const answer = await fixture.send(request);
    assertEquals([answer?.status, readError(answer?.body ?? "").code, fixture.ran], [403, -32600, []]);
    checkSecrecy(answer?.body ?? "", "the refusal of a page");
    assert(fixture.faults.splice(0).length > 0, "the error was not reported");
    await fixture.checkAlive("after this");
  }
});

Deno.test("a cors function that returns an invalid value refuses the web page, and is reported as a fault", async () => {
  let granted: unknown;
  // The cast passes a function that the types forbid.
  const cors = (() => granted) as unknown as (origin: string) => boolean;
  await using fixture = await startFixture({ server: { cors } });
  for (granted of [Promise.resolve(false), Promise.resolve(true), undefined, null, 1, EVIL, { credentials: "false" }]) {
    for (const request of [{ headers: { origin: EVIL } }, preflight(EVIL, ASKED[0])]) {
      const answer = await fixture.send(request);
      assertEquals(answer?.status, refused.status);
      assert(fixture.faults.splice(0).length > 0, "the error was not reported");
    }
  }
});

Deno.test(`a web page is refused with the version ${MODERN}, ${LEGACY}, any other version or no version`, async () => {
  await using fixture = await startFixture();
  for (const version of [MODERN, LEGACY, null, "garbage"]) {
    const headers = { origin: EVIL, "mcp-protocol-version": version };
    await fixture.check({ name: `${version}`, headers, ...refused });
  }
});
