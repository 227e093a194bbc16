// Clients wait for tasks: polls, questions, cancellation and failures, over every transport.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer, McpError, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { resumeTask, startTool, taskClient, TaskError } from "../../src/extensions/tasks/client/tasks.ts";
import { toPollMs, toRetryMs } from "../../src/extensions/tasks/client/task_polling.ts";
import { type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, started, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { withTimersOn } from "../support/timers.ts";
import { throwing } from "../support/throwing.ts";
import { fakePipe } from "./fakes.ts";
import { asking, completed, type Script, scriptTasks, working } from "./scripted_tasks.ts";

const modern = { eras: ["modern"] } as const;
const name = (value: string) => ({ action: "accept" as const, content: { name: value } });

/** Creates the handlers of a scripted server, and client options whose polls use a fake clock. */
function set(script: Script, giveUpMs?: number) {
  const clock = fakeClock();
  const scripted = scriptTasks(script);
  return { ...scripted, clock, declared: { extensions: [taskClient({ clock, giveUpMs })] } };
}

/** Advances a clock by `ms` whenever a timer is pending, until a promise has settled. */
async function advanceUntil(clock: FakeClock, ended: Promise<unknown>, ms = 1100): Promise<void> {
  let isOver = false;
  ended.then(() => isOver = true, () => isOver = true);
  await until(async () => {
    if (!isOver && clock.waiting) await clock.advance(ms);
    await turn();
    return isOver;
  }, "the end of the call");
}

behaviour("a call waits for its task and reports the task's status messages", async (connect) => {
  const states = [working({ statusMessage: "a" }), working({ statusMessage: "a" }), working({ statusMessage: "b" })];
  const { handlers, clock, declared, count } = set({ get: (poll) => states[poll] ?? completed() });
  const { client } = await connect({ handlers }, declared);
  const reports: unknown[] = [];
  const calling = client.callTool("work", {}, { onProgress: (report) => reports.push(report) });
  await advanceUntil(clock, calling);
  assertEquals(textOf(await calling), "done");
  assertEquals(reports, [{ progress: 1, message: "a" }, { progress: 2, message: "b" }]);
  assertEquals(count("tasks/get"), 4);
  assertEquals(count("tasks/cancel"), 0);
}, modern);

behaviour("the client answers each question of a `tasks()` task once, and the task completes", async (connect) => {
  const schema = z.object({ name: z.string() });
  const work = tool({
    name: "work",
    use: [task({ pollIntervalMs: 100 })],
    async run(_input, ctx) {
      const ask = async (key: string) => (await ctx.elicit(key, { message: key, schema })).content?.name;
      return `${await ask("first")} ${await ask("second")}`;
    },
  });
  const keys: string[] = [];
  const onElicit = (_request: unknown, { key }: { readonly key: string }) => {
    keys.push(key);
    return name(key.toUpperCase());
  };
  const { client } = await connect({ handlers: [tasks(), work] }, { extensions: [taskClient()], onElicit });
  assertEquals(textOf(await client.callTool("work")), "FIRST SECOND");
  assertEquals(keys, ["first", "second"]);
}, modern);

behaviour(
  "callbacks of a request answer the questions of its task, and polls declare the capabilities for these callbacks",
  async (connect) => {
    const { handlers, clock, declared, sent } = set({
      get: (_poll, sent) => sent.some(({ method }) => method === "tasks/update") ? completed() : asking("who"),
    });
    const asked: unknown[] = [];
    const { client } = await connect({ handlers }, declared);
    const calling = client.callTool("work", {}, {
      onElicit: (request, { request: asking }) => {
        asked.push([request.message, asking?.method]);
        return name("Ada");
      },
    });
    await advanceUntil(clock, calling);
    assertEquals(textOf(await calling), "done");
    const [update] = sent.filter(({ method }) => method === "tasks/update");
    assertEquals(update.params.inputResponses, { who: name("Ada") });
    assertEquals(asked, [["who?", "tools/call"]]);
    const polls = sent.filter(({ method }) => method === "tasks/get").map(({ params }) => params.capabilities);
    assertEquals([...new Set(polls.map(String))], ["extensions,elicitation"]);
  },
  modern,
);

behaviour("the client answers a question only once, even if several polls return the question", async (connect) => {
  let updates = 0;
  const { handlers, clock, declared } = set({
    get: (poll) => poll < 6 ? asking("a", "b") : completed(),
    update: () => updates++,
  });
  let asked = 0;
  const onElicit = () => {
    asked++;
    return name("Ada");
  };
  const { client } = await connect({ handlers }, { ...declared, onElicit });
  const calling = client.callTool("work");
  await advanceUntil(clock, calling);
  assertEquals([textOf(await calling), asked, updates], ["done", 2, 2]);
}, modern);

behaviour(
  "the client aborts a callback when the server withdraws the question, and then answers the next question",
  async (connect) => {
    const signals: AbortSignal[] = [];
    const { handlers, clock, declared } = set({
      get: (poll, sent) => {
        if (sent.some(({ method }) => method === "tasks/update")) return completed();
        return asking(poll < 2 ? "slow" : "quick");
      },
    });
    const { client } = await connect({ handlers }, {
      ...declared,
      onElicit: (_request, { key, signal }) => {
        signals.push(signal);
        return key === "quick" ? name("Ada") : new Promise(() => {});
      },
    });
    const calling = client.callTool("work");
    await advanceUntil(clock, calling);
    assertEquals(textOf(await calling), "done");
    assertEquals(signals[0].aborted, true);
  },
  modern,
);

behaviour("a call rejects with a reason if its task is cancelled, failed or unknown", async (connect) => {
  const ends = [
    working({ status: "cancelled", statusMessage: "by the operator" }),
    working({ status: "failed", error: { code: -31007, message: "no disk", data: { free: 0 } } }),
    working({ status: "failed", statusMessage: "it broke" }),
  ];
  let end = 0;
  const { handlers, clock, declared } = set({
    get: () => {
      if (end < ends.length) return ends[end];
      throw McpError.invalidParams("Unknown task");
    },
  });
  const { client } = await connect({ handlers }, declared);
  const fail = async () => {
    const calling = started(client.callTool("work"));
    await advanceUntil(clock, calling);
    end++;
    return await assertRejects(() => calling, Error);
  };
  const cancelled = await fail();
  assert(cancelled instanceof TaskError && cancelled.taskId === "t1");
  assertEquals(cancelled.message, sentence("tools/call", "t1", "by the operator"));
  const failed = await fail();
  assert(failed instanceof McpError);
  assertEquals([failed.code, failed.message, failed.data, failed.remote], [-31007, "no disk", { free: 0 }, true]);
  const vague = await fail();
  assert(vague instanceof McpError);
  assertEquals([vague.code, vague.message], [-32603, "it broke"]);
  const unknown = await fail();
  assert(unknown instanceof TaskError);
  assertEquals(unknown.message, sentence("t1", "Unknown task"));
}, modern);

behaviour(
  "aborting a call or its timeout cancels the task, even if the client closes immediately afterwards",
  async (connect) => {
    const { handlers, declared, clock, count, sent } = set({ get: () => working() });
    const { client, join } = await connect({ handlers }, declared);
    const stop = new AbortController();
    const aborted = started(client.callTool("work", {}, { signal: stop.signal }));
    await until(() => clock.waiting > 0, "the task");
    stop.abort(new Error("enough"));
    await assertRejects(() => aborted, Error, "enough");
    await until(() => count("tasks/cancel") === 1, "the cancellation");
    const timeouts = fakeClock();
    const timeoutMs = 12_345;
    await withTimersOn(timeouts, timeoutMs, async () => {
      const late = started(client.callTool("work", {}, { timeoutMs }));
      // A client that has not received the task cannot cancel it.
      await until(() => clock.waiting > 0, "the second task");
      await timeouts.advance(timeoutMs);
      assertEquals((await assertRejects(() => late, DOMException)).name, "TimeoutError");
    });
    await until(() => count("tasks/cancel") === 2, "the cancellation after the timeout");
    const other = await join(declared);
    const again = new AbortController();
    const closing = started(other.callTool("work", {}, { signal: again.signal }));
    await until(() => clock.waiting > 0, "the task of the other client");
    again.abort(new Error("stopped"));
    await assertRejects(() => closing, Error, "stopped");
    await other.close();
    assertEquals(sent.filter(({ method }) => method === "tasks/cancel").map(({ params }) => params.taskId), [
      "t1",
      "t1",
      "t1",
    ]);
  },
  modern,
);

behaviour(
  "closing the client rejects the call with an error that names the task, and the task continues",
  async (connect) => {
    const { handlers, declared, clock, count } = set({ get: () => working() });
    const { client } = await connect({ handlers }, declared);
    const calling = started(client.callTool("work"));
    await until(() => clock.waiting > 0, "the task");
    await client.close();
    const error = await assertRejects(() => calling, TaskError, sentence("t1"));
    assertEquals([error.taskId, count("tasks/cancel")], ["t1", 0]);
  },
  modern,
);

behaviour("the client retries failed polls, and the final error names the task", async (connect) => {
  let isBack = false;
  const { handlers, clock, declared, count } = set({
    get: () => {
      if (isBack) return completed();
      throw McpError.busy("restarting", { retryAfterMs: 1 });
    },
  }, 5000);
  const { client } = await connect({ handlers }, declared);
  const lost = started(client.callTool("work"));
  await advanceUntil(clock, lost, 300);
  const error = await assertRejects(() => lost, TaskError, sentence("t1", "restarting"));
  assertEquals([error.taskId, count("tasks/cancel")], ["t1", 0]);
  assert(count("tasks/get") > 10, "each retry is a poll");
  const calling = client.callTool("work");
  await until(() => clock.waiting > 0, "the second task");
  await clock.advance(1100);
  isBack = true;
  await advanceUntil(clock, calling, 300);
  assertEquals(textOf(await calling), "done");
}, modern);

Deno.test("the client retries a poll after a lost connection or a bad gateway, but not after a refusal", async () => {
  const { handlers, clock, declared } = set({ get: () => completed() });
  await using server = createServer({ name: "t", version: "1", handlers });
  const failures: (() => Response)[] = [
    throwing(new TypeError("connection refused")),
    () => new Response("Bad Gateway", { status: 502 }),
    () => new Response(`{"jsonrpc":"2.0","id"`, { headers: { "content-type": "application/json" } }),
  ];
  let polls = 0;
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const fail = request.headers.get("mcp-method") === "tasks/get" ? failures[polls++] : undefined;
    return fail ? fail() : await server.fetch(request);
  };
  await using client = await connect("http://localhost/mcp", { ...declared, fetch });
  const calling = client.callTool("work");
  await advanceUntil(clock, calling);
  assertEquals([textOf(await calling), polls], ["done", 4]);
  failures.push(() => new Response("", { status: 401 }));
  polls = failures.length - 1;
  const refused = started(client.callTool("work"));
  await advanceUntil(clock, refused);
  const error = await assertRejects(() => refused, TaskError, "t1");
  assertEquals([(error.cause as McpError).status, polls], [401, failures.length]);
});

