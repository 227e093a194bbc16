/**
 * Explains why a file could not be loaded: the message comes first, then the lines of the user's own files, then all
 * other lines. Suggests another file if the file does not exist.
 *
 * @module
 */
import { findSuggestion } from "../kit/suggestions.ts";
import { toPlain } from "./client/terminal_text.ts";
import { explainPermission } from "./permissions.ts";
import { platform } from "./platform.ts";

/** Maximum characters of an error's message, and of its stack. */
const MAX_LENGTH = 2000;

/** Suggests a similarly named source file in the same folder. */
export async function suggestFile(target: string, path: string): Promise<string> {
  const at = path.lastIndexOf("/") + 1;
  const folder = path.slice(0, at);
  // Check the permission, because a suggestion is not worth a permission prompt.
  const entries = platform.mayRead(folder) ? await platform.files.list(folder).catch(() => []) : [];
  const names = entries.flatMap(({ name, kind }) => kind === "file" && /\.[cm]?[jt]sx?$/i.test(name) ? [name] : []);
  const suggestion = findSuggestion(path.slice(at), names);
  if (suggestion === undefined) return "check the path";
  return `did you mean ${target.slice(0, target.lastIndexOf("/") + 1)}${suggestion}?`;
}

/** Explains an error that was thrown by importing a file, and adds a remedy. */
export function explainLoadError(error: unknown, remedy: string): string {
  // Catch errors, because code of the file made the error, and its properties may throw.
  try {
    // Remove colours, which Deno adds to its messages.
    return toPlain(explain(error, remedy));
  } catch {
    return `it threw an error that cannot be read while loading\n${remedy}`;
  }
}

/** Explains an error: by the runtime's message if the file is invalid, or by its stack if code of the file threw it. */
function explain(error: unknown, remedy: string): string {
  if (!(error instanceof Error)) return `it threw ${String(error)} while loading; fix the file`;
  const { message } = error;
  const missing = explainPermission(message);
  if (missing !== undefined) return missing;
  const position = "position" in error ? error.position : undefined;
  if (isPosition(position)) return `${message}\n    at ${position.file}:${position.line}:${position.column}\n${remedy}`;
  if (error instanceof AggregateError) return error.errors.map((each) => explain(each, remedy)).join("\n");
  const { head, frames } = readStack(error);
  const own = frames.filter(isOfUser);
  const isText = "code" in error && error.code === "ERR_MODULE_NOT_FOUND" ||
    error instanceof SyntaxError && !own.length;
  if (isText) return `${message}\n${toInstallHint(message) ?? remedy}`;
  const others = frames.filter((frame) => !isOfUser(frame));
  const lines = [...own, ...others].join("\n").slice(0, MAX_LENGTH);
  return [`it threw an error while loading:\n${head.slice(0, MAX_LENGTH)}`, lines || [], remedy].flat().join("\n");
}

/** The messages of the runtimes about a package that is not installed. Each pattern captures the specifier. */
const MISSING_PACKAGE = [
  /^Cannot find (?:package|module) ["']([^"'./:][^"':]*)["']/,
  /^(?:Relative import path|Import) "([^"./:][^":]*)" not /,
  // With another module loader, Deno resolves the name relative to the importing file.
  /^Loading unprepared module: (file:\S*\/)([^.]+), imported from: \1/,
];

/** Returns the command that installs a package. Returns `undefined` if the message is not about a missing package. */
function toInstallHint(message: string): string | undefined {
  const specifier = MISSING_PACKAGE.map((pattern) => pattern.exec(message)?.at(-1)).find((each) => each !== undefined);
  const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier ?? "") ?? [];
  if (name === undefined) return;
  const commands = { deno: "deno add npm:", bun: "bun add ", node: "npm install " };
  return `Install the package ${name}: ${commands[platform.runtime]}${name}`;
}

interface Stack {
  /** Name and message of the error. */
  readonly head: string;
  /** The frames of the stack. Frames of the command line are omitted, because they say nothing about the file. */
  readonly frames: readonly string[];
}

function readStack({ name, message, stack = "" }: Error): Stack {
  // The stack usually begins with the message. Skip it, because its lines must not be read as frames.
  const at = message ? stack.indexOf(message) : -1;
  const end = at < 0 ? 0 : at + message.length;
  const lines = stack.slice(end).split("\n").filter((line) => /^\s+at |^[^\s@]*@\S+:\d+/.test(line));
  const frames = lines.filter((line) => !decode(line).includes(COMMAND_LINE));
  return { head: at < 0 ? [name, message].filter(Boolean).join(": ") : stack.slice(0, end).trimStart(), frames };
}

const COMMAND_LINE = decode(new URL(".", import.meta.url).pathname);

const LIBRARY = [new URL("../", import.meta.url), new URL("../../mod.", import.meta.url)].map(({ pathname }) =>
  decode(pathname)
);

/** Paths of packages: in the project, in the cache of Bun, or in the cache of Deno. */
const PACKAGES = /[\\/](node_modules|install[\\/]cache|npm[\\/][^\\/]+\.[^\\/]+)[\\/]/;

/** Whether a line of a stack is in a file of the user, and not in the runtime, a package or this library. */
function isOfUser(line: string): boolean {
  const place = line.replace(/^\s+at (async )?/, "");
  const [, named] = /^[^(]*\((.*)\)$/.exec(place) ?? [];
  const path = decode(named ?? place);
  // Require an absolute path. Frames of a runtime have no path, or a path such as `ext:core/mod.js` or `node:fs`.
  return /^(file:|\/|[a-z]:\\)/i.test(path) && !PACKAGES.test(path) && !LIBRARY.some((start) => path.includes(start));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The path contains a percent sign that is not an escape.
    return text;
  }
}

function isPosition(
  value: unknown,
): value is { readonly file: string; readonly line: number; readonly column: number } {
  return typeof value === "object" && value !== null && "file" in value && "line" in value && "column" in value;
}
