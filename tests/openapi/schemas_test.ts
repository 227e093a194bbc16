// Tests of the schemas, names and hints of the tools that `openapi()` makes.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer, group } from "../../mod.ts";
import { listWarnings } from "../../src/host.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { testServer } from "../support/test_server.ts";
import { post, ref, toDocument, withEcho } from "./echo.ts";

const fetch = (request: Request) => Response.json({ url: request.url });

/** Returns the listed tools of a document. */
async function listTools(document: object, options: object = {}) {
  const api = openapi(document, { fetch, ...options });
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api] }));
  return await client.listTools();
}

/** Returns the schema of the body of the operation `a`, with the values that a call accepts and refuses. */
async function tryBody(document: object, valid: readonly unknown[], invalid: readonly unknown[]): Promise<unknown> {
  const api = openapi(document, { fetch });
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api] }));
  for (const body of valid) {
    const { isError, content } = await client.callTool("a", { body });
    assert(!isError, JSON.stringify([body, content]));
  }
  for (const body of invalid) assert((await client.callTool("a", { body })).isError, JSON.stringify(body));
  const tools = await client.listTools();
  return tools.find(({ name }) => name === "a")?.inputSchema;
}

Deno.test("a recursive schema is closed, and each tool has only the definitions that it needs", async () => {
  const schemas = {
    Tree: { type: "object", properties: { children: { type: "array", items: ref("Tree") } } },
    Other: { type: "string" },
    "Strange name/with ~tilde": { type: "integer" },
    "Strange_name_with_tilde": { type: "boolean" },
  };
  const document = toDocument({
    a: post(ref("Tree")),
    b: post({
      properties: {
        one: { $ref: "#/components/schemas/Strange%20name~1with%20~0tilde" },
        two: ref("Strange_name_with_tilde"),
      },
    }),
  }, { components: { schemas } });
  await tryBody(document, [{ children: [{ children: [] }] }], [{ children: [{ children: 1 }] }]);
  const [a, b] = await listTools(document);
  assertEquals(Object.keys(Object(a.inputSchema.$defs)), ["Tree"]);
  assertEquals(Object.values(Object(b.inputSchema.$defs)), [{ type: "integer" }, { type: "boolean" }]);
});

Deno.test("inheritance in both directions is served: a base lists its variants, and each variant includes the base", async () => {
  const schemas = {
    Pet: {
      type: "object",
      required: ["kind"],
      properties: { kind: { type: "string" } },
      oneOf: [ref("Cat"), ref("Dog")],
      discriminator: { propertyName: "kind", mapping: { cat: "#/components/schemas/Cat" } },
    },
    Cat: {
      allOf: [ref("Pet"), { type: "object", required: ["lives"], properties: { lives: {} } }],
    },
    Dog: { allOf: [ref("Pet"), { type: "object", required: ["bark"], properties: { bark: {} } }] },
  };
  const document = toDocument({ a: post(ref("Pet")) }, { components: { schemas } });
  const schema = await tryBody(document, [{ kind: "cat", lives: 9 }, { kind: "dog", bark: true }], [{ lives: 9 }, {
    kind: "cat",
  }]);
  assert(!JSON.stringify(schema).includes("discriminator"));
});

for (
  const [name, loop] of Object.entries({
    "itself in allOf": { A: { allOf: [ref("A"), { type: "object" }] } },
    "itself in anyOf": { A: { anyOf: [ref("A"), { type: "object" }] } },
    "a chain of references": {
      A: ref("B"),
      B: ref("C"),
      C: ref("A"),
    },
    "not": { A: { not: ref("B") }, B: { not: ref("A") } },
    "mixed keywords": {
      A: { allOf: [ref("B")], anyOf: [ref("C")] },
      B: { anyOf: [{ allOf: [ref("A")] }, { type: "object" }] },
      C: { allOf: [ref("B"), ref("A")] },
    },
    "nothing": { A: ref("Missing") },
    "a file": { A: { $ref: "./other.yaml#/A" } },
    "a URL": { A: { $ref: "https://example.com/schema.json" } },
    "the document": { A: { $ref: "#" } },
  })
) {
  Deno.test(`hostile: a schema that leads to ${name} is served`, async () => {
    await tryBody(toDocument({ a: post(ref("A")) }, { components: { schemas: loop } }), [{}], []);
  });
}

