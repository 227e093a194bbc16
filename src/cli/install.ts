/**
 * `mcp install`: adds a server to the configuration of a client.
 */
import { toPrintableLine } from "../core/kit/printable.ts";
import { type Args, rejectRest, rejectSecond, toList } from "./args.ts";
import { suggestName } from "./client/name_lookup.ts";
import type { Command, Options } from "./command.ts";
import { ENDPOINT_OPTIONS } from "./endpoint_options.ts";
import { clients, type InstallClient } from "./install/clients.ts";
import { type ConfigChange, prepareChange, writeChange } from "./install/config_file.ts";
import { planHttp } from "./install/http_plan.ts";
import type { Destination, InstallPlan } from "./install/plan.ts";
import { planStdio, readVariables } from "./install/stdio_plan.ts";
import { importModule } from "./lazy_modules.ts";
import { toFolder, toRelativePath } from "../ready/files/path.ts";
import { platform } from "./platform.ts";
import { UsageError } from "./cli_error.ts";

/** Maximum length of an entry's name, in characters. */
const MAX_NAME = 64;

const clientNames = clients.map(({ name }) => name);

const permissionOptions: Options = {
  "allow-read": {
    value: "PATHS",
    isRepeatable: true,
    text: "Files and folders that the server may read",
    completion: "files",
  },
  "allow-write": {
    value: "PATHS",
    isRepeatable: true,
    text: "Files and folders that the server may write",
    completion: "files",
  },
  "allow-net": {
    value: "HOSTS",
    isRepeatable: true,
    text: "Hosts that the server may connect to, such as api.example.com:443",
  },
  "allow-env": { value: "NAMES", isRepeatable: true, text: "Environment variables that the server may read" },
  "allow-run": { value: "PROGRAMS", isRepeatable: true, text: "Programs that the server may run" },
  "allow-sys": {
    value: "NAMES",
    isRepeatable: true,
    text: "System information that the server may read, such as hostname",
  },
  "allow-none": { text: "Grant no permissions except to read the server's file and the files that this file imports" },
  "allow-all": { text: "Grant all permissions; also -A" },
};

export const install: Command = {
  name: "install",
  summary: "Add a server to the configuration of a client",
  usage: ["install [OPTIONS] TARGET --client NAME"],
  description: [
    "TARGET is a file that exports a server, a config file, a folder, or the URL of a running server.",
    "The command starts the server as the client will, or connects to the URL, and lists the tools. Then it writes " +
    "the client's configuration file, and keeps a backup of the previous version.",
    "On Deno, the entry grants only the permissions that a config file or a folder needs. For a file that exports a " +
    "server, set the permissions with the --allow options. Separate values by commas, or repeat the option.",
  ],
  options: {
    client: { value: "NAME", text: `Client to configure: ${clientNames.join(", ")}`, completion: clientNames },
    name: {
      value: "NAME",
      text: "Name of the entry in the configuration file (default: the name that the server reports)",
    },
    env: {
      value: "NAMES",
      isRepeatable: true,
      text:
        "Environment variables to pass to the server; a project's configuration file gets references, a user's file " +
        "gets values",
    },
    header: {
      value: "NAME=VALUE",
      isRepeatable: true,
      text: "HTTP header to send with every request to a URL; ${NAME} is an environment variable; may be repeated",
    },
    bridge: {
      text: "For a URL, write an entry that starts the bridge command, for clients that cannot sign in to the server",
    },
    force: { text: "Replace an existing entry; requires --name" },
    file: {
      value: "FILE",
      text: "Configuration file to change (default: the client's own configuration file)",
      completion: "files",
    },
    "dry-run": { text: "Print the changed file instead of writing it" },
    ...ENDPOINT_OPTIONS,
    "no-check": { text: "Do not start or connect to the server" },
    ...permissionOptions,
  },
  operands: "files",
  examples: [
    "install mcp.jsonc --client claude-desktop",
    "install docs --client cursor --name notes --dry-run",
    "install server.ts --client vscode --allow-net api.example.com:443 --allow-env API_KEY --env API_KEY",
    "install https://mcp.example.com/mcp --client codex --header 'authorization=Bearer ${TOKEN}'",
  ],
  run: installTarget,
};

