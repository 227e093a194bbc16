/**
 * Layers, which stand around handlers: guards, quotas, a cache, retries, a circuit breaker, a question to the user,
 * idempotency keys, and layers of your own. Pass them in the `use` option of a handler, a group or a server.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { cache, circuit, retry } from "@x/mcp/layers";
 *
 * const forecast = tool({
 *   name: "forecast",
 *   annotations: { readOnlyHint: true },
 *   use: [
 *     cache({ ttlMs: 60_000, shared: true }),
 *     retry({ attempts: 3 }),
 *     circuit({ failures: 5, retryMs: 10_000 }),
 *   ],
 *   run: async (_input, { signal }) => (await fetch("https://weather.example.com/today", { signal })).json(),
 * });
 *
 * export default createServer({ name: "weather", version: "1.0.0", handlers: [forecast] });
 * ```
 *
 * @module
 */
export type {
  HandlerInfo,
  KeepOptions,
  KeptValue,
  Layer,
  LayerCall,
  LayerEntry,
  LayerResult,
  LayerRun,
  OutputPart,
  Steps,
  UseItem,
} from "../server/engine/layers.ts";
export type { Argument, Member } from "../server/engine/added.ts";
export {
  argument,
  type ArgumentOptions,
  member,
  type MemberOptions,
  type ValueOf,
} from "../server/handlers/added_parts.ts";
export { layer } from "../server/handlers/layer.ts";
export { cache, type CacheOptions, type ToolCache } from "./cache.ts";
export { circuit, type CircuitOptions } from "./circuit.ts";
export { confirm } from "./confirm.ts";
export { type Plan, planned, type PlannedOptions, type WithPlan } from "./planned/planned.ts";
export type { Concurrency } from "./quota/concurrency.ts";
export { quota, type QuotaOptions } from "./quota/quota.ts";
export type { Rate } from "./quota/rate.ts";
export type { SelectErrors } from "./failures.ts";
export { guard, type GuardOptions, type InputGuard, type OutputGuard } from "./guard.ts";
export { intent, INTENT_ARGUMENT, type IntentOptions } from "./intent.ts";
export { idempotent, type IdempotentOptions } from "./idempotent.ts";
export { retry, type RetryOptions } from "./retry.ts";
