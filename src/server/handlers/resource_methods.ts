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
  type Method,
  revealTo,
  type Runner,
  toDefinitions,
  toMethod,
} from "../visibility/feature.ts";
import type { Allow } from "../call/context.ts";
import { createList } from "../visibility/pagination.ts";
import type { SubscriptionHooks } from "../visibility/subscribers.ts";
import { attempt } from "./attempt.ts";
import { type Callable, runChecked } from "./callable.ts";
import type { ToolPage } from "./provider.ts";
import { listSources, type Source, type SourcePage } from "./source_list.ts";

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
  readonly kind: "fixed" | "template" | "provider";
  /** Names of the template's variables. */
  readonly variables: readonly string[];
  /** Returns the variables for a template, otherwise the URI. Returns `undefined` if the URI does not match. */
  readonly match: (uri: string) => unknown;
  /** Converts and checks the variables that `match` returned. */
  readonly convert?: (matched: unknown) => Promise<Checked>;
  readonly hooks?: SubscriptionHooks;
  /** Cache scope of the contents. */
  readonly scope: "public" | "private";
  readonly ttlMs?: number;
  /** Lists one page of about `size` resources. */
  readonly list?: (call: Call, ctx: undefined, cursor: string | undefined, size: number) => Promise<SourcePage>;
  /** Milliseconds after which a list of several sources goes without this one. */
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
    const hooks = joinHooks(patterns);
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
      const revealed = revealTo(call, all[0], { core, refusal });
      return revealed instanceof Promise ? revealed.then((found) => toRunner(found, uri)) : toRunner(revealed, uri);
    }

    /** Returns a runner that reads from the first provider which has the resource, among those that the caller may use. */
    async function findShown(all: readonly Found[], call: Call, refusal: () => McpError): Promise<Runner> {
      const shown: Found[] = [];
      for (const found of all) if (await isAllowed(found.allow, call, core)) shown.push(found);
      if (!shown.length) throw refusal();
      const runners = shown.map((found) => toRunner(found, String(call.params.uri)));
      const { chainRunners } = await lazyProviderChain.load();
      const isRestricted = all.some(({ allow, definition: { scopes } }) => allow || scopes);
      return chainRunners(runners, { core, isRestricted });
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
        "resources/list": listResources(fixed, all, core),
        "resources/templates/list": toMethod(createList("resourceTemplates", templates, core), {
          list: "resourceTemplates",
        }),
        "resources/read": { subject: "uri", asks: true, find },
      },
      isVisible(uri, call) {
        const all = locateAll(uri);
        if (all.length < 2) return isShown(all[0], call, core);
        return Promise.all(all.map((found) => isShown(found, call, core))).then((shown) => shown.includes(true));
      },
      hooksOf(uri) {
        const [first, ...others] = locateAll(uri);
        return others.length ? hooks.get(first.definition.key) : first?.definition.hooks;
      },
    };
  },
};

/** Loaded on demand, because few servers have several providers of one scheme. */
const lazyProviderChain = /* @__PURE__ */ new LazyModule(() => import("./provider_chain.ts"));

/** Whether a caller may be notified of changes of a resource. */
function isShown(found: Found | undefined, call: Call, core: FeatureParts): boolean | Promise<boolean> {
  const { allow, definition: { scopes } = {} } = found ?? {};
  // `isAllowed` reports the errors of `satisfies`.
  if (scopes && !isAllowed(() => isGranted(core, call.link, scopes), call, core)) return false;
  return isAllowed(allow, call, core);
}

/** Returns the hooks of all providers of a scheme as one object, by scheme. */
function joinHooks(patterns: readonly Definition[]): ReadonlyMap<string, SubscriptionHooks> {
  const all = Map.groupBy(patterns.filter(({ kind, hooks }) => kind === "provider" && hooks), ({ key }) => key);
  return new Map([...all].map(([key, providers]) => {
    const call = (name: keyof SubscriptionHooks): SubscriptionHooks["subscribe"] => async (uri, server) => {
      const results = await Promise.allSettled(providers.map(async ({ hooks }) => await hooks?.[name]?.(uri, server)));
      const failed = results.find((result) => result.status === "rejected");
      if (failed) throw failed.reason;
    };
    return [key, { subscribe: call("subscribe"), unsubscribe: call("unsubscribe") }];
  }));
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

/** Lists fixed resources first, and then the resources of templates and providers. */
function listResources(fixed: readonly Definition[], all: readonly Definition[], core: FeatureParts): Method {
  const sources = all.flatMap(({ key, id = key, allow, list, listMs, mapError }) => {
    if (!list) return [];
    const listPage: Source["list"] = (call, { cursor, size }) => list(call, undefined, cursor, size);
    return { key: id, subject: key, allow, mapError, listMs, list: listPage };
  });
  return listSources("resources", { fixed, sources }, core);
}
