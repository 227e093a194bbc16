// Runs the same calls alternately on two copies of the library in one process. Arguments: a workload as JSON, the
// number of pairs, the length of a slice in milliseconds, when the garbage is collected ("once" before all pairs, or
// before "each" pair), and for each copy, as JSON, the files of its entries and the optional features that its server
// uses, such as "service,key,observer", "layers", or "". Prints the CPU time per call for each pair in microseconds, as
// JSON. Calls need no socket: the program passes requests to `server.fetch`,
// and lines to `serveStdio`.
import process from "node:process";
import {
  handshake,
  INITIALIZED,
  type Manner,
  type Subject,
  toInitialize,
  toMessage,
  toModernAsk,
  toSessionHeaders,
} from "../asks.ts";
import { args, bun } from "./serve.ts";
import { names, pair, query, STEPS, sum, toDescription } from "./shapes.ts";
import { createLayeredServer, createUsingServer, heard, KEYED, type Library } from "./using.ts";

type Stdio = typeof import("../../src/server/transports/stdio/stdio.ts");
type Stores = typeof import("../../src/stores/stores.ts");
type OpenApi = typeof import("../../src/ready/openapi/openapi.ts");

/** What is compared: a call of {@linkcode Subject}, or a step that is not a call in a loop. */
export type Compared = Subject | "open" | "move" | "operation";
type Server = ReturnType<Library["createServer"]>;

/** Runs the calls of one turn. Resolves to the CPU time of the turn in microseconds. */
type Drive = () => Promise<number>;

const URL_OF_SERVER = "http://127.0.0.1:8000/mcp";
/**
 * Number of calls in one turn of `fetch`. In longer turns, the heap changes so much that the ratios vary three times as
 * much.
 */
const HTTP_TURN = 16;
/**
 * Number of calls in one turn over stdio. The number is higher than for `fetch`, because a call over stdio takes a
 * fifth of the time, and CPU time has a resolution of 1 µs.
 */
const STDIO_TURN = 64;
/** Number of concurrent calls over stdio. This number is below the default per-client limits. */
const LINES = 8;

/** Opens a session, and tells the server that the client is ready. */
function driveOpenings(server: Server): Drive {
  return async () => {
    const before = readCpu();
    for (let i = 0; i < HTTP_TURN; i++) await openSession(server, post);
    return readCpu() - before;
  };
}

/** Sends the first request of a session to another instance, which shares a store with the first instance. */
async function driveMoves(library: Library, { memoryStore }: Stores): Promise<Drive> {
  const store = memoryStore();
  const secret = "a secret of at least thirty-two characters";
  const [from, to] = Array.from({ length: 2 }, () => {
    const add = library.tool({ name: "add", input: pair, output: sum, run: ({ a, b }) => ({ sum: a + b }) });
    return library.createServer({ name: "bench", version: "1.0.0", secret, store, handlers: [add] });
  });
  const body = toMessage("add", "session");
  const move = async (headers: Readonly<Record<string, string>>) => await (await to.fetch(post(headers, body))).text();
  check(await move(await openSession(from, post)), "add");
  return async () => {
    const sessions = [];
    for (let i = 0; i < HTTP_TURN; i++) sessions.push(await openSession(from, post));
    const before = readCpu();
    for (const headers of sessions) await move(headers);
    return readCpu() - before;
  };
}

/** Calls an operation of a document, to which an app in this process responds. */
async function driveOperation({ createServer }: Library, { openapi }: OpenApi): Promise<Drive> {
  const parameters = [
    { name: "a", in: "path", required: true, schema: { type: "number" } },
    { name: "b", in: "query", schema: { type: "number" } },
  ];
  const paths = { "/sums/{a}": { get: { operationId: "add", parameters } } };
  const fetch = () => Response.json({ sum: 3 });
  const api = openapi({ openapi: "3.1.0", paths }, { fetch });
  return await driveHttp(createServer({ name: "bench", version: "1.0.0", handlers: [api] }), {}, "add");
}

