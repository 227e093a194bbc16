// Values of ctx.once with maxBytes: they are larger than the state that a client without a session keeps, and a call that
// has no room for them fails before it makes them.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, McpError, type Result, type ServerOptions, tool } from "../../mod.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import type { Layer } from "../../src/layers/layers.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock, fakeContext } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { hasInstances } from "../support/instances.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";

const yesNo = z.object({ ok: z.boolean() });
const yes = { action: "accept", content: { ok: true } } as const;
const onElicit = () => yes;
const LARGE = 100_000;
const SIZE = 10_000;
const secret = "s".repeat(32);
const ada = { id: "ada" };

interface Input {
  readonly size?: number;
  readonly maxBytes?: number;
  readonly questions?: number;
  readonly fails?: boolean;
  readonly keys?: readonly string[];
}

/** Creates a tool that keeps a text of `size` characters, and asks questions. `made` has the calls of its `make`. */
function keeping() {
  const made: string[] = [];
  const keep = tool({
    name: "keep",
    input: z.object({
      size: z.number().default(LARGE),
      maxBytes: z.number().default(2 * LARGE),
      questions: z.number().default(1),
      fails: z.boolean().default(false),
      keys: z.array(z.string()).default(["a", "b"]),
    }),
    async run({ size, maxBytes, questions, fails, keys }, ctx) {
      const read = (key: string) =>
        ctx.once(key, () => {
          made.push(key);
          return { text: key.repeat(size), none: null };
        }, { maxBytes });
      const [first, second = first] = await Promise.all(keys.map(read));
      for (let i = 0; i < questions; i++) await ctx.elicit(`q${i}`, { message: `${i}?`, schema: yesNo });
      const again = await read("a");
      if (fails) throw McpError.busy("Cannot finish: try again");
      return `${first.text.length} ${again.text === first.text} ${again.none} ${second.text.slice(0, 3)}`;
    },
  });
  return { keep, made };
}

/** Serves the tool on several instances with one store. */
function serve(count: number, options: Partial<ServerOptions> = {}) {
  const { keep, made } = keeping();
  const store = memoryStore({ clock: options.clock });
  const servers = Array.from({ length: count }, () =>
    closeAtEnd(
      createServer({ name: "s", version: "1", handlers: [keep], secret, store, ...options }),
    ));
  return { servers, made };
}

const capabilities = { elicitation: {} };

/** Makes a call, or answers its question. Returns the result with `requestState`, or the error. */
async function send(client: Connection, args: Input, requestState?: unknown) {
  const answers = Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`q${i}`, yes]));
  const params = {
    name: "keep",
    arguments: args,
    ...requestState !== undefined && { requestState, inputResponses: answers },
  };
  return await client.request("tools/call", params, { rounds: false }).catch((error: McpError) => error);
}

async function ask(client: Connection, args: Input = {}, requestState?: unknown): Promise<string> {
  const result = await send(client, args, requestState);
  assert(!(result instanceof Error) && result.resultType === "input_required", JSON.stringify(result));
  assert(String(result.requestState).length < 2000, "the state contains the value");
  return String(result.requestState);
}

async function finish(client: Connection, args: Input, requestState: unknown): Promise<void> {
  const result = await send(client, args, requestState);
  assert(!(result instanceof Error), String(result));
  assertEquals(result.resultType, "complete");
}

/** Several instances have a store of their own. */
const store = () => hasInstances ? {} : { store: memoryStore() };

function isBusy(result: Result | McpError): result is McpError {
  return result instanceof McpError && result.code === -31503;
}

/** Repeats a request until there is room for it: room is given back after the response. Returns the state, if any. */
async function untilRoom(run: () => Promise<Result | McpError>): Promise<string> {
  let result: Result | McpError | undefined;
  await until(async () => !isBusy(result = await run()), "room for a value");
  assert(!(result instanceof Error), String(result));
  return String(result?.requestState);
}

behaviour("a value with maxBytes is made once, over several questions", async (connect) => {
  const { keep, made } = keeping();
  const { client } = await connect({ handlers: [keep], ...store() }, { onElicit });
  for (const questions of [0, 1, 3]) {
    assertEquals(textOf(await client.callTool("keep", { questions })), `${LARGE} true null bbb`);
    assertEquals(made.splice(0), ["a", "b"]);
  }
});

