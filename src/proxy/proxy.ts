/**
 * Other servers as handlers: a server serves the tools, prompts and resources of another server as its own.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { proxy } from "@x/mcp/proxy";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const notes = createServer({ name: "notes", version: "1.0.0", handlers: [hello] });
 *
 * export default createServer({ name: "desk", version: "1.0.0", handlers: [proxy(notes, { prefix: "notes_" })] });
 * ```
 *
 * @module
 */
import type { Client } from "../client/calls.ts";
import { type Locked, toPages } from "../client/lock_file.ts";
import type { Target } from "../client/target.ts";
import { INTERNALS, OWNS, withInternals } from "../core/internals.ts";
import { deadline } from "../core/kit/deadline.ts";
import { createTaskExtension } from "../extensions/tasks/task_methods.ts";
import { addTaskSource, lazySource } from "../extensions/tasks/task_source.ts";
import { type Params, withoutReserved } from "../core/protocol/jsonrpc.ts";
import { matchesTemplate } from "../core/protocol/uri_template.ts";
import {
  type Completers,
  type Context,
  type Handler,
  type Prompt,
  prompt,
  promptProvider,
  resourceProvider,
  type ResourceReturn,
  type Suggestions,
  type Tool,
  tool,
  ToolError,
  toolProvider,
  transform,
} from "../library.ts";
import type { ServerHandle, StartPart } from "../server/engine/server_handle.ts";
import type { Owns } from "../server/handlers/source_list.ts";
import type { Feature, GroupedOptions, Remake } from "../server/visibility/feature.ts";
import { withAlso } from "../server/visibility/registry.ts";
import type { SubscriptionHooks } from "../server/visibility/subscribers.ts";
import { canGetTask, passOn } from "./calls.ts";
import { findLoop, toHops } from "./hops.ts";
import type { KeptEntry, Kind, ScopeParts } from "./parts.ts";
import { findChange, type ProxyOptions, readSettings, type Settings } from "./settings.ts";
import { Upstream } from "./upstream.ts";

export type { ProxyOptions } from "./settings.ts";

/**
 * Returns a handler that serves everything of another server: its tools, prompts, resources and templates, each with
 * progress, log messages, questions and cancellation. Clients and the other server can have any protocol revision. The
 * target is a URL, a command, a server of this process, or a connected client. Use several proxies for several servers.
 *
 * The server starts without the other server, and keeps its last known lists while it is down. Handlers of the server
 * take precedence over those of proxies, and the first proxy takes precedence over the next.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { proxy } from "@x/mcp/proxy";
 *
 * const github = proxy("https://api.example.com/mcp", {
 *   prefix: "github_",
 *   headers: { authorization: "Bearer the-key-of-this-server" },
 *   tools: { include: ["issues_*"] },
 * });
 * export default createServer({ name: "gateway", version: "1.0.0", handlers: [github] });
 * ```
 *
 * @throws {TypeError} if the target is invalid, or if an option is unknown, invalid, or contradicts another option.
 */
export function proxy(target: Target | Client, options: ProxyOptions = {}): Handler {
  const settings = readSettings(target, options);
  const members = [...createMembers(settings), createTaskExtension(() => {}, 1)];
  return toHandler(settings.name, members, settings);
}

/** Milliseconds for which `server.ready()` waits for the instructions of another server. */
const INSTRUCTIONS_MS = 2000;

