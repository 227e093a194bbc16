/**
 * Serves the operations of an OpenAPI document as tools and resources.
 */
import type { Handler } from "../../library.ts";
import { INTERNALS, withInternals } from "../../core/internals.ts";
import { checkOptions, show } from "../../core/known_options.ts";
import { findSuggestion } from "../../core/kit/suggestions.ts";
import { isObject } from "../../core/kit/json.ts";
import { transform } from "../../server/handlers/transform.ts";
import { watcher } from "../../server/handlers/watcher.ts";
import type { Feature, GroupedOptions, HandlerLayers, Remake } from "../../server/visibility/feature.ts";
import { withAlso } from "../../server/visibility/registry.ts";
import { type ApiDocument, toList, toNode, toText } from "./document.ts";
import { countBytes } from "./json_copy.ts";
import { type ApiParts, makeOperation } from "./operation_handler.ts";
import { type DocumentOperation, listOperations, listServers, UNKNOWN_METHOD } from "./operations.ts";
import type { ApiOperation } from "./api_operation.ts";
import { type OpenApiOptions, type OperationKind, OPTIONS } from "./options.ts";
import { readDocument } from "./read_document.ts";
import { createResultFinder } from "./results.ts";
import { Schemas } from "./schemas.ts";
import { toArgumentName } from "./names.ts";

/** An operation, with the kind of its handler. */
export interface ServedOperation extends ApiOperation {
  /** The kind of the handler. `none` if the operation is left out. */
  readonly kind: OperationKind;
  /** The reason why the operation cannot be called. `undefined` if it can be called, or if `as` leaves it out. */
  readonly reason?: string;
  /** Size of the operation in the list of tools or resources, as JSON, in bytes. 0 if it is left out. */
  readonly bytes: number;
  /** Estimated number of tokens of the operation in a list: a quarter of its bytes. */
  readonly tokens: number;
  /** Number of parts of its schema that are not described, because the schema would be larger than 32 KB. */
  readonly cut: number;
}

/** The operations of a document, for `handlers`. */
export interface Api extends Handler {
  /** The tools, resources and resource templates. */
  readonly handlers: readonly Handler[];
  /** All operations of the document, in its order. */
  readonly operations: readonly ServedOperation[];
}

/** Number of tools above which a server needs a search, or a selection with `as`. */
export const MAX_TOOLS = 128;

/**
 * Serves the operations of an OpenAPI document, of version 2.0 to 3.2. Each operation becomes a tool, unless `as` decides
 * otherwise. The document is an object: parse JSON or YAML first.
 *
 * Requests go to `baseUrl`, or to an app in this process. They cannot reach this machine or its network, unless
 * `allowPrivate` lists the host. References to files and URLs are not loaded, and the `servers` of the document are not
 * used.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { openapi } from "@x/mcp/openapi";
 *
 * const document = {
 *   openapi: "3.1.0",
 *   info: { title: "Pets", version: "1.0.0" },
 *   paths: { "/pets/{id}": { get: { operationId: "getPet", summary: "Returns a pet" } } },
 * };
 *
 * const pets = openapi(document, { baseUrl: "https://pets.example.com/v1" });
 *
 * export default createServer({ name: "pets", version: "1.0.0", handlers: [pets] });
 * ```
 *
 * A server with more than 128 tools of a document needs `toolSearch()`, or a selection with `as`. Otherwise
 * `server.ready()` rejects.
 *
 * @throws {TypeError} if the document cannot be read, an option is unknown or invalid, or an operation cannot become what
 * `as` returns.
 */
export function openapi(document: object, options: OpenApiOptions): Api {
  checkOptions("make an API", options, OPTIONS);
  const read = readDocument(document, { withResults: (options.output ?? "none") !== "none" });
  const title = toText(toNode(read.root.info).title) ?? "API";
  const name = toArgumentName(title).toLowerCase();
  const parts: ApiParts = {
    document: read,
    schemas: { arguments: new Schemas(read, "arguments"), results: new Schemas(read, "results") },
    findResult: createResultFinder(document),
    findBase: createFindBase(options),
    uri: `api://${name}`,
    options,
  };
  const operations = listOperations(read);
  checkTransform(options, operations);
  checkAuth(options, read, operations);
  const made = operations.map((operation) => serve(operation, parts));
  return toApi({
    name,
    handlers: made.flatMap(({ handler }) => handler ?? []),
    operations: made.map(({ served }) => served),
    isSelected: options.as !== undefined,
  });
}

