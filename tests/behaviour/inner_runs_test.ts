// The runs of inner calls: progress, cancellation, questions, values of `once`, limits, tasks and observers.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { type Context, group, McpError, prompt, resource, tool, ToolError } from "../../mod.ts";
import { confirm, layer, quota } from "../../src/layers/layers.ts";
import type { CallEvent, LimitEvent } from "../../src/observe/observe.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import {
  behaviour,
  FENCE,
  fence,
  fenced,
  gate,
  plainTool,
  raise,
  started,
  textOf,
  turn,
  until,
  withoutFences,
} from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { declared } from "../tasks/declared.ts";

const schema = z.object({ text: z.string() });
const named = z.object({ name: z.string() });

/** A form whose answer the client derives from its message. */
const ask = async (ctx: Context, key: string, message: string) => {
  const { content } = await ctx.elicit(key, { message, schema });
  return content?.text;
};

/** A client that answers each form with the text of its message in capitals. */
const answering = () => {
  const asked: string[] = [];
  return {
    asked,
    onElicit: ({ message }: { readonly message: string }) => {
      asked.push(message);
      return { action: "accept", content: { text: message.toUpperCase() } } as const;
    },
  };
};

behaviour(
  "the client gets the sum of the progress of a handler and its inner calls, and all log messages",
  async (connect) => {
    const steps = tool({
      name: "steps",
      input: z.object({ name: z.string(), total: z.number().optional() }),
      run: async ({ name, total }, ctx) => {
        await ctx.log.info(`log ${name}`);
        for (const step of [1, 2]) await ctx.progress(step, { total, message: `${name} ${step}` });
        return name;
      },
    });
    const nested = tool({
      name: "nested",
      input: named,
      run: async ({ name }, ctx) => {
        await ctx.callTool(steps, { name, total: 2 });
        await ctx.progress(5, { total: 5, message: "nested" });
        return name;
      },
    });
    const outer = plainTool("outer", async (ctx) => {
      const { progress } = ctx;
      await progress(1, { total: 3 });
      await ctx.callTool(steps, { name: "a", total: 2 });
      await progress(2, { total: 3 });
      await ctx.callTool(nested, { name: "b" });
      // A value that is not greater than the previous value of the same handler changes nothing.
      await progress(2, { total: 3 });
      await ctx.callTool(steps, { name: "c" });
      await progress(3, { total: 3 });
      return "done";
    });
    const { client } = await connect({ handlers: [steps, nested, outer] }, { logLevel: "info" });
    const got: unknown[] = [];
    const onProgress = ({ progress, total, message }: { progress: number; total?: number; message?: string }) =>
      void got.push([progress, total, message]);
    await client.callTool("outer", {}, { onProgress });
    await until(() => got.length >= 10, "all progress arrives");
    assertEquals(got, [
      [1, 3, undefined],
      [2, undefined, "a 1"],
      [3, undefined, "a 2"],
      [4, 5, undefined],
      [5, 7, "b 1"],
      [6, 7, "b 2"],
      [11, 12, "nested"],
      [12, undefined, "c 1"],
      [13, undefined, "c 2"],
      [14, undefined, undefined],
    ]);
    const logs = client.received.filter(({ method }) => method === "notifications/message");
    assertEquals(logs.map(({ params }) => params.data), ["log a", "log b", "log c"]);
  },
);

behaviour("progress of parallel inner calls increases", async (connect) => {
  const gates = [gate(), gate()];
  const steps = tool({
    name: "steps",
    input: z.object({ at: z.number() }),
    run: async ({ at }, ctx) => {
      await ctx.progress(1, { total: 10 });
      gates[1 - at].open();
      await gates[at].pass;
      await ctx.progress(10, { total: 10 });
      return "";
    },
  });
  const outer = plainTool(
    "outer",
    async (ctx) => void await Promise.all([0, 1].map((at) => ctx.callTool(steps, { at }))),
  );
  const { client } = await connect({ handlers: [steps, outer] });
  const got: number[] = [];
  await client.callTool("outer", {}, { onProgress: ({ progress }) => void got.push(progress) });
  await until(() => got.length >= 4, "all progress arrives");
  assertEquals(got, [1, 2, 11, 20]);
});

