/**
 * Checks a call again after the call has waited in a queue.
 */
import type { Call } from "../call/call.ts";
import type { Core } from "./core.ts";
import { untilDecided } from "../call/deadline.ts";
import type { Runner } from "../visibility/feature.ts";
import { requireCapabilities } from "../call/question.ts";
import { type Registry, toUnknownMethod } from "../visibility/registry.ts";
import { requireScopes } from "../call/scopes.ts";

/**
 * Throws the error that the client receives if the handler no longer exists for the caller, or if the caller lacks a
 * required scope or capability. Cancels the call if the check takes longer than `calls.timeoutMs`.
 */
export async function recheck(call: Call, core: Core, registry: Registry): Promise<void> {
  const { requires } = await findGranted(call, core, registry);
  if (requires) requireCapabilities(call.client.capabilities, requires, "run the call");
}

/**
 * Finds the runner of a call. Throws the error that the client receives if the handler does not exist for the caller,
 * if the caller lacks a required scope, or if it is unknown which handlers are disabled.
 */
export async function findGranted(call: Call, core: Core, registry: Registry): Promise<Runner> {
  const find = () => {
    // The call may have been cancelled in the meantime.
    if (call.reason) throw call.reason;
    // Look up the method after the rules are known, because until then all handlers are hidden.
    const method = registry.methods.get(call.method);
    if (!method) throw toUnknownMethod(call.method);
    return method.find(call);
  };
  // Disable questions, because `allow` must not ask the client questions in any lookup.
  const runner = await call.withoutQuestions(() => {
    const opening = core.shared?.rules?.open(call.method, registry.methods.get(call.method)?.isBrought);
    const found = opening ? opening.then(find) : find();
    // A lookup that has ended needs no timeout.
    return found instanceof Promise ? untilDecided(call, found, core) : found;
  });
  if (runner.scopes) requireScopes(core, call, runner.scopes);
  return runner;
}
