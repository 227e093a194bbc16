// Tests of the results that the responses of an API become.
import { assert, assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { openapi, type OpenApiOptions } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { compareCosts } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { toDocument } from "./echo.ts";

const pet = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const responses = { 200: { content: { "application/json": { schema: pet } } } };
const document = toDocument({ a: { responses }, b: { method: "post", responses: { 201: {}, 200: responses[200] } } });

/** Calls the operation `a` of an API that gives this response. */
async function call(respond: (request: Request) => Response, options: Partial<OpenApiOptions> = {}) {
  const api = openapi(document, { fetch: respond, ...options });
  const observer = { fault: () => {} };
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api], observer }));
  const progress: number[] = [];
  const result = await client.callTool("a", {}, { onProgress: ({ progress: done }) => void progress.push(done) });
  const text = result.content.map((each) => each.type === "text" ? each.text : "").join("\n");
  const [{ outputSchema }] = await client.listTools();
  return { ...result, text, progress, outputSchema };
}

const json = (value: unknown, init?: ResponseInit) => () => Response.json(value, init);
const typed = (body: BodyInit, type: string) => () => new Response(body, { headers: { "content-type": type } });

Deno.test("JSON is structured content, in the way that output says", async () => {
  const good = json({ name: "Ada" });
  const bad = json({ name: 7 });
  for (const output of [undefined, "none", "check"] as const) {
    const { structuredContent, outputSchema, isError } = await call(good, { output });
    assertEquals([structuredContent, outputSchema, isError], [{ name: "Ada" }, undefined, undefined]);
  }
  assertEquals((await call(bad)).structuredContent, { name: 7 });
  const checked = await call(bad, { output: "check" });
  assertEquals([checked.structuredContent, checked.text, checked.isError], [undefined, '{"name":7}', undefined]);
  const strict = await call(good, { output: "strict" });
  assertEquals([strict.structuredContent, strict.outputSchema], [{ name: "Ada" }, pet]);
  for (const respond of [bad, typed("no", "text/plain"), typed("{", "application/json"), () => new Response()]) {
    const broken = await call(respond, { output: "strict" });
    assertEquals(broken.isError, true);
    assertEquals(broken.text, sentence("check"));
  }
  // An operation that may also succeed without JSON has no output schema.
  const api = openapi(document, { fetch: good, output: "strict" });
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api] }));
  assertEquals((await client.listTools()).map(({ outputSchema }) => outputSchema), [pet, undefined]);
});

Deno.test("other responses are text, media or a line with the status", async () => {
  const list = await call(json([1, 2]));
  assertEquals([list.text, list.structuredContent], ["[1,2]", undefined]);
  assertEquals((await call(typed("<a/>", "application/xml"))).text, "<a/>");
  assertEquals((await call(typed("{ broken", "application/json"))).text, "{ broken");
  assertEquals((await call(() => new Response(null, { status: 204, statusText: "No Content" }))).text, sentence("204"));
  const png = Uint8Array.from([0x89, 0x50, 0, 255]);
  const { content: [image] } = await call(typed(png, "image/png"));
  assertEquals(image, { type: "image", mimeType: "image/png", data: "iVAA/w==" });
  const { content: [file] } = await call(typed(png, "application/pdf"));
  assert(file.type === "resource" && "blob" in file.resource && file.resource.mimeType === "application/pdf");
  const created = await call(() => Response.json({}, { status: 201, headers: { location: "/pets/7" } }));
  assertEquals(created.text, sentence("/pets/7"));
});

Deno.test("errors are words: the status, and the body up to a limit", async () => {
  const error = await call(() =>
    Response.json({ message: "Not allowed" }, { status: 403, statusText: "Forbidden", headers: { "retry-after": "5" } })
  );
  assertEquals(error.isError, true);
  assertEquals(error.text, sentence("403 Forbidden"));
  const long = await call(() => new Response("x".repeat(100_000), { status: 500 }));
  assert(long.text.length < 11_000);
  assertEquals((await call(() => new Response(null, { status: 304 }))).isError, true);
  const thrown = await call(throwing(new Error("broken app")));
  // The error of an app in this process is for its author.
  assert(thrown.isError && /^Internal error/.test(thrown.text), thrown.text);
  const large = await call(typed("x".repeat(1000), "text/plain"), { maxBytes: 100 });
  assertEquals([large.isError, large.text], [true, sentence("maxBytes")]);
});

