/**
 * Builds resources from the `resources` of a config file.
 */
import { toBaseName, toFolder, toRelativePath } from "../../ready/files/path.ts";
import { readEnv } from "./command_words.ts";
import { fileResource, folderResource, toUriPath } from "../../ready/file_resources.ts";
import { type ConfigPart, patternResources } from "./pattern_resources.ts";
import { EXCLUDED, Folder } from "../../ready/files/confined_folder.ts";
import { toBaseFolder, toMatcher, toRelativePattern } from "../../ready/files/glob.ts";
import { makeHttpResource } from "../../ready/http_resource.ts";
import type { KeyPath } from "../../ready/problem.ts";
import type { ConfigFile, FileResource, FolderResource, GlobResource } from "./schema.ts";
import { findFile, type Source } from "./source.ts";

const DEFAULT_MAX_BYTES = 1024 * 1024;

type ResourceConfig = NonNullable<ConfigFile["resources"]>[number];

/** The place at which a config file declares a resource. */
interface Declaration {
  readonly source: Source;
  /** The config file that is served. URIs of files are relative to the folder of this config file. */
  readonly main: Source;
  readonly key: KeyPath;
}

/** @throws {CliError} if the resource's file or folder cannot be used. */
export async function buildResource(config: ResourceConfig, declaration: Declaration): Promise<ConfigPart> {
  const { title, description, mimeType, annotations } = config;
  const metadata = { title, description, mimeType, annotations };
  if ("url" in config) {
    const toProblem = (path: KeyPath, state: string) =>
      declaration.source.toProblem([...declaration.key, ...path], state);
    return { handlers: [makeHttpResource(config, { readEnv, toProblem })] };
  }
  const part = "file" in config
    ? await buildFile(config, metadata, declaration)
    : "folder" in config
    ? await buildFolder(config, metadata, declaration)
    : await buildPattern(config, metadata, declaration);
  return config.watch ?? true ? part : { ...part, watch: undefined };
}

type Metadata = Pick<FileResource, "title" | "description" | "mimeType" | "annotations">;

async function buildFile(config: FileResource, metadata: Metadata, { source, main, key }: Declaration) {
  const path = source.resolvePath([...key, "file"], config.file);
  const real = await findFile(source, [...key, "file"], path);
  const folder = new Folder({
    root: toFolder(real),
    hidden: true,
    exclude: [],
    maxBytes: config.maxBytes ?? DEFAULT_MAX_BYTES,
  });
  const uri = config.uri ?? toFileUri(main, path);
  return fileResource({ folder, metadata }, { path: toBaseName(real), uri, name: config.name ?? toBaseName(path) });
}

async function buildFolder(config: FolderResource, metadata: Metadata, { source, main, key }: Declaration) {
  const path = source.resolvePath([...key, "folder"], config.folder);
  const root = await findFile(source, [...key, "folder"], path, "folder");
  const { hidden, exclude = [], tools, name = toBaseName(root) || "files", maxBytes = DEFAULT_MAX_BYTES } = config;
  const folder = new Folder({ root, hidden, exclude: [...EXCLUDED, ...exclude], maxBytes });
  const baseUri = toBaseUri(main, root);
  const toUri = (path: string) => baseUri + toUriPath(path);
  return folderResource({ folder, metadata, toUri, baseUri, name, tools });
}

async function buildPattern(config: GlobResource, metadata: Metadata, { source, main, key }: Declaration) {
  const { glob, maxBytes = DEFAULT_MAX_BYTES } = config;
  const path = source.resolvePath([...key, "glob"], toBaseFolder(glob));
  const root = await findFile(source, [...key, "glob"], path, "folder");
  // A pattern such as **/*.md does not mean the files of packages.
  const exclude = glob.split("/").includes("node_modules") ? [] : EXCLUDED;
  const folder = new Folder({ root, hidden: /(^|\/)\./.test(glob), exclude, maxBytes });
  const baseUri = toBaseUri(main, root);
  const toUri = (path: string) => baseUri + toUriPath(path);
  return await patternResources({ folder, metadata, toUri }, toMatcher(toRelativePattern(glob)));
}

/**
 * Returns the URI of a file. The URI contains the path relative to the folder of the main config file, or only the file
 * name if the file is outside of this folder.
 */
function toFileUri(main: Source, path: string): string {
  return `file:///${toUriPath(toRelativePath(main.folder, path) ?? toBaseName(path))}`;
}

function toBaseUri(main: Source, root: string): string {
  return toFileUri(main, root).replace(/\/?$/, "/");
}
