/**
 * Tools that read resources and get prompts, for clients whose models can only call tools.
 */
import {
  type Allow,
  type Context,
  type Handler,
  type Icon,
  type JsonSchema,
  type Params,
  type Prompt,
  type Requirement,
  type Resource,
  type Schema,
  type Tool,
  tool,
  ToolError,
  type ToolResult,
} from "../library.ts";
import { INTERNALS, LISTED } from "../core/internals.ts";
import { checkOptions, type KnownOptions, withoutNulls } from "../core/known_options.ts";
import { isObject } from "../core/kit/json.ts";
import { quote } from "../core/protocol/errors.ts";
import { parseTemplate, type UriTemplate } from "../core/protocol/uri_template.ts";
import { gatherDefs, inlineRoot } from "../core/schema/json_refs.ts";
import type { CompiledSchema } from "../core/schema/schema.ts";
import { compileSchema } from "../core/schema/schema_compiler.ts";
import type { Typed } from "../core/typed.ts";
import { layer } from "../server/handlers/layer.ts";
import type { Argument } from "../server/visibility/feature.ts";
import { toName } from "../server/visibility/registry.ts";
import type { Definition } from "../server/handlers/resource_methods.ts";
import { getAsContent, readAsContent, refuseUri } from "./inner_content.ts";
import { createResourceTools } from "./resource_tools.ts";
import { toTitle } from "./title.ts";

/** Options of {@linkcode asTools}. */
export interface AsToolsOptions<Name extends string = string> {
  /**
   * Name of the tool. Defaults to the name of the resource or prompt, in which `_` replaces each character that a tool's
   * name cannot have.
   */
  readonly name?: Name;
}

const TRANSFORM = "transform the tool that asTools returns";
const OF_HANDLER = "set it on the resource or prompt";
const OPTIONS: KnownOptions<keyof AsToolsOptions> = {
  names: { name: "text" },
  elsewhere: {
    title: TRANSFORM,
    description: TRANSFORM,
    annotations: TRANSFORM,
    input: TRANSFORM,
    allow: OF_HANDLER,
    scopes: OF_HANDLER,
    tags: OF_HANDLER,
    use: OF_HANDLER,
  },
};

/**
 * Creates the tools `list_resources` and `read_resource`, with which a model finds and reads all resources that the
 * caller can read. Both are read-only.
 */
export function asTools():
  & Handler
  & Typed<
    | {
      readonly kind: "tool";
      readonly name: "list_resources";
      readonly input: { readonly from?: number };
      readonly output: unknown;
    }
    | {
      readonly kind: "tool";
      readonly name: "read_resource";
      readonly input: { readonly uri: string };
      readonly output: unknown;
    }
  >;
/**
 * Creates a read-only tool that reads a resource or gets a prompt, because many models can only call tools. Serve the
 * resource or prompt beside the tool, in the same group.
 *
 * - The tool of a fixed resource has no arguments. The arguments of a template's tool are its variables, and a provider's
 *   tool has the argument `uri`.
 * - The tool of a prompt has the arguments of the prompt. The result contains the text of each message after its role, and
 *   media as media. The prompt can ask the client questions.
 *
 * The tool makes an inner call for its caller, so `allow`, scopes, layers and guards of the resource or prompt apply. The
 * tool also has its `allow`, `scopes`, `requires` and `tags`. Completion is lost, because tools have none.
 *
 * ```ts
 * import { createServer, resource } from "@x/mcp";
 * import { asTools } from "@x/mcp/handlers";
 *
 * const note = resource({ uri: "note://{title}", name: "note", read: ({ title }) => `# ${title}` });
 *
 * // A model calls the tool `note` with the argument `title`.
 * export default createServer({ name: "notes", version: "1.0.0", handlers: [note, asTools(note)] });
 * ```
 *
 * @throws {TypeError} if `handler` is neither a resource nor a prompt, or if an option is unknown or invalid. The server
 * throws if it does not serve `handler`.
 */
export function asTools<const Name extends string = string>(
  handler: Resource | Prompt,
  options?: AsToolsOptions<Name>,
): Tool<Name, Params, unknown, unknown, Params>;
export function asTools(...given: readonly [handler?: Handler, options?: AsToolsOptions]): Handler {
  // `undefined` as an argument is a mistake, which must not let a model read all resources.
  if (!given.length) return createResourceTools();
  const [handler, options = {}] = given;
  if (!isOf(handler, "prompts", "resources", "skipped") || handler[INTERNALS].provide) {
    const state = `${quote(Object(handler).name)} is neither a resource nor a prompt`;
    throw new TypeError(`Cannot make a tool: ${state}; pass a handler of resource(), resourceProvider() or prompt()`);
  }
  // `from` has created a handler that is not served, because of what another server lists.
  const isSkipped = isOf(handler, "skipped");
  const action = `make a tool of ${isSkipped ? "a handler of another server" : toName(handler)}`;
  checkOptions(action, options, OPTIONS);
  return isSkipped ? handler : toTool(handler, options, action);
}

