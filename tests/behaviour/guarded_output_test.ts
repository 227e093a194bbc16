// Output guards process everything that a client gets from a handler: encoded values of any type, errors, and log and
// progress messages.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { group, McpError, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import type { Context, Middleware } from "../../mod.ts";
import { guard, idempotent, layer, type OutputGuard, quota } from "../../src/layers/layers.ts";
import type { Connection } from "../../src/testing/testing.ts";
import { behaviour, raise, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const SECRET = "sk-abc";

/** Returns a guard that replaces the secret in every string of a JSON value, and records values that are not JSON. */
function redactor(odd: unknown[]): OutputGuard {
  const redact = (value: unknown): unknown => {
    if (typeof value === "string") return value.replaceAll(SECRET, "[redacted]");
    if (Array.isArray(value)) return value.map(redact);
    if (typeof value !== "object" || !value) return value;
    if (Object.getPrototypeOf(value) !== Object.prototype) odd.push(value);
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, redact(part)]));
  };
  return redact;
}

class Account {
  toJSON(): object {
    return { key: SECRET };
  }
}

/** Values of every type, each of which contains the secret. */
const values: Readonly<Record<string, () => unknown>> = {
  map: () => new Map([["at", { key: SECRET }]]),
  mapKey: () => new Map([[{ key: SECRET }, 1]]),
  set: () => new Set([SECRET]),
  nested: () => ({ a: [new Map([["b", new Set([{ c: SECRET }])]])] }),
  toJson: () => new Account(),
  dateBeside: () => ({ at: new Date(0), key: SECRET }),
  url: () => new URL(`https://a.example/?key=${SECRET}`),
  textBlob: () => new Blob([SECRET], { type: "text/plain" }),
  blobBeside: () => ({ key: SECRET, file: new Blob([new Uint8Array([1, 2])], { type: "image/png" }) }),
  stream: () => ReadableStream.from([SECRET, SECRET]),
  lines: () => ReadableStream.from([{ key: SECRET }, [SECRET]]),
  response: () => Response.json({ key: SECRET }),
  failedResponse: () => new Response(SECRET, { status: 500 }),
  generator: function* () {
    yield { key: SECRET };
  },
  later: async function* () {
    yield await Promise.resolve(SECRET);
  },
  boxed: () => ({ key: Object(SECRET) }),
  blocks: () => [{ type: "text", text: SECRET }, new Uint8Array([1])],
  full: () => ({ content: [{ type: "text", text: SECRET }], structuredContent: { at: new Map([["key", SECRET]]) } }),
  link: () => ({ type: "resource_link", uri: `a:${SECRET}`, name: SECRET }),
};

behaviour("guards find the secret in values of every type", async (connect) => {
  const odd: unknown[] = [];
  const guards = { output: [redactor(odd)] };
  const names = Object.keys(values);
  const handlers = names.flatMap((name) => [
    tool({ name, use: [guard(guards)], run: () => values[name]() as object }),
    ...["boxed", "full", "blocks", "link", "failedResponse"].includes(name) ? [] : [
      resource({ uri: `test://${name}`, name, use: [guard(guards)], read: () => values[name]() as object }),
      prompt({
        name,
        use: [guard(guards)],
        run: () => ({ messages: [{ role: "user", content: JSON.stringify(SECRET) }] }) as never,
      }),
    ],
  ]);
  const { client } = await connect({ handlers });
  for (const name of names) {
    const result = JSON.stringify(await client.callTool(name).catch((error) => `${name} ${error}`));
    assertEquals([result.includes(SECRET), result.includes("[redacted]")], [false, true], `${name}: ${result}`);
  }
  for (const { uri } of await client.listResources()) {
    const result = JSON.stringify(await client.readResource(uri));
    assertEquals([result.includes(SECRET), result.includes("[redacted]")], [false, true], `${uri}: ${result}`);
  }
  for (const { name } of await client.listPrompts()) {
    assertEquals(JSON.stringify(await client.getPrompt(name)).includes(SECRET), false);
  }
  assertEquals(odd, []);
});

