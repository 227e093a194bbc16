// Queues of calls, and clients that try to make other clients wait.
import { assert, assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { as, soon, start, toCall, toLegacy, toListen } from "./attack.ts";
import { turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";

Deno.test("the server also starts the calls that are queued behind a call that ends immediately", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  let isRunning = false;
  const handlers = [
    tool({ name: "slow", run: () => (isRunning = true, promise) }),
    tool({ name: "quick", run: () => "" }),
  ];
  const server = start({ handlers, limits: { calls: { runningPerClient: 1, closeMs: 10 } } });
  const calls = ["slow", "quick", "quick", "quick"].map(async (name) =>
    await (await server.fetch(toCall(name), as("eve"))).text()
  );
  await until(() => isRunning, "the first call runs");
  await turn(10);
  resolve("");
  const texts = await soon(Promise.all(calls));
  await server.close();
  assertEquals(texts?.length, 4, "a queued call never ran");
});

Deno.test("the length of a progress token is limited like the length of an id, in legacy revisions too", async () => {
  const steps = tool({
    name: "steps",
    async run(_input, { progress }) {
      for (let i = 1; i <= 10; i++) await progress(i);
      return "";
    },
  });
  const server = start({ handlers: [steps] });
  const params = { name: "steps", _meta: { progressToken: "x".repeat(100_000) } };
  const response = await server.fetch(toLegacy({ jsonrpc: "2.0", id: 1, method: "tools/call", params }));
  const { length } = await response.text();
  await server.close();
  assert(length < 100_000, `100,000 characters in, ${length} out`);
});

Deno.test("one client cannot fill the queue for calls of all clients", async () => {
  const slow = tool({ name: "slow", run: () => new Promise<string>(() => {}) });
  const server = start({
    handlers: [slow],
    limits: testLimits({ calls: { running: 4, runningPerClient: 2, waiting: 8, closeMs: 10 } }),
  });
  const responses: Response[] = [];
  const call = async (who: string) => void responses.push(await server.fetch(toCall("slow"), as(who)));
  for (const who of ["eve", "bob"]) await Promise.all(Array.from({ length: who === "eve" ? 10 : 3 }, () => call(who)));
  const statuses = responses.slice(-3).map(({ status }) => status);
  const texts = responses.map((response) => response.text());
  await server.close();
  await Promise.all(texts);
  assertEquals(statuses, [200, 200, 200], "bob's third call was not even queued");
});

Deno.test("a subscription over a channel is refused once the server has closed", async () => {
  const server = start({ handlers: [tool({ name: "quick", run: () => "" })] });
  const texts: string[] = [];
  const pipe = openPipe(server, { write: (text) => void texts.push(text) });
  await server.close();
  pipe.receive(await toListen().text());
  await until(() => texts.length > 0, "the refusal");
  const { unanswered } = pipe;
  pipe.close();
  assertEquals(unanswered, 0, texts.join());
});
