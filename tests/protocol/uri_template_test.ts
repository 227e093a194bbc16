import { assert, assertEquals, assertNotEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { resource } from "../../mod.ts";
import { parseTemplate, type TemplateVariables } from "../../src/core/protocol/uri_template.ts";
import { normalizeUri } from "../../src/core/protocol/uri_text.ts";
import { compareCosts } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";
import { random } from "../support/random.ts";

function read(template: string, uri: string): Record<string, string> | undefined {
  const values = parseTemplate(template).match(uri);
  return values && { ...values };
}

Deno.test("template: each operator reads its variables from the right position in the URI", () => {
  const cases: [template: string, uri: string, values: Record<string, string>][] = [
    ["test://template/{id}/data", "test://template/123/data", { id: "123" }],
    ["repo://{owner}/{name}", "repo://x/y", { owner: "x", name: "y" }],
    ["{a}", "x", { a: "x" }],
    ["x{a,b}", "x1,2", { a: "1", b: "2" }],
    ["file:///{+path}", "file:///a/b%20c/d.txt", { path: "a/b c/d.txt" }],
    ["file:///{+path}?raw={raw}", "file:///a?b?raw=1", { path: "a?b", raw: "1" }],
    ["doc{#part}", "doc#one/two", { part: "one/two" }],
    ["file{.ext}", "file.txt", { ext: "txt" }],
    ["file{.a,b}", "file.tar.gz", { a: "tar", b: "gz" }],
    ["x{/a,b}", "x/1/2", { a: "1", b: "2" }],
    ["{a}{.b}", "x.tar.gz", { a: "x", b: "tar.gz" }],
    ["{a}{/b}{#c}", "x/y#z", { a: "x", b: "y", c: "z" }],
    ["x{;a,b}", "x;a=1;b=2", { a: "1", b: "2" }],
    ["x{;a,b}", "x;b=2;a", { a: "", b: "2" }],
    ["{id}{;a}", "x;a=1", { id: "x", a: "1" }],
    ["x{?a,b}", "x?b=2&a=1", { a: "1", b: "2" }],
    ["x{?a,b}", "x?b=", { b: "" }],
    ["x{?a,b}", "x", {}],
    ["{?a}", "?a=1", { a: "1" }],
    ["x{?a}", "x?a=1=2/3?", { a: "1=2/3?" }],
    ["x?fixed=1{&a,b}", "x?fixed=1&b=2", { b: "2" }],
    ["x?y={y}&z={z}{&a}", "x?y=1&z=2&a=3", { y: "1", z: "2", a: "3" }],
    ["x{;a}{?b}", "x;a=1?b=2", { a: "1", b: "2" }],
    ["x{;a}{?b}", "x?b=2;a=1", { b: "2;a=1" }],
    ["{+path}{?q}", "a/b?q=c", { path: "a/b", q: "c" }],
    ["{a}-{b}", "1-2-3", { a: "1", b: "2-3" }],
    ["{name}.json", "a.json.json", { name: "a.json" }],
    ["{+path}/{name}.{ext}", "a/b/c.tar.gz", { path: "a/b", name: "c.tar", ext: "gz" }],
    ["{root}:{+path}/{name}", "x:a:b/c/d", { root: "x", path: "a:b/c", name: "d" }],
    ["{id}", "caf%C3%A9", { id: "café" }],
    ["{id}", "a+b%2Bc", { id: "a+b+c" }],
    ["{id}", "%252e%252e", { id: "%2e%2e" }],
    ["{id}", "what%3F%23", { id: "what?#" }],
    ["{a.b}", "x", { "a.b": "x" }],
    ["fixed://x", "fixed://x", {}],
  ];
  for (const [template, uri, values] of cases) assertEquals(read(template, uri), values, `${template} on ${uri}`);
});

Deno.test("template: a URI that does not match has no variables", () => {
  const cases: [template: string, uri: string][] = [
    ["x/{id}", "x/"],
    ["x/{id}", "x/a/b"],
    ["x/{id}", "x/a?b"],
    ["x/{id}", "x/a#b"],
    ["x/{id}", "y/a"],
    ["x/{id}/y", "x/a/y/"],
    ["x/{id}/y", "x//y"],
    ["x/{id}/x", "x/x"],
    ["{a}-{b}", "a-"],
    ["{a}-{b}", "-b"],
    ["{a}-{b}", "ab"],
    ["{+a}--{b}", "--b"],
    ["{+a}/{b}", "x/"],
    ["{+a}--{b}", "a-b"],
    ["{+a}--{b}", "-"],
    ["{+a}aa{b}", "aa"],
    ["file:///{+path}", "file:///"],
    ["fixed://x", "fixed://x/"],
    ["fixed://x", "fixed://"],
    ["aXa{b}", "aX"],
    ["{id}", "%"],
    ["{id}", "%4"],
    ["{id}", "%zz"],
    ["{id}", "%ff"],
    ["{id}", "%ed%a0%80"],
    ["{id}", "%c0%af"],
    ["x{?a}", "x?a=%e4"],
    ["x{?a}", "x?b=1"],
    ["x{?a}", "x?a=1&b=2"],
    ["x{?a}", "x?a=1&a=2"],
    ["x{?a}", "x?a=1&"],
    ["x{?a}", "x?"],
    ["x{?a}", "x?a=1#f"],
    ["x{?a}", "x&a=1"],
    ["x{?__proto__}", "x?constructor=1"],
    ["x{;a}", "x;b=1"],
    ["x{;a}", "x;a=1/y"],
    ["x?fixed=1{&a}", "x?fixed=1&b=2"],
    ["x?fixed=1{&a}", "x?a=2&fixed=1"],
  ];
  for (const [template, uri] of cases) assertStrictEquals(read(template, uri), undefined, `${template} on ${uri}`);
});

Deno.test("template: no value can traverse out of its folder, however the value is encoded", () => {
  for (const value of [".", "..", "%2e%2E", "%2E", "a%2fb", "a%2Fb", "%2e%2e%2f", "a%5cb", "a\\b", "a%00", "\u0000"]) {
    for (const template of ["x/{id}", "x{/id}", "x/{id}/y", "x/;id={id}"]) {
      assertStrictEquals(read(template, template.replace(/\{\/?id\}/, "/" + value)), undefined);
      assertStrictEquals(read(template, template.replace(/\{\/?id\}/, value)), undefined, `${template}: ${value}`);
    }
    assertStrictEquals(read("x{;id}", "x;id=" + value), undefined, value);
  }
  for (
    const path of ["..", "../x", "x/..", "a/../b", "a/%2e%2e/b", "a%2f..", "a%5c..%5cb", "..\\x", "a%2f%2E.", "a%00b"]
  ) {
    assertStrictEquals(read("file:///{+path}", "file:///" + path), undefined, path);
    assertStrictEquals(read("file:///{+path}/{name}", `file:///${path}/n`), undefined, path);
    assertStrictEquals(read("x{#part}", "x#" + path), undefined, path);
  }
  assertEquals(read("file:///{+path}", "file:///..a/b../c...d/./e"), { path: "..a/b../c...d/./e" });
  assertEquals(read("{id}", "...")?.id, "...");
  assertEquals(read("x{?path}", "x?path=../..")?.path, "../..");
});

Deno.test("template: names that every object inherits are ordinary variable names", () => {
  const { match, expand } = parseTemplate("x/{__proto__}/{constructor}{?toString}");
  const values = match("x/1/2");
  assert(values);
  assertEquals(Object.entries(values), [["__proto__", "1"], ["constructor", "2"]]);
  assertStrictEquals(values.toString, undefined);
  assertEquals(expand(values), "x/1/2");
  assertEquals(expand({}), "x//");
});

Deno.test("template: expansion follows the tables in RFC 6570, levels 1 to 3", () => {
  const values = {
    var: "value",
    hello: "Hello World!",
    half: "50%",
    empty: "",
    path: "/foo/bar",
    x: "1024",
    y: "768",
    base: "http://example.com/home/",
    semi: ";",
    "a.b": "ok",
  };
  const cases: Record<string, string> = {
    "{var}": "value",
    "{hello}": "Hello%20World%21",
    "{half}": "50%25",
    "{semi}": "%3B",
    "O{empty}X": "OX",
    "O{undef}X": "OX",
    "{a.b}": "ok",
    "{+var}": "value",
    "{+hello}": "Hello%20World!",
    "{+half}": "50%25",
    "{+base}index": "http://example.com/home/index",
    "O{+undef}X": "OX",
    "{+path}/here": "/foo/bar/here",
    "here?ref={+path}": "here?ref=/foo/bar",
    "X{#var}": "X#value",
    "X{#hello}": "X#Hello%20World!",
    "foo{#empty}": "foo#",
    "foo{#undef}": "foo",
    "map?{x,y}": "map?1024,768",
    "{x,hello,y}": "1024,Hello%20World%21,768",
    "?{x,empty}": "?1024,",
    "?{x,undef}": "?1024",
    "?{undef,y}": "?768",
    "X{.var}": "X.value",
    "X{.x,y}": "X.1024.768",
    "X{.empty}": "X.",
    "X{.undef}": "X",
    "{/var}": "/value",
    "{/var,x}/here": "/value/1024/here",
    "{/var,empty}": "/value/",
    "{/var,undef}": "/value",
    "{;x,y}": ";x=1024;y=768",
    "{;x,y,empty}": ";x=1024;y=768;empty",
    "{;x,y,undef}": ";x=1024;y=768",
    "{?x,y}": "?x=1024&y=768",
    "{?x,y,empty}": "?x=1024&y=768&empty=",
    "{?undef,y}": "?y=768",
    "?fixed=yes{&x}": "?fixed=yes&x=1024",
    "{&x,y,empty}": "&x=1024&y=768&empty=",
    "{&undef}": "",
  };
  for (const [template, uri] of Object.entries(cases)) {
    assertEquals(parseTemplate(template).expand(values), uri, template);
  }
  assertEquals(parseTemplate("{+a}").expand({ a: "%41 %zz é [x]" }), "%41%20%25zz%20%C3%A9%20[x]");
  assertEquals(parseTemplate("{a}").expand({ a: "!'()*😀" }), "%21%27%28%29%2A%F0%9F%98%80");
});

Deno.test("template: an ambiguous template is refused with the reason", () => {
  const cases: readonly (readonly [template: string, ...names: readonly (string | number)[]])[] = [
    ["x/{id"],
    ["x/id}"],
    ["x/{{id}}"],
    ["x/{}"],
    ["x/{+}"],
    ["x/{a,}"],
    ["x/{a b}"],
    ["x/{!a}"],
    ["x/{a-b}"],
    ["x/{list*}"],
    ["x/{id:3}"],
    ["x/{a}/{a}", '"a"'],
    ["x/{a}{?a}", '"a"'],
    ["x/{a}{b}"],
    ["x/{+a}{b}"],
    ["x/{a}{+b}"],
    ["x/{+a}/{+b}"],
    ["x/{+a,b}"],
    ["x/{+a}{#b}"],
    ["x{?a}/y"],
    ["x{?a}{b}"],
    ["x{?a}{#b}"],
    ["x{?a}{?b}"],
    ["x{?a}{&b}"],
    ["x{?a}{;b}"],
    ["x{;a}{;b}"],
    ["x{;a}/y"],
    ["x{;a}?"],
    ["x{;a}&{?b}"],
    ["x/" + Array.from({ length: 51 }, (_, i) => `{v${i}}`).join("/"), 50],
  ];
  for (const [template, ...names] of cases) {
    assertThrows(() => parseTemplate(template), TypeError, sentence(`"${template}"`, ";", ...names));
  }
});

Deno.test("template: fifty variables are read", () => {
  const names = Array.from({ length: 50 }, (_, i) => `v${i}`);
  const template = parseTemplate("x/" + names.map((name) => `{${name}}`).join("/"));
  assertEquals(template.variables, names);
  assertEquals(Object.keys(template.match("x/" + names.join("/")) ?? {}).length, 50);
});

Deno.test("template: match returns the values from which expand made the URI", () => {
  const source = random(3);
  const templates = [
    "{a}",
    "x/{a}/{b}",
    "{a}{.b}",
    "{a,b}",
    "{/a,b}",
    "x{;a,b}",
    "x{?a,b}",
    "{a}?z{&b}",
    "{+a}/{b}",
    "{a}{#b}",
  ];
  const alphabet = [..."ab09 -_~!*'()=&?#%;:@é世", "😀", "%41"];
  for (let i = 0; i < 4000; i++) {
    const text = source.pick(templates);
    const template = parseTemplate(text);
    // {+a} and {#b} preserve existing percent-encoding, so they cannot represent a literal "%".
    const values = Object.fromEntries(template.variables.map((name) => {
      const value = "v" + source.text(alphabet, 8);
      return [name, text.includes("+" + name) || text.includes("#" + name) ? value.replaceAll("%", "") : value];
    }));
    assertEquals({ ...template.match(template.expand(values)) }, values, `${text} ${JSON.stringify(values)}`);
  }
});

Deno.test("template: match returns for any URI, and never throws", () => {
  const source = random(5);
  const pieces = [
    "x",
    "/",
    "{",
    "a",
    "%",
    "%2",
    "%2f",
    "%ff",
    ",",
    ".",
    "..",
    ";",
    "?",
    "&",
    "=",
    "#",
    "\\",
    "\ud800",
    "é",
  ];
  const templates = ["x/{a}/{b}", "{a}.{b}", "{+a}/{b}", "x{/a,b}{?c}", "x{;a}{?b}", "{a}-{b}-{c}", "x?y{&a}", "{a,b}"]
    .map(parseTemplate);
  for (let i = 0; i < 20_000; i++) {
    const template = source.pick(templates);
    const values = template.match(source.text(pieces, 12));
    for (const name in values) assert(template.variables.includes(name));
  }
});

Deno.test("template: the time for matching is proportional to the length of the URI", async () => {
  const many = Array.from({ length: 50 }, (_, i) => `{v${i}}`);
  const templates = [
    "{a,b,c}",
    "x/{a}/y",
    "{+a}",
    "{+a}/{b}-{c}",
    "{a}{?b,c}",
    "{a}{;b}",
    many.join("-"),
    "{+w}" + many.slice(1).map((v) => "," + v).join(""),
    "{a}aa{b}",
  ];
  for (const text of templates) {
    const { match } = parseTemplate(text);
    for (const unit of [",", "/", "%", "%2", "%20", "-", "a", ";", ";b=", "?", "&", "=", "?b=&", "aab"]) {
      const small = "x" + unit.repeat(50_000 / unit.length);
      const large = "x" + unit.repeat(800_000 / unit.length);
      const runs = { short: () => match(small), long: () => match(large) };
      // The URI is sixteen times as long. A quadratic search would take 256 times as long, even on a loaded machine.
      const costs = await compareCosts(runs, ({ short, long }) => long < 80 * Math.max(short, 0.05));
      assertEquals(costs, undefined, `${text} on ${unit}`);
    }
  }
});

Deno.test("template: the types of the variables follow from a literal template", () => {
  type Values = TemplateVariables<"repo://{owner}/{+path}{?ref,line}">;
  const values: Values = { owner: "x", path: "a/b", ref: "main" };
  // @ts-expect-error: a path variable is never undefined
  const missing: Values = { owner: "x" };
  // @ts-expect-error: no such variable
  const unknown: Values = { owner: "x", path: "y", branch: "z" };
  const anything: TemplateVariables<string> = { any: "name" };
  assertEquals(parseTemplate("repo://{owner}/{+path}{?ref,line}").expand(values), "repo://x/a/b?ref=main");
  assertEquals(Object.keys({ ...missing, ...unknown, ...anything }).length, 4);
});

// Building URIs from a template. Either the URI parses back to the same values, or the values are refused.

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

// The normal form of URIs, as RFC 3986 defines it.

/** Equivalent URIs in each list, beginning with the normal form. */
const EQUAL: readonly (readonly string[])[] = [
  ["note://host/a", "NOTE://HOST/a", "Note://Host/./a", "note://host/b/../a", "note://host/%61"],
  ["file:///Users/Ada/a%20b", "FILE:///Users/Ada/a%20b", "file:///Users/Ada/x/../a%20b"],
  ["https://ada@host:8080/%C3%A9?q=%2F#f", "https://ada@HOST:8080/%c3%a9?q=%2f#f"],
  ["urn:isbn:12-3~x", "URN:isbn:12%2D3%7ex"],
  ["note://host/a/", "note://host/a/b/..", "note://host/a/."],
  ["note://host/", "note://host/.."],
  ["data:text/plain,a", "DATA:text/plain,a"],
  ["note://h%C3%A9", "note://H%c3%a9"],
];

Deno.test("equivalent URIs have the same normal form", () => {
  for (const [normal, ...others] of EQUAL) {
    for (const uri of [normal, ...others]) assertEquals(normalizeUri(uri), normal, uri);
  }
});

Deno.test("different URIs have different normal forms", () => {
  for (
    const [one, two] of [
      ["note://host/a", "note://host/A"],
      ["note://host/a", "note://host/a/"],
      ["note://host/a%2Fb", "note://host/a/b"],
      ["note://Ada@host", "note://ada@host"],
      ["urn:a", "urn:A"],
      ["note:a/../b", "note:b"],
      ["note://host?A", "note://host?a"],
      ["note://host", "note://host/"],
    ]
  ) assertNotEquals(normalizeUri(one), normalizeUri(two));
});

Deno.test("text that is not a URI stays unchanged", () => {
  for (const text of ["", "a", "/a/../b", "%zz", "1a://x"]) assertEquals(normalizeUri(text), text);
});
