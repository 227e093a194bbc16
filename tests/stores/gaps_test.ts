// An instance that could not read a topic, until other messages have pushed its messages out of the topic.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { type Context, resource, type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { gate, until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import { asking } from "../tasks/declared.ts";
import { openServer } from "../support/servers.ts";

const ENTRIES = 40;
const form = z.object({ text: z.string() });

/** Starts an instance that can be cut off from the store. */
function serve(shared: Store) {
  const instance: { isCut: boolean; around?: (command: Command) => unknown } = { isCut: false };
  const ended: string[] = [];
  const { pass, open } = gate();
  const store = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), (command) => {
      if (instance.isCut) throw new Error("no route to the store");
      return instance.around?.(command) ?? command.run();
    }), { leaseMs: 60_000, pollMs: 20, logEntries: ENTRIES });
  const use = [task()];
  const add = (name: string, run: (ctx: Context) => Promise<unknown>) =>
    tool({
      name,
      use,
      async run(_input, ctx) {
        const end = (how: string) => ended.push(`${ctx.principal?.id} ${name} ${how}`);
        await run(ctx).then(() => end("done"), (error) => {
          end(ctx.signal.aborted ? "aborted" : `${error}`);
          throw error;
        });
        return "done";
      },
    });
  const untilAborted = ({ signal }: Context) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const server = openServer({
    handlers: [
      tasks(),
      add("ask", (ctx) => ctx.elicit("who", { message: "Who?", schema: form })),
      add("twice", async (ctx) => {
        await ctx.elicit("who", { message: "Who?", schema: form });
        await ctx.elicit("sure", { message: "Sure?", schema: form });
      }),
      add("both", async (ctx) => {
        await Promise.all(["one", "two"].map((key) => ctx.elicit(key, { message: `${key}?`, schema: form })));
      }),
      add("wait", untilAborted),
      add("pass", (ctx) => Promise.race([pass, untilAborted(ctx)])),
    ],
    store,
    observer: { store() {} },
    limits: { calls: { closeMs: 20 } },
  });
  return Object.assign(instance, { server, ended, open });
}

const start = async (client: Connection, name: string) =>
  String((await client.request("tools/call", { name, arguments: {} }, { finish: false })).taskId);
const update = async (client: Connection, taskId: string, text: string) => {
  const who = { action: "accept", content: { text } };
  await client.request("tasks/update", { taskId, inputResponses: { who } });
};

async function untilAsked(client: Connection, taskId: string, key: string) {
  const isAsked = async () => {
    const { inputRequests } = await client.request("tasks/get", { taskId });
    return inputRequests !== undefined && Object.hasOwn(Object(inputRequests), key);
  };
  await until(isAsked, key);
}

Deno.test("the process of a task gets answers, cancellations and subscriptions that other messages have pushed out of its topic", async () => {
  const shared = memoryStore();
  const [a, b] = [serve(shared), serve(shared)];
  const [ada, eve] = [{ ...asking, principal: { id: "ada" } }, { ...asking, principal: { id: "eve" } }];
  await using here = await connectTest(a.server, ada);
  await using there = await connectTest(b.server, ada);
  await using flooder = await connectTest(a.server, eve);
  await using flooding = await connectTest(b.server, eve);
  const [asked, waiting, passing] = [await start(here, "ask"), await start(here, "wait"), await start(here, "pass")];
  const flooded = await start(flooder, "twice");
  await untilAsked(there, asked, "who");
  await untilAsked(flooding, flooded, "who");
  await update(flooding, flooded, "Eve");
  await untilAsked(flooding, flooded, "sure");
  a.isCut = true;
  await update(there, asked, "Ada");
  await there.request("tasks/cancel", { taskId: waiting });
  await using subscription = await there.subscribe({ extensions: { taskIds: [passing] } });
  for (let i = 0; i < 2 * ENTRIES; i++) await update(flooding, flooded, `${i}`);
  a.isCut = false;
  await until(() => a.ended.includes("ada ask done"), "the answer");
  await until(() => a.ended.includes("ada wait aborted"), "the cancellation");
  a.open();
  const isTold = () =>
    subscription.received.some(({ params }) => params.taskId === passing && params.status === "completed");
  await until(isTold, "the notification");
});

type Instance = ReturnType<typeof serve>;

