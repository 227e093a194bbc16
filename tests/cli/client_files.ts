// Reads the configuration files of clients as the clients' documentation describes, without code from `mcp install`,
// and starts the listed servers as the clients do.
import { assert, assertEquals } from "@std/assert";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { connect } from "../../src/client/connect.ts";
import { _meta, toRequestLine } from "../support/command_line.ts";

type Fields = Readonly<Record<string, unknown>>;
type Variables = Readonly<Record<string, string>>;

/** The entry for a server in a configuration file. */
export interface FileEntry {
  readonly name: string;
  readonly fields: Fields;
}

/** Reads the only entry under `key`. In a list, the entry contains its name. */
export async function readEntry(path: string, key: string): Promise<FileEntry> {
  const text = await Deno.readTextFile(path);
  const value = path.endsWith(".toml") ? parseToml(text) : path.endsWith(".yaml") ? parseYaml(text) : JSON.parse(text);
  const servers = Object(value)[key];
  const entries = Array.isArray(servers) ? servers.map((each) => [each.name, each]) : Object.entries(servers);
  assertEquals(entries.length, 1);
  const [[name, fields]] = entries;
  return { name, fields: Object(fields) };
}

/**
 * The syntax in which each client's values refer to environment variables. Clients that are not listed do not support
 * references.
 */
const REFERENCES: Readonly<Record<string, RegExp>> = {
  "claude-code": /\$\{(\w+)\}/g,
  "mcp-json": /\$\{(\w+)\}/g,
  gemini: /\$\{?(\w+)\}?/g,
  cursor: /\$\{env:(\w+)\}/g,
  vscode: /\$\{env:(\w+)\}/g,
  windsurf: /\$\{env:(\w+)\}/g,
  opencode: /\{env:(\w+)\}/g,
  copilot: /\$\{(\w+)\}/g,
  qwen: /\$\{?(\w+)\}?/g,
  continue: /\$\{\{ secrets\.(\w+) \}\}/g,
  amp: /\$\{(\w+)\}/g,
};

function expand(client: string, values: unknown, variables: Variables): Record<string, string> {
  const pattern = REFERENCES[client];
  return Object.fromEntries(
    Object.entries(Object(values)).map(([name, value]) => {
      const text = String(value);
      return [name, pattern ? text.replace(pattern, (_, variable) => variables[variable] ?? "") : text];
    }),
  );
}

/** A command with its whole environment. */
interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

/** Clients that call a server which they start "local". */
const LOCAL_CLIENTS = ["opencode", "copilot"];

/** Returns the command with which a client starts the entry. */
function toLaunch(client: string, { fields }: FileEntry, variables: Variables): Launch {
  const { command, cmd, args = [], env, envs, environment, env_vars: inherited = [], type } = fields;
  const types: readonly unknown[] = LOCAL_CLIENTS.includes(client) ? ["local"] : ["stdio", undefined];
  assert(types.includes(type), `${client}: type ${type}`);
  const passed = [inherited].flat().map((name) => [String(name), variables[String(name)] ?? ""]);
  const [program, ...rest] = [client === "goose" ? cmd : command, args].flat(2).map(String);
  return {
    command: program,
    args: rest,
    env: {
      ...Object.fromEntries(passed),
      ...expand(client, client === "goose" ? envs : client === "opencode" ? environment : env, variables),
    },
  };
}

/** Starts a server as a client does, with a minimal environment, and returns the text of a tool's result. */
export async function callStarted(
  client: string,
  entry: FileEntry,
  { variables, cwd, tool }: { readonly variables: Variables; readonly cwd: string; readonly tool: string },
): Promise<string> {
  const { command, args, env } = toLaunch(client, entry, variables);
  const { PATH, HOME } = Deno.env.toObject();
  const child = new Deno.Command(command, {
    // VS Code and Cursor replace this variable with the project's folder.
    args: args.map((arg) => arg.replaceAll("${workspaceFolder}", cwd)),
    cwd,
    clearEnv: true,
    env: { PATH, HOME, ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(toRequestLine("tools/call", { name: tool, _meta })));
  await writer.close();
  const { stdout, stderr } = await child.output();
  const [line] = new TextDecoder().decode(stdout).split("\n");
  assert(line, new TextDecoder().decode(stderr));
  return JSON.parse(line).result.content[0].text;
}

/** Connects to a server as a client does, and returns the text of a tool's result. */
export async function callRemote(
  client: string,
  { fields }: FileEntry,
  { variables, tool }: { readonly variables: Variables; readonly tool: string },
): Promise<string> {
  // Codex has separate keys for values that come from variables.
  const { bearer_token_env_var: token, env_http_headers: referenced, http_headers: literal } = fields;
  const { headers: given = literal } = Object(client === "continue" ? fields.requestOptions : fields);
  const headers: Record<string, string> = {
    ...expand(client, given, variables),
    ...Object.fromEntries(Object.entries(Object(referenced)).map(([name, each]) => [name, variables[String(each)]])),
    ...token !== undefined && { authorization: `Bearer ${variables[String(token)]}` },
  };
  const url = fields.url ?? fields.httpUrl ?? fields.serverUrl ?? fields.uri;
  await using connection = await connect(String(url), { headers });
  const { content } = await connection.callTool(tool);
  return Object(content[0]).text;
}
