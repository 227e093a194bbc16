// Tests that the names which an argument brings, such as the members of an object, never name another part of a request.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { sentence } from "../support/messages.ts";
import { post, toDocument, withEcho } from "./echo.ts";

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
