/**
 * The tasks extension for clients.
 */
import { checkOptions, type KnownOptions } from "../../../core/known_options.ts";
import { type Clock, systemClock } from "../../../core/timers.ts";
import { type ClientExtension, clientExtension } from "../../../client/extension.ts";
import { checkTimeout } from "../../../client/deadline.ts";
import { readTask, TaskError } from "./task_state.ts";
import { TaskWaiter } from "./task_waiter.ts";

/** Options of {@linkcode taskClient}. */
export interface TaskClientOptions {
  /** Milliseconds for which a failing request is retried, such as while the server restarts. Defaults to 60,000. */
  readonly giveUpMs?: number;
  /** The clock to use, for tests. Defaults to the system clock. */
  readonly clock?: Clock;
}

const OPTIONS: KnownOptions<keyof TaskClientOptions> = { names: { giveUpMs: true, clock: true } };

const ID = "io.modelcontextprotocol/tasks";
const GIVE_UP_MS = 60_000;
/**
 * Maximum number of tasks to which the client subscribes at the same time. The number is limited, because each
 * subscription occupies a connection. For further tasks, the client only polls.
 */
const MAX_LISTENERS = 4;

/**
 * Creates the tasks extension. With this extension, `callTool` waits for the final result if the server turns the call
 * into a task.
 *
 * ```ts
 * import { connect } from "@x/mcp/client";
 * import { taskClient } from "@x/mcp/client/tasks";
 *
 * async function report(url: string) {
 *   await using client = await connect(url, { extensions: [taskClient()] });
 *   return await client.callTool("report", {}, { onProgress: console.log, timeoutMs: Infinity });
 * }
 * ```
 *
 * @throws {RangeError} if `giveUpMs` is not a positive number or `Infinity`.
 */
export function taskClient(options: TaskClientOptions = {}): ClientExtension {
  checkOptions("make taskClient", options, OPTIONS);
  const { giveUpMs = GIVE_UP_MS, clock = systemClock } = options;
  checkTimeout(giveUpMs, "giveUpMs");
  let listeners = 0;
  const reserveListener = () => {
    if (listeners >= MAX_LISTENERS) return;
    listeners++;
    return () => void listeners--;
  };
  return clientExtension({
    id: ID,
    subjects: { "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId" },
    results: {
      task: {
        schema: { type: "object", properties: { taskId: { type: "string", minLength: 1 } }, required: ["taskId"] },
        finish(result, call) {
          const { taskId } = result;
          if (call.method !== "tools/call") {
            throw new TaskError(
              taskId,
              `Cannot use the result of ${call.method}: the server sent a task, but only tool calls can become tasks`,
            );
          }
          const first = call.isResumed ? undefined : readTask({ ...result, result: {} }, taskId);
          return new TaskWaiter(taskId, call, { clock, giveUpMs, reserveListener }).wait(first);
        },
      },
    },
  });
}
