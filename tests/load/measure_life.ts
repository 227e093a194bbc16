// Measures the shutdown of a server, load on stdio, and the worst inputs for patterns and parsers.
import { readData } from "../hostile/unread.ts";
import { all, atMost, type Figure } from "./figure.ts";
import { mib, quantile, readRss, type Runtime, sleep, startSession, toCall, toWords } from "./processes.ts";

const root = new URL("../../", import.meta.url).pathname;
const encoder = new TextEncoder();

function spawn(words: readonly string[], stdin: "piped" | "null"): Deno.ChildProcess {
  const [command, ...args] = words;
  return new Deno.Command(command, { args, cwd: root, stdin, stdout: "piped", stderr: "piped" }).spawn();
}

/** Serves a file with the CLI, as users do. Returns the URL and the process. */
async function serveFile(runtime: Runtime, file: string) {
  const child = spawn([
    ...runtime === "deno" ? ["deno", "run", "-A", "--no-check"] : ["bun"],
    "mod.ts",
    file,
    "--http",
    "--port",
    "0",
  ], "null");
  let printed = "";
  const { promise: url, resolve } = Promise.withResolvers<string>();
  (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      printed += text;
      const [found] = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(printed) ?? [];
      if (found) resolve(found);
    }
  })();
  child.stdout.cancel();
  return { child, url: await url, printed: () => printed };
}

/** Sends SIGTERM to a process. Returns its exit code and the milliseconds until its exit. */
async function terminate(child: Deno.ChildProcess): Promise<{ readonly code: number; readonly ms: number }> {
  const start = performance.now();
  child.kill("SIGTERM");
  const { code } = await child.status;
  return { code, ms: performance.now() - start };
}

/**
 * Sends SIGTERM while eight clients each call continuously. Returns the number of calls that started, and the number of
 * calls that got a response.
 */
async function endUnderLoad(runtime: Runtime) {
  const { child, url, printed } = await serveFile(runtime, "tests/load/served.ts");
  const answered = new Set<string>();
  let next = 0;
  let refused = 0;
  const clients = Array.from({ length: 8 }, async () => {
    while (true) {
      const n = `${next++}`;
      try {
        const text = await (await fetch(url, toCall("wait", { args: { n, ms: 5 } }))).text();
        if (text.includes(`waited ${n}"`)) answered.add(n);
        else if (refused++ > 100) return;
      } catch {
        // The port is closed, or the server closed an idle connection without reading the request.
        return;
      }
    }
  });
  await sleep(1500);
  const { code } = await terminate(child);
  await Promise.all(clients);
  await sleep(100);
  const began = [...printed().matchAll(/began (\d+);/g)].map(([, n]) => n);
  return { code, began: began.length, answered: began.filter((n) => answered.has(n)).length };
}

