// Measures request bodies that are too large, that never arrive completely, or that are expensive to parse.
import { toCall, toWire } from "../hostile/unread.ts";
import { all, atMost, type Figure } from "./figure.ts";
import { mib, ping, quantile, readRss, type Runtime, sleep, startLoaded } from "./processes.ts";

const LIMIT = 4 * 2 ** 20;
const encoder = new TextEncoder();

function toHead(port: number, lines: string): string {
  const { headers } = toCall("quick");
  const all = Object.entries({ host: `127.0.0.1:${port}`, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST /mcp HTTP/1.1\r\n${all.join("")}${lines}\r\n`;
}

/** Waits for a status line, or for the end of the connection. Returns `undefined` on a timeout. */
async function readStatus(connection: Deno.Conn, ms: number): Promise<number | "closed" | undefined> {
  const buffer = new Uint8Array(4096);
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), ms);
  const size = await Promise.race([connection.read(buffer).catch(() => null), late]);
  clearTimeout(timer);
  if (size === undefined) return;
  return size === null
    ? "closed"
    : Number(/^HTTP\/1\.1 (\d+)/.exec(new TextDecoder().decode(buffer.subarray(0, size)))?.[1]);
}

/** D18: bodies that exceed the limit, fifty at a time. */
export async function bodyLimits(runtime: Runtime): Promise<readonly Figure[]> {
  await using server = await startLoaded(runtime);
  await ping(server.url, 100);
  const good = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick","p":"${
    "x".repeat(LIMIT / 2)
  }"}}`;
  for (let i = 0; i < 20; i++) await (await fetch(server.url, { ...toCall("quick"), body: good })).text();
  const before = (await server.stats()).rss;
  let peak = before;
  const watch = setInterval(() => peak = Math.max(peak, readRss(server.pid)), 5);
  const chunk = encoder.encode(`10000\r\n${"x".repeat(65_536)}\r\n`);
  const chunked = await Promise.all(Array.from({ length: 50 }, async () => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await connection.write(encoder.encode(toHead(server.port, "transfer-encoding: chunked\r\n")));
    let crossed = Infinity;
    let isOver = false;
    const answer = readStatus(connection, 30_000).then((status) => {
      isOver = true;
      return { status, ms: performance.now() - crossed };
    });
    for (let sent = 0; sent < 20 * 2 ** 20 && !isOver; sent += 65_536) {
      if (sent > LIMIT && crossed === Infinity) crossed = performance.now();
      try {
        for (let at = 0; at < chunk.length;) at += await connection.write(chunk.subarray(at));
      } catch {
        break;
      }
    }
    const result = await answer;
    connection.close();
    return result;
  }));
  const peakChunked = peak;
  await sleep(500);
  peak = (await server.stats()).rss;
  const base = peak;
  const huge = await Promise.all(Array.from({ length: 50 }, async () => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    const start = performance.now();
    await connection.write(encoder.encode(toHead(server.port, "content-length: 10000000000\r\n") + "{"));
    const status = await readStatus(connection, 5000);
    connection.close();
    return { status, ms: performance.now() - start };
  }));
  clearInterval(watch);
  const refused = (list: readonly { readonly status: unknown }[]) =>
    list.filter(({ status }) => status === 413 || status === 503 || status === "closed").length;
  const late = chunked.map(({ ms }) => Math.max(0, ms)).filter((ms) => ms < Infinity);
  return [
    all("50 bodies of 20 MiB in chunks: refused", refused(chunked), 50),
    atMost("the same: slowest refusal after the limit, all at once", Math.max(...late), 50, "ms"),
    atMost("the same: most memory gained", (peakChunked - before) / 2 ** 20, 10, "MiB", 1),
    all("50 bodies that declare 10 GB: refused", refused(huge), 50),
    atMost("the same: slowest refusal", Math.max(...huge.map(({ ms }) => ms)), 50, "ms"),
    atMost("the same: most memory gained", (peak - base) / 2 ** 20, 10, "MiB", 1),
  ];
}

/** Measures another client's calls in several rounds. Returns the median of the rounds' slowest 1 %. */
async function measurePings(url: string): Promise<number> {
  const turns: number[] = [];
  for (let i = 0; i < 5; i++) turns.push(quantile(await ping(url, 500), 0.99));
  return quantile(turns, 0.5);
}

