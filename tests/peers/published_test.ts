// The tools of published servers, on servers of this library. Clients list the tools as the published servers list them.
// Arguments and results are accepted or rejected as ajv does with the published schemas.
import { createRequire } from "node:module";
import { assert, assertEquals } from "@std/assert";
import { Client as OfficialClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createServer, type Handler, McpError, tool, type ToolResult } from "../../mod.ts";
import { type Client, connect, type ListedTool, type Params } from "../../src/client/client.ts";
import { isObject } from "../../src/core/protocol/jsonrpc.ts";
import { argument, layer } from "../../src/layers/layers.ts";
import { ADDED, compareAdded } from "../support/added_property.ts";
import { JsonValues, MISTAKES } from "../support/json_values.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { random } from "../support/random.ts";
import { needs, requireAll } from "../support/required.ts";
import { findServers, PUBLISHED, readTools } from "./published_servers.ts";
import { serve } from "./runtime.ts";

// Only Deno installs packages. The published servers run on Node with either runtime, and tests/schema runs on both.
const isDeno = typeof Deno !== "undefined";

/** Number of arguments for each tool. Half of them have a mistake. */
const ARGUMENTS = 300;
/** Number of results for each tool with an output schema. */
const RESULTS = 100;

const found = isDeno ? await findServers() : { missing: "Deno" };
const node = isDeno ? await findNode(NODE_VERSIONS[1]) : { missing: "Deno" };
const missing = isDeno && ("missing" in found ? found.missing : "missing" in node ? node.missing : undefined) ||
  undefined;

/** Inserts the defaults of a schema into a value, and returns whether the value is valid. */
type Check = (value: unknown) => boolean;

/**
 * Compiles a schema with ajv, with these options:
 *
 * - `validateFormats: false`, because the library does not validate `format`.
 * - `useDefaults: true`, because the library inserts defaults before it validates a value.
 * - `strict: false`, because published schemas have keywords that ajv does not know.
 */
function compile(schema: Params): Check {
  if (!("ajv" in found)) throw new Error("ajv is not installed");
  const dialect = String(schema.$schema).includes("draft-07") ? "ajv" : "ajv/dist/2020.js";
  const { default: Ajv } = createRequire(`${found.ajv}/`)(dialect);
  return new Ajv({ strict: false, validateFormats: false, useDefaults: true, logger: false }).compile(schema);
}

/**
 * Makes values, half of them with a mistake. No integer is beyond the safe range, because the library rejects such
 * integers, which have lost digits.
 */
function* makeValues(schema: Params, count: number): Generator<Params> {
  const values = new JsonValues(schema, random(20261126));
  for (let at = 0; at < count; at++) {
    const value = values.make();
    // The cast is safe, because the schemas of arguments and of structured content describe objects.
    yield (at % 2 ? values.spoil(value, MISTAKES[(at >> 1) % MISTAKES.length]) : value) as Params;
  }
}

/** Returns the members that `tool` can list. `execution`, which some servers list, is not an option of `tool`. */
function toListed(published: ListedTool): ListedTool {
  const { name, title, description, inputSchema, outputSchema, annotations, _meta } = published;
  // Omit members that are undefined, as JSON does.
  return JSON.parse(JSON.stringify({ name, title, description, inputSchema, outputSchema, annotations, _meta }));
}

/** Lists tools with this library's client, and with the official client in each era. */
async function listTools(handlers: readonly Handler[]): Promise<readonly (readonly ListedTool[])[]> {
  await using server = createServer({ name: "copy", version: "1.0.0", handlers });
  await using port = serve(server);
  const url = new URL(`http://${port.host}/mcp`);
  await using client = await connect(url);
  const lists = [await client.listTools()];
  for (const mode of [{ pin: "2026-07-28" }, "legacy"] as const) {
    const official = new OfficialClient({ name: "official", version: "1.0.0" }, { versionNegotiation: { mode } });
    await official.connect(new StreamableHTTPClientTransport(url));
    const { tools } = await official.listTools();
    lists.push(tools);
    await official.close();
  }
  return lists;
}

/** Checks that copies of tools, and tools that forward calls, are listed as the original tools. */
async function compareLists(originals: readonly ListedTool[]): Promise<void> {
  const forwarding = originals.map((original) => tool.from(original, () => ""));
  for (const handlers of [new Copy(originals).handlers, forwarding]) {
    const [own, ...others] = await listTools(handlers);
    for (const list of [own, ...others]) {
      assertEquals(list.map(({ name }) => name), originals.map(({ name }) => name));
      list.forEach((listed, at) => assertEquals(toListed(listed), toListed(originals[at])));
    }
    // A model reads the text of a schema, so the order of its members counts too. The official client changes the order.
    own.forEach((listed, at) => assertEquals(toSchemaText(listed), toSchemaText(originals[at])));
  }
}

function toSchemaText({ inputSchema, outputSchema }: ListedTool): string {
  return JSON.stringify([inputSchema, outputSchema]);
}

/** A result that a tool with an output schema may return too, because an error needs no structured content. */
const FAILED: ToolResult = { content: [], isError: true };

/** Copies of a server's tools. The tools run no code of the server. */
class Copy {
  readonly handlers: readonly Handler[];
  /** The arguments that a tool got. */
  input?: unknown;
  /** The result of every tool. */
  result: ToolResult = FAILED;

  constructor(tools: readonly ListedTool[]) {
    this.handlers = tools.map(({ inputSchema, outputSchema, name, title, description, annotations, _meta }) => {
      const run = (input: unknown) => {
        this.input = input;
        return this.result;
      };
      const about = { title, description, annotations, _meta: isObject(_meta) ? _meta : undefined };
      return tool({ name, ...about, input: inputSchema, output: outputSchema, run });
    });
  }
}

