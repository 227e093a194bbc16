/**
 * A search with two tools that call what it has found, which together replace the list of tools.
 */
import { type Context, type Handler, type Result, ToolError } from "../../library.ts";
import { INVALID_PARAMS, isMcpError, quote } from "../../core/protocol/errors.ts";
import { INTERNALS, withInternals } from "../../core/internals.ts";
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import type { JsonSchema } from "../../core/schema/schema.ts";
import type { Call } from "../../server/call/call.ts";
import { toCall } from "../../server/call/find_call.ts";
import type { GroupedOptions, Narrow, Remake } from "../../server/visibility/feature.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import { withAlso } from "../../server/visibility/registry.ts";
import { narrowList, type OwnNames } from "./narrowed_list.ts";
import { type SearchedTool, type SeenTool, toSearched, VisibleTools } from "./visible_tools.ts";

/** Options of a search. All options are optional. */
export interface ToolSearchOptions {
  /**
   * Names of tools that stay in the list. Unknown names and tools of providers are ignored, because tools can be added
   * later; `mcp check` reports them. Defaults to no tools.
   */
  readonly always?: readonly string[];
  /** Maximum number of tools in the result of a search, from 1 to 50. Defaults to 8. */
  readonly limit?: number;
  /**
   * Replaces the ranking, for example with embeddings. Returns the names of the matching tools, the best first. `tools`
   * are all tools that the caller can see; other names are ignored. Defaults to a ranking by words.
   */
  readonly rank?: (
    query: string,
    tools: readonly SearchedTool[],
    ctx: Context,
  ) => readonly string[] | Promise<readonly string[]>;
  /**
   * Other names for the tools of the search, for example if another tool has such a name. Default to `search_tools`,
   * `call_tool`, and `call_read_only_tool` for the tool that calls only read-only tools.
   */
  readonly names?: { readonly search?: string; readonly call?: string; readonly callReadOnly?: string };
  /**
   * Decides whether a caller gets the short list. If the function returns `false`, the caller gets the list of all tools.
   * With this option, lists of tools have the cache scope `"private"`. Defaults to the short list for all callers.
   */
  readonly when?: (ctx: Context) => boolean;
}

/** Maximum length of a query in characters. */
const MAX_QUERY = 500;

export const SEARCH_INPUT: JsonSchema = {
  type: "object",
  properties: {
    query: {
      type: "string",
      minLength: 1,
      maxLength: MAX_QUERY,
      description: "What the tool should do, in a few words, or the exact name of a tool to see its input schema",
    },
    tags: {
      type: "array",
      items: { type: "string" },
      maxItems: 20,
      description: "Only tools with one of these labels",
    },
  },
  required: ["query"],
  additionalProperties: false,
};

export interface SearchInput {
  readonly query: string;
  readonly tags?: readonly string[];
}

/** The tools of a search, best first. */
export interface Hits {
  readonly shown: readonly SeenTool[];
  readonly total: number;
  /** Number of the first tools that match almost as well as the best. `undefined` if it is not known. */
  readonly near?: number;
}

/** What differs between the kinds of short lists. */
export interface ShortListForm {
  /** The default names of the tools. */
  readonly names: OwnNames;
  /** Creates the three tools, in the order of the names. `names` are the names without those of groups. */
  readonly make: (list: ShortList, names: OwnNames) => readonly [search: Handler, call: Handler, callReadOnly: Handler];
  /** Marks the call of one of the two tools, because its inner calls are calls of the client. */
  readonly pass: (call: Call) => void;
  /** Called for each server with the list. Throws if the server cannot have it. */
  readonly verify?: () => void;
}

/** The names that a search gives to its tools by default, also with a prefix. */
const SEARCHES = /(^|[_.-])(search_tools|call_tool|call_read_only_tool)$/;

/** Key of the names of the reported tools of a server. */
const REPORTED = {};

/** Reports each tool of another server that is itself part of a search, because a model would have to search twice. */
function warnOfSearches(handlers: readonly Handler[], core: FeatureParts): void {
  const reported = core.state.slot(REPORTED, () => new BoundedMap<string, void>({ full: "refuse", max: 100 }));
  for (const { name, [INTERNALS]: { foreign } } of handlers) {
    if (foreign === undefined || !SEARCHES.test(name) || reported.has(name)) continue;
    if (!reported.set(name, undefined)) return;
    const state =
      "the other server has a search too, so a model has to search twice; request its list with ?search=off";
    core.report(new Error(`Cannot search the tools behind ${quote(name)}: ${state}`));
  }
}

type Change = Parameters<Remake>[0];

/** A tool that the caller of a call can call. */
export interface FoundTool {
  readonly name: string;
  /** `undefined` if only a provider knows the tool. */
  readonly seen?: SeenTool;
}

/** One search with its tools, which may be among the handlers of several servers. */
export class ShortList {
  readonly handler: Handler;
  readonly names: OwnNames;
  readonly #form: ShortListForm;
  readonly #options: ToolSearchOptions;
  /** By the parts of the server. */
  readonly #tools = new WeakMap<object, VisibleTools>();

