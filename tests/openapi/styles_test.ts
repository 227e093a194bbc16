// Tests that arguments are written in every style of the specification, in every place. The expected texts of the first
// table are the "Style Examples" of the specification.
import { assert, assertEquals } from "@std/assert";
import { toDocument, withEcho } from "./echo.ts";

const LIST = ["blue", "black", "brown"];
const COLORS = { R: 100, G: 200, B: 150 };

/** A row: place, style, explode, and what is sent for the text "", a text, a list and an object. */
type Row = readonly [
  place: string,
  style: string,
  explode: boolean,
  empty: string | undefined,
  text: string,
  list: string,
  object: string,
];

const TABLE: readonly Row[] = [
  ["path", "matrix", false, ";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"],
  ["path", "matrix", true, ";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"],
  ["path", "label", false, undefined, ".blue", ".blue,black,brown", ".R,100,G,200,B,150"],
  ["path", "label", true, undefined, ".blue", ".blue.black.brown", ".R=100.G=200.B=150"],
  ["path", "simple", false, undefined, "blue", "blue,black,brown", "R,100,G,200,B,150"],
  ["path", "simple", true, undefined, "blue", "blue,black,brown", "R=100,G=200,B=150"],
  ["query", "form", false, "color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"],
  ["query", "form", true, "color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"],
  [
    ...["query", "spaceDelimited"] as const,
    ...[false, "color=", "color=blue"] as const,
    ...["color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"] as const,
  ],
  [
    ...["query", "pipeDelimited"] as const,
    ...[false, "color=", "color=blue"] as const,
    ...["color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"] as const,
  ],
  [
    ...["query", "deepObject"] as const,
    ...[true, "color=", "color=blue"] as const,
    ...[
      "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
      "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
    ] as const,
  ],
  ["header", "simple", false, "", "blue", "blue,black,brown", "R,100,G,200,B,150"],
  ["header", "simple", true, "", "blue", "blue,black,brown", "R=100,G=200,B=150"],
  ["cookie", "form", false, "color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"],
  ["cookie", "form", true, "color=", "color=blue", "color=blue; color=black; color=brown", "R=100; G=200; B=150"],
  ["cookie", "cookie", true, "color=", "color=blue", "color=blue; color=black; color=brown", "R=100; G=200; B=150"],
  ["cookie", "cookie", false, "color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"],
];

Deno.test("each value is written in each style and place as the specification says", async () => {
  const operations = Object.fromEntries(
    TABLE.map(([place, style, explode], i) => [`row${i}`, {
      path: place === "path" ? `/row${i}/{color}` : `/row${i}`,
      parameters: [{ name: "color", in: place, required: place === "path", style, explode, schema: {} }],
    }]),
  );
  await withEcho(toDocument(operations), {}, async ({ send, call }) => {
    for (const [i, [place, style, explode, empty, ...others]] of TABLE.entries()) {
      const values = [[empty, ""], ...others.map((text, at) => [text, ["blue", LIST, COLORS][at]])] as const;
      for (const [expected, color] of values) {
        const label = `${place} ${style} ${explode} ${JSON.stringify(color)}`;
        if (expected === undefined) {
          assert((await call(`row${i}`, { color })).isError, label);
          continue;
        }
        const { target, headers } = await send(`row${i}`, { color });
        const sent = place === "header" ? headers.color : place === "cookie" ? headers.cookie : target;
        const start = place === "path" ? `/row${i}/` : place === "query" ? `/row${i}?` : "";
        assertEquals(sent, start + expected, label);
      }
      if (place === "path") continue;
      // An argument that is absent, and a list or object that is empty, are not sent.
      for (const args of place === "header" ? [{}] : [{}, { color: [] }, { color: {} }, { color: null }]) {
        const { target, headers } = await send(`row${i}`, args);
        assertEquals([target, headers.color, headers.cookie], [`/row${i}`, undefined, undefined], JSON.stringify(args));
      }
    }
  });
});

Deno.test("special characters are encoded, and reserved ones stay only where the document allows it", async () => {
  const text = "a/b?c&d=e+f#g ü%'[]:;,@!$()*";
  const document = toDocument({
    plain: { parameters: [{ name: "q", in: "query", schema: { type: "string" } }] },
    reserved: { parameters: [{ name: "q", in: "query", allowReserved: true, schema: { type: "string" } }] },
    path: { path: "/path/{q}/end", parameters: [{ name: "q", in: "path", required: true, allowReserved: true }] },
    cookie: { parameters: [{ name: "q", in: "cookie", schema: { type: "string" } }] },
    deep: { parameters: [{ name: "q", in: "query", style: "deepObject", schema: { type: "object" } }] },
  });
  await withEcho(document, {}, async ({ send }) => {
    for (const name of ["plain", "reserved"]) {
      const { target } = await send(name, { q: text });
      assertEquals(new URL(target, "http://a").searchParams.get("q"), text, name);
      assertEquals(target.includes("/b"), name === "reserved");
    }
    assertEquals((await send("path", { q: text })).target, `/path/${encodeURIComponent(text)}/end`);
    assertEquals((await send("cookie", { q: text })).headers.cookie, `q=${encodeURIComponent(text)}`);
    const { target } = await send("deep", { q: { "a&b": { c: [1, 2] }, "d]": text } });
    assertEquals([...new URL(target, "http://a").searchParams], [
      ["q[a&b][c][0]", "1"],
      ["q[a&b][c][1]", "2"],
      ["q[d]]", text],
    ]);
  });
});

