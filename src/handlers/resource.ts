/**
 * Resources: data that clients can read.
 *
 * @see specification/2026-07-28/server/resources
 * @module
 */
import { McpError, quote } from "../protocol/errors.ts";
import { parseTemplate, type TemplateVariables, type UriTemplate } from "../protocol/uri_template.ts";
import type { ChangeNotifier, Context } from "../core/context.ts";
import type { Core } from "../core/core.ts";
import { compose, type Middleware } from "../core/middleware.ts";
import { type Need, readNeeds } from "../core/question.ts";
import type { Allow, Handler } from "../core/feature.ts";
import { INTERNALS } from "../core/internals.ts";
import type { SubscriptionHooks } from "../core/subscribers.ts";
import { type Completers, completion } from "./completion.ts";
import { type ResourceReturn, toContents } from "./resource_contents.ts";
import { type Definition, type ResourceEntry, type ResourcePage, resources } from "./resource_methods.ts";

/** Options of all resources. */
export interface ResourceCommonOptions {
  /** Name for people and models. */
  readonly name: string;
  /**
   * Media type, unless `read` returns one. Defaults to `text/plain`, `application/json` or `application/octet-stream`.
   */
  readonly mimeType?: string;
  /** Middleware for reads of this resource. The first one is the outermost. */
  readonly use?: readonly Middleware[];
  /** Decides whether a caller may see and read the resource. For other callers it does not exist. */
  readonly allow?: Allow;
  /**
   * Capabilities that the client must have declared, such as `["elicitation"]`. A read by any other client fails with
   * code -32021, over HTTP with status 400, and the handler does not run.
   *
   * Defaults to none. Then the read fails only where the handler uses a capability that the client lacks.
   */
  readonly needs?: readonly Need[];
  /** Milliseconds for which clients may cache the contents. Defaults to the server's `ttlMs`. */
  readonly ttlMs?: number;
  /** Whether callers may share cached contents. Defaults to `"private"`. A resource with `allow` is always private. */
  readonly cacheScope?: "public" | "private";
}

