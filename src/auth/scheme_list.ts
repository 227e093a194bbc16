/**
 * Combines several authentication schemes into one. The form of a credential decides which scheme checks the
 * credential. If this scheme refuses the credential, no other scheme checks it.
 */
import { quote } from "../core/protocol/errors.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { isPromiseLike } from "../core/protocol/promises.ts";
import {
  type Authentication,
  type AuthRefusal,
  type AuthRequestInfo,
  type AuthRoute,
  type AuthScheme,
  type Challenge,
  EXPIRED,
  isRefusal,
  type PathInfo,
  readChallenges,
  refuseRequest,
  SIGN_IN,
  UNREADY,
} from "../server/engine/auth.ts";
import type { Principal } from "../server/call/context.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { AUTHENTICATION } from "../server/engine/option_names.ts";
import { readPrincipal } from "../server/call/principal.ts";
import { covers } from "../server/call/scopes.ts";
import type { ServerHandle } from "../server/engine/server_handle.ts";
import { readCookies } from "./credentials.ts";
import { checkPrefix } from "./principal.ts";

/**
 * @throws {TypeError} if a scheme does not state the form of its credentials, or if two schemes accept the same form or
 * could return the same ids.
 */
export function combine(list: readonly unknown[]): Authentication {
  return new SchemeList(list.map(readScheme));
}

/**
 * Creates the `scheme` of an authentication, with which it can be used in a list.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function authScheme(scheme: Omit<AuthScheme, "combine">): AuthScheme {
  checkOptions("describe an authentication", scheme, SCHEME);
  if (scheme.prefix !== undefined) checkPrefix(scheme.prefix, scheme.name);
  // The scheme of a request is compared in lower case.
  return { ...scheme, schemes: scheme.schemes?.map((name) => name.toLowerCase()), combine };
}

const SCHEME: KnownOptions<keyof Omit<AuthScheme, "combine">> = {
  names: { name: "text", schemes: "texts", prefix: true },
};

interface SchemeEntry {
  readonly auth: Authentication;
  /** Name of the scheme in errors, such as `apiKey() (auth[1])`. */
  readonly label: string;
  readonly prefix?: string;
  /** Accepted schemes of the `Authorization` header, in lower case. */
  readonly schemes: readonly string[];
  /** Names of the other accepted headers, in lower case. */
  readonly headers: readonly string[];
  readonly cookies: readonly string[];
  readonly query: readonly string[];
}

function readScheme(given: unknown, at: number): SchemeEntry {
  const place = `auth[${at}]`;
  checkOptions("create a server", { [place]: given }, { names: { [place]: AUTHENTICATION } });
  const auth: Authentication | undefined = isObject(given) && typeof given.authenticate === "function"
    ? given as unknown as Authentication // The cast is safe, because the authenticator checks the other fields.
    : undefined;
  const { scheme, credentials: { headers = [], cookies = [], query = [] } = {} } = auth ?? {};
  const { name = "a function or an object of your own", schemes, prefix } = scheme ?? {};
  const label = `${name} (${place})`;
  if (auth && !scheme) {
    throw new TypeError(
      `Cannot create a server: an object of your own (${place}) has no scheme; set scheme: authScheme({ name, schemes, prefix })`,
    );
  }
  if (!auth || !schemes) {
    const remedy =
      'use customAuth(verify, { form: "bearer" }), set schemes in authScheme(), or use another function such as apiKey()';
    throw new TypeError(`Cannot create a server: ${label} does not state the form of its credentials; ${remedy}`);
  }
  const names = headers.map((name) => name.toLowerCase()).filter((name) => name !== "authorization");
  return { auth, label, prefix, schemes, headers: names, cookies, query };
}

interface AcceptedForm {
  readonly kind: "scheme" | "header" | "cookie" | "query";
  /** The name of the scheme, header, cookie or query parameter. */
  readonly name: string;
}

/** A scheme that accepts cookies also accepts the `cookie` header, because this header contains the cookies. */
function listForms({ schemes, headers, cookies, query }: SchemeEntry): readonly AcceptedForm[] {
  const toForms = (kind: AcceptedForm["kind"], names: readonly string[]) => names.map((name) => ({ kind, name }));
  return [
    ...toForms("scheme", schemes),
    ...toForms("header", headers),
    ...toForms("cookie", cookies),
    ...toForms("header", cookies.length ? ["cookie"] : []),
    ...toForms("query", query),
  ];
}

function describeForm({ kind, name }: AcceptedForm): string {
  if (kind === "scheme") return `the scheme ${name} in the Authorization header`;
  if (kind === "header") return `the header ${name}`;
  return kind === "cookie" ? `the cookie ${quote(name)}` : `the query parameter ${quote(name)}`;
}

const OTHER_FORM = 'give one of the schemes another form, such as apiKey({ keys, header: "x-api-key" }) or ' +
  'customAuth(verify, { form: { header: "x-token" } })';

