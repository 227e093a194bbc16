/**
 * The tools of a server that a caller can see, without the tools of the search itself.
 */
import { INTERNALS } from "../../core/internals.ts";
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import { McpError } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import type { ListedTool } from "../../core/protocol/listed.ts";
import type { JsonSchema } from "../../core/schema/schema.ts";
import type { Call } from "../../server/call/call.ts";
import { noteCaller } from "../../server/call/reads.ts";
import type { Definition } from "../../server/handlers/tool.ts";
import { type Handler, isAllowed, type Method, type Runner } from "../../server/visibility/feature.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import { Rankings } from "./rankings.ts";
import { type IndexedTool, ToolIndex, type ToolText } from "./tool_index.ts";
import { ToolSet } from "./tool_set.ts";

/** A tool, as the function `rank` gets it. */
export interface SearchedTool {
  /** Name of the tool. */
  readonly name: string;
  /** Display name. */
  readonly title?: string;
  /** Description for the model. */
  readonly description?: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonSchema;
  /** The tool's labels. */
  readonly tags: readonly string[];
  /** The author's words for the tool. */
  readonly about: readonly string[];
}

export interface SeenTool {
  readonly name: string;
  readonly tags: readonly string[];
  readonly about: readonly string[];
  /** Whether the tool only reads. Hints of other servers that the author does not trust do not count. */
  readonly isReadOnly: boolean;
  /** Whether a call can be repeated: the tool only reads, or the author declares it as idempotent. */
  readonly isRepeatable: boolean;
  /** Returns the schema of its results as an API documents them, which nobody checks. */
  readonly documented?: () => JsonSchema | undefined;
  /** Returns the tool as the list shows it. */
  readonly wire: () => ListedTool;
  /** The function that returns the entry. `undefined` if the tool may have another entry in the next list. */
  readonly source?: Definition["wire"];
}

/** What a caller can see. The tools are in the order of the set. */
export interface Seen {
  readonly index: ToolIndex;
  readonly set: ToolSet;
  readonly tools: readonly SeenTool[];
}

/** Maximum number of sets of visible tools whose statistics are kept. */
const MAX_SETS = 100;
/**
 * Number of occurrences above which the index starts again, so that it uses at most about 10 MB. The index of a server
 * whose tools have more occurrences starts again at twice their number.
 */
const MAX_INDEX = 100_000;
/** Number of tools that are indexed before other calls run. */
const SLICE = 100;

/** The index that all paths of a server share. */
class SharedIndex {
  index = new ToolIndex();
  /** The indexed tools, by the functions that return their entries in lists. Rules copy definitions, but not functions. */
  indexed = new WeakMap<Definition["wire"], IndexedTool>();
  /** Number of occurrences in the largest set. */
  largest = 0;

  /** Starts again if the index is full. */
  makeRoom(): void {
    if (this.index.size <= Math.max(MAX_INDEX, 2 * this.largest)) return;
    this.index = new ToolIndex();
    this.indexed = new WeakMap();
    this.largest = 0;
  }
}

/** The keys of the server's index, and of its rankings. */
const INDEX = {};
const RANKINGS = {};

export interface VisibleToolsOptions {
  /** All tools of the server, with its rules. */
  readonly handlers: readonly Handler[];
  readonly core: FeatureParts;
  readonly names: ReadonlySet<string>;
}

/** The tools of one server, or of one of its paths, until they change. */
export class VisibleTools {
  /** Whether middleware may change the hints of tools. */
  readonly hasMiddleware: boolean;
  /** Whether middleware or a provider may list other tools than the handlers. */
  readonly isListed: boolean;
  /** Whether every caller sees the same tools. */
  readonly isSame: boolean;
  /** The rankings that all paths of a server share. */
  readonly rankings: Rankings;
  readonly #core: FeatureParts;
  readonly #names: ReadonlySet<string>;
  readonly #tools: ReadonlyMap<string, OwnTool>;
  readonly #hasProvider: boolean;
  readonly #shared: SharedIndex;
  #index?: ToolIndex;
  readonly #sets = new BoundedMap<string, ToolSet>({ full: "evict", max: MAX_SETS });
  /** What all callers see, if all see the same. */
  #same?: Seen;
  /** The names of the tools that the search has called and the caller can call, by the call of the search. */
  // Bound: `calls.inner`.
  readonly #watched = new WeakMap<Call, Set<unknown>>();

  constructor({ handlers, core, names }: VisibleToolsOptions) {
    const own = handlers.flatMap((handler) => toOwn(handler) ?? []).filter(({ name }) => !names.has(name));
    this.#core = core;
    this.#names = names;
    this.#tools = new Map(own.map((each) => [each.name, each]));
    this.#hasProvider = handlers.some((handler) => !toOwn(handler));
    this.hasMiddleware = core.hasMiddleware;
    this.isListed = core.hasMiddleware || this.#hasProvider;
    this.isSame = !this.isListed && own.every(({ definition: { allow, vary } }) => !allow && !vary);
    this.#shared = core.state.slot(INDEX, () => new SharedIndex());
    this.rankings = core.state.slot(RANKINGS, () => new Rankings());
  }

