/**
 * Reports rejections of promises that no code awaits, while a process serves. Otherwise one such rejection would end the
 * process for all of its clients.
 */
import { INTERNALS } from "../core/internals.ts";
import { listenToRejections } from "../core/rejections.ts";
import { bun, findProcess, node } from "../core/runtime.ts";
import type { Call } from "./call/call.ts";
import { current } from "./call/current_call.ts";
import type { Server } from "./server.ts";

/** Whether a call with the storage takes only slightly longer: on Node 24 and later. */
const isCheap = Number(node?.version.match(/\d+/)?.[0] ?? 0) >= 24;

// Bound: one for each server that the program serves.
const served: Set<Server> = new Set();
let stop = () => {};

/**
 * Reports rejections to the observer of the server whose handler has caused them, or of the first served server if the
 * handler is unknown. Returns a function that ends the reports for this server.
 */
export function reportRejections(server: Server): () => void {
  if (isCheap) rememberCalls();
  if (!served.size) stop = listenToRejections(report);
  served.add(server);
  return () => {
    if (served.delete(server) && !served.size) stop();
  };
}

function report(error: unknown): void {
  const [first] = served;
  const [{ [INTERNALS]: { engine: { core } } }] = first[INTERNALS].servers ?? [first];
  const call = current.storage?.getStore();
  const { method, subject } = call ?? {};
  (call?.host.parts ?? core).report(error, { method, subject, isUnawaited: true });
  // On other runtimes, only programs with such a fault pay for the names of their handlers.
  rememberCalls();
}

/** Has no effect on Bun, which does not pass on the storage to the listeners for rejections. */
function rememberCalls(): void {
  if (!bun) current.storage ??= new (findProcess().getBuiltinModule("async_hooks")).AsyncLocalStorage<Call>();
}
