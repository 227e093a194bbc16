/**
 * Groups: handlers that are added, hidden and removed together.
 */
import { quote } from "../../core/protocol/errors.ts";
import type { Typed } from "../../core/typed.ts";
import type { Feature, GroupedAllow, GroupedOptions, Handler, Remake } from "../visibility/feature.ts";
import type { Allow } from "../call/context.ts";
import { ABOUT, ADDED, INTERNALS, withInternals } from "../../core/internals.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { type UseItem, withoutExtensions } from "../engine/layers.ts";
import { withAlso } from "../visibility/registry.ts";
import { readVerdict } from "../call/verdict.ts";
import { EXTENSIONS, GUARD, QUOTA } from "./option_names.ts";

/** Options of a group. All options are optional. */
export interface GroupOptions {
  /** Middleware and layers around the handlers' own middleware. The first middleware is the outermost. */
  readonly use?: readonly UseItem[];
  /** Labels that all handlers of the group get in addition to their own labels. */
  readonly tags?: readonly string[];
  /** Words by which `toolSearch` finds all tools of the group, in addition to their own words. Clients do not see them. */
  readonly about?: readonly string[];
  /** Decides whether a caller may see and use the group. The `allow` of a handler must allow the caller too. */
  readonly allow?: Allow;
}

const EACH = "set it on each handler of the group";

const OPTIONS: KnownOptions<keyof GroupOptions> = {
  names: { use: "functions", tags: "texts", about: "texts", allow: "function" },
  hints: { middleware: "use", middlewares: "use", canAccess: "allow", authorize: "allow" },
  elsewhere: {
    scopes: EACH,
    guards: GUARD,
    guard: GUARD,
    quota: QUOTA,
    requires: EACH,
    services: EACH,
    extensions: EXTENSIONS,
  },
};

/** A group of handlers, for `handlers`. */
export interface Group<Name extends string = string, Handlers = unknown>
  extends Handler, Typed<{ readonly kind: "group"; readonly name: Name; readonly handlers: Handlers }> {
  /** The handlers, with their names in the group. */
  readonly handlers: readonly Handler[];
}

/**
 * Groups handlers. The names of tools and prompts begin with the name of the group, such as `notes_add`. URIs of
 * resources stay the same. A group may contain other groups.
 *
 * ```ts
 * import { createServer, group, tool } from "@x/mcp";
 *
 * const add = tool({ name: "add", run: () => "Added." });
 * const clear = tool({ name: "clear", run: () => "Cleared." });
 *
 * const notes = group("notes", [add, clear], { allow: (ctx) => ctx.principal !== undefined });
 *
 * export default createServer({ name: "desk", version: "1.0.0", handlers: [notes] });
 * ```
 *
 * @throws {TypeError} if the name or an option is invalid, or if a handler, such as an extension, cannot be in a group.
 */
export function group<const N extends string, const H extends readonly Handler[]>(
  name: N,
  handlers: H,
  options: GroupOptions = {},
): Group<N, H> {
  if (typeof name !== "string" || !/^[\w.-]{1,64}$/.test(name)) {
    throw new TypeError(`Cannot make group ${quote(name)}: a name is 1 to 64 letters, digits, "_", "-" and "."`);
  }
  checkOptions(`make group ${quote(name)}`, options, OPTIONS);
  if (!Array.isArray(handlers)) {
    throw new TypeError(`Cannot make group ${quote(name)}: handlers must be a list; write it in brackets`);
  }
  const { use = [], tags = [], about = [], allow } = options;
  const remade = new WeakMap<Handler, Handler>();
  const toChange = (use: readonly UseItem[]) => <O extends GroupedOptions>(own: O): O => ({
    ...own,
    [ADDED]: (handler: Handler) => {
      const added = own[ADDED]?.(handler) ?? handler;
      // Several handlers may add the same handler.
      const changed = remade.get(added) ?? findRemake(added)?.(toChange(withoutExtensions(use)));
      if (changed) remade.set(added, changed);
      return changed ?? added;
    },
    name: own.uri === undefined && own.scheme === undefined ? `${name}_${own.name}` : own.name,
    use: [...use, ...own.use ?? []],
    tags: [...tags, ...own.tags ?? []],
    [ABOUT]: [...about, ...own[ABOUT] ?? []],
    allow: allow ? both(allow, own.allow) : own.allow,
  });
  const members = handlers.map((handler) => {
    const made = findRemake(handler)?.(toChange(use));
    if (made) return made;
    const state = `${quote(handler?.name)} is not a tool, a resource, a prompt or a group`;
    throw new TypeError(`Cannot make group ${quote(name)}: ${state}`);
  });
  return toGroup(name, members, options) as Group<N, H>; // The cast is safe, because the members were created from these handlers.
}

function findRemake(handler: Handler): Remake | undefined {
  return Object.hasOwn(Object(handler), INTERNALS) ? handler[INTERNALS].remake : undefined;
}

function toGroup(name: string, members: readonly Handler[], options: GroupOptions): Group {
  const { tags = [] } = options;
  const internals = {
    feature: groups,
    key: name,
    definition: undefined,
    also: members.flatMap(withAlso),
    // Change only the name and the tags of this group. The members already have its other options.
    remake(change: <O extends GroupedOptions>(options: O) => O): Handler {
      const outer = change<GroupedOptions>({ name, tags });
      const remade = members.flatMap((member) => member[INTERNALS].remake?.(change) ?? []);
      return toGroup(outer.name, remade, { ...options, tags: outer.tags });
    },
  };
  return withInternals({ name, tags, handlers: members }, internals);
}

/** Combines two `allow` functions: both must allow the caller. `first` is called first. */
function both(first: GroupedAllow, second: GroupedAllow | undefined): GroupedAllow {
  if (!second) return first;
  return (call, subject) => {
    const allowed = readVerdict(first(call), "a group's allow");
    const decide = (allowed: boolean) => allowed && second(call, subject);
    // The call may be cancelled while the first function decides.
    return typeof allowed === "boolean" ? decide(allowed) : allowed.then((allowed) => {
      return !call.signal.aborted && decide(allowed);
    });
  };
}

/** The feature for groups. It serves no requests, because the members belong to other features. */
const groups: Feature = { name: "groups", compile: () => ({ capabilities: {}, methods: {} }) };
