// Handlers that forward requests to several upstream servers. Each answer reaches only the server that has asked, in
// whatever order the requests are sent.
import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, resource, tool } from "../../mod.ts";
import { type Client, connect } from "../../src/client/client.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { behaviour, gate, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const form = { type: "object", properties: { value: { type: "string" } }, required: ["value"] };
const CAPABILITIES = { elicitation: { form: {} } };

/** An upstream server whose tool asks two questions, one after the other, and returns the answers that it got. */
async function openUpstream(
  stack: AsyncDisposableStack,
  name: string,
  prefix = name,
): Promise<Pick<Client, "request">> {
  const sign = tool({
    name: "sign",
    async run(_input, ctx) {
      const kept = await ctx.once("kept", () => name);
      const ask = async (key: string) =>
        Object((await ctx.elicit(key, { message: `${prefix} ${key}`, schema: form })).content).value;
      return [kept, await ask("first"), await ask("second")].join(" ");
    },
  });
  const server = createServer({ name, version: "1.0.0", handlers: [sign] });
  stack.defer(() => server.close());
  const client = stack.use(await connect(server, { era: "modern", capabilities: CAPABILITIES }));
  const pending = new Set<Promise<unknown>>();
  let isOver = false;
  // The handler runs again after each question, so the requests of its earlier runs may still be pending.
  stack.defer(async () => {
    isOver = true;
    await Promise.allSettled(pending);
  });
  return {
    request(...args: Parameters<typeof client.request>) {
      // An earlier run may send its request only now, when nobody waits for the response any more.
      if (isOver) return new Promise<never>(() => {});
      const response = client.request(...args);
      pending.add(response);
      return response;
    },
  };
}

const toText = (result: object) => textOf({ content: Object(result).content });
async function openUpstreams(stack: AsyncDisposableStack) {
  return { a: await openUpstream(stack, "a"), b: await openUpstream(stack, "b") };
}

/** Returns the function that sends a forwarded call of `sign` to an upstream server. */
const sign = (upstream: Pick<Client, "request">): Parameters<Context["forward"]>[0] => (retry, options) =>
  upstream.request("tools/call", { name: "sign", ...retry }, options);

const answer = ({ message }: { readonly message: string }) => ({
  action: "accept" as const,
  content: { value: message.toUpperCase() },
});

behaviour("answers reach the server that asked if each run delays the servers differently", async (join) => {
  await using stack = new AsyncDisposableStack();
  const upstreams = await openUpstreams(stack);
  let runs = 0;
  const both = tool({
    name: "both",
    async run(_input, ctx) {
      const slow = runs++ % 2 ? "a" : "b";
      const { pass, open } = gate();
      const send = async (key: "a" | "b") => {
        if (key === slow) await pass;
        return await ctx.forward(async (retry, options) => {
          const result = await upstreams[key].request("tools/call", { name: "sign", ...retry }, options);
          open();
          return result;
        }, { key });
      };
      return (await Promise.allSettled([send("a"), send("b")])).map((each) =>
        each.status === "fulfilled" ? toText(each.value) : "asks"
      ).join(", ");
    },
  });
  const { client } = await join({ handlers: [both] }, { onElicit: answer });
  assertEquals(textOf(await client.callTool("both")), "a A FIRST A SECOND, b B FIRST B SECOND");
});

behaviour("answers reach the server that asked if only one server answers in time", async (join) => {
  await using stack = new AsyncDisposableStack();
  const upstreams = await openUpstreams(stack);
  let runs = 0;
  const both = tool({
    name: "both",
    async run(_input, ctx) {
      const order = ++runs % 2 ? ["a", "b"] as const : ["b", "a"] as const;
      // Without a session, the first question ends the run, so the servers never ask together.
      const results = await Promise.all(order.map(async (key) => {
        const forwarded = ctx.forward(
          sign(upstreams[key]),
          { key },
        );
        return [key, toText(await forwarded)] as const;
      }));
      return results.map(([, text]) => text).sort().join(", ");
    },
  });
  const { client } = await join({ handlers: [both] }, { onElicit: answer });
  assertEquals(textOf(await client.callTool("both")), "a A FIRST A SECOND, b B FIRST B SECOND");
});

