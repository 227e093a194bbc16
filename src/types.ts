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
export type { OutputOf, RunListed, SentOf, ToolFactory, ToolResultOf } from "./handlers/tool.ts";
export type { Typed } from "./core/visibility/typed.ts";
export type { Listed, ListedTool } from "./protocol/listed.ts";
export type {
  ReadVariables,
  ResourceAllow,
  ResourceCommonOptions,
  ResourceFixedOptions,
  ResourceOf,
  ResourceTemplateOptions,
  TemplateText,
} from "./handlers/resource.ts";
export type { ArgumentNames, PromptMessageReturn } from "./handlers/prompt.ts";
export type { CallServiceScope, KeyedServiceScope, ServiceScope } from "./core/services/service_factory.ts";
export type { Lifetime, NoServices, ServiceValues, SharedServiceValues } from "./core/call/service.ts";
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
  ReadRoute,
  ReadSession,
} from "./core/call/context.ts";
export type { PublishedTool } from "./core/visibility/feature_parts.ts";
export type { LogFilter, ServerLogOptions } from "./core/call/log.ts";
export type { AdmitFacts } from "./core/admission.ts";
export type { Capabilities } from "./core/call/capabilities.ts";
export type { ResourceContents, SamplingContent } from "./protocol/types.ts";
export type { NameList, TemplateVariables } from "./protocol/uri_template.ts";
export type {
  CallArguments,
  HandlersOf,
  InputOf,
  NameOf,
  OutputNamed,
  TypedToolResult,
  TypesOf,
} from "./client/typed_client.ts";
export type { InferShape, Shape, StandardProps, StandardTypes } from "./schema/schema.ts";
export type { StandardIssue, StandardResult } from "./schema/schema.ts";
export type { InferJson, InferProperties, InferType } from "./schema/schema.ts";
