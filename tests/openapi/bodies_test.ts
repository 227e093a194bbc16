// Tests of the bodies that operations send.
import { assert, assertEquals } from "@std/assert";
import { sentence } from "../support/messages.ts";
import { post, type Received, ref, toDocument, withEcho } from "./echo.ts";

const toBody = (type: string, schema?: object, more: object = {}) => post(schema, type, more);
const toBytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const toForm = ({ body, headers }: Received) =>
  new Response(toBytes(body), { headers: { "content-type": headers["content-type"] } }).formData();

Deno.test("JSON bodies are one argument, and keep their media type", async () => {
  const pet = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  const document = toDocument({
    json: toBody("application/json", pet),
    patch: { ...toBody("application/json-patch+json", { type: "array" }), method: "patch" },
    any: toBody("*/*", pet),
    text: toBody("application/json", { type: "string" }),
    structured: toBody("application/vnd.pets.v2", pet),
    parameter: toBody("application/vnd.pets+json; version=2", pet),
    preferred: {
      method: "post",
      requestBody: {
        content: { "application/xml": { schema: pet }, "text/json": {}, "application/json": { schema: pet } },
      },
    },
    deletion: { ...toBody("application/json", pet), method: "delete" },
  });
  await withEcho(document, {}, async ({ send, call }) => {
    const sent = async (name: string, body: unknown) => {
      const { headers, body: text } = await send(name, { body });
      return [headers["content-type"], text];
    };
    const json = '{"name":"Ada"}';
    assertEquals(await sent("json", { name: "Ada" }), ["application/json", json]);
    assertEquals(await sent("patch", [{ op: "remove" }]), ["application/json-patch+json", '[{"op":"remove"}]']);
    assertEquals(await sent("any", { name: "Ada" }), ["application/json", json]);
    assertEquals(await sent("text", 'a"b'), ["application/json", '"a\\"b"']);
    assertEquals(await sent("structured", { name: "Ada" }), ["application/vnd.pets.v2", json]);
    assertEquals(await sent("parameter", { name: "Ada" }), ["application/vnd.pets+json; version=2", json]);
    assertEquals(await sent("preferred", { name: "Ada" }), ["application/json", json]);
    assertEquals(await sent("deletion", { name: "Ada" }), ["application/json", json]);
    assert((await call("json", { body: {} })).isError);
    // The body is optional.
    const { headers, body } = await send("json");
    assertEquals([headers["content-type"], body], [undefined, ""]);
  });
});

Deno.test("forms are encoded, with the encodings of their fields", async () => {
  const type = "application/x-www-form-urlencoded";
  const document = toDocument({
    form: toBody(type, { type: "object", properties: { a: { type: "string" } } }, {
      encoding: {
        joined: { style: "form", explode: false },
        deep: { style: "deepObject", explode: true },
      },
    }),
  });
  await withEcho(document, {}, async ({ send }) => {
    const body = { a: "1 & 2=3", list: ["x", "y"], joined: ["x", "y"], json: { k: [1] }, deep: { k: "v" }, none: null };
    const { headers, body: text } = await send("form", { body });
    assertEquals(headers["content-type"], type);
    assertEquals([...new URLSearchParams(text)], [
      ["a", "1 & 2=3"],
      ["list", "x"],
      ["list", "y"],
      ["joined", "x,y"],
      ["json", '{"k":[1]}'],
      ["deep[k]", "v"],
    ]);
  });
});

