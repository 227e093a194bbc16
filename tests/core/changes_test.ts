// The cost of notifying many clients of one change.
import { assertEquals } from "@std/assert";
import { createServer, resource, type Server } from "../../mod.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { toRequest } from "../support/requests.ts";
import { patch } from "../support/patch.ts";

const LISTENERS = 100;
const URI = "note://1";
const NEWS = "notifications/resources/updated";

type Read = () => Promise<string>;

function toReader(response: Response): Read {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return async () => {
    while (!text.includes(NEWS)) {
      const read = await reader?.read();
      if (!read || read.done) throw new Error(`The stream ended after ${text}`);
      text += read.value;
    }
    await reader?.cancel();
    return text;
  };
}

async function listen(server: Server): Promise<Read> {
  const params = { notifications: { resourceSubscriptions: [URI] } };
  return toReader(await server.fetch(toRequest("subscriptions/listen", params)));
}

async function openStream(server: Server): Promise<Read> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const post = async (message: object, session: Record<string, string>) => {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    const request = new Request("http://localhost/mcp", { method: "POST", headers: { ...headers, ...session }, body });
    const response = await server.fetch(request);
    await response.text();
    return response.headers.get("mcp-session-id") ?? "";
  };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const session = { "mcp-session-id": await post({ id: 1, method: "initialize", params }, {}) };
  await post({ id: 2, method: "resources/subscribe", params: { uri: URI } }, session);
  return toReader(
    await server.fetch(new Request("http://localhost/mcp", { headers: { accept: "text/event-stream", ...session } })),
  );
}

/** Counts how many values are serialized as JSON while `work` runs. */
async function countWrites(work: () => Promise<void>): Promise<number> {
  const { stringify } = JSON;
  let count = 0;
  using _patched = patch(JSON, {
    stringify: new Proxy(stringify, {
      apply(write, self, args) {
        count++;
        return Reflect.apply(write, self, args);
      },
    }),
  });
  await work();
  return count;
}

for (const [name, open] of [["subscriptions", listen], ["streams of sessions", openStream]] as const) {
  Deno.test(`a notification for ${LISTENERS} ${name} is serialized once`, async () => {
    const clock = fakeClock();
    await using server = createServer({
      name: "news",
      version: "1.0.0",
      clock,
      handlers: [resource({ uri: URI, name: "1", read: () => "1" })],
      limits: { connections: { streamsPerClient: LISTENERS } },
    });
    const listeners: Read[] = [];
    for (let i = 0; i < LISTENERS; i++) listeners.push(await open(server));
    let texts: string[] = [];
    const count = await countWrites(async () => {
      server.resourceUpdated(URI);
      await clock.advance(20);
      texts = await Promise.all(listeners.map((read) => read()));
    });
    assertEquals(texts.filter((text) => text.includes(URI)).length, LISTENERS);
    assertEquals(count, 1);
  });
}
