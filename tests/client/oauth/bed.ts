// A protected server and an authorization server behind one `fetch`. A test can replace one of their responses, such as
// the metadata, with an invalid response.
import { createServer, type Server, tool } from "../../../mod.ts";
import { type Client, connect, type ConnectOptions } from "../../../src/client/client.ts";
import {
  type SignIn,
  signIn,
  type SignInOptions,
  type SignInPage,
  type SignInStart,
  type UserAgent,
} from "../../../src/client/oauth/oauth.ts";

/** A response, or a value that is sent as a JSON response. */
type Answer = Response | Readonly<Record<string, unknown>>;

/** The form parameters of a request to the authorization server. */
type Form = Readonly<Record<string, string>>;

/** The values that a test can replace. Each function receives the correct value and returns the value to use. */
export interface Wrong {
  readonly server?: string;
  readonly issuer?: string;
  /** Replaces the protected server's challenge. */
  readonly challenge?: (right: string) => string;
  /** Replaces the resource metadata at a URL. If the function returns `undefined`, the response is 404. */
  readonly resourceMetadata?: (right: Record<string, unknown>, url: URL) => Answer | undefined;
  readonly metadata?: (right: Record<string, unknown>, url: URL) => Answer | undefined;
  readonly registration?: (right: Record<string, unknown>) => Answer;
  /** Replaces the redirect URI, with its parameters, to which the user returns. */
  readonly back?: (right: URL) => string | Promise<string>;
  readonly token?: (right: Record<string, unknown>, form: Form) => Answer | Promise<Answer>;
  /** Scopes that the server requires for each tool call. */
  readonly scopes?: () => readonly string[];
}

/** A request that one of the servers has received. */
export interface Seen {
  readonly url: string;
  readonly authorization: string | null;
  readonly body: string;
}

/** The protected server and the authorization server. `fetch` passes each request to one of these servers. */
export class Bed implements AsyncDisposable {
  readonly seen: Seen[] = [];
  /** Secrets that must not appear in an error, or in a request to another origin. */
  readonly secrets = new Set<string>();
  readonly forms: Form[] = [];
  /** The parameters of each authorization request. */
  readonly visits: URLSearchParams[] = [];
  /** The facts with which each sign-in began, and the page that the user saw. */
  readonly starts: SignInStart[] = [];
  readonly pages: SignInPage[] = [];
  /** The outcome that the client reported for each sign-in. */
  readonly ends: unknown[] = [];
  readonly server: string;
  readonly issuer: string;
  readonly #wrong: Wrong;
  readonly #inner: Server;
  readonly #granted = new Map<string, readonly string[]>();
  #count = 0;

  constructor(wrong: Wrong = {}) {
    this.#wrong = wrong;
    this.server = wrong.server ?? "https://mcp.example.com/mcp";
    this.issuer = wrong.issuer ?? "https://login.example.com";
    const { hostname, pathname: path } = new URL(this.server);
    const hello = tool({ name: "hello", run: () => "Hello!" });
    this.#inner = createServer({ name: "notes", version: "1.0.0", hosts: [hostname], path, handlers: [hello] });
  }

  /** Makes the server refuse all tokens that were issued so far. */
  revoke(): void {
    this.#granted.clear();
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const body = await request.clone().text();
    this.seen.push({ url: request.url, authorization: request.headers.get("authorization"), body });
    if (url.href === this.server) return await this.#serve(request);
    if (url.origin === new URL(this.server).origin && url.pathname.includes("/.well-known/oauth-protected")) {
      return this.#answerResource(url);
    }
    if (url.origin === new URL(this.issuer).origin) return await this.#answerIssuer(url, body);
    return new Response("not found", { status: 404 });
  };

  signIn(options: Partial<SignInOptions> = {}): SignIn {
    return signIn({ fetch: this.fetch, userAgent: this.userAgent, ...options });
  }

  connect(auth: ConnectOptions["auth"], options: ConnectOptions = {}): Promise<Client> {
    return connect(this.server, { era: "modern", fetch: this.fetch, auth, ...options });
  }

  readonly userAgent: UserAgent = (start) => ({
    redirectUri: `http://127.0.0.1:7777${this.starts[this.starts.push(start) - 1].path}`,
    visit: async (page) => {
      const { searchParams } = new URL(page.url);
      this.visits.push(searchParams);
      this.pages.push(page);
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      const params = { code: this.#issue("code"), state: searchParams.get("state") ?? "", iss: this.issuer };
      for (const [name, value] of Object.entries(params)) back.searchParams.set(name, value);
      return await (this.#wrong.back?.(back) ?? back.href);
    },
    end: (error) => void this.ends.push(error),
  });

  /** Creates a random secret, and adds it to `secrets`. */
  #issue(kind: string): string {
    const secret = `${kind}-secret-${++this.#count}-${crypto.randomUUID()}`;
    this.secrets.add(secret);
    return secret;
  }

  async #serve(request: Request): Promise<Response> {
    const token = /^(?:Bearer|DPoP) (.*)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
    const granted = this.#granted.get(token);
    const needed = this.#wrong.scopes?.() ?? [];
    if (granted && needed.every((scope) => granted.includes(scope))) return await this.#inner.fetch(request);
    const right = granted
      ? `Bearer error="insufficient_scope", scope="${needed.join(" ")}"`
      : `Bearer resource_metadata="${new URL("/.well-known/oauth-protected-resource/mcp", this.server)}", scope="read"`;
    const headers = { "www-authenticate": this.#wrong.challenge?.(right) ?? right };
    return new Response(null, { status: granted ? 403 : 401, headers });
  }

  #answerResource(url: URL): Response {
    const right = { resource: this.server, authorization_servers: [this.issuer] };
    const isThere = url.pathname.endsWith("/mcp");
    const { resourceMetadata } = this.#wrong;
    return toResponse(resourceMetadata ? resourceMetadata(right, url) : isThere ? right : undefined);
  }

  async #answerIssuer(url: URL, body: string): Promise<Response> {
    if (url.pathname.includes("/.well-known/")) return this.#answerMetadata(url);
    if (url.pathname === "/register") {
      const right = { client_id: `client-${++this.#count}`, ...JSON.parse(body) };
      return toResponse(this.#wrong.registration?.(right) ?? right, 201);
    }
    if (url.pathname !== "/token") return new Response(null, { status: url.pathname === "/revoke" ? 200 : 404 });
    const form: Form = Object.fromEntries(new URLSearchParams(body));
    this.forms.push(form);
    const token = this.#issue("token");
    const right = {
      access_token: token,
      token_type: "Bearer",
      expires_in: 3600,
      refresh_token: this.#issue("refresh"),
    };
    const answer = await (this.#wrong.token?.(right, form) ?? right);
    const asked = this.visits.at(-1)?.get("scope") ?? "";
    const granted = "scope" in answer && typeof answer.scope === "string" ? answer.scope : asked;
    this.#granted.set(token, granted.split(" "));
    return toResponse(answer);
  }

  #answerMetadata(url: URL): Response {
    const right = {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      registration_endpoint: `${this.issuer}/register`,
      revocation_endpoint: `${this.issuer}/revoke`,
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
    };
    const isThere = url.pathname.includes("/.well-known/oauth-authorization-server");
    const { metadata } = this.#wrong;
    return toResponse(metadata ? metadata(right, url) : isThere ? right : undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#inner.close();
  }
}

function toResponse(answer: Answer | undefined, status = 200): Response {
  if (answer instanceof Response) return answer;
  return answer ? Response.json(answer, { status }) : new Response("<html>", { status: 404 });
}