behaviour("large values are kept within inner calls and layers of extensions", async (connect) => {
  const made: string[] = [];
  const inner = (name: string, use: readonly Layer[]) =>
    tool({
      name,
      use,
      async run(_input, ctx) {
        const text = await ctx.once("a", () => (made.push(name), name.repeat(SIZE)), { maxBytes: 10 * SIZE });
        const { action } = await ctx.elicit("q", { message: "?", schema: yesNo });
        return `${action} ${text.length}`;
      },
    });
  const tools = [inner("plain", []), inner("layered", [task()])];
  const outer = tool({
    name: "outer",
    run: async (_input, ctx) => JSON.stringify(await Promise.all(tools.map(({ name }) => ctx.callTool(name)))),
  });
  const { client } = await connect({ handlers: [tasks(), outer, ...tools], ...store() }, { onElicit });
  assertEquals(textOf(await client.callTool("layered")), `accept ${7 * SIZE}`);
  assertEquals(made.splice(0), ["layered"]);
  const text = textOf(await client.callTool("outer"));
  for (const length of [5, 7]) assertStringIncludes(text, `accept ${length * SIZE}`);
  assertEquals(made.sort(), ["layered", "plain"]);
});

behaviour("a value that is larger than maxBytes is an error", async (connect) => {
  const { keep } = keeping();
  const { client, takeFaults } = await connect({ handlers: [keep], store: memoryStore() }, { onElicit });
  for (const maxBytes of [100, LARGE]) {
    assertEquals((await client.callTool("keep", { maxBytes })).isError, true);
    assertEquals(String(takeFaults()[0].error), sentence("RangeError", 'ctx.once("a")', `maxBytes is ${maxBytes}`));
  }
  assertEquals(textOf(await client.callTool("keep", { size: 10, maxBytes: 100 })), "10 true null bbb");
});

behaviour("maxBytes must be a positive whole number", async (connect) => {
  const { keep, made } = keeping();
  const { client, takeFaults } = await connect({ handlers: [keep] }, { onElicit });
  for (const maxBytes of [0, -1, 1.5]) {
    assertEquals((await client.callTool("keep", { maxBytes })).isError, true);
    assertEquals(String(takeFaults()[0].error), sentence("TypeError", 'ctx.once("a")', "maxBytes"));
  }
  assertEquals(made, []);
});

Deno.test("without a store, a value for which the state has no room is refused before it is made, except in a session", async () => {
  const { keep, made } = keeping();
  const faults: unknown[] = [];
  const server = closeAtEnd(createServer({
    name: "s",
    version: "1",
    handlers: [keep],
    observer: { fault: ({ error }) => void faults.push(error) },
  }));
  await using modern = await connectTest(server, { era: "modern", onElicit });
  await using session = await connectTest(server, { era: "legacy", onElicit });
  assertEquals((await modern.callTool("keep")).isError, true);
  assertEquals(String(faults.splice(0)[0]), sentence("RangeError", 'ctx.once("a")', "calls.stateBytes", "store"));
  assertEquals(made, []);
  assertEquals(textOf(await session.callTool("keep")), `${LARGE} true null bbb`);
  assertEquals(made.splice(0), ["a", "b"]);
  // Two values of 14,000 bytes fit into the state, but not two of 20,000 bytes, although they are made together.
  assertEquals(textOf(await modern.callTool("keep", { size: 10, maxBytes: 14_000 })), "10 true null bbb");
  assertEquals(made.splice(0), ["a", "b"]);
  assertEquals((await modern.callTool("keep", { size: 10, maxBytes: 20_000 })).isError, true);
  assertEquals([made, faults.length], [["a"], 1]);
});

Deno.test("a value that is larger than what the store takes is refused before it is made", async () => {
  const faults: unknown[] = [];
  const { servers: [server], made } = serve(1, { observer: { fault: ({ error }) => void faults.push(error) } });
  await using client = await connectTest(server, { onElicit });
  assertEquals((await client.callTool("keep", { maxBytes: 1024 * 1024 })).isError, true);
  assertEquals(String(faults[0]), sentence("RangeError", 'ctx.once("a")', "valueBytes"));
  assertEquals(made, []);
});

