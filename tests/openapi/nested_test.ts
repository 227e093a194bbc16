// Members of arguments that the author fixes, and members that a security scheme sends in another place.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer } from "../../mod.ts";
import { openapi, type OpenApiOptions, type OperationChange } from "../../src/ready/openapi/openapi.ts";
import type { ArgumentChange } from "../../src/types.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { post, ref, toDocument, withEcho } from "./echo.ts";

const schemas = {
  Owner: { type: "object", required: ["tenant", "name"], properties: { tenant: { type: "string" }, name: {} } },
  Base: { type: "object", properties: { owner: ref("Owner") } },
  Item: { allOf: [ref("Base"), { required: ["title"], properties: { title: { type: "string" } } }] },
  Free: { type: "object" },
  Node: { type: "object", properties: { next: ref("Node"), tenant: { type: "string" } } },
};
const toBody = (name: string, type?: string) => post(ref(name), type);
const filter = {
  name: "filter",
  in: "query",
  style: "deepObject",
  schema: { type: "object", properties: { org: {} } },
};
const document = toDocument({
  item: toBody("Item"),
  other: toBody("Item"),
  free: toBody("Free"),
  node: toBody("Node"),
  form: toBody("Owner", "application/x-www-form-urlencoded"),
  list: { parameters: [filter] },
}, { components: { schemas } });
const fix = (path: string, value: ArgumentChange["value"] = "acme"): OperationChange => ({
  input: { [path]: { value } },
});

Deno.test("transform fixes a member of a body, which clients neither see nor set", async () => {
  const transform = {
    item: fix("body.owner.tenant"),
    free: fix("body.a.b.c", { d: 1 }),
    node: fix("body.next.tenant"),
    form: fix("body.tenant"),
    list: fix("filter.org"),
  };
  await withEcho(document, { transform }, async ({ client, send, call, received }) => {
    const tools = new Map((await client.listTools()).map(({ name, inputSchema }) => [name, inputSchema]));
    const toSchema = (name: string) => JSON.stringify(tools.get(name));
    for (const name of ["item", "free", "form", "list"]) {
      assert(!/tenant|"org"|body\.|filter\./.test(toSchema(name)), toSchema(name));
    }
    // The definition of the member is still complete for other operations, and for other places.
    assert(toSchema("other").includes("tenant"));
    assert(toSchema("node").includes("tenant"));
    const sent = async (name: string, body?: unknown) => JSON.parse((await send(name, { body })).body);
    assertEquals(await sent("item", { title: "a", owner: { name: "x" } }), {
      title: "a",
      owner: { name: "x", tenant: "acme" },
    });
    assertEquals(await sent("item", { title: "a" }), { title: "a", owner: { tenant: "acme" } });
    // A body that the client leaves out must not leave out the fixed member.
    assertEquals(await sent("item"), { owner: { tenant: "acme" } });
    assertEquals(await sent("free", { z: 1 }), { z: 1, a: { b: { c: { d: 1 } } } });
    assertEquals(await sent("node", { tenant: "own", next: { next: {} } }), {
      tenant: "own",
      next: { next: {}, tenant: "acme" },
    });
    assertEquals((await send("form", { body: { name: "x" } })).body, "name=x&tenant=acme");
    assertEquals((await send("list")).target, "/list?filter%5Borg%5D=acme");
    const count = received.length;
    for (
      const [name, args] of [
        ["item", { body: { title: "a", owner: { name: "x", tenant: "evil" } } }],
        ["item", { body: { title: "a", owner: { name: "x", TENANT: "evil" } } }],
        ["item", { body: { title: "a", Owner: { tenant: "evil" } } }],
        ["item", { body: { title: "a", owner: [] } }],
        ["item", { "body.owner.tenant": "evil", body: { title: "a" } }],
        ["free", { body: { a: "text" } }],
        ["form", { body: { name: "x", Tenant: "evil" } }],
        ["list", { filter: { Org: "evil" } }],
      ] as const
    ) {
      assert((await call(name, args)).isError, JSON.stringify([name, args]));
    }
    assertEquals(received.length, count);
  });
});

