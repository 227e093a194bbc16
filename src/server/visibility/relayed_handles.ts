/**
 * Gives the client the handle, such as a task, that is the result of a call which a relay has passed on.
 */
import type { Params, Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import { QuestionError } from "../call/question.ts";
import type { Runner } from "./feature.ts";

/** The handles by the parameters of the relays. Layers of extensions replace calls, but not their parameters. */
const handles = new WeakMap<Params, Result>();

/** The parameters of calls whose handlers can pass a handle. */
const passing = new WeakSet<Params>();

/** Whether the handler of a call can end with {@linkcode passHandle}. */
export function canPassHandle({ params, home }: Call): boolean {
  return home.hasResultTypes === true && passing.has(params);
}

/**
 * Ends the handler of a relay, because the client gets a handle. The handler, its guards and its layers do not see the
 * handle, as they do not see the handle of a direct call.
 */
export function passHandle({ params }: Call, handle: Result): never {
  handles.set(params, handle);
  throw new QuestionError();
}

/** Returns the runner of a relay with the handles of what it has passed on. */
export function withHandles(runner: Runner): Runner {
  return {
    ...runner,
    run: (call) => runner.run(call),
    async within(call, given, executor) {
      const { within } = runner;
      passing.add(call.params);
      try {
        if (within) return await within(call, given, executor);
        return await (executor.invoke ? executor.invoke(call, given) : given.run(call));
      } catch (error) {
        const handle = handles.get(call.params);
        if (handle && !call.ended) return handle;
        throw error;
      }
    },
  };
}
