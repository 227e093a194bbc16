/**
 * Resources with the contents of a file.
 */
import type { FixedResource } from "../library.ts";
import { INTERNALS, withInternals } from "../core/internals.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { GroupedOptions, Remake } from "../server/visibility/feature.ts";
import { Folder, isUnavailable } from "./files/confined_folder.ts";
import { localFiles } from "./files/local_files.ts";
import { toBaseName, toFolder } from "./files/path.ts";
import type { ChangeOptions, LocalOptions } from "./local_options.ts";
import { fileResource, toUriPath } from "./file_resources.ts";
import { LOCAL, LOCAL_HINTS, MAX_BYTES, readPath, toLife, toLocalPlace } from "./local_life.ts";

/** Options of {@linkcode file}. Only `path` is required. */
export interface FileOptions extends LocalOptions {
  /** Name that users and models see. Defaults to the name of the file. */
  readonly name?: string;
  /** URI of the resource. Defaults to `file:///` and the name of the file, such as `file:///style.md`. */
  readonly uri?: string;
}

const OPTIONS: KnownOptions<keyof FileOptions> = {
  names: { ...LOCAL, name: true, uri: true },
  hints: LOCAL_HINTS,
  elsewhere: {
    read: "remove it, because the handler reads path, or use resource()",
    tools: "use folder()",
    hidden: "use folder()",
    exclude: "use folder()",
  },
};

/**
 * Creates a resource with the contents of a file. The server reads the file for each request, and notifies clients when
 * the file changes.
 *
 * The server follows a symbolic link if the target is in the same folder or a subfolder, as for mounted configurations.
 * For any other link, set `path` to the target.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { file } from "@x/mcp/handlers";
 *
 * const style = file({ path: new URL("./style.md", import.meta.url), uri: "guide://style" });
 *
 * export default createServer({ name: "guide", version: "1.0.0", handlers: [style] });
 * ```
 *
 * If the file does not exist, the server does not start: `server.ready()` rejects. While the file is deleted, clients
 * get `Resource not found`.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function file(options: FileOptions): FixedResource {
  const place = toLocalPlace("file", options);
  checkOptions(`make ${place}`, options, OPTIONS);
  return makeFile(options, place, (own) => own);
}

function makeFile(options: FileOptions, place: string, change: ChangeOptions): FixedResource {
  const { path: given, name: title, uri: givenUri, maxBytes = MAX_BYTES, watch = true, ...metadata } = options;
  const path = readPath(given, place);
  const fileName = toBaseName(path);
  if (/\/$/.test(path) || /^\.{0,2}$/.test(fileName)) {
    throw new TypeError(`Cannot make ${place}: path names a folder; name a file, or use folder()`);
  }
  const uri = givenUri ?? `file:///${toUriPath(fileName)}`;
  const root = () => localFiles.resolve(path.includes("/") ? toFolder(path) : ".");
  const folder = new Folder({ root, hidden: true, exclude: [], maxBytes });
  const part = fileResource({ folder, metadata, change }, { path: fileName, uri, name: title ?? fileName });
  const [handler] = part.handlers;
  const check = async () => {
    const item = await folder.find(fileName);
    const state = isUnavailable(item)
      ? item.isMissing ? `there is no file ${path}; check the path` : item.state
      : item.kind === "file"
      ? undefined
      : `${path} is a folder; use folder()`;
    if (state !== undefined) throw new Error(`Cannot serve ${place}: ${state}`);
  };
  const life = toLife({ id: `file ${uri}`, check, watch: watch ? part.watch : undefined });
  const remake: Remake = (next) => makeFile(options, place, <O extends GroupedOptions>(own: O) => next(change(own)));
  const internals = handler[INTERNALS];
  return withInternals({ ...handler }, { ...internals, also: [...internals.also ?? [], life], remake });
}
