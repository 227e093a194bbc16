/**
 * Functions for tools that run servers, such as the CLI. The functions give access to internal members of a server.
 *
 * The functions are not exported by an entry of the package, and may change in any release.
 */
import { INTERNALS } from "./core/internals.ts";
import { findSuggestion } from "./core/kit/suggestions.ts";
import { quote } from "./core/protocol/errors.ts";
import { LIMITS } from "./server/capacity/limits.ts";
import type { DevelopmentListener } from "./server/call/development.ts";
import type { Observer } from "./server/call/observer.ts";
import { type Middleware, runsFor } from "./server/call/middleware.ts";
import { SIGN_IN, type SignInFacts, UNREADY } from "./server/engine/auth.ts";
import type { StoreInternals } from "./server/engine/store.ts";
import type { Handler, LayerStep } from "./server/visibility/feature.ts";
import { listSourceWarnings } from "./server/visibility/handler_source.ts";
import { withAlso } from "./server/visibility/registry.ts";
import type { Server } from "./server/server.ts";
import { enterServer, type Served } from "./server/transports/channel.ts";
import { PathTemplate } from "./server/transports/http/path_template.ts";

export { isHandler } from "./server/visibility/feature.ts";
export { findHeaderParams, listHeaderParams } from "./core/schema/header_params.ts";
export { checkCaller, isLoopbackHost } from "./server/transports/http/access.ts";
export {
  explainListenError,
  listen,
  type Listener,
  type ListenOptions,
  toReachable,
} from "./server/transports/http/listen.ts";
export { copyRequest, fetchFrom, type Visit } from "./server/transports/http/request_copy.ts";
export { reportRejections } from "./server/rejections.ts";
export { guardConsole } from "./server/transports/stdio/stdout_guard.ts";

/** A server and its path. A mount has one endpoint for each of its servers. */
export interface Endpoint {
  readonly server: Server;
  readonly name: string;
  /** The path of the HTTP endpoint, such as `/mcp` or `/tenants/:tenant/mcp`. */
  readonly path: string;
  /** Names of the path parameters. Empty if the path has no parameters. */
  readonly params: readonly string[];
  readonly hasAuth: boolean;
  /**
   * Returns the concrete path with these parameters.
   *
   * @throws {TypeError} if a parameter is missing or unknown, or its value cannot be part of a path.
   */
  toPath(params: Readonly<Record<string, string>>): string;
  /**
   * Returns the server at the concrete path with these parameters. Pass the server to `connect`.
   *
   * @throws {TypeError} if a parameter is missing, unknown or invalid.
   */
  enter(params?: Readonly<Record<string, string>>): Promise<Served>;
  /**
   * Turns `development` on, unless the server's options set it to `false`. The code for development loads in the
   * background; await {@linkcode Endpoint.load} to be sure that `listener` receives all reports. Returns a function
   * that removes the listener.
   */
  develop(listener?: DevelopmentListener): () => void;
  /** Call this method before the first request. */
  observe(observer: Observer): void;
  /** Loads the code that the first request would load. */
  load(): Promise<void>;
}

export const limitNames: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(LIMITS).map(([group, limits]) => {
    const numbers = Object.entries<unknown>(limits).filter(([, value]) => typeof value === "number");
    return [group, numbers.map(([name]) => name)];
  }),
);

export async function loadSchemaCompiler(): Promise<typeof import("./core/schema/json_check.ts").compileJsonSchema> {
  return (await import("./core/schema/json_check.ts")).compileJsonSchema;
}

/** Returns the warnings about the code and options of handlers, each with the name of its handler. */
export function listWarnings(server: Server): readonly { readonly place: string; readonly state: string }[] {
  const handlers = server[INTERNALS].engine.registry.handlers.flatMap(withAlso);
  const tools = handlers.filter((each) => each[INTERNALS].feature.name === "tools" && !each[INTERNALS].provide);
  const names = tools.map(({ name }) => name);
  return handlers.flatMap((handler) => {
    const { feature, key, layers, always = [] } = handler[INTERNALS];
    const place = `${feature.name.replace(/s$/, "")} ${key}`;
    const { run, read = run }: { readonly run?: unknown; readonly read?: unknown } = Object(handler);
    const warnings = [
      ...layers?.warnings() ?? [],
      ...listSourceWarnings(String(read), feature.name),
      ...always.filter((name) => !names.includes(name)).map((name) => {
        const suggestion = findSuggestion(name, names);
        const remedy = suggestion === undefined
          ? "tools of a provider cannot stay in the list"
          : `did you mean ${suggestion}?`;
        return `always names ${quote(name)}, but the server itself has no such tool; ${remedy}`;
      }),
    ];
    return warnings.map((state) => ({ place, state }));
  });
}

