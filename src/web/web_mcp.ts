/**
 * The route of the script that registers a server's tools in a page.
 */
import { INTERNALS } from "../core/internals.ts";
import { sha256 } from "../core/kit/sha256.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Route, RouteInfo } from "../server/routes.ts";
import type { Server } from "../server/server.ts";
import { type AccessRefusal, checkCaller } from "../server/transports/http/access.ts";
import { refuseInText } from "../server/transports/http/refusals.ts";
import { script } from "./script.ts";

/** Options of {@linkcode webMcp}. */
export interface WebMcpOptions {
  /** Path of the script. Defaults to `/webmcp.js`. */
  readonly path?: string;
  /**
   * Names of the tools that pages register. Everybody who can load the script can read the names. Defaults to all tools
   * that the server lists for the user.
   */
  readonly tools?: readonly string[];
}

const OPTIONS: KnownOptions<keyof WebMcpOptions> = {
  names: {
    path: {
      test: (path) => typeof path === "string" && URL.parse(path, "http://x")?.pathname === path,
      remedy: "use a path such as /webmcp.js",
    },
    tools: "texts",
  },
  elsewhere: {
    origins: "set cors: { origins } of createServer(), because pages of these origins also call the server",
    token: "pass token to register() in the page",
    confirm: "pass confirm to register() in the page",
  },
};

/**
 * Creates the route of a script, which registers the server's tools in the model context of a page (WebMCP), for `routes`
 * of `createServer` or `mount`. Pages of the server's own origin and of the origins in `cors` can load the script. A page
 * imports `register` from `https://mcp.example.com/webmcp.js`, and calls `register({ token: () => accessToken })`.
 *
 * The script contains no data of a user: it lists and calls the tools with the user's credentials, as any client of the
 * MCP endpoint. {@linkcode WebMcpModule} has the types of the script. The server must serve a revision without
 * sessions.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function webMcp(options: WebMcpOptions = {}): Route {
  checkOptions("use webMcp()", options, OPTIONS);
  const { path = "/webmcp.js", tools } = options;
  return {
    path,
    // The route checks Host and Origin itself. It accepts the origins in `cors` also without `credentials`, because the
    // response is the same for every user, so that cookies have no effect.
    public: true,
    async fetch(request, info) {
      // The cast is safe, because only servers that `createServer` or `mount` created call routes, and each server
      // passes itself as `info.server`.
      const whole = info.server as Server;
      const servers = whole[INTERNALS].servers ?? [whole];
      const { core } = servers[0][INTERNALS].engine;
      const refusals = servers.map((server) => check(server, request, info));
      if (!refusals.includes(undefined)) {
        const refusal = refusals[0] as AccessRefusal; // Not undefined, because of the check above.
        return refuseInText(core, { ...refusal, message: `Cannot serve the script: ${refusal.state}` }, SOURCE);
      }
      const origin = request.headers.get("origin");
      const headers = new Headers(HEADERS);
      if (origin !== null && servers.some((server) => server[INTERNALS].http.endpoint.options.allows(origin))) {
        headers.set("access-control-allow-origin", origin);
      }
      if (request.method !== "GET" && request.method !== "HEAD") {
        headers.set("allow", "GET, HEAD");
        return new Response(null, { status: 405, headers });
      }
      const text = `const ENDPOINT=${toJson(findEndpoint(path, servers))},TOOLS=${toJson(tools)};${script}\n`;
      const tag = `"${await sha256(text)}"`;
      headers.set("etag", tag);
      if (request.headers.get("if-none-match") === tag) return new Response(null, { status: 304, headers });
      return new Response(request.method === "HEAD" ? null : text, { headers });
    },
  };
}

const SOURCE = { transport: "http" } as const;

const HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/javascript; charset=utf-8",
  // Browsers ask again for each page, and get status 304 while the script has not changed.
  "cache-control": "no-cache",
  vary: "origin",
  "x-content-type-options": "nosniff",
  // Pages of other origins can load the script only with CORS.
  "cross-origin-resource-policy": "same-origin",
};

function check(server: Server, request: Request, { info }: RouteInfo): AccessRefusal | undefined {
  return checkCaller(request, info, server[INTERNALS].http.endpoint.options);
}

/**
 * Returns the MCP endpoint as a URL relative to the script, because a proxy may add a prefix to both paths. Returns
 * `undefined` if the page must name the endpoint.
 */
function findEndpoint(path: string, servers: readonly Server[]): string | undefined {
  const [{ [INTERNALS]: { http } }, ...others] = servers;
  if (others.length || http.path.includes("/:")) return;
  return `./${"../".repeat(path.split("/").length - 2)}${http.path.slice(1)}`;
}

function toJson(value: unknown): string {
  return value === undefined ? "undefined" : JSON.stringify(value);
}
