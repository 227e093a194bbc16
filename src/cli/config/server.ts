/**
 * Creates servers from config files and folders.
 */
import { createServer, type Handler, type Server } from "../../library.ts";
import { platform } from "../platform.ts";
import { checkServers, type Loaded, type LoadOptions, swapHandlers } from "../loaded.ts";
import { importModule } from "../lazy_modules.ts";
import { toBaseName } from "../../ready/files/path.ts";
import { CliError, withAction } from "../cli_error.ts";
import { Folder } from "../../ready/files/confined_folder.ts";
import { folderResource, toUriPath } from "../../ready/file_resources.ts";
import type { ConfigPart } from "./pattern_resources.ts";

/**
 * Creates a server from a config file. `file` is the path as the user wrote it.
 *
 * @throws {CliError} with file, line, column and key if a value or file cannot be used.
 */
export async function loadConfig(
  file: string,
  path: string,
  options: LoadOptions = {},
): Promise<Loaded> {
  const { imports, isHttp = false } = options;
  // Load these modules only now, because they import packages that servers without a config file do not need.
  const [{ readSources }, { defineServer }] = await Promise.all([
    importModule<typeof import("./source.ts")>("./config/source.ts"),
    importModule<typeof import("./server_definition.ts")>("./config/server_definition.ts"),
  ]);
  const readDefinition = async () => {
    const { others, options: serverOptions, ...definition } = await defineServer(await readSources(file, path), {
      imports,
      isHttp,
    });
    checkServers(others, options);
    return { ...definition, serverOptions };
  };
  let { serverOptions, parts, files } = await readDefinition();
  const server = await withAction(
    `Cannot use ${file}`,
    () => createServer({ ...serverOptions, handlers: toHandlers(parts) }),
  );
  let stop = () => {};
  let isWatched = false;

  function watch(): () => void {
    isWatched = true;
    stop = watchParts(parts, server);
    return () => stop();
  }

  async function reload(changed: readonly string[]): Promise<readonly string[]> {
    const toUrls = (paths: readonly string[]) => paths.map((path) => platform.toFileUrl(path));
    imports?.renew(toUrls(files), toUrls(changed));
    const definition = await readDefinition();
    swapHandlers(server, toHandlers(definition.parts));
    stop();
    ({ parts, files } = definition);
    if (isWatched) stop = watchParts(parts, server);
    const names = listChanges(serverOptions, definition.serverOptions);
    if (names.length) console.error(`Restart the server to apply the changes to ${names.join(", ")} in ${file}.`);
    serverOptions = definition.serverOptions;
    return files;
  }

  return { server, files, watch, reload };
}

export async function loadFolder(target: string, path: string): Promise<Loaded> {
  const root = await platform.files.resolve(path);
  if (root === undefined) throw new CliError(`Cannot serve ${target}: there is no folder ${path}; check the path`);
  const name = toBaseName(root) || "files";
  const part = folderResource({
    folder: new Folder({ root, maxBytes: 1024 * 1024 }),
    toUri: (path) => `file:///${toUriPath(path)}`,
    baseUri: "file:///",
    metadata: { description: `The files of the folder ${name}` },
    name,
    tools: true,
  });
  const instructions =
    `The files of the folder ${name}. Clients can list, search and read the files, but not change them.`;
  const server = createServer({ name, version: "0.0.0", instructions, handlers: part.handlers });
  return { server, files: [], watch: () => watchParts([part], server) };
}

/** Templates with a longer literal prefix come first, because the server uses the first matching template. */
function toHandlers(parts: readonly ConfigPart[]): readonly Handler[] {
  const toLength = ({ baseUri }: ConfigPart) => baseUri?.length ?? Infinity;
  const sorted = [...parts].sort((a, b) => Math.sign(toLength(b) - toLength(a)) || 0);
  return sorted.flatMap(({ handlers }) => handlers);
}

function watchParts(parts: readonly ConfigPart[], server: Server): () => void {
  const stops = parts.flatMap(({ watch }) => watch ? [watch(server)] : []);
  return () => stops.forEach((stop) => stop());
}

function listChanges(before: object, after: object): string[] {
  const texts = new Map(Object.entries(before).map(([name, value]) => [name, JSON.stringify(value)]));
  return Object.entries(after).flatMap(([name, value]) => texts.get(name) === JSON.stringify(value) ? [] : name);
}
