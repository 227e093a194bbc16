// Prism, a mock server for OpenAPI documents, accepts the requests of all operations of three published documents.
import { assert, assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { openapi, readOpenApi } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { findPackages } from "../support/npm_packages.ts";
import { findFreePort, start } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { findDocuments } from "./documents.ts";
import { createSample, NoSample } from "./sample.ts";

const isDeno = typeof Deno !== "undefined"; // The packages are installed with a function of Deno.

/** The documents, each with the operations that Prism refuses for a reason of its own. */
const DOCUMENTS: Readonly<Record<string, readonly string[]>> = {
  "@blockfrost/openapi/openapi.yaml": [],
  // The parameter `id` is an integer or a string, but not both. Prism reads the 7 in the path as both.
  "@directus/specs/dist/openapi.json": [
    "GET /items/{collection}/{id}",
    "PATCH /items/{collection}/{id}",
    "DELETE /items/{collection}/{id}",
  ],
  "@readme/oas-examples/3.0/json/petstore.json": [],
};

const published = isDeno ? await findDocuments() : { missing: "Deno" };
const prism = isDeno ? await findPackages("prism", ["@stoplight/prism-cli@5.14.2"]) : { missing: "Deno" };
const missing = "missing" in published ? published.missing : "missing" in prism ? prism.missing : undefined;

/** Serves a document with Prism. Returns the port. */
async function startPrism(file: string) {
  assert("folder" in prism);
  const port = findFreePort();
  const command = `${prism.folder}/node_modules/@stoplight/prism-cli/dist/index.js`;
  // With --errors, Prism responds with what is wrong, instead of with an example of an error.
  const process = await start(["node", command, "mock", "--errors", "--port", String(port), file]);
  await until(async () => {
    const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    await response?.body?.cancel();
    return response;
  }, "Prism listens");
  return { port, process };
}

for (const [name, refused] of Object.entries(DOCUMENTS)) {
  const test = needs(`Prism accepts the requests of ${name}`, missing);
  Deno.test({
    ...test,
    ignore: !isDeno || test.ignore,
    async fn() {
      requireAll(missing);
      assert(!("missing" in published));
      const found = published.find((each) => each.name === name);
      assert(found);
      const document = await found.read();
      const { port, process } = await startPrism(found.file);
      await using _process = process;
      const { schemes } = readOpenApi(document);
      const api = openapi(document, {
        baseUrl: `http://127.0.0.1:${port}`,
        allowPrivate: ["127.0.0.1"],
        auth: Object.fromEntries(schemes.map(({ name }) => [name, () => "a-token"])),
        as: () => "tool",
      });
      await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api] }));
      const tools = new Map((await client.listTools()).map((tool) => [tool.name, tool]));
      const problems: string[] = [];
      let called = 0;
      for (const { name, method, path } of api.operations) {
        let args: Record<string, unknown>;
        try {
          args = createSample(tools.get(name)?.inputSchema ?? {});
        } catch (error) {
          if (!(error instanceof NoSample)) throw error;
          continue;
        }
        const { content } = await client.callTool(name, args);
        const text = JSON.stringify(content);
        called++;
        // Prism also reports examples of the document that do not match the schema of the response.
        const isRefused = /\\"location\\":\[\\"(?!response)|NO_PATH_MATCHED|NO_METHOD_MATCHED/.test(text);
        if (isRefused && !refused.includes(`${method} ${path}`)) problems.push(`${method} ${path}: ${text}`);
      }
      assertEquals(problems, []);
      assert(called >= api.operations.length * 0.9, `${called} of ${api.operations.length} operations were called`);
    },
  });
}
