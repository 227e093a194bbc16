/**
 * Passes the log and progress messages of a handler's run through the output guards.
 */
import { isToolError } from "../../core/protocol/errors.ts";
import type { Params } from "../../core/protocol/jsonrpc.ts";
import { toLoggable } from "../call/log.ts";
import type { SentGuard } from "../call/sent_guard.ts";
import type { OutputPart } from "../visibility/guards.ts";

/** Maximum number of messages per call that wait for the guards. Further messages are dropped. */
const MAX_WAITING = 256;

type Pass = (value: unknown, part: OutputPart) => Promise<unknown>;

/**
 * Passes messages through the guards one after the other. A guard drops a message by throwing a `ToolError`. Any other
 * error of a guard is passed to `report`.
 */
export function guardMessages(pass: Pass, report: (error: unknown) => unknown): Pick<SentGuard, "say" | "said"> {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return {
    // Backpressure: code that awaits a message also waits until the client can take more data. The next message waits
    // only until the guards have processed this message, so that a slow client does not block the guards.
    async say(params, send) {
      if (waiting >= MAX_WAITING) return;
      waiting++;
      const check = toCheck(params, pass);
      const sent = last.then(check).then((left) => [send(left)]);
      last = sent.catch((error) => isToolError(error) ? undefined : void report(error)).finally(() => waiting--);
      const [room] = await sent.catch(() => [undefined]);
      await room;
    },
    said: async () => void await last,
  };
}

/** Returns a function that passes the params through the guards. Copies the data now, because its owner may change it. */
function toCheck(params: Params, pass: Pass): () => Promise<Params> {
  if ("data" in params) {
    const given = toData(params.data);
    return async () => ({ ...params, data: toData(await pass(given, "log")) });
  }
  const { message } = params;
  return async () => {
    const left = message === undefined ? undefined : await pass(message, "progress");
    // If a guard returns a value that is not text, send the progress without a message.
    return { ...params, message: typeof left === "string" ? left : undefined };
  };
}

function toData(data: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(toLoggable(data)) ?? "null");
  } catch {
    return "[a value that JSON cannot represent]";
  }
}
