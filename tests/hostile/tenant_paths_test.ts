// Spellings of paths with parameters: each spelling selects one tenant or no tenant.
import { assert, assertEquals } from "@std/assert";
import { type Authentication, createServer, mount, tool } from "../../mod.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { serve } from "../peers/runtime.ts";
import { toReply, toRequest } from "../support/requests.ts";
import { connectRaw, type RawAnswer } from "./raw.ts";
import { openServer } from "../support/servers.ts";
import { z } from "zod";
import { toCall } from "./unread.ts";

const where = tool({ name: "where", run: (_, { pathParams }) => JSON.stringify(pathParams()) });
const named = (name: string, path: string, more = {}) => {
  const run = () => name;
  return createServer({ name, version: "1.0.0", path, handlers: [tool({ name: "where", run })], ...more });
};

/**
 * Serves a server on a port. Returns functions that send requests with raw targets, which no URL parser has normalized.
 */
async function openPort(service: Parameters<typeof serve>[0]) {
  const port = serve(service);
  const body = await toRequest("tools/call", { name: "where" }).text();
  const send = async (target: string, method = "POST"): Promise<RawAnswer | undefined> => {
    const connection = await connectRaw(Number(port.host.split(":")[1]));
    const lines = [
      `${method} ${target} HTTP/1.1`,
      `Host: ${port.host}`,
      "Content-Type: application/json",
      "Accept: application/json, text/event-stream",
      "MCP-Protocol-Version: 2026-07-28",
      "Mcp-Method: tools/call",
      "Mcp-Name: where",
      ...method === "POST" ? [`Content-Length: ${body.length}`] : [],
    ];
    await connection.write(`${lines.join("\r\n")}\r\n\r\n${method === "POST" ? body : ""}`);
    const answer = await connection.read();
    connection.close();
    return answer;
  };
  const find = async (target: string): Promise<string | number | undefined> => {
    const answer = await send(target);
    return answer?.status === 200 ? JSON.parse(toReply(answer.body)).result.content[0].text : answer?.status;
  };
  return { port, send, find };
}

Deno.test("an encoded path selects the tenant in the decoded path, and a malformed path selects no tenant", async () => {
  const server = openServer({ path: "/tenants/:tenant/mcp", handlers: [where] });
  const { port, find } = await openPort(server);
  const cases: readonly (readonly [tenant: string, found: string | 404])[] = [
    ["acme", "acme"],
    ["%61cme", "acme"],
    ["%252e%252e", "%2e%2e"],
    ["a%252fb", "a%2fb"],
    ["e%CC%81", "e\u0301"],
    ["%C3%A9", "\u00e9"],
    ["__proto__", "__proto__"],
    ["constructor", "constructor"],
    ["toString", "toString"],
    [":tenant", ":tenant"],
    ["a;b=1", "a;b=1"],
    ["a%0d%0aX-Evil:%201", "a\r\nX-Evil: 1"],
    ["", 404],
    [".", 404],
    ["..", 404],
    ["%2e%2e", 404],
    [".%2E", 404],
    ["a%2fb", 404],
    ["a%5cb", 404],
    ["a%00", 404],
    ["%", 404],
    ["%zz", 404],
    ["%ff", 404],
    ["%c0%ae%c0%ae", 404],
    ["%ed%a0%80", 404],
    ["a/b", 404],
    ["a".repeat(1100), 404],
  ];
  for (const [spelling, tenant] of cases) {
    const found = tenant === 404 ? 404 : JSON.stringify({ tenant });
    assertEquals(await find(`/tenants/${spelling}/mcp`), found, spelling.slice(0, 50));
  }
  for (const target of ["/tenants/acme/mcp/", "/TENANTS/acme/mcp", "/%74enants/acme/mcp", "/tenants/acme/%6dcp"]) {
    assertEquals(await find(target), 404, target);
  }
  await server.close();
  await port[Symbol.asyncDispose]();
});