Deno.test("multipart forms have texts, JSON and files, which are base64 or data URLs", async () => {
  const file = { type: "string", format: "binary", description: "A picture." };
  const schema = {
    type: "object",
    properties: {
      title: { type: "string" },
      picture: file,
      pages: { type: "array", items: file },
      about: { type: "object" },
    },
    required: ["picture"],
  };
  const upload = toBody("multipart/form-data", schema, {
    encoding: { picture: { contentType: "image/png" }, title: { contentType: "text/markdown" } },
  });
  for (const openapi of ["3.0.3", "3.1.0"]) {
    await withEcho(toDocument({ upload }, { openapi }), {}, async ({ send, call, client }) => {
      const body = {
        title: 'a"b\r\nx: y',
        picture: "iVBORw0KGgo=",
        pages: ["data:text/plain;name=one.txt;base64,b25l", "data:text/plain;name=two.txt,two"],
        about: { a: 1 },
      };
      const request = await send("upload", { body });
      const form = await toForm(request);
      const read = async (each: FormDataEntryValue | null) =>
        each instanceof File ? [each.name, each.type.split(";")[0], await each.text()] : each;
      assertEquals(form.get("title"), body.title);
      assertEquals(form.get("about"), '{"a":1}');
      assertEquals((await read(form.get("picture")))?.slice(0, 2), ["picture", "image/png"]);
      const picture = form.get("picture");
      assert(picture instanceof File);
      assertEquals(new Uint8Array(await picture.arrayBuffer()), toBytes("\x89PNG\r\n\x1a\n"));
      assertEquals(await Promise.all(form.getAll("pages").map(read)), [
        ["one.txt", "text/plain", "one"],
        ["two.txt", "text/plain", "two"],
      ]);
      assertEquals((await call("upload", { body: { picture: "not base64!" } })).text, sentence("picture"));
      assert((await call("upload", { body: {} })).isError);
      const [{ inputSchema }] = await client.listTools();
      assert(JSON.stringify(inputSchema).includes("data:image/png;name=a.png"));
    });
  }
});

Deno.test("names of files and fields cannot add headers to a part", async () => {
  const upload = toBody("multipart/form-data", {
    type: "object",
    properties: { f: { type: "string", format: "binary" } },
  });
  await withEcho(toDocument({ upload }), {}, async ({ send }) => {
    const name = encodeURIComponent('a"\r\nx-evil: 1\r\n\r\n.txt');
    const request = await send("upload", {
      body: { f: `data:text/plain;name=${name};base64,aQ==`, 'x"\r\ny: z': "1" },
    });
    assert(!/^(x-evil|y):/m.test(request.body), request.body);
    assertEquals([...(await toForm(request)).keys()].length, 2);
  });
});

Deno.test("other bodies are bytes, or text such as XML", async () => {
  const document = toDocument({
    bytes: toBody("application/octet-stream", { type: "string", format: "binary" }),
    png: toBody("image/png", {}),
    sheet: toBody("application/vnd.ms-excel", { type: "string", format: "binary" }),
    image: toBody("image/*", { type: "string", format: "binary" }),
    text: toBody("text/plain", { type: "string" }),
    xml: toBody("application/xml", { type: "object", xml: { name: "pet" }, properties: { a: {} } }),
    yaml: toBody("application/yaml", { type: "object" }),
  }, { openapi: "3.0.0" });
  await withEcho(document, {}, async ({ send, call }) => {
    const sent = async (name: string, body: unknown) => {
      const { headers, body: text } = await send(name, { body });
      return [headers["content-type"], text];
    };
    assertEquals(await sent("bytes", "AP+A"), ["application/octet-stream", "\0\xff\x80"]);
    assertEquals(await sent("png", "AP+A"), ["image/png", "\0\xff\x80"]);
    assertEquals(await sent("sheet", "AP+A"), ["application/vnd.ms-excel", "\0\xff\x80"]);
    assertEquals(await sent("image", "data:image/gif;base64,AP+A"), ["image/gif", "\0\xff\x80"]);
    assertEquals(await sent("text", "a\nb"), ["text/plain", "a\nb"]);
    assertEquals(await sent("xml", "<pet><a>1</a></pet>"), ["application/xml", "<pet><a>1</a></pet>"]);
    assertEquals(await sent("yaml", "a: 1"), ["application/yaml", "a: 1"]);
    assertEquals((await call("bytes", { body: "%%%" })).text, sentence("body"));
  });
});

