// `deno task soak [--minutes N] [--runtime deno|bun]`: mixed load on a server, with clients that disconnect, send
// invalid messages and abandon sessions. Fails if a response is wrong, or if memory or the number of files, timers,
// streams or map entries grows.
import { META, toMeta } from "../hostile/http.ts";
import { readData } from "../hostile/unread.ts";
import { readTaskOptions } from "../../bench/options.ts";
import { readNumber } from "../support/options.ts";
import { random } from "../support/random.ts";
import { countFiles, type Loaded, mib, RUNTIMES, sleep, startLoaded, startSession, toCall } from "./processes.ts";
import type { Stats } from "./program.ts";

const WORKERS = 24;
/**
 * Sessions are few and expire soon, so that many sessions start and end within a run. All load comes from one address,
 * so one client can use all of each limit. A call that a client aborts in a session continues for up to three seconds.
 */
const LIMITS = {
  connections: { sessions: 1000, sessionIdleMs: 20_000 },
  sessions: { openPerClient: 1000, lifeMs: 60_000 },
  replay: { ms: 20_000 },
  calls: { timeoutMs: 20_000 },
};
const SESSION_SWEEP_MS = 60_000;
/** Normal variation of memory between two samples, in bytes. */
const NOISE = 8 * 2 ** 20;

interface Counts {
  /** The number of requests that were sent, by kind. */
  readonly sent: Record<string, number>;
  /** Unexpected responses. */
  readonly wrong: string[];
}

interface Sample extends Stats {
  /** Seconds since the start of the load. */
  readonly at: number;
  readonly files: number;
}

type Work = (server: Loaded, seed: number) => Promise<string | undefined>;

/** Returns the messages in a response, which is JSON or a stream. */
function readMessages(
  text: string,
): { readonly result?: unknown; readonly error?: { readonly code: number }; readonly params?: unknown }[] {
  const messages = text.startsWith("{") || text.startsWith("\n") ? [JSON.parse(text)] : readData(text);
  return messages.map((message) => Object(message));
}

const textOf = (message: { readonly result?: unknown } | undefined) =>
  Object(Object(message?.result).content?.[0]).text;

async function echo({ url }: Loaded, seed: number, session?: string, steps = 0): Promise<string | undefined> {
  const word = `word ${seed}`;
  const call = toCall("echo", { session, args: { word, steps }, meta: steps ? { progressToken: 1 } : {} });
  const messages = readMessages(await (await fetch(url, call)).text());
  const words = messages.map((message) => textOf(message) ?? Object(message.params).message);
  return words.length === steps + 1 && words.every((each) => each === word) ? undefined : `echo of ${word}: ${words}`;
}

async function abort({ url }: Loaded, seed: number, session?: string): Promise<string | undefined> {
  const stop = new AbortController();
  const padding = "x".repeat(seed % 3 ? 0 : 20_000);
  const coming = fetch(url, {
    ...toCall("hold", { session, args: { ms: 3000, speaks: seed % 2, padding }, meta: { progressToken: 1 } }),
    signal: stop.signal,
  });
  setTimeout(() => stop.abort(), seed % 120);
  const told = await coming.then((response) => response.text()).catch(() => "");
  return told.includes('"result"') ? `a response to an aborted call: ${told}` : undefined;
}

async function spoil({ url }: Loaded, seed: number): Promise<string | undefined> {
  const { below, pick } = random(seed);
  const { headers, body } = toCall("echo", { args: { word: "garbage" } });
  const bytes = new TextEncoder().encode(body);
  for (let i = 1 + below(5); i > 0; i--) bytes[below(bytes.length)] = below(256);
  const odds: readonly Readonly<Record<string, string>>[] = [
    {},
    { "mcp-method": "tools/list" },
    { accept: "text/html" },
    { "content-type": "text/plain" },
    { "mcp-session-id": "x" },
  ];
  const response = await fetch(url, { method: "POST", headers: { ...headers, ...pick(odds) }, body: bytes });
  const text = await response.text();
  return response.status >= 500 ? `garbage got ${response.status} ${text}` : undefined;
}

