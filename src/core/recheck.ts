/**
 * Checks a call again after it has waited.
 *
 * @module
 */
import type { Call } from "./call/call.ts";
import type { Core } from "./core.ts";
import type { Method, Runner } from "./visibility/feature.ts";
import { requireCapabilities } from "./call/question.ts";
import { type Registry, toUnknownMethod } from "./visibility/registry.ts";
import { requireScopes } from "./call/scopes.ts";

/**
 * Checks, before a handler starts, that the handler still exists for the caller and that the caller still meets its
 * requirements. Throws the error for the client. Cancels the call if the check exceeds the call's timeout.
 */
export async function recheck(call: Call, core: Core, registry: Registry): Promise<void> {
  const method = registry.methods.get(call.method);
  if (!method) throw toUnknownMethod(call.method);
  // As in the first lookup, `allow` must not ask the client.
  const { scopes, requires } = await call.withoutQuestions(() => find(call, method, core));
  if (scopes) requireScopes(core, call, scopes);
  if (requires) requireCapabilities(call.client.capabilities, requires, "run the call");
}

// Limit the time, because an `allow` that never settles must not hold a slot forever.
async function find(call: Call, method: Method, { ticker, limits: { calls: { timeoutMs } } }: Core): Promise<Runner> {
  const timeout = ticker.startTimeout(timeoutMs, () => call.timeOut(timeoutMs, "calls.timeoutMs"));
  try {
    return await method.find(call);
  } finally {
    ticker.cancel(timeout);
  }
}
