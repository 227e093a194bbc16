/**
 * `mcp install target --client name`: puts a server into the list of a program that starts servers.
 *
 * @module
 */
import type { Args } from "./args.ts";
import { clients, type InstallClient } from "./clients.ts";
import { type Command, toEntry, toOwnReads, toShell } from "./command.ts";
import { readHeaders } from "./headers.ts";
import { platform } from "./platform.ts";
import { type FileFacts, isCoded } from "./platform_files.ts";
import { toKind, toName, toTargetUrl } from "./load.ts";
import { findSuggestion } from "./suggestions.ts";
import { importPart } from "./parts.ts";
import { isAbsolute, toBaseName, toFolder, toInner } from "./path.ts";
import { joinPermissions, KINDS, type Permissions, toFlags } from "./permissions.ts";
import { Problem, UsageProblem } from "./problem.ts";
import type { Tried } from "./try_entry.ts";

/** Installs a server. */
export const install: Command = {
  name: "install",
  summary: "Put a server into the configuration of a client, with the least permissions",
  usage: `install target --client NAME
          [--name N] [--env A,B] [--header N=V] [--file F] [--dry-run] [--no-check] [--allow-read P,… and so on]

The target is a file that exports a server, a config file, a folder, or the URL of a server that runs. The clients are
${clients.map(({ name }) => name).join(", ")}.

The server is started as the client will start it, and its tools are listed, before anything is written. For a config
file or a folder the permissions are found out. For a file that exports a server name them:

--allow-read P, --allow-write P, --allow-net H, --allow-env N, --allow-run P, --allow-sys N
              what Deno lets it do, each a list with commas; a config file gets these beside its own
--allow-none  nothing beside reading the file
--allow-all   everything
--name N      its name in the list; defaults to the server's own
--env A,B     variables of the environment for the server: their values, or references in a file of the project
--header N=V  a header of every request to a URL; \${NAME} in it is a variable; may be there more than once
--file F      the file to change, in place of the client's own
--dry-run     print what the file would be, and change nothing
--no-check    do not start the server

For example:
  install mcp.jsonc --client claude-desktop
  install docs --client cursor --name notes --dry-run
  install server.ts --client vscode --allow-net api.example.com:443 --allow-env API_KEY --env API_KEY
  install https://mcp.example.com/mcp --client codex --header 'authorization=Bearer \${TOKEN}'`,
  flags: {
    client: true,
    name: true,
    env: true,
    header: true,
    file: true,
    "dry-run": false,
    "no-check": false,
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

async function installTarget(args: Args): Promise<void> {
  const { operands: [target, extra], flags } = args;
  if (target === undefined) {
    throw new UsageProblem("Cannot install a server: name its file, config file, folder or URL");
  }
  if (extra !== undefined) throw new UsageProblem(`Cannot install ${extra} beside ${target}: name one target`);
  const client = findClient(target, flags.client);
  const file = flags.file === undefined ? client.toFile() : platform.toPath(flags.file);
  const place: Place = { client, file, isShared: client.isShared || isOfProject(flags.file) };
  const plan = /^https?:/i.test(target) ? planRemote(target, place, args) : await planStart(target, place, args);
  const found = "no-check" in flags
    ? undefined
    : await (await importPart("./try_entry.ts")).tryEntry(target, plan.tried);
  const name = flags.name ?? toEntryName(found?.name) ?? plan.name;
  if (!name.trim()) throw new UsageProblem(`Cannot install ${target}: the name is empty; give another with --name`);
  await change(place, name, plan, flags);
  if (found) console.error(found.report);
  plan.notes.forEach((note) => console.error(note));
}

function findClient(target: string, named: string | undefined): InstallClient {
  const found = clients.find(({ name }) => name === named);
  if (found) return found;
  const names = clients.map(({ name }) => name);
  const state = named === undefined ? "no client is named" : `there is no client ${named}`;
  const near = named === undefined ? undefined : findSuggestion(named, names);
  const hint = near === undefined ? `add --client with ${names.join(", ")}` : `did you mean ${near}?`;
  throw new UsageProblem(`Cannot install ${target}: ${state}; ${hint}`);
}

/** Where the entry goes. */
interface Place {
  readonly client: InstallClient;
  readonly file: string;
  /** Whether others read the file, so that no secret may stand in it. */
  readonly isShared: boolean;
}

/** What is written and said. */
interface Plan {
  readonly toEntry: (name: string) => object;
  /** What the client will do, as the user would type it. */
  readonly shown: string;
  /** The name, if the server does not say one. */
  readonly name: string;
  readonly tried: Tried;
  readonly notes: readonly string[];
}

// A file that is named lies in the working directory if it is one of the project, such as `.cursor/mcp.json`.
function isOfProject(file: string | undefined): boolean {
  return file !== undefined && toInner(platform.toPath("."), platform.toPath(file)) !== undefined;
}

function planRemote(target: string, place: Place, { flags, all }: Args): Plan {
  const { client } = place;
  if (!URL.canParse(target)) throw new UsageProblem(`Cannot install ${target}: it is no URL; check its spelling`);
  const url = new URL(target);
  if (url.username || url.password) {
    throw new UsageProblem("Cannot install a URL with a name or password: write them as --header authorization=…");
  }
  const alone = ["env", "allow-all", "allow-none", ...KINDS.map((kind) => `allow-${kind}`)].find((flag) =>
    flag in flags
  );
  if (alone) throw new UsageProblem(`Cannot use --${alone}: it is for a server that the client starts; leave it out`);
  const { toRemote } = client;
  if (typeof toRemote === "string") {
    throw new Problem(`Cannot install ${target}: ${client.title} takes no URL from its file; ${toRemote}`);
  }
  const given = readHeaders(all.header);
  const headers = Object.fromEntries(
    Object.entries(given).map(([name, text]) => [name, toHeaderText(name, text, place)]),
  );
  const sent = Object.fromEntries(Object.entries(given).map(([name, text]) => [name, fillVariables(text)]));
  return {
    toEntry: (name) => toRemote({ url: target, ...Object.keys(headers).length && { headers } }, name),
    shown: target,
    name: url.hostname,
    tried: { url: target, headers: sent },
    notes: [],
  };
}

const VARIABLE = /\$\{([A-Za-z_]\w*)\}/g;

/** A header as it stands in the file. */
function toHeaderText(name: string, text: string, { client, isShared, file }: Place): string {
  const variables = [...text.matchAll(VARIABLE)].map(([, variable]) => variable);
  const { toReference } = client;
  if (variables.length && toReference) return text.replace(VARIABLE, (_, variable) => toReference(variable));
  if (isShared && (variables.length || /auth|cookie|key|secret|token|password/i.test(name))) {
    throw new Problem(
      `Cannot write the header ${name} to ${file}: others may read it there; ` +
        (toReference ? `write it with a variable, such as --header '${name}=\${TOKEN}'` : "name a file of your own"),
    );
  }
  return fillVariables(text);
}

function fillVariables(text: string): string {
  return text.replace(VARIABLE, (_, variable) => {
    const value = platform.env(variable);
    if (value === undefined) throw new Problem(`Cannot send \${${variable}}: the environment has none; set it first`);
    return value;
  });
}

async function planStart(target: string, place: Place, { flags, all }: Args): Promise<Plan> {
  if (all.header) throw new UsageProblem(`Cannot send headers to ${target}: they are for a URL; leave out --header`);
  const kind = await toKind(target);
  const path = toTargetUrl(target).startsWith("file:") ? platform.toPath(target) : target;
  if (isAbsolute(path) && !(await platform.files.look(path))) {
    throw new Problem(`Cannot install ${target}: there is no file ${path}; check the path`);
  }
  if (/^(jsr|npm):/i.test(path) && !/@\d+\.\d+\.\d+[\w.+-]*(\/|$)/.test(path)) {
    throw new Problem(
      `Cannot install ${target}: it names no exact version, so any later release would run; write ${target}@1.2.3`,
    );
  }
  const needed = await listNeeds(target, path, kind);
  const [command, ...words] = toWords(place, toPermissionFlags(target, flags, needed), path);
  const names = (flags.env ?? "").split(",").filter(Boolean);
  const values = readVariables(names, place);
  const env = toEnv(names, values, place);
  const open = (needed.permissions.env ?? []).filter((name) => name !== "PATH" && !names.includes(name));
  return {
    toEntry: (name) => place.client.toStart({ command, args: words, ...env && { env } }, name),
    shown: toShell([command, ...words]),
    name: kind === "config" ? toBaseName(toFolder(path)) : toName(path),
    tried: { command, args: words, env: values },
    notes: [
      ...platform.runtime === "bun" ? ["Bun has no permissions: the server may do whatever you may."] : [],
      ...open.length
        ? [
          `It reads ${
            open.join(", ")
          } of the environment. What ${place.client.title} does not hand on, name with --env.`,
        ]
        : [],
    ],
  };
}

/** What a target needs, and whether that is all: code may need more. */
interface Needed {
  readonly permissions: Permissions;
  readonly isComplete: boolean;
}

async function listNeeds(target: string, path: string, kind: "folder" | "config" | "module"): Promise<Needed> {
  if (kind === "folder") {
    return { permissions: { read: [await platform.files.resolve(path) ?? path] }, isComplete: true };
  }
  // The file alone: what else it reads, the files it imports among it, is for the user to name.
  if (kind === "module") return { permissions: isAbsolute(path) ? { read: [path] } : {}, isComplete: false };
  const { findRequiredPermissions } = await importPart("./config/required_permissions.ts");
  const { permissions, modules } = await findRequiredPermissions(target, path);
  return { permissions, isComplete: !modules.length };
}

function toPermissionFlags(
  target: string,
  flags: Args["flags"],
  { permissions, isComplete }: Needed,
): readonly string[] {
  if (platform.runtime === "bun") return [];
  if ("allow-all" in flags) return ["-A"];
  const named = KINDS.filter((kind) => `allow-${kind}` in flags);
  if (!isComplete && !named.length && !("allow-none" in flags)) {
    throw new UsageProblem(
      `Cannot install ${target}: it is code, and what code needs cannot be seen from outside; name it with ` +
        "--allow-net HOST, --allow-env NAME, --allow-read PATH and so on, or write --allow-none",
    );
  }
  const given = Object.fromEntries(named.map((kind) => [kind, flags[`allow-${kind}`].split(",").filter(Boolean)]));
  // The client may start it in any folder.
  const paths = { read: given.read?.map(platform.toPath), write: given.write?.map(platform.toPath) };
  const absolute = { ...given, ...paths.read && { read: paths.read }, ...paths.write && { write: paths.write } };
  return toFlags(joinPermissions({ read: toOwnReads() }, joinPermissions(permissions, absolute)));
}

function toWords({ isShared }: Place, permissions: readonly string[], path: string): readonly string[] {
  const [program, ...rest] = platform.toRunner("none");
  // Programs with windows are not started by a shell, and find less in PATH.
  const command = isShared || rest.includes("-y") ? program : platform.execPath();
  return [command, ...rest, ...permissions, toEntry(), path];
}

/** The values of variables; one that a file refers to need not be set where the file is written. */
function readVariables(names: readonly string[], { client, isShared }: Place): Readonly<Record<string, string>> {
  return Object.fromEntries(names.flatMap((name) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw new UsageProblem(`Cannot hand on ${name}: write --env with names of variables`);
    }
    const value = platform.env(name);
    if (value !== undefined) return [[name, value]];
    if (isShared && client.toReference) return [];
    throw new Problem(`Cannot write ${name} down: the environment has none; set it first`);
  }));
}

