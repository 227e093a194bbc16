// Services in every era and over every transport. A service is created once per lifetime, and disposed with the outcome
// of the call.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, prompt, resource, resourceProvider, service, tool, ToolError } from "../../mod.ts";
import type { ServiceEnd } from "../../mod.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, raise, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

/** Creates services that record their creation and disposal in a log. */
function recorder() {
  const log: string[] = [];
  let made = 0;
  const db = service("db", async () => {
    await undefined;
    log.push("make db");
    return { id: ++made };
  }, { dispose: (_, end) => void log.push(`dispose db ${end}`) });
  const tx = service("tx", async ({ get }) => {
    const { id } = await get(db);
    log.push("make tx");
    return { db: id, rows: new Array<string>() };
  }, { per: "call", dispose: (_, end) => void log.push(`dispose tx ${end}`) });
  return { log, db, tx };
}

const text = { type: "object", properties: { how: { type: "string" } } } as const;

behaviour("a service is created once per lifetime, and services are disposed in reverse order", async (connect) => {
  const { log, db, tx } = recorder();
  const write = tool({
    name: "write",
    services: { db, tx },
    run: (_, { services: { db, tx } }) => {
      log.push("run");
      return `${db.id} ${tx.db}`;
    },
  });
  const { client, server } = await connect({ handlers: [write] });
  for (let i = 0; i < 2; i++) assertEquals(textOf(await client.callTool("write")), "1 1");
  const once = ["make tx", "run", "dispose tx result"];
  assertEquals(log, ["make db", ...once, ...once]);
  await server.close();
  assertEquals(log.at(-1), "dispose db result");
}, { perInstance: "services" });

behaviour(
  "concurrent first uses create a service once, and a cancelled caller does not abort the creation",
  async (connect) => {
    const { pass, open } = gate();
    let made = 0;
    const slow = service("slow", async ({ signal }) => {
      made++;
      await pass;
      return signal.aborted;
    });
    const use = tool({ name: "use", services: { slow }, run: (_, { services: { slow } }) => `aborted: ${slow}` });
    const { client } = await connect({ handlers: [use] });
    const cancelled = new AbortController();
    const first = client.callTool("use", {}, { signal: cancelled.signal }).catch(() => "cancelled");
    const others = [client.callTool("use"), client.callTool("use")];
    await until(() => made > 0, "the service is being made");
    cancelled.abort();
    assertEquals(await first, "cancelled");
    open();
    for (const other of others) assertEquals(textOf(await other), "aborted: false");
    assertEquals(made, 1);
  },
  { perInstance: "services" },
);

behaviour("a service with the lifetime of a call is disposed with the outcome of the call", async (connect) => {
  const { log, tx } = recorder();
  const end = tool({
    name: "end",
    input: text,
    services: { tx },
    run: async ({ how }) => {
      await undefined;
      if (how === "tool error") throw new ToolError("no");
      if (how === "error") throw new RangeError("secret");
      if (how === "isError") return { content: [{ type: "text" as const, text: "no" }], isError: true };
      return "yes";
    },
  });
  const bad = tool({
    name: "bad",
    services: { tx },
    output: { type: "object", required: ["a"] },
    run: () => ({}),
  });
  const { client, takeFaults } = await connect({ handlers: [end, bad] });
  const ends: [string, ServiceEnd][] = [["fine", "result"], ["tool error", "error"], ["error", "error"], [
    "isError",
    "error",
  ]];
  for (const [how, wanted] of ends) {
    await client.callTool("end", { how });
    assertEquals(log.at(-1), `dispose tx ${wanted}`, how);
  }
  await assertRejects(() => client.callTool("bad"));
  assertEquals(log.at(-1), "dispose tx error");
  assertEquals(takeFaults().length, 2);
});

/** Cancels a call of the tool `hang`, and waits until the call's transaction has been disposed. */
async function cancelHang({ client }: { readonly client: Connection }, log: readonly string[]): Promise<void> {
  const cancelled = new AbortController();
  const call = client.callTool("hang", {}, { signal: cancelled.signal }).catch(() => {});
  await until(() => log.includes("run"), "the handler runs");
  cancelled.abort();
  await call;
  await until(() => log.includes("dispose tx cancelled"), "the transaction is disposed");
}

