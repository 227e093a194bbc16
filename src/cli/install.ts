/**
 * `mcp install target --client name`: puts a server into the list of a program that starts servers.
 *
 * @module
 */
import type { Args } from "./args.ts";
import { clients, type StartEntry, type StartingClient, toClientEntry } from "./clients.ts";
import { type Command, toEntry, toOwnReads, toShell } from "./command.ts";
import { host } from "./host.ts";
import { type FileFacts, isCoded } from "./host_files.ts";
import { toKind, toName, toTargetUrl } from "./load.ts";
import { findNear } from "./near.ts";
import { importPart } from "./parts.ts";
import { isAbsolute, toBaseName, toFolder } from "./path.ts";
import { joinPermissions, KINDS, type Permissions, toFlags } from "./permissions.ts";
import { Problem } from "./problem.ts";

/** Installs a server. */
export const install: Command = {
  name: "install",
  summary: "Put a server into the configuration of a client, with the least permissions",
  usage: `install target --client ${clients.map(({ name }) => name).join("|")}
          [--name N] [--env A,B] [--file F] [--dry-run] [--allow-read P,… --allow-net H,… and so on]

For a config file or a folder the permissions are found out. For a file that exports a server name them:

--allow-read P, --allow-write P, --allow-net H, --allow-env N, --allow-run P, --allow-sys N
             what Deno lets it do, each a list with commas; a config file gets these beside its own
--allow-none nothing beside reading the folder of the file
--allow-all  everything
--name N     its name in the list; that of the file or folder if nothing is said
--env A,B    variables of the environment that are written into the entry, with the values they have now
--file F     the file to change, in place of the client's own
--dry-run    print what the file would be, and change nothing

For example:
  install mcp.jsonc --client claude-desktop
  install docs --client cursor --name notes --dry-run
  install server.ts --client vscode --allow-net api.example.com --allow-env API_KEY`,
  flags: {
    client: true,
    name: true,
    env: true,
    file: true,
    "dry-run": false,
    "allow-all": false,
    "allow-none": false,
    ...Object.fromEntries(KINDS.map((kind) => [`allow-${kind}`, true])),
  },
  offers: {
    operands: "files",
    flags: { client: clients.map(({ name }) => name), file: "files", "allow-read": "files", "allow-write": "files" },
  },
  run: installTarget,
};

async function installTarget({ operands, flags }: Args): Promise<void> {
  const [target, extra] = operands;
  if (target === undefined) throw new Problem("Cannot install a server: name its file, config file or folder");
  if (extra !== undefined) throw new Problem(`Cannot install ${extra} beside ${target}: name one target`);
  const client = clients.find(({ name }) => name === flags.client);
  if (!client) {
    const names = clients.map(({ name }) => name);
    const state = flags.client === undefined ? "no client is named" : `there is no client ${flags.client}`;
    const near = flags.client === undefined ? undefined : findNear(flags.client, names);
    const hint = near === undefined ? `add --client with ${names.join(", ")}` : `did you mean ${near}?`;
    throw new Problem(`Cannot install ${target}: ${state}; ${hint}`);
  }
  const kind = await toKind(target);
  const path = toTargetUrl(target).startsWith("file:") ? host.toPath(target) : target;
  if (isAbsolute(path) && !(await host.files.look(path))) {
    throw new Problem(`Cannot install ${target}: there is no file ${path}; check the path`);
  }
  const needed = await listNeeds(target, path, kind);
  const [command, ...args] = toWords(client, toPermissionFlags(target, flags, needed), path);
  const env = toEnv(flags.env);
  const entry: StartEntry = { command, args, ...env && { env } };
  const name = flags.name ?? (kind === "config" ? toBaseName(toFolder(path)) : toName(path));
  await change(client, name, entry, flags);
  if (host.runtime === "bun") console.error("Bun has no permissions: the server may do whatever you may.");
  const open = (needed.permissions.env ?? []).filter((name) => name !== "PATH" && !(env && name in env));
  if (open.length) {
    console.error(
      `It reads ${open.join(", ")} of the environment. What ${client.title} does not hand on, --env writes down.`,
    );
  }
}

/** What a target needs, and whether that is all: code may need more. */
interface Needed {
  readonly permissions: Permissions;
  readonly isComplete: boolean;
}

async function listNeeds(target: string, path: string, kind: "folder" | "config" | "module"): Promise<Needed> {
  if (kind === "folder") {
    return { permissions: { read: [await host.files.resolve(path) ?? path] }, isComplete: true };
  }
  if (kind === "module") return { permissions: isAbsolute(path) ? { read: [toFolder(path)] } : {}, isComplete: false };
  const { listConfigNeeds } = await importPart("./config/needs.ts");
  const { permissions, modules } = await listConfigNeeds(target, path);
  return { permissions, isComplete: !modules.length };
}

