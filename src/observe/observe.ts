/**
 * Functions for operating a server: health checks, metrics, logs, an audit log and recordings of messages. Also the
 * types of the events that observers receive.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { health, jsonLog, prometheus } from "@x/mcp/observe";
 *
 * const metrics = prometheus();
 * const operation = { observer: [metrics, jsonLog()], routes: [metrics, health()] };
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * export default createServer({ name: "greeter", version: "1.0.0", handlers: [hello], ...operation });
 * ```
 *
 * @module
 */
export {
  audit,
  type AuditIntent,
  type AuditOptions,
  type AuditOutcome,
  type AuditRecord,
  type AuditSubject,
} from "./audit.ts";
export { consoleObserver } from "../server/call/combined_observer.ts";
export { health, type HealthDetails, type HealthOptions, type HealthState } from "./health.ts";
export { jsonLog, type JsonLogOptions, type LogRecord } from "./json_log.ts";
export { type Prometheus, prometheus, type PrometheusOptions } from "./prometheus.ts";
export { record, type RecordOptions } from "./record.ts";
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
} from "../server/call/observer.ts";