async function fail({ url }: Loaded, _seed: number, session?: string): Promise<string | undefined> {
  const text = await (await fetch(url, toCall("throws", { session }))).text();
  return text.includes("Internal error") && !text.includes("on purpose") ? undefined : `a thrown error got ${text}`;
}

async function ask({ url }: Loaded): Promise<string | undefined> {
  const meta = { [`${META}clientCapabilities`]: { elicitation: {} } };
  const call = toCall("ask", { meta });
  const [first] = readMessages(await (await fetch(url, call)).text());
  const message = JSON.parse(call.body);
  const { requestState } = Object(first.result);
  const params = { ...message.params, requestState, inputResponses: { sure: { action: "accept", content: {} } } };
  const body = JSON.stringify({ ...message, params });
  const [last] = readMessages(await (await fetch(url, { ...call, body })).text());
  return textOf(last) === "accept" ? undefined : `a question got ${JSON.stringify(last)}`;
}

async function read({ url }: Loaded, seed: number): Promise<string | undefined> {
  const { headers, body } = toCall("");
  const method = ["tools/list", "resources/list", "resources/read", "server/discover"][seed % 4];
  const uri = `load://${seed}`;
  const named: Readonly<Record<string, string>> = method === "resources/read" ? { "mcp-name": uri } : {};
  const message = JSON.parse(body);
  const params = { _meta: toMeta(), ...method === "resources/read" ? { uri } : {} };
  const [answer] = readMessages(
    await (await fetch(url, {
      method: "POST",
      headers: { ...headers, "mcp-method": method, ...named },
      body: JSON.stringify({ ...message, method, params }),
    })).text(),
  );
  return answer.result ? undefined : `${method} got ${JSON.stringify(answer)}`;
}

/** Subscribes for a moment, and then disconnects. */
async function listen({ url, control }: Loaded, seed: number): Promise<string | undefined> {
  const { headers, body } = toCall("");
  const message = JSON.parse(body);
  const params = { ...message.params, notifications: { resourceSubscriptions: ["load://one"] } };
  const stop = new AbortController();
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "mcp-method": "subscriptions/listen" },
    body: JSON.stringify({ ...message, method: "subscriptions/listen", params }),
    signal: stop.signal,
  });
  if (seed % 5 === 0) await control("news");
  await sleep(seed % 300);
  stop.abort();
  await response.text().catch(() => {});
  return response.status === 200 || response.status === 503 ? undefined : `a subscription got ${response.status}`;
}

/** Opens a session, and then ends or abandons the session. */
async function visit(server: Loaded, seed: number): Promise<string | undefined> {
  const { url } = server;
  const session = await startSession(url, fetch);
  const stop = new AbortController();
  const headers = { accept: "text/event-stream", "mcp-session-id": session };
  const stream = seed % 4 === 0 ? await fetch(url, { headers, signal: stop.signal }) : undefined;
  let wrong: string | undefined;
  for (let i = 0; i < 1 + seed % 5 && !wrong; i++) {
    const work = i === 2
      ? abort
      : i === 3
      ? fail
      : (server: Loaded, seed: number, session: string) => echo(server, seed, session, i);
    wrong = await work(server, seed + i, session);
  }
  if (seed % 2) await (await fetch(url, { method: "DELETE", headers })).text();
  stop.abort();
  await stream?.text().catch(() => {});
  return wrong;
}

/** The kinds of work, with their proportion in percent. */
const mix: readonly (readonly [name: string, share: number, work: Work])[] = [
  ["call", 52, (server, seed) => echo(server, seed)],
  ["call on a stream", 8, (server, seed) => echo(server, seed, undefined, 3)],
  ["given up", 10, (server, seed) => abort(server, seed)],
  ["garbage", 5, spoil],
  ["thrown", 2, (server, seed) => fail(server, seed)],
  ["question", 2, ask],
  ["list or resource", 10, read],
  ["subscription", 3, listen],
  ["session", 8, visit],
];

