// Shapes whose parts fail in several ways at once.
import { validateShape } from "../../src/schema/shape.ts";
import type { StandardSchema } from "../../src/schema/schema.ts";
import { assertThrows } from "../support/std.ts";
import { turn } from "../support/behaviour.ts";

function part(validate: StandardSchema["~standard"]["validate"]): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

Deno.test("a part of a shape that throws does not leave an unhandled rejection of another part", async () => {
  const shape = {
    a: part(() => Promise.reject(new Error("late"))),
    b: part(() => {
      throw new Error("at once");
    }),
  };
  assertThrows(() => validateShape(shape, {}), Error, "at once");
  // An unhandled rejection would fail this test.
  await turn(10);
});