Deno.test("parameters with content are JSON, and a whole query can be one parameter", async () => {
  const content = { "application/json": { schema: { type: "object" } } };
  const form = { "application/x-www-form-urlencoded": { schema: { type: "object" } } };
  const document = toDocument({
    query: { parameters: [{ name: "filter", in: "query", content }] },
    header: { parameters: [{ name: "x-filter", in: "header", content }] },
    cookie: { parameters: [{ name: "filter", in: "cookie", content }] },
    path: { path: "/path/{filter}", parameters: [{ name: "filter", in: "path", required: true, content }] },
    json: { parameters: [{ name: "all", in: "querystring", content }] },
    form: { parameters: [{ name: "all", in: "querystring", content: form }] },
  });
  const filter = { a: [1, "x&y"] };
  const json = JSON.stringify(filter);
  await withEcho(document, {}, async ({ send }) => {
    assertEquals((await send("query", { filter })).target, `/query?filter=${encodeURIComponent(json)}`);
    assertEquals((await send("header", { "x-filter": filter })).headers["x-filter"], json);
    assertEquals((await send("cookie", { filter })).headers.cookie, `filter=${encodeURIComponent(json)}`);
    assertEquals((await send("path", { filter })).target, `/path/${encodeURIComponent(json)}`);
    assertEquals((await send("json", { all: filter })).target, `/json?${encodeURIComponent(json)}`);
    assertEquals((await send("form", { all: { a: "b c", d: [1, 2] } })).target, "/form?a=b%20c&d=1&d=2");
  });
});

Deno.test("the lists of version 2.0 are written with their separators, in a query and in a form", async () => {
  const formats = { csv: "a,b", ssv: "a%20b", tsv: "a%09b", pipes: "a%7Cb", multi: "" };
  const list = (name: string, place: string, collectionFormat: string) => {
    return { name, in: place, type: "array", items: { type: "string" }, collectionFormat };
  };
  const paths = Object.fromEntries(
    Object.keys(formats).flatMap((format) => [
      [`/query/${format}`, { get: { operationId: `query_${format}`, parameters: [list("ids", "query", format)] } }],
      [`/form/${format}`, {
        post: {
          operationId: `form_${format}`,
          consumes: ["application/x-www-form-urlencoded"],
          parameters: [list("ids", "formData", format)],
        },
      }],
    ]),
  );
  await withEcho({ swagger: "2.0", info: { title: "Old", version: "1" }, paths }, {}, async ({ send }) => {
    for (const [format, joined] of Object.entries(formats)) {
      const expected = format === "multi" ? "ids=a&ids=b" : `ids=${joined}`;
      assertEquals((await send(`query_${format}`, { ids: ["a", "b"] })).target, `/query/${format}?${expected}`);
      const { body, headers } = await send(`form_${format}`, { body: { ids: ["a", "b"] } });
      assertEquals(body, expected);
      assertEquals(headers["content-type"], "application/x-www-form-urlencoded");
    }
  });
});

Deno.test("references to the parameters of an old document may contain any characters", async () => {
  const names = ["100%", "a/b", "a~b", "a b"];
  const toParameter = (name: string) => ({ name, in: "query", type: "string", required: true });
  const refs = ["#/parameters/100%", "#/parameters/a~1b", "#/parameters/a~0b", "#/parameters/a%20b"];
  const broken = ["#/parameters/%", "#/parameters", "#/definitions/a", "other.json#/parameters/100%", "", "100%"];
  const toParameters = (refs: readonly string[]) => refs.map(($ref) => ({ $ref }));
  const document = {
    swagger: "2.0",
    info: { title: "Old", version: "1" },
    parameters: Object.fromEntries(names.map((name) => [name, toParameter(name)])),
    paths: {
      "/a": { get: { operationId: "a", parameters: toParameters(refs) } },
      ...Object.fromEntries(broken.map((ref, i) => [`/${i}`, { get: { parameters: toParameters([...refs, ref]) } }])),
    },
  };
  await withEcho(document, {}, async ({ api, client, send }) => {
    const reasons = api.operations.flatMap(({ reason }) => reason ?? []);
    assertEquals(reasons.length, broken.length);
    assert(reasons.every((reason) => reason.includes("parameter")), reasons.join("\n"));
    const [{ inputSchema }] = await client.listTools();
    const args = Object.fromEntries(Object.keys(Object(inputSchema.properties)).map((name) => [name, "x"]));
    assertEquals(Object.keys(args).length, names.length);
    assertEquals((await send("a", args)).target, "/a?100%25=x&a%2Fb=x&a~b=x&a%20b=x");
  });
});