  /** Returns the tools that the caller of `call` can see and a model may use. */
  async see(call: Call): Promise<Seen> {
    if (this.#same?.index === this.#shared.index) return this.#same;
    // A result that a cache keeps must not reach other callers, because they may see other tools.
    if (!this.isSame) await noteCaller(call);
    const seen = await this.#toSeen(this.isListed ? await this.#list(call) : await this.#select(call), call);
    if (this.isSame) this.#same = seen;
    return seen;
  }

  /** Returns a tool that the caller can see and a model may use. `isInList` also looks for it in the caller's list. */
  find(name: string, call: Call, { isInList = false } = {}): MaybeTool | Promise<MaybeTool> {
    const own = this.#tools.get(name);
    if (own ? isInList : this.#hasProvider) return this.#findListed(name, call);
    if (!own) return;
    const allowed = isAllowed(own.definition.allow, call, this.#core);
    return typeof allowed === "boolean"
      ? allowed ? this.#vary(own, call) : undefined
      : allowed.then((allowed) => allowed ? this.#vary(own, call) : undefined);
  }

  async #findListed(name: string, call: Call): Promise<MaybeTool> {
    return (await this.#list(call)).find((each) => each.name === name);
  }

  /** Whether only a provider can have a tool of this name. Asking it for one tool costs less than asking for its list. */
  isProvided(name: string): boolean {
    return this.#hasProvider && !this.#tools.has(name);
  }

  /** Returns the names of the called tools that the caller can call. */
  watch(call: Call): ReadonlySet<unknown> {
    const watched = this.#watched.get(call) ?? new Set();
    this.#watched.set(call, watched);
    return watched;
  }

  /** Finds the tool of a call. A tool that only apps may call is unknown to the search. */
  findCalled(call: Call, method: Method): Runner | Promise<Runner> {
    const watched = call.host.outer && this.#watched.get(call.host.outer);
    const found = method.find(call);
    if (!watched) return found;
    const note = (runner: Runner) => {
      if (runner.wire && isAppOnly(runner.wire())) throw McpError.invalidParams("Only apps may call this tool");
      watched.add(call.params.name);
      return runner;
    };
    return found instanceof Promise ? found.then(note) : note(found);
  }

  /** Whether every caller can see a tool that only reads, or `undefined` if no caller can. */
  get hasReadOnly(): boolean | undefined {
    const found = this.#listReadOnly();
    return found.length ? found.some(({ definition: { allow, vary } }) => !allow && !vary) : undefined;
  }

  async seesReadOnly(call: Call): Promise<boolean> {
    for (const own of this.#listReadOnly()) {
      if (await isAllowed(own.definition.allow, call, this.#core) && (await this.#vary(own, call))?.isReadOnly) {
        return true;
      }
    }
    return false;
  }

  /** Returns the tools that only read, for all callers or at least for some. */
  #listReadOnly(): readonly OwnTool[] {
    const isCandidate = (own: OwnTool) => own.definition.vary ? !own.isForeign : this.#isReadOnly(own);
    return [...this.#tools.values()].filter((own) => !this.#read(own).isAppOnly && isCandidate(own));
  }

  async #select(call: Call): Promise<readonly SeenTool[]> {
    const all = [...this.#tools.values()];
    const allowed = all.map(({ definition }) => isAllowed(definition.allow, call, this.#core));
    const verdicts = allowed.some((each) => each instanceof Promise) ? await Promise.all(allowed) : allowed;
    const visible = all.filter((_, at) => verdicts[at] === true);
    const found = visible.some(({ definition }) => definition.vary)
      ? await Promise.all(visible.map((own) => this.#vary(own, call)))
      : visible.map((own) => this.#toSeenTool(own));
    return found.filter((each) => each !== undefined);
  }

  #vary(own: OwnTool, call: Call): MaybeTool | Promise<MaybeTool> {
    const { vary } = own.definition;
    if (!vary) return this.#toSeenTool(own);
    return vary(call, this.#core).then((definition) => definition && this.#toSeenTool({ ...own, definition }));
  }

  #toSeenTool(own: OwnTool): MaybeTool {
    if (this.#read(own).isAppOnly) return;
    const { name, tags, about, definition, documented } = own;
    return {
      name,
      tags,
      about,
      isReadOnly: this.#isReadOnly(own),
      isRepeatable: !own.isForeign && this.#read(own).isRepeatable,
      documented,
      source: definition.wire,
      wire: () => toWire(definition, this.#core),
    };
  }

  /** Asks for the list as the caller gets it without a search. */
  async #list(call: Call): Promise<readonly SeenTool[]> {
    const given = await call.host.callInner(call, { name: "shareList", given: ["tools"] });
    const listed = given as readonly ListedTool[]; // The cast is safe, because the server has checked the list.
    return listed.filter((entry) => !this.#names.has(entry.name) && !isAppOnly(entry)).map((entry) => {
      const own = this.#tools.get(entry.name);
      return {
        name: entry.name,
        tags: own?.tags ?? [],
        about: own?.about ?? [],
        isReadOnly: !!own && this.#isReadOnly(own) && entry.annotations?.readOnlyHint === true,
        isRepeatable: !!own && !own.isForeign && isRepeatable(entry),
        documented: own?.documented,
        wire: () => entry,
      };
    });
  }

  #read({ definition }: OwnTool): Facts {
    return readFacts(definition, this.#core);
  }

  #isReadOnly(own: OwnTool): boolean {
    return !own.isForeign && this.#read(own).isReadOnly;
  }

  async #toSeen(tools: readonly SeenTool[], call: Call): Promise<Seen> {
    const shared = this.#shared;
    shared.makeRoom();
    // Another search may start a new index. This search then goes on with the old one, because searches that start again
    // could wait for each other forever.
    const { index, indexed } = shared;
    const found: IndexedTool[] = [];
    let added = 0;
    for (const each of tools) {
      const { size } = index;
      found.push(toIndexed(each, { index, indexed }));
      if (index.size === size || ++added % SLICE) continue;
      await new Promise((resolve) => setTimeout(resolve));
      if (call.ended) throw call.endError;
    }
    if (shared.index !== index) return { index, set: new ToolSet(index, found), tools };
    if (this.#index !== index) {
      this.#index = index;
      this.#sets.clear();
    }
    const key = found.map(({ id }) => id).join();
    const set = this.#sets.get(key) ?? new ToolSet(index, found);
    this.#sets.set(key, set);
    shared.largest = Math.max(shared.largest, set.size);
    return { index, set, tools };
  }
}

type MaybeTool = SeenTool | undefined;

function toIndexed(tool: SeenTool, { index, indexed }: Pick<SharedIndex, "index" | "indexed">): IndexedTool {
  const { source } = tool;
  const known = source && indexed.get(source);
  if (known) return known;
  const added = index.add(toText(tool));
  if (source) indexed.set(source, added);
  return added;
}

/** A tool that is in the registry. */
interface OwnTool {
  readonly name: string;
  readonly definition: Definition;
  readonly tags: readonly string[];
  readonly about: readonly string[];
  /** Whether the hints of the tool are claims of another server. */
  readonly isForeign: boolean;
  readonly documented?: SeenTool["documented"];
}

/** Returns `undefined` for a provider, which has no tools before it is asked. */
function toOwn(handler: Handler): OwnTool | undefined {
  const { definition, about = [], foreign, documented } = handler[INTERNALS];
  if (!isDefinition(definition)) return;
  const words = about.flatMap((words) => words ?? []);
  return { name: definition.key, definition, tags: handler.tags ?? [], about: words, isForeign: !!foreign, documented };
}

function isDefinition(value: unknown): value is Definition {
  return typeof Object(value).wire === "function";
}

interface Facts {
  readonly isReadOnly: boolean;
  readonly isRepeatable: boolean;
  readonly isAppOnly: boolean;
}

/** The facts of each tool, by the function that returns its entry in lists. */
const known = new WeakMap<Definition["wire"], Facts>();

function readFacts(definition: Definition, core: FeatureParts): Facts {
  let facts = known.get(definition.wire);
  if (!facts) {
    const entry = toWire(definition, core);
    facts = {
      isReadOnly: entry.annotations?.readOnlyHint === true,
      isRepeatable: isRepeatable(entry),
      isAppOnly: isAppOnly(entry),
    };
    known.set(definition.wire, facts);
  }
  return facts;
}

function isRepeatable({ annotations }: ListedTool): boolean {
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

/** Returns whether only apps may call a tool. A list of a wrong type is taken for an empty list. */
function isAppOnly(entry: object): boolean {
  const { _meta } = Object(entry);
  const { visibility } = Object(Object(_meta).ui);
  return visibility !== undefined && !(Array.isArray(visibility) && visibility.includes("model"));
}

function toWire(definition: Definition, core: FeatureParts): ListedTool {
  // The cast is safe, because the entry of a tool has these members.
  return definition.wire(core) as ListedTool;
}

function toText({ name, about, wire }: SeenTool): ToolText {
  const { title, description, inputSchema } = wire();
  const properties = isObject(inputSchema?.properties) ? inputSchema.properties : {};
  const args = Object.entries(properties).map(([name, schema]) =>
    [name, readText(Object(schema).description)] as const
  );
  // Another server may list values of other types.
  return { name, title: readText(title), description: readText(description), about, args };
}

function readText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function toSearched({ name, tags, about, wire }: SeenTool): SearchedTool {
  const { title, description, inputSchema } = wire();
  return { name, title, description, inputSchema, tags, about };
}
