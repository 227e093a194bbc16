/**
 * Adds tokens to a client's HTTP requests, and renews tokens that the server rejects.
 *
 * @see specification/2026-07-28/basic/authorization (Access Token Usage)
 */
import type { KnownOptions } from "../core/known_options.ts";
import { readChallenges } from "../core/kit/bearer_challenge.ts";
import { isObject } from "../core/kit/json.ts";
import type { SentToken, Tokens } from "./channel.ts";
import { checkTimeout } from "./deadline.ts";
import { fetchSameResource, type HttpMessage } from "./redirects.ts";

/** The HTTP request for which the client needs a token. */
export interface AuthRequest {
  /** The server's URL, as passed to `connect`. */
  readonly url: string;
  /** The HTTP method. */
  readonly method: string;
}

/** A token that is bound to a key, and a proof for one request that the client possesses the key (RFC 9449). */
export interface BoundToken {
  /** The access token. */
  readonly token: string;
  /** The proof, which the client sends in the header `DPoP`. */
  readonly proof: string;
}

/**
 * The reason why a server rejected a token, or a request without a token. Do not trust these values, because they come
 * from the server.
 */
export interface AuthChallenge {
  /** The server's URL, as passed to `connect`. */
  readonly url: string;
  /** HTTP status: 401, or 403 if the token lacks scopes. */
  readonly status: number;
  /** The `WWW-Authenticate` header, or an empty string if the response does not contain this header. */
  readonly header: string;
  /**
   * The challenge's parameters by lower-case name, such as `scope` and `resource_metadata`. If the header contains
   * several challenges, the client prefers the challenge with `error="insufficient_scope"`, then a `Bearer` challenge,
   * then a `DPoP` challenge.
   */
  readonly params: Readonly<Record<string, string>>;
  /** The `DPoP-Nonce` header, if the response contains this header. */
  readonly nonce?: string;
  /** The rejected token. `undefined` if the request had no token. */
  readonly token?: string;
}

/** Supplies the tokens for a client's HTTP requests. */
export interface ClientAuth {
  /** Returns the token for the next HTTP request, or `undefined` to send no token. */
  readonly token: (
    request: AuthRequest,
  ) => string | BoundToken | undefined | Promise<string | BoundToken | undefined>;
  /**
   * Called when the server rejects a request with 401, or with 403 because the token lacks scopes. If the function
   * returns `true`, the client sends the request again, at most three times. Requests that are rejected at the same
   * time share one call. `signal` aborts when no request waits for the call any longer. If `interactive` is `false`, the
   * function must not involve a user, because the rejected message is not a request of the program, but for example the
   * answer to a ping of the server.
   */
  readonly refresh?: (
    challenge: AuthChallenge,
    options: { readonly signal: AbortSignal; readonly interactive: boolean },
  ) => boolean | Promise<boolean>;
  /**
   * Maximum number of milliseconds by which a call of `refresh` extends the timeouts of the waiting requests, so that
   * users have time to sign in. Defaults to 0.
   */
  readonly refreshMs?: number;
}

export const AUTH: KnownOptions<keyof ClientAuth> = {
  names: { token: "function", refresh: "function", refreshMs: true },
  isPlain: true,
};

export interface SendingOptions {
  /** Whether the user may have to sign in to renew a rejected token. Defaults to `true`. */
  readonly isInteractive?: boolean;
}

/** Sends the HTTP requests of one connection. */
export interface HttpSender {
  send(sending: HttpMessage, options?: SendingOptions): Promise<Response>;
  /** Returns the total milliseconds for which requests have waited for a user. Timeouts do not include this time. */
  waitedMs(): number;
  /** The tokens of the requests. `undefined` if the sender adds no tokens. */
  readonly tokens?: Tokens;
}

/** With `auth`, the sender adds a token to each request. */
export function createSender(
  url: string,
  fetch: (request: Request) => Promise<Response>,
  auth?: ClientAuth,
): HttpSender {
  if (auth) return new AuthorizedSender(url, fetch, auth);
  return { send: (sending) => fetchSameResource(fetch, sending), waitedMs: () => 0 };
}

