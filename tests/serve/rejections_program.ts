// A server whose tools create promises that no code awaits. Its default export is for the CLI. With an argument, the
// program serves itself: `serve`, `mount`, `log` (without an observer), `json` (with `jsonLog`), `fetch` (without `serve`), `listener` (with its own listener for rejections),
// `exception` (with its own listener for exceptions), `early` (rejects before it serves) and `closed` (rejects after the server has closed).
import process from "node:process";
import { createServer, mount, type Server, tool } from "../../mod.ts";
import { jsonLog } from "../../src/observe/observe.ts";
import type { Observer } from "../../src/server/call/observer.ts";
import { serve } from "../../src/server/serve.ts";

/** Rejects after `ms` milliseconds. */
function save(what: string, ms = 5): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`cannot save ${what}`)), ms));
}

async function saveAll(what: string): Promise<never> {
  // Fixed wait: the promise rejects after the call has ended.
  await new Promise((resolve) => setTimeout(resolve, 5));
  throw new Error(`cannot save all ${what}`);
}

/** The handlers of the promises so far, or `unknown`. */
const faults: string[] = [];

const input = { type: "object", properties: { what: { type: "string" } }, required: ["what"] } as const;
const handlers = [
  tool({
    name: "forget",
    input,
    run({ what }: { readonly what: string }) {
      save(what);
      return "forgotten";
    },
  }),
  tool({
    name: "lose",
    input,
    async run({ what }: { readonly what: string }) {
      await null;
      saveAll(what);
      return "lost";
    },
  }),
  tool({
    name: "reject",
    run() {
      Promise.reject("a text");
      return "rejected";
    },
  }),
  tool({
    name: "outer",
    run: async (_input, ctx) => (await ctx.callTool("forget", { what: "the inner call" })).content,
  }),
  tool({
    name: "crash",
    run() {
      setTimeout(() => {
        throw new Error("an uncaught exception");
      }, 5);
      return "crashing";
    },
  }),
  tool({ name: "ping", run: () => "pong" }),
  tool({ name: "faults", run: () => faults.join() }),
];

const observer: Observer = {
  fault({ server, method, subject, isUnawaited, error }) {
    const text = error instanceof Error ? error.message : String(error);
    faults.push(subject ?? "unknown");
    console.error(`fault ${JSON.stringify([server, isUnawaited, text, method, subject])}`);
  },
};

function make(name: string, options: { readonly path?: string; readonly observer?: Observer } = { observer }): Server {
  return createServer({ name, version: "1.0.0", handlers, ...options });
}

const server = make("first");
export default server;

const [, , mode] = process.argv;
if (["serve", "mount", "log", "json", "fetch", "listener", "exception", "early", "closed"].includes(mode)) {
  process.stdin.on("end", () => process.exit()).resume();
  if (mode === "listener") process.on("unhandledRejection", ({ message }: Error) => console.error(`own ${message}`));
  if (mode === "exception") process.on("uncaughtException", ({ message }: Error) => console.error(`own ${message}`));
  if (mode === "early") {
    save("the start");
    await new Promise(() => {}); // The rejection ends the process.
  }
  if (mode === "fetch") {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "reject" } });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    await server.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body }));
  } else {
    const others: Readonly<Record<string, () => Server>> = {
      mount: () => mount([make("zero", { path: "/zero", observer }), server]),
      log: () => make("logged", {}),
      json: () => make("logged", { observer: jsonLog() }),
    };
    const served = await serve(others[mode]?.() ?? server, { port: 0 });
    console.error(`at ${new URL("/mcp", served.url)}`);
    if (mode === "closed") {
      await served.close();
      save("the end");
    }
  }
}
