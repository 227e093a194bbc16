// Bodies sent in ways that no well-behaved client uses.
import { assert } from "@std/assert";
import { tool } from "../../mod.ts";
import { serve } from "../peers/runtime.ts";
import { any, pause, start } from "./attack.ts";
import { connectRaw } from "./raw.ts";

Deno.test("a body in one-byte chunks uses memory in proportion to its length", async () => {
  // Other tests of the process allocate too: the least of several tries is an upper bound for this one.
  let least = Infinity;
  for (let i = 0; i < 5 && least >= MOST; i++) least = Math.min(least, await measure());
  assert(least < MOST, `3,000 bytes hold ${least}`);
});

const MOST = 32 * 1024 * 1024;

async function measure(): Promise<number> {
  const { process } = globalThis as unknown as { process: { memoryUsage(): { external: number } } };
  const server = start({ handlers: [tool({ name: "quick", input: any, run: () => "" })] });
  await using port = serve(server);
  const connection = await connectRaw(Number(port.host.split(":")[1]));
  const before = process.memoryUsage().external;
  await connection.write(
    `POST /mcp HTTP/1.1\r\nHost: ${port.host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  for (let i = 0; i < 30; i++) await connection.write("1\r\n \r\n".repeat(100));
  await pause(500);
  const held = process.memoryUsage().external - before;
  connection.close();
  await server.close();
  return held;
}
