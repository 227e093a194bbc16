// A registry on loopback that serves one packed package over npm's protocol. If NPM_CONFIG_REGISTRY is its URL, package
// managers and Deno treat the package as published.

/** A running registry. Disposing stops it. */
export interface NpmRegistry extends AsyncDisposable {
  /** The value for the environment variable NPM_CONFIG_REGISTRY. */
  readonly url: string;
  /** The paths that were requested. */
  readonly served: readonly string[];
}

/** Serves the tarball of the package whose `package.json` is in `folder`. Requests for other packages get 404. */
export async function serveNpmPackage(folder: string, tarball: string): Promise<NpmRegistry> {
  const manifest = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
  const { name, version } = manifest;
  const bytes = await Deno.readFile(tarball);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-512", bytes));
  const served: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    const { pathname, origin } = new URL(url);
    const path = decodeURIComponent(pathname).slice(1);
    served.push(path);
    if (path === "package.tgz") return new Response(bytes);
    if (path !== name) return new Response(null, { status: 404 });
    const dist = { tarball: `${origin}/package.tgz`, integrity: `sha512-${digest.toBase64()}` };
    return Response.json({ name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    served,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
