// Memory for bodies that arrive in unusual ways, such as one byte at a time.
import { assert, assertEquals } from "@std/assert";
import { readAnswer } from "../support/requests.ts";
import { tool } from "../../mod.ts";
import { serve } from "../peers/runtime.ts";
import { any, start, toCall, toLegacy } from "./attack.ts";
import { connectRaw } from "./raw.ts";
import { until } from "../support/behaviour.ts";

const { process } = globalThis as unknown as { process: { memoryUsage(): { external: number } } };

Deno.test({
  name: "the buffers of large bodies that are cut off are freed without a garbage collection",
  ignore: typeof Deno === "undefined", // Bun counts freed buffers until the next garbage collection
  async fn() {
    const held = await measureUnfinished();
    assert(held < FEW, `unfinished bodies of 4 MB, one after the other, hold up to ${held}`);
  },
});

const FEW = 4 * 1024 * 1024;

/** Returns the largest growth of the process's buffers while the server reads 20 bodies. */
async function measureUnfinished(): Promise<number> {
  const server = start({ handlers: [] });
  const piece = new Uint8Array(100_000);
  const before = process.memoryUsage().external;
  let most = 0;
  for (let i = 0; i < 20; i++) {
    let pieces = 0;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
      ++pieces < 40 ? controller.enqueue(piece) : controller.error(new Error("disconnected"));
    const { url, headers } = toCall("any");
    const streamed = { method: "POST", headers, body: new ReadableStream({ pull }), duplex: "half" };
    const response = await server.fetch(new Request(url, streamed));
    assertEquals(response.status, 400);
    await response.text();
    most = Math.max(most, process.memoryUsage().external - before);
  }
  await server.close();
  return most;
}

Deno.test("the buffer of a large body is detached once the body has been decoded", async () => {
  const decoded: ArrayBuffer[] = [];
  const { decode } = TextDecoder.prototype;
  TextDecoder.prototype.decode = function (input, options) {
    if (input instanceof ArrayBuffer && input.byteLength > 1_000_000) decoded.push(input);
    return decode.call(this, input, options);
  };
  try {
    const server = start({ handlers: [tool({ name: "size", input: any, run: ({ v }) => `${v}`.length })] });
    for (const v of ["x", "é"]) {
      const response = await server.fetch(toCall("size", { v: v.repeat(1_500_000) }));
      assertEquals((await readAnswer(response)).result.structuredContent ?? 1_500_000, 1_500_000);
    }
    const rejected = await server.fetch(toLegacy(" ".repeat(1_500_000)));
    assertEquals(rejected.status, 400, "a string is not a valid message");
    await rejected.text();
    await until(() => decoded.every(({ byteLength }) => byteLength === 0), "the buffers to be detached");
    assertEquals(decoded.map((buffer) => buffer.byteLength), [0, 0, 0]);
    await server.close();
  } finally {
    TextDecoder.prototype.decode = decode;
  }
});

Deno.test("a body in one-byte chunks uses memory in proportion to its length", async () => {
  // Use the smallest of several measurements, because other tests in the process allocate memory too.
  let least = Infinity;
  for (let i = 0; i < 5 && least >= MOST; i++) least = Math.min(least, await measure());
  assert(least < MOST, `3,000 bytes hold ${least}`);
});

const MOST = 32 * 1024 * 1024;

async function measure(): Promise<number> {
  const server = start({ handlers: [tool({ name: "quick", input: any, run: () => "" })] });
  await using port = serve(server);
  const connection = await connectRaw(Number(port.host.split(":")[1]));
  const before = process.memoryUsage().external;
  await connection.write(
    `POST /mcp HTTP/1.1\r\nHost: ${port.host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  for (let i = 0; i < 30; i++) await connection.write("1\r\n \r\n".repeat(100));
  // Wait for a fixed time, because a test cannot detect when all sent bytes have arrived.
  // Fixed wait: the memory of bytes on their way to a server cannot be observed as a state.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const held = process.memoryUsage().external - before;
  connection.close();
  await server.close();
  return held;
}
