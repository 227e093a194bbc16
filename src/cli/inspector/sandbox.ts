/**
 * Serves the frame in which the page shows a server's apps. The frame has its own port, and therefore its own origin.
 * The frame shows an app in an inner frame with an opaque origin. Neither frame can access the page, the server or the
 * relay.
 *
 * @see modelcontextprotocol/ext-apps, specification/2026-01-26/apps (Sandbox proxy)
 */
import { checkCaller, isLoopbackHost } from "../../host.ts";
import { isObject, parseJson } from "../../core/kit/json.ts";
import { isOriginSource } from "../../core/kit/origin_source.ts";
import { platform } from "../platform.ts";

export interface Sandbox {
  readonly origin: string;
  stop(): Promise<void>;
}

/** Maximum number of origins that an app may use for each directive. */
const MAX_ORIGINS = 50;

/** Returns `undefined` if the process cannot listen on a port. The page then shows no apps. */
export async function startSandbox(): Promise<Sandbox | undefined> {
  const hostname = "127.0.0.1";
  try {
    const fetch = (request: Request, info: object) => Promise.resolve(respond(request, info));
    const served = await platform.serve({ hostname, port: 0, fetch });
    return { origin: `http://${hostname}:${served.port}`, stop: () => served.stop() };
  } catch (error) {
    console.error(`The inspector cannot show apps, because it has no second port: ${error}`);
  }
}

/** Serves the outer frame. The inner frame inherits the outer frame's content security policy. */
export function respond(request: Request, info: object): Response {
  const rejection = checkCaller(request, info, { hosts: [], origins: [], allows: () => undefined });
  if (rejection || !isLoopbackHost(request.headers.get("host") ?? "")) return new Response("", { status: 403 });
  const { pathname, searchParams } = new URL(request.url);
  if (pathname !== "/" || request.method !== "GET") return new Response("", { status: 404 });
  return new Response(PAGE, {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": toPolicy(searchParams.get("csp") ?? "{}"),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "x-dns-prefetch-control": "off",
      "permissions-policy": "camera=(), microphone=(), geolocation=(), clipboard-write=()",
    },
  });
}

/** Converts an app's origins, as JSON, to a content security policy. Omits values that are not origins. */
function toPolicy(declared: string): string {
  const csp = parseJson(declared);
  const list = (name: string): readonly string[] => {
    const origins = isObject(csp) ? csp[name] : undefined;
    return Array.isArray(origins) ? origins.filter(isOriginSource).slice(0, MAX_ORIGINS) : [];
  };
  const resources = list("resourceDomains");
  const rule = (name: string, own: readonly string[], declared: readonly string[]) =>
    [name, ...own.length + declared.length ? [...own, ...declared] : ["'none'"]].join(" ");
  return [
    "default-src 'none'",
    rule("script-src", ["'self'", "'unsafe-inline'"], resources),
    rule("style-src", ["'self'", "'unsafe-inline'"], resources),
    rule("img-src", ["'self'", "data:"], resources),
    rule("media-src", ["'self'", "data:"], resources),
    rule("font-src", [], resources),
    rule("connect-src", [], list("connectDomains")),
    rule("frame-src", [], list("frameDomains")),
    rule("base-uri", [], list("baseUriDomains")),
    "object-src 'none'",
    "form-action 'none'",
    "frame-ancestors http://127.0.0.1:* http://localhost:*",
  ].join("; ");
}

/** The outer frame. Passes messages between the page and the app, and identifies the sender by its window. */
const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>App</title>
<style>html, body, iframe { width: 100%; height: 100%; margin: 0; border: 0; display: block; }</style>
<body>
<script>
(() => {
  const PREFIX = "ui/notifications/sandbox-";
  const page = parent;
  let origin, app;
  const isReserved = (data) => String(data?.method).startsWith(PREFIX);
  addEventListener("message", (event) => {
    const { source, data } = event;
    if (source === page) {
      if (!app && data?.method === PREFIX + "resource-ready") {
        origin = event.origin;
        app = document.createElement("iframe");
        app.sandbox = "allow-scripts allow-forms";
        app.title = "App";
        app.srcdoc = String(data.params?.html);
        document.body.append(app);
      } else if (app && event.origin === origin && !isReserved(data)) app.contentWindow?.postMessage(data, "*");
    } else if (app && source === app.contentWindow && !isReserved(data)) page.postMessage(data, origin);
  });
  page.postMessage({ jsonrpc: "2.0", method: PREFIX + "proxy-ready", params: {} }, "*");
})();
</script>
</body>
</html>
`;
