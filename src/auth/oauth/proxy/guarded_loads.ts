/**
 * Loads JSON from URLs that strangers choose. Limits the hosts, and the number, the duration and the size of loads, because
 * such a URL could otherwise reach hosts in the network of this server.
 */
import { toNetwork } from "../../../server/capacity/account.ts";
import { readText } from "../../../core/kit/body_pieces.ts";
import { BoundedMap } from "../../../core/kit/bounded_map.ts";
import { hasDotSegment } from "../../../core/kit/dot_segment.ts";
import { parseJson } from "../../../core/kit/json.ts";
import { isPrivateHost } from "../../../core/kit/private_hosts.ts";
import { findProcess } from "../../../core/runtime.ts";
import { type Clock, systemClock } from "../../../core/timers.ts";
import { OAuthError } from "./client.ts";

/** How requests are sent. Tests replace all members. */
export interface LoadEnvironment {
  /** Defaults to the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
  readonly clock?: Clock;
  /** Returns the addresses of a host, or `undefined` if the platform cannot look them up. */
  readonly lookUp?: (hostname: string) => Promise<readonly string[] | undefined>;
}

/** The request for which a URL is loaded. */
export interface LoadRequest {
  /** Address of the caller. `undefined` if the platform does not know the address. */
  readonly peer: string | undefined;
  /** Public URL of this server, which must not load anything from itself. */
  readonly own: URL;
  /** Maximum age in milliseconds of a value that was loaded before. Defaults to the time that its response allows. */
  readonly maxAgeMs?: number;
}

/** The values that are loaded. */
export interface LoadRules<T> {
  /** Describes the URL in errors, such as `client_id`. */
  readonly name: string;
  /** Maximum size of a response in bytes. */
  readonly maxBytes: number;
  /** Returns the value of a response. Throws an `OAuthError` if the response is not valid. */
  readonly read: (json: unknown, url: URL) => T;
}

/** Maximum number of concurrent loads. */
const MAX_LOADS = 8;
/** Maximum number of concurrent loads for one client address. */
const MAX_PEER_LOADS = 2;
/** Maximum duration of a load in milliseconds. */
const TIMEOUT_MS = 3000;
/** Maximum length of a URL in characters. */
const MAX_URL = 2000;
/** Maximum number of remembered values, and of remembered failures. */
const MAX_KNOWN = 200;
const FAILED_MS = 60_000;
/** Time in milliseconds for which a value is used if its response does not state a time. */
const DEFAULT_MS = 300_000;
const MAX_AGE_MS = 86_400_000;
/** Time in seconds after which a client that was refused because of a limit can try again. */
const RETRY_S = 2;

