// Memory that a client makes the server use is charged to the client, and released exactly once.
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { assert, assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { any, as, start, toCall, toInitialize, toLegacy, toListen, toSlowCall } from "./attack.ts";
import { turn, until } from "../support/behaviour.ts";
import { BOUNDS, testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { parseMessage } from "../../src/core/protocol/message_parser.ts";
import { countIndexes, toWeight } from "../../src/core/protocol/weight.ts";
import { Accounts } from "../../src/server/capacity/account.ts";
import { Outbox } from "../../src/server/transports/outbox.ts";
import { readReply } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";
import { cache, idempotent, quota } from "../../src/layers/layers.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { declared } from "../tasks/declared.ts";

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

Deno.test("the capabilities that a subscription keeps in memory are charged to its client", async () => {
  let kept = 0;
  const seen = tool({
    name: "seen",
    allow: ({ client }) => {
      kept = Math.max(kept, JSON.stringify(client.capabilities).length);
      return true;
    },
    run: () => "",
  });
  const clock = fakeClock();
  const server = start({ clock, handlers: [seen], limits: { memory: { bytesPerClient: 1_000_000 } } });
  const capabilities = { experimental: { large: Array.from({ length: 50_000 }, () => ({})) } };
  const response = await server.fetch(toListen(undefined, { [CAPABILITIES]: capabilities }), as("eve"));
  server.handlers.remove(seen);
  await clock.advance(1000);
  await response.body?.cancel();
  assert(response.status !== 200 || kept < 10_000, `50,000 values are kept while a client may hold 1,000,000 bytes`);
});

Deno.test("a large call in a batch is charged for its own size, however many small calls the batch contains", async () => {
  let running = 0;
  const slow = tool({ name: "slow", input: any, run: () => (running++, new Promise<string>(() => {})) });
  const server = start({ handlers: [slow], limits: { memory: { bytesPerClient: 150_000 }, calls: { closeMs: 10 } } });
  const small = Array.from({ length: 99 }, (_, i) => ({ jsonrpc: "2.0", id: i + 2, method: "ping" }));
  const params = { name: "slow", arguments: { text: "x".repeat(30_000) } };
  const batch = [{ jsonrpc: "2.0", id: 1, method: "tools/call", params }, ...small];
  // Send the requests one after another, because bodies that are still arriving are charged too.
  const responses: Response[] = [];
  for (let i = 0; i < 5; i++) responses.push(await server.fetch(toLegacy(batch), as("eve")));
  const texts = responses.map((response) => response.text());
  await until(() => running > 0, "a call runs");
  await turn(10);
  await server.close();
  const run = (await Promise.all(texts)).filter((text) => !text.includes("memory.bytesPerClient")).length;
  assertEquals(run, 1, "batches with calls of 60,000 bytes each run at once, for a client that may hold 150,000");
});

Deno.test("a call that is charged after its start releases only the memory that was charged", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  let running = 0;
  const handlers = [
    tool({ name: "slow", input: any, run: () => (running++, promise) }),
    resource({ uri: "test://a", name: "a", read: () => "" }),
  ];
  const server = start({ handlers, limits: { memory: { bytesPerClient: 120_000 } } });
  const resourceSubscriptions = Array.from({ length: 60 }, (_, i) => `test://${i}/${"x".repeat(100)}`);
  const listen = () => server.fetch(toListen({ resourceSubscriptions }), as("eve"));
  // The first call is not charged yet, because the calls of the client are within its limit together.
  const first = server.fetch(toCall("slow", { text: "x".repeat(20_000) }), as("eve"));
  await until(() => running === 1, "the first call runs");
  const open = [await listen(), await listen()];
  // The second call exceeds the limit, so now all calls are charged.
  const second = server.fetch(toCall("slow", { text: "x".repeat(2000) }), as("eve"));
  let ended = 0;
  second.finally(() => ended++);
  await until(() => running === 2 || ended > 0, "the second call runs, or is refused");
  resolve("");
  for (const response of await Promise.all([first, second])) await response.text();
  for (const response of open) await response.body?.cancel();
  await turn(10);
  const again = await Promise.all(Array.from({ length: 6 }, listen));
  const statuses = again.map(({ status }) => status);
  for (const response of again) await response.body?.cancel();
  assertEquals(statuses, [200, 200, 503, 503, 503, 503]);
});

Deno.test("a body that arrives before a client's slow bodies does not reset the client's limits", async () => {
  const server = start({
    handlers: [tool({ name: "quick", run: () => "" })],
    limits: { connections: { streamsPerClient: 2 } },
  });
  const slow = toSlowCall("quick");
  const answer = server.fetch(slow.request, as("eve"));
  await turn(10);
  const listen = () => server.fetch(toListen(), as("eve"));
  const open = [await listen(), await listen()];
  slow.write(70_000);
  await turn(10);
  slow.abort();
  await (await answer).text();
  open.push(await listen(), await listen());
  const statuses = open.map(({ status }) => status);
  for (const response of open) await response.body?.cancel();
  assertEquals(statuses, [200, 200, 503, 503]);
});

Deno.test("calls that wait for `allow` count towards the limits on running calls", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let asked = 0;
  const guarded = tool({
    name: "guarded",
    input: any,
    allow() {
      asked++;
      return promise;
    },
    run: () => "",
  });
  const limits = testLimits({
    memory: { bytesPerClient: 200_000 },
    calls: { running: 4, runningPerClient: 4, waiting: 4 },
  });
  const server = start({ handlers: [guarded], limits });
  const call = () => server.fetch(toCall("guarded", { text: "x".repeat(50_000) }), as("eve"));
  const calls = Array.from({ length: 30 }, call);
  await until(() => asked > 0, "calls are looked up");
  await turn(10);
  const atOnce = asked;
  resolve(true);
  for (const response of await Promise.all(calls)) await response.text();
  assert(atOnce <= 8, `${atOnce} calls of 100,000 bytes each wait at once, for a client that may hold 200,000`);
});

