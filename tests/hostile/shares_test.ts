// Attackers that take as much of every pot as they get take nothing from other clients. `deno task load:shares` runs the
// same for longer.
import { assertEquals } from "@std/assert";
import { attack } from "../load/shares/attack.ts";
import { ORIGINS, PHASES } from "../load/shares/attackers.ts";
import { POTS } from "../load/pots.ts";

for (const origin of ORIGINS) {
  Deno.test(`other clients keep what they have while every pot is filled from ${origin}`, async () => {
    const { lost, fullest } = await attack(origin, { phases: PHASES });
    assertEquals(lost, []);
    assertEquals([...fullest.keys()].sort(), Object.keys(POTS).sort(), "pots that the attack reaches");
    assertEquals([...fullest].filter(([, most]) => most === 0), [], "pots that stayed empty");
  });
}
