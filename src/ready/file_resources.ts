/**
 * Creates the resources for `file()`, `folder()` and the files and folders in config files.
 */
import { toShown } from "../core/kit/shown.ts";
import {
  type ChangeNotifier,
  type FixedResource,
  type Handler,
  resource,
  type ResourceEntry,
  type ResourceReturn,
  type ResourceTemplate,
  ToolError,
} from "../library.ts";
import { toBase64 } from "../core/kit/base64.ts";
import { type Folder, type FolderItem, isUnavailable, MAX_LISTED_FILES } from "./files/confined_folder.ts";
import { watchFile } from "./files/file_watch.ts";
import { watchFolder } from "./files/folder_watch.ts";
import { joinPath } from "./files/path.ts";
import type { ChangeOptions, ResourceMetadata } from "./local_options.ts";
import { folderTools } from "./folder_tools.ts";
import { decodeText, toMediaType } from "./media_type.ts";

export interface FileResourceOptions {
  readonly folder: Folder;
  readonly metadata: ResourceMetadata;
  readonly change?: ChangeOptions;
}

/** The folder from which several resources read, and their metadata and URIs. */
export interface FilesOptions extends FileResourceOptions {
  readonly toUri: (path: string) => string;
}

/** Handlers for a server, and a function that watches the files behind these handlers. */
export interface ServerPart {
  readonly handlers: readonly Handler[];
  /** The common prefix of the URIs of all files in a folder. */
  readonly baseUri?: string;
  /** Starts notifications. Returns a function that stops them, and resolves when no file is being read. */
  readonly watch?: (server: ChangeNotifier) => () => Promise<void>;
}

export interface FilePart extends Required<Omit<ServerPart, "baseUri">> {
  readonly handlers: readonly [FixedResource];
}

export interface FolderPart extends Required<ServerPart> {
  readonly handlers: readonly [ResourceTemplate<{ readonly path: string }>, ...Handler[]];
}

export function toUriPath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

const unchanged: ChangeOptions = (options) => options;

export function fileResource(
  { folder, metadata, change = unchanged }: FileResourceOptions,
  { path, uri, name }: { readonly path: string; readonly uri: string; readonly name: string },
): FilePart {
  const mimeType = metadata.mimeType ?? toMediaType(path);
  const read = () => readFile(folder, path, { uri, mimeType });
  const options = { ...metadata, mimeType, uri, name, read };
  return {
    handlers: [resource(change(options))],
    watch(server) {
      const since = Date.now();
      let isStopped = false;
      const starting = folder.findRoot().catch(() => undefined).then((root) =>
        root === undefined || isStopped
          ? undefined
          : watchFile(joinPath(root, path), since, () => server.resourceUpdated(uri))
      );
      return async () => {
        isStopped = true;
        await (await starting)?.();
      };
    },
  };
}

export interface FolderResourceOptions extends FilesOptions {
  readonly name: string;
  /** The common prefix of the URIs of the folder's files. */
  readonly baseUri: string;
  /** Whether to add tools. A string is the prefix of the tools' names. */
  readonly tools?: boolean | string;
}

/** Creates the tools too if `tools` is set. */
export function folderResource(options: FolderResourceOptions): FolderPart {
  const { folder, toUri, metadata, name, baseUri, tools, change = unchanged } = options;
  const toFileMediaType = (path: string) => metadata.mimeType ?? toMediaType(path);
  const toEntry = ({ path, size }: FolderItem): ResourceEntry => ({
    uri: toUri(path),
    name: path,
    mimeType: toFileMediaType(path),
    size,
  });
  const resourceOptions = {
    ...metadata,
    uri: `${baseUri}{+path}` as const,
    name,
    list: async () => (await folder.walk(MAX_LISTED_FILES)).map(toEntry),
    complete: { path: (typed: string) => completePath(folder, typed) },
    read: ({ path }: { readonly path: string }) =>
      readFile(folder, path, { uri: toUri(path), mimeType: toFileMediaType(path) }),
  };
  const handler = resource(change(resourceOptions));
  const { allow, scopes, tags, use } = metadata;
  const toolOptions = {
    prefix: tools === true ? "" : tools || "",
    toUri,
    common: { allow, scopes, tags, use },
    change,
  };
  return {
    handlers: [handler, ...tools ? folderTools(folder, toolOptions) : []],
    baseUri,
    watch: (server) =>
      watchFolder(folder, {
        onWritten: (path) => server.resourceUpdated(toUri(path)),
        onListChanged: () => server.listChanged("resources", { to: handler.allow }),
      }),
  };
}

interface ContentsInfo {
  readonly uri: string;
  readonly mimeType?: string;
}

async function readFile(folder: Folder, path: string, { uri, mimeType }: ContentsInfo): Promise<ResourceReturn> {
  const bytes = await folder.read(path);
  if (!isUnavailable(bytes)) {
    const text = decodeText(bytes);
    return text === undefined ? { uri, mimeType, blob: toBase64(bytes) } : { uri, mimeType, text };
  }
  const item = await folder.find(path);
  if (isUnavailable(item) && (item.isPrivate || item.isMissing)) return undefined;
  throw new ToolError(`Cannot read ${toShown(path)}: ${bytes.state}`);
}

async function completePath(folder: Folder, typed: string): Promise<string[]> {
  const parent = typed.slice(0, typed.lastIndexOf("/") + 1);
  const items = await folder.list(parent);
  if (isUnavailable(items)) return [];
  const prefix = typed.toLowerCase();
  return items.map(({ path, kind }) => kind === "folder" ? `${path}/` : path)
    .filter((path) => path.toLowerCase().startsWith(prefix));
}
