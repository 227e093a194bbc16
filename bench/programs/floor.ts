// A minimal HTTP server that validates nothing, and sends a response that was recorded from a real server. The first
// argument selects how the response is sent. The second argument is the file with the response.
import { args, serve } from "./serve.ts";

const [how, file] = args;
/** The recorded messages as JSON texts, in order. The last message is the response. */
const { default: texts }: { default: readonly string[] } = await import(file, { with: { type: "json" } });
const last = texts[texts.length - 1];
const { result } = JSON.parse(last);
const encoder = new TextEncoder();

async function answerJson(request: Request): Promise<Response> {
  const { id } = await request.json();
  return Response.json({ jsonrpc: "2.0", id, result });
}

// Encode the text before and after the id in advance, so that each request encodes only the id.
const [before, after] = last.split(/(?<="id":)\d+/).map((part) => encoder.encode(part));

async function answerBytes(request: Request): Promise<Response> {
  const { id } = await request.json();
  const text = `${id}`;
  const bytes = new Uint8Array(before.length + text.length + after.length);
  bytes.set(before);
  encoder.encodeInto(text, bytes.subarray(before.length));
  bytes.set(after, before.length + text.length);
  return new Response(bytes, { headers: { "content-type": "application/json" } });
}

const parts = last.split(/(?<="id":)\d+/);

async function answerText(request: Request): Promise<Response> {
  const { id } = await request.json();
  return new Response(parts[0] + id + parts[1], { headers: { "content-type": "application/json" } });
}

const frames = texts.slice(0, -1).map((text) => encoder.encode(`data: ${text}\n\n`));

async function answerFrames(request: Request): Promise<Response> {
  const { id } = await request.json();
  const body = new ReadableStream({
    start(controller) {
      for (const frame of frames) controller.enqueue(frame);
      controller.enqueue(encoder.encode(`data: {"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}\n\n`));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

// For the response kind `read`, the server reads what every correct server must read: the URL, the headers in `names`,
// and the body as strict UTF-8.
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const names = ["host", "origin", "accept", "content-type", "content-encoding", "content-length"];
names.push("mcp-protocol-version", "mcp-method", "mcp-name");

async function answerRead(request: Request): Promise<Response> {
  const { url, method, headers } = request;
  if (!url || !method || names.every((name) => headers.get(name) === null)) return new Response(null, { status: 400 });
  const { id } = JSON.parse(strict.decode(await request.arrayBuffer()));
  return Response.json({ jsonrpc: "2.0", id, result });
}

const answers = { json: answerJson, read: answerRead, text: answerText, bytes: answerBytes, frames: answerFrames };
serve(answers[how as keyof typeof answers]); // The cast is safe, because the benchmarks pass only the keys of `answers`.
