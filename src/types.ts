/**
 * Types that occur in the signatures of the package's other entries. Server authors rarely need to name these types.
 *
 * ```ts
 * import type { TemplateVariables } from "@x/mcp/types";
 *
 * const variables: TemplateVariables<"notes://{id}"> = { id: "1" };
 * ```
 *
 * @module
 */
export type { ListedOptions, OutputOf, SentOf, ToolFactory, ToolResultOf } from "./server/handlers/tool.ts";
export type {
  ArgumentChange,
  ArgumentChanges,
  ChangedArguments,
  ResourceChanges,
} from "./server/handlers/transform.ts";
export type { Typed } from "./core/typed.ts";
export type { Listed, ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "./core/protocol/listed.ts";
export type {
  ListedResourceOptions,
  ReadVariables,
  ResourceCommonOptions,
  ResourceFactory,
  ResourceFixedOptions,
  ResourceOf,
  ResourceTemplateOptions,
  TemplateText,
} from "./server/handlers/resource.ts";
export type { PromptFactory, PromptMessageReturn } from "./server/handlers/prompt.ts";
export type { ServiceScope } from "./server/services/service_factory.ts";
export type { Lifetime, NoServices, ServiceValues, SharedServiceValues } from "./server/call/service.ts";
export type { TextParams } from "./server/options.ts";
export type {
  AnyHandler,
  ForwardedRequest,
  ForwardOptions,
  ForwardRetry,
  HandlerSelector,
  ListChangedOptions,
  ListName,
  LogMethod,
  LogOptions,
  OnceOptions,
  ReadPathParams,
  ReadSession,
} from "./server/call/context.ts";
export type { PublishedTool } from "./server/visibility/feature_parts.ts";
export type { ServerLogOptions } from "./server/call/log.ts";
export type { AdmitInfo } from "./server/engine/admission.ts";
export type { ResourceContents, SamplingContent } from "./core/protocol/types.ts";
export type { NameList, TemplateVariables } from "./core/protocol/uri_template.ts";
export type { CallArguments, HandlersOf, InputOf, NameOf, OutputNamed, TypesOf } from "./client/typed_client.ts";
export type { InferJson, InferProperties, InferShape, InferType, Shape } from "./core/schema/schema.ts";