Deno.test("hostile: no spelling of a member sets a fixed member of an object, in any style", async () => {
  const schema = { type: "object", properties: { options: ref("Owner"), tenant: {} } };
  const toForm = (type: string) =>
    post(schema, type, { encoding: { options: { style: "deepObject", explode: true } } });
  const toParameter = (place: string, style: string) => ({
    path: place === "path" ? `/${style}{filter}` : `/${place}${style}`,
    parameters: [{ name: "filter", in: place, required: true, style, explode: true, schema: ref("Free") }],
  });
  const document = toDocument({
    deep: toParameter("query", "deepObject"),
    pairs: toParameter("query", "form"),
    segment: toParameter("path", "simple"),
    matrix: toParameter("path", "matrix"),
    cookie: toParameter("cookie", "form"),
    header: toParameter("header", "simple"),
    form: toForm("application/x-www-form-urlencoded"),
    parts: toForm("multipart/form-data"),
  }, { components: { schemas } });
  const names = ["deep", "pairs", "segment", "matrix", "cookie", "header"];
  const transform = {
    ...Object.fromEntries(names.map((name) => [name, fix("filter.tenant")])),
    form: fix("body.options.tenant"),
    parts: { input: { "body.options.tenant": { value: "acme" }, "body.tenant": { value: "acme" } } },
  };
  await withEcho(document, { transform }, async ({ send, call, received }) => {
    for (const name of names) await send(name, { filter: {} });
    for (const name of ["form", "parts"]) {
      assert((await send(name, { body: { options: { name: "x" } } })).body.includes("acme"), name);
    }
    const count = received.length;
    const variants = ["tenant[]", "tenant][", "tenant][0", " tenant", "tenant\0", "tenant\0x", "%74enant", "tenant.x"];
    for (const variant of variants) {
      const shown = JSON.stringify(variant);
      for (const name of names) {
        assert((await call(name, { filter: { [variant]: "evil" } })).isError, `${name} ${shown}`);
      }
      for (const name of ["form", "parts"]) {
        const options = { name: "x", [variant]: "evil" };
        assert((await call(name, { body: { options } })).isError, `${name} ${shown}`);
        assert((await call(name, { body: { [`options[tenant]${variant.slice(6)}`]: "evil" } })).isError, name);
      }
      assert((await call("parts", { body: { [variant]: "evil" } })).isError, shown);
    }
    assertEquals(received.length, count);
  });
});

Deno.test("transform can be a function of the operation, and the value a function of the call", async () => {
  const transform = ({ method }: { readonly method: string }): OperationChange | undefined =>
    method === "GET" ? undefined : {
      description: "Changes data",
      input: {
        body: { description: "The data" },
        "body.tenant": { value: (ctx: { principal?: { id: string } }) => ctx.principal?.id ?? "" },
      },
    };
  const document = toDocument({ a: toBody("Owner"), b: { parameters: [filter] } }, { components: { schemas } });
  await withEcho(document, { transform, principal: { id: "ada" } }, async ({ client, send }) => {
    const [a, b] = await client.listTools();
    assertEquals([a.description, b.description], ["Changes data", "GET /b"]);
    assertEquals(Object(a.inputSchema.properties).body.description, "The data");
    assertEquals(JSON.parse((await send("a", { body: { name: "x" } })).body), { name: "x", tenant: "ada" });
  });
});

Deno.test("a path that leads to no member is an error that suggests one", () => {
  const make = (path: string, id = "item") => () =>
    openapi(document, { fetch: () => new Response(), transform: { [id]: fix(path) } });
  assertThrows(make("body.owner.tenat"), TypeError, sentence("body.owner.tenant"));
  assertThrows(make("body.titel"), TypeError, sentence("body.title"));
  assertThrows(make("boddy.title"), TypeError, sentence("boddy.title"));
  assertThrows(make("body.title.deep"), TypeError, sentence("body.title.deep"));
  assertThrows(make("filter.gro", "list"), TypeError, sentence("filter.org"));
});

