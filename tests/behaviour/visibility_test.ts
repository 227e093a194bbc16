// Tags, enable and disable, groups, lookup by name, and resources that handlers read, in every era and over every
// transport.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  createServer,
  extension,
  group,
  type Middleware,
  prompt,
  resource,
  resourceProvider,
  type Schema,
  service,
  tool,
  ToolError,
} from "../../mod.ts";
import { allScopes } from "../../src/auth/auth.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import type { StandardSchema } from "../../src/core/schema/schema.ts";
import { guard, quota } from "../../src/layers/layers.ts";
import { type Connection, McpError, type TestSubscription } from "../../src/testing/testing.ts";
import {
  behaviour,
  FENCE,
  fence,
  fenced,
  gate,
  raise,
  started,
  textOf,
  turn,
  until,
  withoutFences,
} from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const names = async (client: Connection) => (await client.listTools()).map(({ name }) => name);
const isAda = ({ principal }: { readonly principal?: { readonly id: string } }) => principal?.id === "ada";

/** Returns the lists whose changes the client was notified of. */
function listChanged({ received }: Connection): string[] {
  return received.flatMap(({ method }) => /notifications\/(\w+)\/list_changed/.exec(method)?.[1] ?? []).sort();
}

function forget({ received }: Connection): void {
  (received as unknown[]).length = 0;
}

async function listen(client: Connection): Promise<TestSubscription> {
  const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  return await client.subscribe({ ...lists, resourceSubscriptions: ["a:b", FENCE] });
}

behaviour("handlers are disabled and enabled by name and by tag, for all callers", async (connect) => {
  const wipe = tool({ name: "wipe", tags: ["admin"], run: () => "wiped" });
  const read = tool({ name: "read", run: () => "read" });
  const text = { input: { text: z.string() }, complete: { text: () => ["x"] } };
  const ask = prompt({ name: "ask", tags: ["admin"], ...text, run: () => "asked" });
  const file = resource({ uri: "a:b", name: "b", tags: ["admin"], read: () => "b" });
  const files = resource({
    uri: "c://{d}",
    name: "d",
    complete: { d: () => ["x"] },
    list: () => [{ uri: "c://1", name: "1" }],
    read: ({ d }) => d,
  });
  const { client, server } = await connect({ handlers: [wipe, read, ask, file, files] });
  server.handlers.disable({ tag: "admin" });
  server.handlers.disable({ resource: "c://{d}" });
  assertEquals(await names(client), ["read"]);
  assertEquals([await client.listPrompts(), await client.listResources(), await client.listResourceTemplates()], [
    [],
    [],
    [],
  ]);
  await assertRejects(() => client.callTool("wipe"), Error, sentence('"wipe"'));
  await assertRejects(() => client.getPrompt("ask", { text: "" }), Error, sentence('"ask"'));
  const argument = { name: "text", value: "" };
  await assertRejects(() => client.complete({ type: "ref/prompt", name: "ask" }, argument), Error, sentence('"ask"'));
  const ref = { type: "ref/resource" as const, uri: "c://{d}" };
  await assertRejects(() => client.complete(ref, { name: "d", value: "" }), Error, sentence(JSON.stringify(ref.uri)));
  for (const uri of ["a:b", "c://1"]) await assertRejects(() => client.readResource(uri), Error, sentence());
  // The last matching rule decides.
  server.handlers.enable({ tool: "wipe" });
  assertEquals(await names(client), ["wipe", "read"]);
  server.handlers.disable({ tag: "admin" });
  assertEquals(await names(client), ["read"]);
  server.handlers.enable({ tag: "admin" });
  server.handlers.enable(files);
  assertEquals(await names(client), ["wipe", "read"]);
  assertEquals((await client.listResources()).map(({ uri }) => uri), ["a:b", "c://1"]);
  assertEquals((await client.complete(ref, { name: "d", value: "" })).values, ["x"]);
  // The rule applies to a handler that is added after it.
  server.handlers.disable({ tag: "new" });
  server.handlers.add(tool({ name: "late", tags: ["new"], run: () => "" }));
  assertEquals(await names(client), ["wipe", "read"]);
});

