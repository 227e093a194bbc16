// Talks to processes over stdio.
import { type Child, startChild, toCommand } from "../../src/testing/http_server.ts";

const utf8 = new TextEncoder();

/** Returns the command that starts the test server on the current runtime. */
export function toServer(): readonly string[] {
  return toCommand(new URL("./stdio_server.ts", import.meta.url));
}

/** A child process. Tests write its input byte by byte, and read its output line by line. */
export interface Talk extends AsyncDisposable {
  readonly child: Child;
  write(text: string | Uint8Array): Promise<void>;
  /** Reads the next line from standard output. */
  read(): Promise<string>;
  /** Closes this process's end of the child's standard output. */
  deafen(): Promise<unknown>;
  /** Closes standard input. Returns the exit code and the remaining output. */
  end(): Promise<{ readonly code: number; readonly lines: readonly string[]; readonly stderr: string }>;
}

/** Starts a program, and kills it after 30 seconds if it hangs. */
export function startTalk(words: readonly string[]): Talk {
  const child = startChild(words);
  const stderr = new Response(child.errors).text();
  const lines = readLines(child.output);
  let isOver = false;
  const late = setTimeout(() => child.kill(), 30_000);
  child.exited.then(() => {
    isOver = true;
    clearTimeout(late);
  });
  return {
    child,
    write: (text) => child.write(typeof text === "string" ? utf8.encode(text) : text),
    async read() {
      const { done, value } = await lines.next();
      if (done) throw new Error(`The process ended: ${await stderr}`);
      return value;
    },
    deafen: () => lines.return(undefined),
    async end() {
      await child.closeInput();
      const left: string[] = [];
      for await (const line of lines) left.push(line);
      return { code: await child.exited, lines: left, stderr: await stderr };
    },
    async [Symbol.asyncDispose]() {
      if (!isOver) child.kill();
      await child.closeInput().catch(() => {});
      await child.exited;
      await lines.return(undefined);
      await stderr;
    },
  };
}

async function* readLines(output: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  for await (const bytes of output) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest) throw new Error(`The output ended within a line: ${rest}`);
}
