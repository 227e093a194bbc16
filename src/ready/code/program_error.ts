/**
 * Describes the errors of programs to the model that has written them.
 */
import { isObject, parseJson } from "../../core/kit/json.ts";

const IMPORT = "import is not available; use the globals tools and console";

/** Returns what is wrong with a program, with the line. `text` is the error as JSON, as a process sends it. */
export function describeError(text: string, code: string, { cpuMs, memoryBytes }: Limits): string {
  const error = parseJson(text);
  const { name, message = "", stack = "" }: Record<string, unknown> = isObject(error) ? error : {};
  const [, line] = /program:(\d+)/.exec(`${stack}`) ?? [];
  const place = line ? `line ${line}: ` : "";
  if (name === "InternalError" && message === "interrupted") return toTooSlow(cpuMs);
  if (name === "InternalError" && message === "out of memory") {
    return `the program uses more than ${memoryBytes / 1024 / 1024} MiB of memory; work with fewer values at once`;
  }
  if (`${message}`.startsWith("could not load module")) return `${place}${IMPORT}`;
  if (name === "SyntaxError" && line) {
    return `${place}${explainSyntax(code.split("\n")[Number(line) - 1] ?? "", `${message}`)}`;
  }
  return `${place}${name === undefined || name === "Error" ? "" : `${name}: `}${message}`;
}

interface Limits {
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

export function toTooSlow(cpuMs: number): string {
  return `the program computes for more than ${cpuMs} ms without waiting for a call; do less, or split the work`;
}

function explainSyntax(source: string, message: string): string {
  if (/^\s*(import|export)\b/.test(source)) return IMPORT;
  if (TYPES.test(source)) return `types are not available; write JavaScript without types (${message})`;
  return `SyntaxError: ${message}`;
}

/** Matches the beginning of a type, and annotations of variables, parameters and results. */
const TYPES =
  /^\s*(interface|type|enum|declare|namespace)\s+\w|\b(const|let|var)\s[\w{}[\], ]{1,80}:\s?[\w{["'(]|[(,]\s?\w{1,40}\??:\s?[\w[{]|\)\s?:\s?[\w[{]|\bas\s\w|\bsatisfies\s\w|<\w{1,40}(\[\])?>\(/;

/** Returns the code of a program without the fence around it. */
export function removeFence(code: string): string {
  const text = code.trim();
  const [opening] = /^```[\w-]*[^\S\n]*\n/.exec(text) ?? [];
  // Do not look for the end with the same pattern, because its time would grow with the square of the length.
  return opening && text.endsWith("```") ? text.slice(opening.length, -3).trimEnd() : code;
}
