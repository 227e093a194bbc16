/**
 * `mcp pack`: packs a server into a bundle that desktop clients install, and writes an entry for the MCP registry.
 */
import { toState } from "../core/kit/error_state.ts";
import { listEndpoints } from "../host.ts";
import { isObject } from "../core/kit/json.ts";
import { toPrintable } from "../core/kit/printable.ts";
import type { Implementation, Server } from "../library.ts";
import type { Params } from "../client/client.ts";
import { type Args, rejectRest, rejectSecond } from "./args.ts";
import { CliError, ServerError, UsageError, withAction } from "./cli_error.ts";
import type { Command } from "./command.ts";
import { type Directory, FOR, readDirectories, toQuestionList } from "./directories.ts";
import { importModule } from "./lazy_modules.ts";
import { listAll, toCount } from "./listing.ts";
import { checkListing, type Listing, toFindingLines } from "./listing_check.ts";
import { findTarget, load, toKind } from "./load.ts";
import { bundleFile, toOwnModule } from "./pack/bundle.ts";
import { type BundleParts, ENTRY, type PackageInfo, toManifest, toRegistryEntry } from "./pack/manifest.ts";
import { readSettings, type Setting, toLauncher, toNodeFlags } from "./pack/settings.ts";
import { writeZip } from "./pack/zip.ts";
import { joinPath, toBaseName, toFolder, toRelativePath } from "../ready/files/path.ts";
import { platform } from "./platform.ts";
import { readFile, readProject } from "./project_files.ts";
import { toFilePath, toTargetUrl } from "./target_url.ts";

export const pack: Command = {
  name: "pack",
  summary: "Pack a server into an .mcpb bundle for desktop clients",
  usage: ["pack [OPTIONS] [SERVER]"],
  description: [
    "SERVER is a file that exports a server. Defaults to ./server.ts. The command bundles the code into one file " +
    "for Node, and writes a manifest with data from the server and from package.json or deno.json.",
    "The packed server may read its own folder. The options --ask and --allow add permissions.",
  ],
  options: {
    output: { value: "FILE", text: "File to write (default: NAME.mcpb)", completion: "files" },
    ask: {
      value: "SETTING",
      isRepeatable: true,
      text: "Environment variable to ask the user for, as NAME or 'NAME:TYPE=DEFAULT # DESCRIPTION'; TYPE is string, " +
        "secret, file, directory, number or boolean; may be repeated",
    },
    allow: {
      value: "PERMISSION",
      isRepeatable: true,
      text: "Permission to grant: run for child processes, worker for threads, or write=NAME for a file or " +
        "directory that --ask NAME asks for; may be repeated",
    },
    include: {
      value: "PATH",
      isRepeatable: true,
      text: "File or folder to include in the bundle; must be in the folder of SERVER; may be repeated",
      completion: "files",
    },
    icon: { value: "FILE", text: "PNG file with the icon; must be in the folder of SERVER", completion: "files" },
    author: { value: "NAME", text: "Author of the bundle (default: the author in package.json)" },
    description: { value: "TEXT", text: "Description of the bundle (default: the description of the server)" },
    privacy: {
      value: "URL",
      isRepeatable: true,
      text: "https URL of a privacy policy that applies to the server, for the manifest; may be repeated",
    },
    for: FOR,
    registry: {
      value: "NAME",
      text: "Also write server.json, the entry for the MCP registry, with this name, such as io.github.user/weather",
    },
    url: { value: "URL", text: "URL of the released bundle, for server.json" },
    npm: { text: "List the npm package from package.json in server.json" },
    remote: {
      value: "URL",
      isRepeatable: true,
      text: "https URL of the running server, for server.json; may be repeated",
    },
  },
  operands: "files",
  examples: [
    "pack server.ts --author Ada",
    "pack server.ts --privacy https://example.com/privacy --for claude",
    "pack server.ts --ask 'API_KEY:secret # Key of the weather service' --ask NOTES:directory --allow write=NOTES",
  ],
  exitCodes: { 1: "With --for, a directory refuses the bundle, which is then not written" },
  run: packServer,
};

