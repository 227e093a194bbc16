/**
 * Resources: what there is to be read here.
 *
 * @see specification/2026-07-28/server/resources
 * @module
 */
import { McpError, quote } from "../protocol/errors.ts";
import { parseTemplate, type TemplateVariables, type UriTemplate } from "../protocol/uri_template.ts";
import type { Context } from "../core/context.ts";
import type { Core } from "../core/core.ts";
import { compose, type Middleware } from "../core/middleware.ts";
import { type Need, readNeeds } from "../core/question.ts";
import type { Allow, Handler } from "../core/feature.ts";
import { INTERNALS } from "../core/internals.ts";
import { type Completers, completion } from "./completion.ts";
import { type ResourceReturn, toContents } from "./resource_contents.ts";
import { type Definition, type ResourceEntry, type ResourcePage, resources } from "./resource_methods.ts";

/** The options that all forms of resources have. */
export interface ResourceCommonOptions {
  /** For people and models. */
  readonly name: string;
  /** Type of what is read, if `read` does not say; else `text/plain`, `application/json` or `application/octet-stream`. */
  readonly mimeType?: string;
  /** Code around the reads of this resource; the first is the outermost. */
  readonly use?: readonly Middleware[];
  /** Whether a caller may see and read it; to others it does not exist. */
  readonly allow?: Allow;
  /**
   * What the client must have declared, such as `["elicitation"]`. A read by another client is refused with -32021 (over
   * HTTP with status 400) and nothing is read. Defaults to nothing: a question that the client cannot answer is then
   * refused where it is asked.
   */
  readonly needs?: readonly Need[];
  /** Milliseconds for which clients may keep what they read; the server's `ttlMs` if nothing is said. */
  readonly ttlMs?: number;
  /** Who else may be given what one caller read: `private`, nobody, if nothing is said, and always with `allow`. */
  readonly cacheScope?: "public" | "private";
}

/** One resource. Only `uri`, `name` and `read` are required. */
export interface ResourceFixedOptions extends ResourceCommonOptions, ResourceEntry {
  /** Reads it. Clients see the text of a `ToolError` that it throws, and of other errors only an id. */
  readonly read: (uri: string, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** Resources whose URIs have one form. Only `uri`, `name` and `read` are required. */
export interface ResourceTemplateOptions<U extends string>
  extends ResourceCommonOptions, Omit<ResourceEntry, "uri" | "size"> {
  /** A URI template, such as `repo://{owner}/{name}{?ref}`. */
  readonly uri: U;
  /** Suggests values for variables. */
  readonly complete?: Completers<Extract<keyof TemplateVariables<U>, string>>;
  /** Lists resources of this form beside the fixed ones. Without it, clients know the template only. */
  readonly list?: (ctx: Context) => readonly ResourceEntry[] | Promise<readonly ResourceEntry[]>;
  /** Reads one, given the values of the variables. */
  readonly read: (variables: TemplateVariables<U>, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** All resources of one URI scheme. Only `scheme`, `name` and `read` are required. */
export interface ResourceProviderOptions extends ResourceCommonOptions {
  /** The scheme without a colon, such as `repo`. Fixed resources and templates of the same scheme take precedence. */
  readonly scheme: string;
  /**
   * Lists resources page by page. `cursor` is the `nextCursor` of the page before, and `undefined` for the first page.
   * It passes through the client: treat it as input.
   */
  readonly list?: (cursor: string | undefined, ctx: Context) => ResourcePage | Promise<ResourcePage>;
  /** Reads any URI of the scheme but those with NUL or a `..` segment, however encoded: they lead out of a folder. */
  readonly read: (uri: string, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** What a resource is made of: a fixed `uri`, or a `uri` with variables. */
export type ResourceOptions<U extends string> = U extends TemplateText ? ResourceTemplateOptions<U>
  : ResourceFixedOptions;

/** What {@linkcode resource} returns: a template if the URI has variables. */
export type ResourceOf<U extends string> = U extends TemplateText ? ResourceTemplate<TemplateVariables<U>>
  : FixedResource;

/** A text with a variable. A template that is not a literal needs this type, or it is taken for a fixed URI. */
export type TemplateText = `${string}{${string}}${string}`;

/** A resource, a template or a provider, ready to be registered, or to be read by a test. */
export interface Resource<Input = never> extends Handler {
  /** Reads: the function as it was given, without any checks. */
  readonly read: (input: Input, ctx: Context) => unknown;
}

/** A resource with a fixed URI. */
export interface FixedResource extends Resource<string> {
  /** Returns its URI. */
  readonly uri: () => string;
}

/** All resources whose URIs have one form. */
export interface ResourceTemplate<Variables> extends Resource<Variables> {
  /**
   * Builds the URI of one of these resources. Values are percent-encoded as the template says. The URI reads back to the
   * same values.
   *
   * @throws {TypeError} if a variable is missing or unknown, or its value is no string or cannot be read back.
   */
  readonly uri: (variables: Variables) => string;
}

/**
 * Makes a resource: one with a fixed URI, or all those of a URI template.
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
 * @throws {TypeError} if the URI or the template cannot be used, or a completer is for no variable of it.
 */
export function resource<const U extends string>(options: { readonly uri: U } & ResourceOptions<U>): ResourceOf<U> {
  // Every form is one of these; which of them is seen where it matters.
  const form = options as unknown as Form<never>;
  const { definition, template } = define(form);
  const { key, match, variables: names } = definition;
  // The template of the URI has the variables of the type.
  if (!template) return { ...toResource(form, definition), uri: () => key } as unknown as ResourceOf<U>;
  const { name, complete, allow } = form;
  const place = `resource ${quote(key)}`;
  const also = [completion({ type: "ref/resource", name: key, place, names, complete, allow, match })];
  const uri = (values: Readonly<Record<string, string>>) => template.build(values, name);
  return { ...toResource(form, definition, also), uri } as unknown as ResourceOf<U>; // As above.
}

/**
 * Makes a provider of all resources of a URI scheme.
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
 * @throws {TypeError} if the scheme cannot be used.
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

/** Any of the forms, once their types have done their work. */
interface Form<Input> extends Omit<ResourceEntry, "uri">, ResourceCommonOptions {
  readonly uri?: string;
  readonly scheme?: string;
  readonly complete?: Completers;
  readonly list?: (first: never, ctx: Context) => Listed | Promise<Listed>;
  readonly read: (input: Input, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

type Listed = readonly ResourceEntry[] | ResourcePage;

interface Defined {
  readonly definition: Definition;
  /** The URI template, if there is one. */
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
      // Whose `list` takes what is in the signatures above: a template's takes the context alone.
      const listed = await (isTemplate ? list(call as never, call) : list(cursor as never, call));
      const { resources, nextCursor } = "resources" in listed ? listed : cut(listed, Number(cursor ?? 0), size);
      return { resources: resources.map((entry) => ({ mimeType, ...entry })), nextCursor };
    }),
    invoke: compose(use, async (call, uri: string, matched: unknown, core: Core) => {
      const sending = { place: `resource ${quote(uri)}`, call, core };
      // `matched` comes from the matcher of this form, which is what Input stands for.
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