const URL_TEXT = /^https:\/\/(?:[\w\-.~:/?[\]@!$&'()*+,;=]|%[\da-f]{2})+$/i;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** Counts the loads that are running. All {@linkcode GuardedLoads} of a server share an instance. */
export class LoadSlots {
  #running = 0;
  // Bound: `MAX_LOADS`.
  readonly #peers = new Map<string, number>();

  /** Runs `load` if there is a free slot. Throws an `OAuthError` with status 503 otherwise. */
  async run<T>(from: string | undefined, load: () => Promise<T>): Promise<T> {
    // An IPv6 /56 network is one peer, as for rates.
    const peer = from === undefined ? undefined : toNetwork(`peer ${from}`) ?? from;
    const own = peer === undefined ? 0 : this.#peers.get(peer) ?? 0;
    if (this.#running >= MAX_LOADS || own >= MAX_PEER_LOADS) {
      const state = "the server loads too many metadata documents; try again later";
      throw new OAuthError("temporarily_unavailable", state, 503, { retryAfter: RETRY_S });
    }
    this.#running++;
    if (peer !== undefined) this.#peers.set(peer, own + 1);
    try {
      return await load();
    } finally {
      this.#running--;
      if (peer !== undefined) this.#release(peer);
    }
  }

  #release(peer: string): void {
    const left = (this.#peers.get(peer) ?? 1) - 1;
    if (left) this.#peers.set(peer, left);
    else this.#peers.delete(peer);
  }
}

interface Known<T> {
  readonly value: T;
  /** Time of the clock at which the value was loaded, in milliseconds. */
  readonly at: number;
  readonly ageMs: number;
}

/** Loads and caches values of one kind, and caches failures. Concurrent requests for a URL share one load. */
export class GuardedLoads<T> {
  readonly #rules: LoadRules<T>;
  readonly #slots: LoadSlots;
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #clock: Clock;
  readonly #lookUp: NonNullable<LoadEnvironment["lookUp"]>;
  // Everybody who publishes valid values at public hosts can fill this map. A value that is used becomes the newest
  // entry, so that mainly unused values are dropped. A dropped value is loaded again on its next use.
  readonly #known = new BoundedMap<string, Known<T>>({ full: "evict", max: MAX_KNOWN });
  // Everybody can fill this map. A separate map, because failures must not drop values.
  readonly #failed = new BoundedMap<string, Known<OAuthError>>({ full: "evict", max: MAX_KNOWN });
  // Bound: `MAX_LOADS`.
  readonly #loading = new Map<string, Promise<T>>();

  constructor(rules: LoadRules<T>, slots: LoadSlots, environment: LoadEnvironment = {}) {
    this.#rules = rules;
    this.#slots = slots;
    this.#fetch = environment.fetch ?? ((request) => globalThis.fetch(request));
    this.#clock = environment.clock ?? systemClock;
    this.#lookUp = environment.lookUp ?? lookUpAddresses;
  }

  /**
   * Returns the value at a URL.
   *
   * @throws {OAuthError} (as a rejection) if the URL is not allowed, the value cannot be loaded, or a limit is reached.
   */
  async load(text: string, { peer, own, maxAgeMs = Infinity }: LoadRequest): Promise<T> {
    const url = this.readUrl(text, own);
    const known = this.#known.get(text);
    if (known && this.#clock.now() - known.at < Math.min(known.ageMs, maxAgeMs)) {
      this.#known.set(text, known);
      return known.value;
    }
    const failed = this.#failed.get(text);
    if (failed && this.#clock.now() - failed.at < failed.ageMs) throw failed.value;
    const loading = this.#loading.get(text) ?? this.#start(url, peer);
    return await loading;
  }

  /**
   * Parses a URL. Requires the form in which `URL` writes it, so that two URLs of a document are never different texts,
   * and addresses cannot be written in a way that hides them.
   *
   * @throws {OAuthError} if the URL is not allowed.
   */
  readUrl(text: string, own: URL): URL {
    const { name } = this.#rules;
    const refuse = (state: string) => new OAuthError("invalid_client", `${name} ${state}`, 401);
    if (text.length > MAX_URL) throw refuse(`is longer than ${MAX_URL} characters`);
    const url = URL_TEXT.test(text) ? URL.parse(text) : null;
    if (!url || url.href !== text) throw refuse("is not an https URL in its normal form, without a fragment");
    if (url.username || url.password) throw refuse("contains a user name or a password");
    if (url.pathname === "/") throw refuse("has no path");
    if (hasDotSegment(url.pathname)) throw refuse("has a path with dot segments");
    if (url.hostname.endsWith(".") || isPrivateHost(url.hostname)) throw refuse("names a host that is not public");
    if (url.hostname === own.hostname) throw refuse("names this server");
    return url;
  }

  #start(url: URL, peer: string | undefined): Promise<T> {
    const key = url.href;
    let isRefused = true;
    const run = async () => {
      isRefused = false;
      return await this.#loadValue(url);
    };
    const loading = this.#slots.run(peer, run).catch((error) => {
      const failure = error instanceof OAuthError ? error : new OAuthError(
        // Does not state the reason, because strangers could otherwise explore the network of this server.
        "invalid_client",
        `${this.#rules.name} cannot be loaded`,
        401,
        { cause: error },
      );
      const entry = { value: failure, at: this.#clock.now(), ageMs: FAILED_MS };
      if (!isRefused) this.#failed.set(key, entry);
      throw failure;
    }).finally(() => this.#loading.delete(key));
    this.#loading.set(key, loading);
    return loading;
  }

  async #loadValue(url: URL): Promise<T> {
    const late = new AbortController();
    const { maxBytes, name, read } = this.#rules;
    const { headers, text } = await readText(this.#send(url, late.signal), {
      maxBytes,
      ms: TIMEOUT_MS,
      clock: this.#clock,
      toError: () => new OAuthError("invalid_client", `${name} is longer than ${maxBytes} bytes`, 401),
      onTimeout: () => {
        late.abort(new Error(`no response within ${TIMEOUT_MS} ms`));
        throw late.signal.reason;
      },
    }).finally(() => late.abort());
    const value = read(parseJson(text), url);
    const ageMs = readAge(headers, this.#clock.date());
    this.#failed.delete(url.href);
    // A value that must not be used again is not remembered, so that it drops no other value.
    if (ageMs > 0) this.#known.set(url.href, { value, at: this.#clock.now(), ageMs });
    else this.#known.delete(url.href);
    return value;
  }

  async #send(url: URL, signal: AbortSignal): Promise<Response> {
    await this.#checkAddresses(url.hostname);
    signal.throwIfAborted();
    // Redirects are not followed, because they could lead to any host.
    const request = new Request(url, { headers: { accept: "application/json" }, redirect: "manual", signal });
    const response = await this.#fetch(request);
    const type = response.headers.get("content-type") ?? "";
    const state = response.status !== 200
      ? `has the status ${response.status || "of a redirect"}`
      : JSON_TYPE.test(type)
      ? undefined
      : "is not JSON";
    if (state === undefined) return response;
    response.body?.cancel().catch(() => {});
    throw new OAuthError("invalid_client", `the response for ${this.#rules.name} ${state}`, 401);
  }

  /**
   * Throws if a name has a private address. `fetch` looks the name up again, and may then get another address. This is
   * accepted, because the host must prove the name with a certificate before it receives the request. On a platform
   * without lookups, such as Workers, only this proof protects private hosts.
   */
  async #checkAddresses(hostname: string): Promise<void> {
    const addresses = await this.#lookUp(hostname) ?? [];
    if (addresses.some((address) => isPrivateHost(toHostname(address)))) throw new Error("the address is not public");
  }
}

