// Downgrades for clients of older revisions, and behaviour that is the same in all revisions.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, media, prompt, resource, resourceLink, tool } from "../../mod.ts";
import type { Revision, SamplingMessage, ServerOptions } from "../../mod.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { behaviour, LEGACY_VERSIONS, plainTool, textOf, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { readReply, toStatus } from "../support/requests.ts";
import { closeAtEnd } from "../support/running.ts";

const sound = media(new Uint8Array([1]), "audio/wav");
const file = resourceLink("file:///a.txt", { title: "A file" });
const handlers = [
  tool({ name: "object", output: z.object({ n: z.number() }), run: () => ({ n: 1 }) }),
  tool({ name: "list", output: z.array(z.number()), run: () => [1] }),
  tool({ name: "content", run: () => [sound, file, { type: "text", text: "x" }] }),
  prompt({ name: "sing", run: () => [sound, file] }),
  resource({ uri: "note://1", name: "note", read: () => "hello" }),
];

const asResource = { type: "resource", resource: { uri: "result:audio", mimeType: "audio/wav", blob: "AQ==" } };
const asText = { type: "text", text: "A file: file:///a.txt" };

behaviour("each revision gets only the fields that it defines", async (connect, { version }) => {
  const { client } = await connect({ handlers });
  const isStructured = version >= "2025-06-18";
  const [object, list] = await client.listTools();
  assertEquals(object.outputSchema !== undefined, isStructured);
  // Before 2026-07-28, the structured content of a tool is an object.
  assertEquals(list.outputSchema !== undefined, version === "2026-07-28");
  const structured = await Promise.all(["object", "list"].map((name) => client.callTool(name)));
  assertEquals(structured.map(({ structuredContent }) => structuredContent), [
    isStructured ? { n: 1 } : undefined,
    version === "2026-07-28" ? [1] : undefined,
  ]);
  assertEquals(structured.map(({ content }) => content), [[{ type: "text", text: '{"n":1}' }], [{
    type: "text",
    text: "[1]",
  }]]);
  const blocks = [version >= "2025-03-26" ? sound : asResource, version >= "2025-06-18" ? file : asText];
  assertEquals((await client.callTool("content")).content, [...JSON.parse(JSON.stringify(blocks)), {
    type: "text",
    text: "x",
  }]);
  const { messages } = await client.getPrompt("sing");
  assertEquals(messages.map(({ content }) => content), JSON.parse(JSON.stringify(blocks)));
}, { versions: LEGACY_VERSIONS });

behaviour("the error for a missing resource has the code that the revision defines", async (connect, { era }) => {
  const { client } = await connect({ handlers });
  const error = await assertRejects(() => client.readResource("note://2"), McpError);
  assertEquals([error.code, error.data], [era === "modern" ? -32602 : -32002, { uri: "note://2" }]);
  assertEquals((await client.readResource("note://1")).contents, [{
    uri: "note://1",
    mimeType: "text/plain",
    text: "hello",
  }]);
}, { versions: LEGACY_VERSIONS, transports: ["memory", "pipe"] });

behaviour(
  "clients that subscribed to a resource are notified of its changes, and other clients are not",
  async (connect) => {
    const { client, server, join } = await connect({ handlers });
    const other = await join();
    const watching = await client.subscribe({ resourceSubscriptions: ["note://1", "note://gone"] });
    const elsewhere = await other.subscribe({ resourceSubscriptions: ["note://3"], toolsListChanged: true });
    server.resourceUpdated("note://1");
    server.resourceUpdated("note://2");
    server.resourceUpdated("note://1");
    const [news] = await watching.take(1);
    assertEquals([news.method, news.params.uri], ["notifications/resources/updated", "note://1"]);
    server.resourceUpdated("note://3");
    await elsewhere.take(1);
    server.resourceUpdated("note://1");
    await watching.take(2);
    assertEquals(watching.received.map(({ params }) => params.uri), ["note://1", "note://1"]);
    assertEquals(elsewhere.received.map(({ params }) => params.uri), ["note://3"]);
    await watching.close();
    server.resourceUpdated("note://1");
    server.resourceUpdated("note://3");
    await elsewhere.take(2);
    assertEquals(watching.received.length, 2);
  },
);

behaviour(
  "the limit of watched resources per client is enforced, and the error names the limit",
  async (connect, { era }) => {
    const { client } = await connect({ handlers, limits: testLimits({ streams: { watchedUris: 2 } }) });
    const uris = ["a:1", "a:2", "a:3"];
    const error = await assertRejects(
      () => client.subscribe({ resourceSubscriptions: uris }),
      McpError,
      "(streams.watchedUris)",
    );
    assertEquals(error.code, -32602);
    if (era === "modern") return;
    assertEquals(await client.request("resources/unsubscribe", { uri: "a:1" }), {});
    assertEquals(await client.request("resources/subscribe", { uri: "a:3" }), {});
    assertEquals((await assertRejects(() => client.request("resources/subscribe", {}), McpError)).code, -32602);
  },
);

