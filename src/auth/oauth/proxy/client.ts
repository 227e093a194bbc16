/**
 * The clients of an authorization server, and the errors that they receive.
 */
import type { JSONWebKeySet } from "jose";
import { toPrintableLine } from "../../../core/kit/printable.ts";

/** A client that asks for tokens. Its name and its redirect URIs are its own claims, unless `isTrusted` is set. */
export interface Client {
  readonly id: string;
  /** Name for the user. Contains no control and invisible characters. */
  readonly name: string;
  readonly redirectUris: readonly string[];
  /** Whether the id is the URL of a metadata document. */
  readonly isDocument: boolean;
  /** Host of the metadata document, with its port if it has one. */
  readonly origin?: string;
  /** Whether the author of this server has listed the client and its redirect URIs. */
  readonly isTrusted?: boolean;
  readonly authMethod: "none" | "private_key_jwt";
  /** Public keys of the client, if they are part of its metadata document. */
  readonly jwks?: JSONWebKeySet;
  /** URL of the client's public keys. */
  readonly jwksUri?: string;
  /** Scopes that the client has registered, separated by spaces. */
  readonly scope?: string;
}

export interface OAuthErrorOptions extends ErrorOptions {
  /** Time in seconds after which the client can try again. */
  readonly retryAfter?: number;
}

/** An error response of an authorization server (RFC 6749, section 5.2). Clients receive `code` and `description`. */
export class OAuthError extends Error {
  override readonly name = "OAuthError";
  /** Error code, such as `invalid_client`. */
  readonly code: string;
  /** Text for developers, in printable ASCII without quotation marks and backslashes. */
  readonly description: string;
  /** Status of the HTTP response. */
  readonly status: number;
  /** Time in seconds after which the client can try again. */
  readonly retryAfter?: number;

  constructor(code: string, description: string, status = 400, { retryAfter, ...options }: OAuthErrorOptions = {}) {
    super(`${code}: ${description}`, options);
    this.code = code;
    this.description = description;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Maximum length of a client's name in characters. */
const MAX_NAME = 100;
const MAX_SCOPE = 1000;

/** Tests whether a user can read a name, and whether the name cannot change the text around it. */
export function isClientName(name: unknown): name is string {
  return typeof name === "string" && name.trim() !== "" && name.length <= MAX_NAME && toPrintableLine(name) === name &&
    !/\p{Co}|\p{M}{4}|\s\s/u.test(name);
}

/** Returns `undefined` if a value is not a list of scopes (RFC 6749, section 3.3). */
export function readScope(scope: unknown): string | undefined {
  const isScope = typeof scope === "string" && scope.length <= MAX_SCOPE &&
    /^[!#-[\]-~]+(?: [!#-[\]-~]+)*$/.test(scope);
  return isScope ? scope : undefined;
}