behaviour(
  "the services of a cancelled call are disposed, even if the handler ignores the cancellation",
  async (connect) => {
    const { log, tx } = recorder();
    const { promise: never } = Promise.withResolvers<never>();
    const hang = tool({
      name: "hang",
      services: { tx },
      run: () => {
        log.push("run");
        return never;
      },
    });
    await cancelHang(await connect({ handlers: [hang] }), log);
  },
);

behaviour("a service that a cancelled handler requests is disposed too", async (connect) => {
  const { log, tx } = recorder();
  const kept = service("kept", () => 1);
  const { promise: never } = Promise.withResolvers<never>();
  const hang = tool({
    name: "hang",
    services: { kept },
    run: async (_, ctx) => {
      log.push("run");
      await until(() => ctx.signal.aborted, "the call is cancelled");
      await ctx.get(tx);
      return await never;
    },
  });
  await cancelHang(await connect({ handlers: [hang] }), log);
});

behaviour("the services of a call that times out are disposed", async (connect) => {
  const { log, tx } = recorder();
  const hang = tool({
    name: "hang",
    services: { tx },
    run: (_, { signal }) => new Promise<string>((_, reject) => signal.onabort = () => reject(signal.reason)),
  });
  const { client } = await connect({ handlers: [hang], limits: { calls: { timeoutMs: 50 } } });
  await assertRejects(() => client.callTool("hang"), Error, "calls.timeoutMs");
  await until(() => log.includes("dispose tx cancelled"), "the transaction is disposed");
});

behaviour("a call that is cancelled while one of its services is being created does not run", async (connect) => {
  const log: string[] = [];
  const tx = service("tx", async ({ signal }) => {
    log.push("making");
    // Over HTTP, the server detects a disconnected client only after some time.
    await until(() => signal.aborted, "the call is cancelled");
    log.push(`aborted: ${signal.aborted}`);
    return 1;
  }, { per: "call", dispose: (_, end) => void log.push(end) });
  const use = tool({ name: "use", services: { tx }, run: () => void log.push("run") });
  const { client } = await connect({ handlers: [use] });
  const cancelled = new AbortController();
  const call = client.callTool("use", {}, { signal: cancelled.signal }).catch(() => {});
  await until(() => log.length > 0, "the service is being made");
  cancelled.abort();
  await call;
  await until(() => log.length > 2, "the service is disposed");
  assertEquals(log, ["making", "aborted: true", "cancelled"]);
});

behaviour(
  "if the creation of a service fails, the model gets the text that mapError returns, and the next call retries the creation",
  async (connect) => {
    let attempts = 0;
    const flaky = service("flaky", () => {
      if (++attempts === 1) throw new RangeError("down");
      if (attempts === 2) throw new ToolError("log in first");
      return attempts;
    }, { per: () => "key" });
    const use = tool({ name: "use", services: { flaky }, run: (_, { services: { flaky } }) => flaky });
    const { client, takeFaults } = await connect({
      handlers: [use],
      mapError: (error) => error instanceof RangeError ? `it is ${error.message}` : undefined,
    });
    const first = textOf(await client.callTool("use"));
    assertEquals([first, textOf(await client.callTool("use"))], ["it is down", "log in first"]);
    assertEquals(textOf(await client.callTool("use")), "3");
    assertEquals(takeFaults().map(({ subject }) => subject), ["use"]);
  },
);

behaviour("if creating one service fails, the services already created for the call are disposed", async (connect) => {
  const log: string[] = [];
  const make = (name: string) =>
    service(name, () => name, { per: "call", dispose: (name, end) => void log.push(`${name} ${end}`) });
  const broken = service("broken", async () => {
    await turn();
    throw new ToolError("broken");
  }, { per: "call" });
  const use = tool({ name: "use", services: { a: make("a"), broken, b: make("b") }, run: () => void log.push("run") });
  const { client } = await connect({ handlers: [use] });
  assertEquals(textOf(await client.callTool("use")), "broken");
  assertEquals(log, ["b error", "a error"]);
});

