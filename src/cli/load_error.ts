/**
 * Explains why a file could not be loaded: first the message, then the lines of the user's own files, then the others.
 * Suggests another file if there is none.
 *
 * @module
 */
import { findSuggestion } from "../kit/suggestions.ts";
import { toPlain } from "./client/terminal_text.ts";
import { explainPermission } from "./permissions.ts";
import { platform } from "./platform.ts";

/** The length of an error's message, and of its stack, in characters. */
const MAX_LENGTH = 2000;

/** Suggests a similarly named source file in the same folder. */
export async function suggestFile(target: string, path: string): Promise<string> {
  const at = path.lastIndexOf("/") + 1;
  const folder = path.slice(0, at);
  // Do not trigger a permission prompt just for a suggestion.
  const entries = platform.mayRead(folder) ? await platform.files.list(folder).catch(() => []) : [];
  const names = entries.flatMap(({ name, kind }) => kind === "file" && /\.[cm]?[jt]sx?$/i.test(name) ? [name] : []);
  const suggestion = findSuggestion(path.slice(at), names);
  if (suggestion === undefined) return "check the path";
  return `did you mean ${target.slice(0, target.lastIndexOf("/") + 1)}${suggestion}?`;
}

/** Explains an error that importing a file threw, and adds a remedy. */
export function explainLoadError(error: unknown, remedy: string): string {
  // The properties of an error that the file made may throw, too.
  try {
    // Deno colours the hints in its messages.
    return toPlain(explain(error, remedy));
  } catch {
    return `it threw an error that cannot be read while loading\n${remedy}`;
  }
}

/** Explains an error by the runtime's message if the file is not valid, and by its stack if the file's code threw it. */
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

/** How each runtime reports an import of a package that is not installed. Each pattern captures the specifier. */
const MISSING_PACKAGE = [
  /^Cannot find (?:package|module) ["']([^"'./:][^"':]*)["']/,
  /^(?:Relative import path|Import) "([^"./:][^":]*)" not /,
  // Deno resolves the name against the file that imports it, if another module loader is registered.
  /^Loading unprepared module: (file:\S*\/)([^.]+), imported from: \1/,
];

/** The command that installs a package, if the message says that it is missing. */
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
  /** The lines below, without those of the command line, which say nothing about the file. */
  readonly frames: readonly string[];
}

function readStack({ name, message, stack = "" }: Error): Stack {
  // The stack usually begins with the message, whose lines must not be read as frames.
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

/** Where packages are: in the project, in the cache of Bun, or in that of Deno. */
const PACKAGES = /[\\/](node_modules|install[\\/]cache|npm[\\/][^\\/]+\.[^\\/]+)[\\/]/;

/** Whether a line of a stack is in a file of the user, and not of the runtime, a package or this library. */
function isOfUser(line: string): boolean {
  const place = line.replace(/^\s+at (async )?/, "");
  const [, named] = /^[^(]*\((.*)\)$/.exec(place) ?? [];
  const path = decode(named ?? place);
  // The frames of a runtime have no path, or one such as `ext:core/mod.js` and `node:fs`.
  return /^(file:|\/|[a-z]:\\)/i.test(path) && !PACKAGES.test(path) && !LIBRARY.some((start) => path.includes(start));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A path with a percent sign of its own.
    return text;
  }
}

function isPosition(
  value: unknown,
): value is { readonly file: string; readonly line: number; readonly column: number } {
  return typeof value === "object" && value !== null && "file" in value && "line" in value && "column" in value;
}