Deno.test("no spelling of a mounted path reaches the server of another path", async () => {
  const auth: Authentication = { authenticate: () => undefined };
  const app = mount([
    named("tenants", "/tenants/:tenant/mcp", { auth }),
    named("admin", "/admin/mcp", { auth }),
    named("kinds", "/:kind/:id/mcp"),
    named("any", "/:any/mcp"),
  ]);
  const { port, find } = await openPort(app);
  assertEquals(await find("/other/acme/mcp"), "kinds");
  assertEquals(await find("/acme/mcp"), "any");
  const spellings = [
    "/admin/mcp",
    "/%61dmin/mcp",
    "/admin/%6Dcp",
    "/%61%64%6d%69%6e/mcp",
    "/x/../admin/mcp",
    "/x/%2e%2e/admin/mcp",
    "/x\\..\\admin/mcp",
    "/x\\%2e%2E\\admin/mcp",
    "/./admin/mcp",
    "/.\\admin/mcp",
    "/admin\\mcp",
    "/tenants/acme/mcp",
    "/%74enants/acme/mcp",
    "/tenants/acme/%6dcp",
    "/tenants/x/../acme/mcp",
    "/tenants/x\\..\\acme/mcp",
    "/x\\..\\tenants/acme/mcp",
    "/.\\tenants/acme/mcp",
    "/tenants\\acme\\mcp",
  ];
  for (const spelling of spellings) {
    const found = await find(spelling);
    assert(found === 401 || found === 404 || found === 400 || found === undefined, `${spelling}: ${found}`);
  }
  await app.close();
  await port[Symbol.asyncDispose]();
});

Deno.test("no path can insert text into the headers of a challenge", async () => {
  const byPath = oauth({
    resource: ({ tenant }) => `https://mcp.example.com/${tenant}/mcp`,
    issuers: ["https://login.example.com"],
  });
  const realm: Authentication = {
    authenticate: () => undefined,
    challenge: ({ pathParams }) => ({ scheme: "Key", params: { realm: `${pathParams().tenant}` } }),
  };
  for (const auth of [byPath, realm]) {
    const server = openServer({ path: "/:tenant/mcp", auth });
    const { port, send } = await openPort(server);
    for (const tenant of ["a%0d%0aX-Evil:%201", "a%22,%20Basic%20realm=%22b", "%C3%A9", "a%0a", "%E2%80%A8", "a%5b"]) {
      const answer = await send(`/${tenant}/mcp`);
      const header = answer?.headers.get("www-authenticate") ?? "";
      assertEquals([answer?.status, answer?.headers.get("x-evil")], [401, null], tenant);
      const outside = header.replace(/"(?:[^"\\]|\\.)*"/g, "");
      assert(/^\w+ \w+=$/.test(outside), `${tenant}: ${header}`);
    }
    await server.close();
    await port[Symbol.asyncDispose]();
  }
});

Deno.test("a tenant's metadata names only this tenant, however the path is spelled", async () => {
  const auth = oauth({
    resource: ({ tenant }) => `https://mcp.example.com/${tenant}/mcp`,
    issuers: ["https://login.example.com"],
  });
  const server = openServer({ path: "/:tenant/mcp", auth });
  const { port, send } = await openPort(mount([server, named("any", "/:a/:b/:c/mcp")]));
  const wellKnown = "/.well-known/oauth-protected-resource";
  for (const tenant of ["acme", "%61cme", "a%3Fb", "a%23b", "a%252fb", "a@b", "%40evil.example", "a%26b"]) {
    const answer = await send(`${wellKnown}/${tenant}/mcp`, "GET");
    const text = encodeURIComponent(decodeURIComponent(tenant));
    assertEquals(JSON.parse(answer?.body ?? "{}").resource, `https://mcp.example.com/${text}/mcp`, tenant);
  }
  for (const tenant of ["..", "%2e%2e", "a%2fb", "a%5cb", "%ff", "", "a/b", "x/../acme"]) {
    const { status = 0, body = "" } = await send(`${wellKnown}/${tenant}/mcp`, "GET") ?? {};
    assert(!body.includes('"resource"') || body.includes("/acme/mcp"), `${tenant}: ${status} ${body}`);
  }
  await server.close();
  await port[Symbol.asyncDispose]();
});

