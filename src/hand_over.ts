/**
 * Starts the command line when the entry file is run instead of imported.
 *
 * @module
 */
import { deno } from "./runtime.ts";

/**
 * Loads the command line and runs it. `entry` is the URL of the file that was run.
 *
 * In a bundle it does nothing. Some bundlers keep `import.meta.main`, which is true in their output. In a bundle, the
 * entry and this file have the same URL, or the entry has another name.
 */
export function handOver(entry: string): void {
  if (entry === import.meta.url || !/\/mod\.[jt]s$/.test(entry)) return;
  // The specifier is computed, because a literal specifier would load the command line into every program that imports
  // the library. The import is not awaited, because the command line imports modules that wait for the entry file.
  import(new URL(`./cli/main${entry.slice(-3)}`, import.meta.url).href).then(({ main }) => main(), explain);
}

function explain(error: unknown): never {
  const problem = findProblem(error);
  // These explanations are about permissions and the cache of Deno.
  if (!deno || problem === undefined) throw error;
  console.error(`Cannot start the command line: ${problem}`);
  return deno.exit(1);
}

function findProblem(error: unknown): string | undefined {
  if (!(error instanceof Error)) return;
  const { protocol, pathname } = new URL(".", import.meta.url);
  if (/^Requires read access/.test(error.message)) {
    const folder = decodeURIComponent(pathname).replace(/\/$/, "");
    return `Deno may not read its files; run it again with -A, or with --allow-read=${folder}`;
  }
  if (protocol !== "file:") return `${error.message.trim()}; to store it in the cache, run deno cache jsr:@x/mcp/cli`;
}
