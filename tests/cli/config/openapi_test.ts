// APIs with an OpenAPI document in config files, and the documents that `mcp openapi` reads.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { findRequiredPermissions } from "../../../src/cli/config/required_permissions.ts";
import { CliError } from "../../../src/cli/cli_error.ts";
import { load } from "../../../src/cli/load.ts";
import { readSource, surveyApi } from "../../../src/cli/openapi/survey.ts";
import { withFolder, withServer } from "../folder.ts";
import { withApi } from "../../ready/api.ts";
import { withEnvironment } from "../../support/environment.ts";
import { sentence } from "../../support/messages.ts";
import { toDocument } from "../../openapi/echo.ts";

const bearer = { components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } } };
const secured = { security: [{ token: [] }] };
const pets = toDocument({
  listPets: { path: "/pets", tags: ["pets"] },
  addPet: { path: "/pets", method: "post", tags: ["pets"] },
  listKeys: { path: "/keys", tags: ["admin"], ...secured },
}, bearer);
const yaml = `openapi: 3.0.3
info: { title: Yaml }
paths:
  /a:
    get: &shared { operationId: readA }
  /b:
    get: { <<: *shared, operationId: readB }
`;

/** Returns a config file with one API. */
const toConfig = (api: object, more: object = {}) => ({
  name: "here",
  openapi: [{ document: "api.json", baseUrl: "https://api.example.com/v1", ...api }],
  ...more,
});

/** Returns the names of the tools of a config file with one API. */
async function listTools(document: unknown, api: object, more?: object): Promise<readonly string[]> {
  let names: readonly string[] = [];
  await withServer({ "mcp.jsonc": toConfig(api, more), "api.json": document }, async (client) => {
    names = (await client.listTools()).map(({ name }) => name);
  });
  return names;
}

/** Returns the message of the error with which a config file with one API is rejected. */
async function findError(document: unknown, api: object): Promise<string> {
  const { message } = await assertRejects(() => listTools(document, api), CliError);
  return message;
}

Deno.test("a config file serves an API with a credential and a base URL from variables", async () => {
  const sent: string[] = [];
  await withApi((request) => {
    sent.push(`${request.method} ${new URL(request.url).pathname} ${request.headers.get("authorization")}`);
    return Response.json([]);
  }, async (host) => {
    const api = {
      baseUrl: "http://${OPENAPI_TEST_HOST}/v1",
      auth: { token: "${OPENAPI_TEST_TOKEN}" },
      allowPrivate: [host],
    };
    await withEnvironment({ OPENAPI_TEST_HOST: host, OPENAPI_TEST_TOKEN: "secret" }, async () => {
      await withServer({ "mcp.jsonc": toConfig(api), "api.json": pets }, async (client) => {
        await client.callTool("listKeys");
        await client.callTool("addPet");
      });
    });
  });
  assertEquals(sent, ["GET /v1/keys Bearer secret", "POST /v1/pets null"]);
});

Deno.test("an API of a config file serves the operations that match all lists", async () => {
  const auth = { token: "x" };
  for (
    const [api, names] of [
      [{ auth }, ["listPets", "addPet", "listKeys"]],
      [{}, ["listPets", "addPet"]],
      // An empty credential counts as missing.
      [{ auth: { token: "${OPENAPI_TEST_UNSET:-}" } }, ["listPets", "addPet"]],
      [{ auth, readOnly: true }, ["listPets", "listKeys"]],
      [{ auth, tags: ["admin", "pets"], methods: ["GET"] }, ["listPets", "listKeys"]],
      [{ auth, tags: ["pets"], operations: ["addPet", "listKeys"] }, ["addPet"]],
    ] as const
  ) {
    assertEquals(await listTools(pets, api), names, JSON.stringify(api));
  }
  assertEquals(await listTools(yaml, {}), ["readA", "readB"]);
});

Deno.test("a document without security schemes gets the HTTP schemes that a config file names", async () => {
  const { components: _components, ...open } = Object(pets);
  const sent: (string | null)[] = [];
  await withApi((request) => {
    sent.push(request.headers.get("authorization"));
    return new Response("ok");
  }, async (host) => {
    for (const auth of [{ bearer: "abc" }, { basic: "ada:secret" }]) {
      const api = { baseUrl: `http://${host}`, auth, allowPrivate: [host] };
      await withServer({ "mcp.jsonc": toConfig(api), "api.json": open }, async (client) => {
        await client.callTool("listPets");
      });
    }
  });
  assertEquals(sent, ["Bearer abc", `Basic ${btoa("ada:secret")}`]);
  assertEquals(await findError(open, { auth: { token: "x" } }), sentence("token", "bearer"));
});