Deno.test("the capabilities that a client declares on a channel are limited in size or charged to the client", async () => {
  const server = start({
    handlers: [tool({ name: "quick", run: () => "" })],
    limits: { memory: { bytesPerClient: 100_000 } },
  });
  const texts: string[] = [];
  const pipe = openPipe(server, { write: (text) => void texts.push(text) });
  const text = JSON.stringify(toInitialize({ experimental: { large: "x".repeat(1_000_000) } }));
  pipe.receive(text);
  await until(() => texts.length > 0, "the refusal");
  pipe.close();
  assert(JSON.parse(texts[0]).error, "1,000,000 characters are kept for a client that may hold 100,000 bytes");
});

Deno.test("a client's arriving bodies do not evict the bodies of another client", async () => {
  const handlers = [tool({ name: "quick", input: any, run: () => "" })];
  const server = start({ handlers, limits: testLimits({ request: { allBodiesBytes: 400_000 } }) });
  const open = (who: string) => {
    const slow = toSlowCall("quick");
    slow.write(120_000);
    return { ...slow, answer: server.fetch(slow.request, as(who)) };
  };
  const bob = open("bob");
  await turn(10);
  const eve = Array.from({ length: 4 }, () => open("eve"));
  // One of Eve's bodies is refused, and Bob's body is not.
  const isRefused = (await Promise.race(eve.map(({ answer }) => answer))).status === 503;
  const status = await Promise.race([bob.answer.then((response) => response.status), turn(10)]);
  assert(isRefused, "no body is displaced");
  for (const { abort, answer } of [bob, ...eve]) {
    abort();
    await (await answer).text();
  }
  assertEquals(status, undefined);
});

Deno.test("the charges for the calls in a batch are whole bytes, so the account is empty after the batch", async () => {
  const weights: number[] = [];
  const seen = tool({ name: "seen", run: (_input, call) => void weights.push(Number(Reflect.get(call, "weight"))) });
  const server = start({ handlers: [seen] });
  const batch = [1, 2, 3].map((id) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "seen" } }));
  await (await server.fetch(toLegacy([...batch, { jsonrpc: "2.0", id: "four", method: "ping" }]))).text();
  await (await server.fetch(toLegacy(batch))).text();
  const odd = [...batch, { jsonrpc: "2.0", id: 4, method: "ping" }, { jsonrpc: "2.0", id: 5, method: "ping" }];
  for (const id of [6, 66, 666]) {
    await (await server.fetch(toLegacy([...odd, { jsonrpc: "2.0", id, method: "ping" }]))).text();
  }
  assertEquals(weights.filter((weight) => !Number.isInteger(weight)), []);
});

// The estimated memory of parsed messages: some JSON needs more memory than its length suggests.

const toMessage = (args: unknown) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "x", arguments: args } });

function weigh(text: string): number {
  const message = parseMessage(text, BOUNDS.request);
  assert(message.kind === "request", text.slice(0, 100));
  return message.weight;
}

Deno.test("for integer keys, the memory that an engine reserves is charged", () => {
  const sparse = Array.from({ length: 100 }, () => ({ 999: 0 }));
  assertLess(800_000, weigh(toMessage({ sparse })));
  assertLess(weigh(toMessage({ plain: Array.from({ length: 100 }, () => ({ abc: 0 })) })), 200_000);
});

