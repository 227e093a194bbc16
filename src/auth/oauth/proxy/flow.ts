/**
 * The part of a sign-in that takes place in the browser: authorization request, consent, and the provider's callback.
 *
 * @see specification/2026-07-28/basic/authorization
 * @see RFC 9207 (the `iss` parameter)
 */
import { deadline } from "../../../core/kit/deadline.ts";
import { parseJson } from "../../../core/kit/json.ts";
import { sha256 } from "../../../core/kit/sha256.ts";
import { isLoopback } from "../../../core/kit/loopback_host.ts";
import type { Clock } from "../../../core/timers.ts";
import type { RoutePeer } from "../../../server/engine/route_peer.ts";
import { readCookies } from "../../credentials.ts";
import { type Clients, OAuthError } from "./clients.ts";
import { type ConsentTexts, toConsentPage, toErrorPage } from "./consent_page.ts";
import { type Grants, type GrantsParts, toRandom } from "./grants.ts";
import type { Provider, ProviderCall, ProviderUser } from "./provider.ts";
import type { RedirectRules } from "./redirect_uris.ts";
import { requestTokens } from "./upstream.ts";

/** Time in which a user must consent and sign in, in milliseconds. */
const FLOW_MS = 600_000;
/** Maximum number of sign-ins that a browser can have open at the same time. */
const MOST_COOKIES = 8;
const MAX_FORM = 16_384;
/** Maximum length of a client's `state` in characters, because a sign-in that has begun stores it. */
const MAX_STATE = 2048;
/** Time in which a body must arrive, in milliseconds. */
const BODY_MS = 10_000;
/** Rate of the pages, for each address. */
const PAGE_RATE = { calls: 60, perMs: 60_000 };

/** A request that the user can allow. Sealed in the form of the consent page, because nothing is stored before. */
interface FlowRequest {
  readonly client: string;
  readonly redirectUri: string;
  readonly state?: string;
  readonly challenge: string;
  readonly scopes: readonly string[];
  readonly until: number;
}

/** A sign-in that has begun at the provider. */
interface Pending extends FlowRequest {
  readonly verifier: string;
  readonly nonce: string;
}

export interface FlowParts extends Omit<GrantsParts, "digest"> {
  readonly clock: Clock;
  readonly grants: Grants;
  readonly clients: Clients;
  readonly redirects: RedirectRules;
  readonly provider: Provider;
  readonly fetch: ProviderCall["fetch"];
  /** Decides which users may sign in, and with which scopes. */
  readonly decide: (
    user: ProviderUser,
    options: { readonly token: string; readonly scopes: readonly string[]; readonly signal: AbortSignal },
  ) => Promise<{ readonly subject: string; readonly scopes: readonly string[] } | undefined>;
  readonly resource: URL;
  readonly issuer: string;
  readonly serverName: string;
  readonly scopes: readonly string[];
  readonly texts?: ConsentTexts;
  readonly report: (error: unknown) => void;
}

export class Flow {
  readonly #parts: FlowParts;
  readonly #callback: string;

  constructor(parts: FlowParts) {
    this.#parts = parts;
    this.#callback = `${parts.issuer}/callback`;
  }

