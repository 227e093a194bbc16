/**
 * Transports to a child process and to a server in this process.
 *
 * @see specification/2026-07-28/basic/transports/stdio (Shutdown)
 */
import { LineSplitter } from "../core/line_splitter.ts";
import { openPipe, type PipeOptions, type Served } from "../server/transports/channel.ts";
import type { Child } from "./child_process.ts";
import type { OpenLineTransport } from "./line_channel.ts";
import { deadline } from "../core/kit/deadline.ts";
import { killProcess } from "../core/kit/signals.ts";

export function memoryTransport(server: Served, principal?: PipeOptions["principal"]): OpenLineTransport {
  return (receive, end) => {
    // Deliver messages in a microtask, so that no message arrives before the write returns, as between processes.
    const pipe = openPipe(server, {
      write: (text) => void queueMicrotask(() => receive(text)),
      principal,
    });
    return {
      write: (text) => pipe.receive(text),
      async close() {
        pipe.close();
        await undefined;
        end("the connection was closed");
      },
    };
  };
}

export interface ChildTransportOptions {
  /** Called with an error for each line that is too long or is not UTF-8. */
  readonly onBroken: (error: unknown) => void;
  /** Milliseconds for each step: to read the input to the end, to exit, and to exit after SIGTERM and SIGKILL. */
  readonly exitMs: number;
}

/** Maximum length of a line in bytes. Without a limit, an endless line would fill the memory. */
const MAX_BYTES = 64 * 1024 * 1024;

/** When the transport is closed, closes the standard input, and kills a process that does not exit. */
export function childTransport(child: Child, { onBroken, exitMs }: ChildTransportOptions): OpenLineTransport {
  return (receive, end) => {
    const reader = child.output.getReader();
    const encoder = new TextEncoder();
    let ending: Promise<number | undefined> | undefined;
    let isClosed = false;
    const shutDown = () => ending ??= endChild(child, exitMs);
    const reading = read();

    async function read(): Promise<void> {
      const splitter = new LineSplitter(MAX_BYTES);
      try {
        for (let next = await reader.read(); !next.done; next = await reader.read()) {
          // Drop lines after `close`. A process that writes faster than the client can parse would otherwise keep the
          // client busy.
          if (!isClosed) splitter.push(next.value).forEach(receiveLine);
        }
        splitter.end().forEach(receiveLine);
      } catch (error) {
        onBroken(error);
      }
      const code = await shutDown();
      if (code === undefined) end("the server does not exit and could not be killed; end its process yourself");
      else end(`the server ended with code ${code}`, { kind: "exited", code });
    }

    function receiveLine(line: ReturnType<LineSplitter["push"]>[number]): void {
      if ("text" in line) return void receive(line.text);
      const state = line.problem === "long" ? `the line is longer than ${MAX_BYTES} bytes` : "the line is not UTF-8";
      onBroken(new Error(`Cannot read the server's message: ${state}`));
    }

    async function close(): Promise<void> {
      isClosed = true;
      await shutDown();
      // Cancel the reader, because a child of the process may keep the output open after the process has exited.
      await reader.cancel().catch(() => {});
      await reading;
    }

    // Ignore the error of a process that no longer reads, because waiting requests fail when the process's output ends.
    return { write: (text) => child.write(encoder.encode(`${text}\n`)).catch(() => {}), close };
  };
}

/** Ends a process, and returns its exit code, or `undefined` if the process cannot be killed. */
async function endChild(child: Child, exitMs: number): Promise<number | undefined> {
  // Limit the time, because closing the input waits for earlier writes, and the process may have stopped reading.
  const closing = Promise.race([child.closeInput().catch(() => {}), child.exited]);
  await deadline(closing, { ms: exitMs, onTimeout: () => {} });
  const code = await deadline(child.exited, { ms: exitMs, onTimeout: () => undefined }) ??
    await killProcess(child, exitMs);
  if (code === undefined) child.abandon();
  return code;
}
