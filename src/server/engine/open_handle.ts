/**
 * Opens the handle of a server for one of its parts.
 */
import type { Call } from "../call/call.ts";
import { INTERNALS } from "../../core/internals.ts";
import { sha256 } from "../../core/kit/sha256.ts";
import { attachValue, readAttached, shareAttached } from "./attached.ts";
import type { Context, Principal } from "../call/context.ts";
import { toCall } from "../call/find_call.ts";
import { show } from "../../core/known_options.ts";
import type { HandlerCall } from "../call/handler_call.ts";
import { copyPrincipal, readPrincipal } from "../call/principal.ts";
import type { Engine } from "./era.ts";
import { checkHandler } from "./handler_check.ts";
import { callInternally } from "./internal_call.ts";
import { keepBytes } from "./kept_bytes.ts";
import { toOwnerHash } from "./marked_ids.ts";
import { KnownMarks, toMarkTtl } from "./marking.ts";
import type { OneTimeId, ServerHandle, ServerStores } from "./server_handle.ts";
import type { StorePart, StoreView } from "./store.ts";
import { toNotifier } from "./watching.ts";

export interface HandleOptions {
  /** Distinguishes the keys, sealed texts and attached values of the part from those of other parts. */
  readonly id: string;
  readonly signal: AbortSignal;
  /** The functions that are called after handlers have changed. */
  readonly watchers: Set<() => void>;
  readonly report: (error: unknown) => void;
  /** Whether the part uses `markUsed` for ids that are older than its first call of `markUsed`. */
  readonly marksIds?: boolean;
  /** Key of the part, if it is a resource provider without a scheme. */
  readonly owner?: string;
}

export async function openHandle(
  engine: Engine,
  { id, signal, watchers, report, marksIds, owner }: HandleOptions,
): Promise<ServerHandle> {
  const { core, registry } = engine;
  const { sealer, ticker, shared } = core;
  const { resourceUpdated, listChanged } = toNotifier(engine, owner);
  // Record now since when the store records used ids. Otherwise, ids that were created before the first use would count
  // as used. Do not wait, because a part must start although the store does not respond.
  if (marksIds) shared?.sinceSpent(engine.accounts.find(undefined)).catch(() => {});
  return {
    store: shared && toStores(await shared.openPart(id)),
    seal: (value) => sealer.seal(id, value),
    open: (text) => sealer.open(id, text),
    check: async (ctx, handler) => await checkHandler(toCall(ctx, "check the caller"), handler, engine),
    keep: (ctx, bytes) => keepBytes({ account: toCall(ctx, "count stored bytes").link.account, core }, bytes),
    report,
    attach<P extends Principal>(principal: P, value: unknown) {
      const text: unknown = JSON.stringify(value);
      if (typeof text !== "string") {
        throw new TypeError("Cannot attach a value to a principal: the value is not JSON; use plain data");
      }
      // The cast is safe, because `readPrincipal` copies all members of the principal.
      const read = readPrincipal(principal, "attach()") as P;
      // Use a copy, because all requests with the same API key share one principal object.
      const copy = copyPrincipal(read);
      shareAttached(read, copy);
      attachValue(copy, id, JSON.parse(text));
      return copy;
    },
    attached: ({ principal }) => readAttached(principal, id),
    markUsed: (use) => markUsed(engine, id, use),
    slot: (key, make) => core.state.slot(key, make),
    handlers: {
      has: (kind, key) => !!registry.find(kind, key) || !!registry.compiled(`${kind}s`)?.hasProviders,
      watch: (onChange) => {
        // Use a function of its own, because the same function may be passed twice.
        const watcher = () => onChange();
        watchers.add(watcher);
        return () => void watchers.delete(watcher);
      },
    },
    signal,
    clock: ticker.clock,
    resourceUpdated,
    listChanged,
    call: (request) => callInternally(engine, request),
    [INTERNALS]: core,
  };
}

