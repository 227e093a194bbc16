// Measures the heap that messages of HTTP+SSE take while their responses wait.
import { createServer, tool } from "../../mod.ts";
import type { ReadHeap } from "../support/heap.ts";
import { turn, until } from "../support/behaviour.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { any } from "./attack.ts";
import { callOf, HELLO, serveOld } from "./sse.ts";

const COUNT = 16;
const SIZE = 2_000_000;

/** Creates a request whose body exists only while it is read. */
function toPing(address: string, id: number): Request {
  const parts = [`{"jsonrpc":"2.0","id":${id},"method":"ping","params":{"text":"`, "x".repeat(SIZE), '"}}'].values();
  const pull = (controller: ReadableStreamDefaultController) => {
    const { value, done } = parts.next();
    return done ? controller.close() : controller.enqueue(new TextEncoder().encode(value));
  };
  const headers = { "content-type": "application/json" };
  const init = { method: "POST", headers, body: new ReadableStream({ pull }), duplex: "half" };
  return new Request(`http://localhost${address}`, init);
}

/** Returns the bytes per message. */
export async function measure(readHeap: ReadHeap): Promise<number> {
  const hold = tool({ name: "hold", input: any, run: () => new Promise<string>(() => {}) });
  // A client with a running and a waiting call must wait.
  const limits = { calls: { runningPerClient: 1, closeMs: 1 } };
  const server = createServer({
    name: "waiting",
    version: "1.0.0",
    handlers: [hold],
    limits,
    observer: { fault() {} },
  });
  const { open, post, fetch } = serveOld(server);
  const { address, leave } = await open();
  const { scheduler } = server[INTERNALS].engine;
  await post(address, HELLO);
  post(address, callOf("hold", 1));
  post(address, callOf("hold", 2));
  await until(() => scheduler.running === 1 && scheduler.waiting === 1, "a call waits");
  const before = await readHeap();
  let answered = 0;
  for (let i = 0; i < COUNT; i++) {
    fetch(toPing(address, i + 3)).then(() => answered++);
    await turn(20);
  }
  const bytes = await readHeap() - before;
  if (answered) throw new Error(`${answered} messages did not wait`);
  await leave();
  await server.close();
  return bytes / COUNT;
}