// A converted path parameter has only one valid spelling.

/**
 * Calls a tool at a path for each of the given segments. Returns the statuses, and the number of paths that were
 * created.
 */
async function visit(pathSchema: z.ZodObject, segments: readonly string[], path = "/t/:id/mcp") {
  const made: unknown[] = [];
  const here = tool({ name: "here", run: () => "here" });
  const handlers = (found: unknown) => {
    made.push(found);
    return [here];
  };
  const server = openServer({ path, pathSchema, handlers });
  const statuses: Record<string, number> = {};
  for (const segment of segments) {
    const { headers, body } = toCall("here");
    const response = await server.fetch(
      new Request(`http://localhost/t/${segment}/mcp`, { method: "POST", headers, body }),
    );
    await response.text();
    statuses[segment] = response.status;
  }
  await server.close();
  return { statuses, made: made.length };
}

const at = (id: z.ZodType) => z.object({ id });

const cases: { readonly [name: string]: [z.ZodObject, found: string[], lost: string[]] } = {
  "a coerced number": [
    at(z.coerce.number()),
    ["1", "-1", "1.5", "1e%2B21", "0"],
    ["01", "0x1", "%201", "1%20", "1.0", "+1", "1e0", "1_0", "-0", "0b1", "%09%31", "1.50", "1E21", "%EF%BC%91"],
  ],
  "a number that the server normalizes": [
    at(z.number()),
    ["1", "10"],
    ["01", "1.0", "1e0", "-0", "1e1", "%201", "1E%2B21"],
  ],
  "a bigint": [at(z.string().regex(/^\s*[-\dx]+$/).transform(BigInt)), ["1", "90071992547409931"], [
    "01",
    "0x1",
    "%201",
    "-0",
  ]],
  "a boolean": [at(z.coerce.boolean()), ["true", "false"], ["1", "x", "TRUE"]],
  "a lower-case text": [at(z.string().toLowerCase()), ["acme", "%61cme", "%C3%A9"], [
    "ACME",
    "Acme",
    "%41cme",
    "%C3%89",
  ]],
  "a trimmed text": [at(z.string().trim()), ["acme"], ["%20acme", "acme%20", "acme%09", "%C2%A0acme"]],
  "a normalized text": [at(z.string().normalize()), ["%C3%A9", "%c3%a9"], ["e%CC%81"]],
  "an asynchronous conversion": [
    at(z.string().transform((text) => Promise.resolve(Number(text)))),
    ["1"],
    ["01", "0x1", "%201"],
  ],
  "a text to which the schema adds a prefix": [at(z.string().transform((text) => `t-${text}`)), ["acme", "t-acme"], []],
  "an object": [at(z.string().regex(/^[a-z]+$/).transform((text) => ({ text }))), ["acme"], ["ACME", "a1"]],
  "a schema that omits the parameter": [z.object({}), ["acme"], []],
};

for (const [name, [params, found, lost]] of Object.entries(cases)) {
  Deno.test(`${name} has only one valid spelling`, async () => {
    const { statuses, made } = await visit(params, [...found, ...lost]);
    const expected = [...found.map((segment) => [segment, 200]), ...lost.map((segment) => [segment, 404])];
    assertEquals(statuses, Object.fromEntries(expected));
    const decoded = new Set(found.map((segment) => decodeURIComponent(segment)));
    assertEquals(made, decoded.size);
  });
}

Deno.test("each of several parameters has only one valid spelling, even if another parameter has no canonical spelling", async () => {
  const params = z.object({ id: z.coerce.number(), of: z.string().transform((text) => `t-${text}`) });
  const path = "/t/:id/:of/mcp";
  const { statuses } = await visit(params, ["1/a", "01/a", "1/b", "%31/a"], path);
  assertEquals(statuses, { "1/a": 200, "01/a": 404, "1/b": 200, "%31/a": 200 });
});
