// After clients have sent, read and disconnected at random moments, the server has released their memory.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { turn, until } from "../support/behaviour.ts";
import { type Random, random } from "../support/random.ts";
import { toRequest } from "../support/requests.ts";
import { any, soon, toListen } from "./attack.ts";
import { testLimits } from "../support/limits.ts";
import { openServer } from "../support/servers.ts";
import { startSession, toCall } from "./unread.ts";

const CLIENTS = 4;
const LOG_LEVEL = { "io.modelcontextprotocol/logLevel": "info" };
/** Limits that are low enough for the random clients to reach. */
const limits = testLimits({
  calls: { runningPerClient: 3, running: 8, waiting: 8, timeoutMs: 300 },
  memory: { bytesPerClient: 1_500_000, bytes: 4_000_000 },
  request: { allBodiesBytes: 700_000, bodyMs: 200 },
  connections: { streamsPerClient: 4, streams: 10 },
  streams: { writeMs: 300, heartbeatMs: 400 },
});

function start(path: string) {
  const handlers = [
    tool({ name: "quick", input: any, run: () => "quick" }),
    tool({ name: "large", input: any, run: () => "x".repeat(300_000) }),
    tool({
      name: "slow",
      input: any,
      async run(_input, { signal, log }) {
        for (let i = 0; i < 4 && !signal.aborted; i++) {
          await turn(i);
          await log.info("x".repeat(5000));
        }
        return "x".repeat(50_000);
      },
    }),
    tool({
      name: "hold",
      input: any,
      run: (_input, { signal }) =>
        new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve(""))),
    }),
  ];
  return openServer({ path, handlers, limits, observer: { fault() {} } });
}

/** Creates a body that arrives in chunks, and randomly stops or ends with an error. */
function toBody(bytes: Uint8Array, { below }: Random): ReadableStream {
  const pieces = 1 + below(5);
  const failsAt = below(2) ? below(6) : -1;
  const stopsAt = below(20) ? -1 : 1;
  let count = 0;
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      if (below(2)) await turn(below(8));
      if (count === stopsAt) return await new Promise(() => {});
      if (count++ === failsAt) return controller.error(new Error("the client left"));
      if (sent >= bytes.length) return controller.close();
      const end = count >= pieces ? bytes.length : sent + Math.ceil(bytes.length / pieces);
      controller.enqueue(bytes.slice(sent, end));
      sent = end;
    },
  });
}

/** Reads a response in a randomly chosen way, and disconnects. */
async function read(body: ReadableStream<Uint8Array> | null, { below }: Random): Promise<void> {
  const reader = body?.getReader();
  const way = below(10);
  // Fixed wait: a client that reads its response late.
  if (way === 0) await new Promise((resolve) => setTimeout(resolve, 500)); // Longer than the server's timeouts.
  for (let i = way < 3 ? 0 : below(40); i > 0; i--) {
    if ((await soon(reader?.read() ?? Promise.resolve(undefined), 20))?.done) return;
  }
  await turn(below(20));
  await reader?.cancel();
}

