/**
 * Authenticates callers by API keys.
 */
import { quote } from "../core/protocol/errors.ts";
import type { Authenticate, Authentication, AuthRequestInfo, Challenge } from "../server/engine/auth.ts";
import type { Principal } from "../server/call/context.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { type Places, readCredential, toCaller, toUnknown } from "./credentials.ts";
import {
  type CallerInfo,
  checkFor,
  checkPrefix,
  checkSecrets,
  isUnset,
  readOwn,
  toPrincipal,
  toUnready,
} from "./principal.ts";
import { authScheme } from "./scheme_list.ts";
import { KnownSecrets } from "./secrets.ts";

/** A caller with an API key. */
export interface ApiKeyCaller extends CallerInfo {
  /**
   * The caller's key, or a list of keys, such as the old key and the new key during a rotation. A key has 16 or more
   * visible ASCII characters and contains no comma. `undefined`, as from an unset environment variable, is an error.
   */
  readonly key: string | undefined | readonly string[];
}

/**
 * Finds the owner of an API key, for example in a database that stores hashes of the keys. Returns `undefined` for an
 * unknown key.
 */
export type FindApiKey = (
  key: string,
  info: AuthRequestInfo,
) => ApiKeyOwner | undefined | Promise<ApiKeyOwner | undefined>;

/** The caller to whom an API key was issued. */
export interface ApiKeyOwner extends CallerInfo {
  /** Id of the caller, unique among all callers with an API key. */
  readonly id: string;
}

/** Options of {@linkcode apiKey}. Only `keys` is required. */
export interface ApiKeyOptions {
  /**
   * An object that maps the id of each caller to the caller's key or to an {@linkcode ApiKeyCaller}, or a function that
   * finds the owner of a key. A caller for whom the object contains only a key has no scopes.
   *
   * If a key is `undefined` or empty, for example because an environment variable is not set, `server.ready()` rejects,
   * and the server rejects all requests with HTTP 503.
   */
  readonly keys: Readonly<Record<string, string | undefined | ApiKeyCaller>> | FindApiKey;
  /**
   * Header that contains the key. Defaults to `Authorization`, where the key follows `Bearer`. The value of any other
   * header is the key without a prefix.
   */
  readonly header?: string;
  /** Cookie that may contain the key instead of the header. By default, no cookie is read. */
  readonly cookie?: string;
  /**
   * Query parameter that may contain the key instead of the header. Set this option only for clients that cannot set
   * headers, because URLs end up in logs. By default, no query parameter is read.
   */
  readonly query?: string;
  /** The `realm` parameter of the challenge. By default, the challenge has no `realm`. */
  readonly realm?: string;
  /**
   * Text before the colon in the ids of principals. If `auth` is a list with several `apiKey()` schemes, each scheme
   * needs a different prefix. Defaults to `apikey`.
   */
  readonly prefix?: string;
}

const OPTIONS: KnownOptions<keyof ApiKeyOptions> = {
  names: { keys: true, header: true, cookie: true, query: true, realm: true, prefix: true },
};

/**
 * Authenticates callers by API keys. The id of a principal is `apikey:` followed by the caller's id. The option
 * `prefix` replaces `apikey`.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { apiKey } from "@x/mcp/auth";
 *
 * const auth = apiKey({ keys: { ada: "ada-2f6c1e0b9d4a7853", bot: { key: "bot-8d3f5a7c6e1b9042", scopes: ["notes:read"] } } });
 *
 * export default createServer({ name: "notes", version: "1.0.0", auth });
 * ```
 *
 * @throws {TypeError} if a key is invalid or too short, if a key occurs twice, or if an option is unknown.
 */
