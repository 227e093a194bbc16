/**
 * Reads the stacks of errors. Finds the frames in a stack, and the frames in files of the author of a server.
 *
 * @module
 */

/** The stack of an error. */
export interface Stack {
  /** Name and message of the error. */
  readonly head: string;
  /** The lines below. */
  readonly frames: readonly string[];
}

/** Reads the stack of an error, in the format of V8 or JavaScriptCore. */
export function readStack({ name, message, stack = "" }: Error): Stack {
  // The stack usually begins with the message, whose lines must not be read as frames.
  const at = message ? stack.indexOf(message) : -1;
  const end = at < 0 ? 0 : at + message.length;
  const frames = stack.slice(end).split("\n").filter((line) => /^\s+at |^[^\s@]*@\S+:\d+/.test(line));
  return { head: at < 0 ? [name, message].filter(Boolean).join(": ") : stack.slice(0, end).trimStart(), frames };
}

const LIBRARY = [new URL("../", import.meta.url), new URL("../../mod.", import.meta.url)].map(({ pathname }) =>
  decodePath(pathname)
);

/** Paths of packages: in the project, in the cache of Bun, or in the cache of Deno. */
const PACKAGES = /[\\/](node_modules|install[\\/]cache|npm[\\/][^\\/]+\.[^\\/]+)[\\/]/;

/** Whether a frame is in a file of the user, and not of the runtime, a package or this library. */
export function isOfUser(frame: string): boolean {
  const place = readPlace(frame);
  // The frames of a runtime have no path, or one such as `ext:core/mod.js` and `node:fs`.
  return /^(file:|\/|[a-z]:\\)/i.test(place) && !PACKAGES.test(place) &&
    !LIBRARY.some((start) => place.includes(start));
}

/** Returns the place of a frame, such as `file:///home/me/server.ts:3:4`, with decoded characters. */
export function readPlace(frame: string): string {
  const place = frame.replace(/^\s+at (async )?/, "");
  const [, named] = /^[^(]*\((.*)\)$/.exec(place) ?? [];
  return decodePath(named ?? place);
}

/** Decodes a path with percent signs. Returns the path unchanged if it is not encoded. */
export function decodePath(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A path with a percent sign of its own.
    return text;
  }
}
