// Instances of a server in separate processes that share a store, behind a proxy.
import { findFreePort, root } from "../../support/processes.ts";
import { type RedisServer, startRedis } from "../../support/redis/server.ts";
import type { Runtime } from "../processes.ts";

/** The engines whose stores are tested. */
export const ENGINES = ["redis", "sqlite", "denokv"] as const;
export type Engine = typeof ENGINES[number];

/** The runtimes of the instances, in turn, by the requested runtime. */
export const RUNTIMES: Readonly<Record<string, readonly Runtime[]>> = {
  deno: ["deno"],
  bun: ["bun"],
  mixed: ["deno", "bun"],
};

/** One instance. */
export interface Instance {
  readonly runtime: Runtime;
  readonly origin: string;
  /** Whether the instance accepts connections. */
  isUp: boolean;
  /** Starts the instance, and waits until it responds. */
  start(): Promise<void>;
  /** Ends the instance with a signal, and waits until it has ended. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<void>;
  /** The standard error of the instance so far. */
  errors(): string;
}

/** Instances, their engine and the proxy in front of them. */
export interface Cluster extends AsyncDisposable {
  readonly place: Place;
  readonly instances: readonly Instance[];
  /** Sends a request to a random instance. Like a proxy, it tries another instance if the connection is refused. */
  send(request: Request): Promise<Response>;
}

const commands: Record<Runtime, readonly string[]> = {
  deno: ["deno", "run", "-A", "--no-check", "--quiet", "--unstable-kv", "mod.ts"],
  bun: ["bun", "mod.ts"],
};

const SECRET = "a-secret-of-at-least-thirty-two-characters";

/** The options of a cluster. */
export interface ClusterOptions {
  readonly engine: Engine;
  /** The runtimes of the instances, in turn. */
  readonly runtimes: readonly Runtime[];
  /** The number of instances. Defaults to 3. */
  readonly count?: number;
  /** The file of the server, in this folder. Defaults to `server.ts`. */
  readonly file?: string;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The milliseconds by which the clock of each instance is ahead of the clock of the previous instance. Defaults to 0.
   */
  readonly skewMs?: number;
}

/** The location of the store. */
export interface Place extends AsyncDisposable {
  /** The value of `MCP_STORE`. */
  readonly url: string;
  /** The Redis server. */
  readonly redis?: RedisServer;
  /** The path of a database file. */
  readonly path?: string;
}

async function openPlace(engine: Engine): Promise<Place> {
  if (engine === "redis") {
    const port = findFreePort();
    const redis = startRedis("--port", `${port}`);
    return { url: `redis://127.0.0.1:${port}/0`, redis, [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() };
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
      // An operator removes an instance from the proxy first, and lets requests that are already sent arrive.
      if (signal === "SIGTERM") await new Promise((resolve) => setTimeout(resolve, 200));
      child?.kill(signal);
      await child?.status;
      child = undefined;
    },
    errors: () => errors,
  };
  return instance;
}

/** Starts instances and their engine. */
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
  const body = request.body && await request.arrayBuffer();
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
