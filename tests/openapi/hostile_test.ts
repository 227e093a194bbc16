// Tests that neither a document nor an argument can send a request elsewhere, or stop the program.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer, ToolError } from "../../mod.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { type Random, random as createRandom } from "../support/random.ts";
import { compareCosts } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";
import { patch } from "../support/patch.ts";
import { post, ref, toDocument, withEcho } from "./echo.ts";

const fetch = () => new Response("ok");
const read = (document: unknown) => openapi(document as object, { fetch });
const path = (name: string) => ({ name, in: "path", required: true, schema: { type: "string" } });

Deno.test("hostile: a path argument never changes the path", async () => {
  const document = toDocument({
    one: { path: "/users/{id}/posts", parameters: [path("id")] },
    last: { path: "/users/{id}", parameters: [path("id")] },
    joined: { path: "/files/{a}.{b}", parameters: [path("a"), path("b")] },
    matrix: { path: "/m/{id}", parameters: [{ ...path("id"), style: "matrix" }] },
    label: { path: "/l/{id}", parameters: [{ ...path("id"), style: "label", explode: true, schema: {} }] },
    forgotten: { path: "/f/{id}/x" },
  });
  await withEcho(document, { basePath: "/v1/" }, async ({ call, send, received }) => {
    const refused = ["", ".", "..", "../admin", "..\\admin", "a/../../b", "./", "..;x", "\uff0e\uff0e", ".\t.", "..\0"];
    for (const id of refused) {
      for (const name of ["one", "last", "forgotten"]) assert((await call(name, { id })).isError, `${name} ${id}`);
    }
    assert((await call("joined", { a: "", b: "" })).isError);
    assert((await call("joined", { a: "", b: "x" })).isError);
    for (const id of ["", ".", [""], ["", ""]]) assert((await call("label", { id })).isError, JSON.stringify(id));
    assertEquals(received, []);
    const sent = [
      "%2e%2e",
      "%2E",
      "a/b",
      "a\\b",
      "?x=1",
      "#x",
      "a b",
      "http://other.example",
      "//other",
      "@x",
      "...",
      "é",
      "%",
    ];
    for (const id of sent) {
      for (const [name, end] of [["one", "/posts"], ["last", ""], ["forgotten", ""]]) {
        const { target } = await send(name, { id });
        const start = name === "forgotten" ? "/v1/f/" : "/v1/users/";
        assertEquals(target, `${start}${encodeURIComponent(id)}${name === "forgotten" ? "/x" : end}`, `${name} ${id}`);
      }
    }
    assertEquals((await send("matrix", { id: "../x;y=1" })).target, "/v1/m/;id=..%2Fx%3By%3D1");
    assertEquals((await call("one", { id: "\ud800" })).text, sentence("surrogate"));
  });
});

Deno.test("hostile: the paths of a document stay below the base URL, with a fixed query and without a fragment", async () => {
  const document = {
    openapi: "3.1.0",
    paths: {
      "/../admin": { get: { operationId: "up" } },
      "/a/%2e%2e/b": { get: { operationId: "encoded" } },
      "/a\\..\\b": { get: { operationId: "backslash" } },
      "//other.example/x": { get: { operationId: "slashes" } },
      "@other.example": { get: { operationId: "at" } },
      "/q?type=a&x=y z": { get: { operationId: "query", parameters: [{ name: "q", in: "query" }] } },
      "/#Target=One": { get: { operationId: "fragment" } },
      "/sp ace/ü/[x]/100%": { get: { operationId: "characters" } },
      "http://other.example/x": { get: { operationId: "absolute" } },
    },
  };
  await withEcho(document, { basePath: "/v1" }, async ({ api, send }) => {
    const skipped = api.operations.filter(({ reason }) => reason).map(({ id }) => id);
    assertEquals(skipped, ["up", "encoded", "backslash"]);
    const targets = {
      slashes: "/v1//other.example/x",
      at: "/v1/@other.example",
      query: "/v1/q?type=a&x=y%20z&q=1",
      fragment: "/v1/",
      characters: "/v1/sp%20ace/%C3%BC/%5Bx%5D/100%25",
      absolute: "/v1/http://other.example/x",
    };
    for (const [name, target] of Object.entries(targets)) {
      assertEquals((await send(name, name === "query" ? { q: "1" } : {})).target, target);
    }
  });
});

