/**
 * Reads the stacks of errors. Finds the frames of a stack, and which of them are in files of the server's author.
 *
 * @module
 */

/** The stack of an error. */
export interface Stack {
  /** Name and message of the error. */
  readonly head: string;
  /** The lines below the message. */
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

/** Whether a frame is in a file of the server's author, and not of the runtime, a package or this library. */
export function isOfUser(frame: string): boolean {
  const place = readPlace(frame);
  // The frames of a runtime have no path, or a path such as `ext:core/mod.js` or `node:fs`.
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
    // The path contains a percent sign that does not start an escape sequence.
    return text;
  }
}
