// Serves `notes_server.ts` in a separate process.
import { findFreePort, root, type Running, start } from "../support/processes.ts";

/** A running server. Disposing the object stops the process. */
export interface Notes extends AsyncDisposable {
  readonly url: URL;
}

/** Starts the server with the command `program`. The server accepts tokens from the given issuers. */
export async function serveNotes(program: readonly string[], issuers: readonly string[]): Promise<Notes> {
  const port = findFreePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const words = [...program, `${root}tests/auth/notes_server.ts`, "--http", "--port", String(port)];
  const env = { NOTES_RESOURCE: url, NOTES_ISSUERS: issuers.join(" ") };
  const running: Running = await start(words, { env, timeoutMs: 120_000 });
  await running.waitFor(new RegExp(`:${port}/mcp`));
  return { url: new URL(url), [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}
