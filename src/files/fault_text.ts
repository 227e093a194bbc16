/**
 * Explains an unexpected error to the author of a server, in development: its message, and the author's own frames with
 * the lines of the source.
 *
 * @module
 */
import { toPrintable } from "../kit/printable.ts";
import { isOfUser, readPlace, readStack } from "../kit/stack.ts";
import { deno, findProcess } from "../runtime.ts";

/** The most own frames of one error. */
const MAX_FRAMES = 10;
/** Frames of the library and of packages to show if there are no own ones. */
const MAX_FOREIGN = 3;
/** The most causes of an error. */
const MAX_CAUSES = 4;
/** The length of a message, and of a line of the source, in characters. */
const MAX_MESSAGE = 2000;
const MAX_LINE = 200;
/** The size of a source file in characters. */
const MAX_SOURCE = 2_000_000;

/** Explains an error in several lines. Never throws. */
export function explainFault(error: unknown): string {
  try {
    const lines: string[] = [];
    let current = error;
    for (let depth = 0; depth <= MAX_CAUSES; depth++) {
      const [head, ...frames] = explainOne(current);
      lines.push((depth ? "Caused by: " : "") + head, ...frames);
      if (!(current instanceof Error) || current.cause === undefined) break;
      current = current.cause;
    }
    return toPrintable(lines.join("\n"));
  } catch {
    // The author's code may throw anything, such as a proxy.
    return "an error that cannot be read";
  }
}

function explainOne(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return [`the value ${String(error).slice(0, MAX_MESSAGE)}, which is not an Error`];
  const { name, message } = error;
  const { frames } = readStack(error);
  const own = frames.filter(isOfUser).slice(0, MAX_FRAMES);
  const shown = own.length ? own.flatMap(withSource) : frames.slice(0, MAX_FOREIGN).map(toFrame);
  return [`${name}: ${message}`.slice(0, MAX_MESSAGE), ...shown];
}

function toFrame(frame: string): string {
  return `    ${frame.trim()}`;
}

function withSource(frame: string): readonly string[] {
  const [, path, line] = /^(.+?):(\d+)(?::\d+)?$/.exec(readPlace(frame)) ?? [];
  const source = path === undefined ? undefined : readLine(path.replace(/^file:\/\//, ""), Number(line));
  return source ? [toFrame(frame), `        ${source}`] : [toFrame(frame)];
}

/** Returns a line of a file. Returns `undefined` if it may not be read, so that no permission is requested. */
function readLine(path: string, line: number): string | undefined {
  try {
    if (deno?.permissions && deno.permissions.querySync({ name: "read", path }).state !== "granted") return;
    const text = new TextDecoder().decode(findProcess().getBuiltinModule("fs").readFileSync(path));
    if (text.length <= MAX_SOURCE) return text.split("\n")[line - 1]?.trim().slice(0, MAX_LINE);
  } catch {
    // The file may be gone, or was never one.
  }
}