behaviour("guards that change nothing do not change results", async (connect) => {
  const pass = { output: [() => undefined] };
  const kinds = Object.keys(values).filter((kind) => kind !== "boxed");
  const handlers = kinds.flatMap((kind) => [
    tool({ name: kind, run: () => values[kind]() as object }),
    tool({ name: `${kind}2`, use: [guard(pass)], run: () => values[kind]() as object }),
    ...["full", "blocks", "link", "failedResponse"].includes(kind) ? [] : [
      resource({ uri: `test://${kind}`, name: kind, read: () => values[kind]() as object }),
      resource({ uri: `test://${kind}2`, name: kind, use: [guard(pass)], read: () => values[kind]() as object }),
    ],
  ]);
  const { client } = await connect({ handlers });
  for (const kind of kinds) {
    assertEquals(await client.callTool(`${kind}2`), await client.callTool(kind), kind);
  }
  for (const { uri } of (await client.listResources()).filter(({ uri }) => !uri.endsWith("2"))) {
    const [bare, guarded] = [await client.readResource(uri), await client.readResource(`${uri}2`)];
    assertEquals(JSON.stringify(guarded).replaceAll(`${uri}2`, uri), JSON.stringify(bare), uri);
  }
});

behaviour("errors of every kind pass through the guards of the handler and of the server", async (connect) => {
  const odd: unknown[] = [];
  const parts: string[] = [];
  const note: OutputGuard = (_value, _ctx, part) => void parts.push(part);
  const errors: Record<string, () => unknown> = {
    words: () => new ToolError(`wrong key ${SECRET}`),
    blocks: () => new ToolError([{ type: "resource_link", uri: `a:${SECRET}`, name: "a" }]),
    protocol: () => new McpError(-31001, `wrong key ${SECRET}`, { deep: [{ key: SECRET }] }),
    mapped: () => new RangeError(SECRET, { cause: new Error(SECRET) }),
    bug: () => new Error(SECRET),
  };
  const broken = service("broken", (): string => {
    throw new RangeError(`no connection to db://user:${SECRET}@host`);
  }, { per: () => "all" });
  const fail = (kind: string) => raise(errors[kind]());
  const mapError = (error: unknown) => error instanceof RangeError ? `mapped: ${error.message}` : undefined;
  const handlers = Object.keys(errors).flatMap((kind) => [
    tool({ name: kind, mapError, run: () => fail(kind) }),
    resource({ uri: `test://${kind}`, name: kind, mapError, read: () => fail(kind) }),
    prompt({ name: kind, mapError, run: () => fail(kind) }),
  ]);
  const unready = tool({ name: "unready", services: { broken }, mapError, run: () => "" });
  const { client, takeFaults } = await connect({
    development: false,
    handlers: [...handlers, unready],
    use: [guard({ output: [redactor(odd), note] })],
  });
  const told = async (run: () => Promise<unknown>) => {
    const got = await run().catch((error) => ({ code: error.code, message: error.message, data: error.data }));
    return JSON.stringify(got);
  };
  for (const kind of Object.keys(errors)) {
    for (
      const [text, internal] of [
        [await told(() => client.callTool(kind)), `"text":"${sentence()} (`],
        [await told(() => client.readResource(`test://${kind}`)), `"message":"${sentence()}"`],
        [await told(() => client.getPrompt(kind)), `"message":"${sentence()}"`],
      ]
    ) {
      assertEquals(text.includes(SECRET), false, text);
      const expected = kind === "bug"
        ? internal
        : kind === "blocks" && !text.includes("[redacted]")
        ? ""
        : "[redacted]";
      assertStringIncludes(text, expected);
    }
  }
  const text = await told(() => client.callTool("unready"));
  assertEquals([text.includes(SECRET), text.includes("mapped: no connection")], [false, true], text);
  const error = await assertRejects(() => client.callTool("protocol")) as McpError;
  assertEquals([error.code, error.data], [-31001, { deep: [{ key: "[redacted]" }] }]);
  assertEquals([...new Set(parts)], ["error"]);
  // Each error is reported once, as the handler threw it.
  const faults = takeFaults().map(({ error }) => String(error));
  assertEquals(faults.filter((fault) => fault.includes(SECRET)).length, 7, faults.join("\n"));
  assertEquals(faults.length, 7);
});

