/**
 * The lock file: what servers listed when somebody reviewed it.
 */
import { parseJson } from "../core/kit/json.ts";
import { sha256 } from "../core/kit/sha256.ts";
import { toCanonicalText } from "../core/protocol/canonical.ts";
import { isRemoteError, METHOD_NOT_FOUND } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import { findProcess } from "../core/runtime.ts";
import { readPages } from "./pagination.ts";
import type { ServerInfo } from "./protocol.ts";

/** The lists of a server, by the member of their pages. */
export const LISTS = {
  tools: { method: "tools/list", key: "name", word: "tool" },
  prompts: { method: "prompts/list", key: "name", word: "prompt" },
  resources: { method: "resources/list", key: "uri", word: "resource" },
  resourceTemplates: { method: "resources/templates/list", key: "uriTemplate", word: "template" },
} as const;

export type Kind = keyof typeof LISTS;

export const KINDS: readonly Kind[] = ["tools", "prompts", "resources", "resourceTemplates"];

/** The sections of the file for a server. */
export const SECTIONS = ["server", ...KINDS, "pages"] as const;

/**
 * The lists and texts of a server. `server` has its instructions, its name, and what else the server says about itself, without the
 * version. The lists have the entry for each name, URI or template, and its digest. `pages` has the digest of each page
 * that a tool names, by URI.
 */
export type Locked = Readonly<Record<typeof SECTIONS[number], Params>>;

export type LockFile = { readonly lockVersion: 1; readonly servers: Readonly<Record<string, Locked>> };

/**
 * Reads a lock file, or checks its parsed content.
 *
 * @throws {TypeError} if the file cannot be read, or was not written by `mcp lock`.
 */
export function readLockFile(source: string | URL | Params): LockFile {
  const isPath = typeof source === "string" || source instanceof URL;
  const refuse = (state: string) => new TypeError(`Cannot use the lock ${isPath ? source : "object"}: ${state}`);
  let text: string | undefined;
  try {
    const read = (path: string | URL) => findProcess().getBuiltinModule("fs").readFileSync(path);
    if (isPath) text = new TextDecoder("utf-8", { fatal: true }).decode(read(source));
  } catch (error) {
    throw refuse(`it cannot be read: ${error instanceof Error ? error.message : error}; write it with mcp lock`);
  }
  const file = text === undefined ? source : parseJson(text);
  if (!isLockFile(file)) throw refuse("it is not a lock file of this version; write it again with mcp lock");
  if (text === undefined || countKeys(text) === countKeys(JSON.stringify(file))) return file;
  throw refuse("an object has the same key twice, so people and programs could read different values; remove one");
}

/** In JSON, only a key is a string before a colon. */
function countKeys(json: string): number {
  return [...json.matchAll(/"(?:[^"\\]|\\.)*"\s*(:?)/g)].filter(([, colon]) => colon).length;
}

function isLockFile(value: unknown): value is LockFile {
  const { lockVersion, servers }: Params = Object(value);
  const isWhole = (server: unknown) => isObject(server) && SECTIONS.every((section) => isObject(server[section]));
  return lockVersion === 1 && isObject(servers) && Object.values(servers).every(isWhole);
}

/**
 * Reads the part of a lock file for a server, and its key. `name` can be left out if the file has one server.
 *
 * @throws {TypeError} if the file cannot be used, or if there is no such server.
 */
export function findServer(source: string | URL | Params, name: string | undefined): readonly [string, Locked] {
  const { servers } = readLockFile(source);
  const names = Object.keys(servers);
  const key = name ?? (names.length === 1 ? names[0] : "");
  if (Object.hasOwn(servers, key)) return [key, servers[key]];
  const state = name === undefined ? `it has ${names.length} servers, and none is named` : `it has no server ${name}`;
  throw new TypeError(`Cannot use the lock: ${state}; name one of its servers: ${names.join(", ")}`);
}

/** Returns the digest of a JSON value. */
export async function toDigest(value: unknown): Promise<string> {
  return `sha256-${await sha256(toText(value))}`;
}

/** Numbers of a forwarded message that keep their digits become numbers, as for other readers of the message. */
function toText(value: unknown): string {
  return toCanonicalText(JSON.parse(JSON.stringify(value ?? null), toComparable));
}

/** Older revisions require objects in place of boolean schemas, with the same meaning. */
const BOOLEAN_SCHEMAS: ReadonlyMap<unknown, unknown> = new Map<unknown, unknown>([[true, {}], [false, { not: {} }]]);

function toComparable(key: string, value: unknown): unknown {
  if (key !== "properties" || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, BOOLEAN_SCHEMAS.get(each) ?? each]));
}

/** Tests whether an entry is the same as the locked one. Older revisions leave out output schemas. */
export async function isSame(locked: Params, name: string, entry: Params, revision: string): Promise<boolean> {
  const { digest, entry: reviewed }: Params = Object(Object.hasOwn(locked, name) && locked[name]);
  const { outputSchema, ...rest }: Params = Object(reviewed);
  const mayLack = revision < "2025-06-18" || revision < "2026" && Object(outputSchema).type !== "object";
  const expected = mayLack && entry.outputSchema === undefined ? rest : reviewed;
  // Reviewers read the entry in the file, so comparing only the digest is not enough.
  return digest === await toDigest(reviewed) && toText(expected) === toText(entry);
}

/** Returns the pages that a tool names under any key, because hosts read different keys, such as `ui.resourceUri`. */
function findPages({ _meta }: Params): readonly string[] {
  const values = Object.values(Object(_meta)).flatMap((value) => [value, ...Object.values(Object(value))]);
  return values.filter((value) => typeof value === "string").filter((text) => /^ui:/i.test(text));
}

/** Returns the digest of each page that a locked tool names, by URI. Empty if nobody has reviewed the page. */
export function toPages({ tools, pages }: Locked): ReadonlyMap<unknown, unknown> {
  const named = Object.values(tools).flatMap((tool) => findPages(Object(Object(tool).entry)));
  return new Map([...named.map((uri) => [uri, ""] as const), ...Object.entries(pages)]);
}

type Send = (method: string, params: Params) => Promise<Result>;

/** Reads all pages of a list. A server that does not know the list has none. */
export function readList(kind: Kind, send: Send): AsyncGenerator<Result> {
  const ignoreUnknown = (error: unknown) => {
    if (!isRemoteError(error) || error.code !== METHOD_NOT_FOUND) throw error;
    return undefined;
  };
  const request = (page: object) => send(LISTS[kind].method, { ...page }).catch(ignoreUnknown);
  return readPages({ what: kind, timeoutMs: Infinity, request });
}

/** Reads what a server lists now. */
export async function readServer({ info, instructions }: Pick<ServerInfo, "info" | "instructions">, send: Send) {
  const { version: _, ...rest } = { ...info };
  const all = new Map<string, Params>([["server", { ...rest, ...instructions !== undefined && { instructions } }]]);
  const pages = new Map<string, string>();
  for (const kind of KINDS) {
    const entries: [string, Params][] = [];
    for await (const { [kind]: items } of readList(kind, send)) {
      for (const entry of Array.isArray(items) ? items.filter(isObject) : []) {
        entries.push([String(entry[LISTS[kind].key]), { digest: await toDigest(entry), entry }]);
        const uris = kind === "tools" ? findPages(entry) : [];
        for (const uri of uris) pages.set(uri, await toDigest((await send("resources/read", { uri })).contents));
      }
    }
    all.set(kind, Object.fromEntries(entries));
  }
  // The cast is safe, because the object has all sections.
  return Object.fromEntries([...all, ["pages", Object.fromEntries(pages)]]) as Locked;
}