Deno.test("a member of a body that a security scheme sends is hidden, unless it is required", async () => {
  const properties = {
    api_token: { type: "string", description: "Send it in the `X-Api-Token` header, or here." },
    "x-account": { type: "string" },
    note: { type: "string", description: "Shown next to the account" },
    needed: { type: "string", description: "Equal to X-Account" },
    max_tokens: { type: "integer", description: "Maximum number of tokens" },
  };
  const schema = { type: "object", required: ["needed"], properties };
  const key = (name: string) => ({ type: "apiKey", in: "header", name });
  const security = { security: [{ token: [], account: [], plain: [] }] };
  const document = toDocument({ a: { ...security, ...post(schema) } }, {
    components: {
      // The name of a scheme can be a common word.
      securitySchemes: { token: key("X-Api-Token"), account: key("X-Account"), plain: key("token") },
    },
  });
  const auth = { token: () => "t", account: () => "a", plain: () => "p" };
  for (const flatten of [false, true]) {
    await withEcho(document, { auth, flatten }, async ({ client, send, call }) => {
      const [{ inputSchema }] = await client.listTools();
      const { properties } = flatten ? inputSchema : Object(inputSchema.properties).body;
      assertEquals(Object.keys(properties), ["note", "needed", "max_tokens"]);
      if (!flatten) assertEquals(Object(inputSchema.properties).body.description, "Body of the request.");
      const toArgs = (body: Readonly<Record<string, unknown>>) => flatten ? body : { body };
      const { headers, body: text } = await send("a", toArgs({ needed: "x", max_tokens: 5 }));
      assertEquals([headers["x-api-token"], headers["x-account"], headers.token], ["t", "a", "p"]);
      assertEquals(JSON.parse(text), { needed: "x", max_tokens: 5 });
      assert((await call("a", toArgs({ needed: "x", api_token: "stolen" }))).isError);
    });
  }
});

Deno.test("a fixed member can have any value that one of its schemas allows", async () => {
  const kind = (name: string) => ({ properties: { kind: { const: name } } });
  const schema = { type: "object", anyOf: [kind("a"), kind("b")] };
  const document = toDocument({ a: post(schema) });
  await withEcho(document, { transform: { a: fix("body.kind", "b") } }, async ({ send }) => {
    assertEquals((await send("a", { body: {} })).body, '{"kind":"b"}');
  });
});

Deno.test("a change of a member needs a value, and a transform function returns an object or undefined", () => {
  const make = (transform: unknown) => () =>
    openapi(document, { fetch: () => new Response(), transform: transform as OpenApiOptions["transform"] });
  for (const change of [{ description: "x" }, { default: "a" }, {}]) {
    const transform = { item: { input: { "body.owner.tenant": change } } };
    assertThrows(make(transform), TypeError, sentence("item", "body.owner.tenant"));
  }
  for (const change of [null, false, ""]) assertThrows(make(() => change), TypeError, sentence("item"));
});

Deno.test("a part that requires a hidden property can lead back to itself", async () => {
  const loop = {
    Whole: { allOf: [ref("Part")], properties: { id: { type: "string", readOnly: true } } },
    Part: { type: "object", required: ["id"], properties: { note: {} }, oneOf: [ref("Other"), { title: "none" }] },
    Other: { allOf: [ref("Part")] },
  };
  const document = toDocument({ a: toBody("Whole") }, { components: { schemas: loop } });
  await withEcho(document, {}, async ({ send }) => {
    assertEquals((await send("a", { body: { note: "x" } })).body, '{"note":"x"}');
  });
});