Deno.test("any instance with the store continues a call, and only for its caller and its arguments", async () => {
  const { servers: [a, b], made } = serve(2);
  await using first = await connectTest(a, { capabilities, principal: ada });
  await using second = await connectTest(b, { capabilities, principal: ada });
  await using eve = await connectTest(b, { capabilities, principal: { id: "eve" } });
  const args = { questions: 2 };
  const state = await ask(first, args);
  for (const [client, other] of [[eve, args], [second, { ...args, size: 1 }]] as const) {
    const error = await send(client, other, state);
    assert(error instanceof McpError);
    assertEquals([error.code, error.message], [-32602, sentence("requestState belongs to another call")]);
  }
  await finish(first, args, await ask(second, args, state));
  assertEquals(made, ["a", "b"]);
});

Deno.test("the values of a call are deleted when it has a result, and stay after an error", async () => {
  const { servers: [a, b], made } = serve(2, { observer: { fault() {} } });
  await using first = await connectTest(a, { capabilities, principal: ada });
  await using second = await connectTest(b, { capabilities, principal: ada });
  const args = { keys: ["a"] };
  const failing = { ...args, fails: true };
  const failed = await ask(first, failing);
  for (const client of [first, second]) {
    const error = await send(client, failing, failed);
    assert(error instanceof McpError);
    assertEquals(error.code, -31503);
  }
  const state = await ask(first, args);
  await finish(second, args, state);
  await b.close();
  const error = await send(first, args, state);
  assert(error instanceof McpError);
  assertEquals([error.code, error.message], [-32602, sentence("no longer stored", 'ctx.once("a")')]);
  assertEquals(made, ["a", "a"]);
});

Deno.test("values stay as long as the state of the last question is valid", async () => {
  const clock = fakeClock();
  const { servers: [server], made } = serve(1, { clock });
  await using client = await connectTest(server, { capabilities, transport: "pipe" });
  const args = { questions: 3 };
  let state: string | undefined;
  const sendAll = async (count: number) => {
    const params = (given: object) => ({ name: "keep", arguments: args, ...given });
    const inputResponses = Object.fromEntries(Array.from({ length: count }, (_, i) => [`q${i}`, yes]));
    const given = params(state === undefined ? {} : { requestState: state, inputResponses });
    return await client.request("tools/call", given, { rounds: false });
  };
  for (let count = 0; count < 3; count++) {
    state = String((await sendAll(count)).requestState);
    await clock.advance(9 * 60_000);
  }
  assertEquals((await sendAll(3)).resultType, "complete");
  assertEquals(made, ["a", "b"]);
});

behaviour("a client without memory for a value is refused before it is made", async (connect) => {
  const { keep, made } = keeping();
  const options = { handlers: [keep], store: memoryStore(), limits: { memory: { bytesPerClient: 1_000_000 } } };
  const { client, join } = await connect(options, { onElicit, principal: ada });
  const error = await assertRejects(() => client.callTool("keep", { maxBytes: 600_000 }), McpError);
  assertEquals([error.code, error.message], [-31503, sentence('ctx.once("a")', "memory.bytesPerClient")]);
  assertEquals(made, []);
  // The memory is given back after each call, and what a value does not need when the value is made.
  const args = { size: 30_000, maxBytes: 100_000 };
  for (let i = 0; i < 20; i++) await untilRoom(() => client.callTool("keep", args).catch((error: McpError) => error));
  assert(made.length >= 40);
  const eve = await join({ onElicit, principal: { id: "eve" } });
  await eve.callTool("keep", args);
});

Deno.test("a client has a share of the store for values, which it gets back when its calls end", async () => {
  const { servers: [server], made } = serve(1, { limits: testLimits({ replay: { bytes: 2_000_000 } }) });
  await using client = await connectTest(server, { capabilities, principal: ada });
  await using eve = await connectTest(server, { capabilities, principal: { id: "eve" } });
  const args = { keys: ["a"] };
  for (let i = 0; i < 4; i++) await finish(client, args, await untilRoom(() => send(client, args)));
  const states = [await untilRoom(() => send(client, args))];
  made.splice(0);
  let refused: Result | McpError;
  while (!isBusy(refused = await send(client, args))) states.push(String(refused.requestState));
  assertEquals(refused.message, sentence('ctx.once("a")', "replay.bytes"));
  assertEquals(made.length, states.length - 1);
  await finish(eve, args, await ask(eve, args));
  for (const state of states) await finish(client, args, state);
  await finish(client, args, await untilRoom(() => send(client, args)));
});

Deno.test("the context of unit tests keeps large values", async () => {
  const run = async (ctx: Context) => (await ctx.once("a", () => "a".repeat(LARGE), { maxBytes: 2 * LARGE })).length;
  assertEquals(await run(fakeContext()), LARGE);
});
