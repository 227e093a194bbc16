/**
 * Adds tokens to the HTTP requests of a client, and renews a token that the server refuses.
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
  /** The URL of the server, as it was passed to `connect`. */
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

/** The reason why a server refused a request. Nothing in it is verified. */
export interface AuthChallenge {
  /** The URL of the server, as it was passed to `connect`. */
  readonly url: string;
  /** 401, or 403 if the token lacks scopes. */
  readonly status: number;
  /** The `WWW-Authenticate` header, or an empty string if the response does not have this header. */
  readonly header: string;
  /**
   * The parameters of the challenge by their lower-case names, such as `scope` and `resource_metadata`. Taken from the
   * challenge with the scheme `Bearer`, or `DPoP` if no challenge has the scheme `Bearer`.
   */
  readonly params: Readonly<Record<string, string>>;
  /** The `DPoP-Nonce` header, if the response has it. */
  readonly nonce?: string;
  /** The token that was refused. */
  readonly token?: string;
}

/** A source of tokens. */
export interface ClientAuth {
  /** Returns the token for the next HTTP request, or `undefined` to send no token. */
  readonly token: (
    request: AuthRequest,
  ) => string | BoundToken | undefined | Promise<string | BoundToken | undefined>;
  /**
   * Called when the server refuses a token with 401, or with 403 because the token lacks scopes. If it returns `true`,
   * the request is sent again, up to three times for one request. Requests that are refused at the same time share one
   * call. The signal aborts when no request waits for the call any more.
   */
  readonly refresh?: (
    challenge: AuthChallenge,
    options: { readonly signal: AbortSignal },
  ) => boolean | Promise<boolean>;
  /**
   * Milliseconds that a call of `refresh` may take in addition to the timeouts of the requests that wait for it, so
   * that users have time to sign in. Defaults to 0.
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
  /** Returns the time for which requests have waited for a user, in milliseconds. Timeouts do not count this time. */
  waitedMs(): number;
}

/** Returns the object that sends the requests of a connection to a URL, with a token if there is `auth`. */
export function createSender(
  url: string,
  fetch: (request: Request) => Promise<Response>,
  auth?: ClientAuth,
): HttpSender {
  if (auth) return new AuthorizedSender(url, fetch, auth);
  return { send: (sending) => fetchSameOrigin(fetch, sending), waitedMs: () => 0 };
}

/** Number of times that a request may be sent again: with a renewed token, with more scopes, and with a nonce. */
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
    // Check the token first, because an invalid header value would throw an error that contains the token.
    if (isHeaderWord(token)) return token;
    if (isObject(token) && isHeaderWord(token.token) && isHeaderWord(token.proof)) {
      return { token: token.token, proof: token.proof };
    }
    throw new TypeError(
      "Cannot send the request: auth.token returned an invalid token; return a string, or undefined for no token",
    );
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

  /**
   * Returns whether a new token is available, because another request has renewed the token or because `refresh` does.
   */
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

/** One call of `refresh`. The call is aborted when no request waits for its result any more. */
class Refreshing {
  readonly #stop = new AbortController();
  readonly #done: Promise<boolean>;
  #waiting = 0;

  constructor(run: (signal: AbortSignal) => Promise<boolean>) {
    this.#done = run(this.#stop.signal);
    // Ignore the rejection: if all waiting requests were cancelled, nothing else handles it.
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

/** Measures the time that users take to sign in. The time of each sign-in is limited. */
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

/** Reads the challenge of a response. Returns `undefined` if the server would refuse any other token too. */
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
