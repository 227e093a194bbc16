// Measures clients that do not read, that disconnect, or that are idle.
import { META } from "../hostile/http.ts";
import { startProxy } from "../hostile/proxy.ts";
import { openUnread, toWire, type Unread } from "../hostile/unread.ts";
import { all, atMost, type Figure } from "./figure.ts";
import {
  type Loaded,
  mib,
  ping,
  quantile,
  type Runtime,
  sleep,
  startLoaded,
  startSession,
  toCall,
} from "./processes.ts";

const MB = 31;

function toFlood(session?: string) {
  const args = { kb: 4, count: MB * 256 };
  return toCall("flood", { session, args, meta: { [`${META}logLevel`]: "info" } });
}

function openFloods(server: Loaded, clients: number, isSession: boolean): Promise<readonly Unread[]> {
  return Promise.all(Array.from({ length: clients }, async () => {
    const session = isSession ? await startSession(server.url, fetch) : undefined;
    return await openUnread(server.port, toWire(server.port, toFlood(session)));
  }));
}

/**
 * Warms up the server with clients that read everything, as many as the clients that will stall, so that the runtime
 * already has its traffic buffers.
 */
async function warm(server: Loaded, clients: number, isSession: boolean): Promise<void> {
  for (let round = 0; round < 2; round++) {
    await Promise.all(Array.from({ length: clients }, async () => {
      const response = await fetch(server.url, toFlood(isSession ? await startSession(server.url, fetch) : undefined));
      for await (const _ of response.body ?? []);
    }));
  }
  await sleep(1000);
}

/**
 * Measures the memory gained while clients stall, in MiB, and the number of handlers that were released after the given
 * seconds.
 */
async function measureSlow(runtime: Runtime, clients: number, isWarm: boolean, isSession: boolean) {
  await using server = await startLoaded(runtime);
  await ping(server.url, 100);
  if (isWarm) await warm(server, clients, isSession);
  const base = await server.stats();
  const open = await openFloods(server, clients, isSession);
  const start = performance.now();
  let rss = 0;
  for (let i = 0; i < 5; i++) {
    await sleep(1000);
    rss = Math.max(rss, (await server.stats()).rss);
  }
  let stats = await server.stats();
  // Closing a session's stream does not cancel its call, which continues without a reader.
  const gone = () => isSession ? stats.ended - base.ended : stats.aborted - base.aborted;
  const standing = clients - gone();
  while (isWarm && gone() < clients && performance.now() - start < 45_000) {
    await sleep(250);
    stats = await server.stats();
  }
  const seconds = (performance.now() - start) / 1000;
  for (const client of open) client.close();
  return { grown: (rss - base.rss) / 2 ** 20, standing, gone: gone(), seconds };
}

/** Measures how much stalled clients slow down another client. Rounds with and without stalled clients alternate. */
async function measureBeside(runtime: Runtime, clients: number, rounds: number) {
  await using server = await startLoaded(runtime);
  await ping(server.url, 2000);
  await warm(server, clients, false);
  const [quiet, busy]: [number[], number[]] = [[], []];
  for (let i = 0; i < rounds; i++) {
    quiet.push(quantile(await ping(server.url, 1000), 0.99));
    const open = await openFloods(server, clients, false);
    // Continue until the system's buffers are full, so that backpressure pauses the handler.
    for (let taken = -1, now = 0; taken !== now;) {
      await sleep(500);
      taken = now;
      now = await server.control("taken");
    }
    busy.push(quantile(await ping(server.url, 1000), 0.99));
    for (const client of open) client.close();
    for (let stats = await server.stats(); stats.started > stats.ended; stats = await server.stats()) await sleep(100);
    await sleep(300);
  }
  return { ratio: quantile(busy, 0.5) / quantile(quiet, 0.5), quiet: quantile(quiet, 0.5) };
}

/** D4: clients that never read. */
export async function slowReaders(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const clients of [5, 50]) {
    const one = await measureSlow(runtime, clients, true, false);
    const session = await measureSlow(runtime, clients, true, true);
    const cold = await measureSlow(runtime, clients, false, false);
    const rounds = isQuick ? 3 : 9;
    const beside = await measureBeside(runtime, clients, rounds);
    const what = `${clients} clients that never read, ${MB} MB offered to each`;
    figures.push(
      all(`${what}: handlers that wait after 5 s`, one.standing, clients),
      atMost(`${what}: memory gained, after as many have read`, one.grown, 16, "MiB", 1),
      all(`${what}: handlers aborted by 45 s`, one.gone, clients),
      atMost(`${what}: the last of these`, one.seconds, 35, "s"),
      atMost(`${what}: memory gained by sessions, after as many have read`, session.grown, 16, "MiB", 1),
      all(`${what}: handlers of sessions that ended by 45 s`, session.gone, clients),
      { what: `${what}: memory gained in a fresh process`, aim: "–", value: `${cold.grown.toFixed(1)} MiB` },
      atMost(
        `${what}: slowest 1 % of another client, to without them (medians of ${rounds} turns of each)`,
        beside.ratio,
        1.5,
        "×",
        2,
      ),
      { what: `${what}: that slowest 1 % without them`, aim: "–", value: `${beside.quiet.toFixed(2)} ms` },
    );
  }
  return figures;
}

