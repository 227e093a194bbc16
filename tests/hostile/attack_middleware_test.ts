// Middleware that ends before what it wraps.
import { tool } from "../../mod.ts";
import { assertEquals } from "../support/std.ts";
import { as, pause, soon, start, toCall, toListen } from "./attack.ts";

Deno.test("a subscription whose middleware does not wait for its end leaves nothing behind", async () => {
  const quick = tool({ name: "quick", run: () => "" });
  const server = start({
    handlers: [quick],
    limits: { streams: { openPerClient: 2 } },
    use: [
      (call, next) =>
        call.method === "subscriptions/listen"
          ? Promise.race([next(), new Promise<Record<string, unknown>>((resolve) => setTimeout(resolve, 20, {}))])
          : next(),
    ],
  });
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await server.fetch(toListen(), as("eve"));
    statuses.push(response.status);
    await soon(response.text());
    await pause(10);
  }
  await (await server.fetch(toCall("quick"), as("eve"))).text();
  await server.close();
  assertEquals(statuses, [200, 200, 200, 200], "subscriptions that had ended were still counted");
});

Deno.test("a subscription whose middleware throws once it is open leaves nothing behind", async () => {
  const quick = tool({ name: "quick", run: () => "" });
  const server = start({
    handlers: [quick],
    limits: { streams: { openPerClient: 2 } },
    use: [async (call, next) => {
      if (call.method !== "subscriptions/listen") return await next();
      next().catch(() => {});
      await pause(20);
      throw new Error("no more");
    }],
  });
  const texts: (string | undefined)[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await server.fetch(toListen(), as("eve"));
    texts.push(await soon(response.text()));
    await pause(10);
  }
  await server.close();
  assertEquals(texts.map((text) => text?.includes("too many")), [false, false, false, false]);
});