/** Maximum number of retries of a request: with a renewed token, with more scopes, and with a nonce. */
const MAX_REPETITIONS = 3;

class AuthorizedSender implements HttpSender, Tokens {
  sent: SentToken = { token: undefined };
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

  get tokens(): Tokens {
    return this;
  }

  async readNext(): Promise<string | undefined> {
    return toText(await this.#readToken({ method: "POST" }));
  }

  async send(sending: HttpMessage, { isInteractive = true }: SendingOptions = {}): Promise<Response> {
    for (let repetitions = 0;; repetitions++) {
      const token = await this.#readToken(sending);
      const response = await this.#sendWith(token, sending);
      if (repetitions === MAX_REPETITIONS) return response;
      const challenge = readChallenge(this.#url, response, toText(token));
      if (!challenge || !await this.#canRepeat({ challenge, isInteractive }, sending)) return response;
      sending.signal?.throwIfAborted();
      await response.body?.cancel();
    }
  }

  async #readToken({ method = "GET" }: Pick<HttpMessage, "method">): Promise<string | BoundToken | undefined> {
    const token: unknown = await this.#auth.token({ url: this.#url, method });
    if (token === undefined) return;
    // Validate the token, because the error for an invalid header value would contain the token.
    if (isHeaderWord(token)) return token;
    if (isObject(token) && isHeaderWord(token.token) && isHeaderWord(token.proof)) {
      return { token: token.token, proof: token.proof };
    }
    throw new TypeError(
      "Cannot send the request: auth.token returned an invalid token; return visible ASCII characters, { token, proof }, or undefined for no token",
    );
  }

  async #sendWith(token: string | BoundToken | undefined, sending: HttpMessage): Promise<Response> {
    const headers = new Headers(sending.headers);
    if (toText(token) !== this.sent.token) this.sent = { token: toText(token) };
    headers.delete("dpop");
    if (token === undefined) headers.delete("authorization");
    else if (typeof token === "string") headers.set("authorization", `Bearer ${token}`);
    else {
      headers.set("authorization", `DPoP ${token.token}`);
      headers.set("dpop", token.proof);
    }
    return await fetchSameResource(this.#fetch, { ...sending, headers });
  }

  /** Also returns `true` if another request has already renewed the token. */
  async #canRepeat({ challenge, isInteractive }: Rejection, sending: HttpMessage): Promise<boolean> {
    while (this.#refreshing && isInteractive && !this.#refreshing.isInteractive) {
      // A call that must not involve the user may fail where another call succeeds.
      if (await this.#refreshing.wait(sending.signal).catch(() => false)) return true;
      sending.signal?.throwIfAborted();
    }
    if (!this.#refreshing && toText(await this.#readToken(sending)) !== challenge.token) return true;
    const refreshing = this.#refreshing ??= this.#refresh({ challenge, isInteractive });
    return await refreshing.wait(sending.signal);
  }

  #refresh({ challenge, isInteractive }: Rejection): Refreshing {
    const stopClock = this.#clock.start();
    return new Refreshing(isInteractive, async (signal) => {
      try {
        return await this.#auth.refresh?.(challenge, { signal, interactive: isInteractive }) === true;
      } finally {
        stopClock();
        this.#refreshing = undefined;
      }
    });
  }
}

interface Rejection {
  readonly challenge: AuthChallenge;
  readonly isInteractive: boolean;
}

/** One call of `refresh`. Aborts the call when no request waits for its result any longer. */
class Refreshing {
  readonly isInteractive: boolean;
  readonly #stop = new AbortController();
  readonly #done: Promise<boolean>;
  #waiting = 0;

  constructor(isInteractive: boolean, run: (signal: AbortSignal) => Promise<boolean>) {
    this.isInteractive = isInteractive;
    this.#done = run(this.#stop.signal);
    // Mark a rejection as handled, because no request handles it if all waiting requests were cancelled.
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

/** Measures how long users take to sign in. Each sign-in counts for at most `limitMs` milliseconds. */
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

/** Reads the challenge in a response. Returns `undefined` if another token would not help. */
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
