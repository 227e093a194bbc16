// Registers a behaviour: a test that runs in every era and over every transport, because the result must not depend on
// the era or the transport. With QUICK=1, as in the fast tier, the test runs only in the two most different
// combinations; with QUICK=0, as in the slow tier on Deno and in the long tier on Bun, only in the other combinations.
// With INSTANCES, it runs over HTTP on three instances that share a store.
import process from "node:process";
import { inspect } from "node:util";
import { assertEquals } from "@std/assert";
import {
  type Context,
  createServer,
  resource,
  type Server,
  type ServerOptions,
  tool,
  type ToolReturn,
} from "../../mod.ts";
import {
  type Connection,
  connectTest,
  type ConnectTestOptions,
  type FakeClock,
  type TestSubscription,
} from "../../src/testing/testing.ts";
import { createInstances, hasInstances, type PerInstance } from "./instances.ts";

export const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

/** A combination of an era, a revision and a transport. */
export interface Way {
  readonly era: "modern" | "legacy";
  readonly version: string;
  readonly transport: "memory" | "http" | "pipe";
}

/** An error that was reported to `observer.fault`. */
export interface Told {
  readonly error: unknown;
  readonly id: string;
  readonly method?: string;
  readonly subject?: string;
}

/** A server with a connected client. */
export interface Fixture {
  readonly client: Connection;
  readonly server: Server;
  /** Returns the errors that `observer.fault` got since the last call. An error that is not taken fails the test. */
  takeFaults(): readonly Told[];
  /** Connects another client to the same server. */
  join(options?: ConnectTestOptions): Promise<Connection>;
}

/** Creates a server, and connects a client to it in the era and over the transport of the test. */
export type Connect = (
  options?: Partial<ServerOptions>,
  client?: ConnectTestOptions,
) => Promise<Fixture>;

/** Restricts the combinations in which a behaviour runs. */
export interface BehaviourOptions {
  readonly eras?: readonly Way["era"][];
  readonly transports?: readonly Way["transport"][];
  /** The legacy revisions. Defaults to the newest legacy revision. */
  readonly versions?: readonly string[];
  /** The reason why the behaviour holds only within one instance. If set, the behaviour runs on a single instance. */
  readonly perInstance?: PerInstance;
}

const QUICK = new Set(["modern over http", "legacy over pipe"]);

function listWays(options: BehaviourOptions): Way[] {
  const ways = listAllWays(options);
  if (hasInstances) return ways.filter(({ transport }) => transport === "http");
  const few = ways.filter(({ era, transport }) => QUICK.has(`${era} over ${transport}`));
  if (!few.length) few.push(...ways.slice(0, 1));
  if (process.env.QUICK === "1") return few;
  return process.env.QUICK === "0" ? ways.filter((way) => !few.includes(way)) : ways;
}

function listAllWays(
  { eras = ["modern", "legacy"], transports = ["memory", "http", "pipe"], versions }: BehaviourOptions,
): Way[] {
  return eras.flatMap((era) =>
    (era === "modern" ? ["2026-07-28"] : versions ?? LEGACY_VERSIONS.slice(0, 1)).flatMap((version) =>
      transports.map((transport) => ({ era, version, transport }))
    )
  );
}

/** Registers one test per combination of era, revision and transport. */
export function behaviour(
  name: string,
  run: (connect: Connect, way: Way) => Promise<void>,
  options: BehaviourOptions = {},
): void {
  const { perInstance } = options;
  for (const way of listWays(options)) {
    const { era, version, transport } = way;
    // A behaviour must not leak timers or sockets. With instances this is not checked, because a database client may
    // take a moment to close.
    const strict = { sanitizeOps: !hasInstances, sanitizeResources: !hasInstances };
    Deno.test({ name: `${name} (${way.version} over ${way.transport})`, ...strict }, async () => {
      const faults: Told[] = [];
      await using stack = new AsyncDisposableStack();
      await run(async (options, client) => {
        const observer = [{ fault: (fault: Told) => void faults.push(fault) }, options?.observer ?? []].flat();
        const all = { name: "fixture", version: "1.0.0", ...options, observer };
        const server = hasInstances && !options?.store ? createInstances(all, perInstance ? 1 : 3) : createServer(all);
        stack.defer(endOperations);
        stack.defer(() => server.close());
        const join = async (options?: ConnectTestOptions) =>
          stack.use(await connectTest(server, { era, transport, revisions: [version], ...options }));
        return { client: await join(client), server, takeFaults: () => faults.splice(0), join };
      }, way);
      assertEquals(faults, [], "unexpected errors");
    });
  }
}

