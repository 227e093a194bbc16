/**
 * Tokens of a client over HTTP: each request carries one, and a refused one is renewed.
 *
 * @see specification/2026-07-28/basic/authorization (Access Token Usage)
 * @module
 */
import type { KnownOptions } from "../core/call/known_options.ts";
import { readChallenges } from "../kit/bearer_challenge.ts";
import { isObject } from "../kit/json.ts";
import { checkTimeout } from "./delay.ts";
import { fetchSameOrigin, type HttpMessage } from "./redirects.ts";

/** The HTTP request that a token is for. */
export interface AuthRequest {
  /** The URL of the server, as `connect` got it. */
  readonly url: string;
  /** The HTTP method. */
  readonly method: string;
}

/** A token that is bound to a key, and the proof of possession for one request (RFC 9449). */
export interface BoundToken {
  /** The token. */
  readonly token: string;
  /** The value of the header `DPoP`. */
  readonly proof: string;
}

/** Why a server refused a request. Nothing in it is verified. */
export interface AuthChallenge {
  /** The URL of the server, as `connect` got it. */
  readonly url: string;
  /** 401, or 403 if the token lacks scopes. */
  readonly status: number;
  /** The `WWW-Authenticate` header; empty if there is none. */
  readonly header: string;
  /**
   * The parameters of its challenge by their lower-case names, such as `scope` and `resource_metadata`: of the scheme
   * `Bearer`, or else `DPoP`.
   */
  readonly params: Readonly<Record<string, string>>;
  /** The header `DPoP-Nonce`, if there is one. */
  readonly nonce?: string;
  /** The token that was refused. */
  readonly token?: string;
}

/** A source of tokens. */
export interface ClientAuth {
  /** Returns the token for the next HTTP request, or `undefined` to send none. */
  readonly token: (
    request: AuthRequest,
  ) => string | BoundToken | undefined | Promise<string | BoundToken | undefined>;
  /**
   * Called when the server refuses a token with 401, or with 403 because it lacks scopes. Returns whether the request
   * should be sent again: only `true` does that, up to three times for one request. Requests that are refused at the
   * same time share a call. Its signal aborts when none of them waits any more.
   */
  readonly refresh?: (
    challenge: AuthChallenge,
    options: { readonly signal: AbortSignal },
  ) => boolean | Promise<boolean>;
  /**
   * Milliseconds that a call of `refresh` may take on top of the timeouts of the requests that wait for it, for users
   * who sign in. Defaults to 0.
   */
  readonly refreshMs?: number;
}

/** The names of {@linkcode ClientAuth}. */
export const AUTH: KnownOptions<keyof ClientAuth> = {
  names: { token: "function", refresh: "function", refreshMs: true },
  isPlain: true,
};

/** Sends the HTTP requests of one connection. */
export interface HttpSender {
  send(sending: HttpMessage): Promise<Response>;
  /** The milliseconds that requests have waited for a user, which their timeouts do not count. */
  waitedMs(): number;
}

/** Returns what sends the requests of a connection to a URL, with a token if there is `auth`. */
export function createSender(
  url: string,
  fetch: (request: Request) => Promise<Response>,
  auth?: ClientAuth,
): HttpSender {
  if (auth) return new AuthorizedSender(url, fetch, auth);
  return { send: (sending) => fetchSameOrigin(fetch, sending), waitedMs: () => 0 };
}

/** How often one request is sent again: with a renewed token, with more scopes, and with a nonce. */
const MAX_REPETITIONS = 3;

class AuthorizedSender implements HttpSender {
  readonly #url: string;
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #auth: ClientAuth;
  readonly #clock: WaitClock;
  #refreshing: Refreshing | undefined;

  constructor(url: string, fetch: (request: Request) => Promise<Response>, auth: ClientAuth) {
    this.#url = url;
    this.#fetch = fetch;
    this.#auth = auth;
    const { refreshMs = 0 } = auth;
    if (refreshMs !== 0) checkTimeout(refreshMs, "auth.refreshMs");
    this.#clock = new WaitClock(refreshMs);
  }

  waitedMs(): number {
    return this.#clock.read();
  }

