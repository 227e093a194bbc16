/**
 * Authenticates callers by name and password, with HTTP Basic authentication.
 */
import { quote } from "../core/protocol/errors.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { type Authentication, type AuthRequestInfo, type Challenge, isRefusal } from "../server/engine/auth.ts";
import type { Principal } from "../server/call/context.ts";
import { checkOptions, isPlain, type KnownOptions } from "../core/known_options.ts";
import { readCredential, toCaller, toUnknown } from "./credentials.ts";
import { isPromiseLike } from "../core/protocol/promises.ts";
import { FailureBudget, toGuesser } from "./failure_budget.ts";
import { type CallerInfo, checkFor, checkSecrets, isUnset, readOwn, toPrincipal, toUnready } from "./principal.ts";
import { authScheme } from "./scheme_list.ts";
import { digest, KnownSecrets } from "./secrets.ts";
import { SharedChecks } from "./shared_checks.ts";
import { TokenCache } from "./token_cache.ts";

/** Facts about a user. */
export interface BasicUserInfo extends CallerInfo {
  /**
   * Id of the user, unique among all users. Defaults to the name that the client has sent. Many databases treat `ada`,
   * `Ada`, and `ada` followed by a space as the same name, but each of these names would be a different caller. A function
   * that finds users in such a database must return an id.
   */
  readonly id?: string;
}

/** A user with a password. */
export interface BasicUser extends BasicUserInfo {
  /**
   * Password of the user. If it is empty, or `undefined` from an unset environment variable, `server.ready()` rejects, and
   * the server rejects all requests with HTTP 503.
   */
  readonly password: string | undefined;
}

/**
 * Verifies the name and the password of a user, for example against a database of password hashes. Returns a plain
 * object with facts about the user. The object may be empty. Returns `undefined` if the name or the password is wrong.
 *
 * Requests with the same name, password, address and path share a call of the function that is in progress, and the
 * result of a call that has accepted them within the last 5 seconds.
 */
export type VerifyUser = (
  name: string,
  password: string,
  info: AuthRequestInfo,
) => BasicUserInfo | undefined | Promise<BasicUserInfo | undefined>;

/** Options of {@linkcode basicAuth}. Only `users` is required. */
export interface BasicAuthOptions {
  /**
   * An object that maps the name of each user to the user's password or to a {@linkcode BasicUser}, or a function that
   * verifies a name and a password. A user for whom the object contains only a password has no scopes.
   *
   * If a password is `undefined` or empty, for example because an environment variable is not set, `server.ready()`
   * rejects, and the server rejects all requests with HTTP 503.
   */
  readonly users: Readonly<Record<string, string | undefined | BasicUser>> | VerifyUser;
  /** The `realm` parameter of the challenge. Some browsers show the realm in the password dialog. Defaults to `mcp`. */
  readonly realm?: string;
}

const OPTIONS: KnownOptions<keyof BasicAuthOptions> = {
  names: { users: true, realm: true },
  hints: { passwords: "users", verify: "users" },
};

/**
 * Authenticates callers by name and password. The id of a principal is `basic:` followed by the user's name, or by the
 * `id` of the user. After ten wrong passwords for a name from one address in one minute, further requests with this name
 * from this address wait. After 60 wrong passwords from one address, requests with any name from this address wait,
 * except with names that were accepted from this address within the last hour. The users' requests from other addresses
 * do not wait.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { basicAuth } from "@x/mcp/auth";
 *
 * const auth = basicAuth({ users: { ada: "correct horse battery staple" } });
 *
 * export default createServer({ name: "notes", version: "1.0.0", auth });
 * ```
 *
 * @throws {TypeError} if a name is empty or contains a colon, if a password is empty, or if an option is unknown.
 */
export function basicAuth(options: BasicAuthOptions): Authentication {
  checkOptions("use basicAuth()", options, OPTIONS);
  const { users, realm = "mcp" } = options;
  checkSecrets(users, 'Cannot use the passwords: users must be a function or an object such as { ada: "…" }');
  const challenge: Challenge = { scheme: "Basic", params: { realm, charset: "UTF-8" } };
  const problems: Error[] = [];
  const secrets = typeof users === "function" ? undefined : toSecrets(users, problems);
  const verify: Verify = typeof users === "function"
    ? toVerifier(users, challenge)
    : (pair) => secrets?.find(pair) ?? toUnknown(challenge);
  const guesses = new Guesses(secrets === undefined);
  const auth: Authentication = {
    authenticate(request, info) {
      const { credential, refusal } = readCredential(request, PLACES, challenge);
      if (refusal) return refusal;
      const pair = decode(credential);
      return guesses.run({ pair, url: request.url }, info, (info) => verify(pair, info));
    },
    start: () => () => guesses.clear(),
    credentials: { headers: [PLACES.header] },
    challenge,
    checkHandler: secrets && checkFor(secrets.values),
    scheme: authScheme({ name: "basicAuth()", schemes: ["basic"], prefix: PREFIX }),
    readPrincipal: readOwn(PREFIX),
  };
  return problems.length ? toUnready(auth, problems[0]) : auth;
}

