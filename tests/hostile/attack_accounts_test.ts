// Memory that a client makes the server use is charged to the client, and released exactly once.
import { fakeClock } from "../../src/testing/testing.ts";
import { assert, assertEquals } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { any, as, start, toCall, toInitialize, toLegacy, toListen, toSlowCall } from "./attack.ts";
import { turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";

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
  await server.close();
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
  await server.close();
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
  await server.close();
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
  await server.close();
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
  await server.close();
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
  await server.close();
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
  await server.close();
  assertEquals(weights.filter((weight) => !Number.isInteger(weight)), []);
});
