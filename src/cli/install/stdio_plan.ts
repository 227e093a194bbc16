/**
 * Plans the installation of a server that the client starts: its command, permissions and environment.
 *
 * @module
 */
import type { Args } from "../args.ts";
import { toEntry, toOwnReads, toShell } from "../command.ts";
import { importModule } from "../lazy_modules.ts";
import { toKind } from "../load.ts";
import { toBaseFolder } from "../../files/glob.ts";
import { isAbsolute, toBaseName, toFolder } from "../../files/path.ts";
import { joinPermissions, KINDS, type Permissions, toDenoFlags } from "../permissions.ts";
import { platform } from "../platform.ts";
import { toName, toTargetUrl } from "../target_url.ts";
import { CliError, UsageError } from "../cli_error.ts";
import { listLocalImports, toConfigFlags } from "./deno_config.ts";
import type { Destination, InstallPlan } from "./plan.ts";

/**
 * The folder in which the check starts the server. Desktop clients start servers in this folder too. Clients of a
 * project start the server in the folder of the project.
 */
const ROOT = platform.toPath("/");

/**
 * Plans an entry with a command.
 *
 * @throws {CliError} if the target does not exist, or a permission or a variable is missing.
 */
export async function planStdio(target: string, destination: Destination, { flags, all }: Args): Promise<InstallPlan> {
  if (all.header) {
    throw new UsageError(`Cannot send headers to ${target}: it is not a URL; remove --header`);
  }
  const kind = await toKind(target);
  const path = toTargetUrl(target).startsWith("file:") ? platform.toPath(target) : target;
  if (kind !== "pattern") await checkTarget(target, path);
  const requirements = await findRequirements(target, path, kind);
  const code = requirements.modules.find(isAbsolute);
  const config = code === undefined ? [] : await toConfigFlags(code);
  const imports = await Promise.all(
    requirements.modules.filter(isAbsolute).map((module) => listLocalImports(module, config)),
  );
  const permissions = toPermissionFlags(target, { flags, all }, {
    ...requirements,
    permissions: joinPermissions(requirements.permissions, { read: imports.flat() }),
  });
  const endpoint = ["server", "param"].flatMap((name) => (all[name] ?? []).flatMap((value) => [`--${name}`, value]));
  const [command, ...args] = [...toCommand(destination, [...config, ...permissions], [path]), ...endpoint];
  const variables = toList(all.env);
  const values = readVariables(variables, destination);
  const env = toEnv(variables, values, destination);
  return {
    toEntry: (name) => destination.client.toStdioEntry({ command, args, ...env && { env } }, name),
    summary: toShell([command, ...args]),
    defaultName: kind === "config" || kind === "pattern" ? toBaseName(toFolder(path)) : toName(path),
    target: { command, args, env: values, cwd: destination.isShared ? undefined : ROOT },
    notes: toNotes(requirements, variables, destination),
  };
}

async function checkTarget(target: string, path: string): Promise<void> {
  if (isAbsolute(path) && !(await platform.files.stat(path))) {
    throw new CliError(`Cannot install ${target}: there is no file ${path}; check the path`);
  }
  if (/^(jsr|npm):/i.test(path) && !/@\d+\.\d+\.\d+[\w.+-]*(\/|$)/.test(path)) {
    throw new CliError(
      `Cannot install ${target}: it has no exact version, so the client would run any later release; ` +
        `write ${target}@1.2.3`,
    );
  }
}

/** The permissions that a target needs. */
interface Requirements {
  readonly permissions: Permissions;
  /** The files with code, whose permissions are unknown. */
  readonly modules: readonly string[];
}

async function findRequirements(
  target: string,
  path: string,
  kind: "folder" | "config" | "module" | "pattern",
): Promise<Requirements> {
  if (kind === "folder") {
    return { permissions: { read: [await platform.files.resolve(path) ?? path] }, modules: [] };
  }
  if (kind === "module") return { permissions: isAbsolute(path) ? { read: [path] } : {}, modules: [path] };
  if (kind === "pattern") {
    const { listHandlerFiles } = await importModule<typeof import("../handler_files.ts")>("./handler_files.ts");
    return { permissions: { read: [toBaseFolder(path)] }, modules: await listHandlerFiles(target) };
  }
  const { findRequiredPermissions } = await importModule<typeof import("../config/required_permissions.ts")>(
    "./config/required_permissions.ts",
  );
  return await findRequiredPermissions(target, path);
}