export function apiKey(options: ApiKeyOptions): Authentication {
  checkOptions("use apiKey()", options, OPTIONS);
  const { keys, header = "authorization", cookie, query, realm, prefix = PREFIX } = options;
  checkSecrets(keys, 'Cannot use the API keys: keys must be a function or an object such as { ada: "…" }');
  checkPrefix(prefix, "apiKey()");
  const isBearer = header.toLowerCase() === "authorization";
  // Use the letter case that most clients send, because Deno finds a header faster if the letter case matches.
  const places: Places = {
    header: isBearer ? "Authorization" : header,
    scheme: isBearer ? "Bearer" : undefined,
    cookie,
    query,
  };
  const challenge: Challenge = { scheme: isBearer ? "Bearer" : "ApiKey", params: realm === undefined ? {} : { realm } };
  const problems: Error[] = [];
  const secrets = typeof keys === "function" ? keys : toSecrets(keys, prefix, problems);
  const isTable = secrets instanceof KnownSecrets;
  const auth: Authentication = {
    authenticate: isTable ? toLookup(secrets, places, challenge) : toFinder(secrets, { places, challenge, prefix }),
    checkHandler: isTable ? checkFor(secrets.values) : undefined,
    credentials: {
      headers: [header],
      cookies: cookie === undefined ? [] : [cookie],
      query: query === undefined ? [] : [query],
    },
    challenge,
    scheme: authScheme({ name: "apiKey()", schemes: isBearer ? ["bearer"] : [], prefix }),
    readPrincipal: readOwn(prefix),
  };
  return problems.length ? toUnready(auth, problems[0]) : auth;
}

interface Finding {
  readonly places: Places;
  readonly challenge: Challenge;
  readonly prefix: string;
}

function toFinder(find: FindApiKey, { places, challenge, prefix }: Finding): Authenticate {
  return (request, info) => {
    const { credential, refusal } = readCredential(request, places, challenge);
    return refusal ?? toCaller(find(credential, info), challenge, (owner) => toOwner(owner, prefix));
  };
}

function toLookup(secrets: KnownSecrets<Principal>, places: Places, challenge: Challenge): Authenticate {
  return (request) => {
    const { credential, refusal } = readCredential(request, places, challenge);
    return refusal ?? secrets.find(credential) ?? toUnknown(challenge);
  };
}

function toOwner(owner: ApiKeyOwner, prefix: string): Principal {
  if (typeof owner.id === "string" && owner.id) return toPrincipal(prefix, owner.id, owner);
  throw new TypeError(
    "Cannot authenticate a caller: the id of the owner that the keys function returned is not a non-empty string; return an object such as { id }",
  );
}

const PREFIX = "apikey";
const MIN_LENGTH = 16;

// Adds an error to `problems` for each key that is not set.
function toSecrets(
  keys: Readonly<Record<string, string | undefined | ApiKeyCaller>>,
  prefix: string,
  problems: Error[],
): KnownSecrets<Principal> {
  const known = Object.entries(keys).flatMap(([id, caller], index) => {
    const { key, ...facts } = typeof caller === "object" && caller ? caller : { key: caller };
    const value = toPrincipal(prefix, id, facts);
    return [key].flat().map((secret, at) => {
      if (!isUnset(secret)) return { secret: readKey(secret, id), value };
      problems.push(toKeyError(id));
      // A key without spaces cannot equal this text.
      return { secret: `unset ${index} ${at}`, value };
    });
  });
  return new KnownSecrets(known, "Cannot use the API keys");
}

// Error messages must not contain the key, because the messages may be logged.
function readKey(key: unknown, id: string): string {
  const state = `Cannot use the API key of ${quote(id)}`;
  if (typeof key !== "string") throw toKeyError(id);
  if (key.length >= MIN_LENGTH && /^[!-+\--~]+$/.test(key)) return key;
  const form = `${MIN_LENGTH} or more visible ASCII characters without commas`;
  throw new TypeError(`${state}: it is not ${form}; create a key with openssl rand -hex 16`);
}

function toKeyError(id: string): TypeError {
  const state = `Cannot use the API key of ${quote(id)}`;
  return new TypeError(`${state}: it is not a non-empty string; check that its environment variable is set`);
}