behaviour("a call fails if the commit of its service fails", async (connect) => {
  const tx = service("tx", () => 1, {
    per: "call",
    dispose: (_, end) => {
      if (end === "result") throw new ToolError("Somebody else has changed it.");
    },
  });
  const use = tool({ name: "use", services: { tx }, run: () => "done" });
  const { client } = await connect({ handlers: [use] });
  const result = await client.callTool("use");
  assertEquals([result.isError, textOf(result)], [true, "Somebody else has changed it."]);
});

behaviour("every function of every kind of handler gets its services", async (connect) => {
  const { db, tx } = recorder();
  const seen: string[] = [];
  const services = { db, tx };
  const allow = ({ services }: { services: object }) => {
    seen.push(`allow ${Object.keys(services)}`);
    return true;
  };
  const see = (what: string) => ({ services }: { services: object }) => seen.push(`${what} ${Object.keys(services)}`);
  const handlers = [
    tool({ name: "t", services, allow, run: (_, ctx) => see("run")(ctx) }),
    prompt({
      name: "p",
      services,
      allow,
      input: text,
      complete: { how: (_value, _others, ctx) => [`${see("complete")(ctx)}`] },
      run: (_, ctx) => `${see("prompt")(ctx)}`,
    }),
    resource({ uri: "x://fixed", name: "fixed", services, allow, read: (_, ctx) => `${see("fixed")(ctx)}` }),
    resource({
      uri: "y://{id}",
      name: "template",
      services,
      allow,
      complete: { id: (_value, _others, ctx) => [`${see("complete")(ctx)}`] },
      list: (ctx) => [{ uri: "y://1", name: `${see("list")(ctx)}` }],
      read: (_, ctx) => `${see("template")(ctx)}`,
    }),
    resourceProvider({
      scheme: "z",
      name: "provider",
      services,
      allow,
      list: (_, ctx) => ({ resources: [{ uri: "z://1", name: `${see("list")(ctx)}` }] }),
      read: (_, ctx) => `${see("provider")(ctx)}`,
    }),
  ];
  const { client } = await connect({ handlers });
  const take = () => seen.splice(0);
  await client.callTool("t");
  assertEquals(take(), ["allow db", "run db,tx"]);
  await client.getPrompt("p");
  assertEquals(take(), ["allow db", "prompt db,tx"]);
  for (const [uri, name] of [["x://fixed", "fixed"], ["y://1", "template"], ["z://1", "provider"]]) {
    await client.readResource(uri);
    assertEquals(take(), ["allow db", `${name} db,tx`]);
  }
  const argument = { name: "id", value: "" };
  await client.request("completion/complete", { ref: { type: "ref/resource", uri: "y://{id}" }, argument });
  assertEquals(take(), ["allow db", "complete db,tx"]);
  await client.request("completion/complete", {
    ref: { type: "ref/prompt", name: "p" },
    argument: { name: "how", value: "" },
  });
  assertEquals(take(), ["allow db", "complete db,tx"]);
  await client.request("resources/list");
  assertEquals(take().filter((each) => each.startsWith("list")), ["list db", "list db"]);
});

behaviour("services are created after the input is validated, and middleware gets no services", async (connect) => {
  const { log, db } = recorder();
  const strict = tool({
    name: "strict",
    input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    services: { db },
    use: [async (call, next) => {
      log.push(`middleware ${Object.keys(call.services)}`);
      return await next();
    }],
    run: () => "ok",
  });
  const { client, takeFaults } = await connect({ handlers: [strict] });
  await client.callTool("strict", {});
  // Over HTTP, the first request has created the services with the lifetime of the server.
  assertEquals(log.filter((line) => line !== "make db"), []);
  await client.callTool("strict", { n: 1 });
  assertStringIncludes(log.join(), "middleware ");
  assertEquals(takeFaults(), []);
});

