// Events of other types than `message`, which servers and proxies send to keep a stream open.
import { assertEquals } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { until } from "../support/behaviour.ts";
import { agreed, discovered, fakeHttp, type Heard, ok, stream, url } from "./fakes.ts";

/** Events without a message, as servers, proxies and libraries send them. */
const OTHERS = [
  "event: ping\ndata: 2026-01-01T00:00:00Z\n\n",
  "event: ping\ndata: {}\n\n",
  'event: heartbeat\nid: 1\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
  "event: keep-alive\ndata: not JSON\n\n",
  "event: endpoint\ndata: /other\n\n",
];

const toEvent = (message: object, type: string) =>
  `event: ${type}\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
const content = [{ type: "text" as const, text: "done" }];

for (const type of ["message", ""]) {
  Deno.test(`the client ignores events that are no messages, and reads events of the type "${type}"`, async () => {
    const notified: string[] = [];
    const changed = { method: "notifications/tools/list_changed", params: {} };
    const answer = (heard: Heard, result: object) =>
      stream([...OTHERS, toEvent({ id: heard.id, result }, type), ...OTHERS]);
    const onNotification = ({ method }: { readonly method: string }) => void notified.push(method);

    const modern = fakeHttp((heard) =>
      heard.method === "server/discover" ? discovered(heard) : answer(heard, { resultType: "complete", content })
    );
    await using client = await connect(url, { fetch: modern.fetch });
    assertEquals((await client.callTool("t")).content, content);

    const legacy = fakeHttp((heard) => {
      if (heard.http === "GET") return stream([...OTHERS, toEvent(changed, type), ...OTHERS], "open");
      if (heard.method === "initialize") return answer(heard, agreed);
      return heard.method === "tools/call" ? answer(heard, { content }) : undefined;
    });
    await using session = await connect(url, { fetch: legacy.fetch, era: "legacy", onNotification });
    assertEquals((await session.callTool("t")).content, content);
    await until(() => notified.length === 1, "the notification from the GET stream");
  });
}

Deno.test("the client ignores events that are no messages on the stream of revision 2024-11-05", async () => {
  let send = (_event: string) => {};
  const encoder = new TextEncoder();
  const server = fakeHttp((heard) => {
    if (heard.http === "GET") {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          send = (event) => controller.enqueue(encoder.encode(event));
          send("event: ping\ndata: x\n\n");
          send("event: endpoint\ndata: /messages\n\n");
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    const results: Record<string, object> = {
      initialize: { ...agreed, protocolVersion: "2024-11-05" },
      "tools/call": { content },
    };
    const result = results[heard.method ?? ""];
    if (!result) return heard.id === undefined ? new Response(null, { status: 202 }) : ok(heard);
    for (const event of [...OTHERS, toEvent({ id: heard.id, result }, "message")]) send(event);
    return new Response(null, { status: 202 });
  });
  const fetch = (request: Request) =>
    request.method === "POST" && request.url === url
      ? Promise.resolve(new Response(null, { status: 405 }))
      : server.fetch(request);
  await using client = await connect(url, { fetch });
  assertEquals((await client.callTool("t")).content, content);
});