async function packServer(args: Args): Promise<void> {
  const { operands: [named], flags, all } = args;
  rejectRest(args, "pack");
  rejectSecond(args.operands, { verb: "pack", limit: "pack takes one server" });
  const target = named ?? await findTarget();
  const path = await findFile(target);
  const directories = readDirectories(all.for);
  const privacy = (all.privacy ?? []).map(readPolicy);
  const settings = readSettings(all.ask ?? []);
  const nodeFlags = toNodeFlags(settings, all.allow ?? []);
  if (flags.registry === undefined && ["url", "npm", "remote"].some((name) => name in flags)) {
    throw new UsageError("Cannot use --url, --npm or --remote: the options are for server.json; add --registry NAME");
  }
  const folder = toFolder(path);
  const project = await readProject(folder);
  const { server } = await load(path);
  const described = await describe(server, { target: toBaseName(path), project, flags }).finally(() => server.close());
  const { info: info, listing } = described;
  const { tools } = listing;
  if (directories.length) await checkBundle(listing, { target: toBaseName(path), folder, privacy, directories });
  const files = await readFiles(folder, [...all.include ?? [], ...flags.icon === undefined ? [] : [flags.icon]]);
  const icon = flags.icon === undefined ? {} : { icon: readIcon(folder, flags.icon, files) };
  const parts: BundleParts = {
    settings,
    flags: nodeFlags,
    tools,
    hasPrompts: listing.prompts.length > 0,
    privacy,
    ...icon,
  };
  const code = await bundle({ path, name: info.name, settings });
  const zip = writeZip(
    new Map([...files, [ENTRY, encode(code)], ["manifest.json", encode(toJson(toManifest(info, parts)))]]),
  );
  const output = flags.output ?? `${info.name.replaceAll(/[^\w.-]+/g, "-")}.mcpb`;
  const entry = flags.registry === undefined ? undefined : toRegistryEntry(info, {
    name: flags.registry,
    settings,
    ...flags.url !== undefined && { bundle: { url: flags.url, sha256: await digest(zip) } },
    ..."npm" in flags && { npm: readPackageName(project) },
    remotes: all.remote ?? [],
  });
  await write(output, zip);
  if (entry) await write("server.json", toJson(entry));
  const written = [output, ...entry ? ["server.json"] : []].join(" and ");
  const counts = `${toCount(tools.length, "tool")}, ${toCount(settings.length, "setting")}`;
  console.error(toPrintable(`Wrote ${written}: ${info.name} ${info.version}, ${counts}.`));
}

async function findFile(target: string | undefined): Promise<string> {
  if (target === undefined) {
    throw new UsageError("Cannot pack a server: no file is named, and there is no ./server.ts; name a file");
  }
  const kind = await toKind(target);
  const url = toTargetUrl(target);
  if (kind !== "module" || !url.startsWith("file:")) {
    const state = kind === "module"
      ? "it is not a file on this machine"
      : `it is a ${kind}, but only a code file can be bundled`;
    throw new CliError(`Cannot pack ${target}: ${state}; name a file that exports a server, such as server.ts`);
  }
  return toFilePath(url).replace(/^\/(?=[a-z]:)/i, "");
}

/** Reads the files that `--include` and `--icon` name. The keys are the paths in the bundle. */
async function readFiles(folder: string, paths: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
  const { readFile } = await import("node:fs/promises");
  const files = new Map<string, Uint8Array>();

  async function add(path: string, name: string): Promise<void> {
    const kind = await platform.findKind(path);
    if (kind === "file") files.set(name, await readFile(path));
    else if (kind !== "folder") throw new CliError(`Cannot include ${path}: there is no such file; check the path`);
    else {for (const each of await platform.files.list(path)) {
        await add(joinPath(path, each.name), `${name}/${each.name}`);
      }}
  }

  for (const path of paths) {
    const name = toInside(folder, path);
    await add(joinPath(folder, name), name);
  }
  for (const name of [ENTRY, "manifest.json"]) {
    if (files.has(name)) {
      throw new CliError(
        `Cannot include ${name}: the bundle already contains a file with this name; rename your file`,
      );
    }
  }
  return files;
}

