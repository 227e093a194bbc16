/**
 * Performs the steps before a handler for every call that is not a request of a client. A request passes the same steps
 * in the pipeline, which uses no promises for them.
 */
import type { Call } from "../call/call.ts";
import { untilDecided } from "../call/deadline.ts";
import { requireCapabilities } from "../call/question.ts";
import { requireScopes } from "../call/scopes.ts";
import type { Runner } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { toUnknownMethod } from "../visibility/registry.ts";
import type { Engine } from "./era.ts";

/**
 * A way to a handler that is not a request of a client:
 *
 * - `inner`: another handler calls the handler, for itself or as a relay.
 * - `internal`: an extension calls the handler. Rates limit clients, and no client makes the call.
 * - `probe`: a client refers to the work of an earlier call. It only reads a result, and answers no questions.
 * - `recheck`: a call has waited in a queue. It was counted before.
 * - `chain`: a call that runs continues with the next provider of its scheme.
 */
export type Way = "inner" | "internal" | "probe" | "recheck" | "chain";

export type GrantParts = Pick<Engine, "core" | "registry">;

/**
 * Finds the runner of a call, and checks whether the call may run. Throws the error that the client receives if the
 * handler does not exist for the caller, if it is unknown which handlers are disabled, or if a check refuses the call.
 * Cancels the call if a step takes longer than `calls.timeoutMs`. Header parameters are not checked, because only a
 * request has headers.
 */
export async function grant(call: Call, { core, registry }: GrantParts, way: Way): Promise<Runner> {
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
  await checkFound(call, runner, { core, way });
  return runner;
}

export async function checkFound(call: Call, runner: Runner, { core, way }: Found): Promise<void> {
  if (runner.scopes) requireScopes(core, call, runner.scopes);
  if (way === "probe") return;
  if (runner.requires) requireCapabilities(call.client.capabilities, runner.requires, "run the call");
  if (way === "internal" || way === "recheck") return;
  // Check the limits of the called handler. Otherwise clients could bypass a rate with a handler that calls another one.
  const limiting = call.startHandler(() => runner.check?.(call));
  if (limiting) await untilDecided(call, limiting, core);
}

interface Found {
  readonly core: FeatureParts;
  readonly way: Way;
}
