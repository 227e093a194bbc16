/**
 * Selects the era of each message. Loads the code of an era when its first message arrives, so that unused code does
 * not delay startup.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 */
import type { Incoming } from "../../core/protocol/jsonrpc.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import type { Engine, Era } from "../engine/era.ts";
import type { Link, Reply } from "../call/link.ts";
import { META_VERSION, VERSION } from "./modern/meta_keys.ts";
import { type Revision, REVISIONS } from "./revisions.ts";

export interface SelectiveEra extends Era {
  /** Whether a message belongs to this era. */
  claims(message: Incoming, link: Link): boolean;
  /** Whether a request without a JSON-RPC message, such as GET or DELETE, belongs to this era. */
  claimsLink(link: Link): boolean;
}

const METHOD_NOT_ALLOWED: Reply = { status: 405, headers: { allow: "POST" } };

/** Creates the legacy era, which serves only `revisions`. */
export type LoadOlder = (engine: Engine, revisions: readonly Revision[]) => Promise<Era>;

/** Never loads the code of an era to which none of these revisions belongs. */
export function createEras(engine: Engine, revisions: readonly Revision[], loadOlder: LoadOlder): Era {
  const older = revisions.filter((each) => each !== VERSION);
  const first = older.length < revisions.length ? modernEra(engine, revisions) : undefined;
  const second = older.length ? new LazySessionEra(() => loadOlder(engine, older)) : undefined;
  const era = first && second ? chooseEra(first, second) : first ?? second;
  if (!era) throw new RangeError("Cannot create a server without a revision"); // Unreachable, because `readRevisions` rejects an empty list.
  if (revisions.length === REVISIONS.length) return era;
  const narrow = async () => (await import("./narrow_era.ts")).narrowEra(engine, era, revisions);
  return era.attach ? new LazySessionEra(narrow) : new LazyEra(narrow);
}

/** The second era serves the messages that the first era does not claim. */
function chooseEra(first: SelectiveEra, second: Era): Era {
  // Reject GET and DELETE requests of the first era, because that era has neither standalone streams nor sessions.
  const forward = (method: "attach" | "detach"): Era["attach"] => (link) =>
    first.claimsLink(link) ? METHOD_NOT_ALLOWED : second[method]?.(link) ?? METHOD_NOT_ALLOWED;
  return {
    accept: (message, link) => (first.claims(message, link) ? first : second).accept(message, link),
    attach: forward("attach"),
    detach: forward("detach"),
    async load() {
      await first.load?.();
      await second.load?.();
    },
    evictIdle: () => second.evictIdle?.(),
  };
}

export class LazyEra implements Era {
  readonly #module: LazyModule<Era>;

  /** The first message or stream calls `load`. */
  constructor(load: () => Promise<Era>) {
    this.#module = new LazyModule(load);
  }

  // While the code loads, messages wait. The era then accepts the waiting messages in the order of their arrival.
  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    const { loaded } = this.#module;
    return loaded ? loaded.accept(message, link) : this.#module.load().then((era) => era.accept(message, link));
  }

  async load(): Promise<void> {
    await (await this.#module.load()).load?.();
  }

  evictIdle(): void {
    this.#module.loaded?.evictIdle?.();
  }

  protected open(): Promise<Era> {
    return this.#module.load();
  }
}

export class LazySessionEra extends LazyEra {
  async attach(link: Link): Promise<Reply> {
    return await (await this.open()).attach?.(link) ?? {};
  }

  async detach(link: Link): Promise<Reply> {
    return await (await this.open()).detach?.(link) ?? {};
  }
}

/** Creates the era of revision 2026-07-28. `revisions` are all revisions that the server serves. */
export function modernEra(engine: Engine, revisions: readonly string[] = [VERSION]): SelectiveEra {
  return new LazyModernEra(async () => (await import("./modern/modern.ts")).loadedEra(engine, revisions));
}

class LazyModernEra extends LazyEra implements SelectiveEra {
  /** Claims a message if its metadata or headers name this era, or if its method exists only in this era. */
  claims(message: Incoming, link: Link): boolean {
    if (message.kind === "request" || message.kind === "notification") {
      const meta = message.params?._meta;
      if (typeof meta === "object" && meta !== null && META_VERSION in meta) return true;
      if (message.method === "server/discover") return true;
    }
    return this.claimsLink(link);
  }

  claimsLink({ version }: Link): boolean {
    return typeof version === "string" && !(/^\d{4}-\d\d-\d\d$/.test(version) && version < VERSION);
  }
}
