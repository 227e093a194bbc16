// The server that is attacked, on each runtime and with every transport. Requests to `/_load/…` report its state. The
// argument `stdio` selects stdio.
import { createServer, prompt, resource, tool } from "../../../mod.ts";
import { openListener } from "../../../src/core/http_listener.ts";
import type { Schema } from "../../../src/core/schema/schema.ts";
import { httpSse } from "../../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../../src/server/transports/websocket.ts";

interface Globals {
  readonly Deno?: typeof Deno;
  readonly Bun?: {
    readonly argv: readonly string[];
    gc(force: boolean): void;
    serve(options: object): { readonly port: number };
  };
  readonly process: {
    memoryUsage(): { readonly rss: number; readonly heapUsed: number; readonly external: number };
    cpuUsage(): { readonly user: number; readonly system: number };
  };
  readonly gc?: () => void;
}

const globals = globalThis as unknown as Globals; // No runtime has types for the globals of the others.
const { Deno: deno, Bun: bun, process } = globals;

/** The CPU time that the process has used, and its longest block. */
export interface Spent {
  /** The CPU time of all threads since the start of the process, in microseconds. */
  readonly cpu: number;
  /** The longest time without a turn of the event loop since the last report, in milliseconds. */
  readonly block: number;
}

/** The memory of the process after garbage collection, in bytes. */
export interface Held {
  readonly rss: number;
  readonly heap: number;
}

const any = { type: "object" } as const;
const objects = Array.from({ length: 200 }, (_, i) => ({ a: i, b: [i] }));
const list = (items: object) => ({ type: "object", properties: { v: { type: "array", ...items } } }) as const;
/** A tool that only checks its input. */
const done = (name: string, input: Schema) => tool({ name, input, run: () => "done" });
const children = { type: "array", items: { $ref: "#/$defs/node" } };
/** A recursive schema of files and folders, as alternatives without required properties. */
const node = {
  type: "object",
  anyOf: ["a", "b", "c"].map((kind) => ({ properties: { children, kind: { const: kind } } })),
};

const handlers = [
  tool({ name: "quick", run: () => "quick" }),
  done("any", any),
  tool({
    name: "slow",
    input: any,
    run: (_input, { signal }) => new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve(""))),
  }),
  tool({
    name: "steps",
    input: any,
    async run({ count }: Readonly<Record<string, unknown>>, ctx) {
      for (let i = 1; i <= Number(count); i++) await ctx.progress(i);
      return "done";
    },
  }),
  tool({
    name: "big",
    input: any,
    run: ({ kb }: Readonly<Record<string, unknown>>) => "x".repeat(Math.min(4096, Number(kb)) * 1024),
  }),
  tool({
    name: "ask",
    input: any,
    run: async (_input, ctx) =>
      (await ctx.elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } })).action,
  }),
  done("enum", list({ items: { enum: objects } })),
  done("const", list({ items: { const: { a: 1 } } })),
  done("texts", list({ items: { enum: objects.map(({ a }) => `name ${a}`) } })),
  done("unique", list({ uniqueItems: true })),
  done("contains", list({ contains: { type: "object", required: ["x"] } })),
  done(
    "forms",
    list({
      items: {
        anyOf: objects.slice(0, 20).map(({ a }) => ({
          type: "object",
          properties: { kind: { const: `${a}` } },
          required: ["kind"],
        })),
      },
    }),
  ),
  done("tree", { ...list({ items: { $ref: "#/$defs/node" } }), $defs: { node } }),
  done("both", {
    ...list({ items: { $ref: "#/$defs/node" } }),
    $defs: { node: { allOf: [{ properties: { children } }, { properties: { children } }] } },
  }),
  done("patterns", {
    type: "object",
    patternProperties: { "^a": {}, "b$": {}, "[0-9]{9}": {}, "^x-": {}, "é": {} },
    propertyNames: { maxLength: 4_000_000 },
  }),
  done("lengths", {
    type: "object",
    properties: { v: { anyOf: [10, 20, 30, 40, 50].map((maxLength) => ({ type: "string", maxLength })) } },
  }),
  done(
    "unevaluated",
    list({
      items: {
        allOf: [{ properties: { a: {} } }, { properties: { b: {} } }],
        unevaluatedProperties: { type: "number" },
      },
    }),
  ),
  done("dependent", {
    type: "object",
    dependentRequired: { k1: ["k2", "k3"] },
    dependentSchemas: { k4: { maxProperties: 3 } },
    additionalProperties: { type: "number" },
  }),
  prompt({
    name: "ask",
    input: { type: "object", properties: { word: { type: "string" } } },
    complete: { word: (value) => [value.slice(0, 10)] },
    run: () => "asked",
  }),
  ...["w://{id}", "w://p/{+path}", "w://q/{?a,b}", "w://r/{a}-{b}-{c}", "w://s/{a}/{b}/{c}"].map((uri, i) =>
    resource({ uri, name: `t${i}`, read: () => "" })
  ),
];

const server = createServer({ name: "abuse", version: "1.0.0", handlers, observer: { fault() {} } });

const PAUSE = 5;
let last = performance.now();
let block = 0;
setInterval(() => {
  const now = performance.now();
  block = Math.max(block, now - last - PAUSE);
  last = now;
}, PAUSE);

async function report(path: string): Promise<Spent | Held> {
  if (path === "held") {
    for (let i = 0; i < 3; i++) {
      globals.gc?.();
      bun?.gc(true);
      // Wait, because buffers are freed only after the garbage collection.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const { rss, heapUsed, external } = process.memoryUsage();
    return { rss, heap: heapUsed + external };
  }
  const { user, system } = process.cpuUsage();
  const spent = { cpu: user + system, block };
  block = 0;
  return spent;
}

const sockets = deno || bun ? webSocket(server) : undefined; // Node has no WebSockets.
const events = httpSse(server);

async function serve(request: Request, info: object): Promise<Response> {
  const [, path = ""] = /^https?:\/\/[^/]+(\/[^?]*)/.exec(request.url) ?? [];
  if (path.startsWith("/_load/")) return Response.json(await report(path.slice(7)));
  if (path === "/ws" && sockets) return await sockets.fetch(request, info);
  return await (path === "/mcp" ? server : events).fetch(request, info);
}

if ((deno?.args ?? bun?.argv.slice(2))?.[0] === "stdio") {
  const { serveStdio } = await import("../../../src/server/transports/stdio/stdio.ts");
  await serveStdio(server);
} else if (deno) {
  deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, serve);
} else if (bun) {
  console.log(bun.serve({ hostname: "127.0.0.1", port: 0, fetch: serve, websocket: sockets?.websocket }).port);
} else {
  console.log((await openListener({ hostname: "127.0.0.1", port: 0, fetch: serve })).port);
}
