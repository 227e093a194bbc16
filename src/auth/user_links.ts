/**
 * Links to web pages that only the caller who was asked to open them can use.
 *
 * @see specification/2026-07-28/client/elicitation (URL Mode)
 * @module
 */
import type { Context } from "../core/context.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { Sealer } from "../core/sealer.ts";
import { requirePrincipal } from "./principal.ts";

/** Options of {@linkcode userLinks}. */
export interface UserLinksOptions {
  /**
   * Secret of 32 or more characters that the server and the pages share, or several with the newest first. Defaults to a
   * random one, for pages of the same process.
   */
  readonly secret?: string | readonly string[];
  /** Time for which a link can be used, in milliseconds. Defaults to 600,000. */
  readonly ttlMs?: number;
}

const OPTIONS: KnownOptions<keyof UserLinksOptions> = {
  names: { secret: true, ttlMs: true },
  hints: { secrets: "secret", ttl: "ttlMs", expiresIn: "ttlMs" },
};

/** A link for an elicitation. */
export interface UserLinkOptions {
  /** Reason why the user should open the page. */
  readonly message: string;
  /** URL of the page. The link adds the query parameter `state`. */
  readonly url: string;
  /** A JSON value for the page. The client cannot read it. */
  readonly data?: unknown;
}

const LINK: KnownOptions<keyof UserLinkOptions> = { names: { message: true, url: true, data: true } };

/** Makes and opens links of users. */
export interface UserLinks {
  /**
   * Asks the user to open a page, like `ctx.elicitUrl`. The link is bound to the caller.
   *
   * @throws {McpError} with code -31401 if the caller is not authenticated.
   */
  elicit(
    ctx: Pick<Context, "principal" | "once" | "elicitUrl">,
    key: string,
    options: UserLinkOptions,
  ): ReturnType<Context["elicitUrl"]>;
  /**
   * Opens a link at the page. `principalId` is the id of the user who has signed in **there**, and never one from the
   * link. Returns `undefined` if the link was changed, has expired, or was made for another user.
   */
  open(url: string, principalId: string): Promise<{ readonly data: unknown } | undefined>;
}

/** The sealed contents. */
interface Contents {
  readonly principal: string;
  readonly data: unknown;
  readonly expires: number;
}

const PURPOSE = "userLink";
const PARAMETER = "state";

/**
 * Makes links for URL elicitations that are bound to the caller. A stranger who gets a user to open a link of his own
 * cannot collect what the user enters there: the page refuses a link of somebody else.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { userLinks } from "@x/mcp/auth";
 *
 * const links = userLinks();
 * const connect = tool({
 *   name: "connect",
 *   async run(_input, ctx) {
 *     const url = "https://notes.example.com/connect";
 *     const { action } = await links.elicit(ctx, "connect", { message: "Connect your notes", url });
 *     return action === "accept" ? "Finish on the page." : "Not connected.";
 *   },
 * });
 * // At the page, after the user has signed in: await links.open(request.url, id)
 * ```
 *
 * @throws {TypeError} if the secret is too short, or if `ttlMs` is negative or not finite.
 */
export function userLinks(options: UserLinksOptions = {}): UserLinks {
  checkOptions("use userLinks()", options, OPTIONS);
  const { secret, ttlMs = 600_000 } = options;
  // JSON would seal any other number as `null`, and the link would never open.
  if (!(Number.isFinite(ttlMs) && ttlMs >= 0)) {
    throw new TypeError(`Cannot make user links: ttlMs is ${ttlMs}; it must be a number of milliseconds, 0 or more`);
  }
  const sealer = new Sealer({ secret, realm: "mcp user links" });
  return {
    async elicit(ctx, key, options) {
      checkOptions(`ask for a visit to a page`, options, LINK);
      const { message, url, data = null } = options;
      const { id: principal } = requirePrincipal(ctx);
      // A handler that runs again must ask the same question, and each sealed text is new.
      const link = await ctx.once(`link of ${key}`, async () => {
        const contents: Contents = { principal, data, expires: Date.now() + ttlMs };
        const page = new URL(url);
        page.searchParams.set(PARAMETER, await sealer.seal(PURPOSE, contents));
        return page.href;
      });
      return await ctx.elicitUrl(key, { message, url: link });
    },
    async open(url, principalId) {
      const state = new URL(url).searchParams.get(PARAMETER);
      // Only this module seals values for this purpose.
      const contents = (state === null ? undefined : await sealer.open(PURPOSE, state)) as Contents | undefined;
      if (!contents || contents.expires <= Date.now() || contents.principal !== principalId) return;
      return { data: contents.data };
    },
  };
}
