/**
 * Endpoints next to the MCP endpoint, such as `/health`.
 *
 * @module
 */
import type { ConnectionInfo } from "../transports/http/access.ts";
import type { Fetch } from "../transports/http/fetch.ts";
import type { Core } from "../core/core.ts";
import type { ServerStats } from "./stats.ts";

/**
 * An endpoint next to the MCP endpoint, such as `/health`. The endpoint is public: the server checks neither the Host
 * header nor the caller. The endpoint still responds while the server is closing.
 */
export interface Route {
  /** Path of the endpoint, without parameters. */
  readonly path: string;
  /** Responds to requests with any HTTP method. If the function throws, the client gets HTTP 500 without details. */
  readonly fetch: (request: Request, facts: RouteFacts) => Response | Promise<Response>;
}

/** Facts that a {@linkcode Route} receives with a request. */
export interface RouteFacts {
  /** The server that has the route, or the object that `mount` returned. */
  readonly server: {
    /** Creates all server-wide services. Rejects if a service fails. */
    ready(): Promise<void>;
    /** Returns the current numbers of calls, streams, sessions and bytes. */
    stats(): ServerStats;
  };
  /** Facts about the connection, as the runtime or your own code passed them to `fetch`. */
  readonly info?: ConnectionInfo;
}

/** Routes, such as `[health(), prometheus()]`. */
export type RouteList = readonly (Route | readonly Route[])[];

/** The parts of a server that {@linkcode Routes} needs. */
export interface RoutedParts {
  readonly core: Pick<Core, "report">;
  readonly server: RouteFacts["server"];
  /** Paths of the MCP endpoints, which routes cannot use. */
  readonly paths: readonly string[];
  /** Handles the requests that are not for a route. */
  readonly fetch: Fetch;
}

/** The routes of a server. A request whose path is not a route goes to the MCP endpoint. */
export class Routes {
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #parts: RoutedParts;

  /**
   * Checks the list of routes.
   *
   * @throws {TypeError} if an item is not a route, or if its path is already the path of another route or of an
   * endpoint.
   */
  constructor(list: RouteList, parts: RoutedParts) {
    const routes = list.flat();
    const odd = routes.findIndex((route) => !isRoute(route));
    if (odd >= 0) {
      throw new TypeError(
        `Cannot add routes: the item at index ${odd} is not a route; write { path: "/version", fetch }`,
      );
    }
    const paths = [...parts.paths, ...routes.map(({ path }) => path)];
    const twice = paths.find((path, at) => paths.indexOf(path) < at);
    if (twice) throw new TypeError(`Cannot add the route ${twice}: the path is already used; choose another path`);
    this.#routes = new Map(routes.map((route) => [route.path, route]));
    this.#parts = parts;
  }

  readonly fetch: Fetch = async (request, info) => {
    const { core, server, fetch } = this.#parts;
    const path = URL.parse(request.url)?.pathname ?? "";
    const route = this.#routes.get(path);
    if (!route) return await fetch(request, info);
    try {
      const response: unknown = await route.fetch(request, { server, info });
      if (response instanceof Response) return response;
      throw new TypeError(`Cannot serve the route ${path}: its fetch() did not return a Response; return a Response`);
    } catch (error) {
      core.report(error);
      return new Response(null, { status: 500 });
    }
  };
}

function isRoute(route: unknown): boolean {
  const { path, fetch } = Object(route);
  return typeof fetch === "function" && typeof path === "string" && URL.parse(path, "http://x")?.pathname === path &&
    !path.includes("/:");
}