/** Returns the path of the icon in the bundle. */
function readIcon(folder: string, path: string, files: ReadonlyMap<string, Uint8Array>): string {
  const name = toInside(folder, path);
  const bytes = files.get(name);
  if (bytes && PNG.every((byte, i) => bytes[i] === byte)) return name;
  throw new CliError(`Cannot use ${path} as the icon: it is not a PNG image; convert the image to PNG`);
}

/** The bytes with which every PNG image begins. */
const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Returns a path relative to the folder of the server. In the bundle, the file has the same relative path. */
function toInside(folder: string, path: string): string {
  const name = toRelativePath(folder, platform.toPath(path));
  if (name) return name;
  throw new UsageError(
    `Cannot include ${path}: it is not in ${folder}, the folder of the server; move the file to this folder`,
  );
}

/** Bundles the server. Throws if the bundle contains code that Node cannot run. */
async function bundle(
  { path, name, settings }: { readonly path: string; readonly name: string; readonly settings: readonly Setting[] },
): Promise<string> {
  const modules = { file: `./${toBaseName(path)}`, library: toOwnModule("library"), stdio: toOwnModule("stdio") };
  const { code, toPlace } = await bundleFile(path, { path, entry: toLauncher({ name, settings, ...modules }) });
  const { findForeignUses } = await importModule<typeof import("./pack/foreign_code.ts")>("./pack/foreign_code.ts");
  const uses = findForeignUses(code, toPlace);
  if (!uses.length) return code;
  const lines = uses.map(({ name, place: { file, line, column } }) => `  ${name} at ${file}:${line}:${column}`);
  throw new CliError(
    `Cannot pack ${path}: its code uses APIs that Node does not have; use node: modules and Web APIs instead, or ` +
      "test " +
      `typeof Deno and typeof Bun first\n${[...new Set(lines)].join("\n")}`,
  );
}

interface Described {
  readonly info: PackageInfo;
  readonly listing: Listing;
}

/** Collects facts from the server itself, from its project and from the options. */
async function describe(
  server: Server,
  { target, project, flags }: { readonly target: string; readonly project: Params; readonly flags: Args["flags"] },
): Promise<Described> {
  const [endpoint, ...others] = listEndpoints(server);
  if (others.length || endpoint.params.length) {
    const state = others.length ? "it has several servers" : `its path ${endpoint.path} has parameters`;
    throw new CliError(`Cannot pack ${target}: ${state}; name a file that exports one server without path parameters`);
  }
  const { connect } = await import("../client/client.ts");
  await using client = await withAction(`Cannot pack ${target}`, () => connect(server));
  const { listing, failures: [failure] } = await listAll(client);
  if (failure) throw new CliError(`Cannot pack ${target}: ${failure.place}: ${failure.state}; fix the server`);
  const info: Implementation = client.server.info ?? { name: endpoint.name, version: "0.0.0" };
  const { name, version, title, description, websiteUrl } = info;
  const author = readAuthor(flags.author ?? project.author);
  if (!author) {
    throw new UsageError(
      `Cannot pack ${target}: a bundle must name its author; write --author NAME, or "author" in package.json`,
    );
  }
  const text = flags.description ?? description ?? toText(project.description);
  if (!text) {
    throw new UsageError(
      `Cannot pack ${target}: it has no description; add a description in createServer, or with --description TEXT`,
    );
  }
  const homepage = websiteUrl ?? toText(project.homepage);
  const license = toText(project.license);
  const repository = readRepository(project.repository);
  const about = {
    name,
    // Use the project's version if the file exports only handlers, because such a file has no version.
    version: version === "0.0.0" ? toText(project.version) ?? version : version,
    description: text,
    author,
    ...title !== undefined && { title },
    ...homepage !== undefined && { websiteUrl: homepage },
    ...license !== undefined && { license },
    ...repository !== undefined && { repository },
  };
  return { info: about, listing };
}