async function work(server: Loaded, worker: number, until: number, { sent, wrong }: Counts): Promise<void> {
  const { below } = random(worker);
  while (performance.now() < until) {
    let left = below(100);
    const [name, , run] = mix.find(([, share]) => (left -= share) < 0) ?? mix[0];
    sent[name] = (sent[name] ?? 0) + 1;
    const problem = await run(server, below(1e9)).catch((error) => `${name}: ${error}`);
    if (problem) wrong.push(problem);
  }
}

/** Returns the growth of a value per hour, by linear regression. */
function toSlope(samples: readonly Sample[], value: (sample: Sample) => number): number {
  const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
  const [x, y] = [mean(samples.map(({ at }) => at)), mean(samples.map(value))];
  const above = samples.reduce((sum, sample) => sum + (sample.at - x) * (value(sample) - y), 0);
  const below = samples.reduce((sum, sample) => sum + (sample.at - x) ** 2, 0);
  return above / below * 3600;
}

/** Returns the maps that have more entries than before and more entries than they are allowed to keep. */
function listRest(before: Sample, after: Sample): string[] {
  const ended = Object.keys(after.maps).filter((place) => place.startsWith("server/eras/legacy/session.ts")).at(-1);
  // The first map of accounts contains the pots. Some pots are created when they are first needed.
  const pots = Object.keys(after.maps).find((place) => place.startsWith("server/capacity/account.ts"));
  return Object.entries(after.maps).flatMap(([place, size]) => {
    const more = size - (before.maps[place] ?? 0);
    // List pages are created once. At its first session, the server starts to watch changes and to record the ids of
    // ended sessions. Sets of recent exchanges are replaced regularly, so the original sets are no longer used.
    const most = place === ended
      ? LIMITS.connections.sessions
      : place === pots || place.startsWith("server/visibility/pagination.ts")
      ? 10
      : 1;
    return more > most && !place.startsWith("server/transports/http/fetch.ts")
      ? [`${more} entries are left in the map of ${place}`]
      : [];
  });
}

