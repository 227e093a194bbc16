/**
 * Builds the options and handlers of a server from config files.
 */
import type { Handler, ServerOptions } from "../../library.ts";
import { isHandler } from "../../host.ts";
import { importDefault } from "../import_file.ts";
import type { ImportGraph } from "../import_graph.ts";
import { platform } from "../platform.ts";
import { importModule } from "../lazy_modules.ts";
import { isAbsolute, toRelativePath } from "../../ready/files/path.ts";
import { CliError } from "../cli_error.ts";
import { toFilePath } from "../target_url.ts";
import { commandTool } from "./command_tool.ts";
import { readEnv, toProgram } from "./command_words.ts";
import { Folder } from "../../ready/files/confined_folder.ts";
import { isPattern, toBaseFolder, toMatcher, toRelativePattern } from "../../ready/files/glob.ts";
import { makeHttpTool } from "../../ready/http_tool.ts";
import { type KeyPath, toMessage } from "../../ready/problem.ts";
import { buildResource } from "./resource_definition.ts";
import type { ApiConfig, ConfigFile } from "./schema.ts";
import type { ConfigPart } from "./pattern_resources.ts";
import { findFile, type Source, toDefaultName } from "./source.ts";
import { toolSearch } from "../../ready/search/search.ts";
import { parseTemplate } from "../../ready/template.ts";
import { expandVariables } from "./variables.ts";

export interface ServerDefinition {
  /** All server options except the handlers. */
  readonly options: Omit<ServerOptions, "handlers">;
  readonly parts: readonly ConfigPart[];
  /** The files from which the server is built. */
  readonly files: readonly string[];
  /** The names of the other servers. */
  readonly others: readonly string[];
}

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_PROMPTS = 1000;

type ToolConfig = NonNullable<ConfigFile["tools"]>[string];

/**
 * Builds a server from config files. `imports` records which files the modules import.
 *
 * @throws {CliError} with file, line, column and key if a value or file cannot be used.
 */
export async function defineServer(
  sources: readonly [Source, ...Source[]],
  options: { readonly imports?: ImportGraph; readonly isHttp: boolean },
): Promise<ServerDefinition> {
  const [main] = sources;
  const builder = new DefinitionBuilder(main, options);
  for (const source of sources) await builder.add(source);
  const { parts } = builder;
  if (main.config.search) parts.push({ handlers: [toolSearch()] });
  const files = [...sources.map(({ path }) => path), ...builder.files];
  return { options: await readOptions(main), parts, files, others: sources.flatMap(listOthers) };
}

function listOthers({ config: { servers = {} } }: Source): readonly string[] {
  return Object.keys(servers);
}

class DefinitionBuilder {
  /** The files to which the config files refer. */
  readonly files: string[] = [];
  readonly parts: ConfigPart[] = [];
  /** The config file that defines a tool, keyed by tool name. */
  readonly #toolFiles = new Map<string, string>();
  readonly #main: Source;
  readonly #imports?: ImportGraph;
  readonly #isHttp: boolean;

  constructor(main: Source, { imports, isHttp }: Parameters<typeof defineServer>[1]) {
    this.#main = main;
    this.#imports = imports;
    this.#isHttp = isHttp;
  }