/** D17: SIGTERM under load, SIGTERM without load, and a thousand servers. */
export async function graceful(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  const file = "tests/load/served.ts";
  const idle = await serveFile(runtime, file);
  await (await fetch(idle.url, toCall("wait", { args: { ms: 1 } }))).text();
  const alone = await terminate(idle.child);

  const { child, url } = await serveFile(runtime, file);
  const session = await startSession(url, fetch);
  const { headers, body } = toCall("");
  const message = JSON.parse(body);
  const params = { ...message.params, notifications: { toolsListChanged: true } };
  const listen = {
    method: "POST",
    headers: { ...headers, "mcp-method": "subscriptions/listen" },
    body: JSON.stringify({ ...message, method: "subscriptions/listen", params }),
  };
  const opened: Promise<unknown>[] = [];
  const ended: Promise<string>[] = [];
  const open = (init: RequestInit, isOpen: boolean) => {
    const coming = fetch(url, init);
    if (isOpen) opened.push(coming);
    ended.push(coming.then((response) => response.text()).catch((error) => `reset: ${error}`));
  };
  for (let i = 0; i < 50; i++) {
    open(toCall("wait", { args: { ms: 2000 }, session: i % 2 ? session : undefined }), false);
    const visitor = { accept: "text/event-stream", "mcp-session-id": await startSession(url, fetch) };
    open({ headers: visitor }, true);
    open(listen, true);
  }
  await Promise.all(opened);
  await sleep(200);
  const { code, ms } = await terminate(child);
  const texts = await Promise.all(ended);
  const calls = texts.filter((_, i) => i % 3 === 0);
  const answered = calls.filter((text) => text.includes('"waited')).length;
  const whole = texts.filter((text) => !text.startsWith("reset")).length;
  const last = texts.filter((text, i) => i % 3 === 2 && Object(readData(text).at(-1)).result).length;

  const loads: Awaited<ReturnType<typeof endUnderLoad>>[] = [];
  for (let i = 0; i < (isQuick ? 3 : 10); i++) loads.push(await endUnderLoad(runtime));
  const sum = (of: (load: typeof loads[number]) => number) => loads.reduce((all, load) => all + of(load), 0);

  const [command, ...args] = toWords(runtime, "tests/load/cycles.ts", isQuick ? "300" : "1500");
  const { stdout } = await new Deno.Command(command, { args, cwd: root }).output();
  const cycles = JSON.parse(new TextDecoder().decode(stdout));
  return [
    all("SIGTERM with 50 calls, 50 streams and 50 subscriptions: calls that got their result", answered, 50),
    all("the same: responses that ended and were not reset", whole, texts.length),
    all("the same: subscriptions that got a final message", last, 50),
    { what: "the same: exit code", aim: "0", value: `${code}`, holds: code === 0 },
    atMost("the same: time, of which the calls take 2 s", ms, 6000, "ms"),
    all(
      `SIGTERM while 8 clients call without a pause, ${loads.length} times: calls that began and were answered`,
      sum(({ answered }) => answered),
      sum(({ began }) => began),
    ),
    all("the same: exits with 0", loads.filter(({ code }) => code === 0).length, loads.length),
    { what: "SIGTERM at rest: exit code", aim: "0", value: `${alone.code}`, holds: alone.code === 0 },
    atMost("SIGTERM at rest: time", alone.ms, 200, "ms"),
    {
      what: `${cycles.count} servers, each on a port, with one call`,
      aim: "–",
      value: `${(cycles.ms / cycles.count).toFixed(1)} ms each`,
    },
    atMost("the same: leaked files and sockets", cycles.files, 0, "of them"),
    atMost("the same: heap gained by each in the last third", cycles.heap / (cycles.count / 3), 1024, "B"),
  ];
}

/** D20: patterns and parsers that get client input, on both runtimes. */
export async function worstCases(runtime: Runtime): Promise<readonly Figure[]> {
  const [command, ...args] = toWords(runtime, "tests/load/worst.ts");
  const { stdout } = await new Deno.Command(command, { args, cwd: root }).output();
  const { count, ms, what, ratio, steep } = JSON.parse(new TextDecoder().decode(stdout));
  return [
    {
      ...atMost("the worst of all inputs of 100 KB to all parsers", ms, 50, "ms", 1),
      value: `${ms.toFixed(1)} ms (${what}), of ${count}`,
    },
    {
      what: "twice the input to the input, where it takes more than 1 ms",
      aim: "≤ 2.5 ×",
      value: steep ? `${ratio.toFixed(2)} × (${steep})` : "none takes 1 ms",
      holds: !steep || ratio <= 2.5,
    },
  ];
}

interface Piped {
  readonly child: Deno.ChildProcess;
  send(text: string): Promise<void>;
  /** Reads at least `count` lines, or fewer if the output ends. Returns the lines. */
  receive(count: number): Promise<readonly string[]>;
}

