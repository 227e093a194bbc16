// A client of a session may open several standalone streams. Each notification goes to one of them.
import { assertEquals } from "@std/assert";
import { createServer, resource, type Server, tool } from "../../mod.ts";
import { until } from "../support/behaviour.ts";
import { toHello, toSessionRequest } from "../support/sessions.ts";

const CALLER = { principal: { id: "ada" } };

/** A standalone stream of a session, as its client reads it. */
interface Stream {
  readonly status: number;
  readonly texts: string[];
  /** The id of the last event. */
  last?: string;
  isOver: boolean;
  cancel(): Promise<void>;
}

interface Session {
  readonly server: Server;
  send(message: object): Promise<void>;
  open(lastEvent?: string): Promise<Stream>;
}

async function openSession(server: Server, version: string): Promise<Session> {
  let id = "";
  const headers = () => ({ "mcp-protocol-version": version, ...id ? { "mcp-session-id": id } : {} });
  const post = async (message: object) => {
    const response = await server.fetch(toSessionRequest({ jsonrpc: "2.0", ...message }, headers()), CALLER);
    await response.text();
    id ||= response.headers.get("mcp-session-id") ?? "";
  };
  await post(toHello({ version }));
  await post({ method: "notifications/initialized" });
  return {
    server,
    send: post,
    async open(lastEvent) {
      const own = { ...headers(), ...lastEvent ? { "last-event-id": lastEvent } : {} };
      const response = await server.fetch(toSessionRequest(undefined, own), CALLER);
      const stream: Stream = {
        status: response.status,
        texts: [],
        isOver: false,
        cancel: async () => {
          await reader?.cancel();
        },
      };
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const read = async () => {
        for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
          for (const line of next.value.split("\n")) {
            if (line.startsWith("id: ")) stream.last = line.slice(4);
            if (line.startsWith("data: {")) stream.texts.push(JSON.parse(line.slice(6)).params.uri);
          }
        }
        stream.isOver = true;
      };
      read().catch(() => stream.isOver = true);
      return stream;
    },
  };
}

const handlers = [
  resource({ uri: "note://{name}", name: "note", read: () => "" }),
  tool({ name: "ping", run: () => "pong" }),
];

async function withSession(version: string, use: (session: Session) => Promise<void>): Promise<void> {
  await using server = createServer({ name: "s", version: "1.0.0", handlers });
  const session = await openSession(server, version);
  for (let i = 0; i < 9; i++) {
    await session.send({ id: 10 + i, method: "resources/subscribe", params: { uri: `note://${i}` } });
  }
  await use(session);
}

/** Announces a change, and waits until one of the streams has got it. */
async function announce({ server }: Session, i: number, streams: readonly Stream[]): Promise<void> {
  server.resourceUpdated(`note://${i}`);
  await until(() => streams.some(({ texts }) => texts.includes(`note://${i}`)), `the change ${i}`);
}

for (const version of ["2025-11-25", "2025-03-26"]) {
  Deno.test(`several streams of a session stay open, and each notification goes to one of them (${version})`, async () => {
    await withSession(version, async (session) => {
      const streams = [await session.open(), await session.open(), await session.open()];
      for (let i = 0; i < 3; i++) await announce(session, i, streams);
      assertEquals(streams.map(({ status, isOver }) => [status, isOver]), Array(3).fill([200, false]));
      const all = streams.flatMap(({ texts }) => texts);
      assertEquals(all.sort(), ["note://0", "note://1", "note://2"]);
      // The remaining streams get the notifications when the client closes the one that has got them.
      const [one, two, three] = streams;
      await three.cancel();
      await until(async () => {
        session.server.resourceUpdated("note://3");
        await session.send({ id: 99, method: "ping" });
        return [one, two].some(({ texts }) => texts.includes("note://3"));
      }, "another stream gets the notification");
      assertEquals([one.isOver, two.isOver], [false, false]);
      await Promise.all([one.cancel(), two.cancel()]);
    });
  });
}

Deno.test("a resumed stream gets its own events again, and no events of another stream", async () => {
  await withSession("2025-11-25", async (session) => {
    const one = await session.open();
    await announce(session, 0, [one]);
    const { last: afterFirst } = one;
    await announce(session, 1, [one]);
    const two = await session.open();
    await announce(session, 2, [two]);
    await one.cancel();
    const again = await session.open(afterFirst);
    await until(() => again.texts.length > 0, "the replayed event");
    assertEquals([again.texts, two.texts, two.isOver], [["note://1"], ["note://2"], false]);
    await Promise.all([again.cancel(), two.cancel()]);
  });
});

Deno.test("a client can open and close many streams, and opens no more than its share at the same time", async () => {
  const limits = { connections: { streamsPerClient: 3 } };
  await using server = createServer({ name: "s", version: "1.0.0", handlers, limits });
  const session = await openSession(server, "2025-11-25");
  for (let round = 0; round < 5; round++) {
    const streams = [await session.open(), await session.open(), await session.open()];
    assertEquals(streams.map(({ status }) => status), [200, 200, 200]);
    assertEquals((await session.open()).status, 503);
    await Promise.all(streams.map((stream) => stream.cancel()));
    await until(() => server.stats().streams === 0, "the streams are closed");
  }
});