behaviour(
  "the limit of subscriptions per client is enforced, and the error names the limit",
  async (connect, { transport }) => {
    const { client } = await connect({ handlers, limits: { connections: { streams: 2 } } });
    const [first] = await Promise.all([client.subscribe({}), client.subscribe({})]);
    const error = await assertRejects(() => client.subscribe({}), McpError, "streams");
    assertEquals(error.status, transport === "pipe" ? undefined : 503);
    await first.close();
    // Over HTTP, the server detects a closed stream only after a short delay.
    let again: unknown;
    await until(() => {
      if (!again) client.subscribe({}).then((opened) => again = opened, () => {});
      return again !== undefined;
    }, "a new subscription is accepted");
  },
  { eras: ["modern"], perInstance: "limits" },
);

behaviour(
  "a value that is not a JSON object is not sent as structured content before 2026-07-28",
  async (connect, way) => {
    class Money {
      toJSON() {
        return "5 EUR";
      }
    }
    class Point {
      x = 1;
    }
    const values: Record<string, [value: unknown, json: unknown]> = {
      date: [new Date(0), "1970-01-01T00:00:00.000Z"],
      url: [new URL("https://x.example/"), "https://x.example/"],
      text: [new Money(), "5 EUR"],
      boxed: [new String("x"), "x"],
      list: [[1, 2], [1, 2]],
      mixed: [{ toJSON: () => [1] }, [1]],
      nothing: [{ toJSON: () => null }, null],
      plain: [{ at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
      point: [new Point(), { x: 1 }],
      bare: [Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
      made: [{ toJSON: () => ({ b: 2 }) }, { b: 2 }],
    };
    const names = Object.keys(values);
    const { client } = await connect({
      handlers: [
        ...names.map((name) => tool({ name, run: () => values[name][0] as object })),
        ...names.map((name) =>
          tool({ name: `${name}-full`, run: () => ({ content: [], structuredContent: values[name][0] }) })
        ),
      ],
    });
    for (const name of names) {
      const [, json] = values[name];
      const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
      const isSent = way.version === "2026-07-28" || isObject && way.version >= "2025-06-18";
      const given = await client.callTool(name);
      assertEquals(given.content, [{ type: "text", text: JSON.stringify(json) }], name);
      if (json !== null) assertEquals(given.structuredContent, isSent ? json : undefined, name);
      const full = await client.callTool(`${name}-full`);
      if (json !== null) assertEquals(full.structuredContent, isSent ? json : undefined, name);
      // The value is sent as text instead of structured content.
      assertEquals(full.content, isSent ? [] : [{ type: "text", text: JSON.stringify(json) }], name);
    }
  },
  { versions: LEGACY_VERSIONS, transports: ["memory", "pipe"] },
);

behaviour(
  "property schemas that are true or false are sent as objects before 2026-07-28",
  async (connect, { version }) => {
    const properties = { any: true, none: false, text: { type: "string" } } as const;
    const schema = { type: "object", properties } as const;
    const { client } = await connect({
      handlers: [tool({ name: "t", input: schema, output: schema, run: () => ({}) })],
    });
    const [{ inputSchema, outputSchema }] = await client.listTools();
    const wanted = version === "2026-07-28" ? properties : { any: {}, none: { not: {} }, text: { type: "string" } };
    assertEquals(Object(inputSchema).properties, wanted);
    if (version >= "2025-06-18") assertEquals(Object(outputSchema).properties, wanted);
  },
  { versions: LEGACY_VERSIONS, transports: ["memory", "pipe"] },
);

const choices = z.object({
  one: z.enum(["a", "b"]),
  titled: z.union([z.literal("x").meta({ title: "The X" }), z.literal("y").meta({ title: "The Y" })]).default("y"),
  many: z.array(z.enum(["red", "green"])).meta({ title: "Colors", description: "Of the car" }),
  maybe: z.array(z.enum(["p", "q"])).optional(),
  chosen: z.array(z.enum(["m", "n"])).default(["n"]),
  "many: red": z.boolean().optional(),
});

behaviour(
  "a form has the kinds of choices that the revision defines, and each kind gives the same answer",
  async (connect, { version }) => {
    const pick = plainTool(
      "pick",
      async (ctx) => JSON.stringify(await ctx.elicit("form", { message: "?", schema: choices })),
    );
    const isOld = version < "2025-11-25";
    const asked: Record<string, unknown>[] = [];
    const answers = isOld
      ? [
        {
          one: "a",
          titled: "x",
          "many: red": false,
          "many:: red": true,
          "many: green": true,
          "maybe: p": true,
          "maybe: q": false,
          "chosen: m": true,
        },
        { one: "b", titled: "y" },
      ]
      : [
        { one: "a", titled: "x", many: ["red", "green"], maybe: ["p"], chosen: ["m"], "many: red": false },
        { one: "b", titled: "y", many: [] },
      ];
    const { client } = await connect({ handlers: [pick] }, {
      capabilities: { elicitation: {} },
      answer({ params }) {
        asked.push(params);
        return { action: "accept", content: answers[asked.length - 1] };
      },
    });
    const first = JSON.parse(textOf(await client.callTool("pick")));
    assertEquals(first, {
      action: "accept",
      content: { one: "a", titled: "x", many: ["red", "green"], maybe: ["p"], chosen: ["m"], "many: red": false },
    });
    const second = JSON.parse(textOf(await client.callTool("pick")));
    assertEquals(second.content, { one: "b", titled: "y", many: [], chosen: ["n"] });
    if (!isOld) return;
    assertEquals(asked[0].requestedSchema, {
      type: "object",
      properties: {
        one: { type: "string", enum: ["a", "b"] },
        titled: { type: "string", default: "y", enum: ["x", "y"], enumNames: ["The X", "The Y"] },
        "many:: red": { type: "boolean", title: "Colors: red", description: "Of the car" },
        "many: green": { type: "boolean", title: "Colors: green", description: "Of the car" },
        "maybe: p": { type: "boolean", title: "maybe: p" },
        "maybe: q": { type: "boolean", title: "maybe: q" },
        "chosen: m": { type: "boolean", title: "chosen: m" },
        "chosen: n": { type: "boolean", title: "chosen: n", default: true },
        "many: red": { type: "boolean" },
      },
      required: ["one"],
    });
  },
  { versions: ["2025-11-25", "2025-06-18"] },
);

behaviour(
  "a client that declares form elicitation by mode gets all kinds of choices in every revision",
  async (connect) => {
    const pick = plainTool(
      "pick",
      async (ctx) => JSON.stringify(await ctx.elicit("form", { message: "?", schema: choices })),
    );
    const asked: Record<string, unknown>[] = [];
    const content = { one: "a", titled: "x", many: ["red"], maybe: [], chosen: ["m"], "many: red": false };
    const { client } = await connect({ handlers: [pick] }, {
      capabilities: { elicitation: { form: {} } },
      answer({ params }) {
        asked.push(params);
        return { action: "accept", content };
      },
    });
    assertEquals(JSON.parse(textOf(await client.callTool("pick"))), { action: "accept", content });
    const { properties }: { properties?: Record<string, unknown> } = Object(asked[0].requestedSchema);
    assertEquals(Object(properties?.many).type, "array");
  },
  { versions: ["2025-11-25", "2025-06-18"] },
);

behaviour("declining a form with choices reaches the handler as a decline", async (connect) => {
  const pick = plainTool(
    "pick",
    async (ctx) => JSON.stringify(await ctx.elicit("form", { message: "?", schema: choices })),
  );
  const { client } = await connect({ handlers: [pick] }, { answer: () => ({ action: "decline" }) });
  assertEquals(textOf(await client.callTool("pick")), '{"action":"decline"}');
}, { versions: ["2025-06-18"] });

behaviour("sampling messages contain only the content that the revision defines", async (connect, { version }) => {
  const text = (text: string) => ({ type: "text", text }) as const;
  const audio = { type: "audio", data: "AQ==", mimeType: "audio/wav" } as const;
  let messages: SamplingMessage[] = [];
  const ask = plainTool("ask", async (ctx) => (await ctx.sample("q", { messages, maxTokens: 1 })).model);
  const asked: unknown[] = [];
  const { client } = await connect({ handlers: [ask] }, {
    answer({ params }) {
      asked.push(params.messages);
      return { role: "assistant", content: text("x"), model: "m" };
    },
  });
  messages = [{ role: "user", content: [text("a"), text("b")] }, { role: "assistant", content: text("c") }];
  await client.callTool("ask");
  assertEquals(
    asked.pop(),
    version >= "2025-11-25" ? messages : [
      { role: "user", content: text("a") },
      { role: "user", content: text("b") },
      { role: "assistant", content: text("c") },
    ],
  );
  messages = [{ role: "user", content: [audio] }];
  if (version < "2025-03-26") {
    const error = await assertRejects(() => client.callTool("ask"), McpError, sentence(version));
    assertEquals([error.code, asked], [-32600, []]);
    return;
  }
  await client.callTool("ask");
  assertEquals(asked, [version >= "2025-11-25" ? messages : [{ role: "user", content: audio }]]);
}, { versions: LEGACY_VERSIONS });

// The option `revisions`: the server serves clients of the listed revisions, and sends other clients the list of
// supported revisions.

const ALL = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
const [NEWEST, ...OLDER] = ALL;

const hello = tool({ name: "hello", run: () => "Hello!" });

function serve(revisions: readonly Revision[] | undefined, options: Partial<ServerOptions> = {}) {
  return closeAtEnd(createServer({ name: "s", version: "1.0.0", handlers: [hello], revisions, ...options }));
}

const lists: readonly (readonly Revision[])[] = [
  [NEWEST],
  ["2025-11-25"],
  ["2024-11-05", "2025-06-18"],
  [NEWEST, "2025-11-25"],
  [NEWEST, "2025-03-26", "2024-11-05"],
  [...OLDER],
];

for (const transport of ["memory", "pipe", "http"] as const) {
  Deno.test(`only clients of the listed revisions are served, over ${transport}`, async () => {
    for (const revisions of lists) {
      for (const revision of ALL) {
        const connected = connectTest(serve(revisions), { transport, revisions: [revision] });
        if (revisions.includes(revision)) {
          await using client = await connected;
          assertEquals((await client.callTool("hello")).content, [{ type: "text", text: "Hello!" }]);
        } else if (revision === NEWEST || revisions.every((each) => each === NEWEST)) {
          const call = async () => {
            await using client = await connected;
            await client.callTool("hello");
          };
          const { code, data } = await assertRejects(call) as Error & { code?: number; data?: unknown };
          assertEquals([code, data], [-32022, {
            supported: ALL.filter((each) => revisions.includes(each)),
            requested: revision,
          }], `${revisions} for ${revision}`);
        } else {
          // The client can accept the revision that the server offers instead.
          const offered = OLDER.find((each) => revisions.includes(each));
          const client = await connected.catch((error: Error) => error);
          const said = client instanceof Error ? client.message : client.server.version;
          assert(said?.includes(`${offered}`), `${revisions} for ${revision}: ${said}`);
          if (!(client instanceof Error)) await client.close();
        }
      }
    }
  });
}

Deno.test("a client that supports all revisions negotiates a listed revision", async () => {
  for (const revisions of lists) {
    await using server = serve(revisions);
    const fetch = (request: Request) => server.fetch(request);
    await using client = await connectClient("http://localhost/mcp", { fetch });
    assertEquals(client.server.version, ALL.find((each) => revisions.includes(each)), `${revisions}`);
    assertEquals((await client.callTool("hello")).content, [{ type: "text", text: "Hello!" }]);
  }
});

function toRequest(method: string, headers: Record<string, string>, params: object = {}): Request {
  return new Request("http://localhost/mcp", {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    headers: {
      host: "localhost",
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers,
    },
  });
}

Deno.test("a request that states an unlisted revision is refused, even if only its header states it", async () => {
  const cases: readonly (readonly [revisions: readonly Revision[], stated: string])[] = [
    [[NEWEST], "2025-11-25"],
    [[NEWEST, "2025-11-25"], "2025-06-18"],
    [["2025-11-25"], NEWEST],
    [["2025-11-25"], "2027-01-01"],
    [["2025-11-25", "2024-11-05"], "2025-06-18"],
  ];
  for (const [revisions, stated] of cases) {
    await using server = serve(revisions);
    for (const method of ["tools/list", "ping"]) {
      const response = await server.fetch(toRequest(method, { "mcp-protocol-version": stated }));
      const { id, error } = await readReply(response);
      assertEquals([response.status, id, error.code, error.data.requested], [400, 1, -32022, stated]);
      assertEquals([...error.data.supported].sort(), [...revisions].sort());
    }
  }
});

Deno.test("a session is unknown if its revision is no longer listed", async () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const before = serve(undefined, { secret });
  const offer = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const opened = await before.fetch(toRequest("initialize", {}, offer));
  const session = opened.headers.get("mcp-session-id") ?? "";
  await opened.body?.cancel();
  const headers = { "mcp-session-id": session };
  assertEquals(await toStatus(before.fetch(toRequest("ping", headers))), 200);
  const after = serve([NEWEST, "2025-11-25"], { secret });
  assertEquals(await toStatus(after.fetch(toRequest("ping", headers))), 404);
  await Promise.all([before.close(), after.close()]);
});

Deno.test("a list that is empty, or contains a value other than a revision, is refused", () => {
  const wrong: readonly unknown[] = [[], ["2026-07-27"], [NEWEST, "latest"], [undefined], [null], NEWEST, {}, [[
    NEWEST,
  ]]];
  for (const revisions of wrong) {
    assertThrows(() => serve(revisions as Revision[]), TypeError, "revisions", JSON.stringify(revisions));
  }
  assertThrows(() => createServer(undefined as never), TypeError);
  assertThrows(() => serve(undefined, { versions: [NEWEST] } as object), TypeError, sentence("versions", "revisions"));
});
