/**
 * Compares what a server lists with what somebody has reviewed. Nothing else is listed or used.
 */
import { INTERNALS } from "../core/internals.ts";
import { checkOptions } from "../core/known_options.ts";
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { toPrintable } from "../core/kit/printable.ts";
import { INVALID_PARAMS, McpError, ToolError } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import { matchesTemplate } from "../core/protocol/uri_template.ts";
import { findServer, isSame, type Kind, KINDS, LISTS, type Locked, readList, toDigest, toPages } from "./lock_file.ts";
import type { ClientMiddleware, ClientRequest } from "./request_middleware.ts";
import { toShown } from "./shown.ts";

/** Options of {@linkcode lock}. */
export interface LockOptions {
  /** The server's key in the file. Defaults to the only server of the file. */
  readonly server?: string;
  /**
   * Called with a text for the operator if the server lists something that nobody has reviewed. Models must not read the
   * text, because it says how to accept the change. Defaults to `console.warn`.
   */
  readonly onWarning?: (text: string) => void;
}

/**
 * Returns middleware that hides what has changed since `mcp lock` recorded it in a file: tools, prompts, resources,
 * templates, pages of tools, and the instructions. Entries that are not in the file are hidden too. A call of a
 * hidden entry fails. The file is a path, or the parsed content of the file. Use a lock of its own for each server.
 *
 * ```ts
 * import { type Client, connect, lock } from "@x/mcp/client";
 *
 * export function open(): Promise<Client> {
 *   return connect("https://mcp.example.com/mcp", { use: [lock("mcp.lock.json", { server: "mcp.example.com" })] });
 * }
 * ```
 *
 * @throws {TypeError} if the file cannot be read, or has no such server.
 */
export function lock(file: string | URL | Params, options: LockOptions = {}): ClientMiddleware {
  checkOptions("make a lock", options, { names: { server: "text", onWarning: "function" } });
  const { server, onWarning = (text: string) => console.warn(toPrintable(text)) } = options;
  return new ServerLock(...findServer(file, server), onWarning).middleware;
}

/** Tells the locks in a list of middleware of a notification of their connection. */
export function notifyLocks(use: readonly ClientMiddleware[] = [], { method }: { readonly method: string }): void {
  if (/\/list_changed$/.test(method)) { for (const each of use) Object(each)[INTERNALS]?.(); }
}

/** Maximum age of a list in milliseconds. After this time, a call lists again, because not every server announces changes. */
const FRESH_MS = 60_000;
/** The revision before the first session. Only revisions with sessions leave out members of entries. */
const NO_SESSION = "2026-07-28";
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

const CHANGED = "it is new, or it has changed since it was reviewed";
/** Only operators read how to accept a change. */
const REMEDY = "compare it with mcp check --locked, and accept it with mcp lock";

/** Whether each entry of a list is the same as the locked one, by name. */
type States = ReadonlyMap<unknown, boolean>;
type Next = (request?: ClientRequest) => Promise<Result>;
/** Sends a request of the lock itself. */
type Ask = (method: string, params: Params) => Promise<Result>;

/** The name or URI that a request uses, and the lists that can have the entry. */
type Subject = readonly [key: unknown, ...kinds: readonly Kind[]];

/** Compares everything that a server lists on one connection with the lock file. */
export class ServerLock {
  readonly middleware: ClientMiddleware = Object.assign(this.#run.bind(this), { [INTERNALS]: this.#forget.bind(this) });
  readonly #name: string;
  readonly #locked: Locked;
  readonly #onWarning: (text: string) => void;
  /** The digest of each page that a reviewed tool names, by URI. Empty if nobody has reviewed the page. */
  readonly #pages: ReadonlyMap<unknown, unknown>;
  /** The complete lists. */
  readonly #lists = new Map<Kind, { readonly states: States; readonly until: number }>();
  /** The digests of hidden entries, by kind and name, so that each is reported once. */
  readonly #hidden = new BoundedMap<string, string>({ full: "evict", max: 1000 });
  /** Number of times that a list may have changed. */
  #changes = 0;
  #revision = NO_SESSION;

  constructor(name: string, locked: Locked, onWarning: (text: string) => void) {
    this.#name = name;
    this.#locked = locked;
    this.#onWarning = onWarning;
    this.#pages = toPages(locked);
  }

  /** Throws an error for the model if the entry was hidden when it was last listed. `shown` is its name for the model. */
  refuse(kind: Kind, name: string, shown: string): void {
    if (this.#hidden.has(`${LISTS[kind].word} ${name}`)) throw new ToolError(toRefusal(shown).message);
  }

  async #run(request: ClientRequest, next: Next): Promise<Result> {
    const { method, params } = request;
    const kind = KINDS.find((each) => LISTS[each].method === method);
    if (kind) return await this.#filter(kind, params, next);
    if (method === "initialize" || method === "server/discover") return await this.#begin(method, next);
    const page = method === "resources/read" ? this.#pages.get(params.uri) : undefined;
    const subject = findSubject(request);
    const ask: Ask = (method, page) => next({ ...request, method, params: { ...page, _meta: params._meta } });
    if (subject) await this.#check(subject, ask, { isKnown: page !== undefined });
    const result = await next();
    if (page === undefined || page === await toDigest(result.contents)) return result;
    await this.#report(`page ${params.uri}`, result.contents);
    throw toRefusal(params.uri);
  }

  #forget(): void {
    this.#changes++;
    this.#lists.clear();
  }

