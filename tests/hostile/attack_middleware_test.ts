// Middleware that returns or throws before the subscription that it wraps has ended.
import { type Observer, tool } from "../../mod.ts";
import { BUSY } from "../../src/core/protocol/errors.ts";
import { assertEquals } from "../support/std.ts";
import { as, soon, start, toCall, toListen } from "./attack.ts";
import { turn, until } from "../support/behaviour.ts";

/** Creates an observer, and a function that waits until the next subscription has opened. */
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

Deno.test("a subscription no longer counts after its end, even if the middleware returned before", async () => {
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

Deno.test("a subscription is closed and no longer counts if the middleware throws after the subscription has opened", async () => {
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
  assertEquals(texts.map((text) => text?.includes(`"code":${BUSY}`)), [false, false, false, false]);
});
