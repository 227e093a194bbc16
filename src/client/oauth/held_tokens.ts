/**
 * The values that the store contains: tokens, and registrations of clients.
 *
 * @module
 */
import type { JWK } from "jose";
import { isObject } from "../../kit/json.ts";

/** A client that is registered at an authorization server. */
export interface RegisteredClient {
  readonly id: string;
  readonly secret?: string;
  /** The authentication method: `none`, `client_secret_basic` or `client_secret_post`. */
  readonly method: ClientMethod;
}

/** How a client authenticates at the token endpoint. */
export type ClientMethod = "none" | "client_secret_basic" | "client_secret_post";

/** The tokens for one resource, and their client and issuer. They are never used with any other server. */
export interface HeldTokens {
  readonly issuer: string;
  readonly resource: string;
  readonly client: RegisteredClient;
  /** The scopes that have been requested so far. */
  readonly requested: readonly string[];
  /** The scopes that were granted. */
  readonly scopes: readonly string[];
  readonly token: string;
  readonly refreshToken?: string;
  /** Time at which the token was issued, in milliseconds since 1970. */
  readonly issuedAt: number;
  readonly expiresAt?: number;
  /** Whether the token was obtained with a refresh token. */
  readonly isRenewed?: boolean;
  /** The private key that the token is bound to. */
  readonly key?: JWK;
  /** The URL of the resource metadata that the server's challenge named. */
  readonly metadataUrl?: string;
}

/** The version of the format. Values of other versions are ignored. */
const VERSION = 1;

/** Converts tokens to a value for the store. */
export function writeTokens(tokens: HeldTokens): string {
  return JSON.stringify({ v: VERSION, ...tokens });
}

/** Reads a value from the store. Returns `undefined` for a value in another format; the user then signs in again. */
export function readTokens(text: string | undefined): HeldTokens | undefined {
  const value = parse(text);
  if (!isObject(value) || value.v !== VERSION || !isHeld(value)) return;
  const { v: _, ...tokens } = value;
  return tokens;
}

function isHeld(value: object): value is HeldTokens & { v: number } {
  const held = value as Partial<HeldTokens>; // The cast is safe, because the fields are checked below.
  const { issuer, resource, client, requested, scopes, token, issuedAt, metadataUrl = "" } = held;
  const texts = [issuer, resource, token, isObject(client) ? client.id : undefined];
  return texts.every((each) => typeof each === "string") && Array.isArray(requested) && Array.isArray(scopes) &&
    typeof issuedAt === "number" && typeof metadataUrl === "string";
}

/** Converts a registration to a value for the store. */
export function writeRegistration(client: RegisteredClient, redirectUri: string): string {
  return JSON.stringify({ v: VERSION, ...client, redirectUri });
}

/**
 * Reads the registration for a redirect URI. Returns `undefined` if the value is not a registration for this redirect
 * URI.
 */
export function readRegistration(text: string | undefined, redirectUri: string): RegisteredClient | undefined {
  const value = parse(text);
  if (!isObject(value) || value.v !== VERSION || value.redirectUri !== redirectUri) return;
  const { id, secret, method } = value;
  if (typeof id !== "string" || !isMethod(method)) return;
  return typeof secret === "string" ? { id, secret, method } : { id, method };
}

/** Tests for an authentication method that this client supports. */
export function isMethod(value: unknown): value is ClientMethod {
  return value === "none" || value === "client_secret_basic" || value === "client_secret_post";
}

function parse(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
