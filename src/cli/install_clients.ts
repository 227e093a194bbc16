/**
 * The programs that start servers, and where each keeps its list of them.
 *
 * @module
 */
import { platform } from "./platform.ts";
import { Problem } from "./problem.ts";

/** How to start a server. */
export interface StartEntry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Where a server runs. */
export interface RemoteEntry {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A program that starts servers, or connects to them. */
export interface InstallClient {
  readonly name: string;
  /** Its name for people. */
  readonly title: string;
  /** Its file of the user, or of the project in the working directory. */
  readonly toFile: () => string;
  /** JSON may have comments. */
  readonly format: "json" | "toml" | "yaml";
  /** The key of the object that holds the servers. */
  readonly holder: string;
  /** Whether the file is one of the project: others read it, and may have programs in other places. */
  readonly isShared: boolean;
  /** How a value of the file refers to a variable of the environment, in clients that read such values. */
  readonly toReference?: (variable: string) => string;
  /** An entry in the form of the client. */
  readonly toStart: (entry: StartEntry, name: string) => object;
  /** An entry for a server at a URL; in clients that take none from their file, what the user does instead. */
  readonly toRemote: string | ((entry: RemoteEntry, name: string) => object);
  /** What the user does next. */
  readonly next: string;
}

const plain = (entry: StartEntry) => entry;
const braces = (variable: string) => `\${${variable}}`;
const bracesOfEnv = (variable: string) => `\${env:${variable}}`;

/** Those that are known, by name. */
export const clients: readonly InstallClient[] = [
  {
    name: "claude-desktop",
    title: "Claude Desktop",
    toFile: () => `${toSettings()}/Claude/claude_desktop_config.json`,
    format: "json",
    holder: "mcpServers",
    isShared: false,
    toStart: plain,
    toRemote: "add the URL in its settings, under Connectors",
    next: "Restart Claude Desktop.",
  },
  {
    name: "claude-code",
    title: "Claude Code",
    toFile: () => platform.toPath(".mcp.json"),
    format: "json",
    holder: "mcpServers",
    isShared: true,
    toReference: braces,
    toStart: plain,
    toRemote: (entry) => ({ type: "http", ...entry }),
    next: "Start `claude` in this folder, and approve the server.",
  },
  {
    name: "cursor",
    title: "Cursor",
    toFile: () => `${toHome()}/.cursor/mcp.json`,
    format: "json",
    holder: "mcpServers",
    isShared: false,
    toReference: bracesOfEnv,
    toStart: plain,
    toRemote: (entry) => entry,
    next: "Cursor lists it in its settings, under MCP.",
  },
  {
    name: "vscode",
    title: "VS Code",
    toFile: () => platform.toPath(".vscode/mcp.json"),
    format: "json",
    holder: "servers",
    isShared: true,
    toReference: bracesOfEnv,
    toStart: (entry) => ({ type: "stdio", ...entry }),
    toRemote: (entry) => ({ type: "http", ...entry }),
    next: "Open this folder in VS Code, and start the server with MCP: List Servers.",
  },
  {
    name: "gemini",
    title: "Gemini CLI",
    toFile: () => `${toHome()}/.gemini/settings.json`,
    format: "json",
    holder: "mcpServers",
    isShared: false,
    toReference: braces,
    toStart: plain,
    toRemote: ({ url, ...more }) => ({ httpUrl: url, ...more }),
    next: "Start `gemini`; /mcp lists the server.",
  },
  {
    name: "windsurf",
    title: "Windsurf",
    toFile: () => `${toHome()}/.codeium/windsurf/mcp_config.json`,
    format: "json",
    holder: "mcpServers",
    isShared: false,
    toReference: bracesOfEnv,
    toStart: plain,
    toRemote: ({ url, ...more }) => ({ serverUrl: url, ...more }),
    next: "Windsurf lists it in its settings, under Cascade; press Refresh there.",
  },
  {
    name: "zed",
    title: "Zed",
    toFile: () =>
      platform.os === "windows" ? `${toFolder("APPDATA")}/Zed/settings.json` : `${toConfigHome()}/zed/settings.json`,
    format: "json",
    holder: "context_servers",
    isShared: false,
    toStart: plain,
    toRemote: (entry) => entry,
    next: "Zed lists it in its Agent panel, under Settings.",
  },
  {
    name: "codex",
    title: "Codex",
    toFile: () => `${platform.env("CODEX_HOME") || `${toHome()}/.codex`}/config.toml`,
    format: "toml",
    holder: "mcp_servers",
    isShared: false,
    toReference: braces,
    toStart: toCodexStart,
    toRemote: toCodexRemote,
    next: "Start `codex`; /mcp lists the server.",
  },
  {
    name: "goose",
    title: "Goose",
    toFile: () =>
      platform.os === "windows"
        ? `${toFolder("APPDATA")}/Block/goose/config/config.yaml`
        : `${toConfigHome()}/goose/config.yaml`,
    format: "yaml",
    holder: "extensions",
    isShared: false,
    toStart: ({ command, args, env = {} }, name) => ({
      ...{ name, type: "stdio", enabled: true, cmd: command, args, envs: env, timeout: GOOSE_SECONDS },
    }),
    toRemote: ({ url, headers = {} }, name) => ({
      ...{ name, type: "streamable_http", enabled: true, uri: url, headers, envs: {}, timeout: GOOSE_SECONDS },
    }),
    next: "Start `goose session`; the server is among its extensions.",
  },
  {
    name: "mcp-json",
    title: "A client that reads mcp.json",
    toFile: () => platform.toPath("mcp.json"),
    format: "json",
    holder: "mcpServers",
    isShared: true,
    toReference: braces,
    toStart: plain,
    toRemote: (entry) => ({ type: "http", ...entry }),
    next: "Show the file to your client.",
  },
];

const GOOSE_SECONDS = 300;

const REFERENCE = /^\$\{(\w+)\}$/;

/** Codex reads variables by their names alone, in lists and tables of their own. */
function toCodexStart({ command, args, env = {} }: StartEntry): object {
  const entries = Object.entries(env);
  const handed = entries.filter(([name, value]) => REFERENCE.exec(value)?.[1] === name).map(([name]) => name);
  const fixed = entries.filter(([name]) => !handed.includes(name));
  return {
    ...{ command, args },
    ...handed.length && { env_vars: handed },
    ...fixed.length && { env: Object.fromEntries(fixed) },
  };
}

function toCodexRemote({ url, headers = {} }: RemoteEntry): object {
  const entries = Object.entries(headers);
  const findSole = (value: string) => REFERENCE.exec(value)?.[1];
  const bearer = entries.find(([name]) => name === "authorization")?.[1];
  const token = /^Bearer \$\{(\w+)\}$/i.exec(bearer ?? "")?.[1];
  const rest = entries.filter(([name]) => token === undefined || name !== "authorization");
  const named = rest.flatMap(([name, value]) => {
    const variable = findSole(value);
    return variable === undefined ? [] : [[name, variable]];
  });
  const fixed = rest.filter(([, value]) => findSole(value) === undefined);
  const mixed = fixed.find(([, value]) => /\$\{\w+\}/.test(value));
  if (mixed) {
    throw new Problem(
      `Cannot install ${url}: Codex takes a variable for the whole of a header or behind "Bearer " only; ` +
        `write the header ${mixed[0]} that way`,
    );
  }
  return {
    url,
    ...token !== undefined && { bearer_token_env_var: token },
    ...named.length && { env_http_headers: Object.fromEntries(named) },
    ...fixed.length && { http_headers: Object.fromEntries(fixed) },
  };
}

function toHome(): string {
  return toFolder(platform.os === "windows" ? "USERPROFILE" : "HOME");
}

function toSettings(): string {
  if (platform.os === "windows") return toFolder("APPDATA");
  return platform.os === "darwin" ? `${toHome()}/Library/Application Support` : toConfigHome();
}

function toConfigHome(): string {
  return platform.env("XDG_CONFIG_HOME") || `${toHome()}/.config`;
}

function toFolder(variable: string): string {
  const folder = platform.env(variable);
  if (folder) return platform.toPath(folder);
  throw new Problem(
    `Cannot find the file of the client: the environment has no ${variable}; name the file with --file`,
  );
}
