// Attackers fill every pot (limited resource) up to their share, and must not evict entries of other clients. `deno
// task load:shares` runs the same attack for a longer time.
import { assertEquals } from "@std/assert";
import { attack } from "../load/shares/attack.ts";
import { ORIGINS, PHASES } from "../load/shares/attackers.ts";
import type { PotName } from "../../src/server/capacity/account.ts";
import { POTS } from "../load/pots.ts";

/** Tests whether the server limits the share of a pot that a single client can use. */
function hasShares(name: PotName): boolean {
  return !POTS[name].share.startsWith("what others leave") && name !== "perTenant.running";
}

/** The attacked servers have a tool search, so they have no code mode, whose shares tests/code tests. */
const NOT_REACHED: readonly string[] = ["code.bytes", "code.programs", "code.running"];

for (const origin of ORIGINS) {
  Deno.test(`other clients keep their entries while attackers from ${origin} fill every pot`, async () => {
    const { lost, fullest } = await attack(origin, { phases: PHASES });
    assertEquals(lost, []);
    const reached = Object.keys(POTS).filter((name) => !NOT_REACHED.includes(name));
    assertEquals([...fullest.keys()].sort(), reached.sort(), "pots that the attack reaches");
    assertEquals([...fullest].filter(([, most]) => most === 0), [], "pots that stayed empty");
    if (origin === "16 networks of /56") return;
    assertEquals([...fullest].filter(([name, most]) => hasShares(name) && most > 50), [], "pots that one client fills");
  });
}