behaviour("if handlers are disabled for some callers, only these callers are notified", async (connect) => {
  const wipe = tool({ name: "wipe", tags: ["admin"], run: () => "wiped" });
  const read = tool({ name: "read", run: () => "read" });
  const file = resource({ uri: "a:b", name: "b", tags: ["admin"], read: () => "b" });
  const hidden = tool({ name: "hidden", tags: ["admin"], allow: () => false, run: () => "" });
  const { server, join } = await connect({ handlers: [wipe, read, file, hidden, fenced] });
  const ada = await join({ principal: { id: "ada" } });
  const bob = await join({ principal: { id: "bob" } });
  const subscriptions = [await listen(ada), await listen(bob)];
  const expectChanged = async (ofAda: string[], ofBob: string[]) => {
    await fence(server, ...subscriptions);
    assertEquals([listChanged(ada), listChanged(bob)], [ofAda, ofBob]);
    forget(ada);
    forget(bob);
  };
  await expectChanged([], []);
  server.handlers.disable({ tag: "admin" });
  await expectChanged(["resources", "tools"], ["resources", "tools"]);
  server.handlers.enable({ tag: "admin" }, isAda);
  await expectChanged(["resources", "tools"], []);
  assertEquals([await names(ada), await names(bob)], [["wipe", "read"], ["read"]]);
  await assertRejects(() => bob.callTool("wipe"), Error, sentence('"wipe"'));
  await assertRejects(() => bob.readResource("a:b"), Error, sentence());
  assertEquals(textOf(await ada.callTool("wipe")), "wiped");
  // The rule changed no caller's list.
  server.handlers.enable({ tag: "admin" }, isAda);
  await expectChanged([], []);
  // Changes that cancel each other out within one batch are not announced.
  server.handlers.disable({ tag: "admin" }, isAda);
  server.handlers.enable({ tag: "admin" }, isAda);
  await expectChanged([], []);
  server.resourceUpdated("a:b");
  await fence(server, ...subscriptions);
  assertEquals([ada, bob].map((client) => withoutFences(client).map(({ method }) => method)), [
    ["notifications/resources/updated"],
    [],
  ]);
  forget(ada);
  server.handlers.enable({ tag: "admin" });
  await expectChanged([], ["resources", "tools"]);
  // The tool's `allow` still decides.
  assertEquals(await names(bob), ["wipe", "read"]);
  server.handlers.disable({ tag: "admin" }, async (ctx) => {
    await undefined;
    return !isAda(ctx);
  });
  await expectChanged([], ["resources", "tools"]);
  server.handlers.remove(server.handlers.get("tool", "wipe"));
  await expectChanged(["tools"], []);
}, { transports: ["memory", "http"], perInstance: "later" });

behaviour(
  "a group is added and removed as a whole, and has its own names, middleware, tags and access",
  async (connect) => {
    const log: string[] = [];
    const note = (name: string): Middleware => async (_, next) => {
      log.push(name);
      return await next();
    };
    const db = service("db", () => "db");
    const add = tool({
      name: "add",
      use: [note("add")],
      tags: ["write"],
      services: { db },
      allow: ({ services: { db } }) => db === "db",
      run: (_, { services: { db } }) => `added to ${db}`,
    });
    const secret = tool({ name: "secret", allow: () => false, run: () => "" });
    const text = { input: { text: z.string() }, complete: { text: () => ["x"] } };
    const ask = prompt({ name: "ask", ...text, run: () => "asked" });
    const one = resource({ uri: "note://{id}", name: "note", complete: { id: () => ["1"] }, read: ({ id }) => id });
    const all = resourceProvider({ scheme: "all", name: "all", read: (uri) => uri });
    const inner = group("inner", [tool({ name: "clear", run: () => "cleared" })], { use: [note("inner")] });
    const notes = group("notes", [add, secret, ask, one, all, inner], {
      use: [note("notes")],
      tags: ["desk"],
      allow: async (ctx) => {
        await undefined;
        return isAda(ctx);
      },
    });
    const { server, client, join } = await connect({ handlers: [notes] });
    const ada = await join({ principal: { id: "ada" } });
    assertEquals([await names(ada), await names(client)], [["notes_add", "notes_inner_clear"], []]);
    assertEquals((await ada.listPrompts()).map(({ name }) => name), ["notes_ask"]);
    assertEquals((await client.listPrompts()).length, 0);
    assertEquals(textOf(await ada.callTool("notes_add")), "added to db");
    assertEquals(textOf(await ada.callTool("notes_inner_clear")), "cleared");
    assertEquals(log, ["notes", "add", "notes", "inner"]);
    const ref = { type: "ref/prompt" as const, name: "notes_ask" };
    assertEquals((await ada.complete(ref, { name: "text", value: "" })).values, ["x"]);
    await assertRejects(() => client.complete(ref, { name: "text", value: "" }));
    const complete = { type: "ref/resource" as const, uri: "note://{id}" };
    assertEquals((await ada.complete(complete, { name: "id", value: "" })).values, ["1"]);
    for (const uri of ["note://1", "all:x"]) {
      await ada.readResource(uri);
      await assertRejects(() => client.readResource(uri), Error, sentence());
    }
    assertEquals(server.handlers.list(), [notes]);
    assertEquals(server.handlers.get("tool", "notes_add")?.tags, ["desk", "write"]);
    assertEquals(server.handlers.get("group", "notes_inner")?.name, "notes_inner");
    assertEquals(server.handlers.get("tool", "add"), undefined);
    server.handlers.disable({ group: "notes_inner" });
    assertEquals(await names(ada), ["notes_add"]);
    server.handlers.disable({ tag: "write" });
    assertEquals(await names(ada), []);
    server.handlers.disable({ group: "notes" });
    server.handlers.enable({ group: "notes" });
    assertEquals(await names(ada), ["notes_add", "notes_inner_clear"]);
    server.handlers.remove(notes);
    assertEquals([await names(ada), server.handlers.list()], [[], []]);
    server.handlers.add(notes);
    assertEquals((await names(ada)).length, 2);
  },
);

