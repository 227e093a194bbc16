// The servers that are attacked. Their limits are small, so that every shared limit is reached within a second.
import { z } from "zod";
import { createServer, extension, resource, type Server, service, tool } from "../../../mod.ts";
import { basicAuth, customAuth } from "../../../src/auth/auth.ts";
import { INTERNALS } from "../../../src/core/internals.ts";
import type { LimitOptions } from "../../../src/server/capacity/limits.ts";
import { cache, idempotent, quota } from "../../../src/layers/layers.ts";
import { toolSearch } from "../../../src/ready/search/search.ts";
import { proxy } from "../../../src/proxy/proxy.ts";
import type { KeptBytes } from "../../../src/extensions/extension.ts";
import { customStore, memoryStore, type Store, type StoreEngine } from "../../../src/stores/stores.ts";
import { wrapEngine } from "../../support/engines.ts";
import { any } from "../../hostile/attack.ts";
import { testLimits } from "../../support/limits.ts";

/** Where a request is sent, and as whom. */
export interface Caller {
  readonly path: string;
  readonly info: { readonly principal?: { readonly id: string }; readonly remoteAddr?: { readonly hostname: string } };
  /** A bearer token. Ignored if the request has other credentials. */
  readonly token?: string;
}

/** A server with its accounts. */
export interface Site {
  readonly server: Pick<Server, "fetch" | "close" | "resourceUpdated" | typeof INTERNALS>;
  /** The server behind its proxies. */
  readonly remote: Pick<Server, "close">;
  /** Returns the path that a client uses. */
  toPath(client: string): string;
  /** Whether callers need a token. */
  readonly hasTokens?: boolean;
  /** Whether the path contains a tenant and the state is in a store. */
  readonly hasTenants?: boolean;
  /** Holds the responses of the store until the returned function is called. */
  holdStore?(): () => void;
}

/** Number of resources of the server behind the proxies: more than the proxies may watch. */
export const REMOTE_RESOURCES = 200;

/** Duration of each slow operation, in milliseconds. */
const SLOW_MS = 50;
const STORE_MS = 10;

/** As with the default limits, a reserve has more places than there are attacking networks. */
const LIMITS: LimitOptions = testLimits({
  memory: { bytes: 48_000_000, bytesPerClient: 4_000_000 },
  connections: { streams: 128, streamsPerClient: 16, sessions: 200 },
  calls: { running: 128, runningPerClient: 16, waiting: 128, closeMs: 10 },
  sessions: { openPerClient: 50 },
  endpoints: { open: 128 },
  auth: { running: 128, runningPerPeer: 16, delayed: 128, delayedPerPeer: 16, delayMs: 500 },
  replay: { bytes: 400_000 },
  idempotency: { bytes: 2_000_000 },
  request: { bodyMs: 5000, allBodiesBytes: 4_000_000 },
  store: { operations: 96 },
  proxy: {
    connections: 128,
    connectionsPerClient: 16,
    parked: 128,
    parkedPerClient: 16,
    bytes: 1_000_000,
    watched: 128,
    watchedPerClient: 16,
  },
});

/** Starts a server without authentication, with all state in memory. */
export function startOpen(): Site {
  const remote = startRemote();
  const server = createServer({ ...toOptions(), path: "/mcp", handlers: listHandlers(remote) });
  return { server, remote, toPath: () => "/mcp" };
}

/** Starts a server with a path per tenant. Its checks and handlers can be slow, and its state is in a slow store. */
export function startTenants(): Site {
  const remote = startRemote();
  const { store, holdStore } = makeSlowStore();
  const server = createServer({
    ...toOptions(),
    limits: { ...LIMITS, perTenant: { running: 24 } },
    path: "/:tenant/mcp",
    pathSchema: z.object({ tenant: z.string().refine((name) => name.startsWith("check") ? slowly(true) : true) }),
    handlers: ({ tenant }) => tenant.startsWith("make") ? slowly(listHandlers(remote)) : listHandlers(remote),
    store,
    secret: "a secret of at least thirty-two characters",
  });
  return { server, remote, toPath: (client) => `/${client}/mcp`, hasTenants: true, holdStore };
}

