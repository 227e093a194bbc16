/**
 * Adds credentials to requests, by the security schemes of a document.
 */
import { toBase64 } from "../../core/kit/base64.ts";
import { isToken } from "../../core/kit/http_token.ts";
import { isObject } from "../../core/kit/json.ts";
import { type Context, ToolError } from "../../library.ts";
import { type ApiDocument, PartError, resolveLoosely, toNode } from "./document.ts";
import { findCall } from "../../server/call/find_call.ts";
import type { ApiOperation } from "./api_operation.ts";

/** A user and a password, for the HTTP scheme `basic`. */
export interface BasicCredential {
  /** Name of the user. */
  readonly username: string;
  /** Password of the user. */
  readonly password: string;
}

/** Returns the credential of a security scheme for a call: a token, a key, or a user and a password. */
export type FindCredential = (
  ctx: Context,
  operation: ApiOperation,
) => string | BasicCredential | undefined | Promise<string | BasicCredential | undefined>;

/** The credentials by name of the security scheme. `false` means that the API needs no credential from this server. */
export type ApiCredentials = Readonly<Record<string, FindCredential | false>>;

/** A part of a request that is written last. */
export interface Target {
  /** Headers by their name in lower case. */
  readonly headers: Map<string, string>;
  /** Parameters of the query, encoded. */
  readonly query: string[];
  /** Cookies, as pairs of name and value. */
  readonly cookies: string[];
}

export interface Scheme {
  readonly name: string;
  /** The header, parameter or cookie with the credential. Arguments cannot set it. */
  readonly place: "header" | "query" | "cookie";
  readonly key: string;
  readonly find: FindCredential;
  /** Returns the texts that must not appear in results. */
  readonly write: (credential: string | BasicCredential, target: Target) => readonly string[];
}

export interface Security {
  /** The alternatives in the order in which a call tries them. An alternative without schemes needs no credentials. */
  readonly alternatives: readonly (readonly Scheme[])[];
}

/**
 * Reads the alternatives of an operation's `security` for which `auth` has all schemes.
 *
 * @throws {PartError} if the alternatives cannot be read, or `auth` has none of them. The operation must not be called
 * without credentials then.
 */
export function readSecurity(document: ApiDocument, given: unknown, auth: ApiCredentials): Security {
  const list = given ?? document.root.security ?? [];
  if (!Array.isArray(list) || !list.every(isObject)) throw new PartError("its security is not a list of objects");
  const all = list.map((each) => Object.keys(each));
  const alternatives: (readonly Scheme[])[] = [];
  const refusals: string[] = [];
  for (const names of all.filter(({ length }) => length)) {
    const schemes = names.map((name) => readScheme(document, name, auth));
    const problem = schemes.find((scheme) => typeof scheme === "string");
    if (problem === undefined) alternatives.push(schemes.filter((scheme) => typeof scheme === "object"));
    else refusals.push(problem);
  }
  // A call without credentials is the last alternative, wherever the document lists it.
  if (all.some(({ length }) => !length)) alternatives.push([]);
  if (refusals.length && !alternatives.length) throw new PartError(refusals[0]);
  return { alternatives };
}

/** Returns a scheme, `undefined` if it needs no credential, or the reason why it cannot be used. */
function readScheme(document: ApiDocument, name: string, auth: ApiCredentials): Scheme | string | undefined {
  const find = Object.hasOwn(auth, name) ? auth[name] : undefined;
  const writing = readWriting(document, name);
  if (find === false) return;
  if (typeof writing === "string") return writing;
  if (find === undefined) return `it needs credentials: add ${JSON.stringify(name)} to auth`;
  return { name, find, ...writing };
}

/** Returns how the credential of a scheme is written, or the reason why it cannot be written. */
function readWriting(document: ApiDocument, name: string): Pick<Scheme, "place" | "key" | "write"> | string {
  const found = toNode(toNode(document.root.components).securitySchemes);
  const { type, in: place, name: key, scheme } = resolveLoosely(
    document,
    Object.hasOwn(found, name) ? found[name] : undefined,
  );
  if (type === "apiKey" && typeof key === "string" && key) {
    if (place === "query") return { place, key, write: (value, target) => writeQuery(key, value, target) };
    if (place === "header" && isToken(key)) {
      return { place, key, write: (value, { headers }) => writeHeader(headers, key, toText(value)) };
    }
    if (place === "cookie" && isToken(key)) {
      return { place, key, write: (value, { cookies }) => writeCookie(key, value, cookies) };
    }
  }
  const kind = type === "http" ? String(scheme).toLowerCase() : type;
  if (kind === "basic") return { place: "header", key: "authorization", write: writeBasic };
  if (kind === "bearer" || kind === "oauth2" || kind === "openIdConnect") {
    return { place: "header", key: "authorization", write: writeBearer };
  }
  const shown = type === undefined ? "is not defined" : `has the type ${kind}, which is not supported`;
  return `its security scheme ${JSON.stringify(name)} ${shown}`;
}

