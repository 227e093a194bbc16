// Calls a server every 20 ms from a separate process, because this process is busy attacking. Takes the port and the
// duration in milliseconds as arguments, and prints a `Watched` as JSON.
import { toWire } from "../../hostile/unread.ts";
import { sleep } from "../processes.ts";
import { plain } from "./cases.ts";

/** The outcome of all calls. */
export interface Watched {
  /** The duration of each call in milliseconds. */
  readonly times: readonly number[];
  /** The number of calls that got no response. */
  readonly lost: number;
}

/** Time between two calls in milliseconds. */
const PAUSE = 20;

async function watch(port: number, ms: number): Promise<Watched> {
  const times: number[] = [];
  let lost = 0;
  // Use a separate connection, because fetch() shares its connection with other requests.
  const wire = new TextEncoder().encode(toWire(port, { ...plain(), method: "POST" }));
  const buffer = new Uint8Array(65_536);
  let connection: Deno.Conn | undefined;
  for (const end = performance.now() + ms; performance.now() < end;) {
    const start = performance.now();
    try {
      connection ??= await Deno.connect({ hostname: "127.0.0.1", port });
      await connection.write(wire);
      if (!await connection.read(buffer)) throw new Error("closed");
      times.push(performance.now() - start);
    } catch {
      lost++;
      connection = undefined;
    }
    await sleep(PAUSE);
  }
  connection?.close();
  return { times, lost };
}

/** Runs this file in a separate process, and returns its result. */
export async function watchApart(port: number, ms: number): Promise<Watched> {
  const args = ["run", "-A", "--no-check", import.meta.url, String(port), String(ms)];
  const { stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "inherit" }).output();
  return JSON.parse(new TextDecoder().decode(stdout));
}

if (import.meta.main) {
  const [port, ms] = Deno.args.map(Number);
  console.log(JSON.stringify(await watch(port, ms)));
}