Deno.test("group throws for invalid names, invalid extensions and a value that is not a handler", () => {
  assertThrows(() => group("a b", []), TypeError, sentence("a b"));
  const audit = extension({ id: "com.example/audit" });
  assertThrows(() => group("a", [audit]), TypeError, sentence('group "a"', '"com.example/audit"'));
  assertThrows(() => group("a", [{ name: "x" } as never]), TypeError, sentence('group "a"', '"x"'));
  const long = tool({ name: "x".repeat(128), run: () => "" });
  assertThrows(() => group("a", [long]), TypeError, sentence("a_xxx"));
  const twice = [group("a", [tool({ name: "x", run: () => "" })]), tool({ name: "a_x", run: () => "" })];
  assertThrows(() => createServer({ name: "s", version: "1.0.0", handlers: twice }), TypeError, sentence('tool "a_x"'));
});

behaviour("a handler can find, remove, disable and add handlers", async (connect) => {
  const log = tool({ name: "log", tags: ["extra"], run: () => "" });
  const change = tool({
    name: "change",
    input: { how: z.string() },
    run({ how }, { server: { handlers } }) {
      if (how === "remove") handlers.remove(handlers.get("tool", "log"));
      if (how === "add") handlers.add(log);
      if (how === "disable") handlers.disable({ tag: "extra" }, isAda);
      if (how === "enable") handlers.enable({ tag: "extra" });
      return handlers.list().map(({ name }) => name).join();
    },
  });
  const { client, join } = await connect({ handlers: [log, change] });
  const ada = await join({ principal: { id: "ada" } });
  const run = async (how: string) => textOf(await client.callTool("change", { how }));
  assertEquals([await run("remove"), await names(client)], ["change", ["change"]]);
  assertEquals([await run("add"), await names(client)], ["change,log", ["change", "log"]]);
  await run("disable");
  assertEquals([await names(client), await names(ada)], [["change", "log"], ["change"]]);
  await run("enable");
  assertEquals(await names(ada), ["change", "log"]);
}, { perInstance: "handlers" });