Deno.test("keywords of older versions, and values that no validator takes, are read as they are meant", async () => {
  const properties = {
    nullable: { type: "string", nullable: true },
    nullableEnum: { type: "string", nullable: true, enum: ["a", "b", "a"] },
    nullableRef: { nullable: true, allOf: [ref("S")] },
    above: { type: "number", minimum: 1, exclusiveMinimum: true },
    below: { type: "number", maximum: 3, exclusiveMaximum: true },
    notExclusive: { type: "number", minimum: 1, exclusiveMinimum: false },
    pcre: { type: "string", pattern: "^(?i)[a-z]++\\z" },
    slow: { type: "string", pattern: "^(a+)+$" },
    plain: { type: "string", pattern: "^[a-z]+$" },
    odd: { type: "date", required: true, minLength: "1", enum: "x", items: [], description: 1 },
    quoted: { type: "integer", enum: ["1", "2"] },
    $ref: { type: "string" },
    enum: { type: "integer" },
    required: { type: "boolean" },
    tuple: { type: "array", items: [{ type: "string" }, { type: "integer" }] },
    default: { type: "integer", default: 20, example: 7 },
  };
  const components = { schemas: { S: { type: "string" } } };
  for (const openapi of ["3.0.3", "3.1.0"]) {
    const document = toDocument({ a: post({ type: "object", properties, required: ["$ref", "$ref"] }) }, {
      openapi,
      components,
    });
    const $ref = "x";
    const schema = JSON.stringify(
      await tryBody(document, [
        { $ref, nullable: null, nullableEnum: null, nullableRef: null, above: 1.1, below: 2.9, notExclusive: 1 },
        { $ref, pcre: "anything", slow: "b", plain: "abc", odd: {}, quoted: "1", enum: 1, required: true },
        { $ref, tuple: ["a", 1], default: 1, nullableRef: "s" },
      ], [
        {},
        ...[{ nullable: 1 }, { nullableEnum: "c" }, { above: 1 }, { below: 3 }, { notExclusive: 0 }, { plain: "A" }]
          .map((each) => ({
            $ref,
            ...each,
          })),
        ...[{ quoted: 1 }, { enum: "a" }, { tuple: [1] }, { $ref: 1 }, { nullableRef: 1 }].map((each) => ({
          $ref,
          ...each,
        })),
      ]),
    );
    // The model sees what is not checked.
    assert(schema.includes("Pattern: ^(?i)") && schema.includes("Pattern: ^(a+)+$") && schema.includes("Default: 20"));
  }
});

Deno.test("properties that only responses have are no arguments, and are not required", async () => {
  const schema = {
    type: "object",
    properties: {
      id: { type: "string", readOnly: true },
      made: ref("Made"),
      name: { type: "string" },
      secret: { type: "string", writeOnly: true },
    },
    required: ["id", "made", "name"],
  };
  const components = { schemas: { Made: { type: "string", readOnly: true } } };
  const document = toDocument({
    a: { ...post(schema), responses: { 200: { content: { "application/json": { schema } } } } },
  }, { components });
  await tryBody(document, [{ name: "Ada", secret: "s" }], [{ secret: "s" }]);
  const [{ inputSchema, outputSchema }] = await listTools(document, { output: "strict" });
  assertEquals(Object.keys(Object(Object(inputSchema.properties).body).properties), ["name", "secret"]);
  assertEquals(Object.keys(Object(outputSchema?.properties)), ["id", "made", "name"]);
});

