/**
 * Finds the endpoint of a concrete path, such as `/tenants/acme/mcp` for a server at `/tenants/:tenant/mcp`. Loaded with
 * the first request to such a server.
 *
 * @module
 */
import { McpError } from "../../protocol/errors.ts";
import type { CompiledSchema, Schema } from "../../schema/schema.ts";
import { readTextValues } from "../../schema/text_values.ts";
import type { Change } from "../../core/changes.ts";
import type { Toggle } from "../../core/visibility.ts";
import type { HandlerSet, ReadRoute } from "../../core/context.ts";
import type { Engine } from "../../core/era.ts";
import type { Handler } from "../../core/feature.ts";
import { INTERNALS } from "../../core/internals.ts";
import { BUSY, RETRY_AFTER } from "../../core/link.ts";
import { type OpenPipe, openPipe, type PipeServer } from "../channel.ts";
import type { ConnectionInfo } from "./access.ts";
import type { LoadGate } from "./entrance.ts";
import { toFault, toRefusal } from "./exchange.ts";
import type { Endpoint, Fetch } from "./fetch.ts";
import { PathTemplate } from "./path_template.ts";
import type { HttpEntry } from "./upgrades.ts";

/** Parameters of a path by name. With a schema, they have its types. */
export type RouteParams = Readonly<Record<string, unknown>>;

/** The parts that the server of one concrete path gets from the server with the parameters. */
export interface Branch {
  readonly trunk: Engine;
  readonly loadGate?: LoadGate;
  readonly path: string;
  readonly secret: string | readonly string[];
  readonly handlers: readonly Handler[];
  readonly route: ReadRoute;
  /** The calls of `enable` and `disable` that hold at all paths. */
  readonly toggles?: readonly Toggle[];
}

/** The server of one concrete path. */
export interface BranchServer extends PipeServer {
  readonly fetch: Fetch;
  readonly handlers: HandlerSet<Handler>;
  readonly [INTERNALS]: PipeServer[typeof INTERNALS] & {
    readonly engine: Engine;
    readonly http: HttpEntry;
    stop(): void;
    end(): Promise<void>;
    rest(): void;
  };
}

/** Returns the handlers of a concrete path, or `undefined` if there is nothing at the path. */
export type MakeHandlers = (params: never) => MadeHandlers | Promise<MadeHandlers>;

type MadeHandlers = readonly Handler[] | undefined;

/** The parts of a server whose path has parameters. */
export interface PathRouterOptions {
  readonly engine: Engine;
  readonly endpoint: Endpoint;
  readonly loadGate?: LoadGate;
  readonly path: string;
  readonly secret?: string | readonly string[];
  /** Schema of the parameters. */
  readonly params?: Schema;
  readonly schema?: CompiledSchema;
  readonly makeHandlers?: MakeHandlers;
  /** Creates the server of a concrete path. */
  readonly grow: (branch: Branch) => BranchServer;
}

/** A concrete path with its parameters. */
interface Place {
  readonly path: string;
  readonly params: RouteParams;
}

/** A concrete path whose server is being made or in memory. */
interface Entry {
  readonly making: Promise<BranchServer | undefined>;
  server?: BranchServer;
  /** Requests without a response, and open channels. */
  users: number;
}

/** The servers of the concrete paths. The path that was used least recently is dropped first. */
export class PathRouter {
  readonly #options: PathRouterOptions;
  readonly #template: PathTemplate;
  readonly #secret: string | readonly string[];
  /** The path that was used least recently is first. */
  readonly #entries = new Map<string, Entry>();
  readonly #connected?: Promise<void>;
  #isClosed = false;