/** Returns a function that returns the base URL of an operation, or `undefined` if only its own servers have it. */
function createFindBase({ baseUrl, fetch }: OpenApiOptions): ApiParts["findBase"] {
  if (typeof baseUrl === "function") {
    return (operation) => {
      const returned = baseUrl(operation);
      return returned === undefined ? undefined : readBase(returned, `baseUrl(${JSON.stringify(operation.id)})`);
    };
  }
  if (baseUrl === undefined && !fetch) {
    throw new TypeError(
      "Cannot make an API: baseUrl is missing; the servers of the document are never used, so write the URL of the API",
    );
  }
  const base = readBase(baseUrl ?? "http://localhost", "baseUrl");
  // An app in this process serves all operations.
  return ({ servers }) => servers.length && !fetch ? undefined : base;
}

/** `place` is the name of the URL in errors. */
function readBase(given: unknown, place: string): URL {
  const refuse = (state: string) => new TypeError(`Cannot make an API: ${state}`);
  const text = String(given);
  if (!URL.canParse(text) || !/^https?:/i.test(text)) {
    throw refuse(`${place} is ${show(text)}; it must be a URL such as https://api.example.com/v1`);
  }
  const base = new URL(text);
  if (base.username || base.password) throw refuse(`${place} contains credentials; use auth instead`);
  if (base.search || base.hash) throw refuse(`${place} has a query or a fragment; remove it`);
  return base;
}

function checkTransform({ transform = {} }: OpenApiOptions, operations: readonly ApiOperation[]): void {
  if (typeof transform === "function") return;
  if (!isObject(transform)) {
    throw new TypeError(`Cannot make an API: transform is ${show(transform)}; use an object, or a function`);
  }
  const ids = operations.map(({ id }) => id);
  checkNames("transform", transform, ids, { word: "an operation", remedy: "use the operationId" });
}

function checkAuth(
  { auth = {} }: OpenApiOptions,
  { root }: ApiDocument,
  operations: readonly DocumentOperation[],
): void {
  const required = [root.security, ...operations.map(({ node }) => node.security)].flatMap(toList);
  const names = [toNode(toNode(root.components).securitySchemes), ...required].flatMap((each) =>
    Object.keys(toNode(each))
  );
  const remedy = names.length ? `use a name such as ${names[0]}` : "add the scheme to the document";
  checkNames("auth", auth, names, { word: "a security scheme of the document", remedy });
}

/** Throws if an option has a name that the document does not have. */
function checkNames(
  option: keyof OpenApiOptions,
  given: object,
  known: readonly string[],
  { word, remedy }: { readonly word: string; readonly remedy: string },
): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const meant = findSuggestion(unknown, known);
  const next = meant === undefined ? remedy : `did you mean ${meant}?`;
  throw new TypeError(`Cannot make an API: ${option} names ${show(unknown)}, which is not ${word}; ${next}`);
}

const KINDS: readonly unknown[] = ["tool", "resource", "template", "none"];

/** @throws {TypeError} if a `transform` function returns something other than changes. */
function checkChange(change: unknown, { id }: ApiOperation): void {
  if (change === undefined || isObject(change)) return;
  throw new TypeError(
    `Cannot make an API: transform returned ${show(change)} for ${id}; return an object, or undefined`,
  );
}

function serve(operation: DocumentOperation, parts: ApiParts) {
  const { as, transform: changes = {} } = parts.options;
  const { node: _node, shared: _shared, problem: _problem, ...shown } = operation;
  // Nobody can select operations that are not known.
  const kind = as && operation.method !== UNKNOWN_METHOD ? as(shown) : "tool";
  if (!KINDS.includes(kind)) {
    throw new TypeError(`Cannot make an API: as returned ${show(kind)}; return tool, resource, template or none`);
  }
  const none = { ...shown, kind: "none", bytes: 0, tokens: 0, cut: 0 } as const;
  if (kind === "none") return { served: none };
  const change = typeof changes === "function"
    ? changes(shown)
    : Object.hasOwn(changes, operation.id)
    ? changes[operation.id]
    : undefined;
  checkChange(change, operation);
  const made = makeOperation(operation, kind, { ...parts, changes: change?.input ?? {} });
  if ("reason" in made) return { served: { ...none, reason: made.reason } };
  // The cast is safe, because `transform` checks the changes for the kind of the handler.
  const handler = change ? transform(made.handler as never, change as never) as Handler : made.handler;
  const bytes = countBytes(JSON.stringify(made.definition));
  return { handler, served: { ...shown, kind, bytes, tokens: Math.ceil(bytes / 4), cut: made.cut } };
}

