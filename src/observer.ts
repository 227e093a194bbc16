/**
 * An observer that prints events, and the types of the events that observers receive.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { type CallEvent, consoleObserver } from "@x/mcp/observer";
 *
 * const slow = { call: ({ method, durationMs }: CallEvent) => durationMs > 1000 && console.warn(method) };
 * export default createServer({ name: "s", version: "1.0.0", observer: [consoleObserver(), slow] });
 * ```
 *
 * @module
 */
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
  RefusalReason,
  RefusedEvent,
  ServiceEvent,
  SessionEvent,
  StartEvent,
  StoreEvent,
  StreamEvent,
  SubscriptionEvent,
  TransportName,
} from "./server/call/observer.ts";
export { consoleObserver } from "./server/call/combined_observer.ts";
