// A guard whose output depends on the scopes of the caller.
import { guard } from "../../src/layers/layers.ts";

/** Shows salaries only to callers with the scope. */
export const hide = guard({
  output: [
    (output, { principal }) =>
      principal?.scopes?.includes("hr")
        ? undefined
        : JSON.parse(JSON.stringify(output).replaceAll("salary 9", "hidden")),
  ],
});