behaviour("an invalid selection throws, and disables no handler", async (connect) => {
  const { client, server } = await connect({
    handlers: [
      tool({ name: "a", run: () => "" }),
      resource({ uri: "note://{id}", name: "note", read: ({ id }) => id }),
      resource({ uri: "note://1", name: "first", read: () => "first" }),
      resourceProvider({ scheme: "file", name: "files", list: () => ({ resources: [] }), read: () => "file" }),
    ],
  });
  const { handlers } = server;
  // The test runs twice, because the first rule loads the code for rules.
  for (let i = 0; i < 2; i++) {
    assertThrows(() => handlers.disable({ toool: "a" } as never), TypeError, sentence("toool"));
    for (const toggle of [handlers.disable, handlers.enable]) {
      assertThrows(
        () => toggle({ resource: "note://7" }),
        TypeError,
        sentence("note://7", "note://{id}"),
      );
      assertThrows(() => toggle({ resource: "file://a" }), TypeError, sentence('"file://a"', '"file:"'));
    }
    assertEquals(await names(client), ["a"]);
    handlers.disable({ resource: "note://1" });
    handlers.disable({ resource: "other://later" });
    assertEquals((await client.listResources()).length, 0);
    handlers.disable({ resource: "note://{id}" });
    assertEquals(await client.listResourceTemplates(), []);
    await assertRejects(() => client.readResource("note://7"), Error, sentence());
    handlers.enable({ resource: "note://{id}" });
    assertEquals((await client.readResource("note://7")).contents.length, 1);
  }
});

behaviour(
  "a handler reads resources with its caller's access, and the guards and middleware of the resource run",
  async (connect) => {
    const seen: string[] = [];
    const mine = resource({
      uri: "mine:notes",
      name: "mine",
      allow: isAda,
      use: [
        guard({ output: [(text) => typeof text === "string" ? text.replace("secret", "[redacted]") : undefined] }),
        async (ctx, next) => {
          seen.push(ctx.method);
          return await next();
        },
      ],
      read: (_, { principal, log }) => {
        log.info("reading");
        return `${principal?.id}: secret`;
      },
    });
    const scoped = resource({ uri: "scoped:notes", name: "scoped", scopes: ["notes:read"], read: () => "scoped" });
    const copy = tool({
      name: "copy",
      input: { uri: z.string() },
      async run({ uri }, ctx) {
        const [{ text }] = await ctx.readResource(uri);
        return `${text}`;
      },
    });
    const { join } = await connect({
      handlers: [mine, scoped, copy],
      use: [async (ctx, next) => {
        if (ctx.method === "resources/read") seen.push("server");
        return await next();
      }],
    });
    const ada = await join({ principal: { id: "ada", scopes: [] } });
    const bob = await join({ principal: { id: "bob", scopes: allScopes } });
    assertEquals(textOf(await ada.callTool("copy", { uri: "mine:notes" })), "ada: [redacted]");
    assertEquals(seen, ["server", "resources/read"]);
    for (const uri of ["mine:notes", "none:x"]) {
      await assertRejects(() => bob.callTool("copy", { uri }), Error, sentence());
    }
    await assertRejects(() => ada.callTool("copy", { uri: "scoped:notes" }), Error, "notes:read");
    assertEquals(textOf(await bob.callTool("copy", { uri: "scoped:notes" })), "scoped");
  },
);

behaviour(
  "resources that read each other in a cycle fail, and a question in a nested read reaches the client",
  async (connect) => {
    const loop = resource({
      uri: "loop://{n}",
      name: "loop",
      read: async ({ n }, ctx) => `${(await ctx.readResource(`loop://${Number(n) + 1}`))[0].text}`,
    });
    const deep = resource({
      uri: "deep://{n}",
      name: "deep",
      read: async ({ n }, ctx) => n === "0" ? "end" : `${(await ctx.readResource(`deep://${Number(n) - 1}`))[0].text}`,
    });
    const asking = resource({
      uri: "ask:name",
      name: "ask",
      async read(_, ctx) {
        const schema = { type: "object", properties: { name: { type: "string" } } } as const;
        const { content } = await ctx.elicit("name", { message: "Name?", schema });
        if (!content) throw new ToolError("No name");
        return `Hello ${content.name}`;
      },
    });
    const copy = tool({
      name: "copy",
      input: { uri: z.string() },
      run: async ({ uri }, ctx) => `${(await ctx.readResource(uri))[0].text}`,
    });
    const { client, takeFaults } = await connect({ handlers: [loop, deep, asking, copy] }, {
      onElicit: () => ({ action: "accept", content: { name: "Ada" } }),
    });
    assertEquals(textOf(await client.callTool("copy", { uri: "deep://7" })), "end");
    await assertRejects(() => client.callTool("copy", { uri: "loop://1" }), Error, sentence());
    assertStringIncludes(takeFaults().map(({ error }) => String(error)).join("\n"), sentence("loop://9", 8));
    assertEquals(textOf(await client.callTool("copy", { uri: "ask:name" })), "Hello Ada");
  },
);

