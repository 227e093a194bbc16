// Bundles programs for both runtimes, as users do to start a program faster.
import type { Runtime } from "./machine.ts";

/**
 * Where the bundle contains code that is loaded on demand: in its single file, or in separate files. A Bun executable
 * contains the runtime and compiled code.
 */
export type Layout = "single" | "split" | "executable";

/**
 * Bundles a program and its imports into a folder, and returns the path of the bundle. Only Bun can create executables.
 */
export async function bundle(
  file: string,
  folder: string,
  { runtime, layout }: { readonly runtime: Runtime; readonly layout: Layout },
): Promise<string> {
  // Bundles for Deno have the target `node`, because Deno runs Node programs.
  const target = runtime === "bun" ? "bun" : "node";
  const options = ["--minify", `--target=${target}`, ...toOutput(layout, folder)];
  const { success, stderr } = await new Deno.Command("bun", { args: ["build", ...options, file] }).output();
  if (!success) throw new Error(`Cannot bundle ${file}: ${new TextDecoder().decode(stderr)}`);
  return layout === "executable" ? `${folder}/main` : `${folder}/main.mjs`;
}

function toOutput(layout: Layout, folder: string): readonly string[] {
  if (layout === "executable") {
    return ["--compile", "--bytecode", "--format=esm", `--outfile=${folder}/main`];
  }
  return [...layout === "split" ? ["--splitting"] : [], `--outdir=${folder}`, "--entry-naming=main.mjs"];
}
