/**
 * Resources that serve one file, the files that match a pattern, or a folder.
 *
 * @module
 */
import {
  type Handler,
  resource,
  type ResourceEntry,
  type ResourceReturn,
  type Server,
  ToolError,
} from "../../library.ts";
import { toBase64 } from "../../kit/base64.ts";
import { watchFile } from "../file_watcher.ts";
import { type Folder, type FolderItem, isUnavailable, MAX_LISTED_FILES } from "./folder.ts";
import { folderTools } from "./folder_tools.ts";
import { watchFolder } from "./folder_watch.ts";
import { decodeText, toMediaType } from "../../ready/media_type.ts";

export interface ResourceMetadata {
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly annotations?: ResourceEntry["annotations"];
}

/** The folder that a resource reads from. */
export interface FileResourceOptions {
  readonly folder: Folder;
  readonly metadata: ResourceMetadata;
}

/** The folder that several resources read from. */
export interface FilesOptions extends FileResourceOptions {
  /** The URI of a file in the folder. */
  readonly toUri: (path: string) => string;
}

/** Encodes a path for a URI. */
export function toUriPath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/** A resource that serves one file. */
export function fileResource(
  { folder, metadata }: FileResourceOptions,
  { path, uri, name }: { readonly path: string; readonly uri: string; readonly name: string },
): ServerPart {
  const mimeType = metadata.mimeType ?? toMediaType(path);
  const read = () => readFile(folder, path, { uri, mimeType });
  return {
    handlers: [resource({ ...metadata, mimeType, uri, name, read })],
    watch: (server) => watchFile(`${folder.root}/${path}`, () => server.resourceUpdated(uri)),
  };
}

/** Resources that serve the files matching a pattern. They are added and removed with the files. */
export async function patternResources(
  options: FilesOptions,
  matches: (path: string) => boolean,
): Promise<ServerPart> {
  const { folder, toUri } = options;
  const current = new Map<string, Handler>();
  const listMatches = async () =>
    new Set((await folder.walk(MAX_LISTED_FILES)).map(({ path }) => path).filter(matches));
  const add = (path: string) => {
    const [handler] = fileResource(options, { path, uri: toUri(path), name: path }).handlers;
    current.set(path, handler);
    return handler;
  };
  const handlers = [...await listMatches()].map(add);

  async function refresh(server: Server): Promise<void> {
    const paths = await listMatches();
    for (const [path, handler] of [...current]) {
      if (paths.has(path)) continue;
      server.handlers.remove(handler);
      current.delete(path);
    }
    const added = [...paths].filter((path) => !current.has(path)).map(add);
    if (added.length) server.handlers.add(...added);
  }

  return {
    handlers,
    watch: (server) =>
      watchFolder(folder, {
        onWritten: (path) => current.has(path) ? server.resourceUpdated(toUri(path)) : undefined,
        onListChanged: () => refresh(server),
      }),
  };
}

/** A folder to serve. */
export interface FolderResourceOptions extends FilesOptions {
  readonly name: string;
  /** The beginning of the URIs of its files. */
  readonly baseUri: string;
  /** Whether to add tools. A string is the prefix of their names. */
  readonly tools?: boolean | string;
}

/** A resource template that lists, reads and completes the files of a folder, with tools for models if requested. */
export function folderResource(options: FolderResourceOptions): ServerPart {
  const { folder, toUri, metadata, name, baseUri, tools } = options;
  const toFileMediaType = (path: string) => metadata.mimeType ?? toMediaType(path);
  const toEntry = ({ path, size }: FolderItem): ResourceEntry => ({
    uri: toUri(path),
    name: path,
    mimeType: toFileMediaType(path),
    size,
  });
  const handler = resource<`${string}{${string}}${string}`>({
    ...metadata,
    uri: `${baseUri}{+path}`,
    name,
    list: async () => (await folder.walk(MAX_LISTED_FILES)).map(toEntry),
    complete: { path: (typed) => completePath(folder, typed) },
    read: ({ path }) => readFile(folder, path, { uri: toUri(path), mimeType: toFileMediaType(path) }),
  });
  const toolHandlers = tools ? folderTools(folder, { prefix: tools === true ? "" : tools, toUri }) : [];
  return {
    handlers: [handler, ...toolHandlers],
    baseUri,
    watch: (server) =>
      watchFolder(folder, {
        onWritten: (path) => server.resourceUpdated(toUri(path)),
        // Removing and adding the handler notifies clients that the list has changed.
        onListChanged: () => {
          server.handlers.remove(handler);
          server.handlers.add(handler);
        },
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
  throw new ToolError(`Cannot read ${path}: ${bytes.state}`);
}

/** Completes a path that a user is typing. */
async function completePath(folder: Folder, typed: string): Promise<string[]> {
  const parent = typed.slice(0, typed.lastIndexOf("/") + 1);
  const items = await folder.list(parent);
  if (isUnavailable(items)) return [];
  const prefix = typed.toLowerCase();
  return items.map(({ path, kind }) => kind === "folder" ? `${path}/` : path)
    .filter((path) => path.toLowerCase().startsWith(prefix));
}

/** Handlers of a server that change together. */
export interface ServerPart {
  readonly handlers: readonly Handler[];
  /** The beginning of the URIs of a folder. */
  readonly baseUri?: string;
  /** Notifies the clients of a server of changes. Returns a function that stops it. */
  readonly watch?: (server: Server) => () => void;
}