Deno.test("a short message is never charged more than the estimate for its length", () => {
  let nested: unknown = 0;
  for (let depth = 0; depth < 100; depth++) nested = { 0: nested };
  const args = [nested, Array(90).fill({ 9: 0 }), Object.fromEntries(Array(100).entries()), Array(300).fill({}), "x"];
  for (const text of args.map(toMessage)) {
    const message = parseMessage(text, BOUNDS.request);
    assert(message.kind === "request" && message.text === text, text);
    assertLess(toWeight(text, { max: 0, indexes: countIndexes(text) }), message.weight);
  }
});

Deno.test("a message with too many integer keys is refused before it is parsed", () => {
  const sparse = Array.from({ length: 4001 }, () => ({ 7: 0 }));
  const message = parseMessage(toMessage({ sparse }), BOUNDS.request);
  assert(message.kind === "broken");
  assertEquals(message.message, sentence());
  // The same JSON inside a string is accepted, because a string has no keys.
  weigh(toMessage({ text: JSON.stringify(sparse) }));
});

Deno.test("a string with many commas is not charged like an array", () => {
  const text = "1,2,3,4,5\n".repeat(380_000);
  assertLess(weigh(toMessage({ text })), BOUNDS.memory.bytesPerClient);
});

Deno.test("an outgoing text stays charged in full until it was taken completely", () => {
  const accounts = new Accounts({ limits: BOUNDS });
  const account = accounts.find("x");
  const outbox = new Outbox({ texts: Infinity, characters: 1, account: () => account });
  assert(outbox.push("x".repeat(4_000_000)));
  for (let i = 0; i < 200; i++) outbox.read(16_384);
  assertLess(7_900_000, accounts.memory.used);
  outbox.clear();
  assertEquals(accounts.memory.used, 0);
});

Deno.test("the responses of a batch share the size limit of one result", async () => {
  const big = tool({ name: "big", run: () => "x".repeat(400_000) });
  const limits = { calls: { resultBytes: 1_000_000 } };
  const server = openServer({ handlers: [big], limits });
  const batch = Array.from({ length: 5 }, (_, i) => (
    { jsonrpc: "2.0", id: i, method: "tools/call", params: { name: "big" } }
  ));
  const headers = { "content-type": "application/json", accept: "application/json" };
  const request = new Request("http://localhost/mcp", { method: "POST", headers, body: JSON.stringify(batch) });
  const answers: { id: number; error?: { message: string } }[] = await readReply(await server.fetch(request));
  assertEquals(answers.map(({ id }) => id), [0, 1, 2, 3, 4]);
  assertEquals(answers.map(({ error }) => !!error), [false, false, true, true, true]);
  assertStringIncludes(answers[4].error?.message ?? "", "calls.resultBytes");
});

// Small values that the server keeps for a client count with the objects around them, which use most of their memory.

const input = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
const annotations = { readOnlyHint: true };

/**
 * The bytes that each value uses at least on the heap. Measured after 6,000 calls, Deno needs 1,540, 1,240, 870 and
 * 3,280 bytes, and Bun 1,390, 1,190, 810 and 3,200 bytes.
 */
const HEAP = { task: 1390, cached: 1190, keyed: 810, linked: 3200 };

Deno.test("small tasks, cached results, idempotency keys and links count with the memory of their objects", async () => {
  const handlers = [
    tasks(),
    tool({ name: "task", input, use: [task()], run: () => "x" }),
    tool({ name: "cached", input, annotations, use: [cache({ ttlMs: 60_000 })], run: () => "x" }),
    tool({ name: "keyed", input, use: [idempotent(({ n }) => `key ${n}`)], run: () => "x" }),
    tool({
      name: "linked",
      input,
      use: [quota({ resultBytes: 1100, onLarge: "link" })],
      run: () => "x".repeat(1200),
    }),
  ];
  const server = openServer({ handlers });
  await using client = await connectTest(server, { ...declared, principal: { id: "ada" } });
  for (const [name, bytes] of Object.entries(HEAP)) {
    const before = server.stats().bytes;
    for (let n = 0; n < 20; n++) {
      const result = await client.request("tools/call", { name, arguments: { n } }, { finish: false });
      assertEquals(result.isError, undefined);
      const { taskId } = result;
      if (taskId) {
        await until(async () => (await client.request("tasks/get", { taskId })).status === "completed", "end");
      }
    }
    const counted = (server.stats().bytes - before) / 20;
    assert(counted >= bytes, `${name}: ${counted} bytes are counted, and ${bytes} are used`);
  }
});
