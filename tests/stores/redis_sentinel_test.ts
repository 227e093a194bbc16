// `redisStore` with Redis Sentinel: after a failover, the store uses the new primary, and subscribers receive later
// entries.
import { assertEquals } from "@std/assert";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { until } from "../support/behaviour.ts";
import { SERVICE, startSentinel } from "../support/redis/sentinel.ts";
import { missingRedis } from "../support/redis/server.ts";
import { needs } from "../support/required.ts";

const ttlMs = 600_000;

for (const name of ["ioredis", "iovalkey"] as const) {
  Deno.test({
    ...needs(`${name}: after a failover by Sentinel, the store and its subscribers use the new primary`, missingRedis),
    // The clients look for other Sentinels in the background, so the test may end with open connections.
    sanitizeResources: false,
    sanitizeOps: false,
    async fn() {
      await using site = await startSentinel();
      const sentinels = [{ host: "127.0.0.1", port: site.port }];
      const open = () =>
        redisStore(async () => {
          const options = { sentinels, name: SERVICE, enableOfflineQueue: false };
          if (name === "ioredis") return new (await import("ioredis")).Redis(options);
          return new (await import("iovalkey")).Redis(options);
        });
      const [store, other] = [open(), open()];
      const attempt = async (run: () => unknown) => {
        try {
          await run();
          return true;
        } catch {
          return false;
        }
      };
      await until(() => attempt(() => store.set("key", "1", { ttlMs })), "the servers answer");
      const heard: string[] = [];
      await store.subscribe("topic", (text) => void heard.push(text));
      await other.publish("topic", "before");
      await until(() => heard.length === 1, "the first text");
      // The replica must know the value, because a failover can lose the last writes.
      const { default: { Redis } } = await import("ioredis");
      const replica = new Redis({ sentinels, name: SERVICE, role: "slave" });
      replica.on("error", () => {});
      await until(
        () => attempt(async () => assertEquals(await replica.exists("mcp:value:key"), 1)),
        "the replica has it",
      );
      replica.disconnect();
      await site.killPrimary();
      // A connection to the old primary may accept nothing more, so each write is repeated.
      await until(() => attempt(() => other.publish("topic", "after")), "the new primary accepts writes");
      await until(() => heard.includes("after"), "the text of the new primary");
      assertEquals((await store.get("key"))?.value, "1");
      for (const each of [store, other]) await each.close();
    },
  });
}
