// Whole numbers beyond 2^53 keep their digits: in the structured content that a client reads, and in the messages that a
// bridge forwards.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { bridgeLines } from "../../src/client/bridge_lines.ts";
import { connect } from "../../src/client/client.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { agreed, discovered, fakeHttp, url } from "./fakes.ts";
import { scriptTasks } from "./scripted_tasks.ts";

const LARGE = "9223372036854775807";
const content = `{"ids":[${LARGE},-90071992547409931],"small":42,"half":0.5,"text":"${LARGE}","deep":{"id":${LARGE}}}`;
const exact = {
  ids: [LARGE, "-90071992547409931"],
  small: 42,
  half: 0.5,
  text: LARGE,
  deep: { id: LARGE },
};
const json = (text: string) => new Response(text, { headers: { "content-type": "application/json" } });

/** Serves a tool without an output schema, and a tool with one. */
function serve(era: "modern" | "legacy", isStream: boolean) {
  return fakeHttp((heard) => {
    const toText = (result: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(heard.id)},"result":${result}}`;
    switch (heard.method) {
      case "server/discover":
        return era === "modern" ? discovered(heard) : new Response(null, { status: 404 });
      case "initialize":
        return json(toText(JSON.stringify(agreed)));
      case "tools/list": {
        const ids = { type: "array", items: { type: "number" } };
        const typed = { name: "typed", inputSchema: { type: "object" }, outputSchema: { properties: { ids } } };
        const tools = [typed, { name: "free", inputSchema: { type: "object" } }];
        return json(toText(JSON.stringify({ resultType: "complete", tools })));
      }
      case "tools/call": {
        const text = toText(`{"resultType":"complete","content":[],"structuredContent":${content}}`);
        const headers = { "content-type": "text/event-stream" };
        return isStream ? new Response(`data: ${text}\n\n`, { headers }) : json(text);
      }
    }
  });
}

for (const era of ["modern", "legacy"] as const) {
  for (const isStream of [false, true]) {
    Deno.test(`structured content keeps all digits, unless the tool has an output schema (${era}, ${isStream ? "stream" : "JSON"})`, async () => {
      const warnings: string[] = [];
      const { fetch } = serve(era, isStream);
      await using client = await connect(url, { fetch, onWarning: (warning) => void warnings.push(warning) });
      await client.listTools();
      assertEquals((await client.callTool("free")).structuredContent, exact);
      assertEquals(warnings.splice(0), [sentence("free", "texts")]);
      const { structuredContent } = await client.callTool("typed");
      assertEquals(structuredContent, JSON.parse(content));
      assertEquals(warnings.splice(0), [sentence("typed", "rounded")]);
    });
  }
}

Deno.test("the result of a task, and of a tool that is passed on to another server, keeps all digits", async () => {
  const { handlers } = scriptTasks({
    handle: { pollIntervalMs: 10 },
    get: () => ({
      ...{ taskId: "t1", status: "completed", createdAt: "2026-07-28T00:00:00Z", ttlMs: 60_000 },
      lastUpdatedAt: "2026-07-28T00:00:00Z",
      result: { content: [], structuredContent: { id: "LARGE" } },
    }),
  });
  const far = createServer({ name: "far", version: "1.0.0", handlers, hosts: ["fake.test"] });
  const fetch = async (request: Request) => {
    const response = await far.fetch(request);
    const text = (await response.text()).replaceAll('"LARGE"', LARGE);
    return new Response(text, { status: response.status, headers: response.headers });
  };
  const upstream = await connect(url, { fetch, extensions: [taskClient()], onWarning() {} });
  assertEquals((await upstream.callTool("work")).structuredContent, { id: LARGE });
  const listed = { name: "work", inputSchema: { type: "object" } };
  const passed = tool.from(listed, (args) => upstream.callTool("work", args));
  const server = createServer({ name: "near", version: "1.0.0", handlers: [passed] });
  await using client = await connectTest(server);
  assertEquals((await client.callTool("work")).structuredContent, { id: LARGE });
  await upstream.close();
  await Promise.all([far.close(), server.close()]);
});

Deno.test("a bridge forwards all digits of arguments and results, in bodies and in headers", async () => {
  const sent: string[] = [];
  const headers: (string | null)[] = [];
  const fetch = async (request: Request) => {
    const text = await request.text();
    sent.push(text);
    headers.push(request.headers.get("mcp-param-account"));
    const { id, method } = JSON.parse(text);
    const account = { type: "integer", "x-mcp-header": "Account" };
    const tools = [{ name: "a", inputSchema: { type: "object", properties: { account } } }];
    const result = method === "tools/list"
      ? JSON.stringify({ tools })
      : `{"content":[],"structuredContent":${content}}`;
    return json(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
  };
  const stop = new AbortController();
  const input = new TransformStream<Uint8Array, Uint8Array>();
  const received: string[] = [];
  const output = (bytes: Uint8Array) => Promise.resolve(void received.push(new TextDecoder().decode(bytes)));
  const ended = bridgeLines({ input: input.readable, output, signal: stop.signal }, { url, fetch, onWarning() {} });
  const writer = input.writable.getWriter();
  const request = async (id: number, method: string, params: string) => {
    const _meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`;
    const line = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}${_meta}}}\n`;
    await writer.write(new TextEncoder().encode(line));
    await until(() => received.length === id, "the response arrives");
  };
  await request(1, "tools/list", "");
  await request(2, "tools/call", `"name":"a","arguments":{"account":${LARGE},"list":[${content}]},`);
  assertEquals(sent[1].includes(`"arguments":{"account":${LARGE},"list":[${content}]}`), true, sent[1]);
  assertEquals(headers[1], LARGE);
  assertEquals(received[1].includes(`"structuredContent":${content}`), true, received[1]);
  await writer.close();
  await ended;
});