behaviour("cancelling a call also cancels its resource read", async (connect) => {
  let aborted = false;
  let isReading = false;
  const slow = resource({
    uri: "slow:x",
    name: "slow",
    read: (_, { signal }) =>
      new Promise((_, reject) => {
        isReading = true;
        signal.addEventListener("abort", () => {
          aborted = true;
          reject(signal.reason);
        });
      }),
  });
  const copy = tool({ name: "copy", run: async (_, ctx) => void await ctx.readResource("slow:x") });
  const { client } = await connect({ handlers: [slow, copy] });
  const cancelled = new AbortController();
  const call = client.callTool("copy", {}, { signal: cancelled.signal }).catch(() => {});
  await until(() => isReading, "the resource is being read");
  cancelled.abort();
  await call;
  await until(() => aborted, "the server cancels the read");
});

behaviour("allow of a resource decides for each concrete resource, also in groups and under rules", async (connect) => {
  const one = resource({
    uri: "note://{id}",
    name: "note",
    allow: (_, variables) => variables?.id !== "secret",
    read: ({ id }) => id,
  });
  const { client, server } = await connect({ handlers: [group("notes", [one], { allow: () => true })] });
  for (let i = 0; i < 2; i++) {
    assertEquals((await client.readResource("note://1")).contents.length, 1);
    await assertRejects(() => client.readResource("note://secret"), Error, sentence());
    server.handlers.disable({ group: "notes" }, isAda);
  }
});

for (const queue of ["server", "handler"] as const) {
  behaviour(`a call in the queue of the ${queue} is refused if its handler was removed`, async (connect) => {
    const { pass, open: openGate } = gate();
    const ran: string[] = [];
    const reached: string[] = [];
    const own = queue === "handler" ? [quota({ concurrency: 1 })] : [];
    const note = (name: string) => {
      ran.push(name);
      return name;
    };
    let isHeld = false;
    const holdAndNote = async () => {
      isHeld = true;
      await pass;
      return note("hold");
    };
    let isClosed = false;
    const isOpen = () => !isClosed;
    // If the server has no free slot, it refuses a call whose first `allow` is asynchronous.
    const isOpenLater = () => isClosed ? Promise.resolve(false) : true;
    const removed = tool({ name: "removed", use: own, run: () => note("removed") });
    const handlers = [
      tool({ name: "hold", use: own, run: holdAndNote }),
      tool({ name: "disabled", use: own, run: () => note("disabled") }),
      removed,
      tool({ name: "hidden", use: own, allow: isOpen, run: () => note("hidden") }),
      tool({ name: "hidden_later", use: own, allow: isOpenLater, run: () => note("hidden later") }),
      tool({
        name: "kept",
        use: own,
        allow: () => isClosed ? Promise.resolve(true) : true,
        run: async () => await note("kept"),
      }),
      resource({ uri: "x://gone", name: "gone", use: own, read: () => note("gone") }),
    ];
    const { client, server } = await connect({
      handlers,
      limits: queue === "server" ? { calls: { running: 1 } } : {},
      observer: { limit: ({ limit }) => reached.push(limit) },
    });
    const hold = started(client.callTool("hold"));
    await until(() => isHeld, "the first call runs");
    const kept = started(client.callTool("kept"));
    const calls = ["disabled", "removed", "hidden", "hidden_later"].map((name) => started(client.callTool(name)));
    const read = started(client.readResource("x://gone"));
    await until(() => reached.length >= 6, "all calls wait");
    server.handlers.disable({ tool: "disabled" });
    server.handlers.remove(removed, server.handlers.get("resource", "x://gone"));
    isClosed = true;
    await turn();
    openGate();
    assertEquals(textOf(await hold), "hold");
    for (const call of calls) assertStringIncludes(String(await call.catch((error) => error)), sentence("McpError"));
    assertStringIncludes(String(await read.catch((error) => error)), sentence("McpError"));
    assertEquals(textOf(await kept), "kept");
    assertEquals(ran, ["hold", "kept"]);
  }, { perInstance: "limits" });
}