behaviour("inner calls that log too fast together lose messages, but not the response", async (connect) => {
  const inner = plainTool("inner", (ctx) => {
    // Do not await the messages, so that each inner call sends them faster than the client reads.
    for (let at = 0; at < 256; at++) void ctx.log.info("x".repeat(1000));
    return "";
  });
  const outer = plainTool("outer", async (ctx) => {
    await Promise.all(Array.from({ length: 200 }, () => ctx.callTool(inner, {})));
    return "done";
  });
  const { client } = await connect({ handlers: [inner, outer] }, { logLevel: "info" });
  assertEquals(textOf(await client.callTool("outer")), "done");
});

behaviour("parallel inner calls get their own answers and values, whatever order they run in", async (connect) => {
  let runs = 0;
  const makes: string[] = [];
  const slow = tool({
    name: "slow",
    input: z.object({ name: z.string(), turns: z.number() }).partial({ turns: true }),
    run: async ({ name }, ctx) => {
      // In each run, the calls wait for other numbers of turns.
      await turn((name.charCodeAt(0) * 7 + runs * 5) % 11);
      const value = await ctx.once("value", () => {
        makes.push(name);
        return `${name}${makes.length}`;
      });
      const answer = await ask(ctx, "q", `answer of ${name}`);
      const again = await ask(ctx, "again", `again ${name}`);
      return JSON.stringify([name, value, await ctx.once("value", () => "lost"), answer, again]);
    },
  });
  const page = resource({
    uri: "page://{id}",
    name: "page",
    read: async ({ id }, ctx) => {
      await turn((Number(id) * 3 + runs * 7) % 5);
      return `${await ask(ctx, "q", `page ${id}`)}`;
    },
  });
  const outer = plainTool("outer", async (ctx) => {
    runs++;
    const names = ["a", "b", "c", "d"];
    const order = runs % 2 ? names : names.toReversed();
    const all = await Promise.all([
      ...order.map(async (name) => JSON.parse(textOf(await ctx.callTool(slow, { name })))),
      ...["page://1", "page://2"].map(async (uri) => [uri, Object((await ctx.readResource(uri))[0]).text]),
    ]);
    return JSON.stringify(all.sort());
  });
  const { asked, onElicit } = answering();
  const { client } = await connect({ handlers: [slow, page, outer] }, { onElicit });
  const all = JSON.parse(textOf(await client.callTool("outer")));
  for (const [name, value, same, answer, again] of all.slice(0, 4)) {
    assertEquals([value[0], same, answer, again], [
      name,
      value,
      `ANSWER OF ${name.toUpperCase()}`,
      `AGAIN ${name}`.toUpperCase(),
    ]);
  }
  assertEquals(all.slice(4), ["page://1", "page://2"].map((uri) => [uri, `PAGE ${uri.at(-1)}`]));
  // Each question was answered once, and each value was computed once.
  assertEquals(asked.toSorted(), [...new Set(asked)].toSorted());
  assertEquals([asked.length, makes.toSorted()], [10, ["a", "b", "c", "d"]]);
});

behaviour("inner calls that ask at the same time ask in one round", async (connect, { era }) => {
  let runs = 0;
  const asks = tool({ name: "asks", input: named, run: async ({ name }, ctx) => await ask(ctx, "q", name) ?? "" });
  const outer = plainTool("outer", async (ctx) => {
    runs++;
    const calls = ["a", "b", "c"].map(async (name) => textOf(await ctx.callTool(asks, { name })));
    return (await Promise.all(calls)).join();
  });
  const { client } = await connect({ handlers: [asks, outer] }, { onElicit: answering().onElicit });
  assertEquals(textOf(await client.callTool("outer")), "A,B,C");
  assertEquals(runs, era === "modern" ? 2 : 1);
});

behaviour("equal inner calls have separate answers, and a key replaces the key from the arguments", async (connect) => {
  let runs = 0;
  const asks = tool({
    name: "asks",
    input: z.object({ at: z.number() }),
    run: async (_input, ctx) => `${await ctx.once("n", () => ++runs)} ${await ask(ctx, "q", "same")}`,
  });
  let time = 0;
  const outer = plainTool("outer", async (ctx) => {
    const texts = [];
    for (const at of [1, 1]) texts.push(textOf(await ctx.callTool(asks, { at })));
    // Without a key, the changed argument would ask the question again and again.
    texts.push(textOf(await ctx.callTool(asks, { at: ++time }, { key: "timed" })));
    const error = await assertRejects(() => ctx.callTool(asks, { at: 9 }, { key: "timed" }), TypeError);
    return JSON.stringify([...texts, error.message]);
  });
  const { asked, onElicit } = answering();
  const { client } = await connect({ handlers: [asks, outer] }, { onElicit });
  assertEquals(JSON.parse(textOf(await client.callTool("outer"))), [
    "1 SAME",
    "2 SAME",
    "3 SAME",
    sentence('"asks"', '"timed"'),
  ]);
  assertEquals(asked, ["same", "same", "same"]);
});

