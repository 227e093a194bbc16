/**
 * Reads the servers in the configuration of a client: `mcpServers` of Claude Desktop and Claude Code, and `servers` of
 * VS Code.
 */
import { z } from "zod";
import type { EntryTexts } from "./other_servers.ts";
import type { OtherServer } from "./schema.ts";
import { readSource, type Source } from "./source.ts";
import { expandVariables } from "./variables.ts";
import { platform } from "../platform.ts";
import { toMessage } from "../../ready/problem.ts";

const text = z.string().min(1);
const entry = z.looseObject({
  type: text.optional(),
  command: text.optional(),
  args: z.array(z.string()).optional(),
  env: z.record(text, z.string()).optional(),
  cwd: text.optional(),
  envFile: z.unknown().optional(),
  url: text.optional(),
  headers: z.record(text, z.string()).optional(),
  disabled: z.boolean().optional(),
});
const schema = z.looseObject({
  mcpServers: z.record(text, entry).optional(),
  servers: z.record(text, entry).optional(),
});

/** A server in the file. */
export interface ListedServer {
  readonly key: readonly [section: string, name: string];
  readonly entry: OtherServer;
}

export interface ClientFile extends Pick<Source, "path" | "toProblem" | "resolvePath"> {
  readonly servers: readonly ListedServer[];
}

const REMEDY = 'name a file with "mcpServers", as of Claude Desktop and Claude Code, or with "servers", as of VS Code';

/** @throws {CliError} with file, line, column and key if the file or an entry cannot be used. */
export async function readClientFile(file: string, path: string): Promise<ClientFile> {
  const source = await readSource(file, path, schema);
  const sections = (["mcpServers", "servers"] as const).filter((name) => source.config[name]);
  if (!sections.length) throw source.toProblem([], `it lists no servers; ${REMEDY}`);
  const all = sections.flatMap((section) =>
    Object.entries(source.config[section] ?? {}).map(([name, entry]) => ({ key: [section, name] as const, entry }))
  );
  const enabled = all.filter(({ entry }) => entry.disabled !== true);
  const prefixes = choosePrefixes(enabled.map(({ key: [, name] }) => name));
  const servers = enabled.map(({ key, entry }, at) => ({
    key,
    entry: toOther(entry, { prefix: prefixes[at], refuse: (state) => source.toProblem(key, state) }),
  }));
  return { path: source.path, toProblem: source.toProblem, resolvePath: source.resolvePath, servers };
}

function toOther(
  { command, args, env, cwd, url, headers, envFile }: z.infer<typeof entry>,
  { prefix, refuse }: { readonly prefix: string; readonly refuse: (state: string) => Error },
): OtherServer {
  if (envFile !== undefined) {
    throw refuse("envFile is not read, because the gateway reads no other file; write the variables into env");
  }
  if ((command === undefined) === (url === undefined)) {
    throw refuse("it needs either command or url; write one of the two");
  }
  return command === undefined ? { url: `${url}`, headers, prefix } : { command, args, env, cwd, prefix };
}

/** Returns a prefix for each name, none of which begins another one, because a tool's name could belong to both. */
function choosePrefixes(names: readonly string[]): readonly string[] {
  const prefixes: string[] = [];
  for (const name of names) {
    const base = name.replaceAll(/[^\w.-]/g, "_").slice(0, MAX_BASE);
    for (let count = 1;; count++) {
      // With another "_", every prefix for `a_b` would begin with the prefix of `a`.
      const prefix = count === 1 ? `${base}_` : `${base.replaceAll("_", "-")}${count > 2 ? count - 1 : ""}_`;
      if (prefixes.some((each) => each.startsWith(prefix) || prefix.startsWith(each))) continue;
      prefixes.push(prefix);
      break;
    }
  }
  return prefixes;
}

/** Maximum length of a prefix without its number and `_`. */
const MAX_BASE = 24;

/** `names` are the environment variables that the file may use. */
export function toTexts(
  { toProblem, resolvePath }: ClientFile,
  { key }: ListedServer,
  names: readonly string[],
): EntryTexts {
  const readEnv = (name: string) => {
    if (names.includes(name)) return platform.env(name);
    throw new TypeError(`the variable ${name} is not permitted; if the file may read it, add --env ${name}`);
  };
  const expand = (text: string) => {
    try {
      return expandVariables(text, readEnv);
    } catch (error) {
      throw toProblem(key, toMessage(error));
    }
  };
  return { expand, resolveCwd: (path) => resolvePath([...key, "cwd"], path) };
}