  /** `change` changes the options of each tool, as groups and the layers of a server do. */
  constructor(form: ShortListForm, options: ToolSearchOptions, change: Change = (own) => own) {
    const own = { ...form.names, ...options.names };
    const toName = (name: string) => change<GroupedOptions>({ name }).name;
    this.#form = form;
    this.#options = options;
    this.names = { search: toName(own.search), call: toName(own.call), callReadOnly: toName(own.callReadOnly) };
    if (new Set(Object.values(this.names)).size < 3) {
      throw new TypeError(
        "Cannot make a tool search: two of its tools have the same name; choose three different names",
      );
    }
    const [made, ...also] = form.make(this, own).map((made) => made[INTERNALS].remake?.(change) ?? made);
    const { [INTERNALS]: internals } = made;
    this.handler = withInternals({ ...made }, {
      ...internals,
      also: [...internals.also ?? [], ...also.flatMap(withAlso)],
      narrow: this.#narrow,
      always: options.always,
      // Without this, a group or the layers of a server would create only the tool that searches.
      remake: (next: Change) => new ShortList(form, options, (own) => next(change(own))).handler,
    });
  }

  readonly #narrow: Narrow = (compiled, handlers, core) => {
    if (handlers.filter(({ [INTERNALS]: { narrow } }) => narrow).length > 1) {
      throw new TypeError("Cannot add a second tool search: it would hide the first one; use one toolSearch()");
    }
    this.#form.verify?.();
    warnOfSearches(handlers, core);
    const { always = [], when } = this.#options;
    const tools = new VisibleTools({ handlers, core, names: new Set(Object.values(this.names)) });
    this.#tools.set(core, tools);
    return narrowList(compiled, { tools, handlers, core, names: this.names, always, when });
  };

  async search({ query, tags }: SearchInput, ctx: Context): Promise<Hits> {
    const tools = this.#open(ctx);
    const { limit = 8, rank } = this.#options;
    const call = toCall(ctx, "search tools");
    const seen = await tools.see(call);
    if (rank) {
      const ranked = await rankByAuthor(rank, { query, seen: seen.tools, ctx });
      const hits = tags?.length ? ranked.filter((each) => each.tags.some((tag) => tags.includes(tag))) : ranked;
      return { shown: hits.slice(0, limit), total: hits.length };
    }
    const { places, total, near } = await tools.rankings.find(call, seen, { query, tags: tags ?? [], limit });
    return { shown: places.map((place) => seen.tools[place]), total, near };
  }

  /** @throws {ToolError} if the caller cannot call the tool, or if the tool does not only read, but must. */
  async find(name: string, ctx: Context, isReadOnly: boolean): Promise<FoundTool> {
    const tools = this.#open(ctx);
    const { call, callReadOnly } = this.names;
    if (Object.values(this.names).includes(name)) {
      throw new ToolError(`Cannot call ${quote(name)} with ${isReadOnly ? callReadOnly : call}: call it directly`);
    }
    const caller = toCall(ctx, "call a tool");
    const needsFacts = isReadOnly || !tools.isProvided(name);
    const isInList = isReadOnly && tools.hasMiddleware;
    const finding = needsFacts ? tools.find(name, caller, { isInList }) : undefined;
    const seen = finding instanceof Promise ? await finding : finding;
    if (needsFacts && !seen) throw this.#toUnknown(name);
    if (isReadOnly && !seen?.isReadOnly) {
      if (tools.isListed && !await tools.find(name, caller, { isInList: true })) throw this.#toUnknown(name);
      throw new ToolError(`Cannot call ${quote(name)} with ${callReadOnly}: it is not read-only; use ${call}`);
    }
    return { name, seen };
  }

  /** Calls a tool, and returns its result unchanged. `key` begins the keys of its questions and values. */
  async call({ name }: FoundTool, input: object = {}, ctx: Context, key?: string): Promise<Result> {
    const caller = toCall(ctx, "call a tool");
    const watched = this.#open(ctx).watch(caller);
    this.#form.pass(caller);
    try {
      return { ...await ctx.callTool(name, input, { raw: true, key }) };
    } catch (error) {
      // The tool may also have been removed, or hidden from the caller, since.
      const isGone = isMcpError(error) && error.code === INVALID_PARAMS && !watched.has(name);
      throw isGone ? this.#toUnknown(name) : error;
    }
  }

  #toUnknown(name: string): ToolError {
    return new ToolError(`Cannot call ${quote(name)}: there is no such tool; search again with ${this.names.search}`);
  }

  #open(ctx: Context): VisibleTools {
    const { parts } = toCall(ctx, "search tools").host;
    const tools = parts && this.#tools.get(parts);
    if (!tools) throw new TypeError("Cannot search tools: the search is not among the handlers of this server");
    return tools;
  }
}

interface AuthorRanking {
  readonly query: string;
  readonly seen: readonly SeenTool[];
  readonly ctx: Context;
}

/** Ranks tools with the author's function, which may return anything. */
async function rankByAuthor(
  rank: NonNullable<ToolSearchOptions["rank"]>,
  { query, seen, ctx }: AuthorRanking,
): Promise<readonly SeenTool[]> {
  const byName = new Map(seen.map((each) => [each.name, each]));
  const names: unknown = await rank(query, seen.map(toSearched), ctx);
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) {
    throw new TypeError("Cannot use the result of rank: it is not a list of names; return names of the given tools");
  }
  return [...new Set<string>(names)].flatMap((name) => byName.get(name) ?? []);
}
