// Lists: pagination, changes at runtime, and visibility.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, prompt, resource, tool } from "../../mod.ts";
import { type Connection, McpError } from "../../src/testing/testing.ts";
import { behaviour, LEGACY_VERSIONS, raise, textOf, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

const make = (name: string) => tool({ name, run: () => name });
const five = ["e", "d", "c", "b", "a"].map(make);

async function listPages(client: Connection): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: unknown;
  do {
    const { tools, nextCursor } = await client.request("tools/list", cursor === undefined ? {} : { cursor });
    pages.push((tools as { name: string }[]).map(({ name }) => name));
    cursor = nextCursor;
  } while (cursor !== undefined);
  return pages;
}

behaviour("a list is sent in pages, in order of registration", async (connect) => {
  for (const [page, pages] of [[2, ["ed", "cb", "a"]], [5, ["edcba"]], [4, ["edcb", "a"]], [250, ["edcba"]]] as const) {
    const { client } = await connect({ handlers: five, limits: testLimits({ calls: { pageItems: page } }) });
    assertEquals((await listPages(client)).map((names) => names.join("")), [...pages]);
    assertEquals((await listPages(client)).flat().join(""), "edcba", "the order changed");
  }
});

behaviour("callers share a list page only if they can see the same entries", async (connect) => {
  const sees = new Map([["ada", "abc"], ["bob", "abc"], ["eve", "b"], ["mel", "abcd"]]);
  const handlers = [..."abcde"].map((name) =>
    tool({ name, allow: ({ principal }) => !!sees.get(principal?.id ?? "")?.includes(name), run: () => name })
  );
  const { server, join } = await connect({ handlers });
  const clients = new Map<string, Connection>();
  for (const id of sees.keys()) clients.set(id, await join({ principal: { id } }));
  const list = async (id: string) => (await clients.get(id)?.listTools() ?? []).map(({ name }) => name).join("");
  for (let round = 0; round < 3; round++) {
    for (const [id, names] of sees) assertEquals(await list(id), names, `${id}, round ${round}`);
  }
  sees.set("ada", "");
  sees.set("eve", "acde");
  for (const [id, names] of sees) assertEquals(await list(id), names, `${id}, after a change`);
  server.handlers.remove(handlers[2]);
  for (const [id, names] of sees) assertEquals(await list(id), names.replace("c", ""), `${id}, after a removal`);
});

behaviour(
  "decisions of allow may be promises or not, in any order, and each page of a caller is complete",
  async (connect) => {
    const names = Array.from({ length: 23 }, (_, at) => `tool_${at}`);
    for (const isHidden of [(at: number) => at % 3 === 1, (at: number) => at < 11, () => false, () => true]) {
      for (const isSlow of [(at: number) => at % 2 === 0, (at: number) => at > 8, () => true, () => false]) {
        const handlers = names.map((name, at) => {
          const isShown = !isHidden(at);
          return tool({ name, allow: () => isSlow(at) ? turn().then(() => isShown) : isShown, run: () => name });
        });
        const { client } = await connect({ handlers, limits: testLimits({ calls: { pageItems: 4 } }) });
        const shown = names.filter((_, at) => !isHidden(at));
        const pages = await listPages(client);
        assertEquals(pages.flat(), shown);
        assertEquals(pages.length, Math.max(1, Math.ceil(shown.length / 4)));
        assertEquals(await listPages(client), pages);
      }
    }
  },
);

behaviour(
  "entries of a list that depends on the caller have the same form as in a list for all callers",
  async (connect, { version }) => {
    const input = { type: "object", properties: { any: true, none: false } } as const;
    const output = { type: "array", items: { type: "string" } } as const;
    const toHandlers = (allow?: () => boolean) => [
      tool({
        name: "typed",
        title: "Typed",
        icons: [{ src: "https://example.com/a.png" }],
        input,
        output,
        allow,
        run: () => [],
      }),
      prompt({ name: "greet", allow, run: () => "Hello" }),
      resource({ uri: "docs://readme", name: "readme", allow, read: () => "text" }),
      resource({ uri: "docs://{id}", name: "page", allow, read: () => "text" }),
    ];
    const { client: open } = await connect({ handlers: toHandlers() });
    const { client: decided } = await connect({ handlers: toHandlers(() => true) });
    for (const method of ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]) {
      const { cacheScope: _, ...entries } = await open.request(method);
      // The second time, the server takes the texts from its cache.
      for (const time of ["first", "second"]) {
        const { cacheScope: _, ...others } = await decided.request(method);
        assertEquals(others, entries, `${method} in ${version}, the ${time} time`);
      }
    }
  },
  { versions: LEGACY_VERSIONS },
);

