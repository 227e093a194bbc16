// A server for load tests, on either runtime. Its tools hold memory, send floods of messages, throw and echo, and
// requests to `/_load/…` report its state. The first argument is the options as JSON.
import { createServer, resource, type Server, tool } from "../../mod.ts";
import type { BoundOptions } from "../../src/server/capacity/limits.ts";
import { testLimits } from "../support/limits.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { worker } from "../../src/ready/worker/worker.ts";
import type heavy from "./heavy.ts";

interface Globals {
  readonly Deno?: typeof Deno;
  readonly Bun?: {
    readonly argv: readonly string[];
    gc(force: boolean): void;
    serve(options: object): { readonly port: number; stop(now: boolean): Promise<void> };
  };
  readonly process: { memoryUsage(): { readonly rss: number; readonly heapUsed: number; readonly external: number } };
  readonly gc?: () => void;
  addEventListener: typeof addEventListener;
}

// Look up the globals, because neither runtime has types for the other runtime's globals.
const globals = globalThis as unknown as Globals;
const { Deno: deno, Bun: bun } = globals;

/** The reported state of the server. */
export interface Stats {
  /** The resident memory in bytes, after garbage collection. */
  readonly rss: number;
  /** The used heap in bytes, after garbage collection. */
  readonly heap: number;
  /** The numbers of pending timers and open streams. */
  readonly timers: number;
  readonly streams: number;
  /** The number of entries in each map and set that was created while the server was created. */
  readonly maps: Readonly<Record<string, number>>;
  /**
   * The numbers of calls that started, were aborted and have ended, and the number of characters that floods could
   * write.
   */
  readonly started: number;
  readonly aborted: number;
  readonly ended: number;
  readonly taken: number;
  /** The numbers of unhandled rejections, and of errors that were reported to `observer.fault`. */
  readonly unhandled: number;
  readonly faults: number;
}

const options: { readonly limits?: BoundOptions; readonly stdio?: boolean } = JSON.parse(
  (deno?.args ?? bun?.argv.slice(2) ?? [])[0] ?? "{}",
);
const counts = { started: 0, aborted: 0, ended: 0, taken: 0, unhandled: 0, faults: 0 };
/** For each call number, the time when the call was aborted, in milliseconds since 1970. */
const abortedAt: Record<string, number> = {};
const begun = new Set<string>();
const any = { type: "object" } as const;
type Input = Readonly<Record<string, unknown>>;

globals.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  counts.unhandled++;
});

/** Runs a call, counts it, and records when it is aborted. */
async function counted<T>(input: Input, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  counts.started++;
  begun.add(String(input.n));
  signal.addEventListener("abort", () => {
    counts.aborted++;
    if (input.n !== undefined) abortedAt[String(input.n)] = performance.timeOrigin + performance.now();
  });
  try {
    return await run();
  } finally {
    counts.ended++;
  }
}

const rest = (ms: unknown) => new Promise<void>((resolve) => setTimeout(resolve, Number(ms)));

const runHeavy = worker<typeof heavy>(new URL("./heavy.ts", import.meta.url), { size: 1 });

const handlers = [
  tool({ name: "quick", run: () => "quick" }),
  tool({
    name: "echo",
    input: any,
    async run({ word, steps }: Input, ctx) {
      for (let i = 1; i <= Number(steps ?? 0); i++) await ctx.progress(i, { message: String(word) });
      return String(word);
    },
  }),
  tool({
    name: "hold",
    input: any,
    run: (input: Input, ctx) =>
      counted(input, ctx.signal, async () => {
        if (input.speaks) await ctx.progress(1);
        const gone = new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        await Promise.race([rest(input.ms), gone]);
        return "held";
      }),
  }),
  tool({
    name: "flood",
    input: any,
    run: (input: Input, ctx) =>
      counted(input, ctx.signal, async () => {
        const text = "x".repeat(Number(input.kb) * 1024);
        for (let i = 0; i < Number(input.count) && !ctx.signal.aborted; i++) {
          await ctx.log.info(text);
          counts.taken += text.length;
        }
        return "flooded";
      }),
  }),
  tool({
    name: "throws",
    run() {
      throw new Error("thrown on purpose");
    },
  }),
  tool({
    name: "ask",
    run: async (_input, ctx) =>
      (await ctx.elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } })).action,
  }),
  tool({ name: "big", input: any, run: ({ kb }: Input) => "x".repeat(Number(kb) * 1024) }),
  tool({
    name: "heavy",
    input: any,
    run: async ({ job, ms }: Input, ctx) => await runHeavy({ job: String(job), ms: Number(ms) }, ctx),
  }),
  resource({ uri: "load://one", name: "one", read: () => "one" }),
  resource({ uri: "load://{name}", name: "some", read: ({ name }) => name }),
];

