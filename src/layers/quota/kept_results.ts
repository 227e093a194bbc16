/**
 * Keeps large results, and replaces them with links to resources that clients read in pages.
 */
import { McpError, toBusy } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Content } from "../../core/protocol/types.ts";
import type { Account, Pot } from "../../server/capacity/account.ts";
import { type Charge, keep } from "../../server/capacity/charges.ts";
import type { Call } from "../../server/call/call.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import type { Handler } from "../../server/visibility/feature.ts";
import type { HandlerInfo } from "../../server/engine/layers.ts";
import { INTERNALS } from "../../core/internals.ts";
import { hashCaller, noteGuards, UNKNOWN_CALLER } from "../../server/call/reads.ts";
import type { SharedValues } from "../../server/call/shared_values.ts";
import { toCore } from "../../server/handlers/bound_layer.ts";
import { type Definition, refuseVariables, resources } from "../../server/handlers/resource_methods.ts";
import { cutText } from "./text.ts";

/** Default of `keepBytes`. */
export const KEEP_BYTES: number = 16 * 1024 * 1024;

interface KeeperOptions {
  readonly resultBytes: number;
  readonly keepMs?: number;
  readonly keepBytes?: number;
}

interface Kept {
  /** The path of the server that keeps the result. A link from one path does not work on another path. */
  readonly core: FeatureParts;
  readonly pages: readonly Page[];
  /** Id of the only caller that may read the result. `undefined` if the caller was not authenticated. */
  readonly principal?: string;
  /** The caller for whom output guards have checked the result, as a hash, if there are output guards. */
  readonly caller?: string;
  /** The bytes that the result takes from the limit of the tool, and from the memory limit of the client. */
  readonly charge: Charge;
  /** Time at which the result expires, in milliseconds of the monotonic clock. */
  readonly ends: number;
}

export interface Page {
  readonly text?: string;
  readonly blob?: string;
  readonly mimeType: string;
}

interface SharedPages {
  readonly v: 1;
  readonly principal?: string;
  readonly caller?: string;
  /** Total number of pages of the result. */
  readonly count: number;
  readonly pages: readonly Page[];
}

/** The kept results of one server, keyed by id. */
type Results = Map<string, Kept>;

export class Keeper {
  /** The resource that serves the pages behind links. Lists do not contain this resource. */
  readonly handler: Handler;
  readonly #start: string;
  readonly #pageBytes: number;
  /** Number of pages per value in the store. */
  readonly #perValue: number;
  readonly #keepMs: number;
  readonly #keepBytes: number;