for (const prefix of ["", "/:tenant"]) {
  Deno.test(`no memory stays charged after clients of ${prefix || "one path"} have disconnected at random moments`, async () => {
    await using server = start(`${prefix}/mcp`);
    const { fetch } = httpSse(server, { path: `${prefix}/sse`, messages: `${prefix}/messages` });
    const { engine: { accounts, scheduler, core } } = server[INTERNALS];
    const act = async (seed: number) => {
      const dice = random(seed);
      const { below, pick } = dice;
      const info = { principal: { id: `p${below(CLIENTS)}` } };
      const base = `http://localhost${prefix && `/t${below(3)}`}`;
      const text = "x".repeat(below(60) ** 3);
      const call = { name: pick(["quick", "large", "slow", "hold"]), arguments: { text }, _meta: LOG_LEVEL };
      const request = toRequest("tools/call", call);
      const bytes = new Uint8Array(await request.arrayBuffer());
      const headers = new Headers(request.headers);
      if (below(2)) headers.set("content-length", `${bytes.length}`);
      const init = () => ({ method: "POST", headers, body: toBody(bytes, dice), duplex: "half" });
      const way = below(10);
      if (way === 0) {
        const { body } = await fetch(new Request(`${base}/mcp`, toListen()), info);
        return await read(body, dice);
      }
      if (way > 4) {
        const { body } = await fetch(new Request(`${base}/mcp`, init()), info);
        return await read(body, dice);
      }
      const { status, body } = await fetch(new Request(`${base}/sse`), info);
      if (status !== 200 || !body) return await body?.cancel();
      const [forClient, copy] = [body, new TextDecoder()];
      const reader = forClient.getReader();
      const [, address] = /data: (\S+)/.exec(copy.decode((await reader.read()).value)) ?? [];
      reader.releaseLock();
      const post = async () => await (await fetch(new Request(`http://localhost${address}`, init()), info)).text();
      await Promise.all([post(), post(), read(body, dice)]);
    };
    const all = Array.from({ length: 150 }, async (_, seed) => {
      await turn(seed);
      await act(seed);
    });
    await soon(Promise.all(all));
    const clients = Array.from({ length: CLIENTS }, (_, i) => `principal p${i}`);
    const pots = [accounts.memory, accounts.streams, accounts.running];
    const count = () => [
      accounts.memory.used,
      accounts.streams.used,
      scheduler.waiting,
      scheduler.refused.size,
      scheduler.busyServers().size,
      // Count the known clients instead of all accounts, because used paths keep accounts in memory.
      clients.filter((key) => pots.some((pot) => accounts.find(key).amount(pot))).length,
    ];
    const none = [0, 0, 0, 0, 0, 0];
    await until(() => `${count()}` === `${none}`, "everything is released").catch(() => {});
    assertEquals(count(), none);
    await until(() => core.ticker.size === 0, "no timer is left");
    // To check that all slots are free, start five calls: three calls run, and two calls wait.
    const holds = Array.from({ length: 5 }, () => {
      const url = `http://localhost${prefix && "/t0"}/mcp`;
      return fetch(new Request(url, toRequest("tools/call", { name: "hold" })), { principal: { id: "p0" } });
    });
    await until(() => scheduler.waiting === 2, "three calls run");
    for (const { body } of await Promise.all(holds)) await body?.cancel();
  });
}

// The server releases all resources of clients that have disconnected. This is a short version of `deno task soak`.

Deno.test("the server releases all resources after valid calls, invalid messages, failures, sessions and disconnects", async () => {
  const counts = { started: 0, ended: 0 };
  const hold = tool({
    name: "hold",
    async run(_input, { signal }) {
      counts.started++;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      counts.ended++;
      return "";
    },
  });
  const fail = tool({
    name: "fail",
    run() {
      throw new Error("on purpose");
    },
  });
  const quick = tool({ name: "quick", run: () => "quick" });
  const handlers = [hold, fail, quick];
  const server = openServer({ handlers, limits: { connections: { sessions: 20 } }, observer: { fault() {} } });
  const url = "http://127.0.0.1/mcp";
  const send = (init: RequestInit) => {
    const request = new Request(url, { method: "POST", ...init });
    request.headers.set("host", "127.0.0.1");
    return server.fetch(request);
  };
  const fetchHere: typeof fetch = (_url, init) => send(init ?? {});
  const statuses = new Map<number, number>();
  const finish = async (init: RequestInit) => {
    const response = await send(init);
    await response.text();
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
  };
  await Promise.all(Array.from({ length: 50 }, async (_, i) => {
    const session = await startSession(url, fetchHere);
    await finish(toCall("quick"));
    await finish(toCall("quick", { session }));
    await finish(toCall("fail", { session }));
    await finish({ ...toCall("quick"), body: "{" });
    const { body } = await send(toCall("hold", { id: `${i}` }));
    await body?.cancel();
    const visit = await server.fetch(
      new Request(url, { headers: { host: "127.0.0.1", accept: "text/event-stream", "mcp-session-id": session } }),
    );
    await visit.body?.cancel();
  }));
  const { streams } = (await server[INTERNALS].http.endpoint.load()).parts;
  await until(() => counts.ended === 50 && streams.size === 0, "all streams are gone");
  assertEquals([counts.started, statuses.get(400)], [50, 50]);
  // Only the timer of the session sweep remains after the timers of bodies and streams have ended.
  await until(() => streams.ticker.size <= 1, "no timer but the session sweep");
  await server.close();
  await until(() => streams.ticker.size === 0, "no timer");
});
