/**
 * Finds the permissions that a config file requires.
 */
import { isObject } from "../../core/kit/json.ts";
import { importModule } from "../lazy_modules.ts";
import { platform } from "../platform.ts";
import { CliError } from "../cli_error.ts";
import { type Permissions, toNetAddress } from "../permissions.ts";
import { toProgram } from "./command_words.ts";
import { listPathArguments } from "./path_arguments.ts";
import { isPattern, toBaseFolder } from "../../ready/files/glob.ts";
import { type KeyPath, toMessage } from "../../ready/problem.ts";
import type { ConfigFile, OtherServer } from "./schema.ts";
import { readSources, type Source } from "./source.ts";
import { listVariables, parseTemplate } from "../../ready/template.ts";
import { expandVariables } from "./variables.ts";
import { readToolInput } from "../../ready/tool_input.ts";

export interface RequiredPermissions {
  readonly permissions: Permissions;
  /** The paths of modules. Their code may need additional permissions. */
  readonly modules: readonly string[];
}

/** @throws {CliError} if the file cannot be used. */
export async function findRequiredPermissions(file: string, path: string): Promise<RequiredPermissions> {
  const collector = new PermissionCollector();
  collector.read.add(path);
  for (const source of await readSources(file, path)) await collector.add(source);
  const { read, write, run, env, net, sys, modules } = collector;
  const paths = [...read].filter((path, _, all) => !all.some((each) => path.startsWith(`${each}/`)));
  // Only the tokens of other servers need these permissions.
  const others = { ...write.size && { write: [...write] }, ...sys.size && { sys: [...sys] } };
  return {
    permissions: { read: paths, run: [...run], env: [...env], net: [...net], ...others },
    modules: [...modules],
  };
}

class PermissionCollector {
  readonly read = new Set<string>();
  readonly write = new Set<string>();
  readonly run = new Set<string>();
  readonly env = new Set<string>();
  readonly net = new Set<string>();
  readonly sys = new Set<string>();
  readonly modules = new Set<string>();

  async add(source: Source): Promise<void> {
    const { tools = {}, openapi = [], resources = [], prompts = [], modules = [], instructions, secret } =
      source.config;
    this.read.add(source.path);
    for (const [name, tool] of Object.entries(tools)) await this.#addTool(source, name, tool);
    for (const [i, { document, baseUrl, auth }] of openapi.entries()) {
      await this.#addPath(source, ["openapi", i, "document"], document);
      this.#addVariables([baseUrl, auth]);
      this.net.add(findHost(source, ["openapi", i, "baseUrl"], baseUrl));
    }
    for (const [i, resource] of resources.entries()) await this.#addResource(source, ["resources", i], resource);
    for (const [i, prompt] of prompts.entries()) {
      await this.#addPath(source, ["prompts", i], isPattern(prompt) ? toBaseFolder(prompt) : prompt);
    }
    if (typeof instructions === "object") await this.#addPath(source, ["instructions", "file"], instructions.file);
    for (const [i, module] of modules.entries()) {
      const path = source.resolvePath(["modules", i], module);
      this.modules.add(path);
      // Add only the module itself, because `install` adds the files that the module imports.
      this.read.add(path);
    }
    this.#addVariables(secret);
    for (const [name, entry] of Object.entries(source.config.servers ?? {})) await this.#addOther(source, name, entry);
  }

  async #addOther(source: Source, name: string, entry: OtherServer): Promise<void> {
    const { findOtherPermissions } = await importModule<typeof import("./other_permissions.ts")>(
      "./config/other_permissions.ts",
    );
    try {
      const expand = (text: string) => expandVariables(text, (name) => platform.env(name));
      const resolveCwd = (path: string) => source.resolvePath(["servers", name, "cwd"], path);
      const found = await findOtherPermissions(entry, { expand, resolveCwd });
      if (entry.lock !== undefined) await this.#addPath(source, ["servers", name, "lock"], entry.lock);
      for (const kind of ["read", "write", "run", "env", "net", "sys"] as const) {
        for (const value of found[kind] ?? []) this[kind].add(value);
      }
    } catch (error) {
      throw error instanceof CliError ? error : source.toProblem(["servers", name], toMessage(error));
    }
  }

  async #addTool(source: Source, name: string, tool: NonNullable<ConfigFile["tools"]>[string]): Promise<void> {
    if ("fetch" in tool) {
      this.#addVariables(tool.fetch);
      this.net.add(findHost(source, ["tools", name, "fetch", "url"], tool.fetch.url));
      return;
    }
    this.run.add(toProgram(source, name, tool.run[0]));
    this.env.add("PATH");
    for (const entry of tool.env ?? []) if (!entry.includes("=")) this.env.add(entry);
    this.#addVariables([tool.run, tool.env, tool.stdin]);
    // The server looks for symbolic links in the paths of calls.
    if (listPathArguments(readToolInput(tool.input)).length) {
      await this.#addPath(source, ["tools", name, "cwd"], tool.cwd ?? "");
    }
  }

  async #addResource(
    source: Source,
    key: KeyPath,
    resource: NonNullable<ConfigFile["resources"]>[number],
  ): Promise<void> {
    if ("url" in resource) {
      this.#addVariables([resource.url, resource.headers]);
      this.net.add(findHost(source, [...key, "url"], resource.url));
    } else if ("file" in resource) await this.#addPath(source, [...key, "file"], resource.file);
    else if ("folder" in resource) await this.#addPath(source, [...key, "folder"], resource.folder);
    else await this.#addPath(source, [...key, "glob"], toBaseFolder(resource.glob));
  }

  async #addPath(source: Source, key: KeyPath, name: string): Promise<void> {
    const path = source.resolvePath(key, name);
    this.read.add(path);
    // Also add the target of a symbolic link, because Deno checks the permission to read the target.
    this.read.add(await platform.files.resolve(path) ?? path);
  }

  #addVariables(value: unknown): void {
    for (const name of listStrings(value).flatMap(listVariables)) this.env.add(name);
  }
}

function findHost(source: Source, key: KeyPath, url: string): string {
  try {
    const text = parseTemplate(url, (name) => platform.env(name)).fill(() => "x");
    return toNetAddress(new URL(text));
  } catch (error) {
    throw source.toProblem(key, `the host of the URL is unknown: ${toMessage(error)}`);
  }
}

/** Returns all strings in a value, at any depth. */
function listStrings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(listStrings);
  return isObject(value) ? Object.values(value).flatMap(listStrings) : [];
}
