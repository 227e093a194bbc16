// Runs instances of a server in separate processes, which share a store behind a proxy.
import { findFreePort, root } from "../../support/processes.ts";
import { missingPostgres, type PostgresServer, startPostgres } from "../../support/postgres/server.ts";
import { missingRedis, type RedisServer, startRedis } from "../../support/redis/server.ts";
import type { Runtime } from "../processes.ts";

/** The storage engines under test. */
export const ENGINES = ["redis", "postgres", "sqlite", "denokv"] as const;
export type Engine = typeof ENGINES[number];

/** The runtimes that the instances use in rotation, for each value of `--runtime`. */
export const RUNTIMES: Readonly<Record<string, readonly Runtime[]>> = {
  deno: ["deno"],
  bun: ["bun"],
  mixed: ["deno", "bun"],
};

/** The reasons why engines cannot run on this machine. */
export const MISSING: Readonly<Partial<Record<Engine, string>>> = { redis: missingRedis, postgres: missingPostgres };

/** One instance of the server, in its own process. */
export interface Instance {
  readonly runtime: Runtime;
  readonly origin: string;
  /** Whether the instance accepts connections. */
  isUp: boolean;
  /** Starts the process, and waits until the server responds. */
  start(): Promise<void>;
  /** Sends a signal to the process, and waits until it has exited. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** Suspends the process, which then holds its connections and misses its deadlines. */
  pause(ms: number): Promise<void>;
  /** Returns the standard error so far. */
  errors(): string;
}

/** Several instances, their storage engine, and the proxy in front of the instances. */
export interface Cluster extends AsyncDisposable {
  readonly place: Place;
  readonly instances: readonly Instance[];
  /** Sends a request to a random instance. Like a proxy, tries another instance if the connection is refused. */
  send(request: Request): Promise<Response>;
}

const commands: Record<Runtime, readonly string[]> = {
  deno: ["deno", "run", "-A", "--no-check", "--quiet", "--unstable-kv", "mod.ts"],
  bun: ["bun", "mod.ts"],
};

const SECRET = "a-secret-of-at-least-thirty-two-characters";

/** The options of `startCluster`. */
export interface ClusterOptions {
  readonly engine: Engine;
  /** The runtimes that the instances use in rotation. */
  readonly runtimes: readonly Runtime[];
  /** The number of instances. Defaults to 3. */
  readonly count?: number;
  /** The server file, in this folder. Defaults to `server.ts`. */
  readonly file?: string;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds by which each instance's clock is ahead of the previous instance's clock. Defaults to 0. */
  readonly skewMs?: number;
}

/** The location of the data. */
export interface Place extends AsyncDisposable {
  /** The value of the environment variable `MCP_STORE`. */
  readonly url: string;
  /** The Redis server, if the engine is Redis. */
  readonly redis?: RedisServer;
  /** The PostgreSQL server, if the engine is PostgreSQL. */
  readonly postgres?: PostgresServer;
  /** The path of the database file, if the engine uses a file. */
  readonly path?: string;
}

async function openPlace(engine: Engine): Promise<Place> {
  if (engine === "redis") {
    const port = findFreePort();
    const redis = startRedis("--port", `${port}`);
    return { url: `redis://127.0.0.1:${port}/0`, redis, [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() };
  }
  if (engine === "postgres") {
    const postgres = startPostgres();
    const url = `postgres:///postgres?host=${postgres.folder}&user=postgres`;
    return { url, postgres, [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose]() };
  }
  const folder = await Deno.makeTempDir({ prefix: "mcp-cluster-" });
  const path = `${folder}/store.db`;
  return {
    url: `${engine}:${path}`,
    path,
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

function createInstance(runtime: Runtime, file: string, env: Record<string, string>): Instance {
  const port = findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  let child: Deno.ChildProcess | undefined;
  let errors = "";
  const instance: Instance = {
    runtime,
    origin,
    isUp: false,
    async start() {
      const [command, ...args] = [...commands[runtime], `tests/load/cluster/${file}`, "--http", "--port", `${port}`];
      const started = child = new Deno.Command(command, { args, cwd: root, env, stdin: "null", stderr: "piped" })
        .spawn();
      (async () => {
        for await (const text of started.stderr.pipeThrough(new TextDecoderStream())) errors += text;
      })();
      for (const deadline = performance.now() + 20_000; performance.now() < deadline;) {
        const response = await fetch(origin).catch(() => {});
        await response?.body?.cancel();
        if (response) return void (instance.isUp = true);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      throw new Error(`Cannot start an instance on ${runtime}: ${errors}`);
    },
    async end(signal) {
      instance.isUp = false;
      // Before the signal, the proxy stops using the instance, and requests that are already sent get time to arrive.
      if (signal === "SIGTERM") await new Promise((resolve) => setTimeout(resolve, 200));
      const ended = child;
      child = undefined;
      try {
        ended?.kill(signal);
      } catch {
        const { code, signal } = await ended?.status ?? {};
        throw new Error(`Cannot end an instance on ${runtime}: it has ended by itself (${signal ?? code}): ${errors}`);
      }
      await ended?.status;
    },
    async pause(ms) {
      child?.kill("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, ms));
      child?.kill("SIGCONT");
    },
    errors: () => errors,
  };
  return instance;
}

/** Starts the engine and the instances. */
export async function startCluster(
  { engine, runtimes, count = 3, file = "server.ts", skewMs = 0, env: more }: ClusterOptions,
): Promise<Cluster> {
  const place = await openPlace(engine);
  const instances = Array.from({ length: count }, (_, i) => {
    const env = { MCP_STORE: place.url, MCP_SECRET: SECRET, SKEW_MS: `${(i - 1) * skewMs}`, ...more };
    return createInstance(runtimes[i % runtimes.length], file, env);
  });
  await Promise.all(instances.map((each) => each.start()));
  return {
    place,
    instances,
    send: (request) => forward(request, instances),
    async [Symbol.asyncDispose]() {
      await Promise.all(instances.map((each) => each.end("SIGKILL")));
      await place[Symbol.asyncDispose]();
    },
  };
}

async function forward(request: Request, instances: readonly Instance[]): Promise<Response> {
  // If a reused connection is cut, Deno sends another body again.
  const body = request.body && await request.blob();
  const { pathname, search } = new URL(request.url);
  const { method, headers, signal } = request;
  const left = instances.filter(({ isUp }) => isUp);
  while (true) {
    const [chosen] = left.splice(Math.floor(Math.random() * left.length), 1);
    if (!chosen) return new Response("no instance", { status: 502 });
    try {
      return await fetch(`${chosen.origin}${pathname}${search}`, { method, headers, body, signal });
    } catch (error) {
      if (!/refused/.test(Deno.inspect(error))) throw error;
    }
  }
}
