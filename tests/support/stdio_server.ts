// A stdio server that tests start as a process.
import { createServer, tool } from "../../mod.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";

const text = { type: "object", properties: { text: { type: "string" } } } as const;

const echo = tool({ name: "echo", input: text, run: (input) => String(Object(input).text) });

const noisy = tool({
  name: "noisy",
  run() {
    console.log("log");
    console.info("info %d", 1);
    console.debug({ debug: true });
    console.table([1]);
    console.warn("warn");
    return "quiet";
  },
});

// Prints on standard error how the call ended.
const slow = tool({
  name: "slow",
  input: { type: "object", properties: { ms: { type: "number" } } },
  async run(input, ctx) {
    console.error("slow began");
    await ctx.progress(1);
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, Number(Object(input).ms));
      ctx.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve(undefined);
      });
    });
    console.error(ctx.signal.aborted ? "slow was cancelled" : "slow is done");
    return "slow";
  },
});

const ask = tool({
  name: "ask",
  async run(_input, ctx) {
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answer = await ctx.elicit("who", { message: "Who?", schema });
    return answer.action === "accept" ? `Hello, ${Object(answer.content).name}` : answer.action;
  },
});

interface Output {
  write(data: unknown): unknown;
  readonly writeSync?: (bytes: Uint8Array) => unknown;
  readonly writable?: WritableStream<Uint8Array>;
}

interface Runtimes {
  readonly Deno?: { readonly stdout: Output };
  readonly Bun?: {
    readonly stdout: { writer(): { write(text: string): unknown; flush(): unknown } };
    write(to: unknown, text: string): Promise<unknown>;
  };
  readonly process: {
    readonly stdout: Output;
    cpuUsage(): { readonly user: number; readonly system: number };
  };
}

// Writes directly to standard output, bypassing the console, with every API of the runtime.
const direct = tool({
  name: "direct",
  async run() {
    const { Deno: deno, Bun: bun, process } = globalThis as unknown as Runtimes;
    const bytes = (text: string) => new TextEncoder().encode(`${text}\n`);
    await deno?.stdout.write(bytes("written"));
    deno?.stdout.writeSync?.(bytes("written at once"));
    const writer = deno?.stdout.writable?.getWriter();
    await writer?.write(bytes("streamed"));
    writer?.releaseLock();
    await bun?.write(bun.stdout, "written\nwritten at once\n");
    const sink = bun?.stdout.writer();
    sink?.write("streamed\n");
    await sink?.flush();
    process.stdout.write("written by the process\n");
    // Node has no `alert` and `prompt`.
    if ("alert" in globalThis) {
      alert("asked");
      if (confirm("asked") || prompt("asked") !== null) throw new Error("a prompt got an answer");
    }
    return "quiet";
  },
});

// Returns the CPU time of the process in microseconds.
const cpu = tool({
  name: "cpu",
  run() {
    const { user, system } = (globalThis as unknown as Runtimes).process.cpuUsage();
    return String(user + system);
  },
});

const loud = tool({
  name: "loud",
  run() {
    for (let i = 0; i < 100; i++) console.log("x".repeat(10_000));
    return "loud";
  },
});

const big = tool({ name: "big", run: () => "x".repeat(1_000_000) });

const handlers = [echo, noisy, slow, ask, big, direct, cpu, loud];
await serveStdio(createServer({ name: "stdio", version: "1.0.0", handlers }));