  async authorize(request: Request, { peer, rate }: RoutePeer): Promise<Response> {
    // Otherwise another page could use up the rate of its visitors with images and frames.
    if ((request.headers.get("sec-fetch-dest") ?? "document") !== "document") {
      return toErrorPage(403, "This page cannot be part of another page.");
    }
    const refused = rate("authorize", PAGE_RATE);
    if (refused) return refused;
    if (request.method !== "GET") return toErrorPage(405, "This page accepts only GET requests.");
    const { searchParams } = new URL(request.url);
    // The page does not show the name, because anybody could write a message to the user into it.
    if (hasRepeated(searchParams)) return toErrorPage(400, "A parameter of the request is repeated.");
    const params = Object.fromEntries(searchParams);
    const { redirects, clients, provider, serverName, texts, seal, now } = this.#parts;
    let client;
    try {
      client = await clients.find(params.client_id ?? "", peer);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return toErrorPage(error.status >= 500 ? error.status : 400, error.description);
    }
    const known = client.redirectUris;
    const redirectUri = params.redirect_uri ?? (known.length === 1 ? known[0] : "");
    const problem = redirects.findProblem(redirectUri, client);
    if (problem !== undefined) return toErrorPage(400, problem);
    const { state } = params;
    if (state !== undefined && state.length > MAX_STATE) {
      return toErrorPage(400, `The state of the app is longer than ${MAX_STATE} characters.`);
    }
    const found = this.#read(params);
    if (found instanceof OAuthError) {
      // Anybody can publish a metadata document, so that a redirect to its host without a question would be an open
      // redirect (RFC 9700, section 4.11.2).
      const isKnown = client.isTrusted || redirects.findListProblem(redirectUri) === undefined;
      return isKnown
        ? this.#toClient({ redirectUri, state }, found)
        : toErrorPage(400, `The request of the app is not valid: ${found.description}.`);
    }
    const flow: FlowRequest = { client: client.id, redirectUri, state, ...found, until: now() + FLOW_MS };
    return toConsentPage({
      client: client.name,
      server: serverName,
      provider: provider.name,
      providerScopes: provider.scopes,
      scopes: found.scopes,
      redirectUri,
      isLocal: isLocal(redirectUri),
      request: await seal(["consent", flow]),
    }, texts);
  }

