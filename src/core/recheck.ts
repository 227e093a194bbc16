/**
 * Checks the handler of a call that has waited.
 *
 * @module
 */
import type { Call } from "./call.ts";
import type { Core } from "./core.ts";
import type { Method, Runner } from "./feature.ts";
import { requireCapabilities } from "./question.ts";
import { type Registry, toUnknownMethod } from "./registry.ts";
import { requireScopes } from "./scopes.ts";

/**
 * Returns the check for a call that starts to wait: whether its handler still exists for its caller, and what it demands
 * of the caller. The check throws the error for the client. Returns `undefined` for a method without handlers.
 */
export function createRecheck(call: Call, core: Core, registry: Registry): (() => void | Promise<void>) | undefined {
  if (!registry.methods.has(call.method)) return;
  return () => {
    const method = registry.methods.get(call.method);
    if (!method) throw toUnknownMethod(call.method);
    return recheck(call, core, method);
  };
}

function recheck(call: Call, core: Core, method: Method): void | Promise<void> {
  const { asks } = call;
  const demand = ({ scopes, needs }: Runner) => {
    call.asks = asks;
    if (scopes) requireScopes(core, call, scopes);
    if (needs) requireCapabilities(call.client.capabilities, needs, "run the call");
  };
  // As in the first lookup, `allow` cannot ask the client.
  call.asks = false;
  const found = method.find(call);
  return found instanceof Promise ? found.then(demand) : demand(found);
}
