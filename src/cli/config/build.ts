/**
 * What a server needs, made of config files.
 *
 * @module
 */
import type { Handler, ServerOptions } from "../../library.ts";
import { importDefault, type LoadWarning } from "../load.ts";
import { platform } from "../platform.ts";
import { importPart } from "../lazy_modules.ts";
import { isAbsolute, toBaseName, toFolder, toInner } from "../path.ts";
import { Problem } from "../problem.ts";
import { commandTool } from "./command_tool.ts";
import { fileResource, folderParts, globResources, type Part, toUriPath } from "./file_resources.ts";
import { openFolder } from "./folder.ts";
import { isPattern, toBase, toMatcher } from "./glob.ts";
import { fetchTool, urlResource } from "./http_tool.ts";
import { type Path, toKey } from "./jsonc.ts";
import type { ConfigFile } from "./schema.ts";
import { resolveFile, type Source, tell, toServerName } from "./source.ts";
import { toTemplate } from "./template.ts";

/** What a server needs. */
export interface Built {
  /** All but the handlers. */
  readonly options: Omit<ServerOptions, "handlers">;
  readonly parts: readonly Part[];
  /** The files that all this was read from. */
  readonly files: readonly string[];
  /** What should be looked at, though it can be used. */
  readonly warnings: readonly LoadWarning[];
}

const MOST_BYTES = 1024 * 1024;
const MOST_PROMPTS = 1000;

type Resource = NonNullable<ConfigFile["resources"]>[number];
type Tool = NonNullable<ConfigFile["tools"]>[string];

/**
 * Makes all that config files declare. `version` loads their modules anew.
 *
 * @throws {Problem} with file, line, column and key for what cannot be used.
 */
export async function build(sources: readonly [Source, ...Source[]], version: number): Promise<Built> {
  const [main] = sources;
  const files = sources.map(({ path }) => path);
  const parts: Part[] = [];
  const warnings: LoadWarning[] = [];
  const places = new Map<string, string>();
  for (const source of sources) {
    for (const [name, tool] of Object.entries(source.config.tools ?? {})) {
      const place = ["tools", name];
      const other = places.get(name);
      if (other !== undefined) throw source.refuse(place, `there is a tool ${name} in ${other}; rename one of the two`);
      places.set(name, source.file);
      parts.push({ handlers: [await make(source, place, () => toTool(source, { name, tool, warnings }))] });
    }
    for (const [i, given] of (source.config.modules ?? []).entries()) {
      const path = await resolveFile(source, ["modules", i], source.locate(["modules", i], given));
      files.push(path);
      const handlers = await make(source, ["modules", i], () => importHandlers(given, path, version));
      parts.push({ handlers });
    }
    for (const [i, resource] of (source.config.resources ?? []).entries()) {
      parts.push(await make(source, ["resources", i], () => toPart(source, main, resource, ["resources", i])));
    }
    for (const [i, given] of (source.config.prompts ?? []).entries()) {
      const { paths, root } = await make(source, ["prompts", i], () => listFiles(source, ["prompts", i], given));
      // A folder is another one when files come or go.
      files.push(...paths, ...root === undefined ? [] : [root]);
      for (const path of paths) {
        parts.push({ handlers: [await make(source, ["prompts", i], () => toPrompt(main, path))] });
      }
    }
  }
  return { options: await toOptions(main), parts, files, warnings };
}

/** Makes a part; what goes wrong is an error about its place. */
async function make<T>(source: Source, place: Path, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof Problem ? error : source.refuse(place, tell(error));
  }
}

async function toOptions(main: Source): Promise<Built["options"]> {
  const { instructions, secret, ...told } = main.config;
  const { name = toServerName(main), version = "0.0.0", title, description, websiteUrl } = told;
  const { limits, path, hosts, origins } = told;
  return {
    ...{ name, version, title, description, websiteUrl, limits, path, hosts, origins },
    instructions: typeof instructions === "object" ? await readInstructions(main, instructions.file) : instructions,
    secret: secret && await make(main, ["secret"], () => toTemplate(secret, readEnv).fill(() => "")),
  };
}

async function readInstructions(main: Source, given: string): Promise<string> {
  const place = ["instructions", "file"];
  const path = await resolveFile(main, place, main.locate(place, given));
  return await make(main, place, async () => new TextDecoder().decode(await platform.files.read(path, MOST_BYTES)));
}

interface ToolPlace {
  readonly name: string;
  readonly tool: Tool;
  readonly warnings: LoadWarning[];
}