behaviour("the client gets an internal error if a guard fails or returns no text for an error", async (connect) => {
  const guards = (output: OutputGuard) => ({ output: [output] });
  const run = () => raise(new ToolError(SECRET));
  const code = () => raise(new McpError(-31001, SECRET));
  const { client, takeFaults } = await connect({
    development: false,
    handlers: [
      tool({ name: "throws", use: [guard(guards(() => raise(new RangeError("bug"))))], run }),
      tool({ name: "nothing", use: [guard(guards(() => null))], run }),
      tool({ name: "odd", use: [guard(guards(() => 5))], run }),
      tool({ name: "coded", use: [guard(guards(() => "text"))], run: code }),
      tool({ name: "refuses", use: [guard(guards(() => raise(new ToolError("refused"))))], run }),
    ],
  });
  for (const name of ["throws", "nothing", "odd", "coded"]) {
    const got = await client.callTool(name).catch(({ message }) => message);
    const [{ id }] = takeFaults();
    assertEquals(JSON.stringify(got).includes(SECRET), false, name);
    if (typeof got === "string") assertEquals([name, got], ["coded", sentence()]);
    else assertEquals(textOf(got), `${sentence()} (${id})`, name);
  }
  assertEquals(textOf(await client.callTool("refuses")), "refused");
});

behaviour("log and progress messages pass through the guards, in order, before the result", async (connect) => {
  const odd: unknown[] = [];
  const seen: [string, unknown][] = [];
  const slow: OutputGuard = async (value, _ctx, part) => {
    seen.push([part, value]);
    // The guard takes longest for the first message, but the messages are still sent in order.
    for (let turns = 5 - seen.length; turns > 0; turns--) await new Promise((resolve) => setTimeout(resolve, 0));
    if (value === "drop") throw new ToolError("not this one");
    return undefined;
  };
  const work = tool({
    name: "work",
    use: [guard({ output: [slow, redactor(odd)] })],
    run: (_input, { log, progress }) => {
      log.info({ key: SECRET, at: new Map([["a", 1]]), when: new Date(0) });
      progress(1, { message: `with ${SECRET}` });
      log.warning("drop");
      log.error(new Error(SECRET));
      log.info(undefined);
      progress(2);
      return "done";
    },
  });
  const got: string[] = [];
  const { client } = await connect({ handlers: [work] }, {
    logLevel: "debug",
    onNotification: ({ method, params }) => void got.push(JSON.stringify([method, params?.data ?? params?.message])),
  });
  const result = await client.callTool("work", {}, {
    onProgress: ({ message }) => void got.push(`progress ${message}`),
  });
  assertEquals(textOf(result), "done");
  await until(() => got.some((text) => text.includes("undefined")), "all messages arrive");
  assertEquals(got.join().includes(SECRET), false, got.join());
  assert(got.join().includes("with [redacted]"), got.join());
  assertEquals(got.join().includes("drop"), false);
  assertEquals(seen.map(([part]) => part), ["log", "progress", "log", "log", "log", "result"]);
  assertEquals(seen[0][1], { key: SECRET, at: {}, when: "1970-01-01T00:00:00.000Z" });
  assertEquals(odd, []);
});