behaviour("a list request with input responses changes nothing for other callers", async (connect) => {
  const { client } = await connect({ handlers: five, ttlMs: 5000 });
  await client.request("tools/list", { inputResponses: {} }).catch(() => {});
  assertEquals((await client.request("tools/list")).ttlMs, 5000);
  assertEquals((await client.request("tools/list", { inputResponses: {} })).ttlMs, 0);
}, { eras: ["modern"] });

behaviour("an invalid cursor gets the error -32602", async (connect) => {
  const { client, server } = await connect({ handlers: five, limits: testLimits({ calls: { pageItems: 2 } }) });
  const { nextCursor } = await client.request("tools/list");
  const wrong = [
    "",
    "x",
    "ZQ",
    "!!",
    "x".repeat(10_000),
    `${nextCursor}x`,
    btoa("prompts:e"),
    btoa("tools:zzz"),
    5,
    {},
    ["a"],
  ];
  for (const cursor of wrong) {
    const error = await assertRejects(() => client.request("tools/list", { cursor }), McpError);
    assertEquals(error.code, -32602, JSON.stringify(cursor).slice(0, 99));
    assert(error.message.length < 400, "the error quotes the whole cursor");
  }
  server.handlers.remove(five[1]);
  assertEquals(
    (await assertRejects(() => client.request("tools/list", { cursor: nextCursor }), McpError)).code,
    -32602,
  );
});

behaviour("handlers can be added and removed while the server runs", async (connect) => {
  const { client, server } = await connect({ handlers: [make("a")] });
  const b = make("b");
  server.handlers.add(b, make("c"));
  assertEquals((await client.listTools()).map(({ name }) => name), ["a", "b", "c"]);
  assertEquals(textOf(await client.callTool("b")), "b");
  server.handlers.remove(b);
  server.handlers.remove(b, make("never_there"));
  assertEquals((await client.listTools()).map(({ name }) => name), ["a", "c"]);
  assertEquals((await assertRejects(() => client.callTool("b"), McpError)).code, -32602);
  server.handlers.add(b);
  assertEquals(textOf(await client.callTool("b")), "b");
});

behaviour("removing a handler by kind and name also removes the handlers that were added with it", async (connect) => {
  const ask = () =>
    prompt({ name: "a", input: z.object({ x: z.string() }), complete: { x: () => ["1"] }, run: () => "" });
  const note = () => resource({ uri: "note://{id}", name: "a", read: () => "text" });
  const { client, server } = await connect({ handlers: [make("a"), ask(), note()] });
  server.handlers.remove(make("a"));
  assertEquals(await client.listTools(), []);
  assertEquals([(await client.listPrompts()).length, (await client.listResourceTemplates()).length], [1, 1]);
  server.handlers.remove(ask(), note());
  assertEquals(server.handlers.list(), []);
  server.handlers.add(make("a"), ask(), note());
  const { values } = await client.complete({ type: "ref/prompt", name: "a" }, { name: "x", value: "" });
  assertEquals(values, ["1"]);
});

Deno.test("a server lists its handlers, and another server can be created from them", () => {
  const review = prompt({
    name: "review",
    complete: { x: () => [] },
    input: { type: "object", properties: { x: {} } },
    run: () => "",
  });
  const [a, b] = ["a", "b"].map(make);
  const server = createServer({ name: "lists", version: "1.0.0", handlers: [a, review] });
  server.handlers.add(b);
  assertEquals(server.handlers.list(), [a, review, b]);
  server.handlers.remove(...server.handlers.list());
  assertEquals(server.handlers.list(), []);
  server.handlers.add(b, review);
  assertEquals(server.handlers.list(), [b, review]);
});