async function toTool(source: Source, { name, tool, warnings }: ToolPlace): Promise<Handler> {
  const place = ["tools", name];
  const refuse = (path: Path, state: string) => source.refuse([...place, ...path], state);
  if ("fetch" in tool) return fetchTool(name, tool, { env: readEnv, refuse });
  const cwd = source.locate([...place, "cwd"], tool.cwd ?? "");
  // Where it may not be looked at, a folder that is missing is found when the program starts.
  if (tool.cwd !== undefined && platform.mayRead(cwd)) await resolveFile(source, [...place, "cwd"], cwd, "folder");
  const program = toProgram(source, name, tool.run[0]);
  const warn = (path: Path, state: string) =>
    void warnings.push({ place: `tool ${name}`, state: `${toKey(path)}: ${state}` });
  return commandTool({ name, tool, program, cwd, env: readEnv, refuse, warn });
}

/** The program of a command: a name to be found in PATH, or the path of a file. */
export function toProgram(source: Source, name: string, word: string | object): string {
  const place = ["tools", name, "run", 0];
  if (typeof word !== "string") throw source.refuse(place, "it is the program, which is always there; write its name");
  const text = toTemplate(word, readEnv).fill(() => "");
  return /[\\/]/.test(text) ? source.locate(place, text) : text;
}

function readEnv(name: string): string | undefined {
  return platform.env(name);
}

async function importHandlers(given: string, path: string, version: number): Promise<readonly Handler[]> {
  const found = await importDefault(given, platform.toFileUrl(path), version);
  const list: readonly unknown[] = Array.isArray(found) ? found : [found];
  if (list.every(isHandler)) return list;
  throw new TypeError("its default export is no tool, resource or prompt, nor an array of them");
}

function isHandler(value: unknown): value is Handler {
  return typeof value === "object" && value !== null && "feature" in value && "key" in value;
}

async function toPart(source: Source, main: Source, told: Resource, place: Path): Promise<Part> {
  const { title, description, mimeType, annotations } = told;
  const facts = { title, description, mimeType, annotations };
  if ("url" in told) {
    const refuse = (path: Path, state: string) => source.refuse([...place, ...path], state);
    return { handlers: [urlResource(told, facts, { env: readEnv, refuse })] };
  }
  const { maxBytes = MOST_BYTES, watch = true } = told;
  const toUri = (path: string) => `file:///${toUriPath(toInner(main.folder, path) ?? toBaseName(path))}`;
  let part: Part;
  if ("file" in told) {
    const path = source.locate([...place, "file"], told.file);
    const real = await resolveFile(source, [...place, "file"], path);
    const folder = openFolder({ root: toFolder(real), hidden: true, exclude: [], maxBytes });
    const named = { path: toBaseName(real), uri: told.uri ?? toUri(path), name: told.name ?? toBaseName(path) };
    part = fileResource({ folder, facts, toUri }, named);
  } else {
    const [key, given] = "folder" in told ? ["folder", told.folder] : ["glob", toBase(told.glob)];
    const root = await resolveFile(source, [...place, key], source.locate([...place, key], given), "folder");
    const hidden = "folder" in told ? told.hidden : /(^|\/)\./.test(told.glob);
    const folder = openFolder({ root, hidden, exclude: "folder" in told ? told.exclude : [], maxBytes });
    const base = toUri(root).replace(/\/?$/, "/");
    const options = { folder, facts, toUri: (path: string) => base + toUriPath(path) };
    part = "folder" in told
      ? folderParts({ ...options, base, name: told.name ?? (toBaseName(root) || "files"), tools: told.tools })
      : await globResources(options, toMatcher(toRest(told.glob)));
  }
  return watch ? part : { handlers: part.handlers };
}

/** What of a pattern varies: it is seen from the folder that the pattern begins with. */
function toRest(pattern: string): string {
  return pattern.slice(toBase(pattern).length).replace(/^\//, "");
}

async function toPrompt(main: Source, path: string): Promise<Handler> {
  const text = new TextDecoder().decode(await platform.files.read(path, MOST_BYTES));
  const { readPrompt } = await importPart("./config/prompts.ts");
  return readPrompt(text, toInner(main.folder, path) ?? path);
}

interface FileList {
  readonly paths: readonly string[];
  /** The folder that a pattern begins with. */
  readonly root?: string;
}

/** The files that a path or a pattern means. */
async function listFiles(source: Source, place: Path, given: string): Promise<FileList> {
  if (!isPattern(given)) return { paths: [await resolveFile(source, place, source.locate(place, given))] };
  const root = await resolveFile(source, place, source.locate(place, toBase(given)), "folder");
  const fits = toMatcher(toRest(given));
  const found = await openFolder({ root, hidden: true, exclude: [], maxBytes: MOST_BYTES }).walk(MOST_PROMPTS);
  const paths = found.filter(({ path }) => fits(path)).map(({ real }) => real);
  if (paths.length) return { paths, root };
  throw source.refuse(
    place,
    `no file fits ${isAbsolute(given) ? given : `${given} in ${source.folder}`}; check the pattern`,
  );
}
