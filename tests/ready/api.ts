// An HTTP server for tests of the handlers that send requests.
import { listen } from "../../src/host.ts";

/** Starts an HTTP server on this machine. */
export async function withApi(
  respond: (request: Request, host: string) => Response | Promise<Response>,
  use: (host: string) => Promise<void>,
): Promise<void> {
  let host = "";
  const served = await listen({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request: Request) => await respond(request, host),
  });
  host = `127.0.0.1:${served.port}`;
  try {
    await use(host);
  } finally {
    await served.stop();
  }
}