  /** The resource has the `allow` and `scopes` of the tool. */
  constructor({ name: tool, allow, scopes }: HandlerInfo, options: KeeperOptions) {
    const { resultBytes, keepMs = 600_000, keepBytes = KEEP_BYTES } = options;
    this.#start = `result://${tool}/`;
    // Subtract the space for the URI, the link to the next page and the JSON around the text.
    this.#pageBytes = resultBytes - 512;
    this.#perValue = Math.max(1, Math.floor(VALUE_BYTES / resultBytes));
    this.#keepMs = keepMs;
    this.#keepBytes = keepBytes;
    const definition: Definition = {
      kind: "provider",
      key: this.#start,
      variables: [],
      match: (uri) => uri.startsWith(this.#start) ? uri : undefined,
      refuse: refuseVariables,
      invoke: (call, _ctx, uri, core) => this.#read(String(uri), call, core),
      allow,
      scopes,
      scope: "private",
      wire: () => ({}),
    };
    const name = `Large results of ${tool}`;
    this.handler = { name, allow, [INTERNALS]: { feature: resources, key: this.#start, definition } };
  }

  /**
   * Returns `undefined` if the blocks exceed a limit. `size` is the size of the result in bytes. With a store, the link
   * works on all instances when the promise resolves.
   */
  async keep(blocks: readonly Content[], size: number, call: Call): Promise<Result | undefined> {
    const id = this.makeId();
    const pages = blocks.flatMap((block) => this.#toPages(block));
    if (!await this.keepPages(id, pages, call)) return;
    const uri = `${this.#start}${id}/1`;
    const minutes = Math.max(1, Math.round(this.#keepMs / 60_000));
    // Put a space after the URI, because models and programs may read punctuation as part of the URI.
    const note =
      `The result has ${size} bytes, which is too much for one response. Read the resource ${uri} for page 1 ` +
      `of ${pages.length}. Each page except the last contains the URI of the next page. The server keeps the result ` +
      `for ${minutes} min.`;
    const link = {
      type: "resource_link",
      uri,
      name: `Page 1 of ${pages.length}`,
      mimeType: pages[0]?.mimeType,
    } as const;
    return { content: [{ type: "text", text: note }, link] };
  }

  /**
   * Returns an id for a result. It contains the number of pages per stored value, because another version of the library
   * may use a different number.
   */
  makeId(): string {
    return `${crypto.randomUUID()}-${this.#perValue}`;
  }

  /** Returns whether the pages are kept. With a store, all instances have them when the promise resolves. */
  async keepPages(id: string, pages: readonly Page[], call: Call): Promise<boolean> {
    // Output guards of the tool, or of a resource that the tool has read, may leave something else for another caller.
    const caller = call.guard || call.reads ? await hashCaller(call.principal) : undefined;
    if (caller === UNKNOWN_CALLER) return false;
    // A character takes two bytes in memory.
    const bytes = pages.reduce(
      (sum, { text = "", blob = "" }) => sum + 2 * (text.length + blob.length) + 100,
      ENTRY_BYTES,
    );
    const core = toCore(call);
    const { account, principal } = call.link;
    const results = this.#open(core);
    const drop = () => this.#drop(results, id);
    // Charge the memory limit of the client first. Charging the limit of the tool may evict results of other clients,
    // and must not do so for a result that exceeds the limit of its own client.
    const amounts = [[account.memory, bytes], [this.#toPot(account), bytes]] as const;
    const charge = keep(core, account, amounts, { ttlMs: this.#keepMs, drop });
    if (!charge) return false;
    const ends = core.ticker.clock.now() + this.#keepMs;
    const kept: Kept = { core, pages, principal: principal?.id, caller, charge, ends };
    results.set(id, kept);
    // The handler has run, so the call waits for its turn instead of being refused. Otherwise the client would repeat the
    // call, and the handler would run again.
    const shared = core.shared?.by(account, { mustWait: true });
    if (shared) await shared.queue(id, () => this.#share(results, shared, id, kept));
    return true;
  }

  // Writes the pages to the store. If the store fails, the link works only on this instance.
  async #share(results: Results, shared: SharedValues, id: string, kept: Kept): Promise<void> {
    const { pages, principal, caller } = kept;
    const count = pages.length;
    // Write one value after another, so that a large result takes one operation of the client's share.
    await shared.attempt("set", async () => {
      for (const place of this.#toPlaces(count)) {
        if (!results.has(id)) return;
        const part = pages.slice(place * this.#perValue, (place + 1) * this.#perValue);
        const value: SharedPages = { v: 1, principal, caller, count, pages: part };
        await shared.set(await this.#toKey(shared, id, place), value, { ttlMs: this.#keepMs });
      }
    });
  }

  /** Returns the numbers of the stored values that contain a result with `pages` pages, starting at 0. */
  #toPlaces(pages: number): readonly number[] {
    return Array.from({ length: Math.ceil(pages / this.#perValue) }, (_, place) => place);
  }

  #toKey(shared: SharedValues, id: string, place: number): Promise<string> {
    return shared.hash("kept", JSON.stringify([this.#start, id, place]));
  }

  #open({ state }: FeatureParts): Results {
    // Bound: `handler.keepBytes`.
    return state.slot(this, () => new Map());
  }

  // Returns the limit on the bytes of the tool's kept results. All tenants share this limit.
  #toPot(account: Account): Pot {
    return account.pot({ name: "handler.keepBytes", of: this.#start, total: this.#keepBytes, isCache: true });
  }

  #drop(results: Results, id: string): boolean {
    const kept = results.get(id);
    if (!kept) return false;
    const { core, pages, charge, ends } = kept;
    const shared = core.shared?.by(charge.account, { mustWait: true });
    results.delete(id);
    // Delete an evicted result from the store too. Otherwise a client could fill the store. The result may be evicted
    // while it is being written.
    if (shared && ends > core.ticker.clock.now()) void shared.queue(id, () => this.#remove(shared, id, pages.length));
    return true;
  }

  async #remove(shared: SharedValues, id: string, pages: number): Promise<void> {
    await shared.attempt("delete", async () => {
      for (const place of this.#toPlaces(pages)) await shared.delete(await this.#toKey(shared, id, place));
    });
  }

  // Only the owner of a result can read its pages. For any other caller, the result does not exist.
  async #read(uri: string, call: Call, core: FeatureParts): Promise<Result> {
    const [id, number = "1"] = uri.slice(this.#start.length).split("/");
    const at = Number(number);
    const known = await this.find(id, at, call, core);
    if (!known) throw McpError.resourceNotFound(uri);
    const next = `${this.#start}${id}/${at + 1}`;
    const note = `[Page ${at} of ${known.count}. Next page: ${next}]`;
    const rest = at < known.count ? [{ uri: next, mimeType: "text/plain", text: note }] : [];
    return { contents: [{ uri, ...known.page }, ...rest] };
  }

  /** Finds a page, of which the first has the number 1. Returns `undefined` if there is none for the caller. */
  async find(id: string, at: number, call: Call, core: FeatureParts): Promise<FoundPage | undefined> {
    const found = this.#open(core).get(id);
    const kept = found?.core === core && found.ends > core.ticker.clock.now() ? found : undefined;
    const known: Found | undefined = kept
      ? { ...kept, count: kept.pages.length, page: kept.pages[at - 1] }
      : core.shared && await this.#find(core.shared.by(call.link.account), id, at);
    if (!known?.page || known.principal !== call.link.principal?.id) return;
    if (known.caller !== undefined) {
      if (known.caller !== await hashCaller(call.principal)) return;
      // The stream of this call, and a tool that reads the page, also belong to this caller only.
      await noteGuards(call);
    }
    return { page: known.page, count: known.count };
  }

  /** Finds a page in the store, for a result that another instance keeps. */
  async #find(shared: SharedValues, id: string, at: number): Promise<Found | undefined> {
    const perValue = Number(id.slice(id.lastIndexOf("-") + 1));
    if (!(perValue >= 1 && at >= 1) || id.length > MAX_ID) return;
    const place = Math.floor((at - 1) / perValue);
    const read = await shared.attempt("get", async () => [await shared.get(await this.#toKey(shared, id, place))]);
    if (!read) throw toBusy("read the result: the store does not respond");
    const value = toSharedPages(read[0]?.value);
    return value && { ...value, page: value.pages[at - 1 - place * perValue] };
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

/** Splits a text into pieces of at most `max` bytes. Pieces end after a line break, unless a line is too long. */
function toPieces(text: string, max: number): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    // Each character takes at least one byte, so more than `max` characters cannot fit into a piece.
    let piece = cutText(text.slice(at, at + max), max);
    const line = piece.lastIndexOf("\n") + 1;
    if (at + piece.length < text.length && line > piece.length / 2) piece = piece.slice(0, line);
    if (!piece) break;
    pieces.push(piece);
    at += piece.length;
  }
  return pieces;
}

interface FoundPage {
  readonly page: Page;
  readonly count: number;
}

interface Found extends Omit<SharedPages, "v" | "pages"> {
  readonly page?: Page;
}

/** Bytes that a result needs in addition to its pages, for its entry and its charge. Measured. */
const ENTRY_BYTES = 640;
/** Maximum bytes of pages per value in the store. The sealed value must not exceed the size that stores accept. */
const VALUE_BYTES = 262_144;
/** Maximum length of an id, which is a UUID and a number, in characters. */
const MAX_ID = 48;

function toSharedPages(value: unknown): SharedPages | undefined {
  if (!isObject(value) || value.v !== 1 || typeof value.count !== "number" || !Array.isArray(value.pages)) return;
  return value as unknown as SharedPages; // The cast is safe, because only servers with the secret can seal values.
}
