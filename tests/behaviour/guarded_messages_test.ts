// Output guards process the log and progress messages of a run, wherever they come from.
import { assertEquals } from "@std/assert";
import { group, type Middleware, prompt, resource, service, tool } from "../../mod.ts";
import { guard, type OutputGuard } from "../../src/layers/layers.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";

const PIN = "pin-4711";

/** Replaces the secret in all texts of a value. */
function hide(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null).replaceAll(PIN, "****"));
}

/** Options of a client that records the texts of log and progress messages, in their order of arrival. */
function record() {
  const got: unknown[] = [];
  const note = (text: unknown) => void got.push(text);
  return {
    got,
    options: {
      logLevel: "debug",
      onNotification: ({ method, params }: { method: string; params?: Record<string, unknown> }) => {
        if (method === "notifications/message") note(params?.data);
      },
    } as const,
    onProgress: ({ message }: { message?: string }) => note(message),
  };
}

/** Returns middleware that logs before and after the handler, and reports progress before the handler. */
function say(name: string): Middleware {
  return async (call, next) => {
    call.log.info(`${name} ${PIN}`);
    await call.progress(0.1, { message: `${name} progress ${PIN}` });
    const result = await next();
    call.log.info(`${name} after ${PIN}`);
    return result;
  };
}

behaviour("guards change the messages of middleware, services and handlers, once and in order", async (connect) => {
  const made = service("made", async ({ ctx }) => {
    ctx.log.info(`service ${PIN}`);
    await ctx.progress(0.2, { message: `service progress ${PIN}` });
    return "made";
  }, { per: "call" });
  const count: OutputGuard = (value, _ctx, part) => part === "log" ? `${value}!` : undefined;
  const guards = { output: [count] };
  const work = tool({
    name: "work",
    services: { made },
    use: [guard(guards), say("tool")],
    run: async (_input, { log, progress, services }) => {
      const copy = { log, progress };
      log.info(`run ${PIN}`);
      copy.log.warning(`copy ${PIN}`);
      await progress(0.5, { message: `run progress ${PIN}`, total: "odd" as never });
      await copy.progress(0.6, { message: `copy progress ${PIN}` });
      return services.made;
    },
  });
  const handlers = [
    group("group", [work], { use: [say("group")] }),
    resource({ uri: "page://1", name: "page", use: [guard(guards), say("resource")], read: () => "read" }),
    prompt({ name: "show", use: [guard(guards), say("prompt")], run: () => "shown" }),
  ];
  const { got, options, onProgress } = record();
  const { client, takeFaults } = await connect({ handlers, use: [guard({ output: [hide] })] }, options);
  assertEquals(textOf(await client.callTool("group_work", {}, { onProgress })), "made");
  await until(() => got.length >= 11, "all messages arrive");
  assertEquals(got.splice(0), [
    "group ****!",
    "group progress ****",
    "tool ****!",
    "service ****!",
    "service progress ****",
    "run ****!",
    "copy ****!",
    "run progress ****",
    "copy progress ****",
    "tool after ****!",
    "group after ****!",
  ]);
  assertEquals(takeFaults().length, 1, "the total of a wrong type is reported once");
  for (
    const [name, run] of [
      ["resource", () => client.readResource("page://1", { onProgress })],
      ["prompt", () => client.getPrompt("show", {}, { onProgress })],
    ] as const
  ) {
    await run();
    await until(() => got.length >= 3, "all messages arrive");
    assertEquals(got.splice(0), [`${name} ****!`, `${name} progress ****`, `${name} after ****!`]);
  }
});

