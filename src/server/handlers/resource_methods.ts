/**
 * The methods that list and read resources.
 *
 * @see specification/2026-07-28/server/resources
 */
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { INVALID_PARAMS, McpError } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import type { ResourceLink } from "../../core/protocol/types.ts";
import type { Checked } from "../../core/schema/schema.ts";
import { normalizeUri } from "../../core/protocol/uri_text.ts";
import { isGranted } from "../call/scopes.ts";
import type { Call } from "../call/call.ts";
import {
  type BoundAllow,
  type Feature,
  isAllowed,
  revealTo,
  type Runner,
  toDefinitions,
} from "../visibility/feature.ts";
import type { Allow } from "../call/context.ts";
import type { Serving, SubscriptionHooks } from "../visibility/subscribers.ts";
import { attempt } from "./attempt.ts";
import { type Callable, runChecked } from "./callable.ts";
import { lazyOpenProviders } from "./completion.ts";
import type { ToolPage } from "./provider.ts";
import { type Listing, listSources, type Owns, type Source } from "./source_list.ts";

/** A resource in a list. Only `uri` and `name` are required. `size` is in bytes. */
export type ResourceEntry = Omit<ResourceLink, "type">;

/** A page of resources. */
export interface ResourcePage extends Omit<ToolPage, "tools"> {
  /** The resources of the page. Return at most a few hundred. */
  readonly resources: readonly ResourceEntry[];
}

export interface Definition extends Callable {
  /** Distinguishes a provider from other providers of its scheme. */
  readonly id?: string;
  readonly allow?: BoundAllow;
  /** `open` is a provider without a scheme. */
  readonly kind: "fixed" | "template" | "provider" | "open";
  /** Names of the template's variables. */
  readonly variables: readonly string[];
  /**
   * Returns the variables for a template, otherwise the URI. Returns `undefined` if the URI does not match. A provider
   * without a scheme also serves URIs that do not match.
   */
  readonly match: (uri: string) => unknown;
  /** Converts and checks the variables that `match` returned. */
  readonly convert?: (matched: unknown) => Promise<Checked>;
  readonly hooks?: SubscriptionHooks;
  /** Cache scope of the contents. */
  readonly scope: "public" | "private";
  readonly ttlMs?: number;
  readonly list?: Listing;
  readonly templates?: Listing;
  /** Prefixes of the URIs of a provider without a scheme. */
  readonly uris?: readonly string[];
  readonly owns?: Owns;
  /** Milliseconds after which a list of several sources leaves out this source. */
  readonly listMs?: number;
}

/** Refuses variables that do not match their schema, because such a resource does not exist. */
export function refuseVariables(_problem: string, { params: { uri } }: Call): never {
  throw McpError.resourceNotFound(String(uri));
}

