// Bundles programs for either runtime, as a user would for a short start.
import type { Runtime } from "./machine.ts";

/** Where code goes that is loaded on demand: into the one file of the bundle, or into files of its own. */
export type Layout = "single" | "split";

/** Packs a program and its imports into a folder, and returns the path of its file. */
export async function bundle(
  file: string,
  folder: string,
  { runtime, layout }: { readonly runtime: Runtime; readonly layout: Layout },
): Promise<string> {
  // Deno runs bundles for Node.
  const target = runtime === "bun" ? "bun" : "node";
  const splitting = layout === "split" ? ["--splitting"] : [];
  const options = ["--minify", `--target=${target}`, ...splitting, `--outdir=${folder}`, "--entry-naming=main.mjs"];
  const { success, stderr } = await new Deno.Command("bun", { args: ["build", ...options, file] }).output();
  if (!success) throw new Error(`Cannot bundle ${file}: ${new TextDecoder().decode(stderr)}`);
  return `${folder}/main.mjs`;
}