  /** Creates the router of a server. */
  constructor(options: PathRouterOptions) {
    const { path, secret, engine: { changes } } = options;
    this.#options = options;
    this.#template = new PathTemplate(path);
    // Without one of its own, a path that is dropped and used again could not open what it had sealed.
    this.#secret = secret ?? crypto.randomUUID() + crypto.randomUUID();
    changes.listeners.add((change) => this.#announce(change));
    this.#connected = changes.connect?.();
  }

  /** Handles a request. */
  readonly fetch: Fetch = async (request, info) => {
    const { engine: { core }, endpoint, loadGate } = this.#options;
    if (core.prepare) await core.prepare();
    const gate = await loadGate?.();
    const refusal = endpoint.parts.check(request, info);
    if (refusal) return gate?.respond(request) ?? refusal;
    try {
      const place = await this.#locate(URL.parse(request.url)?.pathname ?? "");
      if (!place) return await (gate?.respond(request) ?? endpoint.refusePath(request));
      if (!METHODS.includes(request.method)) return await endpoint.fetch(request, info);
      // Only callers that are known may take room for a path.
      const entered = gate && !gate.findAdmitted(info) ? await gate.enter(request, info, "http") : info;
      if (entered instanceof Response) return entered;
      return await this.#pass(place, request, entered);
    } catch (error) {
      return toFault(core, error);
    }
  };

  async #pass(place: Place, request: Request, info: ConnectionInfo | undefined): Promise<Response> {
    const entry = this.#open(place);
    if (!entry) return this.#refuseBusy(request);
    entry.users++;
    try {
      const server = await entry.making;
      return await (server ? server.fetch(request, info) : this.#options.endpoint.refusePath(request));
    } finally {
      entry.users--;
    }
  }

  #refuseBusy(http: Request): Response {
    const { observing } = this.#options.engine.core;
    const refused = { status: 503, message: TOO_MANY, headers: RETRY_AFTER };
    observing?.refuse({ transport: "http", http: { request: http } }, { ...refused, reason: "limit", code: BUSY });
    return toRefusal(refused, BUSY);
  }

  /**
   * Returns the server of a concrete path for a channel.
   *
   * @throws {TypeError} if a parameter is missing or does not fit.
   * @throws {McpError} if too many paths are in use.
   */
  async enter(params: RouteParams): Promise<PipeServer> {
    const { path } = this.#options;
    const values = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
    const server = await this.#enter(this.#template.build(values));
    if (server) return server;
    throw new TypeError(`Cannot open ${path}: there is no endpoint for ${JSON.stringify(values)}; check params`);
  }

  /**
   * Returns the server whose parameters are at their places in another path, such as that of a socket.
   *
   * @throws {McpError} if too many paths are in use.
   */
  async find(template: string, pathname: string): Promise<PipeServer | undefined> {
    const values = pathname.length <= MAX_PATH ? new PathTemplate(template).match(pathname) : undefined;
    return values && await this.#enter(this.#template.build(values));
  }