behaviour("an inner tool with a confirmation asks the user for each call", async (connect) => {
  const wiped: string[] = [];
  const wipe = tool({
    name: "wipe",
    input: named,
    use: [confirm(({ name }) => `Wipe ${name}?`)],
    run: ({ name }) => {
      wiped.push(name);
      return name;
    },
  });
  const outer = plainTool("outer", async (ctx) => {
    for (const name of ["a", "b"]) await ctx.callTool(wipe, { name });
    return "done";
  });
  const asked: string[] = [];
  const { client, join } = await connect({ handlers: [wipe, outer] }, {
    onElicit: ({ message }) => {
      asked.push(message);
      return message === "Wipe a?" ? { action: "accept", content: {} } : { action: "decline" };
    },
  });
  const result = await client.callTool("outer");
  assertEquals([result.isError, asked], [true, ["Wipe a?", "Wipe b?"]]);
  assertEquals(new Set(wiped), new Set(["a"]));
  const mute = await join();
  assert((await mute.callTool("outer")).isError);
});

behaviour("a cancelled call cancels its inner calls, and an inner tool has its own timeout too", async (connect) => {
  const clock = fakeClock();
  const aborted: string[] = [];
  let running = 0;
  const hang = (name: string, { signal }: Context) =>
    new Promise<never>((_, reject) => {
      running++;
      signal.addEventListener("abort", () => {
        aborted.push(`${name} ${signal.reason.why}`);
        reject(signal.reason);
      });
    });
  const slow = tool({ name: "slow", run: (_input, ctx) => hang("slow", ctx) });
  const short = tool({ name: "short", use: [quota({ timeoutMs: 30 })], run: (_input, ctx) => hang("short", ctx) });
  const outer = tool({
    name: "outer",
    use: [quota({ timeoutMs: 1000 })],
    input: named,
    run: async ({ name }, ctx) => {
      const result = await ctx.callTool(name).catch((error) => `${error.name}`);
      return typeof result === "string" ? result : "done";
    },
  });
  const { client } = await connect({ clock, handlers: [slow, short, outer] });
  const first = started(client.callTool("outer", { name: "short" }));
  await until(() => running === 1, "the inner tool runs");
  await clock.advance(30);
  assertEquals(textOf(await first), "TimeoutError");
  const second = started(client.callTool("outer", { name: "slow" }));
  await until(() => running === 2, "the inner tool runs");
  await clock.advance(1000);
  await assertRejects(() => second, McpError);
  assertEquals(aborted, ["short timeout", "slow timeout"]);
});

behaviour("a call that the client cancels cancels its inner calls", async (connect) => {
  const aborted: unknown[] = [];
  let isRunning = false;
  const hang = plainTool("hang", ({ signal }) =>
    new Promise<never>((_, reject) => {
      isRunning = true;
      signal.addEventListener("abort", () => {
        aborted.push(signal.reason.name);
        reject(signal.reason);
      });
    }));
  const middle = tool({ name: "middle", run: async (_input, ctx) => textOf(await ctx.callTool(hang, {})) });
  const outer = tool({ name: "outer", run: async (_input, ctx) => textOf(await ctx.callTool(middle, {})) });
  const { client } = await connect({ handlers: [hang, middle, outer] });
  const controller = new AbortController();
  const call = started(client.callTool("outer", {}, { signal: controller.signal }));
  await until(() => isRunning, "the inner tool runs");
  controller.abort();
  await assertRejects(() => call);
  await until(() => aborted.length, "the inner tool is cancelled");
  assertEquals(aborted, ["AbortError"]);
});

behaviour(
  "handlers that call each other in a loop fail at the ninth level, with the names of the chain",
  async (connect) => {
    const errors: string[] = [];
    const note = async (run: Promise<unknown>) => {
      try {
        return JSON.stringify(await run);
      } catch (error) {
        if (error instanceof Error) errors.push(error.message);
        throw new ToolError("stopped");
      }
    };
    const ping: ReturnType<typeof tool> = plainTool("ping", async (ctx) => await note(ctx.callTool("pong")));
    const pong = plainTool("pong", async (ctx) => await note(ctx.callTool("ping")));
    const self = tool({ name: "self", run: async (_input, ctx) => await note(ctx.callTool("self")) });
    const { client } = await connect({ handlers: [ping, pong, self] });
    assert((await client.callTool("ping")).isError);
    const chain = Array.from({ length: 10 }, (_, at) => at % 2 ? '"pong"' : '"ping"').join(" > ");
    assertEquals(errors[0], sentence(chain));
    errors.length = 0;
    assert((await client.callTool("self")).isError);
    assertEquals(errors[0], sentence(Array(10).fill('"self"').join(" > ")));
    // Every level gets an error of its own.
    assertEquals(errors.length, 9);
  },
);