behaviour("if the client cannot answer a question, the call ends and the task is cancelled", async (connect) => {
  const { handlers, clock, declared, count } = set({
    get: () => working({ status: "input_required", inputRequests: { a: { method: "shell/run", params: {} } } }),
  });
  const { client } = await connect({ handlers }, declared);
  const calling = started(client.callTool("work"));
  await advanceUntil(clock, calling);
  await assertRejects(() => calling, Error, sentence("shell/run"));
  await until(() => count("tasks/cancel") === 1, "the cancellation");
}, modern);

behaviour("the client refuses invalid task states with an error that names the task", async (connect) => {
  const states = [
    completed("of another task", { taskId: "t2" }),
    working({ status: "paused" }),
    working({ status: "completed" }),
    working({ status: "input_required", inputRequests: { a: 1 } }),
    working({
      status: "input_required",
      inputRequests: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [at, { method: "ping" }])),
    }),
  ];
  let state = 0;
  const { handlers, clock, declared } = set({ get: () => states[state] });
  const { client } = await connect({ handlers }, declared);
  for (; state < states.length; state++) {
    const calling = started(client.callTool("work"));
    await advanceUntil(clock, calling);
    await assertRejects(() => calling, TaskError, sentence("t1"));
  }
}, modern);

behaviour("the result of a task is validated like the result of a call", async (connect) => {
  const results = [
    { resultType: "input_required", inputRequests: {} },
    { resultType: "task", taskId: "t9" },
    { resultType: null },
    { content: "text" },
  ];
  let at = 0;
  const { handlers, clock, declared } = set({ get: () => working({ status: "completed", result: results[at] }) });
  const { client } = await connect({ handlers }, declared);
  for (; at < results.length; at++) {
    const calling = started(client.callTool("work"));
    await advanceUntil(clock, calling);
    if (results[at].content) await assertRejects(() => calling, McpError, sentence("content"));
    else await assertRejects(() => calling, TaskError, sentence("not complete"));
  }
}, modern);

