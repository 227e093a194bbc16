/**
 * The facts and rules that routes share: the peer, rates of requests, and pages for people.
 */
import { withLimits } from "../../../core/protocol/errors.ts";
import { ClientBuckets } from "../../capacity/buckets.ts";
import { toNetwork } from "../../capacity/account.ts";
import type { Core } from "../../engine/core.ts";
import type { RoutePeer } from "../../engine/route_peer.ts";
import { type AccessOptions, checkCaller, type ConnectionInfo, readPeer } from "./access.ts";
import { type Refusal, refuseInText, toMessage } from "./refusals.ts";

type RouteRate = Parameters<RoutePeer["rate"]>[1];

/** Rates of all routes of a server or of an authentication. */
export class RouteRates {
  readonly #core: Core;
  readonly #proxies: readonly string[];
  // Bound: the names are in the author's code.
  readonly #buckets = new Map<string, ClientBuckets>();

  constructor(core: Core, proxies: readonly string[]) {
    this.#core = core;
    this.#proxies = proxies;
  }

  toPeer(request: Request, info: ConnectionInfo | undefined): RoutePeer {
    const peer = readPeer(request, info, this.#proxies);
    return { peer, rate: (name, rate) => this.#count(name, rate, peer) };
  }

  #count(name: string, rate: RouteRate, peer: string | undefined): Response | undefined {
    const { observing, limits, ticker: { clock } } = this.#core;
    if (peer === undefined) return;
    const known = this.#buckets.get(name);
    const buckets = known ?? new ClientBuckets(readRate(name, rate), limits.rates.clients);
    if (!known) this.#buckets.set(name, buckets);
    const key = `peer ${peer}`;
    const waitMs = buckets.consume(toNetwork(key) ?? key, clock.now());
    if (!waitMs) return;
    observing?.reach(LIMIT, key);
    const seconds = Math.ceil(waitMs / 1000);
    const refusal: Refusal = withLimits({
      status: 429,
      message: toMessage(`too many requests from this address; try again in ${seconds} s (${LIMIT})`),
      headers: { "retry-after": `${seconds}`, "cache-control": "no-store" },
      reason: "limit",
    }, LIMIT);
    return refuseInText(this.#core, refusal, SOURCE);
  }
}

const LIMIT = "route.rate";
const SOURCE = { transport: "http" } as const;

function readRate(name: string, rate: RouteRate): RouteRate {
  const { calls, perMs } = rate ?? {};
  if (calls >= 1 && perMs > 0 && Number.isFinite(calls * perMs)) return { calls, perMs };
  throw new TypeError(
    `Cannot count requests for ${name}: calls must be at least 1, and perMs above 0; write { calls: 60, perMs: 60_000 }`,
  );
}

/**
 * Returns the refusal of a request that a page of another origin sends to a page. `page` is the `page` option of the
 * route.
 */
export function findForeign(
  request: Request,
  info: ConnectionInfo | undefined,
  { page, access }: { readonly page: true | string; readonly access: readonly AccessOptions[] },
): Refusal | undefined {
  if (page === true) {
    const refusals = access.map((options) => checkCaller(request, info, options, { isSimple: true }));
    return refusals.includes(undefined) ? undefined : refusals[0];
  }
  const origin = request.headers.get("origin");
  if (origin === null || origin === page) return;
  return { status: 403, message: toMessage(`only pages of ${page} can use this page`), reason: "origin" };
}

/**
 * Headers of a page. There is no `form-action`, because Chromium applies it to every redirect that follows a form. The
 * referrer policy is not `no-referrer`, because Chromium would then send `Origin: null` with a form.
 */
const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
} as const;

/** Adds the headers of a page that the response does not have. */
export function toPage(response: Response): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(PAGE_HEADERS)) if (!headers.has(name)) headers.set(name, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

export function isPageOption(page: unknown): boolean {
  return page === undefined || typeof page === "boolean" ||
    typeof page === "string" && URL.parse(page)?.origin === page;
}