Deno.test("an operation with servers of its own is left out, unless baseUrl is a function", async () => {
  const own = [{ url: "https://upload.example.com/v2" }];
  const parts = {
    openapi: "3.0.3",
    servers: [{ url: "https://api.example.com" }, { url: "/v1" }],
    paths: {
      "/plain": { get: { operationId: "plain" } },
      "/same": { servers: [{ url: "/v1" }], get: { operationId: "same" } },
      "/upload": { post: { operationId: "upload", servers: own } },
      "/path": { servers: own, get: { operationId: "path" }, put: { operationId: "back", servers: [{ url: "/v1" }] } },
    },
  };
  const toReasons = (baseUrl: Parameters<typeof openapi>[1]["baseUrl"]) =>
    openapi(parts, { baseUrl }).operations.map(({ id, reason }) => [id, reason]);
  assertEquals(toReasons("https://api.example.com"), [
    ["plain", undefined],
    ["same", undefined],
    ["upload", sentence("https://upload.example.com/v2")],
    ["path", sentence("https://upload.example.com/v2")],
    ["back", undefined],
  ]);
  const some = toReasons(({ id }) => id === "plain" ? undefined : "https://api.example.com");
  assertEquals(some.flatMap(([, reason]) => reason ?? []), [sentence("baseUrl")]);
  const urls: string[] = [];
  const handler = openapi(parts, {
    fetch: (request) => (urls.push(request.url), new Response("ok")),
    baseUrl: ({ servers }) => servers[0] ?? "https://api.example.com/v1",
  });
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [handler] }));
  for (const name of ["upload", "plain", "path", "back"]) await client.callTool(name);
  assertEquals(urls, [
    "https://upload.example.com/v2/upload",
    "https://api.example.com/v1/plain",
    "https://upload.example.com/v2/path",
    "https://api.example.com/v1/path",
  ]);
  assertThrows(() => toReasons(() => "ftp://a"), TypeError, sentence("ftp"));
});

Deno.test("no other object brings a fixed member, and no member of a header adds another", async () => {
  const schema = { type: "object", properties: { tenant: { type: "string" } } };
  const toParameter = (name: string, place: string, more: object = {}) => ({
    name,
    in: place,
    explode: true,
    schema,
    ...more,
  });
  const parameters = [
    toParameter("filter", "query", { style: "form" }),
    toParameter("extra", "query", { style: "form" }),
    toParameter("deep", "query", { style: "deepObject" }),
    toParameter("X-Context", "header"),
    toParameter("X-Flat", "header", { explode: false }),
  ];
  const form = { properties: { filter: schema, extra: schema } };
  const styles = { filter: { style: "form", explode: true }, extra: { style: "form", explode: true } };
  const toOperation = (type: string) => post(form, type, { encoding: styles });
  const document = toDocument({
    a: { parameters },
    b: toOperation("application/x-www-form-urlencoded"),
    c: toOperation("multipart/form-data"),
  });
  const transform = { a: fix("filter.tenant"), b: fix("body.filter.tenant"), c: fix("body.filter.tenant") };
  await withEcho(document, { transform }, async ({ send, call, received }) => {
    assertEquals(
      (await send("a", { extra: { other: 1 }, deep: { x: 1 } })).target,
      "/a?tenant=acme&other=1&deep%5Bx%5D=1",
    );
    assertEquals((await send("b", { body: { extra: { other: 1 } } })).body.split("&").sort(), [
      "other=1",
      "tenant=acme",
    ]);
    const parts = (await send("c", { body: { extra: { other: 1 } } })).body;
    assert(parts.includes('name="tenant"') && parts.includes('name="other"'), parts);
    assertEquals((await send("a", { "X-Context": { a: "b" } })).headers["x-context"], "a=b");
    const count = received.length;
    for (const name of ["tenant", "Tenant", "tenant[]", "tenant[x]", "tenant\0"]) {
      assert((await call("a", { extra: { [name]: "evil" } })).isError, name);
      assert((await call("b", { body: { extra: { [name]: "evil" } } })).isError, name);
      assert((await call("c", { body: { extra: { [name]: "evil" } } })).isError, name);
      assert((await call("c", { body: { [name]: "evil" } })).isError, name);
    }
    for (const value of [{ a: "1,tenant=evil" }, { "a=1,tenant": "evil" }, { a: "x=y" }]) {
      assert((await call("a", { "X-Context": value })).isError);
      assert((await call("a", { "X-Flat": value })).isError);
    }
    assertEquals(received.length, count);
  });
});