behaviour("add refuses a handler that conflicts with the registered handlers, and changes nothing", async (connect) => {
  const { client, server } = await connect({ handlers: [make("a")] });
  assertThrows(() => server.handlers.add(make("b"), make("a")), TypeError, '"a"');
  assertThrows(() => server.handlers.add(make("b"), make("b")), TypeError, '"b"');
  // A caller in plain JavaScript can pass such a value.
  assertThrows(() => server.handlers.add({ name: "b" } as never), TypeError, sentence("tool()"));
  assertEquals((await client.listTools()).map(({ name }) => name), ["a"]);
});

behaviour("after its last handler was removed, a feature has an empty list", async (connect) => {
  const a = make("a");
  const { client, server } = await connect({ handlers: [a] });
  server.handlers.remove(a);
  assertEquals((await client.listTools()).length, 0);
});

behaviour(
  "subscribers are notified of list changes once per burst, and get no other notifications",
  async (connect) => {
    const { client, server, join } = await connect({ handlers: [make("a")] });
    const other = await join();
    const tools = await client.subscribe({ toolsListChanged: true });
    const nothing = await other.subscribe({});
    assertEquals(tools.granted, { toolsListChanged: true });
    for (const name of ["b", "c", "d"]) server.handlers.add(make(name));
    const [first] = await tools.take(1);
    assertEquals(first.method, "notifications/tools/list_changed");
    server.handlers.add(make("e"));
    await tools.take(2);
    assertEquals((await client.listTools()).length, 5);
    assertEquals(tools.received.length, 2);
    assertEquals(nothing.received, []);
    await tools.close();
    server.handlers.add(make("f"));
    assertEquals((await client.listTools()).length, 6);
  },
);

behaviour("a subscription is granted only the notifications that the server can send", async (connect) => {
  const { client } = await connect({ handlers: [make("a")] });
  const wanted = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourceSubscriptions: ["x://y"],
    noSuchThing: true,
  };
  const { granted } = await client.subscribe(wanted);
  assertEquals(granted, { toolsListChanged: true });
  for (const notifications of [undefined, null, 5, { resourceSubscriptions: "x" }, { resourceSubscriptions: [1] }]) {
    const error = await assertRejects(() => client.request("subscriptions/listen", { notifications }), McpError);
    assertEquals(error.code, -32602);
  }
}, { eras: ["modern"] });

behaviour("several subscriptions of one client each get their own notifications", async (connect) => {
  const { client, server } = await connect({ handlers: [make("a")] });
  const [one, two, none] = await Promise.all([
    client.subscribe({ toolsListChanged: true }),
    client.subscribe({ toolsListChanged: true }),
    client.subscribe({}),
  ]);
  server.handlers.add(make("b"));
  await Promise.all([one.take(1), two.take(1)]);
  await one.close();
  server.handlers.add(make("c"));
  await two.take(2);
  assertEquals([one.received.length, two.received.length, none.received.length], [1, 2, 0]);
  await client.listTools();
});

behaviour("a closing server ends subscriptions with a final result", async (connect, { transport }) => {
  const { client, server } = await connect({
    handlers: [make("a")],
    title: "Long",
    icons: [{ src: "data:image/png;base64,eA==" }],
  });
  const subscriptions = await Promise.all([
    client.subscribe({ toolsListChanged: true }),
    client.subscribe({ resourceSubscriptions: ["x://1"] }),
  ]);
  await server.close();
  for (const { ended } of subscriptions) {
    const { resultType, _meta } = Object(await ended);
    assertEquals([resultType, _meta["io.modelcontextprotocol/serverInfo"]], ["complete", {
      name: "fixture",
      version: "1.0.0",
    }]);
  }
  // Over a pipe, the client cannot close a response, so it sends a cancellation.
  const cancelled = client.transcript.filter((line) => line.includes("notifications/cancelled"));
  const params = cancelled.map((line) => JSON.parse(line.slice(line.indexOf("{"))).params);
  assertEquals(params.length, transport === "pipe" ? 2 : 0);
  for (const { requestId, _meta } of params) {
    assertEquals(_meta, { "io.modelcontextprotocol/subscriptionId": requestId });
  }
}, { eras: ["modern"] });