behaviour("one call makes at most 256 inner calls, counted with their inner calls", async (connect) => {
  const reached: LimitEvent[] = [];
  let runs = 0;
  const leaf = tool({ name: "leaf", run: () => `${++runs}` });
  const branch = plainTool("branch", async (ctx) => {
    for (let at = 0; at < 9; at++) await ctx.callTool(leaf, {});
    return "";
  });
  const root = plainTool("root", async (ctx) => {
    for (let at = 0; at < 26; at++) await ctx.callTool(branch, {});
    return "never";
  });
  const all = plainTool("all", async (ctx) => {
    const calls = await Promise.allSettled(Array.from({ length: 10_000 }, () => ctx.callTool(leaf, {})));
    const failed = calls.filter((each) => each.status === "rejected");
    return `${failed.length} ${failed[0].reason.message}`;
  });
  const pages = plainTool("pages", async (ctx) => {
    for (let at = 0; at < 300; at++) await ctx.list("tools");
    return "never";
  });
  const observer = { limit: (event: LimitEvent) => void reached.push(event) };
  const { client, takeFaults } = await connect({ handlers: [leaf, branch, root, all, pages], observer });
  assert((await client.callTool("root")).isError);
  const [fault, ...others] = takeFaults();
  assertEquals(String(fault.error), sentence(256, "calls.inner", '"root" > "branch" > "leaf"'));
  assertEquals(others, []);
  assertEquals(runs, 256 - 26);
  assertEquals(textOf(await client.callTool("all")), `9744 ${sentence('"all" > "leaf"')}`);
  assert((await client.callTool("pages")).isError);
  takeFaults();
  assert(reached.length >= 1 && reached.every(({ limit }) => limit === "calls.inner"), JSON.stringify(reached));
  const more = await connect({ handlers: [leaf, all], limits: { calls: { inner: 10_000 } } });
  runs = 0;
  await assertRejects(() => more.client.callTool("all").then((result) => assert(!result.isError)));
  assertEquals(runs, 10_000);
  more.takeFaults();
});

behaviour("a call that has its response makes no inner calls, and those that run are cancelled", async (connect) => {
  const { pass, open } = gate();
  const errors: unknown[] = [];
  const aborted: unknown[] = [];
  const leaf = tool({ name: "leaf", run: () => "leaf" });
  const hang = plainTool(
    "hang",
    ({ signal }) =>
      new Promise<never>((_, reject) =>
        signal.addEventListener("abort", () => {
          aborted.push(signal.reason.why);
          reject(signal.reason);
        })
      ),
  );
  const outer = plainTool("outer", (ctx) => {
    ctx.callTool(hang, {}).catch((error) => errors.push(error.why));
    const later = [() => ctx.callTool(leaf, {}), () => ctx.list("tools"), () => ctx.getPrompt("text")];
    for (const run of later) {
      pass.then<unknown>(run).then(() => errors.push("ran"), ({ message }) => errors.push(message));
    }
    return turn().then(() => "done");
  });
  const text = prompt({ name: "text", run: () => "text" });
  const { client } = await connect({ handlers: [leaf, hang, text, outer] });
  assertEquals(textOf(await client.callTool("outer")), "done");
  await until(() => errors.length === 1, "the inner call has ended");
  assertEquals([errors.splice(0), aborted], [["ended"], ["ended"]]);
  open();
  await until(() => errors.length === 3, "all inner calls were refused");
  assertEquals(
    errors.toSorted(),
    [
      sentence('tool "leaf"', "ctx.callTool()"),
      sentence('prompt "text"', "ctx.getPrompt()"),
      sentence("list tools", "ctx.list()"),
    ],
  );
});

