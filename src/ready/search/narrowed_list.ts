/**
 * The short list of a server with a tool search.
 */
import { INTERNALS } from "../../core/internals.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import { readVariable } from "../../core/runtime.ts";
import type { Context, Handler } from "../../library.ts";
import type { Call } from "../../server/call/call.ts";
import { readSyncVerdict } from "../../server/call/verdict.ts";
import { type Compiled, isAllowed, type Runner } from "../../server/visibility/feature.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import { createList, type Entry } from "../../server/visibility/pagination.ts";
import { withHandles } from "../../server/visibility/relayed_handles.ts";
import type { VisibleTools } from "./visible_tools.ts";

export interface OwnNames {
  readonly search: string;
  readonly call: string;
  readonly callReadOnly: string;
}

export interface NarrowedList {
  readonly tools: VisibleTools;
  readonly handlers: readonly Handler[];
  readonly core: FeatureParts;
  readonly names: OwnNames;
  readonly always: readonly string[];
  /** Decides whether a caller gets the short list. */
  readonly when?: (ctx: Context) => boolean;
}

const LIST = "tools/list";
const CALL = "tools/call";

/**
 * Replaces the list of tools by the short list. Inner calls, and clients that ask for it, get the list of all tools,
 * without the tools of the search. A call that the search makes finds no tool that only apps may call.
 */
export function narrowList(compiled: Compiled, options: NarrowedList): Compiled {
  const { tools, handlers, core, names, when } = options;
  const { [LIST]: list, [CALL]: tool, ...methods } = compiled.methods;
  const scope = (runner: Runner): Runner => when ? { ...runner, cache: toPrivate(runner) } : runner;
  const omit = createOmission(names);
  const allow = handlers.find(({ name }) => name === names.search)?.allow;
  let short: Runner | undefined;
  // Only lists need the entries, and a server can add many handlers one after the other.
  const narrow = () => short ??= scope(createList("tools", toEntries(options), core));
  const whole = async (call: Call) => {
    const runner = await list.find(call);
    return scope({ ...runner, run: async (call) => omit(await runner.run(call)) });
  };
  const find = (call: Call): Runner | Promise<Runner> => {
    if (call.host.outer || isOff(call)) return whole(call);
    if (when && !readSyncVerdict(when(call), "when")) return whole(call);
    // A search that was disabled for the caller cannot replace the list.
    const allowed = isAllowed(allow, call, core);
    const select = (allowed: boolean) => allowed ? narrow() : whole(call);
    return typeof allowed === "boolean" ? select(allowed) : allowed.then(select);
  };
  const callers: readonly unknown[] = [names.call, names.callReadOnly];
  const findTool = (call: Call): Runner | Promise<Runner> => {
    const found = tools.findCalled(call, tool);
    if (!callers.includes(call.params.name)) return found;
    return found instanceof Promise ? found.then(withHandles) : withHandles(found);
  };
  return { ...compiled, methods: { ...methods, [LIST]: { ...list, find }, [CALL]: { ...tool, find: findTool } } };
}

function toPrivate({ cache }: Runner): Runner["cache"] {
  return cache && { ...cache, scope: "private" };
}

/** Returns the entries of the short list, in the order in which a model needs them. */
function toEntries({ tools, handlers, core, names, always }: NarrowedList): readonly Entry[] {
  // The cast is safe, because the entries are of tools that this library has created.
  const toEntry = (handler: Handler) => handler[INTERNALS].definition as Entry; // See above.
  const find = (name: string) => handlers.filter((handler) => handler.name === name).map(toEntry);
  const { hasReadOnly } = tools;
  const toVisible = ({ allow: own, ...entry }: Entry): Entry => {
    const allow = async (ctx: Context) => {
      const call = ctx as Call; // The cast is safe, because the registry passes calls.
      return await isAllowed(own, call, core) && await tools.seesReadOnly(call);
    };
    return { ...entry, allow };
  };
  const callers = find(names.callReadOnly).map((entry) => hasReadOnly ? entry : toVisible(entry));
  const kept = handlers.filter(({ name }) => always.includes(name)).map(toEntry);
  return [...find(names.search), ...find(names.call), ...hasReadOnly === undefined ? [] : callers, ...kept];
}

/**
 * Returns a function that omits the tools of the search from a page. The same page always becomes the same page, and the
 * same list the same list, because their texts are cached.
 */
function createOmission(names: OwnNames): (page: Result) => Result {
  const own = new Set<unknown>(Object.values(names));
  const pages = new WeakMap<Result, Result>();
  const lists = new WeakMap<readonly unknown[], readonly unknown[]>();
  const omitFrom = (tools: readonly unknown[]) => {
    const known = lists.get(tools);
    if (known) return known;
    const others = tools.filter((each) => !own.has(Object(each).name));
    const rest = Object.isFrozen(tools) ? Object.freeze(others) : others;
    lists.set(tools, rest);
    return rest;
  };
  return (page) => {
    const { tools } = page;
    if (!Array.isArray(tools)) return page;
    let rest = pages.get(page);
    if (!rest) {
      rest = { ...page, tools: omitFrom(tools) };
      pages.set(page, Object.isFrozen(page) ? Object.freeze(rest) : rest);
    }
    return rest;
  };
}

/** Returns whether the client asks for the list of all tools: with its URL, or with a variable of the process. */
function isOff({ http }: Call): boolean {
  const value = http ? new URL(http.url).searchParams.get("search") : readVariable("MCP_SEARCH");
  return value?.toLowerCase() === "off";
}