Deno.test("a schema has at most 32 KB: nearer definitions come first, and the others keep their descriptions", async () => {
  const text = "x".repeat(900);
  const schemas = Object.fromEntries(
    Array.from({ length: 200 }, (_, i) => [`S${i}`, {
      description: `Number ${i}`,
      properties: { text: { type: "string", description: text }, next: { $ref: `#/components/schemas/S${i + 1}` } },
    }]),
  );
  const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`property${i}`, { description: text }]));
  const nested = Array.from({ length: 80 }).reduce<object>(
    (inner) => ({ type: "object", properties: { in: inner } }),
    {},
  );
  const document = toDocument({
    chain: post(ref("S0")),
    wide: post({ properties: wide }),
    nested: post(nested),
  }, { components: { schemas: { ...schemas, S200: { type: "string" } } } });
  const tools = await listTools(document);
  for (const { name, inputSchema } of tools) {
    assert(new TextEncoder().encode(JSON.stringify(inputSchema)).length <= 32_768, name);
  }
  const defs = Object(tools[0].inputSchema.$defs);
  assert(defs.S0.properties && defs.S10.properties);
  const names = Object.keys(defs);
  assertEquals(defs[names[names.length - 1]], { description: `Number ${names.length - 1}` });
  const { operations } = openapi(document, { fetch });
  for (const { cut, bytes, tokens } of operations) {
    assert(cut > 0 && bytes > 0 && tokens === Math.ceil(bytes / 4), `${cut} ${bytes} ${tokens}`);
  }
});

Deno.test("names are unique, stable and short, and arguments of the same name get their place", async () => {
  const long = "operation".repeat(12);
  const document = {
    openapi: "3.1.0",
    info: { title: "N" },
    paths: {
      "/a": { get: { operationId: "issues/list-for.repo" }, post: { operationId: "issues_list-for_repo" } },
      "/b": { get: { operationId: long }, post: { operationId: `${long}2` }, put: { operationId: "" } },
      "/users/{id}/größen": { get: {}, post: { operationId: "größe" }, put: { operationId: "日本" } },
      "/c/{id}": {
        parameters: ["path", "query", "header", "cookie"].map((place) => ({
          name: "id",
          in: place,
          required: place === "path",
        })),
        get: {
          operationId: "places",
          parameters: [{ name: "filter[name]", in: "query" }, { name: "filter_name", in: "query" }],
        },
        post: {
          operationId: "body",
          parameters: [{ name: "body", in: "query" }, { name: "x".repeat(80), in: "query" }],
          requestBody: { content: { "application/json": {} } },
        },
      },
    },
  };
  const tools = await listTools(document);
  assertEquals(await listTools(document), tools);
  const names = tools.map(({ name }) => name);
  assertEquals(new Set(names).size, tools.length);
  assert(names.every((name) => /^[\w-]{1,64}$/.test(name)), names.join());
  assertEquals(names.filter((name) => !/^operation/.test(name)).map((name) => name.replace(/_\w{8}$/, "_HASH")), [
    "issues_list-for_repo",
    "issues_list-for_repo_HASH",
    "put_b",
    "get_users_id_gro_en",
    "gro_e",
    "put_users_id_gro_en",
    "places",
    "body",
  ]);
  const toArguments = (name: string) =>
    Object.keys(Object(tools.find((each) => each.name === name)?.inputSchema.properties));
  assertEquals(toArguments("places"), [
    ...["id_path", "id_query", "id_header", "id_cookie"],
    ...["filter_name_query", "filter_name_query_2"],
  ]);
  assertEquals(toArguments("body").filter((name) => !name.startsWith("id_")), ["body_query", "x".repeat(64), "body"]);
});

