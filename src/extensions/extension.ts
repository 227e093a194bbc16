/**
 * The types of extensions. The function `extension` of the main entry creates an extension.
 *
 * ```ts
 * import { extension } from "@x/mcp";
 * import type { ExtensionMethod } from "@x/mcp/extension";
 *
 * const count: ExtensionMethod = { run: () => ({ count: 3 }) };
 * export const counter = extension({ id: "com.example/counter", methods: { "counter/get": count } });
 * ```
 *
 * @see specification/2026-07-28/basic (Extensions)
 * @module
 */
export type {
  Extension,
  ExtensionEvent,
  ExtensionListen,
  ExtensionMethod,
  ExtensionNotification,
  ExtensionOptions,
  InferParams,
} from "../server/handlers/extension.ts";
export type {
  DetachOptions,
  Next,
  Redirect,
  RedirectedQuestion,
  WatchTopic,
  WrappedCall,
} from "../server/engine/extension.ts";
export type { ExtensionSteps } from "../server/engine/layers.ts";
export type { HandlerCall } from "../server/call/handler_call.ts";
export type {
  InternalRequest,
  KeptBytes,
  ServerHandle,
  ServerStores,
  StartPart,
} from "../server/engine/server_handle.ts";
export type { StoreView } from "../server/engine/store.ts";
export type { Schemas } from "../core/schema/schema.ts";
