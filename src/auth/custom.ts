/**
 * Authenticates callers with a custom function.
 */
import { isToken } from "../core/kit/http_token.ts";
import { isPromiseLike } from "../core/protocol/promises.ts";
import {
  type Authenticate,
  type Authentication,
  type AuthRefusal,
  type Challenge,
  type Credentials,
  isRefusal,
} from "../server/engine/auth.ts";
import { shareAttached } from "../server/engine/attached.ts";
import type { Principal } from "../server/call/context.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { readPrincipal } from "../server/call/principal.ts";
import { checkPrefix, readOwn } from "./principal.ts";
import { authScheme } from "./scheme_list.ts";

/** Options of {@linkcode customAuth}. */
export interface CustomAuthOptions extends Credentials {
  /**
   * Form of the credentials: the scheme in the `Authorization` header, or the name of another header. If `auth` is a
   * list, `form` is required, and the function runs only for requests with a credential of this form, or with a
   * credential in one of `headers`, `cookies` and `query`.
   */
  readonly form?: "bearer" | "dpop" | "basic" | { readonly header: string };
  /**
   * Text before the colon in the ids of principals. If `auth` is a list, at most one `customAuth` scheme may omit the
   * prefix, because two schemes without a prefix could return the same id. By default, ids have no prefix.
   */
  readonly prefix?: string;
  /**
   * One or more challenges for callers without valid credentials, or a function that returns the challenges for one
   * concrete path. By default, the challenge has the scheme that `form` names, or `Bearer` without `form`.
   */
  readonly challenge?: Authentication["challenge"];
  /**
   * Starts the authentication on a server, before the first request is authenticated. The function then receives the
   * server as its third argument. Can return a function that is called when the server closes.
   */
  readonly start?: Authentication["start"];
}

const OPTIONS: KnownOptions<keyof CustomAuthOptions> = {
  names: {
    form: {
      names: { header: { findProblem: (name) => isHeader(name) ? undefined : HEADER } },
      hasOtherForms: true,
    },
    prefix: true,
    challenge: true,
    start: "function",
    headers: "texts",
    cookies: "texts",
    query: "texts",
  },
};

const HEADER =
  'is not a valid header name, or is Authorization; for the Authorization header, write "bearer", "dpop" or "basic"';

function isHeader(name: unknown): boolean {
  return isToken(name) && String(name).toLowerCase() !== "authorization";
}

const CHALLENGES: Readonly<Record<"bearer" | "dpop" | "basic", Challenge>> = {
  bearer: { scheme: "Bearer" },
  dpop: { scheme: "DPoP" },
  basic: { scheme: "Basic", params: { realm: "mcp", charset: "UTF-8" } },
};

/**
 * Authenticates callers with a custom function. The options name the headers, cookies and query parameters that contain
 * credentials. The server hides these values from handlers. The function must return ids that no other authentication
 * scheme returns.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { customAuth } from "@x/mcp/auth";
 *
 * const sessions = new Map([["8c1f0a", "ada"]]);
 * const auth = customAuth((request) => {
 *   const user = sessions.get(/(?:^|; )sid=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1] ?? "");
 *   return user === undefined ? undefined : { id: `site:${user}` };
 * }, { cookies: ["sid"] });
 *
 * export default createServer({ name: "notes", version: "1.0.0", auth });
 * ```
 *
 * @throws {TypeError} if an option is unknown. Ignoring a misspelled option could reveal the credentials to handlers.
 */
export function customAuth(verify: Authenticate, options: CustomAuthOptions = {}): Authentication {
  checkOptions("use customAuth()", options, OPTIONS);
  if (typeof verify !== "function") {
    throw new TypeError(
      "Cannot use customAuth(): the first argument is not a function; pass a function that authenticates a request",
    );
  }
  const { form, prefix, headers = [], cookies, query } = options;
  if (prefix !== undefined) checkPrefix(prefix, "customAuth()");
  const { names, schemes, challenge } = readForm(form);
  return {
    authenticate: prefix === undefined ? verify : withPrefix(verify, prefix),
    credentials: { headers: [...names, ...headers], cookies, query },
    challenge: options.challenge ?? challenge,
    start: options.start,
    scheme: authScheme({ name: "customAuth()", schemes, prefix }),
    ...prefix !== undefined && { readPrincipal: readOwn(prefix) },
  };
}

interface Form {
  /** Names of the headers with credentials, without `Authorization`. */
  readonly names: readonly string[];
  readonly schemes?: readonly string[];
  readonly challenge?: Challenge;
}

function readForm(form: CustomAuthOptions["form"]): Form {
  if (form === undefined) return { names: [] };
  if (typeof form === "object" && form && isHeader(form.header)) {
    return { names: [form.header], schemes: [], challenge: { scheme: "ApiKey" } };
  }
  if (typeof form === "string" && Object.hasOwn(CHALLENGES, form)) {
    return { names: [], schemes: [form], challenge: CHALLENGES[form] };
  }
  const forms = 'write "bearer", "dpop", "basic" or { header: "x-token" }';
  throw new TypeError(`Cannot use customAuth(): the value of form is not valid; ${forms}`);
}

function withPrefix(verify: Authenticate, prefix: string): Authenticate {
  const read = (found: Principal | AuthRefusal | undefined) => {
    if (found === undefined || found === null || isRefusal(found)) return found;
    const principal = readPrincipal(found, "customAuth()");
    const prefixed = readPrincipal({ ...principal, id: `${prefix}:${principal.id}` }, "customAuth()");
    shareAttached(principal, prefixed);
    return prefixed;
  };
  return (request, info, server) => {
    const found = verify(request, info, server);
    return isPromiseLike(found) ? Promise.resolve(found).then(read) : read(found);
  };
}