function checkForms(one: SchemeEntry, other: SchemeEntry): void {
  const forms = listForms(other);
  const shared = listForms(one).find((form) =>
    forms.some(({ kind, name }) => kind === form.kind && name === form.name) && !isOfBoth(form, one, other)
  );
  if (!shared) return;
  const both = `${one.label} and ${other.label} both accept ${describeForm(shared)}`;
  throw new TypeError(`Cannot create a server: ${both}; ${OTHER_FORM}`);
}

// Two schemes may share the `cookie` header if each scheme names its cookies, because the names of the cookies are
// compared separately.
function isOfBoth({ kind, name }: AcceptedForm, ...both: readonly SchemeEntry[]): boolean {
  return kind === "header" && name === "cookie" && both.every(({ headers }) => !headers.includes("cookie"));
}

function checkPrefixes(one: SchemeEntry, other: SchemeEntry): void {
  if (one.prefix !== other.prefix) return;
  const both = `${one.label} and ${other.label}`;
  const state = one.prefix === undefined
    ? `${both} both return ids without a fixed prefix`
    : `${both} both return ids that begin with ${quote(`${one.prefix}:`)}`;
  throw new TypeError(
    `Cannot create a server: ${state}, so two callers could have the same id; give one of the schemes another prefix, such as ` +
      `{ prefix: "site" }`,
  );
}

class SchemeList implements Authentication {
  readonly credentials: NonNullable<Authentication["credentials"]>;
  readonly #list: readonly SchemeEntry[];
  readonly #takesAuthorization: boolean;

  constructor(list: readonly SchemeEntry[]) {
    for (const [at, one] of list.entries()) {
      for (const other of list.slice(at + 1)) {
        checkForms(one, other);
        checkPrefixes(one, other);
      }
    }
    this.#list = list;
    this[UNREADY] = list.map(({ auth }) => auth[UNREADY]).find((error) => error);
    this[SIGN_IN] = list.map(({ auth }) => auth[SIGN_IN]).find((facts) => facts);
    this.#takesAuthorization = list.some(({ schemes }) => schemes.length);
    this.credentials = {
      headers: list.flatMap(({ headers }) => headers),
      cookies: list.flatMap(({ cookies }) => cookies),
      query: list.flatMap(({ query }) => query),
    };
    // No caller can use a handler if no scheme has a caller with the handler's scopes. Check this only if every scheme
    // knows all its callers.
    if (list.every(({ auth }) => auth.checkHandler)) this.checkHandler = this.#checkHandler;
    if (list.some(({ auth }) => auth.renew)) {
      this.renew = (principal, server) => this.#ownerOf(principal)?.auth.renew?.(principal, server);
    }
    if (list.some(({ auth }) => auth.start)) this.start = (server) => this.#startAll(server);
  }

  readonly [UNREADY]: Authentication[typeof UNREADY];
  readonly [SIGN_IN]: Authentication[typeof SIGN_IN];
  readonly renew: Authentication["renew"];
  readonly start: Authentication["start"];
  checkHandler: Authentication["checkHandler"];

  readonly authenticate: Authentication["authenticate"] = (request, info, server) => {
    const authorization = this.#takesAuthorization ? request.headers.get("authorization") : null;
    const found = this.#list.filter((each) => isFor(each, request, authorization));
    const isUnknown = authorization !== null && !found.some(({ schemes }) => acceptsScheme(schemes, authorization));
    // `Headers` joins repeated headers with commas, and credentials of these schemes contain no comma.
    if (found.length + Number(isUnknown) > 1 || authorization?.includes(",")) return this.#refuseTwo(info);
    const [one] = found;
    if (!one) return refuseRequest(401, { challenge: this.challenge(info), reason: NOTHING });
    const answer = one.auth.authenticate(request, info, server);
    return isPromiseLike(answer)
      ? Promise.resolve(answer).then((answer) => this.#judge(one, answer, info))
      : this.#judge(one, answer, info);
  };

  #refuseTwo(info: AuthRequestInfo): AuthRefusal {
    const challenge = this.challenge(info).map((challenge) => withError(challenge, "invalid_request"));
    return refuseRequest(400, { challenge, reason: "it has more than one credential" });
  }

