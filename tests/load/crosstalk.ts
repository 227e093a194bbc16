// Runs a server and clients in one process, on either runtime. The first argument is the number of responses to
// requests with the id 1. The second argument is the number of concurrent pairs in one session. Prints the counts as
// JSON.
import { createServer, tool } from "../../mod.ts";
import { readData, startSession, toCall } from "../hostile/unread.ts";
import { random } from "../support/random.ts";

// Only the current runtime's global is defined.
const { Deno: deno, Bun: bun } = globalThis as { Deno?: { args: string[] }; Bun?: { argv: string[] } };
const [answers, pairs] = (deno?.args ?? bun?.argv.slice(2) ?? []).map(Number);
const { below } = random(8);

const echo = tool({
  name: "echo",
  input: { type: "object" },
  async run({ word, speaks }: Readonly<Record<string, unknown>>, ctx) {
    if (speaks) await ctx.progress(1, { message: String(word) });
    for (let turns = below(6); turns > 0; turns--) await undefined;
    if (below(50) === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    if (speaks) await ctx.progress(2, { message: String(word) });
    return String(word);
  },
});
const server = createServer({ name: "echo", version: "1.0.0", handlers: [echo] });
const url = "http://localhost/mcp";

async function ask(word: string, session: string | undefined, speaks: boolean): Promise<boolean> {
  const call = toCall("echo", { session, args: { word, speaks }, meta: speaks ? { progressToken: 1 } : {} });
  const text = await (await server.fetch(new Request(url, call))).text();
  const messages = text.startsWith("{") ? [JSON.parse(text)] : readData(text).map((message) => Object(message));
  const words = messages.map(({ params, result }) => params?.message ?? result?.content[0].text);
  return words.length === (speaks ? 3 : 1) && words.every((each) => each === word);
}

const sessions = await Promise.all(Array.from({ length: 20 }, () => startSession(url, server.fetch)));
let sent = 0;
let wrong = 0;
const start = performance.now();
await Promise.all(Array.from({ length: 64 }, async () => {
  while (sent < answers) {
    const n = sent++;
    const session = n % 3 ? sessions[below(20)] : undefined;
    if (!await ask(`word ${n}`, session, n % 20 === 0)) wrong++;
  }
}));
const rate = answers / (performance.now() - start) * 1000;
let crossed = 0;
for (let i = 0; i < pairs; i++) {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), 5000);
  const both = ["a", "b"].map((name) => Promise.race([ask(name + i, sessions[0], true), late.promise]));
  if (!(await Promise.all(both)).every((each) => each)) crossed++;
  clearTimeout(timer);
}
console.log(JSON.stringify({ answers, wrong, pairs, crossed, rate }));
await server.close();
