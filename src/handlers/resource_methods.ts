/**
 * The methods that list and read resources.
 *
 * @see specification/2026-07-28/server/resources
 * @module
 */
import { INVALID_PARAMS, McpError } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { ResourceLink } from "../protocol/types.ts";
import type { Call } from "../core/call.ts";
import type { Core } from "../core/core.ts";
import type { Feature, Handler, Method } from "../core/handler.ts";
import { badCursor, createList, type Entry, readCursor, toCursor } from "../core/page.ts";
import { attempt } from "./attempt.ts";

/** A resource as it stands on a list. Only `uri` and `name` must be said; `size` is in bytes. */
export type ResourceEntry = Omit<ResourceLink, "type">;

/** A page of a provider's list. */
export interface ResourcePage {
  /** At most some hundreds. */
  readonly resources: readonly ResourceEntry[];
  /** Where the next page begins, in the provider's own terms; without it, this page is the last. */
  readonly nextCursor?: string;
}

/** A resource as the registry sees it: its types are forgotten. */
export interface Definition extends Entry {
  readonly kind: "fixed" | "template" | "provider";
  /** Names of a template's variables. */
  readonly variables: readonly string[];
  /** What `invoke` is given for a URI; `undefined` if the URI is not one of this template or provider. */
  readonly match: (uri: string) => unknown;
  /** Reads; throws if there is nothing to be read. */
  readonly invoke: (call: Call, uri: string, matched: unknown) => Result | Promise<Result>;
  /** Who may keep what was read, and for how many milliseconds. */
  readonly scope: "public" | "private";
  readonly ttlMs?: number;
  /** A page of what is listed behind the fixed resources, of about this size. */
  readonly list?: (cursor: string | undefined, call: Call, size: number) => Promise<ResourcePage>;
}

/** The feature that all resources belong to. */
export const resources: Feature = {
  name: "resources",
  compile(handlers, core) {
    // The registry hands every feature its own handlers back.
    const all = (handlers as readonly (Handler & { definition: Definition })[]).map(({ definition }) => definition);
    const pick = (wanted: Definition["kind"]) => all.filter(({ kind }) => kind === wanted);
    const fixed = pick("fixed");
    const templates = pick("template");
    const patterns = [...templates, ...pick("provider")];
    const byUri = new Map(fixed.map((definition) => [definition.key, definition]));

    async function read(call: Call): Promise<Result> {
      const { uri } = call.params;
      if (typeof uri !== "string") throw new McpError(INVALID_PARAMS, "Cannot read the resource: uri is not a string");
      let matched: unknown = uri;
      const definition = byUri.get(uri) ?? patterns.find(({ match }) => (matched = match(uri)) !== undefined);
      if (!definition || definition.allow && !(await definition.allow(call))) throw toNotFound(uri);
      const { invoke, ttlMs = core.ttlMs, scope } = definition;
      const result = await attempt({ core, call, subject: uri }, () => invoke(call, uri, matched));
      call.cache = { ttlMs, scope };
      return result;
    }

    return {
      capabilities: { resources: { listChanged: true, subscribe: true } },
      methods: {
        "resources/list": listResources(fixed, all, core),
        "resources/templates/list": { stable: true, run: createList("resourceTemplates", templates, core) },
        "resources/read": { subject: "uri", asks: true, run: read },
      },
    };
  },
};

/** The error for a resource that does not exist, or not for this caller. */
export function toNotFound(uri: string): McpError {
  return new McpError(INVALID_PARAMS, "Resource not found", { uri });
}

// What templates and providers list follows the fixed resources, on the same page while there is room. The cursor to
// it begins with a line break, which no URI holds, and names the one that is next; a second line is its own cursor.
function listResources(fixed: readonly Definition[], all: readonly Definition[], core: Core): Method {
  const listFixed = createList("resources", fixed, core);
  const sources = all.flatMap(({ key, allow, list }) => list ? { key, allow, list } : []);
  if (!sources.length) return { stable: true, run: listFixed };

  async function run(call: Call): Promise<Result> {
    const { cursor } = call.params;
    const { page: size } = core.limits;
    const text = readCursor("resources", cursor);
    const [, key, ...rest] = text?.startsWith("\n") ? text.split("\n") : [];
    let place = sources.findIndex((source) => source.key === key);
    let own = rest.length ? rest.join("\n") : undefined;
    let items: readonly unknown[] = [];
    if (key === undefined) {
      const page = await listFixed(call);
      // All pages of a list have the same scope, and what is listed here may depend on who asks.
      call.cache = { ttlMs: core.ttlMs, scope: "private" };
      if (page.nextCursor !== undefined) return page;
      if (Array.isArray(page.resources)) items = page.resources;
      place = 0;
    } else if (place < 0) throw badCursor(cursor);
    call.cache = { ttlMs: core.ttlMs, scope: "private" };
    for (const { key, allow, list } of sources.slice(place)) {
      if (allow && !(await allow(call))) continue;
      const toPage = (own = "") => ({ resources: items, nextCursor: toCursor("resources", `\n${key}${own}`) });
      if (items.length >= size) return toPage();
      const page = await attempt({ core, call, subject: key }, () => list(own, call, size));
      items = items.concat(page.resources);
      if (page.nextCursor !== undefined) return toPage(`\n${page.nextCursor}`);
      own = undefined;
    }
    return { resources: items };
  }

  return { run };
}