behaviour("a call can be cancelled while its handler is looked up again", async (connect) => {
  const { pass, open } = gate();
  const { pass: decided, open: decide } = gate();
  const reached: string[] = [];
  const ran: string[] = [];
  let isSlow = false;
  let isHeld = false;
  let asked = 0;
  const allow = () => {
    if (!isSlow) return true;
    asked++;
    return decided.then(() => true);
  };
  const { client } = await connect({
    handlers: [
      tool({ name: "hold", run: () => (isHeld = true, pass.then(() => "hold")) }),
      tool({ name: "slow", allow, run: () => void ran.push("slow") }),
      tool({ name: "quick", run: () => "quick" }),
    ],
    limits: { calls: { running: 1 } },
    observer: { limit: ({ limit }) => reached.push(limit) },
  });
  const hold = started(client.callTool("hold"));
  await until(() => isHeld, "the first call runs");
  const abort = new AbortController();
  const slow = started(client.callTool("slow", {}, { signal: abort.signal }));
  await until(() => reached.length === 1, "the call waits");
  isSlow = true;
  open();
  await hold;
  await until(() => asked === 1, "the lookup has started");
  abort.abort();
  await assertRejects(() => slow);
  // The slot is free again, although the lookup has not ended.
  assertEquals(textOf(await client.callTool("quick")), "quick");
  decide();
  // If the call had started, it would have started before this next call.
  assertEquals(textOf(await client.callTool("quick")), "quick");
  assertEquals(ran, []);
}, { perInstance: "limits" });

// Visibility rules that are added while a call waits for a slot.

behaviour("a waiting call does not run if a rule added in the meantime disables its handler", async (connect) => {
  const first = gate();
  let runs = 0;
  const hold = tool({ name: "hold", run: first.enter });
  const secret = tool({ name: "secret", run: () => void runs++ });
  const { client, server } = await connect({
    handlers: [hold, secret],
    limits: { calls: { running: 1, runningPerClient: 1 } },
  });
  const held = client.callTool("hold");
  await until(() => first.entered, "the first call runs");
  const waiting = started(client.callTool("secret"));
  await until(() => server[INTERNALS].engine.scheduler.waiting === 1, "the second call waits");
  server.handlers.disable(secret);
  first.open();
  await held;
  await assertRejects(() => waiting, McpError, sentence('"secret"'));
  assertEquals(runs, 0);
}, { perInstance: "limits" });

behaviour("a handler cannot read a resource that the same handler has disabled", async (connect) => {
  const file = resource({ uri: "x://a", name: "a", read: () => "secret" });
  const read = tool({
    name: "read",
    async run(_, { server, readResource }) {
      server.handlers.disable({ resource: "x://a" });
      return await readResource("x://a").then(() => "read", () => "refused");
    },
  });
  const { client } = await connect({ handlers: [file, read] });
  assertEquals((await client.callTool("read")).content, [{ type: "text", text: "refused" }]);
});

// A visibility change that cannot be applied throws immediately, and changes nothing.

behaviour(
  "disable() and enable() throw if a list cannot be compiled, and the next rules apply without the failed rule",
  async (join) => {
    const views = extension({ id: "com.example/views" });
    let isBroken = false;
    const verify = () => {
      if (isBroken) throw new Error("the check is broken");
      return undefined;
    };
    const shown = tool({ name: "shown", tags: ["b"], use: [views.layer({ verify })], run: () => "shown" });
    const secret = tool({ name: "secret", tags: ["a"], run: () => "the secret" });
    const { client, server } = await join({ handlers: [views, shown, secret] });
    const list = async () => (await client.listTools()).map(({ name }) => name);
    isBroken = true;
    assertThrows(() => server.handlers.disable({ tag: "a" }), Error, "the check is broken");
    assertThrows(() => server.handlers.disable({ tool: "secret" }), Error, "the check is broken");
    assertEquals(await list(), ["shown", "secret"]);
    isBroken = false;
    server.handlers.disable({ tag: "b" });
    assertEquals(await list(), ["secret"]);
    isBroken = true;
    assertThrows(() => server.handlers.enable({ tag: "b" }), Error, "the check is broken");
    assertEquals(await list(), ["secret"]);
    isBroken = false;
  },
);

