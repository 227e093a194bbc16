// HTTP methods, content types, framing, body sizes and slow clients.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { cases, checkSecrecy, latin1, LEGACY, readError, runtime, startFixture, toBytes, toMessage } from "./http.ts";
import type { RawConnection } from "./raw.ts";
import { toReply } from "../support/requests.ts";

const refusal = { code: -32600 };
const NOT_ACCEPTED = { status: 406, ...refusal };
const NOT_JSON = { status: 415, ...refusal };
const TOO_LARGE = { status: 413, ...refusal };
const DROPPED = { status: 400, dropped: { deno: 400, bun: 400 } } as const;
const both = { allow: "GET, POST, DELETE" };
const JSON_ONLY = { "content-type": "application/json" };
const STREAM = { "content-type": "text/event-stream" };
const LIMIT = 4 * 1024 * 1024;

cases("only the endpoint's own HTTP methods are served", {}, () => [
  ...["PUT", "PATCH", "TRACE", "OPTIONS"].map((method) => ({
    name: `${method}`,
    method,
    status: 405,
    ...refusal,
    has: both,
  })),
  { name: "HEAD", method: "HEAD", status: 405, has: both },
  { name: "CONNECT of a path", method: "CONNECT", status: 405, ...refusal, has: both, dropped: { deno: 400 } },
  {
    name: "CONNECT of a host",
    raw: (port) => `CONNECT evil.example:80 HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`,
    status: 404,
    ...refusal,
  },
  ...["FOO", "get", "post", "X".repeat(300)].map((method) => ({
    name: `the method ${method.slice(0, 20)}`,
    method,
    status: 405,
    ...refusal,
    has: both,
    // Bun closes the connection for methods that it does not support.
    dropped: { bun: "closed" as const },
  })),
  ...["GET", "DELETE"].map((method) => ({
    name: `${method} of a revision without sessions`,
    method,
    status: 405,
    has: { allow: "POST" },
  })),
]);

cases("wrong methods and Accept headers in a session are refused", { version: LEGACY }, () => [
  ...[
    null,
    "application/json",
    "text/html",
    "text/event-stream;q=0",
    "application/json, text/event-stream;q=0.0",
  ]
    .map((accept) => ({ name: `GET that accepts ${accept}`, method: "GET", headers: { accept }, ...NOT_ACCEPTED })),
]);

for (
  const [title, options] of [["without a session", {}], [`in a session of ${LEGACY}`, { version: LEGACY }]] as const
) {
  cases(`content types are negotiated and checked ${title}`, options, () => [
    ...[
      null,
      "",
      "*/*",
      "application/*",
      "application/json",
      "APPLICATION/JSON",
      "application/json, text/event-stream;q=0",
      "text/event-stream;q=0, */*",
      "text/html, application/json;q=0.1",
    ].map((accept) => ({ name: `Accept ${accept} gets JSON`, headers: { accept }, status: 200, has: JSON_ONLY })),
    ...[
      "text/event-stream",
      "text/*",
      "*/*, application/json;q=0",
      "application/json;q=0, text/event-stream",
    ].map((accept) => ({ name: `Accept ${accept} gets a stream`, headers: { accept }, status: 200, has: STREAM })),
    ...[
      "text/html",
      "image/png",
      "image/*",
      "application/json;q=0",
      "*/*;q=0",
      "application/jsonp",
      ",,,;;;==",
    ].map((accept) => ({ name: `Accept ${accept}`, headers: { accept }, ...NOT_ACCEPTED })),
    { name: "a body over the limit", body: "x".repeat(LIMIT + 1), ...TOO_LARGE, says: "request.bodyBytes" },
    {
      name: "errors are JSON, whatever Accept lists",
      headers: { accept: "text/event-stream" },
      body: "x",
      status: 400,
      code: -32700,
    },
    ...[
      null,
      "",
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      'text/plain; a="application/json"',
      "text/plain;application/json",
    ].map((type) => ({
      name: `the type ${type} is refused before the body is parsed`,
      headers: { "content-type": type },
      body: "{",
      ...NOT_JSON,
    })),
    ...["APPLICATION/JSON; charset=UTF-8", 'application/json;charset="utf-8"', "application/json ; x=y"].map((
      type,
    ) => ({
      name: `the type ${type} is JSON`,
      headers: { "content-type": type },
      status: 200,
    })),
    ...[
      ["application/json", "application/json"],
      ["application/json", "text/plain"],
      ["text/plain", "application/json"],
      ["application/json; a=b", "text/plain"],
      "application/json, text/plain",
      "application/json; a=b, text/plain",
      "application/json; charset=latin1",
      "application/jsonp",
      "application/json-patch+json",
      "application/jsonx",
      "application/ json",
      "text/json",
      "json",
    ].map((type) => ({
      name: `the type ${JSON.stringify(type)} is not JSON`,
      headers: { "content-type": type },
      ...NOT_JSON,
    })),
    ...["gzip", "br", "x-unknown", "gzip, identity"].map((encoding) => ({
      name: `the encoding ${encoding} is not decoded`,
      headers: { "content-encoding": encoding },
      body: Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3),
      ...NOT_JSON,
      says: "Content-Encoding",
    })),
    ...[
      { "x-http-method-override": "DELETE", "x-method-override": "DELETE", "x-http-method": "DELETE" },
      { "x-original-url": "/admin", "x-rewrite-url": "/admin" },
      { "x-forwarded-host": "evil.example", forwarded: "host=evil.example;for=1.2.3.4", "x-forwarded-for": "1.2.3.4" },
    ].map((headers) => ({ name: `${Object.keys(headers)[0]} changes nothing`, headers, status: 200 })),
    ...["x-forwarded-host", "x-host", "x-original-host"].map((header) => ({
      name: `${header} makes no foreign Host valid`,
      headers: { host: "evil.example", [header]: "127.0.0.1" },
      status: 403,
      ...refusal,
    })),
  ]);
}

