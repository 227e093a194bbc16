/**
 * Skills: folders with instructions for agents. A server can offer skills in addition to tools.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { skills } from "@x/mcp/skills";
 *
 * export default createServer({ name: "office", version: "1.0.0", handlers: [skills({ dir: "./skills" })] });
 * ```
 *
 * @see SEP-2640
 * @module
 */
import { type Context, extension, type Handler, McpError, resourceProvider } from "../../library.ts";
import type { ServerHandle } from "../extension.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import { toText } from "./bytes.ts";
import { Catalog, type Child, type Snapshot } from "./catalog.ts";
import { SkillFolder } from "./skill_folder.ts";
import { toMediaType } from "./media_types.ts";

/** Options of {@linkcode skills}. Only `dir` is required. */
export interface SkillsOptions {
  /**
   * The folder that contains the skills. Each folder with a `SKILL.md` is a skill: `dir` itself, and its subfolders at
   * any depth. Symbolic links, `node_modules`, names that begin with a dot, and names with a backslash, a colon or a
   * control character are skipped.
   */
  readonly dir: string | URL;
  /** Milliseconds for which clients may cache the entry of a skill. Defaults to 60,000 (one minute). */
  readonly ttlMs?: number;
  /** Whether caches may share entries among callers. Defaults to `"private"`. */
  readonly cacheScope?: "public" | "private";
}

const OPTIONS: KnownOptions<keyof SkillsOptions> = {
  names: {
    dir: true,
    ttlMs: {
      findProblem: (ms) =>
        Number.isSafeInteger(ms) && Number(ms) >= 0
          ? undefined
          : `is ${
            typeof ms === "string" ? JSON.stringify(ms) : String(ms)
          }; use a whole number of milliseconds, 0 or more`,
    },
    cacheScope: ["public", "private"],
  },
  hints: { folder: "dir", path: "dir", directory: "dir" },
};

/**
 * Returns a handler that offers the skills in a folder. Clients read files as resources `skill://…`, and entries with
 * `skills/list`, `skills/get` and `resources/directory/read`. The server reads the folder when it receives the first
 * request, and then watches the folder for changes.
 *
 * The server omits a skill and prints a warning to standard error if the front matter is invalid, or if the skill has
 * more than 512 files or 16 MiB, because clients need not accept larger skills.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 * @see SEP-2640
 */
export function skills(options: SkillsOptions): Handler {
  checkOptions("serve skills", options, OPTIONS);
  const { dir, ttlMs = 60_000, cacheScope = "private" } = options;
  const folder = new SkillFolder(toPath(dir));
  const catalog = new Catalog(folder, (text) => console.error(text));
  // Results in revisions with sessions have no cache fields.
  const toCache = ({ client }: Context) => client.version.slice(0, 4) >= CACHES_SINCE ? { ttlMs, cacheScope } : {};
  const own = extension({
    id: "io.modelcontextprotocol/skills",
    settings: { directoryRead: true },
    sessions: true,
    undeclared: true,
    methods: {
      "skills/list": {
        params: { type: "object", properties: { cursor: { type: "string" } } } as const,
        async run({ cursor }, ctx) {
          const { skills } = await catalog.read();
          const { items, nextCursor } = toPage([...skills.values()], cursor, SKILLS_PER_PAGE);
          const entries = await Promise.all(items.map((skill) => catalog.toEntry(skill)));
          return { skills: entries.filter((entry) => entry !== undefined), nextCursor, ...toCache(ctx) };
        },
      },
      "skills/get": {
        params: { type: "object", properties: { uri: { type: "string" } }, required: ["uri"] } as const,
        async run({ uri }, ctx) {
          const found = (await catalog.read()).skills.get(uri);
          // If a file has changed since the scan, scan the folder again.
          const skill = found && (await catalog.toEntry(found) ?? await toNewEntry(catalog, uri));
          if (!skill) {
            throw McpError.invalidParams(
              `Cannot find the skill ${show(uri)}; use a URI from the result of skills/list`,
            );
          }
          return { skill, ...toCache(ctx) };
        },
      },
      "resources/directory/read": {
        params: {
          type: "object",
          properties: { uri: { type: "string" }, cursor: { type: "string" } },
          required: ["uri"],
        } as const,
        async run({ uri, cursor }) {
          const children = (await catalog.read()).folders.get(uri);
          if (!children) {
            throw McpError.invalidParams(`Cannot list ${show(uri)}: it is not a directory of a skill`);
          }
          const { items, nextCursor } = toPage(children, cursor, CHILDREN_PER_PAGE);
          return { resources: items.map(toListed), nextCursor };
        },
      },
    },
    start(server) {
      catalog.now = () => server.clock.now();
      return watch(folder, catalog, server);
    },
  });
  const files = resourceProvider({
    scheme: "skill",
    name: "skills",
    async list(cursor) {
      const { skills } = await catalog.read();
      const { items, nextCursor } = toPage([...skills.values()], cursor, CHILDREN_PER_PAGE);
      const resources = items.map(({ uri, frontmatter: { name, description }, files }) => ({
        uri,
        name,
        description,
        mimeType: "text/markdown",
        size: files.find((file) => file.uri === uri)?.size,
      }));
      return { resources, nextCursor };
    },
    async read(uri) {
      const file = (await catalog.read()).files.get(uri);
      const bytes = file && await catalog.readFile(file);
      if (!file || !bytes) throw McpError.resourceNotFound(uri);
      const mimeType = toMediaType(file.path);
      const text = toText(bytes);
      return [text === undefined ? { uri, mimeType, blob: toBase64(bytes) } : { uri, mimeType, text }];
    },
  });
  return withExtension(files, own);
}

