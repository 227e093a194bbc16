// The buffer of a subscription for unread notifications.
import { toSubscription } from "../../src/client/subscription.ts";
import type { Notification } from "../../src/client/message.ts";
import { assertEquals } from "../support/std.ts";
import { turn } from "../support/behaviour.ts";

async function open() {
  const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
  let send: (notification: Notification) => void = () => {};
  const subscription = await toSubscription(async (onChange) => {
    send = onChange;
    return await Promise.resolve({ granted: {}, ended, close: () => Promise.resolve() });
  });
  return { subscription, end: () => end(undefined), send: (n: number) => send({ method: "changed", params: { n } }) };
}

Deno.test("a subscription keeps at most the newest 1,000 unread notifications", async () => {
  const { subscription, end, send } = await open();
  for (let n = 0; n < 100_000; n++) send(n);
  end();
  const taken = await Array.fromAsync(subscription, ({ params }) => Object(params).n);
  assertEquals([taken.length, taken[0], taken.at(-1)], [1000, 99_000, 99_999]);
});

Deno.test("all loops over a subscription end when the subscription ends", async () => {
  const { subscription, end, send } = await open();
  const loops = Array.from({ length: 4 }, () => Array.fromAsync(subscription, ({ params }) => Object(params).n));
  await turn();
  send(1);
  await turn();
  end();
  assertEquals((await Promise.all(loops)).flat(), [1]);
});