function createMembers(settings: Settings): readonly Handler[] {
  const { name, use, tags, allow, scopes, listMs, uris, instructions, required } = settings;
  /** Each server has an upstream of its own, which the providers share. */
  const slot = {};
  const find = (server: ServerHandle | undefined): Upstream => {
    if (server) return server.slot(slot, () => new Upstream(settings));
    throw new Error(`Cannot use proxy ${JSON.stringify(name)}: it has not started`);
  };
  /** The upstreams of all servers with this proxy, because the hooks of subscriptions get no handle of their server. */
  // Bound: one per server.
  const live = new Set<Upstream>();
  const start: StartPart = (server) => find(server).begin(server);
  const page = async (
    kind: Kind,
    ...[cursor, ctx, server]: readonly [string | undefined, Context, ServerHandle | undefined]
  ) => {
    const upstream = find(server);
    return { upstream, ...await (await upstream.scopeOf(ctx)).lists[kind].page(cursor, ctx) };
  };
  const startFirst: StartPart = async (server) => {
    const upstream = find(server);
    const stop = upstream.begin(server, "tools");
    const remove = addTaskSource(server, lazySource(async () => (await loadTasks()).openTasks(upstream, server)));
    const end = async () => {
      remove();
      await stop();
    };
    try {
      const connecting = required || instructions ? upstream.shared.connect(undefined) : undefined;
      if (required) await connecting;
      else if (connecting) await deadline(connecting.catch(() => {}), { ms: INSTRUCTIONS_MS, onTimeout: () => {} });
    } catch (error) {
      await end();
      throw error;
    }
    return end;
  };
  const common = { name, use, tags, allow, listMs };
  // Each upstream watches what clients of any server watch.
  const charged: Pick<SubscriptionHooks, typeof INTERNALS> = {
    [INTERNALS]: (client) => [...live][0]?.keepWatched(client),
  };
  return [
    toolProvider({
      ...common,
      start: startFirst,
      async list(cursor, ctx, server) {
        const { upstream, entries, ...hints } = await page("tools", cursor, ctx, server);
        return { ...hints, tools: entries.map((entry) => toTool(upstream, entry)) };
      },
      async find(key, ctx, server) {
        const upstream = find(server);
        let found: Awaited<ReturnType<typeof findTool>>;
        try {
          found = await findTool(upstream, key, ctx);
        } catch {
          // The call returns the error, or asks the questions of `headers`, because `find` cannot ask.
          return tool.from({ name: key, inputSchema: { type: "object" } }, async (_input, ctx) => {
            await (await upstream.scopeOf(ctx)).connect(ctx);
            throw new ToolError(`Cannot call ${key}: its server was not ready, but is now; call the tool again`);
          }, { scopes });
        }
        return found ?? (await upstream.scopeOf(ctx)).refuse("tools", key);
      },
    }),
    promptProvider({
      ...common,
      start,
      async list(cursor, ctx, server) {
        const { upstream, entries, ...hints } = await page("prompts", cursor, ctx, server);
        return { ...hints, prompts: entries.map((entry) => toPrompt(upstream, entry)) };
      },
      async find(key, ctx, server) {
        const upstream = find(server);
        const entry = await findEntry(upstream, "prompts", key, ctx);
        return entry ? toPrompt(upstream, entry) : (await upstream.scopeOf(ctx)).refuse("prompts", key);
      },
    }),
    resourceProvider({
      ...common,
      ...settings.lock && { [OWNS]: toOwns(settings.lock[1]) },
      scopes,
      uris,
      start(server) {
        const upstream = find(server);
        const end = upstream.begin(server, "resources");
        live.add(upstream);
        return async () => {
          live.delete(upstream);
          await end();
        };
      },
      async list(cursor, ctx, server) {
        const { upstream: _, entries, ...hints } = await page("resources", cursor, ctx, server);
        return { ...hints, resources: entries.map(({ listed }) => listed) };
      },
      async templates(cursor, ctx, server) {
        const { upstream: _, entries, ...hints } = await page("resourceTemplates", cursor, ctx, server);
        return { ...hints, templates: entries.map(({ listed }) => listed) };
      },
      async complete(template, { name, value, others }, ctx, server) {
        const upstream = find(server);
        const asked = { ref: { type: "ref/resource", uri: template }, name, value, others };
        return await complete(upstream, { scope: await upstream.scopeOf(ctx), ctx }, asked);
      },
      async read(uri, ctx, server) {
        const upstream = find(server);
        const request = { method: "resources/read", subject: uri, params: { uri } } as const;
        const { contents, ...result } = await passOn(upstream, { scope: await upstream.scopeOf(ctx), ctx }, request);
        // The cast is safe, because the library checks the contents.
        return { ...result, contents: Array.isArray(contents) ? contents : [] } as ResourceReturn;
      },
      subscribe: async (uri) => void await Promise.all([...live].map((upstream) => upstream.watch(uri))),
      unsubscribe: async (uri) => void await Promise.all([...live].map((upstream) => upstream.unwatch(uri))),
      ...charged,
    }),
  ];
}

/** The lock of the server compares what it names, so no other server may serve it in its place. */
function toOwns(locked: Locked): Owns {
  const uris = new Set<unknown>([...Object.keys(locked.resources), ...toPages(locked).keys()]);
  const templates = Object.keys(locked.resourceTemplates);
  return (uri, list) =>
    list === "list" ? uris.has(uri) : templates.some((each) => each === uri || matchesTemplate(each, uri));
}

async function findTool(upstream: Upstream, key: string, ctx: Context) {
  const entry = await findEntry(upstream, "tools", key, ctx);
  const found = entry && toTool(upstream, entry);
  // A tool that cannot be served has another name. The list reports it.
  return found?.name === key ? found : undefined;
}

/** Finds an entry. Returns `undefined` if the server is down and the name may belong to another proxy. */
async function findEntry(
  upstream: Upstream,
  kind: "tools" | "prompts",
  key: string,
  ctx: Context,
): Promise<KeptEntry | undefined> {
  if (!key.startsWith(upstream.settings.prefix)) return;
  try {
    return await (await upstream.scopeOf(ctx)).lists[kind].find(key, ctx);
  } catch (error) {
    if (upstream.ownsNames) throw error;
  }
}

/** The handlers of entries, because a provider compiles each handler object once. */
const made = new WeakMap<KeptEntry, Handler>();

