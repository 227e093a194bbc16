/**
 * The library: `createServer` for every protocol revision, and all public names.
 *
 * @module
 */
import { createEras, type LoadOlder } from "./eras/eras.ts";
import { readRevisions } from "./eras/revisions.ts";
import type { Schema } from "./schema/schema.ts";
import { buildServer, type Server } from "./server/server.ts";
import type { RouteServerOptions, TextParams } from "./server/options.ts";

const loadOlder: LoadOlder = async (...args) => (await import("./eras/legacy/legacy.ts")).legacyEra(...args);

/**
 * Creates an MCP server for clients of every protocol revision.
 *
 * A file with the server as its default export runs with `deno serve` and `bun`, on Deno Deploy and Workers, and over
 * stdio.
 *
 * @throws {TypeError} if an option is invalid, or two handlers have the same name.
 */
export function createServer<const P extends Schema = TextParams>(options: RouteServerOptions<P>): Server {
  const revisions = readRevisions(options?.revisions);
  return buildServer(options, (engine) => createEras(engine, revisions, loadOlder));
}

export { type Tool, tool, type ToolOptions, type ToolResultOf, type ToolReturn } from "./handlers/tool.ts";
export type { ToolVariant } from "./handlers/variant.ts";
export { media, type MediaOptions, resourceLink } from "./handlers/content.ts";
export {
  type FixedResource,
  type ReadVariables,
  type Resource,
  resource,
  type ResourceAllow,
  type ResourceCommonOptions,
  type ResourceFixedOptions,
  type ResourceOf,
  type ResourceOptions,
  resourceProvider,
  type ResourceProviderOptions,
  type ResourceTemplate,
  type ResourceTemplateOptions,
  type TemplateText,
} from "./handlers/resource.ts";
export type { ResourceEntry, ResourcePage } from "./handlers/resource_methods.ts";
export type { ResourceReturn } from "./handlers/resource_contents.ts";
export {
  type ArgumentNames,
  type Prompt,
  prompt,
  type PromptMessageReturn,
  type PromptOptions,
  type PromptReturn,
} from "./handlers/prompt.ts";
export { type Group, group, type GroupOptions } from "./handlers/group.ts";
export type { Completer, Completers, Completion } from "./handlers/completion.ts";
export {
  type CallServiceOptions,
  type CallServiceScope,
  type KeyedServiceOptions,
  type KeyedServiceScope,
  service,
  type ServiceOptions,
  type ServiceScope,
} from "./core/services/service_factory.ts";
export type {
  Lifetime,
  NoServices,
  Service,
  ServiceEnd,
  Services,
  ServiceValues,
  SharedServiceValues,
} from "./core/call/service.ts";
export {
  type Extension,
  extension,
  type ExtensionEvent,
  type ExtensionListen,
  type ExtensionMethod,
  type ExtensionNotification,
  type ExtensionOptions,
  type InferParams,
  type Schemas,
} from "./handlers/extension.ts";
export type {
  Attribute,
  AttributeOptions,
  DetachOptions,
  ExtensionServer,
  ExtensionStore,
  InternalRequest,
  Next,
  Redirect,
  RedirectedQuestion,
  ServerHandlers,
  StartExtension,
  WatchTopic,
  Wrap,
  WrappedCall,
} from "./core/extension.ts";
export { McpError, ToolError } from "./protocol/errors.ts";
export { type Mount, mount, type MountedHandlers, type MountOptions } from "./mount.ts";
export type { Server } from "./server/server.ts";
export type { RouteHandlers, RouteServerOptions, ServerOptions, TextParams } from "./server/options.ts";
export type { Clock } from "./core/capacity/timers.ts";
export type {
  Allow,
  AnyHandler,
  ChangeNotifier,
  ClientFacts,
  Context,
  Elicited,
  ElicitOptions,
  ElicitUrlOptions,
  HandlerSelector,
  HandlerSet,
  ListChangedOptions,
  ListName,
  Log,
  LogMethod,
  LogOptions,
  Principal,
  ProgressOptions,
  ReadRoute,
  ReadSession,
  RunningServer,
} from "./core/call/context.ts";
export type {
  Authenticate,
  Authentication,
  AuthFacts,
  AuthRefusal,
  AuthRoute,
  Challenge,
  Credentials,
  PathFacts,
} from "./core/auth.ts";
export type { MapError, PublishedSchema, PublishedTool, PublishSchema } from "./core/visibility/feature_parts.ts";
export type { Encoder, Guards, InputGuard, OutputGuard } from "./core/visibility/guards.ts";
export type { LogFilter, LogReceiver, ServerLog, ServerLogMethod, ServerLogOptions } from "./core/call/log.ts";
export type { Admit, AdmitFacts } from "./core/admission.ts";
export type { Capabilities, CapabilityOptions } from "./core/call/capabilities.ts";
export type { Quota } from "./core/visibility/quota.ts";
export type {
  AskedEvent,
  AuthEvent,
  CallEvent,
  CancelReason,
  CloseEvent,
  EventSource,
  FaultEvent,
  HandlersEvent,
  LimitEvent,
  MessageEvent,
  NotificationEvent,
  Observer,
  RefusalReason,
  RefusedEvent,
  ServiceEvent,
  SessionEvent,
  StartEvent,
  StoreEvent,
  StreamEvent,
  SubscriptionEvent,
  TransportName,
} from "./core/call/observer.ts";
export { consoleObserver } from "./core/call/combined_observer.ts";
export type { SelectCaller } from "./core/call/caller_watch.ts";
export type { Store } from "./core/store.ts";
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
  ResourceContents,
  ResourceLink,
  Role,
  Root,
  SamplingContent,
  SamplingMessage,
  SamplingRequest,
  SamplingResult,
  TextContent,
  ToolAnnotations,
  ToolResult,
} from "./protocol/types.ts";
export type { NameList, TemplateVariables } from "./protocol/uri_template.ts";
export type {
  Infer,
  InferInput,
  JsonSchema,
  Schema,
  StandardIssue,
  StandardProps,
  StandardResult,
  StandardSchema,
} from "./schema/schema.ts";
export type { Cors, CorsOptions } from "./transports/http/cors.ts";
export type { ConnectionInfo } from "./transports/http/access.ts";
export type { Fetch } from "./transports/http/fetch.ts";
export type { Revision } from "./eras/revisions.ts";
