/**
 * The names of all options. Each table has the type of its options, so the compiler finds a name that is missing or too
 * many.
 *
 * @module
 */
import type { AttributeOptions } from "../core/extension.ts";
import type { KnownOptions } from "../core/known_options.ts";
import type { KeyedServiceOptions, ServiceOptions } from "../core/service_factory.ts";
import type {
  ExtensionListen,
  ExtensionMethod,
  ExtensionNotification,
  ExtensionOptions,
} from "../handlers/extension.ts";
import type { PromptOptions } from "../handlers/prompt.ts";
import type {
  ResourceFixedOptions,
  ResourceProviderOptions,
  ResourceTemplateOptions,
  TemplateText,
} from "../handlers/resource.ts";
import type { ToolOptions } from "../handlers/tool.ts";
import type { ToolAnnotations } from "../protocol/types.ts";
import type { Schema } from "../schema/schema.ts";
import type { CorsOptions } from "../transports/http/cors.ts";
import type { RouteServerOptions } from "./options.ts";

const MIDDLEWARE = { middleware: "use", middlewares: "use" } as const;

const CORS: KnownOptions<keyof CorsOptions> = {
  names: { origins: true, credentials: true },
  hints: { origin: "origins", allowOrigin: "origins" },
};

/** Options of `createServer`. */
export const SERVER: KnownOptions<keyof RouteServerOptions<Schema>> = {
  names: {
    name: true,
    version: true,
    title: true,
    description: true,
    websiteUrl: true,
    icons: true,
    instructions: true,
    handlers: true,
    params: true,
    use: true,
    auth: true,
    admit: true,
    capabilities: true,
    path: true,
    hosts: true,
    proxies: true,
    sessions: true,
    origins: true,
    cors: CORS,
    secret: true,
    store: true,
    lenientArguments: true,
    session: true,
    limits: true,
    ttlMs: true,
    cacheScope: true,
    observer: true,
    describeError: true,
    guards: true,
    encoders: true,
    publishSchema: true,
    development: true,
    clock: true,
  },
  hints: {
    ...MIDDLEWARE,
    tools: "handlers",
    resources: "handlers",
    resourceTemplates: "handlers",
    prompts: "handlers",
    extensions: "handlers",
    allowedHosts: "hosts",
    allowedOrigins: "origins",
    onError: "observer",
    onToolError: "describeError",
    timeoutMs: "limits.calls.timeoutMs",
  },
};