/** Starts a server that verifies some tokens synchronously, and all other tokens asynchronously. It knows no passwords. */
export function startProtected(): Site {
  const tokens = customAuth((request) => {
    const [, kind, id] = /^Bearer (known|slow)-(\w+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    if (kind === "known") return { id };
    return slowly(kind === "slow" ? { id } : undefined);
  }, { form: "bearer" });
  const auth = [tokens, basicAuth({ users: () => undefined })];
  const remote = startRemote();
  const server = createServer({ ...toOptions(), path: "/mcp", handlers: listHandlers(remote), auth });
  return { server, remote, toPath: () => "/mcp", hasTokens: true };
}

/** Sends a request as the given caller. */
export async function send({ server }: Site, { path, info, token }: Caller, request: Request): Promise<Response> {
  const own = new Request(new URL(path, request.url), request);
  if (token !== undefined && !own.headers.has("authorization")) own.headers.set("authorization", `Bearer ${token}`);
  return await server.fetch(own, info);
}

function toOptions() {
  return { name: "shares", version: "1.0.0", limits: LIMITS, observer: { fault() {} } };
}

/** Starts a server with sessions, which has room for everything that the proxies of a server pass on. */
function startRemote(): Server {
  const form = { message: "?", schema: sure } as const;
  const tools = [
    tool({ name: "ask", input: any, run: async (_, { elicit }) => (await elicit("sure", form)).action }),
    tool({
      name: "ask_late",
      input: any,
      // Does not wait for the answer, so that the result waits for the client.
      run(_, ctx) {
        ctx.elicit("sure", form).catch(() => {});
        return slowly("x".repeat(20_000));
      },
    }),
    // The session is the connection.
    tool({ name: "session", input: any, run: (_, { http }) => slowly(http?.headers.get("mcp-session-id")) }),
  ];
  const resources = Array.from(
    { length: REMOTE_RESOURCES },
    (_, i) => resource({ uri: `remote://${i}`, name: `remote ${i}`, read: () => "" }),
  );
  return createServer({
    ...toOptions(),
    revisions: ["2025-11-25"],
    limits: testLimits({
      memory: { bytes: Infinity, bytesPerClient: Infinity },
      connections: { streams: Infinity, streamsPerClient: Infinity, sessions: Infinity },
      calls: { running: Infinity, runningPerClient: Infinity, closeMs: 10, answerMs: 3_600_000 },
      sessions: { openPerClient: Infinity },
    }),
    handlers: [...tools, ...resources],
  });
}

function listHandlers(remote: Server) {
  const fetch = (request: Request) => remote.fetch(request);
  const late = extension({ id: "test.example/late" });
  const answersFirst = late.layer({
    around(call, next) {
      call.detach();
      // Hold as many bytes as the client is allowed to hold, for as long as a finished task is kept.
      const all: KeptBytes[] = [];
      for (let kept; all.length < 1000 && (kept = call.keep(65_536));) all.push(kept);
      setTimeout(() => all.forEach((kept) => kept.end()), 8 * SLOW_MS);
      next().catch(() => {});
      return { content: [] };
    },
  });
  const follow = extension({
    id: FOLLOW,
    start() {},
    methods: {
      // Follows a topic for some time, like a client that has resumed a stream of another instance.
      "follow/topic": {
        async run(_, ctx, server) {
          const stop = await server?.store?.by(ctx).subscribe("topic", () => {});
          setTimeout(() => stop?.(), 8 * SLOW_MS);
          return {};
        },
      },
    },
  });
  const narrow = quota({ concurrency: 2 });
  const values = service("values", ({ key }) => ({ key, id: crypto.randomUUID() }), {
    per: ({ params }) => String(Object(params.arguments).key),
    max: 128,
  });
  return [
    late,
    follow,
    tool({ name: "quick", input: any, run: () => "quick" }),
    tool({ name: "narrow", input: any, use: [narrow], run: () => slowly("narrow", 1) }),
    tool({ name: "wait", input: any, run: (_, { signal }) => untilCancelled(signal) }),
    tool({ name: "late", input: any, use: [answersFirst], run: () => slowly("late", 4 * SLOW_MS) }),
    tool({
      name: "say",
      input: z.object({ times: z.number() }),
      async run({ times }, { log }) {
        for (let i = 0; i < times; i++) await log.info("x".repeat(1000));
        return "said";
      },
    }),
    tool({
      name: "keep",
      use: [quota({ resultBytes: 2000, onLarge: "link", keepBytes: 2_000_000 })],
      run: () => "x".repeat(20_000),
    }),
    tool({
      name: "cached",
      input: z.object({ key: z.string() }),
      annotations: { readOnlyHint: true },
      use: [cache({ ttlMs: 600_000, shared: true, bytes: 1_000_000 })],
      run: () => "x".repeat(20_000),
    }),
    tool({
      name: "valued",
      input: any,
      services: { values },
      run: (_, { services: { values } }) => slowly(values.id),
    }),
    tool({
      name: "once",
      input: z.object({ key: z.string() }),
      use: [idempotent(({ key }) => key)],
      run: () => "x".repeat(20_000),
    }),
    tool({
      name: "consent",
      input: any,
      run: async (_, ctx) => (await ctx.elicit("sure", { message: "?", schema: sure, singleUse: true })).action,
    }),
    resource({ uri: "test://a", name: "a", read: () => "" }),
    toolSearch({ when: () => false }),
    proxy("http://localhost/mcp", { prefix: "all_", fetch }),
    proxy("http://localhost/mcp", { prefix: "own_", fetch, headers: () => ({}) }),
  ];
}

/** The extension whose method follows a topic of the store. */
export const FOLLOW = "test.example/follow";

const sure = z.object({ ok: z.boolean() });

function makeSlowStore(): { readonly store: Store; holdStore(): () => void } {
  let held: Promise<void> | undefined;
  const store = customStore(async (): Promise<StoreEngine> => {
    const engine = await memoryStore()[INTERNALS].connect();
    return wrapEngine(engine, async ({ run }) => {
      await held;
      return await slowly(run(), STORE_MS);
    });
  }, { subscriptions: 144 });
  const holdStore = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  };
  return { store, holdStore };
}

/** Returns a promise that resolves to a value after a delay. */
function slowly<T>(value: T, ms: number = SLOW_MS): Promise<Awaited<T>> {
  return new Promise((resolve) => setTimeout(async () => resolve(await value), ms));
}

function untilCancelled(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
