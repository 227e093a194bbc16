// Announces 1,000 changes per second to 10,000 subscriptions on two instances. No change may be lost or doubled, and
// memory must not grow.
//
// deno task load:changes [--runtime deno|bun|mixed] [--seconds N] [--subscriptions N]
import { connect } from "../../../src/client/client.ts";
import { readOptions } from "../../support/options.ts";
import { RUNTIMES, startCluster } from "./instances.ts";

const BATCH = 100;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const values = readOptions(Deno.args, { values: ["--runtime", "--seconds", "--subscriptions"], flags: [] });
const seconds = Number(values.get("--seconds") ?? 60);
const subscriptions = Number(values.get("--subscriptions") ?? 10_000);
const runtimes = RUNTIMES[values.get("--runtime") ?? "mixed"];
async function run(): Promise<boolean> {
  await using cluster = await startCluster({ engine: "redis", runtimes, count: 2, file: "changes_server.ts" });

  const open = (origin: string) => connect(`${origin}/mcp`, { era: "modern", onWarning: () => {} });
  const clients = await Promise.all(cluster.instances.map(({ origin }) => open(origin)));
  /** For each change, the number of times that the change has arrived. */
  const received = new Uint32Array(subscriptions);
  for (let id = 0; id < subscriptions;) {
    const next = Math.min(id + 50, subscriptions);
    await Promise.all(Array.from({ length: next - id }, async (_, i) => {
      const mine = id + i;
      const subscription = await clients[mine % 2].subscribe({ resourceSubscriptions: [`load://${mine}`] });
      (async () => {
        for await (const { params } of subscription) {
          if (params.uri === `load://${mine}`) received[mine]++;
          else throw new Error(`${params.uri} at ${mine}`);
        }
      })();
    }));
    id = next;
  }
  console.log(`${subscriptions} subscriptions on ${runtimes}`);

  const readMemory = async () =>
    await Promise.all(clients.map(async (client) => {
      const [first] = (await client.callTool("memory")).content;
      return "text" in first ? Math.round(Number(first.text) / 2 ** 20) : 0;
    }));

  const expected = new Uint32Array(subscriptions);
  const began = performance.now();
  const memory: number[][] = [];
  let sent = 0;
  while (sent < seconds * 1000) {
    const from = sent % subscriptions;
    const turn = sent / BATCH;
    await clients[turn % 2].callTool("change", { from, count: BATCH });
    for (let id = from; id < from + BATCH; id++) expected[id]++;
    sent += BATCH;
    if (turn % 100 === 0) memory.push(await readMemory());
    const ahead = sent - (performance.now() - began);
    if (ahead > 0) await pause(ahead);
  }
  const took = performance.now() - began;
  const isComplete = () => received.every((times, id) => times === expected[id]);
  for (const deadline = performance.now() + 5000; !isComplete() && performance.now() < deadline;) await pause(50);
  memory.push(await readMemory());

  let [lost, doubled] = [0, 0];
  for (let id = 0; id < subscriptions; id++) {
    lost += Math.max(0, expected[id] - received[id]);
    doubled += Math.max(0, received[id] - expected[id]);
  }
  console.log(`${sent} changes in ${Math.round(took / 100) / 10} s; ${lost} lost, ${doubled} doubled`);
  console.log(`MiB of each instance: ${memory.map((each) => each.join("/")).join(" ")}`);
  return !lost && !doubled;
}

const isGood = await run();
console.log(`${isGood ? 1 : 0} passed, ${isGood ? 0 : 1} failed`);
Deno.exit(isGood ? 0 : 1);
