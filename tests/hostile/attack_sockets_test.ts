// WebSocket upgrades that fail, and messages that are refused.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { serve } from "../peers/runtime.ts";
import { start } from "./attack.ts";
import { connectRaw } from "./raw.ts";

Deno.test("failed upgrades do not count towards the limit on sockets", async () => {
  const server = start({ handlers: [tool({ name: "quick", run: () => "" })], limits: { connections: { streams: 4 } } });
  const service = webSocket(server);
  // A runtime can throw if it cannot upgrade a request. The test treats such an error like an error response.
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

Deno.test("a client whose sockets use more memory than its limit cannot open more sockets", async () => {
  const limits = { memory: { bytesPerClient: 100_000 } };
  const server = start({ handlers: [tool({ name: "quick", run: () => "" })], limits });
  await using port = serve(webSocket(server));
  const open = (data: string | Uint8Array<ArrayBuffer>) =>
    new Promise<number>((resolve) => {
      const socket = new WebSocket(`ws://${port.host}/ws`);
      socket.onopen = () => socket.send(data);
      socket.onerror = () => resolve(0);
      socket.onclose = ({ code }) => resolve(code);
    });
  const codes = [await open(new Uint8Array(10)), await open(new Uint8Array(200_000)), await open(new Uint8Array(10))];
  await server.close();
  assertEquals([codes[0], codes[1], codes[2] === 1003], [1003, 1003, false]);
});
