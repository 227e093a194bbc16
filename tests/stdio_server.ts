// A server over standard input and output, for tests that start it as a process of its own.
import { createServer, tool } from "../mod.ts";
import { serveStdio } from "../src/transports/stdio.ts";

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

// Says on standard error how it ended.
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

const big = tool({ name: "big", run: () => "x".repeat(1_000_000) });

await serveStdio(createServer({ name: "stdio", version: "1.0.0", handlers: [echo, noisy, slow, ask, big] }));