Deno.test("hints follow the method, and descriptions are bounded", async () => {
  const operations = Object.fromEntries(
    ["get", "head", "options", "query", "post", "put", "patch", "delete"].map((method) => [method, {
      method,
      summary: "Does it",
      description: "Long. ".repeat(1000),
      deprecated: method === "put",
    }]),
  );
  const tools = await listTools(toDocument(operations, { openapi: "3.2.0" }));
  const reads = { readOnlyHint: true, destructiveHint: false, openWorldHint: true };
  const changes = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
  assertEquals(Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations])), {
    get: reads,
    head: reads,
    options: reads,
    query: reads,
    post: changes,
    put: { ...changes, idempotentHint: true },
    patch: changes,
    delete: { ...changes, idempotentHint: true },
  });
  assert(tools.every(({ description = "" }) => description.length <= 1024));
  assert(tools.find(({ name }) => name === "put")?.description?.startsWith("Deprecated."));
  const { operations: served } = openapi(toDocument(operations), { fetch, readOnly: true });
  assertEquals(served.filter(({ kind }) => kind === "tool").map(({ method }) => method), [
    "GET",
    "HEAD",
    "OPTIONS",
    "QUERY",
  ]);
});

Deno.test("operations become resources and templates, with the tags of the document", async () => {
  const document = toDocument({
    pets: { tags: ["pets"], parameters: [{ name: "limit", in: "query" }] },
    pet: { path: "/pets/{petId}/{file-name}", tags: ["pets"], parameters: [{ name: "limit", in: "query" }] },
    admin: { tags: ["admin"] },
    add: { method: "post" },
  });
  await withEcho(document, {
    as: ({ id, tags }) =>
      tags.includes("admin") ? "none" : id === "pets" ? "resource" : id === "pet" ? "template" : "tool",
    respond: ({ url }) => url.endsWith("/gone/x") ? new Response("no", { status: 404 }) : Response.json({ ok: true }),
  }, async ({ client, received, api }) => {
    assertEquals((await client.listTools()).map(({ name }) => name), ["add"]);
    const [{ uri, name }] = await client.listResources();
    assertEquals([uri, name], ["api://echo/pets", "pets"]);
    const [{ uriTemplate }] = await client.listResourceTemplates();
    assertEquals(uriTemplate, "api://echo/pets/{petId}/{file_name}{?limit}");
    const read = async (uri: string) => (await client.readResource(uri)).contents;
    assertEquals(await read("api://echo/pets"), [{ uri, mimeType: "application/json", text: '{"ok":true}' }]);
    assertEquals((await read("api://echo/pets/a%20b/c?limit=5")).length, 1);
    assert(await read("api://echo/pets/gone/x").then(() => false, () => true));
    assertEquals(received.map(({ target }) => target), ["/pets", "/pets/a%20b/c?limit=5", "/pets/gone/x"]);
    assertEquals(api.operations.map(({ kind }) => kind), ["resource", "template", "none", "tool"]);
    assertEquals(api.handlers.map(({ tags }) => tags), [["pets"], ["pets"], []]);
  });
  const make = (id: string, kind: string) => () =>
    openapi(document, { fetch, as: (each) => each.id === id ? kind as never : "none" });
  assertThrows(make("add", "resource"), TypeError, sentence("add"));
  assertThrows(make("pet", "resource"), TypeError, sentence("petId"));
  assertThrows(make("pet", "prompt"), TypeError, sentence("prompt"));
});

Deno.test("parameters whose names differ in punctuation have variables of their own in a template", async () => {
  const document = toDocument({
    find: {
      path: "/items/{a-b}/{a_b}",
      parameters: ["f.id", "f[id]", "f_id"].map((name) => ({ name, in: "query", schema: { type: "string" } })),
    },
  });
  await withEcho(document, { as: () => "template" }, async ({ client, received }) => {
    const [{ uriTemplate }] = await client.listResourceTemplates();
    const variables = [...uriTemplate.matchAll(/\w+(?=[,}])/g)].map(([name]) => name);
    assertEquals(new Set(variables).size, 5, uriTemplate);
    const [first, second, ...query] = variables;
    assert(first !== second);
    await client.readResource(`api://echo/items/1/2?${query.map((name, i) => `${name}=${i}`).join("&")}`);
    const [{ target }] = received;
    assertEquals(decodeURIComponent(target), "/items/1/2?f.id=0&f[id]=1&f_id=2");
  });
});

