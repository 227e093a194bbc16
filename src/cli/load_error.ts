/**
 * Explains why a file could not be loaded. The explanation starts with the error's message, followed by the stack
 * frames in the user's own files. Suggests another file if the file does not exist.
 */
import { decodePath, isOfUser, readStack, toPrintedFrames } from "../core/kit/stack.ts";
import { findSuggestion } from "../core/kit/suggestions.ts";
import { toPlain } from "./client/terminal_text.ts";
import { explainPermission } from "./permissions.ts";
import { platform } from "./platform.ts";

/** Maximum length of an error's message and of its stack, in characters each. */
const MAX_LENGTH = 2000;

const COMMAND_LINE = decodePath(new URL(".", import.meta.url).pathname);

/** Suggests a similarly named source file in the same folder. */
export async function suggestFile(target: string, path: string): Promise<string> {
  const at = path.lastIndexOf("/") + 1;
  const folder = path.slice(0, at);
  // Check the read permission, because a suggestion does not justify a permission prompt.
  const entries = platform.mayRead(folder) ? await platform.files.list(folder).catch(() => []) : [];
  const names = entries.flatMap(({ name, kind }) => kind === "file" && /\.[cm]?[jt]sx?$/i.test(name) ? [name] : []);
  const suggestion = findSuggestion(path.slice(at), names);
  if (suggestion === undefined) return "check the path";
  return `did you mean ${target.slice(0, target.lastIndexOf("/") + 1)}${suggestion}?`;
}

/** Remedies for errors in a file, and for errors in the packages that the file imports. */
export interface LoadRemedies {
  /** The remedy for this error. `undefined` if the error is not a known mistake. */
  readonly known?: string;
  readonly file: string;
  readonly packages: string;
}

export function explainLoadError(error: unknown, remedies: LoadRemedies): string {
  // Catch errors, because the error comes from the user's code, and reading its properties may throw.
  try {
    // Remove colors, which Deno adds to its messages.
    return toPlain(explain(error, remedies));
  } catch {
    return `it threw an unreadable error while loading\n${remedies.file}`;
  }
}

/**
 * Explains an error by the runtime's message if the file is invalid, or by the error's stack if code in the file threw
 * the error.
 */
function explain(error: unknown, remedies: LoadRemedies): string {
  if (!(error instanceof Error)) return `it threw ${String(error)} while loading; fix the file`;
  const { message } = error;
  const missing = explainPermission(message);
  if (missing !== undefined) return missing;
  const { known } = remedies;
  const remedy = known ?? remedies.file;
  const place = findPlace(error);
  if (place !== undefined) return `${message}\n    at ${place}\n${remedy}`;
  if (error instanceof AggregateError) return error.errors.map((each) => explain(each, remedies)).join("\n");
  const { head, frames: all } = readStack(error);
  // Omit stack frames in the command line's own code, because they do not concern the file.
  const frames = all.filter((line) => !decodePath(line).includes(COMMAND_LINE));
  const own = frames.filter(isOfUser);
  const isText = "code" in error && error.code === "ERR_MODULE_NOT_FOUND" ||
    error instanceof SyntaxError && !own.length;
  if (known !== undefined || isText) return `${message}\n${known ?? toInstallHint(message) ?? remedy}`;
  const lines = toPrintedFrames(frames).join("\n").slice(0, MAX_LENGTH);
  const last = frames.length && !own.length ? remedies.packages : remedy;
  return [`it threw an error while loading:\n${head.slice(0, MAX_LENGTH)}`, lines || [], last].flat().join("\n");
}

/** Messages about a package that is not installed. Each pattern captures the specifier of the package. */
const MISSING_PACKAGE = [
  /^Cannot find (?:package|module) ["']([^"'./:][^"':]*)["']/,
  /^(?:Relative import path|Import) "([^"./:][^":]*)" not /,
  // If another module loader is active, Deno resolves a package name relative to the importing file.
  /^Loading unprepared module: (file:\S*\/)([^.]+), imported from: \1/,
];

/** Returns the command that installs a package, or `undefined` if the message is not about a missing package. */
function toInstallHint(message: string): string | undefined {
  const specifier = MISSING_PACKAGE.map((pattern) => pattern.exec(message)?.at(-1)).find((each) => each !== undefined);
  const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier ?? "") ?? [];
  if (name === undefined) return;
  const commands = { deno: "deno add npm:", bun: "bun add ", node: "npm install " };
  return `Install the package ${name}: ${commands[platform.runtime]}${name}`;
}

/** Returns where a file is invalid, as Bun and Node tell it. Deno names the place in the message. */
function findPlace(error: Error): string | undefined {
  const position = "position" in error ? error.position : undefined;
  if (isPosition(position)) return `${position.file}:${position.line}:${position.column}`;
  // On Node, the stack of a syntax error begins with a path and a line, instead of the name of the error.
  const [first = ""] = error.stack?.split("\n", 1) ?? [];
  return error instanceof SyntaxError && /^(\/|[A-Z]:\\|file:).*:\d+$/i.test(first) ? first : undefined;
}

function isPosition(
  value: unknown,
): value is { readonly file: string; readonly line: number; readonly column: number } {
  return typeof value === "object" && value !== null && "file" in value && "line" in value && "column" in value;
}
