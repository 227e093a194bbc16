// A server in a plain Worker, with the options that docs/guides/workers.md recommends.
import { createServer, tool } from "@x/mcp";

let ended = "";

/** Waits for a timer of the runtime, or until the call is cancelled. */
async function pass(ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", () => resolve());
  await promise;
  clearTimeout(timer);
}

const quick = tool({ name: "quick", run: async () => await Promise.resolve("quick") });
const hang = tool({ name: "hang", run: async (_input, { signal }) => await pass(20_000, signal) });

const later = tool({
  name: "later",
  run: (_input, ctx) => {
    ctx.defer(async () => {
      await pass(200);
      ended = "ended";
    });
    return "later";
  },
});

const readEnded = tool({ name: "read_ended", run: () => ended });

const server = createServer({
  name: "plain",
  version: "1.0.0",
  handlers: [quick, hang, later, readEnded],
  streams: false,
  limits: { calls: { timeoutMs: 1000 } },
});

export default {
  fetch: async (request: Request, env: object, context: { waitUntil(work: Promise<unknown>): void }) =>
    new URL(request.url).pathname === "/running"
      ? new Response(`${server.stats().running}`)
      : await server.fetch(request, env, context),
};
