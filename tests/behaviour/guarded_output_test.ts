// Output guards process everything that a client gets from a handler: encoded values of any type, errors, and log and
// progress messages.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { McpError, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import { guard, type OutputGuard, quota } from "../../src/layers/layers.ts";
import { behaviour, raise, textOf, until } from "../support/behaviour.ts";
import { z } from "zod";
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
