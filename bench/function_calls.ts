// Counts the calls of functions of `src`, with the precise coverage of V8: per plain request, per call with a question
// whose answer reaches it through a store, and per start of a task with the request that gets its result. The counts vary
// by a few calls, because timers run. With the name of a workload, also lists the functions that are called most:
//
//   deno run -A --no-check bench/function_calls.ts [plain|answer|task]
import { Session } from "node:inspector/promises";
import { createServer, type Server, type ServerOptions, tool } from "../mod.ts";
import { task, tasks } from "../src/extensions/tasks/tasks.ts";
import { memoryStore } from "../src/stores/stores.ts";
import { call, toRequest } from "../tests/support/requests.ts";

/** Number of requests of each workload before its requests are counted, and number of counted requests. */
const [WARM_UP, TIMES] = [20, 50];

/** Sends the requests that come before a counted request. Returns the function that sends the counted request. */
type Prepare = () => Promise<() => Promise<unknown>>;

interface Workload {
  readonly servers: readonly Server[];
  readonly prepare: Prepare;
}

const start = (options: Partial<ServerOptions>): Server =>
  createServer({ name: "bench", version: "1.0.0", secret: "a secret of at least thirty-two characters", ...options });

const workloads: Readonly<Record<string, () => Workload>> = {
  plain() {
    const server = start({ handlers: [tool({ name: "add", run: () => "3" })] });
    return { servers: [server], prepare: () => Promise.resolve(() => call(server, "tools/call", { name: "add" })) };
  },
  answer() {
    const store = memoryStore();
    const asking = tool({
      name: "ask",
      run: async (_, ctx) => (await ctx.elicit("who", { message: "Who?", schema: { type: "object" } })).action,
    });
    const [a, b] = [1, 2].map(() => start({ handlers: [asking], store }));
    return { servers: [a, b], prepare: () => prepareAnswer(a, b) };
  },
  task() {
    const build = tool({ name: "build", use: [task()], run: () => "built" });
    const server = start({ handlers: [tasks(), build], store: memoryStore() });
    const extensions = { "io.modelcontextprotocol/tasks": {} };
    const _meta = { "io.modelcontextprotocol/clientCapabilities": { extensions } };
    const run = async () => {
      const { taskId } = await call(server, "tools/call", { name: "build", _meta });
      const request = toRequest("tasks/get", { taskId, _meta }, { "mcp-name": taskId });
      const text = await (await server.fetch(request)).text();
      if (!text.includes(`"completed"`)) throw new Error(`Cannot count the calls: the task has not completed: ${text}`);
    };
    return { servers: [server], prepare: () => Promise.resolve(run) };
  },
};

/** Opens a session, in which a call waits on one instance for an answer that the other instance gets. */
async function prepareAnswer(a: Server, b: Server): Promise<() => Promise<unknown>> {
  const opened = await post(a, {}, {
    id: 1,
    method: "initialize",
    params: {
      protocolVersion: "2025-11-25",
      capabilities: { elicitation: {} },
      clientInfo: { name: "bench", version: "1.0.0" },
    },
  });
  await opened.text();
  const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
  await (await post(b, session, { id: 2, method: "ping" })).text();
  return async () => {
    const { body } = await post(a, session, { id: 3, method: "tools/call", params: { name: "ask" } });
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const readTo = async (pattern: RegExp): Promise<string> => {
      while (reader && !pattern.test(text)) text += (await reader.read()).value ?? "";
      return pattern.exec(text)?.[1] ?? "";
    };
    const id = await readTo(/"id":"(ask-[^"]+)"/);
    await (await post(b, session, { id, result: { action: "accept", content: {} } })).text();
    await readTo(/(accept)/);
  };
}

function post(server: Server, headers: Readonly<Record<string, string>>, message: object): Promise<Response> {
  const accept = "application/json, text/event-stream";
  return Promise.resolve(server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: { "content-type": "application/json", accept, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    }),
  ));
}

/** Returns the calls of each function of `src` since the calls were last taken. */
async function takeCalls(session: Session): Promise<ReadonlyMap<string, number>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const calls = new Map<string, number>();
  for (const { url, functions } of result) {
    const [, file] = url.split("/src/");
    if (file === undefined) continue;
    for (const { functionName, ranges: [{ startOffset, count }] } of functions) {
      if (count) calls.set(`${file} ${functionName || "(anonymous)"} ${startOffset}`, count);
    }
  }
  return calls;
}

async function countCalls({ servers, prepare }: Workload): Promise<ReadonlyMap<string, number>> {
  for (let i = 0; i < WARM_UP; i++) await (await prepare())();
  const runs = [];
  for (let i = 0; i < TIMES; i++) runs.push(await prepare());
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  await takeCalls(session);
  for (const run of runs) await run();
  const calls = await takeCalls(session);
  session.disconnect();
  for (const server of servers) await server.close();
  return calls;
}

const [listed] = Deno.args;
for (const [name, toWorkload] of Object.entries(workloads)) {
  if (listed && listed !== name) continue;
  const calls = await countCalls(toWorkload());
  console.log(`${name}: ${Math.round(calls.values().reduce((sum, each) => sum + each, 0) / TIMES)} calls`);
  if (!listed) continue;
  for (const [place, each] of [...calls].sort((x, y) => y[1] - x[1])) console.log((each / TIMES).toFixed(1), place);
}
