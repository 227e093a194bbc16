/**
 * The programs that start servers, and where each keeps its list of them.
 *
 * @module
 */
import { host } from "./host.ts";
import { Problem } from "./problem.ts";

/** How to start a server. */
export interface StartEntry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A program that starts servers. */
export interface StartingClient {
  readonly name: string;
  /** Its name for people. */
  readonly title: string;
  /** Its file of the user, or of the project in the working directory. */
  readonly toFile: () => string;
  /** The key of the object that holds the servers. */
  readonly holder: string;
  /** Whether the file is one of the project: those who share it may have programs in other places. */
  readonly isShared: boolean;
  /** What the user does next. */
  readonly next: string;
}

/** Those that are known, by name. */
export const clients: readonly StartingClient[] = [
  {
    name: "claude-desktop",
    title: "Claude Desktop",
    toFile: () => `${toSettings()}/Claude/claude_desktop_config.json`,
    holder: "mcpServers",
    isShared: false,
    next: "Restart Claude Desktop.",
  },
  {
    name: "claude-code",
    title: "Claude Code",
    toFile: () => host.toPath(".mcp.json"),
    holder: "mcpServers",
    isShared: true,
    next: "Start `claude` in this folder, and approve the server.",
  },
  {
    name: "cursor",
    title: "Cursor",
    toFile: () => `${toHome()}/.cursor/mcp.json`,
    holder: "mcpServers",
    isShared: false,
    next: "Cursor lists it in its settings, under MCP.",
  },
  {
    name: "vscode",
    title: "VS Code",
    toFile: () => host.toPath(".vscode/mcp.json"),
    holder: "servers",
    isShared: true,
    next: "Open this folder in VS Code, and start the server with MCP: List Servers.",
  },
  {
    name: "gemini",
    title: "Gemini CLI",
    toFile: () => `${toHome()}/.gemini/settings.json`,
    holder: "mcpServers",
    isShared: false,
    next: "Start `gemini`; /mcp lists the server.",
  },
];

/** An entry in the form of a client. */
export function toClientEntry({ holder }: StartingClient, entry: StartEntry): object {
  return holder === "servers" ? { type: "stdio", ...entry } : entry;
}

function toHome(): string {
  return toFolder(host.os === "windows" ? "USERPROFILE" : "HOME");
}

function toSettings(): string {
  if (host.os === "windows") return toFolder("APPDATA");
  return host.os === "darwin" ? `${toHome()}/Library/Application Support` : `${toHome()}/.config`;
}

function toFolder(variable: string): string {
  const folder = host.env(variable);
  if (folder) return host.toPath(folder);
  throw new Problem(
    `Cannot find the file of the client: the environment has no ${variable}; name the file with --file`,
  );
}