behaviour("messages of a slow guard arrive before the result, also after the handler has ended", async (connect) => {
  const slow: OutputGuard = async (value, ctx, part) => {
    if (part === "result") return;
    for (let turn = 0; turn < 20; turn++) await ctx.signal.aborted;
    return hide(value);
  };
  const outer: Middleware = async (call, next) => {
    if (call.method !== "tools/call") return await next();
    call.log.info("outside before");
    const result = await next();
    call.log.info(`outside after ${PIN}`);
    return result;
  };
  const work = tool({
    name: "work",
    use: [guard({ output: [slow] }), say("tool")],
    run: (_input, ctx) => {
      ctx.log.info(`run ${PIN}`);
      return "done";
    },
  });
  const steps = tool({
    name: "steps",
    use: [guard({ output: [slow] })],
    run: async function* (_input, ctx) {
      yield "a";
      ctx.log.info(`step ${PIN}`);
    },
  });
  const { got, options } = record();
  const { client } = await connect({ handlers: [work, steps], use: [outer] }, options);
  assertEquals(textOf(await client.callTool("work")), "done");
  await until(() => got.length >= 5, "all messages arrive");
  assertEquals(got.splice(0), ["outside before", "tool ****", "run ****", "tool after ****", "outside after ****"]);
  await client.callTool("steps");
  await until(() => got.length >= 3, "all messages arrive");
  assertEquals(got, ["outside before", "step ****", "outside after ****"]);
});

behaviour("a message of a guard passes no guards, and a guard can await it", async (connect) => {
  const audit: OutputGuard = async (value, ctx, part) => {
    await ctx.log.warning(`checked ${part}`);
    return hide(value);
  };
  const work = tool({
    name: "work",
    use: [guard({ output: [audit] }), async (call, next) => {
      await call.log.info(`tool ${PIN}`);
      return await next();
    }],
    run: () => PIN,
  });
  const { got, options } = record();
  const { client } = await connect({ handlers: [work], use: [guard({ output: [audit] })] }, options);
  assertEquals(textOf(await client.callTool("work")), "****");
  await until(() => got.length >= 5, "all messages arrive");
  assertEquals(got, ["checked log", "checked log", "tool ****", "checked result", "checked result"]);
});

behaviour("messages of a resource pass its guards and the server's guards once, not the tool's", async (connect) => {
  const mark = (name: string): OutputGuard => (value, _ctx, part) => part === "log" ? `${value} ${name}` : undefined;
  const page = resource({
    uri: "page://1",
    name: "page",
    use: [guard({ output: [mark("resource")] }), say("page")],
    read: async (_uri, ctx) => {
      await ctx.log.info(`read ${PIN}`);
      return "text";
    },
  });
  const reads = tool({
    name: "reads",
    use: [guard({ output: [mark("tool")] })],
    run: async (_input, ctx) => {
      await ctx.readResource("page://1");
      await ctx.log.info("reads");
      return "done";
    },
  });
  const { got, options } = record();
  const { client } = await connect(
    { handlers: [page, reads], use: [guard({ output: [hide, mark("server")] })] },
    options,
  );
  assertEquals(textOf(await client.callTool("reads")), "done");
  await until(() => got.length >= 4, "all messages arrive");
  assertEquals(got, [
    "page **** resource server",
    "read **** resource server",
    "page after **** resource server",
    "reads tool server",
  ]);
});

behaviour("guards of messages have the services that outlive the call, and in the handler all", async (connect) => {
  const pool = service("pool", () => "pool");
  const seat = service("seat", async ({ ctx }) => {
    await ctx.log.info("seat");
    return "seat";
  }, { per: "call" });
  const work = tool({
    name: "work",
    services: { pool, seat },
    use: [
      guard({
        output: [(value, { services }, part) => part === "log" ? `${value}: ${Object.values(services)}` : undefined],
      }),
      say("tool"),
    ],
    run: async (_input, ctx) => {
      await ctx.log.info("run");
      return "done";
    },
  });
  const { got, options } = record();
  const { client, takeFaults } = await connect({ handlers: [work], use: [guard({ output: [hide] })] }, options);
  assertEquals(textOf(await client.callTool("work")), "done");
  await until(() => got.length >= 4, "all messages arrive");
  assertEquals(got, ["tool ****: pool", "seat: pool", "run: pool,seat", "tool after ****: pool"]);
  assertEquals(takeFaults(), []);
}, { perInstance: "services" });
