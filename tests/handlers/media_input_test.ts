// media() names what it got instead of bytes, and what to pass.
import { assertThrows } from "@std/assert";
import { media } from "../../mod.ts";
import { sentence } from "../support/messages.ts";

Deno.test("media() refuses values that are not bytes, with the remedy", () => {
  const values: readonly (readonly [value: unknown, ...names: string[]])[] = [
    [new URL("file:///tmp/a.png"), "URL", "read the file"],
    [new URL("https://example.com/a.png"), "URL"],
    ["aGVsbG8=", "read"],
    [new ArrayBuffer(3), "Uint8Array"],
    [[1, 2, 3], "a list"],
    [undefined, "undefined"],
    [null, "null"],
  ];
  for (const [value, ...names] of values) {
    // deno-lint-ignore no-explicit-any -- A JavaScript program can pass any value.
    assertThrows(() => media(value as any, "image/png"), TypeError, sentence("media", ...names));
  }
  for (const mimeType of [undefined, null, 1]) {
    // deno-lint-ignore no-explicit-any -- A JavaScript program can pass any value.
    assertThrows(() => media(new Uint8Array(1), mimeType as any), TypeError, sentence("media type"));
  }
});