function toTool(handler: Handler, options: AsToolsOptions, action: string): Tool {
  const { scopes, foreign } = handler[INTERNALS];
  const name = readName(handler, options, action);
  const isPrompt = isOf(handler, "prompts");
  const own = readOptions(handler);
  const { title = toTitle(handler.name), description, icons, requires } = own;
  const parts = isPrompt ? ofPrompt(handler) : ofResource(handler, own, action);
  return tool({
    name,
    title,
    icons,
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
    tags: handler.tags,
    allow: toAllow(handler),
    scopes,
    requires,
    use: [requireServed(handler, isPrompt)],
    ...parts,
    description: description ?? parts.description,
    ...foreign !== undefined && { [LISTED]: { foreign } },
  });
}

/** Tests whether a value is a handler of a feature, and not a copy, which can have other options than its state. */
function isOf(value: object | undefined, ...features: readonly string[]): value is Handler {
  const { [INTERNALS]: internals }: Partial<Handler> = Object.hasOwn(Object(value), INTERNALS) ? Object(value) : {};
  return internals !== undefined && features.includes(internals.feature.name);
}

function readName({ name: own }: Handler, { name }: AsToolsOptions, action: string): string {
  const made = name ?? own.replace(/[^\w.-]+/g, "_").slice(0, 128);
  if (/^[\w.-]{1,128}$/.test(made) && (name !== undefined || !/^_+$/.test(made))) return made;
  const state = name === undefined
    ? `${quote(own)} cannot be the name of a tool`
    : `the name ${quote(name)} is invalid`;
  throw new TypeError(`Cannot ${action}: ${state}; set name to 1 to 128 letters, digits, "_", "-" and "."`);
}

/** The options of a resource or prompt from which its tool is made. */
interface Own {
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly requires?: readonly Requirement[];
  /** Schema of the variables of a template. */
  readonly variables?: Schema;
}

function readOptions({ [INTERNALS]: { remake } }: Handler): Own {
  let own: unknown;
  remake?.((options) => {
    own = options;
    return options;
  });
  return withoutNulls<Own>(Object(own));
}

interface Parts {
  /** The description, if the handler has none. */
  readonly description: string;
  readonly input?: JsonSchema;
  readonly run: (input: Params, ctx: Context) => Promise<ToolResult>;
}

function ofResource(handler: Handler, { variables }: Own, action: string): Parts {
  const { key, definition, serves = () => true } = handler[INTERNALS];
  const { kind } = definition as Definition; // The cast is safe, because the handler is a resource.
  if (kind === "fixed") return { description: `Reads ${key}.`, run: (_, ctx) => readAsContent(key, ctx) };
  if (kind === "template") {
    const schema = variables && compileSchema(variables, { use: "input", place: action });
    const template = parseTemplate(key);
    const path = template.variables.filter((name) => !toParameters(key).includes(name));
    return {
      description: `Reads a resource of ${key}.`,
      input: toInput(template.variables.map((name) => ({ name, required: path.includes(name) })), schema),
      run: (input, ctx) => readAsContent(buildUri(template, path, toTexts(input)), ctx),
    };
  }
  if (kind === "open") {
    throw new TypeError(`Cannot ${action}: it has no scheme; use asTools() for a tool that reads all resources`);
  }
  return {
    description: `Reads a resource of ${key}.`,
    input: toInput([{ name: "uri", description: `URI of the resource, which begins with ${key}`, required: true }]),
    run(input, ctx) {
      const { uri } = toTexts(input);
      // Without this check, the tool could read all resources that its caller can read.
      if (!serves(uri)) throw refuseUri(uri);
      return readAsContent(uri, ctx);
    },
  };
}

function ofPrompt(handler: Handler): Parts {
  const { key, definition } = handler[INTERNALS];
  // The cast is safe, because the handler is a prompt.
  const { inputs, input } = definition as { readonly inputs: readonly Argument[]; readonly input?: CompiledSchema };
  return {
    description: `Returns the messages of the prompt ${key}.`,
    input: inputs.length ? toInput(inputs, input) : undefined,
    run: (input, ctx) => getAsContent(findPrompt(handler, ctx), toTexts(input), ctx),
  };
}