/** Returns an address as the `hostname` of a `URL`. */
function toHostname(address: string): string {
  if (!address.includes(":")) return address;
  const { hostname } = new URL(`https://[${address.replace(/%.*$/, "")}]`);
  // Networks without IPv4 reach IPv4 hosts at translated addresses (RFC 6052).
  const [, high, low] = /^\[64:ff9b::(?:([\da-f]+):)?([\da-f]+)\]$/.exec(hostname) ?? [];
  if (low === undefined) return hostname;
  return [high ?? "0", low].flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]).join(".");
}

async function lookUpAddresses(hostname: string): Promise<readonly string[] | undefined> {
  if (hostname.startsWith("[") || /^[\d.]+$/.test(hostname)) return [hostname.replace(/[[\]]/g, "")];
  try {
    const { promises } = findProcess().getBuiltinModule("dns");
    return (await promises.lookup(hostname, { all: true })).map(({ address }) => address);
  } catch {
    // The platform has no lookups, or does not permit them, or the name has no address. In the last case, `fetch` fails.
  }
}

/** Returns the milliseconds for which a response can be used (RFC 9111). */
function readAge(headers: Headers, date: number): number {
  const control = (headers.get("cache-control") ?? "").toLowerCase();
  if (/(?:^|[\s,])no-(?:store|cache)(?=$|[\s,=])/.test(control)) return 0;
  const [, seconds] = /(?:^|[\s,])max-age\s*=\s*"?(\d+)/.exec(control) ?? [];
  if (seconds !== undefined) return Math.min(Math.max(0, Number(seconds) - readSeconds(headers)) * 1000, MAX_AGE_MS);
  const expires = headers.get("expires");
  if (expires === null) return DEFAULT_MS;
  const sent = Date.parse(headers.get("date") ?? "");
  const ms = Date.parse(expires) - (Number.isNaN(sent) ? date : sent);
  // A date that cannot be read has expired.
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), MAX_AGE_MS);
}

/** Returns the age of a response from a cache, in seconds. */
function readSeconds(headers: Headers): number {
  const text = headers.get("age") ?? "";
  return /^\d+$/.test(text) ? Number(text) : 0;
}
