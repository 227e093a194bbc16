// Helpers for the peer tests on all runtimes: serve on a port, find the commands of the runtimes, and lose
// connections.
import { openHttpServer } from "../../src/testing/http_server.ts";
import type { ConnectionInfo } from "../../src/server/transports/http/access.ts";

type Fetch = (request: Request, info?: ConnectionInfo) => Promise<Response>;

/** What `serve` serves. Only Bun uses the field `websocket`. */
export interface Service {
  readonly fetch: Fetch;
  readonly websocket?: object;
}

/** A running service. Disposing the object stops the service. */
export interface Port extends AsyncDisposable {
  /** The host and port, such as `127.0.0.1:40123`. */
  readonly host: string;
}

interface BunHost {
  readonly argv: readonly string[];
  serve(options: Service & { hostname: string; port: number; idleTimeout: number }): {
    readonly port: number;
    stop(now: boolean): Promise<void>;
  };
  which(name: string): string | null;
}

const { Bun: bun } = globalThis as unknown as { readonly Bun?: BunHost }; // The types of this package do not declare `Bun`.

/** Whether the runtime can upgrade a request to a WebSocket. Node cannot. */
export const canUpgrade: boolean = bun !== undefined || typeof Deno !== "undefined";

/** Like {@linkcode serve}, also on Node, which assigns the port only when the server has started to listen. */
export async function openPort(service: Service): Promise<Port> {
  if (canUpgrade) return serve(service);
  const { origin, stop } = await openHttpServer(service.fetch);
  return { host: new URL(origin).host, [Symbol.asyncDispose]: stop };
}

/** Serves on a free port of 127.0.0.1 until the result is disposed. Works on Deno and Bun. */
export function serve({ fetch, websocket }: Service): Port {
  if (bun) {
    const server = bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 10, fetch, websocket });
    return { host: `127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) };
  }
  const end = new AbortController();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, signal: end.signal, onListen() {} }, fetch);
  return {
    host: `127.0.0.1:${server.addr.port}`,
    async [Symbol.asyncDispose]() {
      end.abort();
      await server.finished;
    },
  };
}

export interface Command {
  readonly command: string;
  readonly args: string[];
}

/** Returns the command that runs a file, for each installed runtime. */
export function listCommands(file: URL): readonly (Command & { readonly runtime: "deno" | "bun" })[] {
  const own = bun ? "bun" : "deno";
  return (["deno", "bun"] as const).flatMap((runtime) => {
    const command = runtime === own ? (bun ? bun.argv[0] : Deno.execPath()) : find(runtime);
    const args = runtime === "deno" ? ["run", "--quiet", "--no-prompt"] : [];
    return command ? [{ runtime, command, args: [...args, file.pathname] }] : [];
  });
}

/** Returns the arguments that run `bridge` for a URL. `words` are the arguments that run the CLI. */
export function toBridge(words: readonly string[], url: string): string[] {
  const permissions = words[0] === "run" ? ["-A"] : [];
  return [...words.slice(0, -1), ...permissions, words.at(-1) ?? "", "bridge", url];
}

function find(name: string): string | undefined {
  if (bun) return bun.which(name) ?? undefined;
  try {
    const { success } = new Deno.Command(name, { args: ["--version"], stdout: "null", stderr: "null" }).outputSync();
    return success ? name : undefined;
  } catch {
    return;
  }
}

/** A `fetch` whose connections a test can lose. */
export interface Wire {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** Returns the number of open streams of this method. */
  streams(method: "GET" | "POST"): number;
  /** Drops all further data on open streams of this method. */
  lose(method: "GET" | "POST"): void;
  /** Ends the connections of open streams of this method. Client and server both detect the loss. */
  cut(method: "GET" | "POST"): void;
  /**
   * Ends the connections for the client only. For the server, the connections stay open, and the client stops reading.
   */
  vanish(method: "GET" | "POST"): void;
}

interface Strand {
  readonly method: string;
  isLost: boolean;
  cut(): void;
  vanish(): void;
}

/** Creates a `fetch` whose connections a test can lose. */
export function createWire(): Wire {
  const strands = new Set<Strand>();
  const listOf = (method: string) => [...strands].filter((strand) => strand.method === method);

  async function fetchByWire(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(url, init);
    const { body, headers } = response;
    if (!body || !headers.get("content-type")?.startsWith("text/event-stream")) return response;
    const strand: Strand = {
      method: init.method ?? "GET",
      isLost: false,
      cut: () => {},
      vanish: () => {},
    };
    strands.add(strand);
    // Deno can garbage-collect the signal that `fetch` derives from this one, which then never aborts.
    init.signal?.addEventListener("abort", () => strand.cut(), { once: true });
    const reader = body.getReader();
    const watched = new ReadableStream<Uint8Array>({
      start(controller) {
        strand.vanish = () => {
          strands.delete(strand);
          controller.error(new Error("the connection is lost"));
        };
        strand.cut = () => {
          strand.vanish();
          reader.cancel().catch(() => {});
        };
      },
      async pull(controller) {
        try {
          while (true) {
            const { done, value } = await reader.read();
            if (!strands.has(strand)) return;
            if (strand.isLost && !done) continue;
            if (!done) return controller.enqueue(value);
            strands.delete(strand);
            return controller.close();
          }
        } catch (error) {
          strands.delete(strand);
          controller.error(error);
        }
      },
      cancel: (reason) => {
        strands.delete(strand);
        return reader.cancel(reason);
      },
    });
    return new Response(watched, { status: response.status, headers });
  }

  return {
    fetch: fetchByWire,
    streams: (method) => listOf(method).length,
    lose(method) {
      for (const strand of listOf(method)) strand.isLost = true;
    },
    cut(method) {
      for (const strand of listOf(method)) strand.cut();
    },
    vanish(method) {
      for (const strand of listOf(method)) strand.vanish();
    },
  };
}