behaviour("after a question, the services of the call are created again", async (connect, { era }) => {
  const { log, tx } = recorder();
  const schema = { type: "object", properties: { yes: { type: "boolean" } } } as const;
  const ask = tool({
    name: "ask",
    services: { tx },
    run: async (_, ctx) => {
      ctx.defer((end) => log.push(`deferred ${end}`));
      const { action } = await ctx.elicit("sure", { message: "Sure?", schema });
      return action;
    },
  });
  const { client } = await connect({ handlers: [ask] }, {
    onElicit: () => ({ action: "accept", content: { yes: true } }),
  });
  assertEquals(textOf(await client.callTool("ask")), "accept");
  const ends = era === "modern" ? ["input_required", "result"] : ["result"];
  await until(() => log.filter((line) => line.startsWith("deferred")).length === ends.length, "deferred work ran");
  assertEquals(log.filter((line) => line.startsWith("dispose tx")), ends.map((end) => `dispose tx ${end}`));
  assertEquals(log.filter((line) => line.startsWith("deferred")), ends.map((end) => `deferred ${end}`));
});

behaviour("deferred work runs after the response, and its errors are reported", async (connect) => {
  const log: string[] = [];
  const later = tool({
    name: "later",
    run: (_, { defer }) => {
      defer((end) => {
        log.push(end);
        throw new RangeError("late");
      });
      defer(async () => {
        await undefined;
        log.push("second");
      });
      log.push("run");
      return "ok";
    },
  });
  const { client, takeFaults } = await connect({ handlers: [later] });
  assertEquals(textOf(await client.callTool("later")), "ok");
  await until(() => log.length === 3, "deferred work ran");
  assertEquals(log, ["run", "result", "second"]);
  assertEquals(takeFaults().map(({ method, error }) => `${method} ${error}`), ["tools/call RangeError: late"]);
});

behaviour("a server that is closing waits for deferred work before it disposes services", async (connect) => {
  const { log, db } = recorder();
  const { pass, open } = gate();
  const later = tool({
    name: "later",
    services: { db },
    run: (_, { defer }) => {
      defer(async () => {
        await pass;
        log.push("deferred");
      });
      return "ok";
    },
  });
  const { client, server } = await connect({ handlers: [later] });
  await client.callTool("later");
  const closed = server.close();
  await turn(50);
  open();
  await closed;
  assertEquals(log, ["make db", "deferred", "dispose db result"]);
}, { perInstance: "services" });

behaviour("ctx.get returns services that the handler does not declare", async (connect) => {
  const { db, tx, log } = recorder();
  const use = tool({ name: "use", run: async (_, { get }) => `${(await get(db)).id}` });
  const narrow = tool({ name: "narrow", run: async (_, ctx) => `${(await ctx.get(tx)).db}` });
  const both = tool({ name: "both", services: { db }, run: async (_, { get }) => `${(await get(tx)).db}` });
  const { client, takeFaults } = await connect({ handlers: [use, narrow, both] });
  assertEquals(textOf(await client.callTool("use")), "1");
  assertEquals(textOf(await client.callTool("both")), "1");
  assertEquals(log.slice(-2), ["make tx", "dispose tx result"]);
  await client.callTool("narrow");
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [
    sentence('"tx"'),
  ]);
}, { perInstance: "services" });

behaviour(
  "if a service fails while `allow` runs, the handler is hidden and the failure is reported",
  async (connect) => {
    const broken = service("broken", () => raise(new RangeError("down")));
    const hidden = tool({ name: "hidden", services: { broken }, allow: () => true, run: () => "x" });
    const { client, takeFaults } = await connect({ handlers: [hidden] });
    assertEquals(await client.listTools(), []);
    await assertRejects(() => client.callTool("hidden"), Error, sentence('"hidden"'));
    // Over HTTP, the creation of services on the first request reports the failure too.
    assertEquals(takeFaults().every(({ error }) => error instanceof RangeError), true);
  },
);

Deno.test("a service that fails for a call does not delay closing the server", async () => {
  const broken = service("broken", () => Promise.reject(new Error("no database")), { per: "call" });
  const handlers = [tool({ name: "use", services: { broken }, run: () => "" })];
  // The clock stands still, so `close` would never end if it waited for a timeout.
  const server = createServer({ name: "s", version: "1.0.0", handlers, clock: fakeClock(), observer: { fault() {} } });
  await using client = await connectTest(server);
  assertEquals((await client.callTool("use")).isError, true);
  let isClosed = false;
  void server.close().then(() => isClosed = true);
  await until(() => isClosed, "the server has closed");
});
