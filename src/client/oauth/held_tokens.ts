/**
 * The formats of stored values: tokens and client registrations.
 */
import type { JWK } from "jose";
import { isObject, parseJson } from "../../core/kit/json.ts";

/** A client and its credentials at an authorization server. */
export interface RegisteredClient {
  readonly id: string;
  readonly secret?: string;
  /** How the client authenticates at the token endpoint. */
  readonly method: ClientMethod;
}

/** The supported methods of client authentication at the token endpoint. */
export type ClientMethod = "none" | "client_secret_basic" | "client_secret_post";

/**
 * The tokens for one server, with the resource, client and issuer that they belong to. The client never sends these
 * tokens to another server.
 */
export interface HeldTokens {
  readonly issuer: string;
  readonly resource: string;
  readonly client: RegisteredClient;
  /** All scopes that have been requested so far. */
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
  /** URL at which the token is renewed. */
  readonly tokenEndpoint?: string;
  /** Set if the server's challenge contained the URL of the resource metadata. */
  readonly metadataUrl?: string;
}

/** Version of the formats. Values with other versions are ignored. */
const VERSION = 1;

export function writeTokens(tokens: HeldTokens): string {
  return JSON.stringify({ v: VERSION, ...tokens });
}

/** Returns `undefined` if the value has another format, so that the user signs in again. */
export function readTokens(text: string | undefined): HeldTokens | undefined {
  const value = parseJson(text ?? "");
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

export interface Registration {
  readonly client: RegisteredClient;
  readonly redirectUri: string;
  /** The scopes that the client asked for when it registered. */
  readonly scopes: readonly string[];
}

export function writeRegistration({ client, redirectUri, scopes }: Registration): string {
  return JSON.stringify({ v: VERSION, ...client, redirectUri, scopes });
}

/** Returns `undefined` if the value has another format. */
export function readRegistration(text: string | undefined): Registration | undefined {
  const value = parseJson(text ?? "");
  if (!isObject(value) || value.v !== VERSION) return;
  const { id, secret, method, redirectUri, scopes } = value;
  if (typeof id !== "string" || !isMethod(method) || typeof redirectUri !== "string") return;
  const client = typeof secret === "string" ? { id, secret, method } : { id, method };
  const known = Array.isArray(scopes) ? scopes.filter((each) => typeof each === "string") : [];
  return { client, redirectUri, scopes: known };
}

export function isMethod(value: unknown): value is ClientMethod {
  return value === "none" || value === "client_secret_basic" || value === "client_secret_post";
}
