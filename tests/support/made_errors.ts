// Lists the errors that code makes, also those that it neither throws nor returns. Making an error takes as long as a
// third of a small call, because the error gets its stack.
import { McpError, ToolError } from "../../mod.ts";

/** A constructor of errors. */
type ErrorClass = abstract new (...args: never[]) => object;

const NATIVE = ["Error", "TypeError", "RangeError", "SyntaxError", "DOMException"] as const;

/** Returns the messages of the errors that are made while `run` runs. Tests of one file must not overlap with it. */
export async function listErrors(run: () => Promise<unknown>): Promise<readonly string[]> {
  const messages: string[] = [];
  const natives = Object.fromEntries(NATIVE.map((name) => [name, globalThis[name]]));
  const watched = Object.fromEntries(NATIVE.map((name) => [name, watch(globalThis[name], messages)]));
  Object.assign(globalThis, watched);
  // A class calls the constructor of the class from which it inherits at this time.
  for (const own of [McpError, ToolError]) Object.setPrototypeOf(own, watched.Error);
  try {
    await run();
  } finally {
    for (const own of [McpError, ToolError]) Object.setPrototypeOf(own, natives.Error);
    Object.assign(globalThis, natives);
  }
  return messages;
}

function watch(native: ErrorClass, messages: string[]): ErrorClass {
  const watched: ErrorClass = new Proxy(native, {
    construct(target, args, newTarget) {
      messages.push(String(args[0]));
      return Reflect.construct(target, args, newTarget === watched ? target : newTarget);
    },
  });
  return watched;
}
