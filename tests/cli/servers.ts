// HTTP servers for tests of CLI commands that act as a client.
import { listen } from "../../src/host.ts";

/** A running server. Disposing stops it. */
export interface Served extends AsyncDisposable {
  readonly url: string;
}

/** Serves on a free port. */
export async function serve(fetch: (request: Request) => Response | Promise<Response>): Promise<Served> {
  const { port, stop } = await listen({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request: Request) {
      try {
        return await fetch(request);
      } catch {
        return new Response("Internal Server Error", { status: 500 }); // On Bun, the error would fail the test.
      }
    },
  });
  return { url: `http://127.0.0.1:${port}/mcp`, [Symbol.asyncDispose]: stop };
}

/** Makes a server reject requests of revision 2026-07-28, as servers of older revisions do. */
export function forgetModern(fetch: (request: Request) => Response | Promise<Response>): typeof fetch {
  return (request) =>
    (request.headers.get("mcp-protocol-version") ?? "") < "2026" ? fetch(request) : new Response(null, { status: 400 });
}

/** Returns the command that runs a program in a terminal that is 60 columns wide, with `script` from util-linux. */
export function inTerminal(words: readonly string[]): readonly string[] {
  const line = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  return ["script", "-qec", `stty -echo cols 60; exec ${line}`, "/dev/null"];
}