behaviour(
  "an inner call of a handler that has returned counts towards no limit, and enters no layer",
  async (connect) => {
    const { pass, open } = gate();
    const steps: string[] = [];
    const errors: string[] = [];
    const noting = (name: string, limit?: () => Promise<void>) =>
      layer(() => ({
        name,
        limit: () => {
          steps.push(`${name} limit`);
          return limit?.();
        },
        enter: async (_call, next) => {
          steps.push(`${name} enter`);
          return await next();
        },
      }));
    const looked = tool({ name: "looked", allow: () => pass.then(() => true), use: [noting("looked")], run: () => "" });
    const limited = tool({ name: "limited", use: [noting("limited", () => pass)], run: () => "" });
    const middle = plainTool("middle", async ({ callTool }) => {
      for (const inner of [looked, limited]) callTool(inner, {}).catch(({ message }) => errors.push(message));
      await until(() => steps.length === 1, "one inner call waits in its limit");
      return "middle";
    });
    const outer = plainTool("outer", async ({ callTool }) => {
      await callTool(middle, {});
      open();
      await until(() => errors.length === 2, "both inner calls have ended");
      return "outer";
    });
    const { client } = await connect({ handlers: [looked, limited, middle, outer] });
    assertEquals(textOf(await client.callTool("outer")), "outer");
    assertEquals(steps, ["limited limit"]);
    assertEquals(errors.toSorted(), [
      sentence('tool "limited"', "ctx.callTool()"),
      sentence('tool "looked"', "ctx.callTool()"),
    ]);
  },
);

