// Serves HTTP on a free port of 127.0.0.1 on Deno, Bun or Node, and prints the port.

type Fetch = (request: Request) => Response | Promise<Response>;

interface BunHost {
  readonly argv: readonly string[];
  readonly stdin: { stream(): ReadableStream<Uint8Array> };
  readonly stdout: unknown;
  serve(options: object): { readonly port: number };
  write(to: unknown, bytes: Uint8Array): Promise<number>;
  gc(isSynchronous: boolean): void;
}

/** The global `Bun`. The type declares only the members that the benchmarks use, because Deno has no types for Bun. */
export const { Bun: bun } = globalThis as unknown as { readonly Bun?: BunHost };

export const isNode: boolean = !bun && typeof Deno === "undefined";

/** The program's command-line arguments. */
export const args: readonly string[] = bun ? bun.argv.slice(2) : isNode ? process.argv.slice(2) : Deno.args;

/** Serves until the process ends. Prints the port. On Node, serves with `@hono/node-server` and its defaults. */
export async function serve(fetch: Fetch): Promise<void> {
  if (isNode) {
    const adapter = await import("@hono/node-server");
    adapter.serve({ fetch, hostname: "127.0.0.1", port: 0 }, ({ port }) => console.log(port));
  } else if (bun) console.log(bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch }).port);
  else Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, fetch);
}
