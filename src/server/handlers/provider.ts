/**
 * Providers: tools and prompts that a function finds when a client asks for them, because they differ by caller or come
 * from elsewhere.
 */
import { isToolError, quote } from "../../core/protocol/errors.ts";
import { ADDED, INTERNALS, LISTED, withInternals } from "../../core/internals.ts";
import type { Meta } from "../../core/protocol/types.ts";
import { checkOptions, type KnownOptions, show, toPlace } from "../../core/known_options.ts";
import type { Typed } from "../../core/typed.ts";
import type { Call } from "../call/call.ts";
import { bindServices, type ContainerHost } from "../call/container.ts";
import type { Allow, Context } from "../call/context.ts";
import type { ServerHandle, StartPart } from "../engine/server_handle.ts";
import type { NoServices, Services, SharedServiceValues } from "../call/service.ts";
import { type UseItem, withLayers } from "../engine/layers.ts";
import {
  bindAllow,
  type BoundAllow,
  type Compiled,
  type Feature,
  type GroupedOptions,
  type Handler,
  isAllowed,
  type Provide,
  type Remake,
  type Runner,
  toDefinitions,
} from "../visibility/feature.ts";
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import type { Entry } from "../visibility/pagination.ts";
import { toName, withAlso } from "../visibility/registry.ts";
import { withHandles } from "../visibility/relayed_handles.ts";
import { attempt } from "./attempt.ts";
import { type CompletionOptions, completions, findCompleter } from "./completion.ts";
import { HANDLER_ELSEWHERE } from "./option_names.ts";
import { startProvider } from "./provider_start.ts";
import { lazySkipped } from "./listed.ts";
import { MAX_NAME, type Skipped } from "./listed_entry.ts";
import { type Prompt, prompts } from "./prompt.ts";
import {
  callList,
  listSources,
  readListMs,
  readPage,
  readStart,
  type Source,
  type SourcePage,
  type SourceRange,
} from "./source_list.ts";
import { type Definition as ToolDefinition, type Tool, tool, tools } from "./tool.ts";

