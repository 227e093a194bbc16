/**
 * The grants of users to clients: one record in the store for each sign-in, with digests of its code and tokens.
 *
 * @see RFC 6749, section 10.4 (Refresh Tokens)
 */
import { toBase64Url } from "../../../core/kit/base64.ts";
import { hmac } from "../../../core/kit/hmac.ts";
import { sha256 } from "../../../core/kit/sha256.ts";
import type { StoredEntry, StoreView } from "../../../server/engine/store.ts";
import { CHANGED, update } from "../../../server/engine/update.ts";
import type { ProviderTokens } from "./provider.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Lifetime of a code. A grant whose code is not redeemed ends a little later. */
const CODE_MS = 60_000;
const ACCESS_MS = HOUR_MS;
/** Time without a refresh after which a grant ends. */
const IDLE_MS = 30 * DAY_MS;
const GRANT_MS = 180 * DAY_MS;
/** Time for which a client can repeat a refresh whose response was lost. */
const REPEAT_MS = 60_000;
/** Number of access tokens of a grant that are valid at the same time. */
const MOST_ACCESS = 4;
/** Number of grants of a user, because each one uses the store for a month. */
const MOST_GRANTS = 64;

export type TokenKind = "code" | "access" | "refresh";

/** A sealed code or token. */
export interface OpenedToken {
  readonly grant: string;
  readonly secret: string;
  readonly until: number;
}

interface Digested {
  readonly digest: string;
  readonly until: number;
}

/** The facts that bind a code to the request of its client. */
export interface CodeBinding {
  readonly challenge: string;
  readonly redirectUri: string;
}

export interface Grant {
  /** Id of the user, unique among the users of the provider. */
  readonly subject: string;
  readonly scopes: readonly string[];
  readonly client: string;
  readonly tokens: ProviderTokens;
  /** Key of the HMAC that makes the successor of a refresh token. */
  readonly key: string;
  readonly createdAt: number;
  /** Time of the latest sign-in or refresh. */
  readonly usedAt: number;
  readonly code: Digested & CodeBinding & { readonly isSpent?: boolean };
  readonly access: readonly (Digested & { readonly scopes: readonly string[] })[];
  readonly refresh?: Digested & {
    readonly scopes: readonly string[];
    /** The refresh token before this one. */
    readonly spent?: { readonly digest: string; readonly at: number; readonly scope: string };
  };
  /** Time until which an instance renews the tokens of the provider, in milliseconds since 1970. */
  readonly renewingUntil?: number;
}

/** The texts that a client gets. */
export interface Issued {
  readonly access: string;
  readonly refresh: string;
  readonly scopes: readonly string[];
  readonly expiresInMs: number;
}

export type Refused = "unknown" | "reused" | "scope";

export interface GrantsParts {
  readonly store: StoreView;
  readonly seal: (value: unknown) => Promise<string>;
  readonly open: (text: string) => Promise<unknown>;
  readonly now: () => number;
  /** Returns digests of a text that only this server can compute: with each of its secrets, the newest first. */
  readonly digest: (text: string) => Promise<readonly string[]>;
  /** Revokes tokens at the provider. `hasOthers` is whether the user has other sign-ins. Never rejects. */
  readonly revoke: (tokens: ProviderTokens, hasOthers: boolean) => Promise<void>;
}

export class Grants {
  readonly #parts: GrantsParts;

  constructor(parts: GrantsParts) {
    this.#parts = parts;
  }

  /**
   * Creates a grant whose code the client must redeem. If the user has too many grants, ends the least recently used
   * grant.
   */
  async create(
    fields: Pick<Grant, "subject" | "scopes" | "client" | "tokens"> & { readonly binding: CodeBinding },
  ): Promise<string> {
    const { binding, ...facts } = fields;
    const now = this.#parts.now();
    const owners = await this.#toOwners(facts.subject);
    await this.#makeRoom(owners);
    const id = `${owners[0]}-${toRandom(16)}`;
    const code = await this.#make("code", id, toRandom(32), now + CODE_MS);
    const grant: Grant = {
      ...facts,
      key: toRandom(32),
      createdAt: now,
      usedAt: now,
      code: { ...binding, digest: code.digest, until: now + CODE_MS },
      access: [],
    };
    await this.#parts.store.set(toKey(id), JSON.stringify(grant), { version: null, ttlMs: 2 * CODE_MS });
    return code.text;
  }

