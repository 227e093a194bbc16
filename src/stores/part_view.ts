/**
 * The store of one part of a server, such as a layer or an extension. Seals what the part writes, so that somebody who
 * can write to the store, but does not have the secret, can neither read nor make values, nor move them.
 */
import { show } from "../core/known_options.ts";
import type {
  AppendOptions,
  DeleteOptions,
  Lease,
  ListOptions,
  LogPage,
  ReadOptions,
  SetOptions,
  StoredEntry,
  StoredValue,
  StoreView,
  SubscribeOptions,
  TopicListener,
} from "../server/engine/store.ts";
import type { SealedStore } from "./sealed_store.ts";
import { callListener } from "./subscription.ts";
import { checkText } from "./user_view.ts";

/**
 * The operations of a store for one part of a server. A value or entry that cannot be opened does not exist: somebody has
 * changed or moved it, or an instance with another secret has written it.
 *
 * Keys of values are readable, because the engine lists them by prefix. Names of logs are hashes.
 */
export class PartView implements StoreView {
  readonly #view: SealedStore;
  readonly #prefix: string;

  /** `prefix` is the hash of the part's name, and begins the keys of the part. */
  constructor(view: SealedStore, prefix: string) {
    this.#view = view;
    this.#prefix = prefix;
  }

  get lease(): Lease {
    return this.#view.lease;
  }

  async get(key: string): Promise<StoredValue | undefined> {
    const found = await this.#view.get(this.#toKey(key));
    return isText(found) ? found : undefined;
  }

  async set(key: string, value: string, options: SetOptions): Promise<string | undefined> {
    const own = this.#toKey(key);
    checkText("set", value);
    const written = await this.#view.set(own, value, options);
    if (written !== undefined || options.version !== null) return written;
    // Replace a value that cannot be opened. Otherwise no reader would find a value, and no writer could create one.
    const found = await this.#view.get(own);
    return found && !isText(found)
      ? await this.#view.set(own, value, { ...options, version: found.version })
      : undefined;
  }

  async delete(key: string, options?: DeleteOptions): Promise<boolean> {
    return await this.#view.delete(this.#toKey(key), options?.version);
  }

  // Reads further values instead of values that cannot be opened, because a list with fewer values is the last one.
  async list(prefix: string, { after = "", limit }: ListOptions): Promise<readonly StoredEntry[]> {
    const start = this.#toKey("").length;
    const found: StoredEntry[] = [];
    let last = after && this.#toKey(after);
    while (true) {
      const wanted = limit - found.length;
      const page = await this.#view.list(this.#toKey(prefix), { after: last, limit: wanted });
      found.push(...page.filter(isText).map(({ key, ...value }) => ({ key: fromPartKey(key.slice(start)), ...value })));
      if (page.length < wanted || found.length === limit) return found;
      last = page[page.length - 1].key;
    }
  }

  async append(log: string, value: string, options: AppendOptions): Promise<number> {
    checkText("append", value);
    return await this.#view.append(await this.#toLog(log), value, options);
  }

  // Reads further entries instead of a page of which no entry can be opened, because an empty page is the end of a log.
  async read(log: string, { after, limit }: ReadOptions): Promise<LogPage> {
    const own = await this.#toLog(log);
    let last = after;
    while (true) {
      const page = await this.#view.read(own, { after: last, limit });
      const entries = page.entries.filter(isText);
      const newest = page.entries.at(-1);
      if (entries.length || !newest || newest.id >= page.last) return { ...page, entries };
      last = newest.id;
    }
  }

  async trim(log: string, before: number): Promise<void> {
    await this.#view.trim(await this.#toLog(log), before);
  }

  async publish(topic: string, text: string): Promise<void> {
    checkText("publish", text);
    await this.#view.publish(await this.#toLog(topic), text);
  }

  async subscribe(topic: string, listener: TopicListener, options?: SubscribeOptions): Promise<() => void> {
    const call = (value: unknown, id: number) => {
      if (typeof value === "string") callListener(() => listener(value, id));
    };
    return await this.#view.follow(await this.#toLog(topic), call, options);
  }

  #toKey(key: string): string {
    const own = `${this.#prefix}-${toPartKey(key)}`;
    if (own.length <= KEY_CHARACTERS) return own;
    throw new RangeError(
      `Cannot use the key ${show(key)}: it takes ${own.length} characters in the store, more than ${KEY_CHARACTERS}; ` +
        "use a hash of the key",
    );
  }

  // The separator differs from that of a value, so that no entry of a log can be moved to a value.
  async #toLog(log: string): Promise<string> {
    if (typeof log !== "string") throw new RangeError(`Cannot use the log ${show(log)}: its name is not a string`);
    return `${this.#prefix}_${await this.#view.hash(`log of ${this.#prefix}`, log)}`;
  }
}

/** Maximum length of a key in a store, in characters. */
const KEY_CHARACTERS = 256;

/** Converts text to letters, digits, `-` and `_`. Texts with a common prefix keep a common prefix. */
function toPartKey(key: string): string {
  if (typeof key !== "string") throw new RangeError(`Cannot use the key ${show(key)}: it is not a string`);
  return key.replace(
    /[^A-Za-z0-9-]/g,
    (character) => character === "_" ? "__" : `_${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function fromPartKey(key: string): string {
  return key.replace(
    /_(?:_|([0-9a-f]{4}))/g,
    (_, code?: string) => code === undefined ? "_" : String.fromCharCode(parseInt(code, 16)),
  );
}

/** Tests whether a value could be opened. */
function isText<T extends { readonly value: unknown }>(found: T | undefined): found is T & { readonly value: string } {
  return typeof found?.value === "string";
}
