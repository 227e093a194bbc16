/**
 * The log of `serve --log`: writes the events of a server to standard error, as JSON or in a readable format.
 */
import { jsonLog, type LogRecord } from "../observe/observe.ts";
import { toPrintableLine } from "../core/kit/printable.ts";
import { toPrintedFrames } from "../core/kit/stack.ts";
import { UsageError } from "./cli_error.ts";

/** @throws {UsageError} if the format is neither `json` nor `pretty`. */
export function createLog(format: string): ReturnType<typeof jsonLog> {
  if (format === "json") return jsonLog();
  if (format === "pretty") return jsonLog({ write: (_line, record) => console.error(toLine(record)) });
  throw new UsageError(`Cannot log as ${JSON.stringify(format)}: there is no such format; use json or pretty`);
}

/** Fields that are printed first, without their names. */
const FIRST = ["event", "method", "name", "outcome", "reason", "state", "limit", "service", "error"];
/** Fields that are not printed as `name=value`, because they are printed in another place or not at all. */
const LEFT_OUT = ["time", "level", "id", "parent", "durationMs", "waitedMs", "transport", "stack", ...FIRST];

/** Formats a record, such as `14:03:21 info  call tools/call add result 1.2 ms principal=ada`. */
function toLine(record: LogRecord): string {
  const { time, level, durationMs, stack } = record;
  const first = FIRST.flatMap((name) => record[name] === undefined ? [] : [String(record[name])]);
  const rest = Object.entries(record).filter(([name, value]) => value !== undefined && !LEFT_OUT.includes(name))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const took = durationMs === undefined ? [] : [`${durationMs} ms`];
  const line = [time.slice(11, 19), level.padEnd(5), ...first, ...took, ...rest].map(toPrintableLine).join(" ");
  if (!Array.isArray(stack)) return line;
  const frames = toPrintedFrames(stack.map(String)).map((frame) => `    ${toPrintableLine(frame.trim())}`);
  return [line, ...frames].join("\n");
}
