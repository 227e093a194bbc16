// Options that must be lists, checked at runtime because programs may not be type-checked.
import { assertThrows } from "@std/assert";
import { createServer, prompt, resource, tool } from "../../mod.ts";

/** Passes a value of the wrong type. */
function untyped(value: unknown): never {
  return value as never; // so that the mistake compiles
}

const run = () => "";
const cases: Readonly<Record<string, readonly [make: (wrong: object) => unknown, names: readonly string[]]>> = {
  "a server": [
    (wrong) => createServer({ name: "x", version: "1.0.0", ...wrong }),
    ["handlers", "use", "icons", "hosts", "proxies", "origins", "encoders"],
  ],
  'tool "t"': [(wrong) => tool({ name: "t", run, ...wrong }), ["needs", "use", "tags", "icons", "scopes"]],
  'prompt "p"': [(wrong) => prompt({ name: "p", run, ...wrong }), ["needs", "use", "tags", "icons", "scopes"]],
  'resource "x://a"': [
    (wrong) => resource({ uri: "x://a", name: "a", read: run, ...wrong }),
    ["needs", "use", "tags", "icons", "scopes"],
  ],
};

for (const [place, [make, names]] of Object.entries(cases)) {
  for (const name of names) {
    for (const wrong of ["elicitation", { 0: run }, null, 5]) {
      Deno.test(`${place} with ${JSON.stringify(wrong)} as ${name} names the option`, () => {
        assertThrows(() => make({ [name]: wrong }), TypeError, `${name} must be a list`);
      });
    }
  }
}

Deno.test("middleware that is no function is refused when it is given", () => {
  const use = [untyped("logging")];
  const wanted = 'Cannot use "logging" as middleware: it is not a function';
  assertThrows(() => createServer({ name: "x", version: "1.0.0", use }), TypeError, wanted);
  assertThrows(() => tool({ name: "t", use, run }), TypeError, wanted);
});
