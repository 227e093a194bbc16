/**
 * Exports everything in the main entry, including `createServer`.
 */
import { createEras, type LoadOlder } from "./eras/eras.ts";
import { readRevisions } from "./eras/revisions.ts";
import type { Handler } from "./core/visibility/feature.ts";
import type { Schema } from "./schema/schema.ts";
import { buildServer, type Server } from "./server/server.ts";
import type { RouteServerOptions, TextParams } from "./server/options.ts";

const loadOlder: LoadOlder = async (...args) => (await import("./eras/legacy/legacy.ts")).legacyEra(...args);

/**
 * Creates an MCP server, which serves clients of every protocol revision.
 *
 * If a file exports the server as its default export, `deno serve`, `bun`, Deno Deploy and Workers can run the file,
 * and the CLI can serve it over stdio.
 *
 * @throws {TypeError} if an option is invalid, or two handlers have the same name.
 */
export function createServer<
  const P extends Schema = TextParams,
  const H extends readonly Handler[] = readonly Handler[],
>(options: RouteServerOptions<P, H>): Server<H> {
  const revisions = readRevisions(options?.revisions);
  // The cast is safe, because the type parameter for the handlers exists only at compile time.
  return buildServer(options, (engine) => createEras(engine, revisions, loadOlder)) as Server<H>;
}

export { type Tool, tool, type ToolOptions, type ToolReturn } from "./handlers/tool.ts";
export type { ToolVariant } from "./handlers/variant.ts";
export { media, type MediaOptions, resourceLink } from "./handlers/content.ts";
export {
  type FixedResource,
  type Resource,
  resource,
  type ResourceOptions,
  resourceProvider,
  type ResourceProviderOptions,
  type ResourceTemplate,
} from "./handlers/resource.ts";
export type { ResourceEntry, ResourcePage } from "./handlers/resource_methods.ts";
export type { ResourceReturn } from "./handlers/resource_contents.ts";
export { type Prompt, prompt, type PromptOptions, type PromptReturn } from "./handlers/prompt.ts";
export { type Group, group, type GroupOptions } from "./handlers/group.ts";
export type { Completer, Completers, Completion } from "./handlers/completion.ts";
export {
  type CallServiceOptions,
  type KeyedServiceOptions,
  service,
  type ServiceOptions,
} from "./core/services/service_factory.ts";
export type { Service, ServiceEnd, Services } from "./core/call/service.ts";
export { extension } from "./handlers/extension.ts";
export { McpError, ToolError } from "./protocol/errors.ts";
export { type Mount, mount, type MountOptions } from "./mount.ts";
export type { Server } from "./server/server.ts";
export type { ServerStats } from "./server/stats.ts";
export type { Route, RouteFacts, RouteList } from "./server/routes.ts";
export type { RouteHandlers, RouteServerOptions, ServerOptions } from "./server/options.ts";
export type { Clock } from "./core/capacity/timers.ts";
export type {
  Allow,
  ChangeNotifier,
  ClientFacts,
  Context,
  Elicited,
  ElicitOptions,
  ElicitUrlOptions,
  HandlerSet,
  Log,
  Principal,
  ProgressOptions,
  RunningServer,
} from "./core/call/context.ts";
export type { Authenticate, Authentication } from "./core/auth.ts";
export type { MapError, PublishSchema } from "./core/visibility/feature_parts.ts";
export type { Encoder } from "./core/visibility/guards.ts";
export type { ServerLog } from "./core/call/log.ts";
export type { Admit } from "./core/admission.ts";
export type { CapabilityOptions } from "./core/call/capabilities.ts";
export type { Observer } from "./core/call/observer.ts";
export { isQuestion, type Requirement } from "./core/call/question.ts";
export { type Middleware, onlyMethods } from "./core/call/middleware.ts";
export type { Handler } from "./core/visibility/feature.ts";
export type { LimitOptions, Limits } from "./core/capacity/limits.ts";
export type { Params, Result } from "./protocol/jsonrpc.ts";
export type {
  Annotations,
  AudioContent,
  ClientCapabilities,
  Content,
  EmbeddedResource,
  Icon,
  ImageContent,
  Implementation,
  LogLevel,
  Meta,
  PromptMessage,
  ResourceLink,
  Root,
  SamplingMessage,
  SamplingRequest,
  SamplingResult,
  TextContent,
  ToolAnnotations,
  ToolResult,
} from "./protocol/types.ts";
export type { Infer, InferInput, JsonSchema, Schema, StandardSchema } from "./schema/schema.ts";
export { withJsonSchema } from "./schema/with_json_schema.ts";
export type { Cors, CorsOptions } from "./transports/http/cors.ts";
export type { ConnectionInfo } from "./transports/http/access.ts";
export type { Fetch } from "./transports/http/fetch.ts";
export type { Revision } from "./eras/revisions.ts";