/** Checks that an argument of a layer reaches the layer, and neither the tool nor another server. */
async function compareTaken(published: readonly ListedTool[]): Promise<void> {
  const token = argument({ name: ADDED, schema: { type: "array", items: { type: "string" } }, required: true });
  const noted: unknown[] = [];
  const why = layer(() => ({ name: "why", argument: token, limit: ({ given }) => void noted.push(given(token)) }));
  const copy = new Copy(published);
  const foreign: unknown[] = [];
  const forwarding = published.map((each) =>
    tool.from({ ...each, name: `foreign_${each.name}` }, (input) => (foreign.push(input), FAILED))
  );
  await using server = createServer({
    name: "copy",
    version: "1.0.0",
    use: [why],
    handlers: [...copy.handlers, ...forwarding],
  });
  await using client = await connect(server);
  for (const { inputSchema } of await client.listTools()) assert(JSON.stringify(inputSchema.required).includes(ADDED));
  for (const { name, inputSchema } of published) {
    const check = compile(inputSchema);
    const value = [...makeValues(inputSchema, 50)].find((value) => check(value));
    if (!value) continue;
    copy.input = undefined;
    const own = structuredClone(value);
    for (const called of [name, `foreign_${name}`]) await client.callTool(called, { ...own, [ADDED]: ["x"] });
    assertEquals(copy.input, value, name);
    assertEquals(foreign.pop(), own, name);
    assertEquals(noted.splice(0), [["x"], ["x"]], name);
  }
}

/** How often a value was accepted and rejected. */
interface Counts {
  accepted: number;
  rejected: number;
}

/** Compares the verdicts on arguments. Returns valid arguments. */
async function compareArguments(
  { name, inputSchema }: ListedTool,
  { copy, client, counts }: Comparison,
): Promise<Params> {
  const check = compile(inputSchema);
  let valid: Params = {};
  for (const value of makeValues(inputSchema, ARGUMENTS)) {
    const expected = structuredClone(value);
    const isValid = check(expected);
    copy.input = undefined;
    const { isError } = await client.callTool(name, value);
    const about = `${name} ${JSON.stringify(value)}`;
    assertEquals([copy.input !== undefined, isError], [isValid, true], about);
    assertEquals(copy.input, isValid ? expected : undefined, about);
    if (isValid) valid = value;
    counts[isValid ? "accepted" : "rejected"]++;
  }
  return valid;
}

/** Compares the verdicts on structured content. */
async function compareResults(
  { name, outputSchema }: ListedTool,
  { copy, client, counts, args }: Comparison & { readonly args: Params },
): Promise<void> {
  if (!outputSchema) return;
  const check = compile(outputSchema);
  for (const value of makeValues(outputSchema, RESULTS)) {
    const expected = structuredClone(value);
    const isValid = check(expected);
    copy.result = { content: [], structuredContent: value };
    const result = await client.callTool(name, args).catch((error) => error);
    const about = `${name} ${JSON.stringify(value)}`;
    // Any other code would be an error of the client, which validates results too.
    assertEquals(result instanceof McpError ? result.code : 0, isValid ? 0 : -32603, about);
    assertEquals(result.structuredContent, isValid ? expected : undefined, about);
    counts[isValid ? "accepted" : "rejected"]++;
  }
}

/** The parameters of a comparison. */
interface Comparison {
  readonly copy: Copy;
  readonly client: Client;
  readonly counts: Counts;
}

Deno.test({
  ...needs("the tools of ten published servers are listed unchanged and validated as ajv does", missing),
  ...isDeno ? {} : { ignore: true },
  async fn(t) {
    requireAll(missing);
    if ("missing" in found || "missing" in node) return;
    let tools = 0;
    const inputs: Counts = { accepted: 0, rejected: 0 };
    const outputs: Counts = { accepted: 0, rejected: 0 };
    for (const server of PUBLISHED) {
      const published = await readTools(server, { node: node.path, folder: found.folders.get(server) ?? "" });
      tools += published.length;

      await t.step(
        `${server.pinned}: the tools are listed unchanged`,
        () => compareLists(published),
      );

      await t.step(`${server.pinned}: a layer adds an argument, and changes no verdict about the others`, async () => {
        for (const { name, inputSchema, outputSchema } of published) {
          for (const schema of outputSchema ? [inputSchema, outputSchema] : [inputSchema]) {
            assertEquals(typeof compareAdded(schema), "number", name);
          }
        }
        await compareTaken(published);
      });

      await t.step(`${server.pinned}: values are accepted or rejected as ajv does`, async () => {
        const copy = new Copy(published);
        const observer = { fault() {} }; // Otherwise the server prints each invalid result.
        await using server = createServer({ name: "copy", version: "1.0.0", handlers: copy.handlers, observer });
        await using client = await connect(server);
        for (const each of published) {
          const args = await compareArguments(each, { copy, client, counts: inputs });
          await compareResults(each, { copy, client, counts: outputs, args });
          copy.result = FAILED;
        }
      });
    }
    console.log(`${tools} tools, ${show(inputs)} arguments, ${show(outputs)} results`);
    assert(tools >= 150, `${tools} tools`);
    assert(inputs.accepted >= 10_000 && inputs.rejected >= 10_000, show(inputs));
    assert(outputs.accepted >= 1_000 && outputs.rejected >= 1_000, show(outputs));
  },
});

function show({ accepted, rejected }: Counts): string {
  return `${accepted} accepted and ${rejected} rejected`;
}
