/**
 * Reads a URI from several providers of its scheme. Loaded when a server with such providers reads a resource.
 */
import { isMcpError } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import { requireCapabilities } from "../call/question.ts";
import { noteCaller } from "../call/reads.ts";
import { requireScopes } from "../call/scopes.ts";
import type { Executor, Runner } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { takeAbsent } from "./absent.ts";

/**
 * Returns a runner that asks several runners in order, until `read` of one returns something. The pipeline checks the
 * scopes, requirements and limits of the first one, and this runner checks those of the others before it asks them.
 */
export function chainRunners(runners: readonly Runner[], core: FeatureParts): Runner {
  const [first, ...others] = runners;
  const runAll = async (call: Call, run: (runner: Runner) => Result | Promise<Result>): Promise<Result> => {
    let missing: unknown;
    for (const runner of [first, ...others]) {
      if (runner !== first) await check(runner, call, core);
      // Nobody can know later which provider has read the URI, so what depends on it is only for this caller.
      if (runner.scopes || runner.isRestricted) await noteCaller(call);
      takeAbsent(call);
      try {
        return await run(runner);
      } catch (error) {
        if (!takeAbsent(call) || !isMcpError(error)) throw error;
        missing = error;
      }
    }
    throw missing;
  };
  const caches = runners.flatMap(({ cache }) => cache ?? []);
  const isPublic = caches.every(({ scope }) => scope === "public");
  return {
    ...first,
    isRestricted: runners.some(({ isRestricted }) => isRestricted),
    cache: { ttlMs: Math.min(...caches.map(({ ttlMs }) => ttlMs)), scope: isPublic ? "public" : "private" },
    run: (call) => runAll(call, (runner) => runner.run(call)),
    within: runners.some(({ within }) => within)
      ? (call, _runner, executor) => runAll(call, (runner) => runWithin(call, runner, executor))
      : undefined,
  };
}

function runWithin(call: Call, runner: Runner, executor: Executor): Result | Promise<Result> {
  if (runner.within) return runner.within(call, runner, executor);
  return executor.invoke ? executor.invoke(call, runner) : runner.run(call);
}

async function check(runner: Runner, call: Call, core: FeatureParts): Promise<void> {
  if (runner.scopes) requireScopes(core, call, runner.scopes);
  if (runner.requires) requireCapabilities(call.client.capabilities, runner.requires, "run the call");
  await runner.check?.(call);
}