behaviour("a cached result and a result stored for an idempotency key pass through the guards too", async (connect) => {
  const odd: unknown[] = [];
  const large = tool({
    name: "large",
    use: [quota({ resultBytes: 2000, onLarge: "link" })],
    run: () => new Map([["text", `${SECRET} `.repeat(1000)]]),
  });
  const { client } = await connect({ handlers: [large], use: [guard({ output: [redactor(odd)] })] });
  const { content } = await client.callTool("large");
  const [uri] = content.flatMap((block) => block.type === "resource_link" ? block.uri : []);
  const page = JSON.stringify(await client.readResource(uri));
  assertEquals([page.includes(SECRET), page.includes("[redacted]")], [false, true]);
}, { perInstance: "services" });

behaviour("the output schema validates the value that the guards return", async (connect) => {
  const output = z.object({ total: z.number() });
  const guarded = (output: OutputGuard) => ({ output: [output] });
  const { client, takeFaults } = await connect({
    handlers: [
      tool({
        name: "fixes",
        output,
        use: [guard(guarded(() => ({ total: 1 })))],
        run: () => ({ total: "x" as never }),
      }),
      tool({ name: "breaks", output, use: [guard(guarded(() => ({ total: "y" })))], run: () => ({ total: 1 }) }),
    ],
  });
  assertEquals((await client.callTool("fixes")).structuredContent, { total: 1 });
  await assertRejects(() => client.callTool("breaks"), Error, sentence());
  assertEquals(takeFaults().length, 1);
}, { versions: ["2025-11-25"] });

// Results of the middleware of a handler and its groups pass the output guards, also if the middleware has changed the
// handler's result, or has not called the handler.

const parts: unknown[] = [];

const hideIn = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll("sk-live", "[key]"));
const hide = guard({
  output: [(value, _ctx, part) => {
    parts.push(part);
    return hideIn(value);
  }],
});

/** How a middleware can change a result that has a list of blocks, messages or contents. */
const changes: Readonly<Record<string, Middleware>> = {
  "adds to": async (_ctx, next) => {
    const result = await next();
    const [name, list] = toList(result);
    return { ...result, [name]: [...list, list[0]], _meta: { key: "sk-live" } };
  },
  "changes the object of": async (_ctx, next) => {
    const result = await next();
    const [, list] = toList(result);
    list.push(JSON.parse(JSON.stringify(list[0]).replace("[key]", "sk-live")));
    return result;
  },
  replaces: async (ctx) => {
    const text = "own sk-live";
    if (ctx.method === "prompts/get") return { messages: [{ role: "user", content: { type: "text", text } }] };
    if (ctx.method === "resources/read") return { contents: [{ uri: "note://one", text }] };
    return await Promise.resolve({ content: [{ type: "text", text }], structuredContent: { text } });
  },
};

function toList(result: object): [name: string, list: unknown[]] {
  const found = Object.entries(result).find(([, value]) => Array.isArray(value));
  if (!found) throw new Error("the result has no list");
  return found;
}

const uses: Readonly<Record<string, (use: Middleware) => readonly [own: object, ofGroup: object]>> = {
  "a handler": (use) => [{ use: [use] }, {}],
  "a group": (use) => [{}, { use: [use] }],
  "the step inside": (use) => [{ use: [layer(() => ({ name: "inner", inside: use }))] }, {}],
};

const calls: Readonly<Record<string, (client: Connection) => Promise<unknown>>> = {
  tool: (client) => client.callTool("g_note"),
  prompt: (client) => client.getPrompt("g_note"),
  resource: (client) => client.readResource("note://one"),
};

for (const [what, use] of Object.entries(changes)) {
  for (const [where, toUse] of Object.entries(uses)) {
    for (const place of ["server", "handler"] as const) {
      behaviour(`middleware of ${where} that ${what} a result is guarded by the ${place}`, async (connect) => {
        const [own, ofGroup] = toUse(use);
        const guards = place === "handler" ? [hide] : [];
        const options = { ...own, use: [...guards, ...("use" in own ? own.use as [] : [])] };
        const handlers = [
          group("g", [
            tool({ name: "note", ...options, run: () => "sk-live" }),
            prompt({ name: "note", ...options, run: () => "sk-live" }),
            resource({ uri: "note://one", name: "note", ...options, read: () => "sk-live" }),
          ], ofGroup),
        ];
        const { client } = await connect({ handlers, use: place === "server" ? [hide] : [] });
        for (const [kind, call] of Object.entries(calls)) {
          const text = JSON.stringify(await call(client));
          assertEquals([text.includes("sk-live"), text.includes("[key]")], [false, true], `${kind}: ${text}`);
        }
      });
    }
  }
}

