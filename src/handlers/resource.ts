/**
 * Resources: what there is to be read here.
 *
 * @see specification/2026-07-28/server/resources
 * @module
 */
import { quote } from "../protocol/errors.ts";
import { parseTemplate, type TemplateVariables } from "../protocol/uri_template.ts";
import type { Context } from "../core/context.ts";
import type { Core } from "../core/core.ts";
import { compose, type Middleware } from "../core/middleware.ts";
import type { Allow, Handler } from "../core/feature.ts";
import { type Completers, completion } from "./completion.ts";
import { type ResourceReturn, toContents } from "./resource_contents.ts";
import { type Definition, type ResourceEntry, type ResourcePage, resources, toNotFound } from "./resource_methods.ts";

/** What resources of all forms may say. */
export interface ResourceCommonOptions {
  /** For people and models. */
  readonly name: string;
  /** Type of what is read, if `read` does not say; else `text/plain`, `application/json` or `application/octet-stream`. */
  readonly mimeType?: string;
  /** Code around the reads of this resource; the first is the outermost. */
  readonly use?: readonly Middleware[];
  /** Whether a caller may see and read it; to others it does not exist. */
  readonly allow?: Allow;
  /** Milliseconds for which clients may keep what they read; the server's `ttlMs` if nothing is said. */
  readonly ttlMs?: number;
  /** Who else may be given what one caller read: `private`, nobody, if nothing is said, and always with `allow`. */
  readonly cacheScope?: "public" | "private";
}

/** One resource. Only `uri`, `name` and `read` must be said. */
export interface ResourceFixedOptions extends ResourceEntry, ResourceCommonOptions {
  /** For a provider only. */
  readonly scheme?: undefined;
  /** Reads it. What it throws as a `ToolError` the client is told; of other errors only an id. */
  readonly read: (uri: string, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** Resources whose URIs have one form. Only `uri`, `name` and `read` must be said. */
export interface ResourceTemplateOptions<U extends string>
  extends Omit<ResourceEntry, "uri" | "size">, ResourceCommonOptions {
  /** A URI template, such as `repo://{owner}/{name}{?ref}`. */
  readonly uri: U;
  /** For a provider only. */
  readonly scheme?: undefined;
  /** Suggests values for variables. */
  readonly complete?: Completers<Extract<keyof TemplateVariables<U>, string>>;
  /** Lists resources of this form beside the fixed ones. Without it, clients know the template only. */
  readonly list?: (ctx: Context) => readonly ResourceEntry[] | Promise<readonly ResourceEntry[]>;
  /** Reads one, given the values of the variables. */
  readonly read: (variables: TemplateVariables<U>, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** All resources of one URI scheme. Only `scheme`, `name` and `read` must be said. */
export interface ResourceProviderOptions extends ResourceCommonOptions {
  /** For other resources only. */
  readonly uri?: undefined;
  /** The scheme without a colon, such as `repo`. Fixed resources and templates of the same scheme go first. */
  readonly scheme: string;
  /**
   * Lists resources page by page. `cursor` is the `nextCursor` of the page before, and nothing for the first page. It
   * comes back by way of the client: treat it as input.
   */
  readonly list?: (cursor: string | undefined, ctx: Context) => ResourcePage | Promise<ResourcePage>;
  /** Reads any URI of the scheme but those with NUL or a `..` segment, however encoded: they lead out of a folder. */
  readonly read: (uri: string, ctx: Context) => ResourceReturn | Promise<ResourceReturn>;
}

/** What a resource is made of: a fixed `uri`, a `uri` with variables, or a `scheme`. */
export type ResourceOptions<U extends string> =
  | ({ readonly uri: U } & (U extends TemplateText ? ResourceTemplateOptions<U> : ResourceFixedOptions))
  | ResourceProviderOptions;

/** What `read` is given: the variables of a template, else the URI. */
export type ResourceInput<U extends string> = [U] extends [never] ? string
  : U extends TemplateText ? TemplateVariables<U>
  : string;

/** A text with a variable. A template that is not a literal needs this type, or it is taken for a fixed URI. */
export type TemplateText = `${string}{${string}}${string}`;

/** A resource, a template or a provider, ready to be registered, or to be read by a test. */
export interface Resource<Input = never> extends Handler {
  /** As it was given. */
  readonly name: string;
  /** The function as it was given: nothing is checked. */
  readonly read: (input: Input, ctx: Context) => unknown;
  /** @internal What the registry needs. */
  readonly definition: Definition;
}

/**
 * Makes a resource: one with a fixed URI, all those of a URI template, or all those of a scheme.
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
 * const notes = resource({
 *   scheme: "note",
 *   name: "notes",
 *   list: () => ({ resources: [{ uri: "note://1", name: "First" }] }),
 *   read: (uri) => uri === "note://1" ? "Buy milk" : undefined,
 * });
 * ```
 *
 * @throws {TypeError} if the URI, the template or the scheme cannot be used, or a completer is for no variable of it.
 */
export function resource<const U extends string = never>(options: ResourceOptions<U>): Resource<ResourceInput<U>> {
  // Every form is one of these; which of them is seen where it matters.
  const form = options as Form<ResourceInput<U>>;
  const { name, read, complete, allow } = form;
  const definition = define(form);
  const { key, kind, match, variables: names } = definition;
  const place = `resource ${quote(key)}`;
  const also = kind === "template"
    ? [completion({ type: "ref/resource", name: key, place, names, complete, allow, match })]
    : [];
  return { feature: resources, key, allow, name, read, definition, also };
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

function define<Input>(form: Form<Input>): Definition {
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
  const matcher = toMatcher(key, scheme);
  const isTemplate = matcher.kind === "template";
  return {
    ...matcher,
    key,
    allow,
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
      if (!contents) throw toNotFound(uri);
      return { contents };
    }),
  };
}

function toMatcher(key: string, scheme: string | undefined): Pick<Definition, "kind" | "match" | "variables"> {
  const isFixed = scheme === undefined && !/[{}]/.test(key);
  if (isFixed) return { kind: "fixed", match: (uri) => uri, variables: [] };
  const { match, variables } = parseTemplate(scheme === undefined ? key : `${key}{+rest}`);
  if (scheme === undefined) return { kind: "template", match, variables };
  return { kind: "provider", match: (uri) => match(uri) && uri, variables: [] };
}

function cut(all: readonly ResourceEntry[], from: number, size: number): ResourcePage {
  const end = from + size;
  return { resources: all.slice(from, end), nextCursor: end < all.length ? `${end}` : undefined };
}