function post(headers: Readonly<Record<string, string>>, body: string): Request {
  return new Request(URL_OF_SERVER, {
    method: "POST",
    headers: { ...headers, host: "127.0.0.1:8000", "content-length": `${body.length}` },
    body,
  });
}

function createBenchServer({ createServer, tool }: Library, subject: Subject): Server {
  const searches = names.map((name) =>
    tool({ name, description: toDescription(name), input: query, run: () => "nothing found" })
  );
  const add = tool({ name: "add", input: pair, output: sum, run: ({ a, b }) => ({ sum: a + b }) });
  const count = tool({
    name: "count",
    async run(_, ctx) {
      for (let i = 1; i <= STEPS; i++) await ctx.progress(i, { total: STEPS });
      return "counted";
    },
  });
  return createServer({ name: "bench", version: "1.0.0", handlers: subject === "list" ? searches : [add, count] });
}

function readCpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function check(text: string, subject: Subject): void {
  const isGood = subject === "list"
    ? text.split('"name":"search_').length === names.length + 1
    : text.includes(subject === "add" ? '"sum":3' : '"counted"');
  if (isGood) return;
  throw new Error(`Cannot measure: the server answered ${text.slice(0, 500)}`);
}

async function driveHttp(
  server: Server,
  own: Readonly<Record<string, string>>,
  subject: Subject,
): Promise<Drive> {
  const send = (headers: Readonly<Record<string, string>>, body: string) => post({ ...headers, ...own }, body);
  const headers = manner === "modern"
    ? subject === "list" ? toModernAsk("tools/list").headers : toModernAsk("tools/call", { name: subject }).headers
    : await openSession(server, send);
  const body = toMessage(subject, manner);
  check(await (await server.fetch(send(headers, body))).text(), subject);

  return async () => {
    const requests = Array.from({ length: HTTP_TURN }, () => send(headers, body));
    const before = readCpu();
    for (const request of requests) {
      const response = await server.fetch(request);
      // Read the body of a long response, because the server may still be streaming the body. A short response is
      // already complete.
      if (subject !== "add") await response.arrayBuffer();
    }
    return readCpu() - before;
  };
}

async function openSession(
  server: Server,
  post: (headers: Readonly<Record<string, string>>, body: string) => Request,
): Promise<Record<string, string>> {
  const response = await server.fetch(post(handshake.headers, toInitialize()));
  const session = response.headers.get("mcp-session-id");
  if (!session) throw new Error(`Cannot open a session: ${await response.text()}`);
  const headers = toSessionHeaders(session);
  await server.fetch(post(headers, INITIALIZED));
  return headers;
}

async function driveStdio(server: Server, { serveStdio }: Stdio, subject: Subject): Promise<Drive> {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  let send: (text: string) => void = () => {};
  let left = 0;
  let last = "";
  let finish = () => {};
  const input = new ReadableStream<Uint8Array>({
    start(controller) {
      send = (text) => controller.enqueue(encoder.encode(text));
    },
  });
  const output = (bytes: Uint8Array) => {
    if (left <= 1) last = decoder.decode(bytes);
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) left--;
    if (left <= 0) finish();
    return Promise.resolve();
  };
  const exchange = (text: string, lines: number) =>
    new Promise<void>((resolve) => {
      left = lines;
      finish = resolve;
      send(text);
    });

  serveStdio(server, { input, output });
  if (manner === "session") await exchange(`${toInitialize()}\n`, 1);
  if (manner === "session") send(`${INITIALIZED}\n`);
  const frames = subject === "count" ? STEPS + 1 : 1;
  await exchange(`${toMessage(subject, manner)}\n`, frames);
  check(last, subject);
  const lines = Array.from({ length: LINES }, (_, i) => `${toMessage(subject, manner, 1_000_000 + i)}\n`).join("");

  return async () => {
    const before = readCpu();
    for (let sent = 0; sent < calls; sent += LINES) await exchange(lines, LINES * frames);
    return readCpu() - before;
  };
}

