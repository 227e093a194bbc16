/**
 * Signs users in from a web page: the browser leaves the page for the sign-in page, and returns to it with a code.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { deadline } from "../../core/kit/deadline.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { findWebPage, type WebPage } from "../../core/runtime.ts";
import {
  checkIssuerOfCode,
  checkProofOfCode,
  exchangeCode,
  prepare,
  readRedirectUri,
  type SentToPage,
  withSignInTime,
} from "./code_grant.ts";
import { SignInError, toShown } from "./errors.ts";
import type { Grant, GrantContext, Granted } from "./grant.ts";
import type { ClientIdentityOptions, KnownClient } from "./registration.ts";
import { checkIdentity, SIGN_IN_MS } from "./sign_in.ts";
import { type SignIn, TOKEN_OPTIONS, type TokenOptions } from "./token_options.ts";
import { TokenSources } from "./token_sources.ts";
import type { SignInPage } from "./user_agent.ts";

/** The options of {@linkcode pageSignIn}. */
export interface PageSignInOptions extends TokenOptions, Omit<ClientIdentityOptions, "client"> {
  /**
   * The URL to which the authorization server sends the user back, such as `https://app.example.com/`. It must have the
   * origin of the page, and the page at this URL must call `finish`.
   */
  readonly redirectUri: string;
  /**
   * A client that was registered manually. A page cannot have a client with a secret, because everybody can read the
   * page. Without this option, the client registers itself if the authorization server supports registration.
   */
  readonly client?: Omit<KnownClient, "secret">;
  /**
   * Shows the authorization server's page to the user, for example after the user has pressed a button. Defaults to
   * `location.assign(page.url)`.
   */
  readonly open?: (page: SignInPage) => void | Promise<void>;
}

/** A token source for web pages. */
export interface PageSignIn extends SignIn {
  /**
   * Completes a sign-in after the authorization server has sent the user back. Checks `state` and `iss`, exchanges the
   * code for tokens, and replaces the page's address with `redirectUri`, so that the address bar and the history contain
   * no code. Call it before `connect`, whenever the page loads.
   *
   * @returns Whether the address was a response of an authorization server.
   * @throws {SignInError} if the user or the authorization server rejected the sign-in, or if the address does not belong
   * to a sign-in that this tab has started.
   */
  readonly finish: () => Promise<boolean>;
}

/** A sign-in that has begun, and that the page completes when the user returns. */
interface PendingSignIn extends SentToPage, Pick<GrantContext, "server" | "resource" | "scopes" | "metadataUrl"> {
  readonly issuer: string;
}

/** A pending sign-in, and the address at which the user came back. */
interface ReturnedSignIn {
  readonly pending: PendingSignIn;
  readonly address: string;
  /** The tokens. Set when the code is exchanged, because a code can be used only once. */
  granted?: Promise<Granted>;
}

const OPTIONS: KnownOptions<keyof PageSignInOptions> = {
  names: {
    ...TOKEN_OPTIONS.names,
    redirectUri: "text",
    client: { names: { id: true, issuer: true } },
    clientMetadataUrl: true,
    clientName: true,
    open: "function",
  },
  hints: { clientId: "client.id", navigate: "open", name: "clientName" },
};

/** The key in `sessionStorage`, which only this tab and only pages of this origin can read. */
const KEY = "mcp sign-in";
/** Maximum number of pending sign-ins of a tab. A page can show the sign-in pages of several servers at once. */
const MAX_PENDING = 8;

/**
 * Returns a token source for a web page. When a server requires a token, the browser leaves the page for the
 * authorization server. When it returns, `finish` gets the tokens.
 *
 * ```ts
 * import { type Client, connect } from "@x/mcp/client";
 * import { pageSignIn } from "@x/mcp/client/oauth";
 *
 * export async function open(): Promise<Client> {
 *   const auth = pageSignIn({
 *     redirectUri: "https://app.example.com/callback",
 *     clientMetadataUrl: "https://app.example.com/client.json",
 *   });
 *   await auth.finish();
 *   return await connect("https://mcp.example.com/mcp", { auth });
 * }
 * ```
 *
 * While the browser is on the sign-in page, `sessionStorage` contains the state and the code verifier, but never a token.
 *
 * @throws {TypeError} if an option is unknown or invalid, or if there is no web page.
 */
export function pageSignIn(options: PageSignInOptions): PageSignIn {
  const action = "use pageSignIn()";
  checkOptions(action, options, OPTIONS);
  const page = findWebPage();
  if (!page) {
    throw new TypeError(`Cannot ${action}: this program is not a web page; use signIn() with a userAgent instead`);
  }
  const { redirectUri, client, open = ({ url }) => page.location.assign(url) } = options;
  const { origin } = page.location;
  if (URL.parse(redirectUri)?.origin !== origin || redirectUri.includes("#")) {
    throw new TypeError(
      `Cannot ${action}: redirectUri ${toShown(redirectUri)} is not a URL of this page's origin without a fragment; ` +
        `write a URL such as ${origin}/callback`,
    );
  }
  checkIdentity(action, options);
  if (client?.issuer !== undefined && !URL.canParse(client.issuer)) {
    throw new TypeError(`Cannot ${action}: client.issuer is not a URL`);
  }
  return new PageTokens(new PageGrant(page, { ...options, open }), options);
}

class PageTokens extends TokenSources implements PageSignIn {
  readonly #grant: PageGrant;

  constructor(grant: PageGrant, options: PageSignInOptions) {
    super(grant, options, SIGN_IN_MS);
    this.#grant = grant;
  }