behaviour("the client stops waiting for a task that far exceeds its ttlMs", async (connect) => {
  const { handlers, clock, declared } = set({ get: () => working({ ttlMs: 5000, pollIntervalMs: 1e12 }) });
  const { client } = await connect({ handlers }, declared);
  const calling = started(client.callTool("work"));
  await advanceUntil(clock, calling, 66_000);
  await assertRejects(() => calling, TaskError, sentence("t1", 5000));
}, modern);

behaviour("the client subscribes to a task, and polls soon after each change", async (connect) => {
  let state = working();
  const { handlers, clock, declared, count, notify } = set({ get: () => state, listens: true });
  const { client } = await connect({ handlers }, declared);
  const calling = client.callTool("work");
  await until(() => clock.waiting > 0, "the task");
  await until(async () => {
    if (!count("listen")) await clock.advance(100);
    return count("listen");
  }, "the subscription");
  // Even during continuous changes, the client polls at most once per minimum interval.
  const polls = count("tasks/get");
  for (let change = 0; change < 20; change++) {
    notify({ taskId: "t1", change });
    await turn();
  }
  assert(count("tasks/get") - polls <= 1, `${count("tasks/get") - polls} polls`);
  // Repeat the notification, because the client polls only after the minimum interval.
  state = completed();
  let isOver = false;
  calling.then(() => isOver = true);
  const begun = clock.now();
  await until(async () => {
    notify({ taskId: "t1" });
    // While a poll is in progress, no timer is pending. The steps are small, because a notification takes a while to
    // arrive on a loaded machine.
    if (clock.waiting) await clock.advance(20);
    return isOver;
  }, "the result");
  assert(clock.now() - begun < 10_000, "no poll was due");
}, modern);

