/**
 * Resources: data that clients can read.
 *
 * @see specification/2026-07-28/server/resources
 */
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import { quote } from "../../core/protocol/errors.ts";
import { withHints } from "../../core/protocol/cache_hints.ts";
import { isObject, withoutReserved } from "../../core/protocol/jsonrpc.ts";
import { ANNOTATIONS } from "../../core/protocol/annotations.ts";
import type { Typed } from "../../core/typed.ts";
import { parseTemplate, type TemplateVariables, type UriTemplate } from "../../core/protocol/uri_template.ts";
import type { Infer, Schema } from "../../core/schema/schema.ts";
import { compileSchema, lazySchemaChecks } from "../../core/schema/schema_compiler.ts";
import type { TextValues } from "../../core/schema/text_values.ts";
import { readScopes } from "../call/scopes.ts";
import type { Call } from "../call/call.ts";
import { type Binding, bindServices } from "../call/container.ts";
import type { ChangeNotifier, Context } from "../call/context.ts";
import {
  checkOptions,
  type KnownOptions,
  type OptionRule,
  show,
  toPlace,
  withoutNulls,
} from "../../core/known_options.ts";
import { compose } from "../call/middleware.ts";
import { type UseItem, withLayers } from "../engine/layers.ts";
import { readRequirements, type Requirement } from "../call/question.ts";
import { bindAllow, type Handler, type ListedParts, type Remake, showToLayers } from "../visibility/feature.ts";
import type { Filter } from "../visibility/guards.ts";
import { wireOnce } from "../visibility/pagination.ts";
import { withoutUnsafeIcons } from "../engine/icons.ts";
import { LISTED, OWNS, withInternals } from "../../core/internals.ts";
import type { NoServices, Services, ServiceValues, SharedServiceValues } from "../call/service.ts";
import type { SubscriptionHooks } from "../visibility/subscribers.ts";
import type { Owns } from "./source_list.ts";
import type { ListedResource, ListedTemplate } from "../../core/protocol/listed.ts";
import { toAbsent } from "./absent.ts";
import {
  type CompletedTemplates,
  type Completers,
  completion,
  lazyOpenProviders,
  type Suggestions,
} from "./completion.ts";
import type { ServerHandle, StartPart } from "../engine/server_handle.ts";
import type { Awaitable } from "../engine/store.ts";
import { fromListed } from "./listed.ts";
import { type StartedProvider, startProvider } from "./provider_start.ts";
import { DESCRIPTION, HANDLER, HANDLER_ELSEWHERE, HANDLER_HINTS } from "./option_names.ts";
import { type ResourceReturn, toContents } from "./resource_contents.ts";
import { callList, type Listing, readListMs, readPage, readStart } from "./source_list.ts";
import {
  type Definition,
  refuseVariables,
  type ResourceEntry,
  type ResourcePage,
  resources,
} from "./resource_methods.ts";
import { lazyWireCheck } from "../call/lazy_wire_check.ts";

/** Options of all resources, without `use`. `Input` is the type of the first argument of `read`. */
export interface ResourceCommonOptions<S extends Services = NoServices, Input = string> {
  /** Name that users and models see. */
  readonly name: string;
  /**
   * Media type of contents for which `read` returns no media type. Defaults to `text/plain`, `application/json` or
   * `application/octet-stream`.
   */
  readonly mimeType?: string;
  /** Services that the functions of this resource use, keyed by name. */
  readonly services?: S;
  /** Describes an unexpected error. Defaults to the server's `mapError`, also if the function returns `undefined`. */
  readonly mapError?: MapError;
  /** Labels, such as `admin` for `server.handlers.disable({ tag: "admin" })`. Clients do not see labels. */
  readonly tags?: readonly string[];
  /**
   * Decides whether a caller may see and read the resource. For other callers, the resource does not exist, and the
   * server does not notify these callers of its changes. `allow` cannot use services that live for one call.
   *
   * `subject` is the first argument of `read`: the variables of a template, or a URI. `subject` is `undefined` if `allow`
   * decides about the template or provider as a whole, such as for lists.
   */
  readonly allow?: (ctx: Context<SharedServiceValues<S>>, subject?: Input) => boolean | Promise<boolean>;
  /**
   * Scopes that the caller must have, such as `["notes:write"]`. A request from any other caller fails with code
   * -31403, and over HTTP with status 403. Use `allow` to hide the handler too. By default, no scopes are required.
   */
  readonly scopes?: readonly string[];
  /**
   * Capabilities that the client must have declared, such as `["elicitation"]`. A read by any other client fails before
   * the handler runs, with code -32021, and over HTTP with status 400.
   *
   * By default, no capabilities are required. A read then fails only if the handler uses a capability that the client
   * lacks.
   */
  readonly requires?: readonly Requirement[];
  /** Milliseconds for which clients may cache the contents. Defaults to the server's `ttlMs`. */
  readonly ttlMs?: number;
  /**
   * Whether callers may share cached contents. Defaults to `"private"`. A resource with `allow`, or of a provider without
   * a scheme, is always private.
   */
  readonly cacheScope?: "public" | "private";
  /**
   * Called when a URI of the resource, template or provider gets its first subscriber. Start watching the resource here,
   * and call `server.resourceUpdated(uri)` for each change. Subscriptions do not wait for `subscribe`. Errors from
   * `subscribe` go to `observer.fault`.
   *
   * Subscribers from which `allow` hides the resource do not count.
   */
  readonly subscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
  /**
   * Called when a URI has lost its last subscriber: the subscriber has unsubscribed, its connection or session has
   * ended, or the server closes. `unsubscribe` is called only after `subscribe` has settled.
   */
  readonly unsubscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
}

