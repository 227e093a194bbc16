/**
 * Creates links to web pages for URL elicitations. Only the caller to whom the server sent a link can use the link.
 *
 * @see specification/2026-07-28/client/elicitation (URL Mode)
 */
import type { Context } from "../server/call/context.ts";
import { checkOptions, type KnownOptions, show } from "../core/known_options.ts";
import { type Mark, type Marking, toSetName } from "../server/engine/marked_ids.ts";
import { type MarkStore, markStored, readSince, toMarkTtl } from "../server/engine/marking.ts";
import { Sealer } from "../server/call/sealer.ts";
import { type SharedUses, type SingleUse, SpentIds } from "../server/engine/single_use.ts";
import type { Store } from "../server/engine/store.ts";
import { systemClock } from "../core/timers.ts";
import { openVersioned, sealVersioned } from "../server/call/versioned_seal.ts";
import { sha256 } from "../core/kit/sha256.ts";
import { requirePrincipal } from "./principal.ts";

/** Options of {@linkcode elicitationLinks}. */
export interface ElicitationLinksOptions {
  /**
   * Secret of 32 or more characters that the server and the pages share. To rotate the secret, pass a list with the
   * newest secret first. Defaults to a random secret, so that only pages in the same process can open the links.
   */
  readonly secret?: string | readonly string[];
  /**
   * Name of the server that creates the links. Required with `secret`. Because of the name, servers that share a secret
   * cannot open each other's links.
   */
  readonly server?: string;
  /**
   * Store that records which single-use links were opened. Required for single-use links if the pages and the server
   * run in different processes. By default, this record is kept in memory.
   */
  readonly store?: Store;
  /** Lifetime of a link in milliseconds. Defaults to 600,000 (10 minutes). */
  readonly ttlMs?: number;
}

const OPTIONS: KnownOptions<keyof ElicitationLinksOptions> = {
  names: { secret: true, server: true, store: true, ttlMs: true },
  hints: { expiresIn: "ttlMs" },
};

/** The message and the page of a URL elicitation. */
export interface ElicitationLinkOptions {
  /** Text for the user that explains why to open the page. */
  readonly message: string;
  /** URL of the page. The link is this URL with the additional query parameter `state`. */
  readonly url: string;
  /**
   * A JSON value for the page. The link contains the value in encrypted form, so the client cannot read the value.
   * Defaults to `null`.
   */
  readonly data?: unknown;
  /** Whether the link can be opened only once. Defaults to `false`. */
  readonly singleUse?: boolean;
}

const LINK: KnownOptions<keyof ElicitationLinkOptions> = {
  names: { message: true, url: true, data: true, singleUse: "boolean" },
};

/** Creates links that are bound to a user, and opens such links in the code of the page. */
export interface ElicitationLinks {
  /**
   * Asks the user to open a page, like `ctx.elicitUrl`. Only the caller to whom `ctx` belongs can use the link.
   *
   * @throws {McpError} with code -31401 if the caller is not authenticated.
   */
  elicit(
    ctx: Pick<Context, "principal" | "once" | "elicitUrl">,
    key: string,
    options: ElicitationLinkOptions,
  ): ReturnType<Context["elicitUrl"]>;
  /**
   * Returns the data of a link that a user has opened. `url` is the public URL in the user's browser. Behind a proxy,
   * the URL of the incoming request may differ from the public URL. `principalId` is the id of the user who has signed
   * in at the page; never take the id from the link.
   *
   * Returns `undefined` if the link was changed, has expired, was created for another user, page or server, or has
   * `singleUse` and was opened before.
   *
   * @throws {Error} if the store does not report whether a single-use link was opened before.
   */
  open(url: string, principalId: string): Promise<{ readonly data: unknown } | undefined>;
}

interface Contents {
  readonly principal: string;
  /** Origin and path of the page. */
  readonly page: string;
  readonly data: unknown;
  readonly expires: number;
  /** Set if the link can be opened only once. */
  readonly use?: SingleUse;
}

const PURPOSE = "userLink";
const PARAMETER = "state";

/**
 * Creates links for URL elicitations. Each link is bound to the caller, the server, and the origin and path of the
 * page. If an attacker sends their own link to a victim, `open` returns `undefined` for the victim, so the page can
 * refuse the link before the victim enters data.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { elicitationLinks } from "@x/mcp/auth";
 *
 * const links = elicitationLinks();
 * const connect = tool({
 *   name: "connect",
 *   async run(_input, ctx) {
 *     const url = "https://notes.example.com/connect";
 *     const { action } = await links.elicit(ctx, "connect", { message: "Connect your notes", url });
 *     return action === "accept" ? "Finish on the page." : "Not connected.";
 *   },
 * });
 * // At the page, after the user has signed in:
 * // const { search } = new URL(request.url);
 * // await links.open(`https://notes.example.com/connect${search}`, id)
 * ```
 *
 * @throws {TypeError} if the secret is too short, if `secret` is set without `server`, or if `ttlMs` is negative or not
 * finite.
 */
