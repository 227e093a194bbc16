/**
 * Writes a server for an OpenAPI document: an entry of a config file, or the source of a server.
 */
import { readArgs } from "../args.ts";
import { type Command, toFlags, toProgram, toShell } from "../command.ts";
import { importModule } from "../lazy_modules.ts";
import type { ApiConfig } from "../config/schema.ts";
import { readJsonc } from "../config/jsonc.ts";
import { addItem, addMember } from "../install/jsonc_edit.ts";
import { isObject } from "../../core/kit/json.ts";
import { toPrintable } from "../../core/kit/printable.ts";
import { toMessage } from "../../ready/problem.ts";
import { isIpAddress, isPrivateAddress } from "../../ready/private_addresses.ts";
import { isAbsolute, joinPath, toBaseName, toFolder, toRelativePath } from "../../ready/files/path.ts";
import { findLibrary, refuseExisting, writeAll } from "../new_files.ts";
import { toCount } from "../listing.ts";
import { platform } from "../platform.ts";
import { CliError, UsageError } from "../cli_error.ts";
import type { ApiChoice, ApiSurvey } from "./survey.ts";
import { confirmVariables, type NamedScheme, nameVariables } from "./variables.ts";

const MAX_CONFIG_BYTES = 1024 * 1024;

interface Plan {
  /** The file to write, as the user wrote it. */
  readonly file: string;
  /** The text of the config file, if it exists. */
  readonly before?: string;
  readonly survey: ApiSurvey;
  readonly schemes: readonly NamedScheme[];
  readonly choice: ApiChoice;
  readonly baseUrl: URL;
  /** The path of the document: relative to the folder of the file, or absolute. */
  readonly document: string;
  /** The files to write next to the file. */
  readonly copies: readonly (readonly [name: string, text: string])[];
}

/** The client that gets an entry for the server, and the environment variables that the user has named. */
export interface Installation {
  /** By default, no client gets an entry. */
  readonly client?: string;
  readonly variables: readonly string[];
}

/**
 * Writes a server, and prints what was written and the next step. With a client, the next step is done.
 *
 * @throws {CliError} if the server would not work, or a file cannot be written.
 */
export async function writeApi(
  file: string,
  survey: ApiSurvey,
  choice: ApiChoice,
  { client, variables }: Installation,
): Promise<void> {
  const isConfig = /\.jsonc?$/i.test(file);
  if (!isConfig && !/\.[cm]?[jt]s$/i.test(file)) {
    throw new UsageError(
      `Cannot write ${file}: it is neither a config file nor code; write a name such as mcp.jsonc or server.ts`,
    );
  }
  const baseUrl = readBaseUrl(file, survey, choice);
  if (!survey.tools.length) {
    throw new CliError(
      `Cannot write ${file}: none of the selected operations can be served; select other operations, or see the ` +
        "reasons without --write",
    );
  }
  const install = client === undefined ? undefined : await loadInstall(file, { client, variables });
  const before = isConfig ? await readConfig(file, platform.toPath(file)) : undefined;
  const schemes = nameVariables(survey, before ?? "");
  await confirmVariables(schemes, { file, baseUrl, named: variables });
  const plan: Plan = { file, before, survey, schemes, choice, baseUrl, ...toDocument(file, survey, isConfig) };
  for (const [name] of plan.copies) {
    if (await platform.files.lstat(platform.toPath(name))) {
      throw new CliError(
        `Cannot write ${name}: it already exists; remove this file, or name it instead of ${survey.source.name}`,
      );
    }
  }
  const { done, permissions } = await (isConfig ? writeEntry(plan) : writeServer(plan));
  const print = (...parts: readonly string[]) => console.error(toPrintable(`${parts.join("\n\n")}\n`));
  const toWords = (names: readonly string[]) => [
    ...[file, "--client", client ?? "claude-desktop", ...permissions],
    ...names.flatMap((name) => ["--env", name]),
  ];
  const nextSteps = toNextSteps(file, toWords(schemes.map(({ variable }) => variable)));
  if (!install) return print(done, ...toNotes(plan, variables), nextSteps);
  print(done, ...toNotes(plan, variables));
  try {
    await install.run(await readArgs(toWords(variables), toFlags(install.options)));
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(`${error.message}\n\n${file} is written. ${nextSteps}`, { cause: error });
  }
}

/** Returns the command `install`. Checks its options first, so that nothing is written if they are wrong. */
async function loadInstall(file: string, { client, variables }: Required<Installation>): Promise<Command> {
  const { install, checkInstallation } = await importModule<typeof import("../install.ts")>("./install.ts");
  checkInstallation(file, { flags: { client }, all: { env: variables } });
  return install;
}