behaviour("the client subscribes to at most four tasks at a time, and polls all other tasks", async (connect) => {
  let state = working();
  const { handlers, clock, declared, count } = set({ get: () => state, listens: true });
  const { client } = await connect({ handlers }, declared);
  const first = started(Promise.all(Array.from({ length: 6 }, () => client.callTool("work"))));
  // The client polls tasks with a subscription every ten seconds, so most polls are for the other tasks.
  await until(async () => {
    if (clock.waiting) await clock.advance(1100);
    await turn();
    return count("tasks/get") >= 60;
  }, "many polls of each task");
  assertEquals(count("listen"), 4);
  state = completed();
  await advanceUntil(clock, first, 11_000);
  assertEquals((await first).map(textOf), Array(6).fill("done"));
  // The completed tasks have released their subscriptions, so another task can have a subscription.
  state = working();
  const next = started(client.callTool("work"));
  await until(async () => {
    if (clock.waiting) await clock.advance(1100);
    await turn();
    return count("listen") === 5;
  }, "another subscription");
  state = completed();
  await advanceUntil(clock, next, 11_000);
  assertEquals(textOf(await next), "done");
}, modern);

behaviour(
  "another client can wait for a task with its id, and aborting the wait does not cancel the task",
  async (connect) => {
    let isDone = false;
    const { handlers, clock, declared, count } = set({ get: () => isDone ? completed("later") : working() });
    const { client, join } = await connect({ handlers }, declared);
    const { id = "", state } = await startTool(client, "work", { n: 1 });
    assertEquals([id, state?.status, state?.ttlMs], ["t1", "working", undefined]);
    const other = await join(declared);
    const resumed = resumeTask(other, id, { tool: "work" });
    const stop = new AbortController();
    const waiting = started(resumed.wait({ signal: stop.signal }));
    await until(() => clock.waiting > 0, "the first poll");
    stop.abort(new Error("enough"));
    await assertRejects(() => waiting, Error, "enough");
    assertEquals((await resumed.get()).status, "working");
    isDone = true;
    assertEquals(textOf(await resumed.wait()), "later");
    assertEquals(textOf(resumed.result!), "later");
    assertEquals((await resumed.get()).status, "completed");
    // The handle ignores states after the task has ended.
    isDone = false;
    assertEquals((await resumed.get()).status, "completed");
    assertEquals(count("tasks/cancel"), 0);
    await resumed.cancel();
    assertEquals(count("tasks/cancel"), 1);
  },
  modern,
);

behaviour("a handle returns the task's questions and sends answers", async (connect) => {
  const given: unknown[] = [];
  const { handlers, declared } = set({ get: () => asking("who"), update: (responses) => given.push(responses) });
  const { client } = await connect({ handlers }, declared);
  const handle = await startTool(client, "work");
  const { status, inputRequests } = await handle.get();
  assertEquals([status, Object.keys(inputRequests), inputRequests.who.method], [
    "input_required",
    ["who"],
    "elicitation/create",
  ]);
  await handle.answer({ who: name("Ada") });
  assertEquals(given, [{ who: name("Ada") }]);
}, modern);