const METHODS: Readonly<Record<string, string>> = {
  tools: "tools/call",
  resources: "resources/read",
  prompts: "prompts/get",
};

/** The steps of the layers and of the middleware around one handler, in the order in which they run. */
export interface HandlerSteps {
  /** Kind and name of the handler. */
  readonly place: string;
  readonly steps: readonly Pick<LayerStep, "step" | "layer">[];
}

export function listSteps(server: Server): readonly HandlerSteps[] {
  const { use = [], engine: { registry } } = server[INTERNALS];
  return registry.handlers.flatMap(withAlso).flatMap((handler) => {
    const { feature, key, layers } = handler[INTERNALS];
    const method = METHODS[feature.name];
    if (method === undefined) return [];
    const own = layers?.steps ?? toSteps("inside", readMiddleware(handler));
    const ofServer = toSteps("around", use.filter((each) => runsFor(each, method)));
    const steps = [...own.filter((each) => each.isOutermost), ...ofServer, ...own.filter((each) => !each.isOutermost)];
    const place = `${feature.name.replace(/s$/, "")} ${key}`;
    return { place, steps: steps.map(({ step, layer }) => ({ step, layer })) };
  });
}

function toSteps(step: string, middleware: readonly Middleware[]): readonly LayerStep[] {
  return middleware.map(({ name }) => ({ step, layer: name || "middleware" }));
}

/** Returns the middleware of a handler without layers. */
function readMiddleware({ [INTERNALS]: { remake } }: Handler): readonly Middleware[] {
  let found: readonly unknown[] = [];
  remake?.((options) => {
    found = options.use ?? [];
    return options;
  });
  return found as readonly Middleware[]; // The cast is safe, because without layers, `use` contains only middleware.
}

/** Returns the endpoint of a server, or the endpoints of all servers in a mount. */
export function listEndpoints(server: Server): readonly Endpoint[] {
  return (server[INTERNALS].servers ?? [server]).map(toEndpoint);
}

/** A store, and the servers that use it. */
export interface UsedStore extends Pick<StoreInternals, "isShared" | "timeoutMs" | "valueBytes" | "reopen"> {
  readonly names: readonly string[];
  /** Returns whether the storage engine reports new entries. Otherwise the store polls its topics. */
  canListen(): Promise<boolean>;
}

/** Returns the store of a server, or the stores of all servers in a mount. */
export function listStores(server: Server): readonly UsedStore[] {
  const servers = server[INTERNALS].servers ?? [server];
  const named = servers.flatMap(({ [INTERNALS]: { name, engine: { core: { shared } } } }) =>
    shared ? [{ name, store: shared.store }] : []
  );
  return [...Map.groupBy(named, ({ store }) => store)].map(([store, users]) =>
    toUsedStore(store, users.map(({ name }) => name))
  );
}

/** A server whose users sign in at a provider. */
export interface UsedSignIn extends SignInFacts {
  readonly name: string;
  /** Whether the server has a secret. */
  readonly hasSecret: boolean;
  /** Whether the server has a store that other processes can reach. `undefined` if the server has no store. */
  readonly isShared?: boolean;
  /** The error because of which the server serves nobody. */
  readonly unready?: Error;
}

/** Returns the sign-in of a server, or the sign-ins of all servers in a mount. */
export function listSignIns(server: Server): readonly UsedSignIn[] {
  const servers = server[INTERNALS].servers ?? [server];
  return servers.flatMap(({ [INTERNALS]: { name, auth, engine: { core } } }) => {
    const facts = auth?.[SIGN_IN];
    if (!facts) return [];
    const isShared = core.shared?.store.isShared;
    return [{ ...facts, name, hasSecret: core.sealer.isShared, isShared, unready: auth[UNREADY] }];
  });
}

function toUsedStore(store: StoreInternals, names: readonly string[]): UsedStore {
  const { isShared, timeoutMs, valueBytes, reopen, connect } = store;
  async function canListen(): Promise<boolean> {
    const engine = await connect();
    return typeof engine.listen === "function";
  }
  return { isShared, timeoutMs, valueBytes, reopen, names, canListen };
}

/** Tests for properties instead of a class, because a server file may use another copy of this library. */
export function isServer(value: unknown): value is Server {
  return typeof value === "object" && value !== null && INTERNALS in value && "fetch" in value;
}

function toEndpoint(server: Server): Endpoint {
  const { name, auth, http: { path }, develop, observe, load } = server[INTERNALS];
  const template = new PathTemplate(path);
  return {
    server,
    name,
    path,
    params: template.names,
    hasAuth: auth !== undefined,
    toPath: (params) => template.build(params),
    enter: (params) => enterServer(server, params),
    develop,
    observe,
    load,
  };
}
