// Documents in the form that FastAPI, NestJS, Spring and ASP.NET write: their files, forms, nullable values, large
// integers and query objects.
import { assert, assertEquals } from "@std/assert";
import { ref, withEcho } from "./echo.ts";
import { compareRequest } from "./reader/reader.ts";
import { tryDocument } from "./try_document.ts";

const ok = { "200": { description: "OK" } };
const FORM = "multipart/form-data";
const toContent = (schema: object, type = "application/json") => ({ content: { [type]: { schema } } });
const toBody = (schema: object, type?: string) => ({ required: true, ...toContent(schema, type) });
const nullable = (schema: object) => ({ anyOf: [schema, { type: "null" }] });

const upload = { type: "string", contentMediaType: "application/octet-stream" };

const fastapi = {
  openapi: "3.1.0",
  info: { title: "FastAPI", version: "0.1.0" },
  paths: {
    "/items/{item_id}": {
      put: {
        summary: "Update Item",
        operationId: "update_item_items__item_id__put",
        parameters: [
          { name: "item_id", in: "path", required: true, schema: { type: "integer", title: "Item Id" } },
          {
            name: "q",
            in: "query",
            required: false,
            schema: { ...nullable({ type: "array", items: { type: "string" } }), title: "Q" },
          },
          {
            name: "ads_id",
            in: "cookie",
            required: false,
            schema: { ...nullable({ type: "string" }), title: "Ads Id" },
          },
          { name: "x-token", in: "header", required: true, schema: { type: "string", title: "X-Token" } },
        ],
        requestBody: toBody(ref("Item")),
        responses: ok,
      },
    },
    "/upload": {
      post: {
        summary: "Create Upload",
        operationId: "create_upload_upload_post",
        requestBody: toBody(ref("Body_create_upload_upload_post"), FORM),
        responses: ok,
      },
    },
  },
  components: {
    schemas: {
      Item: {
        properties: {
          name: { type: "string", title: "Name" },
          price: { anyOf: [{ type: "number" }, { type: "string", pattern: "^\\d+(\\.\\d+)?$" }], title: "Price" },
          tags: { items: { type: "string" }, type: "array", uniqueItems: true, title: "Tags", default: [] },
          parent: nullable(ref("Item")),
        },
        type: "object",
        required: ["name"],
        title: "Item",
      },
      Body_create_upload_upload_post: {
        properties: {
          file: { ...upload, title: "File" },
          cover: { ...nullable(upload), title: "Cover" },
          files: { items: upload, type: "array", title: "Files" },
          token: { type: "string", title: "Token" },
        },
        type: "object",
        required: ["file", "token"],
        title: "Body_create_upload_upload_post",
      },
    },
  },
};

const nest = {
  openapi: "3.0.0",
  info: { title: "Cats", version: "1.0" },
  servers: [],
  tags: [],
  paths: {
    "/cats/{id}": {
      patch: {
        operationId: "CatsController_update",
        parameters: [
          { name: "id", required: true, in: "path", schema: { type: "string" } },
          {
            name: "expand",
            required: false,
            in: "query",
            schema: { type: "array", items: { type: "string", enum: ["owner", "toys"] } },
          },
        ],
        requestBody: toBody(ref("UpdateCatDto")),
        responses: ok,
      },
    },
    "/cats/picture": {
      post: {
        operationId: "CatsController_upload",
        parameters: [],
        requestBody: toBody({
          type: "object",
          properties: {
            file: { type: "string", format: "binary" },
            more: { type: "array", items: { type: "string", format: "binary" } },
            comment: { type: "string", nullable: true },
          },
        }, FORM),
        responses: ok,
      },
    },
  },
  components: {
    schemas: {
      CatDto: {
        type: "object",
        properties: { id: { type: "string", readOnly: true }, name: { type: "string" } },
        required: ["id", "name"],
      },
      UpdateCatDto: {
        allOf: [ref("CatDto"), { type: "object", properties: { owner: { nullable: true, allOf: [ref("CatDto")] } } }],
      },
    },
  },
};

const spring = {
  openapi: "3.1.0",
  info: { title: "OpenAPI definition", version: "v0" },
  servers: [{ url: "http://localhost:8080", description: "Generated server url" }],
  paths: {
    "/orders": {
      get: {
        tags: ["order-controller"],
        operationId: "list",
        // A query object without @ParameterObject.
        parameters: [{ name: "pageable", in: "query", required: true, schema: ref("Pageable") }],
        responses: { "200": { description: "OK", content: { "*/*": { schema: { type: "object" } } } } },
      },
      post: {
        tags: ["order-controller"],
        operationId: "create",
        parameters: [{ name: "customerId", in: "query", required: true, schema: { type: "integer", format: "int64" } }],
        requestBody: toBody(ref("Order")),
        responses: ok,
      },
    },
    "/orders/{id}/invoice": {
      put: {
        tags: ["order-controller"],
        operationId: "upload",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer", format: "int64" } }],
        requestBody: {
          content: {
            "multipart/form-data": {
              schema: {
                type: "object",
                properties: { meta: ref("Order"), file: { type: "string", format: "binary" } },
                required: ["file", "meta"],
              },
              encoding: { meta: { contentType: "application/json" } },
            },
          },
        },
        responses: ok,
      },
    },
  },
  components: {
    schemas: {
      Pageable: {
        type: "object",
        properties: {
          page: { type: "integer", format: "int32", minimum: 0 },
          size: { type: "integer", format: "int32", minimum: 1 },
          sort: { type: "array", items: { type: "string" } },
        },
      },
      Order: {
        type: "object",
        properties: {
          id: { type: "integer", format: "int64", readOnly: true },
          total: { type: "number", minimum: -9223372036854775808 },
          lines: { type: "array", items: { type: "object", additionalProperties: { type: "string" } } },
        },
        required: ["id", "total"],
      },
    },
  },
};

