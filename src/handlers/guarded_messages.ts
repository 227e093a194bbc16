/**
 * Passes a handler's log messages and progress through the output guards.
 *
 * @module
 */
import { isToolError } from "../protocol/errors.ts";
import type { Call } from "../core/call/call.ts";
import type { Context } from "../core/call/context.ts";
import { createLog, toLoggable, wantsLevel } from "../core/call/log.ts";
import type { OutputPart } from "../core/visibility/guards.ts";

/** Maximum number of messages per call that wait for the guards. Further messages are dropped. */
const MAX_WAITING = 256;

/** Passes a value through the guards. */
type Pass = (value: unknown, part: OutputPart) => Promise<unknown>;

/**
 * Returns a context that passes its messages through the guards one after the other. `settled` resolves when the guards
 * have processed all messages.
 */
export function guardMessages(
  ctx: Context<never>,
  call: Call,
  pass: Pass,
): { readonly watched: Context<never>; readonly settled: () => Promise<void> } {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  // A guard rejects a message by throwing a ToolError. Any other error is a fault.
  const report = (error: unknown) => isToolError(error) ? undefined : void call.host.parts?.report(error, call);
  // Backpressure: a handler that awaits a message also waits until the client can take more data. The next message
  // waits only until the guards have processed this message, so that a slow client does not block the guards.
  const send = async (guard: () => Promise<() => Promise<void>>): Promise<void> => {
    if (waiting >= MAX_WAITING) return;
    waiting++;
    const sent = last.then(guard).then((deliver) => [deliver()]);
    last = sent.catch(report).finally(() => waiting--);
    const [room] = await sent.catch(() => [undefined]);
    await room;
  };
  const log = createLog(async (level, data, logger) => {
    if (!wantsLevel(call.client, level)) return;
    const given = toData(data);
    await send(async () => {
      const left = toData(await pass(given, "log"));
      return () => call.log[level](left, { logger });
    });
  });
  const progress: Context["progress"] = async (value, options = {}) => {
    const { message } = options;
    await send(async () => {
      const left = message === undefined ? undefined : await pass(String(message), "progress");
      // If a guard returns a value that is not text, send the progress without a message.
      return () => call.progress(value, { ...options, message: typeof left === "string" ? left : undefined });
    });
  };
  const watched = new Proxy(ctx, {
    get(target, name) {
      if (name === "log") return log;
      if (name === "progress") return progress;
      // Use `target` as the receiver, because the getters of a call use its private fields.
      return Reflect.get(target, name, target);
    },
  });
  return { watched, settled: async () => void await last };
}

/** Returns the JSON value that the client gets for `data`. */
function toData(data: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(toLoggable(data)) ?? "null");
  } catch {
    return "[a value that JSON cannot represent]";
  }
}
