// The versions of Node that the npm package supports, each downloaded once and kept among the temporary files: machines
// have older ones. Used on Deno only.

/** The oldest and the newest. */
export const NODE_VERSIONS = ["22.23.3", "24.21.0"] as const;

/** The path of a Node, or why there is none. */
export type FoundNode = { readonly path: string } | { readonly missing: string };

async function runOrThrow(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args: [...args], cwd }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr).trim().split("\n")[0]);
}

/** Finds or downloads a version of Node. */
export async function findNode(version: string): Promise<FoundNode> {
  const arch = Deno.build.arch === "aarch64" ? "arm64" : "x64";
  const name = `node-${Deno.build.os}-${arch}`;
  const folder = `${Deno.env.get("TMPDIR") ?? "/tmp"}/x-mcp-${name}-${version}-${Deno.uid()}`;
  const path = `${folder}/bin/node`;
  if (await Deno.stat(path).then(({ isFile }) => isFile, () => false)) return { path };
  // Another process may do the same: a folder is complete when it has its name.
  const made = await Deno.makeTempDir({ prefix: "mcp-node-" });
  try {
    await runOrThrow("npm", ["pack", "--silent", `${name}@${version}`], made);
    await runOrThrow("tar", ["xzf", `${name}-${version}.tgz`, "--strip-components=1"], made);
    await Deno.remove(`${made}/${name}-${version}.tgz`);
    await Deno.rename(made, folder).catch(() => Deno.remove(made, { recursive: true }));
    return { path };
  } catch (error) {
    const state = error instanceof Error ? error.message : String(error);
    return { missing: `Node ${version} cannot be downloaded with npm: ${state}` };
  }
}