async function soak(runtime: typeof RUNTIMES[number], minutes: number): Promise<readonly string[]> {
  await using server = await startLoaded(runtime, LIMITS);
  const sample = async (at: number): Promise<Sample> => ({
    at,
    files: countFiles(server.pid),
    ...await server.stats(),
  });
  const before = await sample(0);
  const counts: Counts = { sent: {}, wrong: [] };
  const start = performance.now();
  const end = start + minutes * 60_000;
  const working = Promise.all(Array.from({ length: WORKERS }, (_, i) => work(server, i + 1, end, counts)));
  const samples: Sample[] = [];
  const pause = Math.max(2000, Math.min(10_000, minutes * 1000));
  while (performance.now() < end - pause / 2) {
    await sleep(pause);
    samples.push(await sample((performance.now() - start) / 1000));
  }
  await working;
  // The server removes abandoned sessions once a minute, and a short run does not wait for this.
  const isShort = minutes < 1;
  const settled = performance.now() + (isShort ? 6000 : LIMITS.connections.sessionIdleMs + 2 * SESSION_SWEEP_MS);
  let after = await sample(0);
  const rest = () => isShort ? [] : listRest(before, after);
  const isLeft = (sample: Sample) =>
    sample.streams || sample.started > sample.ended || sample.timers > (isShort ? 2 : 1) || rest().length;
  while (isLeft(after) && performance.now() < settled) {
    await sleep(1000);
    after = await sample(0);
  }

  // In the first third of a run, code is compiled and pools are filled, so ignore these samples.
  const steady = samples.slice(Math.floor(samples.length / 3));
  const half = Math.floor(steady.length / 2);
  const low = (part: readonly Sample[], value: (sample: Sample) => number) => Math.min(...part.map(value));
  const grown = (value: (sample: Sample) => number) =>
    low(steady.slice(half), value) - low(steady.slice(0, half), value);
  // In a short run, the runtime is still filling its pools at the end, so only the heap counts.
  const isGrown = !isShort && grown(({ rss }) => rss) > NOISE && grown(({ heap }) => heap) > NOISE / 4;
  const total = Object.values(counts.sent).reduce((sum, each) => sum + each, 0);
  const problems = [
    ...counts.wrong.slice(0, 5),
    ...counts.wrong.length > 5 ? [`${counts.wrong.length - 5} more responses were wrong`] : [],
    ...isGrown ? [`memory grew by ${mib(grown(({ rss }) => rss))} MiB from one half of the run to the other`] : [],
    ...grown(({ heap }) => heap) > NOISE ? [`the heap grew by ${mib(grown(({ heap }) => heap))} MiB`] : [],
    // The driver keeps idle connections open for some time.
    ...after.files > before.files + WORKERS + 8 ? [`${after.files} files are open, ${before.files} were before`] : [],
    ...after.streams ? [`${after.streams} streams are left`] : [],
    // One timer remains, which forgets the ids of ended sessions after their lifetime.
    ...after.timers > (isShort ? 2 : 1) ? [`${after.timers} timers are left`] : [],
    ...after.started > after.ended ? [`${after.started - after.ended} handlers never ended`] : [],
    ...after.unhandled ? [`${after.unhandled} rejections were unhandled`] : [],
    ...server.errors() ? [`standard error: ${server.errors().slice(0, 500)}`] : [],
    ...rest(),
  ];
  console.log(
    [
      `\n## ${runtime}, ${minutes} min, ${total} requests (${Math.round(total / minutes / 60)}/s)\n`,
      `Sent: ${Object.entries(counts.sent).map(([name, count]) => `${name} ${count}`).join(", ")}.\n`,
      "| after s | RSS MiB | heap MiB | files | timers | streams | entries in maps |",
      "|--:|--:|--:|--:|--:|--:|--:|",
      ...[before, ...samples, { ...after, at: (performance.now() - start) / 1000 }].map((each) => {
        const entries = Object.values(each.maps).reduce((sum, size) => sum + size, 0);
        return `| ${each.at.toFixed(0)} | ${mib(each.rss)} | ${
          mib(each.heap)
        } | ${each.files} | ${each.timers} | ${each.streams} | ${entries} |`;
      }),
      `\nSlope after the first third: RSS ${mib(toSlope(steady, ({ rss }) => rss))} MiB/h, ` +
      `heap ${mib(toSlope(steady, ({ heap }) => heap))} MiB/h. ` +
      `Handlers: ${after.started} began, ${after.ended} ended, ${after.aborted} were aborted; ${after.faults} passed to observer.fault.`,
    ].join("\n"),
  );
  return problems;
}

const options = readTaskOptions(Deno.args, {
  name: "soak",
  summary: "Puts a mixed load on a server. Fails if an answer is wrong or if anything grows.",
  values: { "--minutes N": "Length of the run", "--runtime deno|bun": "Run on one runtime; default: both" },
});
const chosen = RUNTIMES.filter((each) => each === (options.get("--runtime") ?? each));
if (!chosen.length) throw new Error(`Cannot begin: there is no such runtime; choose from ${RUNTIMES.join(" and ")}`);
let failed = 0;
for (const each of chosen) {
  const problems = await soak(each, readNumber(options, "--minutes", 1, { hasParts: true }));
  for (const problem of problems) console.log(`\nFAILED: ${problem}`);
  if (problems.length) failed++;
}
console.log(`\n${chosen.length - failed} passed, ${failed} failed`);
Deno.exit(failed ? 1 : 0);
