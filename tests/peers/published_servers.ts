// Ten servers that are published on npm, and the tools that they list. Deno only.
import type { ListedTool } from "../../src/client/client.ts";
import { findPackages } from "../support/npm_packages.ts";
import { startTalk } from "../support/stdio_talk.ts";

/** A published server. */
export interface Published {
  /** Name of the folder in which the server is installed. */
  readonly name: string;
  /** Name and version of the npm package. */
  readonly pinned: string;
  /** File that starts the server, in the folder of the package. */
  readonly file: string;
  readonly args?: readonly string[];
  /** Environment variables, such as the key of a service. No server uses its key before a tool is called. */
  readonly env?: Readonly<Record<string, string>>;
}

export const PUBLISHED: readonly Published[] = [
  {
    name: "everything",
    pinned: "@modelcontextprotocol/server-everything@2026.8.31",
    file: "dist/index.js",
  },
  {
    name: "filesystem",
    pinned: "@modelcontextprotocol/server-filesystem@2026.8.31",
    file: "dist/index.js",
    args: ["."],
  },
  {
    name: "memory",
    pinned: "@modelcontextprotocol/server-memory@2026.8.31",
    file: "dist/index.js",
  },
  {
    name: "sequential-thinking",
    pinned: "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    file: "dist/index.js",
  },
  {
    name: "context7",
    pinned: "@upstash/context7-mcp@4.1.1",
    file: "dist/index.js",
  },
  {
    name: "notion",
    pinned: "@notionhq/notion-mcp-server@2.5.2",
    file: "bin/cli.mjs",
    env: { NOTION_TOKEN: "ntn_none" },
  },
  {
    name: "sentry",
    pinned: "@sentry/mcp-server@0.39.0",
    file: "dist/index.js",
    args: ["--access-token=none", "--all-skills", "--experimental"],
  },
  {
    name: "playwright",
    pinned: "@playwright/mcp@0.0.83",
    file: "cli.js",
    args: ["--caps=vision,pdf,devtools,network,storage,testing,config"],
  },
  {
    name: "firecrawl",
    pinned: "firecrawl-mcp@3.26.0",
    file: "dist/index.js",
    env: { FIRECRAWL_API_KEY: "fc-none" },
  },
  {
    name: "tavily",
    pinned: "tavily-mcp@0.2.22",
    file: "build/index.js",
    env: { TAVILY_API_KEY: "tvly-none" },
  },
];

/** The validator of JSON Schema with which the library is compared. */
const AJV = "ajv@8.20.0";

/** The folders of all packages, or the reason why a package is missing. */
export type FoundServers =
  | { readonly folders: ReadonlyMap<Published, string>; readonly ajv: string }
  | { readonly missing: string };

/** Finds the packages of all servers, or installs them. Each server has a folder, as if it were installed alone. */
export async function findServers(): Promise<FoundServers> {
  const ajv = await findPackages("ajv", [AJV]);
  if ("missing" in ajv) return ajv;
  const folders = new Map<Published, string>();
  for (const server of PUBLISHED) {
    const found = await findPackages(`published-${server.name}`, [server.pinned]);
    if ("missing" in found) return found;
    folders.set(server, found.folder);
  }
  return { folders, ajv: ajv.folder };
}

/** A module that refuses every connection, because the servers must not send the dummy keys to their services. */
const OFFLINE = 'import { Socket } from "node:net"; Socket.prototype.connect = function () {' +
  'queueMicrotask(() => this.destroy(new Error("This test allows no connections"))); return this; };';

/** The capabilities for which the servers list the most tools. */
const CAPABILITIES = { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } };

/**
 * Starts a server in an empty folder, and reads its tools. Reads the lines of the server, because a client might change
 * what the server lists.
 */
export async function readTools(
  { pinned, file, args = [], env = {} }: Published,
  { node, folder }: { readonly node: string; readonly folder: string },
): Promise<readonly ListedTool[]> {
  const home = await Deno.makeTempDir({ prefix: "mcp-published-" });
  try {
    const variables = Object.entries({ HOME: home, PATH: "/usr/bin:/bin", ...env });
    const path = `${folder}/node_modules/${pinned.replace(/@[^@]*$/, "")}/${file}`;
    const words = ["env", "-i", "-C", home, ...variables.map(([name, value]) => `${name}=${value}`), node];
    await using talk = startTalk([...words, "--import", `data:text/javascript,${OFFLINE}`, path, ...args]);
    const send = (message: object) => talk.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const ask = async (id: number, method: string, params: object) => {
      await send({ id, method, params });
      while (true) {
        const message = JSON.parse(await talk.read());
        if (message.id === id && !message.method) return message.result;
      }
    };
    const clientInfo = { name: "published", version: "1.0.0" };
    await ask(1, "initialize", { protocolVersion: "2025-11-25", capabilities: CAPABILITIES, clientInfo });
    await send({ method: "notifications/initialized" });
    const { tools, nextCursor } = await ask(2, "tools/list", {});
    if (nextCursor !== undefined) throw new Error(`${pinned} lists its tools on several pages`);
    return tools;
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}
