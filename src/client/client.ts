/**
 * A client for servers of every protocol revision, over HTTP, over stdio, or in the same process.
 *
 * ```ts
 * import { connect } from "@x/mcp/client";
 *
 * async function show(target: string): Promise<void> {
 *   await using client = await connect(target, {
 *     onElicit: ({ message }) => confirm(message) ? { action: "accept" } : { action: "decline" },
 *   });
 *   for (const { name, description } of await client.listTools()) console.log(name, description);
 *   const { content } = await client.callTool("add", { a: 2, b: 3 }, { onProgress: console.log });
 *   console.log(content);
 * }
 * ```
 *
 * @module
 */
export type {
  AnswerContext,
  AnswerOptions,
  ElicitRequest,
  ElicitResult,
  ElicitUrlRequest,
  ServerRequest,
} from "./answer_options.ts";
export type { AuthChallenge, AuthRequest, BoundToken, ClientAuth } from "./client_auth.ts";
export type { ClientMiddleware, ClientRequest, ResponseHooks } from "./request_middleware.ts";
export type { Client, CompleteOptions, Completion } from "./calls.ts";
export type { Trace } from "./channel.ts";
export type { CommandTarget } from "./child_process.ts";
export { connect, type ConnectOptions } from "./connect.ts";
export { lock, type LockOptions } from "./lock.ts";
export type { TypedClient } from "./typed_client.ts";
export {
  type ClientExtension,
  clientExtension,
  type ClientExtensionOptions,
  type ExtensionResult,
  type PendingRequest,
  type ReceivedNotification,
} from "./extension.ts";
export type { Listed, ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../core/protocol/listed.ts";
export type { Message, Notification } from "./message.ts";
export { McpError } from "../core/protocol/errors.ts";
export type { Progress, RequestOptions } from "./rpc.ts";
export type { ServerInfo } from "./protocol.ts";
export type { Subscription, SubscriptionFilter, Watch } from "./subscription.ts";
export type { Target, TargetOptions } from "./target.ts";
// Types in the signatures of this entry point.
export type { Id, Params, Result } from "../core/protocol/jsonrpc.ts";
export type {
  Annotations,
  ClientCapabilities,
  Icon,
  Implementation,
  LogLevel,
  PromptMessage,
  ResourceContents,
  Root,
  SamplingRequest,
  SamplingResult,
  ToolAnnotations,
  ToolResult,
} from "../core/protocol/types.ts";
export type { Schemas } from "../core/schema/schema.ts";
export type { Served } from "../server/transports/channel.ts";