// `allow` of a resource with parameters decides for each concrete resource. For the caller, a hidden resource does not
// exist, and its changes are not announced.

const users = service("users", () => new Map([["ada", "ada"], ["bob", "bob"]]));
const subjects: unknown[] = [];

const note = resource({
  uri: "note://{user}/{title}",
  name: "note",
  services: { users },
  allow: (ctx, note) => {
    subjects.push(note);
    return !note || note.user === ctx.services.users.get(ctx.principal?.id ?? "");
  },
  complete: { title: (_value, _others, { principal }) => [`of ${principal?.id}`] },
  list: ({ principal }) => [{ uri: `note://${principal?.id}/1`, name: "1" }],
  read: ({ user, title }) => `${title} of ${user}`,
});
const file = resourceProvider({
  scheme: "file",
  name: "files",
  allow: async ({ principal }, uri) => await !uri || uri?.startsWith(`file://${principal?.id}/`) === true,
  read: (uri) => uri,
});
const fixed = resource({ uri: "fixed://1", name: "fixed", allow: (_, uri) => uri === "fixed://1", read: () => "1" });

behaviour("`allow` of a resource with parameters decides for each concrete resource", async (connect) => {
  const { client: ada, server, join } = await connect({ handlers: [note, file, fixed] }, { principal: { id: "ada" } });
  const bob = await join({ principal: { id: "bob" } });
  for (
    const [of, other, unknown] of [["note://ada/x", "note://bob/x", "note://eve/x"], [
      "file://ada/x",
      "file://bob/x",
      "file://eve/x",
    ]]
  ) {
    await ada.readResource(of);
    await bob.readResource(other);
    const refusals = [];
    for (const uri of [other, unknown]) refusals.push(Object(await assertRejects(() => ada.readResource(uri))));
    const [hidden, missing] = refusals.map(({ code, message }) => [code, message.replace(/bob|eve/, "")]);
    assertEquals(hidden, missing);
  }
  await ada.readResource("fixed://1");
  // Each caller sees the template and its own list of resources.
  assertEquals((await ada.listResourceTemplates()).map(({ name }) => name), ["note"]);
  assertEquals((await ada.listResources()).map(({ uri }) => uri), ["note://ada/1"]);
  const ref = { type: "ref/resource", uri: "note://{user}/{title}" } as const;
  assertEquals((await ada.complete(ref, { name: "title", value: "" })).values, ["of ada"]);

  const uris = ["note://ada/x", "note://bob/x", "file://bob/x", "file://ada/x"];
  const watching = await ada.subscribe({ resourceSubscriptions: uris });
  const others = await bob.subscribe({ resourceSubscriptions: uris });
  for (const uri of uris.toReversed()) server.resourceUpdated(uri);
  assertEquals((await watching.take(2)).map(({ params }) => params.uri).sort(), ["file://ada/x", "note://ada/x"]);
  assertEquals((await others.take(2)).map(({ params }) => params.uri).sort(), ["file://bob/x", "note://bob/x"]);
  // `allow` gets decoded variables, and gets no variables in a list request.
  subjects.length = 0;
  await assertRejects(() => ada.readResource("note://%62ob/x"));
  // The server may at the same time check changes that another instance announced, so `subjects` can contain more
  // entries.
  const users = subjects.map((subject) => Object(subject).user);
  assertEquals([users.includes("%62ob"), users.includes("bob")], [false, true]);
  assertEquals(subjects.includes(undefined), false);
  await ada.listResources();
  assert(subjects.includes(undefined));
});

// Return values of `allow` and similar functions. Only `true` grants access. Any value that is not a boolean denies
// access, and is reported to the observer.

/** Values that an author may return by mistake, instead of `true` or `false`. */
const ODD: readonly unknown[] = [
  undefined,
  null,
  1,
  0,
  "yes",
  "",
  {},
  [],
  () => true,
  Promise.resolve("yes"),
  Promise.resolve(undefined),
  Promise.resolve([true]),
  { then: (resolve: (value: unknown) => void) => resolve({ granted: false }) },
];

/** Creates a function that returns `value`. Its type claims that the value is a boolean. */
function deciding(value: unknown): () => boolean {
  return () => value as boolean;
}