/** Options of a provider of tools. Only `find` is required. */
export interface ToolProviderOptions<S extends Services = NoServices> {
  /**
   * Name of the provider, for messages and for the keys of layers. Required if the server has several providers of one
   * kind. Clients do not see it. Defaults to `provider`.
   */
  readonly name?: string;
  /** Middleware and layers around everything that the provider finds. The first middleware is the outermost. */
  readonly use?: readonly UseItem[];
  /** Services that `list`, `find` and `allow` use, keyed by name. They cannot be services that live for one call. */
  readonly services?: S;
  /**
   * Describes an unexpected error of `list` or `find`. If this function is missing or returns `undefined`, the server's
   * `mapError` describes the error.
   */
  readonly mapError?: MapError;
  /** Labels that everything that the provider finds gets in addition to its own labels. */
  readonly tags?: readonly string[];
  /** Decides whether the provider exists for a caller. For other callers, `list` and `find` are not called. */
  readonly allow?: Allow<SharedServiceValues<S>>;
  /**
   * Starts the provider with its server, with the first request or by `server.ready()`. Can announce changes with
   * `server.listChanged("tools")`. Can return a function that is called when the server closes or the provider is removed.
   * `list` and `find` wait until the provider has started, and get the same handle. If `start` fails, they fail, and the
   * next call starts the provider again. If the server's path has parameters, `start` is called for each concrete path.
   */
  readonly start?: StartPart;
  /**
   * Lists the tools that the caller can call, page by page, or all of them as an array. `cursor` is the `nextCursor` of
   * the previous page, and `undefined` for the first page. The cursor passes through the client, so treat it as untrusted
   * input. Without `list`, clients do not see the tools.
   */
  readonly list?: (
    cursor: string | undefined,
    ctx: Context<SharedServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => readonly Tool[] | ToolPage | Promise<readonly Tool[] | ToolPage>;
  /**
   * Milliseconds after which a list of several sources leaves out this provider. Such a list also leaves it out if `list`
   * throws an error that is not an `McpError`. Clients may then not cache the list, and are notified when the provider is
   * back. By default, the list waits for the provider.
   */
  readonly listMs?: number;
  /**
   * Finds the tool of a name for the caller. Decides about calls, whatever `list` returns. Returns `undefined` if there
   * is no such tool. Called before the call starts, so it cannot send requests to the client.
   */
  readonly find: (
    name: string,
    ctx: Context<SharedServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => Tool | undefined | Promise<Tool | undefined>;
}

/**
 * A page of the tools of a provider. The list for clients never has a longer lifetime or more callers than the server's
 * own options allow.
 */
export interface ToolPage {
  /** At most 1,000 tools. */
  readonly tools: readonly Tool[];
  /** Cursor of the next page, in a format of your choice. Omit the cursor on the last page. */
  readonly nextCursor?: string;
  /** Milliseconds for which clients may cache the list. Defaults to the server's `ttlMs`. */
  readonly ttlMs?: number;
  /** Whether callers may share the list. A list with a provider is always private. */
  readonly cacheScope?: "public" | "private";
  /** Metadata for programs. */
  readonly _meta?: Meta;
}

/** Options of a provider of prompts. Only `find` is required. */
export interface PromptProviderOptions<S extends Services = NoServices>
  extends Omit<ToolProviderOptions<S>, "list" | "find"> {
  /**
   * Lists the prompts that the caller can get, page by page, or all of them as an array. `cursor` is the `nextCursor` of
   * the previous page, and `undefined` for the first page. The cursor passes through the client, so treat it as untrusted
   * input. Without `list`, clients do not see the prompts.
   */
  readonly list?: (
    cursor: string | undefined,
    ctx: Context<SharedServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => readonly Prompt[] | PromptPage | Promise<readonly Prompt[] | PromptPage>;
  /**
   * Finds the prompt of a name for the caller. Decides about calls and completion, whatever `list` returns. Returns
   * `undefined` if there is no such prompt. Called before the call starts, so it cannot send requests to the client.
   */
  readonly find: (
    name: string,
    ctx: Context<SharedServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => Prompt | undefined | Promise<Prompt | undefined>;
}

/** A page of the prompts of a provider. */
export interface PromptPage extends Omit<ToolPage, "tools"> {
  /** At most 1,000 prompts. */
  readonly prompts: readonly Prompt[];
}

interface Kind {
  readonly name: "tool" | "prompt";
  readonly list: "tools" | "prompts";
  readonly method: "tools/call" | "prompts/get";
  readonly feature: Feature;
}

const TOOL: Kind = { name: "tool", list: "tools", method: "tools/call", feature: tools };
const PROMPT: Kind = { name: "prompt", list: "prompts", method: "prompts/get", feature: prompts };

const EACH = "set it on each handler that find returns";

const OPTIONS: KnownOptions<keyof ToolProviderOptions> = {
  names: {
    name: "text",
    use: "functions",
    services: true,
    mapError: "function",
    tags: "texts",
    allow: "function",
    start: "function",
    list: "function",
    listMs: true,
    find: "function",
  },
  hints: { middleware: "use", middlewares: "use", canAccess: "allow", authorize: "allow", get: "find", run: "find" },
  elsewhere: /* @__PURE__ */ Object.assign(
    { scopes: EACH, requires: EACH, input: EACH, title: EACH, description: EACH },
    HANDLER_ELSEWHERE,
  ),
};

/**
 * Creates a provider of tools that differ by caller, or that come from elsewhere, such as a database or another server.
 * The server's own tools take precedence over tools of the same name. If a server has several providers, it calls their
 * `find` functions in order, until a function returns a tool.
 *
 * ```ts
 * import { createServer, tool, toolProvider } from "@x/mcp";
 *
 * const macros = new Map([["greet", "Hello!"]]);
 * const toTool = (name: string, text: string) => tool({ name, run: () => text });
 *
 * const saved = toolProvider({
 *   list: () => [...macros].map(([name, text]) => toTool(name, text)),
 *   find(name) {
 *     const text = macros.get(name);
 *     return text === undefined ? undefined : toTool(name, text);
 *   },
 * });
 * export default createServer({ name: "macros", version: "1.0.0", handlers: [saved] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function toolProvider<S extends Services = NoServices>(
  options: ToolProviderOptions<S>,
):
  & Handler
  & Typed<{ readonly kind: "tool"; readonly name: string; readonly input: unknown; readonly output: unknown }> {
  return makeProvider(options as Form, TOOL); // The cast is safe, because the form has no type parameters.
}

/**
 * Creates a provider of prompts that differ by caller, or that come from elsewhere. The server's own prompts take
 * precedence over prompts of the same name. If a server has several providers, it calls their `find` functions in order,
 * until a function returns a prompt.
 *
 * ```ts
 * import { createServer, prompt, promptProvider } from "@x/mcp";
 *
 * const texts = new Map([["daily", "Summarize what I did today."]]);
 * const toPrompt = (name: string, text: string) => prompt({ name, run: () => text });
 *
 * const saved = promptProvider({
 *   list: () => [...texts].map(([name, text]) => toPrompt(name, text)),
 *   find(name) {
 *     const text = texts.get(name);
 *     return text === undefined ? undefined : toPrompt(name, text);
 *   },
 * });
 * export default createServer({ name: "texts", version: "1.0.0", handlers: [saved] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function promptProvider<S extends Services = NoServices>(
  options: PromptProviderOptions<S>,
):
  & Handler
  & Typed<{ readonly kind: "prompt"; readonly name: string; readonly input: unknown; readonly output: unknown }> {
  return makeProvider(options as Form, PROMPT); // The cast is safe, because the form has no type parameters.
}

interface Form
  extends Omit<ToolProviderOptions, "services" | "allow" | "list" | "find">, Pick<GroupedOptions, typeof ADDED> {
  readonly services?: Services;
  readonly allow?: GroupedOptions["allow"];
  readonly list?: (cursor: string | undefined, ctx: Context<never>, server: ServerHandle | undefined) => unknown;
  readonly find: (name: string, ctx: Context<never>, server: ServerHandle | undefined) => unknown;
}

interface Definition {
  /** Name for messages, such as `tool provider "github"`. */
  readonly place: string;
  readonly kind: Kind;
  readonly key: string;
  readonly allow?: BoundAllow;
  readonly mapError?: MapError;
  readonly listMs?: number;
  /** Text with which all names begin, such as `notes_` in the group `notes`. */
  readonly prefix: string;
  readonly list?: (call: Call, ctx: undefined, cursor: string | undefined) => unknown;
  readonly find: (call: Call, ctx: undefined, name: string) => unknown;
  /** Returns a found handler with the options of the provider and its groups. */
  readonly change: (handler: Handler) => Handler;
  /** Returns the provider without its tags, because rules for a tag apply to each found handler. */
  readonly bare: () => Handler;
}

/** `base` is the name that the author has given, without the names of groups. */
function makeProvider(given: Form, kind: Kind, base?: string): Handler {
  const place = toPlace(`${kind.name} provider`, given);
  checkOptions(`make ${place}`, given, OPTIONS);
  const { name = "provider", start, list, find, mapError, tags, services: wanted } = given;
  const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
  if (!name || /[\r\n]/.test(name)) throw refuse("its name is not a line of text; use a name such as github");
  if (typeof find !== "function") throw refuse("find is not a function; write find: (name, ctx) => …");
  // A tool cannot have such a name.
  const key = `provider ${name}`;
  const services = bindServices(wanted, place);
  // Reads the layers as those of a handler for which they are all possible, so that they start with the server.
  const annotations = { readOnlyHint: true, idempotentHint: true };
  const { layers } = withLayers(given, { kind: kind.name, name: key, annotations, hasOutput: true });
  const allow = bindAllow(given.allow, services);
  const starter = start && startProvider(`${kind.name} provider ${quote(name)}`, start);
  const bind = <First>(run: (first: First, ctx: Context<never>, server: ServerHandle | undefined) => unknown) =>
    starter ? starter.bind(run) : (first: First, ctx: Context<never>) => run(first, ctx, undefined);
  const [findStarted, listStarted] = [bind(find), list && bind(list)];
  const findHandler = (call: Call, ctx: Context<never> = call, name: string) => findStarted(name, ctx);
  const listPage = listStarted &&
    ((call: Call, ctx: Context<never> = call, cursor: string | undefined) => listStarted(cursor, ctx));
  const own = base ?? name;
  const id = `${kind.name} provider ${given.name === undefined ? "without a name" : quote(name)}`;
  const internals = { feature: kind.feature, key, id, services, layers, life: starter?.life };
  const definition: Definition = {
    place,
    kind,
    key,
    allow,
    mapError,
    listMs: readListMs(given.listMs, `make ${place}`),
    prefix: name.slice(0, name.length - own.length),
    list: listPage && (services?.share(listPage) ?? listPage),
    find: services?.share(findHandler) ?? findHandler,
    change: toChange(given, name.slice(0, name.length - own.length)),
    bare: () => ({ name, allow, [INTERNALS]: { ...internals, definition } }),
  };
  const completer: Handler = {
    name,
    allow,
    [INTERNALS]: { feature: completions, key, definition, provide: provideCompletions },
  };
  const also = kind === PROMPT ? [completer] : [];
  const remake: Remake = (change) => makeProvider(change({ ...given, name }), kind, own);
  return withInternals({ name, allow, tags }, { ...internals, definition, also, remake, provide });
}

function toChange({ use = [], tags = [], [ADDED]: add }: Form, prefix: string): Definition["change"] {
  return (handler) => {
    const { [INTERNALS]: internals } = handler;
    const { remake, foreign = true } = internals;
    // Without a change, only mark the handler, because creating it again takes longer.
    if (!prefix && !use.length && !tags.length && !add || !remake) {
      return { ...handler, [INTERNALS]: { ...internals, foreign } };
    }
    return remake((own) => ({
      ...own,
      ...add && { [ADDED]: (added: Handler) => add(own[ADDED]?.(added) ?? added) },
      [LISTED]: { ...own[LISTED], foreign },
      name: prefix + own.name,
      use: [...use, ...own.use ?? []],
      tags: [...tags, ...own.tags ?? []],
    }));
  };
}

/** Maximum number of problems that a provider reports. */
const MAX_PROBLEMS = 20;
/** Maximum number of entries in a page that `list` returns, and of pages that a client can read. */
const MAX_PAGE = 1000;
const MAX_PAGES = 1000;

/** The server whose handlers a provider completes. */
interface Parts {
  readonly core: FeatureParts;
  /** All registered handlers. */
  readonly all: readonly Handler[];
  readonly rule?: Parameters<Provide>[3];
  /** Names of the server's own handlers of the kind. */
  readonly names: ReadonlySet<string>;
}

interface Listing {
  /** The names that are already on the page. */
  readonly names: Set<unknown>;
  readonly call: Call;
}

class ServedProvider implements Source {
  readonly key: string;
  readonly mapError?: MapError;
  readonly allow?: Allow;
  readonly listMs?: number;
  readonly #parts: Parts;
  readonly #definition: Definition;
  /** The groups and proxies that contain the provider. */
  readonly #around: readonly Handler[];
  /** The functions that have returned an entry that is JSON. Most providers list the same handlers each time. */
  readonly #checked = new WeakSet<Entry["wire"]>();
  readonly #problems: Set<string>;
  /** The handlers with the options of the provider, by found handler. */
  readonly #changed = new WeakMap<Handler, Handler>();

  constructor(definition: Definition, parts: Parts) {
    const { key, kind, mapError, bare, listMs } = definition;
    const isSelf = ({ [INTERNALS]: own }: Handler) => own.feature.name === kind.feature.name && own.key === key;
    this.#around = parts.all.filter((each) => each[INTERNALS].also?.some(isSelf));
    this.key = key;
    this.mapError = mapError;
    this.listMs = listMs;
    const handler = bare();
    this.allow = parts.rule?.([handler])?.get(handler)?.allow ?? handler.allow;
    this.#parts = parts;
    this.#definition = definition;
    // Bound: `MAX_PROBLEMS`.
    this.#problems = parts.core.state.slot(definition, () => new Set());
  }

  async find(name: string, call: Call): Promise<Handler | undefined> {
    const { core } = this.#parts;
    const { prefix, place, kind } = this.#definition;
    if (!name.startsWith(prefix) || name.length > MAX_NAME || !await isAllowed(this.allow, call, core)) return;
    return await attempt({ core, call, subject: name, mapError: this.mapError }, async () => {
      const found = await this.#find(call, name);
      if (found === undefined) return;
      const refuse = (state: string) => new TypeError(`Cannot find ${kind.name} ${quote(name)} of ${place}: ${state}`);
      await refuseSkipped(found);
      const handler = this.#serve(found, (state) => refuse(`find returned ${state}`));
      const { key } = handler[INTERNALS];
      if (key !== name) {
        throw refuse(`find returned ${toName(handler)}; return the ${kind.name} of this name, or undefined`);
      }
      for (const each of withAlso(handler)) each[INTERNALS].services?.open(findHost(call));
      return handler;
    });
  }

  /** Returns a tool that fails, if `find` throws a `ToolError`, because the model reads only the results of tools. */
  async #find(call: Call, name: string): Promise<unknown> {
    const { prefix, kind, find } = this.#definition;
    try {
      return await find(call, undefined, name.slice(prefix.length));
    } catch (error) {
      if (kind !== TOOL || !isToolError(error)) throw error;
      return tool.from({ name: name.slice(prefix.length), inputSchema: { type: "object" } }, () => {
        throw error;
      });
    }
  }

  async list(call: Call, { cursor = "", size, before }: SourceRange): Promise<SourcePage> {
    const { place, kind: { list: name }, list } = this.#definition;
    if (!list) return { items: [] };
    // The number of pages precedes the cursor of the provider.
    const [, pages, given] = /^(\d+) (.*)$/s.exec(cursor) ?? [];
    const start = readStart(given);
    const use = { source: this, start, size };
    const listed = await callList(call, use, () => list(call, undefined, start.own));
    const { items, nextCursor, given: page } = readPage(listed, { list: name, start, size, place });
    const refuse = (state: string) => new TypeError(`Cannot list the ${name} of ${place}: ${state}`);
    if (items.length > MAX_PAGE) {
      throw refuse(`list returned a page of ${items.length} ${name}; return at most ${MAX_PAGE}, and a nextCursor`);
    }
    const count = Number(pages ?? 0) + 1;
    if (nextCursor !== undefined && (nextCursor === given || count >= MAX_PAGES)) {
      const state = nextCursor === given
        ? "nextCursor is the cursor of the same page"
        : `there are ${count} pages and a nextCursor`;
      throw refuse(`${state}; omit nextCursor on the last page`);
    }
    const names = new Set<unknown>(before.map((entry) => Object(entry).name));
    const listing: Listing = { names, call };
    const entries: object[] = [];
    const problems: unknown[] = [];
    for (const item of items) {
      try {
        const entry = await this.#toEntry(item, listing);
        if (entry) entries.push(entry);
      } catch (error) {
        problems.push(error);
      }
    }
    if (problems.length) this.#report(problems, call);
    return { items: entries, given: page, nextCursor: nextCursor === undefined ? undefined : `${count} ${nextCursor}` };
  }

  /** Returns an entry for the caller. Adds its name to `names`. Returns `undefined` if the caller does not see it. */
  async #toEntry(item: unknown, { names, call }: Listing): Promise<object | undefined> {
    const { core, names: own } = this.#parts;
    const { place, kind } = this.#definition;
    await refuseSkipped(item);
    const handler = this.#serve(
      item,
      (state) => new TypeError(`Cannot list a ${kind.name} of ${place}: list returned ${state}`),
    );
    const { key, definition } = handler[INTERNALS];
    if (own.has(key) || names.has(key)) return;
    names.add(key);
    for (const each of withAlso(handler)) each[INTERNALS].services?.open(findHost(call));
    const { allow, vary, ...entry } = definition as Entry; // The cast is safe, because the handler has the kind of the provider.
    if (!await isAllowed(allow, call, core)) return;
    const shown = vary ? await vary(call, core) : entry;
    if (!shown) return;
    const wire = shown.wire(core);
    // Fails for an entry that is not JSON, which would make the whole list fail.
    if (!this.#checked.has(shown.wire)) JSON.stringify(wire);
    this.#checked.add(shown.wire);
    return wire;
  }

  /** Returns a found handler with the options of the provider and the rules of the server. */
  #serve(found: unknown, refuse: (state: string) => Error): Handler {
    const { core, all, rule } = this.#parts;
    const { kind, change } = this.#definition;
    const remedy = `return a ${kind.name} of ${kind.name}() or ${kind.name}.from()`;
    if (typeof found !== "object" || !found || !Object.hasOwn(found, INTERNALS)) {
      throw refuse(`${found === null ? "null" : show(found)}; ${remedy}`);
    }
    const handler = found as Handler; // The cast is safe, because only the library's factories create internal state.
    const { feature, provide, key } = handler[INTERNALS];
    if (feature?.name !== kind.feature.name || provide) {
      throw refuse(`${feature ? toName(handler) : "an object"}; ${remedy}`);
    }
    if (key.length > MAX_NAME) throw refuse(`a name of more than ${MAX_NAME} characters`);
    let changed = this.#changed.get(handler);
    if (!changed) {
      changed = change(handler);
      changed[INTERNALS].layers?.verify(all, toName(changed));
      changed[INTERNALS].layers?.report?.(core);
      this.#changed.set(handler, changed);
    }
    const members = withAlso(changed);
    const ruled = rule?.([...this.#around.map((outer) => withMembers(outer, members)), ...members]);
    if (!ruled?.size) return changed;
    const { [INTERNALS]: internals } = ruled.get(changed) ?? changed;
    const also = internals.also?.map((each) => ruled.get(each) ?? each);
    return { ...changed, ...ruled.get(changed), [INTERNALS]: { ...internals, also } };
  }

  /** Reports entries that cannot be listed, once for each reason. */
  #report([first, ...others]: readonly unknown[], call: Call): void {
    const { message } = Object(first);
    if (this.#problems.size >= MAX_PROBLEMS || this.#problems.has(message)) return;
    this.#problems.add(message);
    const more = others.length ? `; other entries that cannot be listed: ${others.length}` : "";
    const { method } = call;
    this.#parts.core.report(new TypeError(message + more, { cause: first }), {
      method,
      subject: this.#definition.place,
    });
  }
}