Deno.test("hostile: headers and cookies of a document cannot set credentials, or add lines", async () => {
  const names = [
    "Authorization",
    "Cookie",
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "Proxy-Authorization",
  ];
  const header = (name: string) => ({ name, in: "header", schema: { type: "string" } });
  const cookie = { name: "c", in: "cookie", schema: { type: "string" } };
  const raw = { name: "raw", in: "cookie", style: "cookie", schema: { type: "string" } };
  const document = toDocument({ a: { parameters: [...names, "X-Own"].map(header).concat(cookie, raw as never) } });
  for (const bad of [header("a b"), header("x:y"), { ...cookie, name: "c; d" }]) {
    const { operations } = read(toDocument({ a: { parameters: [bad] } }));
    assertEquals(operations.map(({ reason }) => reason), [sentence(bad.name)]);
  }
  await withEcho(document, {}, async ({ call, send, client, received }) => {
    const [{ inputSchema }] = await client.listTools();
    assertEquals(Object.keys(Object(inputSchema.properties)), ["X-Own", "c", "raw"]);
    for (const text of ["a\r\nAuthorization: b", "a\nb", "\0", "€"]) {
      assert((await call("a", { "X-Own": text })).isError, text);
    }
    assert((await call("a", { raw: "1; admin=1" })).isError);
    assertEquals(received.length, 0);
    assertEquals((await send("a", { c: "x; admin=1\r\n" })).headers.cookie, "c=x%3B%20admin%3D1%0D%0A");
  });
});

Deno.test("hostile: neither servers nor references of a document cause a request", async () => {
  const urls: string[] = [];
  using _patched = patch(globalThis, {
    fetch: (url: URL) => (urls.push(String(url)), Promise.resolve(new Response("x"))),
  });
  const ref = { $ref: "http://169.254.169.254/schema.json" };
  const document = toDocument({
    a: { servers: [{ url: "http://169.254.169.254" }], ...post(ref) },
    b: { method: "post", requestBody: ref },
    c: { parameters: [ref, { $ref: "file:///etc/passwd" }] },
  }, { servers: [{ url: "http://169.254.169.254" }], paths2: ref });
  const api = openapi(document, { baseUrl: "https://10.0.0.1/" });
  await using client = await connectTest(createServer({ name: "s", version: "1.0.0", handlers: [api] }));
  assertEquals((await client.callTool("a", { body: {} })).isError, true);
  assertEquals(urls, []);
});

Deno.test("hostile: documents that are too deep, too large, recursive or unknown are refused with words", () => {
  const refuse = (document: unknown, ...words: string[]) =>
    assertThrows(() => read(document), TypeError, sentence(...words));
  const cyclic: Record<string, unknown> = { openapi: "3.1.0", paths: {} };
  cyclic.self = { again: [cyclic] };
  refuse(cyclic, "itself");
  const deep = (levels: number) => Array.from({ length: levels }).reduce<object>((inner) => ({ inner }), {});
  refuse({ openapi: "3.1.0", x: deep(20_000) }, "200");
  refuse({ openapi: "3.1.0", x: "x".repeat(51_000_000) }, "50000000");
  // Values that many members share grow with each level.
  const laugh = Array.from({ length: 60 }).reduce<object>((inner) => [inner, inner], {});
  refuse({ swagger: "2.0", x: laugh }, "50000000");
  for (
    const [document, ...words] of [
      [undefined, "undefined"],
      ["openapi: 3.1.0", "parse"],
      [[], "object"],
      [{}, "openapi"],
      [Promise.resolve({ openapi: "3.1.0", paths: {} }), "await"],
      [{ swagger: "1.2" }, "1.2"],
      [{ openapi: "4.0.0" }, "4.0.0"],
      [{ openapi: "3.9" }, "3.9"],
      [{ openapi: {} }, "version"],
    ] as const
  ) refuse(document, ...words);
  for (
    const [key, version] of [["swagger", 2], ["swagger", "2.0"], ["openapi", 3.1], ["openapi", "3.2.0"], ["openapi", 3]]
  ) {
    const { operations } = read({ [key]: version, paths: { "/a": { get: {} } } });
    assertEquals(operations.map(({ name }) => name), ["get_a"]);
  }
});