export function elicitationLinks(options: ElicitationLinksOptions = {}): ElicitationLinks {
  checkOptions("use elicitationLinks()", options, OPTIONS);
  const { secret, server, store, ttlMs = 600_000 } = options;
  // Reject `NaN` and `Infinity`, because JSON would seal them as `null`, and the link could never be opened.
  if (!(Number.isFinite(ttlMs) && ttlMs >= 0)) {
    throw new TypeError(
      `Cannot create elicitation links: ttlMs is ${show(ttlMs)}; it must be a finite number of milliseconds, 0 or more`,
    );
  }
  if (
    secret === undefined ? server !== undefined && typeof server !== "string" : typeof server !== "string" || !server
  ) {
    throw new TypeError(
      "Cannot create elicitation links: the name of the server is missing; set `server` to the name of the server that creates the links",
    );
  }
  if (store !== undefined && typeof store?.get !== "function") {
    throw new TypeError("Cannot create elicitation links: the store has no get(); use a store such as memoryStore()");
  }
  const sealer = new Sealer({ secret, realm: JSON.stringify(["mcp user links", server ?? null]) });
  const spent = new SpentIds(systemClock, toMarkTtl(ttlMs));
  const shared = store && new SharedLinks({ store, sealer, ttlMs });
  return {
    async elicit(ctx, key, options) {
      checkOptions(`ask the user to open a page`, options, LINK);
      const { message, url, data = null, singleUse = false } = options;
      const { id: principal } = requirePrincipal(ctx);
      // Keep the link with `ctx.once`, because sealing the data again would return a different link. When the handler
      // runs again, it must send the same elicitation.
      const link = await ctx.once(`link of ${key}`, async () => {
        const page = new URL(url);
        const use = singleUse ? await spent.make(`principal ${principal}`, shared) : undefined;
        const contents: Contents = { principal, page: toPage(page), data, expires: Date.now() + ttlMs, use };
        page.searchParams.set(PARAMETER, await sealVersioned(sealer, PURPOSE, contents));
        return page.href;
      });
      return await ctx.elicitUrl(key, { message, url: link });
    },
    async open(url, principalId) {
      const opened = new URL(url);
      const state = opened.searchParams.get(PARAMETER);
      // The cast to `Contents` is safe, because only this module seals values with `PURPOSE`.
      const contents = (state === null ? undefined : await openVersioned(sealer, PURPOSE, state)) as
        | Contents
        | undefined;
      if (!contents || contents.expires <= Date.now() || contents.principal !== principalId) return;
      if (contents.page !== toPage(opened)) return;
      const outcome = contents.use
        ? await spent.markUsed(contents.use, shared && ((use) => shared.markUsed(use)))
        : "spent";
      return outcome === "spent" ? { data: contents.data } : undefined;
    },
  };
}

function toPage({ origin, pathname }: URL): string {
  return origin + pathname;
}

class SharedLinks implements SharedUses {
  readonly #store: MarkStore;
  readonly #sealer: Sealer;
  readonly #ttlMs: number;
  #since?: number;

  constructor({ store, sealer, ttlMs }: { readonly store: Store; readonly sealer: Sealer; readonly ttlMs: number }) {
    this.#store = {
      async get(key) {
        const found = await store.get(key);
        return found && { value: await openVersioned(sealer, `store ${key}`, found.value), version: found.version };
      },
      set: async (key, value, options) =>
        await store.set(key, await sealVersioned(sealer, `store ${key}`, value), options),
    };
    this.#sealer = sealer;
    this.#ttlMs = ttlMs;
  }

  async since(): Promise<number | undefined> {
    try {
      return this.#since ??= await readSince({ store: this.#store, date: Date.now() }, await this.#hash("since"));
    } catch {
      // The store does not respond. `open` reports the failure if it still does not respond by then.
    }
  }

  /** Rejects if the store fails. */
  async markUsed(use: Mark): Promise<Marking> {
    try {
      const [key, sinceKey] = await Promise.all([this.#hash(toSetName(use)), this.#hash("since")]);
      const place = { store: this.#store, key, sinceKey, ttlMs: toMarkTtl(this.#ttlMs), date: Date.now() };
      return await markStored(use, place);
    } catch (cause) {
      throw new Error(
        "Cannot open the link: the store does not report whether the link was opened before; try again later",
        { cause },
      );
    }
  }

  async #hash(name: string): Promise<string> {
    return await sha256(JSON.stringify([this.#sealer.realm, name]));
  }
}