/** Returns a group or a proxy with other members, so that rules for it apply to them. */
function withMembers(outer: Handler, also: readonly Handler[]): Handler {
  return { ...outer, [INTERNALS]: { ...outer[INTERNALS], also } };
}

/** Throws for a handler that `from` has created, although the entry of the other server cannot be served. */
async function refuseSkipped(found: unknown): Promise<void> {
  const { feature, definition }: Partial<Handler[typeof INTERNALS]> = Object(Object(found)[INTERNALS]);
  if (feature?.name !== "skipped") return;
  const { describeSkipped } = await lazySkipped.load();
  throw new TypeError(describeSkipped(definition as Skipped)); // The cast is safe, because of the feature.
}

/** Returns the host of the endpoint that serves a call. The host of a call from inside a call inherits from it. */
function findHost({ host }: Call): ContainerHost {
  let found: ContainerHost = host;
  while (!Object.hasOwn(found, "isGranted")) found = Object.getPrototypeOf(found);
  return found;
}

/** Splits the handlers of a feature into those of the author and the providers. */
function split(...[handlers, core, all, rule]: Parameters<Provide>) {
  const own = handlers.filter((handler) => !handler[INTERNALS].provide);
  const definitions = toDefinitions<Definition>(handlers.filter((handler) => handler[INTERNALS].provide));
  const [{ kind }] = definitions;
  const isOwn = ({ [INTERNALS]: { feature, provide } }: Handler) => feature.name === kind.feature.name && !provide;
  const names = new Set(all.filter(isOwn).map((handler) => handler[INTERNALS].key));
  const providers = definitions.map((definition) => new ServedProvider(definition, { core, all, rule, names }));
  return { own, kind, names, providers };
}

