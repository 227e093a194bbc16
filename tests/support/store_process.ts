// A store in a separate process that tests start: an engine in memory behind HTTP, with faults on request.
import { systemClock } from "../../src/core/timers.ts";
import { MemoryEngine } from "../../src/stores/memory_engine.ts";
import { serveProcess } from "./http_process.ts";
import type { Faults } from "./store_client.ts";

interface Command {
  readonly client: string;
  readonly operation: "get" | "set" | "delete" | "list" | "append" | "read" | "trim";
  readonly args: readonly never[];
  readonly faults: Faults;
}

let engine = new MemoryEngine({ clock: systemClock, bytes: 2 ** 28 });
/** The streams of notifications, by client. */
const bells = new Map<string, (log: string) => void>();
const deaf = new Set<string>();
let stopBells = () => {};

function start(): void {
  engine = new MemoryEngine({ clock: systemClock, bytes: 2 ** 28 });
  stopBells = engine.listen((log) => {
    for (const [client, ring] of bells) if (!deaf.has(client)) ring(log);
  });
}
start();

async function run({ client, operation, args, faults }: Command): Promise<Response> {
  if (faults.stalls) await new Promise(() => {});
  if (faults.losesCommand) return new Response("lost", { status: 599 });
  // Fixed wait: a store whose operations take random times.
  if (faults.delayMs) await new Promise((resolve) => setTimeout(resolve, Math.random() * (faults.delayMs ?? 0)));
  if (faults.isDeaf) deaf.add(client);
  else deaf.delete(client);
  try {
    const method: (...args: readonly never[]) => unknown = engine[operation].bind(engine);
    if (faults.repeats) method(...args);
    const result = method(...args);
    return faults.losesAnswer ? new Response("lost", { status: 599 }) : Response.json({ result });
  } catch (error) {
    return Response.json({ error: String(error) });
  }
}

function openBell(client: string): Response {
  const encoder = new TextEncoder();
  let beat: ReturnType<typeof setInterval>;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (line: string) => {
        try {
          controller.enqueue(encoder.encode(`${line}\n`));
        } catch {
          bells.delete(client);
        }
      };
      bells.set(client, send);
      send("");
      beat = setInterval(() => send(""), 1000);
    },
    cancel() {
      clearInterval(beat);
      bells.delete(client);
    },
  });
  return new Response(body);
}

serveProcess(async (request) => {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/bell") return openBell(searchParams.get("client") ?? "");
  if (pathname === "/restart") {
    // Lose all data, like a process whose engine in memory was killed.
    stopBells();
    start();
    return new Response("restarted");
  }
  return await run(await request.json());
});
