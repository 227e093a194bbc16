// Plans across two processes on Redis, which are killed between a plan and its application, and during an application.
import { assert, assertEquals } from "@std/assert";
import { type Client, connect } from "../../src/client/client.ts";
import { type Instance, RUNTIMES, startCluster } from "../load/cluster/instances.ts";
import { until } from "../support/behaviour.ts";
import { missingRedis } from "../support/redis/server.ts";
import { needs } from "../support/required.ts";

const KILLS = 20;
const APPLIES = 40;

async function reach<T>({ origin }: Instance, run: (client: Client) => Promise<T>): Promise<T> {
  await using client = await connect(`${origin}/mcp`);
  return await run(client);
}

const plan = async (client: Client, args: object) => {
  const { structuredContent } = await client.callTool("plan_change", { ...args });
  return String(Object(structuredContent).plan);
};

/** Returns the text of a result, or the code of an error. */
const apply = async (client: Client, args: object) => {
  try {
    const { content: [block] } = await client.callTool("change", { ...args });
    return Object(block).text;
  } catch (error) {
    return Object(error).code;
  }
};

Deno.test({
  ...typeof Deno === "undefined" // Only Deno starts the processes of both runtimes.
    ? { name: "a plan is applied once, although processes are killed", ignore: true }
    : needs("a plan is applied once, although processes are killed", missingRedis),
  async fn() {
    const effects = await Deno.makeTempFile({ prefix: "mcp-effects-" });
    const count = async (key: string) =>
      (await Deno.readTextFile(effects)).split("\n").filter((line) => line === key).length;
    await using cluster = await startCluster({
      engine: "redis",
      runtimes: RUNTIMES.mixed,
      count: 2,
      file: "plans_server.ts",
      env: { EFFECTS: effects },
    });
    const { instances } = cluster;
    for (let kill = 0; kill < KILLS; kill++) {
      const [victim, other] = kill % 2 ? instances : instances.toReversed();
      const args = { key: `between ${kill}`, ms: 50 };
      const id = await reach(victim, (client) => plan(client, args));
      await victim.end("SIGKILL");
      await victim.start();
      const results = await reach(victim, (one) =>
        reach(other, (two) =>
          Promise.all(
            Array.from({ length: APPLIES }, (_, at) => apply(at % 2 ? one : two, { ...args, plan: id })),
          )));
      assertEquals(new Set(results), new Set([args.key]), "each call gets the result");
      assertEquals(await count(args.key), 1);
    }
    for (let kill = 0; kill < KILLS / 4; kill++) {
      const [victim, other] = kill % 2 ? instances : instances.toReversed();
      const args = { key: `within ${kill}`, ms: 60_000 };
      const id = await reach(victim, async (client) => {
        const id = await plan(client, args);
        const lost = apply(client, { ...args, plan: id });
        await until(async () => await count(args.key) === 1, "the tool runs");
        await victim.end("SIGKILL");
        await lost;
        return id;
      });
      const results = await reach(
        other,
        (client) => Promise.all(Array.from({ length: APPLIES }, () => apply(client, { ...args, plan: id }))),
      );
      assertEquals(new Set(results), new Set([-31_409]), "the outcome is unknown");
      await victim.start();
      assertEquals(await reach(victim, (client) => apply(client, { ...args, plan: id })), -31_409);
      assertEquals(await count(args.key), 1);
    }
    assert(instances.every(({ isUp }) => isUp));
    await Deno.remove(effects);
  },
});