async function findIn(
  providers: readonly ServedProvider[],
  name: string,
  call: Call,
): Promise<Handler | undefined> {
  for (const provider of providers) {
    const found = await provider.find(name, call);
    if (found) return found;
  }
}

const provide: Provide = (handlers, core, all, rule): Compiled => {
  const { own, kind: { feature, list, method }, names, providers } = split(handlers, core, all, rule);
  const { capabilities, methods } = feature.compile(own, core, all);
  const ofOwn = methods[method];
  const compiled = new WeakMap<Handler, Compiled["methods"][string]>();
  // Synchronous for the server's own handlers, because a call is refused instead of waiting for a slot if its lookup is
  // asynchronous.
  const find = (call: Call): Runner | Promise<Runner> => {
    const { name } = call.params;
    return typeof name !== "string" || names.has(name) ? ofOwn.find(call) : findProvided(name, call);
  };
  const findProvided = async (name: string, call: Call): Promise<Runner> => {
    const found = await findIn(providers, name, call);
    // An unknown name gets the same error as without providers.
    if (!found) return await ofOwn.find(call);
    let ofFound = compiled.get(found);
    if (!ofFound) compiled.set(found, ofFound = feature.compile([toRestricted(found)], core, all).methods[method]);
    const runner = await ofFound.find(call);
    // The cast is safe, because the handler has the kind of the provider.
    const { wire, seesResults } = found[INTERNALS].definition as Entry & Pick<ToolDefinition, "seesResults">; // See above.
    // The runner belongs to this server, because `compile` has created it.
    const own = Object.assign(runner, { wire: () => wire(core) });
    // A tool of a proxy can be a task of the other server, whose result no layer of this server sees.
    return !seesResults && call.client.capabilities.extensions ? withHandles(own) : own;
  };
  const entries = toDefinitions<Entry>(own);
  const listed = listSources(list, { fixed: entries, sources: providers }, core);
  return {
    capabilities,
    methods: { ...methods, [`${list}/list`]: listed, [method]: { ...ofOwn, find } },
    hasProviders: true,
  };
};

