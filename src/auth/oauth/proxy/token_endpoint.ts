/**
 * The endpoints that clients call without a browser: tokens, revocation and registration.
 *
 * @see RFC 6749, section 5 (Issuing an Access Token)
 * @see RFC 7009 (Token Revocation)
 */
import { sha256 } from "../../../core/kit/sha256.ts";
import type { Clock } from "../../../core/timers.ts";
import type { RoutePeer } from "../../../server/engine/route_peer.ts";
import { type AuthenticationFacts, type Clients, OAuthError, toUnknownClient } from "./clients.ts";
import { hasRepeated, readForm } from "./flow.ts";
import type { Grant, Grants, Issued, Refused } from "./grants.ts";

/** Number of wrong codes and tokens of an address, so that guesses cannot use up the time of the server. */
const GUESS_RATE = { calls: 60, perMs: 60_000 };

export interface TokenEndpointParts {
  readonly grants: Grants;
  readonly clients: Clients;
  readonly issuer: string;
  readonly resource: URL;
  readonly clock: Clock;
  readonly now: () => number;
  /** Marks the id of an assertion of a client as used. Resolves to `false` if it was used before. */
  readonly markUsed: (
    use: { readonly id: string; readonly at: number; readonly ttlMs: number },
    client: string,
  ) => Promise<boolean>;
  /**
   * Asks again whether the user may use the server.
   *
   * @throws {OAuthError} if the grant must end, or if the provider does not respond.
   */
  readonly recheck: (id: string, grant: Grant) => Promise<void>;
}

export class TokenEndpoint {
  readonly #parts: TokenEndpointParts;

  constructor(parts: TokenEndpointParts) {
    this.#parts = parts;
  }

  async token(request: Request, peer: RoutePeer): Promise<Response> {
    return await this.#respond(request, async (params) => {
      const { grant_type: type } = params;
      if (type !== "authorization_code" && type !== "refresh_token") {
        throw new OAuthError("unsupported_grant_type", "use authorization_code or refresh_token", 400);
      }
      const { href } = this.#parts.resource;
      if (params.resource !== undefined && URL.parse(params.resource)?.href !== href) {
        throw new OAuthError("invalid_target", `resource must be ${href}`, 400);
      }
      const isCode = type === "authorization_code";
      const text = (isCode ? params.code : params.refresh_token) ?? "";
      const opened = await this.#parts.grants.open(isCode ? "code" : "refresh", text);
      if (!opened) return peer.rate("token", GUESS_RATE) ?? await this.#refuse(params.client_id ?? "");
      const client = await this.#authenticate(params, peer);
      const found = isCode
        ? await this.#parts.grants.redeem(opened, (grant) => isFor(grant, client, params))
        : await this.#refresh(opened, client, params.scope ?? "");
      return toTokens(found);
    });
  }

  /** Returns the response to a code or a token that this server has not made. */
  async #refuse(clientId: string): Promise<Response> {
    // After a change of the secret, the client is not known either. It would use its id again, instead of registering.
    const isKnown = await this.#parts.clients.isKnown(clientId);
    return toError(isKnown ? new OAuthError("invalid_grant", UNKNOWN, 400) : toUnknownClient());
  }

  async #refresh(
    opened: Parameters<Grants["refresh"]>[0],
    client: string,
    scope: string,
  ): Promise<Issued | Refused> {
    const { grants, recheck } = this.#parts;
    const found = await grants.examine(opened, { client, scope });
    if (typeof found === "string") return found;
    if (!found.isRepeated) await recheck(opened.grant, found.grant);
    return await grants.refresh(opened, { client, scope });
  }

  /** Returns the id of the client. */
  async #authenticate(params: Readonly<Record<string, string>>, { peer }: RoutePeer): Promise<string> {
    const { clients, issuer, now, markUsed } = this.#parts;
    const client = await clients.find(params.client_id ?? "", peer);
    const mark: AuthenticationFacts["markUsed"] = (use) => markUsed(use, client.id);
    const facts = { issuer, tokenEndpoint: `${issuer}/token`, now: now(), peer, markUsed: mark };
    await clients.authenticate(client, new URLSearchParams(params), facts);
    return client.id;
  }

  async revoke(request: Request, peer: RoutePeer): Promise<Response> {
    return await this.#respond(request, async (params) => {
      const opened = await this.#parts.grants.openToken(params.token ?? "");
      if (!opened) return peer.rate("token", GUESS_RATE) ?? toJson(200, {});
      const client = await this.#authenticate(params, peer);
      const grant = await this.#parts.grants.find(opened.grant);
      if (grant?.client === client) await this.#parts.grants.end(opened.grant);
      return toJson(200, {});
    });
  }

  async #respond(
    request: Request,
    run: (params: Readonly<Record<string, string>>) => Promise<Response>,
  ): Promise<Response> {
    const refused = checkMethod(request);
    if (refused) return refused;
    try {
      const form = new URLSearchParams(await readForm(request, this.#parts.clock));
      if (hasRepeated(form)) throw new OAuthError("invalid_request", "a parameter is repeated", 400);
      if (request.headers.has("authorization")) {
        throw new OAuthError("invalid_client", "the client must not use a secret; use client_id in the form", 401);
      }
      return withCors(await run(Object.fromEntries(form)));
    } catch (error) {
      if (error instanceof OAuthError) return toError(error);
      throw error;
    }
  }
}

const UNKNOWN = "the code or the token is not known, has expired, or was used before";

/** Checks a code with the client, the redirect URI and the verifier of its request. */
async function isFor(
  { client: owner, code }: Grant,
  client: string,
  { redirect_uri: redirectUri, code_verifier: verifier = "" }: Readonly<Record<string, string>>,
): Promise<boolean> {
  if (owner !== client || (redirectUri ?? code.redirectUri) !== code.redirectUri) return false;
  return /^[\w.~-]{43,128}$/.test(verifier) && await sha256(verifier) === code.challenge;
}

function toTokens(found: Issued | Refused): Response {
  if (found === "scope") return toError(new OAuthError("invalid_scope", "a scope was not granted", 400));
  if (typeof found === "string") return toError(new OAuthError("invalid_grant", UNKNOWN, 400));
  const { access, refresh, scopes, expiresInMs } = found;
  return toJson(200, {
    access_token: access,
    token_type: "Bearer",
    expires_in: expiresInMs / 1000,
    refresh_token: refresh,
    scope: scopes.join(" "),
  });
}

const CORS = { "access-control-allow-origin": "*" };

/** Returns the response to a preflight request, or to a request that is not a POST. */
export function checkMethod({ method }: Request): Response | undefined {
  if (method === "POST") return;
  const headers = {
    ...CORS,
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": "*",
    "access-control-max-age": "86400",
    allow: "POST, OPTIONS",
  };
  return new Response(null, { status: method === "OPTIONS" ? 204 : 405, headers });
}

export function toError({ code, description, status }: OAuthError): Response {
  return toJson(status, { error: code, error_description: description });
}

export function toJson(status: number, json: unknown): Response {
  const headers = { ...CORS, "content-type": "application/json", "cache-control": "no-store", pragma: "no-cache" };
  return new Response(JSON.stringify(json), {
    status,
    headers: status === 503 ? { ...headers, "retry-after": "1" } : headers,
  });
}

export function withCors(response: Response): Response {
  const headers = new Headers(response.headers);
  headers.set("access-control-allow-origin", "*");
  return new Response(response.body, { status: response.status, headers });
}
