/**
 * Arguments of command tools that are paths. A call can choose only paths in the working directory of the program.
 */
import { type JsonSchema, ToolError } from "../../library.ts";
import { isAbsolute, joinPath, toFolder, toRelativePath } from "../../ready/files/path.ts";
import { isObject } from "../../core/kit/json.ts";
import { type Arguments, toArguments, type ToolInput } from "../../ready/tool_input.ts";
import { platform } from "../platform.ts";

export function listPathArguments(input: ToolInput): readonly string[] {
  return input.names.filter((name) => input.readKind(name).isPath);
}

/**
 * Replaces path arguments with paths that begin with `./`. A program cannot read such a path as an option, a URL or a
 * host.
 *
 * @param cwd The absolute path of the working directory.
 * @throws {ToolError} if a path leads out of the working directory.
 */
export async function confinePaths(args: Arguments, names: readonly string[], cwd: string): Promise<Arguments> {
  const confined = toArguments(args);
  for (const name of names) {
    const value = args[name];
    const confine = (path: unknown) => typeof path === "string" ? confinePath(path, name, cwd) : path;
    confined[name] = Array.isArray(value) ? await Promise.all(value.map(confine)) : await confine(value);
  }
  return confined;
}

async function confinePath(path: string, name: string, cwd: string): Promise<string> {
  const refuse = (state: string) => new ToolError(`Cannot run the program: ${name} ${state}`);
  if (!path || path.includes("\0")) throw refuse("is not a path; write a path such as notes/todo.md");
  const absolute = platform.toPath(isAbsolute(path) ? path : joinPath(cwd, path));
  const relative = toRelativePath(cwd, absolute);
  if (relative === undefined || await leadsOut(cwd, absolute)) {
    throw refuse("leads out of the working directory; write a path in this directory");
  }
  return relative ? `./${relative}` : ".";
}

/** Whether symbolic links lead from a path in a folder to a place outside of the folder. */
async function leadsOut(folder: string, path: string): Promise<boolean> {
  const root = await platform.files.resolve(folder) ?? folder;
  // A program may create the file. Then the folder of the file decides.
  for (let at = path; toRelativePath(folder, at) !== undefined; at = toFolder(at)) {
    const real = await platform.files.resolve(at);
    if (real !== undefined) return toRelativePath(root, real) === undefined;
    // A program may create the target of a link whose target does not exist.
    if (await platform.files.lstat(at)) return true;
  }
  return false;
}

/** Removes the format `path`, because the APIs of some models reject unknown formats. */
export function hidePathFormats(schema: JsonSchema | undefined): JsonSchema | undefined {
  if (!isObject(schema?.properties)) return schema;
  const properties = Object.entries(schema.properties).map(([name, property]) => [name, hidePathFormat(property)]);
  return { ...schema, properties: Object.fromEntries(properties) };
}

function hidePathFormat(property: unknown): unknown {
  if (!isObject(property)) return property;
  const { format, ...rest } = property;
  const shown = format === "path" ? rest : property;
  return isObject(shown.items) ? { ...shown, items: hidePathFormat(shown.items) } : shown;
}