/** D5: clients that disconnect after their call has started. */
export async function disconnects(runtime: Runtime): Promise<readonly Figure[]> {
  await using server = await startLoaded(runtime);
  await ping(server.url, 50);
  const figures: Figure[] = [];
  let n = 0;
  for (const size of [100, 100_000]) {
    for (const speaks of [false, true]) {
      const closedAt = new Map<string, number>();
      for (let wave = 0; wave < 20; wave++) {
        const clients = await Promise.all(Array.from({ length: 5 }, async () => {
          const id = `${++n}`;
          const args = { n: id, ms: 20_000, speaks, padding: "x".repeat(size) };
          const call = toCall("hold", { args, meta: { progressToken: 1 } });
          return { id, client: await openUnread(server.port, toWire(server.port, call)) };
        }));
        await Promise.all(clients.map(async ({ id, client }) => {
          if (speaks) await client.read((text) => text.includes("data:"));
          else while (!await server.control(`begun_${id}`));
          closedAt.set(id, performance.timeOrigin + performance.now());
          client.close();
        }));
      }
      await sleep(1000);
      const aborted = await server.control<Record<string, number>>("aborted");
      const times = [...closedAt].flatMap(([id, at]) => id in aborted ? aborted[id] - at : []);
      // The clocks of the two processes differ by less than 20 ms. A call that was aborted more than 20 ms before the
      // disconnect was aborted for another reason.
      const early = times.filter((ms) => ms < -20).length;
      const what = `100 clients leave, ${size} B, ${speaks ? "after" : "before"} the first byte`;
      figures.push(all(`${what}: aborted`, times.length - early, 100));
      figures.push(atMost(`${what}: slowest abort`, Math.max(0, ...times), 250, "ms"));
    }
  }
  return figures;
}

/** D6: streams that stay idle. */
export async function quietStreams(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  const ms = isQuick ? 20_000 : 600_000;
  await using server = await startLoaded(runtime);
  const proxy = startProxy(server.port, 30_000);
  const start = performance.now();
  const streams = await Promise.all([server.port, proxy.port].flatMap((port) => {
    const url = `http://127.0.0.1:${port}/mcp`;
    const { headers, body } = toCall("");
    const message = JSON.parse(body);
    const params = { ...message.params, notifications: { resourceSubscriptions: ["load://one"] } };
    const session = startSession(url, fetch);
    const kinds: readonly (() => RequestInit | Promise<RequestInit>)[] = [
      () => toCall("hold", { args: { ms } }),
      async () => toCall("hold", { args: { ms }, session: await session }),
      () => toCall("hold", { args: { ms }, accept: "application/json" }),
      async () => ({ headers: { accept: "text/event-stream", "mcp-session-id": await session } }),
      () => ({
        method: "POST",
        headers: { ...headers, "mcp-method": "subscriptions/listen" },
        body: JSON.stringify({ ...message, method: "subscriptions/listen", params }),
      }),
    ];
    return kinds.map(async (make) => {
      const sent = performance.now();
      const response = await fetch(url, await make());
      const reader = response.body?.getReader();
      const times: number[] = [];
      let last = sent;
      let first = 0;
      let isAlive = true;
      let end = "";
      const decoder = new TextDecoder();
      (async () => {
        for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
          first ||= performance.now() - sent;
          times.push(performance.now() - last);
          last = performance.now();
          end = (end + decoder.decode(read.value, { stream: true })).slice(-500);
        }
      })().catch(() => {}).finally(() => isAlive = false);
      return { times, isAlive: () => isAlive, first: () => first, end: () => end };
    });
  }));
  while (performance.now() - start < ms - 1000) await sleep(500);
  const alive = streams.filter(({ isAlive }) => isAlive()).length;
  await sleep(3000);
  proxy.stop();
  const minutes = ms / 60_000;
  const what = `${minutes.toFixed(1)} min of silence on ${streams.length} streams, half of them behind a proxy`;
  return [
    all(`${what}: alive at the end`, alive, streams.length),
    all(`${what}: calls that then got their result`, streams.filter(({ end }) => end().includes('"held"')).length, 6),
    atMost(`${what}: latest first byte`, Math.max(...streams.map(({ first }) => first())), 100, "ms"),
    atMost(
      `${what}: longest gap between comments`,
      Math.max(...streams.flatMap(({ times }) => times)) / 1000,
      8.5,
      "s",
      1,
    ),
    { what: `${what}: memory`, aim: "–", value: `${mib((await server.stats()).rss)} MiB` },
  ];
}
