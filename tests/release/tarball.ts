// Packs the package into a tarball, as package managers get it from the registry.
import { compilePackage } from "./compile.ts";

/**
 * Packs the package whose deno.json is in the folder `root`, which ends with a slash. Returns the path of the tarball.
 */
export async function packPackage(root: string, folder: string): Promise<string> {
  const compiled = `${folder}/compiled`;
  await compilePackage(root, { sources: `${folder}/sources`, folder: compiled });
  const tarball = `${folder}/package.tgz`;
  const { success, stderr } = await new Deno.Command("bun", {
    args: ["pm", "pack", "--quiet", "--filename", tarball],
    cwd: compiled,
  }).output();
  if (!success) throw new Error(`Cannot pack the package: ${new TextDecoder().decode(stderr)}`);
  return tarball;
}