behaviour("if a call returns its result immediately, the handle has this result", async (connect, { era }) => {
  const { handlers, declared } = set({ get: () => working() });
  const { client } = await connect({ handlers }, declared);
  for (const tool of ["inline", ...era === "legacy" ? ["work"] : []]) {
    const handle = await startTool(client, tool);
    assertEquals([handle.id, textOf(handle.result!)], [undefined, tool === "work" ? "without a task" : "inline"]);
    assertEquals(await handle.wait(), handle.result);
    await assertRejects(() => handle.get(), TypeError, sentence("result"));
  }
  if (era === "legacy") {
    await assertRejects(() => resumeTask(client, "t1").wait(), TypeError, sentence("tools/call"));
  }
});

behaviour("requests about a task contain the task id in the header Mcp-Name", async (connect) => {
  const { handlers, declared } = set({ get: () => working() });
  const { client } = await connect({ handlers }, declared);
  const handle = await startTool(client, "work");
  // These requests would fail without the header, because the server requires the header.
  await handle.get();
  await handle.answer({});
  await handle.cancel();
}, { eras: ["modern"], transports: ["http"] });

Deno.test("the interval between polls has a minimum and a maximum, whatever pollIntervalMs the server sends", () => {
  const between = (ms: number, min: number, max: number) => assert(ms >= min && ms <= max, `${ms}`);
  between(toPollMs({}), 1000, 1100);
  between(toPollMs({ pollIntervalMs: 0.001 }), 100, 110);
  between(toPollMs({ pollIntervalMs: 1e12 }), 60_000, 66_000);
  between(toPollMs({ pollIntervalMs: 1000 }, true), 10_000, 11_000);
  between(toPollMs({ pollIntervalMs: 45_000 }, true), 45_000, 49_500);
  for (const retryAfterMs of [-1, 0, 1e12]) {
    between(toRetryMs(0, new McpError(0, "", { retryAfterMs }, {})), 250, 10_000);
  }
  between(toRetryMs(100, new Error()), 10_000, 10_000);
});

Deno.test("the extension throws for invalid options", () => {
  assertThrows(() => taskClient({ giveUpMs: 0 }), RangeError);
  assertThrows(() => taskClient({ pollMs: 1 } as object), TypeError);
});

/** Starts a client for a server that responds to `tools/call` only when `answer` is called. */
async function startLate() {
  const calls: (() => void)[] = [];
  const target = fakePipe(({ id, method }, say) => {
    if (method === "server/discover") {
      say({ id, result: { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } } });
    } else if (method === "tools/call") calls.push(() => say({ id, result: { resultType: "task", ...working() } }));
    else if (id !== undefined) say({ id, result: {} });
  });
  const client = await connect(target, { extensions: [taskClient()] });
  const listCancelled = () =>
    target.heard.filter(({ method }) => method === "tasks/cancel").map(({ params }) => Object(params).taskId);
  return { client, calls, heard: target.heard, listCancelled };
}

Deno.test("a task whose handle arrives after the client has given up is cancelled once", async () => {
  for (const send of ["callTool", "startTool"] as const) {
    const { client, calls, heard, listCancelled } = await startLate();
    const stop = new AbortController();
    const options = { signal: stop.signal };
    const call: Promise<unknown> = send === "callTool"
      ? client.callTool("t", {}, options)
      : startTool(client, "t", {}, options);
    started(call);
    await until(() => calls.length === 1, "the server receives the call");
    stop.abort(new Error("stopped"));
    await assertRejects(() => call, Error, "stopped");
    await until(() => heard.some(({ method }) => method === "notifications/cancelled"), "the cancellation of the call");
    await turn(3);
    calls[0]();
    await until(() => listCancelled().length, "the cancellation of the task");
    calls[0]();
    await turn(5);
    assertEquals(listCancelled(), ["t1"]);
    await client.close();
  }
});

Deno.test("a client remembers a limited number of cancelled calls whose tasks may arrive late", async () => {
  const { client, calls, listCancelled } = await startLate();
  const stop = new AbortController();
  const all = Array.from({ length: 150 }, () => started(client.callTool("t", {}, { signal: stop.signal })));
  await until(() => calls.length === 150, "the server receives the calls");
  stop.abort(new Error("stopped"));
  await Promise.allSettled(all);
  await turn(3);
  for (const answer of calls) answer();
  await until(() => listCancelled().length === 100, "the cancellations");
  await turn(5);
  assertEquals(listCancelled().length, 100);
  await client.close();
});