  #read(params: Readonly<Record<string, string>>): Pick<FlowRequest, "challenge" | "scopes"> | OAuthError {
    const { response_type: type, code_challenge: challenge = "", code_challenge_method: method, resource } = params;
    const refuse = (code: string, description: string) => new OAuthError(code, description, 400);
    if (type !== "code") return refuse("unsupported_response_type", 'response_type must be "code"');
    if (params.request !== undefined) return refuse("request_not_supported", "request objects are not supported");
    if (params.request_uri !== undefined) return refuse("request_uri_not_supported", "request URIs are not supported");
    if (method !== "S256" || !/^[\w-]{43}$/.test(challenge)) {
      return refuse("invalid_request", "PKCE with the method S256 is required");
    }
    const { href } = this.#parts.resource;
    if (resource !== undefined && URL.parse(resource)?.href !== href) {
      return refuse("invalid_target", `resource must be ${href}`);
    }
    const wanted = params.scope?.split(" ").filter((scope) => scope) ?? [];
    const all = this.#parts.scopes;
    const scopes = wanted.length ? all.filter((scope) => wanted.includes(scope)) : all;
    if (wanted.length && !scopes.length && all.length) return refuse("invalid_scope", "no scope is known");
    return { challenge, scopes };
  }

  async consent(request: Request, { rate }: RoutePeer): Promise<Response> {
    const refused = rate("consent", PAGE_RATE);
    if (refused) return refused;
    if (request.method !== "POST") return toErrorPage(405, "This page accepts only a form.");
    // A browser sends the header with each form. Another page cannot send the form in the name of the user.
    if (request.headers.get("origin") !== this.#parts.issuer) {
      return toErrorPage(400, "The form does not come from this server.");
    }
    const form = new URLSearchParams(await readForm(request, this.#parts.clock));
    const flow = await this.#open(form.getAll("request"));
    const action = form.getAll("action");
    if (!flow || action.length !== 1) return toErrorPage(400, "The form has expired. Start again in your app.");
    if (action[0] !== "allow") {
      return this.#toClient(flow, new OAuthError("access_denied", "the user has refused", 400));
    }
    return await this.#begin(flow, request.headers.get("cookie") ?? "");
  }

  async #open(texts: readonly string[]): Promise<FlowRequest | undefined> {
    const opened = texts.length === 1 ? await this.#parts.open(texts[0]) : undefined;
    if (!Array.isArray(opened) || opened[0] !== "consent") return;
    const flow: FlowRequest = opened[1];
    return flow.until > this.#parts.now() ? flow : undefined;
  }

  async #begin(flow: FlowRequest, cookies: string): Promise<Response> {
    const { provider, store, seal, now, fetch } = this.#parts;
    const signal = AbortSignal.timeout(10_000);
    const endpoints = await provider.endpoints({ fetch, signal });
    const [id, browser, verifier, nonce] = [toRandom(24), toRandom(24), toRandom(32), toRandom(16)];
    const pending: Pending = { ...flow, verifier, nonce };
    await store.set(toKey(id), JSON.stringify(pending), { version: null, ttlMs: FLOW_MS });
    const target = new URL(endpoints.authorize);
    const params: Readonly<Record<string, string>> = {
      ...provider.params,
      response_type: "code",
      client_id: provider.clientId,
      redirect_uri: this.#callback,
      scope: provider.scopes.join(" "),
      // Contains the digest of the cookie, so that a request of another browser does not read the store.
      state: await seal(["state", id, await sha256(browser)]),
      nonce,
      ...endpoints.pkce !== false && { code_challenge: await sha256(verifier), code_challenge_method: "S256" },
    };
    for (const [name, value] of Object.entries(params)) if (value) target.searchParams.set(name, value);
    const headers = new Headers({ location: target.href, "cache-control": "no-store" });
    const name = await this.#toCookie(id);
    headers.append("set-cookie", this.#setCookie(name, `${now().toString(36)}.${browser}`, FLOW_MS));
    for (const old of this.#listOld(cookies)) headers.append("set-cookie", this.#setCookie(old, "", 0));
    return new Response(null, { status: 303, headers });
  }

  get #isSecure(): boolean {
    return this.#parts.issuer.startsWith("https:");
  }

  async #toCookie(id: string): Promise<string> {
    return `${this.#isSecure ? "__Host-" : ""}login-${(await sha256(id)).slice(0, 22)}`;
  }

  #setCookie(name: string, value: string, ms: number): string {
    const secure = this.#isSecure ? "; Secure" : "";
    return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${ms / 1000}${secure}`;
  }

  /** Returns the names of the oldest cookies, so that at most `MOST_COOKIES` remain. */
  #listOld(cookies: string): readonly string[] {
    const prefix = `${this.#isSecure ? "__Host-" : ""}login-`;
    const found = cookies.split(";").map((each) => each.trim().split("=")).filter(([name]) => name.startsWith(prefix));
    const dated = found.map(([name, value = ""]) => ({ name, at: parseInt(value.split(".")[0], 36) || 0 }));
    const old = dated.toSorted((one, other) => one.at - other.at).slice(
      0,
      Math.max(0, dated.length - MOST_COOKIES + 1),
    );
    return old.map(({ name }) => name).filter((name) => /^[\w-]{1,64}$/.test(name));
  }

  async callback(request: Request, { rate }: RoutePeer): Promise<Response> {
    const params = new URL(request.url).searchParams;
    const opened = params.getAll("state").length === 1 ? await this.#parts.open(params.get("state") ?? "") : undefined;
    if (request.method !== "GET" || !Array.isArray(opened) || opened[0] !== "state") {
      return rate("callback", PAGE_RATE) ?? toErrorPage(400, "The address is not complete. Start again in your app.");
    }
    const [, id, browser] = opened;
    const name = await this.#toCookie(id);
    const [cookie = "", ...others] = readCookies(request.headers.get("cookie") ?? "", name);
    if (others.length || await sha256(cookie.split(".")[1] ?? "") !== browser) {
      return toErrorPage(400, "This sign-in was begun in another browser, or the browser blocks cookies.");
    }
    const { store, now } = this.#parts;
    const found = await store.get(toKey(id));
    // Only this class writes these values, and a sign-in that has ended is an empty object.
    const pending: Partial<Pending> = found ? Object(parseJson(found.value)) : {};
    if (!found || !isPending(pending) || pending.until <= now()) {
      return toErrorPage(400, "This sign-in has ended. Start again in your app.");
    }
    const { version } = found;
    const isFirst = await store.set(toKey(id), "{}", { version, ttlMs: FLOW_MS }) !== undefined;
    if (!isFirst) return toErrorPage(400, "This sign-in has ended. Start again in your app.");
    const response = await this.#finish(pending, params);
    response.headers.append("set-cookie", this.#setCookie(name, "", 0));
    return response;
  }

  async #finish(pending: Pending, params: URLSearchParams): Promise<Response> {
    const { provider, fetch, now, report } = this.#parts;
    const signal = AbortSignal.timeout(20_000);
    const call = { fetch, signal };
    const error = params.get("error");
    if (error !== null) {
      const isRefusal = error === "access_denied";
      if (!isRefusal) report(new Error(`Cannot sign in a user: ${provider.name} responded with an error`));
      const code = isRefusal ? "access_denied" : "server_error";
      return this.#toClient(pending, new OAuthError(code, `${provider.name} did not sign in the user`, 400));
    }
    try {
      const { issuer } = await provider.endpoints(call);
      const [code = "", ...more] = params.getAll("code");
      if (!code || more.length || issuer !== undefined && params.get("iss") !== issuer) {
        return this.#toClient(pending, new OAuthError("server_error", "the provider's response is not valid", 400));
      }
      const form = {
        grant_type: "authorization_code",
        code,
        redirect_uri: this.#callback,
        code_verifier: pending.verifier,
      };
      const tokens = await requestTokens(provider, form, { ...call, now: now() });
      const user = await provider.findUser(tokens, { ...call, nonce: pending.nonce });
      if (!user) throw new Error(`${provider.name} did not accept its own token`);
      const { scopes } = pending;
      const decided = await this.#parts.decide(user, { token: tokens.accessToken, scopes, signal });
      if (!decided) {
        await this.#parts.revoke(tokens, false);
        return this.#toClient(pending, new OAuthError("access_denied", "this user may not use the server", 403));
      }
      const { client, redirectUri, challenge, state } = pending;
      const binding = { challenge, redirectUri };
      const text = await this.#parts.grants.create({ ...decided, client, tokens, binding });
      return this.#redirect({ redirectUri, state }, { code: text });
    } catch (error) {
      report(error);
      const failure = new OAuthError("temporarily_unavailable", "the sign-in has failed; try again later", 503);
      return this.#toClient(pending, failure);
    }
  }

  #toClient(
    flow: Pick<FlowRequest, "redirectUri" | "state">,
    { code, description }: OAuthError,
  ): Response {
    return this.#redirect(flow, { error: code, error_description: description });
  }

  /** Responds with a redirect to the client. The query of the redirect URI stays. */
  #redirect(
    { redirectUri, state }: Pick<FlowRequest, "redirectUri" | "state">,
    params: Readonly<Record<string, string>>,
  ): Response {
    const query = new URLSearchParams({ ...params, ...state !== undefined && { state }, iss: this.#parts.issuer });
    const location = `${redirectUri}${redirectUri.includes("?") ? "&" : "?"}${query}`;
    return new Response(null, { status: 303, headers: { location, "cache-control": "no-store" } });
  }
}

/** Tests whether a name occurs twice. */
export function hasRepeated(params: URLSearchParams): boolean {
  const names = [...params.keys()];
  return new Set(names).size < names.length;
}

/** Reads a form of limited size. */
export async function readForm(request: Request, clock: Clock): Promise<string> {
  const isForm = /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(request.headers.get("content-type") ?? "");
  return isForm ? await readBody(request, clock) : "";
}

/** Returns an empty text if the body is too long, or does not arrive in time. */
export async function readBody({ body }: Request, clock: Clock): Promise<string> {
  const reader = body?.getReader();
  if (!reader) return "";
  try {
    return await deadline(readAll(reader), { ms: BODY_MS, onTimeout: () => "", clock });
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > MAX_FORM) return "";
  }
}

function isPending(value: Partial<Pending>): value is Pending {
  return value.client !== undefined;
}

function isLocal(redirectUri: string): boolean {
  const url = new URL(redirectUri);
  return !/^https?:$/.test(url.protocol) || isLoopback(url.hostname);
}

function toKey(id: string): string {
  return `state-${id}`;
}
