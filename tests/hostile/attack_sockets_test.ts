// WebSocket upgrades that fail.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { webSocket } from "../../src/transports/websocket.ts";
import { serve } from "../peers/runtime.ts";
import { start } from "./attack.ts";
import { connectRaw } from "./raw.ts";

Deno.test("failed upgrades do not use up the limit on sockets", async () => {
  const server = start({ handlers: [tool({ name: "quick", run: () => "" })], limits: { streams: { open: 4 } } });
  const service = webSocket(server);
  // A runtime may throw when it cannot upgrade a request; the client gets an error in either case.
  const fetch: typeof service.fetch = async (request, info) => {
    try {
      return await service.fetch(request, info);
    } catch {
      return new Response(null, { status: 400 });
    }
  };
  await using port = serve({ ...service, fetch });
  const ask = async (more: string) => {
    const connection = await connectRaw(Number(port.host.split(":")[1]));
    await connection.write(`GET /ws HTTP/1.1\r\nHost: ${port.host}\r\nUpgrade: websocket\r\n${more}\r\n`);
    const line = await connection.readUntil(/\r\n/);
    connection.close();
    return Number(line.slice(9, 12));
  };
  for (let i = 0; i < 4; i++) await ask("Connection: close\r\n");
  const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const status = await ask(`Connection: Upgrade\r\n${key}`);
  await server.close();
  assertEquals(status, 101);
});