function startPiped(runtime: Runtime): Piped {
  const child = spawn(toWords(runtime, "tests/load/program.ts", '{"stdio":true}'), "piped");
  child.stderr.cancel();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  return {
    child,
    send: (text) => writer.write(encoder.encode(text)),
    async receive(count) {
      const lines: string[] = [];
      while (lines.length < count) {
        const { done, value } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n");
        rest = parts.pop() ?? "";
        lines.push(...parts);
      }
      return lines;
    },
  };
}

const toLine = (name: string, args: object, id: number): string =>
  JSON.stringify({ ...JSON.parse(toCall(name, { args: { ...args } }).body), id }) + "\n";

/**
 * Closes the standard input of the CLI while it serves a file. Returns the milliseconds until its exit, and the exit
 * code.
 */
async function endInput(runtime: Runtime, busyMs: number): Promise<{ readonly ms: number; readonly code: number }> {
  const words = runtime === "deno" ? ["deno", "run", "-A", "--no-check"] : ["bun"];
  const child = spawn([...words, "mod.ts", "tests/load/served.ts", "--stdio"], "piped");
  child.stderr.cancel();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.getReader();
  await writer.write(encoder.encode(toLine("wait", { ms: 1 }, 1)));
  await reader.read();
  if (busyMs) await writer.write(encoder.encode(toLine("wait", { ms: busyMs }, 2)));
  await sleep(100);
  const start = performance.now();
  await writer.close();
  (async () => {
    while (!(await reader.read()).done);
  })();
  const { code } = await child.status;
  return { code, ms: performance.now() - start };
}

/** D22: calls over stdio. */
export async function stdio(runtime: Runtime): Promise<readonly Figure[]> {
  const rates: number[] = [];
  {
    const piped = startPiped(runtime);
    for (let round = 0; round < 5; round++) {
      const lines = Array.from({ length: 10_000 }, (_, i) => toLine("quick", {}, i)).join("");
      const start = performance.now();
      const [, got] = await Promise.all([piped.send(lines), piped.receive(10_000)]);
      if (got.length !== 10_000) throw new Error(`${got.length} answers`);
      rates.push(10_000 / (performance.now() - start) * 1000);
    }
    piped.child.kill("SIGKILL");
  }
  const stopped = startPiped(runtime);
  await stopped.send(toLine("quick", {}, 0));
  await stopped.receive(1);
  const before = readRss(stopped.child.pid);
  await stopped.send(Array.from({ length: 60 }, (_, i) => toLine("big", { kb: 1000 }, i)).join(""));
  let peak = 0;
  for (let i = 0; i < 20; i++) {
    await sleep(100);
    peak = Math.max(peak, readRss(stopped.child.pid));
  }
  const late = await stopped.receive(60);
  stopped.child.kill("SIGKILL");

  const long = startPiped(runtime);
  const sending = long.send("x".repeat(9 * 2 ** 20) + "\n" + toLine("quick", {}, 7));
  const answers = (await long.receive(2)).map((line) => JSON.parse(line));
  await sending;
  long.child.kill("SIGKILL");
  const recovers = answers.length === 2 && answers[0].error?.code === -32600 && answers[1].id === 7;

  const idle = await endInput(runtime, 0);
  const busy = await endInput(runtime, 60_000);
  const rate = quantile(rates, 0.5);
  return [
    {
      what: "10,000 requests at once: median of five",
      aim: "≥ 10000 /s",
      value: `${rate.toFixed(0)} /s`,
      holds: rate >= 10_000,
    },
    atMost(
      `60 results of 1 MB to a reader that stops (${mib(before)} MiB before): most memory`,
      peak / 2 ** 20,
      64,
      "MiB",
    ),
    all("the same: results once it reads again", late.length, 60),
    {
      what: "a line of 9 MiB, then a valid one",
      aim: "refused, answered",
      value: recovers ? "refused, answered" : "no",
      holds: recovers,
    },
    atMost(`end of input at rest: exit with ${idle.code} after`, idle.ms, 200, "ms"),
    atMost(`end of input with a hanging call: exit with ${busy.code} after`, busy.ms, 2000, "ms"),
  ];
}
