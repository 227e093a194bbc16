/**
 * Reads a URI from several providers of its scheme. Loaded when a server with such providers reads a resource.
 */
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import { runLimited } from "../call/deadline.ts";
import { noteCaller } from "../call/reads.ts";
import { checkFound } from "../engine/grant.ts";
import type { Executor, Runner } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { isAbsent } from "./absent.ts";

/**
 * Returns a runner that calls several runners in order, until a `read` function returns a value. The pipeline checks the
 * scopes, requirements and limits of the first runner. This runner checks those of each further runner before its call.
 */
export function chainRunners(runners: readonly Runner[], { core, isRestricted }: Chain): Runner {
  const [first] = runners;
  const runAll = async (call: Call, run: (runner: Runner) => Result | Promise<Result>): Promise<Result> => {
    // Another caller may get the same URI from another provider, so the rights to the URI do not suffice for what this
    // caller gets. Wait in any case, because the scheduler limits the time of the whole call first.
    await (isRestricted ? noteCaller(call) : undefined);
    let missing: unknown;
    for (const runner of runners) {
      if (runner !== first) await checkFound(call, runner, { core, way: "chain" });
      try {
        return await runLimited(call, core.ticker, () => run(runner));
      } catch (error) {
        if (!isAbsent(error, call)) throw error;
        missing = error;
      }
    }
    throw missing;
  };
  const caches = runners.flatMap(({ cache }) => cache ?? []);
  const isPublic = caches.every(({ scope }) => scope === "public");
  return {
    ...first,
    isRestricted,
    cache: { ttlMs: Math.min(...caches.map(({ ttlMs }) => ttlMs)), scope: isPublic ? "public" : "private" },
    run: (call) => runAll(call, (runner) => runner.run(call)),
    within: runners.some(({ within }) => within)
      ? (call, _runner, executor) => {
        const inner = withoutMiddleware(executor);
        const run = (call: Call) =>
          runAll(call, (runner) => runner.within ? runner.within(call, runner, inner) : runner.run(call));
        return executor.invoke ? executor.invoke(call, { run }) : run(call);
      }
      : undefined,
  };
}

interface Chain {
  readonly core: FeatureParts;
  /** Whether one of the providers of the scheme is not for all callers. */
  readonly isRestricted: boolean;
}

/**
 * Returns an executor for the runners of a chain. The middleware runs once around the whole chain, because otherwise it
 * would get an error for each provider that does not have the resource, and could hide from the chain that the resource
 * is missing.
 */
function withoutMiddleware(executor: Executor): Executor {
  return new Proxy(executor, {
    get(target, name) {
      if (name === "invoke") return undefined;
      const value: unknown = Reflect.get(target, name);
      // Bind the methods, because they use private fields.
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