function readBaseUrl(file: string, { servers }: ApiSurvey, { baseUrl, allowPrivate }: ApiChoice): URL {
  if (baseUrl === undefined) {
    const found = servers.find((url) => /^https?:/i.test(url));
    // The document must not decide alone where requests and credentials go.
    const remedy = found === undefined
      ? "add --base-url with the URL of the API"
      : `if you trust the server that the document names, add --base-url ${found}`;
    throw new UsageError(`Cannot write ${file}: there is no base URL; ${remedy}`);
  }
  const url = new URL(baseUrl);
  const { host, hostname } = url;
  const isPrivate = /(^|\.)localhost$/.test(hostname) ||
    isIpAddress(hostname) && isPrivateAddress(hostname.replace(/[[\]]/g, ""));
  if (isPrivate && !allowPrivate.includes(host) && !allowPrivate.includes(hostname)) {
    throw new UsageError(
      `Cannot write ${file}: ${host} is an address of this machine or its network; add --allow-private ${host}`,
    );
  }
  return url;
}

/** Returns the path of the document for the written file, and the copy of the document, if the file needs a copy. */
function toDocument(file: string, { source, name }: ApiSurvey, isConfig: boolean): Pick<Plan, "document" | "copies"> {
  const text = new TextDecoder().decode(source.bytes);
  const isJson = isJsonText(text);
  const folder = toFolder(platform.toPath(file));
  // Code would need a package to read YAML.
  if (!source.isUrl && !source.isBundled && (isConfig || isJson)) {
    const path = platform.toPath(source.name);
    return { document: toRelativePath(folder, path) ?? path, copies: [] };
  }
  const isKept = !source.isBundled && (isConfig || isJson);
  const copy = `${name}.openapi.${isKept && !isJson ? "yaml" : "json"}`;
  const content = isKept ? text : `${JSON.stringify(source.document, null, 2)}\n`;
  return { document: copy, copies: [[toSibling(file, copy), content]] };
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Written {
  readonly done: string;
  /** The options of `install` with the permissions of the server. */
  readonly permissions: readonly string[];
}

async function writeEntry(plan: Plan): Promise<Written> {
  const { file, before, survey, copies } = plan;
  const path = platform.toPath(file);
  const entry = toEntry(plan);
  if (before === undefined) {
    const config = { name: survey.name, ...survey.needsSearch && { search: true }, openapi: [entry] };
    await writeAll([...copies, [file, `${JSON.stringify(config, null, 2)}\n`]]);
  } else {
    const after = extend(before, entry, plan);
    await writeAll(copies);
    await platform.files.replace(path, after);
  }
  const names = [...copies.map(([name]) => name), file].join(" and ");
  return {
    done: before === undefined ? `Created ${names}.` : `Added ${toBaseName(plan.document)} to ${names}.`,
    permissions: [],
  };
}

async function readConfig(file: string, path: string): Promise<string | undefined> {
  const info = await platform.files.stat(path);
  if (!info) {
    await refuseExisting([file]);
    return;
  }
  if (info.kind !== "file") throw new CliError(`Cannot change ${file}: it is not a regular file; choose another name`);
  try {
    const bytes = await platform.files.read(path, MAX_CONFIG_BYTES + 1);
    if (bytes.length <= MAX_CONFIG_BYTES) {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    }
  } catch (error) {
    throw new CliError(`Cannot read ${file}: ${toMessage(error)}; check the file`);
  }
  throw new CliError(`Cannot change ${file}: it has more than ${MAX_CONFIG_BYTES} bytes; choose another name`);
}

/** Adds an entry to the text of a config file. The rest of the text stays unchanged. */
function extend(before: string, entry: ApiConfig, { file, survey }: Plan): string {
  const { value } = readJsonc(before, file);
  const { openapi, search }: Readonly<Record<string, unknown>> = Object(value);
  const isKnown = Array.isArray(openapi) &&
    openapi.some((each) => isObject(each) && each.document === entry.document && each.baseUrl === entry.baseUrl);
  if (isKnown) {
    throw new CliError(
      `Cannot add ${entry.document} to ${file}: it is already part of this file; change its entry, or use ` +
        "install to add the file to a client",
    );
  }
  const after = addItem(before, entry, { file, key: "openapi" });
  return survey.needsSearch && search === undefined ? addMember(after, true, { file, key: "search" }) : after;
}

function toEntry({ document, baseUrl, schemes, choice }: Plan): ApiConfig {
  const { tags, isReadOnly, allowPrivate } = choice;
  // A document with several schemes often needs only some of them. A missing credential then omits only its operations.
  const fallback = schemes.length > 1 ? ":-" : "";
  const auth = Object.fromEntries(schemes.map(({ name, variable }) => [name, `\${${variable}${fallback}}`]));
  return {
    document,
    baseUrl: baseUrl.href.replace(/\/$/, ""),
    ...schemes.length && { auth },
    ...tags.length && { tags: [...tags] },
    ...isReadOnly && { readOnly: true },
    ...allowPrivate.length && { allowPrivate: [...allowPrivate] },
  };
}

async function writeServer(plan: Plan): Promise<Written> {
  const { file, copies, baseUrl: { protocol, hostname, port }, document } = plan;
  await refuseExisting([file]);
  const toLibrary = await findLibrary();
  await writeAll([...copies, [file, toSource(plan, toLibrary)]]);
  const path = isAbsolute(document) ? document : toSibling(file, document);
  const net = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  return {
    done: `Created ${[...copies.map(([name]) => name), file].join(" and ")}.`,
    permissions: platform.runtime === "deno" ? ["--allow-read", path, "--allow-net", net] : [],
  };
}

/** Returns the path of a file in the folder of another file. */
function toSibling(file: string, name: string): string {
  return file.includes("/") ? joinPath(toFolder(file), name) : name;
}

function toNextSteps(file: string, installWords: readonly string[]): string {
  const commands = [["check", file], ["install", ...installWords]];
  const lines = commands.map((words) => `  ${toShell([...toProgram(), ...words])}`);
  return `Check the server, and add it to a client:\n\n${lines.join("\n")}`;
}

/** Returns the source of a server, which runs on Deno, Bun and Node. */
function toSource(
  { survey, schemes, choice, baseUrl, document }: Plan,
  toLibrary: Awaited<ReturnType<typeof findLibrary>>,
): string {
  const { name, needsSearch } = survey;
  const { tags, isReadOnly, allowPrivate } = choice;
  const show = (value: unknown) => JSON.stringify(value);
  const url = isAbsolute(document)
    ? `new URL(${show(platform.toFileUrl(document))})`
    : `new URL(${show(`./${encodeURI(document).replace(/[?#]/g, encodeURIComponent)}`)}, import.meta.url)`;
  const options = [
    `baseUrl: ${show(baseUrl.href.replace(/\/$/, ""))},`,
    ...schemes.length ? ["auth: {", ...schemes.map(toAuthLine), "},"] : [],
    ...tags.length ? [`as: ({ tags }) => tags.some((tag) => ${show(tags)}.includes(tag)) ? "tool" : "none",`] : [],
    ...isReadOnly ? ["readOnly: true,"] : [],
    ...allowPrivate.length ? [`allowPrivate: ${show(allowPrivate)},`] : [],
  ];
  return `import { createServer } from ${show(toLibrary())};
import { openapi } from ${show(toLibrary("openapi"))};
${
    needsSearch
      ? `import { toolSearch } from ${show(toLibrary("search"))};\n`
      : ""
  }import { readFile } from "node:fs/promises";
${schemes.length ? 'import process from "node:process";\n' : ""}
const document = JSON.parse(await readFile(${url}, "utf8"));

export const api = openapi(document, {
${options.map((line) => `  ${line}`).join("\n")}
});

export default createServer({ name: ${show(name)}, version: "0.1.0", handlers: [api${
    needsSearch ? ", toolSearch()" : ""
  }] });
`;
}

function toAuthLine({ name, variable, credential }: NamedScheme): string {
  return `  ${JSON.stringify(name)}: () => process.env.${variable}, // ${credential}`;
}

function toNotes(
  { schemes, survey: { tools, tokens, needsSearch, leftOut } }: Plan,
  passed: readonly string[],
): readonly string[] {
  const missing = schemes.filter(({ variable }) => !passed.includes(variable));
  const search = needsSearch ? ", which clients find with a search" : "";
  const omitted = leftOut.length ? `; left out: ${toCount(leftOut.length, "operation")}` : "";
  return [
    `The API has ${toCount(tools.length, "tool")} of about ${toCount(tokens, "token")}${search}${omitted}.`,
    ...missing.length
      ? [
        "Set these environment variables, or remove the schemes that you do not use:\n\n" +
        missing.map(({ variable, credential }) => `  ${variable}  ${credential}`).join("\n"),
      ]
      : [],
  ];
}
