/**
 * The facts about the client of a request to a route.
 */

/** Facts about the client of a request to a route, and a limit for the client's requests. */
export interface RoutePeer {
  /**
   * Address of the client, behind the server's `proxies`. For IPv6, the /64 network, because a client can choose the
   * remaining bits. `undefined` if neither the runtime nor the code that calls `fetch` provides the address.
   */
  readonly peer?: string;
  /**
   * Counts the request under a name. Returns `undefined`, or the response to return if the peer has sent too many
   * requests: HTTP status 429 with `Retry-After`. `calls` is the number of requests per period of `perMs`, and the number
   * of requests at once after a pause. The first numbers for a name apply to all its requests. Each instance counts
   * separately, and an IPv6 /56 network counts as one peer. Requests without an address are not counted, because
   * anybody could then use up the rate of all clients.
   *
   * @throws {TypeError} if a number is not positive.
   */
  readonly rate: (
    name: string,
    rate: { readonly calls: number; readonly perMs: number },
  ) => Response | undefined;
}