function toEnv(
  names: readonly string[],
  values: Readonly<Record<string, string>>,
  { client, isShared, file }: Place,
): Readonly<Record<string, string>> | undefined {
  if (!names.length) return;
  if (!isShared) return values;
  const { toReference } = client;
  if (toReference) return Object.fromEntries(names.map((name) => [name, toReference(name)]));
  throw new Problem(
    `Cannot write ${names.join(", ")} to ${file}: others may read it there, and ${client.title} knows no references ` +
      "to variables; leave out --file",
  );
}

/** The name that a server gives itself as the key of an entry; clients make parts of tool names of it. */
function toEntryName(name: string | undefined): string | undefined {
  const plain = name?.trim().replace(/[^\w.-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 64);
  return plain || undefined;
}

async function change(place: Place, name: string, plan: Plan, flags: Args["flags"]): Promise<void> {
  const { client, file } = place;
  const { setEntry } = await importEditor(client.format);
  const facts = await platform.files.look(file);
  if (facts && facts.kind !== "file") {
    throw new Problem(`Cannot change ${file}: it is no regular file; name one with --file`);
  }
  const before = facts ? readText(file, await platform.files.read(file, MOST_BYTES + 1)) : "";
  const after = setEntry(before, plan.toEntry(name), { file, path: [client.holder, name] });
  const does = "command" in plan.tried ? "start the server with" : "connect to";
  if ("dry-run" in flags) {
    console.error(`${file} would be as follows; ${client.title} would ${does}\n\n  ${plan.shown}\n`);
    console.log(after.trimEnd());
    return;
  }
  if (after === before) return console.error(`${file} has ${name} already.`);
  const backup = await write(file, { before, after, facts });
  const kept = backup === undefined ? "" : ` What it was before is in ${backup}.`;
  const doing = does.replace(/^\w+/, (verb) => `${verb}s`);
  console.error(
    `${file} has ${name} now.${kept} ${client.title} ${doing}\n\n  ${plan.shown}\n\n${client.next}`,
  );
}

function importEditor(format: InstallClient["format"]) {
  if (format === "toml") return importPart("./toml_edit.ts");
  return format === "yaml" ? importPart("./yaml_edit.ts") : importPart("./jsonc_edit.ts");
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
      if ((await platform.files.lookAt(file))?.kind === "link") {
        throw new Problem(`Cannot change ${file}: it is a link that leads nowhere; remove it, or name another --file`);
      }
      await platform.files.makeFolder(toFolder(file));
      await platform.files.replace(file, after);
      return;
    }
    // Renaming another file into its place would override the protection.
    if (facts.mode !== undefined && !(facts.mode & 0o200)) {
      throw new Problem(`Cannot change ${file}: it is read-only; permit its owner to write it`);
    }
    const backup = await writeBackup(file, before, facts.mode);
    if ((await platform.files.look(file))?.version !== facts.version) {
      throw new Problem(`Cannot change ${file}: another program has just written it; run the command again`);
    }
    await platform.files.replace(file, after);
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
    throw new Problem(`Cannot change ${file}: it is not a text in UTF-8; fix it by hand`);
  }
}

/** Writes the previous content beside a file, under a name that is free and for the same readers. */
async function writeBackup(file: string, text: string, mode: number | undefined): Promise<string> {
  for (let i = 1;; i++) {
    const path = `${file}.${i === 1 ? "" : `${i}.`}bak`;
    try {
      await platform.files.create(path, text, mode);
      return path;
    } catch (error) {
      if (!isCoded(error) || error.code !== "EEXIST") throw error;
    }
  }
}