behaviour("two servers with equal questions get two answers, whatever names they choose", async (join) => {
  const asks = (name: string) => ({
    resultType: "input_required",
    inputRequests: { [name]: { method: "elicitation/create", params: { message: "?", requestedSchema: form } } },
  });
  const names = [
    ["forward", 'forward "b": q'],
    ["a", "q"],
    ["a: q", "q"],
    ['a" 2: q', "q"],
    ["b", "q"],
    ["b 2", "q"],
    ["b: q", "q"],
  ] as const;
  const got: string[] = [];
  const many = tool({
    name: "many",
    async run(_input, ctx) {
      await Promise.all(names.map(([key, name]) =>
        ctx.forward(({ inputResponses }) => {
          if (!inputResponses) return asks(name);
          assertEquals(Object.keys(inputResponses), [name]);
          got.push(JSON.stringify(inputResponses[name]));
          return {};
        }, { key })
      ));
      await ctx.elicit("q", { message: "?", schema: form });
    },
  });
  let count = 0;
  const onElicit = () => ({ action: "accept" as const, content: { value: `${++count}` } });
  const { client } = await join({ handlers: [many] }, { onElicit });
  const { isError } = await client.callTool("many");
  assertEquals(isError, undefined);
  assertEquals([count, new Set(got).size], [names.length + 1, names.length]);
});

behaviour("a request without a key is an error that explains the key, and sends nothing", async (join) => {
  const all = [undefined, null, "seats", 5, ["seats"], {}, { name: "seats" }, { key: "seats", retry: true }];
  const keys = [undefined, null, "", 5, true, ["seats"], {}, Object("seats"), Promise.resolve("seats"), () => "seats"];
  let sent = 0;
  const handlers = [...all, ...keys.map((key) => ({ key }))].map((options, i) =>
    tool({
      name: `t${i}`,
      run: (_input, ctx) =>
        ctx.forward(
          () => (sent++, {}),
          // The cast is necessary, because the types forbid such options.
          options as { readonly key: string },
        ),
    })
  );
  const { client, takeFaults } = await join({ handlers });
  for (const { name } of handlers) {
    assertEquals((await client.callTool(name)).isError, true);
    const [{ error }] = takeFaults();
    assertEquals([error instanceof TypeError, String(error)], [true, sentence()]);
  }
  assertEquals(sent, 0);
});

behaviour("a second request with the same key is an error", async (join) => {
  const twice = tool({
    name: "twice",
    run: (_input, ctx) => Promise.all([1, 2].map(() => ctx.forward(() => ({}), { key: "seats" }))),
  });
  const after = tool({
    name: "after",
    async run(_input, ctx) {
      await ctx.once("first", () => ctx.forward(() => ({}), { key: "seats" }));
      return await ctx.forward(() => ({}), { key: "seats" });
    },
  });
  const { client, takeFaults } = await join({ handlers: [twice, after] });
  for (const name of ["twice", "after"]) {
    assertEquals((await client.callTool(name)).isError, true);
    assertEquals(String(takeFaults()[0].error), sentence("seats"));
  }
});

behaviour(
  "ctx.once keeps the result of a forwarded request, so that a later question does not repeat it",
  async (join) => {
    await using stack = new AsyncDisposableStack();
    const upstream = await openUpstream(stack, "a");
    let final = 0;
    const first = tool({
      name: "first",
      async run(_input, ctx) {
        const text = await ctx.once("text", async () => {
          const result = await ctx.forward(sign(upstream), { key: "a" });
          final++;
          return toText(result);
        });
        const { content } = await ctx.elicit("more", { message: "more", schema: form });
        return `${text}, ${content?.value}`;
      },
    });
    const { client } = await join({ handlers: [first] }, { onElicit: answer });
    assertEquals(textOf(await client.callTool("first")), "a A FIRST A SECOND, MORE");
    assertEquals(final, 1);
  },
);

behaviour("a resource and the tool that reads it can both forward requests", async (join) => {
  await using stack = new AsyncDisposableStack();
  const upstreams = await openUpstreams(stack);
  const note = resource({
    uri: "note://b",
    name: "b",
    read: async (_uri, ctx) => toText(await ctx.forward(sign(upstreams.b), { key: "sign" })),
  });
  const both = tool({
    name: "both",
    async run(_input, ctx) {
      const [contents, result] = await Promise.all([
        ctx.readResource("note://b"),
        ctx.forward(sign(upstreams.a), { key: "sign" }),
      ]);
      return `${toText(result)}, ${contents[0].text}`;
    },
  });
  const { client } = await join({ handlers: [note, both] }, { onElicit: answer });
  assertEquals(textOf(await client.callTool("both")), "a A FIRST A SECOND, b B FIRST B SECOND");
});