/** D19: clients that stop sending in the middle of a request. */
export async function stalledClients(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  await using server = await startLoaded(runtime, isQuick ? { request: { bodyMs: 3000 } } : {});
  const { port } = server;
  await ping(server.url, 200);
  const quiet = await measurePings(server.url);
  const whole = toWire(port, toCall("quick"));
  const kinds = [
    ["that send nothing", ""],
    ["that stall in the head", whole.slice(0, 100)],
    ["that stall in the body", whole.slice(0, -20)],
    ["that stall in a body in chunks", toHead(port, "transfer-encoding: chunked\r\n") + '5\r\n{"a":'],
  ] as const;
  const start = performance.now();
  const open = await Promise.all(kinds.map(async ([what, text]) => ({
    what,
    list: await Promise.all(Array.from({ length: 200 }, async () => {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port });
      if (text) await connection.write(encoder.encode(text));
      const state: { answered?: number; closed?: number } = {};
      (async () => {
        const buffer = new Uint8Array(4096);
        for (let size = await connection.read(buffer); size !== null; size = await connection.read(buffer)) {
          state.answered ??= performance.now() - start;
        }
        state.closed = performance.now() - start;
      })().catch(() => state.closed = performance.now() - start);
      return { connection, state };
    })),
  })));
  const busy = await measurePings(server.url);
  await sleep(isQuick ? 6000 : 50_000);
  const figures: Figure[] = [
    atMost(
      "800 stalled clients: slowest 1 % of another client, to before",
      busy / quiet,
      1.5,
      "×",
      2,
    ),
  ];
  for (const { what, list } of open) {
    const done = list.flatMap(({ state }) => state.answered ?? state.closed ?? []);
    const closed = list.filter(({ state }) => state.closed !== undefined).length;
    const latest = done.length ? ` by ${(Math.max(...done) / 1000).toFixed(0)} s` : "";
    const value = `${done.length} answered or closed${latest}, ${closed} closed`;
    const isBody = what.includes("body");
    figures.push({
      what: `200 clients ${what}`,
      aim: isBody ? "all, ≤ 45 s" : "–",
      value,
      holds: isBody ? done.length === 200 && Math.max(...done) < 45_000 : undefined,
    });
    for (const { connection } of list) {
      try {
        connection.close();
      } catch {
        // The other side closed the connection first.
      }
    }
  }
  return figures;
}

/** D21: one expensive request while another client makes calls. */
export async function fairness(runtime: Runtime): Promise<readonly Figure[]> {
  await using server = await startLoaded(runtime);
  await ping(server.url, 300);
  const quiet = await ping(server.url, 300);
  const keys = Array.from({ length: 200_000 }, (_, i) => `"k${i}":${i}`).join(",");
  const heavy = toCall("echo", { args: { word: "KEYS" } });
  const body = heavy.body.replace('"word":"KEYS"', `"word":"w",${keys}`);
  const during: number[] = [];
  for (let i = 0; i < 7; i++) {
    const done = fetch(server.url, { ...heavy, body }).then((response) => response.text());
    let isOver = false;
    done.then(() => isOver = true);
    let slowest = 0;
    while (!isOver) slowest = Math.max(slowest, ...await ping(server.url, 1));
    during.push(slowest);
    await done;
  }
  const large = { ...toCall("echo", { args: { word: "x" } }) };
  const padded = large.body.replace('"word":"x"', `"word":"${"x".repeat(LIMIT - large.body.length - 10)}"`);
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const start = performance.now();
    await (await fetch(server.url, { ...large, body: padded })).text();
    times.push(performance.now() - start);
  }
  return [
    atMost(
      "a request with 200,000 keys: slowest answer of another client meanwhile (median of 7)",
      quantile(during, 0.5),
      150,
      "ms",
    ),
    { what: "the same client alone, slowest 1 %", aim: "–", value: `${quantile(quiet, 0.99).toFixed(1)} ms` },
    atMost(
      `a body of ${mib(padded.length)} MiB, read, echoed and read by the client: median`,
      quantile(times, 0.5),
      60,
      "ms",
    ),
  ];
}