  /** Returns the result of a handshake or a discovery with reviewed texts. */
  async #begin(method: string, next: Next): Promise<Result> {
    this.#forget();
    const { serverInfo, _meta, ...result } = await next();
    this.#revision = method === "initialize" ? String(result.protocolVersion) : NO_SESSION;
    const { instructions, ...info } = this.#locked.server;
    const isKnown = result.instructions === undefined || result.instructions === instructions;
    if (!isKnown) await this.#report("the instruction text", result.instructions);
    const toInfo = ({ version }: Params) => ({ ...info, version });
    const withInfo = (meta: Params) =>
      SERVER_INFO in meta ? { ...meta, [SERVER_INFO]: toInfo(Object(meta[SERVER_INFO])) } : meta;
    return {
      ...result,
      instructions: isKnown ? result.instructions : undefined,
      ...serverInfo !== undefined && { serverInfo: toInfo(Object(serverInfo)) },
      ..._meta !== undefined && { _meta: withInfo(Object(_meta)) },
    };
  }

  /** Returns a page of a list with only the entries that are the same as the locked ones. */
  async #filter(kind: Kind, { cursor }: Params, next: Next): Promise<Result> {
    const changes = this.#changes;
    const result = await next();
    this.#lists.delete(kind);
    const states = await this.#compare(kind, result);
    const isWhole = cursor === undefined && !result.nextCursor && changes === this.#changes;
    if (isWhole) this.#lists.set(kind, { states, until: performance.now() + FRESH_MS });
    const kept = toItems(result[kind]).filter((item) => states.get(item[LISTS[kind].key]));
    return kind in result ? { ...result, [kind]: kept } : result;
  }

  async #compare(kind: Kind, result: Result): Promise<States> {
    const { key, word } = LISTS[kind];
    const states = new Map<unknown, boolean>();
    for (const item of toItems(result[kind])) {
      const name = item[key];
      if (typeof name !== "string") continue;
      // An entry that is nested too deeply cannot be compared.
      const isLocked = await isSame(this.#locked[kind], name, item, this.#revision).catch(() => false);
      if (!isLocked) await this.#report(`${word} ${name}`, item);
      // Of several entries with one name, it is not known which one a call uses.
      states.set(name, isLocked && states.get(name) !== false);
    }
    return states;
  }

  /**
   * Returns the states of a complete list, which can be a known list unless `isForced`. A list that has changed meanwhile is
   * read again, at most `tries` times.
   */
  async #list(kind: Kind, ask: Ask, { isForced = true, tries = 3 }): Promise<States> {
    const known = this.#lists.get(kind);
    if (known && !isForced && performance.now() < known.until) return known.states;
    const changes = this.#changes;
    const all = new Map<unknown, boolean>();
    for await (const page of readList(kind, ask)) {
      for (const [name, state] of await this.#compare(kind, page)) all.set(name, state && all.get(name) !== false);
    }
    if (changes !== this.#changes) return tries ? await this.#list(kind, ask, { tries: tries - 1 }) : all;
    this.#lists.set(kind, { states: all, until: performance.now() + FRESH_MS });
    return all;
  }

  /**
   * Throws unless the server lists the subject, unchanged since it was locked. A page that the lock file names (`isKnown`)
   * need not be listed, because its contents are compared.
   */
  async #check([key, ...kinds]: Subject, ask: Ask, { isKnown }: { readonly isKnown: boolean }): Promise<void> {
    let state: boolean | undefined;
    for (const isForced of [false, true]) {
      state = undefined;
      for (const kind of kinds) {
        const states = await this.#list(kind, ask, { isForced });
        const matches = ([template, isLocked]: readonly [unknown, boolean]) =>
          isLocked && typeof key === "string" && matchesTemplate(String(template), key);
        state ??= states.get(key) ?? (kind === "resourceTemplates" && [...states].some(matches) || undefined);
      }
      if (state ?? isKnown) return;
    }
    if (state === false) throw toRefusal(key);
    throw new McpError(INVALID_PARAMS, `Cannot use ${toShown(key)}: the server does not list it; list again`);
  }

  /** Reports each state of a hidden entry once. */
  async #report(place: string, value: unknown): Promise<void> {
    const digest = await toDigest(value).catch(() => "nested too deeply");
    const what = `${toShown(place)} of ${this.#name}`;
    if (this.#hidden.get(place) !== digest) this.#onWarning(`Cannot use ${what}: ${CHANGED}; ${REMEDY}`);
    this.#hidden.set(place, digest);
  }
}

function toItems(list: unknown): readonly Params[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

/** The text is for callers, such as models, so it does not say how to accept a change. */
function toRefusal(name: unknown): McpError {
  return new McpError(INVALID_PARAMS, `Cannot use ${toShown(name)}: ${CHANGED}; ask the operator`);
}

function findSubject({ method, params: { name, uri, ref } }: ClientRequest): Subject | undefined {
  const given: Params = Object(ref);
  if (method === "tools/call") return [name, "tools"];
  if (method === "prompts/get") return [name, "prompts"];
  if (method === "resources/read") return [uri, "resources", "resourceTemplates"];
  if (method !== "completion/complete") return;
  return given.type === "ref/prompt" ? [given.name, "prompts"] : [given.uri, "resourceTemplates", "resources"];
}
