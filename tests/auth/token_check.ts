// A custom `Authentication` with a metadata route that imports only published entry points. A token is
// `payload.signature`. The payload is JSON with the claims of a JWT. The signature is an HMAC with SHA-256.
import type { Authentication } from "@x/mcp";
import { refuseRequest } from "@x/mcp/auth";

/** The payload of a token. */
export interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string;
  /** Time at which the token expires, in seconds since 1970. */
  readonly exp: number;
  readonly scope?: string;
}

/** Options of {@linkcode checkTokens}. */
export interface TokenOptions {
  /** URL of the endpoint. The `aud` claim of a token must be this URL. */
  readonly resource: string;
  readonly issuer: string;
  /** Loads the issuer's key. Called on the first request, and on each later request until a load succeeds. */
  readonly loadKey: (signal: AbortSignal) => Promise<CryptoKey>;
}

/** Creates an authentication scheme that accepts tokens from one issuer. */
export function checkTokens({ resource, issuer, loadKey }: TokenOptions): Authentication {
  const { origin, pathname } = new URL(resource);
  const path = `/.well-known/oauth-protected-resource${pathname}`;
  const params = { resource_metadata: origin + path };
  const metadata = { resource, authorization_servers: [issuer], bearer_methods_supported: ["header"] };
  const closing = new AbortController();
  let key: Promise<CryptoKey> | undefined;

  function findKey(): Promise<CryptoKey> {
    key ??= loadKey(closing.signal).catch((error) => {
      key = undefined;
      throw error;
    });
    return key;
  }

  const toInvalid = (reason: string) =>
    refuseRequest(401, { challenge: { scheme: "Bearer", params: { ...params, error: "invalid_token" } }, reason });

  return {
    async authenticate({ headers }, { now }) {
      const [, payload, signature] = /^Bearer +([\w-]+)\.([\w-]+)$/i.exec(headers.get("authorization") ?? "") ?? [];
      if (!payload) return undefined;
      const bytes = new TextEncoder().encode(payload);
      if (!await crypto.subtle.verify("HMAC", await findKey(), fromBase64Url(signature), bytes)) {
        return toInvalid("the token has a wrong signature");
      }
      const claims: Claims = JSON.parse(new TextDecoder().decode(fromBase64Url(payload)));
      if (claims.iss !== issuer || claims.aud !== resource) return toInvalid("the token is for something else");
      if (claims.exp * 1000 <= now) return toInvalid("the token has expired");
      const scopes = claims.scope?.split(" ").filter(Boolean) ?? [];
      return { id: JSON.stringify([claims.iss, claims.sub]), scopes, expiresAt: claims.exp * 1000 };
    },
    challenge: { scheme: "Bearer", params },
    // A granted scope such as `notes` includes `notes:read`.
    satisfies: (granted, needed) =>
      needed.every((one) => granted.some((all) => one === all || one.startsWith(`${all}:`))),
    routes: [{
      path,
      fetch: ({ method }) => {
        const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "mcp-protocol-version" };
        if (method === "GET") return Response.json(metadata, { headers: cors });
        return new Response(null, { status: method === "OPTIONS" ? 204 : 405, headers: { ...cors, allow: "GET" } });
      },
    }],
    start: () => () => closing.abort(),
  };
}

/** Creates a signed token. */
export async function sign(claims: Claims, key: CryptoKey): Promise<string> {
  const payload = toBase64Url(new TextEncoder().encode(JSON.stringify(claims)));
  const signature = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(payload));
  return `${payload}.${toBase64Url(new Uint8Array(signature))}`;
}

function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}
