// A registry on loopback that serves packed packages over npm's protocol. If NPM_CONFIG_REGISTRY is its URL, package
// managers and Deno treat the packages as published.
import { root } from "../support/processes.ts";

/** A running registry. Disposing stops it. */
export interface NpmRegistry extends AsyncDisposable {
  /** The value for the environment variable NPM_CONFIG_REGISTRY. */
  readonly url: string;
  /** An empty folder for npm's cache, which exists as long as the registry runs. */
  readonly cache: string;
  /** The paths that were requested. The path of a tarball is the name of its package, followed by `.tgz`. */
  readonly served: readonly string[];
}

interface Package {
  readonly manifest: { readonly name: string; readonly version: string };
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly integrity: string;
}

async function toPackage(folder: string, bytes: Uint8Array<ArrayBuffer>): Promise<Package> {
  const manifest = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-512", bytes));
  return { manifest, bytes, integrity: `sha512-${digest.toBase64()}` };
}

/** Packs an installed package as npm does: in the folder `package` of a tarball. */
async function pack(name: string): Promise<Package> {
  // Deno installs the dependencies of packages in another folder.
  const folder = await Deno.realPath(`${root}node_modules/${name}`).catch(() =>
    Deno.realPath(`${root}node_modules/.deno/node_modules/${name}`)
  );
  const args = ["cz", "--transform", "s,^\\.,package,", "-C", folder, "."];
  const { success, stdout } = await new Deno.Command("tar", { args }).output();
  if (!success) throw new Error(`Cannot pack ${folder}: tar failed; see its output`);
  return await toPackage(folder, stdout);
}

export interface RegistryOptions {
  /** The folder of the package, with its `package.json`, and its tarball. Omitted if only others are served. */
  readonly own?: { readonly folder: string; readonly tarball: string };
  /** Names of packages in this project's `node_modules` to serve too, also dependencies of its packages. */
  readonly others?: readonly string[];
}

/** Serves packages. Requests for other packages get 404. */
export async function serveNpmPackages({ own, others = [] }: RegistryOptions): Promise<NpmRegistry> {
  const packages = await Promise.all([
    ...own ? [toPackage(own.folder, await Deno.readFile(own.tarball))] : [],
    ...others.map(pack),
  ]);
  const cache = await Deno.makeTempDir({ prefix: "mcp-npm-cache-" });
  const served: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    const { pathname, origin } = new URL(url);
    const path = decodeURIComponent(pathname).slice(1);
    served.push(path);
    const found = packages.find(({ manifest }) => path.replace(/\.tgz$/, "") === manifest.name);
    if (!found) return new Response(null, { status: 404 });
    const { manifest, bytes, integrity } = found;
    const { name, version } = manifest;
    if (path !== name) return new Response(bytes);
    const dist = { tarball: `${origin}/${name}.tgz`, integrity };
    return Response.json({ name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    cache,
    served,
    async [Symbol.asyncDispose]() {
      await server.shutdown();
      await Deno.remove(cache, { recursive: true });
    },
  };
}