function remember<H extends Handler>(entry: KeptEntry, make: () => H): H {
  const known = made.get(entry) ?? make();
  made.set(entry, known);
  return known as H; // The cast is safe, because each entry belongs to one list.
}

function toTool(upstream: Upstream, entry: KeptEntry): Tool<string, Params, unknown> {
  return remember(entry, () => {
    const { scopes } = upstream.settings;
    const { name, listed, scope } = entry;
    const change = findChange(upstream.settings, name);
    const own = tool.from(listed, async (input, ctx) => {
      // A function around the tool could change the result of a call, but not that of a task.
      const canBeTask = !change?.run && canGetTask(ctx);
      const request = { method: "tools/call", subject: name, params: { name, arguments: input }, canBeTask } as const;
      const passed = await passOn(upstream, { scope, ctx }, request);
      if (canBeTask && passed.resultType === "task") return await (await loadTasks()).passTask(upstream, ctx, passed);
      // The result of a plain tool then needs no further check.
      const result = withoutReserved(passed);
      // A result without content would be encoded as data.
      return Array.isArray(result.content) ? result : { ...result, content: [] };
    }, { scopes });
    return change ? transform(own, { ...change, name: entry.key }) : own;
  });
}

const loadTasks = () => import("./upstream_tasks.ts");

function toPrompt(upstream: Upstream, entry: KeptEntry): Prompt<string, Readonly<Record<string, string>>> {
  return remember(entry, () => {
    const { scopes } = upstream.settings;
    const { name, listed, scope } = entry;
    const given = Array.isArray(listed.arguments) ? listed.arguments : [];
    const names = given.map((each) => Object(each).name).filter((name) => typeof name === "string");
    return prompt.from(listed, async (input, ctx) => {
      const request = { method: "prompts/get", subject: name, params: { name, arguments: input } } as const;
      const { messages, ...result } = await passOn(upstream, { scope, ctx }, request);
      return { ...result, messages: Array.isArray(messages) ? messages : [] };
    }, { scopes, complete: toCompleters(upstream, entry, { type: "ref/prompt", name }, names) });
  });
}

function toCompleters(
  upstream: Upstream,
  { scope }: KeptEntry,
  ref: Params,
  names: readonly string[],
): Completers<string> {
  return Object.fromEntries(
    names.map((
      name,
    ) => [name, (value, others, ctx) => complete(upstream, { scope, ctx }, { ref, name, value, others })]),
  );
}

interface Completed {
  readonly ref: Params;
  readonly name: string;
  readonly value: string;
  readonly others: Readonly<Record<string, string>>;
}

async function complete(
  { id, settings }: Upstream,
  { scope, ctx }: { readonly scope: ScopeParts; readonly ctx: Context },
  { ref, name, value, others }: Completed,
): Promise<Suggestions> {
  const { client } = await scope.connect(ctx);
  if (!client.server.capabilities.completions || findLoop(ctx, id)) return [];
  const context = Object.keys(others).length ? { context: { arguments: others } } : {};
  const params = { ref, argument: { name, value }, ...context };
  const sent = { signal: ctx.signal, meta: toHops(ctx, id), timeoutMs: settings.timeoutMs };
  const result = await scope.request("completion/complete", params, sent, { ctx, isRepeatable: true });
  const { values, total, hasMore }: Params = Object(result.completion);
  return {
    values: Array.isArray(values) ? values.filter((each) => typeof each === "string") : [],
    ...typeof total === "number" && { total },
    ...typeof hasMore === "boolean" && { hasMore },
  };
}

/** `change` of a group, or of the layers of a server, changes all members. */
function toHandler(name: string, members: readonly Handler[], settings: Settings): Handler {
  const { tags, prefix } = settings;
  const internals = {
    feature: proxies,
    key: name,
    definition: { prefix },
    also: members.flatMap(withAlso),
    remake: (change: Parameters<Remake>[0]): Handler => {
      const { name: changed } = change<GroupedOptions>({ name });
      return toHandler(changed, members.map((member) => member[INTERNALS].remake?.(change) ?? member), settings);
    },
  };
  return withInternals({ name, tags }, internals);
}

/** The feature of proxies. It serves no requests, because the members belong to other features. */
const proxies: Feature = {
  name: "proxies",
  compile(handlers) {
    const all = handlers.map(({ name, [INTERNALS]: { definition } }) => ({
      name,
      prefix: `${Object(definition).prefix}`,
    }));
    for (const [at, { name, prefix }] of all.entries()) {
      const other = all.find((each, index) => index !== at && prefix && each.prefix.startsWith(prefix));
      if (!other) continue;
      throw new TypeError(
        `Cannot serve proxy ${JSON.stringify(name)}: its prefix ${prefix} begins the prefix ${other.prefix} of ` +
          `${JSON.stringify(other.name)}, so a name could belong to both; choose another prefix`,
      );
    }
    return { capabilities: {}, methods: {} };
  },
};
