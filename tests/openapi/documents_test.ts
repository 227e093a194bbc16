// Tests all operations of published documents: each becomes a tool that sends what its document describes.
import { assert, assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { type ApiCredentials, openapi, readOpenApi } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { measureHeap } from "../support/heap.ts";
import { findDocuments, PACKAGES, type PublishedDocument } from "./documents.ts";
import { compareRequest, type RawRequest } from "./reader.ts";
import { createSample, NoSample } from "./sample.ts";

const ignore = typeof Deno === "undefined"; // The packages are installed with a function of Deno.

/** The figures of one document. */
interface Figures {
  readonly operations: number;
  readonly tools: number;
  readonly skipped: number;
  /** Number of parts that are not described, because a schema would be too large. */
  readonly cut: number;
  readonly bytes: number;
  /** Number of operations that were called. */
  readonly called: number;
}

const TABLE = new URL("documents.json", import.meta.url);
const base = "https://api.example.com/base";

async function findAll(): Promise<readonly PublishedDocument[]> {
  const found = await findDocuments();
  if ("missing" in found) throw new Error(found.missing);
  return found;
}

/** Serves a document, calls each of its tools once, and compares the requests with the document. */
async function tryDocument(document: Record<string, unknown>): Promise<readonly [Figures, readonly string[]]> {
  let sent: RawRequest | undefined;
  const fetch = async (request: Request) => {
    const { method, headers, url } = request;
    sent = { method, headers, url: new URL(url), body: new Uint8Array(await request.arrayBuffer()) };
    return new Response("ok");
  };
  const { schemes } = readOpenApi(document);
  const make = (auth: ApiCredentials) => openapi(document, { fetch, auth, baseUrl: base, as: () => "tool" });
  const toAuth = (each: ApiCredentials[string]) => Object.fromEntries(schemes.map(({ name }) => [name, each]));
  // ApiCredentials must not hide parameters, because all arguments are compared.
  const api = make(toAuth(false));
  const signedIn = make(toAuth(() => "token"));
  assertEquals(signedIn.operations.map(({ name }) => name), api.operations.map(({ name }) => name), "names are stable");
  const names = api.operations.map(({ name }) => name);
  assertEquals(new Set(names).size, names.length);
  assert(names.every((name) => /^[\w-]{1,64}$/.test(name)));
  const problems: string[] = [];
  let called = 0;
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api] }));
  const tools = new Map((await client.listTools()).map((each) => [each.name, each]));
  for (const { name, method, path, kind, reason, bytes } of api.operations) {
    const place = `${method} ${path}`;
    if (kind === "none") {
      assert(reason, place);
      continue;
    }
    const { inputSchema } = tools.get(name) ?? {};
    assert(inputSchema, place);
    assert(JSON.stringify(inputSchema).length <= 32_768 && bytes < 40_000, `${place} has ${bytes} bytes`);
    let args: Record<string, unknown>;
    try {
      args = createSample(inputSchema);
    } catch (error) {
      if (!(error instanceof NoSample)) throw error;
      continue;
    }
    sent = undefined;
    const { isError, content } = await client.callTool(name, args);
    // Some samples do not match, because a schema has several rules for one value.
    if (isError && !sent) {
      problems.push(`${place} was not called: ${JSON.stringify(content).slice(0, 300)}`);
      continue;
    }
    called++;
    const request: RawRequest = sent!; // Set by `fetch`.
    const different = await compareRequest(request, { document, method, path, basePath: "/base", args });
    problems.push(...different.map((state) => `${place} differs: ${state}`));
  }
  const served = api.operations.filter(({ kind }) => kind === "tool");
  return [{
    operations: api.operations.length,
    tools: served.length,
    skipped: signedIn.operations.filter(({ kind }) => kind === "none").length,
    cut: served.reduce((sum, { cut }) => sum + cut, 0),
    bytes: served.reduce((sum, { bytes }) => sum + bytes, 0),
    called,
  }, problems];
}

Deno.test({
  name: "all operations of published documents become tools, whose requests are what the documents describe",
  ignore,
  async fn() {
    const documents = await findAll();
    assert(documents.length >= 60, `${documents.length} documents`);
    const table: Record<string, Figures> = {};
    const differences: string[] = [];
    const uncalled: string[] = [];
    for (const { name, read } of documents) {
      const [figures, problems] = await tryDocument(await read());
      table[name] = figures;
      for (const problem of problems) {
        (problem.includes(" was not called") ? uncalled : differences).push(`${name} ${problem}`);
      }
    }
    const sum = (key: keyof Figures) => Object.values(table).reduce((total, figures) => total + figures[key], 0);
    const [operations, skipped, called] = [sum("operations"), sum("skipped"), sum("called")];
    assertEquals(differences, []);
    assert(skipped <= operations / 100, `${skipped} of ${operations} operations were left out`);
    assert(
      called >= operations * 0.9,
      `${called} of ${operations} operations were called: ${uncalled.slice(0, 20).join("\n")}`,
    );
    if (Deno.env.get("WRITE_DOCUMENTS")) await Deno.writeTextFile(TABLE, `${JSON.stringify(table, null, 2)}\n`);
    assertEquals(
      table,
      JSON.parse(await Deno.readTextFile(TABLE)),
      "run the test with WRITE_DOCUMENTS=1, and check the table",
    );
    assertEquals(
      new Set(documents.map(({ name }) => PACKAGES.find((each) => name.startsWith(each.name)))).size,
      PACKAGES.length,
    );
  },
});

Deno.test({
  name: "the tools of GitHub's document use at most 40 MB, because they do not hold the document",
  ignore,
  async fn() {
    const bytes = await measureHeap(new URL("heap.ts", import.meta.url));
    assert(bytes < 40_000_000, `${bytes} bytes`);
  },
});

Deno.test("hostile: 100,000 paths are served", () => {
  const paths = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`/p${i}`, { get: {} }]));
  const { operations } = openapi({ openapi: "3.1.0", paths }, { fetch: () => new Response() });
  assertEquals(operations.length, 100_000);
});