/** Options of a fixed resource. Only `uri`, `name` and `read` are required. */
export interface ResourceFixedOptions<S extends Services = NoServices> extends ResourceCommonOptions<S>, ResourceEntry {
  /**
   * Reads the resource. If `read` throws a `ToolError`, the client gets the text of that error. For any other error,
   * the client gets only an error id.
   */
  readonly read: (uri: string, ctx: Context<ServiceValues<S>>) => ResourceReturn | Promise<ResourceReturn>;
}

/** Type of the variables that a template's `read` gets: the output type of `variables`, or else strings. */
export type ReadVariables<U extends string, P extends Schema | undefined = undefined> =
  // Not a distributive type, because `P` is `never` while TypeScript infers the layers in `use`.
  [P] extends [undefined] ? TemplateVariables<U>
    : P extends Schema ? Infer<P>
    : TemplateVariables<U>;

/** Options of a resource template. Only `uri`, `name` and `read` are required. */
export interface ResourceTemplateOptions<
  U extends string,
  S extends Services = NoServices,
  P extends Schema | undefined = undefined,
> extends ResourceCommonOptions<S, ReadVariables<U, P>>, Omit<ResourceEntry, "uri" | "size"> {
  /** URI template, such as `repo://{owner}/{name}{?ref}`. */
  readonly uri: U;
  /**
   * Schema that converts and checks the variables, such as `z.object({ id: z.coerce.number() })`. If the schema rejects
   * the variables of a URI, the resource does not exist. By default, a variable can be any text.
   */
  readonly variables?: P;
  /** Completers, keyed by variable name. */
  readonly complete?: Completers<Extract<keyof TemplateVariables<U>, string>, ServiceValues<S>>;
  /**
   * Lists the resources of this template. Without `list`, clients see only the template. `list` cannot use services
   * that live for one call.
   */
  readonly list?: (
    ctx: Context<SharedServiceValues<S>>,
  ) => readonly ResourceEntry[] | Promise<readonly ResourceEntry[]>;
  /** Reads a resource, given the values of the template's variables. */
  readonly read: (
    variables: ReadVariables<U, P>,
    ctx: Context<ServiceValues<S>>,
  ) => ResourceReturn | Promise<ResourceReturn>;
}

