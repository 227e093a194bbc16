// Two copies of the library work together in one process. This happens if a package of handlers depends on its own
// copy.
import * as ours from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { raise } from "../support/behaviour.ts";
import { assertEquals, assertNotStrictEquals } from "../support/std.ts";
import { makeFolder, removeFolder } from "../support/copies.ts";
import { sentence } from "../support/messages.ts";

type Library = typeof ours;

const folder = await makeFolder();
const theirs: Library = await import(new URL("mod.ts", folder).href);
globalThis.addEventListener("unload", () => removeFolder(folder));

/** Creates handlers that throw one copy's errors. */
function toHandlers({ tool, prompt, resource, ToolError, McpError }: Library, suffix: string) {
  const fail = (kind: unknown) => {
    if (kind === "tool") throw new ToolError(`tool error of ${suffix}`);
    if (kind === "mcp") throw new McpError(-32001, `protocol error of ${suffix}`, { suffix });
    throw new RangeError("secret");
  };
  class Own extends McpError {
    constructor() {
      super(-32002, "an error of the author's own class");
    }
  }
  const kind = { type: "object", properties: { kind: { type: "string" } } };
  return [
    tool({ name: `tool_${suffix}`, input: kind, run: ({ kind }): string => fail(kind) }),
    tool({ name: `own_${suffix}`, run: (): string => fail(new Own() && "mcp") }),
    tool({
      name: `sub_${suffix}`,
      run: (): string => raise(new Own()),
    }),
    tool({ name: `map_${suffix}`, run: () => ({ map: new WeakMap() }) }),
    tool({ name: `output_${suffix}`, output: { type: "object", required: ["a"] }, run: () => ({}) }),
    prompt({ name: `prompt_${suffix}`, input: kind, run: ({ kind }): string => fail(kind) }),
    resource({ uri: `test-${suffix}://{kind}`, name: suffix, read: ({ kind }): string => fail(kind) }),
    tool({ name: `good_${suffix}`, input: kind, run: ({ kind }) => ({ kind }) }),
  ];
}

Deno.test("two copies of the library: the copies are distinct", () => {
  assertNotStrictEquals(theirs.McpError, ours.McpError);
  assertNotStrictEquals(theirs.tool, ours.tool);
});

