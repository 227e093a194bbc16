/**
 * Sends requests to authorization servers. The URLs come from the server that requires the sign-in, so this module
 * limits the destinations, and the duration and size of responses.
 */
import { readText, type TextResponse } from "../../core/kit/body_pieces.ts";
import { isObject, parseJson } from "../../core/kit/json.ts";
import { isLoopback } from "../../core/kit/loopback_host.ts";
import { toOAuthResponse } from "../../core/kit/oauth_response.ts";
import { fetchSameOrigin, RedirectError, send } from "../redirects.ts";
import { SignInError, toShown } from "./errors.ts";
import { isPrivateHost } from "../../core/kit/private_hosts.ts";
import { hideSecrets, listSecrets } from "./sent_secrets.ts";

export type Fetch = (request: Request) => Promise<Response>;

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1024 * 1024;

export class Requests {
  readonly #server: URL;
  readonly #fetch: Fetch;

  constructor(server: URL, fetch: Fetch) {
    this.#server = server;
    this.#fetch = fetch;
  }

  /** Returns an instance for a URL from the user's configuration, which may be in a private network. */
  toChosen(address: string): Requests {
    return new Requests(new URL(address), this.#fetch);
  }

  /**
   * Parses and validates a URL that comes from the server or its authorization server.
   *
   * @throws {SignInError} if the URL is not an https URL or an http URL on loopback, or if the server is public and the
   * URL's host is in a private network.
   */
  readUrl(text: unknown, name: string): URL {
    const url = typeof text === "string" ? URL.parse(text) : null;
    const refuse = (state: string) =>
      new SignInError(`Cannot sign in to ${this.#server.href}: ${name} ${toShown(text)} ${state}`);
    if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) throw refuse("is not an https URL");
    if (url.protocol === "http:" && !isLoopback(url.hostname)) {
      throw refuse("uses http; tokens must be sent over https");
    }
    if (isPrivateHost(url.hostname) && !isPrivateHost(this.#server.hostname)) {
      throw refuse("is in a private network; a public server must not use private addresses");
    }
    return url;
  }

  /**
   * Reads a JSON document. Follows redirects within the URL's origin.
   *
   * @returns The object, or `undefined` if the response is not a JSON object, because many servers respond to every
   * path with an HTML page.
   * @throws {SignInError} if the server cannot be reached, or responds with a status of 500 or higher.
   */
  async readDocument(url: URL, signal: AbortSignal): Promise<Readonly<Record<string, unknown>> | undefined> {
    const sending = { url, headers: { accept: "application/json" } };
    const { status, text } = await this.#exchange(
      url,
      (signal) => fetchSameOrigin(this.#fetch, { ...sending, signal }),
      signal,
    );
    if (status >= 500) throw new SignInError(`Cannot read ${url.href}: the status is ${status}; try again later`);
    const json = status === 200 ? parseJson(text) : undefined;
    return isObject(json) ? json : undefined;
  }

  /**
   * Returns a `fetch` function for requests that contain secrets. The function throws instead of following redirects.
   */
  toFetch(signal: AbortSignal): (url: string, init: RequestInit) => Promise<Response> {
    return async (url, init) => {
      const target = this.readUrl(url, "the address");
      const { status, headers, text } = await this.#exchange(
        target,
        (signal) => send(this.#fetch, target, { ...init, redirect: "manual", signal }),
        signal,
      );
      // Browsers hide the status of a redirect, so that it is 0.
      if (status !== 0 && (status < 300 || status > 399)) {
        const response = toOAuthResponse({ status, headers, text });
        if (response.status < 400) return response;
        // Hide secrets in an error response, because an authorization server may repeat the request in the response,
        // and error messages contain the response's text.
        return new Response(hideSecrets(text, listSecrets(init)), response);
      }
      throw new RedirectError(
        `Cannot follow the redirect${
          status ? ` (${status})` : ""
        } of ${target.href}: the request contains secrets, which must not be sent to another URL`,
      );
    };
  }

  async #exchange(
    url: URL,
    send: (signal: AbortSignal) => Promise<Response>,
    signal: AbortSignal,
  ): Promise<TextResponse> {
    const late = new AbortController();
    const toError = () => new SignInError(`Cannot read ${url.href}: the response is longer than ${MAX_BYTES} bytes`);
    const onTimeout = () => {
      const state = `Cannot reach ${url.href}: no response within ${TIMEOUT_MS / 1000} s; try again later`;
      late.abort(new SignInError(state));
      throw late.signal.reason;
    };
    const limits = { maxBytes: MAX_BYTES, toError, ms: TIMEOUT_MS, onTimeout, signal };
    return await readText(send(AbortSignal.any([signal, late.signal])), limits);
  }
}