behaviour("a server with subscriptions but no running calls closes immediately", async (connect) => {
  const slow = tool({ name: "slow", run: () => turn().then(() => "done") });
  const { client, server } = await connect({ handlers: [slow], limits: { calls: { closeMs: 60_000 } } });
  await client.subscribe({ toolsListChanged: true });
  await client.callTool("slow");
  let isClosed = false;
  server.close().then(() => isClosed = true);
  await until(() => isClosed, "the server has closed, long before closeMs");
});

behaviour("a closing server ends the stream of a session", async (connect) => {
  const { client, server } = await connect({ handlers: [make("a")] });
  const subscription = await client.subscribe({ toolsListChanged: true });
  await server.close();
  await subscription.ended;
}, { eras: ["legacy"], transports: ["memory", "http"] });

for (const hides of [(is: boolean) => is, (is: boolean) => Promise.resolve(is)]) {
  const kind = hides(true) instanceof Promise ? "a promise" : "a value";
  behaviour(
    `for a caller from which a handler is hidden, the handler does not exist (allow gives ${kind})`,
    async (connect, { era }) => {
      const secret = tool({
        name: "secret",
        allow: ({ principal }) => hides(principal?.id === "ada"),
        run: () => "shown",
      });
      const handlers = [make("a"), secret, make("b"), make("c")];
      const { client: eve, join } = await connect({ handlers, limits: testLimits({ calls: { pageItems: 2 } }) }, {
        principal: { id: "eve" },
      });
      const ada = await join({ principal: { id: "ada" } });
      const nobody = await join();
      assertEquals((await listPages(ada)).flat(), ["a", "secret", "b", "c"]);
      assertEquals((await listPages(eve)).flat(), ["a", "b", "c"]);
      assertEquals((await listPages(nobody)).flat(), ["a", "b", "c"]);
      assertEquals(textOf(await ada.callTool("secret")), "shown");
      const refused = await assertRejects(() => eve.callTool("secret"), McpError);
      const unknown = await assertRejects(() => eve.callTool("zecret"), McpError);
      assertEquals([refused.code, refused.data], [-32602, undefined]);
      assertEquals(
        refused.message,
        unknown.message.replace("zecret", "secret"),
        "the error reveals that the handler exists",
      );
      if (era === "modern") assertEquals((await eve.request("tools/list")).cacheScope, "private");
    },
  );
}

behaviour("a client cannot detect a handler whose allow throws", async (connect) => {
  const broken = tool({ name: "broken", allow: () => raise(new Error("secret")), run: () => "" });
  const { client, takeFaults } = await connect({ handlers: [make("a"), broken] });
  const error = await assertRejects(() => client.callTool("broken"), McpError);
  assertEquals([error.code, error.message, error.data], [-32602, sentence('"broken"'), undefined]);
  assertEquals((await client.listTools()).map(({ name }) => name), ["a"]);
  assertEquals(takeFaults().map(({ error }) => String(error)), ["Error: secret", "Error: secret"]);
  assertEquals(textOf(await client.callTool("a")), "a");
});

behaviour("a list stays complete while handlers are added and removed under load", async (connect) => {
  const { client, server } = await connect({ handlers: five, limits: testLimits({ calls: { pageItems: 100 } }) });
  let busy = true;
  const reading = Promise.all(Array.from({ length: 5 }, async () => {
    while (busy) {
      const names = (await client.listTools()).map(({ name }) => name);
      assertEquals(names.slice(0, 5).join(""), "edcba");
      assert(names.length <= 6);
      await turn();
    }
  }));
  for (let i = 0; i < 20; i++) {
    const extra = make(`extra${i}`);
    server.handlers.add(extra);
    await turn();
    server.handlers.remove(extra);
  }
  busy = false;
  await reading;
}, { transports: ["memory", "pipe"] });
