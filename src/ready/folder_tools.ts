/**
 * Tools that list, search and read the files of a folder.
 */
import { findClientKey } from "../server/call/client_key.ts";
import { toShown } from "../core/kit/shown.ts";
import { type JsonSchema, media, type Tool, tool, ToolError, type ToolOptions } from "../library.ts";
import { type Folder, type FolderItem, isUnavailable, type Unavailable } from "./files/confined_folder.ts";
import { searchFiles, SearchQueue } from "./folder_search.ts";
import { toMatcher } from "./files/glob.ts";
import type { ChangeOptions, CommonOptions } from "./local_options.ts";
import { decodeText, toMediaType } from "./media_type.ts";
import { toMessage } from "./problem.ts";

export interface FolderToolsOptions {
  /** Prefix of the tools' names. */
  readonly prefix: string;
  readonly toUri: (path: string) => string;
  readonly common: CommonOptions;
  /** Changes the options of each tool, as a group does for its handlers. */
  readonly change: ChangeOptions;
}

interface ToolParts extends Pick<FolderToolsOptions, "toUri"> {
  readonly folder: Folder;
  /** Creates a tool with the common options, and adds the prefix to the name. */
  readonly make: (options: ToolOptions<JsonSchema, JsonSchema>) => Tool;
}

/** More entries would only fill the context of the model, which can list a subfolder instead. */
const MAX_ENTRIES = 1000;

const annotations = { readOnlyHint: true, destructiveHint: false, openWorldHint: false };

export function folderTools(
  folder: Folder,
  { prefix, toUri, common, change }: FolderToolsOptions,
): readonly Tool[] {
  const make: ToolParts["make"] = (options) => tool(change({ ...common, ...options, name: prefix + options.name }));
  const parts: ToolParts = { folder, make, toUri };
  return [listTool(parts), searchTool(parts), readTool(parts)];
}

function listTool({ folder, make }: ToolParts): Tool {
  return make({
    name: "list",
    title: "List files",
    description: "Lists the files and folders in a folder. Names of folders end with a slash.",
    annotations,
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "The path of the folder, such as docs. Defaults to the root folder" },
      },
    },
    run: async ({ path = "" }) => {
      const items = orThrow(await folder.list(String(path)), "list", path);
      const lines = items.slice(0, MAX_ENTRIES).map(toLine);
      if (items.length > MAX_ENTRIES) lines.push(`… and ${items.length - MAX_ENTRIES} more`);
      return lines.join("\n") || "The folder is empty.";
    },
  });
}

function searchTool({ folder, make }: ToolParts): Tool {
  const queue = new SearchQueue();
  return make({
    name: "search",
    title: "Search files",
    description: "Searches all text files for a phrase, ignoring case, and lists the matching lines.",
    annotations,
    input: {
      type: "object",
      properties: {
        query: { type: "string", minLength: 1, maxLength: 1000, description: "The phrase" },
        files: {
          type: "string",
          maxLength: 1000,
          description: "A pattern that selects the files to search, such as docs/**/*.md. Defaults to all files",
        },
      },
      required: ["query"],
    },
    run: ({ query, files = "**" }, ctx) =>
      queue.run(
        findClientKey(ctx),
        () => searchFiles(folder, { phrase: String(query), matches: toFileMatcher(String(files)) }, ctx),
      ),
  });
}

function readTool({ folder, make, toUri }: ToolParts): Tool {
  return make({
    name: "read",
    title: "Read a file",
    description:
      "Reads a file. Returns all lines or a range of lines of a text file. Returns an image or any other file unchanged.",
    annotations,
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "The path of the file, such as docs/intro.md" },
        from: { type: "integer", minimum: 1, description: "The number of the first line to read from a text file" },
        lines: { type: "integer", minimum: 1, description: "The number of lines to read from a text file" },
      },
      required: ["path"],
    },
    run: async ({ path, from, lines }) => {
      const name = String(path);
      const bytes = orThrow(await folder.read(name), "read", name);
      const text = decodeText(bytes);
      if (text === undefined) {
        return media(bytes, toMediaType(name) ?? "application/octet-stream", { uri: toUri(name) });
      }
      if (from === undefined && lines === undefined) return text;
      const start = Number(from ?? 1) - 1;
      return text.split("\n").slice(start, lines === undefined ? undefined : start + Number(lines)).join("\n");
    },
  });
}

function orThrow<T extends object>(result: T | Unavailable, verb: string, path: unknown): T {
  if (isUnavailable(result)) {
    throw new ToolError(`Cannot ${verb} ${path ? toShown(path) : "the folder"}: ${result.state}`);
  }
  return result;
}

function toFileMatcher(pattern: string): (path: string) => boolean {
  try {
    return toMatcher(pattern, { matchDots: true });
  } catch (error) {
    throw new ToolError(`Cannot search: ${toMessage(error)}`);
  }
}

function toLine({ path, kind, size }: FolderItem): string {
  const name = path.split("/").at(-1);
  return kind === "folder" ? `${name}/` : `${name} (${size} bytes)`;
}
