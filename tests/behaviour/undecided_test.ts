// Asynchronous steps before a handler, such as `allow`: a step that hangs, and a call that is cancelled during a step.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, extension, group, resource, tool, toolProvider } from "../../mod.ts";
import type { Context, ServerOptions } from "../../mod.ts";
import { layer, quota } from "../../src/layers/layers.ts";
import type { RefusedEvent } from "../../src/observe/observe.ts";
import { fakeClock, McpError } from "../../src/testing/testing.ts";
import {
  advanceUntil,
  behaviour,
  type Gate,
  gate,
  plainTool,
  started,
  textOf,
  turn,
  until,
} from "../support/behaviour.ts";
import type { BehaviourOptions } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { readAnswer, toRequest, toStatus } from "../support/requests.ts";

const ID = "com.example/feed";
const schema = z.object({});

/** Waits during calls of `tools/call`. Must return `true`, because only `true` allows a call. */
type Wait = (method: string) => true | Promise<true>;

/** Waits at a gate during calls of `tools/call`. */
const waitAt = (held: Gate, method: string) => method !== "tools/call" || held.enter().then(() => true as const);

/** The steps before a handler that can be asynchronous, and servers with the tool `held`, for which a step waits. */
const STEPS: Readonly<Record<string, (wait: Wait, run: () => string) => Partial<ServerOptions>>> = {
  admit: (wait, run) => ({ handlers: [tool({ name: "held", run })], admit: ({ method }) => wait(method) }),
  allow: (wait, run) => ({ handlers: [tool({ name: "held", allow: ({ method }) => wait(method), run })] }),
  limit: (wait, run) => {
    const limited = layer(() => ({ name: "limited", limit: async ({ ctx }) => void await wait(ctx.method) }));
    return { handlers: [tool({ name: "held", use: [limited], run })] };
  },
  "find of a provider": (wait, run) => {
    const find = async (_name: string, { method }: Context) => await wait(method) && tool({ name: "held", run });
    return {
      handlers: [toolProvider({ find: async (name, ctx) => name === "held" ? await find(name, ctx) : undefined })],
    };
  },
  "start of a layer": (wait, run) => {
    const slow = layer(() => ({ name: "slow", start: async () => void await wait("tools/call"), limit: () => {} }));
    return { handlers: [tool({ name: "held", use: [slow], run })] };
  },
};

const free = tool({ name: "free", run: () => "free" });
/** Without a principal, each request in memory is from another unknown client. */
const ann = { principal: { id: "ann" } };
const alone: BehaviourOptions = { perInstance: "limits" };

for (const [name, serve] of Object.entries(STEPS)) {
  behaviour(`if ${name} hangs, the call times out and gives its slot back`, async (connect) => {
    const clock = fakeClock();
    const held = gate();
    const { handlers = [], ...options } = serve((method) => waitAt(held, method), () => "held");
    const limits = { calls: { runningPerClient: 2, timeoutMs: 1000 } };
    const { client, server } = await connect({ ...options, handlers: [...handlers, free], limits, clock });
    const calls = [1, 2].map(() => started(client.callTool("held")));
    await until(() => held.entered && server.stats().running === 2, "both calls hold a slot");
    for (const call of calls) {
      await assertRejects(() => advanceUntil(clock, 200, call), McpError, sentence("1000 ms", "calls.timeoutMs"));
    }
    assertEquals(server.stats().running, 0);
    held.open();
    assertEquals(textOf(await client.callTool("free")), "free");
  }, alone);
}

behaviour("the default timeout also ends a call whose allow hangs", async (connect) => {
  const clock = fakeClock();
  const held = tool({
    name: "held",
    allow: ({ method }) => method !== "tools/call" || new Promise(() => {}),
    run() {},
  });
  const { client, server } = await connect({ handlers: [held], clock });
  const call = started(client.callTool("held"));
  await until(() => server.stats().running === 1, "the call holds a slot");
  await assertRejects(() => advanceUntil(clock, 1000, call), McpError, sentence("calls.timeoutMs"));
  assertEquals(server.stats().running, 0);
}, alone);

behaviour("the time of allow does not count towards the timeout of the handler", async (connect) => {
  const clock = fakeClock();
  const { pass, open } = gate();
  const held = tool({
    name: "held",
    allow: async ({ method }) => {
      if (method === "tools/call") await pass;
      return true;
    },
    run: async (_input, { server }) => {
      await clock.advance(700);
      return server ? "done" : "";
    },
  });
  const { client, server } = await connect({ handlers: [held], clock, limits: { calls: { timeoutMs: 1000 } } });
  const call = client.callTool("held");
  await until(() => server.stats().running === 1, "the call holds a slot");
  await clock.advance(700);
  open();
  assertEquals(textOf(await call), "done");
}, alone);

