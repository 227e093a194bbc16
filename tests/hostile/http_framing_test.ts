// Bodies that are not JSON-RPC, or almost JSON-RPC.
import { assert, assertEquals } from "@std/assert";
import { sentence } from "../support/messages.ts";
import {
  type Case,
  cases,
  initialize,
  type Json,
  latin1,
  LEGACY,
  META,
  MODERN,
  startFixture,
  toMessage,
} from "./http.ts";
import { toReply } from "../support/requests.ts";

type Era = "modern" | "legacy";
const eras = [
  { era: "modern", title: MODERN, options: {} },
  { era: "legacy", title: `a session of ${LEGACY}`, options: { version: LEGACY } },
] as const;

const utf8 = (text: string) => new TextEncoder().encode(text);
const join = (...parts: readonly (string | readonly number[])[]) =>
  Uint8Array.from(parts.flatMap((part) => typeof part === "string" ? [...utf8(part)] : part));

function toUtf16(text: string): Uint8Array {
  return new Uint8Array(Uint16Array.from(text, (character) => character.charCodeAt(0)).buffer);
}

/** Returns a call of `echo` with the given JSON text as arguments. */
function echo(era: Era, args: string): Pick<Case, "headers" | "body"> {
  const body = JSON.stringify(toMessage(era, {}, { name: "echo" })).replace(
    '"arguments":{}',
    () => `"arguments":${args}`,
  );
  return { headers: era === "modern" ? { "mcp-name": "echo" } : {}, body };
}