const orders = { "ours first": ["ours", "theirs"], "theirs first": ["theirs", "ours"] } as const;
const libraries = { ours, theirs };
for (const [order, names] of Object.entries(orders)) {
  for (const of of names) {
    for (const era of ["modern", "legacy"] as const) {
      for (const transport of ["http", "pipe"] as const) {
        Deno.test(`two copies of the library: a server of ${of}, ${order}, ${era} over ${transport}, recognizes the errors of both copies`, async () => {
          const reported: unknown[] = [];
          await using server = libraries[of].createServer({
            name: "t",
            version: "1",
            handlers: names.flatMap((name) => toHandlers(libraries[name], name)),
            observer: { fault: ({ error }) => reported.push(String(error)) },
          });
          await using client = await connectTest(server, { era, transport });
          const ask = (method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> =>
            client.request(method, params).then(
              (result) => result,
              ({ code, message, data }) => ({ code, message, data }),
            );
          for (const by of names) {
            const call = (name: string, kind?: string) =>
              ask("tools/call", { name: `${name}_${by}`, arguments: { kind } });
            const failed = await call("tool", "tool");
            assertEquals([failed.isError, failed.content], [true, [{ type: "text", text: `tool error of ${by}` }]]);
            const mcp = { code: -32001, message: `protocol error of ${by}`, data: { suffix: by } };
            assertEquals(await call("tool", "mcp"), mcp);
            assertEquals(await ask("prompts/get", { name: `prompt_${by}`, arguments: { kind: "mcp" } }), mcp);
            assertEquals(await ask("resources/read", { uri: `test-${by}://mcp` }), mcp);
            const asText = { code: -32603, message: `tool error of ${by}`, data: undefined };
            assertEquals(await ask("prompts/get", { name: `prompt_${by}`, arguments: { kind: "tool" } }), asText);
            assertEquals(await ask("resources/read", { uri: `test-${by}://tool` }), asText);
            assertEquals((await call("sub")).code, -32002);
            assertEquals((await call("good", "x")).structuredContent, { kind: "x" });
            assertEquals(reported, []);
            assertEquals((await call("tool", "other")).isError, true);
            for (const name of ["map", "output"]) assertEquals((await call(name)).code, -32603, name);
            assertEquals(reported.length, 3);
            assertEquals(reported[0], "RangeError: secret");
            assertEquals(reported[1], sentence(`tool "map_${by}"`, "WeakMap", "map"));
            assertEquals(reported[2], sentence(`tool "output_${by}"`));
            reported.length = 0;
          }
        });
      }
    }
  }
}

const pairs = [[ours, theirs], [theirs, ours]];

/** Creates a tool with one copy that throws an error of the other copy. */
const toThrowing = ({ tool }: Library, toError: () => Error) =>
  tool({ name: "x", run: (): string => raise(toError()) });

/** Returns the code, message and data of the error response to a request. */
async function errorOf(request: Promise<unknown>): Promise<readonly unknown[]> {
  const error = await request.then(() => undefined, (error) => error);
  return [error?.code, error?.message, error?.data];
}

Deno.test("two copies of the library: middleware and mapError can use the other copy's errors", async () => {
  for (const [mine, other] of pairs) {
    await using server = mine.createServer({
      name: "t",
      version: "1",
      handlers: [toThrowing(mine, () => new Error("x"))],
      use: [(call, next) => call.params.refuse ? Promise.reject(new other.McpError(-32005, "refused")) : next()],
      mapError: () => new other.ToolError("try later"),
      observer: { fault() {} },
    });
    await using client = await connectTest(server, { era: "modern", transport: "memory" });
    assertEquals((await client.request("tools/call", { name: "x" })).content, [{ type: "text", text: "try later" }]);
    const refused = client.request("tools/call", { name: "x", refuse: true });
    assertEquals(await errorOf(refused), [-32005, "refused", undefined]);
  }
});

Deno.test("two copies of the library: a server can use the other copy's handlers, errors with a code, and transports", async () => {
  for (const [mine, other] of pairs) {
    const note = other.resource({ uri: "note://{id}", name: "note", read: ({ id }) => id });
    await using server = mine.createServer({
      name: "t",
      version: "1",
      handlers: [
        note,
        other.resourceProvider({ scheme: "p", name: "p", read: () => "p" }),
        toThrowing(other, () => other.McpError.invalidParams("no", { at: 1 })),
      ],
    });
    for (const transport of ["memory", "pipe"] as const) {
      await using client = await connectTest(server, { transport });
      assertEquals(await errorOf(client.callTool("x")), [-32602, "no", { at: 1 }]);
      assertEquals((await client.readResource(note.uri({ id: "a b" }))).contents[0].uri, "note://a%20b");
    }
    assertEquals(server.handlers.list().map(({ name }) => name), ["note", "p", "x"]);
  }
});

Deno.test("two copies of the library: an object that only looks like a library error is treated as an unexpected error", async () => {
  const lookalikes = [
    Object.assign(new Error("secret"), { name: "McpError", code: -32000, data: 1 }),
    { name: "ToolError", content: [], message: "secret" },
    { code: 1, message: "secret" },
    null,
    undefined,
    "secret",
    new Proxy({}, { get: () => raise(new Error("secret")) }),
  ];
  for (const thrown of lookalikes) {
    await using server = ours.createServer({
      name: "t",
      version: "1",
      handlers: [ours.prompt({ name: "x", run: (): string => raise(thrown) })],
      observer: { fault() {} },
    });
    await using client = await connectTest(server, { era: "modern", transport: "memory" });
    const error = await client.request("prompts/get", { name: "x" }).then(() => undefined, (error) => error);
    assertEquals([error?.code, error?.message], [-32603, sentence()]);
  }
});