/**
 * Creates a server, and collects the maps and sets that are created in the meantime, by the file that created them.
 * They live as long as the server.
 */
function withMaps(
  make: () => Server,
): { readonly server: Server; readonly maps: ReadonlyMap<string, { readonly size: number }> } {
  const made = new Map<string, { readonly size: number }>();
  const { Map: RealMap, Set: RealSet } = globalThis;
  const note = (each: { readonly size: number }) => {
    const places = new Error().stack?.match(/src\/[\w/]+\.ts:\d+/g) ?? [];
    made.set(`${places[0]?.replace(/^src\//, "") ?? "?"} ${made.size}`, each);
  };
  class NotedMap<K, V> extends RealMap<K, V> {
    constructor(entries?: Iterable<readonly [K, V]> | null) {
      super(entries);
      note(this);
    }
  }
  class NotedSet<T> extends RealSet<T> {
    constructor(entries?: Iterable<T> | null) {
      super(entries);
      note(this);
    }
  }
  Object.assign(globalThis, { Map: NotedMap, Set: NotedSet });
  try {
    return { server: make(), maps: made };
  } finally {
    Object.assign(globalThis, { Map: RealMap, Set: RealSet });
  }
}

const { server, maps } = withMaps(() =>
  createServer({
    name: "load",
    version: "1.0.0",
    handlers,
    limits: testLimits(options.limits ?? {}),
    observer: { fault: () => void counts.faults++ },
  })
);

async function toStats(): Promise<Stats> {
  for (let i = 0; i < 2; i++) {
    globals.gc?.();
    bun?.gc(true);
  }
  const { rss, heapUsed, external } = globals.process.memoryUsage();
  const { streams } = (await server[INTERNALS].http.endpoint.load()).parts;
  const sizes = [...maps].map(([place, { size }]) => [place, size] as const);
  return {
    rss,
    heap: heapUsed + external,
    timers: streams.ticker.size,
    streams: streams.size,
    maps: Object.fromEntries(sizes),
    ...counts,
  };
}

/** Handles `/_load/…`: reports, and commands from the driver. */
async function answer(path: string): Promise<Response> {
  const [, n] = /^begun_(.*)/.exec(path) ?? [];
  if (n) return Response.json(begun.has(n));
  switch (path) {
    case "stats":
      return Response.json(await toStats());
    case "taken":
      return Response.json(counts.taken);
    case "aborted":
      return Response.json(abortedAt);
    case "news":
      server.resourceUpdated("load://one");
      return Response.json({});
    case "close": {
      const start = performance.now();
      await server.close();
      return Response.json({ ms: performance.now() - start });
    }
  }
  return new Response(null, { status: 404 });
}

function serve(request: Request, info: object): Promise<Response> {
  const [, path] = /\/_load\/(\w+)$/.exec(request.url) ?? [];
  return path ? answer(path) : server.fetch(request, info);
}

if (options.stdio) {
  const { serveStdio } = await import("../../src/server/transports/stdio/stdio.ts");
  await serveStdio(server);
} else if (deno) {
  deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, serve);
} else if (bun) {
  console.log(bun.serve({ hostname: "127.0.0.1", port: 0, fetch: serve }).port);
}