// Tests that the names which an argument brings, such as the members of an object, never name another part of a request.

const any = { type: "object", additionalProperties: true };
const text = { type: "string" };
const fixed = { tenant: { value: "acme" } };
const parameters = (place: string, style?: string) => [
  { name: "tenant", in: place, required: place === "path", ...style ? { style } : {}, schema: text },
  { name: "extra", in: place, required: place === "path", ...style ? { style, explode: true } : {}, schema: any },
];

/** Names that some servers take for `tenant`, or for a member of it. */
const VARIANTS = [
  "tenant",
  "Tenant",
  "TENANT",
  "tenant[]",
  "tenant[0]",
  "tenant[id]",
  "tenant.id",
  "tenant[",
  " tenant",
  "tenant ",
  "%74enant",
  "tenan%54",
  "tenant%5B%5D",
  "+tenant",
  "Ten\u0061nt",
];
const OTHERS = ["tenants", "tenant_id", "my_tenant", "x[tenant]", "tenan", "tenant-id"];

Deno.test("hostile: a member of an object never names a parameter that is hidden and fixed", async () => {
  const document = toDocument({
    query: { parameters: parameters("query") },
    cookie: { parameters: parameters("cookie") },
    whole: {
      parameters: [
        { name: "tenant", in: "query", schema: text },
        { name: "extra", in: "querystring", content: { "application/x-www-form-urlencoded": { schema: {} } } },
      ],
    },
    matrix: { path: "/m{tenant}{extra}", parameters: parameters("path", "matrix") },
    posted: { ...post(any), parameters: parameters("query") },
  });
  const names = ["query", "cookie", "whole", "matrix", "posted"];
  const transform = Object.fromEntries(names.map((name) => [name, { input: fixed }]));
  await withEcho(document, { transform }, async ({ call, send, received }) => {
    for (const name of names) {
      for (const variant of VARIANTS) {
        const { isError } = await call(name, { extra: { a: "1", [variant]: "victim" } });
        assert(isError, `${name} ${JSON.stringify(variant)}`);
      }
    }
    assert((await call("whole", { extra: "tenant" })).isError);
    assertEquals(received, []);
    assertEquals((await call("query", { extra: { "Tenant[]": "victim" } })).text, sentence("another part"));
    for (const name of names) {
      for (const other of OTHERS) {
        const { target, headers } = await send(name, { extra: { [other]: "1" } });
        const sent = name === "cookie" ? headers.cookie : target;
        assert(sent.includes("tenant=acme"), sent);
        assert(sent.includes(`${encodeURIComponent(other)}=1`), sent);
      }
    }
  });
});

Deno.test("hostile: a member of an object never names a parameter with brackets, or one that the path sets", async () => {
  const deep = (name: string) => ({ name, in: "query", style: "deepObject", explode: true, schema: any });
  const document = toDocument({
    brackets: { parameters: [{ name: "filter[owner]", in: "query", schema: text }, deep("filter"), deep("page")] },
    path: { path: "/search?kind=public", parameters: [{ name: "extra", in: "query", schema: any }] },
    segment: { path: "/s;role=guest{extra}", parameters: [parameters("path", "matrix")[1]] },
  });
  const transform = { brackets: { input: { filter_owner: { value: "me" } } } };
  await withEcho(document, { transform }, async ({ call, send, received }) => {
    const refused = [
      { filter: { owner: "you" } },
      { filter: { Owner: "you" } },
      { filter: { owner: { id: "you" } } },
      { filter: { "owner]": "you" } },
      { filter: { "owner][": "you" } },
    ];
    for (const args of refused) assert((await call("brackets", args)).isError, JSON.stringify(args));
    for (const kind of ["kind", "Kind", "kind[]"]) {
      assert((await call("path", { extra: { [kind]: "x" } })).isError, kind);
    }
    assert((await call("segment", { extra: { role: "admin" } })).isError);
    assertEquals(received, []);
    const { target } = await send("brackets", { filter: { color: "red" }, page: { owner: "you" } });
    assertEquals(decodeURIComponent(target), "/brackets?filter[owner]=me&filter[color]=red&page[owner]=you");
  });
});

