/**
 * Receives redirects from an authorization server on a port of this machine.
 *
 * @see RFC 8252, section 7.3 (Loopback Interface Redirection)
 */
import { deadline } from "../../core/kit/deadline.ts";
import { toState } from "../../core/kit/error_state.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import { startTimer } from "../../core/kit/timer.ts";
import { canListen, openListener } from "../../core/http_listener.ts";
import { SignInError } from "./errors.ts";
import type { SignInAttempt, SignInPage, UserAgent } from "./user_agent.ts";

/** The options of {@linkcode loopback}. */
export interface LoopbackOptions {
  /** Shows the authorization server's page to the user, for example in the default browser. */
  readonly open: (page: SignInPage) => void | Promise<void>;
  /**
   * The port to listen on. By default, each sign-in uses a free port. Set a port if the authorization server also
   * compares the port of the redirect URI.
   */
  readonly port?: number;
}

const OPTIONS: KnownOptions<keyof LoopbackOptions> = { names: { open: "function", port: true } };

const HOST = "127.0.0.1";
/** Maximum number of milliseconds that the stopping server waits for the browser to receive the last page. */
const CLOSE_MS = 2000;

/**
 * Returns a user agent that receives the redirect at `http://127.0.0.1:PORT/callback`, or at a path below `/callback`
 * that differs for each issuer if the client registers itself. The server listens only while a user is signing in.
 *
 * @throws {TypeError} if an option is unknown or invalid, or if the runtime is not Deno, Bun or Node.
 */
export function loopback(options: LoopbackOptions): UserAgent {
  checkOptions("use loopback()", options, OPTIONS);
  const { open, port = 0 } = options;
  if (typeof open !== "function") {
    throw new TypeError("Cannot use loopback(): open is not a function; pass a function that opens a URL");
  }
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TypeError(
      `Cannot use loopback(): port is ${show(port)}; pass a whole number from 1 to 65535, or omit port`,
    );
  }
  if (!canListen) {
    throw new TypeError(
      "Cannot use loopback(): this runtime is not Deno, Bun or Node; pass your own userAgent to signIn()",
    );
  }
  return async ({ path }) => {
    const attempt = new LoopbackAttempt(open, path);
    await attempt.start(port);
    return attempt;
  };
}

class LoopbackAttempt implements SignInAttempt {
  readonly #open: LoopbackOptions["open"];
  readonly #path: string;
  #host = HOST;
  #close?: () => Promise<void>;
  readonly #returned = Promise.withResolvers<string>();
  readonly #outcome = Promise.withResolvers<Response>();
  /** The `state` that the redirect must contain. `undefined` before `visit` is called. */
  #state: string | undefined;
  #hasReturned = false;

  constructor(open: LoopbackOptions["open"], path: string) {
    this.#open = open;
    this.#path = path;
  }

  /** Port 0 chooses a free port. */
  async start(port: number): Promise<void> {
    const server = await listen(port, (request) => this.#respond(request));
    this.#host = `${HOST}:${server.port}`;
    this.#close = server.close;
  }

  get redirectUri(): string {
    return `http://${this.#host}${this.#path}`;
  }

  async visit(page: SignInPage, { signal }: { readonly signal: AbortSignal }): Promise<string> {
    this.#state = new URL(page.url).searchParams.get("state") ?? undefined;
    await this.#open(page);
    return await deadline(this.#returned.promise, { signal });
  }

  async end(error?: unknown): Promise<void> {
    this.#outcome.resolve(error === undefined ? toPage(200, "You are signed in.") : toPage(400, toText(error)));
    await this.#close?.();
  }

  async #respond(request: Request): Promise<Response> {
    const url = new URL(request.url);
    // Reject other Host headers, because a malicious web page can use a host name that resolves to this machine (DNS
    // rebinding).
    if (request.headers.get("host") !== this.#host) {
      return toPage(
        403,
        "This address is not the redirect address of the program. Open the link that the program has printed.",
      );
    }
    if (url.pathname !== this.#path) return toPage(404, "There is nothing at this address.");
    if (request.method !== "GET") return toPage(405, "This address only accepts GET.");
    if (this.#state === undefined || url.searchParams.get("state") !== this.#state) {
      return toPage(400, "The program is waiting for another sign-in. Nothing has changed.");
    }
    if (this.#hasReturned) return toPage(409, "This sign-in was already completed. Nothing has changed.");
    this.#hasReturned = true;
    this.#returned.resolve(`${this.redirectUri}${url.search}`);
    return (await this.#outcome.promise).clone();
  }
}

interface Listening {
  readonly port: number;
  /** Closes the server when all responses have been sent, but at the latest after {@linkcode CLOSE_MS} milliseconds. */
  readonly close: () => Promise<void>;
}

async function listen(port: number, respond: (request: Request) => Promise<Response>): Promise<Listening> {
  try {
    const server = await openListener({ hostname: HOST, port, fetch: respond });
    return { port: server.port, close: () => closeSoon(server.stop(), () => server.close()) };
  } catch (error) {
    const remedy = port ? "choose another port, or omit port" : "allow the program to listen on this machine";
    throw new SignInError(`Cannot listen on ${HOST}:${port}: ${toState(error)}; ${remedy}`);
  }
}

async function closeSoon(closed: Promise<unknown>, force: () => void): Promise<void> {
  const stopTimer = startTimer(CLOSE_MS, force);
  await closed;
  stopTimer();
}

function toText(error: unknown): string {
  return error instanceof SignInError ? error.message : "The sign-in failed. The program shows the reason.";
}

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  connection: "close",
};

function toPage(status: number, text: string): Response {
  const escaped = text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  const title = status === 200 ? "Signed in" : "Not signed in";
  const style = "font: 1.1em system-ui; max-width: 36em; margin: 4em auto; padding: 0 1em; color-scheme: light dark";
  const page = `<!doctype html><html lang="en"><title>${title}</title><body style="${style}"><h1>${title}</h1>` +
    `<p>${escaped}<p>You can close this window.`;
  return new Response(page, { status, headers: HEADERS });
}
