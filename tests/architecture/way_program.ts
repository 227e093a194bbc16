// Serves `COUNT` calls on one way: `way_program.ts WAY COUNT`. Comparing the coverage of two runs shows which functions
// run in each further call.
import { z } from "zod";
import { allScopes, apiKey } from "../../src/auth/auth.ts";
import { createServer, tool } from "../../src/library.ts";
import { serveStdio } from "../../src/transports/stdio/stdio.ts";

const [way, count] = [Deno.args[0], Number(Deno.args[1])];
const encoder = new TextEncoder();

const add = tool({
  name: "add",
  description: "Adds two numbers",
  input: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => a + b,
});
const work = tool({
  name: "work",
  async run(_, ctx) {
    await ctx.progress(1);
    await new Promise((resolve) => setTimeout(resolve));
    await ctx.progress(2);
    return "done";
  },
});
const parts = { name: "ways", version: "1.0.0", handlers: [add, work] };
const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const initialize = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "c", version: "1" },
};

function toMessage(id: number, method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

function toRequest(path: string, body: string, headers: Record<string, string> = {}): Request {
  return new Request(`http://localhost${path}`, {
    method: "POST",
    body,
    headers: {
      "host": "localhost",
      "content-type": "application/json",
      "accept": "application/json, text/event-stream",
      "content-length": `${encoder.encode(body).length}`,
      ...headers,
    },
  });
}

type Fetch = (request: Request) => Promise<Response>;

async function read(response: Promise<Response>, status = 200): Promise<string> {
  const { status: actual, body } = await response.then(async (response) => ({
    status: response.status,
    body: await response.text(),
  }));
  if (actual !== status) throw new Error(`Got the status ${actual}: ${body}`);
  return body;
}

/** Sends calls of revision 2026-07-28. */
async function callModern(fetch: Fetch, path: string, credentials: Record<string, string> = {}): Promise<void> {
  const headers = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "add",
    ...credentials,
  };
  for (let id = 1; id <= count; id++) {
    const params = { name: "add", arguments: { a: id, b: 1 }, _meta };
    const body = await read(fetch(toRequest(path, toMessage(id, "tools/call", params), headers)));
    if (!body.includes(`"${id + 1}"`)) throw new Error(body);
  }
}

async function openSession(fetch: Fetch): Promise<Record<string, string>> {
  const opened = await fetch(toRequest("/mcp", toMessage(0, "initialize", initialize)));
  await opened.body?.cancel();
  const id = opened.headers.get("mcp-session-id");
  if (id === null) throw new Error("There is no session");
  return { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
}

const ways: Readonly<Record<string, () => Promise<void>>> = {
  async modern() {
    const server = createServer(parts);
    await callModern(server.fetch, "/mcp");
    await server.close();
  },
  async session() {
    const server = createServer(parts);
    const headers = await openSession(server.fetch);
    for (let id = 1; id <= count; id++) {
      const params = { name: "add", arguments: { a: id, b: 1 } };
      const body = await read(server.fetch(toRequest("/mcp", toMessage(id, "tools/call", params), headers)));
      if (!body.includes(`"${id + 1}"`)) throw new Error(body);
    }
    await server.close();
  },
  async replay() {
    const server = createServer(parts);
    const headers = await openSession(server.fetch);
    const params = { name: "work", arguments: {}, _meta: { progressToken: 1 } };
    const called = await read(server.fetch(toRequest("/mcp", toMessage(1, "tools/call", params), headers)));
    const [first] = called.match(/(?<=^id: )\S+/m) ?? [];
    if (first === undefined) throw new Error(`There is no event: ${called}`);
    for (let id = 1; id <= count; id++) {
      const again = new Request("http://localhost/mcp", {
        headers: { ...headers, host: "localhost", accept: "text/event-stream", "last-event-id": first },
      });
      const rest = await read(server.fetch(again));
      if (!rest.includes("done")) throw new Error(`Nothing was sent again: ${rest}`);
    }
    await server.close();
  },
  async tenant() {
    const auth = apiKey({ keys: { ada: { key: "ada-2f6c1e0b9d4a7853", scopes: allScopes } } });
    const server = createServer({ ...parts, auth, path: "/t/:tenant/mcp" });
    await callModern(server.fetch, "/t/acme/mcp", { authorization: "Bearer ada-2f6c1e0b9d4a7853" });
    await server.close();
  },
  async stdio() {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    let answered = Promise.withResolvers<string>();
    const served = serveStdio(createServer(parts), {
      input: readable,
      output: (bytes) => {
        answered.resolve(new TextDecoder().decode(bytes));
        return Promise.resolve();
      },
    });
    for (let id = 1; id <= count; id++) {
      answered = Promise.withResolvers<string>();
      const params = { name: "add", arguments: { a: id, b: 1 }, _meta };
      await writer.write(encoder.encode(`${toMessage(id, "tools/call", params)}\n`));
      const body = await answered.promise;
      if (!body.includes(`"${id + 1}"`)) throw new Error(body);
    }
    await writer.close();
    await served;
  },
};

await ways[way]();