for (const { era, title, options } of eras) {
  const isModern = era === "modern";
  const text = (change: Json = {}, params: Json = {}, meta: Json = {}) =>
    JSON.stringify(toMessage(era, change, params, meta));
  const good = text();
  const parse = { status: 400, code: -32700 };
  const invalid = { status: 400, code: -32600 };
  const badParams = { status: 400, code: -32602, id: 1 };
  const mismatch = { status: 400, code: -32020, id: 1 };
  const utf16 = { headers: { "content-type": "application/json; charset=utf-16" }, status: 415, code: -32600 };
  const unknownMethod = { status: isModern ? 404 : 200, code: -32601, id: 1 };
  const notRouted = isModern ? mismatch : unknownMethod;
  const named = (name: string) => isModern ? { "mcp-name": `=?base64?${utf8(name).toBase64()}?=` } : {};
  const called = (name: string) => isModern ? { "mcp-method": name } : {};
  const errors = isModern ? 400 : 200;

  cases(`hostile bodies get an error or are read exactly, in ${title}`, options, () => [
    { name: "an empty body", body: "", ...parse },
    { name: "only white space", body: " \r\n\t", ...parse },
    { name: "truncated JSON", body: good.slice(0, -1), ...parse },
    { name: "two documents", body: good + good, ...parse },
    { name: "trailing garbage", body: `${good}garbage`, ...parse },
    { name: "an unquoted key", body: "{a:1}", ...parse },
    { name: "single quotes", body: good.replaceAll('"', "'"), ...parse },
    ...["null", "42", '"x"', "true", "{}"].map((body) => ({ name: `the body ${body}`, body, ...invalid })),
    ...["[]", '[1,"x",null]', `[${good}]`].map((body) => ({
      name: `the array ${body.slice(0, 20)}`,
      body,
      ...invalid,
    })),
    { name: "a byte order mark is not JSON", body: join([0xef, 0xbb, 0xbf], good), ...parse },
    { name: "declared UTF-16 gets 415", body: toUtf16(good), ...utf16 },
    { name: "undeclared UTF-16", body: toUtf16(good), ...parse },
    { name: "UTF-8 that is declared as UTF-16 gets 415", ...utf16 },
    ...[[0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xff], [0xe2, 0x82], [0xf4, 0x90, 0x80, 0x80]].map((bytes) => ({
      name: `the bytes ${bytes.map((byte) => byte.toString(16)).join(" ")} in a tool's name`,
      body: join(good.split("good")[0], bytes, good.split("good")[1]),
      ...parse,
    })),
    {
      name: "a lone surrogate in an argument reaches the tool unchanged",
      ...echo(era, '{"s":"\\ud800"}'),
      status: 200,
      says: "ud800",
    },
    { name: "NUL in a method", body: text({ method: "tools\u0000/call" }), ...notRouted },
    {
      name: "NUL in a tool's name",
      body: text({}, { name: "good\u0000" }),
      headers: named("good\u0000"),
      status: errors,
      code: -32602,
      id: 1,
    },
    {
      name: "control characters in an argument reach the tool unchanged",
      ...echo(era, '{"s":"\\u0000\\u0007x\\u001b"}'),
      status: 200,
      says: "u0000\\\\u0007x\\\\u001b",
    },
    ...[undefined, "1.0", 2, "2.0 ", "2", null, ["2.0"]].map((jsonrpc) => ({
      name: `jsonrpc is ${JSON.stringify(jsonrpc)}`,
      body: text({ jsonrpc }),
      ...invalid,
      id: 1,
    })),
    ...["1e400", "true", "{}", "[]", "null", "1.5", "9007199254740993"].map((id) => ({
      name: `the id ${id}`,
      body: good.replace('"id":1', `"id":${id}`),
      ...invalid,
    })),
    ...["", 0, -1, "x".repeat(256), "\u{1f600}\u00e9\u0000"].map((id) => ({
      name: `the id ${JSON.stringify(id).slice(0, 20)} is returned unchanged`,
      body: text({ id }),
      status: 200,
      says: `"id":${JSON.stringify(id)}`,
    })),
    ...[257, 4096].map((size) => ({
      name: `an id of ${size} characters is over the limit`,
      body: text({ id: "x".repeat(size) }),
      ...invalid,
      says: "request.idCharacters",
    })),
    ...[undefined, 1, null, {}, []].map((method) => ({
      name: `the method ${JSON.stringify(method)}`,
      body: text({ method }),
      ...invalid,
      id: 1,
    })),
    { name: "an empty method", body: text({ method: "" }), headers: called(""), ...unknownMethod },
    {
      name: "a method of 100 KB",
      body: text({ method: "x".repeat(100_000) }),
      ...invalid,
      id: 1,
      says: "request.methodCharacters",
    },
    ...[[], [{}], "x", 5].map((params) => ({
      name: `the params ${JSON.stringify(params)}`,
      body: text({ params }),
      ...badParams,
    })),
    {
      name: "a method of 256 characters is quoted in part",
      body: text({ method: "x".repeat(256) }),
      headers: called("x".repeat(256)),
      ...unknownMethod,
      says: `${"x".repeat(200)}\u2026`,
    },
    ...["METHOD", "Method"].map((key) => ({
      name: `the key ${key}`,
      body: good.replace('"method"', `"${key}"`),
      ...invalid,
      id: 1,
    })),
    {
      name: "the key ID makes the message a notification, which runs no tool",
      body: good.replace('"id"', '"ID"'),
      status: 202,
      runs: false,
    },
    { name: "a method with a long s", body: text({ method: "tool\u017f/list" }), ...notRouted },
    { name: "a Kelvin sign in a key", body: good.replace('"jsonrpc"', '"\u212aey":1,"jsonrpc"'), status: 200 },
    {
      name: "the last of two duplicate methods is used",
      body: good.replace('"method":', '"method":"tools/list","method":'),
      status: 200,
      says: '"text":"good"',
    },
    { name: "a null id before a valid id", body: good.replace('"id":1', '"id":null,"id":1'), status: 200 },
    {
      name: "the last of two ids is returned",
      body: good.replace('"id":1', '"id":5,"id":6'),
      status: 200,
      says: '"id":6',
    },
    {
      name: "the tool of the last of two names runs",
      body: good.replace('"name":"good"', '"name":"gone","name":"good"'),
      status: 200,
      says: '"text":"good"',
    },
    ...isModern
      ? [{
        name: "headers are compared with the last of two methods",
        body: good.replace('"method":', '"method":"tools/call","method":"tools/list","was":'),
        ...mismatch,
      }, {
        name: "headers are compared with the last of two names",
        body: good.replace('"name":"good"', '"name":"good","name":"echo"'),
        ...mismatch,
      }]
      : [],
    {
      name: isModern ? "a response is not a valid message for the server" : "a response to an unknown id is 202",
      body: '{"jsonrpc":"2.0","id":"ask-1","result":{}}',
      ...isModern ? invalid : { status: 202 },
    },
    { name: "both result and error", body: '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', ...invalid, id: 1 },
    ...[
      "null",
      "[]",
      "{}",
      '{"code":1}',
      '{"message":"x"}',
      '{"code":"1","message":"x"}',
      '{"code":1,"message":1}',
      '{"code":1,"message":"x"}',
    ]
      .map((error) => ({
        name: `a response with the error ${error}`,
        body: `{"jsonrpc":"2.0","id":1,"error":${error}}`,
        // A call that waits for this response must not wait until its timeout.
        ...isModern ? invalid : { status: 202 },
      })),
    { name: "a request with a result member", body: text({ result: {} }), ...invalid, id: 1 },
    { name: "a request with an error member", body: text({ error: null }), ...invalid, id: 1 },
    {
      name: "a call without an id is accepted as a notification: it gets 202, and no tool runs",
      body: text({ id: undefined }),
      status: 202,
      runs: false,
    },
    { name: "190,000 keys", ...echo(era, `{${Array.from({ length: 190_000 }, (_, i) => `"k${i}":1`)}}`), status: 200 },
    { name: "200,001 values", body: `[${"{},".repeat(199_999)}1]`, ...invalid, says: "request.values" },
    { name: "the replacement character", ...echo(era, '{"s":"\ufffd"}'), status: 200, says: "\ufffd" },
    { name: "one key of 1 MB", ...echo(era, `{"${"k".repeat(1_000_000)}":1}`), status: 200 },
    { name: "__proto__ is an ordinary key", ...echo(era, '{"__proto__":{"a":1}}'), status: 200, says: "__proto__" },
    { name: "the number 1e309", ...echo(era, '{"n":1e309}'), status: 200, says: '{\\"n\\":null}' },
    { name: "the number -0", ...echo(era, '{"n":-0}'), status: 200, says: '{\\"n\\":0}' },
    { name: "an exponent of -999999", ...echo(era, '{"n":1e-999999}'), status: 200, says: '{\\"n\\":0}' },
    {
      name: "an integer of 10,000 digits",
      ...echo(era, `{"n":${"9".repeat(10_000)}}`),
      status: 200,
      says: '{\\"n\\":null}',
    },
    { name: "a body of random bytes", body: Uint8Array.from({ length: 256 }, (_, i) => 255 - i), ...parse },
    { name: "one bracket a million times", body: "[".repeat(1_000_000), ...invalid, says: "request.depth" },
    {
      name: "arguments nested to the limit of 128 levels",
      ...echo(era, `${'{"a":'.repeat(126)}1${"}".repeat(126)}`),
      status: 200,
    },
    {
      name: "arguments nested one level deeper",
      ...echo(era, `${'{"a":'.repeat(127)}1${"}".repeat(127)}`),
      ...invalid,
      says: "request.depth",
    },
    {
      name: "objects and arrays in turn, over the limit",
      ...echo(era, `${'{"a":['.repeat(70)}1${"]}".repeat(70)}`),
      ...invalid,
      says: "request.depth",
    },
    {
      name: "brackets in a string are not levels, whatever is escaped in it",
      ...echo(era, `{"s":"${"[".repeat(200)}\\"${"{".repeat(200)}\\\\","${"[{".repeat(100)}":"]"}`),
      status: 200,
    },
    { name: "brackets side by side are not levels", ...echo(era, `{"s":[${"[],{},".repeat(200)}1]}`), status: 200 },
  ]);
}

