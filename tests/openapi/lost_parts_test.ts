// No document loses a part without a word: an operation with a part that is missing, or that cannot be sent, is left out
// with a reason that names the part.
import { assert, assertEquals } from "@std/assert";
import { openapi, readOpenApi } from "../../src/ready/openapi/openapi.ts";
import { sentence } from "../support/messages.ts";
import { toDocument, withEcho } from "./echo.ts";

const fetch = () => new Response();
const reasons = (document: object) => openapi(document, { fetch }).operations.map(({ reason }) => reason);
const body = { content: { "application/json": { schema: { type: "object" } } } };

/** Operations that lose a part, each with a word of its reason. Each also has a parameter that can be read. */
const LOST: Readonly<Record<string, readonly [operation: object, word: string]>> = {
  "a parameter in another file": [{ parameters: [{ $ref: "shared/params.json#/Limit" }] }, "shared/params.json#/Limit"],
  "a parameter of another server": [
    { parameters: [{ $ref: "https://api.example.com/openapi.json#/components/parameters/Limit" }] },
    "https://api.example.com",
  ],
  "a parameter that nobody has written": [{ parameters: [{ $ref: "#/components/parameters/Gone" }] }, "Gone"],
  "a reference to a text": [{ parameters: [{ $ref: "#/info/title" }] }, "#/info/title"],
  "a reference to itself": [{ parameters: [{ $ref: "#/components/parameters/Loop" }] }, "Loop"],
  "a chain that ends nowhere": [{ parameters: [{ $ref: "#/components/parameters/Chain" }] }, "Gone"],
  "a place of version 2.0": [{ parameters: [{ in: "formData", name: "a", type: "string" }] }, "formData"],
  "a body as a parameter": [{ parameters: [{ in: "body", name: "pet", schema: {} }] }, '"pet"'],
  "a place in capital letters": [{ parameters: [{ in: "HEADER", name: "X-A" }] }, "HEADER"],
  "no place": [{ parameters: [{ name: "page" }] }, "page"],
  "no name": [{ parameters: [{ in: "query", schema: {} }] }, "name"],
  "a number as the name": [{ parameters: [{ in: "query", name: 4 }] }, "4"],
  "a parameter that is a text": [{ parameters: ["limit"] }, "limit"],
  "parameters by name": [{ parameters: { limit: { in: "query", name: "limit" } } }, "parameters"],
  "a parameter whose content is a list": [{ parameters: [{ in: "query", name: "q", content: [] }] }, '"q"'],
  "content behind a broken reference": [
    { parameters: [{ in: "query", name: "q", content: { "application/json": { $ref: "#/nowhere" } } }] },
    "#/nowhere",
  ],
  "a body in another file": [{ requestBody: { $ref: "../bodies.yaml#/Pet" } }, "../bodies.yaml#/Pet"],
  "a body that is a list": [{ requestBody: [body] }, "body"],
  "a body without media types": [{ requestBody: { required: true } }, "body"],
  "a body whose content is a list": [{ requestBody: { content: [body] } }, "body"],
  "a media type behind a broken reference": [
    { requestBody: { content: { "application/json": { $ref: "#/components/mediaTypes/Gone" } } } },
    "Gone",
  ],
  "credentials by name": [{ security: { key: [] } }, "security"],
  "credentials as texts": [{ security: ["key"] }, "security"],
};

for (const [kind, [operation, word]] of Object.entries(LOST)) {
  Deno.test(`${kind}: the operation is left out with a reason`, () => {
    const { parameters = [], ...rest } = operation as { parameters?: unknown };
    const known = { in: "query", name: "known", schema: {} };
    const document = toDocument({
      a: { method: "post", ...rest, parameters: Array.isArray(parameters) ? [known, ...parameters] : parameters },
      whole: { method: "post", parameters: [known] },
    }, {
      components: {
        securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } },
        parameters: {
          Loop: { $ref: "#/components/parameters/Loop" },
          Chain: { $ref: "#/components/parameters/Gone" },
        },
      },
    });
    const [reason, other] = reasons(document);
    assert(reason?.includes(word), `${reason}`);
    assertEquals(other, undefined);
  });
}

Deno.test("what a path shares with its operations counts as a part of each of them", () => {
  const operations = { get: {}, post: { requestBody: body } };
  const lost = (item: object) => reasons({ openapi: "3.0.3", paths: { "/a": item, "/b": operations } });
  const shared = { parameters: [{ $ref: "#/components/parameters/Gone" }] };
  assertEquals(lost({ ...operations, ...shared }), [sentence("Gone"), sentence("Gone"), undefined, undefined]);
  // The operations of a path that is not in the document are not known, but the path is listed.
  const gone = { $ref: "./paths/pets.yaml" };
  assertEquals(lost(gone), [sentence("pets.yaml"), undefined, undefined]);
  assertEquals(lost({ ...gone, get: {} }), [sentence("pets.yaml"), undefined, undefined]);
  assertEquals(lost("text" as never), [sentence("path"), undefined, undefined]);
  assertEquals(lost(null as never), [undefined, undefined]);
  assertEquals(lost({ GET: {} }), [sentence("get"), undefined, undefined]);
  assertEquals(lost({ get: "listPets" }), [sentence("not an object"), undefined, undefined]);
});