function collectGarbage(): void {
  if (bun) bun.gc(true);
  else Object(globalThis).gc?.();
}

/** The files of a copy's entries, and the optional features that its server uses. */
interface Copy
  extends Record<"library" | "stdio" | "auth" | "quota" | "observe" | "layers" | "stores" | "openapi", string> {
  readonly uses: string;
}

const [workload, pairs, slice, collects, ...copies] = args;
const [compared, manner, way]: readonly [Compared, Manner, "http" | "stdio"] = JSON.parse(workload);
const calls = way === "http" ? HTTP_TURN : STDIO_TURN;
const drives: Drive[] = [];
for (const copy of copies) {
  const { uses, ...files }: Copy = JSON.parse(copy);
  const library: Library = await import(files.library);
  if (compared === "open") {
    drives.push(driveOpenings(createBenchServer(library, "add")));
    continue;
  }
  if (compared === "move" || compared === "operation") {
    const drive = compared === "move"
      ? await driveMoves(library, await import(files.stores))
      : await driveOperation(library, await import(files.openapi));
    drives.push(drive);
    continue;
  }
  const stdio: Stdio = await import(files.stdio);
  const server = uses.includes("layers")
    ? createLayeredServer({
      ...library,
      ...await import(files.auth),
      ...await import(files.quota),
      ...await import(files.observe),
      // In revisions before the layer `guard`, guards are an option.
      ...await import(files.layers).catch(() => ({})),
    })
    : uses
    ? createUsingServer(library, await import(files.auth), uses)
    : createBenchServer(library, compared);
  drives.push(
    way === "http"
      ? await driveHttp(server, uses.includes("key") ? KEYED : {}, compared)
      : await driveStdio(server, stdio, compared),
  );
}

function toMiddle(values: readonly number[]): number {
  const middle = values.toSorted((a, b) => a - b).slice(values.length >> 2, Math.ceil(values.length * 0.75));
  return middle.reduce((sum, each) => sum + each, 0) / middle.length;
}

/**
 * Runs turns of both copies alternately. Returns the CPU time per call for each copy in microseconds: the mean of the
 * middle half of its turns. The fastest and slowest quarters are ignored, because a garbage collection or a preemption
 * makes a turn many times longer, and the results of two equal copies would differ.
 */
async function takeTurns(turns: number): Promise<number[]> {
  const micros: number[][] = drives.map(() => []);
  for (let turn = 0; turn < turns; turn++) {
    // Alternate the order, so that each copy goes first in half of the turns.
    for (const i of turn % 2 ? [1, 0] : [0, 1]) micros[i].push(await drives[i]() / calls);
  }
  return micros.map(toMiddle);
}

// Number of warm-up slices. During the warm-up, the engine compiles the code, and the program counts how many turns fit
// in a slice.
const WARM_UP_SLICES = 12;
const start = performance.now();
let warm = 0;
for (; performance.now() - start < WARM_UP_SLICES * 2 * Number(slice); warm++) await takeTurns(1);
const turns = 2 * Math.max(5, Math.round(warm / WARM_UP_SLICES / 2));

const results: number[][] = [];
// Under continuous load, each copy pays for the garbage that it makes. After a collection, both copies start with an
// empty young generation, so that mainly code that allocates nothing is faster.
if (collects === "once") collectGarbage();
for (let i = 0; i < Number(pairs); i++) {
  if (collects === "each") collectGarbage();
  await takeTurns(10);
  results.push(await takeTurns(turns));
}
if (copies.some((copy) => /"uses":"[^"]*(observer|middleware|layers)/.test(copy)) && !heard.calls) {
  throw new Error("Cannot measure: nothing was heard");
}
console.log(JSON.stringify(results));
process.exit(0);