Deno.test("hostile: names that all objects have are served", () => {
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
  const schema = JSON.parse(`{"properties":{${names.map((name) => `"${name}":{"type":"string"}`).join()}}}`);
  const toParameters = (refs: readonly string[]) =>
    JSON.parse(`{${refs.map((name) => `"${name}":{"name":"${name}_2","in":"query"}`).join()}}`);
  const toKinds = (refs: readonly string[]) => {
    const document = JSON.parse(JSON.stringify({
      openapi: "3.1.0",
      components: { parameters: toParameters(refs) },
      paths: Object.fromEntries(names.map((name) => [`/${name}`, {
        post: {
          operationId: name,
          parameters: [{ name, in: "query" }, { $ref: `#/components/parameters/${name}` }],
          requestBody: { content: { "application/json": { schema } } },
        },
      }])),
    }));
    return read(document).operations.map(({ kind }) => kind);
  };
  // No copy of a document has the member `__proto__`.
  assertEquals(toKinds(names), ["none", "tool", "tool", "tool"]);
  assertEquals(toKinds([]), ["none", "none", "none", "none"]);
  assertEquals(Object(Object.prototype).polluted, undefined);
});

/** Returns a random value in which the words of documents appear in any place. */
function createDocument({ below, pick }: Random): unknown {
  const words = [
    ..."openapi swagger paths get post parameters requestBody content schema $ref allOf oneOf items properties".split(
      " ",
    ),
    ..."type required enum name in path query header cookie body formData components schemas security tags".split(" "),
    ..."responses 200 application/json multipart/form-data encoding style explode operationId summary consumes".split(
      " ",
    ),
    ..."definitions nullable default example examples pattern minimum exclusiveMinimum additionalProperties".split(" "),
  ];
  const values = [
    ...[
      "3.0.0",
      "3.1.0",
      "2.0",
      "string",
      "object",
      "array",
      "#/components/schemas/A",
      "#/paths",
      "#",
      "/a/{id}",
      "id",
    ],
    ...[null, true, false, 0, -1, 1.5, "", [], {}, "(", "deepObject", "binary", "\ud800"],
  ];
  const random = () => below(1000) / 1000;
  const make = (depth: number): unknown => {
    const kind = depth > 6 ? 0 : random();
    if (kind < 0.35) return pick(values);
    const length = Math.floor(random() * 5);
    if (kind < 0.5) return Array.from({ length }, () => make(depth + 1));
    return Object.fromEntries(
      Array.from({ length }, () => [pick<string>([...words, "/a", "/b/{id}", "A"]), make(depth + 1)]),
    );
  };
  const item = () => ({
    [pick(["get", "post", "put"])]: {
      operationId: make(5),
      parameters: random() < 0.5
        ? make(3)
        : [{ name: "id", in: pick(["path", "query", "body", "formData"]), schema: make(3), type: make(5) }],
      requestBody: random() < 0.5
        ? make(3)
        : { content: { [pick(["application/json", "multipart/form-data", "text/plain"])]: { schema: make(3) } } },
      responses: make(3),
      security: make(4),
    },
  });
  return {
    [pick(["openapi", "swagger"])]: pick(["3.0.0", "3.1.0", "3.2.0", "2.0"]),
    paths: random() < 0.1 ? make(3) : { "/a/{id}": random() < 0.1 ? make(3) : item(), "/b": item() },
    components: { schemas: { A: make(2), B: make(2) }, parameters: make(3), securitySchemes: make(3) },
    definitions: make(3),
    parameters: make(3),
    responses: make(3),
  };
}

