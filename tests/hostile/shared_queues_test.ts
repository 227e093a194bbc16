// Clients with many addresses cannot block a server's queues for other clients.
import { assert, assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { type Quota, quota } from "../../src/quota/quota.ts";
import { until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";

/** Creates a server whose handler waits for the test. `ran` lists the clients whose calls have started. */
function open(own: Quota) {
  const ran: string[] = [];
  const gates: (() => void)[] = [];
  const work = tool({
    name: "work",
    input: { type: "object", properties: { who: { type: "string" } }, required: ["who"] } as const,
    quota: own,
    run: ({ who }) =>
      new Promise<string>((resolve) => {
        ran.push(who);
        gates.push(() => resolve("done"));
      }),
  });
  const server = createServer({ name: "queues", version: "1.0.0", handlers: [work] });
  const call = async (who: string, address: string): Promise<number> => {
    const request = toRequest("tools/call", { name: "work", arguments: { who } });
    const response = await server.fetch(request, {
      remoteAddr: { hostname: address },
      requestIP: () => ({ address }),
    });
    await response.text();
    return response.status;
  };
  /** Ends running calls one after another, until `all` has settled. */
  const endAll = async (all: Promise<unknown>) => {
    let isOver = false;
    all.finally(() => isOver = true);
    await until(() => {
      gates.shift()?.();
      return isOver;
    }, "all calls end");
  };
  const toPot = () =>
    [...server[INTERNALS].engine.accounts.pots.values()].find(({ name }) => name === "handler.waiting");
  return { server, ran, gates, call, endAll, toPot };
}

/** Four addresses in each of sixteen networks. */
const addresses = Array.from({ length: 64 }, (_, i) => `2001:db8:${i % 16}:12${(i >> 4).toString(16)}0::1`);

Deno.test("sixteen networks do not block the queue of a handler for other clients", async () => {
  const { server, ran, gates, call, endAll, toPot } = open(quota({ concurrency: { calls: 1, waiting: 64 } }));
  const calls: Promise<number>[] = [];
  for (const address of addresses) for (let i = 0; i < 4; i++) calls.push(call("eve", address));
  await until(() => gates.length === 1, "one call runs");
  await until(() => (toPot()?.used ?? 0) >= 48, "the common part of the queue is full");
  const ada = call("ada", "192.0.2.1");
  const all = Promise.all([...calls, ada]);
  await endAll(all);
  const codes = await all;
  assertEquals(codes.at(-1), 200);
  assert(codes.includes(503));
  // At most one call from each network runs before Ada's call.
  assert(ran.indexOf("ada") >= 0 && ran.indexOf("ada") <= 18, `position ${ran.indexOf("ada")}`);
  assertEquals(toPot()?.used, 0);
  await server.close();
});