/** @throws {UsageError} if the manifest could not have the URL. */
function readPolicy(url: string): string {
  if (URL.canParse(url) && new URL(url).protocol === "https:") return url;
  throw new UsageError(
    `Cannot use --privacy ${url}: it is not an https URL; write a URL such as https://example.com/privacy`,
  );
}

interface BundleCheck {
  readonly target: string;
  /** The folder of the server. */
  readonly folder: string;
  readonly privacy: readonly string[];
  readonly directories: readonly Directory[];
}

/**
 * Checks what the directories ask of the bundle.
 *
 * @throws {ServerError} if a directory refuses the bundle.
 */
async function checkBundle(listing: Listing, { target, folder, privacy, directories }: BundleCheck): Promise<void> {
  const findings = [...checkListing(listing, { maxTokens: Infinity, isTrusted: true, directories })];
  const addPolicy = (state: string, fix: string) =>
    findings.push({
      level: "error",
      rule: "D22",
      place: "bundle",
      state: `${state}, and Claude's directory refuses it`,
      fix,
    });
  if (directories.includes("claude")) {
    if (!privacy.length) addPolicy("it names no privacy policy", "add --privacy URL");
    const text = await readFile(joinPath(folder, "README.md")).catch(() => undefined);
    if (!/^#+\s*privacy/im.test(text ?? "")) {
      addPolicy(
        "README.md has no section about privacy",
        "add the section Privacy Policy to README.md beside the server",
      );
    }
  }
  const lines = toFindingLines(findings, directories);
  const hasErrors = findings.some(({ level }) => level === "error");
  if (hasErrors) {
    throw new ServerError([`Cannot pack ${target}: a directory would refuse the bundle`, ...lines].join("\n"));
  }
  console.error(toPrintable([...lines, toQuestionList(directories)].join("\n")));
}

function toText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Reads an author as in package.json: an object, or text such as `Ada <ada@example.com> (https://example.com)`. */
function readAuthor(value: unknown): PackageInfo["author"] | undefined {
  const [, name, email, url] = typeof value === "string"
    ? /^([^<(]*[^<(\s])\s*(?:<([^>]*)>\s*)?(?:\(([^)]*)\))?$/.exec(value.trim()) ?? []
    : isObject(value)
    ? [undefined, toText(value.name), toText(value.email), toText(value.url)]
    : [];
  return name === undefined ? undefined : { name, ...email && { email }, ...url && { url } };
}

/** Reads a repository as in package.json: an object with a URL, or text such as `github:ada/weather`. */
function readRepository(value: unknown): string | undefined {
  const text = toText(isObject(value) ? value.url : value)?.replace(/^git\+/, "").replace(/\.git$/, "");
  const [, host, path] = /^(?:(github|gitlab):)?([\w.-]+\/[\w.-]+)$/.exec(text ?? "") ?? [];
  if (path !== undefined) return `https://${host ?? "github"}.com/${path}`;
  return text?.startsWith("https://") ? text : undefined;
}

function readPackageName(project: Params): string {
  const name = toText(project.name);
  if (name !== undefined && project.private !== true) return name;
  throw new UsageError(
    'Cannot use --npm: package.json has no name, or has "private": true; change package.json, or remove --npm',
  );
}

async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function write(name: string, content: string | Uint8Array): Promise<void> {
  try {
    await platform.files.write(platform.toPath(name), content);
  } catch (error) {
    throw new CliError(`Cannot write ${name}: ${toState(error)}; check the folder`);
  }
}

function toJson(value: object): string {
  return JSON.stringify(value, null, 2) + "\n";
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