Deno.test("a call fails after its timeout, which an operation can have of its own", async () => {
  const never = () => new Promise<Response>(() => {});
  for (const timeoutMs of [30, () => 30, ({ id }: { id: string }) => id === "a" ? 30 : undefined]) {
    const { isError, text } = await call(never as never, { timeoutMs });
    assertEquals([isError, text], [true, sentence("30 ms")]);
  }
});

Deno.test("links and totals are metadata, and a line of text", async () => {
  const headers = {
    link: '<http://localhost/a?page=2>; rel="next", <https://other.example/a?page=9>; rel=last, <:bad>; rel="x"',
    "x-total-count": "120",
  };
  const { _meta, text } = await call(() => Response.json([1], { headers }));
  assertEquals(Object(_meta).link, { next: "/a?page=2", last: "https://other.example/a?page=9", x: "/:bad" });
  assertEquals(Object(_meta).total, 120);
  assertEquals(text, sentence("/a?page=2", "120"));
  const ranged = await call(() => Response.json([], { headers: { "content-range": "items 0-9/66" } }));
  assertEquals(Object(ranged._meta).total, 66);
  const hostile = await call(() => Response.json([], { headers: { link: "<".repeat(5000) + ">;rel=".repeat(500) } }));
  assertEquals(hostile.text, "[]");
});

Deno.test("streams are read to their end or to a limit, with progress", async () => {
  const events = Array.from({ length: 5 }, (_, i) => `event: x\ndata: {"i":${i}}\n\n`).join("");
  const sse = await call(typed(`: hello\n\n${events}`, "text/event-stream; charset=utf-8"));
  assertEquals(sse.text.split("\n"), [0, 1, 2, 3, 4].map((i) => `{"i":${i}}`));
  assertEquals(sse.progress.at(-1), 5);
  const lines = await call(typed('{"a":1}\n\n{"b":2}\r\n{"c":3}', "application/x-ndjson"));
  assertEquals(lines.text, '{"a":1}\n{"b":2}\n{"c":3}');
  const endless = () =>
    new Response(
      new ReadableStream({ pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")) }),
      { headers: { "content-type": "text/event-stream" } },
    );
  const cut = await call(endless, { maxBytes: 900 });
  assertEquals(cut.isError, undefined);
  assertEquals(cut.text.replace(/^(x\n)+/, ""), sentence("incomplete"));
  const silent = () => {
    const start = (controller: ReadableStreamDefaultController) =>
      controller.enqueue(new TextEncoder().encode("data: 1\n\n"));
    return new Response(new ReadableStream({ start }), { headers: { "content-type": "text/event-stream" } });
  };
  assertEquals((await call(silent, { timeoutMs: 100 })).text, sentence("incomplete"));
});

Deno.test("hostile: a line in many small parts costs as much as a line in few parts, and lines get few notices", async () => {
  const toLines = (parts: number, length: number) => () => {
    const chunk = new TextEncoder().encode("x".repeat(length));
    const body = new ReadableStream({
      pull: (controller) => parts-- > 0 ? controller.enqueue(chunk) : controller.close(),
    });
    return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
  };
  const costs = await compareCosts(
    { small: () => call(toLines(3000, 64)), twice: () => call(toLines(6000, 64)) },
    ({ small, twice }) => twice <= 3 * small,
  );
  assertEquals(costs, undefined);
  for (const type of ["application/x-ndjson", "text/event-stream"]) {
    const body = type === "text/event-stream" ? "data:1\n\n".repeat(20_000) : "1\n".repeat(20_000);
    const { progress, text } = await call(typed(body, type));
    assertEquals(text.length, 39_999);
    assert(progress.length > 10 && progress.length < 200, String(progress.length));
  }
});