Deno.test("with flatten, the fields of a body are arguments, unless names clash", async () => {
  const pet = {
    type: "object",
    properties: { name: { type: "string" }, id: { type: "string", readOnly: true } },
    required: ["name"],
  };
  const components = { schemas: { Pet: pet } };
  const requestBody = (schema: object) => ({ required: true, content: { "application/json": { schema } } });
  const query = (name: string) => [{ name, in: "query", schema: { type: "string" } }];
  const document = toDocument({
    flat: { method: "post", requestBody: requestBody(ref("Pet")), parameters: query("q") },
    clash: { method: "post", requestBody: requestBody(pet), parameters: query("name") },
    open: { method: "post", requestBody: requestBody({ ...pet, additionalProperties: true }) },
    odd: { method: "post", requestBody: requestBody({ type: "object", properties: { "a b": {} } }) },
  }, { components });
  await withEcho(document, { flatten: true }, async ({ send, client }) => {
    const tools = await client.listTools();
    const shown = Object.fromEntries(
      tools.map(({ name, inputSchema }) => [name, [Object.keys(inputSchema.properties ?? {}), inputSchema.required]]),
    );
    assertEquals(shown, {
      flat: [["q", "name"], ["name"]],
      clash: [["name", "body"], ["body"]],
      open: [["body"], ["body"]],
      odd: [["body"], ["body"]],
    });
    const { target, body } = await send("flat", { name: "Ada", q: "x" });
    assertEquals([target, body], ["/flat?q=x", '{"name":"Ada"}']);
  });
});

Deno.test("the form fields of version 2.0 keep their enums, items and limits", async () => {
  const fields = [
    { name: "kind", in: "formData", type: "string", enum: ["a", "b"], required: true },
    { name: "ids", in: "formData", type: "array", maxItems: 2, items: { type: "integer", minimum: 1 } },
    { name: "note", in: "formData", type: "string", maxLength: 3, "x-nullable": true, description: "A note" },
    { name: "file", in: "formData", type: "file" },
  ];
  const document = {
    swagger: "2.0",
    info: { title: "Old", version: "1" },
    consumes: ["multipart/form-data"],
    parameters: { Kind: fields[0] },
    paths: {
      "/a": { post: { operationId: "a", parameters: fields } },
      "/b": {
        // The parameters of the path follow its operations, and refer to a shared parameter.
        post: { operationId: "b" },
        parameters: [{ $ref: "#/parameters/Kind" }, ...fields.slice(1)],
      },
    },
  };
  await withEcho(document, {}, async ({ send, call }) => {
    for (const name of ["a", "b"]) {
      const request = await send(name, { body: { kind: "a", ids: [1, 2], note: "abc", file: "aGk=" } });
      const form = await toForm(request);
      assertEquals([form.get("kind"), form.getAll("ids"), form.get("note")], ["a", ["1,2"], "abc"]);
      const file = form.get("file");
      assertEquals(file instanceof File && await file.text(), "hi");
      await send(name, { body: { kind: "b", note: null } });
      for (
        const body of [{ kind: "c" }, { kind: "a", ids: [0] }, { kind: "a", ids: [1, 2, 3] }, {
          kind: "a",
          note: "abcd",
        }, {}]
      ) {
        assert((await call(name, { body })).isError, JSON.stringify(body));
      }
    }
  });
});