Deno.test("transform changes an operation by its id, and cannot name another", async () => {
  const parameters = ["tenant", "q"].map((name) => ({ name, in: "query", required: true, schema: { type: "string" } }));
  const document = toDocument({ "items/search": { parameters } });
  const transform = {
    "items/search": {
      name: "find",
      description: "Finds items",
      input: { tenant: { value: "acme" }, q: { name: "words" } },
    },
  };
  await withEcho(document, { transform }, async ({ client, send }) => {
    const [{ name, description, inputSchema }] = await client.listTools();
    assertEquals([name, description, Object.keys(Object(inputSchema.properties))], ["find", "Finds items", ["words"]]);
    assertEquals((await send("find", { words: "tea" })).target, "/items/search?tenant=acme&q=tea");
  });
  const make = () => openapi(document, { fetch, transform: { "items/serach": {} } });
  assertThrows(make, TypeError, sentence("items/search"));
});

Deno.test("more than 128 tools need a search or a selection: an error at the start", async () => {
  const { toolSearch } = await import("../../src/ready/search/search.ts");
  const document = toDocument(Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`op${i}`, {}])));
  const start = async (handlers: readonly Parameters<typeof createServer>[0]["handlers"][]) => {
    await using server = createServer({
      name: "many",
      version: "1.0.0",
      handlers: handlers.flat() as never,
      observer: { fault: () => {} },
    });
    return await server.ready().then(() => "ready", ({ message }) => message);
  };
  const many = openapi(document, { fetch });
  assertEquals(await start([[many]]), sentence("129", "toolSearch", "as"));
  assertEquals(await start([[many, toolSearch()]]), "ready");
  // `mcp check` lists a warning instead.
  const checked = createServer({ name: "many", version: "1.0.0", handlers: [openapi(document, { fetch })] });
  assertEquals(listWarnings(checked).map(({ place, state }) => `${place}: ${state}`), [sentence("129", "toolSearch")]);
  await checked.ready();
  await checked.close();
  assertEquals(await start([[openapi(document, { fetch, as: () => "tool" })]]), "ready");
});

Deno.test("a group, a layer and a rule apply to all operations of a document", async () => {
  const document = toDocument({ list: { tags: ["read"] }, add: { method: "post" } });
  const api = openapi(document, { fetch });
  const seen: string[] = [];
  const pets = group("pets", [api], {
    use: [(_ctx, next) => (seen.push("called"), next())],
    allow: ({ principal }) => principal?.id === "ada",
  });
  const server = testServer({ handlers: [pets] });
  await using ada = await connectTest(server, { principal: { id: "ada" } });
  await using eve = await connectTest(server, { principal: { id: "eve" } });
  assertEquals((await ada.listTools()).map(({ name }) => name), ["pets_list", "pets_add"]);
  assertEquals(await eve.listTools(), []);
  await ada.callTool("pets_list");
  assertEquals(seen, ["called"]);
  server.handlers.disable({ tag: "read" });
  assertEquals((await ada.listTools()).map(({ name }) => name), ["pets_add"]);
});

Deno.test("limits that JSON cannot contain exactly are not listed, and a list always describes its items", async () => {
  const properties = {
    large: { type: "integer", format: "int64", minimum: -9223372036854775808, maximum: 9223372036854775807 },
    double: { type: "number", exclusiveMaximum: 1.7976931348623157e308, minimum: 0 },
    old: { type: "integer", maximum: 18446744073709551615, exclusiveMaximum: true },
    text: { type: "string", maxLength: 9223372036854775807, minLength: 1 },
    list: { type: "array", maxItems: 9223372036854775807 },
    nullable: { type: ["array", "null"] },
    tuple: { type: "array", prefixItems: [{ type: "string" }] },
  };
  for (const openapi of ["3.0.3", "3.1.0"]) {
    const document = { ...toDocument({ a: post({ type: "object", properties }) }), openapi };
    const [{ inputSchema }] = await listTools(document);
    const text = JSON.stringify(inputSchema);
    assert(!/\d{17}|e\+/.test(text), text);
    const { body } = Object(inputSchema.properties);
    assertEquals([body.properties.double.minimum, body.properties.text.minLength], [0, 1]);
    for (const name of ["list", "nullable", "tuple"]) assertEquals(body.properties[name].items, {}, name);
  }
});

