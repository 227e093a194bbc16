/**
 * Tools that list, search and read a folder.
 *
 * @module
 */
import { media, type Tool, tool, ToolError } from "../../library.ts";
import { type Folder, type Found, isRefusal, type Refusal } from "./folder.ts";
import { toMatcher } from "./glob.ts";
import { toMediaType, toText } from "./media_type.ts";

/** Names, and what there is to be named. */
export interface FolderToolsOptions {
  /** Put before the names of the tools. */
  readonly prefix: string;
  /** The URI of a file in the folder. */
  readonly toUri: (path: string) => string;
}

// More would only fill the context of a model, which can ask for less.
const MOST_ENTRIES = 1000;
const MOST_HITS = 100;
const MOST_FILES = 20_000;
const MOST_BYTES = 256 * 1024 * 1024;
const LONGEST_LINE = 300;
const MOST_MS = 10_000;
/** Searches of one client that wait for the one that runs. */
const MOST_WAITING = 8;
/** Stands for all clients that have no name. */
const ALL = {};

const annotations = { readOnlyHint: true, openWorldHint: false };

/** The tools of a folder. */
export function folderTools(folder: Folder, { prefix, toUri }: FolderToolsOptions): readonly Tool[] {
  const path = (description: string) => ({ type: "string", description });

  const searches = new Turns();

  const list = tool({
    name: `${prefix}list`,
    description: "Lists the files and folders in one folder. Names of folders end with a slash.",
    annotations,
    input: {
      type: "object",
      properties: { path: path("The folder, such as docs; the outermost one if nothing is said") },
    },
    run: async ({ path = "" }) => {
      const entries = orFail(await folder.list(String(path)), "list", path);
      const lines = entries.slice(0, MOST_ENTRIES).map(toLine);
      if (entries.length > MOST_ENTRIES) lines.push(`… and ${entries.length - MOST_ENTRIES} more`);
      return lines.join("\n") || "The folder is empty.";
    },
  });

  const search = tool({
    name: `${prefix}search`,
    description: "Searches the text of all files for a phrase, whatever its case, and lists the lines that have it.",
    annotations,
    input: {
      type: "object",
      properties: {
        query: { type: "string", minLength: 1, maxLength: 1000, description: "The phrase" },
        files: { type: "string", maxLength: 1000, description: "A pattern of files to search, such as docs/**/*.md" },
      },
      required: ["query"],
    },
    run: ({ query, files = "**" }, ctx) =>
      searches.run(ctx.principal?.id ?? ALL, async () => {
        const phrase = String(query).toLowerCase();
        const fits = toFilter(String(files));
        const found = (await folder.walk(MOST_FILES)).filter(({ path }) => fits(path));
        const hits: string[] = [];
        let left = MOST_BYTES;
        const end = performance.now() + MOST_MS;
        let isLate = false;
        for (const [i, { path, size }] of found.entries()) {
          isLate = performance.now() > end;
          if (isLate || ctx.signal.aborted || hits.length >= MOST_HITS || (left -= size) < 0) break;
          if (i % 100 === 0) await ctx.progress(i, { total: found.length });
          const bytes = await folder.read(path);
          const text = isRefusal(bytes) ? undefined : toText(bytes);
          if (text?.toLowerCase().includes(phrase)) {
            hits.push(...findLines(text, phrase).map((line) => `${path}:${line}`));
          }
        }
        if (!hits.length) {
          return left < 0 || isLate ? "Nothing in as much as was searched; name fewer files." : "Nothing was found.";
        }
        const more = hits.length > MOST_HITS || isLate ? [`… and more; name fewer files or a longer phrase`] : [];
        return [...hits.slice(0, MOST_HITS), ...more].join("\n");
      }),
  });

  const read = tool({
    name: `${prefix}read`,
    description: "Reads a file: a text whole or some of its lines, an image or any other file as it is.",
    annotations,
    input: {
      type: "object",
      properties: {
        path: path("The file, such as docs/intro.md"),
        from: { type: "integer", minimum: 1, description: "The first line to read, for a text" },
        lines: { type: "integer", minimum: 1, description: "How many lines to read, for a text" },
      },
      required: ["path"],
    },
    run: async ({ path, from, lines }) => {
      const name = String(path);
      const bytes = orFail(await folder.read(name), "read", name);
      const text = toText(bytes);
      if (text === undefined) {
        return media(bytes, toMediaType(name) ?? "application/octet-stream", { uri: toUri(name) });
      }
      if (from === undefined && lines === undefined) return text;
      const start = Number(from ?? 1) - 1;
      return text.split("\n").slice(start, lines === undefined ? undefined : start + Number(lines)).join("\n");
    },
  });

  return [list, search, read];
}

/** Runs one search of each client at a time, because a few words can keep the disk busy for long. */
class Turns {
  readonly #clients = new Map<unknown, { last: Promise<unknown>; count: number }>();

  async run<T>(client: unknown, work: () => Promise<T>): Promise<T> {
    const turns = this.#clients.get(client) ?? { last: Promise.resolve(), count: 0 };
    if (turns.count > MOST_WAITING) {
      throw new ToolError("Cannot search: too many searches wait already; try again later");
    }
    this.#clients.set(client, turns);
    turns.count++;
    const turn = turns.last.then(work).finally(() => {
      if (!--turns.count) this.#clients.delete(client);
    });
    turns.last = turn.catch(() => {});
    return await turn;
  }
}

function orFail<T extends object>(found: T | Refusal, verb: string, path: unknown): T {
  if (isRefusal(found)) throw new ToolError(`Cannot ${verb} ${path || "the folder"}: ${found.state}`);
  return found;
}

function toFilter(pattern: string): (path: string) => boolean {
  try {
    return toMatcher(pattern, { dots: true });
  } catch (error) {
    throw new ToolError(`Cannot search: ${error instanceof Error ? error.message : error}`);
  }
}

function toLine({ path, kind, size }: Found): string {
  const name = path.split("/").at(-1);
  return kind === "folder" ? `${name}/` : `${name} (${size} bytes)`;
}

function findLines(text: string, phrase: string): string[] {
  return text.split("\n").flatMap((line, i) => {
    const at = line.toLowerCase().indexOf(phrase);
    if (at < 0) return [];
    const start = Math.max(0, at - LONGEST_LINE / 2);
    return `${i + 1}: ${start ? "…" : ""}${line.slice(start, start + LONGEST_LINE).trim()}`;
  });
}
