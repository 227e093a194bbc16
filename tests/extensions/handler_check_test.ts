// What an extension can ask about the handlers of its server: whether a caller could call a handler, and which handlers
// there are.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  type Context,
  createServer,
  extension,
  McpError,
  prompt,
  resource,
  type ServerOptions,
  tool,
} from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import type { InternalRequest, ServerHandle } from "../../src/extensions/extension.ts";
import { z } from "zod";
import { behaviour, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { testClient } from "../support/test_server.ts";

type HandlerCall = Pick<InternalRequest, "method" | "params">;

const ID = "com.example/audit";
const declares = { extensions: [clientExtension({ id: ID })] };
const isStaff = ({ principal }: Context) => principal?.staff === true;

const handlers = [
  tool({ name: "open", run: () => "open" }),
  tool({ name: "pay", scopes: ["pay"], run: () => "paid" }),
  tool({ name: "secret", allow: isStaff, run: () => "secret" }),
  tool({ name: "asks", requires: ["sampling"], run: () => "asked" }),
  prompt({ name: "greet", scopes: ["pay"], run: () => "Hi" }),
  resource({ uri: "note://{id}", name: "note", allow: isStaff, read: ({ id }) => id }),
];

const call = {
  type: "object",
  properties: { method: { type: "string" }, params: { type: "object" } },
  required: ["method", "params"],
} as const;

function createAudit(start?: (server: ServerHandle) => void) {
  return extension({
    id: ID,
    sessions: true,
    methods: {
      "audit/check": {
        params: call,
        async run({ method, params }, ctx, server) {
          await server?.check(ctx, { method, params });
          return {};
        },
      },
      "audit/copy": {
        params: { type: "object" },
        async run(_params, ctx, server) {
          await server?.check({ ...ctx }, { method: "tools/call", params: { name: "open" } });
          return {};
        },
      },
    },
    listen: { audits: { filter: z.array(z.string()) } },
    start: (server) => start?.(server),
  });
}

behaviour("an extension can check whether a caller could call a handler, which does not run", async (connect) => {
  const { client, join, takeFaults } = await connect(
    { handlers: [...handlers, createAudit()] },
    { ...declares, principal: { id: "ada", scopes: [] } },
  );
  const boss = await join({ ...declares, principal: { id: "boss", scopes: ["pay"], staff: true } });
  const toCall = (name: string): HandlerCall => ({ method: "tools/call", params: { name } });
  const calls: readonly [HandlerCall, ada: number, boss: number][] = [
    [toCall("open"), 0, 0],
    [toCall("pay"), -31403, 0],
    [toCall("secret"), -32602, 0],
    // The capabilities of the client do not matter.
    [toCall("asks"), 0, 0],
    [toCall("unknown"), -32602, -32602],
    [{ method: "prompts/get", params: { name: "greet" } }, -31403, 0],
    [{ method: "resources/read", params: { uri: "note://1" } }, -32002, 0],
    [{ method: "audit/unknown", params: {} }, -32601, -32601],
  ];
  for (const [call, ...codes] of calls) {
    for (const [at, each] of [client, boss].entries()) {
      const code = await each.request("audit/check", { ...call }).then(() => 0, (error) => error.code);
      const isMissing = codes[at] === -32002 && code === -32602;
      assertEquals(isMissing ? codes[at] : code, codes[at], JSON.stringify(call));
    }
  }
  await assertRejects(() => client.request("audit/copy"), McpError);
  const [{ error }] = takeFaults();
  assertEquals(error instanceof TypeError, true);
});

behaviour("a notification of a handler reaches only subscribers that may call the handler", async (connect) => {
  const audit = createAudit();
  const { client, join } = await connect(
    { handlers: [...handlers, audit] },
    { ...declares, principal: { id: "ada", scopes: [] } },
  );
  const boss = await join({ ...declares, principal: { id: "boss", scopes: ["pay"], staff: true } });
  const wanted = { extensions: { audits: ["a", "b"] } };
  const [few, all] = [await client.subscribe(wanted), await boss.subscribe(wanted)];
  const publish = (topic: string, n: number, handler?: HandlerCall) =>
    audit.publish("audits", { topic, method: "notifications/audit", params: { n }, handler });
  publish("a", 1, { method: "tools/call", params: { name: "pay" } });
  publish("b", 2, { method: "resources/read", params: { uri: "note://1" } });
  publish("a", 3, { method: "tools/call", params: { name: "open" } });
  publish("b", 4);
  const numbersOf = ({ received }: typeof few) => received.map(({ params }) => params.n);
  await until(() => numbersOf(all).length >= 3 && numbersOf(few).length >= 2, "the notifications");
  await turn(3);
  assertEquals(numbersOf(few).sort(), [3, 4]);
  // A notification of a topic replaces an older one that still waits for its check.
  assertEquals(numbersOf(all).filter((n) => n !== 1).sort(), [2, 3, 4]);
}, { eras: ["modern"] });

Deno.test("an extension is told once when handlers are replaced, and not after it has stopped watching", async () => {
  const seen: string[] = [];
  let stop = () => {};
  const audit = createAudit(({ handlers, report }) => {
    stop = handlers.watch(() => {
      seen.push(["open", "late"].filter((name) => handlers.has("tool", name)).join());
      if (seen.length === 1) throw new Error("the watcher fails");
    });
    handlers.watch(() => {});
    report(new Error("reported"));
  });
  const faults: string[] = [];
  const options: ServerOptions = {
    name: "office",
    version: "1.0.0",
    handlers: [...handlers, audit],
    observer: { fault: ({ error }) => void faults.push(Object(error).message) },
  };
  await using server = createServer(options);
  await server.ready();
  const open = server.handlers.get("tool", "open");
  server.handlers.remove(open);
  server.handlers.add(tool({ name: "open", run: () => "again" }));
  server.handlers.add(tool({ name: "late", run: () => "late" }));
  await turn();
  assertEquals(seen, ["open,late"]);
  server.handlers.remove(server.handlers.get("tool", "open"));
  server.handlers.disable({ tool: "late" });
  await turn();
  assertEquals(seen, ["open,late", "late"]);
  stop();
  server.handlers.remove(server.handlers.get("tool", "late"));
  await turn();
  assertEquals(seen.length, 2);
  assertEquals(faults, ["reported", "the watcher fails"]);
});

Deno.test("a handler of a notification that is not a call is refused", () => {
  const audit = createAudit();
  const event = { topic: "a", method: "notifications/audit" };
  // The casts pass values that the types do not allow.
  for (
    const handler of [{ method: 5, params: {} }, { method: "tools/call", params: 1 }, {
      method: "x",
      params: { at: () => 1 },
    }]
  ) {
    const make = () => audit.publish("audits", { ...event, handler: handler as never });
    assertThrows(make, TypeError, sentence("handler"));
  }
});

Deno.test("a call of a handler for an extension can have the session value of an earlier call", async () => {
  let own: ServerHandle | undefined;
  const audit = createAudit((server) => void (own = server));
  const session = ({ http }: Context) => http ? "from the request" : "without a request";
  const read = tool({ name: "read", run: (_, ctx) => String(ctx.session(session)) });
  await using client = await testClient({ handlers: [read, audit], sessionData: session }, declares);
  await client.listTools();
  const textFor = async (more: object) => {
    const result = await own?.call({ method: "tools/call", params: { name: "read" }, ...more });
    return Object(result).content[0].text;
  };
  assertEquals(await textFor({}), "without a request");
  assertEquals(await textFor({ session: ["kept"] }), "kept");
  assertEquals(await textFor({ session: [] }), "undefined");
  await assertRejects(() => textFor({ session: "kept" }), TypeError);
});
