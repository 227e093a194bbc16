// A small authorization server for tests. It serves its metadata and key set over HTTP on loopback, and signs tokens
// with jose.
import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from "jose";
import { type HttpServer, openHttpServer } from "../../src/testing/http_server.ts";

/** The resource of tokens, unless a test sets another audience. */
export const RESOURCE = "https://mcp.example.com/mcp";

/** An issuer's signing key. */
export interface IssuerKey {
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

/** Responds to a request for one path. Returns `undefined` to use the response of the issuer. */
export type Override = (request: Request) => Response | undefined | Promise<Response | undefined>;

/** The parts of a token that differ from valid defaults. A claim that is `undefined` is omitted. */
export interface TokenParts {
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly key?: IssuerKey;
}

/** Creates a key pair. */
export async function makeKey(alg = "ES256", kid: string | undefined = crypto.randomUUID()): Promise<IssuerKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const named = kid === undefined ? {} : { kid };
  return { alg, privateKey, jwk: { ...await exportJWK(publicKey), alg, use: "sig", ...named } };
}

/** A running authorization server. Disposing stops it. */
export class TestIssuer implements AsyncDisposable {
  /** The public keys that the issuer publishes. */
  keys: JWK[] = [];
  /** The paths of all requests so far. */
  readonly paths: string[] = [];
  /** Responses that replace the issuer's own responses, by path. */
  readonly overrides = new Map<string, Override>();
  /** Additional fields of the issuer's metadata. */
  metadata: Record<string, unknown> = {};
  /** The issuer URL. */
  name = "";
  origin = "";
  #server?: HttpServer;
  readonly #key: IssuerKey;
  readonly #wellKnown: string;

  private constructor(key: IssuerKey, wellKnown: string) {
    this.#key = key;
    this.keys = [key.jwk];
    this.#wellKnown = wellKnown;
  }

  /** Starts an issuer. `path` is the path of its issuer URL, and `wellKnown` is the path of its metadata. */
  static async start(
    { alg, path = "", wellKnown = "/.well-known/oauth-authorization-server" }: {
      readonly alg?: string;
      readonly path?: string;
      readonly wellKnown?: string;
    } = {},
  ): Promise<TestIssuer> {
    const issuer = new TestIssuer(await makeKey(alg), wellKnown);
    issuer.#server = await openHttpServer((request) => issuer.#respond(request));
    issuer.origin = issuer.#server.origin;
    issuer.name = issuer.origin + path;
    return issuer;
  }

  /** The number of requests for the issuer's key set so far. */
  get keyFetches(): number {
    return this.paths.filter((path) => path === "/jwks").length;
  }

  /** Signs a token with the given claims, header and key. */
  async sign({ claims = {}, header = {}, key = this.#key }: TokenParts = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.name, aud: RESOURCE, sub: "ada", client_id: "app", iat: now, exp: now + 600, ...claims };
    const { kid } = key.jwk;
    // The cast is needed, because some tests sign headers that jose's types do not allow.
    const protectedHeader = { alg: key.alg, typ: "at+jwt", ...kid && { kid }, ...header } as JWTHeaderParameters;
    return await new SignJWT(JSON.parse(JSON.stringify(all))).setProtectedHeader(protectedHeader).sign(key.privateKey);
  }

  async #respond(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    this.paths.push(pathname);
    const own = await this.overrides.get(pathname)?.(request);
    if (own) return own;
    if (pathname === "/jwks") return Response.json({ keys: this.keys });
    if (pathname !== this.#wellKnown) return new Response("not found", { status: 404 });
    return Response.json({
      issuer: this.name,
      jwks_uri: `${this.origin}/jwks`,
      token_endpoint: `${this.origin}/token`,
      introspection_endpoint: `${this.origin}/introspect`,
      ...this.metadata,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.stop();
  }
}