/** Options of a provider. `name`, `read`, and one of `scheme`, `list`, `templates` and `uris` are required. */
export interface ResourceProviderOptions<S extends Services = NoServices> extends ResourceCommonOptions<S> {
  /**
   * URI scheme without a colon, such as `repo`. Fixed resources and templates of this scheme take precedence. By default,
   * the provider serves URIs of any scheme: those that it lists for the caller, else those that match its `templates`, else
   * those in `uris`. If a URI has no other handler, the first provider that lists the URI serves it, else the first
   * provider with a matching template, else the providers with a matching prefix.
   */
  readonly scheme?: string;
  /**
   * Prefixes of URIs that the provider serves although it does not list them, such as `["file:///data/"]`. Only for
   * providers without a scheme. Defaults to none.
   */
  readonly uris?: readonly string[];
  /** Middleware and layers around reads of the provider. The first middleware is the outermost. */
  readonly use?: readonly UseItem<string, ServiceValues<S>, SharedServiceValues<S>>[];
  /**
   * Lists resources page by page. `cursor` is the `nextCursor` of the previous page, and `undefined` for the first
   * page. The cursor passes through the client, so treat it as untrusted input. `list` cannot use services that live
   * for one call.
   */
  readonly list?: (
    cursor: string | undefined,
    ctx: Context<SharedServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => ResourcePage | Promise<ResourcePage>;
  /**
   * Lists URI templates, page by page, or all of them as an array, for `resources/templates/list`. The arguments are those
   * of `list`. Without a scheme, the provider also serves the URIs that match the templates that it lists for the caller.
   */
  readonly templates?: (
    cursor: string | undefined,
    ctx: Context<SharedServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => Awaitable<
    | readonly (Omit<ResourceEntry, "uri" | "size"> & { readonly uriTemplate: string })[]
    | Omit<ResourcePage, "resources"> & {
      readonly templates: readonly (Omit<ResourceEntry, "uri" | "size"> & { readonly uriTemplate: string })[];
    }
  >;
  /**
   * Suggests values for a variable of one of the `templates`. `template` is the text of the template. `others` contains
   * the other variables that already have a value.
   */
  readonly complete?: (
    template: string,
    variable: {
      readonly name: string;
      readonly value: string;
      readonly others: Readonly<Record<string, string>>;
    },
    ctx: Context<ServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => Suggestions | Promise<Suggestions>;
  /**
   * Milliseconds after which a list of several sources leaves out this provider, and after which a read no longer waits for
   * the provider's lists. By default, both wait for the provider.
   */
  readonly listMs?: number;
  /**
   * Starts the provider with its server, with the first request or by `server.ready()`. Can announce changes with
   * `server.listChanged("resources")` and `server.resourceUpdated(uri)`. Can return a function that is called when the
   * server closes or the provider is removed. `list` and `read` wait until the provider has started, and get the same
   * handle. If `start` fails, they fail, and the next call starts the provider again. If the server's path has
   * parameters, `start` is called for each concrete path.
   *
   * Without a scheme, `server.resourceUpdated(uri)` notifies only the callers for whom this provider serves the URI.
   */
  readonly start?: StartPart;
  /**
   * Reads a URI. The server rejects URIs with NUL or a `..` segment, even if NUL or `..` is percent-encoded, unless the
   * provider lists exactly this URI. `server` is the handle that `start` received, or `undefined` without `start`.
   *
   * Without a scheme, `{ contents }` is sent unchanged, for proxies.
   */
  readonly read: (
    uri: string,
    ctx: Context<ServiceValues<S>>,
    server: ServerHandle | undefined,
  ) => ResourceReturn | Promise<ResourceReturn>;
}

const SIZE: OptionRule = {
  findProblem: (size) =>
    size === null || Number.isFinite(size) ? undefined : `is ${show(size)}; it must be a number of bytes`,
};

const HINTS: OptionRule = {
  findProblem(annotations) {
    if (annotations === null) return;
    if (!isObject(annotations)) return `is ${show(annotations)}; it must be an object`;
    for (const [name, [test, remedy]] of Object.entries(ANNOTATIONS)) {
      const value = annotations[name] ?? undefined;
      if (value !== undefined && !test(value)) return `has the ${name} ${show(value)}; ${remedy}`;
    }
  },
};

// Use `Object.assign` instead of a spread. Bundlers do not remove an unused spread, because spreading could run a
// getter.
const RESOURCE = /* @__PURE__ */ Object.assign(
  {
    mimeType: "text",
    ttlMs: true,
    cacheScope: ["public", "private"],
    subscribe: "function",
    unsubscribe: "function",
    read: true,
  } as const,
  HANDLER,
);

const READ_HINTS = { handler: "read", execute: "read", callback: "read", load: "read", run: "read" } as const;

const VARIABLES = "write a uri with variables, such as note://{id}";
const OF_EACH = "set it on each resource that list returns";

const FIXED: KnownOptions<keyof ResourceFixedOptions | "use"> = {
  names: /* @__PURE__ */ Object.assign({ uri: true, size: SIZE, annotations: HINTS } as const, RESOURCE, DESCRIPTION),
  hints: /* @__PURE__ */ Object.assign({ uriTemplate: "uri" } as const, HANDLER_HINTS, READ_HINTS),
  elsewhere: /* @__PURE__ */ Object.assign(
    { variables: VARIABLES, complete: VARIABLES, list: VARIABLES },
    HANDLER_ELSEWHERE,
  ),
};

const TEMPLATE: KnownOptions<keyof ResourceTemplateOptions<TemplateText> | "use"> = {
  names: /* @__PURE__ */ Object.assign(
    { uri: true, annotations: HINTS, variables: true, complete: true, list: "function" } as const,
    RESOURCE,
    DESCRIPTION,
  ),
  hints: /* @__PURE__ */ Object.assign(
    { uriTemplate: "uri", arguments: "variables", input: "variables", params: "variables" } as const,
    HANDLER_HINTS,
    READ_HINTS,
  ),
  elsewhere: /* @__PURE__ */ Object.assign({ size: OF_EACH }, HANDLER_ELSEWHERE),
};

const FROM_URI = "use resource() with a uri";

const PROVIDER: KnownOptions<keyof ResourceProviderOptions> = {
  names: /* @__PURE__ */ Object.assign(
    {
      scheme: true,
      uris: "texts",
      list: "function",
      templates: "function",
      complete: "function",
      listMs: true,
      start: "function",
    } as const,
    RESOURCE,
  ),
  hints: /* @__PURE__ */ Object.assign({}, HANDLER_HINTS, READ_HINTS),
  elsewhere: /* @__PURE__ */ Object.assign({
    uri: FROM_URI,
    variables: FROM_URI,
    title: OF_EACH,
    description: OF_EACH,
    size: OF_EACH,
    annotations: OF_EACH,
    icons: OF_EACH,
    _meta: OF_EACH,
    meta: OF_EACH,
  }, HANDLER_ELSEWHERE),
};

/** Options of a resource: a fixed `uri`, or a URI template. */
export type ResourceOptions<
  U extends string,
  S extends Services = NoServices,
  P extends Schema | undefined = undefined,
> =
  // Not part of the conditional type, in which TypeScript does not infer the types of callbacks of a layer.
  & {
    /** Middleware and layers around reads of this resource. The first middleware is the outermost. */
    readonly use?: readonly UseItem<
      U extends TemplateText ? ReadVariables<U, P> : string,
      ServiceValues<S>,
      SharedServiceValues<S>
    >[];
  }
  & (U extends TemplateText ? ResourceTemplateOptions<U, S, P> : ResourceFixedOptions<S>);

/** Return type of {@linkcode resource}: a template if the URI has variables. */
export type ResourceOf<
  U extends string,
  S extends Services = NoServices,
  P extends Schema | undefined = undefined,
> = U extends TemplateText ?
    & ResourceTemplate<TemplateVariables<U>, ServiceValues<S>, ReadVariables<U, P>>
    & Typed<{ readonly kind: "template"; readonly name: U }>
  : FixedResource<ServiceValues<S>>;

/** Type of a URI template. Without this type, TypeScript treats a template that is not a literal as a fixed URI. */
export type TemplateText = `${string}{${string}}${string}`;

/** A resource, a template or a provider for `handlers`. Tests can call `read` directly. */
export interface Resource<Input = never, S = never> extends Handler {
  /** The `read` function from the options, without validation. */
  readonly read: (input: Input, ctx: Context<S>) => unknown;
}

/** A resource with a fixed URI. */
export interface FixedResource<S = never> extends Resource<string, S> {
  /** Returns the URI of the resource. */
  readonly uri: () => string;
}

/** The resources of a URI template. `Read` is the type of the first argument of `read`. */
export interface ResourceTemplate<Variables, S = never, Read = Variables> extends Resource<Read, S> {
  /**
   * Builds the URI of a resource of this template. Values are percent-encoded as needed, so that `read` gets the same
   * values for this URI.
   *
   * @throws {TypeError} if a variable is missing or unknown, or if its value is not a string or would change when the
   * URI is read.
   */
  readonly uri: (variables: Variables) => string;
}

/** Creates resources. */
export interface ResourceFactory {
  /**
   * Creates a resource with a fixed URI, or the resources of a URI template.
   *
   * @throws {TypeError} if an option is unknown or invalid, or if a completer is for a variable that does not exist.
   */
  <
    const U extends string,
    S extends Services = NoServices,
    const P extends Schema | undefined = undefined,
  >(
    options: { readonly uri: U; readonly variables?: P } & ResourceOptions<U, S, P>,
  ): ResourceOf<U, S, P>;
  /**
   * For proxies: creates a resource or a template that is listed as another server lists it, with all its members. `read`
   * gets the URI, also for a template, and can return the result of the other server, whose contents are sent unchanged.
   * Members of a wrong type are left out. An entry that cannot be listed is not served, and `observer.fault` gets the
   * reason.
   *
   * @throws {TypeError} if `read` is not a function, or an option is unknown or invalid.
   */
  from<S extends Services = NoServices>(
    // An interface has no index signature.
    listed:
      | ListedResource
      | ListedTemplate
      | Pick<ListedResource, "name" | "title" | "description" | "icons" | "uri" | "mimeType" | "size" | "annotations">
      | Pick<ListedTemplate, "name" | "title" | "description" | "icons" | "uriTemplate" | "mimeType" | "annotations">,
    read: (uri: string, ctx: Context<ServiceValues<S>>) => ResourceReturn | Promise<ResourceReturn>,
    options?: ListedResourceOptions<S>,
  ): Resource<string, ServiceValues<S>>;
}

/** The options that `resource.from` takes in addition to the entry of a list. */
export interface ListedResourceOptions<S extends Services = NoServices>
  extends Omit<ResourceCommonOptions<S>, "name" | "mimeType"> {
  /** Middleware and layers around reads. The first middleware is the outermost. */
  readonly use?: readonly UseItem<string, ServiceValues<S>, SharedServiceValues<S>>[];
  /** Completers of a template, keyed by variable name. Completers of other variables are not used. */
  readonly complete?: Completers<string, ServiceValues<S>>;
}

/**
 * Creates a resource with a fixed URI, or the resources of a URI template.
 *
 * ```ts
 * import { resource } from "@x/mcp";
 *
 * const config = resource({ uri: "config://app", name: "config", read: () => ({ theme: "dark" }) });
 *
 * const readme = resource({
 *   uri: "repo://{owner}/{name}/readme",
 *   name: "readme",
 *   mimeType: "text/markdown",
 *   complete: { owner: (value) => ["ada", "alan"].filter((owner) => owner.startsWith(value)) },
 *   read: ({ owner, name }) => `# ${owner}/${name}`,
 * });
 *
 * if (readme.uri({ owner: "ada", name: "my notes" }) !== "repo://ada/my%20notes/readme") throw new Error("not encoded");
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid, or if a completer is for a variable that does not exist.
 */
export const resource: ResourceFactory = /* @__PURE__ */ Object.assign(makeResource, {
  from<S extends Services = NoServices>(
    listed: ListedResource | ListedTemplate,
    read: (uri: string, ctx: Context<ServiceValues<S>>) => ResourceReturn | Promise<ResourceReturn>,
    options: ListedResourceOptions<S> = {},
  ): Resource<string, ServiceValues<S>> {
    const isTemplate = Object(listed).uriTemplate !== undefined;
    const key = isTemplate ? "uriTemplate" : "uri";
    const given = { kind: isTemplate ? "resource template" : "resource", listed, run: read, key, options };
    return fromListed({ ...given, known: isTemplate ? TEMPLATE : FIXED }, (listed) => {
      const { name, title, description, icons, annotations, _meta } = listed;
      const mimeType = typeof listed.mimeType === "string" ? listed.mimeType : undefined;
      const size = Number.isFinite(listed.size) ? listed.size : undefined;
      const members = { name, title, description, mimeType, size, icons, annotations, _meta };
      const parts = { uri: listed[key], [LISTED]: { foreign: true, members: listed } };
      // The cast is safe, because the types of the members have been checked.
      return toListedResource({ ...members, ...options, ...parts, read } as unknown as Form<string>, isTemplate);
    });
  },
});

function toListedResource<S>(form: Form<string>, isTemplate: boolean): Resource<string, S> {
  const defined = define(form, isTemplate ? "template" : "fixed");
  const { variables } = defined.definition;
  const remake: Remake = (change) => toListedResource(change(form), isTemplate);
  const known = Object.entries(form.complete ?? {}).filter(([name]) => variables.includes(name));
  return toResource({ ...form, complete: Object.fromEntries(known) }, defined, { remake });
}

function makeResource<
  const U extends string,
  S extends Services = NoServices,
  const P extends Schema | undefined = undefined,
>(
  options: { readonly uri: U; readonly variables?: P } & ResourceOptions<U, S, P>,
): ResourceOf<U, S, P> {
  const isTemplate = /[{}]/.test(String(Object(options).uri));
  checkOptions(`make ${toPlace("resource", options, "uri")}`, options, isTemplate ? TEMPLATE : FIXED);
  // The cast is safe, because all options have this shape. `define` checks whether `uri` is a template.
  const form = options as unknown as Form<never>;
  const defined = define(form, isTemplate ? "template" : "fixed");
  const { definition: { key }, template } = defined;
  const remake: Remake = (change) => makeResource<U, S, P>(change(options));
  const uri = (values: Readonly<Record<string, string>>) => template ? template.build(values, form.name) : key;
  // The cast is safe, because `ResourceOf` distinguishes fixed resources and templates by the type of the same URI.
  return toResource(form, defined, { remake, uri }) as unknown as ResourceOf<U, S, P>;
}

/**
 * Creates a provider of all resources of a URI scheme, or of the resources that it lists, such as those of another server.
 *
 * ```ts
 * import { resourceProvider } from "@x/mcp";
 *
 * const notes = resourceProvider({
 *   scheme: "note",
 *   name: "notes",
 *   list: () => ({ resources: [{ uri: "note://1", name: "First" }] }),
 *   read: (uri) => uri === "note://1" ? "Buy milk" : undefined,
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function resourceProvider<S extends Services = NoServices>(
  options: ResourceProviderOptions<S>,
): Resource<string, ServiceValues<S>> {
  const subject = Object(options).scheme === undefined ? "name" : "scheme";
  checkOptions(`make ${toPlace("resource provider", options, subject)}`, options, PROVIDER);
  const { scheme, name, start, list, templates, complete, read } = options;
  const kind = scheme === undefined ? "open" : "provider";
  const owner = kind === "open" ? toOpenKey(name) : undefined;
  const life = `resource provider ${quote(name)}${scheme === undefined ? "" : ` of ${scheme}:`}`;
  const provider = start && startProvider(life, start, owner);
  const { complete: _, ...form } = { ...options, suggest: complete && bindComplete(complete, provider) };
  const started = provider && {
    list: list && provider.bind(list),
    templates: templates && provider.bind(templates),
    read: provider.bind(read),
  };
  const remake: Remake = (change) => resourceProvider(change(options));
  return toResource(form, define<string>({ ...form, ...started }, kind), { remake, life: provider?.life });
}

type CompleteTemplate<S extends Services> = NonNullable<ResourceProviderOptions<S>["complete"]>;

function bindComplete<S extends Services>(
  complete: CompleteTemplate<S>,
  provider: StartedProvider | undefined,
): CompletedTemplates["suggest"] {
  type Asked = Parameters<NonNullable<CompletedTemplates["suggest"]>>[0];
  const run = ({ template, ...variable }: Asked, ctx: Context<ServiceValues<S>>, server?: ServerHandle) =>
    complete(template, variable, ctx, server);
  return provider?.bind(run) ?? run;
}

interface Made {
  readonly remake: Remake;
  /** Set for a provider that starts with its server. */
  readonly life?: object;
  /** Returns the URI of a fixed resource, or builds a URI of a template. */
  readonly uri?: (values: Readonly<Record<string, string>>) => string;
}

function toResource<Input, S>(
  options: Form<Input>,
  { definition, services }: Defined,
  { remake, life, uri }: Made,
): Resource<Input, S> {
  const { name, read, tags, complete, suggest, mapError } = options;
  const { key, id, kind, match, allow, scopes, layers, variables: names, templates, listMs, uris, owns } = definition;
  const toCommon = () => {
    // Read only for completions, because the getter collects the steps of the layers.
    const apply = layers?.completion;
    return { place: `resource ${quote(key)}`, name: key, apply, allow, scopes, services, mapError };
  };
  const also = kind === "template"
    ? [completion({ type: "ref/resource", ...toCommon(), names, complete, match })]
    : templates
    ? [
      completion({
        type: "provider",
        ...toCommon(),
        name: id ?? key,
        names,
        ofTemplates: { key, id, templates, listMs, suggest, owns },
      }),
    ]
    : [];
  // The cast is safe, because a test or the registry calls `read` with the services that its options declare.
  const reads = read as Resource<Input, S>["read"];
  const serves = kind === "fixed" || kind === "open" && !uris ? undefined : (uri: string) => match(uri) !== undefined;
  const { foreign } = options[LISTED] ?? {};
  const parts = { feature: resources, key, id, definition, also, serves, services, scopes, layers, remake };
  const internals = { ...parts, foreign, life };
  return withInternals({ name, read: reads, allow, tags, ...uri && { uri } }, internals);
}

interface Form<Input>
  extends Omit<ResourceEntry, "uri">, Omit<ResourceCommonOptions, "allow" | "services">, SubscriptionHooks {
  readonly [LISTED]?: ListedParts;
  readonly [OWNS]?: Owns;
  readonly uri?: string;
  readonly scheme?: string;
  readonly variables?: Schema;
  readonly services?: Services;
  readonly use?: readonly UseItem<never, never, never>[];
  readonly allow?: (ctx: Context<never>, subject?: never) => boolean | Promise<boolean>;
  readonly complete?: Completers<string, never>;
  readonly suggest?: CompletedTemplates["suggest"];
  readonly uris?: readonly string[];
  readonly listMs?: number;
  readonly list?: ListEntries;
  readonly templates?: ListEntries;
  readonly read: (
    input: Input,
    ctx: Context<never>,
    server?: ServerHandle,
  ) => ResourceReturn | Promise<ResourceReturn>;
}

type ListEntries = (first: never, ctx: Context<never>, server?: ServerHandle) => unknown;

interface Defined {
  readonly definition: Definition;
  readonly template?: UriTemplate;
  readonly services?: Binding;
}

function define<Input>(options: Form<Input>, kind: Definition["kind"]): Defined {
  const { scheme, uri = `${scheme}:`, name } = options;
  const key = kind === "open" ? toOpenKey(name) : uri;
  const isTemplate = kind === "template";
  // A server can have several providers of one scheme.
  const id = kind === "provider" ? `resource ${JSON.stringify(key)} of ${quote(name)}` : undefined;
  const form = withLayers(options, { kind: "resource", name: key, ...id && { key: id } });
  const { title, description, mimeType, size, icons, annotations: given, _meta } = withoutNulls(form);
  const annotations = given && withoutNulls(given);
  const { allow, use = [], layers, ttlMs, cacheScope = "private", list, read, templates, [LISTED]: listed } = form;
  checkForm(form, kind, key);
  const template = isTemplate || kind === "provider" ? parseTemplate(isTemplate ? key : `${key}{+rest}`) : undefined;
  const services = bindServices(form.services, `resource ${quote(key)}`);
  const listing = { place: quote(key), isTemplate, mimeType, services };
  const invoke = async (
    call: Call,
    ctx: Context<never> = call,
    matched: unknown,
    core: FeatureParts,
    filter: Filter | undefined,
  ) => {
    const uri = String(call.params.uri);
    const sending = { place: `resource ${quote(uri)}`, call, core, mimeType };
    // The cast is safe, because the `match` function of these options returned `matched`.
    const returns = (ctx: Context<never>) => call.startHandler(() => read(matched as Input, ctx));
    const value = await (filter ? filter(returns, ctx, sending) : returns(ctx));
    const full = isObject(value) && Array.isArray(value.contents) ? value : undefined;
    const isForeign = listed ? isObject(value) : kind === "open" && full !== undefined;
    const contents = await toContents(value, { uri, mimeType, isForeign }, sending);
    if (!contents) throw toAbsent(uri, call);
    if (!full) return { contents };
    const { _meta } = full;
    return withHints(isObject(_meta) ? withoutReserved({ contents, _meta }) : { contents }, full);
  };
  const definition: Definition = {
    ...toMatcher(kind, template, form),
    key,
    id,
    allow: bindAllow(allow, services),
    services,
    mapError: form.mapError,
    refuse: refuseVariables,
    scopes: readScopes(form.scopes, `resource ${quote(key)}`),
    requires: layers?.requires ?? readRequirements(form.requires, `resource ${quote(key)}`),
    layers,
    ttlMs,
    hooks: form.subscribe || form.unsubscribe ? form : undefined,
    // Another caller may get the URI from another provider.
    scope: allow || kind === "open" ? "private" : cacheScope,
    wire: showToLayers(
      layers,
      wireOnce(() => ({
        ...listed?.members,
        [isTemplate ? "uriTemplate" : "uri"]: key,
        name,
        title,
        description,
        mimeType,
        size,
        icons,
        annotations,
        _meta,
      })),
    ),
    list: list && toListing(list, { ...listing, member: "resources" }),
    templates: templates && toListing(templates, { ...listing, member: "templates" }),
    uris: form.uris,
    owns: form[OWNS],
    listMs: readListMs(form.listMs, `make resource ${quote(key)}`),
    convert: form.variables === undefined ? undefined : toConverter(form.variables, `resource ${quote(key)}`),
    invoke: compose(use, services?.inject(invoke) ?? invoke),
  };
  return { definition, template: isTemplate ? template : undefined, services };
}

interface ListingOptions {
  /** The member of a page that contains the entries. */
  readonly member: "resources" | "templates";
  readonly place: string;
  readonly isTemplate: boolean;
  readonly mimeType?: string;
  readonly services?: Binding;
}

function toListing(run: ListEntries, options: ListingOptions): Listing {
  const { member, place, isTemplate, mimeType, services } = options;
  const page = async (call: Call, ctx: Context<never> = call, cursor: string | undefined, size: number) => {
    const start = readStart(cursor);
    // The cast is safe, because of the signatures above: `list` of a template takes only the context.
    const runList = () => isTemplate ? run(ctx as never, ctx) : run(start.own as never, ctx);
    const listed = await callList(call, { source: run, start, size }, runList);
    return readPage(listed, { list: member, start, size, place });
  };
  const check = async (call: Call, items: readonly unknown[]) => {
    const report = (error: unknown) => void call.host.parts?.report(error, call);
    const { checkEntries } = await lazyWireCheck.load();
    const isOfTemplates = member === "templates";
    const served = isOfTemplates ? (await lazyOpenProviders.load()).takeServed(items, place, report) : items;
    // The cast is safe, because `checkEntries` leaves out all other values.
    const given = served as readonly (Partial<ResourceEntry> & { readonly uriTemplate?: string })[];
    const method = isOfTemplates ? "resources/templates/list" : "resources/list";
    const entries = checkEntries(call, given, { method, source: `of ${place}` });
    return entries.map((entry) => ({ mimeType, ...withoutUnsafeIcons(entry, report) }));
  };
  return { page: services?.share(page) ?? page, check };
}

/** Returns the key of a provider without a scheme, which cannot be a URI. */
function toOpenKey(name: string): string {
  return `provider ${name}`;
}

/** @throws {TypeError} if an option is invalid. */
function checkForm<Input>(form: Form<Input>, kind: Definition["kind"], key: string): void {
  const { name, read, ttlMs, list, templates, suggest, uris = [] } = form;
  const refuse = (state: string) => new TypeError(`Cannot make resource ${quote(key)}: ${state}`);
  if (kind === "provider" && !/^[a-z][a-z\d+.-]*:$/.test(key)) {
    throw refuse("scheme is not a valid scheme; use lower case, such as repo");
  }
  if ((kind === "fixed" || kind === "template") && !/^[a-z][a-z\d+.-]*:\S+$/i.test(key)) {
    throw refuse("uri is not a valid URI; use a URI such as config://app");
  }
  if (typeof name !== "string" || !name) throw refuse("it has no name; set name");
  if (typeof read !== "function") throw refuse("read is not a function; rename the handler to read");
  if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs >= 0)) {
    throw refuse(`ttlMs is ${show(ttlMs)}; it must be an integer of at least 0`);
  }
  if (kind === "open" && !list && !templates && !uris.length) {
    throw refuse("it has neither scheme, list, templates nor uris, so it serves no URI; set at least one of them");
  }
  if (kind === "provider" && uris.length) throw refuse("it has both scheme and uris; remove one of them");
  if (suggest && !templates) throw refuse("complete is for the variables of templates; set templates");
  const odd = uris.find((prefix) => !/^[a-z][a-z\d+.-]*:\S*$/i.test(prefix));
  if (odd !== undefined) {
    throw refuse(
      `uris contains ${quote(odd)}, which is not the beginning of a URI; use a prefix such as file:///data/`,
    );
  }
}

