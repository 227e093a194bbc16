/**
 * `mcp gateway`: serves the servers in the configuration of a client as one server.
 */
import { health } from "../observe/observe.ts";
import { createServer } from "../library.ts";
import { type Args, rejectRest, rejectSecond, toList } from "./args.ts";
import { CliError, UsageError, withAction } from "./cli_error.ts";
import type { Command } from "./command.ts";
import { toProxy } from "./config/other_servers.ts";
import { type ClientFile, readClientFile, toTexts } from "./config/client_file.ts";
import { followLauncher, isUnlimited, runLimited } from "./gateway/limited_run.ts";
import { checkServers, type Loaded, type LoadOptions } from "./loaded.ts";
import { platform } from "./platform.ts";
import { toMessage } from "../ready/problem.ts";
import { toolSearch } from "../ready/search/search.ts";
import { SERVE_OPTIONS, serveLoaded } from "./serve.ts";
import { VERSION } from "./version.ts";

export const gateway: Command = {
  name: "gateway",
  summary: "Serve the servers in a client's configuration as one server",
  usage: ["gateway [OPTIONS] FILE"],
  description: [
    'FILE lists servers as "mcpServers", as the files of Claude Desktop and Claude Code, or as "servers", as those of ' +
    "VS Code. The names of a server's tools and prompts begin with its name in the file. The command reads no other " +
    "file, and ${NAME} stands only for variables that --env names.",
    "Servers that require a sign-in use the tokens of mcp login. On Deno, the command can start only the programs, and " +
    "reach only the hosts, that the file names.",
  ],
  options: {
    env: {
      value: "NAMES",
      isRepeatable: true,
      text: "Environment variables that the file may use, separated by commas; may be repeated",
    },
    lock: {
      value: "FILE",
      text: "Lock file of mcp lock; entries that are new or have changed are not served",
      completion: "files",
    },
    search: { text: "Let clients search for tools instead of listing all of them" },
    ...SERVE_OPTIONS,
  },
  operands: "files",
  examples: ["gateway .mcp.json --env GITHUB_TOKEN", "gateway .vscode/mcp.json --search --http --port 8080"],
  run: serveGateway,
};

async function serveGateway(args: Args): Promise<number | void> {
  const { operands, flags, all } = args;
  const [file] = operands;
  if (file === undefined) throw new UsageError("Cannot serve a gateway: no file is named; write gateway FILE");
  rejectSecond(operands, { verb: "serve", limit: "gateway takes one file" });
  rejectRest(args, "gateway");
  const names = toList(all.env);
  const found = await readClientFile(file, platform.toPath(file));
  const lock = flags.lock === undefined ? undefined : platform.toPath(flags.lock);
  const open = (options: LoadOptions = {}) =>
    withAction(`Cannot use ${file}`, () => load(found, { ...options, names, search: "search" in flags, lock }));
  if (isUnlimited()) {
    // Find all mistakes in the file before starting another process.
    await (await open()).server.close();
    return await runLimited(args, found, (server) => toTexts(found, server, names));
  }
  followLauncher();
  await serveLoaded(args, async (options) => {
    const loaded = await open(options);
    const own = [
      ...names.flatMap((name) => ["--env", name]),
      ...lock === undefined ? [] : ["--lock", lock],
      ..."search" in flags ? ["--search"] : [],
    ];
    return { target: file, loaded, command: ["gateway", ...own] };
  });
}

interface GatewayOptions extends LoadOptions {
  /** The names of the variables that the file may use. */
  readonly names: readonly string[];
  readonly search: boolean;
  readonly lock?: string;
}

function load(found: ClientFile, options: GatewayOptions): Loaded {
  const { servers, path } = found;
  const { names, isHttp = false, search, lock } = options;
  checkServers(servers.map(({ key: [, name] }) => name), options);
  const proxies = servers.map((server) => {
    const { entry, key: [, name] } = server;
    try {
      return toProxy(name, entry, { ...toTexts(found, server, names), isHttp, lock });
    } catch (error) {
      throw error instanceof CliError ? error : found.toProblem(server.key, toMessage(error));
    }
  });
  const handlers = [...proxies, ...search ? [toolSearch()] : []];
  const server = createServer({ name: "gateway", version: VERSION, handlers, routes: [health({ details: "all" })] });
  return { server, files: [path] };
}
