/**
 * Parses the stacks of errors, and finds the frames that are in the server author's own files.
 */

export interface Stack {
  /** The name and message of the error. */
  readonly head: string;
  /** The lines of the frames, below the message. */
  readonly frames: readonly string[];
}

/** Parses the stack of an error, in the format of V8 or JavaScriptCore. */
export function readStack({ name, message, stack = "" }: Error): Stack {
  // Skip the error message at the beginning of the stack, because a line of the message could look like a frame.
  const at = message ? stack.indexOf(message) : -1;
  const end = at < 0 ? 0 : at + message.length;
  const frames = stack.slice(end).split("\n").filter((line) => /^\s+at |^[^\s@]*@\S+:\d+/.test(line));
  return { head: at < 0 ? [name, message].filter(Boolean).join(": ") : stack.slice(0, end).trimStart(), frames };
}

const LIBRARY = [new URL("../../", import.meta.url), new URL("../../../mod.", import.meta.url)].map(({ pathname }) =>
  decodePath(pathname)
);

/** Matches paths of packages in the project, in Bun's cache or in Deno's cache. */
const PACKAGES = /[\\/](node_modules|install[\\/]cache|npm[\\/][^\\/]+\.[^\\/]+)[\\/]/;

/**
 * Tests whether a frame is in one of the server author's own files, and not in the runtime, a package or this library.
 */
export function isOfUser(frame: string): boolean {
  const place = readPlace(frame);
  // A frame in the runtime has no path, or a path such as `ext:core/mod.js` or `node:fs`.
  return /^(file:|\/|[a-z]:\\)/i.test(place) && !PACKAGES.test(place) &&
    !LIBRARY.some((start) => place.includes(start));
}

/**
 * Returns the frames to print: the frames in the author's own files, because the many frames around them say nothing
 * about the mistake, and a line with the number of the others. If no frame is in such a file, returns all frames.
 */
export function toPrintedFrames(frames: readonly string[]): readonly string[] {
  const own = frames.filter(isOfUser);
  const count = frames.length - own.length;
  if (!own.length || !count) return frames;
  return [...own, `    (${count} more in this library, packages and the runtime)`];
}

/** Returns the location of a frame, such as `file:///home/me/server.ts:3:4`, percent-decoded. */
export function readPlace(frame: string): string {
  const place = frame.replace(/^\s*at (async )?/, "");
  const [, named] = /^[^(]*\((.*)\)$/.exec(place) ?? [];
  return decodePath(named ?? place);
}

/** Percent-decodes a path. Returns the path unchanged if it is not validly encoded. */
export function decodePath(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
