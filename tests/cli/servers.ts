// Servers on a port of this machine, for the commands that ask one.

/** A server on a port, until it is disposed. */
export interface Served extends AsyncDisposable {
  readonly url: string;
}

/** Serves on a free port. */
export function serve(fetch: (request: Request) => Response | Promise<Response>): Served {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => fetch(request));
  return { url: `http://127.0.0.1:${server.addr.port}/mcp`, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** A server as it was before there were requests without a handshake. */
export function forgetModern(fetch: (request: Request) => Response | Promise<Response>): typeof fetch {
  return (request) =>
    (request.headers.get("mcp-protocol-version") ?? "") < "2026" ? fetch(request) : new Response(null, { status: 400 });
}

/** The words that run a program in a terminal; `script` of util-linux gives it one. */
export function inTerminal(words: readonly string[]): readonly string[] {
  const line = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  return ["script", "-qec", `stty -echo cols 60; ${line}`, "/dev/null"];
}