const ANNOTATIONS: KnownOptions<keyof ToolAnnotations> = {
  names: { title: true, readOnlyHint: true, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  hints: {
    readOnly: "readOnlyHint",
    destructive: "destructiveHint",
    idempotent: "idempotentHint",
    openWorld: "openWorldHint",
  },
};

/** Names that tools, prompts and resources share. */
type Shared = keyof ToolOptions<Schema, Schema> & keyof PromptOptions<Schema> & keyof ResourceFixedOptions;

/** Options of tools, prompts, resources and providers. */
const HANDLER: Readonly<Record<Shared & keyof ResourceProviderOptions, true>> = {
  name: true,
  use: true,
  services: true,
  guards: true,
  describeError: true,
  tags: true,
  allow: true,
  scopes: true,
  needs: true,
  extensions: true,
  limits: true,
};

/** Options that describe a handler to clients. */
const DESCRIPTION = { title: true, description: true, icons: true, _meta: true } as const satisfies Partial<
  Record<Shared, true>
>;

/** Options of resources and providers. */
const RESOURCE = { ...HANDLER, mimeType: true, ttlMs: true, cacheScope: true, read: true } as const;

/** Options of `tool`. */
export const TOOL: KnownOptions<keyof ToolOptions<Schema, Schema>> = {
  names: {
    ...HANDLER,
    ...DESCRIPTION,
    input: true,
    lenientArguments: true,
    output: true,
    annotations: ANNOTATIONS,
    forCaller: true,
    run: true,
  },
  hints: {
    ...MIDDLEWARE,
    inputSchema: "input",
    parameters: "input",
    arguments: "input",
    args: "input",
    schema: "input",
    outputSchema: "output",
    handler: "run",
    execute: "run",
    callback: "run",
    canAccess: "allow",
    meta: "_meta",
    timeoutMs: "limits",
    readOnlyHint: "annotations.readOnlyHint",
    destructiveHint: "annotations.destructiveHint",
    idempotentHint: "annotations.idempotentHint",
    openWorldHint: "annotations.openWorldHint",
  },
};

/** Options of `prompt`. */
export const PROMPT: KnownOptions<keyof PromptOptions<Schema>> = {
  names: {
    ...HANDLER,
    ...DESCRIPTION,
    input: true,
    complete: true,
    run: true,
  },
  hints: {
    ...MIDDLEWARE,
    arguments: "input",
    args: "input",
    argsSchema: "input",
    inputSchema: "input",
    parameters: "input",
    handler: "run",
    execute: "run",
    callback: "run",
    load: "run",
    meta: "_meta",
  },
};

const RESOURCE_HINTS = {
  ...MIDDLEWARE,
  handler: "read",
  execute: "read",
  callback: "read",
  load: "read",
  run: "read",
  meta: "_meta",
} as const;

const VARIABLES = "write a uri with variables, such as note://{id}";
const PROVIDED = "use resourceProvider()";
const LISTED = "return it with each resource of list";

/** Options of `resource` with a fixed URI. */
export const FIXED_RESOURCE: KnownOptions<keyof ResourceFixedOptions> = {
  names: {
    ...RESOURCE,
    ...DESCRIPTION,
    uri: true,
    size: true,
    annotations: true,
  },
  hints: { ...RESOURCE_HINTS, uriTemplate: "uri" },
  elsewhere: {
    params: VARIABLES,
    complete: VARIABLES,
    list: VARIABLES,
    subscribe: PROVIDED,
    unsubscribe: PROVIDED,
  },
};

/** Options of `resource` with a URI template. */
export const TEMPLATE: KnownOptions<keyof ResourceTemplateOptions<TemplateText>> = {
  names: {
    ...RESOURCE,
    ...DESCRIPTION,
    uri: true,
    annotations: true,
    params: true,
    complete: true,
    list: true,
  },
  hints: { ...RESOURCE_HINTS, uriTemplate: "uri", arguments: "params", input: "params" },
  elsewhere: {
    size: LISTED,
    subscribe: PROVIDED,
    unsubscribe: PROVIDED,
  },
};

/** Options of `resourceProvider`. */
export const PROVIDER: KnownOptions<keyof ResourceProviderOptions> = {
  names: {
    ...RESOURCE,
    scheme: true,
    list: true,
    subscribe: true,
    unsubscribe: true,
  },
  hints: { ...MIDDLEWARE, handler: "read", execute: "read", callback: "read", load: "read", run: "read" },
  elsewhere: {
    uri: "use resource() with a uri",
    params: "use resource() with a uri",
    complete: "use resource() with a uri",
    title: LISTED,
    description: LISTED,
    size: LISTED,
    annotations: LISTED,
    icons: LISTED,
    _meta: LISTED,
  },
};

/** Options of `extension`. */
export const EXTENSION: KnownOptions<
  keyof ExtensionOptions<Record<never, Schema>, Record<never, Schema>, Record<never, Schema>>
> = {
  names: { id: true, settings: true, methods: true, notifications: true, listen: true },
};

/** Options within `methods`, `notifications` and `listen` of an extension. */
export const EXTENSION_PARTS: Readonly<{
  methods: KnownOptions<keyof ExtensionMethod>;
  notifications: KnownOptions<keyof ExtensionNotification>;
  listen: KnownOptions<keyof ExtensionListen>;
}> = {
  methods: {
    names: { params: true, subject: true, limits: true, run: true },
    hints: { input: "params", inputSchema: "params", handler: "run" },
  },
  notifications: {
    names: { params: true, run: true },
    hints: { input: "params", inputSchema: "params", handler: "run" },
  },
  listen: { names: { filter: true, grant: true } },
};

/** Options of `attribute` of an extension. */
export const ATTRIBUTE: KnownOptions<keyof AttributeOptions> = {
  names: { list: true, required: true, wrap: true, check: true },
};

const SERVICE_HINTS = { scope: "per", lifetime: "per", close: "dispose", destroy: "dispose" } as const;

const PER_CALL = { perCall: 'write per: "call" instead' };

const PER_KEY = "set per to a function that returns a key";

/** Options of `service` with a value for each key. */
export const KEYED_SERVICE: KnownOptions<keyof KeyedServiceOptions<unknown>> = {
  names: { per: true, dispose: true, idleMs: true, max: true },
  hints: SERVICE_HINTS,
  elsewhere: PER_CALL,
};

/** Options of other services. */
export const SERVICE: KnownOptions<keyof ServiceOptions<unknown>> = {
  names: { per: true, dispose: true },
  hints: SERVICE_HINTS,
  elsewhere: { ...PER_CALL, key: PER_KEY, idleMs: PER_KEY, max: PER_KEY },
};
