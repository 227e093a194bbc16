/**
 * Reads credentials from requests.
 */
import { isPromiseLike } from "../core/protocol/promises.ts";
import { type AuthRefusal, type Challenge, isRefusal, refuseRequest } from "../server/engine/auth.ts";
import type { Principal } from "../server/call/context.ts";

export interface Places {
  readonly header: string;
  /**
   * Scheme before the credential in the header, such as `Bearer`. If omitted, the header contains only the credential.
   */
  readonly scheme?: string;
  /** Name of the cookie. `undefined` if the credential must not be in a cookie. */
  readonly cookie?: string;
  /** Name of the query parameter. `undefined` if the credential must not be in the query. */
  readonly query?: string;
}

export type Presented =
  | { readonly credential: string; readonly refusal?: undefined }
  | { readonly refusal: AuthRefusal; readonly credential?: undefined };

/** Maximum length of a credential in characters. */
const MAX_LENGTH = 4096;

/** Refuses a request with several credentials. */
export function readCredential(request: Request, places: Places, challenge: Challenge): Presented {
  const { header, scheme, cookie, query } = places;
  const { headers } = request;
  const given = headers.get(header);
  if (given !== null && cookie === undefined && query === undefined) return readHeader(given, scheme, challenge);
  const found = given === null ? [] : [given];
  if (cookie !== undefined) found.push(...readCookies(headers.get("cookie") ?? "", cookie));
  if (query !== undefined) found.push(...new URL(request.url).searchParams.getAll(query));
  if (!found.length) return { refusal: refuseRequest(401, { challenge, reason: "it has no credentials" }) };
  if (found.length > 1) return { refusal: toTwo(challenge) };
  return given === null ? readOne(found[0], challenge) : readHeader(given, scheme, challenge);
}

function readHeader(given: string, scheme: string | undefined, challenge: Challenge): Presented {
  return readOne(scheme === undefined ? given : withoutScheme(given, scheme), challenge, given);
}

function readOne(credential: string | undefined, challenge: Challenge, given?: string): Presented {
  if (credential !== undefined && /^[!-+\--~]+$/.test(credential) && credential.length <= MAX_LENGTH) {
    return { credential };
  }
  // `Headers` joins repeated headers with commas, and a credential contains no comma.
  if (given?.includes(",")) return { refusal: toTwo(challenge) };
  return { refusal: refuseRequest(401, { challenge: toError(challenge, "invalid_token"), reason: MALFORMED }) };
}

function toTwo(challenge: Challenge): AuthRefusal {
  return refuseRequest(400, {
    challenge: toError(challenge, "invalid_request"),
    reason: "it has more than one credential",
  });
}

function toError({ scheme, params }: Challenge, error: string): Challenge {
  return { scheme, params: { ...params, error } };
}

const MALFORMED = "the credentials are malformed";

/**
 * Converts the value that the `keys` or `users` function returned to a principal or a refusal. Throws if the value is,
 * for example, `true` or a string, because such a value must not authenticate a caller by mistake.
 */
export function toCaller<T extends object>(
  found: T | undefined | Promise<T | undefined>,
  challenge: Challenge,
  make: (found: T) => Principal,
): Principal | AuthRefusal | Promise<Principal | AuthRefusal> {
  const toOne = (found: T | undefined) => {
    if (isRefusal(found)) return found;
    if (found === undefined || found === null) return toUnknown(challenge);
    if (typeof found === "object") return make(found);
    throw new TypeError(
      `Cannot authenticate a caller: the function that checks credentials returned a ${typeof found}; return an object with facts, or undefined`,
    );
  };
  return isPromiseLike(found) ? Promise.resolve(found).then(toOne) : toOne(found);
}

export function toUnknown(challenge: Challenge): AuthRefusal {
  return refuseRequest(401, {
    challenge: toError(challenge, "invalid_token"),
    reason: "the credentials are not known",
  });
}

// Compares the scheme case-sensitively first, because nearly all clients spell the scheme as in the standard.
function withoutScheme(value: string, scheme: string): string | undefined {
  const { length } = scheme;
  if (value[length] !== " ") return;
  const isOf = value.startsWith(scheme) || value.slice(0, length).toLowerCase() === scheme.toLowerCase();
  return isOf ? value.slice(length + 1).trim() : undefined;
}

export function readCookies(header: string, name: string): readonly string[] {
  return header.split(";").flatMap((cookie) => {
    const at = cookie.indexOf("=");
    return at > 0 && cookie.slice(0, at).trim() === name ? cookie.slice(at + 1).trim().replace(/^"(.*)"$/, "$1") : [];
  });
}
