// Tests that start the programs of this folder on Deno, Bun and Node.
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { root, type Running, start } from "../support/processes.ts";

export const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of all runtimes.

type Words = readonly string[];

const runtimes: Readonly<Record<string, () => Promise<Words | undefined>>> = {
  deno: () => Promise.resolve(["deno", "run", "-A", "--quiet", "--no-check"]),
  bun: () => Promise.resolve(["bun"]),
  ...Object.fromEntries(NODE_VERSIONS.map((version) => [`node ${version}`, async () => {
    const found = await findNode(version);
    if ("path" in found) return [found.path];
    if (Deno.env.get("REQUIRE_ALL")) throw new Error(found.missing);
    console.log(`Skipped: ${found.missing}`);
  }])),
};

/** The names of the runtimes. */
export const RUNTIMES: readonly string[] = Object.keys(runtimes);

/** Registers a test that starts programs on a runtime. `run` gets the words that precede the path of a program. */
export function testOn(runtime: string, name: string, run: (words: Words) => Promise<void>): void {
  Deno.test({
    name,
    ignore,
    async fn() {
      const words = await runtimes[runtime]();
      if (words) await run(words);
    },
  });
}

/** Returns the path of a program of this folder. */
export function toProgram(name: string): string {
  return `${root}tests/serve/${name}`;
}

/** Starts a program, and waits until it has printed its URL. */
export async function open(
  words: Words,
  file: string,
  argument: string,
): Promise<Running & { readonly url: string }> {
  const running = await start([...words, file, argument], { timeoutMs: 60_000 });
  try {
    const [, url] = await running.waitFor(/at (http\S+)/);
    return { ...running, url };
  } catch (error) {
    await running[Symbol.asyncDispose]();
    throw error;
  }
}
