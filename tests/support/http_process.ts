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

/**
 * Starts a program that calls {@linkcode serveProcess} on the current runtime, with all permissions on Deno. Disposing kills
 * the process immediately.
 */
export async function startHttpProcess(file: URL, ...args: readonly string[]): Promise<HttpProcess> {
  const { pathname } = file;
  const words = deno
    ? [deno.execPath(), "run", "-A", "--quiet", "--no-check", pathname, ...args]
    : [bun?.argv[0] ?? "bun", pathname, ...args];
  const program = await startProgram(words, /^(.*)\n/);
  return { origin: program.found, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

/** A program that has printed what the test waited for. */
export interface Program extends AsyncDisposable {
  readonly found: string;
}

/**
 * Starts a program on any runtime, and waits until its output matches a pattern with a group. Disposing kills the program,
 * and closes its input.
 */
export async function startProgram(words: readonly string[], pattern: RegExp): Promise<Program> {
  const child = startChild(words);
  const reader = child.output.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let found: RegExpExecArray | null = null;
  while (!found) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`"${words.join(" ")}" has ended: ${await new Response(child.errors).text()}`);
    found = pattern.exec(text += value);
  }
  return {
    found: found[1],
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      await reader.cancel();
      await child.errors?.cancel();
      await child.closeInput().catch(() => {}); // This fails if the process has already ended.
    },
  };
}
