import { assertEquals, assertRejects } from "@std/assert";
import { CHANGED, update } from "../../src/server/engine/update.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { sentence } from "../support/messages.ts";
import { random } from "../support/random.ts";

Deno.test("concurrent changes of one value are all applied", async () => {
  const { below } = random(1);
  const store = memoryStore();
  const add = () =>
    update("add", async () => {
      const found = await store.get("sum");
      for (let pauses = below(4); pauses; pauses--) await Promise.resolve();
      const options = { ttlMs: 60_000, version: found?.version ?? null };
      return await store.set("sum", `${Number(found?.value ?? 0) + 1}`, options) ?? CHANGED;
    });
  await Promise.all(Array.from({ length: 30 }, add));
  assertEquals((await store.get("sum"))?.value, "30");
  await store.close();
});

Deno.test("an update fails if another process changes the value in every attempt", async () => {
  let attempts = 0;
  const attempt = () => Promise.resolve(attempts++ < 1000 ? CHANGED : "never");
  await assertRejects(() => update("change the sum", attempt), Error, sentence());
  assertEquals(attempts, 40);
});