behaviour("a handler is hidden if its allow returns neither true nor false", async (connect) => {
  for (const odd of ODD) {
    const secret = tool({ name: "secret", allow: deciding(odd), run: () => "told" });
    const grouped = group("team", [tool({ name: "secret", run: () => "told" })], { allow: deciding(odd) });
    const inner = group("open", [tool({ name: "secret", allow: deciding(odd), run: () => "told" })], {
      allow: () => true,
    });
    const file = resource({ uri: "secret://{id}", name: "secret", allow: deciding(odd), read: () => "told" });
    const { client, takeFaults } = await connect({ handlers: [secret, grouped, inner, file] });
    assertEquals(await client.listTools(), []);
    assertEquals(await client.listResourceTemplates(), []);
    for (const name of ["secret", "team_secret", "open_secret"]) await assertRejects(() => client.callTool(name));
    await assertRejects(() => client.readResource("secret://1"));
    const faults = takeFaults();
    assert(faults.length);
    for (const { error } of faults) assertEquals(String(error), sentence("TypeError", "allow"));
  }
}, { transports: ["http", "pipe"] });

behaviour("a rule that selects other callers does not replace an `allow` that fails", async (connect) => {
  for (const odd of ODD) {
    const secret = tool({ name: "secret", allow: deciding(odd), run: () => "told" });
    const { client, server, takeFaults } = await connect({ handlers: [secret] });
    // The rule does not select this caller, so the tool's own `allow` decides.
    server.handlers.disable(secret, () => false);
    assertEquals(await client.listTools(), []);
    server.handlers.enable(secret, () => true);
    assertEquals(await client.listTools(), []);
    await assertRejects(() => client.callTool("secret"));
    assert(takeFaults().length);
  }
}, { transports: ["http"] });

behaviour("a rule that returns neither true nor false hides its handlers", async (connect) => {
  const messages = new Set<string>();
  for (const odd of ODD) {
    const open = tool({ name: "open", run: () => "told" });
    const { client, server, takeFaults } = await connect({ handlers: [open] });
    server.handlers.disable(open, deciding(odd));
    assertEquals(await client.listTools(), []);
    server.handlers.enable(open);
    assertEquals((await client.listTools()).length, 1);
    server.handlers.disable(open);
    server.handlers.enable(open, deciding(odd));
    assertEquals(await client.listTools(), []);
    await assertRejects(() => client.callTool("open"));
    const faults = takeFaults();
    assert(faults.length);
    for (const { error } of faults) messages.add(String(error));
  }
  // Sorted, because a runtime may report an error of one value after an error of the next value.
  for (const message of [...messages].sort()) assertEquals(message, sentence("TypeError"));
}, { transports: ["http"] });

behaviour("a log message is sent only to clients for which `to` returns true", async (connect) => {
  const { client, server, takeFaults } = await connect();
  await client.request("logging/setLevel", { level: "debug" });
  const fail = () => raise(new Error("cannot decide"));
  for (const odd of ODD) server.log.info("secret", { to: deciding(odd) });
  server.log.info("secret", { to: fail });
  server.log.info("public", { to: () => true });
  await client.request("ping");
  const messages = client.received.filter(({ method }) => method === "notifications/message");
  assertEquals(messages.map(({ params }) => params?.data), ["public"]);
  assertEquals(takeFaults().length, ODD.length + 1);
}, { eras: ["legacy"], transports: ["pipe"] });

behaviour("a schema that returns neither a value nor issues refuses every input", async (connect) => {
  const results: readonly unknown[] = [
    {},
    true,
    { success: false },
    { issues: undefined },
    Promise.resolve({}),
    { then: (resolve: (value: unknown) => void) => resolve({ success: true }) },
  ];
  for (const result of results) {
    const schema: Schema = {
      "~standard": {
        version: 1,
        vendor: "own",
        validate: () => result as StandardSchema.Result, // The cast acts as an author without types would.
        jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
      },
    };
    let ran = 0;
    const run = () => `${++ran}`;
    const handlers = [tool({ name: "whole", input: schema, run }), tool({ name: "part", input: { a: schema }, run })];
    const { client, takeFaults } = await connect({ handlers });
    for (const name of ["whole", "part"]) await client.callTool(name, { a: {} }).catch(() => {});
    assertEquals(ran, 0);
    assertEquals(takeFaults().length, 2);
  }
}, { transports: ["http"] });