const digits = { pattern: "^-?(?:0|[1-9]\\d*)$", type: ["integer", "string"] };

const aspnet = {
  openapi: "3.1.1",
  info: { title: "Shop | v1", version: "1.0.0" },
  servers: [{ url: "http://localhost:5000/" }],
  paths: {
    "/todos/{id}": {
      put: {
        tags: ["Todos"],
        parameters: [
          { name: "id", in: "path", required: true, schema: { ...digits, format: "int64" } },
          { name: "If-Match", in: "header", schema: { type: "string" } },
        ],
        requestBody: {
          content: {
            "application/json": { schema: { oneOf: [{ type: "null" }, ref("Todo")] } },
            "text/json": { schema: ref("Todo") },
            "application/*+json": { schema: ref("Todo") },
          },
        },
        responses: ok,
      },
    },
    "/files": {
      post: {
        tags: ["Files"],
        requestBody: toBody({
          required: ["file"],
          type: "object",
          allOf: [
            { type: "object", properties: { file: ref("IFormFile") } },
            { type: "object", properties: { files: ref("IFormFileCollection"), name: { type: ["null", "string"] } } },
          ],
        }, FORM),
        responses: ok,
      },
    },
    "/login": {
      post: {
        tags: ["Login"],
        requestBody: toContent({
          type: "object",
          properties: { user: { type: "string" }, roles: { type: "array", items: { type: "string" } } },
        }, "application/x-www-form-urlencoded"),
        responses: ok,
      },
    },
  },
  components: {
    schemas: {
      Todo: {
        required: ["title"],
        type: "object",
        properties: {
          id: { ...digits, format: "int32" },
          title: { type: ["null", "string"] },
          due: { type: "string", format: "date-time" },
        },
      },
      IFormFile: { type: "string", format: "binary" },
      IFormFileCollection: { type: "array", items: ref("IFormFile") },
    },
  },
};

for (const [name, document] of Object.entries({ fastapi, nest, spring, aspnet })) {
  Deno.test(`the two readers agree on a document of ${name}`, async () => {
    const { figures, differences, uncalled, reasons } = await tryDocument(structuredClone(document));
    assertEquals([differences, uncalled, reasons], [[], [], []]);
    assertEquals(figures.called, figures.operations);
  });
}

/** A call, with texts that its request must contain. */
const CALLS: readonly (readonly [document: object, tool: string, args: object, words: readonly string[]])[] = [
  [fastapi, "create_upload_upload_post", {
    body: { file: "aGk=", cover: "data:image/png;name=c.png;base64,aGk=", files: ["aGk="], token: "t" },
  }, [
    'name="file"; filename="file"',
    'name="cover"; filename="c.png"',
    'name="files"; filename="files"',
    "image/png",
  ]],
  [fastapi, "update_item_items__item_id__put", {
    item_id: 3,
    q: ["a", "b"],
    "x-token": "t",
    body: { name: "x", parent: null },
  }, [
    "/items/3?q=a&q=b",
    '{"name":"x","parent":null}',
  ]],
  [nest, "CatsController_upload", { body: { file: "aGk=", more: ["aGk=", "aG8="], comment: null } }, [
    'name="more"; filename="more"',
  ]],
  [nest, "CatsController_update", { id: "1", expand: ["toys"], body: { name: "Tom", owner: null } }, [
    "?expand=toys",
    '{"name":"Tom","owner":null}',
  ]],
  [spring, "list", { pageable: { page: 2, sort: ["name", "id"] } }, ["/orders?page=2&sort=name"]],
  [spring, "create", { customerId: "9223372036854775807", body: { total: 1, lines: [{ a: "b" }] } }, [
    "customerId=9223372036854775807",
  ]],
  [spring, "upload", { id: 1, body: { file: "aGk=", meta: { total: 2 } } }, [
    "application/json",
    '{"total":2}',
    'filename="file"',
  ]],
  [aspnet, "put_todos_id", { id: "9223372036854775807", body: { title: "x", id: "7" } }, [
    "/todos/9223372036854775807",
  ]],
  [aspnet, "post_files", { body: { file: "aGk=", files: ["aGk="], name: "n" } }, [
    'name="file"; filename="file"',
    'name="files"; filename="files"',
  ]],
  [aspnet, "post_login", { body: { user: "ada", roles: ["a", "b"] } }, ["user=ada&roles=a&roles=b"]],
];

for (const [document, name, args, words] of CALLS) {
  Deno.test(`${name} sends what the framework reads`, async () => {
    await withEcho(document, {}, async ({ api, send }) => {
      const { target, headers, body } = await send(name, args as Readonly<Record<string, unknown>>);
      const whole = `${target}\n${JSON.stringify(headers)}\n${body}`;
      for (const word of words) assert(whole.includes(word), `${word} is not in ${whole}`);
      const { method, path } = api.operations.find((each) => each.name === name) ?? { method: "", path: "" };
      const request = {
        method,
        url: new URL(target, "http://a"),
        headers: new Headers(
          Object.entries(headers).filter(([key]) =>
            !/^(host|accept.*|connection|user-agent|content-length|transfer-encoding)$/.test(key)
          ),
        ),
        body: Uint8Array.from(body, (character) => character.charCodeAt(0)),
      };
      const differences = await compareRequest(request, {
        document: document as never,
        method,
        path,
        basePath: "",
        args: args as never,
      });
      assertEquals(differences, []);
    });
  });
}