/** Number of cryptographic operations that threads are computing. */
let operations = 0;

const { subtle } = crypto;
for (const name of ["digest", "encrypt", "decrypt", "sign", "verify", "importKey", "deriveKey"] as const) {
  const operation: (...args: never[]) => Promise<unknown> = subtle[name].bind(subtle);
  Object.assign(subtle, {
    [name]: async (...args: never[]) => {
      operations++;
      try {
        return await operation(...args);
      } finally {
        operations--;
      }
    },
  });
}

/**
 * Waits until cryptographic operations have ended. A cancelled call ends immediately, but a thread may still compute the
 * digest of its idempotency key, or encrypt the state of its question.
 */
async function endOperations(): Promise<void> {
  await until(() => operations === 0, "the cryptographic operations have ended");
}

/** Returns the text of a result's first content block. */
export function textOf({ content }: { readonly content: readonly unknown[] }): string {
  const [first] = content;
  return typeof first === "object" && first && "text" in first ? String(first.text) : JSON.stringify(first);
}

/** Time in milliseconds after which {@linkcode until} gives up. It is long, because machines may be slow. */
const PATIENCE_MS = 60_000;

/**
 * Waits until a condition holds. Throws after 60 seconds. The error prints what `look` returns, or else the last value
 * of the condition.
 */
export async function until(condition: () => unknown, what: string, look?: () => unknown): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let seen = await condition(); !seen; seen = await condition()) {
    if (performance.now() > deadline) {
      const last = look ? await look() : seen;
      throw new Error(`Condition not met within ${PATIENCE_MS / 1000} s: ${what}; last seen: ${inspect(last)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Advances a clock by `ms` milliseconds at a time until a promise has settled. Returns the value of the promise. */
export async function advanceUntil<T>(clock: FakeClock, ms: number, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = () => void (isSettled = true);
  promise.then(settle, settle);
  await until(async () => {
    await clock.advance(ms);
    return isSettled;
  }, "the promise has settled");
  return await promise;
}

/** Waits for turns of the event loop, in which all work runs that needs neither a timer nor another process. */
export async function turn(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve, 0));
}

/** The URI of the resource {@linkcode fenced}. */
export const FENCE = "fence://1";

/** The resource whose changes {@linkcode fence} announces. */
export const fenced = resource({ uri: FENCE, name: "fence", read: () => "" });

/**
 * Waits until subscriptions to {@linkcode FENCE} have received all changes announced so far. The first fence ends the
 * current batch of changes. By the second fence, the promises of `allow` and `to` have settled.
 */
export async function fence(server: Server, ...subscriptions: readonly TestSubscription[]): Promise<void> {
  for (const round of ["first", "second"]) {
    const counts = subscriptions.map(countFences);
    server.resourceUpdated(FENCE);
    await until(() => subscriptions.every((each, at) => countFences(each) > counts[at]), `the ${round} fence`);
  }
}

/** Returns the notifications that a subscription or a client has received, without the fences. */
export function withoutFences({ received }: Pick<TestSubscription, "received">): TestSubscription["received"] {
  return received.filter(({ params }) => params.uri !== FENCE);
}

function countFences(subscription: TestSubscription): number {
  return subscription.received.length - withoutFences(subscription).length;
}

/** A promise `pass` that calls can await, and a function `open` that resolves it. */
export interface Gate {
  readonly pass: Promise<void>;
  readonly open: () => void;
  /** Number of calls of `enter`. */
  entered: number;
  /** Counts a call that waits for `pass`. */
  enter(): Promise<void>;
}

/** Creates a gate. */
export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  const enter = () => (gate.entered++, promise);
  const gate: Gate = { pass: promise, open: resolve, entered: 0, enter };
  return gate;
}

/** Creates a tool without input and further options. */
export function plainTool<const N extends string>(name: N, run: (ctx: Context) => ToolReturn | Promise<ToolReturn>) {
  return tool({ name, run: (_input, ctx) => run(ctx) });
}

/** Throws an error, in an expression. */
export function raise(error: unknown): never {
  throw error;
}

/** Returns the promise. Its rejection is not reported as unhandled if the test fails before awaiting the promise. */
export function started<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