Deno.test("hostile: an argument in the query of a path never names a parameter", async () => {
  const schema = { type: "object", additionalProperties: true };
  const obj = { name: "obj", in: "path", required: true, style: "matrix", explode: true, schema };
  const tenant = { name: "tenant", in: "query", schema: text };
  const document = toDocument({
    value: { path: "/v?a={obj}", parameters: [obj, tenant] },
    name: { path: "/n?a=1&{field}={value}", parameters: [tenant] },
    whole: { path: "/w?{obj}", parameters: [obj, tenant] },
  });
  await withEcho(document, { transform: { value: { input: fixed } } }, async ({ api, send }) => {
    const { target } = await send("value", { obj: { a: "1", b: "evil" } });
    assertEquals(target, "/v?a=%3Ba=1%3Bb=evil&tenant=acme");
    const reasons = api.operations.map(({ reason }) => reason);
    assertEquals(reasons, [undefined, sentence("{field}"), sentence("{obj}")]);
  });
});

Deno.test("hostile: a member or a further field never names a field of a form", async () => {
  const properties = { role: text, meta: any, note: text };
  const encoding = { meta: { style: "form", explode: true } };
  const toForm = (type: string) => post({ type: "object", properties, additionalProperties: true }, type, { encoding });
  const document = toDocument({
    flat: toForm("application/x-www-form-urlencoded"),
    parts: toForm("multipart/form-data"),
  });
  const transform = { flat: { input: { role: { value: "guest" } } } };
  await withEcho(document, { flatten: true, transform }, async ({ call, send, received }) => {
    for (const name of ["role", "Role", "role[]", "%72ole", "note"]) {
      assert((await call("flat", { meta: { [name]: "admin" } })).isError, name);
    }
    assertEquals(received, []);
    const { body } = await send("flat", { meta: { color: "red" }, note: "n" });
    assertEquals(body.split("&").sort(), ["color=red", "note=n", "role=guest"]);
  });
  await withEcho(document, {}, async ({ call, send, received }) => {
    for (const name of ["flat", "parts"]) {
      for (const field of ["Role", "role[]", "role[id]", "role."]) {
        assert((await call(name, { body: { role: "guest", [field]: "admin" } })).isError, `${name} ${field}`);
      }
    }
    assertEquals(received, []);
    assertEquals((await send("flat", { body: { role: "guest", roles: "x" } })).body, "role=guest&roles=x");
    assert((await send("parts", { body: { role: "guest", roles: "x" } })).body.includes('name="roles"'));
  });
});

Deno.test("hostile: two names of the same header are one argument", async () => {
  const header = (name: string) => ({ name, in: "header", schema: text });
  const document = toDocument({ one: { parameters: [header("X-Tenant"), header("x-tenant")] } });
  const transform = { one: { input: { "x-tenant": { value: "acme" } } } };
  await withEcho(document, { transform }, async ({ client, send }) => {
    const [{ inputSchema }] = await client.listTools();
    assertEquals(Object.keys(Object(inputSchema.properties)), []);
    assertEquals((await send("one")).headers["x-tenant"], "acme");
  });
  const fetch = () => new Response("ok");
  assertThrows(() => openapi(document, { fetch, transform: { one: { input: { "X-Tenant": { value: "acme" } } } } }));
});
