// A subscription ends when the caller's credentials expire, and the client can subscribe again with new credentials.
import { assert, assertEquals } from "@std/assert";
import { type Observer, tool } from "../../mod.ts";
import type { SubscriptionEvent } from "../../src/observe/observe.ts";
import { connect as connectTo } from "../../src/client/client.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { openPort } from "../peers/runtime.ts";
import { until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const hello = tool({ name: "hello", run: () => "" });

function start(options: { readonly expiresInMs?: number } = {}) {
  const clock = fakeClock(Date.now());
  const ended: SubscriptionEvent[] = [];
  const opened: SubscriptionEvent[] = [];
  const calls: unknown[] = [];
  const observer: Observer = {
    subscription: (event) => void (event.state === "ended" ? ended : opened).push(event),
    call: ({ method, outcome, why }) => method === "subscriptions/listen" && calls.push([outcome, why]),
  };
  const { expiresInMs } = options;
  const auth = expiresInMs === undefined ? undefined : {
    authenticate: (_: unknown, { now }: { readonly now: number }) => ({ id: "ada", expiresAt: now + expiresInMs }),
  };
  const server = openServer({ auth, handlers: [hello], clock, observer });
  return { server, clock, ended, opened, calls };
}

Deno.test("a subscription ends without a result when the caller's credentials expire", async () => {
  const { server, clock, ended, calls } = start({ expiresInMs: 5000 });
  const listen = toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } });
  const text = (await server.fetch(listen)).text();
  await clock.advance(5001);
  const messages = (await text).split("\n").filter((line) => line.startsWith("data: "));
  assertEquals(messages.length, 1, "the acknowledgement only");
  assert(messages[0].includes("notifications/subscriptions/acknowledged"));
  assertEquals(ended.map(({ why }) => why), ["expired"]);
  assertEquals(calls, [["cancelled", "expired"]]);
});

Deno.test("the client subscribes again after a subscription ended because the credentials expired", async () => {
  const { server, clock, ended, opened } = start({ expiresInMs: 5000 });
  await using port = await openPort(server);
  await using client = await connectTo(`http://${port.host}/mcp`);
  const subscription = await client.subscribe({ toolsListChanged: true });
  for (let round = 1; round <= 2; round++) {
    await clock.advance(5001);
    await until(() => ended.length === round && opened.length === round + 1, "the next subscription");
  }
  server.listChanged("tools");
  await clock.advance(20);
  for await (const { method } of subscription) {
    assertEquals(method, "notifications/tools/list_changed");
    break;
  }
  await subscription.close();
});

Deno.test("on a connection that stays open, the server states which subscription has ended because credentials expired", async () => {
  const { server, clock, ended } = start();
  const principal = { id: "ada", expiresAt: clock.date() + 5000 };
  await using client = await connectTest(server, { era: "modern", transport: "pipe", principal });
  const subscription = await client.subscribe({ toolsListChanged: true });
  await clock.advance(5001);
  await until(() => ended.length === 1, "the end");
  assertEquals(ended[0].why, "expired");
  assertEquals(await subscription.ended, undefined);
  const [, { method, params }] = client.received;
  assertEquals([method, params.reason], ["notifications/cancelled", "expired"]);
});
