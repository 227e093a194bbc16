// Installs npm packages for tests. Packages are downloaded once into the temporary folder. Deno only.

/** The folder that contains `node_modules`, or the reason why the packages are missing. */
export type FoundPackages = { readonly folder: string } | { readonly missing: string };

/**
 * Finds the folder in which the packages are installed, or installs them. `packages` are names with versions, such as
 * `next@16.4.6`. `name` and the version of the first package name the folder.
 */
export async function findPackages(name: string, packages: readonly string[]): Promise<FoundPackages> {
  const version = packages[0].replace(/^.*@/, "");
  const folder = `${Deno.env.get("TMPDIR") ?? "/tmp"}/x-mcp-${name}-${version}-${Deno.uid()}`;
  if (await Deno.stat(`${folder}/node_modules`).then(({ isDirectory }) => isDirectory, () => false)) return { folder };
  // Another process may download the packages at the same time, so rename the folder to its final name only when it is
  // complete.
  const made = await Deno.makeTempDir({ prefix: `mcp-${name}-` });
  const args = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", made, ...packages];
  const { success } = await new Deno.Command("npm", { args, cwd: made }).output().catch(() => ({ success: false }));
  if (!success) {
    await Deno.remove(made, { recursive: true });
    return { missing: `${packages.join(", ")} cannot be downloaded with npm` };
  }
  await Deno.rename(made, folder).catch(() => Deno.remove(made, { recursive: true }));
  return { folder };
}
