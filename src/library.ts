/**
 * Exports everything in the main entry, including `createServer`.
 */
import { createEras, type LoadOlder } from "./server/eras/eras.ts";
import { readRevisions } from "./server/eras/revisions.ts";
import type { Handler } from "./server/visibility/feature.ts";
import type { Schema } from "./core/schema/schema.ts";
import { buildServer, type Server } from "./server/server.ts";
import type { PathServerOptions, TextParams } from "./server/options.ts";

const loadOlder: LoadOlder = async (...args) => (await import("./server/eras/legacy/legacy.ts")).legacyEra(...args);

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
>(options: PathServerOptions<P, H>): Server<H> {
  const revisions = readRevisions(options?.revisions);
  // The cast is safe, because the type parameter for the handlers exists only at compile time.
  return buildServer(options, (engine) => createEras(engine, revisions, loadOlder)) as Server<H>;
}

export { type Tool, tool, type ToolOptions, type ToolReturn } from "./server/handlers/tool.ts";
export type { ToolVariant } from "./server/handlers/variant.ts";
export { media, type MediaOptions, resourceLink } from "./server/handlers/content.ts";
export {
  type FixedResource,
  type Resource,
  resource,
  type ResourceOptions,
  resourceProvider,
  type ResourceProviderOptions,
  type ResourceTemplate,
} from "./server/handlers/resource.ts";
export type { ResourceEntry, ResourcePage } from "./server/handlers/resource_methods.ts";
export type { ResourceReturn } from "./server/handlers/resource_contents.ts";
export { type Prompt, prompt, type PromptOptions, type PromptReturn } from "./server/handlers/prompt.ts";
export {
  type PromptPage,
  promptProvider,
  type PromptProviderOptions,
  type ToolPage,
  toolProvider,
  type ToolProviderOptions,
} from "./server/handlers/provider.ts";
export { transform, type TransformOptions } from "./server/handlers/transform.ts";
export { type Group, group, type GroupOptions } from "./server/handlers/group.ts";
export type { Completer, Completers, Suggestions } from "./server/handlers/completion.ts";
export {
  type CallServiceOptions,
  type KeyedServiceOptions,
  service,
  type ServiceOptions,
} from "./server/services/service_factory.ts";
export type { Service, ServiceEnd, Services } from "./server/call/service.ts";
export { extension } from "./server/handlers/extension.ts";
export { McpError, ToolError } from "./core/protocol/errors.ts";
export { type Mount, mount, type MountOptions } from "./server/mount.ts";
export type { Server } from "./server/server.ts";
export type { ServerStats } from "./server/stats.ts";
export type { Route, RouteInfo, RouteList } from "./server/routes.ts";
export type { PathServerOptions, ServerOptions } from "./server/options.ts";
export type { Clock } from "./core/timers.ts";
export type {
  Allow,
  ChangeNotifier,
  ClientInfo,
  Context,
  Elicited,
  ElicitOptions,
  ElicitUrlOptions,
  HandlerSet,
  Log,
  Principal,
  ProgressOptions,
  RunningServer,
} from "./server/call/context.ts";
export type { Authenticate, Authentication } from "./server/engine/auth.ts";
export type { MapError, PublishSchema } from "./server/visibility/feature_parts.ts";
export type { Encoder } from "./server/visibility/guards.ts";
export type { ServerLog } from "./server/call/log.ts";
export type { Admit } from "./server/engine/admission.ts";
export type { CapabilityOptions } from "./server/call/capabilities.ts";
export type { Observer } from "./server/call/observer.ts";
export { isQuestion, type Requirement } from "./server/call/question.ts";
export { type Middleware, onlyMethods } from "./server/call/middleware.ts";
export type { Handler } from "./server/visibility/feature.ts";
export type { LimitOptions, Limits } from "./server/capacity/limits.ts";
export type { Params, Result } from "./core/protocol/jsonrpc.ts";
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
} from "./core/protocol/types.ts";
export type { Infer, InferInput, JsonSchema, Schema, StandardSchema } from "./core/schema/schema.ts";
export { withJsonSchema } from "./core/schema/with_json_schema.ts";
export type { Cors, CorsOptions } from "./server/transports/http/cors.ts";
export type { ConnectionInfo } from "./server/transports/http/access.ts";
export type { Fetch } from "./server/transports/http/fetch.ts";
export type { Revision } from "./server/eras/revisions.ts";
