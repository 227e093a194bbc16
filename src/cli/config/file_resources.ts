/**
 * Resources that are files: one, those of a pattern, those of a folder; and what is told when they change.
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
import { toBase64 } from "../../protocol/base64.ts";
import { describeError, toPrintableLine } from "../../protocol/printable.ts";
import { platform } from "../platform.ts";
import { toInner } from "../path.ts";
import { watchFile } from "../file_watcher.ts";
import { type Folder, type Found, isRefusal } from "./folder.ts";
import { folderTools } from "./folder_tools.ts";
import { toMediaType, toText } from "./media_type.ts";

/** What a resource says of itself. */
export interface Facts {
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly annotations?: ResourceEntry["annotations"];
}

/** Handlers, and what keeps them up to date. */
export interface Part {
  readonly handlers: readonly Handler[];
  /** Tells a server of changes, until the function it returns is called. */
  readonly watch?: (server: Server) => () => void;
}

/** Files to offer. */
export interface FilesOptions {
  readonly folder: Folder;
  /** The URI of a file in the folder. */
  readonly toUri: (path: string) => string;
  readonly facts: Facts;
}

/** How many files are listed; all others can be read. */
export const MOST_LISTED = 5000;
// One change of a file is heard of several times, and saving is often more than one change.
const SETTLE_MS = 50;

/** A path as the end of a URI. */
export function toUriPath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/** One file. */
export function fileResource(
  { folder, facts }: FilesOptions,
  { path, uri, name }: { readonly path: string; readonly uri: string; readonly name: string },
): Part {
  const mimeType = facts.mimeType ?? toMediaType(path);
  const handler = resource({ ...facts, mimeType, uri, name, read: () => readFile(folder, path, { uri, mimeType }) });
  return {
    handlers: [handler],
    watch: (server) => watchFile(`${folder.root}/${path}`, () => server.updated(uri)),
  };
}

/** The files of a folder that fit a pattern. They come and go. */
export async function globResources(options: FilesOptions, fits: (path: string) => boolean): Promise<Part> {
  const { folder, toUri } = options;
  const current = new Map<string, Handler>();
  const find = async () => new Set((await folder.walk(MOST_LISTED)).map(({ path }) => path).filter(fits));
  const make = (path: string) => {
    const part = fileResource(options, { path, uri: toUri(path), name: path });
    current.set(path, part.handlers[0]);
    return part.handlers[0];
  };
  const handlers = [...await find()].map(make);

  async function refresh(server: Server): Promise<void> {
    const found = await find();
    for (const [path, handler] of [...current]) {
      if (found.has(path)) continue;
      server.handlers.remove(handler);
      current.delete(path);
    }
    const added = [...found].filter((path) => !current.has(path)).map(make);
    if (added.length) server.handlers.add(...added);
  }

  return {
    handlers,
    watch: (server) =>
      watchFolder(folder, {
        written: (path) => current.has(path) ? server.updated(toUri(path)) : undefined,
        changed: () => refresh(server),
      }),
  };
}

/** A folder to offer. */
export interface FolderPartsOptions extends FilesOptions {
  readonly name: string;
  /** What the URIs of its files begin with. */
  readonly base: string;
  /** Whether there are tools too, and what their names begin with. */
  readonly tools?: boolean | string;
}

/** Everything in a folder: listed, read by a template, completed; and tools that do the same for models. */
export function folderParts(options: FolderPartsOptions): Part {
  const { folder, toUri, facts, name, base, tools } = options;
  const toEntry = ({ path, size }: Found): ResourceEntry => ({
    uri: toUri(path),
    name: path,
    mimeType: facts.mimeType ?? toMediaType(path),
    size,
  });
  const handler = resource<`${string}{${string}}${string}`>({
    ...facts,
    uri: `${base}{+path}`,
    name,
    list: async () => (await folder.walk(MOST_LISTED)).map(toEntry),
    complete: { path: (typed) => complete(folder, typed) },
    read: ({ path }) => readFile(folder, path, { uri: toUri(path), mimeType: facts.mimeType ?? toMediaType(path) }),
  });
  const also = tools ? folderTools(folder, { prefix: tools === true ? "" : tools, toUri }) : [];
  return {
    handlers: [handler, ...also],
    watch: (server) =>
      watchFolder(folder, {
        written: (path) => server.updated(toUri(path)),
        // Taken away and put back, so that clients are told that the list is another one.
        changed: () => {
          server.handlers.remove(handler);
          server.handlers.add(handler);
        },
      }),
  };
}

interface Shown {
  readonly uri: string;
  readonly mimeType?: string;
}

async function readFile(folder: Folder, path: string, { uri, mimeType }: Shown): Promise<ResourceReturn> {
  const bytes = await folder.read(path);
  if (!isRefusal(bytes)) {
    const text = toText(bytes);
    return text === undefined ? { uri, mimeType, blob: toBase64(bytes) } : { uri, mimeType, text };
  }
  const found = await folder.find(path);
  if (isRefusal(found) && (found.isPrivate || found.isMissing)) return undefined;
  throw new ToolError(`Cannot read ${path}: ${bytes.state}`);
}

/** Names that go on where somebody has begun to type a path. */
async function complete(folder: Folder, typed: string): Promise<string[]> {
  const within = typed.slice(0, typed.lastIndexOf("/") + 1);
  const found = await folder.list(within);
  if (isRefusal(found)) return [];
  const begun = typed.toLowerCase();
  return found.map(({ path, kind }) => kind === "folder" ? `${path}/` : path)
    .filter((path) => path.toLowerCase().startsWith(begun));
}

interface FolderListener {
  readonly written: (path: string) => void;
  readonly changed: () => unknown;
}

// The system tells of a path, not of what became of it: whether it came or went is seen by comparing the lists.
function watchFolder(folder: Folder, { written, changed }: FolderListener): () => void {
  const paths = new Set<string>();
  let known: Set<string> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const listFiles = async () => new Set((await folder.walk(MOST_LISTED)).map(({ path }) => path));
  const ready = listFiles().then((files) => {
    known = files;
    if (files.size < MOST_LISTED) return;
    stop();
    console.error(`Cannot watch ${folder.root}: it has ${MOST_LISTED} files and more; clients are not told of changes`);
  }).catch((error) => console.error(describeError(error)));

  async function settle(): Promise<void> {
    await ready;
    const touched = [...paths];
    paths.clear();
    const files = await listFiles();
    const before = known ?? files;
    known = files;
    for (const path of touched) if (files.has(path) && before.has(path)) written(path);
    if (files.size !== before.size || [...files].some((path) => !before.has(path))) await changed();
  }

  const stop = startWatch(folder.root, (path) => {
    const inner = toInner(folder.root, path);
    if (!inner || !folder.has(inner)) return;
    paths.add(inner);
    clearTimeout(timer);
    timer = setTimeout(() => settle().catch((error) => console.error(describeError(error))), SETTLE_MS);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

function startWatch(path: string, listener: (path: string) => void): () => void {
  const tell = (error: unknown) => {
    const state = error instanceof Error ? error.message : String(error);
    console.error(`Cannot watch all of ${path}: ${toPrintableLine(state)}; clients are not told of every change in it`);
  };
  try {
    return platform.files.watch(path, listener, tell);
  } catch (error) {
    tell(error);
    return () => {};
  }
}
