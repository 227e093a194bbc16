/**
 * Starts the CLI when the entry file is run instead of imported.
 */
import { deno } from "./core/runtime.ts";

/**
 * Loads and runs the CLI. `entry` is the URL of the file that was run.
 *
 * Does nothing in a bundle. The caller's test of `import.meta.main` does not exclude bundles, because
 * `import.meta.main` is true in the output of some bundlers. In a bundle, `entry` is the URL of this file, or is not
 * named `mod`.
 */
export function handOver(entry: string): void {
  if (entry === import.meta.url || !/\/mod\.[jt]s$/.test(entry)) return;
  // Compute the specifier, because a literal specifier would load the CLI into every program that imports the library.
  // Do not await the import, because the CLI imports modules that wait for the entry file.
  import(new URL(`./cli/main${entry.slice(-3)}`, import.meta.url).href).then(({ main }) => main(), explain);
}

function explain(error: unknown): never {
  const problem = findProblem(error);
  // The explanations apply only to Deno, because they name Deno's permissions and cache.
  if (!deno || problem === undefined) throw error;
  console.error(`Cannot start the CLI: ${problem}`);
  return deno.exit(1);
}

function findProblem(error: unknown): string | undefined {
  if (!(error instanceof Error)) return;
  const { protocol, pathname } = new URL(".", import.meta.url);
  if (/^Requires read access/.test(error.message)) {
    const folder = decodeURIComponent(pathname).replace(/\/$/, "");
    return `Deno has no permission to read the files of the CLI; run the command again with -A, or with --allow-read=${folder}`;
  }
  if (protocol !== "file:") {
    return `${error.message.trim().replace(/\.$/, "")}; run deno cache jsr:@x/mcp/cli to download the CLI`;
  }
}
