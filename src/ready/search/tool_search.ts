/**
 * Serves many tools with a short list: tools that search the tools, and call them.
 */
import { type Context, type Handler, type Result, tool, ToolError } from "../../library.ts";
import { INVALID_PARAMS, isMcpError, quote } from "../../core/protocol/errors.ts";
import { INTERNALS, withInternals } from "../../core/internals.ts";
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { JsonSchema } from "../../core/schema/schema.ts";
import { toCall } from "../../server/call/find_call.ts";
import { markRelay } from "../../server/call/relays.ts";
import type { GroupedOptions, Narrow, Remake } from "../../server/visibility/feature.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import { withAlso } from "../../server/visibility/registry.ts";
import { narrowList, type OwnNames } from "./narrowed_list.ts";
import { writeHits } from "./result_text.ts";
import { type SearchedTool, type SeenTool, toSearched, VisibleTools } from "./visible_tools.ts";

export type { SearchedTool } from "./visible_tools.ts";

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

const NAMES: KnownOptions<keyof OwnNames> = { names: { search: true, call: true, callReadOnly: true } };

const MAX_LIMIT = 50;

const OPTIONS: KnownOptions<keyof ToolSearchOptions> = {
  names: {
    always: "texts",
    limit: {
      test: (limit) => Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= MAX_LIMIT,
      remedy: `it must be a whole number from 1 to ${MAX_LIMIT}`,
    },
    rank: "function",
    names: NAMES,
    when: "function",
  },
  hints: { maxResults: "limit", search: "rank" },
};

/** Maximum length of a query in characters. */
const MAX_QUERY = 500;

/**
 * Returns a handler that replaces the list of tools by a few tools: `search_tools`, `call_tool`, and
 * `call_read_only_tool` if the caller can see a tool with `readOnlyHint`. A model searches for tools with a sentence, and
 * then calls the tool that it has found. Each caller finds and calls exactly the tools that it could call directly, with
 * the same `allow`, scopes, layers and limits. Calls by name still work.
 *
 * A client gets the whole list if its URL contains `?search=off`, or without HTTP, such as over stdio, if the environment
 * variable `MCP_SEARCH` of the server is `off`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { toolSearch } from "@x/mcp/search";
 *
 * const whoami = tool({ name: "whoami", run: (_input, ctx) => ctx.principal?.id ?? "nobody" });
 * const open = tool({ name: "open_issue", description: "Opens an issue", about: ["ticket", "bug"], run: () => "#1" });
 *
 * export default createServer({
 *   name: "tracker",
 *   version: "1.0.0",
 *   handlers: [whoami, open, toolSearch({ always: ["whoami"] })],
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function toolSearch(options: ToolSearchOptions = {}): Handler {
  checkOptions("make a tool search", options, OPTIONS);
  const search = new ToolSearch(options);
  return search.handler;
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

interface CallInput {
  readonly name: string;
  readonly arguments?: object;
}

interface SearchInput {
  readonly query: string;
  readonly tags?: readonly string[];
}

type Change = Parameters<Remake>[0];

/** One search, which may be among the handlers of several servers. */
class ToolSearch {
  readonly handler: Handler;
  readonly #options: ToolSearchOptions;
  readonly #names: OwnNames;
  /** By the parts of the server. */
  readonly #tools = new WeakMap<object, VisibleTools>();