const send = async (instance: Instance, message: object, session?: string) =>
  await instance.server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...session && { "mcp-session-id": session },
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    }),
    { principal: { id: "ada" } },
  );
const hello = {
  protocolVersion: "2025-11-25",
  capabilities: { elicitation: {} },
  clientInfo: { name: "c", version: "1" },
};
const openSession = async (instance: Instance) => {
  const response = await send(instance, { id: 0, method: "initialize", params: hello });
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
};
const call = async (a: Instance, id: number, name: string, session: string) => {
  const { body } = await send(a, { id, method: "tools/call", params: { name, arguments: {} } }, session);
  const read = { text: "" };
  void (async () => {
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) read.text += part;
  })();
  return read;
};
const toQuestions = (text: string) =>
  [...text.matchAll(/"id":"(ask-[^"]+)"[^\n]*"message":"(\w+)/g)].map(([, id, message]) => ({ id, message }));

Deno.test("a call in a session gets the answer and the cancellation that other messages have pushed out of the topic", async () => {
  const shared = memoryStore();
  const [a, b] = [serve(shared), serve(shared)];
  const [session, other] = [await openSession(a), await openSession(b)];
  // The second instance knows both sessions.
  for (const each of [session, other]) await (await send(b, { id: 1, method: "ping" }, each)).text();
  const asking = await call(a, 2, "ask", session);
  await call(a, 3, "wait", session);
  await until(() => asking.text.includes("elicitation/create"), "the question");
  const id = /"id":"(ask-[^"]+)"/.exec(asking.text)?.[1];
  a.isCut = true;
  const answer = { id, result: { action: "accept", content: { text: "Ada" } } };
  assertEquals((await send(b, answer, session)).status, 202);
  const cancel = { method: "notifications/cancelled", params: { requestId: 3 } };
  assertEquals((await send(b, cancel, session)).status, 202);
  for (let i = 0; i < 2 * ENTRIES; i++) {
    const level = i % 2 ? "info" : "debug";
    const response = await send(b, { id: 10 + i, method: "logging/setLevel", params: { level } }, other);
    assertStringIncludes(await response.text(), "result");
  }
  a.isCut = false;
  await until(() => a.ended.includes("ada ask done"), "the answer");
  await until(() => a.ended.includes("ada wait aborted"), "the cancellation");
  await until(() => asking.text.includes("done"), "the result");
  // A later message is received once, although the log has been read.
  const again = await call(a, 4, "ask", session);
  await until(() => again.text.includes("elicitation/create"), "the second question");
  const second = /"id":"(ask-[^"]+)"/.exec(again.text)?.[1];
  assertEquals((await send(b, { ...answer, id: second }, session)).status, 202);
  await until(() => again.text.includes("done"), "the second result");
  assertEquals(a.ended.toSorted(), ["ada ask done", "ada ask done", "ada wait aborted"]);
});

Deno.test("a call in a session gets all answers, although their notifications arrive in another order", async () => {
  const shared = memoryStore();
  const [a, b] = [serve(shared), serve(shared)];
  const session = await openSession(a);
  await (await send(b, { id: 1, method: "ping" }, session)).text();
  const asking = await call(a, 2, "both", session);
  await until(() => toQuestions(asking.text).length === 2, "the questions");
  const { pass, open } = gate();
  let log: unknown;
  let isHeld = false;
  // Delay the notification of the first answer. The first entry that is appended is this answer.
  b.around = ({ name, args: [to], run }) => {
    if (name !== "append") return;
    log ??= to;
    if (to === log || isHeld) return;
    isHeld = true;
    return pass.then(run);
  };
  const answers = toQuestions(asking.text).map(({ id }) => ({
    id,
    result: { action: "accept", content: { text: "Ada" } },
  }));
  const first = send(b, answers[0], session);
  await until(() => isHeld, "the notification of the first answer");
  assertEquals((await send(b, answers[1], session)).status, 202);
  open();
  assertEquals((await first).status, 202);
  await until(() => a.ended.includes("ada both done"), "both answers");
});

// How many requests the actions of a client send to the engine of a store.

interface Counted {
  /** Creates an instance that counts the requests to its engine. */
  start(): Server;
  /** Returns the operations since the last call of `take`. */
  take(): readonly string[];
}

