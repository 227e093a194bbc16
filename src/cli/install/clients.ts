/**
 * The clients that `mcp install` supports, and the format of each client's configuration.
 */
import { platform } from "../platform.ts";
import { CliError } from "../cli_error.ts";

/** A server that the client starts as a process. */
export interface StdioServer {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface HttpServer {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface InstallClient {
  readonly name: string;
  /** The product name. */
  readonly title: string;
  /** Returns the path of the configuration file, of the user or of the project in the working directory. */
  readonly toPath: () => string;
  /** The format of the file. JSON may contain comments. */
  readonly format: "json" | "toml" | "yaml";
  /** The key of the object that contains the servers. */
  readonly serversKey: string;
  /**
   * Whether the servers are a list instead of an object. An entry in a list contains its name as `name`. Only YAML
   * files contain lists.
   */
  readonly isList?: boolean;
  /** Members that the client requires in the file in addition to the servers. A new file gets them. */
  readonly required?: Readonly<Record<string, string>>;
  /**
   * Whether the file belongs to the project. Other users share such a file, and may have installed programs at
   * different paths.
   */
  readonly isShared: boolean;
  /**
   * Returns the name of a file or folder of the project, such as `./server.ts`, for an entry in the project's file.
   * `path` is relative to the project's folder. `undefined` if it is not known in which folder the client starts
   * servers.
   */
  readonly toProjectPath?: (path: string) => string;
  /** Returns a reference to an environment variable. `undefined` if the client does not expand references. */
  readonly toReference?: (variable: string) => string;
  /** Returns the entry for a server that the client starts. */
  readonly toStdioEntry: (server: StdioServer, name: string) => object;
  /** Returns the entry for a server at a URL. If missing, `install` writes an entry that starts the bridge. */
  readonly toHttpEntry?: (server: HttpServer, name: string) => object;
  /** What the user should do after the installation, as a sentence. */
  readonly nextStep: string;
}

const toDotPath = (path: string) => path && `./${path}` || ".";
const toWorkspacePath = (path: string) => `\${workspaceFolder}${path && `/${path}`}`;
const toShellReference = (variable: string) => `\${${variable}}`;
const toEnvReference = (variable: string) => `\${env:${variable}}`;
const withHttpType = (server: HttpServer) => ({ type: "http", ...server });
const toHttpUrlEntry = ({ url, ...more }: HttpServer) => ({ httpUrl: url, ...more });

/** Clients whose configuration is the user's JSON file. An entry has only `command`, `args` and `env`. */
const userJson = {
  format: "json",
  serversKey: "mcpServers",
  isShared: false,
  toStdioEntry: (server: StdioServer) => server,
} as const;

/** Properties of clients whose configuration is a JSON file in the project. */
const projectJson = {
  ...userJson,
  isShared: true,
  toReference: toShellReference,
  toHttpEntry: withHttpType,
} as const;

const GOOSE_TIMEOUT_SECONDS = 300;

export const clients: readonly InstallClient[] = [
  {
    ...userJson,
    name: "claude-desktop",
    title: "Claude Desktop",
    toPath: () => `${toDesktopSettings()}/Claude/claude_desktop_config.json`,
    nextStep: "Restart Claude Desktop.",
  },
  {
    ...projectJson,
    name: "claude-code",
    title: "Claude Code",
    toPath: () => platform.toPath(".mcp.json"),
    toProjectPath: toDotPath,
    nextStep: "Start `claude` in this folder, and approve the server.",
  },
  {
    ...userJson,
    name: "cursor",
    title: "Cursor",
    toPath: () => `${toHome()}/.cursor/mcp.json`,
    toProjectPath: toWorkspacePath,
    toReference: toEnvReference,
    toHttpEntry: (server) => server,
    nextStep: "Cursor lists the server in its settings, under MCP.",
  },
  {
    ...projectJson,
    name: "vscode",
    title: "VS Code",
    toPath: () => platform.toPath(".vscode/mcp.json"),
    toProjectPath: toWorkspacePath,
    serversKey: "servers",
    toReference: toEnvReference,
    toStdioEntry: (server) => ({ type: "stdio", ...server }),
    nextStep: "Open this folder in VS Code, and start the server with MCP: List Servers.",
  },
  {
    ...userJson,
    name: "gemini",
    title: "Gemini CLI",
    toPath: () => `${toHome()}/.gemini/settings.json`,
    toReference: toShellReference,
    toHttpEntry: toHttpUrlEntry,
    nextStep: "Start `gemini`; /mcp lists the server.",
  },
  {
    ...userJson,
    name: "windsurf",
    title: "Windsurf",
    toPath: () => `${toHome()}/.codeium/windsurf/mcp_config.json`,
    toReference: toEnvReference,
    toHttpEntry: ({ url, ...more }) => ({ serverUrl: url, ...more }),
    nextStep: "Windsurf lists the server in its settings, under Cascade; press Refresh there.",
  },
  {
    ...userJson,
    name: "zed",
    title: "Zed",
    toPath: () =>
      platform.os === "windows" ? `${toAppData()}/Zed/settings.json` : `${toConfigHome()}/zed/settings.json`,
    serversKey: "context_servers",
    toHttpEntry: (server) => server,
    nextStep: "Zed lists the server in its Agent panel, under Settings.",
  },
  {
    name: "codex",
    title: "Codex",
    toPath: () => `${platform.env("CODEX_HOME") || `${toHome()}/.codex`}/config.toml`,
    format: "toml",
    serversKey: "mcp_servers",
    isShared: false,
    toReference: toShellReference,
    toStdioEntry: toCodexStdioEntry,
    toHttpEntry: toCodexHttpEntry,
    nextStep: "Start `codex`; /mcp lists the server.",
  },
  {
    name: "goose",
    title: "Goose",
    toPath: () =>
      platform.os === "windows"
        ? `${toAppData()}/Block/goose/config/config.yaml`
        : `${toConfigHome()}/goose/config.yaml`,
    format: "yaml",
    serversKey: "extensions",
    isShared: false,
    toStdioEntry: ({ command, args, env = {} }, name) => ({
      ...{ name, type: "stdio", enabled: true, cmd: command, args, envs: env, timeout: GOOSE_TIMEOUT_SECONDS },
    }),
    toHttpEntry: ({ url, headers = {} }, name) => ({
      ...{ name, type: "streamable_http", enabled: true, uri: url, headers, envs: {}, timeout: GOOSE_TIMEOUT_SECONDS },
    }),
    nextStep: "Start `goose session`; the server is among its extensions.",
  },
  {
    ...userJson,
    name: "opencode",
    title: "opencode",
    toPath: () => `${toConfigHome()}/opencode/opencode.json`,
    toProjectPath: toDotPath,
    serversKey: "mcp",
    toReference: (variable) => `{env:${variable}}`,
    toStdioEntry: ({ command, args, env }) => ({
      ...{ type: "local", command: [command, ...args] },
      ...env && { environment: env },
    }),
    toHttpEntry: (server) => ({ type: "remote", ...server }),
    nextStep: "Run `opencode mcp list` to see whether opencode connects to the server.",
  },
  {
    ...userJson,
    name: "copilot",
    title: "Copilot CLI",
    toPath: () => `${platform.env("COPILOT_HOME") || `${toHome()}/.copilot`}/mcp-config.json`,
    toReference: toShellReference,
    toStdioEntry: (server) => ({ type: "local", ...server, tools: ["*"] }),
    toHttpEntry: (server) => ({ ...withHttpType(server), tools: ["*"] }),
    nextStep: "Start `copilot`; /mcp lists the server.",
  },
  {
    ...userJson,
    name: "qwen",
    title: "Qwen Code",
    toPath: () => `${platform.env("QWEN_HOME") || `${toHome()}/.qwen`}/settings.json`,
    toReference: toShellReference,
    toHttpEntry: toHttpUrlEntry,
    nextStep: "Start `qwen`; /mcp lists the server.",
  },
  {
    ...userJson,
    name: "cline",
    title: "Cline CLI",
    toPath: toClinePath,
    toHttpEntry: (server) => ({ type: "streamableHttp", ...server }),
    nextStep: "Run `cline config mcp --json` to list the servers of Cline.",
  },
  {
    name: "continue",
    title: "Continue",
    toPath: () => `${platform.env("CONTINUE_GLOBAL_DIR") || `${toHome()}/.continue`}/config.yaml`,
    format: "yaml",
    serversKey: "mcpServers",
    isList: true,
    required: { name: "Local config", version: "1.0.0", schema: "v1" },
    isShared: false,
    toReference: (variable) => `\${{ secrets.${variable} }}`,
    toStdioEntry: (server, name) => ({ name, type: "stdio", ...server }),
    toHttpEntry: ({ url, headers }, name) => ({
      ...{ name, type: "streamable-http", url },
      ...headers && { requestOptions: { headers } },
    }),
    nextStep:
      "Start `cn`; /mcp lists the server. Continue omits the server's name from the names of tools, so the tools " +
      "of two servers must have different names.",
  },
  {
    ...userJson,
    name: "amp",
    title: "Amp",
    toPath: () => `${toConfigHome()}/amp/settings.json`,
    serversKey: "amp.mcpServers",
    toReference: toShellReference,
    toHttpEntry: (server) => server,
    nextStep: "Run `amp mcp doctor` to see whether Amp connects to the server.",
  },
  {
    ...projectJson,
    name: "mcp-json",
    title: "Any client that reads mcp.json",
    toPath: () => platform.toPath("mcp.json"),
    nextStep: "Select the file in your client.",
  },
];

function toHome(): string {
  return readFolder(platform.os === "windows" ? "USERPROFILE" : "HOME");
}

function toAppData(): string {
  return readFolder("APPDATA");
}

/** Returns the folder for settings of desktop applications. */
function toDesktopSettings(): string {
  if (platform.os === "windows") return toAppData();
  return platform.os === "darwin" ? `${toHome()}/Library/Application Support` : toConfigHome();
}

/** Returns the folder for settings of command-line programs. */
function toConfigHome(): string {
  return platform.env("XDG_CONFIG_HOME") || `${toHome()}/.config`;
}

/** Returns the path of Cline's file, which Cline's variables can move. */
function toClinePath(): string {
  const file = platform.env("CLINE_MCP_SETTINGS_PATH");
  if (file) return file;
  const data = platform.env("CLINE_DATA_DIR") || `${platform.env("CLINE_DIR") || `${toHome()}/.cline`}/data`;
  return `${data}/settings/cline_mcp_settings.json`;
}

function readFolder(variable: string): string {
  const folder = platform.env(variable);
  if (folder) return platform.toPath(folder);
  throw new CliError(
    `Cannot find the client's configuration file: the environment variable ${variable} is not set; name the file ` +
      "with --file",
  );
}

const REFERENCE = /^\$\{(\w+)\}$/;

function toCodexStdioEntry({ command, args, env = {} }: StdioServer): object {
  const entries = Object.entries(env);
  const inherited = entries.filter(([name, value]) => findVariable(value) === name).map(([name]) => name);
  const literal = entries.filter(([name]) => !inherited.includes(name));
  return {
    ...{ command, args },
    ...inherited.length && { env_vars: inherited },
    ...literal.length && { env: Object.fromEntries(literal) },
  };
}

function toCodexHttpEntry({ url, headers = {} }: HttpServer): object {
  const entries = Object.entries(headers);
  const authorization = entries.find(([name]) => name === "authorization")?.[1];
  const token = /^Bearer \$\{(\w+)\}$/i.exec(authorization ?? "")?.[1];
  const others = entries.filter(([name]) => token === undefined || name !== "authorization");
  const references = others.flatMap(([name, value]) => {
    const variable = findVariable(value);
    return variable === undefined ? [] : [[name, variable]];
  });
  const literal = others.filter(([, value]) => findVariable(value) === undefined);
  const mixed = literal.find(([, value]) => /\$\{\w+\}/.test(value));
  if (mixed) {
    throw new CliError(
      `Cannot install ${url}: in Codex, a variable must be the whole value of a header, or follow "Bearer "; ` +
        `change the value of the header ${mixed[0]}`,
    );
  }
  return {
    url,
    ...token !== undefined && { bearer_token_env_var: token },
    ...references.length && { env_http_headers: Object.fromEntries(references) },
    ...literal.length && { http_headers: Object.fromEntries(literal) },
  };
}

/** Returns the variable's name if a value is a single reference, or else `undefined`. */
function findVariable(value: string): string | undefined {
  return REFERENCE.exec(value)?.[1];
}
