/**
 * Explains an unexpected error to the author of a server, in development. The text contains the message, and the stack
 * frames in the author's files with their lines of source code.
 */
import { toPrintable } from "../../core/kit/printable.ts";
import { isOfUser, readPlace, readStack } from "../../core/kit/stack.ts";
import { deno, findProcess } from "../../core/runtime.ts";

/** Maximum number of stack frames that are shown per error, counting only frames in the author's files. */
const MAX_FRAMES = 10;
/**
 * Maximum number of stack frames in the library and in packages that are shown per error. These frames are shown only
 * if no frame is in one of the author's files.
 */
const MAX_FOREIGN = 3;
/** Maximum number of causes (`error.cause`) that are shown. */
const MAX_CAUSES = 4;
/** Maximum length of a message, in characters. */
const MAX_MESSAGE = 2000;
/** Maximum length of a line of source code, in characters. */
const MAX_LINE = 200;
/** Maximum size of a source file that is read, in characters. */
const MAX_SOURCE = 2_000_000;

/** Returns an explanation of several lines. Never throws. */
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
    // The author's code may throw any value, such as a proxy that throws when it is read.
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

/** Returns `undefined` instead of requesting the permission to read the file. */
function readLine(path: string, line: number): string | undefined {
  try {
    if (deno?.permissions && deno.permissions.querySync({ name: "read", path }).state !== "granted") return;
    const text = new TextDecoder().decode(findProcess().getBuiltinModule("fs").readFileSync(path));
    if (text.length <= MAX_SOURCE) return text.split("\n")[line - 1]?.trim().slice(0, MAX_LINE);
  } catch {
    // Ignore the error: the file does not exist, or the path is not a file.
  }
}
