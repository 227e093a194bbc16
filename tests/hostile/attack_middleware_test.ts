// Middleware that ends before the call that it wraps.
import { type Observer, tool } from "../../mod.ts";
import { assertEquals } from "../support/std.ts";
import { as, soon, start, toCall, toListen } from "./attack.ts";
import { turn, until } from "../support/behaviour.ts";

/** Waits for the subscription that is being opened. */
function watch() {
  let opened = 0;
  const observer: Observer = { fault() {}, subscription: ({ state }) => void (opened += Number(state === "opened")) };
  const whenOpened = async () => {
    const before = opened;
    await until(() => opened > before, "the subscription to open");
    return {};
  };
  return { observer, whenOpened };
}

Deno.test("a subscription whose middleware does not wait for its end is no longer counted after its end", async () => {
  const quick = tool({ name: "quick", run: () => "" });
  const { observer, whenOpened } = watch();
  const server = start({
    handlers: [quick],
    limits: { connections: { streamsPerClient: 2 } },
    observer,
    use: [
      (call, next) => call.method === "subscriptions/listen" ? Promise.race([whenOpened(), next()]) : next(),
    ],
  });
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await server.fetch(toListen(), as("eve"));
    statuses.push(response.status);
    await soon(response.text());
    await turn(10);
  }
  await (await server.fetch(toCall("quick"), as("eve"))).text();
  await server.close();
  assertEquals(statuses, [200, 200, 200, 200], "subscriptions that had ended were still counted");
});

Deno.test("a subscription whose middleware throws after it was opened is closed and no longer counted", async () => {
  const quick = tool({ name: "quick", run: () => "" });
  const { observer, whenOpened } = watch();
  const server = start({
    handlers: [quick],
    limits: { connections: { streamsPerClient: 2 } },
    observer,
    use: [async (call, next) => {
      if (call.method !== "subscriptions/listen") return await next();
      const opened = whenOpened();
      next().catch(() => {});
      await opened;
      throw new Error("no more");
    }],
  });
  const texts: (string | undefined)[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await server.fetch(toListen(), as("eve"));
    texts.push(await soon(response.text()));
    await turn(10);
  }
  await server.close();
  assertEquals(texts.map((text) => text?.includes("too many")), [false, false, false, false]);
});
