// Messages of clients that differ from the specification in a harmless way.
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, extension, McpError, prompt, resource, tool } from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { behaviour, plainTool, textOf, until } from "../support/behaviour.ts";
import { readReply, toRequest, toStatus } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { openSession, toHello, toSessionRequest } from "../support/sessions.ts";

const handlers = [
  tool({ name: "bare", run: () => "done" }),
  tool({ name: "typed", input: z.object({ n: z.number().optional() }), run: ({ n }) => `${n}` }),
  prompt({
    name: "greet",
    input: z.object({ name: z.string(), tone: z.string().optional() }),
    complete: { name: (_typed, { tone = "none" }) => [tone] },
    run: ({ name, tone }) => `${name} ${tone}`,
  }),
  resource({ uri: "note://Host/Todo%2d1", name: "todo", read: () => "Buy milk" }),
  resource({ uri: "note://host/{title}/text", name: "note", read: ({ title }) => title }),
];

behaviour("null for an optional member of a request counts as absent", async (join) => {
  const { client } = await join({ handlers });
  for (const method of ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]) {
    assertEquals(Object.keys(await client.request(method, { cursor: null })).includes("nextCursor"), false, method);
  }
  const call = async (params: Record<string, unknown>) => textOf(await client.request("tools/call", params) as never);
  assertEquals(await call({ name: "bare", arguments: null }), "done");
  assertEquals(await call({ name: "typed", arguments: null }), "undefined");
  const greet = async (params: Record<string, unknown>) => {
    const { messages } = await client.request("prompts/get", { name: "greet", ...params });
    return Object(messages)[0].content.text;
  };
  assertEquals(await greet({ arguments: { name: "Ada", tone: null } }), "Ada undefined");
  await assertRejects(() => greet({ arguments: null }), McpError, sentence("name"));
  const complete = async (context: unknown) => {
    const ref = { type: "ref/prompt", name: "greet" };
    const params = { ref, argument: { name: "name", value: "" }, context };
    return Object(await client.request("completion/complete", params)).completion.values;
  };
  assertEquals(await complete(null), ["none"]);
  assertEquals(await complete({ arguments: null }), ["none"]);
  assertEquals(await complete({ arguments: { tone: "kind", name: null } }), ["kind"]);
});

behaviour("null for a required member of a request is an error", async (join) => {
  const { client } = await join({ handlers });
  for (const [method, params] of [["tools/call", { name: null }], ["resources/read", { uri: null }]] as const) {
    await assertRejects(() => client.request(method, params), McpError);
  }
});

Deno.test("null stays null in arguments, and in the parameters of an extension's method", async () => {
  const got: unknown[] = [];
  const id = "com.example/keep";
  const keep = extension({
    id,
    methods: {
      "keep/set": {
        params: z.object({ value: z.unknown() }),
        run: ({ value }) => {
          got.push(value);
          return {};
        },
      },
    },
  });
  const take = tool({
    name: "take",
    input: z.object({ value: z.null() }),
    run: ({ value }) => void got.push(value),
  });
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [keep, take] });
  const { connectTest } = await import("../../src/testing/testing.ts");
  await using client = await connectTest(server, { extensions: [clientExtension({ id })] });
  await client.request("keep/set", { value: null });
  await client.callTool("take", { value: null });
  assertEquals(got, [null, null]);
});

Deno.test("null in the metadata of a request counts as absent", async () => {
  await using server = createServer({ name: "s", version: "1.0.0", handlers });
  const _meta = {
    "io.modelcontextprotocol/clientInfo": null,
    "io.modelcontextprotocol/logLevel": null,
    progressToken: null,
  };
  const response = await server.fetch(toRequest("tools/call", { name: "bare", _meta }));
  assertEquals([response.status, textOf((await readReply(response)).result)], [200, "done"]);
});

behaviour("a fixed URI is found under each equivalent URI, and a template is not", async (join) => {
  const { client } = await join({ handlers });
  const read = async (uri: string) => Object((await client.readResource(uri)).contents[0]).text;
  for (const uri of ["note://Host/Todo%2d1", "NOTE://host/Todo-1", "note://HOST/x/../Todo%2D1"]) {
    assertEquals(await read(uri), "Buy milk", uri);
  }
  await assertRejects(() => client.readResource("note://host/todo-1"), McpError);
  assertEquals(await read("note://host/A%20B/text"), "A B");
});

