/**
 * Authenticates callers by name and password, with HTTP Basic authentication.
 *
 * @module
 */
import { quote } from "../protocol/errors.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { type Authentication, type AuthFacts, type Challenge, READ_PRINCIPAL, SCHEME } from "../core/auth.ts";
import type { Principal } from "../core/call/context.ts";
import { CHECK_HANDLER } from "../core/call/internals.ts";
import { checkOptions, isPlain, type KnownOptions } from "../core/call/known_options.ts";
import { readCredential, toCaller, toUnknown } from "./credentials.ts";
import { type CallerFacts, checkFor, checkSecrets, readOwn, toPrincipal } from "./principal.ts";
import { toScheme } from "./scheme_list.ts";
import { KnownSecrets } from "./secrets.ts";

/** A user with a password. */
export interface BasicUser extends CallerFacts {
  /** Password of the user. An empty password, or `undefined` from an unset environment variable, is an error. */
  readonly password: string | undefined;
}

/**
 * Verifies the name and the password of a user, for example against a database of password hashes. Returns a plain
 * object with facts about the user. The object may be empty. Returns `undefined` if the name or the password is wrong.
 */
export type VerifyUser = (
  name: string,
  password: string,
  facts: AuthFacts,
) => CallerFacts | undefined | Promise<CallerFacts | undefined>;

/** Options of {@linkcode basicAuth}. Only `users` is required. */
export interface BasicAuthOptions {
  /**
   * An object that maps the name of each user to the user's password or to a {@linkcode BasicUser}, or a function that
   * verifies a name and a password. A user for whom the object contains only a password has no scopes.
   *
   * `basicAuth` throws if a password is `undefined`, for example because an environment variable is not set.
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
 * Authenticates callers by name and password. The id of a principal is `basic:` followed by the user's name.
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
  const secrets = typeof users === "function" ? undefined : toSecrets(users);
  const verify: Verify = typeof users === "function"
    ? toVerifier(users, challenge)
    : (pair) => secrets?.find(pair) ?? toUnknown(challenge);
  return {
    authenticate(request, facts) {
      const { credential, refusal } = readCredential(request, PLACES, challenge);
      return refusal ?? verify(decode(credential), facts);
    },
    credentials: { headers: [PLACES.header] },
    challenge,
    [CHECK_HANDLER]: secrets && checkFor(secrets.values),
    [SCHEME]: toScheme({ name: "basicAuth()", schemes: ["basic"], prefix: PREFIX }),
    [READ_PRINCIPAL]: readOwn(PREFIX),
  };
}

const PLACES = { header: "authorization", scheme: "Basic" };
const PREFIX = "basic";

type Verify = (pair: string, facts: AuthFacts) => ReturnType<Authentication["authenticate"]>;

function toSecrets(users: Readonly<Record<string, string | undefined | BasicUser>>): KnownSecrets<Principal> {
  const known = Object.entries(users).map(([name, user]) => {
    const { password, ...facts } = typeof user === "object" && user ? user : { password: user };
    const state = `Cannot use the password of ${quote(name)}`;
    if (!name || /[:\p{Cc}]/u.test(name)) {
      throw new TypeError(`${state}: the name is empty, or contains a colon or a control character`);
    }
    if (typeof password !== "string" || !password) {
      throw new TypeError(
        `${state}: the password is not a non-empty string; check that its environment variable is set`,
      );
    }
    return { secret: toBytes(`${name}:${password}`), value: toPrincipal(PREFIX, name, facts) };
  });
  return new KnownSecrets(known, "Cannot use the passwords");
}

function toVerifier(verify: VerifyUser, challenge: Challenge): Verify {
  return (pair, facts) => {
    const at = pair.indexOf(":");
    const [name, password] = [toText(pair.slice(0, at)), toText(pair.slice(at + 1))];
    if (at < 1 || name === undefined || password === undefined) return toUnknown(challenge);
    return toCaller(verify(name, password, facts), challenge, (found) => toUser(name, found));
  };
}

// Reject lists and class instances. All facts are optional, so any object would otherwise authenticate the user,
// including an empty list of database rows.
function toUser(name: string, found: object): Principal {
  if (isObject(found) && isPlain(found)) return toPrincipal(PREFIX, name, found);
  throw new TypeError(
    `Cannot authenticate ${quote(name)}: the users function returned a list or a class instance; ` +
      "return a plain object with facts, or undefined",
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
  return String.fromCharCode(...new TextEncoder().encode(text));
}

function toText(bytes: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes, (each) => each.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
