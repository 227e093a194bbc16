// Bytes that clients store in logs. A client cannot keep more bytes in logs than it is charged for, although each entry
// lets the whole log live longer.
import { assert, assertEquals } from "@std/assert";
import { type createServer, type ServerOptions, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { gate, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { testLimits } from "../support/limits.ts";
import { asking } from "../tasks/declared.ts";
import { openServer } from "../support/servers.ts";

/** The bytes that one client may store. */
const SHARE = 200_000;
const large = "y".repeat(20_000);
const principal = { id: "mallory" };

/** An append to a log. */
interface Append {
  readonly log: string;
  readonly bytes: number;
}

/** Creates instances that share a store and a clock, and records what they append to the logs of the store. */
function makeSite() {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const engine = shared[INTERNALS].connect();
  const appends: Append[] = [];
  const serve = (options: Partial<ServerOptions>) =>
    openServer({
      handlers: [],
      store: customStore(async () =>
        wrapEngine(await engine, ({ name, args: [log, text], run }) => {
          if (name === "append") appends.push({ log: String(log), bytes: String(text).length });
          return run();
        }, { close() {} }), { leaseMs: 60_000, pollMs: 20 }),
      clock,
      limits: testLimits({ replay: { bytes: SHARE, ms: 60_000 }, calls: { timeoutMs: Infinity } }),
      observer: { store() {} },
      ...options,
    });
  /** Returns the entries of the logs that contain large entries. Messages between instances are small. */
  const readLarge = async () => {
    const logs = new Set(appends.filter(({ bytes }) => bytes > large.length).map(({ log }) => log));
    const { signal } = new AbortController();
    const pages = await Promise.all([...logs].map(async (log) => (await engine).read(log, { limit: 1000, signal })));
    return pages.flatMap(({ entries }) => entries.map(({ value }) => value.length));
  };
  return { clock, appends, serve, readLarge };
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0);

type Target = Pick<ReturnType<typeof createServer>, "fetch">;

/** Sends a message of revision 2025-11-25. */
async function send(server: Target, message: object, session?: string): Promise<Response> {
  const named: Record<string, string> = session ? { "mcp-session-id": session, "mcp-protocol-version": REVISION } : {};
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...named };
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  return await server.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body }), { principal });
}

const REVISION = "2025-11-25";

async function begin(server: Target): Promise<string> {
  const clientInfo = { name: "client", version: "1.0.0" };
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
  const response = await send(server, { id: 1, method: "initialize", params });
  await response.text();
  const session = response.headers.get("mcp-session-id") ?? "";
  await (await send(server, { method: "notifications/initialized" }, session)).text();
  return session;
}

Deno.test("messages that an instance forwards do not outlive their charge, whichever instance forwards further messages", async () => {
  const { clock, serve, readLarge } = makeSite();
  const [a, b] = [serve({}), serve({})];
  const sessions = await Promise.all(Array.from({ length: 10 }, () => begin(a)));
  let id = 0;
  const cancel = async (server: Target, session: string, reason: string) => {
    const params = { requestId: `unknown ${++id}`, reason };
    const response = await send(server, { method: "notifications/cancelled", params }, session);
    await response.text();
    return response.status === 202;
  };
  let accepted = 0;
  for (let round = 0; round < 30; round++) {
    for (let at = round; await cancel(a, sessions[at % sessions.length], large); at++) accepted++;
    // Each log gets further messages on another instance.
    for (const session of sessions) assert(await cancel(b, session, "short"));
    const bytes = sum(await readLarge());
    assert(bytes <= SHARE, `${bytes} bytes in round ${round}`);
    await clock.advance(50_000);
  }
  assert(accepted >= 15, `${accepted} messages`);
});

Deno.test("the log of a long stream contains only events that are charged", async () => {
  const { clock, appends, serve, readLarge } = makeSite();
  const rounds = 24;
  let next = gate();
  let isDone = false;
  await using server = serve({
    handlers: [
      tool({
        name: "work",
        async run(_input, ctx) {
          for (let i = 1; i <= rounds; i++) {
            await ctx.progress(i, { message: large });
            await next.pass;
            next = gate();
          }
          isDone = true;
        },
      }),
    ],
  });
  const session = await begin(server);
  const params = { name: "work", arguments: {}, _meta: { progressToken: 1 } };
  const { body } = await send(server, { id: 2, method: "tools/call", params }, session);
  const reading = body?.pipeTo(new WritableStream());
  const sizes: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = appends.length;
    next.open();
    await until(() => appends.length > before, "the event is in the log");
    sizes.push(sum(await readLarge()));
    await clock.advance(60_000);
  }
  assert(Math.max(...sizes) <= SHARE, `${sizes}`);
  const stored = appends.filter(({ bytes }) => bytes > large.length).length;
  assert(stored >= 6, `${stored} events`);
  await until(() => {
    next.open();
    return isDone;
  }, "the end of the handler");
  await reading;
});

Deno.test("messages to the process that runs a task are removed after the process has received them", async () => {
  const { clock, serve, readLarge } = makeSite();
  const form = z.object({ text: z.string() });
  const { pass, open } = gate();
  const handlers = [
    tasks(),
    tool({
      name: "work",
      use: [task()],
      async run(_input, ctx) {
        const { content } = await ctx.elicit("who", { message: "Who?", schema: form });
        await pass;
        return content?.text.length;
      },
    }),
  ];
  const options = { handlers, limits: {} };
  const [a, b] = [serve(options), serve({ ...options, handlers: [tasks(), handlers[1]] })];
  const [near, far] = [
    await connectTest(a, { ...asking, principal }),
    await connectTest(b, { ...asking, principal }),
  ];
  const { taskId } = await near.request("tools/call", { name: "work", arguments: {} }, { finish: false });
  const read = async (client: typeof near) => await client.request("tasks/get", { taskId });
  await until(async () => (await read(far)).status === "input_required", "the question");
  const who = { action: "accept", content: { text: large } };
  await far.request("tasks/update", { taskId, inputResponses: { who } });
  await until(async () => (await read(near)).status === "working", "the answer");
  assertEquals((await readLarge()).length, 1);
  await clock.advance(60_000);
  await until(async () => !(await readLarge()).length, "the message was removed");
  open();
  await until(async () => (await read(near)).status === "completed", "the end");
  for (const each of [near, far, a, b]) await each.close();
});
