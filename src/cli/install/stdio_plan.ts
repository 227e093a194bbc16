/**
 * Plans the installation of a server that the client starts. The plan contains the server's command, permissions and
 * environment.
 */
import { type Args, toList } from "../args.ts";
import { isInCache, toEntry, toOwnReads, toProgram, toShell } from "../command.ts";
import type { RequiredPermissions } from "../config/required_permissions.ts";
import { importModule } from "../lazy_modules.ts";
import { toKind } from "../load.ts";
import { toBaseFolder } from "../../ready/files/glob.ts";
import { isAbsolute, toBaseName, toFolder, toRelativePath } from "../../ready/files/path.ts";
import { joinPermissions, KINDS, toDenoFlags } from "../permissions.ts";
import { platform } from "../platform.ts";
import { toName, toTargetUrl } from "../target_url.ts";
import { CliError, UsageError } from "../cli_error.ts";
import { listLocalImports, toConfigFlags } from "./deno_config.ts";
import type { Destination, InstallPlan } from "./plan.ts";

/**
 * The folder in which the check starts the server. Desktop clients also start servers in this folder. Clients that are
 * configured per project start servers in the project's folder instead.
 */
const ROOT = platform.toPath("/");

/** @throws {CliError} if the target does not exist, or if the user must still set permissions or a variable. */
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
  const given = await toPortable(args, destination);
  const variables = toList(all.env);
  const values = readVariables(variables, destination);
  const env = toEnv(variables, values, destination);
  return {
    toEntry: (name) => destination.client.toStdioEntry({ command, args: given, ...env && { env } }, name),
    summary: toShell([command, ...given]),
    defaultName: kind === "config" || kind === "pattern" ? toBaseName(toFolder(path)) : toName(path),
    target: { command, args, env: values, cwd: destination.isShared ? destination.project : ROOT },
    notes: toNotes(requirements, variables, destination),
  };
}

async function checkTarget(target: string, path: string): Promise<void> {
  if (isAbsolute(path) && !(await platform.files.stat(path))) {
    throw new CliError(`Cannot install ${target}: there is no file ${path}; check the path`);
  }
  if (/^(jsr|npm):/i.test(path) && !/@\d+\.\d+\.\d+[\w.+-]*(\/|$)/.test(path)) {
    throw new CliError(
      `Cannot install ${target}: it has no exact version, so the client would run the newest release at each start; ` +
        `write ${target}@1.2.3`,
    );
  }
}

async function findRequirements(
  target: string,
  path: string,
  kind: "folder" | "config" | "module" | "pattern",
): Promise<RequiredPermissions> {
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
  { permissions, modules }: RequiredPermissions,
): readonly string[] {
  rejectContradiction(flags);
  if (platform.runtime !== "deno") return [];
  if ("allow-all" in flags) return ["-A"];
  // Allow these variables, because the server must be able to read the variables that the user passes.
  const variables = toList(all.env);
  const kinds = KINDS.filter((kind) => `allow-${kind}` in flags || kind === "env" && variables.length);
  if (modules.length && !kinds.length && !("allow-none" in flags)) {
    throw new UsageError(
      `Cannot install ${target}: it contains code, so the required permissions are unknown; set the permissions with ` +
        "--allow-net HOSTS, --allow-env NAMES, --allow-read PATHS and so on, or write --allow-none or -A",
    );
  }
  const allowed = Object.fromEntries(kinds.map((kind) => [
    kind,
    [...toList(all[`allow-${kind}`]), ...kind === "env" ? variables : []],
  ]));
  // Make paths absolute, because a client can start the server in any folder.
  const paths = { read: allowed.read?.map(platform.toPath), write: allowed.write?.map(platform.toPath) };
  const absolute = { ...allowed, ...paths.read && { read: paths.read }, ...paths.write && { write: paths.write } };
  return toDenoFlags(joinPermissions({ read: toOwnReads() }, joinPermissions(permissions, absolute)));
}

function rejectContradiction(flags: Args["flags"]): void {
  const given = ["all", "none", ...KINDS].map((kind) => `allow-${kind}`).filter((name) => name in flags);
  if (given.length < 2 || !/^allow-(all|none)$/.test(given[0])) return;
  throw new UsageError(
    `Cannot use --${given[0]} with --${given[1]}: the options contradict each other; remove one of the two`,
  );
}

/**
 * Returns the command that runs the CLI with these words, for the environment of a desktop client. A program from a
 * cache is downloaded again if necessary, in the same version.
 */
export function toCommand(
  { isShared }: Destination,
  flags: readonly string[],
  words: readonly string[],
): readonly string[] {
  if (platform.runtime !== "deno" && isInCache()) return [...toProgram(), ...words];
  const [program, ...rest] = platform.toRunner("none");
  // Use the full path of the runtime, because desktop clients are not started by a shell, so their PATH is shorter.
  const command = isShared || rest.includes("-y") ? program : platform.execPath();
  return [command, ...rest, ...flags, toEntry(), ...words];
}

/**
 * Replaces paths in the project with paths that are valid wherever another user has the project. Also replaces paths in
 * lists, such as `--allow-read=/home/me/project/docs,/tmp`.
 */
export async function toPortable(
  args: readonly string[],
  { client: { toProjectPath }, project }: Destination,
): Promise<readonly string[]> {
  if (project === undefined || !toProjectPath) return args;
  const folders = [project, await platform.files.resolve(project) ?? project];
  const toShown = (path: string) => {
    const inside = folders.map((folder) => isAbsolute(path) ? toRelativePath(folder, path) : undefined)
      .find((relative) => relative !== undefined);
    return inside === undefined ? path : toProjectPath(inside);
  };
  return args.map((arg) => arg.replace(/[^=,]+/g, toShown));
}

/** Reads environment variables. A variable may be unset if the file contains only a reference to the variable. */
export function readVariables(
  names: readonly string[],
  { client, isShared }: Destination,
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.flatMap((name) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw new UsageError(
        `Cannot pass ${name}: it is not the name of an environment variable; write a name such as API_KEY`,
      );
    }
    const value = platform.env(name);
    if (value !== undefined) return [[name, value]];
    if (isShared && client.toReference) return [];
    throw new CliError(`Cannot pass ${name}: the environment has no such variable; set it first`);
  }));
}

/** Returns the variables for an entry: values in a user's file, and references in a shared file. */
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
    } to ${file}: other users may read the file, and ${client.title} does not support references ` +
      "to environment variables; omit --file to write to your own configuration",
  );
}

function toNotes({ permissions }: RequiredPermissions, variables: readonly string[], { client }: Destination) {
  const others = (permissions.env ?? []).filter((name) => name !== "PATH" && !variables.includes(name));
  return [
    ...platform.runtime === "deno"
      ? []
      : ["This runtime does not restrict permissions, so the server can do whatever you can do."],
    ...others.length
      ? [`The server reads ${others.join(", ")}. If ${client.title} does not pass on a variable, pass it with --env.`]
      : [],
  ];
}