/** Marks a found handler as a handler that not every caller may use, because `find` of its provider decides too. */
function toRestricted(handler: Handler): Handler {
  const { allow = () => true, [INTERNALS]: internals } = handler;
  const definition: object = { ...Object(internals.definition), allow };
  return { ...handler, allow, [INTERNALS]: { ...internals, definition } };
}

const provideCompletions: Provide = (handlers, core, all, rule): Compiled => {
  const { own, names, providers } = split(handlers, core, all, rule);
  if (!core.can.completions) return completions.compile(own, core, all);
  const ofOwn = toDefinitions<CompletionOptions>(own).map(withKey);
  const find = async (call: Call): Promise<Runner> => {
    const { type, name }: Readonly<Record<string, unknown>> = Object(call.params.ref);
    const isOther = type === "ref/prompt" && typeof name === "string" && !names.has(name);
    const found = isOther ? await findIn(providers, name, call) : undefined;
    const also = (found ? withAlso(found) : []).filter((each) => each[INTERNALS].feature.name === completions.name);
    const ofFound = toDefinitions<CompletionOptions>(also).map(withKey);
    return await findCompleter(new Map([...ofOwn, ...ofFound]), call, core);
  };
  return { capabilities: { completions: {} }, methods: { "completion/complete": { find } } };
};

function withKey(options: CompletionOptions): readonly [string, CompletionOptions] {
  return [`${options.type} ${options.name}`, options];
}
