/**
 * Tokens of a client over HTTP: each request carries one, and a refused one is renewed.
 *
 * @see specification/2026-07-28/basic/authorization (Access Token Usage)
 * @module
 */
import { readChallenge as parseChallenge } from "../kit/bearer_challenge.ts";
import { fetchSameOrigin, type HttpMessage } from "./redirects.ts";

/** Why a server refused a request. Nothing in it is verified. */
export interface AuthChallenge {
  /** 401, or 403 if the token lacks scopes. */
  readonly status: number;
  /** The `WWW-Authenticate` header; empty if there is none. */
  readonly header: string;
  /** The parameters of its `Bearer` challenge by their lower-case names, such as `scope` and `resource_metadata`. */
  readonly params: Readonly<Record<string, string>>;
}

/** A source of tokens. */
export interface ClientAuth {
  /** Returns the token for the next HTTP request, or `undefined` to send none. */
  readonly token: () => string | undefined | Promise<string | undefined>;
  /**
   * Called when the server refuses a token with 401, or with 403 because it lacks scopes. Returns whether `token` now
   * has another one: only `true` sends the request again, once. Requests that are refused at the same time share a call.
   */
  readonly refresh?: (challenge: AuthChallenge) => boolean | Promise<boolean>;
}

/** Sends the HTTP requests of one connection. */
export type SendHttp = (sending: HttpMessage) => Promise<Response>;

/** Returns the function that sends the requests of a connection, with a token if there is `auth`. */
export function createSender(fetch: (request: Request) => Promise<Response>, auth?: ClientAuth): SendHttp {
  return auth ? new AuthorizedSender(fetch, auth).send : (sending) => fetchSameOrigin(fetch, sending);
}

class AuthorizedSender {
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #auth: ClientAuth;
  #refreshing: Promise<boolean> | undefined;

  constructor(fetch: (request: Request) => Promise<Response>, auth: ClientAuth) {
    this.#fetch = fetch;
    this.#auth = auth;
  }

  readonly send: SendHttp = async (sending) => {
    const token = await this.#readToken();
    const response = await this.#sendWith(token, sending);
    const challenge = readChallenge(response);
    if (!challenge || !await this.#canRepeat(token, challenge)) return response;
    sending.signal?.throwIfAborted();
    await response.body?.cancel();
    return await this.#sendWith(await this.#readToken(), sending);
  };

  async #readToken(): Promise<string | undefined> {
    const token: unknown = await this.#auth.token();
    if (token === undefined) return;
    // A header of anything else would throw an error that shows the token.
    if (typeof token === "string" && /^[\x21-\x7e]+$/.test(token)) return token;
    throw new TypeError("Cannot send the request: auth.token returned no token; return a text, or undefined for none");
  }

  async #sendWith(token: string | undefined, sending: HttpMessage): Promise<Response> {
    const headers = new Headers(sending.headers);
    if (token === undefined) headers.delete("authorization");
    else headers.set("authorization", `Bearer ${token}`);
    return await fetchSameOrigin(this.#fetch, { ...sending, headers });
  }

  /** Whether there is another token, because another request has renewed it or `refresh` does. */
  async #canRepeat(refused: string | undefined, challenge: AuthChallenge): Promise<boolean> {
    if (!this.#refreshing && await this.#readToken() !== refused) return true;
    this.#refreshing ??= this.#refresh(challenge).finally(() => this.#refreshing = undefined);
    return await this.#refreshing;
  }

  async #refresh(challenge: AuthChallenge): Promise<boolean> {
    return await this.#auth.refresh?.(challenge) === true;
  }
}

/** Returns `undefined` if another token would not help. */
function readChallenge({ status, headers }: Response): AuthChallenge | undefined {
  if (status !== 401 && status !== 403) return;
  const header = headers.get("www-authenticate") ?? "";
  const found = parseChallenge(header);
  const params: Record<string, string> = found?.scheme === "bearer" ? Object.fromEntries(found.params) : {};
  return status === 401 || params.error === "insufficient_scope" ? { status, header, params } : undefined;
}
