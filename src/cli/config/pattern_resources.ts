/**
 * Resources for the files that match a pattern.
 */
import type { Handler, Server } from "../../library.ts";
import { MAX_LISTED_FILES } from "../../ready/files/confined_folder.ts";
import { watchFolder } from "../../ready/files/folder_watch.ts";
import { fileResource, type FilesOptions, type ServerPart } from "../../ready/file_resources.ts";

/** The handlers from one part of a config file. `watch` may add and remove handlers. */
export interface ConfigPart extends Omit<ServerPart, "watch"> {
  readonly watch?: (server: Server) => () => void;
}

/** `watch` adds and removes resources when files are added and removed. */
export async function patternResources(
  options: FilesOptions,
  matches: (path: string) => boolean,
): Promise<ConfigPart> {
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
