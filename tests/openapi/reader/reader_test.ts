// Tests the reader with the example tables of the specification, and with requests that were made wrong on purpose.

import assert from "node:assert/strict";
import { compareRequest, listExpected } from "./reader.ts";

type Json = Readonly<Record<string, unknown>>;

const COLORS = { string: "blue", array: ["blue", "black", "brown"], object: { R: 100, G: 200, B: 150 } };

interface Sent {
  readonly document: Json;
  readonly path?: string;
  readonly method?: string;
  readonly args: Json;
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

function compare(sent: Sent): Promise<readonly string[]> {
  const method = sent.method ?? "GET";
  const headers = new Headers(sent.headers);
  const body = typeof sent.body === "string" ? new TextEncoder().encode(sent.body) : sent.body ?? new Uint8Array();
  return compareRequest({ method, url: new URL(sent.url, "http://localhost"), headers, body }, {
    document: sent.document,
    method,
    path: sent.path ?? "/x",
    basePath: "/base",
    args: sent.args,
  });
}

async function accept(sent: Sent): Promise<void> {
  assert.deepEqual(await compare(sent), [], JSON.stringify(sent.url));
}

async function reject(sent: Sent, pattern = /./): Promise<void> {
  const differences = await compare(sent);
  assert.ok(differences.some((one) => pattern.test(one)), `not reported: ${sent.url} ${JSON.stringify(differences)}`);
}

function withParameters(version: string, parameters: readonly Json[], path = "/x", more: Json = {}): Json {
  const head = version === "2.0" ? { swagger: "2.0" } : { openapi: version };
  return { ...head, paths: { [path]: { get: { parameters, ...more } } } };
}

function withBody(version: string, content: Json, more: Json = {}): Json {
  return { openapi: version, paths: { "/x": { post: { requestBody: { content } } } }, ...more };
}

type Row = readonly [string, boolean, string | undefined, string, string, string | undefined];

const PATH_ROWS: readonly Row[] = [
  ["matrix", false, ";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"],
  ["matrix", true, ";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"],
  ["label", false, ".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"],
  ["label", true, ".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"],
  ["simple", false, "", "blue", "blue,black,brown", "R,100,G,200,B,150"],
  ["simple", true, "", "blue", "blue,black,brown", "R=100,G=200,B=150"],
];

Deno.test("the path rows of the style table are right, and no others", async () => {
  for (const version of ["3.0.3", "3.1.0", "3.2.0"]) {
    for (const [style, explode, empty, text, list, object] of PATH_ROWS) {
      const document = withParameters(version, [
        { name: "color", in: "path", required: true, style, explode, schema: {} },
      ], "/a/x{color}/b");
      const values: readonly [unknown, string | undefined][] = [
        [null, empty],
        [COLORS.string, text],
        [COLORS.array, list],
        [COLORS.object, object],
      ];
      for (const [color, expected] of values) {
        const sent = { document, path: "/a/x{color}/b", args: { color } };
        await accept({ ...sent, url: `/base/a/x${expected}/b` });
        for (const [, , , otherText, otherList, otherObject] of PATH_ROWS) {
          for (const other of [otherText, otherList, otherObject]) {
            if (other !== expected) await reject({ ...sent, url: `/base/a/x${other}/b` }, /path/);
          }
        }
      }
    }
  }
});

const QUERY_ROWS: readonly Row[] = [
  ["form", false, "", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"],
  ["form", true, "", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"],
  ["spaceDelimited", false, "", "", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"],
  ["pipeDelimited", false, "", "", "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"],
  ["deepObject", true, "", "", "", "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"],
];

Deno.test("the query rows of the style table are right, and no others", async () => {
  for (const version of ["3.0.4", "3.1.2", "3.2.0"]) {
    for (const [style, explode, , text, list, object] of QUERY_ROWS) {
      const document = withParameters(version, [{ name: "color", in: "query", style, explode, schema: {} }]);
      const values: readonly [unknown, string | undefined][] = [
        [COLORS.string, text],
        [COLORS.array, list],
        [COLORS.object, object],
      ];
      for (const [color, expected] of values) {
        if (expected === "") continue;
        await accept({ document, args: { color }, url: `/base/x?${expected}` });
        await reject({ document, args: { color }, url: `/base/x?${expected}&more=1` }, /more/);
        await reject({ document, args: { color }, url: "/base/x" }, /color/);
        for (const [, , , otherText, otherList, otherObject] of QUERY_ROWS) {
          for (const other of [otherText, otherList, otherObject]) {
            if (other !== expected && other !== "") {
              await reject({ document, args: { color }, url: `/base/x?${other}` });
            }
          }
        }
      }
      for (const color of [null, [], {}, undefined]) await accept({ document, args: { color }, url: "/base/x" });
    }
  }
});

Deno.test("delimiters inside of values must be encoded", async () => {
  const list = (more: Json) =>
    withParameters("3.1.0", [{ name: "c", in: "query", explode: false, schema: { type: "array" }, ...more }]);
  const args = { c: ["a,b", "d&e+f"] };
  await accept({ document: list({}), args, url: "/base/x?c=a%2Cb,d%26e%2Bf" });
  await reject({ document: list({}), args, url: "/base/x?c=a,b,d%26e%2Bf" }, /c/);
  await reject({ document: list({}), args, url: "/base/x?c=a%2Cb%2Cd%26e%2Bf" }, /c/);
  await reject({ document: list({}), args, url: "/base/x?c=a%2Cb,d%26e+f" }, /c/);
  await reject({ document: list({}), args, url: "/base/x?c=a%2Cb,d&e%2Bf" }, /c/);

  const reserved = withParameters("3.1.0", [{ name: "c", in: "query", allowReserved: true, schema: {} }]);
  await accept({ document: reserved, args: { c: "/a?b:c@d" }, url: "/base/x?c=/a?b:c@d" });
  await accept({ document: reserved, args: { c: "/a%2Fb" }, url: "/base/x?c=/a%2Fb" });
  await accept({ document: reserved, args: { c: "a&b=#+" }, url: "/base/x?c=a%26b=%23%2B" });
  await reject({ document: reserved, args: { c: "a&b" }, url: "/base/x?c=a&b" });
  await reject({ document: reserved, args: { c: "a+b" }, url: "/base/x?c=a+b" });
  await reject({ document: reserved, args: { c: "a#b" }, url: "/base/x?c=a#b" });
  await reject({ document: reserved, args: { c: "a[b" }, url: "/base/x?c=a[b" }, /must be encoded/);

  const path = withParameters("3.2.0", [{ name: "p", in: "path", schema: {} }], "/a/{p}");
  await accept({ document: path, path: "/a/{p}", args: { p: "b/c d?#" }, url: "/base/a/b%2Fc%20d%3F%23" });
  await accept({ document: path, path: "/a/{p}", args: { p: "a+b" }, url: "/base/a/a+b" });
  await reject({ document: path, path: "/a/{p}", args: { p: "b/c" }, url: "/base/a/b/c" });
  await reject({ document: path, path: "/a/{p}", args: { p: "a b" }, url: "/base/a/a+b" });
});

Deno.test("the examples of Appendix C are right", async () => {
  const parameters = [
    { name: "formulas", in: "query", schema: { type: "object" }, explode: true },
    { name: "words", in: "query", schema: { type: "array" }, explode: false },
  ];
  const args = { formulas: { a: "x+y", b: "x/y", c: "x^y" }, words: ["math", "is", "fun"] };
  const document = withParameters("3.1.0", parameters);
  await accept({ document, args, url: "/base/x?a=x%2By&b=x%2Fy&c=x%5Ey&words=math,is,fun" });
  await reject({ document, args, url: "/base/x?a=x%2By&c=x%5Ey&words=math,is,fun" }, /formulas/);
  await reject({ document, args, url: "/base/x?a=x%2By&b=x%2Fy&c=x%5Ey&words=math,fun,is" }, /words/);
  const spaced = withParameters("3.1.0", [
    { ...parameters[0], allowReserved: true },
    { ...parameters[1], style: "spaceDelimited" },
  ]);
  await accept({ document: spaced, args, url: "/base/x?a=x%2By&b=x/y&c=x%5Ey&words=math%20is%20fun" });
  await accept({ document, args: { formulas: {}, words: ["hello", "world"] }, url: "/base/x?words=hello,world" });
  const heart = withParameters("3.0.4", [{ name: "❤️", in: "query", schema: { type: "string" } }]);
  await accept({ document: heart, args: { value: "love!" }, url: "/base/x?%E2%9D%A4%EF%B8%8F=love%21" });
});

Deno.test("nested deep objects may have the usual forms, and lose nothing", async () => {
  const document = withParameters("3.1.0", [{ name: "a", in: "query", style: "deepObject", schema: {} }]);
  const args = { a: { b: ["x", "y"], c: { d: 1 }, e: null } };
  await accept({ document, args, url: "/base/x?a%5Bb%5D%5B0%5D=x&a%5Bb%5D%5B1%5D=y&a%5Bc%5D%5Bd%5D=1" });
  await accept({ document, args, url: "/base/x?a%5Bb%5D=x&a%5Bb%5D=y&a%5Bc%5D%5Bd%5D=1&a%5Be%5D=" });
  await accept({ document, args, url: "/base/x?a%5Bb%5D%5B%5D=x&a%5Bb%5D%5B%5D=y&a%5Bc%5D%5Bd%5D=1" });
  await reject({ document, args, url: "/base/x?a%5Bb%5D=x&a%5Bc%5D%5Bd%5D=1" });
  await reject({ document, args, url: "/base/x?a%5Bb%5D=y&a%5Bb%5D=x&a%5Bc%5D%5Bd%5D=1" });
  await reject({ document, args, url: "/base/x?a%5Bb%5D=x&a%5Bb%5D=y&a%5Bc%5D=[object%20Object]" });
});

Deno.test("collection formats of 2.0 are right, with csv as default everywhere", async () => {
  const separators = { csv: ",", ssv: "%20", tsv: "%09", pipes: "%7C" };
  for (const [collectionFormat, separator] of Object.entries(separators)) {
    const items = { type: "string" };
    const named = { name: "f", type: "array", items, ...collectionFormat === "csv" ? {} : { collectionFormat } };
    const query = withParameters("2.0", [{ ...named, in: "query" }]);
    await accept({ document: query, args: { f: ["foo", "bar"] }, url: `/base/x?f=foo${separator}bar` });
    await reject({ document: query, args: { f: ["foo", "bar"] }, url: "/base/x?f=foo&f=bar" }, /f/);
    await reject({ document: query, args: { f: ["foo", "bar"] }, url: "/base/x?f=foo;bar" }, /f/);
    const path = withParameters("2.0", [{ ...named, in: "path" }], "/a/{f}");
    await accept({ document: path, path: "/a/{f}", args: { f: ["foo", "bar"] }, url: `/base/a/foo${separator}bar` });
    const header = withParameters("2.0", [{ ...named, name: "X-F", in: "header" }]);
    const value = `foo${decodeURIComponent(separator)}bar`;
    await accept({ document: header, args: { "X-F": ["foo", "bar"] }, url: "/base/x", headers: { "x-f": value } });
    await reject({ document: header, args: { "X-F": ["foo", "bar"] }, url: "/base/x", headers: { "x-f": "foo;bar" } });
  }
  const multi = withParameters("2.0", [{ name: "f", in: "query", type: "array", collectionFormat: "multi" }]);
  await accept({ document: multi, args: { f: ["foo", "baz"] }, url: "/base/x?f=foo&f=baz" });
  await reject({ document: multi, args: { f: ["foo", "baz"] }, url: "/base/x?f=foo,baz" });
  const items = { type: "array", collectionFormat: "pipes" };
  const nested = withParameters("2.0", [{ name: "f", in: "query", type: "array", items }]);
  await accept({ document: nested, args: { f: [[1, 2], [3]] }, url: "/base/x?f=1%7C2,3" });
});

Deno.test("headers follow the simple style and are not percent-encoded since 3.1", async () => {
  const document = (version: string, more: Json = {}) =>
    withParameters(version, [{ name: "X-Token", in: "header", schema: {}, ...more }]);
  const send = (version: string, value: unknown, header: string, more: Json = {}) => ({
    document: document(version, more),
    args: { "X-Token": value },
    url: "/base/x",
    headers: { "x-token": header },
  });
  await accept(send("3.2.0", [12345678, 90099], "12345678,90099"));
  await accept(send("3.1.0", { R: 100, G: 200 }, "R,100,G,200"));
  await accept(send("3.1.0", { R: 100, G: 200 }, "R=100,G=200", { explode: true }));
  await reject(send("3.1.0", { R: 100, G: 200 }, "R=100,G=200"), /X-Token/);
  await reject(send("3.1.0", [1, 2], "1;2"), /X-Token/);
  await accept(send("3.1.0", "a b/c", "a b/c"));
  await reject(send("3.1.0", "a b/c", "a%20b%2Fc"), /X-Token/);
  await accept(send("3.0.4", "a b/c", "a%20b%2Fc"));
  await accept(send("3.1.0", { a: 1 }, '{"a":1}', { schema: undefined, content: { "application/json": {} } }));
  await reject({ ...send("3.1.0", "a", "a"), headers: {} }, /X-Token/);
  await reject({ ...send("3.1.0", "a", "a"), headers: { "x-token": "a", "x-other": "1" } }, /x-other/);
  await accept({ ...send("3.1.0", null, ""), headers: { accept: "*/*" } });
});

Deno.test("cookies follow their styles", async () => {
  const send = (version: string, value: unknown, cookie: string, more: Json = {}) => ({
    document: withParameters(version, [{ name: "color", in: "cookie", schema: {}, ...more }]),
    args: { color: value },
    url: "/base/x",
    headers: { cookie },
  });
  const style = { style: "cookie" };
  await accept(send("3.2.0", COLORS.array, "color=blue; color=black; color=brown", style));
  await accept(send("3.2.0", COLORS.object, "R=100; G=200; B=150", style));
  await accept(send("3.2.0", COLORS.array, "color=blue,black,brown", { ...style, explode: false }));
  await accept(send("3.2.0", COLORS.object, "color=R,100,G,200,B,150", { ...style, explode: false }));
  await accept(send("3.2.0", { greeting: "Hello%2C world!", code: 42 }, "greeting=Hello%2C world!; code=42", style));
  await reject(send("3.2.0", "Hello%2C", "color=Hello%252C", style), /color/);
  await reject(send("3.2.0", COLORS.array, "color=blue;color=black;color=brown", style), /space/);
  await accept(send("3.2.0", "Hello, world!", "color=Hello%2C%20world%21"));
  await reject(send("3.2.0", "Hello, world!", "color=Hello, world!"), /color/);
  await accept(send("3.1.0", COLORS.array, "color=blue&color=black&color=brown"));
  await accept(send("3.1.0", COLORS.array, "color=blue; color=black; color=brown"));
  await reject(send("3.1.0", COLORS.array, "color=blue,black,brown"), /color/);
  await accept(send("3.1.0", COLORS.array, "color=blue,black,brown", { explode: false }));
  await reject(send("3.1.0", "a", "color=a; other=b"), /other/);
  await reject({ ...send("3.1.0", "a", ""), headers: {} }, /color/);
});

Deno.test("parameters with content are written in their media type", async () => {
  const document = withParameters("3.1.0", [{ name: "coordinates", in: "query", content: { "application/json": {} } }]);
  const args = { coordinates: { lat: 10, long: 60 } };
  await accept({ document, args, url: "/base/x?coordinates=%7B%22lat%22%3A10%2C%22long%22%3A60%7D" });
  await reject({ document, args, url: "/base/x?lat=10&long=60" }, /coordinates/);
  await reject({ document, args: { coordinates: "a" }, url: "/base/x?coordinates=a" }, /coordinates/);
  const plain = withParameters("3.1.0", [{ name: "p", in: "path", content: { "text/plain": {} } }], "/a/{p}");
  await accept({ document: plain, path: "/a/{p}", args: { p: "x/y" }, url: "/base/a/x%2Fy" });
});

Deno.test("a querystring parameter is the whole query", async () => {
  const document = (type: string) =>
    withParameters("3.2.0", [{ name: "q", in: "querystring", content: { [type]: {} } }]);
  const form = document("application/x-www-form-urlencoded");
  await accept({ document: form, args: { q: { foo: "a + b", bar: true } }, url: "/base/x?foo=a+%2B+b&bar=true" });
  await reject({ document: form, args: { q: { foo: "a + b", bar: true } }, url: "/base/x?foo=a+%2B+b" }, /bar/);
  const json = document("application/json");
  const args = { q: { numbers: [1, 2], flag: null } };
  await accept({ document: json, args, url: "/base/x?%7B%22numbers%22%3A%5B1%2C2%5D%2C%22flag%22%3Anull%7D" });
  await reject({ document: json, args, url: "/base/x?q=%7B%22numbers%22%3A%5B1%2C2%5D%2C%22flag%22%3Anull%7D" });
  const path = { document: document("application/jsonpath"), args: { q: "$.a.b[1:1]" } };
  await accept({ ...path, url: "/base/x?%24.a.b%5B1%3A1%5D" });
});

function multipart(parts: readonly (readonly [string, string | Uint8Array])[]): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  const add = (text: string) => bytes.push(...new TextEncoder().encode(text));
  for (const [head, body] of parts) {
    add(`--B\r\n${head}\r\n\r\n`);
    if (typeof body === "string") add(body);
    else bytes.push(...body);
    add("\r\n");
  }
  add("--B--\r\n");
  return new Uint8Array(bytes);
}

const FORM = { "content-type": "multipart/form-data; boundary=B" };
const named = (name: string, rest = "") => `Content-Disposition: form-data; name="${name}"${rest}`;
const FILE = new Uint8Array([1, 2, 3, 13, 10, 255]);
const FILE_TEXT = btoa(String.fromCharCode(...FILE));

Deno.test("the basic multipart form of 3.0, 3.1 and 3.2 is right", async () => {
  for (const version of ["3.0.4", "3.1.2", "3.2.0"]) {
    const image = version === "3.0.4" ? { type: "string", format: "binary" } : {};
    const properties = {
      id: { type: "string", format: "uuid" },
      profileImage: image,
      addresses: { type: "array", items: { $ref: "#/components/schemas/Address" } },
    };
    const components = { schemas: { Address: { type: "object" } } };
    const form = { "multipart/form-data": { schema: { type: "object", properties } } };
    const document = withBody(version, form, { components });
    const args = { body: { id: "1", profileImage: FILE_TEXT, addresses: [{ a: 1 }, { a: 2 }] } };
    const id = [named("id"), "1"] as const;
    const head = named("profileImage", '; filename="a"');
    const file = [`${head}\r\nContent-Type: application/octet-stream`, FILE] as const;
    const json = (value: number) =>
      [`${named("addresses")}\r\nContent-Type: application/json`, `{"a":${value}}`] as const;
    const sent = { document, method: "POST", args, url: "/base/x", headers: FORM };
    await accept({ ...sent, body: multipart([id, file, json(1), json(2)]) });
    await accept({ ...sent, body: multipart([json(1), json(2), file, id]) });
    await reject({ ...sent, body: multipart([file, json(1), json(2)]) }, /id/);
    await reject({ ...sent, body: multipart([id, file, json(1)]) }, /addresses/);
    await reject({ ...sent, body: multipart([id, file, json(2), json(1)]) }, /addresses/);
    await reject({ ...sent, body: multipart([id, file, json(1), json(2), [named("more"), "1"]]) }, /more/);
    await reject({ ...sent, body: multipart([id, [file[0], FILE_TEXT], json(1), json(2)]) }, /base64/);
    const nameless = [`${named("profileImage")}\r\nContent-Type: application/octet-stream`, FILE] as const;
    await reject({ ...sent, body: multipart([id, nameless, json(1), json(2)]) }, /file name/);
    const wrong = [`${head}\r\nContent-Type: text/plain`, FILE] as const;
    await reject({ ...sent, body: multipart([id, wrong, json(1), json(2)]) }, /octet-stream/);
    const plain = [named("addresses"), '{"a":1}'] as const;
    await reject({ ...sent, body: multipart([id, file, plain, json(2)]) }, /application\/json/);
    await reject({ ...sent, body: '{"id":"1"}', headers: { "content-type": "application/json" } }, /multipart/);
    await reject({ ...sent, body: multipart([id, file, json(1), json(2)]).slice(0, -10) }, /boundary/);
  }
});

Deno.test("encoding objects name the types of parts", async () => {
  const document = withBody("3.1.0", {
    "multipart/form-data": {
      schema: { type: "object", properties: { addresses: { type: "array" }, profileImage: {} } },
      encoding: {
        addresses: { contentType: "application/xml; charset=utf-8" },
        profileImage: { contentType: "image/png, image/jpeg", headers: { "X-Rate-Limit-Limit": {} } },
      },
    },
  });
  const url = `data:image/png;name=p%C3%BC.png;base64,${FILE_TEXT}`;
  const sent = { document, method: "POST", args: { body: { profileImage: url } }, url: "/base/x", headers: FORM };
  const head = named("profileImage", '; filename="pü.png"');
  await accept({ ...sent, body: multipart([[`${head}\r\nContent-Type: image/png`, FILE]]) });
  await accept({ ...sent, body: multipart([[`${head}\r\nContent-Type: image/png\r\nX-Rate-Limit-Limit: 1`, FILE]]) });
  await reject({ ...sent, body: multipart([[`${head}\r\nContent-Type: image/gif`, FILE]]) }, /image\/png/);
  await reject({ ...sent, body: multipart([[`${head}\r\nContent-Type: image/png\r\nX-Else: 1`, FILE]]) }, /x-else/);
  const other = named("profileImage", '; filename="blob"');
  await reject({ ...sent, body: multipart([[`${other}\r\nContent-Type: image/png`, FILE]]) }, /pü.png/);
  const xml = [`${named("addresses")}\r\nContent-Type: application/xml; charset=utf-8`, "<a/>"] as const;
  await accept({ ...sent, args: { body: { addresses: ["<a/>"] } }, body: multipart([xml]) });
});

Deno.test("files are found behind references, compositions and lists", async () => {
  const file = { type: "string", format: "binary" };
  const schemas = {
    File: file,
    Base: { type: "object", properties: { f: { $ref: "#/components/schemas/File" } } },
  };
  const forms: readonly Json[] = [
    { $ref: "#/components/schemas/Base" },
    { allOf: [{ $ref: "#/components/schemas/Base" }, { properties: { g: { type: "string" } } }] },
    { properties: { f: { anyOf: [file, { type: "null" }] } } },
    { properties: { f: { allOf: [{ $ref: "#/components/schemas/File" }], nullable: true } } },
    { properties: { f: { type: "array", items: file } } },
  ];
  for (const schema of forms) {
    const document = withBody("3.0.4", { "multipart/form-data": { schema } }, { components: { schemas } });
    const head = `${named("f", '; filename="a"')}\r\nContent-Type: application/octet-stream`;
    const f = schema === forms.at(-1) ? [FILE_TEXT] : FILE_TEXT;
    const sent = { document, method: "POST", args: { body: { f } }, url: "/base/x", headers: FORM };
    await accept({ ...sent, body: multipart([[head, FILE]]) });
    await reject({ ...sent, body: multipart([[named("f"), FILE_TEXT]]) }, /\bf\b/);
  }
  const many = withBody("3.1.0", {
    "multipart/form-data": { schema: { properties: { file: { type: "array", items: {} } } } },
  });
  const head = `${named("file", '; filename="a"')}\r\nContent-Type: application/octet-stream`;
  const args = { body: { file: [FILE_TEXT, FILE_TEXT] } };
  const sent = { document: many, method: "POST", args, url: "/base/x", headers: FORM };
  await accept({ ...sent, body: multipart([[head, FILE], [head, FILE]]) });
  await reject({ ...sent, body: multipart([[head, FILE]]) });
});

Deno.test("encoded bytes stay base64", async () => {
  const old = { type: "string", format: "byte" };
  const encoded = { type: "string", contentEncoding: "base64" };
  for (const [version, icon] of [["3.0.4", old], ["3.1.0", encoded]] as const) {
    const schema = { type: "object", properties: { icon } };
    const body = { icon: "+/8=" };
    const form = withBody(version, { "application/x-www-form-urlencoded": { schema } });
    const sent = { method: "POST", args: { body }, url: "/base/x" };
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    await accept({ ...sent, document: form, headers, body: "icon=%2B%2F8%3D" });
    await reject({ ...sent, document: form, headers, body: "icon=+%2F8%3D" }, /icon/);
    const parts = withBody(version, { "multipart/form-data": { schema } });
    const head = `${named("icon")}\r\nContent-Type: application/octet-stream`;
    await accept({ ...sent, document: parts, headers: FORM, body: multipart([[head, "+/8="]]) });
    await reject(
      { ...sent, document: parts, headers: FORM, body: multipart([[head, new Uint8Array([251, 255])]]) },
      /icon/,
    );
    const json = withBody(version, { "application/json": { schema } });
    await accept({ ...sent, document: json, headers: { "content-type": "application/json" }, body: '{"icon":"+/8="}' });
  }
});

Deno.test("form-encoded bodies follow the Encoding Object", async () => {
  const address = { streetAddress: "123 Example Dr.", city: "Somewhere", state: "CA", zip: "99999+1234" };
  const written =
    "%7B%22streetAddress%22%3A%22123+Example+Dr.%22%2C%22city%22%3A%22Somewhere%22%2C%22state%22%3A%22CA" +
    "%22%2C%22zip%22%3A%2299999%2B1234%22%7D";
  const schema = { type: "object", properties: { id: { type: "string" }, address: { type: "object" } } };
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const send = (version: string, body: string, value: unknown, encoding: Json = {}) => ({
    document: withBody(version, { "application/x-www-form-urlencoded": { schema, encoding } }),
    method: "POST",
    args: { body: value },
    url: "/base/x",
    headers,
    body,
  });
  await accept(send("3.1.0", `id=f81d&address=${written}`, { id: "f81d", address }));
  await accept(send("3.0.4", `id=f81d&address=${written}`, { id: "f81d", address }));
  await reject(send("3.1.0", `id=%22f81d%22&address=${written}`, { id: "f81d", address }), /id/);
  await accept(send("3.1.0", "id=%22f81d%22", { id: "f81d" }, { id: { contentType: "application/json" } }));
  // Without any field, 3.0.3 has the style as default. 3.1 has not.
  await accept(send("3.0.3", "a=1&b=2", { address: { a: 1, b: 2 } }));
  await reject(send("3.1.0", "a=1&b=2", { address: { a: 1, b: 2 } }), /address/);
  await accept(send("3.1.0", "a=1&b=2", { address: { a: 1, b: 2 } }, { address: { explode: true } }));
  await accept(send("3.1.0", "address%5Ba%5D=1", { address: { a: 1 } }, { address: { style: "deepObject" } }));
  await accept(send("3.1.0", "id=1,2", { id: [1, 2] }, { id: { explode: false, contentType: "application/json" } }));
  await accept(send("3.2.0", "id=1&id=2", { id: [1, 2] }));
  await reject(send("3.2.0", "id=1%2C2", { id: [1, 2] }), /id/);
});

Deno.test("styles apply to multipart/form-data since 3.1", async () => {
  const media = { schema: { type: "object" }, encoding: { a: { explode: false } } };
  const sent = { method: "POST", args: { body: { a: ["x y", 2] } }, url: "/base/x", headers: FORM };
  const joined = multipart([[named("a"), "x y,2"]]);
  const repeated = multipart([[named("a"), "x y"], [named("a"), "2"]]);
  const newer = withBody("3.1.0", { "multipart/form-data": media });
  await accept({ ...sent, document: newer, body: joined });
  await reject({ ...sent, document: newer, body: repeated });
  const older = withBody("3.0.4", { "multipart/form-data": media });
  await accept({ ...sent, document: older, body: repeated });
  await reject({ ...sent, document: older, body: joined });
});

Deno.test("the forms of 2.0 are right", async () => {
  const document = (consumes: readonly string[], fields: readonly Json[]): Json => ({
    swagger: "2.0",
    consumes: ["application/json"],
    paths: { "/x": { post: { consumes, parameters: fields.map((field) => ({ in: "formData", ...field })) } } },
  });
  const fields = [{ name: "a", type: "array", items: { type: "string" } }, { name: "avatar", type: "file" }];
  const sent = { method: "POST", url: "/base/x" };
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const both = ["application/x-www-form-urlencoded", "multipart/form-data"];
  const list = { ...sent, document: document(both.slice(0, 1), fields.slice(0, 1)), headers };
  await accept({ ...list, args: { body: { a: ["b", "c"] } }, body: "a=b,c" });
  await reject({ ...list, args: { body: { a: ["b", "c"] } }, body: "a=b&a=c" }, /a/);
  const uploading = document(both, fields.slice(0, 1));
  await reject({ ...list, document: uploading, args: { body: { a: ["b"] } }, body: "a=b" }, /multipart/);
  const args = { body: { a: ["b", "c"], avatar: FILE_TEXT } };
  const file = [`${named("avatar", '; filename="x.png"')}\r\nContent-Type: image/png`, FILE] as const;
  const upload = { ...sent, document: document(["multipart/form-data"], fields), args, headers: FORM };
  await accept({ ...upload, body: multipart([[named("a"), "b,c"], file]) });
  await reject({ ...upload, body: multipart([[named("a"), "b"], [named("a"), "c"], file]) }, /a/);
  await reject({ ...upload, body: multipart([[named("a"), "b,c"], [named("avatar"), FILE_TEXT]]) }, /avatar/);
  const multi = [{ ...fields[0], collectionFormat: "multi" }];
  const repeated = { document: document(["multipart/form-data"], multi), args: { body: { a: ["b", "c"] } } };
  await accept({ ...sent, ...repeated, headers: FORM, body: multipart([[named("a"), "b"], [named("a"), "c"]]) });
});

Deno.test("whole bodies are JSON, bytes or text", async () => {
  const sent = { method: "POST", url: "/base/x" };
  const headers = { "content-type": "application/json" };
  const document = withBody("3.1.0", { "text/plain": {}, "application/json": {}, "multipart/form-data": {} });
  const json = { ...sent, document, args: { body: { a: null } }, headers };
  await accept({ ...json, body: '{ "a": null }' });
  await reject({ ...json, body: "{}" }, /JSON/);
  const plain = { args: { body: "a" }, headers: { "content-type": "text/plain" }, body: "a" };
  await reject({ ...json, ...plain }, /application\/json/);
  await reject({ ...json, args: {}, headers: {}, body: "{}" }, /body/);
  await reject({ ...json, args: {} }, /content type/);
  const bytes = [
    withBody("3.0.4", { "image/png": { schema: { type: "string", format: "binary" } } }),
    withBody("3.1.0", { "image/png": {} }),
    withBody("3.2.0", { "image/*": { schema: { contentMediaType: "image/png" } } }),
  ];
  for (const document of bytes) {
    const image = { ...sent, document, args: { body: FILE_TEXT }, headers: { "content-type": "image/png" } };
    await accept({ ...image, body: FILE });
    await reject({ ...image, body: FILE_TEXT }, /decoded/);
  }
  const xml = { document: withBody("3.1.0", { "application/xml": { schema: { type: "object" } } }), body: "<a/>" };
  await accept({ ...sent, ...xml, args: { body: "<a/>" }, headers: { "content-type": "application/xml" } });
});

Deno.test("parts of other multipart types are matched by position", async () => {
  const document = withBody("3.2.0", {
    "multipart/mixed": {
      schema: { type: "array", prefixItems: [{ type: "object" }, {}] },
      prefixEncoding: [{}, { contentType: "image/*" }],
    },
  });
  const sent = { document, method: "POST", args: { body: [{ a: 1 }, FILE_TEXT] }, url: "/base/x" };
  const headers = { "content-type": "multipart/mixed; boundary=B" };
  const parts = [["Content-Type: application/json", '{"a":1}'], ["Content-Type: image/png", FILE]] as const;
  await accept({ ...sent, headers, body: multipart(parts) });
  await reject({ ...sent, headers, body: multipart([parts[1], parts[0]]) });
});

Deno.test("operations are listed with overrides, references and lost parts", () => {
  const document = {
    openapi: "3.2.0",
    security: [{ key: [] }],
    components: {
      securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } },
      parameters: { "a/b": { name: "ids[]", in: "query" }, "c d": { name: "x-key", in: "header" } },
      pathItems: { P: { get: {}, parameters: [{ name: "q", in: "query" }] } },
    },
    paths: {
      "/a/{id}/{b}": {
        parameters: [
          { name: "id", in: "path", required: true },
          { name: "q", in: "query" },
          { name: "id", in: "query" },
        ],
        get: {
          parameters: [
            { name: "q", in: "query", required: true },
            { $ref: "#/components/parameters/a~1b" },
            { $ref: "#/components/parameters/c%20d" },
            { name: "Accept", in: "header" },
          ],
          requestBody: { content: { "application/json": {} } },
        },
        query: { parameters: [{ $ref: "#/components/parameters/none" }, { name: "a", in: "Query" }] },
        additionalOperations: { COPY: { security: [{ other: [] }], parameters: {} } },
      },
      "/p": { $ref: "#/components/pathItems/P" },
      "/lost": { $ref: "other.json#/P" },
      "x-note": {},
    },
  };
  const listed = listExpected(document);
  assert.deepEqual(listed.map((one) => `${one.method} ${one.path}`), [
    "GET /a/{id}/{b}",
    "QUERY /a/{id}/{b}",
    "COPY /a/{id}/{b}",
    "GET /p",
    "* /lost",
  ]);
  assert.deepEqual(listed[0]?.parameters.map((one) => [one.argument, one.place, one.isRequired]), [
    ["id_path", "path", true],
    ["q", "query", true],
    ["id_query", "query", false],
    ["ids", "query", false],
    ["b", "path", true],
  ]);
  assert.equal(listed[0]?.body, undefined);
  assert.deepEqual(listed[0]?.missing, []);
  assert.deepEqual(listed.map((one) => one.missing.length), [0, 2, 2, 0, 1]);
});

Deno.test("bodies are listed with media types and members", () => {
  const document = withBody("3.0.0", {
    "application/json": { schema: { allOf: [{ $ref: "#/components/schemas/A" }, { properties: { b: {} } }] } },
  }, { components: { schemas: { A: { properties: { a: {}, id: { readOnly: true } } } } } });
  const body = { isRequired: false, mediaTypes: ["application/json"], members: ["a", "b"] };
  assert.deepEqual(listExpected(document)[0]?.body, body);
  const older = {
    swagger: "2.0",
    consumes: ["multipart/form-data"],
    paths: { "/x": { put: { parameters: [{ name: "f", in: "formData", type: "file", required: true }] } } },
  };
  const form = { isRequired: true, mediaTypes: ["multipart/form-data"], members: ["f"] };
  assert.deepEqual(listExpected(older)[0]?.body, form);
  const wrong = withBody("3.1.0", {}, {});
  assert.deepEqual(listExpected({ ...wrong, openapi: "3.1.0" })[0]?.missing, []);
  const wrongPlaces = ["body", "formData", "querystring"].map((place) => ({ name: place, in: place }));
  const places = withParameters("3.0.0", wrongPlaces);
  assert.equal(listExpected(places)[0]?.missing.length, 3);
});

Deno.test("multipart bodies of the platform are read", async () => {
  const form = new FormData();
  form.append('na"me', "line\nbreak");
  form.append("empty", "");
  form.append("f", new Blob([FILE], { type: "image/png" }), 'ü "x".png');
  form.append("j", new Blob(['{"a":1}'], { type: "application/json" }));
  const request = new Request("http://localhost/base/x", { method: "POST", body: form });
  const headers = { "content-type": request.headers.get("content-type") ?? "" };
  const body = new Uint8Array(await request.arrayBuffer());
  const schema = {
    type: "object",
    properties: {
      'na"me': { type: "string" },
      empty: { type: "string" },
      f: { contentMediaType: "image/png" },
      j: { type: "object" },
    },
  };
  const document = withBody("3.1.0", { "multipart/form-data": { schema } });
  const f = `data:image/png;name=${encodeURIComponent('ü "x".png')};base64,${FILE_TEXT}`;
  const value = { 'na"me': "line\nbreak", empty: "", f, j: { a: 1 } };
  const sent = { document, method: "POST", url: "/base/x", headers, body };
  await accept({ ...sent, args: { body: value } });
  await reject({ ...sent, args: { body: { ...value, empty: undefined } } }, /empty/);
  await reject({ ...sent, args: { body: { ...value, j: { a: 2 } } } }, /JSON/);
});

Deno.test("a path item with a reference may be read in two ways", async () => {
  const shared = { get: { parameters: [{ name: "a", in: "query" }] } };
  const document = {
    openapi: "3.1.0",
    components: { pathItems: { P: shared } },
    paths: { "/x": { $ref: "#/components/pathItems/P", get: { parameters: [{ name: "b", in: "query" }] } } },
  };
  await accept({ document, args: { a: 1 }, url: "/base/x?a=1" });
  await accept({ document, args: { b: 1 }, url: "/base/x?b=1" });
  await reject({ document, args: { b: 1 }, url: "/base/x?a=1" });
});

Deno.test("credentials, connection headers and unknown arguments are no parameters", async () => {
  const document = {
    swagger: "2.0",
    securityDefinitions: { k: { type: "apiKey", in: "query", name: "key" }, b: { type: "basic" } },
    security: [{ k: [] }, { b: [] }],
    paths: {
      "/x": {
        get: {
          parameters: [
            { name: "key", in: "query", type: "string" },
            { name: "Host", in: "header", type: "string" },
            { name: "n", in: "query", type: "number" },
          ],
        },
      },
    },
  };
  assert.deepEqual(listExpected(document)[0]?.parameters.map((one) => one.name), ["n"]);
  await accept({ document, args: { n: 1e21 }, url: "/base/x?n=1e%2B21" });
  await accept({ document, args: {}, url: "/base/x", headers: { accept: "application/json", "user-agent": "a" } });
  await reject({ document, args: { key: "a" }, url: "/base/x" }, /key/);
  await reject({ document, args: {}, url: "/base/x", headers: { authorization: "a" } }, /authorization/);
  await reject({ document, args: {}, url: "/base/x/" }, /path/);
  await reject({ document, args: {}, url: "/x" }, /path/);
  await reject({ document, args: { n: 1 }, url: "/base/x?n=1&n=1" }, /n=1/);
});