Deno.test("an author's selection does not hide a path that cannot be read", () => {
  const document = {
    openapi: "3.1.0",
    paths: { "/a": { $ref: "other.json#/a" }, "/b": { get: { tags: ["b"] }, post: { parameters: 4 } } },
  };
  const { operations } = openapi(document, { fetch, as: ({ tags }) => tags.includes("b") ? "tool" : "none" });
  assertEquals(operations.map(({ method, reason }) => [method, reason]), [
    ["*", sentence("other.json#/a")],
    ["GET", undefined],
    ["POST", undefined],
  ]);
  assertEquals(readOpenApi(document).operations.map(({ method, path }) => `${method} ${path}`), [
    "* /a",
    "GET /b",
    "POST /b",
  ]);
});

Deno.test("references within the document lead to every kind of part", async () => {
  const limit = { name: "limit", in: "query", schema: { type: "integer" } };
  const document = {
    openapi: "3.1.0",
    "x-operations": { list: { operationId: "list", parameters: [{ $ref: "#/paths/~1other/get/parameters/0" }] } },
    components: {
      pathItems: { Shared: { post: { operationId: "shared", requestBody: { $ref: "#/x-body" } } } },
    },
    "x-body": { required: true, ...body },
    paths: {
      "/pets": { get: { $ref: "#/x-operations/list" } },
      "/other": { get: { operationId: "other", parameters: [limit] } },
      "/shared": { $ref: "#/components/pathItems/Shared" },
    },
  };
  await withEcho(document, {}, async ({ send, call }) => {
    assertEquals((await send("list", { limit: 3 })).target, "/pets?limit=3");
    assertEquals((await send("shared", { body: { a: 1 } })).body, '{"a":1}');
    assert((await call("shared")).isError);
  });
});

Deno.test("parameters of version 2.0 are found by any reference within the document", async () => {
  const page = { name: "page", in: "query", type: "integer" };
  const document = {
    swagger: "2.0",
    info: { title: "Old", version: "1" },
    parameters: { Page: page, Alias: { $ref: "#/parameters/Page" }, Pet: { name: "pet", in: "body", schema: {} } },
    "x-common": { size: { name: "size", in: "query", type: "integer" } },
    paths: {
      "/a": { get: { operationId: "chain", parameters: [{ $ref: "#/parameters/Alias" }] } },
      "/b": { get: { operationId: "extension", parameters: [{ $ref: "#/x-common/size" }] } },
      "/c": { get: { operationId: "operation", parameters: [{ $ref: "#/paths/~1d/post/parameters/1" }] } },
      "/d": {
        post: {
          operationId: "body",
          parameters: [{ $ref: "#/parameters/Pet" }, { name: "sort", in: "query", type: "string" }],
        },
      },
      "/e": { $ref: "#/x-paths/e" },
      "/f": { post: { operationId: "gone", parameters: [{ $ref: "#/parameters/Gone" }] } },
      "/g": { get: { operationId: "cookie", parameters: [{ name: "c", in: "cookie", type: "string" }] } },
      "/h": { $ref: "h.json" },
    },
    "x-paths": { e: { parameters: [{ $ref: "#/parameters/Pet" }], put: { operationId: "path" } } },
  };
  await withEcho(document, {}, async ({ api, send }) => {
    assertEquals((await send("chain", { page: 1 })).target, "/a?page=1");
    assertEquals((await send("extension", { size: 2 })).target, "/b?size=2");
    assertEquals((await send("operation", { sort: "x" })).target, "/c?sort=x");
    assertEquals((await send("body", { body: [1] })).body, "[1]");
    assertEquals((await send("path", { body: [2] })).body, "[2]");
    assertEquals(api.operations.flatMap(({ reason }) => reason ?? []), [
      sentence("#/parameters/Gone"),
      sentence("cookie"),
      sentence("h.json"),
    ]);
  });
});

Deno.test("a missing schema is any value, and missing responses are none", async () => {
  const gone = { $ref: "#/components/schemas/Gone" };
  const document = toDocument({
    a: {
      method: "post",
      parameters: [{ name: "q", in: "query", schema: gone }],
      requestBody: { content: { "application/json": { schema: gone } } },
      responses: { 200: { $ref: "responses.yaml#/Ok" }, default: { $ref: "#/gone" } },
    },
  });
  await withEcho(document, { output: "strict" }, async ({ send }) => {
    const { target, body } = await send("a", { q: "x", body: [1] });
    assertEquals([target, body], ["/a?q=x", "[1]"]);
  });
});
