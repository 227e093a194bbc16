// Measures the cost of sessions, and tests the isolation of clients that use the same ids.
import { toCall as toAnyCall } from "../hostile/unread.ts";
import { all, atMost, type Figure } from "./figure.ts";
import { type Loaded, quantile, type Runtime, sleep, startLoaded, startSession, toWords } from "./processes.ts";

async function pingSession({ url }: Loaded, session: string): Promise<Response> {
  const { headers } = toAnyCall("", { session });
  return await fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }) });
}

/** Repeats an action `count` times, up to sixteen at a time. Returns the milliseconds that each repetition took. */
async function repeat(count: number, work: (i: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  let next = 0;
  await Promise.all(Array.from({ length: 16 }, async () => {
    for (let i = next++; i < count; i = next++) {
      const start = performance.now();
      await work(i);
      times.push(performance.now() - start);
    }
  }));
  return times;
}

/** D7: memory and time per session. */
export async function sessionCost(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  {
    await using server = await startLoaded(runtime, { connections: { sessionIdleMs: 5000 } });
    for (let i = 0; i < 1000; i++) await (await pingSession(server, await startSession(server.url, fetch))).text();
    await sleep(isQuick ? 0 : 65_000);
    const before = await server.stats();
    const count = 5000;
    const sessions: string[] = [];
    const start = performance.now();
    await repeat(count, async () => sessions.push(await startSession(server.url, fetch)));
    const rate = count / (performance.now() - start) * 1000;
    const made = await server.stats();
    await repeat(count, async (i) => await (await pingSession(server, sessions[i])).text());
    const kept = await server.stats();
    figures.push({ what: "sessions made", aim: "≥ 2000 /s", value: `${rate.toFixed(0)} /s`, holds: rate >= 2000 });
    figures.push(
      atMost("memory of a session after the handshake only", Math.max(0, made.heap - before.heap) / count, 8192, "B"),
    );
    figures.push(atMost("memory of a session that was used", (kept.heap - before.heap) / count, 8192, "B"));
    figures.push({
      what: "the same by resident memory",
      aim: "–",
      value: `${((kept.rss - before.rss) / count).toFixed(0)} B`,
    });
    if (!isQuick) {
      await sleep(130_000);
      const after = await server.stats();
      figures.push(atMost("heap after they were idle for too long, to before", after.heap / before.heap, 1.1, "×", 2));
      figures.push(atMost("resident memory after that, to before", after.rss / before.rss, 1.1, "×", 2));
    }
  }
  await using full = await startLoaded(runtime, { connections: { sessions: 100 } });
  // Keep the responses, because an unreferenced response is garbage collected together with its stream.
  const streams: Response[] = [];
  await repeat(100, async () => {
    const headers = { accept: "text/event-stream", "mcp-session-id": await startSession(full.url, fetch) };
    streams.push(await fetch(full.url, { headers }));
  });
  const beyond: string[] = [];
  for (let i = 0; i < 200; i++) beyond.push(await startSession(full.url, fetch));
  let refused = 0;
  const times: number[] = [];
  for (const session of beyond) {
    const start = performance.now();
    const response = await pingSession(full, session);
    await response.text();
    times.push(performance.now() - start);
    if (response.status === 503 && response.headers.has("retry-after")) refused++;
  }
  for (const { body } of streams) await body?.cancel();
  figures.push(all("sessions beyond the limit, while all are busy: refused with 503", refused, 200));
  figures.push(atMost("such a refusal, slowest 1 %", quantile(times, 0.99), 5, "ms", 1));
  return figures;
}

interface Crossed {
  readonly answers: number;
  readonly wrong: number;
  readonly pairs: number;
  readonly crossed: number;
  readonly rate: number;
}

/** Runs crosstalk.ts, which has a server and clients in one process. */
async function cross(runtime: Runtime, answers: number, pairs: number): Promise<Crossed> {
  const file = new URL("crosstalk.ts", import.meta.url).pathname;
  const [command, ...args] = toWords(runtime, file, String(answers), String(pairs));
  const { stdout, stderr } = await new Deno.Command(command, { args }).output();
  const text = new TextDecoder().decode(stdout);
  if (!text.startsWith("{")) throw new Error(new TextDecoder().decode(stderr));
  return JSON.parse(text);
}

/** D9: pairs of concurrent calls that share an id and a progress token. */
export async function samePairs(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  const { pairs, crossed } = await cross(runtime, 0, isQuick ? 1000 : 10_000);
  return [
    all(
      "pairs of one id and one token in flight on one session: both answered, none mixed up",
      pairs - crossed,
      pairs,
    ),
  ];
}

/** D8: clients that share ids, in one process and over real connections. */
export async function crossTalk(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  const crossed = await cross(runtime, isQuick ? 50_000 : 1_000_000, 0);
  await using server = await startLoaded(runtime);
  const sessions = await Promise.all(Array.from({ length: 20 }, () => startSession(server.url, fetch)));
  const count = isQuick ? 2000 : 50_000;
  let wrong = 0;
  let sent = 0;
  const start = performance.now();
  await Promise.all(Array.from({ length: 64 }, async (_, i) => {
    while (sent < count) {
      const word = `word ${sent++}`;
      const session = i % 2 ? sessions[i % 20] : undefined;
      const answer = await (await fetch(server.url, toAnyCall("echo", { session, args: { word } }))).json();
      if (answer.result?.content[0].text !== word) wrong++;
    }
  }));
  const rate = count / (performance.now() - start) * 1000;
  return [
    all("responses in one process to requests numbered 1", crossed.answers - crossed.wrong, crossed.answers),
    all("the same over 64 connections", count - wrong, count),
    {
      what: "the same: responses per second, with the driver on the same machine",
      aim: "–",
      value: `${rate.toFixed(0)} /s`,
    },
  ];
}