function toText(credential: string | BasicCredential): string {
  return typeof credential === "string" ? credential : `${credential.username}:${credential.password}`;
}

function writeHeader(
  headers: Map<string, string>,
  key: string,
  text: string,
  ...secrets: readonly string[]
): readonly string[] {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
    throw new ToolError(`Cannot send the request: the credential for the header ${key} contains a line break`);
  }
  headers.set(key.toLowerCase(), text);
  return [text, ...secrets];
}

function writeQuery(key: string, credential: string | BasicCredential, { query }: Target): readonly string[] {
  const text = toText(credential);
  const encoded = encodeURIComponent(text);
  const name = encodeURIComponent(key);
  // The path of the document can contain a query.
  const others = query.flatMap((pairs) => pairs.split("&")).filter((pair) => !isNamed(pair, key));
  query.splice(0, Infinity, ...others, `${name}=${encoded}`);
  return [text, encoded];
}

function writeCookie(key: string, credential: string | BasicCredential, cookies: string[]): readonly string[] {
  const text = toText(credential);
  if (/[^\x21-\x7e]|[;,"\\]/.test(text)) {
    throw new ToolError(`Cannot send the request: the credential for the cookie ${key} contains a separator`);
  }
  cookies.push(`${key}=${text}`);
  return [text];
}

/** Whether a pair such as `a=1` has a name, in any encoding. */
function isNamed(pair: string, name: string): boolean {
  const [key] = pair.split("=", 1);
  return [...new URLSearchParams(`${key}=`).keys()].includes(name);
}

function writeBearer(credential: string | BasicCredential, { headers }: Target): readonly string[] {
  const text = toText(credential);
  return writeHeader(headers, "authorization", `Bearer ${text}`, text);
}

function writeBasic(credential: string | BasicCredential, { headers }: Target): readonly string[] {
  // A text is the user and the password, such as `ada:secret`.
  const text = toText(credential);
  const encoded = toBase64(new TextEncoder().encode(text));
  return writeHeader(headers, "authorization", `Basic ${encoded}`, encoded, text.slice(text.indexOf(":") + 1));
}

/**
 * Adds the credentials of the first alternative for which the caller has all credentials. Returns the texts that must not
 * appear in results.
 *
 * @throws {ToolError} if the caller has all credentials of no alternative.
 */
export async function addCredentials(
  { alternatives }: Security,
  target: Target,
  { ctx, operation }: { readonly ctx: Context; readonly operation: ApiOperation },
): Promise<readonly string[]> {
  if (!alternatives.length) return [];
  /** The credentials by scheme, because several alternatives may have the same scheme. */
  const found = new Map<string, unknown>();
  const missing = new Set<string>();
  for (const schemes of alternatives) {
    const unknown = schemes.filter(({ name }) => !found.has(name));
    await Promise.all(unknown.map(async ({ name, find }) => found.set(name, await find(ctx, operation))));
    const absent = schemes.find(({ name }) => found.get(name) === undefined);
    if (!absent) return schemes.flatMap(({ name, write }) => write(checkCredential(name, found.get(name)), target));
    missing.add(absent.name);
  }
  const schemes = [...missing].join(" or ");
  const place = `${operation.method} ${operation.path}`;
  const { principal } = ctx;
  if (!principal) throw new ToolError(`Cannot call ${place}: there is no credential for ${schemes}; sign in first`);
  const call = findCall(ctx);
  const state = `auth returned no credential of ${schemes} for the caller ${JSON.stringify(principal.id)}`;
  call?.host.parts?.report(new Error(`Cannot call ${place}: ${state}; return the credential of this caller`), call);
  throw new ToolError(
    `Cannot call ${place}: the server has no credential of ${schemes} for your account; ask the operator of the server`,
  );
}

function checkCredential(name: string, credential: unknown): string | BasicCredential {
  if (typeof credential === "string" && credential) return credential;
  const { username, password }: Partial<BasicCredential> = Object(credential);
  if (typeof username === "string" && typeof password === "string") return { username, password };
  throw new TypeError(
    `Cannot use the credential for ${name}: it is neither a text nor an object with username and password; ` +
      "return undefined if there is none",
  );
}