behaviour("no key of a tool reaches the request of a resource, whatever the key contains", async (join) => {
  await using stack = new AsyncDisposableStack();
  const upstreams = await openUpstreams(stack);
  const note = resource({
    uri: "note://b",
    name: "b",
    read: async (_uri, ctx) =>
      toText(
        await ctx.forward(
          sign(upstreams.b),
          { key: "k" },
        ),
      ),
  });
  const outer = resource({
    uri: "outer://b",
    name: "outer",
    read: async (_uri, ctx) => (await ctx.readResource("note://b"))[0].text,
  });
  for (
    const [uri, keys] of [
      ["note://b", ["note://b k", '["k","note://b"]', 'k","note://b']],
      ["outer://b", ["outer://b note://b k", '["k","note://b","outer://b"]', "note://b k"]],
    ] as const
  ) {
    for (const key of keys) {
      const both = tool({
        name: "both",
        async run(_input, ctx) {
          const [result, contents] = await Promise.all([
            ctx.forward(sign(upstreams.a), {
              key,
            }),
            ctx.readResource(uri),
          ]);
          return `${toText(result)}, ${contents[0].text}`;
        },
      });
      const { client } = await join({ handlers: [note, outer, both] }, { onElicit: answer });
      assertEquals(textOf(await client.callTool("both")), "a A FIRST A SECOND, b B FIRST B SECOND", key);
    }
  }
});

behaviour("a resource that forwards a request can be read twice in one call", async (join) => {
  const makeNote = (uri: string) =>
    resource({
      uri,
      name: uri,
      read: async (_uri, ctx) => (await ctx.forward(() => ({ text: uri }), { key: "k" })).text,
    });
  const plain = resource({ uri: "plain://x", name: "plain", read: () => "x" });
  const read = tool({
    name: "read",
    input: z.object({ uris: z.array(z.string()) }),
    run: async ({ uris }, ctx) =>
      (await Promise.all(uris.map((uri) => ctx.readResource(uri)))).map(([{ text }]) => text).join(", "),
  });
  const { client } = await join({ handlers: [makeNote("note://b"), makeNote("note://c"), plain, read] });
  const call = async (...uris: string[]) => await client.callTool("read", { uris });
  const text = textOf(await call("plain://x", "note://b", "note://c", "plain://x"));
  assertEquals(text, "x, note://b, note://c, x");
  assertEquals(textOf(await call("note://b", "note://b")), "note://b, note://b");
});

behaviour("a task can forward requests", async (join) => {
  await using stack = new AsyncDisposableStack();
  const upstreams = await openUpstreams(stack);
  const both = tool({
    name: "both",
    use: [task({ after: 0 })],
    async run(_input, ctx) {
      const keys = ["a", "b"] as const;
      const sent = keys.map((key) =>
        ctx.forward(sign(upstreams[key]), {
          key,
        })
      );
      return (await Promise.all(sent)).map(toText).join(", ");
    },
  });
  const { client } = await join({ handlers: [both, tasks()] }, { onElicit: answer });
  assertEquals(textOf(await client.callTool("both")), "a A FIRST A SECOND, b B FIRST B SECOND");
});

behaviour("the other server learns which questions the caller can answer, and no extensions", async (join, { era }) => {
  await using stack = new AsyncDisposableStack();
  const seen: unknown[] = [];
  const slow = tool({
    name: "slow",
    use: [task({ after: 0 })],
    run(_input, ctx) {
      seen.push(ctx.client.capabilities);
      return "done";
    },
  });
  const server = createServer({ name: "upstream", version: "1.0.0", handlers: [slow, tasks()] });
  stack.defer(() => server.close());
  const upstream = stack.use(await connect(server, { era: "modern" }));
  const [listed] = await upstream.listTools();
  const proxied = tool.from(
    listed,
    (input, ctx) =>
      ctx.forward((retry, options) => {
        assert(!options.signal.aborted);
        return upstream.request("tools/call", { name: listed.name, arguments: input, ...retry }, options);
      }, { key: "slow" }),
  );
  const extensions = { "io.modelcontextprotocol/tasks": {}, "com.example/other": {} };
  const capabilities = { ...CAPABILITIES, sampling: { tools: {} }, extensions, experimental: { other: {} } };
  const { client } = await join({ handlers: [proxied] }, { capabilities });
  assertEquals(textOf(await client.callTool("slow")), "done");
  assertEquals(seen, [{ ...CAPABILITIES, sampling: { tools: {} } }], era);
});