behaviour("errors in log messages are sent as their text, without the stack", async (join) => {
  const got: unknown[] = [];
  const log = plainTool("log", async (ctx: Context) => {
    await ctx.log.error(new RangeError("too big"));
    await ctx.log.error({ error: new TypeError("wrong"), count: 1 });
    await ctx.log.error([new Error("first"), "second"]);
    await ctx.log.info({ plain: true });
    return "";
  });
  const { client } = await join({ handlers: [log] }, {
    logLevel: "debug",
    onNotification: ({ method, params }) => void (method === "notifications/message" && got.push(params.data)),
  });
  await client.callTool("log");
  await until(() => got.length === 4, "all messages");
  assertEquals(got, [
    "RangeError: too big",
    { error: "TypeError: wrong", count: 1 },
    ["Error: first", "second"],
    { plain: true },
  ]);
});

behaviour("a cursor that is not a text is refused by its kind", async (join) => {
  const { client } = await join({ handlers });
  for (const [cursor, shown] of [[{ a: 1 }, "an object"], [7, "7"], [["x"], "a list"], ["x", '"x"']] as const) {
    await assertRejects(() => client.request("tools/list", { cursor }), McpError, sentence(shown));
  }
});

const initialize = toHello({ capabilities: { elicitation: {} } });

Deno.test("initialize with an unknown revision in the header gets the revisions that the server serves", async () => {
  for (const revisions of [undefined, ["2026-07-28", "2025-06-18"] as const]) {
    await using server = createServer({ name: "s", version: "1.0.0", revisions });
    for (const version of ["2099-01-01", "latest", "1.0"]) {
      const response = await server.fetch(toSessionRequest(initialize, { "mcp-protocol-version": version }));
      const { error: { code, data } } = await readReply(response);
      assertEquals([response.status, code, data.requested], [400, -32022, version]);
      const all = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
      assertEquals(data.supported, revisions ?? all);
    }
  }
});

Deno.test("initialize accepts null for optional members", async () => {
  await using server = createServer({ name: "s", version: "1.0.0" });
  for (const [name, wanted] of [["capabilities", 200], ["clientInfo", 200], ["protocolVersion", 400]] as const) {
    const params = { ...initialize.params, [name]: null };
    assertEquals(await toStatus(server.fetch(toSessionRequest({ ...initialize, params }))), wanted, name);
  }
});

Deno.test("a GET request that accepts all types gets a stream", async () => {
  await using server = createServer({ name: "s", version: "1.0.0" });
  const id = await openSession(server, initialize);
  const get = (accept?: string) =>
    server.fetch(
      new Request("http://localhost/mcp", {
        headers: { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25", ...accept ? { accept } : {} },
      }),
    );
  for (const accept of ["*/*", "text/*", "application/json, */*;q=0.1", "text/event-stream"]) {
    const response = await get(accept);
    assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream"], accept);
    await response.body?.cancel();
  }
  for (const accept of [undefined, "application/json", "text/event-stream;q=0, */*"]) {
    assertEquals(await toStatus(get(accept)), 406, accept);
  }
});

/** Answers to a question that are not valid JSON-RPC responses, and the outcome of the call. */
const REPLIES: readonly (readonly [reply: object, outcome: string])[] = [
  [{ result: { action: "decline" }, error: null }, "decline"],
  [{ result: null, error: { code: -1, message: "no" } }, "failed"],
  [{ error: { code: -32000 } }, "failed"],
  [{ error: { message: "no" } }, "failed"],
  [{ error: { code: "x", message: 7 } }, "failed"],
  [{ error: "no" }, "failed"],
  [{ error: null }, "failed"],
];

Deno.test("an answer that is not a valid response ends the call that waits for it", async () => {
  const ask = plainTool("ask", async (ctx) => {
    try {
      return (await ctx.elicit("q", { message: "?", schema: { type: "object", properties: {} } })).action;
    } catch (error) {
      if (error instanceof McpError) return "failed";
      throw error;
    }
  });
  for (const [reply, outcome] of REPLIES) {
    await using server = createServer({ name: "s", version: "1.0.0", handlers: [ask] });
    const { readable, writable } = new TransformStream<Uint8Array>();
    const writer = writable.getWriter();
    const write = (message: unknown) => writer.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
    const texts: string[] = [];
    const output = async (bytes: Uint8Array) => {
      for (const line of new TextDecoder().decode(bytes).trim().split("\n")) {
        const { id, method, result } = JSON.parse(line);
        if (method === "elicitation/create") void write({ jsonrpc: "2.0", id, ...reply });
        if (id !== 2) continue;
        texts.push(textOf(result));
        void writer.close();
      }
      await undefined;
    };
    const serving = serveStdio(server, { input: readable, output });
    await write(initialize);
    await write({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "ask" } });
    await serving;
    assertEquals(texts, [outcome], JSON.stringify(reply));
  }
});
