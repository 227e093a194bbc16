// Clients with many addresses cannot block a server's queues for other clients.
import { assert, assertEquals } from "@std/assert";
import { type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { type Layer, quota } from "../../src/layers/layers.ts";
import { SearchQueue } from "../../src/ready/folder_search.ts";
import { folder } from "../../src/ready/ready.ts";
import { worker } from "../../src/ready/worker/worker.ts";
import { turn, until } from "../support/behaviour.ts";
import { withFolder } from "../support/folder.ts";
import { readReply, toRequest } from "../support/requests.ts";
import type heavy from "../worker/heavy.ts";
import { openServer } from "../support/servers.ts";

/** Creates a server whose handler waits for the test. `ran` lists the clients whose calls have started. */
function open(own: Layer) {
  const ran: string[] = [];
  const gates: (() => void)[] = [];
  const work = tool({
    name: "work",
    input: { type: "object", properties: { who: { type: "string" } }, required: ["who"] } as const,
    use: [own],
    run: ({ who }) =>
      new Promise<string>((resolve) => {
        ran.push(who);
        gates.push(() => resolve("done"));
      }),
  });
  const server = openServer({ handlers: [work] });
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
  const { ran, gates, call, endAll, toPot } = open(quota({ concurrency: { calls: 1, waiting: 64 } }));
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
});

/** Calls a tool from an address. Returns the result. */
async function callFrom(server: Server, address: string, name: string, args: object): Promise<ToolResult> {
  const response = await server.fetch(toRequest("tools/call", { name, arguments: args }), {
    remoteAddr: { hostname: address },
    requestIP: () => ({ address }),
  });
  return (await readReply(response)).result;
}

interface ToolResult {
  readonly isError?: boolean;
}

const other = "198.51.100.7";

Deno.test("the threads of a worker pool serve each network in turn", async () => {
  const heavyFile = new URL("../worker/heavy.ts", import.meta.url);
  const input = { type: "object", properties: { job: { type: "string" }, value: { type: "number" } } } as const;
  const run = worker<typeof heavy>(heavyFile, { size: 1, idleMs: 0 });
  const burn = tool({
    name: "burn",
    input,
    run: async (args, ctx) => String(await run({ job: "burn", ...args }, ctx)),
  });
  const server = openServer({ handlers: [burn] });
  const order: string[] = [];
  const call = async (address: string) => {
    await callFrom(server, address, "burn", { value: 5 });
    order.push(address);
  };
  const network = ["2001:db8:1:100::1", "2001:db8:1:1ff::2"];
  const eves = Array.from({ length: 12 }, (_, i) => call(network[i % 2]));
  await Promise.all([...eves, call(other)]);
  assert(order.indexOf(other) <= 3, `position ${order.indexOf(other)}`);
});

Deno.test("searches of one network do not refuse the searches of other clients", async () => {
  const files = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`${i}.md`, "text"]));
  await withFolder(files, async (path) => {
    const handlers = [folder({ path, uri: "notes://", tools: true, watch: false })];
    const server = openServer({ handlers });
    const search = (address: string) => callFrom(server, address, "search", { query: "nothing" });
    const network = ["2001:db8:1:100::1", "2001:db8:1:1ff::2"];
    const eves = Array.from({ length: 24 }, (_, i) => search(network[i % 2]));
    const [ada, ...all] = await Promise.all([search(other), ...eves]);
    assertEquals(ada.isError ?? false, false);
    assert(all.some(({ isError }) => isError), "both addresses are one client");
  });
});

Deno.test("each client has one running search, and all clients have their turn", async () => {
  const queue = new SearchQueue();
  const started: string[] = [];
  const gates: (() => void)[] = [];
  const search = (client: string) =>
    queue.run(client, () => {
      started.push(client);
      return new Promise<void>((resolve) => gates.push(resolve));
    });
  const all = [..."aaaaabcdefghij"].map(search);
  await turn(10);
  assertEquals(started.join(""), "abcdefgh");
  for (const gate of gates.splice(0, 3)) gate();
  await turn(10);
  // Each waiting client gets its turn before a client gets a second turn.
  assertEquals(started.join(""), "abcdefghaij");
  let isOver = false;
  Promise.all(all).finally(() => isOver = true);
  await until(() => {
    gates.splice(0).forEach((end) => end());
    return isOver;
  }, "all searches end");
  assertEquals(started.toSorted().join(""), "aaaaabcdefghij");
});