  async #enter(pathname: string): Promise<PipeServer | undefined> {
    await this.#options.engine.core.prepare?.();
    const place = await this.#locate(pathname);
    const entry = place && this.#open(place);
    if (place && !entry) throw new McpError(BUSY, TOO_MANY);
    const server = await entry?.making;
    if (!entry || !server) return;
    const openCounted: OpenPipe = (options) => {
      const pipe = openPipe(server, options);
      entry.users++;
      const { close } = pipe;
      let isOpen = true;
      pipe.close = () => {
        if (isOpen) entry.users--;
        isOpen = false;
        close.call(pipe);
      };
      return pipe;
    };
    return { [INTERNALS]: { ...server[INTERNALS], openPipe: openCounted } };
  }

  /** The servers that are in memory. */
  list(): readonly BranchServer[] {
    return [...this.#entries.values()].flatMap(({ server }) => server ?? []);
  }

  /** Adds handlers to all servers. If one of them refuses, changes none and throws. */
  add(handlers: readonly Handler[]): void {
    const done: Engine[] = [];
    try {
      for (const { [INTERNALS]: { engine } } of this.list()) {
        engine.registry.add(handlers);
        done.push(engine);
      }
    } catch (error) {
      for (const { registry } of done) registry.remove(handlers);
      throw error;
    }
  }

  /** Removes handlers from all servers. */
  remove(handlers: readonly Handler[]): void {
    for (const { [INTERNALS]: { engine } } of this.list()) engine.registry.remove(handlers);
  }

  /** Stops accepting calls. */
  stop(): void {
    this.#isClosed = true;
    for (const server of this.list()) server[INTERNALS].stop();
  }

  /** Ends all streams. */
  async end(): Promise<void> {
    await Promise.all(this.list().map((server) => server[INTERNALS].end()));
    this.#entries.clear();
  }

  async #locate(pathname: string): Promise<Place | undefined> {
    const { schema } = this.#options;
    const values = pathname.length <= MAX_PATH ? this.#template.match(pathname) : undefined;
    if (!values) return;
    // Two spellings of a path lead to the same endpoint.
    const path = this.#template.build(values);
    if (!schema) return { path, params: values };
    const checked = await readTextValues(schema, values);
    // A schema may return anything, which is what handlers get.
    return checked.problem === undefined ? { path, params: checked.value as RouteParams } : undefined;
  }

  #open(place: Place): Entry | undefined {
    const { path } = place;
    let entry = this.#entries.get(path);
    if (entry) this.#entries.delete(path);
    else {
      if (this.#entries.size >= this.#options.engine.core.limits.endpoints.open && !this.#dropOne()) return;
      entry = this.#make(place);
    }
    this.#entries.set(path, entry);
    return entry;
  }

  #make(place: Place): Entry {
    const making = this.#grow(place);
    const entry: Entry = { making, users: 0 };
    const drop = () => void (this.#entries.get(place.path) === entry && this.#entries.delete(place.path));
    making.then((server) => {
      entry.server = server;
      if (!server) return drop();
      if (this.#isClosed) {
        server[INTERNALS].stop();
        server[INTERNALS].end();
      }
    }, drop);
    return entry;
  }

  async #grow({ path, params }: Place): Promise<BranchServer | undefined> {
    // Otherwise a client could subscribe before changes of other instances arrive.
    await this.#connected;
    const { engine, loadGate, makeHandlers, params: schema, grow } = this.#options;
    // The schema of the server has the type of its values.
    const own = makeHandlers ? await makeHandlers(params as never) : [];
    if (own === undefined) return;
    const route = (wanted?: Schema) => {
      if (wanted === undefined || wanted === schema) return params;
      throw new TypeError("Cannot read path parameters: this is not the schema that the server has as `params`");
    };
    const handlers = [...engine.registry.handlers, ...own];
    // As above.
    return grow({ trunk: engine, loadGate, path, secret: this.#secret, handlers, route: route as ReadRoute });
  }

  #dropOne(): boolean {
    const { scheduler, core } = this.#options.engine;
    core.observing?.reach("endpoints.open");
    const busy = scheduler.busyServers();
    for (const [path, { server, users }] of this.#entries) {
      if (!server || users) continue;
      const { http, engine: { host } } = server[INTERNALS];
      if (http.endpoint.loaded?.parts.streams.size || busy.has(host.server)) continue;
      this.#entries.delete(path);
      server[INTERNALS].rest();
      server[INTERNALS].end();
      return true;
    }
    return false;
  }

  // Changes that the server announces hold for all paths, also those of other instances.
  #announce(change: Change): void {
    if (change.kind === "close" || change.kind === "list" && change.handlers) return;
    for (const { [INTERNALS]: { engine: { changes, registry } } } of this.list()) {
      if (change.kind === "list" && !registry.compiled(change.feature)) continue;
      for (const listener of [...changes.listeners]) listener(change);
    }
  }
}

/** Methods of requests to an endpoint. */
const METHODS: readonly string[] = ["GET", "POST", "DELETE"];
/** Maximum characters of a concrete path, which is kept in memory. */
const MAX_PATH = 1024;

const TOO_MANY = "Cannot serve the request: too many paths are in use (endpoints.open)";