interface Made {
  readonly name: string;
  readonly tags?: readonly string[];
  readonly handlers: readonly Handler[];
  readonly operations: readonly ServedOperation[];
  readonly isSelected: boolean;
}

function toApi(made: Made): Api {
  const { name, tags, handlers, operations, isSelected } = made;
  const count = operations.filter(({ kind }) => kind === "tool").length;
  const needsSearch = count > MAX_TOOLS && !isSelected;
  const state =
    `it has ${count} tools, which models cannot use at once; add toolSearch() (in a config file: search: true), or select ` +
    "fewer operations";
  const refused = handlers.length ? undefined : operations.find(({ reason }) => reason !== undefined);
  let hasSearch = false;
  let isWarned = false;
  const layers: HandlerLayers = {
    steps: [],
    requires: [],
    also: [],
    apply: (runner) => runner,
    warnings() {
      isWarned = true;
      if (refused) return [`no operation of the document can be served, such as ${refused.id}: ${refused.reason}`];
      return needsSearch && !hasSearch ? [state] : [];
    },
    verify(all) {
      hasSearch = all.some((handler) => handler[INTERNALS].narrow);
    },
  };
  const life = needsSearch
    ? [watcher(`api ${name}`, () => {
      if (!hasSearch && !isWarned) throw new Error(`Cannot serve the API ${name}: ${state}`);
    })]
    : [];
  const internals = {
    feature: apis,
    key: name,
    definition: undefined,
    also: [...handlers.flatMap(withAlso), ...life],
    layers,
    remake(change: Parameters<Remake>[0]): Handler {
      const outer = change<GroupedOptions>({ name, tags });
      const remade = handlers.flatMap((handler) => handler[INTERNALS].remake?.(change) ?? []);
      return toApi({ ...made, name: outer.name, tags: outer.tags, handlers: remade });
    },
  };
  return withInternals({ name, tags, handlers, operations }, internals);
}

/** The feature for APIs. It serves no requests, because the handlers of the operations belong to other features. */
const apis: Feature = { name: "apis", compile: () => ({ capabilities: {}, methods: {} }) };

/** The API of a document: its title, servers, security schemes and operations. */
export interface DocumentFacts {
  /** Title of the API. */
  readonly title?: string;
  /** Version of the API. */
  readonly version?: string;
  /** Version of the document's format, such as `3.0.3`. */
  readonly format: string;
  /** The URLs of servers in the document: proposals for `baseUrl`. They may be relative, or contain variables. */
  readonly servers: readonly string[];
  /** The security schemes: the names for `auth`, with their types. */
  readonly schemes: readonly { readonly name: string; readonly type: string }[];
  /** All operations, in the order of the document. */
  readonly operations: readonly ApiOperation[];
}

/**
 * Reads the title, servers, security schemes and operations of a document, for programs that propose a server.
 *
 * ```ts
 * import { readOpenApi } from "@x/mcp/openapi";
 *
 * const { operations } = readOpenApi({ openapi: "3.1.0", paths: { "/pets": { get: { operationId: "listPets" } } } });
 * console.log(operations.map(({ id }) => id));
 * ```
 *
 * @throws {TypeError} if the document cannot be read.
 */
export function readOpenApi(document: object): DocumentFacts {
  const read = readDocument(document, { withResults: false });
  const info = toNode(read.root.info);
  const schemes = Object.entries(toNode(toNode(read.root.components).securitySchemes));
  return {
    title: toText(info.title),
    version: toText(info.version),
    format: read.version,
    servers: listServers(read.root.servers),
    schemes: schemes.map(([name, scheme]) => {
      const { type, scheme: http } = toNode(scheme);
      return { name, type: type === "http" ? `http ${http}` : String(type) };
    }),
    operations: listOperations(read).map(({ node: _node, shared: _shared, problem: _problem, ...operation }) =>
      operation
    ),
  };
}