Deno.test("in a session with revision 2025-03-26, a hostile batch is refused, or each of its entries gets a response", async (t) => {
  await using fixture = await startFixture({ version: "2025-03-26" });
  const one = (id: unknown, name = "good") => JSON.stringify(toMessage("legacy", { id }, { name }));
  const invalid = { status: 400, code: -32600, id: null };
  const refused: readonly Case[] = [
    {
      name: "101 entries",
      body: `[${Array.from({ length: 101 }, (_, id) => one(id))}]`,
      ...invalid,
      says: sentence("100"),
    },
    { name: "a repeated id refuses the batch", body: `[${one(1)},${one(1)}]`, ...invalid },
    { name: "an initialize inside refuses the batch", body: `[${one(1)},${JSON.stringify(initialize)}]`, ...invalid },
    { name: "an empty batch", body: "[]", ...invalid },
    {
      name: "a batch of notifications gets 202",
      body: `[${Array(2).fill('{"jsonrpc":"2.0","method":"notifications/initialized"}')}]`,
      status: 202,
    },
  ];
  for (const each of refused) await t.step(each.name, () => fixture.check(each));

  await t.step("an invalid entry of a batch gets its own error", async () => {
    const unknown = '{"jsonrpc":"2.0","id":"b","method":"no/such"}';
    const answer = await fixture.send({
      body: `[${one(1)},"junk",${one("1")},[],{"jsonrpc":"2.0","method":"x"},${unknown}]`,
    });
    const answers = JSON.parse(toReply(answer?.body ?? ""));
    assertEquals(answer?.status, 200);
    assertEquals(answers.map((each: Json) => [each.id, Object(each.error).code]), [
      [1, undefined],
      [null, -32600],
      ["1", undefined],
      [null, -32600],
      ["b", -32601],
    ]);
    fixture.ran.length = 0;
    await fixture.checkAlive("after this");
  });

  await t.step("each of 100 entries of a batch gets one response", async () => {
    const answer = await fixture.send({ body: `[${Array.from({ length: 100 }, (_, id) => one(id))}]` });
    const ids = JSON.parse(toReply(answer?.body ?? "")).map(({ id }: Json) => id);
    assertEquals(ids.toSorted((a: number, b: number) => a - b), Array.from({ length: 100 }, (_, id) => id));
    assertEquals(fixture.ran.splice(0).length, 100);
    await fixture.checkAlive("after this");
  });
});

Deno.test("other clients are served while the server parses a large object", async () => {
  await using fixture = await startFixture();
  const large = await fixture.connect();
  const body = echo("modern", `{${Array.from({ length: 190_000 }, (_, i) => `"k${i}":${i}`)}}`).body ?? "";
  const head = `POST /mcp HTTP/1.1\r\n${
    Object.entries({ ...fixture.good.headers, "mcp-name": "echo", "content-length": `${utf8(String(body)).length}` })
      .map(([name, value]) => `${name}: ${value}\r\n`).join("")
  }\r\n`;
  await large.write(latin1(head));
  const sent = large.write(body);
  for (let i = 0; i < 20; i++) await fixture.checkAlive("after this");
  await sent;
  const answer = await large.read();
  assert(answer?.status === 200);
  assert(answer.body.includes("k189999"));
  assert(!answer.body.includes(META + "protocolVersion"), "the response echoes the request's envelope");
});
