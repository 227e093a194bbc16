// Building URIs from a template. Either the URI parses back to the same values, or the values are refused.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { resource } from "../../mod.ts";
import { parseTemplate } from "../../src/core/protocol/uri_template.ts";
import { compareCosts } from "../support/cost.ts";
import { random } from "../support/random.ts";
import { sentence } from "../support/messages.ts";

const TEMPLATES = [
  "x:{a}",
  "x://{a}/{b}",
  "x:{a}{.b}",
  "x:{a,b}",
  "x:{/a,b}",
  "x:{a}-{b}",
  "x{;a,b}",
  "x{?a,b}",
  "x:{a}{?b}",
  "x:{a}?z{&b}",
  "x:{+a}/{b}",
  "x:{+a}",
  "x:{a}{#b}",
  "x:{+a}{?b}",
  "x:{a}{;b}{?c}",
];

/**
 * Returns whether a template can represent any value of a variable. Only a percent-encoded variable in the query can.
 */
const carriesAll = (template: string, name: string) => new RegExp(`\\{[?&][^}]*${name}`).test(template);

Deno.test("every built URI parses back to the same values, and every refusal names a variable", () => {
  const source = random(11);
  const alphabet = [..."ab09 -_.~!*'()=&?#%;:@/\\,+[]{}|é世", "\0", "😀", "%41", "%", "..", "./", "\ud800"];
  let built = 0;
  for (let i = 0; i < 20_000; i++) {
    const text = source.pick(TEMPLATES);
    const template = parseTemplate(text);
    const values = Object.fromEntries(
      template.variables.flatMap((name) => source.below(6) === 0 ? [] : [[name, source.text(alphabet, 6)]]),
    );
    let uri: string;
    try {
      uri = template.build(values, "x");
    } catch (error) {
      assert(error instanceof TypeError && /"x": [abc] /.test(error.message), String(error));
      // The values were refused, so the expansion would not parse back to them, or does not exist.
      const isWhole = Object.values(values).every((value) => value.isWellFormed());
      if (isWhole) {
        const read = template.match(template.expand(values));
        assert(JSON.stringify({ ...read }) !== JSON.stringify(values) || !read, `${text} ${JSON.stringify(values)}`);
      }
      continue;
    }
    built++;
    assertEquals({ ...template.match(uri) }, values, `${text} ${uri}`);
    assertEquals(uri, template.expand(values));
  }
  assert(built > 3000, `only ${built} URIs were built`);
});

Deno.test("a plain variable can represent every text without a slash, and a variable in the query can represent every text", () => {
  const source = random(12);
  for (let i = 0; i < 5000; i++) {
    const value = source.text([..."ab%?#&=+;,. é世", "😀", "%41", "{", "}", '"', "<", "\n", "!", "*", "'", "("], 8);
    const query = value + source.pick(["", "/", "\\", "\0", "..", "/../"]);
    const template = parseTemplate("x://{a}{?q}");
    assert(carriesAll("x://{a}{?q}", "q"));
    const values = { a: `v${value}`, q: query };
    assertEquals<unknown>({ ...template.match(template.build(values, "x")) }, values);
  }
});

Deno.test("a value that a template cannot represent is refused with the variable and the reason", () => {
  const wrong: readonly (readonly [template: string, values: Record<string, unknown>, ...names: readonly string[]])[] =
    [
      ["x://{a}/{b}", { a: "1" }, ": b ", "x://{a}/{b}"],
      ["x://{a}", { a: undefined }, ": a ", "x://{a}"],
      ["x://{a}{?q}", { a: "1", p: "2" }, "x://{a}{?q}", "p", "a, q"],
      ["x://{a}", { a: 1 }, ": a ", "number"],
      ["x://{a}", { a: null }, ": a ", "object"],
      ["x://{a}", { a: "" }, ": a "],
      ["x://{a}", { a: "\udc00" }, ": a "],
      ["x://{a}", { a: "b/c" }, ": a ", '"b/c"', '"x://b%2Fc"'],
      ["x://{a}", { a: ".." }, ": a ", '".."', '"x://.."'],
      ["x:{+a}", { a: "a%20b" }, ": a ", '"a%20b"', '"x:a%20b"'],
      ["x:{+a}", { a: "../b" }, ": a ", '"../b"', '"x:../b"'],
      ["x:{a}-{b}", { a: "1-2", b: "3" }, ": a ", '"1-2"', '"x:1-2-3"'],
    ];
  for (const [template, values, ...names] of wrong) {
    assertThrows(
      () => parseTemplate(template).build(values as Record<string, string>, "notes"),
      TypeError,
      sentence('"notes"', ...names),
    );
  }
});

Deno.test("a resource builds its URIs, with typed variables", () => {
  const note = resource({ uri: "note://{title}{?rev}", name: "note", read: ({ title }) => title });
  const { uri } = note;
  assertEquals(uri({ title: "a b" }), "note://a%20b");
  assertEquals(uri({ title: "ü", rev: "1&2" }), "note://%C3%BC?rev=1%262");
  assertEquals(uri({ title: "x", rev: undefined }), "note://x");
  assertEquals(resource({ uri: "config://app", name: "config", read: () => "" }).uri(), "config://app");
  // @ts-expect-error: title is missing
  assertThrows(() => uri({ rev: "1" }), TypeError, sentence("title"));
  // @ts-expect-error: there is no such variable
  assertThrows(() => uri({ title: "x", page: "1" }), TypeError, sentence("page"));
  // @ts-expect-error: a number
  assertThrows(() => uri({ title: 1 }), TypeError, sentence("title", "number"));
});

Deno.test("template: building a URI costs little more than encoding and decoding its values", async () => {
  for (const text of ["x:{a}", "x:{?a}"]) {
    const { build } = parseTemplate(text);
    for (const char of " %") {
      const value = char.repeat(100_000);
      const runs = {
        built: () => build({ a: value }, "x"),
        plain: () => decodeURIComponent(encodeURIComponent(value)),
      };
      const costs = await compareCosts(runs, ({ built, plain }) => built < 5 * Math.max(plain, 0.05));
      assertEquals(costs, undefined, `${text} of ${char}`);
    }
  }
});

Deno.test("template: only ASCII letters stay as they are", () => {
  // In a regular expression without regard to case, these letters equal "s" and "k".
  for (const template of ["x:{a}", "x:{+a}", "x:{#a}", "x:{?a}"]) {
    const { expand } = parseTemplate(template);
    assertEquals([..."\u017f\u212a"].map((a) => expand({ a }).replace(/^x:[#?]?(a=)?/, "")), ["%C5%BF", "%E2%84%AA"]);
  }
});