  async #makeRoom(owners: readonly string[]): Promise<void> {
    const entries = await this.#list(owners, 2 * MOST_GRANTS);
    const used = entries.map(({ key, value }) => ({ key, usedAt: readGrant(value).usedAt }));
    const oldest = used.toSorted((one, other) => one.usedAt - other.usedAt);
    for (const { key } of oldest.slice(0, Math.max(0, entries.length + 1 - MOST_GRANTS))) await this.end(toId(key));
  }

  /** Lists grants of a user. */
  async #list(owners: readonly string[], limit: number): Promise<readonly StoredEntry[]> {
    const lists = owners.map((owner) => this.#parts.store.list(toKey(`${owner}-`), { limit }));
    return (await Promise.all(lists)).flat();
  }

  /**
   * Returns the possible starts of the ids of a user's grants. The keys of a store are readable, and should not state who
   * has signed in.
   */
  async #toOwners(subject: string): Promise<readonly string[]> {
    return (await this.#parts.digest(`owner ${subject}`)).map((digest) => digest.slice(0, 22));
  }

  /** Opens a code or token. Does not read the store, so that guesses cost it nothing. */
  async open(kind: TokenKind, text: string): Promise<OpenedToken | undefined> {
    const opened = await this.#parts.open(text);
    if (!Array.isArray(opened) || opened[0] !== kind) return;
    const [, grant, secret, until] = opened;
    return until > this.#parts.now() ? { grant, secret, until } : undefined;
  }

  /** Opens a token of either kind. */
  async openToken(text: string): Promise<OpenedToken | undefined> {
    return await this.open("refresh", text) ?? await this.open("access", text);
  }

  async find(id: string): Promise<Grant | undefined> {
    return (await this.#read(id))?.grant;
  }

  /** Returns the scopes of an access token, or `undefined` if its grant has ended. */
  async check({ grant: id, secret }: OpenedToken): Promise<{ grant: Grant; scopes: readonly string[] } | undefined> {
    const grant = await this.find(id);
    const digest = await sha256(secret);
    const token = grant?.access.find((each) => each.digest === digest);
    return grant && token && token.until > this.#parts.now() ? { grant, scopes: token.scopes } : undefined;
  }

  /** `isFor` checks the client, its redirect URI and its verifier, before the code is spent. */
  async redeem(
    { grant: id, secret }: OpenedToken,
    isFor: (grant: Grant) => Promise<boolean>,
  ): Promise<Issued | Refused> {
    const digest = await sha256(secret);
    const outcome: { refused: Refused } = { refused: "unknown" };
    const issued = await this.#issue(id, toRandom(32), toRandom(32));
    const changed = await this.update(id, async (grant) => {
      outcome.refused = "unknown";
      if (grant.code.digest !== digest || !await isFor(grant)) return;
      if (grant.code.isSpent) {
        outcome.refused = "reused";
        return;
      }
      return { ...grant, ...issued.toFields(grant, grant.scopes), code: { ...grant.code, isSpent: true } };
    });
    if (changed) return issued.toIssued(changed.scopes);
    if (outcome.refused === "reused") await this.end(id);
    return outcome.refused;
  }

  /** Returns the grant of a refresh token, and whether the client repeats a request that was just answered. */
  async examine(
    { grant: id, secret }: OpenedToken,
    { client, scope }: { readonly client: string; readonly scope: string },
  ): Promise<{ readonly grant: Grant; readonly isRepeated: boolean } | Refused> {
    const grant = await this.find(id);
    if (!grant || grant.client !== client || !grant.refresh) return "unknown";
    const digest = await sha256(secret);
    if (grant.refresh.digest === digest) {
      const known = new Set(grant.refresh.scopes);
      return scope.split(" ").every((each) => !each || known.has(each)) ? { grant, isRepeated: false } : "scope";
    }
    const { spent } = grant.refresh;
    const isRepeated = spent?.digest === digest && spent.scope === scope && this.#parts.now() - spent.at <= REPEAT_MS;
    if (isRepeated) return { grant, isRepeated };
    await this.end(id);
    return "reused";
  }

  /**
   * Replaces a refresh token. A client that repeats the request gets the same tokens, because they are computed from the
   * spent token.
   */
  async refresh(
    token: OpenedToken,
    { client, scope }: { readonly client: string; readonly scope: string },
  ): Promise<Issued | Refused> {
    const { grant: id, secret } = token;
    return await update("refresh a sign-in", async () => {
      const found = await this.examine(token, { client, scope });
      if (typeof found === "string") return found;
      const { grant, isRepeated } = found;
      const issued = await this.#issue(id, await hmac(grant.key, `access ${secret}`), await hmac(grant.key, secret));
      const { scopes = [] } = grant.refresh ?? {};
      const chosen = scope ? scopes.filter((each) => scope.split(" ").includes(each)) : scopes;
      if (isRepeated) return issued.toIssued(chosen);
      const digest = await sha256(secret);
      const changed = await this.update(id, (current) => {
        if (current.refresh?.digest !== digest) return;
        const { refresh, ...fields } = issued.toFields(current, chosen);
        const spent = { digest, at: this.#parts.now(), scope };
        return { ...current, ...fields, refresh: { ...refresh, scopes: current.refresh.scopes, spent } };
      });
      return changed ? issued.toIssued(chosen) : CHANGED;
    });
  }

  /**
   * Replaces a grant with the result of `change`, which may run several times. Returns `undefined` if there is no grant, or
   * if `change` returns `undefined`.
   */
  async update(
    id: string,
    change: (grant: Grant) => Grant | undefined | Promise<Grant | undefined>,
  ): Promise<Grant | undefined> {
    return await update("change a sign-in", async () => {
      const found = await this.#read(id);
      const changed = found && await change(found.grant);
      if (!changed) return;
      const now = this.#parts.now();
      const left = Math.min(changed.usedAt + IDLE_MS, changed.createdAt + GRANT_MS) - now;
      const ttlMs = changed.refresh ? Math.max(1, left) : 2 * CODE_MS;
      const version = await this.#parts.store.set(toKey(id), JSON.stringify(changed), {
        version: found.version,
        ttlMs,
      });
      return version === undefined ? CHANGED : changed;
    });
  }

  /** Deletes a grant. Returns the grant. */
  async drop(id: string): Promise<Grant | undefined> {
    const grant = await this.find(id);
    await this.#parts.store.delete(toKey(id));
    return grant;
  }

  /** Ends a grant, and revokes its tokens at the provider. */
  async end(id: string): Promise<void> {
    const grant = await this.drop(id);
    if (!grant) return;
    const others = await this.#list(await this.#toOwners(grant.subject), 1);
    await this.#parts.revoke(grant.tokens, others.length > 0);
  }

  /** Ends all grants of a user. */
  async endAll(subject: string): Promise<void> {
    const owners = await this.#toOwners(subject);
    const dropped: (Grant | undefined)[] = [];
    let entries;
    do {
      entries = await this.#list(owners, 2 * MOST_GRANTS);
      for (const { key } of entries) dropped.push(await this.drop(toId(key)));
    } while (entries.length >= 2 * MOST_GRANTS);
    // Revoked last, because the provider may not respond.
    for (const grant of dropped) if (grant) await this.#parts.revoke(grant.tokens, false);
  }

  async #read(id: string): Promise<{ readonly grant: Grant; readonly version: string } | undefined> {
    const found = await this.#parts.store.get(toKey(id));
    return found && { grant: readGrant(found.value), version: found.version };
  }

  async #make(kind: TokenKind, grant: string, secret: string, until: number) {
    return { text: await this.#parts.seal([kind, grant, secret, until]), digest: await sha256(secret), until };
  }

  async #issue(id: string, accessSecret: string, refreshSecret: string) {
    const now = this.#parts.now();
    const [access, refresh] = await Promise.all([
      this.#make("access", id, accessSecret, now + ACCESS_MS),
      this.#make("refresh", id, refreshSecret, now + IDLE_MS),
    ]);
    return {
      toFields: ({ access: known }: Grant, scopes: readonly string[]) => ({
        usedAt: now,
        access: [
          ...known.filter(({ until }) => until > now).slice(1 - MOST_ACCESS),
          { digest: access.digest, until: access.until, scopes },
        ],
        refresh: { digest: refresh.digest, until: refresh.until, scopes },
      }),
      toIssued: (scopes: readonly string[]): Issued => ({
        access: access.text,
        refresh: refresh.text,
        scopes,
        expiresInMs: ACCESS_MS,
      }),
    };
  }
}

function readGrant(value: string): Grant {
  // The cast is safe, because only this file writes these values, and a shared store seals them.
  return JSON.parse(value) as Grant;
}

const PREFIX = "grant-";

function toKey(id: string): string {
  return PREFIX + id;
}

function toId(key: string): string {
  return key.slice(PREFIX.length);
}

export function toRandom(bytes: number): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(bytes)));
}
