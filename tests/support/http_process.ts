// Programs that serve HTTP, and tests that start them.
import process from "node:process";
import { bun, deno } from "../../src/core/runtime.ts";
import { startChild, startHttpServer } from "../../src/testing/http_server.ts";

export interface HttpProcess extends AsyncDisposable {
  readonly origin: string;
}

/** Serves HTTP in a program, and prints the origin. The program exits when its input ends, also if the test is killed. */
export function serveProcess(handle: Parameters<typeof startHttpServer>[0]): void {
  console.log(startHttpServer(handle).origin);
  process.stdin.on("end", () => process.exit()).resume();
}

/** Starts a program that calls {@linkcode serveProcess} on the current runtime, with all permissions on Deno. */
export async function startHttpProcess(file: URL): Promise<HttpProcess> {
  const { pathname } = file;
  const words = deno
    ? [deno.execPath(), "run", "-A", "--quiet", "--no-check", pathname]
    : [bun?.argv[0] ?? "bun", pathname];
  const child = startChild(words);
  const reader = child.output.pipeThrough(new TextDecoderStream()).getReader();
  let origin = "";
  while (!origin.endsWith("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The process of ${pathname} has ended: ${await new Response(child.errors).text()}`);
    origin += value;
  }
  return {
    origin: origin.trim(),
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
      await reader.cancel();
      await child.errors?.cancel();
      await child.closeInput().catch(() => {}); // This fails if the process has already ended.
    },
  };
}