function toPermissionFlags(
  target: string,
  { flags, all }: Pick<Args, "flags" | "all">,
  { permissions, modules }: Requirements,
): readonly string[] {
  rejectContradiction(flags);
  if (platform.runtime !== "deno") return [];
  if ("allow-all" in flags) return ["-A"];
  // Add these variables, because the server reads the variables that the user passes to it.
  const variables = toList(all.env);
  const kinds = KINDS.filter((kind) => `allow-${kind}` in flags || kind === "env" && variables.length);
  if (modules.length && !kinds.length && !("allow-none" in flags)) {
    throw new UsageError(
      `Cannot install ${target}: it is code, so its permissions are unknown; allow them with ` +
        "--allow-net HOSTS, --allow-env NAMES, --allow-read PATHS and so on, or write --allow-none or -A",
    );
  }
  const allowed = Object.fromEntries(kinds.map((kind) => [
    kind,
    [...toList(all[`allow-${kind}`]), ...kind === "env" ? variables : []],
  ]));
  // Make paths absolute, because the client may start the server in any folder.
  const paths = { read: allowed.read?.map(platform.toPath), write: allowed.write?.map(platform.toPath) };
  const absolute = { ...allowed, ...paths.read && { read: paths.read }, ...paths.write && { write: paths.write } };
  return toDenoFlags(joinPermissions({ read: toOwnReads() }, joinPermissions(permissions, absolute)));
}

function rejectContradiction(flags: Args["flags"]): void {
  const given = ["all", "none", ...KINDS].map((kind) => `allow-${kind}`).filter((name) => name in flags);
  if (given.length < 2 || !/^allow-(all|none)$/.test(given[0])) return;
  throw new UsageError(`Cannot use --${given[0]} with --${given[1]}: they contradict each other; remove one`);
}

/** Splits the values of an option that is a list and may be repeated. */
function toList(values: readonly string[] = []): readonly string[] {
  return [...new Set(values.flatMap((value) => value.split(",")).filter(Boolean))];
}

/** Returns the command that runs the command line with these words, in the environment of a desktop client. */
export function toCommand(
  { isShared }: Destination,
  flags: readonly string[],
  words: readonly string[],
): readonly string[] {
  const [program, ...rest] = platform.toRunner("none");
  // Use the full path of the runtime, because desktop clients are not started by a shell, and have a shorter PATH.
  const command = isShared || rest.includes("-y") ? program : platform.execPath();
  return [command, ...rest, ...flags, toEntry(), ...words];
}

/** Reads environment variables. A variable may be unset if the file contains only a reference to it. */
function readVariables(names: readonly string[], { client, isShared }: Destination): Readonly<Record<string, string>> {
  return Object.fromEntries(names.flatMap((name) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw new UsageError(`Cannot pass ${name}: it is not a variable; write --env with names of variables`);
    }
    const value = platform.env(name);
    if (value !== undefined) return [[name, value]];
    if (isShared && client.toReference) return [];
    throw new CliError(`Cannot pass ${name}: the environment has no such variable; set it first`);
  }));
}

/** Returns the variables of an entry: values in a file of the user, and references in a shared file. */
function toEnv(
  names: readonly string[],
  values: Readonly<Record<string, string>>,
  { client, isShared, file }: Destination,
): Readonly<Record<string, string>> | undefined {
  if (!names.length) return;
  if (!isShared) return values;
  const { toReference } = client;
  if (toReference) return Object.fromEntries(names.map((name) => [name, toReference(name)]));
  throw new CliError(
    `Cannot write ${
      names.join(", ")
    } to ${file}: other users may read the file, and ${client.title} has no references ` +
      "to variables; remove --file",
  );
}

function toNotes({ permissions }: Requirements, variables: readonly string[], { client }: Destination) {
  const others = (permissions.env ?? []).filter((name) => name !== "PATH" && !variables.includes(name));
  return [
    ...platform.runtime === "deno" ? [] : ["Only Deno has permissions: the server can do whatever you can do."],
    ...others.length
      ? [`The server reads ${others.join(", ")}. Pass variables that ${client.title} does not pass on with --env.`]
      : [],
  ];
}