// In 2026-07-28 over HTTP, a client cancels a call by closing the stream of the response, which does not exist yet.
const cancellable: readonly BehaviourOptions[] = [{ eras: ["legacy"] }, { eras: ["modern"], transports: ["pipe"] }];

for (const [name, serve] of Object.entries(STEPS)) {
  for (const options of cancellable) {
    behaviour(
      `a call that is cancelled during ${name} gives its slot back, and its handler does not run`,
      async (connect) => {
        const held = gate();
        let runs = 0;
        const { client, server } = await connect(serve((method) => waitAt(held, method), () => `${++runs}`));
        const controller = new AbortController();
        const call = started(client.callTool("held", {}, { signal: controller.signal }));
        await until(() => held.entered && server.stats().running === 1, "the call holds a slot during the step");
        controller.abort();
        await assertRejects(() => call);
        await until(() => server.stats().running === 0, "the slot is free");
        held.open();
        await turn(5);
        assertEquals(runs, 0);
        assertEquals(textOf(await client.callTool("held")), "1");
      },
      { ...options, ...alone },
    );
  }
}

behaviour(
  "a call that is cancelled while allow decides about a resource of an earlier run does not run",
  async (connect) => {
    const { pass, open } = gate();
    let isSlow = false;
    let waiting = 0;
    const asked: string[] = [];
    const toRow = (uri: string) =>
      resource({
        uri,
        name: uri,
        allow: async () => {
          if (!isSlow) return true;
          waiting++;
          await pass;
          return true;
        },
        read: () => "row",
      });
    const held = plainTool("held", async (ctx) => {
      asked.push("run");
      await ctx.readResource("x://row");
      await ctx.readResource("x://other");
      return (await ctx.elicit("sure", { message: "Sure?", schema })).action;
    });
    const controller = new AbortController();
    const { client, server } = await connect({ handlers: [toRow("x://row"), toRow("x://other"), held] }, {
      onElicit: () => {
        isSlow = true;
        return { action: "accept", content: {} };
      },
    });
    const call = started(client.callTool("held", {}, { signal: controller.signal }));
    await until(() => waiting, "allow decides again");
    controller.abort();
    await assertRejects(() => call);
    await until(() => server.stats().running === 0, "the server has cancelled the call");
    open();
    await turn(5);
    assertEquals([asked, waiting], [["run"], 1]);
  },
  { eras: ["modern"], transports: ["pipe"], ...alone },
);

behaviour("if admit hangs for an answer, the answer is refused, and later answers are accepted", async (connect) => {
  const clock = fakeClock();
  const { pass, open } = gate();
  const refused: RefusedEvent[] = [];
  let hangs = 0;
  const held = plainTool("held", async (ctx) => (await ctx.elicit("sure", { message: "Sure?", schema })).action);
  const { client } = await connect({
    handlers: [held],
    admit: ({ method }) => {
      if (method !== "response" || hangs > 0) return true;
      hangs++;
      return pass.then(() => true as const);
    },
    observer: { refused: (event) => refused.push(event) },
    limits: testLimits({ calls: { answersChecked: 1, timeoutMs: 1000 } }),
    clock,
  }, { onElicit: () => ({ action: "accept", content: {} }) });
  const first = started(client.callTool("held"));
  await until(() => hangs > 0, "admit hangs");
  await until(async () => {
    await clock.advance(200);
    return refused.length;
  }, "the answer is refused");
  assertEquals(refused.map(({ reason, message }) => [reason, message]), [[
    "limit",
    sentence("admit", "calls.timeoutMs"),
  ]]);
  assertEquals(textOf(await client.callTool("held")), "accept");
  open();
  first.catch(() => {});
}, { eras: ["legacy"], ...alone });

for (const step of ["grant", "middleware"]) {
  behaviour(`if ${step} of a subscription hangs, the request times out and gives its slot back`, async (connect) => {
    const clock = fakeClock();
    let waiting = 0;
    const hang = () => {
      waiting++;
      return new Promise<never>(() => {});
    };
    const filter = z.boolean();
    const feed = extension({ id: ID, listen: { feed: { filter, grant: step === "grant" ? hang : undefined } } });
    const { client, server } = await connect({
      handlers: [feed, free],
      use: [async ({ method }, next) => {
        return step === "middleware" && method === "subscriptions/listen" ? await hang() : await next();
      }],
      limits: { calls: { runningPerClient: 1, timeoutMs: 1000 } },
      clock,
    }, { capabilities: { extensions: { [ID]: {} } } });
    const opening = started(client.subscribe({ extensions: { feed: true } }));
    await until(() => waiting, "the step has begun");
    assertEquals(server.stats().running, 1);
    await assertRejects(() => advanceUntil(clock, 200, opening), McpError, sentence("1000 ms", "calls.timeoutMs"));
    assertEquals(server.stats().running, 0);
    assertEquals(textOf(await client.callTool("free")), "free");
  }, { eras: ["modern"], ...alone });
}