Deno.test("hostile: a media type that no header can contain is not sent", async () => {
  const file = { type: "string", format: "binary" };
  const document = toDocument({
    any: toBody("image/*", file),
    form: toBody("multipart/form-data", { properties: { file } }),
    odd: { method: "post", requestBody: { content: { "text/é€": { schema: { type: "string" } }, "text/x": {} } } },
    line: toBody("text/plain;a=\r\nx: y", { type: "string" }),
  });
  await withEcho(document, {}, async ({ api, call, send }) => {
    for (const type of ["image/€", "a\r\nx-other: y", "a/b\r\nx-other: y", "\0/a", "image/png x", "é/x"]) {
      for (const args of [{ body: `data:${type};base64,AAAA` }, { body: { file: `data:${type};base64,AAAA` } }]) {
        const name = typeof args.body === "string" ? "any" : "form";
        assertEquals((await call(name, args)).text, sentence("media type"), `${name} ${type}`);
      }
    }
    assertEquals(
      (await send("any", { body: "data:image/svg+xml;base64,AAAA" })).headers["content-type"],
      "image/svg+xml",
    );
    assertEquals((await send("odd", { body: "x" })).headers["content-type"], "text/x");
    assertEquals(api.operations.flatMap(({ reason }) => reason ?? []), [sentence("body")]);
  });
});

Deno.test("every way to describe a file makes a file", async () => {
  const plain = { type: "string", contentMediaType: "image/png" };
  const files: Readonly<Record<string, unknown>> = {
    plain,
    nullable: { anyOf: [plain, { type: "null" }] },
    types: { type: ["string", "null"], contentMediaType: "application/pdf" },
    choice: { oneOf: [{ type: "null" }, ref("Upload")] },
    inherited: { allOf: [ref("Upload"), { description: "The logo" }] },
    deep: { allOf: [{ allOf: [ref("Alias")] }] },
    untyped: { contentMediaType: "application/octet-stream" },
  };
  const lists: Readonly<Record<string, unknown>> = {
    list: { type: "array", items: ref("Alias") },
    optional: { anyOf: [{ type: "array", items: plain }, { type: "null" }] },
  };
  // These are texts: encoded bytes, and strings without a media type.
  const texts = { encoded: { ...plain, contentEncoding: "base64" }, text: { type: "string" } };
  const schemas = {
    Upload: { type: "string", format: "binary" },
    Alias: ref("Upload"),
    Named: { type: "object", properties: { text: texts.text }, required: ["text"] },
    Whole: {
      allOf: [
        ref("Named"),
        { oneOf: [{ properties: { ...files, ...lists } }, { properties: { encoded: texts.encoded } }] },
      ],
    },
  };
  const document = toDocument({
    form: toBody("multipart/form-data", { properties: { ...files, ...lists, ...texts } }),
    whole: toBody("multipart/form-data", ref("Whole")),
  }, { components: { schemas } });
  await withEcho(document, {}, async ({ send, call }) => {
    for (const name of ["form", "whole"]) {
      const names = Object.keys(files);
      const body = {
        ...Object.fromEntries(names.map((each) => [each, "aGk="])),
        ...{ list: ["aGk=", "aG8="], optional: ["aGk="], encoded: "aGk=", text: "aGk=" },
      };
      const request = await send(name, { body });
      const sent = await toForm(request);
      for (const each of [...names, "list", "optional"]) {
        const [file] = sent.getAll(each);
        assert(file instanceof File, `${name} ${each}`);
        assertEquals([await file.text(), file.name], ["hi", each]);
      }
      assertEquals(sent.getAll("list").length, 2);
      assertEquals([sent.get("encoded"), sent.get("text")], ["aGk=", "aGk="]);
      const types = [...request.body.matchAll(/name="(plain|types)";.*\r\ncontent-type: (.*)\r/g)];
      assertEquals(types.map(([, , type]) => type), ["image/png", "application/pdf"]);
      // A file that may be null is left out.
      assertEquals((await toForm(await send(name, { body: { text: "a", nullable: null } }))).has("nullable"), false);
    }
    assert((await call("whole", { body: {} })).isError, "the text is required");
  });
});

