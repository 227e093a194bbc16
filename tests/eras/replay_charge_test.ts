import { assert, assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { Streams } from "../../src/server/eras/legacy/replay.ts";
import { toBytes } from "../../src/core/protocol/weight.ts";
import { testLimits } from "../support/limits.ts";

Deno.test("the weight of a stream stays charged if its event makes room for its next event", async () => {
  await using server = createServer({
    name: "replay",
    version: "1.0.0",
    handlers: [],
    limits: testLimits({ replay: { bytes: 200_000 } }),
  });
  const { core, accounts } = server[INTERNALS].engine;
  const streams = new Streams(core, false, accounts.find("principal ada"));
  const heavy = streams.create({ calls: [{ method: "tools/call", params: { name: "x".repeat(20_000) } }] });
  const other = streams.create();
  for (let round = 0; round < 5; round++) {
    heavy.write("first");
    const pot = accounts.pots.get("replay.bytes");
    assert(pot);
    for (let left = pot.total - pot.used; left > 3000; left = pot.total - pot.used) {
      other.write("y".repeat(Math.min(5000, left >> 2)));
    }
    heavy.write("z".repeat(3000));
    const kept = [heavy, other].flatMap(({ events, weight }) => [
      ...events.map(({ text }) => toBytes(text)),
      events.length ? weight : 0,
    ]);
    assertEquals(pot.used, kept.reduce((sum, bytes) => sum + bytes), `round ${round}`);
  }
});
