// Schemas and handlers written for other libraries work unchanged in this library.
import type { Server } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { assertEquals, assertStringIncludes } from "../support/std.ts";
import { calculator } from "./ported/calculator.ts";
import { noteServer } from "./ported/notes.ts";
import { weather } from "./ported/weather.ts";

type Params = Record<string, unknown>;
type Ask = (method: string, params: Params) => Promise<Params>;

/** Creates a client that never sends a session id, like some real clients. */
function sessionless(server: Server): Ask {
  return async (method, params) => {
    const response = await server.fetch(
      new Request("http://127.0.0.1/mcp", {
        method: "POST",
        headers: {
          host: "127.0.0.1",
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2025-06-18",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      }),
    );
    const text = await response.text();
    const data = text.startsWith("{")
      ? text
      : /data: (\{.*)/.exec(text.slice(text.lastIndexOf("data: {")))?.[1] ?? text;
    const { result, error } = JSON.parse(data);
    if (error) throw error;
    return result;
  };
}

const CLIENTS: Record<string, (server: Server) => Promise<Ask & Partial<AsyncDisposable>>> = {
  "a modern client": async (server) => {
    const client = await connectTest(server, { era: "modern", transport: "http" });
    return Object.assign((method: string, params: Params) => client.request(method, params), {
      [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
    });
  },
  "a client with a session": async (server) => {
    const client = await connectTest(server, { era: "legacy", transport: "http" });
    return Object.assign((method: string, params: Params) => client.request(method, params), {
      [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
    });
  },
  "a client without a session": (server) => Promise.resolve(sessionless(server)),
};

for (const [name, open] of Object.entries(CLIENTS)) {
  const test = (what: string, server: Server, run: (call: Call, ask: Ask) => Promise<void>) =>
    Deno.test(`ported: ${what} work for ${name}`, async () => {
      const ask = await open(server);
      const call: Call = async (name, args) => {
        const { content, structuredContent, isError } = await ask("tools/call", { name, arguments: args });
        return JSON.parse(JSON.stringify({ content, structuredContent, isError }));
      };
      try {
        await run(call, ask);
      } finally {
        await ask[Symbol.asyncDispose]?.();
      }
    });
  const text = (text: string) => ({ type: "text", text });

  test("plain zod shapes, dates and full results", weather, async (call, ask) => {
    assertEquals(await call("forecast", { city: "Bern", days: 1 }), {
      content: [text("Bern\n1: 20 °C")],
      structuredContent: { city: "Bern", days: 1 },
    });
    assertEquals(Object((await call("forecast", { city: "Bern" })).structuredContent).days, 3);
    assertStringIncludes(JSON.stringify(await call("forecast", { city: "", days: 9 })), "days: ");
    const dates = { since: "2026-01-01", until: "2026-01-11T00:00:00Z", stations: ["a", "b"] };
    assertEquals((await call("history", dates)).content, [text("10 days at 2 stations")]);
    assertEquals((await call("history", { since: "2026-01-01" })).content, [text("30 days at 0 stations")]);
    assertEquals((await call("radar")).content, [{ type: "image", data: "iVBORw==", mimeType: "image/png" }]);
    assertEquals(await call("fail"), { content: [text("The station is down")], isError: true });
    const { contents } = await ask("resources/read", { uri: "station://a1" });
    assertEquals(contents, [{ uri: "station://a1", mimeType: "text/plain", text: "Station a1" }]);
    const { messages } = await ask("prompts/get", { name: "report", arguments: { city: "Bern" } });
    assertEquals(messages, [{ role: "user", content: text("Write a short report on Bern.") }]);
    const { tools } = await ask("tools/list", {});
    assertEquals(Object(tools)[1].inputSchema.properties.since, { type: "string", format: "date-time" });
  });

  test("several schema libraries, files and streams", noteServer, async (call, ask) => {
    assertEquals(await call("add", { title: "a", text: "milk", tags: '["shop"]' }), { content: [] });
    const found = { a: { text: "milk #shop", at: "2026-01-01T00:00:00.000Z" } };
    assertEquals(await call("find", { word: "milk", limit: "5" }), {
      content: [text(JSON.stringify(found))],
      structuredContent: found,
    });
    assertEquals((await call("picture", { title: "a" })).content, [
      text("The picture of a"),
      { type: "image", data: "AAA=", mimeType: "image/png" },
    ]);
    assertEquals(await call("picture", { title: "b" }), { content: [text("No note b; try find")], isError: true });
    assertEquals((await call("lines")).content, [text('["a"]')]);
    assertEquals((await call("download")).content, [text("title,text\n")]);
    const { contents } = await ask("resources/read", { uri: "notes://all" });
    assertEquals(contents, [{ uri: "notes://all", mimeType: "text/plain", text: "a" }]);
    const { messages } = await ask("prompts/get", { name: "summarize", arguments: { title: "a" } });
    assertEquals(messages, [{ role: "user", content: text("Summarize a") }]);
  });

  test("raw JSON Schemas, bigints and bytes", calculator, async (call, ask) => {
    assertEquals((await call("add", { a: 1 })).content, [text("11")]);
    assertEquals((await call("add", { a: 1, b: 2 })).content, [text("3")]);
    const big = { power: String(3n ** 100n) };
    assertEquals((await call("power", { base: "3", exponent: "100" })).structuredContent, big);
    assertEquals((await call("average", { values: [1, 2, 2, 3] })).structuredContent, { mean: 2, seen: [1, 2, 3] });
    const error = await call("average", { values: [] }).catch((error) => error);
    assertEquals([error.code, error.message], [-32602, "No values"]);
    const { contents } = await ask("resources/read", { uri: "file:///table.bin" });
    assertEquals(contents, [{ uri: "file:///table.bin", mimeType: "application/x-table", blob: "AQID" }]);
  });
}

type Call = (name: string, args?: Params) => Promise<Params>;