Deno.test("hostile: no document makes anything but an API or a TypeError with words, and no call does more than fail", async () => {
  const random = createRandom(53);
  for (let i = 0; i < 500; i++) {
    const document = createDocument(random);
    const shown = () => `${i} ${JSON.stringify(document)}`;
    let api;
    try {
      api = openapi(document as object, { fetch, output: "check", flatten: i % 2 === 0 });
    } catch (error) {
      assert(error instanceof TypeError && /^Cannot /.test(error.message), `${error} ${shown()}`);
      continue;
    }
    for (const handler of api.handlers) {
      const { run } = handler as unknown as { run: (input: object, ctx: object) => Promise<object> };
      const ctx = { signal: new AbortController().signal, progress: () => Promise.resolve() };
      for (const value of ["x", 1, null, [], {}, [{ a: 1 }], { a: [null] }]) {
        const args = { id: value, body: value, id_path: value, id_query: value };
        const failed = await run(args, ctx).then(() => undefined, (error) => error);
        assert(
          failed === undefined || failed instanceof ToolError,
          `${failed?.stack} ${JSON.stringify(args)} ${shown()}`,
        );
      }
    }
  }
});

Deno.test("hostile: no pattern of a document takes a time that grows faster than the text", async () => {
  const slow = [
    ...["^a*a*$", "a*a*$", "^a*a*a*$", "a*b", "a+$", "^(a?){30}a{30}$", "^(a|b|ab)*$", "^(a{0,9}){0,20}$", "^(a*)\\1$"],
    ...["^a?a?a?a?a?a?a?a?a?a?a?a?$", "^a{0,99}a{0,99}a{0,99}$", "^a*a{5000}$", "a{5000}", "^(a{50}){9}|b", "^a*?a*?$"],
    ...["^(?<x>a+)+$", "^(?:(?=a+)a)*$", "^(a+b?)+$", "^((a+))+$", "^\\p{L}*\\p{L}*$"],
  ];
  const fast = [
    ...["^[a-z]+$", "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?(Z|[+-]\\d{2}:\\d{2})$", "^(a|b)$", "abc"],
    ...["^[0-9a-f]{8}(-[0-9a-f]{4})(-[0-9a-f]{4})$", "^\\p{L}{1,64}$", "^(ab)*$", "^https?://[^ ]+$", "^[(*+?|]*$"],
  ];
  const toSchemas = (patterns: readonly string[], more: object) =>
    patterns.map((pattern, i) => [`p${i}`, { type: "string", pattern, ...more }] as const);
  const list = async (properties: ReturnType<typeof toSchemas>) => {
    const schema = { type: "object", properties: Object.fromEntries(properties) };
    const api = openapi(toDocument({ a: post(schema) }), { fetch });
    await using client = await connectTest(createServer({ name: "s", version: "1.0.0", handlers: [api] }));
    const [{ inputSchema }] = await client.listTools();
    const { body } = Object(inputSchema.properties);
    return properties.filter(([name]) => "pattern" in body.properties[name]).map(([, { pattern }]) => pattern);
  };
  assertEquals(await list(toSchemas(slow, {})), []);
  assertEquals(await list(toSchemas(fast, {})), fast);
  // The length of the text limits the time too.
  const pairs = ["^[a-z]+-[a-z]+$", "[a-z]+"];
  assertEquals(await list(toSchemas(pairs, { maxLength: 30 })), pairs);
  assertEquals(await list(toSchemas(pairs, { maxLength: 3000 })), []);
});

