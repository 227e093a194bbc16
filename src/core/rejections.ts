/**
 * Listens for rejections of promises that no code awaits, on every runtime. Without a listener, such a rejection ends the
 * process.
 */
import { bun, deno, findProcess, node } from "./runtime.ts";

/** Brands the listeners of this file, globally, because a process can contain several copies of the library. */
const OWN: unique symbol = Symbol.for("mcp.rejections");

interface RejectionEvent {
  readonly reason: unknown;
  readonly defaultPrevented: boolean;
  preventDefault(): void;
}

/**
 * Calls `onRejection` for each rejection that no code awaits, and keeps the process running. Returns a function that
 * stops listening.
 *
 * Changes nothing if the program decides itself: if it has another listener, or runs with the flag
 * `--unhandled-rejections`.
 */
export function listenToRejections(onRejection: (reason: unknown) => void): () => void {
  if (deno) return listenOnDeno(onRejection);
  if (!bun && !node || hasFlag()) return () => {};
  const listener = (reason: unknown) => {
    if (hasOtherListener()) return;
    // Without this listener, Node passes a rejection to a listener for exceptions, in which the program decides.
    if (node && findProcess().listeners("uncaughtException").length) throw reason;
    onRejection(reason);
  };
  Object.assign(listener, { [OWN]: true });
  findProcess().on("unhandledRejection", listener);
  return () => findProcess().off("unhandledRejection", listener);
}

function listenOnDeno(onRejection: (reason: unknown) => void): () => void {
  const listener = (event: Event) => {
    const rejection = event as Event & RejectionEvent; // The cast is safe, because only such events have this name.
    if (rejection.defaultPrevented || hasOtherListener()) return;
    rejection.preventDefault();
    onRejection(rejection.reason);
  };
  globalThis.addEventListener("unhandledrejection", listener);
  return () => globalThis.removeEventListener("unhandledrejection", listener);
}

/** Whether the program listens itself. On Deno, a listener of the global scope counts only if it prevents the default. */
function hasOtherListener(): boolean {
  return findProcess().listeners("unhandledRejection").some((each) => !(OWN in each));
}

function hasFlag(): boolean {
  const { execArgv, env } = findProcess();
  return [...execArgv, env.NODE_OPTIONS ?? ""].some((text) => text.includes("--unhandled-rejections"));
}
