// Serves the files of a built site on a free port of this machine.

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html",
  js: "text/javascript",
  css: "text/css",
  svg: "image/svg+xml",
  png: "image/png",
  json: "application/json",
};

/** A running server. Disposing closes it. */
export interface SiteServer extends AsyncDisposable {
  /** The URL of the site, with a slash at its end. */
  readonly url: string;
}

/** Serves a folder, whose path ends with a slash, at a URL path such as `/mcp/`. */
export function serveSite(folder: string, base: string): SiteServer {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith(base)) return new Response("outside of the site", { status: 404 });
    const path = decodeURIComponent(pathname.slice(base.length)).replace(/(?<=^|\/)$/, "index.html");
    const bytes = await Deno.readFile(folder + path).catch(() => undefined);
    const type = TYPES[path.split(".").at(-1) ?? ""] ?? "text/plain; charset=utf-8";
    if (bytes) return new Response(bytes, { headers: { "content-type": type } });
    const missing = await Deno.readFile(`${folder}404.html`);
    return new Response(missing, { status: 404, headers: { "content-type": "text/html" } });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}${base}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