Deno.test("a client that accepts only JSON gets no stream, even if the handler sends notifications during the call", async (t) => {
  for (const version of [undefined, LEGACY]) {
    await using fixture = await startFixture({ version });
    const params = { name: "steps", _meta: { progressToken: "p" } };
    const modern = toMessage("modern", {}, { name: "steps" }, { progressToken: "p" });
    const body = JSON.stringify(version ? toMessage("legacy", {}, params) : modern);
    const own = version ? {} : { "mcp-name": "steps" };
    await t.step(`the response is JSON (${version ?? "without a session"})`, async () => {
      const json = await fixture.send({ body, headers: { ...own, accept: "application/json" } });
      assertEquals([json?.status, json?.headers.get("content-type")], [200, "application/json"]);
      assertEquals(JSON.parse(json?.body ?? "").result.content[0].text, "done");
      const stream = await fixture.send({ body, headers: own });
      assertEquals(stream?.headers.get("content-type"), "text/event-stream");
      assertEquals(stream?.body.match(/^data: \{.*notifications\/progress/gm)?.length, 2);
      fixture.ran.length = 0;
      await fixture.checkAlive("after this");
    });
  }
});

cases("ambiguous lengths and broken framing over HTTP are refused", {}, ({ good }) => {
  const body = String(good.body);
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const chunked = { "content-length": null, "transfer-encoding": "chunked" };
  return [
    { name: "a length that is too short", headers: { "content-length": "20" }, status: 400, code: -32700 },
    {
      name: "a length of 10 GB is refused immediately",
      headers: { "content-length": "10000000000" },
      ...TOO_LARGE,
      dropped: { bun: 413 }, // Above 128 MiB, Bun itself refuses the request.
    },
    {
      name: "a length just over the limit is refused immediately",
      headers: { "content-length": `${LIMIT + 1}` },
      ...TOO_LARGE,
    },
    ...["-1", "1, 1", "+5", "0x10", "1 2", "99999999999999999999999"].map((length) => ({
      name: `the length ${length}`,
      headers: { "content-length": length },
      ...DROPPED,
    })),
    { name: "two lengths that differ", headers: { "content-length": ["1", `${body.length}`] }, ...DROPPED },
    { name: "a length and chunks", headers: { ...chunked, "content-length": "5" }, body: chunk, ...DROPPED },
    {
      name: "chunks and a length",
      headers: { "content-length": null, "transfer-encoding": "chunked", "Content-Length": "5" },
      body: chunk,
      ...DROPPED,
    },
    ...["xchunked", "chunked, chunked", "chunked, identity"].map((encoding) => ({
      name: `the transfer encoding ${encoding}`,
      headers: { "content-length": null, "transfer-encoding": encoding },
      body: chunk,
      ...DROPPED,
    })),
    { name: "chunks alone are served", headers: chunked, body: chunk, status: 200 },
    {
      name: "a chunk with an invalid size",
      headers: chunked,
      body: "zz\r\nabc\r\n0\r\n\r\n",
      status: 400,
      dropped: { deno: "closed", bun: 400 },
    },
    {
      name: "a header of 100 KB",
      headers: { "x-big": "x".repeat(100_000) },
      status: 431,
      dropped: { deno: 400, bun: 431 },
    },
    {
      name: "500 headers",
      headers: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x-${i}`, "1"])),
      status: 431,
      dropped: { deno: 400, bun: 431 },
    },
    ...["x y", "x-y ", "x\0y", "x@y", ""].map((name) => ({
      name: `the header name ${JSON.stringify(name)}`,
      headers: { [name]: "1" },
      ...DROPPED,
    })),
    ...["a\rb", "a\0b", "a\r\n b"].map((value) => ({
      name: `the header value ${JSON.stringify(value)}`,
      headers: { "x-y": value },
      ...DROPPED,
    })),
    {
      // Deno accepts a bare line feed as the end of a line, as RFC 9112 (2.2) allows.
      name: "a bare line feed smuggles no Origin past the check",
      headers: { "x-y": "a\norigin: http://evil.example" },
      status: 403,
      ...refusal,
      dropped: { bun: 400 },
    },
    { name: "bytes that are not HTTP", raw: "\x16\x03\x01\x02\x00garbage\r\n\r\n", ...DROPPED },
    { name: "HTTP/0.9", raw: "GET /mcp\r\n\r\n", status: 400, dropped: { deno: 400, bun: 505 } },
  ];
});

/** Returns the body of a valid call that is exactly `size` bytes long. */
function padded(size: number): string {
  const body = JSON.stringify(toMessage("modern", {}, { arguments: { p: "" } }));
  return body.replace('"p":""', `"p":"${"x".repeat(size - body.length)}"`);
}

Deno.test("a body above the size limit gets 413, with a declared length or in chunks", async (t) => {
  await using fixture = await startFixture();
  for (const [size, status] of [[LIMIT - 1, 200], [LIMIT, 200], [LIMIT + 1, 413]] as const) {
    await t.step(`a body with ${size} bytes gets ${status}, and the connection then works or is closed`, async () => {
      const connection = await fixture.connect();
      const sent = connection.write(toBytes(fixture.port, fixture.good, { body: padded(size) }));
      const answer = await connection.read();
      assertEquals(answer?.status, status);
      if (status === 413) assertStringIncludes(readError(answer?.body ?? "").message, "request.bodyBytes");
      await sent;
      await connection.write(toBytes(fixture.port, fixture.good, {}));
      const next = await connection.read();
      assertEquals(next === undefined || next.status === 200, true, next?.body);
      if (status === 200) assert(next, "the connection closed after a valid call");
      connection.close();
      fixture.ran.length = 0;
      await fixture.checkAlive("after this");
    });
    await t.step(`a chunked body with ${size} bytes gets ${status}`, async () => {
      const connection = await fixture.connect();
      const headers = { "content-length": null, "transfer-encoding": "chunked" };
      await connection.write(toBytes(fixture.port, fixture.good, { headers, body: "" }));
      const text = padded(size);
      const sent = (async () => {
        for (let at = 0; at < text.length; at += 1_000_000) {
          const part = text.slice(at, at + 1_000_000);
          await connection.write(`${part.length.toString(16)}\r\n${part}\r\n`);
        }
        await connection.write("0\r\n\r\n");
      })();
      const answer = await connection.read();
      assertEquals(answer?.status, status);
      await sent;
      connection.close();
      fixture.ran.length = 0;
      await fixture.checkAlive("after this");
    });
  }
  await t.step("a request with Expect: 100-continue gets 100 or is refused", async () => {
    const connection = await fixture.connect();
    const [head, body] = split(toBytes(fixture.port, fixture.good, { headers: { expect: "100-continue" } }));
    await connection.write(head);
    await connection.write(body);
    assertEquals((await connection.read())?.status, 200);
    const headers = { expect: "100-continue", "content-length": `${LIMIT + 1}` };
    await connection.write(split(toBytes(fixture.port, fixture.good, { headers }))[0]);
    assertEquals((await connection.read())?.status, 413);
    connection.close();
    fixture.ran.length = 0;
    await fixture.checkAlive("after this");
  });
});

/** Splits the bytes of a request into the head and the body. */
function split(bytes: Uint8Array): [head: Uint8Array, body: Uint8Array] {
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 10 && bytes[at - 2] === 10) return [bytes.slice(0, at + 1), bytes.slice(at + 1)];
  }
  throw new Error("Cannot split the request: it has no empty line");
}

async function checkRefused(connection: RawConnection): Promise<void> {
  const answer = await connection.read();
  checkSecrecy(answer?.body ?? "", "a slow body");
  // There is no response if the runtime closes a slow connection before the server's timeout expires.
  if (answer) assertEquals([answer.status, readError(answer.body).code], [408, -32600]);
}

Deno.test("a slow body is refused with 408 after request.bodyMs", async (t) => {
  await using fixture = await startFixture({ server: { limits: { request: { bodyMs: 200 } } } });
  await t.step("a request whose body never arrives gets 408, with a declared length and in chunks", async () => {
    const requests = [
      { headers: { "content-length": "9999" } },
      { headers: { "content-length": null, "transfer-encoding": "chunked" }, body: "5\r\nabc" },
    ];
    await Promise.all(requests.map(async (request) => {
      const connection = await fixture.connect();
      await connection.write(toBytes(fixture.port, fixture.good, request));
      const answer = await connection.read();
      assertEquals([answer?.status, readError(answer?.body ?? "").code], [408, -32600]);
      assertStringIncludes(answer?.body ?? "", "request.bodyMs");
    }));
    await fixture.checkAlive("after this");
  });

  await t.step(
    "200 connections that send bodies one byte at a time are closed, and other clients are served",
    async () => {
      let isOver = false;
      const [head] = split(toBytes(fixture.port, fixture.good, { headers: { "content-length": "600" } }));
      const slow = await Promise.all(Array.from({ length: 200 }, () => fixture.connect()));
      const dripping = Promise.all(slow.map(async (connection) => {
        await connection.write(head);
        while (!isOver) {
          await connection.write(" ");
          // Fixed wait: a body that is sent one byte at a time.
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }));
      const refused = Promise.all(slow.map((connection) => checkRefused(connection)));
      for (let i = 0; i < 20; i++) await fixture.checkAlive("after this");
      await refused;
      isOver = true;
      await dripping;
      for (const connection of slow) connection.close();
      await fixture.checkAlive("after this");
    },
  );
});

Deno.test("pipelined requests get their responses in order", async () => {
  await using fixture = await startFixture();
  const connection = await fixture.connect();
  const ids = Array.from({ length: 20 }, (_, id) => id);
  const requests = ids.map((id) =>
    toBytes(fixture.port, fixture.good, { body: JSON.stringify(toMessage("modern", { id })) })
  );
  await connection.write(Uint8Array.from(requests.flatMap((bytes) => [...bytes])));
  for (const id of ids) assertEquals(JSON.parse(toReply((await connection.read())?.body ?? "")).id, id);
  // After refusing a body, the server must not read the rest of the body as a new request.
  const inner = new TextDecoder().decode(toBytes(fixture.port, fixture.good, {}));
  fixture.ran.length = 0;
  await connection.write(
    toBytes(fixture.port, fixture.good, { headers: { "content-type": "text/plain" }, body: inner }),
  );
  assertEquals((await connection.read())?.status, 415);
  await connection.write(latin1(inner));
  const next = await connection.read();
  assert(next === undefined || next.status === 200, next?.body);
  assertEquals(fixture.ran.length <= 1, true, `${runtime} ran a request from inside a body`);
});
