// Shapes in which several parts fail at the same time.
import { validateShape } from "../../src/core/schema/shape.ts";
import type { StandardSchema } from "../../src/core/schema/schema.ts";
import { assertThrows } from "../support/std.ts";
import { turn } from "../support/behaviour.ts";
import { throwing } from "../support/throwing.ts";

function part(validate: StandardSchema["~standard"]["validate"]): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

Deno.test("a part of a shape that throws causes no unhandled rejection of another part", async () => {
  const shape = {
    a: part(() => Promise.reject(new Error("late"))),
    b: part(throwing(new Error("at once"))),
  };
  assertThrows(() => validateShape(shape, {}), Error, "at once");
  // An unhandled rejection in these turns would fail the test.
  await turn(10);
});