function toConverter(variables: Schema, place: string): Definition["convert"] {
  const schema = compileSchema(variables, { use: "input", place });
  return async (matched) => {
    const { readTextValues } = await lazySchemaChecks.load();
    return await readTextValues(schema, matched as TextValues); // The cast is safe, because the template that matched the URI returned `matched`.
  };
}

function toMatcher(
  kind: Definition["kind"],
  template: UriTemplate | undefined,
  { uris = [], [LISTED]: listed }: Pick<Form<never>, "uris" | typeof LISTED>,
): Pick<Definition, "kind" | "match" | "variables"> {
  if (kind === "open") {
    return { kind, match: (uri) => uris.some((prefix) => isBelow(prefix, uri)) ? uri : undefined, variables: [] };
  }
  if (!template) return { kind, match: (uri) => uri, variables: [] };
  const { match, variables } = template;
  if (kind === "provider") return { kind, match: (uri) => match(uri) && uri, variables: [] };
  return { kind, match: listed ? (uri) => match(uri) && uri : match, variables };
}

/** Whether a URI has a prefix, and what follows the prefix does not leave its folder. */
function isBelow(prefix: string, uri: string): boolean {
  if (!uri.startsWith(prefix)) return false;
  return uri.length === prefix.length || REST.match(uri.slice(prefix.length)) !== undefined;
}

const REST = /* @__PURE__ */ parseTemplate("{+rest}");
