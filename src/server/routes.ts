/**
 * Endpoints next to the MCP endpoint, such as `/health`.
 *
 * @module
 */
import { type AccessOptions, checkCaller, type ConnectionInfo } from "../transports/http/access.ts";
import { TOO_LARGE } from "../transports/http/body_refusals.ts";
import { type Refusal, refuseInText } from "../transports/http/refusals.ts";
import type { Fetch } from "../transports/http/fetch.ts";
import type { Core } from "../core/core.ts";
import type { ServerStats } from "./stats.ts";

/**
 * An endpoint next to the MCP endpoint, such as `/health`. The server does not authenticate the caller. The endpoint
 * still responds while the server is closing.
 */
export interface Route {
  /** Path of the endpoint, without parameters. */
  readonly path: string;
  /**
   * Whether the endpoint gets all requests. If `false`, the server checks the Host and Origin headers as for the MCP
   * endpoint, and limits the body to `limits.request.bodyBytes`. Defaults to `false`.
   */
  readonly public?: boolean;
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
  readonly core: Core;
  /** The hosts and origins of each server. A request to a route must be allowed by one of them. */
  readonly access: readonly AccessOptions[];
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
    const refusal = route.public === true ? undefined : this.#check(request, info);
    if (refusal) return refuseInText(core, refusal, SOURCE);
    const body = route.public === true ? undefined : limitBody(request, core.limits.request.bodyBytes);
    try {
      const response: unknown = await route.fetch(body?.request ?? request, { server, info });
      if (response instanceof Response) return response;
      throw new TypeError(`Cannot serve the route ${path}: its fetch() did not return a Response; return a Response`);
    } catch (error) {
      if (body?.isTooLarge()) return refuseInText(core, TOO_LARGE, SOURCE);
      core.report(error);
      return new Response(null, { status: 500 });
    }
  };

  #check(request: Request, info: ConnectionInfo | undefined): Refusal | undefined {
    const { access, core } = this.#parts;
    const refusals = access.map((options) => checkCaller(request, info, options));
    const [refused] = refusals.includes(undefined) ? [] : refusals;
    if (refused) return { ...refused, message: `Cannot serve the request: ${refused.state}` };
    const { bodyBytes } = core.limits.request;
    return Number(request.headers.get("content-length")) > bodyBytes ? TOO_LARGE : undefined;
  }
}

const SOURCE = { transport: "http" } as const;

/** A request whose body is limited. */
interface Limited {
  readonly request: Request;
  /** Whether the body was longer than the limit. */
  isTooLarge(): boolean;
}

/**
 * Returns the request with a body that fails above `max` bytes. Returns `undefined` if the request states its length, which
 * the runtime enforces, or has no body.
 */
function limitBody(request: Request, max: number): Limited | undefined {
  if (!request.body || request.headers.has("content-length")) return;
  let bytes = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > max) controller.error(new RangeError(TOO_LARGE.message));
      else controller.enqueue(chunk);
    },
  });
  const init = { body: request.body.pipeThrough(limit) };
  // Node requires `duplex` for a streamed body. `Object.assign` adds it, because the types of other runtimes lack it.
  const limited = new Request(request, Object.assign(init, { duplex: "half" }));
  return { request: limited, isTooLarge: () => bytes > max };
}

function isRoute(route: unknown): boolean {
  const { path, fetch, public: isPublic } = Object(route);
  if (isPublic !== undefined && typeof isPublic !== "boolean") return false;
  return typeof fetch === "function" && typeof path === "string" && URL.parse(path, "http://x")?.pathname === path &&
    !path.includes("/:");
}
