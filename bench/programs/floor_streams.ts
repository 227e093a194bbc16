// A minimal server with event streams. Every GET and every subscription gets a stream with one comment. Every call
// writes one prepared event to all streams, after 10 ms. The wait keeps the comparison fair, because this library also
// waits 10 ms to batch changes, and a process works more slowly after a wait. The server responds to any other request
// with an empty result.
import { serve } from "./serve.ts";

const encoder = new TextEncoder();
const comment = encoder.encode(":\n\n");
const news = { jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: "bench://0" } };
const frame = encoder.encode(`data: ${JSON.stringify(news)}\n\n`);
const open = new Set<ReadableStreamDefaultController<Uint8Array>>();

function toStream(): Response {
  let own: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      own = controller;
      open.add(controller);
      controller.enqueue(comment);
    },
    cancel: () => void open.delete(own),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function notify(): void {
  for (const controller of open) controller.enqueue(frame);
}

serve(async (request) => {
  if (request.method !== "POST") return toStream();
  const { id, method } = await request.json();
  if (method === "subscriptions/listen") return toStream();
  if (method === "tools/call" && open.size) setTimeout(notify, 10);
  return Response.json({ jsonrpc: "2.0", id, result: {} }, { headers: { "mcp-session-id": "one" } });
});
