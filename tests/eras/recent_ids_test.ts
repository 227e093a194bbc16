import { assert, assertEquals } from "@std/assert";
import { RecentIds } from "../../src/eras/legacy/recent_ids.ts";

Deno.test("with too many recent ids, the client with the most ids loses its oldest id", () => {
  const recent = new RecentIds();
  recent.add("ada", "first", 0);
  recent.add("ada", "second", 0);
  for (let client = 0; client < 20; client++) {
    for (let i = 0; i < 1000; i++) recent.add(`eve ${client}`, `${client} ${i}`, 1);
  }
  assert(recent.size <= 16_384);
  assertEquals(["first", "second"].map((id) => recent.has("ada", id, 2)), [true, true]);
  assertEquals([recent.has("eve 19", "19 0", 2), recent.has("eve 19", "19 999", 2)], [false, true]);
});
