/**
 * Keeps large results behind links to resources, which clients read in pages.
 *
 * @module
 */
import { McpError } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Content } from "../protocol/types.ts";
import type { Account, Holding, Pot } from "../core/capacity/account.ts";
import type { Call } from "../core/call/call.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";
import type { Handler } from "../core/visibility/feature.ts";
import type { LimitedHandler } from "../core/visibility/quota.ts";
import { INTERNALS } from "../core/call/internals.ts";
import type { Sweep } from "../core/capacity/timers.ts";
import { type Definition, resources } from "../handlers/resource_methods.ts";
import { cutText } from "./text.ts";

/** Options of kept results. */
interface KeeperOptions {
  readonly resultBytes: number;
  readonly keepMs?: number;
  readonly keepBytes?: number;
}

/** One kept result. */
interface Kept {
  readonly pages: readonly Page[];
  /** The caller that may read it. */
  readonly principal?: string;
  /** Its places among the results of this tool, and in memory. */
  readonly held: readonly Holding[];
  /** Time until which it is kept, in milliseconds of the monotonic clock. */
  readonly ends: number;
}

/** A page: a text, or the data of a media block. */
interface Page {
  readonly text?: string;
  readonly blob?: string;
  readonly mimeType: string;
}

/** The kept results of one server. */
interface Shelf {
  /** The oldest first. */
  readonly results: Map<string, Kept>;
  /** Drops results whose time is over. It does not keep the process alive. */
  readonly sweep: Sweep;
}

/** Keeps the large results of one tool. */
export class Keeper {
  /** The resource that serves the pages. It is in no list. */
  readonly handler: Handler;
  readonly #shelves = new WeakMap<FeatureParts, Shelf>();
  readonly #start: string;
  readonly #pageBytes: number;
  readonly #keepMs: number;
  readonly #keepBytes: number;

  /** Creates the resource of a tool. Callers need what they need for the tool. */
  constructor({ key, allow, scopes }: LimitedHandler, options: KeeperOptions) {
    const { resultBytes, keepMs = 600_000, keepBytes = 16 * 1024 * 1024 } = options;
    this.#start = `result://${key}/`;
    // Room for the URI, the link to the next page and the structure around the text.
    this.#pageBytes = resultBytes - 512;
    this.#keepMs = keepMs;
    this.#keepBytes = keepBytes;
    const definition: Definition = {
      kind: "provider",
      key: this.#start,
      variables: [],
      match: (uri) => uri.startsWith(this.#start) ? uri : undefined,
      invoke: (call, _ctx, uri, _matched, core) => this.#read(uri, call, core),
      allow,
      scopes,
      scope: "private",
      wire: () => ({}),
    };
    const name = `Large results of ${key}`;
    this.handler = { name, allow, [INTERNALS]: { feature: resources, key: this.#start, definition } };
  }

  /** Keeps content blocks, and returns the result that links to them. Returns `undefined` if there is no room. */
  keep(
    blocks: readonly Content[],
    { size, call, core }: { readonly size: number; readonly call: Call; readonly core: FeatureParts },
  ): Result | undefined {
    const shelf = this.#open(core);
    const pages = blocks.flatMap((block) => this.#toPages(block));
    // Two bytes per character.
    const bytes = pages.reduce((sum, { text = "", blob = "" }) => sum + 2 * (text.length + blob.length) + 100, 200);
    const { account, principal } = call.link;
    const id = crypto.randomUUID();
    const drop = () => this.#drop(shelf, id);
    // First, because a result that memory has no room for must not drop those of other clients.
    const charge = account.keep(bytes, drop);
    const place = charge && this.#toPot(account).keep(account, bytes, drop);
    if (!place) return void charge?.end();
    const ends = core.ticker.clock.now() + this.#keepMs;
    core.ticker.schedule(shelf.sweep, this.#keepMs);
    shelf.results.set(id, { pages, principal: principal?.id, held: [charge, place], ends });
    const uri = `${this.#start}${id}/1`;
    const minutes = Math.max(1, Math.round(this.#keepMs / 60_000));
    const note = `The result has ${size} bytes, which is too much for one answer. Read the resource ${uri}: it has ` +
      `${pages.length} pages, and each names the next. It is kept for ${minutes} min.`;
    const link = {
      type: "resource_link",
      uri,
      name: `Page 1 of ${pages.length}`,
      mimeType: pages[0]?.mimeType,
    } as const;
    return { content: [{ type: "text", text: note }, link] };
  }

  #open(core: FeatureParts): Shelf {
    const known = this.#shelves.get(core);
    if (known) return known;
    const shelf: Shelf = {
      results: new Map(),
      sweep: (now) => {
        for (const [id, { ends }] of shelf.results) {
          if (ends > now) return ends - now;
          this.#drop(shelf, id);
        }
      },
    };
    this.#shelves.set(core, shelf);
    return shelf;
  }

  // All tenants share it.
  #toPot(account: Account): Pot {
    return account.pot({ name: "handler.keepBytes", of: this.#start, total: this.#keepBytes, isCache: true });
  }

  #drop(shelf: Shelf, id: string): boolean {
    const kept = shelf.results.get(id);
    shelf.results.delete(id);
    for (const held of kept?.held ?? []) held.end();
    return !!kept;
  }

  // A result of another caller does not exist.
  #read(uri: string, call: Call, core: FeatureParts): Result {
    const [id, number = "1"] = uri.slice(this.#start.length).split("/");
    const kept = this.#shelves.get(core)?.results.get(id);
    const at = Number(number);
    const page = kept?.pages[at - 1];
    if (!page || kept?.principal !== call.link.principal?.id) throw McpError.resourceNotFound(uri);
    const next = `${this.#start}${id}/${at + 1}`;
    const note = `[Page ${at} of ${kept.pages.length}. Next page: ${next}]`;
    const rest = at < kept.pages.length ? [{ uri: next, mimeType: "text/plain", text: note }] : [];
    return { contents: [{ uri, ...page }, ...rest] };
  }

  #toPages(block: Content): Page[] {
    if (block.type === "image" || block.type === "audio") return [{ blob: block.data, mimeType: block.mimeType }];
    if (block.type === "resource" && "blob" in block.resource) {
      const { blob, mimeType = "application/octet-stream" } = block.resource;
      return [{ blob, mimeType }];
    }
    const text = block.type === "text" ? block.text : JSON.stringify(block);
    return toPieces(text, this.#pageBytes).map((text) => ({ text, mimeType: "text/plain" }));
  }
}

/** Splits a text into pieces, between lines if they are not too long. */
function toPieces(text: string, max: number): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    // No character takes less than a byte.
    let piece = cutText(text.slice(at, at + max), max);
    const line = piece.lastIndexOf("\n") + 1;
    if (at + piece.length < text.length && line > piece.length / 2) piece = piece.slice(0, line);
    if (!piece) break;
    pieces.push(piece);
    at += piece.length;
  }
  return pieces;
}
