// Each step that stands around a handler runs on each way to reach the handler, or the table has a reason.
import { assertEquals } from "@std/assert";
import { CHECKS } from "./steps.ts";
import { type Row, STEP_NAMES, type StepName, TABLE, WAY_NAMES, type WayName } from "./way_table.ts";

// The casts are safe, because the objects have no other keys.
const steps = Object.entries(TABLE) as [StepName, Row][];
const ways = Object.keys(WAY_NAMES) as WayName[]; // See above.

const listWays = (reasons: Row["skipped"] = {}) => Object.values(reasons).flat();

Deno.test("each cell of the table is checked, or has a reason", () => {
  assertEquals(Object.keys(TABLE), Object.keys(STEP_NAMES));
  for (const [step, { runs, skipped, absent }] of steps) {
    const listed = [...runs, ...listWays(skipped), ...listWays(absent)];
    assertEquals(listed.toSorted(), ways.toSorted(), step);
  }
});

for (const [step, { runs, skipped = {} }] of steps) {
  for (const way of runs) {
    Deno.test(`${WAY_NAMES[way]}: ${STEP_NAMES[step]}`, () => CHECKS[step](way, true));
  }
  for (const [reason, some] of Object.entries(skipped)) {
    for (const way of some) {
      Deno.test(`${WAY_NAMES[way]}: without ${STEP_NAMES[step]}, because ${reason}`, () => CHECKS[step](way, false));
    }
  }
}
