// `ctx.forward` passes on the questions of another server under their own names, its progress, its log messages, the
// questions of its sessions, and its errors in the words of the client's revision.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Context, createServer, McpError, prompt, resource, type Server, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const form = { type: "object", properties: { by: { type: "string" } } } as const;
const ask = (message: string) => ({ method: "elicitation/create", params: { message, requestedSchema: form } });
const accept = (by: string) => ({ action: "accept" as const, content: { by } });
const text = (text: string) => ({ content: [{ type: "text" as const, text }] });

/** Another server that asks a question with this key, and answers with the answer. */
const asking = (name: string, key: string): Parameters<Context["forward"]>[0] => ({ inputResponses }) => {
  if (!inputResponses) return { resultType: "input_required", inputRequests: { [key]: ask(name) }, requestState: name };
  return text(`${name}: ${Object.entries(inputResponses).map(([key, value]) => `${key}=${Object(value).content.by}`)}`);
};

behaviour("the client gets the names of another server's questions, each only once", async (join) => {
  let runs = 0;
  const book = tool({
    name: "book",
    async run(_input, ctx) {
      const wanted = [
        () => ctx.forward(asking("first", "user_name"), { key: "first" }),
        () => ctx.forward(asking("second", "user_name"), { key: "second" }),
        async () => text(`own: ${(await ctx.elicit("user_name", { message: "own", schema: form })).content?.by}`),
      ];
      // Each run has another order, so each answer can reach its server only by the name that the client got.
      const turned = [...wanted.slice(runs % 3), ...wanted.slice(0, runs % 3)];
      runs++;
      // All of them ask before the run ends.
      const sent = turned.map((run) => run());
      await Promise.allSettled(sent);
      const all = await Promise.all(sent);
      return all.map((each) => textOf(Object(each))).sort().join("; ");
    },
  });
  const { client } = await join({ handlers: [book] }, { capabilities: { elicitation: {} } });
  const first = await client.request("tools/call", { name: "book" }, { rounds: false });
  const requests: Record<string, { readonly params: { readonly message: string } }> = Object(first.inputRequests);
  assertEquals(Object.keys(requests).sort(), ["user_name", "user_name 2", "user_name 3"]);
  const inputResponses = Object.fromEntries(
    Object.entries(requests).map(([name, { params }]) => [name, accept(params.message)]),
  );
  const { requestState } = first;
  const last = await client.request("tools/call", { name: "book", inputResponses, requestState }, { rounds: false });
  assertEquals([last.resultType, textOf(Object(last))], [
    "complete",
    "first: user_name=first; own: own; second: user_name=second",
  ]);
}, { eras: ["modern"] });

behaviour("a name is free again after its answer, and belongs to no other question of the same run", async (join) => {
  const steps = tool({
    name: "steps",
    async run(_input, ctx) {
      const first = await ctx.forward(asking("first", "step"), { key: "first" });
      const second = await ctx.forward(asking("second", "step"), { key: "second" });
      return `${textOf(Object(first))}; ${textOf(Object(second))}`;
    },
  });
  const { client } = await join({ handlers: [steps] }, { capabilities: { elicitation: {} } });
  const names: string[][] = [];
  let params = {};
  for (;;) {
    const result = await client.request("tools/call", { name: "steps", ...params }, { rounds: false });
    if (result.resultType === "complete") {
      assertEquals(textOf(Object(result)), "first: step=first; second: step=second");
      break;
    }
    const requests: [string, { readonly params: { readonly message: string } }][] = Object.entries(
      Object(result.inputRequests),
    );
    names.push(requests.map(([name]) => name));
    const answers = requests.map(([name, { params }]) => [name, accept(params.message)]);
    params = { inputResponses: Object.fromEntries(answers), requestState: result.requestState };
  }
  assert(names.length === 2 && names.every(([name]) => name.startsWith("step")), JSON.stringify(names));
}, { eras: ["modern"] });

/** Creates a server with a tool that reports progress, logs and asks. */
function createUpstream(name: string): Server {
  const work = tool({
    name: "work",
    async run(_input, ctx) {
      await ctx.progress(1, { total: 2, message: name });
      await ctx.log.warning(`${name} warns`, { logger: name });
      await ctx.log.debug(`${name} whispers`);
      const { content } = await ctx.elicit("who", { message: `Who, asks ${name}?`, schema: form });
      await ctx.progress(2, { total: 2 });
      return `${name} got ${content?.by}`;
    },
  });
  return createServer({ name, version: "1.0.0", handlers: [work], capabilities: { logging: true } });
}