behaviour("a refused call makes no inner calls, and those that run are cancelled", async (connect) => {
  const { pass, open } = gate();
  const reasons: unknown[] = [];
  const kept: Context[] = [];
  const work = plainTool("work", async ({ signal }) => {
    signal.addEventListener("abort", () => reasons.push(signal.reason.why));
    open();
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const hidden = tool({
    name: "hidden",
    allow: async (ctx) => {
      if (ctx.method !== "tools/call") return false;
      kept.push(ctx);
      // Do not await the inner call.
      started(ctx.callTool("work"));
      await pass;
      return false;
    },
    run: () => "",
  });
  const { client } = await connect({ handlers: [work, hidden] });
  await assertRejects(() => client.callTool("hidden"), McpError);
  await until(() => reasons.length === 1, "the inner call is cancelled");
  assertEquals(reasons, ["ended"]);
  await assertRejects(() => kept[0].callTool("work"), Error, sentence('"work"'));
});

behaviour("observers get an event of each inner call, with the id of its outer call", async (connect) => {
  const events: CallEvent[] = [];
  const refused: string[] = [];
  const leaf = tool({ name: "leaf", run: () => "leaf" });
  const bad = tool({ name: "bad", run: () => raise(new ToolError("no")) });
  const text = prompt({ name: "text", run: () => "text" });
  const middle = tool({ name: "middle", run: async (_input, ctx) => textOf(await ctx.callTool(leaf, {})) });
  const outer = plainTool("outer", async (ctx) => {
    await ctx.callTool(middle, {});
    await ctx.callTool(bad, {}).catch(() => {});
    await ctx.getPrompt(text, {});
    await ctx.list("prompts");
    await ctx.callTool("unknown").catch(() => {});
    return "done";
  });
  const observer = {
    call: (event: CallEvent) => void events.push(event),
    refused: ({ reason }: { readonly reason: string }) => void refused.push(reason),
  };
  const { client } = await connect({ handlers: [leaf, bad, text, middle, outer], observer });
  await client.callTool("outer");
  await until(() => events.some(({ subject }) => subject === "outer"), "the call has ended");
  const ids = new Map(events.map(({ id, subject }) => [id, subject]));
  const calls = events.filter(({ method }) => method !== "initialize");
  assertEquals(
    calls.map(({ method, subject, parent, outcome }) => [method, subject, parent && ids.get(parent), outcome]),
    [
      ["tools/call", "leaf", "middle", "result"],
      ["tools/call", "middle", "outer", "result"],
      ["tools/call", "bad", "outer", "tool_error"],
      ["prompts/get", "text", "outer", "result"],
      ["prompts/list", undefined, "outer", "result"],
      ["tools/call", "outer", undefined, "result"],
    ],
  );
  assertEquals(refused, ["params"]);
}, { perInstance: "observer" });

behaviour("an inner tool that would become a task runs to its end", async (connect) => {
  const { pass, open } = gate();
  const inner = [
    tool({ name: "inner", use: [task({ after: 0 })], run: () => pass.then(() => "inner") }),
    tool({ name: "required", use: [task({ after: 0, required: true })], run: () => "required" }),
  ];
  const outer = plainTool("outer", async (ctx) => {
    const texts = inner.map(async (each) => textOf(await ctx.callTool(each, {})));
    open();
    return (await Promise.all(texts)).join();
  });
  const { client, join } = await connect({ handlers: [...inner, outer, tasks()] }, declared);
  assertEquals(textOf(await client.callTool("outer")), "inner,required");
  assertEquals(textOf(await (await join()).callTool("outer")), "inner,required");
});

behaviour("a task makes inner calls, whose questions, values and progress are those of the task", async (connect) => {
  const makes: string[] = [];
  const asks = tool({
    name: "asks",
    input: named,
    run: async ({ name }, ctx) => {
      await ctx.progress(1, { message: name });
      const value = await ctx.once("value", () => {
        makes.push(name);
        return name;
      });
      return `${value} ${await ask(ctx, "q", name)}`;
    },
  });
  const outer = tool({
    name: "outer",
    use: [task({ after: 0 })],
    run: async (_input, ctx) => {
      const texts = ["a", "b"].map(async (name) => textOf(await ctx.callTool(asks, { name })));
      return (await Promise.all(texts)).join();
    },
  });
  const { client } = await connect({ handlers: [asks, outer, tasks()] }, { onElicit: answering().onElicit });
  assertEquals(textOf(await client.callTool("outer")), "a A,b B");
  assertEquals(makes.toSorted(), ["a", "b"]);
});

behaviour("a tool in a group is called by its name in the group, also by another server's layer", async (connect) => {
  const seen: unknown[] = [];
  const noting = layer(({ name }) => ({
    name: "noting",
    limit: ({ outer }) => void seen.push([name, outer]),
  }));
  const leaf = tool({ name: "leaf", use: [noting], run: () => "leaf" });
  const outer = plainTool("outer", async (ctx) => textOf(await ctx.callTool("math_leaf")));
  const { client } = await connect({ handlers: [group("math", [leaf]), outer] });
  assertEquals(textOf(await client.callTool("outer")), "leaf");
  assertEquals(seen, [["math_leaf", { method: "tools/call", params: { name: "outer" } }]]);
});

behaviour("`allow` of a subscribed resource can make an inner call for each notification", async (connect) => {
  let asked = 0;
  const rights = tool({ name: "rights", output: z.object({ ok: z.boolean() }), run: () => ({ ok: ++asked > 0 }) });
  const page = resource({
    uri: "page://1",
    name: "page",
    allow: async (ctx) => (await ctx.callTool(rights, {})).ok,
    read: () => "page",
  });
  const { client, server } = await connect({ handlers: [rights, page, fenced], limits: { calls: { inner: 3 } } });
  const subscription = await client.subscribe({ resourceSubscriptions: ["page://1", FENCE] });
  for (let at = 0; at < 10; at++) {
    server.resourceUpdated("page://1");
    await fence(server, subscription);
  }
  assertEquals(withoutFences(subscription).length, 10);
});

for (const step of ["allow", "limit", "run"]) {
  behaviour(
    `a call that is cancelled in ${step} cancels the inner calls of handlers that have returned`,
    async (connect) => {
      const { pass, open } = gate();
      const begun = gate();
      const reasons: unknown[] = [];
      let waiting = 0;
      const hang = plainTool("hang", async ({ signal }) => {
        signal.addEventListener("abort", () => reasons.push(signal.reason.why));
        begun.open();
        await pass;
      });
      const middle = plainTool("middle", async (ctx) => {
        // Do not await the inner call.
        started(ctx.callTool("hang"));
        await begun.pass;
      });
      const wait = async (ctx: Context) => {
        await ctx.callTool("middle");
        waiting++;
        await pass;
      };
      const outer = tool({
        name: "outer",
        allow: async (ctx) => {
          if (step === "allow" && ctx.method === "tools/call") await wait(ctx);
          return true;
        },
        use: step === "limit" ? [layer(() => ({ name: "limited", limit: ({ ctx }) => wait(ctx) }))] : [],
        run: async (_input, ctx) => {
          if (step === "run") await wait(ctx);
        },
      });
      const { client } = await connect({ handlers: [hang, middle, outer] });
      const controller = new AbortController();
      const call = started(client.callTool("outer", {}, { signal: controller.signal }));
      await until(() => waiting, "the call waits");
      controller.abort();
      await until(() => reasons.length, "the inner call is cancelled");
      assertEquals(reasons, ["client"]);
      open();
      await assertRejects(() => call);
    },
    { transports: ["pipe"] },
  );
}
