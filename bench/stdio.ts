// W5: calls over stdio, pipelined and one by one. The servers take turns. During the turn of a server, the other
// servers wait for input.
import { INITIALIZED, type Manner, toInitialize, toMessage } from "./asks.ts";
import { measure, pinned, type Runtime, SERVER_CORE, toMedian, toWords } from "./machine.ts";
import type { Peer } from "./peers.ts";
import { type Row, toTable } from "./table.ts";

const CALLS = 50_000;
const PINGS = 2000;
const encoder = new TextEncoder();

/** A server process that is connected by its stdin and stdout. */
export interface Piped {
  readonly pid: number;
  send(bytes: Uint8Array): Promise<void>;
  /** Reads the given number of lines. Returns the last line. */
  receive(lines: number): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a server on the servers' core, or another program on another core. */
export function startPiped(words: readonly string[], core = SERVER_CORE): Piped {
  const child = pinned(core, words, { stdin: "piped", stdout: "piped", stderr: "null" }).spawn();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.getReader();
  let rest: Uint8Array = new Uint8Array();
  return {
    pid: child.pid,
    send: (bytes) => writer.write(bytes),
    async receive(lines) {
      while (true) {
        let from = 0;
        for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10, from)) {
          if (--lines === 0) {
            const line = new TextDecoder().decode(rest.subarray(from, at));
            rest = rest.slice(at + 1);
            return line;
          }
          from = at + 1;
        }
        const { done, value } = await reader.read();
        if (done) throw new Error(`Cannot measure "${words.join(" ")}": the process ended before it had responded`);
        const left = rest.subarray(from);
        rest = left.length ? new Uint8Array([...left, ...value]) : value;
      }
    },
    async stop() {
      child.kill("SIGKILL");
      await Promise.allSettled([writer.close(), reader.cancel(), child.status]);
    },
  };
}

/** Initializes a session if `manner` is `session`. Sends one call, and returns its response. */
export async function open(server: Piped, manner: Manner): Promise<string> {
  if (manner === "session") {
    await server.send(encoder.encode(toInitialize() + "\n"));
    await server.receive(1);
    await server.send(encoder.encode(INITIALIZED + "\n"));
  }
  await server.send(encoder.encode(toMessage("add", manner) + "\n"));
  const line = await server.receive(1);
  if (!/"sum":3|"text":"3"/.test(line)) throw new Error(`Cannot measure the server: its response is ${line}`);
  return line;
}

let nextId = 1_000_000;

/** Encodes `calls` tool calls as newline-delimited JSON, each call with a unique id. */
export function toCalls(manner: Manner, calls: number = CALLS): Uint8Array {
  if (nextId > 9_000_000) nextId = 1_000_000;
  const texts = Array.from({ length: calls }, () => toMessage("add", manner, nextId++) + "\n");
  return encoder.encode(texts.join(""));
}

/** Sends all calls without waiting for results, and reads all results. */
export async function sendAll(server: Piped, bytes: Uint8Array, calls: number = CALLS): Promise<void> {
  const answered = server.receive(calls);
  for (let at = 0; at < bytes.length; at += 65_536) await server.send(bytes.subarray(at, at + 65_536));
  await answered;
}

async function sendEach(server: Piped, manner: Manner): Promise<number[]> {
  const times = [];
  for (let i = 0; i < PINGS; i++) {
    const bytes = encoder.encode(toMessage("add", manner, nextId++) + "\n");
    const start = performance.now();
    await server.send(bytes);
    await server.receive(1);
    times.push((performance.now() - start) * 1000);
  }
  return times.toSorted((a, b) => a - b);
}

interface Runner {
  readonly name: string;
  readonly server: Piped;
  /**
   * Number of times that the calls are repeated in one slice. One repetition would be too short, because CPU time has a
   * resolution of 10 ms.
   */
  readonly rounds: number;
  readonly cpu: number[];
  readonly rate: number[];
  readonly p50: number[];
  readonly p99: number[];
}

async function run(manner: Manner, runtime: Runtime, peers: readonly Peer[], slices: number): Promise<Runner[]> {
  const answer = await Deno.makeTempFile({ suffix: ".json" });
  const runners: Runner[] = [];

  function add(name: string, file: string, args: readonly string[], rounds = 4): Piped {
    const server = startPiped(toWords(runtime, file, args));
    runners.push({ name, server, rounds, cpu: [], rate: [], p50: [], p99: [] });
    return server;
  }

  try {
    const line = await open(add("@x/mcp", "programs/ours.ts", ["stdio"]), manner);
    await Deno.writeTextFile(answer, JSON.stringify([line]));
    await open(add(FLOOR, "programs/floor_stdio.ts", [answer]), manner);
    for (const { name, file } of peers.filter(({ stdio }) => stdio)) {
      await open(add(name, file, ["stdio"], 1), manner);
    }
    for (const { server } of runners) await sendAll(server, toCalls(manner));
    for (let slice = 0; slice < slices; slice++) {
      for (const { server, rounds, cpu, rate, p50, p99 } of runners) {
        const batches = Array.from({ length: rounds }, () => toCalls(manner));
        const { cpu: used, wall } = await measure(server.pid, async () => {
          for (const bytes of batches) await sendAll(server, bytes);
        });
        cpu.push(used / (CALLS * rounds) * 1e6);
        rate.push(CALLS * rounds / wall);
        const times = await sendEach(server, manner);
        p50.push(times[PINGS * 0.5]);
        p99.push(times[PINGS * 0.99]);
      }
    }
    return runners;
  } finally {
    for (const { server } of runners) await server.stop();
    await Deno.remove(answer);
  }
}

const FLOOR = "floor: loop that batches responses";

/** Measures workload W5. Returns a Markdown table. */
export async function measureStdio(
  manner: Manner,
  runtimes: readonly Runtime[],
  peers: readonly Peer[],
  slices: number,
): Promise<string> {
  const rows = new Map<string, Row>();
  for (const runtime of runtimes) {
    const runners = await run(manner, runtime, peers, slices);
    const floor = runners.find(({ name }) => name === FLOOR);
    for (const { name, cpu, rate, p50, p99 } of runners) {
      const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
      row?.set(`${runtime}: ratio`, toMedian(cpu.map((each, i) => (floor?.cpu[i] ?? NaN) / each)).toFixed(3));
      row?.set(`${runtime}: µs CPU`, toMedian(cpu).toFixed(2));
      row?.set(`${runtime}: calls/s`, Math.round(toMedian(rate)).toString());
      row?.set(`${runtime}: µs latency, p50`, Math.round(toMedian(p50)).toString());
      row?.set(`${runtime}: µs latency, p99`, Math.round(toMedian(p99)).toString());
    }
  }
  const how = manner === "session" ? "in a session" : "of revision 2026-07-28";
  return toTable(`W5 stdio: ${CALLS} pipelined calls ${how}, then ${PINGS} calls one by one`, rows);
}