for (const upstreamEra of ["modern", "legacy"] as const) {
  behaviour(`one run forwards to two servers: progress, logs and questions (${upstreamEra})`, async (join, { era }) => {
    await using stack = new AsyncDisposableStack();
    const open = async (name: string) => {
      const server = createUpstream(name);
      stack.defer(() => server.close());
      const capabilities = { elicitation: {} };
      const fetch = (request: Request) => server.fetch(request);
      return stack.use(
        await connect("http://localhost/mcp", { era: upstreamEra, capabilities, fetch, logLevel: "warning" }),
      );
    };
    const upstreams = [await open("left"), await open("right")];
    const both = tool({
      name: "both",
      async run(_input, ctx) {
        const results = await Promise.all(
          upstreams.map((upstream, at) =>
            ctx.forward((retry, options) => upstream.request("tools/call", { name: "work", ...retry }, options), {
              key: `upstream ${at}`,
            })
          ),
        );
        return results.map((each) => textOf(Object(each))).join("; ");
      },
    });
    const asked = new Set<string>();
    const logs: string[] = [];
    const progress: number[] = [];
    const { client } = await join({ handlers: [both], capabilities: { logging: true } }, {
      logLevel: "info",
      onElicit: ({ message }) => (asked.add(message), accept(message)),
      onNotification: ({ method, params }) => {
        if (method === "notifications/message") logs.push(`${params.level} ${params.logger} ${params.data}`);
      },
    });
    const result = await client.callTool("both", {}, { onProgress: ({ progress: each }) => void progress.push(each) });
    assertEquals(textOf(result), "left got Who, asks left?; right got Who, asks right?");
    assertEquals([...asked].sort(), ["Who, asks left?", "Who, asks right?"]);
    assertEquals([...new Set(logs)].sort(), ["warning left left warns", "warning right right warns"]);
    const most = Math.max(...progress);
    if (era === "legacy" || upstreamEra === "modern") assertEquals([most, progress.includes(2)], [4, true]);
  });
}

behaviour("another server learns no progress token and no log level that the client has not sent", async (join) => {
  const sent: unknown[] = [];
  const plain = tool({
    name: "plain",
    run: (_input, ctx) =>
      ctx.forward((_retry, { onProgress, meta }) => {
        sent.push([onProgress === undefined, meta["io.modelcontextprotocol/logLevel"] === ctx.client.logLevel]);
        return text("done");
      }, { key: "plain" }),
  });
  const { client } = await join({ handlers: [plain] });
  await client.callTool("plain");
  assertEquals(sent, [[true, true]]);
});

/** Creates a client of a server whose requests all fail with an error. */
function openFailing(code: number, data?: unknown) {
  const fetch = async (request: Request): Promise<Response> => {
    const { id, method } = await request.json();
    if (id === undefined) return new Response(undefined, { status: 202 });
    const capabilities = { tools: {}, resources: {} };
    const result = { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "old", version: "1" } };
    const message = {
      jsonrpc: "2.0",
      id,
      ...method === "initialize" ? { result } : { error: { code, message: "m", data } },
    };
    return Response.json(message);
  };
  return connect("http://localhost/mcp", { era: "legacy", fetch, onWarning() {} });
}

behaviour("a missing resource of another server has the code of the client's revision", async (join, { era }) => {
  await using upstream = await openFailing(-32_002);
  const read = resource({
    uri: "old://1",
    name: "old",
    read: (uri, ctx) =>
      ctx.forward((retry, options) => upstream.request("resources/read", { uri, ...retry }, options), { key: "r" }),
  });
  const { client } = await join({ handlers: [read] });
  const { code, message, data } = await assertRejects(() => client.readResource("old://1"), McpError);
  assertEquals([code, message, data], [era === "modern" ? -32_602 : -32_002, "m", { uri: "old://1" }]);
});

behaviour(
  "an error that would speak of this server's messages is reported, and hidden from the client",
  async (join) => {
    const handlers = [];
    const codes = [-32_000, -32_001, -32_020, -32_022, -32_042, -32_099];
    for (const code of codes) {
      const upstream = await openFailing(code);
      const run = (_: unknown, ctx: Context) =>
        ctx.forward((retry, options) => upstream.request("tools/call", { name: "x", ...retry }, options), { key: "r" });
      handlers.push(prompt({ name: `p${-code}`, run: async (input, ctx) => String(await run(input, ctx)) }));
    }
    const { client, takeFaults } = await join({ handlers });
    for (const { name } of handlers) {
      const { code, data } = await assertRejects(() => client.getPrompt(name), McpError);
      const [{ error, id }] = takeFaults();
      assertEquals([code, Object(data).errorId, `p${-Object(error).code}`], [-32_603, id, name]);
    }
  },
);

behaviour("pages that another server requires become questions, and then it gets the request again", async (join) => {
  let opened = false;
  const seen: unknown[] = [];
  const send: Parameters<Context["forward"]>[0] = (retry) => {
    seen.push(retry);
    if (opened) return text("paid");
    const elicitations = [{ mode: "url", elicitationId: "e1", url: "https://bank.example/pay", message: "Pay" }];
    throw new McpError(-32_042, "open the page", { elicitations }, {});
  };
  const pay = tool({ name: "pay", run: (_input, ctx) => ctx.forward(send, { key: "bank" }) });
  const pages: string[] = [];
  let action: "accept" | "decline" = "accept";
  const { client } = await join({ handlers: [pay] }, {
    onElicitUrl({ url }) {
      pages.push(url);
      opened = action === "accept";
      return { action };
    },
  });
  assertEquals([textOf(await client.callTool("pay")), pages], ["paid", ["https://bank.example/pay"]]);
  assert(seen.every((retry) => !Object.keys(Object(retry)).length), JSON.stringify(seen));
  opened = false;
  action = "decline";
  const declined = await client.callTool("pay");
  assertEquals([declined.isError, textOf(declined)], [true, sentence("page")]);
});
