// Return values of handlers. Bytes become media, and a value that JSON would lose is refused with the name of its type.
import { media, prompt, resource, tool } from "../../mod.ts";
import { sentence } from "../support/messages.ts";
import { send } from "./returned.ts";
import { assert, assertEquals, assertThrows } from "@std/assert";

const bytes = new Uint8Array([137, 80, 78, 71, 0, 255]);
const base64 = bytes.toBase64();

const view = (Type: new (buffer: ArrayBuffer, at: number, length: number) => ArrayBufferView, unit = 1) => {
  const buffer = new ArrayBuffer(32);
  new Uint8Array(buffer).set(bytes, 8);
  return new Type(buffer, 8, 6 / unit);
};

for (
  const [name, make] of Object.entries({
    Uint8Array: () => bytes,
    "Uint8Array within a buffer": () => view(Uint8Array),
    ArrayBuffer: () => bytes.slice().buffer,
    DataView: () => view(DataView),
    Uint16Array: () => view(Uint16Array, 2),
    Int8Array: () => view(Int8Array),
    "a Blob without a type": () => new Blob([bytes]),
  })
) {
  Deno.test(`encoders: ${name} is sent as bytes`, async () => {
    const answer = await send(make);
    const mimeType = "application/octet-stream";
    const block = { type: "resource", resource: { uri: "result:bytes", mimeType, blob: base64 } };
    assertEquals(answer.tool, { content: [block] });
    assertEquals(answer.resource, [{ uri: "test://x", mimeType, blob: base64 }]);
    assertEquals(answer.prompt, [{ role: "user", content: block }]);
    assertEquals(answer.told, []);
    assertEquals((await send(make, { mimeType: "font/ttf" })).resource, [{
      uri: "test://x",
      mimeType: "font/ttf",
      blob: base64,
    }]);
  });
}

Deno.test("encoders: the type of a blob decides whether it becomes an image, audio or a resource", async () => {
  for (
    const [type, block] of [
      ["image/png", { type: "image", data: base64, mimeType: "image/png" }],
      ["audio/wav", { type: "audio", data: base64, mimeType: "audio/wav" }],
      ["font/ttf", { type: "resource", resource: { uri: "result:bytes", mimeType: "font/ttf", blob: base64 } }],
    ] as const
  ) {
    const answer = await send(() => new Blob([bytes], { type }), { mimeType: "text/x-other" });
    assertEquals(answer.tool, { content: [block] });
    assertEquals(answer.prompt, [{ role: "user", content: block }]);
    assertEquals(
      answer.resource,
      [{ uri: "test://x", mimeType: type, blob: base64 }],
      "the blob's own type was not used",
    );
  }
  const file = await send(() => new File([bytes], "my report #1.pdf", { type: "application/pdf" }));
  const uri = "result:my%20report%20%231.pdf";
  assertEquals(file.tool, {
    content: [{ type: "resource", resource: { uri, mimeType: "application/pdf", blob: base64 } }],
  });
});

Deno.test("encoders: a tool that returns nothing has no content", async () => {
  assertEquals((await send(() => undefined)).tool, { content: [] });
  assertEquals((await send(() => null)).tool, { content: [{ type: "text", text: "null" }] });
});