/** Key of the used ids in the memory of a server without a store. */
const USED = {};

/** Maximum lifetime of an id that can be used once, in milliseconds: one day. */
const MAX_ID_MS = 86_400_000;

/** Milliseconds for which a list of used ids is stored: the longest time for which one of its ids is remembered. */
const LIST_MS = toMarkTtl(MAX_ID_MS);

/**
 * Milliseconds by which another clock, which has created an id, may be behind the server's clock. Ids that were created
 * earlier than the store's first record may have been used before the store lost its data.
 */
const BEHIND_MS = 5000;

/**
 * Milliseconds for which a used id is remembered after it has expired, because the clocks of instances differ. Not as long
 * as {@linkcode toMarkTtl}, because each request of a caller may use an id.
 */
const EXPIRED_MS = 300_000;

async function markUsed(
  { core: { shared, state, ticker: { clock } }, accounts }: Engine,
  part: string,
  use: OneTimeId,
): Promise<"new" | "used" | "too-old" | "unknown"> {
  checkId(use);
  const { id, principal, key, at: createdAt, ttlMs } = use;
  // Each part has its own marks. Otherwise, a part that marks many ids would advance the time before which all ids of
  // other parts count as used.
  const { client, former } = await toOwnerHash(JSON.stringify([part, principal]));
  const at = createdAt + BEHIND_MS;
  const digest = await sha256(id);
  const mark = {
    client,
    key: key === undefined ? undefined : shorten(await sha256(key)),
    at,
    id: shorten(digest),
    ttlMs: ttlMs + EXPIRED_MS,
  };
  const options = { ttlMs: LIST_MS, isDated: true, former: { client: former, at, id: digest } };
  const marking = shared
    // `markUsed` rejects if the principal has used up its share of the store.
    ? await shared.markUsed(accounts.find(`principal ${principal}`), mark, options).catch(() => {})
    : state.slot(USED, () => new KnownMarks(clock, LIST_MS)).mark(mark);
  if (!marking) return "unknown";
  return marking.found === undefined ? "new" : marking.found === "marked" ? "used" : "too-old";
}

/** Shortens a digest to 132 bits, because a list contains hundreds of digests and is written as a whole. */
function shorten(digest: string): string {
  return digest.slice(0, 22);
}

/** Throws if a member is missing or invalid. An id without a time would be lost from the list of used ids. */
function checkId({ id, principal, key = id, at, ttlMs }: OneTimeId): void {
  const refuse = (name: string, value: unknown, rule: string) =>
    new TypeError(`Cannot mark an id as used: ${name} is ${show(value)}; use ${rule}`);
  for (const [name, value] of Object.entries({ id, principal, key })) {
    if (typeof value !== "string" || !value) throw refuse(name, value, "a non-empty string");
  }
  // `isFinite` does not convert its argument, so that an empty list is no time.
  if (!Number.isFinite(at) || at < 0) throw refuse("at", at, "milliseconds since 1970");
  if (!Number.isFinite(ttlMs) || ttlMs <= 0 || ttlMs > MAX_ID_MS) {
    throw refuse("ttlMs", ttlMs, `a number above 0, and at most ${MAX_ID_MS}`);
  }
}

/** Reports the error, unless it is the error for a caller that may not call the handler. */
export async function mayCall(ctx: Context, handler: HandlerCall, engine: Engine): Promise<boolean> {
  const call = toCall(ctx, "check the subscriber");
  try {
    await checkHandler(call, handler, engine);
    return true;
  } catch (error) {
    engine.scheduler.toError(error, call);
    return false;
  }
}

// Returns the same view for each use of a call, because a view refuses only its first operation.
function toStores(part: StorePart): ServerStores {
  const views = new WeakMap<Call, StoreView>();
  return {
    own: part.own,
    by(ctx) {
      const call = toCall(ctx, "use the store");
      const view = views.get(call) ?? part.by(call.link.account);
      views.set(call, view);
      return view;
    },
  };
}