  async send(sending: HttpMessage): Promise<Response> {
    for (let repetitions = 0;; repetitions++) {
      const token = await this.#readToken(sending);
      const response = await this.#sendWith(token, sending);
      if (repetitions === MAX_REPETITIONS) return response;
      const challenge = readChallenge(this.#url, response, toText(token));
      if (!challenge || !await this.#canRepeat(challenge, sending)) return response;
      sending.signal?.throwIfAborted();
      await response.body?.cancel();
    }
  }

  async #readToken({ method = "GET" }: HttpMessage): Promise<string | BoundToken | undefined> {
    const token: unknown = await this.#auth.token({ url: this.#url, method });
    if (token === undefined) return;
    // A header of anything else would throw an error that shows the token.
    if (isHeaderWord(token)) return token;
    if (isObject(token) && isHeaderWord(token.token) && isHeaderWord(token.proof)) {
      return { token: token.token, proof: token.proof };
    }
    throw new TypeError("Cannot send the request: auth.token returned no token; return a text, or undefined for none");
  }

  async #sendWith(token: string | BoundToken | undefined, sending: HttpMessage): Promise<Response> {
    const headers = new Headers(sending.headers);
    headers.delete("dpop");
    if (token === undefined) headers.delete("authorization");
    else if (typeof token === "string") headers.set("authorization", `Bearer ${token}`);
    else {
      headers.set("authorization", `DPoP ${token.token}`);
      headers.set("dpop", token.proof);
    }
    return await fetchSameOrigin(this.#fetch, { ...sending, headers });
  }

  /** Whether there is another token, because another request has renewed it or `refresh` does. */
  async #canRepeat(challenge: AuthChallenge, sending: HttpMessage): Promise<boolean> {
    if (!this.#refreshing && toText(await this.#readToken(sending)) !== challenge.token) return true;
    const refreshing = this.#refreshing ??= this.#refresh(challenge);
    return await refreshing.wait(sending.signal);
  }

  #refresh(challenge: AuthChallenge): Refreshing {
    const stopClock = this.#clock.start();
    return new Refreshing(async (signal) => {
      try {
        return await this.#auth.refresh?.(challenge, { signal }) === true;
      } finally {
        stopClock();
        this.#refreshing = undefined;
      }
    });
  }
}

/** One call of `refresh`, which is aborted when no request waits for it any more. */
class Refreshing {
  readonly #stop = new AbortController();
  readonly #done: Promise<boolean>;
  #waiting = 0;

  constructor(run: (signal: AbortSignal) => Promise<boolean>) {
    this.#done = run(this.#stop.signal);
    // Nobody may be left to see how it ends.
    this.#done.catch(() => {});
  }

  async wait(signal: AbortSignal | undefined): Promise<boolean> {
    signal?.throwIfAborted();
    this.#waiting++;
    const onAbort = () => {
      if (!--this.#waiting) this.#stop.abort(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await this.#done;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

/** Measures how long a user takes, up to a limit for each time. */
class WaitClock {
  readonly #limitMs: number;
  #totalMs = 0;
  #since: number | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  read(): number {
    return this.#totalMs + (this.#since === undefined ? 0 : this.#spent(this.#since));
  }

  start(): () => void {
    const since = this.#since = performance.now();
    return () => {
      this.#totalMs += this.#spent(since);
      this.#since = undefined;
    };
  }

  #spent(since: number): number {
    return Math.min(this.#limitMs, performance.now() - since);
  }
}

function isHeaderWord(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}

function toText(token: string | BoundToken | undefined): string | undefined {
  return typeof token === "object" ? token.token : token;
}

/** Returns `undefined` if another token would not help. */
function readChallenge(
  url: string,
  { status, headers }: Response,
  token: string | undefined,
): AuthChallenge | undefined {
  if (status !== 401 && status !== 403) return;
  const header = headers.get("www-authenticate") ?? "";
  const found = readChallenges(header).filter(({ scheme }) => scheme === "bearer" || scheme === "dpop");
  const asksForMore = found.find(({ params }) => params.get("error") === "insufficient_scope");
  if (status === 403 && !asksForMore) return;
  const asked = asksForMore ?? found.find(({ scheme }) => scheme === "bearer") ?? found[0];
  const params = Object.fromEntries(asked?.params ?? []);
  const nonce = headers.get("dpop-nonce") ?? undefined;
  return {
    url,
    status,
    header,
    params,
    ...nonce === undefined ? {} : { nonce },
    ...token === undefined ? {} : { token },
  };
}
