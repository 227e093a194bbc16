/**
 * Where the tasks of a server are kept: in its own store, or by the servers behind its proxies.
 */
import { INTERNALS } from "../../core/internals.ts";
import { toCall } from "../../server/call/find_call.ts";
import { type ClientCapabilities, type Context, McpError, type Params } from "../../library.ts";
import type { HandlerCall } from "../../server/call/handler_call.ts";
import type { ExtensionEvent, ServerHandle } from "../extension.ts";

/**
 * Keeps tasks. Each method checks whether the caller may use the task, and throws the error for the client if the caller
 * lacks a right. For an id that belongs to another source, or to no task of the caller, `get`, `load` and `watch` return
 * `undefined`, and `answer` and `cancel` return `false`.
 */
export interface TaskSource {
  /** Returns the result of `tasks/get`. */
  get(id: string, ctx: Context): Promise<Params | undefined>;
  answer(id: string, responses: Params, ctx: Context): Promise<boolean>;
  cancel(id: string, ctx: Context): Promise<boolean>;
  /** Returns the ids of the tasks whose changes the caller may get. */
  grant(ids: readonly string[], ctx: Context): Promise<readonly string[]>;
  /** Calls `publish` with the changes of a task, until the returned function is called. The caller was granted the task. */
  watch(id: string, ctx: Context, publish: (event: ExtensionEvent) => void): Promise<(() => unknown) | undefined>;
  /** Returns the current notification of a task. The caller was granted the task. */
  load(id: string, ctx: Context): Promise<ExtensionEvent | undefined>;
}

/** Returns a source that is loaded when a client first refers to a task that no other source knows. */
export function lazySource(load: () => Promise<TaskSource>): TaskSource {
  return {
    get: async (...given) => await (await load()).get(...given),
    answer: async (...given) => await (await load()).answer(...given),
    cancel: async (...given) => await (await load()).cancel(...given),
    grant: async (...given) => await (await load()).grant(...given),
    watch: async (...given) => await (await load()).watch(...given),
    load: async (...given) => await (await load()).load(...given),
  };
}

/** The sources of each server, or of each concrete path of a server. */
// Bound: the handlers of the server.
const sources = new WeakMap<object, Set<TaskSource>>();

/** Adds a source to a server. Returns a function that removes the source. */
export function addTaskSource({ [INTERNALS]: server }: ServerHandle, source: TaskSource): () => void {
  const known = sources.get(server) ?? new Set();
  sources.set(server, known.add(source));
  return () => void known.delete(source);
}

/** Returns what the first source that knows a task finds. */
export async function findInSources<T>(
  ctx: Context,
  find: (source: TaskSource) => Promise<T | undefined>,
): Promise<T | undefined> {
  const { host } = toCall(ctx, "find a task");
  const asked = new Set<TaskSource>();
  const findNew = async () => {
    for (const source of sources.get(Object(host.parts)) ?? []) {
      const found = asked.has(source) ? undefined : await find(source);
      if (found) return found;
      asked.add(source);
    }
  };
  // The request may be the first one, for which other parts of the server are still starting.
  return await findNew() ?? await host.lives?.ready().then(findNew, findNew);
}

/** Returns the questions that a client can answer, or all questions if no client reads them. */
export function toAnswerable(
  questions: { readonly [key: string]: { readonly method: string } },
  capabilities: ClientCapabilities | undefined,
): Params {
  // The client that called the tool had the capabilities for all questions, but another client may read the task.
  const shown = Object.entries(questions).filter(([, { method }]) =>
    !capabilities || CAPABILITY[method] in capabilities
  );
  return Object.fromEntries(shown);
}

/** The capability that a client needs to answer each kind of question. */
const CAPABILITY: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

/** Throws the error for an unknown task if its tool does not exist for the caller now, and the error for a missing scope. */
export async function checkTool(server: ServerHandle, ctx: Context, tool: HandlerCall): Promise<void> {
  try {
    await server.check(ctx, tool);
  } catch (error) {
    throw isHidden(error) ? toUnknown() : error;
  }
}

// Tests whether an error states that the tool does not exist for the caller.
function isHidden(error: unknown): boolean {
  const { code } = Object(error);
  return code === INVALID_PARAMS || code === METHOD_NOT_FOUND;
}

const INVALID_PARAMS = -32_602;
const METHOD_NOT_FOUND = -32_601;
const INSUFFICIENT_SCOPE = -31_403;

// Ignores the error of a caller who may not call the tool, because a subscription grants other tasks in any case.
export function toUngranted(error: unknown): undefined {
  if (!isHidden(error) && Object(error).code !== INSUFFICIENT_SCOPE) throw error;
}

// Use one message for all causes, so that callers cannot find out which task ids of other callers exist.
export function toUnknown(): McpError {
  return McpError.invalidParams(
    "Cannot find the task: it does not exist, has expired, or is not available to the caller",
  );
}