  async add(source: Source): Promise<void> {
    await this.#addTools(source);
    await this.#addApis(source);
    await this.#addModules(source);
    for (const [i, resource] of (source.config.resources ?? []).entries()) {
      const key = ["resources", i];
      this.parts.push(await withKey(source, key, () => buildResource(resource, { source, main: this.#main, key })));
    }
    await this.#addPrompts(source);
    await this.#addOthers(source);
  }

  async #addOthers(source: Source): Promise<void> {
    for (const [name, entry] of Object.entries(source.config.servers ?? {})) {
      const key = ["servers", name];
      const { toProxy } = await importModule<typeof import("./other_servers.ts")>("./config/other_servers.ts");
      const expand = (text: string) => expandVariables(text, (name) => readEnv(name));
      const resolveCwd = (path: string) => source.resolvePath([...key, "cwd"], path);
      const lock = entry.lock === undefined ? undefined : source.resolvePath([...key, "lock"], entry.lock);
      const parts = { expand, resolveCwd, isHttp: this.#isHttp, lock };
      this.parts.push({ handlers: [await withKey(source, key, () => toProxy(name, entry, parts))] });
    }
  }

  async #addTools(source: Source): Promise<void> {
    for (const [name, tool] of Object.entries(source.config.tools ?? {})) {
      const key = ["tools", name];
      const other = this.#toolFiles.get(name);
      if (other !== undefined) {
        throw source.toProblem(key, `${other} also has a tool ${name}; rename one of the two tools`);
      }
      this.#toolFiles.set(name, source.file);
      const handler = await withKey(source, key, () => buildTool(name, tool, source));
      this.parts.push({ handlers: [handler] });
    }
  }

  async #addApis(source: Source): Promise<void> {
    for (const [i, api] of (source.config.openapi ?? []).entries()) {
      const key = ["openapi", i];
      const fileKey = [...key, "document"];
      const path = await findFile(source, fileKey, source.resolvePath(fileKey, api.document));
      this.parts.push({ handlers: [await withKey(source, key, () => buildApi(api, path, { source, key }))] });
      this.files.push(path);
    }
  }

  async #addModules(source: Source): Promise<void> {
    for (const [i, name] of (source.config.modules ?? []).entries()) {
      const key = ["modules", i];
      const path = await findFile(source, key, source.resolvePath(key, name));
      this.parts.push({ handlers: await withKey(source, key, () => importHandlers(name, path)) });
      this.files.push(...this.#imports?.list(platform.toFileUrl(path)).map(toFilePath) ?? [path]);
    }
  }

  async #addPrompts(source: Source): Promise<void> {
    for (const [i, pattern] of (source.config.prompts ?? []).entries()) {
      const key = ["prompts", i];
      const { paths, root } = await withKey(source, key, () => listPromptFiles(source, key, pattern));
      // Also watch the folder, because new files may match the pattern.
      this.files.push(...paths, ...root === undefined ? [] : [root]);
      for (const path of paths) {
        this.parts.push({ handlers: [await withKey(source, key, () => buildPrompt(this.#main, path))] });
      }
    }
  }
}

/** Runs a function, and adds the position of a key to errors that the function throws. */
async function withKey<T>(source: Source, key: KeyPath, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof CliError ? error : source.toProblem(key, toMessage(error));
  }
}

async function readOptions(main: Source): Promise<ServerDefinition["options"]> {
  const { instructions, secret, ...config } = main.config;
  const { name = toDefaultName(main), version = "0.0.0", title, description, websiteUrl } = config;
  const { limits, path, hosts, origins, streams } = config;
  return {
    ...{ name, version, title, description, websiteUrl, limits, path, hosts, origins, streams },
    instructions: typeof instructions === "object" ? await readInstructions(main, instructions.file) : instructions,
    secret: secret && await withKey(main, ["secret"], () => parseTemplate(secret, readEnv).fill(() => "")),
  };
}

async function readInstructions(main: Source, file: string): Promise<string> {
  const key = ["instructions", "file"];
  const path = await findFile(main, key, main.resolvePath(key, file));
  return await withKey(main, key, () => readText(path));
}

async function buildTool(name: string, tool: ToolConfig, source: Source): Promise<Handler> {
  const key = ["tools", name];
  const toProblem = (path: KeyPath, state: string) => source.toProblem([...key, ...path], state);
  if ("fetch" in tool) return makeHttpTool({ ...tool, name }, { readEnv, toProblem });
  const cwd = source.resolvePath([...key, "cwd"], tool.cwd ?? "");
  // Check the folder only with read permission. Without the permission, a missing folder is reported when the program
  // starts.
  if (tool.cwd !== undefined && platform.mayRead(cwd)) await findFile(source, [...key, "cwd"], cwd, "folder");
  const program = toProgram(source, name, tool.run[0]);
  return commandTool({ name, tool, program, cwd, readEnv, toProblem });
}

async function buildApi(
  api: ApiConfig,
  path: string,
  { source, key }: { source: Source; key: KeyPath },
): Promise<Handler> {
  // Load this module only now, because it imports a package that other config files do not need.
  const { apiHandler } = await importModule<typeof import("./api.ts")>("./config/api.ts");
  const toProblem = (path: KeyPath, state: string) => source.toProblem([...key, ...path], state);
  return await apiHandler(api, { path, readEnv, toProblem });
}

async function importHandlers(name: string, path: string): Promise<readonly Handler[]> {
  const exported = await importDefault(name, platform.toFileUrl(path));
  const list: readonly unknown[] = Array.isArray(exported) ? exported : [exported];
  if (list.every(isHandler)) return list;
  throw new TypeError(
    "the default export is neither a handler (tool, resource or prompt) nor an array of handlers; export a handler",
  );
}

async function buildPrompt(main: Source, path: string): Promise<Handler> {
  const text = await readText(path);
  const { readPrompt } = await importModule<typeof import("./prompts.ts")>("./config/prompts.ts");
  return readPrompt(text, toRelativePath(main.folder, path) ?? path);
}

interface PromptFiles {
  readonly paths: readonly string[];
  /** The base folder of the pattern. `undefined` if the prompt is a single file. */
  readonly root?: string;
}

async function listPromptFiles(source: Source, key: KeyPath, pattern: string): Promise<PromptFiles> {
  if (!isPattern(pattern)) return { paths: [await findFile(source, key, source.resolvePath(key, pattern))] };
  const root = await findFile(source, key, source.resolvePath(key, toBaseFolder(pattern)), "folder");
  const matches = toMatcher(toRelativePattern(pattern));
  const folder = new Folder({ root, hidden: true, exclude: [], maxBytes: MAX_FILE_BYTES });
  const paths = (await folder.walk(MAX_PROMPTS)).filter(({ path }) => matches(path)).map(({ real }) => real);
  if (paths.length) return { paths, root };
  const where = isAbsolute(pattern) ? pattern : `${pattern} in ${source.folder}`;
  throw source.toProblem(key, `no file matches ${where}; check the pattern`);
}

async function readText(path: string): Promise<string> {
  const bytes = await platform.files.read(path, MAX_FILE_BYTES + 1);
  if (bytes.length <= MAX_FILE_BYTES) return new TextDecoder().decode(bytes);
  throw new TypeError(`${path} has more than ${MAX_FILE_BYTES} bytes; shorten it`);
}