function toPermissionFlags(
  target: string,
  flags: Args["flags"],
  { permissions, isComplete }: Needed,
): readonly string[] {
  if (host.runtime === "bun") return [];
  if ("allow-all" in flags) return ["-A"];
  const named = KINDS.filter((kind) => `allow-${kind}` in flags);
  if (!isComplete && !named.length && !("allow-none" in flags)) {
    throw new Problem(
      `Cannot install ${target}: it is code, and what code needs cannot be seen from outside; name it with ` +
        "--allow-net HOST, --allow-env NAME, --allow-read PATH and so on, or write --allow-none",
    );
  }
  const given = Object.fromEntries(named.map((kind) => [kind, flags[`allow-${kind}`].split(",").filter(Boolean)]));
  return toFlags(joinPermissions({ read: toOwnReads() }, joinPermissions(permissions, given)));
}

function toWords(client: StartingClient, permissions: readonly string[], path: string): readonly string[] {
  const [program, ...rest] = host.toRunner("none");
  // Programs with windows are not started by a shell, and find less in PATH.
  const command = client.isShared || rest.includes("-y") ? program : host.execPath();
  return [command, ...rest, ...permissions, toEntry(), path];
}

function toEnv(names: string | undefined): Record<string, string> | undefined {
  if (names === undefined) return;
  return Object.fromEntries(
    names.split(",").filter(Boolean).map((name) => {
      const value = host.env(name);
      if (value === undefined) throw new Problem(`Cannot write ${name} down: the environment has none; set it first`);
      return [name, value];
    }),
  );
}

async function change(client: StartingClient, name: string, entry: StartEntry, flags: Args["flags"]): Promise<void> {
  const { setEntry } = await importPart("./jsonc_edit.ts");
  const file = flags.file === undefined ? client.toFile() : host.toPath(flags.file);
  const facts = await host.files.look(file);
  if (facts && facts.kind !== "file") {
    throw new Problem(`Cannot change ${file}: it is no regular file; name one with --file`);
  }
  const before = facts ? readText(file, await host.files.read(file, MOST_BYTES + 1)) : "";
  const after = setEntry(before, toClientEntry(client, entry), { file, path: [client.holder, name] });
  const shown = `  ${toShell([entry.command, ...entry.args])}`;
  if ("dry-run" in flags) {
    console.error(`${file} would be as follows; ${client.title} would start the server with\n\n${shown}\n`);
    console.log(after.trimEnd());
    return;
  }
  if (after === before) return console.error(`${file} has ${name} already.`);
  const backup = await write(file, { before, after, facts });
  const kept = backup === undefined ? "" : ` What it was before is in ${backup}.`;
  console.error(`${file} has ${name} now.${kept} ${client.title} starts the server with\n\n${shown}\n\n${client.next}`);
}

interface Written {
  readonly before: string;
  readonly after: string;
  /** What stood at the path when it was read; nothing if nothing did. */
  readonly facts: FileFacts | undefined;
}

/** Writes the file, and before that its backup; the path of the backup, if there was something to keep. */
async function write(file: string, { before, after, facts }: Written): Promise<string | undefined> {
  try {
    if (!facts) {
      if ((await host.files.lookAt(file))?.kind === "link") {
        throw new Problem(`Cannot change ${file}: it is a link that leads nowhere; remove it, or name another --file`);
      }
      await host.files.makeFolder(toFolder(file));
      await host.files.replace(file, after);
      return;
    }
    // Renaming another file into its place would override the protection.
    if (facts.mode !== undefined && !(facts.mode & 0o200)) {
      throw new Problem(`Cannot change ${file}: it is read-only; permit its owner to write it`);
    }
    const backup = await writeBackup(file, before, facts.mode);
    if ((await host.files.look(file))?.version !== facts.version) {
      throw new Problem(`Cannot change ${file}: another program has just written it; run the command again`);
    }
    await host.files.replace(file, after);
    return backup;
  } catch (error) {
    if (error instanceof Problem || !isCoded(error)) throw error;
    throw new Problem(`Cannot write ${file}: ${error.message}; check who may write there, or name another --file`);
  }
}

const MOST_BYTES = 16 * 1024 * 1024;

function readText(file: string, bytes: Uint8Array): string {
  if (bytes.length > MOST_BYTES) throw new Problem(`Cannot change ${file}: it has more than ${MOST_BYTES} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Problem(`Cannot change ${file}: it is not a text in UTF-8; mend it by hand`);
  }
}

/** Writes the previous content beside a file, under a name that is free and for the same readers. */
async function writeBackup(file: string, text: string, mode: number | undefined): Promise<string> {
  for (let i = 1;; i++) {
    const path = `${file}.${i === 1 ? "" : `${i}.`}bak`;
    try {
      await host.files.create(path, text, mode);
      return path;
    } catch (error) {
      if (!isCoded(error) || error.code !== "EEXIST") throw error;
    }
  }
}