Deno.test("a closed object that extends others takes the properties of all its parts, and no other", async () => {
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const schemas = {
    Base: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
    Middle: { allOf: [ref("Base"), { properties: { note: { type: "string" } } }] },
    Closed: {
      allOf: [ref("Middle")],
      anyOf: [{ properties: { a: { type: "string" } } }, { properties: { b: { type: "string" } } }],
      properties: { own: { type: "boolean" } },
      additionalProperties: false,
    },
    Beside: { ...ref("Base"), properties: { own: {} }, additionalProperties: false },
    Unknown: { allOf: [ref("Gone")], properties: { own: {} }, additionalProperties: false },
  };
  const document = (name: string) => toDocument({ a: post(ref(name)) }, { components: { schemas } });
  await tryBody(
    document("Closed"),
    [{ id: 1 }, { id: 1, note: "x", own: true, a: "x" }, { id: 1, b: "y" }],
    [{}, { id: 1, other: 1 }, { id: "1" }, { id: 1, own: 4 }, { id: 1, note: 4 }],
  );
  await tryBody(document("Beside"), [{ id: 1, own: 1 }], [{ own: 1 }, { id: 1, other: 1 }]);
  // The properties of a part that is not in the document are not known.
  await tryBody(document("Unknown"), [{ anything: 1 }], []);
});

Deno.test("no part requires a property that another part marks as readOnly", async () => {
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const id = { type: "string", readOnly: true };
  const schemas = {
    Entity: { type: "object", properties: { id, created: { allOf: [{ type: "string" }, { readOnly: true }] } } },
    Strict: { type: "object", required: ["id", "title"], properties: { title: { type: "string" } } },
    Sibling: { allOf: [ref("Entity"), { required: ["id", "created", "name"] }], properties: { name: {} } },
    Outer: { allOf: [ref("Entity")], required: ["id", "name"] },
    Parts: { allOf: [ref("Strict"), ref("Entity")] },
    Nested: { properties: { item: ref("Parts") } },
  };
  const document = (name: string) => toDocument({ a: post(ref(name)) }, { components: { schemas } });
  await tryBody(document("Sibling"), [{ name: "x" }], [{}]);
  await tryBody(document("Outer"), [{ name: "x" }], [{}]);
  await tryBody(document("Parts"), [{ title: "x" }], [{}]);
  await tryBody(document("Nested"), [{ item: { title: "x" } }], [{ item: {} }]);
  // The same part alone still requires the property.
  await tryBody(document("Strict"), [{ id: "1", title: "x" }], [{ title: "x" }]);
});

Deno.test("a schema whose name ends like a mark of the library stays a schema of its own", async () => {
  const variant = { type: "object", required: ["kind"], properties: { kind: { type: "string" } } };
  const schemas = {
    Pet: { ...variant, oneOf: [ref("Cat"), { $ref: "#/components/schemas/Pet base" }] },
    Cat: { allOf: [ref("Pet"), { properties: { meow: { type: "boolean" } } }] },
    "Pet base": { type: "object", required: ["own"], properties: { own: { type: "integer" } } },
  };
  const body = (name: string) => ({
    method: "post",
    requestBody: { content: { "application/json": { schema: ref(name) } } },
  });
  const document = toDocument({ pet: body("Pet"), base: body("Pet base") }, { components: { schemas } });
  await withEcho(document, {}, async ({ call }) => {
    assertEquals((await call("base", { body: { own: 1 } })).isError, undefined);
    assert((await call("base", { body: { kind: "cat" } })).isError);
  });
});
