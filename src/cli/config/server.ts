/**
 * Servers from a config file or a folder.
 *
 * @module
 */
import { createServer, type Handler, type Server } from "../../library.ts";
import { platform } from "../platform.ts";
import { type Loaded, swapHandlers } from "../load.ts";
import { importPart } from "../lazy_modules.ts";
import { toBaseName } from "../path.ts";
import { Problem } from "../problem.ts";
import type { Part } from "./file_resources.ts";

/**
 * A server from a config file. `file` is how the user names it.
 *
 * @throws {Problem} with file, line, column and key for what cannot be used.
 */
export async function loadConfig(file: string, path: string): Promise<Loaded> {
  // Loaded here, for these need packages.
  const [{ readSources }, { build }] = await Promise.all([
    importPart("./config/source.ts"),
    importPart("./config/build.ts"),
  ]);
  let version = 0;
  const read = async () => await build(await readSources(file, path), version++);
  const first = await read();
  let { options, parts, files } = first;
  const server = create(file, { ...options, handlers: toHandlers(parts) });
  let stop = () => {};
  let isWatched = false;

  function watch(): () => void {
    isWatched = true;
    stop = watchParts(parts, server);
    return () => stop();
  }

  async function reload(): Promise<readonly string[]> {
    const built = await read();
    swapHandlers(server, toHandlers(built.parts));
    stop();
    ({ parts, files } = built);
    if (isWatched) stop = watchParts(parts, server);
    const names = listChanges(options, built.options);
    if (names.length) console.error(`${names.join(", ")} of ${file} will be another when the server starts again.`);
    options = built.options;
    return files;
  }

  return { server, files, warnings: first.warnings, watch, reload };
}

/** A server of what is in a folder. */
export async function loadFolder(target: string, path: string): Promise<Loaded> {
  const [{ folderParts, toUriPath }, { openFolder }] = await Promise.all([
    importPart("./config/file_resources.ts"),
    importPart("./config/folder.ts"),
  ]);
  const root = await platform.files.resolve(path);
  if (root === undefined) throw new Problem(`Cannot serve ${target}: there is no folder ${path}; check the path`);
  const name = toBaseName(root) || "files";
  const part = folderParts({
    folder: openFolder({ root, maxBytes: 1024 * 1024 }),
    toUri: (path) => `file:///${toUriPath(path)}`,
    base: "file:///",
    facts: { description: `The files in ${name}` },
    name,
    tools: true,
  });
  const server = create(target, {
    name,
    version: "0.0.0",
    instructions: `The files of the folder ${name}, which can be listed, searched and read, but not changed.`,
    handlers: part.handlers,
  });
  return { server, files: [], watch: () => watchParts([part], server) };
}

function create(target: string, options: Parameters<typeof createServer>[0]): Server {
  try {
    return createServer(options);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Problem(`Cannot use ${target}: ${error.message}`);
  }
}

// Of two templates that fit a URI the first one answers, so the longer one, which fits fewer, comes first.
function toHandlers(parts: readonly Part[]): readonly Handler[] {
  const handlers = parts.flatMap(({ handlers }) => handlers);
  const toWidth = ({ key }: Handler) => key.endsWith("{+path}") ? key.length : Infinity;
  return handlers.sort((a, b) => Math.sign(toWidth(b) - toWidth(a)) || 0);
}

function watchParts(parts: readonly Part[], server: Server): () => void {
  const stops = parts.flatMap(({ watch }) => watch ? [watch(server)] : []);
  return () => stops.forEach((stop) => stop());
}

function listChanges(before: object, after: object): string[] {
  const texts = new Map(Object.entries(before).map(([name, value]) => [name, JSON.stringify(value)]));
  return Object.entries(after).flatMap(([name, value]) => texts.get(name) === JSON.stringify(value) ? [] : name);
}
