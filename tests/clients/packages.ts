// Installs the clients from npm into a folder that later runs use again. Deno only.
import { NODE_VERSIONS } from "../support/node_versions.ts";
import pinned from "./packages.json" with { type: "json" };

/** The clients and their npm packages. The first package of each client is the client itself. */
export const packages: Readonly<Record<string, readonly string[]>> = pinned;

/** The Node version under which clients are installed and run. npm installs older packages under older versions. */
export const NODE = NODE_VERSIONS[1];

/** Returns the folder for installed clients, unless an option names another folder. */
export function toCache(): string {
  return `${Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`}/x-mcp-clients`;
}

/** Returns the name and the version of a client's package. */
export function toPackage(name: string): { readonly package: string; readonly version: string } {
  const [first = ""] = packages[name] ?? [];
  const at = first.lastIndexOf("@");
  return { package: first.slice(0, at), version: first.slice(at + 1) };
}

/** Finds an installed client, or installs it. Returns the folder that contains `node_modules`, or the reason. */
export async function findClient(
  name: string,
  { cache, node }: { readonly cache: string; readonly node: string },
): Promise<{ readonly folder: string } | { readonly missing: string }> {
  const folder = `${cache}/${name}-${toPackage(name).version}`;
  if (await Deno.stat(`${folder}/node_modules`).then(() => true, () => false)) return { folder };
  await Deno.mkdir(cache, { recursive: true });
  // Another run may install the same client at the same time, so rename the folder only when it is complete.
  const made = await Deno.makeTempDir({ dir: cache, prefix: `${name}-` });
  await Deno.writeTextFile(`${made}/package.json`, '{ "private": true, "type": "module" }\n');
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["install", "--no-audit", "--no-fund", "--loglevel=error", ...packages[name]],
    cwd: made,
    env: { PATH: `${node.replace(/\/[^/]*$/, "")}:${Deno.env.get("PATH")}` },
    stdout: "null",
  }).output().catch(() => ({ success: false, stderr: new TextEncoder().encode("there is no npm") }));
  if (!success) {
    await Deno.remove(made, { recursive: true });
    const [line] = new TextDecoder().decode(stderr).trim().split("\n");
    return { missing: `npm cannot install ${packages[name].join(", ")}: ${line}` };
  }
  await Deno.rename(made, folder).catch(() => Deno.remove(made, { recursive: true }));
  return { folder };
}