behaviour("a subscription whose middleware and grant are slow holds one slot, and then none", async (connect) => {
  const steps = [gate(), gate()];
  let at = 0;
  const wait = async () => await steps[at++].pass;
  const feed = extension({
    id: ID,
    listen: {
      feed: {
        filter: z.boolean(),
        grant: async () => {
          await wait();
          return true;
        },
      },
    },
  });
  const { client, server } = await connect({
    handlers: [feed],
    use: [async ({ method }, next) => {
      if (method === "subscriptions/listen") await wait();
      return await next();
    }],
    limits: { calls: { runningPerClient: 1 } },
  }, { capabilities: { extensions: { [ID]: {} } } });
  const opening = client.subscribe({ extensions: { feed: true } });
  for (const [i, { open }] of steps.entries()) {
    await until(() => at === i + 1, `step ${i + 1} has begun`);
    assertEquals(server.stats().running, 1);
    open();
  }
  const subscription = await opening;
  assertEquals(server.stats().running, 0);
  feed.publish("feed", { method: "notifications/feed" });
  await until(() => subscription.received.length, "the event");
}, { eras: ["modern"], ...alone });

behaviour("close() ends a call whose allow hangs", async (connect) => {
  const clock = fakeClock();
  const held = tool({
    name: "held",
    allow: ({ method }) => method !== "tools/call" || new Promise(() => {}),
    run() {},
  });
  const { client, server } = await connect({ handlers: [held], clock });
  const call = started(client.callTool("held"));
  await until(() => server.stats().running === 1, "the call holds a slot");
  await advanceUntil(clock, 1000, server.close());
  await assertRejects(() => call, Error, sentence("closing"));
}, alone);

for (const name of ["admit", "allow", "limit"]) {
  behaviour(
    `while all slots of a client are taken, its refused calls start ${name} at most once more than there are slots`,
    async (connect) => {
      const work = gate();
      let isArmed = false;
      let deciding = 0;
      let most = 0;
      const wait: Wait = (method) => {
        if (!isArmed || method !== "tools/call") return true;
        most = Math.max(most, ++deciding);
        return work.pass.then(() => {
          deciding--;
          return true;
        });
      };
      const slow = tool({ name: "slow", run: () => work.enter().then(() => "slow") });
      const { handlers = [], ...options } = STEPS[name](wait, () => "held");
      const limits = { calls: { runningPerClient: 4 } };
      const server = { ...options, handlers: [...handlers, slow], limits };
      const { client } = await connect(server, { principal: { id: "eve" } });
      const calls = [1, 2, 3, 4].map(() => started(client.callTool("slow")));
      await until(() => work.entered === 4, "the calls that take the slots");
      isArmed = true;
      const held = Array.from({ length: 40 }, () => client.callTool("held").then(textOf, () => "refused"));
      await until(() => most > 0, "the first step");
      await turn(20);
      assert(most <= 5, `${most} steps`);
      work.open();
      for (const call of calls) assertEquals(textOf(await call), "slow");
      const outcomes = await Promise.all(held);
      assertEquals(outcomes.filter((outcome) => outcome !== "refused" && outcome !== "held"), []);
      assertEquals(textOf(await client.callTool("held")), "held");
    },
    alone,
  );
}

behaviour(
  "while allow decides about a call of one client, calls of another client wait in the queue",
  async (connect) => {
    const [deciding, work] = [gate(), gate()];
    const held = tool({ name: "held", allow: ({ method }) => waitAt(deciding, method), run: () => "held" });
    const slow = tool({ name: "slow", run: () => work.enter().then(() => "slow") });
    const limits = { calls: { runningPerClient: 2 } };
    const { client, server, join } = await connect({ handlers: [held, slow], limits }, { principal: { id: "ann" } });
    const eve = await join({ principal: { id: "eve" } });
    const decided = started(eve.callTool("held"));
    await until(() => deciding.entered === 1, "allow decides");
    const calls = [1, 2, 3, 4].map(() => started(client.callTool("slow")));
    await until(() => work.entered === 2 && server.stats().waiting === 2, "two calls run and two calls wait");
    for (const { open } of [deciding, work]) open();
    assertEquals((await Promise.all(calls)).map(textOf), Array(4).fill("slow"));
    assertEquals(textOf(await decided), "held");
  },
  alone,
);