  /** `change` changes the options of each tool, as groups and the layers of a server do. */
  constructor(options: ToolSearchOptions, change: Change = (own) => own) {
    const { names = {} } = options;
    const toName = (name: string) => change<GroupedOptions>({ name }).name;
    const search = toName(names.search ?? "search_tools");
    const call = toName(names.call ?? "call_tool");
    const callReadOnly = toName(names.callReadOnly ?? "call_read_only_tool");
    this.#options = options;
    this.#names = { search, call, callReadOnly };
    if (new Set(Object.values(this.#names)).size < 3) {
      throw new TypeError(
        "Cannot make a tool search: two of its tools have the same name; choose three different names",
      );
    }
    const make = (made: Handler) => made[INTERNALS].remake?.(change) ?? made;
    const made = make(tool({
      name: names.search ?? "search_tools",
      title: "Search tools",
      description: "Finds tools by what they do. This server has more tools than this list shows: search before you " +
        `decide that something is impossible. Call the tools that you find with ${call}.`,
      annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
      input: SEARCH_INPUT,
      // The casts are safe, because the input schemas validate the inputs.
      run: (input, ctx) => this.#search(input as unknown as SearchInput, ctx), // See above.
    }));
    const toCaller = (name: string, description: string, isReadOnly: boolean) =>
      make(tool({
        name,
        title: isReadOnly ? "Call a read-only tool" : "Call a tool",
        description,
        annotations: { readOnlyHint: isReadOnly, destructiveHint: !isReadOnly, openWorldHint: true },
        lenientArguments: true,
        input: CALL_INPUT,
        run: (input, ctx) => this.#call(input as unknown as CallInput, ctx, isReadOnly), // See above.
      }));
    const also = [
      toCaller(names.call ?? "call_tool", `Calls a tool that ${search} has found.`, false),
      toCaller(
        names.callReadOnly ?? "call_read_only_tool",
        `Calls a tool that ${search} has found and that is marked as read-only.`,
        true,
      ),
    ];
    const { [INTERNALS]: internals } = made;
    this.handler = withInternals({ ...made }, {
      ...internals,
      also: [...internals.also ?? [], ...also.flatMap(withAlso)],
      narrow: this.#narrow,
      always: options.always,
      // Without this, a group or the layers of a server would create only the tool that searches.
      remake: (next: Change) => new ToolSearch(options, (own) => next(change(own))).handler,
    });
  }

  readonly #narrow: Narrow = (compiled, handlers, core) => {
    if (handlers.filter(({ [INTERNALS]: { narrow } }) => narrow).length > 1) {
      throw new TypeError("Cannot add a second tool search: it would hide the first one; use one toolSearch()");
    }
    warnOfSearches(handlers, core);
    const { always = [], when } = this.#options;
    const tools = new VisibleTools({ handlers, core, names: new Set(Object.values(this.#names)) });
    this.#tools.set(core, tools);
    return narrowList(compiled, { tools, handlers, core, names: this.#names, always, when });
  };

  async #search({ query, tags }: SearchInput, ctx: Context): Promise<string> {
    const tools = this.#find(ctx);
    const { limit = 8, rank } = this.#options;
    const call = toCall(ctx, "search tools");
    const seen = await tools.see(call);
    if (rank) {
      const ranked = await rankByAuthor(rank, { query, seen: seen.tools, ctx });
      const hits = tags?.length ? ranked.filter((each) => each.tags.some((tag) => tags.includes(tag))) : ranked;
      return writeHits(hits.slice(0, limit), { total: hits.length, names: this.#names, query });
    }
    const { places, total, near } = await tools.rankings.find(call, seen, { query, tags: tags ?? [], limit });
    return writeHits(places.map((place) => seen.tools[place]), { total, near, names: this.#names, query });
  }

  async #call({ name, arguments: input = {} }: CallInput, ctx: Context, isReadOnly: boolean): Promise<Result> {
    const tools = this.#find(ctx);
    const { search, call, callReadOnly } = this.#names;
    if (Object.values(this.#names).includes(name)) {
      throw new ToolError(`Cannot call ${quote(name)} with ${isReadOnly ? callReadOnly : call}: call it directly`);
    }
    const toUnknown = () =>
      new ToolError(`Cannot call ${quote(name)}: there is no such tool; search again with ${search}`);
    const caller = toCall(ctx, "call a tool");
    const needsFacts = isReadOnly || !tools.isProvided(name);
    const isInList = isReadOnly && tools.hasMiddleware;
    const finding = needsFacts ? tools.find(name, caller, { isInList }) : undefined;
    const found = finding instanceof Promise ? await finding : finding;
    if (needsFacts && !found) throw toUnknown();
    if (isReadOnly && !found?.isReadOnly) {
      if (tools.isListed && !await tools.find(name, caller, { isInList: true })) throw toUnknown();
      throw new ToolError(`Cannot call ${quote(name)} with ${callReadOnly}: it is not read-only; use ${call}`);
    }
    const watched = tools.watch(caller);
    markRelay(caller);
    try {
      const { content, ...others } = await ctx.callTool(name, input, { raw: true });
      // A result with its own structured content is sent unchanged.
      return { structuredContent: undefined, ...others, content };
    } catch (error) {
      // The tool may also have been removed, or hidden from the caller, since.
      const isGone = isMcpError(error) && error.code === INVALID_PARAMS && !watched.found;
      throw isGone ? toUnknown() : error;
    }
  }

  #find(ctx: Context): VisibleTools {
    const { parts } = toCall(ctx, "search tools").host;
    const tools = parts && this.#tools.get(parts);
    if (!tools) throw new TypeError("Cannot search tools: the search is not among the handlers of this server");
    return tools;
  }
}

const SEARCH_INPUT: JsonSchema = {
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

const CALL_INPUT: JsonSchema = {
  type: "object",
  properties: {
    name: { type: "string", description: "Name of the tool" },
    arguments: { type: "object", description: "Arguments that match the tool's inputSchema" },
  },
  required: ["name"],
  additionalProperties: false,
};

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
