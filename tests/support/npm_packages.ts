// Installs npm packages for tests. Packages are downloaded once into a cache folder. Deno only.

/** The folder that contains `node_modules`, or the reason why the packages are missing. */
export type FoundPackages = { readonly folder: string } | { readonly missing: string };

/** How packages are installed. */
export interface InstallOptions {
  /** The cache folder. Defaults to a folder in the temporary folder. */
  readonly cache?: string;
  /** The path of the Node executable that runs npm. Defaults to the Node of the machine. */
  readonly node?: string;
}

/**
 * Finds the folder in which the packages are installed, or installs them. `packages` are names with versions, such as
 * `next@16.4.6`. `name` is part of the name of the folder.
 */
export async function findPackages(
  name: string,
  packages: readonly string[],
  { cache, node }: InstallOptions = {},
): Promise<FoundPackages> {
  const own = `${name}-${await toSuffix(packages)}`;
  const folder = cache ? `${cache}/${own}` : `${Deno.env.get("TMPDIR") ?? "/tmp"}/x-mcp-${own}-${Deno.uid()}`;
  if (await Deno.stat(`${folder}/node_modules`).then(({ isDirectory }) => isDirectory, () => false)) return { folder };
  if (cache) await Deno.mkdir(cache, { recursive: true });
  // Another process may download the packages at the same time, so rename the folder to its final name only when it is
  // complete.
  const made = await Deno.makeTempDir({ dir: cache, prefix: `mcp-${name}-` });
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix", made, ...packages],
    cwd: made,
    env: node ? { PATH: `${node.replace(/\/[^/]*$/, "")}:${Deno.env.get("PATH")}` } : {},
    stdout: "null",
  }).output().catch(() => ({ success: false, stderr: new TextEncoder().encode("npm is not installed") }));
  if (!success) {
    await Deno.remove(made, { recursive: true });
    const [line] = new TextDecoder().decode(stderr).trim().split("\n");
    return { missing: `npm cannot install ${packages.join(", ")}: ${line}` };
  }
  await Deno.rename(made, folder).catch(() => Deno.remove(made, { recursive: true }));
  return { folder };
}

/** Returns the version of the first package, and a hash of all packages if there are several. */
async function toSuffix(packages: readonly string[]): Promise<string> {
  const version = packages[0].replace(/^.*@/, "");
  if (packages.length === 1) return version;
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(packages.join()));
  return `${version}-${new Uint8Array(hash).slice(0, 4).toHex()}`;
}
