// Servers of tests that do not close their server themselves.
import { createServer, type Handler, type Server, type ServerOptions } from "../../mod.ts";
import { type Connection, connectTest, type ConnectTestOptions } from "../../src/testing/testing.ts";
import { closeAtEnd } from "./running.ts";

/** Creates a server that closes at the end of the running test. */
export function testServer(options: Partial<ServerOptions> = {}): Server {
  return closeAtEnd(createServer({ name: "test", version: "1.0.0", ...options }));
}

/** Connects a client to a server with these options. The server closes at the end of the running test. */
export async function testClient(options: Partial<ServerOptions>, client?: ConnectTestOptions): Promise<Connection> {
  return await connectTest(testServer(options), client);
}

/** Creates a server with these handlers, which closes at the end of the running test. */
export function serve(...handlers: readonly Handler[]): Server {
  return testServer({ handlers });
}