/** Options of a fixed resource. Only `uri`, `name` and `read` are required. */
export interface ResourceFixedOptions extends ResourceCommonOptions, ResourceEntry {
  /** Reads the resource. Clients get the text of a `ToolError` that it throws. For any other error they get an id. */
  readonly read: (uri: string, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** Options of a resource template. Only `uri`, `name` and `read` are required. */
export interface ResourceTemplateOptions<U extends string>
  extends ResourceCommonOptions, Omit<ResourceEntry, "uri" | "size"> {
  /** URI template, such as `repo://{owner}/{name}{?ref}`. */
  readonly uri: U;
  /** Completers for variables. */
  readonly complete?: Completers<Extract<keyof TemplateVariables<U>, string>>;
  /** Lists resources of this template. Without it, clients only see the template. */
  readonly list?: (ctx: Context) => readonly ResourceEntry[] | Promise<readonly ResourceEntry[]>;
  /** Reads a resource, given the values of its variables. */
  readonly read: (variables: TemplateVariables<U>, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** Options of a provider. Only `scheme`, `name` and `read` are required. */
export interface ResourceProviderOptions extends ResourceCommonOptions {
  /** URI scheme without a colon, such as `repo`. Fixed resources and templates of this scheme take precedence. */
  readonly scheme: string;
  /**
   * Lists resources page by page. `cursor` is the `nextCursor` of the previous page, and `undefined` for the first
   * page. It passes through the client, so treat it as untrusted input.
   */
  readonly list?: (cursor: string | undefined, ctx: Context) => ResourcePage | Promise<ResourcePage>;
  /**
   * Called when a URI of the scheme gets its first subscriber. Start to watch it here, and call
   * `server.resourceUpdated(uri)` with each change. Subscriptions do not wait for it. Errors go to `onError`.
   *
   * Subscribers from which `allow` hides the provider do not count.
   */
  readonly subscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
  /**
   * Called when the last subscriber of a URI has left, also because its connection or session has ended or the server
   * closes. It is called after `subscribe` has settled.
   */
  readonly unsubscribe?: (uri: string, server: ChangeNotifier) => void | Promise<void>;
  /** Reads a URI of the scheme. The server rejects URIs with NUL or a `..` segment, even if encoded. */
  readonly read: (uri: string, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** Options of a resource: a fixed `uri`, or a URI template. */
export type ResourceOptions<U extends string> = U extends TemplateText ? ResourceTemplateOptions<U>
  : ResourceFixedOptions;

/** Return type of {@linkcode resource}: a template if the URI has variables. */
export type ResourceOf<U extends string> = U extends TemplateText ? ResourceTemplate<TemplateVariables<U>>
  : FixedResource;

/** Type of a URI template. Use it for a template that is not a literal, which would count as a fixed URI otherwise. */
export type TemplateText = `${string}{${string}}${string}`;

/** A resource, a template or a provider for `handlers`. Tests can read it directly. */
export interface Resource<Input = never> extends Handler {
  /** The `read` function from the options, without validation. */
  readonly read: (input: Input, ctx: Context) => unknown;
}

/** A resource with a fixed URI. */
export interface FixedResource extends Resource<string> {
  /** Returns the URI of the resource. */
  readonly uri: () => string;
}

/** The resources of a URI template. */
export interface ResourceTemplate<Variables> extends Resource<Variables> {
  /**
   * Builds the URI of a resource of this template. Values are percent-encoded as needed. Reading the URI returns the
   * same values.
   *
   * @throws {TypeError} if a variable is missing or unknown, or its value is not a string or would not be read back
   * unchanged.
   */
  readonly uri: (variables: Variables) => string;
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
 * @throws {TypeError} if the URI or the template is invalid, or a completer's variable does not exist.
 */
export function resource<const U extends string>(options: { readonly uri: U } & ResourceOptions<U>): ResourceOf<U> {
  // All options have this shape, and `define` finds out which kind they are.
  const form = options as unknown as Form<never>;
  const { definition, template } = define(form);
  const { key, match, variables: names } = definition;
  // At runtime, the template has the variables of its type.
  if (!template) return { ...toResource(form, definition), uri: () => key } as unknown as ResourceOf<U>;
  const { name, complete, allow } = form;
  const place = `resource ${quote(key)}`;
  const also = [completion({ type: "ref/resource", name: key, place, names, complete, allow, match })];
  const uri = (values: Readonly<Record<string, string>>) => template.build(values, name);
  return { ...toResource(form, definition, also), uri } as unknown as ResourceOf<U>; // As above.
}

/**
 * Creates a provider of all resources of a URI scheme.
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
 * @throws {TypeError} if the scheme is invalid.
 */
export function resourceProvider(options: ResourceProviderOptions): Resource<string> {
  return toResource(options, define<string>(options).definition);
}

function toResource<Input>(
  { name, read, allow }: Form<Input>,
  definition: Definition,
  also: readonly Handler[] = [],
): Resource<Input> {
  return { name, read, allow, [INTERNALS]: { feature: resources, key: definition.key, definition, also } };
}

/** Options of any kind, without type parameters. */
interface Form<Input> extends Omit<ResourceEntry, "uri">, ResourceCommonOptions, SubscriptionHooks {
  readonly uri?: string;
  readonly scheme?: string;
  readonly complete?: Completers;
  readonly list?: (first: never, ctx: Context) => Listed | Promise<Listed>;
  readonly read: (input: Input, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

type Listed = readonly ResourceEntry[] | ResourcePage;

interface Defined {
  readonly definition: Definition;
  /** URI template, if any. */
  readonly template?: UriTemplate;
}

function define<Input>(form: Form<Input>): Defined {
  const { scheme, uri: key = `${scheme}:`, name, title, description, mimeType, size, icons, annotations, _meta } = form;
  const { allow, use = [], ttlMs, cacheScope = "private", list, read } = form;
  const refuse = (state: string) => new TypeError(`Cannot make resource ${quote(key)}: ${state}`);
  if (scheme === undefined ? !/^[a-z][a-z\d+.-]*:\S+$/i.test(key) : !/^[a-z][a-z\d+.-]*:$/.test(key)) {
    throw refuse(
      "name it by a uri such as config://app, without spaces, or by a scheme such as repo, in small letters",
    );
  }
  if (typeof name !== "string" || !name) throw refuse("it has no name");
  if (typeof read !== "function") throw refuse("read is not a function");
  if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs >= 0)) {
    throw refuse("ttlMs is not a whole number of milliseconds");
  }
  const isTemplate = scheme === undefined && /[{}]/.test(key);
  const template = isTemplate || scheme !== undefined ? parseTemplate(isTemplate ? key : `${key}{+rest}`) : undefined;
  const definition: Definition = {
    ...toMatcher(template, isTemplate),
    key,
    allow,
    needs: readNeeds(form.needs, `resource ${quote(key)}`),
    ttlMs,
    hooks: form.subscribe || form.unsubscribe ? form : undefined,
    scope: allow ? "private" : cacheScope,
    wire: () => ({
      [isTemplate ? "uriTemplate" : "uri"]: key,
      name,
      title,
      description,
      mimeType,
      size,
      icons,
      annotations,
      _meta,
    }),
    list: list && (async (cursor, call, size) => {
      // The signatures above define the arguments: a template's `list` only takes the context.
      const listed = await (isTemplate ? list(call as never, call) : list(cursor as never, call));
      const { resources, nextCursor } = "resources" in listed ? listed : cut(listed, Number(cursor ?? 0), size);
      return { resources: resources.map((entry) => ({ mimeType, ...entry })), nextCursor };
    }),
    invoke: compose(use, async (call, uri: string, matched: unknown, core: Core) => {
      const sending = { place: `resource ${quote(uri)}`, call, core };
      // `matched` comes from the matcher of this form, so it has the type Input.
      const contents = await toContents(await read(matched as Input, call), { uri, mimeType }, sending);
      if (!contents) throw McpError.resourceNotFound(uri);
      return { contents };
    }),
  };
  return isTemplate ? { definition, template } : { definition };
}

function toMatcher(
  template: UriTemplate | undefined,
  isTemplate: boolean,
): Pick<Definition, "kind" | "match" | "variables"> {
  if (!template) return { kind: "fixed", match: (uri) => uri, variables: [] };
  const { match, variables } = template;
  if (isTemplate) return { kind: "template", match, variables };
  return { kind: "provider", match: (uri) => match(uri) && uri, variables: [] };
}

function cut(all: readonly ResourceEntry[], from: number, size: number): ResourcePage {
  const end = from + size;
  return { resources: all.slice(from, end), nextCursor: end < all.length ? `${end}` : undefined };
}
