// The cost of requests on transports that process messages sequentially: WebSocket, HTTP+SSE and stdio.
import type { Runtime } from "../processes.ts";
import { ANY, asking, type CostCase, initialize, legacy, modern, plain, shapes, STEPS } from "./cases.ts";
import { type Cost, send } from "./cost.ts";
import { openEvents, openSocket } from "./held.ts";
import { startAbused, toProgram } from "./server.ts";

/** A connection over one transport. */
interface Way {
  /** Sends a text and then a plain call, and waits for the response to the plain call. */
  talk(text: string): Promise<void>;
  /**
   * Returns the CPU time so far in microseconds, and, if known, the longest block since the last call of `spent` in
   * milliseconds.
   */
  spent(): Promise<{ readonly cpu: number; readonly block: number }>;
}

const LINE = 4_100_000;
const line = (name: string, make: CostCase["make"]): CostCase => ({ name, most: LINE, make });
const cases: readonly CostCase[] = [
  ...Object.entries(shapes).map(([name, make]) => line(name, (size) => modern("tools/call", ANY, make(size)))),
  line("garbage", (size) => ({ ...plain(), body: "x".repeat(Math.max(1, size)) })),
  asking("question: many keys", LINE, "many keys"),
  line("long progressToken, 10 steps", (size) => legacy("tools/call", STEPS, shapes["a string"](size))),
];

/** Matches responses to plain calls, which follow each text. */
class Turns {
  #last = 0;
  #wake = () => {};
  #isAnswered: (text: string) => boolean = () => false;

  /** Creates a plain call with a unique id. */
  next(): { readonly text: string; readonly answered: Promise<void> } {
    const id = `plain-${++this.#last}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#isAnswered = (text) => text.includes(id);
    this.#wake = resolve;
    return { text: plain().body.replace('"id":1', `"id":"${id}"`), answered: promise };
  }

  receive(text: string): void {
    if (this.#isAnswered(text)) this.#wake();
  }
}

async function measureWay(name: string, way: Way, only: RegExp, report: (cost: Cost) => void): Promise<void> {
  const measure = async (text: string) => {
    await way.talk(text);
    const start = (await way.spent()).cpu;
    let count = 0;
    let cpu = 0;
    let block = Infinity;
    for (let batch = 1; count < 3 || cpu < 100_000 && count < 2000; batch = Math.min(200, batch * 2)) {
      for (let i = 0; i < batch; i++) await way.talk(text);
      count += batch;
      const spent = await way.spent();
      cpu = spent.cpu - start;
      block = Math.min(block, spent.block);
    }
    return { cpu: cpu / count, block };
  };
  const { body } = plain();
  for (let i = 0; i < 3000; i++) await way.talk(body);
  await way.talk(initialize().body);
  const unit = (await measure(body)).cpu / 2; // Each `talk` sends the plain call twice: once as the text, and once after the text.
  for (const each of cases) {
    const what = `${name}: ${each.name}`;
    if (!only.test(what)) continue;
    const known = { session: "", batching: "" };
    const small = await measure(each.make(0, known).body);
    const text = each.make(each.most, known).body;
    const whole = await measure(text);
    report({
      name: what,
      a: (small.cpu - unit) / unit,
      b: (whole.cpu - small.cpu) / new TextEncoder().encode(text).length,
      block: whole.block,
      statuses: "",
    });
  }
}

async function overSocket(runtime: Runtime, only: RegExp, report: (cost: Cost) => void): Promise<void> {
  await using server = await startAbused(runtime);
  const socket = await openSocket(server);
  const turns = new Turns();
  socket.onmessage = ({ data }) => turns.receive(data);
  const lost = new Promise<never>((_, reject) => {
    socket.onclose = ({ code, reason }) => reject(new Error(`The WebSocket was closed: ${code} ${reason}`));
  });
  lost.catch(() => {});
  const talk = async (text: string) => {
    const { text: after, answered } = turns.next();
    socket.send(text);
    socket.send(after);
    await Promise.race([answered, lost]);
  };
  await measureWay("WebSocket", { talk, spent: server.spent }, only, report);
  socket.close();
}

async function overEvents(runtime: Runtime, only: RegExp, report: (cost: Cost) => void): Promise<void> {
  await using server = await startAbused(runtime);
  const stop = new AbortController();
  const address = await openEvents(server, stop.signal);
  const talk = async (body: string) => {
    // The response to a POST request shows that the server has accepted the message, so there is nothing else to wait
    // for.
    await send(address, { ...plain(), body });
    await send(address, plain());
  };
  await measureWay("http-sse", { talk, spent: server.spent }, only, report);
  stop.abort();
}

async function overLines(runtime: Runtime, only: RegExp, report: (cost: Cost) => void): Promise<void> {
  const [command, ...args] = toProgram(runtime, ["stdio"]);
  const child = new Deno.Command(command, { args, stdin: "piped", stdout: "piped", stderr: "null" }).spawn();
  const writer = child.stdin.getWriter();
  const turns = new Turns();
  (async () => {
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      turns.receive(rest + text);
      rest = text.slice(-300);
    }
  })();
  const encoder = new TextEncoder();
  let longest = 0;
  const talk = async (line: string) => {
    const { text, answered } = turns.next();
    const start = performance.now();
    await writer.write(encoder.encode(`${line}\n${text}\n`));
    await answered;
    longest = Math.max(longest, performance.now() - start);
  };
  // Measures blocks in steps of ten milliseconds from this process, because a process without a port cannot report its
  // blocks. The longest time between two ticks counts as the longest block.
  const spent = () => {
    const [user, system] = Deno.readTextFileSync(`/proc/${child.pid}/stat`).replace(/.*\) /, "").split(" ").slice(
      11,
      13,
    );
    const block = longest;
    longest = 0;
    return Promise.resolve({ cpu: (Number(user) + Number(system)) * 10_000, block });
  };
  try {
    await measureWay("stdio", { talk, spent }, only, report);
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
}

/** Measures all transports except HTTP. */
export async function measurePipes(runtime: Runtime, only: RegExp, report: (cost: Cost) => void): Promise<void> {
  for (const measure of [overSocket, overEvents, overLines]) {
    try {
      await measure(runtime, only, report);
    } catch (error) {
      report({ name: measure.name, a: NaN, b: NaN, block: NaN, statuses: `${error}`.slice(0, 100) });
    }
  }
}
