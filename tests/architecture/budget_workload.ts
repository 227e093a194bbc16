// Makes tool calls, one after the other, to a server in this process. Arguments: the path of the calls (see
// budget_calls.ts), the kind of tool, the number of calls, then the main and the stdio entry of the library.
import { z } from "zod";

const [path, kind, count, main, stdio] = Deno.args;
const { createServer, tool }: typeof import("../../mod.ts") = await import(main);
const { serveStdio }: typeof import("../../src/transports/stdio/stdio.ts") = await import(stdio);

const input = z.object({ a: z.number(), b: z.number() });
const add = tool({ name: "add", input, run: (args) => String(JSON.stringify(args)) });
const report = tool({
  name: "report",
  input,
  async run(args, ctx) {
    await ctx.progress(1, { total: 1 });
    return String(JSON.stringify(args));
  },
});
const server = createServer({ name: "calc", version: "1.0.0", handlers: [add, report] });

const [era, transport] = path.split(" ");
const name = kind === "plain" ? "add" : "report";
const clientInfo = { name: "budget", version: "1.0.0" };
const envelope = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {},
};
const _meta = { ...era === "modern" ? envelope : {}, ...kind === "plain" ? {} : { progressToken: 7 } };
const params = { name, arguments: { a: 1, b: 2 }, ...Object.keys(_meta).length ? { _meta } : {} };
const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo },
});
const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });

/** Sends one message and returns all messages up to the response. */
type Exchange = (message: string) => Promise<string>;

async function openHttp(): Promise<Exchange> {
  let headers: Record<string, string> = {
    host: "127.0.0.1:8000",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = (body: string) =>
    server.fetch(
      new Request("http://127.0.0.1:8000/mcp", {
        method: "POST",
        headers: { ...headers, "content-length": `${body.length}` },
        body,
      }),
    );
  if (era === "modern") {
    headers = { ...headers, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
  } else {
    const session = (await post(initialize)).headers.get("mcp-session-id") ?? "";
    headers = { ...headers, "mcp-protocol-version": "2025-06-18", "mcp-session-id": session };
    await post(initialized);
  }
  return async (message) => await (await post(message)).text();
}

async function openStdio(): Promise<Exchange> {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  let send: (message: string) => void = () => {};
  let text = "";
  let finish: (text: string) => void = () => {};
  const input = new ReadableStream<Uint8Array>({
    start(controller) {
      send = (message) => controller.enqueue(encoder.encode(`${message}\n`));
    },
  });
  const output = (bytes: Uint8Array) => {
    text += decoder.decode(bytes);
    if (/"(result|error)":/.test(text)) finish(text);
    return Promise.resolve();
  };
  const exchange: Exchange = (message) =>
    new Promise((resolve) => {
      text = "";
      finish = resolve;
      send(message);
    });
  serveStdio(server, { input, output });
  if (era === "legacy") {
    await exchange(initialize);
    send(initialized);
  }
  return exchange;
}

const exchange = await (transport === "http" ? openHttp() : openStdio());
for (let i = 0; i < Number(count); i++) {
  const text = await exchange(call);
  const isProgress = text.includes("notifications/progress");
  if (!text.includes(String.raw`"text":"{\"a\":1,\"b\":2}"`) || isProgress !== (kind === "progress")) {
    throw new Error(`Cannot count: the server answered ${text}`);
  }
}
Deno.exit(0);
