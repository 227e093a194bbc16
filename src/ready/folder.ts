/**
 * Resources and tools for the files of a folder.
 */
import type { ResourceTemplate } from "../library.ts";
import { INTERNALS, withInternals } from "../core/internals.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { GroupedOptions, Remake } from "../server/visibility/feature.ts";
import { EXCLUDED, Folder } from "./files/confined_folder.ts";
import { localFiles } from "./files/local_files.ts";
import { toBaseName } from "./files/path.ts";
import type { ChangeOptions, LocalOptions } from "./local_options.ts";
import { folderResource, toUriPath } from "./file_resources.ts";
import { LOCAL, LOCAL_HINTS, MAX_BYTES, readPath, toLife, toLocalPlace } from "./local_life.ts";

/** Options of {@linkcode folder}. Only `path` is required. */
export interface FolderOptions extends LocalOptions {
  /** Name that users and models see. Defaults to the name of the folder. */
  readonly name?: string;
  /**
   * Prefix of the URIs of the folder's files. It must end with a slash, such as `notes://`. Defaults to `file:///`
   * followed by the name of the folder, such as `file:///notes/`. The default does not reveal the path of the folder to
   * clients.
   */
  readonly uri?: string;
  /** Whether to serve names that begin with a dot. Defaults to `false`. */
  readonly hidden?: boolean;
  /**
   * Patterns of files and folders to exclude, such as `["*.key", "drafts/**"]`. A pattern without a slash applies to
   * names at any depth. A pattern with a slash applies to paths relative to the folder. `node_modules` is always
   * excluded.
   */
  readonly exclude?: readonly string[];
  /**
   * Whether to add the tools `list`, `search` and `read`, because models usually cannot read resources directly. A
   * string is the prefix of the names of the tools, such as `"notes_"`. Defaults to `false`.
   */
  readonly tools?: boolean | string;
}

const OPTIONS: KnownOptions<keyof FolderOptions> = {
  names: {
    ...LOCAL,
    name: true,
    uri: {
      test: (uri) => typeof uri === "string" && /^[a-z][a-z\d+.-]*:[^\s{}]*\/$/i.test(uri),
      remedy: "use a URI that ends with a slash and has no spaces or braces, such as notes://",
    },
    hidden: "boolean",
    exclude: "texts",
    tools: {
      test: (tools) => typeof tools === "boolean" || typeof tools === "string" && /^[\w.-]{1,64}$/.test(tools),
      remedy: 'use true, false, or a prefix for tool names, such as "notes_"',
    },
  },
  hints: { ...LOCAL_HINTS, ignore: "exclude", dotfiles: "hidden", prefix: "tools", baseUri: "uri" },
  elsewhere: { list: "remove it", read: "remove it, because the handler reads path, or use resource()" },
};

/**
 * Serves the files of a folder as resources: a template that lists and reads the files, and completes their paths. With
 * `tools`, models can list, search and read the files too. Clients are notified when files are written, added and
 * removed.
 *
 * Files outside of the folder cannot be read, neither with `..` nor through symbolic links, even if another program
 * changes the folder during the read. Symbolic links to targets in the folder are followed.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { folder } from "@x/mcp/handlers";
 *
 * const notes = folder({ path: new URL("./notes", import.meta.url), tools: "notes_" });
 *
 * export default createServer({ name: "notes", version: "1.0.0", handlers: [notes] });
 * ```
 *
 * If the folder does not exist, the server does not start: `server.ready()` rejects. At most 5000 files are listed, and
 * a larger folder is not watched.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function folder(options: FolderOptions): ResourceTemplate<{ readonly path: string }> {
  const place = toLocalPlace("folder", options);
  checkOptions(`make ${place}`, options, OPTIONS);
  return makeFolder(options, place, (own) => own);
}

function makeFolder(
  options: FolderOptions,
  place: string,
  change: ChangeOptions,
): ResourceTemplate<{ readonly path: string }> {
  const {
    path: given,
    name: title,
    uri,
    hidden,
    exclude = [],
    tools,
    maxBytes = MAX_BYTES,
    watch = true,
    ...metadata
  } = options;
  const path = readPath(given, place);
  const lastName = toBaseName(path);
  const isNamed = !/^\.{0,2}$/.test(lastName);
  const name = title ?? (isNamed ? lastName : "files");
  const baseUri = uri ?? (isNamed ? `file:///${toUriPath(lastName)}/` : "file:///");
  const root = () => localFiles.resolve(path);
  const folder = openConfined({ root, hidden, exclude: [...EXCLUDED, ...exclude], maxBytes }, place);
  const toUri = (path: string) => baseUri + toUriPath(path);
  const part = folderResource({ folder, toUri, metadata, name, baseUri, tools, change });
  const [handler, ...toolHandlers] = part.handlers;
  const check = async () => {
    const root = await folder.findRoot();
    const info = root === undefined ? undefined : await localFiles.stat(root);
    if (info?.kind === "folder") return;
    throw new Error(
      `Cannot serve ${place}: ${info ? `${path} is not a folder` : `there is no folder ${path}`}; check the path`,
    );
  };
  const life = toLife({ id: `folder ${baseUri}`, check, watch: watch ? part.watch : undefined });
  const remake: Remake = (next) => makeFolder(options, place, <O extends GroupedOptions>(own: O) => next(change(own)));
  const internals = handler[INTERNALS];
  return withInternals({ ...handler }, {
    ...internals,
    also: [...internals.also ?? [], ...toolHandlers, life],
    remake,
  });
}

function openConfined(options: ConstructorParameters<typeof Folder>[0], place: string): Folder {
  try {
    return new Folder(options);
  } catch (error) {
    throw error instanceof TypeError ? new TypeError(`Cannot make ${place}: in exclude, ${error.message}`) : error;
  }
}