function toParameters(template: string): readonly string[] {
  return [...template.matchAll(/\{[?&;]([^{}]*)\}/g)].flatMap(([, names]) => names.split(","));
}

const NO_SCHEMA: JsonSchema = {};

/** Returns the schema of a tool's arguments, with what a schema of the handler says about them. */
function toInput(given: readonly Argument[], schema?: CompiledSchema): JsonSchema {
  const { properties, required, $defs } = schema ? inlineRoot(gatherDefs(schema.json())) : NO_SCHEMA;
  const known = new Map(Object.entries(Object(properties)));
  const isRequired = ({ name, required: own }: Argument) => own || Array.isArray(required) && required.includes(name);
  return {
    type: "object",
    properties: Object.fromEntries(given.map(({ name, title, description }) => {
      const property = known.get(name);
      if (isObject(property)) return [name, property];
      const texts = Object.entries({ title, description }).filter(([, text]) => typeof text === "string");
      return [name, { type: "string", ...Object.fromEntries(texts) }];
    })),
    required: given.filter(isRequired).map(({ name }) => name),
    additionalProperties: false,
    ...isObject($defs) && { $defs },
  };
}

function toTexts(args: Params): Readonly<Record<string, string>> {
  const present = Object.entries(args).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    present.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}

/** Builds a URI. `path` has the names of the variables that must have a value. */
function buildUri(template: UriTemplate, path: readonly string[], values: Readonly<Record<string, string>>): string {
  const build = (values: Readonly<Record<string, string>>) => {
    try {
      return template.build(values, "");
    } catch {
      // Refused below.
    }
  };
  const uri = build(values);
  if (uri !== undefined) return uri;
  const others = Object.fromEntries(path.map((name) => [name, "x"]));
  const wrong = Object.entries(values).find(([name, value]) => build({ ...others, [name]: value }) === undefined);
  const state = wrong ? `${wrong[0]} is ${quote(wrong[1])}, which` : "these values, which";
  throw new ToolError(`Cannot read ${quote(template.template)}: ${state} the URI cannot contain; use another value`);
}

function toAllow(handler: Handler): Allow | undefined {
  const { allow, [INTERNALS]: { services } } = handler;
  if (!allow || !services) return allow;
  // Only the handler that the server serves has services. A group has created it again.
  return (ctx) => (listServed(handler, ctx)[0]?.allow ?? allow)(ctx);
}

/** Returns the handlers of the server that have the function of a handler, because a group has created it again. */
function listServed(handler: Handler, { server }: Context): readonly Handler[] {
  const { feature } = handler[INTERNALS];
  const find = (each: object): readonly Handler[] => {
    const { handlers }: { readonly handlers?: readonly Handler[] } = Object(each);
    if (handlers) return handlers.flatMap(find);
    return isOf(each, feature.name) && toFunction(each) === toFunction(handler) ? [each] : [];
  };
  return server.handlers.list().flatMap(find);
}

function toFunction(handler: object): unknown {
  const { run, read }: { readonly run?: unknown; readonly read?: unknown } = Object(handler);
  return run ?? read;
}

/** Returns the name of a prompt on the server of a call. Of several, returns the one in the groups of the called tool. */
function findPrompt(handler: Handler, ctx: Context): string {
  const called = String(ctx.params.name);
  const names = listServed(handler, ctx).map((each) => each[INTERNALS].key);
  return toPrefixes(called).map((prefix) => prefix + handler.name).find((name) => names.includes(name)) ?? handler.name;
}

/** Returns the names of groups in which a handler can be, with `_`, the innermost first. The last one is empty. */
function toPrefixes(name: string): readonly string[] {
  return [...name.matchAll(/_/g)].map(({ index }) => name.slice(0, index + 1)).reverse().concat("");
}

/** Returns the layer that refuses to start the server if it does not serve a handler. */
function requireServed(handler: Handler, isPrompt: boolean) {
  const { key } = handler[INTERNALS];
  return layer(({ name }) => ({
    name: "asTools",
    verify({ has }) {
      const isServed = isPrompt
        ? toPrefixes(name).some((prefix) => has("prompt", prefix + handler.name))
        : has("resource", key);
      if (isServed) return;
      return `${toName(handler)} is not served; serve it in the same group as the tool, or remove the tool`;
    },
  }));
}
