/**
 * What a server from config files must be permitted to do, and nothing more.
 *
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";
import { platform } from "../platform.ts";
import type { Permissions } from "../permissions.ts";
import { toProgram } from "./build.ts";
import { isPattern, toBase } from "./glob.ts";
import { readSources, type Source } from "./source.ts";
import { listVariables, toTemplate } from "./template.ts";

/** What a config file needs. */
export interface Needs {
  readonly permissions: Permissions;
  /** Files whose code may need more. */
  readonly modules: readonly string[];
}

/**
 * Lists what the server of a config file needs.
 *
 * @throws {Problem} if the file cannot be used.
 */
export async function listConfigNeeds(file: string, path: string): Promise<Needs> {
  const sources = await readSources(file, path);
  const read = new Set([path]);
  const [run, env, net, modules] = [new Set<string>(), new Set<string>(), new Set<string>(), new Set<string>()];
  for (const source of sources) {
    const { tools = {}, resources = [], prompts = [], instructions } = source.config;
    read.add(source.path);
    const look = async (place: readonly (string | number)[], given: string) => {
      const path = source.locate(place, given);
      read.add(path);
      // Where a link leads is read too.
      read.add(await platform.files.resolve(path) ?? path);
    };
    for (const [name, tool] of Object.entries(tools)) {
      if ("run" in tool) {
        run.add(toProgram(source, name, tool.run[0]));
        env.add("PATH");
        for (const entry of tool.env ?? []) if (!entry.includes("=")) env.add(entry);
        listTexts([tool.run, tool.env, tool.stdin]).flatMap(listVariables).forEach((each) => env.add(each));
      } else {
        listTexts(tool.fetch).flatMap(listVariables).forEach((each) => env.add(each));
        net.add(toHost(source, ["tools", name, "fetch", "url"], tool.fetch.url));
      }
    }
    for (const [i, resource] of resources.entries()) {
      if ("url" in resource) {
        listTexts([resource.url, resource.headers]).flatMap(listVariables).forEach((each) => env.add(each));
        net.add(toHost(source, ["resources", i, "url"], resource.url));
      } else if ("file" in resource) await look(["resources", i, "file"], resource.file);
      else if ("folder" in resource) await look(["resources", i, "folder"], resource.folder);
      else await look(["resources", i, "glob"], toBase(resource.glob));
    }
    for (const [i, given] of prompts.entries()) await look(["prompts", i], isPattern(given) ? toBase(given) : given);
    if (typeof instructions === "object") await look(["instructions", "file"], instructions.file);
    for (const [i, given] of (source.config.modules ?? []).entries()) {
      const module = source.locate(["modules", i], given);
      modules.add(module);
      // The file alone: files that it imports are for the user to name.
      read.add(module);
    }
    listVariables(source.config.secret ?? "").forEach((each) => env.add(each));
  }
  const paths = [...read].filter((path, _, all) => !all.some((each) => path.startsWith(`${each}/`)));
  return { permissions: { read: paths, run: [...run], env: [...env], net: [...net] }, modules: [...modules] };
}

function toHost(source: Source, place: readonly (string | number)[], url: string): string {
  try {
    const text = toTemplate(url, (name) => platform.env(name)).fill(() => "x");
    return toNetAddress(new URL(text));
  } catch (error) {
    const state = error instanceof Error ? error.message : String(error);
    throw source.refuse(place, `the host that it asks cannot be told: ${state}`);
  }
}

/** A host with its port, because without one Deno permits all ports of the host. */
export function toNetAddress({ protocol, hostname, port }: URL): string {
  return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

function listTexts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(listTexts);
  return isObject(value) ? Object.values(value).flatMap(listTexts) : [];
}