/** Returns a handler that adds the extension to the server, also after a group or a server has created it again. */
function withExtension(handler: Handler, own: Handler): Handler {
  const { also = [], remake } = handler[INTERNALS];
  const internals: Handler[typeof INTERNALS] = {
    ...handler[INTERNALS],
    also: [...also, own],
    remake: remake && ((change) => withExtension(remake(change), own)),
  };
  return { ...handler, [INTERNALS]: internals };
}

async function toNewEntry(catalog: Catalog, uri: string) {
  const skill = (await catalog.scan()).skills.get(uri);
  return skill && await catalog.toEntry(skill);
}

/** Scans after each change, and notifies clients if skills have changed. Returns a function that stops watching. */
async function watch(folder: SkillFolder, catalog: Catalog, server: ServerHandle): Promise<() => Promise<void>> {
  let known = await catalog.scan();
  let stopTimer: (() => void) | undefined;
  let comparing: Promise<void> | undefined;
  const compare = async () => {
    stopTimer = undefined;
    const before = known;
    known = await catalog.scan();
    if (server.signal.aborted) return;
    for (const [uri, { stamp }] of known.files) {
      const file = before.files.get(uri);
      if (file && file.stamp !== stamp) server.resourceUpdated(uri);
    }
    if (toListText(before) !== toListText(known)) server.listChanged("resources");
  };
  const stopWatching = await folder.watch(() => {
    // A closed watcher can still report events that occurred before.
    if (server.signal.aborted) return;
    // Wait until no more events arrive, because saving a file causes several events.
    stopTimer?.();
    const start = () => void (comparing = compare().catch(() => {}));
    stopTimer = server.clock.start(start, SETTLE_MS, { background: true });
  });
  return async () => {
    stopWatching?.();
    stopTimer?.();
    // Otherwise the folder would still be read after the server has closed.
    await comparing;
  };
}

function toListText({ skills }: Snapshot): string {
  return JSON.stringify([...skills.values()].map(({ uri, frontmatter, files }) => [uri, frontmatter, files.length]));
}

/** Returns a page of items, sorted by URI. The cursor is the URI of the last item on the previous page. */
function toPage<T extends { readonly uri: string }>(items: readonly T[], cursor: string | undefined, size: number) {
  if (cursor !== undefined && !cursor.startsWith("skill://")) {
    throw McpError.invalidParams("Cannot continue the list: the cursor is not valid; use a nextCursor from the server");
  }
  const sorted = [...items].sort((a, b) => a.uri < b.uri ? -1 : 1);
  const after = cursor === undefined ? sorted : sorted.filter(({ uri }) => uri > cursor);
  const page = after.slice(0, size);
  return { items: page, nextCursor: after.length > size ? page[page.length - 1].uri : undefined };
}

function toListed({ uri, name, file }: Child) {
  return file
    ? { uri, name, mimeType: toMediaType(file.path), size: file.size }
    : { uri, name, mimeType: "inode/directory" };
}

function toPath(dir: string | URL): string {
  const url = dir instanceof URL ? dir : /^file:/.test(String(dir)) ? new URL(dir) : undefined;
  if (url && url.protocol !== "file:") {
    throw new TypeError(`Cannot serve skills: dir is ${url.href}; use a file: URL or a path`);
  }
  if (url) return decodeURIComponent(url.pathname).replace(/^\/(?=[a-z]:)/i, "");
  if (typeof dir !== "string" || !dir) {
    throw new TypeError('Cannot serve skills: dir is not a path; use a path such as "./skills", or a file: URL');
  }
  return dir;
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(text);
}

const SKILLS_PER_PAGE = 20;
const CHILDREN_PER_PAGE = 500;

/** Milliseconds without change events after which the folder is scanned again. */
const SETTLE_MS = 100;

/** The year of the first protocol revision whose results have cache fields. */
const CACHES_SINCE = "2026";
