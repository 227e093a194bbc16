// Bundles programs for either runtime, as a user would for a short start.
import type { Runtime } from "./machine.ts";

/** Packs a program and all its imports into one minified file. */
export async function bundle(runtime: Runtime, file: string, out: string): Promise<void> {
  const target = runtime === "bun" ? "bun" : "node"; // Deno runs bundles for Node
  const args = ["build", "--minify", `--target=${target}`, `--outfile=${out}`, file];
  const { success, stderr } = await new Deno.Command("bun", { args }).output();
  if (!success) throw new Error(`Cannot bundle ${file}: ${new TextDecoder().decode(stderr)}`);
}