  readonly finish = async (): Promise<boolean> => {
    const returned = this.#grant.takeReturned();
    if (!returned) return false;
    const { server, scopes, metadataUrl } = returned.pending;
    const params = {
      ...scopes.length ? { scope: scopes.join(" ") } : {},
      ...metadataUrl === undefined ? {} : { resource_metadata: metadataUrl },
    };
    const challenge = { url: server, status: 401, header: "", params };
    await this.#grant.complete(returned, () => this.obtain(challenge, new AbortController().signal));
    return true;
  };
}

/** Sends the user to the sign-in page, and exchanges the code after the user has returned. */
class PageGrant implements Grant {
  readonly isInteractive = true;
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly #page: WebPage;
  readonly #options: PageSignInOptions & Required<Pick<PageSignInOptions, "open">>;
  #returned: ReturnedSignIn | undefined;

  constructor(page: WebPage, options: PageSignInOptions & Required<Pick<PageSignInOptions, "open">>) {
    this.#page = page;
    this.#options = options;
    this.issuer = options.client?.issuer;
    this.clientId = options.client?.id;
  }

  async obtain(context: GrantContext): Promise<Granted> {
    checkProofOfCode(context);
    checkIssuerOfCode(this.#options, context);
    const returned = this.#returned;
    if (returned?.pending.server === context.server) return await (returned.granted ??= exchange(returned, context));
    return await withSignInTime(SIGN_IN_MS, context, (context) => this.#leave(context));
  }

  /** Completes a sign-in. `obtain` gets the tokens of its server from this grant. */
  async complete(returned: ReturnedSignIn, obtain: () => Promise<void>): Promise<void> {
    this.#returned = returned;
    try {
      await obtain();
    } finally {
      this.#returned = undefined;
    }
  }

  /**
   * Removes the response of the authorization server from the address bar, and the pending sign-in from the storage, so
   * that neither is used twice. Returns `undefined` if the address is not a response.
   */
  takeReturned(): ReturnedSignIn | undefined {
    const { location: { href: address }, history } = this.#page;
    const state = this.#findState();
    if (state === undefined) return;
    history.replaceState(history.state, "", this.#options.redirectUri);
    const all = this.#readPending();
    const pending = all.find((each) => each.state === state);
    if (!pending) {
      const remedy = "open the page again, and sign in there";
      throw new SignInError(`Cannot sign in: this tab has not started the sign-in of this address; ${remedy}`);
    }
    this.#writePending(all.filter((each) => each !== pending));
    return { pending, address };
  }

  /** Returns `undefined` if the address is not a response. */
  #findState(): string | undefined {
    const [{ pathname, searchParams: params }, expected] = [this.#page.location.href, this.#options.redirectUri]
      .map((url) => new URL(url));
    if (pathname === expected.pathname && (params.has("code") || params.has("error"))) {
      return params.get("state") ?? undefined;
    }
  }

  /** Ignores a value that the page has stored under the same key. */
  #readPending(): readonly PendingSignIn[] {
    try {
      const all: unknown = JSON.parse(this.#page.sessionStorage.getItem(KEY) ?? "[]");
      return Array.isArray(all) ? all.filter((each) => typeof Object(each).state === "string") : [];
    } catch {
      return [];
    }
  }

  #writePending(all: readonly PendingSignIn[]): void {
    const { sessionStorage } = this.#page;
    if (all.length) sessionStorage.setItem(KEY, JSON.stringify(all));
    else sessionStorage.removeItem(KEY);
  }

  /** Leaves the page. Rejects if the user comes back to the page as it was, or if leaving takes too long. */
  async #leave(context: GrantContext): Promise<Granted> {
    const { redirectUri, open } = this.#options;
    const { server, resource, scopes, metadataUrl, authorizationServer: { issuer }, signal } = context;
    readRedirectUri(redirectUri, server);
    // Otherwise the authorization server would send the user back at once, again and again.
    const state = this.#findState();
    if (state !== undefined && this.#readPending().some((each) => each.state === state)) {
      throw new SignInError(
        `Cannot sign in to ${server}: the page has not completed the sign-in of its address; call finish() of ` +
          "pageSignIn() before connect()",
      );
    }
    // Do not bind the code to the key of the tokens, because the key would have to be stored with the verifier.
    const { page, sent } = await prepare(redirectUri, this.#options, context);
    const pending: PendingSignIn = { ...sent, server, issuer, resource, scopes, metadataUrl };
    this.#writePending([...this.#readPending(), pending].slice(-MAX_PENDING));
    const end = new AbortController();
    const back = Promise.withResolvers<never>();
    this.#page.addEventListener("pageshow", (event) => {
      if (!("persisted" in event) || event.persisted !== true) return;
      back.reject(new SignInError(`Cannot sign in to ${server}: the user came back without signing in; try again`));
    }, { signal: end.signal });
    try {
      await deadline(Promise.resolve(open(page)), { signal });
      return await deadline(back.promise, { signal });
    } finally {
      end.abort();
    }
  }
}

async function exchange({ pending, address }: ReturnedSignIn, context: GrantContext): Promise<Granted> {
  const { server, resource, authorizationServer: { issuer } } = context;
  // The code belongs to the authorization server to which the user was sent.
  if (pending.issuer === issuer && pending.resource === resource) {
    return await exchangeCode({ ...pending, address }, context);
  }
  throw new SignInError(
    `Cannot sign in to ${server}: the server named the authorization server ${pending.issuer} and the resource ` +
      `${pending.resource} before, and now ${toShown(issuer)} and ${toShown(resource)}; sign in again`,
  );
}
