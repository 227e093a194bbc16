// Serves the servers of this folder in separate processes.
import { findFreePort, root, type Running, start } from "../support/processes.ts";

/** A running server. Disposing the object stops the process. */
export interface Served extends AsyncDisposable {
  readonly url: URL;
}

/** Starts `notes_server.ts` with the command `program`. The server accepts tokens from the given issuers. */
export function serveNotes(program: readonly string[], issuers: readonly string[]): Promise<Served> {
  return serve(program, "notes_server.ts", (url) => ({ NOTES_RESOURCE: url, NOTES_ISSUERS: issuers.join(" ") }));
}

/** Starts `github_server.ts` with the command `program`. */
export function serveGitHub(program: readonly string[]): Promise<Served> {
  return serve(program, "github_server.ts", (url) => ({ GITHUB_RESOURCE: url }));
}

async function serve(
  program: readonly string[],
  file: string,
  toEnv: (url: string) => Readonly<Record<string, string>>,
): Promise<Served> {
  const port = findFreePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const words = [...program, `${root}tests/auth/${file}`, "--http", "--port", String(port)];
  const running: Running = await start(words, { env: toEnv(url), timeoutMs: 120_000 });
  await running.waitFor(new RegExp(`:${port}/mcp`));
  return { url: new URL(url), [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}