behaviour(
  "after allow of a refused call has taken too long, other calls of its client wait for a slot again",
  async (connect) => {
    const clock = fakeClock();
    const work = gate();
    let deciding = 0;
    const use = [quota({ timeoutMs: Infinity })];
    const busy = tool({ name: "busy", use, run: () => work.enter().then(() => "busy") });
    const hung = tool({
      name: "hung",
      allow: ({ method }) => {
        if (method !== "tools/call") return true;
        deciding++;
        return new Promise(() => {});
      },
      run() {},
    });
    const limits = { calls: { runningPerClient: 1, timeoutMs: 1000 } };
    const { client, server } = await connect({ handlers: [busy, hung, free], limits, clock }, ann);
    const calls = [started(client.callTool("busy"))];
    await until(() => work.entered, "a call has the slot");
    await assertRejects(() => client.callTool("hung"), McpError, sentence("calls.runningPerClient"));
    assertEquals(deciding, 1);
    await clock.advance(1000);
    calls.push(started(client.callTool("free")));
    await until(() => server.stats().waiting === 1, "a call waits for the slot");
    work.open();
    assertEquals((await Promise.all(calls)).map(textOf), ["busy", "free"]);
  },
  alone,
);

behaviour("running calls of a client count when allow decides about its next calls", async (connect) => {
  const work = gate();
  const busy = tool({ name: "busy", run: () => work.enter().then(() => "busy") });
  const held = tool({ name: "held", allow: ({ method }) => waitAt(work, method), run: () => "held" });
  const limits = { calls: { runningPerClient: 3 } };
  const { client, server } = await connect({ handlers: [busy, held], limits }, ann);
  const calls = ["busy", "busy", "held"].map((name) => started(client.callTool(name)));
  await until(() => work.entered === 3, "all slots are in use");
  await assertRejects(() => client.callTool("held"), McpError, sentence("calls.runningPerClient"));
  assertEquals(server.stats().running, 3);
  work.open();
  assertEquals((await Promise.all(calls)).map(textOf), ["busy", "busy", "held"]);
  assertEquals(server.stats().running, 0);
}, alone);

/** A tool whose calls end one after another. */
function createSteps() {
  const ends: (() => void)[] = [];
  const step = plainTool("step", async () => {
    const { pass, open } = gate();
    ends.push(open);
    await pass;
    return "step";
  });
  return { step, ends };
}

// Each number of microtasks lets all running calls be charged at another moment of the third retry.
for (const delay of Array(12).keys()) {
  behaviour(
    `a retry gives back each slot that it has taken, ${delay} microtasks after other retries`,
    async (connect) => {
      const [checks, answers, runs] = [gate(), gate(), gate()];
      let isRetry = false;
      let asked = 0;
      let checked = 0;
      const row = resource({
        uri: "x://row",
        name: "row",
        allow: async () => {
          if (!isRetry) return true;
          const isLast = ++checked === 3;
          await checks.pass;
          for (let left = isLast ? delay : 0; left > 0; left--) await undefined;
          return true;
        },
        read: () => "row",
      });
      const held = plainTool("held", async (ctx) => {
        await ctx.readResource("x://row");
        await ctx.elicit("sure", { message: "Sure?", schema });
        await runs.pass;
        return "held";
      });
      const { step, ends } = createSteps();
      const limits = { calls: { runningPerClient: 4 } };
      const { client, server, join } = await connect({ handlers: [row, held, step], limits }, {
        principal: { id: "ann" },
        onElicit: async () => {
          asked++;
          await answers.pass;
          return { action: "accept", content: {} };
        },
      });
      // With the call of another client, the client could exceed its limit.
      const eve = await join({ principal: { id: "eve" } });
      const calls = [client, eve].map((each) => started(each.callTool("step")));
      for (const count of [1, 2, 3]) {
        calls.push(started(client.callTool("held")));
        await until(() => asked === count, "the question");
      }
      isRetry = true;
      answers.open();
      await until(() => checked === 3, "allow decides about the resource of each retry");
      checks.open();
      await turn(5);
      runs.open();
      for (const end of ends.splice(0)) end();
      await Promise.all(calls);
      assertEquals(server.stats().running, 0);
      const steps = [1, 2, 3, 4, 5].map(() => started(client.callTool("step")));
      await until(() => ends.length === 4 && server.stats().waiting === 1, "four calls run and one call waits");
      ends[0]();
      await until(() => ends.length === 5, "the last call runs");
      for (const end of ends) end();
      await Promise.all(steps);
    },
    { eras: ["modern"], transports: ["pipe"], ...alone },
  );
}

