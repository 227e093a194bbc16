// Paths with parameters: which paths match, and the only accepted spelling of each value.
import { assertEquals, assertThrows } from "@std/assert";
import { PathTemplate } from "../../src/server/transports/http/path_template.ts";
import { random } from "../support/random.ts";
import { sentence } from "../support/messages.ts";

const template = new PathTemplate("/a/:b/:c/d");

for (
  const [path, values] of [
    ["/a/1/2/d", { b: "1", c: "2" }],
    ["/a/%61/%20/d", { b: "a", c: " " }],
    ["/a/:b/x/d", { b: ":b", c: "x" }],
    ["/a/1/2/d/", undefined],
    ["/a/1/2/d/e", undefined],
    ["/a/1/2", undefined],
    ["/a//2/d", undefined],
    ["/A/1/2/d", undefined],
    ["/a/%2e%2E/2/d", undefined],
    ["/a/./2/d", undefined],
    ["/a/x%2fy/2/d", undefined],
    ["/a/x%5cy/2/d", undefined],
    ["/a/%00/2/d", undefined],
    ["/a/%/2/d", undefined],
    ["/a/%ff/2/d", undefined],
    ["", undefined],
  ] as const
) {
  Deno.test(`${path} ${values ? "matches" : "does not match"}`, () => assertEquals(template.match(path), values));
}

Deno.test("parsing a built path returns its values, and building from the values of any spelling returns the same path", () => {
  const { pick, below } = random(7);
  const letters = ["a", "Z", "0", "-", "~", "'", "!", "%", "?", "#", "é", "😀", " ", ":", "*", "+", "&", "."];
  const word = () => Array.from({ length: 1 + below(4) }, () => pick(letters)).join("") + "x";
  for (let i = 0; i < 500; i++) {
    const values = { b: word(), c: word() };
    const path = template.build(values);
    assertEquals(template.match(path), values);
    const bytes = new TextEncoder().encode(values.b);
    const spelled = Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
    const other = template.match(`/a/${spelled}/${encodeURIComponent(values.c)}/d`);
    assertEquals(other && template.build(other), path);
    assertEquals(new URL(path, "http://localhost").pathname.includes("//"), false);
  }
});

Deno.test("build refuses missing and unknown parameters, and values that are not exactly one path segment", () => {
  assertThrows(
    () => template.build({ b: "1" }),
    TypeError,
    sentence("/a/:b/:c/d", " c ", "b, c"),
  );
  assertThrows(() => template.build({ b: "1", c: "2", e: "3" }), TypeError, sentence("/a/:b/:c/d", '"e"'));
  for (const c of ["", ".", "..", "a/b", "a\\b", "\0", "\ud800"]) {
    assertThrows(() => template.build({ b: "1", c }), TypeError, sentence("/a/:b/:c/d", " c "));
  }
});