class Secret {
  #word = "x";
  get length() {
    return this.#word.length;
  }
}
class Row {
  id = 1;
  at = new Date(0);
}
class Money {
  #cents = 5;
  toJSON() {
    return { cents: this.#cents };
  }
}
async function* count() {
  await Promise.resolve();
  yield 1;
}
function* numbers() {
  yield 1;
}
function loop(): unknown {
  const value: Record<string, unknown> = { a: [1] };
  value.b = [{ value }];
  return value;
}

// By case, the value, and the type and the remedy that the error names.
const REFUSED: Record<string, readonly [make: () => unknown, ...names: readonly string[]]> = {
  WeakMap: [() => new WeakMap(), "WeakMap"],
  WeakSet: [() => new WeakSet(), "WeakSet"],
  WeakRef: [() => new WeakRef({}), "WeakRef"],
  Request: [() => new Request("http://localhost/"), "Request", "request.json()"],
  Headers: [() => new Headers({ a: "b" }), "Headers", "Object.fromEntries"],
  URLSearchParams: [() => new URLSearchParams("a=b"), "URLSearchParams", "Object.fromEntries"],
  FormData: [() => new FormData(), "FormData", "Object.fromEntries"],
  function: [() => () => 1, "Function"],
  "async function": [() => async () => await 1, "AsyncFunction"],
  class: [() => Secret, "Function"],
  symbol: [() => Symbol("x"), "Symbol", "description"],
  RegExp: [() => /x/, "RegExp", "source"],
  Error: [() => new RangeError("x"), "Error"],
  "error with a code": [() => Object.assign(new Error("x"), { code: 1 }), "Error"],
  "class without fields": [() => new Secret(), "Secret", "toJSON()"],
  AbortSignal: [() => new AbortController().signal, "AbortSignal"],
};
const NESTED: typeof REFUSED = {
  ...REFUSED,
  Promise: [() => Promise.resolve(1), "Promise"],
};

const internal = [-32603, sentence(), ["errorId"]];

for (const [name, [make, ...names]] of Object.entries(REFUSED)) {
  Deno.test(`encoders: ${name} is refused with the name of its type and a remedy`, async () => {
    const { told: reported, codes, ...answer } = await send(make);
    assertEquals(answer, { tool: {}, resource: undefined, prompt: undefined });
    assertEquals(codes, [internal, internal, internal], "the client got more than an error id");
    for (const [i, place] of ['tool "x"', 'resource "test://x"', 'prompt "x"'].entries()) {
      assertEquals(reported[i], sentence(place, ...names));
    }
  });
}

for (const [name, [make, ...names]] of Object.entries(NESTED)) {
  Deno.test(`encoders: ${name} inside an object or an array is refused with its path`, async () => {
    const places: readonly (readonly [(value: unknown) => unknown, string])[] = [
      [(value) => ({ a: 1, value }), "value"],
      [(value) => [1, value], "[1]"],
      ...(["Headers", "function", "async function", "class", "symbol", "URLSearchParams", "error with a code"].includes(
          name,
        )
        ? []
        : [
          [(value: unknown) => ({ rows: [{ id: 1 }, { id: 2, value }] }), "rows[1].value"] as const,
          [(value: unknown) => [[{ "a b": { value } }]], "[0][0].a b.value"] as const,
        ]),
    ];
    for (const [wrap, at] of places) {
      const { told: reported, codes } = await send(() => wrap(make()));
      assertEquals(codes[0], internal, at);
      assertEquals(reported[0], sentence('tool "x"', at, ...names));
    }
  });
}

Deno.test("encoders: a circular value is refused with its path", async () => {
  const { told: reported, codes } = await send(loop);
  assertEquals(codes[0], internal);
  assertEquals(reported[0], sentence('tool "x"', "b[0].value"));
  const shared = { id: 1 };
  assertEquals(
    (await send(() => ({ a: shared, b: [shared, {}] }))).told.length,
    1,
    "only the prompt refuses the value",
  );
});

Deno.test("encoders: a value that JSON can represent is sent unchanged", async () => {
  const values: readonly (readonly [unknown, unknown])[] = [
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new URL("http://a/"), "http://a/"],
    [{ at: new Date(0), to: new URL("http://a/") }, { at: "1970-01-01T00:00:00.000Z", to: "http://a/" }],
    [new Row(), { id: 1, at: "1970-01-01T00:00:00.000Z" }],
    [{ rows: [new Row()] }, { rows: [{ id: 1, at: "1970-01-01T00:00:00.000Z" }] }],
    [new Money(), { cents: 5 }],
    [{ price: new Money(), none: {} }, { price: { cents: 5 }, none: {} }],
    [Object.create(null), {}],
    [{ a: NaN, b: undefined, c: [undefined, Infinity] }, { a: null, c: [null, null] }],
    [{}, {}],
    [[], []],
    [{ "0": { "1": {} } }, { "0": { "1": {} } }],
    [{ text: '{} {"0":1}' }, { text: '{} {"0":1}' }],
    [[new String("x"), new Boolean(false)], ["x", false]],
    [0, 0],
    [false, false],
  ];
  for (const [value, expected] of values) {
    const { tool, resource } = await send(() => value);
    const [{ text }] = Object(tool).content;
    assertEquals(JSON.parse(text), expected);
    assertEquals(JSON.parse(Object(resource)[0].text), expected);
  }
});

Deno.test("encoders: the types refuse exactly the values that are refused at run time", () => {
  interface Point {
    readonly x: number;
  }
  const fine = [
    tool({ name: "a", run: () => ({ x: 1 }) }),
    tool({ name: "b", run: (): Point => ({ x: 1 }) }),
    tool({ name: "c", run: () => new Row() }),
    tool({ name: "d", run: () => [new Row(), 1] }),
    tool({ name: "e", run: () => new Date() }),
    tool({ name: "f", run: () => new Blob([]) }),
    tool({ name: "g", run: () => bytes }),
    tool({ name: "h", run: async () => await Promise.resolve() }),
    tool({ name: "i", run: (): void => {} }),
    tool({ name: "j", run: (): Record<string, unknown> => ({}) }),
    tool({ name: "k", run: (): object => ({}) }),
    tool({ name: "l", run: () => null as unknown as Point | string }),
    tool({ name: "m", run: () => new URL("http://a") }),
    resource({ uri: "a://a", name: "a", read: () => new Blob([]) }),
    resource({ uri: "a://b", name: "b", read: (): Point => ({ x: 1 }) }),
    prompt({ name: "a", run: () => new Blob([]) }),
  ];
  const encoded = [
    tool({ name: "n", run: () => new Map([[1, 2]]) }),
    tool({ name: "o", run: () => new Set([1]) }),
    tool({ name: "p", run: () => new ReadableStream() }),
    tool({ name: "q", run: () => new Response("x") }),
    tool({ name: "r", run: () => count() }),
    tool({ name: "s", run: () => numbers() }),
    tool({ name: "t", run: () => 1n }),
    tool({ name: "u", run: async () => await fetch("http://127.0.0.1:1") }),
    resource({ uri: "a://c", name: "c", read: () => new Map() }),
    resource({ uri: "a://d", name: "d", read: () => new Response("x") }),
    prompt({ name: "b", run: () => new Set(["x"]) }),
    prompt({ name: "c", run: () => new Response("x") }),
  ];
  const wrong = [
    // @ts-expect-error: a function is not called
    tool({ name: "v", run: () => () => 1 }),
    // @ts-expect-error: a pattern has no JSON
    tool({ name: "w", run: () => /x/ }),
    // @ts-expect-error: the content of a weak map cannot be listed
    tool({ name: "x", run: () => new WeakMap() }),
  ];
  assert(fine.length + encoded.length + wrong.length);
});

// media() names what it got instead of bytes, and what to pass.

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
