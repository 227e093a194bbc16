/**
 * Runs the work that handlers defer until after their call.
 *
 * @module
 */
import type { Call, Deferred } from "./call/call.ts";
import type { Core } from "./core.ts";
import type { Outcome } from "./visibility/feature.ts";
import type { ServiceEnd } from "./call/service.ts";

/** Runs the deferred functions of a call in order, once its response is on its way. Never rejects. */
export async function runDeferred(core: Core, call: Call, all: readonly Deferred[], outcome: Outcome): Promise<void> {
  const end = toEnd(call, outcome);
  // The response passes through the era and the transport first.
  await new Promise((resolve) => setTimeout(resolve));
  for (const run of all) {
    try {
      await run(end);
    } catch (error) {
      core.report(error, call);
    }
  }
}

function toEnd({ isAsking, reason }: Call, outcome: Outcome): ServiceEnd {
  if (isAsking) return "input_required";
  if (!outcome || reason !== undefined) return "cancelled";
  return outcome.error || outcome.result.isError === true ? "error" : "result";
}