/** Servers with the tool `held`, about which two steps decide one after the other. */
const TWICE: Readonly<Record<string, (wait: Wait) => Partial<ServerOptions>>> = {
  "limit of two layers": (wait) => {
    const toLimit = (name: string) => layer(() => ({ name, limit: async ({ ctx }) => void await wait(ctx.method) }));
    return { handlers: [tool({ name: "held", use: [toLimit("outer"), toLimit("inner")], run: () => "held" })] };
  },
  "allow of a group and of its tool": (wait) => {
    const allow = ({ method }: { readonly method: string }) => wait(method);
    return { handlers: [group("all", [tool({ name: "held", allow, run: () => "held" })], { allow })] };
  },
};

for (const [name, serve] of Object.entries(TWICE)) {
  for (const options of cancellable) {
    behaviour(`a call that is cancelled between ${name} does not start the second`, async (connect) => {
      const { pass, open } = gate();
      let decided = 0;
      const { client, server } = await connect(serve((method) => {
        if (method !== "tools/call") return true;
        decided++;
        return pass.then(() => true);
      }));
      const { tools: [{ name }] } = await client.request("tools/list", {}) as {
        readonly tools: [{ readonly name: string }];
      };
      const controller = new AbortController();
      const call = started(client.callTool(name, {}, { signal: controller.signal }));
      await until(() => decided, "the first step");
      controller.abort();
      await assertRejects(() => call);
      await until(() => server.stats().running === 0, "the server has cancelled the call");
      open();
      await turn(5);
      assertEquals(decided, 1);
    }, { ...options, ...alone });
  }
}

Deno.test("listens wait for grant within the slots of their client", async () => {
  const { pass, open } = gate();
  let most = 0;
  const feed = extension({
    id: ID,
    listen: {
      feedIds: {
        filter: z.array(z.string()),
        grant: async (ids) => {
          most++;
          await pass;
          return ids;
        },
      },
    },
  });
  await using server = createServer({
    name: "s",
    version: "1.0.0",
    handlers: [feed],
    limits: testLimits({ calls: { runningPerClient: 4 } }),
  });
  const listen = async () => {
    const params = {
      notifications: { feedIds: ["a"] },
      _meta: { "io.modelcontextprotocol/clientCapabilities": { extensions: { [ID]: {} } } },
    };
    return await toStatus(server.fetch(toRequest("subscriptions/listen", params), { principal: { id: "eve" } }));
  };
  const answers = Array.from({ length: 50 }, listen);
  await until(() => most >= 4, "the first listens");
  await turn(20);
  assertEquals(most, 4);
  open();
  const statuses = await Promise.all(answers);
  assertEquals(statuses.filter((status) => status === 200).length, 4);
  assertEquals(statuses.filter((status) => status === 503).length, 46);
});

Deno.test("a retry takes a slot while allow decides again about the resources that its call has read", async () => {
  const { pass, open } = gate();
  let isSlow = false;
  let most = 0;
  const note = resource({
    uri: "x://note",
    name: "note",
    allow: async () => {
      if (!isSlow) return true;
      most++;
      await pass;
      return true;
    },
    read: () => "note",
  });
  const pay = plainTool("pay", async (ctx) => {
    await ctx.readResource("x://note");
    return (await ctx.elicit("sure", { message: "Pay?", schema })).action;
  });
  const limits = testLimits({ calls: { runningPerClient: 4 } });
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [note, pay], limits });
  const call = async (params: object) => {
    const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
    const request = toRequest("tools/call", { name: "pay", arguments: {}, _meta, ...params });
    return await readAnswer(await server.fetch(request, { principal: { id: "eve" } }));
  };
  const { result } = await call({});
  isSlow = true;
  const answered = {
    requestState: Object(result).requestState,
    inputResponses: { sure: { action: "accept", content: {} } },
  };
  const retries = Array.from({ length: 40 }, () => call(answered));
  await until(() => most >= 4, "the first retries");
  await turn(20);
  assertEquals(most, 4);
  isSlow = false;
  open();
  const statuses = (await Promise.all(retries)).map(({ status }) => status);
  assertEquals([200, 503].map((code) => statuses.filter((status) => status === code).length), [4, 36]);
});
