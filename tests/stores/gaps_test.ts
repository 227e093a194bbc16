// An instance that could not read a topic, until other messages have pushed its messages out of the topic.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { type Context, createServer, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { gate, until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import { asking } from "../tasks/declared.ts";

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
  const server = createServer({
    name: "gaps",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
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
  await a.server.close();
  await b.server.close();
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
  await a.server.close();
  await b.server.close();
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
  await a.server.close();
  await b.server.close();
});