Deno.test("hostile: long names, and many equal names, cost little", async () => {
  const long = `a${"_".repeat(100_000)}!a`;
  const query = (name: string, more: object = {}) => ({ name, in: "query", schema: { type: "string" }, ...more });
  const toEqual = (count: number) => {
    const keys = Array.from({ length: count }, (_, i) => `s${i}`);
    const schemas = Object.fromEntries(keys.map((key) => [key, { properties: { same: { type: "string" } } }]));
    // All of these names become `p`.
    const parameters = keys.map((key, i) =>
      query(`p${String.fromCodePoint(0x4e00 + i)}`, { schema: { $ref: `#/components/schemas/${key}/properties/same` } })
    );
    return read(toDocument({ a: { parameters } }, { components: { schemas } }));
  };
  const short = toDocument({ a: { parameters: [query("a")] } }, { info: { title: "a" } });
  const document = toDocument({ [long]: { path: "/a", parameters: [query(long)] } }, { info: { title: long } });
  assert(/^a_\w{8}$/.test(read(document).operations[0].name));
  const costs = await compareCosts(
    { document: () => read(document), short: () => read(short), one: () => toEqual(1500), two: () => toEqual(3000) },
    ({ document, short, one, two }) => document <= short + one && two <= 3 * one,
  );
  assertEquals(costs, undefined);
});

Deno.test("hostile: parts that many operations share cannot multiply a document", () => {
  const paths = (count: number, item: object) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`/p${i}`, item]));
  const properties = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, {}]));
  const schema = { type: "object", properties: properties(1000) };
  const parameters = { big: { in: "body", name: "body", description: "x".repeat(1_000_000) } };
  const post = { post: { parameters: [{ $ref: "#/parameters/big" }] } };
  assertThrows(() => read({ swagger: "2.0", parameters, paths: paths(500, post) }), TypeError, sentence("50000000"));
  const base = { post: { requestBody: { content: { "application/json": { schema } } } } };
  const shared = { ...paths(400, { $ref: "#/paths/~1base" }), "/base": base };
  assertThrows(() => read({ openapi: "3.1.0", paths: shared }), TypeError, sentence("300000"));
});

Deno.test("hostile: a schema to which the number of ways doubles on each level leaves its operation out", () => {
  const levels = Array.from({ length: 20 }, (_, i) => [`L${i}`, { allOf: [ref(`L${i + 1}`), ref(`L${i + 1}`)] }]);
  const L20 = { type: "object", properties: { "X-Key": { type: "string" } } };
  const document = toDocument({ a: { ...post(ref("L0")), security: [{ key: [] }] }, b: post(ref("L0")) }, {
    components: {
      schemas: { ...Object.fromEntries(levels), L20 },
      securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } },
    },
  });
  const { operations } = openapi(document, { fetch, auth: { key: () => "k" } });
  assertEquals(operations.map(({ reason }) => reason), [sentence("body.X-Key"), undefined]);
});

Deno.test("hostile: many spellings of a reference cost as much as one", async () => {
  const spell = (i: number) =>
    Array.from("reference", (c, at) => i >> at & 1 ? `%${c.charCodeAt(0).toString(16)}` : c).join("");
  const properties = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`p${i}`, {}]));
  const make = (spellings: number) => {
    const allOf = Array.from({ length: 400 }, (_, i) => ref(spell(i % spellings)));
    // The form is refused as soon as its fields are known.
    const content = { "multipart/form-data": { schema: { type: "string", allOf } } };
    const parts = { components: { schemas: { reference: { properties } } } };
    read(toDocument({ a: { method: "post", requestBody: { content } } }, parts));
  };
  const costs = await compareCosts({ one: () => make(1), all: () => make(400) }, ({ one, all }) => all <= 5 * one, {
    rounds: 20,
  });
  assertEquals(costs, undefined);
});