Deno.test("a body that is a file by its parts is sent as bytes", async () => {
  const image = { allOf: [ref("Image")] };
  const schemas = { Image: { type: "string", contentMediaType: "image/webp" } };
  const document = toDocument({ a: toBody("application/vnd.picture", image) }, { components: { schemas } });
  await withEcho(document, {}, async ({ send }) => {
    const { body, headers } = await send("a", { body: "aGk=" });
    assertEquals([body, headers["content-type"]], ["hi", "application/vnd.picture"]);
  });
});

Deno.test("lists in forms of version 2.0 have the format that the document says, and commas by default", async () => {
  const field = (name: string, collectionFormat?: string) => ({
    name,
    in: "formData",
    type: "array",
    items: { type: "string" },
    collectionFormat,
  });
  const parameters = [
    field("plain"),
    ...["csv", "ssv", "tsv", "pipes", "multi", "odd"].map((format) => field(format, format)),
  ];
  const toPath = (operationId: string, type: string) => ({ post: { operationId, consumes: [type], parameters } });
  const document = {
    swagger: "2.0",
    info: { title: "Old", version: "1" },
    paths: {
      "/form": toPath("form", "application/x-www-form-urlencoded"),
      "/multipart": toPath("multipart", "multipart/form-data"),
    },
  };
  const body = Object.fromEntries(parameters.map(({ name }) => [name, ["a", "b c"]]));
  const expected = [
    ["plain", "a,b c"],
    ["csv", "a,b c"],
    ["ssv", "a b c"],
    ["tsv", "a\tb c"],
    ["pipes", "a|b c"],
    ["multi", "a"],
    ["multi", "b c"],
    ["odd", "a,b c"],
  ];
  await withEcho(document, {}, async ({ send }) => {
    assertEquals([...new URLSearchParams((await send("form", { body })).body)], expected);
    const form = await toForm(await send("multipart", { body }));
    assertEquals([...form], expected as never);
  });
});

Deno.test("a field whose encoding is JSON is JSON, also if it is a text or a list", async () => {
  const properties = { text: { type: "string" }, list: { type: "array", items: { type: "string" } }, count: {} };
  const encoding = Object.fromEntries(
    Object.keys(properties).map((name) => [name, { contentType: "application/vnd.x+json; charset=utf-8" }]),
  );
  const document = toDocument({
    parts: toBody("multipart/form-data", { type: "object", properties }, { encoding }),
    pairs: toBody("application/x-www-form-urlencoded", { type: "object", properties }, { encoding }),
  });
  const body = { text: 'a"b', list: ["x", "y"], count: 2 };
  await withEcho(document, {}, async ({ send }) => {
    const parts = await toForm(await send("parts", { body }));
    assertEquals([parts.get("text"), parts.getAll("list"), parts.get("count")], ['"a\\"b"', ['"x"', '"y"'], "2"]);
    assertEquals([...new URLSearchParams((await send("pairs", { body })).body)], [
      ["text", '"a\\"b"'],
      ["list", '["x","y"]'],
      ["count", "2"],
    ]);
  });
});

Deno.test("lists in deep objects have indexes", async () => {
  const type = "application/x-www-form-urlencoded";
  const deep = { style: "deepObject", explode: true };
  const properties = { expand: { type: "array" }, items: { type: "array" }, card: { type: "object" } };
  const document = toDocument({
    a: toBody(type, { type: "object", properties }, { encoding: { expand: deep, items: deep, card: deep } }),
  });
  await withEcho(document, {}, async ({ send }) => {
    const body = { expand: ["owner"], items: [{ price: "p1", tags: ["x", "y"] }, { price: "p2" }], card: { ids: [7] } };
    assertEquals([...new URLSearchParams((await send("a", { body })).body)], [
      ["expand[0]", "owner"],
      ["items[0][price]", "p1"],
      ["items[0][tags][0]", "x"],
      ["items[0][tags][1]", "y"],
      ["items[1][price]", "p2"],
      ["card[ids][0]", "7"],
    ]);
  });
});