Deno.test("an API of a config file that cannot be served is rejected with its position", async () => {
  const swagger = { swagger: "2.0", info: {}, paths: { "/a": { get: {} } } };
  for (
    const [document, api, ...names] of [
      [pets, { tags: ["pet"] }, "openapi[0].tags[0]", "pets?"],
      [pets, { operations: ["listPets", "x"] }, "openapi[0].operations[1]"],
      [pets, { auth: { tokn: "x" } }, "openapi[0].auth.tokn", "token?"],
      [pets, { auth: { token: "${OPENAPI_TEST_UNSET}" } }, "OPENAPI_TEST_UNSET"],
      [pets, { auth: { token: "${OPENAPI_TEST_UNSET:-}" }, tags: ["admin"] }, "openapi[0]", "token is empty"],
      [pets, { tags: ["admin"] }, "openapi[0]", "needs credentials"],
      [pets, { baseUrl: "https://api.example.com/{{id}}" }, "openapi[0].baseUrl", "{{id}}"],
      [pets, { baseUrl: "ftp://api.example.com" }, "openapi[0]", "baseUrl"],
      [pets, { document: "gone.json" }, "openapi[0].document", "gone.json"],
      [pets, { document: "../api.json" }, "openapi[0].document", "leads out"],
      [pets, { select: [] }, "select"],
      [pets, { methods: ["get"] }, "methods"],
      [swagger, { auth: { bearer: "x" } }, "openapi[0].auth.bearer"],
      ["a: [", {}, "openapi[0]", "YAML"],
      ["[]", {}, "openapi[0]", "object"],
      [{ paths: {} }, {}, "openapi[0]", "neither openapi"],
    ] as const
  ) {
    assertEquals(await findError(document, api), sentence(...names));
  }
});

Deno.test("a config file with more than 128 operations needs a search or a selection", async () => {
  const many = toDocument(
    Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`op${i}`, { tags: [`t${i % 2}`] }])),
  );
  const start = async (api: object, more: object) => {
    await withFolder({ "mcp.jsonc": toConfig(api, more), "api.json": many }, async (folder) => {
      const { server } = await load(`${folder}/mcp.jsonc`);
      try {
        await server.ready();
      } finally {
        await server.close();
      }
    });
  };
  await assertRejects(() => start({}, {}), Error, sentence("129 tools", "search: true"));
  await start({}, { search: true });
  await start({ tags: ["t0", "t1"] }, {});
});

Deno.test("an API of a config file gets the permission for one host, its document and its variables", async () => {
  const config = toConfig({ baseUrl: "https://api.example.com/v1", auth: { token: "${API_TOKEN}" } });
  await withFolder({ "mcp.jsonc": config, "api.json": pets }, async (folder) => {
    assertEquals((await findRequiredPermissions("mcp.jsonc", `${folder}/mcp.jsonc`)).permissions, {
      read: [`${folder}/mcp.jsonc`, `${folder}/api.json`],
      run: [],
      env: ["API_TOKEN"],
      net: ["api.example.com:443"],
    });
  });
});

const everything = { tags: [], isReadOnly: false, allowPrivate: [] };

Deno.test("mcp openapi reads a document from a URL of this machine only if the host is allowed", async () => {
  await withApi(({ url }) => {
    const { pathname } = new URL(url);
    if (pathname === "/moved") return Response.redirect(new URL("/spec", url));
    return pathname === "/spec" ? new Response(yaml) : new Response("gone", { status: 404 });
  }, async (host) => {
    const read = async (path: string, allowPrivate: readonly string[]) => {
      const source = await readSource(`http://${host}${path}`, allowPrivate);
      return surveyApi(source, everything).tools.map(({ name }) => name);
    };
    const { message } = await assertRejects(() => read("/spec", []), CliError);
    assertEquals(message.replaceAll(host, "HOST"), sentence("--allow-private"));
    assertEquals(await read("/moved", [host]), ["readA", "readB"]);
    const missing = await assertRejects(() => read("/x", [host]), CliError);
    assertEquals([missing.exitCode, missing.message.replaceAll(host, "HOST")], [1, sentence("404")]);
  });
});

Deno.test("mcp openapi finds what a server for a document needs", () => {
  const document = {
    ...pets,
    info: { title: "Pet-Store API (v2)", version: "2" },
    servers: [{ url: "/v2" }, { url: "https://{tenant}.example.com" }],
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        "apiKey v1": { type: "apiKey", in: "header", name: "x-key" },
        cert: { type: "mutualTLS" },
      },
    },
  };
  const source = {
    name: "https://example.com/api/spec.json",
    isUrl: true,
    isBundled: false,
    bytes: new Uint8Array(),
    document,
  };
  const { name, servers, schemes, tools, leftOut, needsSearch } = surveyApi(source, {
    ...everything,
    isReadOnly: true,
  });
  assertEquals([name, needsSearch], ["pet_store_api_v2", false]);
  assertEquals(servers, ["https://example.com/v2", "https://{tenant}.example.com"]);
  assertEquals(schemes.map(({ name, credential }) => [name, credential]), [["token", "a token"], [
    "apiKey v1",
    "a key",
  ]]);
  assertEquals([tools, leftOut].map((all) => all.map(({ id }) => id)), [["listPets", "listKeys"], ["addPet"]]);
  assertThrows(() => surveyApi(source, { ...everything, tags: ["pet"] }), CliError, sentence("tag pet", "pets?"));
  assertThrows(() => surveyApi(source, { ...everything, baseUrl: "x" }), CliError, sentence("--base-url"));
});