behaviour("a result that middleware leaves unchanged passes the output guards once", async (connect) => {
  const pass: Middleware = (_ctx, next) => next();
  const copy: Middleware = async (_ctx, next) => ({ ...await next() });
  const use = [hide, pass, copy, idempotent({ key: ({ key }: { readonly key: string }) => key })] as const;
  const note = tool({ name: "note", input: z.object({ key: z.string() }), use, run: () => ({ text: "sk-live" }) });
  const { client } = await connect({ handlers: [note] }, { principal: { id: "ada" } });
  for (let at = 0; at < 2; at++) {
    parts.length = 0;
    const { structuredContent } = await client.callTool("note", { key: "one" });
    assertEquals([structuredContent, parts], [{ text: "[key]" }, ["result"]]);
  }
});

behaviour("a guard can refuse, replace and leave the result of middleware", async (connect) => {
  const own = (text: string): Middleware => async () => await Promise.resolve({ content: [{ type: "text", text }] });
  const made: Readonly<Record<string, unknown>> = {
    text: "replaced",
    list: [{ type: "text", text: "block" }],
    none: 1,
  };
  const decide = guard({
    output: [(_value, { params }: Context, part) => {
      if (part !== "result") return;
      if (params.name === "refuse") throw new ToolError("refused");
      if (params.name === "fail") throw new Error("secret");
      return made[String(params.name)];
    }],
  });
  const names = ["refuse", "fail", "text", "list", "none", "leave"];
  const handlers = names.map((name) => tool({ name, use: [decide, own(name)], run: () => "" }));
  const ask = prompt({
    name: "text",
    use: [decide, async () => await Promise.resolve({ messages: [] })],
    run: () => "",
  });
  const { client, takeFaults } = await connect({ handlers: [...handlers, ask] });
  const results = [];
  for (const name of names) {
    const { content, isError } = await client.callTool(name).catch((error) => ({
      content: error.message,
      isError: true,
    }));
    results.push([
      name,
      isError ?? false,
      (Array.isArray(content) ? String(Object(content[0]).text) : content).slice(0, 14),
    ]);
  }
  assertEquals(results, [
    ["refuse", true, "refused"],
    ["fail", true, "Internal error"],
    ["text", false, "replaced"],
    ["list", false, "block"],
    ["none", true, "Internal error"],
    ["leave", false, "leave"],
  ]);
  await assertRejects(() => client.getPrompt("text"), McpError, "Internal error");
  assertEquals(takeFaults().length, 3);
});

// Output guards process the log and progress messages of a run, wherever they come from.

const PIN = "pin-4711";

/** Replaces the secret in all texts of a value. */
function hidePin(value: unknown): unknown {
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
  const { client, takeFaults } = await connect({ handlers, use: [guard({ output: [hidePin] })] }, options);
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
    return hidePin(value);
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
    return hidePin(value);
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
    { handlers: [page, reads], use: [guard({ output: [hidePin, mark("server")] })] },
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
  const { client, takeFaults } = await connect({ handlers: [work], use: [guard({ output: [hidePin] })] }, options);
  assertEquals(textOf(await client.callTool("work")), "done");
  await until(() => got.length >= 4, "all messages arrive");
  assertEquals(got, ["tool ****: pool", "seat: pool", "run: pool,seat", "tool after ****: pool"]);
  assertEquals(takeFaults(), []);
}, { perInstance: "services" });