const PLACES = { header: "authorization", scheme: "Basic" };
const PREFIX = "basic";
/** Time between two checks of passwords from one address after too many failures, in milliseconds. */
const PAUSE_MS = 1000;
/** Time for which the server remembers that a name was accepted from an address, in milliseconds. */
const SEEN_MS = 3_600_000;
/** Minimum time between two updates of this time, because an update takes longer than a lookup. */
const RENEW_MS = 60_000;
/**
 * Maximum number and total length of the remembered names. Only a client with valid passwords for other names can make
 * the server forget a name, whose user then waits if somebody guesses passwords at the same address.
 */
const SEEN_LIMITS = { entries: 10_000, characters: 1024 * 1024 };

/**
 * Time for which the server accepts a name and a password again without another check, in milliseconds. Many clients send
 * several requests per second, and a check of a password hash takes long on purpose.
 */
const ACCEPTED_MS = 5000;
const ACCEPTED_LIMITS = { entries: 10_000, characters: Infinity };

interface Presented {
  readonly pair: string;
  readonly url: string;
}

/** Counts wrong passwords, and makes clients at their addresses wait. */
class Guesses {
  /** Whether the same name and password are checked once for several requests, because a function verifies them. */
  readonly #isShared: boolean;
  readonly #running = new SharedChecks<Awaited<Authenticated>>();
  /**
   * The principals of accepted names and passwords, by a digest that is different in each process. If the cache is full,
   * a client with many valid passwords makes the server check other passwords again.
   */
  readonly #accepted = new TokenCache<Principal>(ACCEPTED_LIMITS);
  readonly #salt = String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)));
  readonly #ofName = new FailureBudget({ limit: "failuresPerUser", pauseMs: PAUSE_MS });
  /**
   * Counts the wrong passwords for all names together. The budget per name limits neither a password that is tried for
   * many names, nor spellings that only the users' database treats as one name.
   */
  readonly #ofPeer = new FailureBudget({ limit: "failuresPerPeer", pauseMs: PAUSE_MS });
  /**
   * Times at which names were last accepted from addresses. Requests with these names do not wait for guesses of other
   * names, because otherwise anyone could delay all users behind the same proxy or in the same network. The key contains
   * no password, because a client could then test passwords without waiting.
   */
  readonly #seen = new TokenCache<number>(SEEN_LIMITS);

  constructor(isShared: boolean) {
    this.#isShared = isShared;
  }

  /** Checks a name and a password, immediately or after a delay. */
  run(presented: Presented, info: AuthRequestInfo, verify: (info: AuthRequestInfo) => Authenticated): Authenticated {
    const { pair } = presented;
    const guesser = toGuesser(info);
    const id = this.#isShared && !info.isRecheck ? this.#toId(presented, info) : undefined;
    const check = () => this.#check(id, info, verify);
    if (guesser === undefined) return check();
    const name = pair.slice(0, Math.max(0, pair.indexOf(":")));
    const place = `${guesser} ${name}`;
    const { now } = info;
    const seen = this.#seen.get(place, now);
    const remember = (found: Awaited<Authenticated>) => {
      if (found && !isRefusal(found)) this.#seen.set(place, { value: now, until: now + SEEN_MS + RENEW_MS }, now);
      return found;
    };
    const note = () => {
      const found = check();
      if (seen !== undefined && now - seen < RENEW_MS) return found;
      return isPromiseLike(found) ? Promise.resolve(found).then(remember) : remember(found);
    };
    const peer = seen === undefined ? guesser : undefined;
    const key = () => toKey(guesser, name);
    // A request that is not checked itself counts towards no budget. Do not join another check while a budget is
    // full. Otherwise a client could test the passwords of other requests without waiting.
    if (id !== undefined && !this.#ofName.isFull(key, info) && !this.#ofPeer.isFull(() => peer, info)) {
      const found = this.#find(id, info);
      if (found) return found;
    }
    // Check the budget of the name first. Otherwise, guesses for one name would delay all names from the same address.
    return this.#ofName.run(key, info, () => this.#ofPeer.run(() => peer, info, note));
  }