function createCounted(): Counted {
  const { connect } = memoryStore()[INTERNALS];
  const asked: string[] = [];
  return {
    start() {
      const store = customStore(async () =>
        wrapEngine(await connect(), ({ name, run }) => {
          asked.push(name);
          return run();
        }), { pollMs: 60_000, leaseMs: 60_000 });
      return openServer({
        store,
        handlers: [
          tool({ name: "quick", run: () => "quick" }),
          tool({
            name: "steps",
            run: async (_, ctx) => {
              for (let step = 1; step <= 20; step++) {
                await ctx.progress(step);
                // Fixed wait: the writes of one second are counted.
                await new Promise((resolve) => setTimeout(resolve, 10));
              }
              return "done";
            },
          }),
          resource({ uri: "note://{id}", name: "note", read: ({ id }) => id }),
        ],
      });
    },
    take: () => asked.splice(0),
  };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`calls, lists and open subscriptions send no requests to the engine (${era})`, async () => {
    const { start, take } = createCounted();
    const server = start();
    await using client = await connectTest(server, { era });
    // The first request of a session and the first subscription of a process read data that other instances may have
    // written, so they come before the measurement.
    await client.callTool("quick");
    await using subscription = await client.subscribe({ toolsListChanged: true });
    // A session's stream is opened at the same time as these requests. The process then writes its lease and its claim,
    // announces the stream, and appends to the log of the stream. These operations can end in any order.
    const before: string[] = [];
    const count = (name: string) => before.filter((each) => each === name).length;
    await until(() => {
      before.push(...take());
      return era === "modern" || count("set") >= 2 && count("append") >= 2 && count("read") >= 2;
    }, "everything before");
    for (let i = 0; i < 5; i++) {
      await client.callTool("quick");
      await client.listTools();
      await client.listResources();
      await client.readResource("note://1");
    }
    assertEquals(take(), []);
    if (era === "modern") {
      await using other = await client.subscribe({ resourceSubscriptions: ["note://2"] });
      assertEquals([take(), other.granted.resourceSubscriptions], [[], ["note://2"]]);
    } else {
      await client.request("resources/subscribe", { uri: "note://2" });
      // The request waits for these two operations. After that, every instance reads the announcement, including this
      // instance.
      assertEquals(take().filter((name) => name !== "read"), ["set", "append"]);
    }
    await subscription.close();
    await server.close();
  });
}

Deno.test("a notification to many listeners on several instances takes one append, and one read per instance", async () => {
  const { start, take } = createCounted();
  const servers = [start(), start(), start()];
  await using stack = new AsyncDisposableStack();
  const subscriptions = [];
  for (const server of servers) {
    for (let i = 0; i < 10; i++) {
      const client = stack.use(await connectTest(server));
      subscriptions.push(stack.use(await client.subscribe({ resourceSubscriptions: ["note://1"] })));
    }
  }
  await until(() => take().length === 0, "everything before");
  servers[0].resourceUpdated("note://1");
  await Promise.all(subscriptions.map((each) => each.take(1)));
  const asked = take();
  assertEquals(asked.filter((name) => name === "append").length, 1);
  assert(asked.filter((name) => name === "read").length <= servers.length, asked.join());
  assertEquals(asked.filter((name) => !["append", "read"].includes(name)), []);
  // Several changes to one resource within a batch are written once.
  for (let i = 0; i < 100; i++) servers[1].resourceUpdated("note://1");
  await Promise.all(subscriptions.map((each) => each.take(2)));
  assertEquals(take().filter((name) => name === "append").length, 1);
  for (const server of servers) await server.close();
});

Deno.test("a stream's events are written at most four times a second, and once at its end", async () => {
  const { start, take } = createCounted();
  await using server = start();
  await using client = await connectTest(server, { era: "legacy", transport: "http" });
  await client.callTool("quick");
  take();
  const began = performance.now();
  const seen: number[] = [];
  await client.callTool("steps", {}, { onProgress: ({ progress }) => void seen.push(progress) });
  assertEquals(seen.length, 20);
  let appends = 0;
  await until(() => (appends += take().filter((name) => name === "append").length) > 0, "the events");
  const most = Math.ceil((performance.now() - began) / 250) + 1;
  assert(appends <= most, `${appends} appends; at most ${most} are expected`);
});
