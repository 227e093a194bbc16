/**
 * Passes the answers of a parked call to the instance on which the call waits, through the store.
 */
import { isMcpError, isRemoteError, isToolError, McpError, ToolError } from "../core/protocol/errors.ts";
import { toMessage } from "../core/kit/error_state.ts";
import { deadline } from "../core/kit/deadline.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { StoreView } from "../server/engine/store.ts";

/** Milliseconds for which an instance waits until the other one has received the answers. */
const RECEIVED_MS = 5000;

export interface RoutedAnswer {
  readonly state: string;
  readonly caller?: string;
  readonly capabilities: Params;
  readonly answers: Params;
}

/** Receives the answers for the calls that wait on this instance. Returns a function that stops receiving. */
export async function receiveAnswers(
  store: StoreView,
  instance: string,
  { run, cancel }: {
    readonly run: (answer: RoutedAnswer) => Promise<Result>;
    readonly cancel: (state: string) => void;
  },
): Promise<() => void> {
  return await store.subscribe(toTopic(instance), async (text) => {
    const { reply, isCancelled, ...answer }: RoutedAnswer & { reply: string; isCancelled?: boolean } = JSON.parse(text);
    if (isCancelled) return cancel(answer.state);
    const send = async (message: Params) => await store.publish(`reply ${reply}`, JSON.stringify(message));
    try {
      await send({ isReceived: true });
      await send({ result: await run(answer) });
    } catch (error) {
      const { code, data }: Partial<McpError> = isMcpError(error) || isRemoteError(error) ? error : {};
      await send({ error: toMessage(error), code, data, isTool: isToolError(error) });
    }
  });
}

/** Sends answers to another instance, and waits for the result. Returns `undefined` if the instance does not respond. */
export async function routeAnswers(
  store: StoreView,
  instance: string,
  { signal, ...answer }: RoutedAnswer & { readonly signal: AbortSignal },
): Promise<Result | undefined> {
  const reply = crypto.randomUUID();
  const received = Promise.withResolvers<boolean>();
  const settled = Promise.withResolvers<Result>();
  settled.promise.catch(() => {});
  const stop = await store.subscribe(`reply ${reply}`, (text) => {
    const { result, error, code, data, isTool }: Params = JSON.parse(text);
    received.resolve(true);
    if (isObject(result)) settled.resolve(result);
    else if (isTool) settled.reject(new ToolError(String(error)));
    else if (error !== undefined) settled.reject(new McpError(Number(code ?? -32603), String(error), data, {}));
  });
  const send = async (more: object) => await store.publish(toTopic(instance), JSON.stringify({ ...answer, ...more }));
  try {
    await send({ reply });
    const onTimeout = () => false;
    if (!await deadline(received.promise, { ms: RECEIVED_MS, signal, onTimeout })) return;
    return await deadline(settled.promise, { signal });
  } catch (error) {
    if (signal.aborted) await send({ isCancelled: true });
    throw error;
  } finally {
    stop();
  }
}

function toTopic(instance: string): string {
  return `parked ${instance}`;
}