async function installTarget(args: Args): Promise<void> {
  const { operands: [target], flags } = args;
  rejectRest(args, "install");
  if (target === undefined) {
    throw new UsageError("Cannot install a server: no server is named; name a file, a config file, a folder or a URL");
  }
  rejectSecond(args.operands, { verb: "install", limit: "install takes one target" });
  if ("force" in flags && flags.name === undefined) {
    throw new UsageError(
      "Cannot use --force without --name: the name that the server reports would decide which entry is replaced; " +
        "add --name",
    );
  }
  const destination = findDestination(target, flags);
  const isUrl = /^https?:/i.test(target);
  const plan = isUrl ? await planHttp(target, destination, args) : await planStdio(target, destination, args);
  const loadCheck = () => importModule<typeof import("./install/entry_check.ts")>("./install/entry_check.ts");
  const check = "no-check" in flags ? undefined : await (await loadCheck()).checkEntry(target, plan.target);
  const name = flags.name ?? toEntryName(check?.name) ?? plan.defaultName;
  checkName(target, name);
  const newEntry = { name, entry: plan.toEntry(name), mayReplace: "force" in flags };
  const change = await prepareChange(destination, newEntry);
  await writeEntry({ destination, name, plan, change, isDryRun: "dry-run" in flags });
  if (check) console.error(check.report);
  plan.notes.forEach((note) => console.error(note));
}

/**
 * Checks the client and the variables of an installation that has not begun.
 *
 * @throws {UsageError} if there is no such client.
 * @throws {CliError} if the environment lacks a variable.
 */
export function checkInstallation(target: string, { flags, all }: Pick<Args, "flags" | "all">): void {
  readVariables(toList(all.env), findDestination(target, flags));
}

/** Clients show the name, and some clients use the name as an object key. */
function checkName(target: string, name: string): void {
  const state = !name.trim()
    ? "is empty"
    : name.length > MAX_NAME
    ? `has more than ${MAX_NAME} characters`
    : toPrintableLine(name) !== name || name === "__proto__"
    ? "cannot be a key in the configuration file"
    : undefined;
  if (state !== undefined) {
    throw new UsageError(`Cannot install ${target}: the name ${state}; set another name with --name`);
  }
}

function findDestination(target: string, { client: named, file }: Args["flags"]): Destination {
  const client = findClient(target, named);
  const path = file === undefined ? client.toPath() : platform.toPath(file);
  // Treat a file in the working directory, such as `.cursor/mcp.json`, as part of the project.
  const isInProject = file !== undefined && toRelativePath(platform.toPath("."), path) !== undefined;
  const isShared = client.isShared || isInProject;
  return { client, file: path, isShared, ...isShared && { project: toProject(path) } };
}

/** Returns the folder to which a client's file belongs: for `.cursor/mcp.json`, the folder that contains `.cursor`. */
function toProject(path: string): string {
  const folder = toFolder(path);
  // The project's own name can begin with a dot.
  return folder === platform.toPath(".") ? folder : folder.replace(/(?<=.)\/\.[^/]*$/, "");
}

function findClient(target: string, named: string | undefined): InstallClient {
  const found = clients.find(({ name }) => name === named);
  if (found) return found;
  const state = named === undefined ? "no client is named" : `there is no client ${named}`;
  const remedy = suggestName(named ?? "", clientNames, `add --client with ${clientNames.join(", ")}`);
  throw new UsageError(`Cannot install ${target}: ${state}; ${remedy}`);
}

/** Replaces characters that are not allowed in a key, because clients build tool names from the key. */
function toEntryName(name: string | undefined): string | undefined {
  // Shorten the name before the pattern that takes quadratic time, because a URL can contain a long name.
  const start = name?.trim().replace(/[^\w.-]+/g, "-").replace(/^[-.]+/, "").slice(0, MAX_NAME);
  const plain = start?.replace(/[-.]+$/, "");
  return plain || undefined;
}

interface Write {
  readonly destination: Destination;
  readonly name: string;
  readonly plan: InstallPlan;
  readonly change: ConfigChange;
  readonly isDryRun: boolean;
}

async function writeEntry({ destination, name, plan, change, isDryRun }: Write): Promise<void> {
  const { client: { title, nextStep }, file } = destination;
  const isUrl = "url" in plan.target;
  if (isDryRun) {
    const action = isUrl ? "connect to" : "start the server with";
    console.error(`${file} would contain the following. ${title} would ${action}\n\n  ${plan.summary}\n`);
    console.log(change.after.trimEnd());
    return;
  }
  if (change.after === change.before) return console.error(`${file} already contains ${name}.`);
  const backup = await writeChange(change);
  const backupNote = backup === undefined ? "" : ` The previous version is in ${backup}.`;
  const action = isUrl ? "connects to" : "starts the server with";
  const done = change.isReplacement ? `Replaced ${name} in ${file}.` : `Added ${name} to ${file}.`;
  console.error(`${done}${backupNote} ${title} ${action}\n\n  ${plan.summary}\n\n${nextStep}`);
}
