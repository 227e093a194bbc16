// Serves a probe over HTTP. Deno only.
import { findFreePort, root } from "../../support/processes.ts";

/** A served probe. Disposing ends the process. */
export interface ServedProbe extends AsyncDisposable {
  readonly origin: string;
}

/** Serves a probe, and waits until it responds. */
export async function serveProbe(
  words: readonly string[],
  { env = {}, log }: { readonly env?: Readonly<Record<string, string>>; readonly log: string },
): Promise<ServedProbe> {
  const port = findFreePort();
  const [command, ...args] = words;
  const child = new Deno.Command(command, {
    args: args.map((word) => word.replace("PORT", String(port))),
    cwd: root,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const logging = child.stderr.pipeTo((await Deno.open(log, { append: true, create: true })).writable);
  let hasEnded = false;
  const ended = child.status.then(() => hasEnded = true);
  const origin = `http://127.0.0.1:${port}`;
  const served: ServedProbe = {
    origin,
    async [Symbol.asyncDispose]() {
      if (!hasEnded) child.kill("SIGKILL");
      await ended;
      await logging;
    },
  };
  const end = Date.now() + START_MS;
  while (!hasEnded && Date.now() < end) {
    const response = await fetch(`${origin}/mcp`).catch(() => undefined);
    await response?.body?.cancel();
    if (response) return served;
    await new Promise((resolve) => setTimeout(resolve, 100)); // Fixed wait: a port that nobody serves does not call.
  }
  await served[Symbol.asyncDispose]();
  throw new Error(`Cannot serve the probe with ${words.join(" ")}: ${await Deno.readTextFile(log)}`);
}

const START_MS = 30_000;
