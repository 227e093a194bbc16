// Finds the Node versions that the npm package supports. Each version is downloaded once into the temporary folder,
// because machines may have older versions. Deno only.

/** The oldest and the newest supported version. */
export const NODE_VERSIONS = ["22.23.3", "24.21.0"] as const;

/** The path of a Node executable, or the reason why the executable is missing. */
export type FoundNode = { readonly path: string } | { readonly missing: string };

async function runOrThrow(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args: [...args], cwd }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr).trim().split("\n")[0]);
}

/** Finds a version of Node in the temporary folder, or downloads it. */
export async function findNode(version: string): Promise<FoundNode> {
  const arch = Deno.build.arch === "aarch64" ? "arm64" : "x64";
  const name = `node-${Deno.build.os}-${arch}`;
  const folder = `${Deno.env.get("TMPDIR") ?? "/tmp"}/x-mcp-${name}-${version}-${Deno.uid()}`;
  const path = `${folder}/bin/node`;
  if (await Deno.stat(path).then(({ isFile }) => isFile, () => false)) return { path };
  // Another process may download the same version at the same time, so rename the folder to its final name only when it
  // is complete.
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
