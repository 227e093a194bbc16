// Serves HTTP on a free port of 127.0.0.1 on Deno or Bun, and prints the port.

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

/** The program's command-line arguments. */
export const args: readonly string[] = bun ? bun.argv.slice(2) : Deno.args;

/** Serves until the process ends. Prints the port. */
export function serve(fetch: Fetch): void {
  if (bun) console.log(bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch }).port);
  else Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, fetch);
}