export const resources: Feature = {
  name: "resources",
  compile(handlers, core) {
    const all = toDefinitions<Definition>(handlers);
    const pick = (wanted: Definition["kind"]) => all.filter(({ kind }) => kind === wanted);
    const fixed = pick("fixed");
    const templates = pick("template");
    const patterns = [...templates, ...pick("provider")];
    const open = pick("open");
    const byUri = new Map(fixed.map((definition) => [definition.key, definition]));
    const byNormalUri = new Map(fixed.toReversed().map((definition) => [normalizeUri(definition.key), definition]));

    function locate(uri: string): Found | undefined {
      const fixed = byUri.get(uri) ?? (byUri.size ? byNormalUri.get(normalizeUri(uri)) : undefined);
      if (fixed) return toFound(fixed, uri);
      for (const definition of patterns) {
        const matched = definition.match(uri);
        if (matched !== undefined) return toFound(definition, matched);
      }
    }

    /** Returns what may serve a URI, in order. There are several only if they are providers of one scheme. */
    function locateAll(uri: string): readonly Found[] {
      const first = locate(uri);
      if (!first || first.definition.kind !== "provider") return first ? [first] : [];
      const same = patterns.filter(({ kind, key }) => kind === "provider" && key === first.definition.key);
      return same.length === 1 ? [first] : same.map((definition) => toFound(definition, first.matched));
    }

    /** Returns the providers without a scheme that serve a URI for a caller, in order. */
    async function locateOpen(uri: string, call: Call, isRequest: boolean): Promise<readonly Found[]> {
      const { findOwners } = await lazyOpenProviders.load();
      return (await findOwners(open, { uri, call, core, isRequest })).map((definition) => toFound(definition, uri));
    }

    const toRunner = (found: Found, uri: string): Runner => {
      const { ttlMs = core.ttlMs, scope, scopes, requires, layers } = found.definition;
      const cache = { ttlMs, scope };
      const isRestricted = found.allow !== undefined;
      const run = (call: Call) => read(found, uri, call);
      const runner: Runner = { run, scopes, isRestricted, requires, cache };
      return layers?.apply(runner) ?? runner;
    };

    function find(call: Call): Runner | Promise<Runner> {
      const { uri } = call.params;
      if (typeof uri !== "string") throw new McpError(INVALID_PARAMS, "Cannot read the resource: uri is not a string");
      const all = locateAll(uri);
      const refusal = () => McpError.resourceNotFound(uri);
      if (all.length > 1) return findShown(all, call, refusal);
      if (!all.length && open.length) return findOpen(uri, call, refusal);
      const revealed = revealTo(call, all[0], { core, refusal });
      return revealed instanceof Promise ? revealed.then((found) => toRunner(found, uri)) : toRunner(revealed, uri);
    }

    /** Returns a runner that reads from the first provider which has the resource, among those that the caller may use. */
    async function findShown(all: readonly Found[], call: Call, refusal: () => McpError): Promise<Runner> {
      const shown: Found[] = [];
      for (const found of all) if (await isAllowed(found.allow, call, core)) shown.push(found);
      if (!shown.length) throw refusal();
      return await chain(shown, call, all.some(({ allow, definition: { scopes } }) => allow || scopes));
    }

    /** Another caller may get the URI from another provider, or not at all, because each caller has its own lists. */
    async function findOpen(uri: string, call: Call, refusal: () => McpError): Promise<Runner> {
      const owners = await locateOpen(uri, call, true);
      if (!owners.length) throw refusal();
      return await chain(owners, call, true);
    }

    async function chain(all: readonly Found[], call: Call, isRestricted: boolean): Promise<Runner> {
      const runners = all.map((found) => toRunner(found, String(call.params.uri)));
      const { chainRunners } = await lazyProviderChain.load();
      return chainRunners(runners, { core, isRestricted });
    }

    /** Returns the handlers about whose changes the caller may be notified. */
    function show(all: readonly Found[], call: Call): readonly Serving[] | Promise<readonly Serving[]> {
      const shown = all.map((found) => isShown(found, call, core));
      const pick = (shown: readonly boolean[]) => all.filter((_, at) => shown[at]).map(toServing);
      return shown.every((each) => typeof each === "boolean") ? pick(shown) : Promise.all(shown).then(pick);
    }

    async function read({ definition, matched }: Found, uri: string, call: Call): Promise<Result> {
      const { convert, mapError } = definition;
      return await attempt({ core, call, subject: uri, mapError }, async () => {
        const checked = convert ? await convert(matched) : { value: matched };
        return await runChecked(definition, call, checked, core);
      });
    }

    return {
      capabilities: { resources: { listChanged: core.can.listChanged, subscribe: core.can.subscribe } },
      methods: {
        "resources/list": listSources("resources", {
          fixed,
          sources: toSources(all, { list: "list", isTaken: ({ uri }) => locate(String(uri)) !== undefined }),
        }, core),
        "resources/templates/list": listSources("resourceTemplates", {
          fixed: templates,
          sources: toSources(all, {
            list: "templates",
            isTaken: ({ uriTemplate }) => templates.some(({ key }) => key === uriTemplate),
          }),
        }, core),
        "resources/read": { subject: "uri", asks: true, find },
      },
      hasHooks: all.some(({ hooks }) => hooks),
      servedTo(uri, call) {
        const all = locateAll(uri);
        if (all.length) return show(all, call);
        if (!open.length) return [{}];
        // A change may arrive while a subscription ends, and then no list can be requested for it.
        if (call.ended) return [];
        return locateOpen(uri, call, false).then((owners) => show(owners, call));
      },
    };
  },
};

/** Loaded on demand, because few servers have several providers of one scheme. */
const lazyProviderChain = /* @__PURE__ */ new LazyModule(() => import("./provider_chain.ts"));

/** Whether a caller may be notified of changes of a resource. */
function isShown({ allow, definition: { scopes } }: Found, call: Call, core: FeatureParts): boolean | Promise<boolean> {
  // `isAllowed` reports the errors of `satisfies`.
  if (scopes && !isAllowed(() => isGranted(core, call.link, scopes), call, core)) return false;
  return isAllowed(allow, call, core);
}

interface Found {
  readonly definition: Definition;
  readonly allow?: Allow;
  /** The matched variables or URI, for `invoke`. */
  readonly matched: unknown;
}

// Passes the matched value to `allow`, as its subject.
function toFound(definition: Definition, matched: unknown): Found {
  const { allow } = definition;
  return { definition, allow: allow && ((call) => allow(call, matched)), matched };
}

function toServing({ definition: { kind, key, hooks } }: Found): Serving {
  return { hooks, owner: kind === "open" ? key : undefined };
}

interface SourceOptions {
  readonly list: "list" | "templates";
  /** Whether another handler serves the entry of a provider without a scheme. */
  readonly isTaken: (entry: Readonly<Record<string, unknown>>) => boolean;
}

/** Returns the sources of a list: the templates and providers that have a function for it. */
function toSources(all: readonly Definition[], { list: name, isTaken }: SourceOptions): readonly Source[] {
  return all.flatMap(({ key, id = key, kind, allow, [name]: listing, listMs, mapError }) => {
    if (!listing) return [];
    const member = name === "list" ? "uri" : "uriTemplate";
    const list: Source["list"] = async (call, { cursor, size, before }) => {
      const page = await listing.page(call, undefined, cursor, size);
      const items = await listing.check(call, page.items);
      if (kind !== "open") return { ...page, items };
      const listed = new Set(before.map((entry) => Object(entry)[member]));
      const isForeign = (uri: string) => (all.find(({ owns }) => owns?.(uri, name))?.key ?? key) !== key;
      const isNew = (entry: object) =>
        !isTaken({ ...entry }) && !listed.has(Object(entry)[member]) && !isForeign(Object(entry)[member]);
      return { ...page, items: items.filter(isNew) };
    };
    return { key: id, subject: key, allow, mapError, listMs, list };
  });
}