  #judge(one: SchemeEntry, answer: unknown, info: AuthRequestInfo): Principal | AuthRefusal {
    if (answer === undefined || answer === null) return this.#refuse(one, refuseRequest(401), info);
    if (isRefusal(answer)) return answer.status === 401 ? this.#refuse(one, answer, info) : answer;
    const principal = readPrincipal(answer, `authenticate() of ${one.label}`);
    const owner = this.#ownerOf(principal);
    if (owner !== one) throw toForeignId(principal, one, owner);
    if (principal.expiresAt === undefined || principal.expiresAt > info.now) return principal;
    const challenge = readChallenges(one.auth, info).map((challenge) => withError(challenge, "invalid_token"));
    return this.#refuse(one, refuseRequest(401, { challenge, reason: EXPIRED }), info);
  }

  #refuse(one: SchemeEntry, refusal: AuthRefusal, info: AuthRequestInfo): AuthRefusal {
    const own = refusal.challenges ?? readChallenges(one.auth, info);
    const challenges = this.#list.flatMap((each) => each === one ? own : readChallenges(each.auth, info));
    return { ...refusal, challenges: sort(challenges) };
  }

  /** If an authenticated caller lacks scopes, returns only the challenges of the scheme of the caller. */
  readonly challenge = (info: PathInfo & { readonly principal?: Principal }): readonly Challenge[] => {
    const owner = info.principal && this.#ownerOf(info.principal);
    const list = owner ? [owner] : this.#list;
    return sort(list.flatMap(({ auth }) => readChallenges(auth, info)));
  };

  readonly routes = (path: string): readonly AuthRoute[] => {
    return this.#list.flatMap(({ auth: { routes = [] } }) => typeof routes === "function" ? routes(path) : routes);
  };

  satisfies(scopes: readonly string[], needed: readonly string[], principal?: Principal): boolean {
    const owner = principal && this.#ownerOf(principal);
    return covers(owner?.auth, { id: "", ...principal, scopes }, needed);
  }

  // If a scheme cannot be started, stop the schemes that were started, because all schemes are started again.
  async #startAll(server: ServerHandle): Promise<() => Promise<void>> {
    const start = async ({ auth, label }: SchemeEntry) => {
      const stop: unknown = await auth.start?.(server);
      if (stop === undefined || typeof stop === "function") return () => stop?.();
      throw new TypeError(
        `Cannot start ${label}: start did not return a function; return a function that stops it, or nothing`,
      );
    };
    const starting = await Promise.allSettled(this.#list.map(start));
    const stops = starting.flatMap((each) => each.status === "fulfilled" ? [each.value] : []);
    const stopAll = async () => throwAll("stop", await Promise.allSettled(stops.map(async (stop) => await stop())));
    try {
      throwAll("start", starting);
    } catch (error) {
      await stopAll().catch(server.report);
      throw error;
    }
    return stopAll;
  }

  rechecks(principal: Principal): boolean {
    return this.#ownerOf(principal)?.auth.rechecks?.(principal) ?? false;
  }

  checkPath(path: string): void {
    for (const { auth } of this.#list) auth.checkPath?.(path);
  }

  /** Throws only if no scheme has a caller with the scopes that a handler requires. */
  #checkHandler(name: string, scopes: readonly string[] | undefined): void {
    const errors = this.#list.flatMap(({ auth }) => {
      try {
        auth.checkHandler?.(name, scopes);
        return [];
      } catch (error) {
        return [error];
      }
    });
    if (errors.length === this.#list.length) throw errors[0];
  }

  // Find the scheme by the id of the principal, because a principal from a store or from a worker thread is a copy.
  #ownerOf({ id }: Principal): SchemeEntry | undefined {
    return this.#list.find(({ prefix }) => prefix !== undefined && id.startsWith(`${prefix}:`)) ??
      this.#list.find(({ prefix }) => prefix === undefined);
  }
}

function throwAll(verb: string, settled: readonly PromiseSettledResult<unknown>[]): void {
  const errors = settled.flatMap((each) => each.status === "rejected" ? [each.reason] : []);
  if (!errors.length) return;
  throw errors.length === 1
    ? errors[0]
    : new AggregateError(errors, `Cannot ${verb} the authentication: several schemes have failed`);
}

const NOTHING = "it has no credentials that the server accepts";

/** Tests whether a request has a credential for a scheme. An empty credential counts too. */
function isFor(
  { schemes, headers, cookies, query }: SchemeEntry,
  request: Request,
  authorization: string | null,
): boolean {
  const { headers: given, url } = request;
  if (authorization !== null && acceptsScheme(schemes, authorization)) return true;
  if (headers.some((name) => given.has(name))) return true;
  if (cookies.length && given.has("cookie")) {
    const cookie = given.get("cookie") ?? "";
    if (cookies.some((name) => readCookies(cookie, name).length)) return true;
  }
  return query.length > 0 && url.includes("?") && query.some((name) => new URL(url).searchParams.has(name));
}

function acceptsScheme(schemes: readonly string[], authorization: string): boolean {
  return schemes.includes(authorization.split(" ", 1)[0].toLowerCase());
}

function toForeignId({ id }: Principal, { label, prefix }: SchemeEntry, owner: SchemeEntry | undefined): TypeError {
  const state = owner?.prefix === undefined
    ? `${label} returned the id ${quote(id)}; return ids that begin with ${quote(`${prefix}:`)}`
    : `${label} returned the id ${quote(id)}, which could be an id of ${owner.label}; return ids with another prefix`;
  return new TypeError(`Cannot authenticate a caller: ${state}`);
}

function withError({ scheme, params }: Challenge, error: string): Challenge {
  return { scheme, params: { ...params, error } };
}

// Puts the challenges with the scheme Bearer first, because some clients read only the first challenge, and support
// only Bearer.
function sort(challenges: readonly Challenge[]): readonly Challenge[] {
  const isBearer = ({ scheme }: Challenge) => scheme.toLowerCase() === "bearer";
  return [...challenges.filter(isBearer), ...challenges.filter((each) => !isBearer(each))];
}