  #check(
    id: string | undefined,
    info: AuthRequestInfo,
    verify: (info: AuthRequestInfo) => Authenticated,
  ): Authenticated {
    if (id === undefined) return verify(info);
    const accept = (found: Awaited<Authenticated>) => {
      const { now } = info;
      if (found && !isRefusal(found)) this.#accepted.set(id, { value: found, until: now + ACCEPTED_MS }, now);
      return found;
    };
    // Another request may have presented the same while this request waited.
    const known = this.#find(id, info);
    if (known) return known;
    const found = this.#running.start(id, info, verify);
    return isPromiseLike(found) ? found.then(accept) : accept(found);
  }

  #find(id: string, info: AuthRequestInfo): Principal | Promise<Awaited<Authenticated>> | undefined {
    return this.#accepted.get(id, info.now) ?? this.#running.join(id, info);
  }

  /** Returns a digest of a name and a password, and of the facts about a request that the users function receives. */
  #toId({ pair, url }: Presented, { transport, peer }: AuthRequestInfo): string {
    return digest([this.#salt, transport, peer, url.split("?")[0], pair].join("\n"));
  }

  clear(): void {
    this.#ofName.clear();
    this.#ofPeer.clear();
    this.#seen.clear();
    this.#accepted.clear();
    this.#running.clear();
  }
}

type Authenticated = ReturnType<Authentication["authenticate"]>;

/**
 * Returns the key under which failures are counted. Common spellings of a name have the same key, because a database may
 * treat them as the same name, and a client could otherwise guess more passwords of a user.
 */
function toKey(guesser: string, bytes: string): string {
  // The conversion to upper case converts "ß" to "SS".
  const name = (toText(bytes) ?? bytes).normalize("NFKD").replace(/[\p{M}\p{C}\p{Z}]/gu, "").toUpperCase();
  return `${guesser} ${digest(toBytes(name))}`;
}

type Verify = (pair: string, info: AuthRequestInfo) => Authenticated;

// Adds an error to `problems` for each password that is not set.
function toSecrets(
  users: Readonly<Record<string, string | undefined | BasicUser>>,
  problems: Error[],
): KnownSecrets<Principal> {
  const known = Object.entries(users).map(([name, user]) => {
    const { password, ...facts }: Partial<BasicUser> = typeof user === "object" && user ? user : { password: user };
    const state = `Cannot use the password of ${quote(name)}`;
    if (!name || /[:\p{Cc}]/u.test(name)) {
      throw new TypeError(`${state}: the name is empty, or contains a colon or a control character`);
    }
    if (typeof password === "string" && password) {
      return { secret: toBytes(`${name}:${password}`), value: toUser(name, facts) };
    }
    const problem = new TypeError(
      `${state}: the password is not a non-empty string; check that its environment variable is set`,
    );
    if (!isUnset(password)) throw problem;
    problems.push(problem);
    // A pair with a name cannot equal this text.
    return { secret: toBytes(`:${name}`), value: toUser(name, facts) };
  });
  return new KnownSecrets(known, "Cannot use the passwords");
}

function toVerifier(verify: VerifyUser, challenge: Challenge): Verify {
  return (pair, info) => {
    const at = pair.indexOf(":");
    const [name, password] = [toText(pair.slice(0, at)), toText(pair.slice(at + 1))];
    if (at < 1 || name === undefined || password === undefined) return toUnknown(challenge);
    return toCaller(verify(name, password, info), challenge, (found) => toFound(name, found));
  };
}

// Reject lists and class instances. All facts are optional, so any object would otherwise authenticate the user,
// including an empty list of database rows.
function toFound(name: string, found: object): Principal {
  if (isObject(found) && isPlain(found)) return toUser(name, found);
  throw new TypeError(
    `Cannot authenticate ${quote(name)}: the users function returned a list or a class instance; ` +
      "return a plain object with facts, or undefined",
  );
}

function toUser(name: string, info: BasicUserInfo): Principal {
  const { id = name } = info;
  if (typeof id === "string" && id) return toPrincipal(PREFIX, id, info);
  throw new TypeError(
    `Cannot authenticate ${quote(name)}: the id of the user is not a non-empty string; set id to a string, or omit id`,
  );
}

/**
 * Decodes Base64 to text with one character per byte. Returns an empty text for invalid Base64. The empty text matches
 * no user, because it lacks the colon between name and password.
 */
function decode(credential: string): string {
  try {
    return atob(credential);
  } catch {
    return "";
  }
}

function toBytes(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

function toText(bytes: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes, (each) => each.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
