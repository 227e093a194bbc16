/**
 * Reads an OpenAPI document, and reports its operations, their sizes and what a server for them needs.
 */
import {
  type DocumentFacts,
  openapi,
  type OpenApiOptions,
  readOpenApi,
  type ServedOperation,
} from "../../ready/openapi/openapi.ts";
import { MAX_TOOLS } from "../../ready/openapi/api.ts";
import { sendRequest } from "../../ready/ready.ts";
import { toMessage } from "../../ready/problem.ts";
import { CliError, ServerError, UsageError, withAction } from "../cli_error.ts";
import { suggestName } from "../client/name_lookup.ts";
import { padTo, toLine, toWidth } from "../client/terminal_text.ts";
import { toPrintable, toPrintableJson } from "../../core/kit/printable.ts";
import { toProgram, toShell } from "../command.ts";
import { MAX_DOCUMENT_BYTES, parseDocument } from "../config/api_document.ts";
import { toCount } from "../listing.ts";
import { bundleFiles } from "./bundled_files.ts";
import { MANY_TOKENS } from "../listing_check.ts";
import { platform } from "../platform.ts";

/** The options of the command that select operations and hosts. */
export interface ApiChoice {
  /** The tags of the selected operations. Empty for all operations. */
  readonly tags: readonly string[];
  readonly isReadOnly: boolean;
  readonly baseUrl?: string;
  /** Hosts on this machine or a private network that requests may reach. */
  readonly allowPrivate: readonly string[];
}

export interface ApiSource {
  /** The file or URL, as the user wrote it. */
  readonly name: string;
  /** Whether the document comes from a URL. */
  readonly isUrl: boolean;
  /** Whether other files were added to the document. */
  readonly isBundled: boolean;
  readonly bytes: Uint8Array;
  readonly document: object;
}

/** A security scheme that a server can use. */
export interface UsableScheme {
  readonly name: string;
  readonly type: string;
  /** The credential for `auth`, such as `a token`. */
  readonly credential: string;
}

/** The contents of a document, with the selected operations. */
export interface ApiSurvey {
  readonly source: ApiSource;
  /** The name of the API in lower case, such as `pet_store`. */
  readonly name: string;
  readonly facts: DocumentFacts;
  /** The servers of the document as complete URLs, if possible. */
  readonly servers: readonly string[];
  readonly schemes: readonly UsableScheme[];
  /** The selected operations that become tools. */
  readonly tools: readonly ServedOperation[];
  /** The selected operations that cannot become tools. */
  readonly leftOut: readonly ServedOperation[];
  /** Number of tokens of all tools. */
  readonly tokens: number;
  /** Whether clients should search for tools, because a model cannot use all of them. */
  readonly needsSearch: boolean;
}

/** Maximum number of operations in a line about operations that are left out. */
const MAX_NAMED = 8;

/** @throws {CliError} if the document cannot be read. */
export async function readSource(name: string, allowPrivate: readonly string[]): Promise<ApiSource> {
  const isUrl = /^https?:/i.test(name);
  const bytes = isUrl ? await download(name, allowPrivate) : await readFile(name);
  return await withAction(`Cannot read ${name}`, async () => {
    const document = parseDocument(bytes);
    // The files of another server are not read, because the user has named only one.
    const bundled = isUrl ? { document, isBundled: false } : await bundleFiles(document, platform.toPath(name));
    return { name, isUrl, bytes, ...bundled };
  });
}

async function readFile(name: string): Promise<Uint8Array> {
  const path = platform.toPath(name);
  if (await platform.findKind(path) !== "file") {
    throw new CliError(`Cannot read ${name}: there is no file ${path}; check the path`);
  }
  return await platform.files.read(path, MAX_DOCUMENT_BYTES + 1);
}

async function download(url: string, allowPrivate: readonly string[]): Promise<Uint8Array> {
  if (!URL.canParse(url)) throw new UsageError(`Cannot read ${url}: it is not a valid URL; check the URL`);
  let response: Response;
  let bytes: Uint8Array;
  try {
    const request = new Request(url, { headers: { accept: "application/json, application/yaml, */*" } });
    response = await sendRequest(request, { allowPrivate, maxBytes: MAX_DOCUMENT_BYTES });
    bytes = new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    const { host } = new URL(url);
    const remedy = allowPrivate.includes(host)
      ? "check the URL"
      : `check the URL, or add --allow-private ${host} for a host that is not public`;
    throw new CliError(`Cannot read ${url}: ${toMessage(error)}; ${remedy}`);
  }
  if (response.ok) return bytes;
  throw new ServerError(`Cannot read ${url}: the server responded with ${response.status}; check the URL`);
}

/** @throws {CliError} if the document cannot be served, or has no operation with a chosen tag. */
export function surveyApi(source: ApiSource, { tags, isReadOnly, baseUrl }: ApiChoice): ApiSurvey {
  const { document, name: file } = source;
  if (baseUrl !== undefined) checkBaseUrl(baseUrl);
  try {
    const facts = readOpenApi(document);
    const known = [...new Set(facts.operations.flatMap((operation) => operation.tags))];
    const unknown = tags.find((tag) => !known.includes(tag));
    if (unknown !== undefined) {
      const remedy = suggestName(unknown, known, known.length ? undefined : "remove --tag");
      throw new UsageError(`Cannot select the tag ${unknown}: no operation of ${file} has this tag; ${remedy}`);
    }
    const options: OpenApiOptions = {
      baseUrl: baseUrl ?? "http://localhost",
      auth: Object.fromEntries(facts.schemes.map(({ name }) => [name, () => undefined])),
      as: (operation) => !tags.length || operation.tags.some((tag) => tags.includes(tag)) ? "tool" : "none",
      readOnly: isReadOnly,
    };
    const { operations } = openapi(document, options);
    const tools = operations.filter(({ kind }) => kind !== "none");
    const tokens = tools.reduce((sum, each) => sum + each.tokens, 0);
    const name = toName(facts.title);
    return {
      ...{ source, name, facts, tools, tokens },
      servers: facts.servers.map((server) => toServerUrl(server, source)),
      schemes: facts.schemes.flatMap(({ name: scheme, type }) => {
        const credential = toCredential(type);
        return credential === undefined ? [] : [{ name: scheme, type, credential }];
      }),
      leftOut: operations.filter(({ reason }) => reason !== undefined),
      needsSearch: tools.length > MAX_TOOLS || tokens > MANY_TOKENS,
    };
  } catch (error) {
    if (error instanceof CliError || !(error instanceof TypeError)) throw error;
    throw new CliError(`Cannot read ${file}: ${error.message}`);
  }
}

function checkBaseUrl(text: string): void {
  const { protocol = "", username, password, search, hash }: Partial<URL> = URL.canParse(text) ? new URL(text) : {};
  if (/^https?:$/.test(protocol) && !(username || password || search || hash)) return;
  throw new UsageError(
    `Cannot use --base-url ${text}: it is not the URL of an API without credentials and query; write a URL such as ` +
      "https://api.example.com/v1",
  );
}

function toName(title = "api"): string {
  return title.toLowerCase().replace(/[^a-z\d]+/g, "_").slice(0, 40).replace(/^[_\d]+|_+$/g, "") || "api";
}

/** Returns the credential for `auth`, such as `a token`. Returns `undefined` if the type is not supported. */
function toCredential(type: string): string | undefined {
  const credentials: Readonly<Record<string, string>> = {
    apikey: "a key",
    "http basic": "USER:PASSWORD",
    "http bearer": "a token",
    oauth2: "an access token",
    openidconnect: "an access token",
  };
  return credentials[type.toLowerCase()];
}

/** Resolves a server of the document against the URL of the document. */
function toServerUrl(server: string, { name, isUrl }: ApiSource): string {
  return isUrl && !server.includes("{") && URL.canParse(server, name) ? new URL(server, name).href : server;
}

export function toJson({ facts, servers, schemes, tools, leftOut, tokens, needsSearch }: ApiSurvey): string {
  const { title, version, format } = facts;
  const toEntry = ({ id, name, method, path, tags, tokens, reason }: ServedOperation) => ({
    id,
    name,
    method,
    path,
    tags,
    tokens,
    reason,
  });
  const found = {
    ...{ title, version, format, servers },
    schemes: facts.schemes.map((each) => ({
      ...each,
      credential: schemes.find(({ name }) => name === each.name)?.credential ?? null,
    })),
    operations: [...tools, ...leftOut].map(toEntry),
    ...{ tools: tools.length, tokens, needsSearch },
  };
  return toPrintableJson(JSON.stringify(found, null, 2));
}

export function toReport(survey: ApiSurvey, choice: ApiChoice): string {
  const { source, facts, servers, tools, leftOut, tokens, needsSearch } = survey;
  const { title = "API", version = "", format } = facts;
  const heading = `${toLine(`${title} ${version}`.trim())}, OpenAPI ${toLine(format)}: ${
    toCount(tools.length, "tool")
  }, about ${toCount(tokens, "token")}`;
  const sections = [
    [
      heading,
      ...align(tools.map(({ name, method, path, tokens }) => [
        toLine(name),
        `about ${toCount(tokens, "token")}`,
        toLine(`${method} ${path}`),
      ])),
    ],
    ...leftOut.length ? [["Left out:", ...align(toReasonRows(leftOut))]] : [],
    ...servers.length
      ? [["Servers of the document, for --base-url:", ...servers.map((url) => `  ${toLine(url)}`)]]
      : [],
    facts.schemes.length ? ["Security schemes, for auth:", ...align(toSchemeRows(survey))] : [
      'The document has no security schemes. If the API needs a token, add "auth" with "bearer" to the config file.',
    ],
    ...choice.tags.length ? [] : toTagSection(tools),
    [
      needsSearch
        ? "A model cannot use all these tools at once. Select operations with --tag or --read-only. Otherwise, --write " +
          "adds a search."
        : "A model can use these tools without a search.",
      "Write a server:",
      "",
      `  ${toShell(toWriteCommand(source, servers, choice))}`,
    ],
  ];
  return toPrintable(sections.map((lines) => lines.join("\n")).join("\n\n"));
}

function toWriteCommand({ name }: ApiSource, servers: readonly string[], choice: ApiChoice): readonly string[] {
  const baseUrl = choice.baseUrl ?? servers.find((url) => /^https?:/i.test(url)) ?? "URL";
  return [
    ...toProgram(),
    "openapi",
    name,
    ...choice.tags.flatMap((tag) => ["--tag", tag]),
    ...choice.isReadOnly ? ["--read-only"] : [],
    ...["--base-url", baseUrl],
    ...choice.allowPrivate.flatMap((host) => ["--allow-private", host]),
    ...["--write", "mcp.jsonc"],
  ];
}

/** Groups the operations that are left out by their reasons. */
function toReasonRows(leftOut: readonly ServedOperation[]): readonly (readonly string[])[] {
  const byReason = Map.groupBy(leftOut, ({ reason }) => reason ?? "");
  return [...byReason].map(([reason, all]) => {
    const names = all.slice(0, MAX_NAMED).map(({ name }) => toLine(name)).join(", ");
    const rest = all.length - MAX_NAMED;
    return [toLine(reason), rest > 0 ? `${names} and ${rest} more` : names];
  });
}

function toSchemeRows({ facts, schemes }: ApiSurvey): readonly (readonly string[])[] {
  return facts.schemes.map(({ name, type }) => {
    const credential = schemes.find((each) => each.name === name)?.credential ?? "not supported";
    return [toLine(name), toLine(type), credential];
  });
}

function toTagSection(tools: readonly ServedOperation[]): readonly (readonly string[])[] {
  const tags = [...new Set(tools.flatMap(({ tags }) => tags))];
  if (tags.length < 2) return [];
  const rows = tags.map((tag) => {
    const own = tools.filter(({ tags }) => tags.includes(tag));
    const tokens = own.reduce((sum, each) => sum + each.tokens, 0);
    return [toLine(tag), toCount(own.length, "tool"), `about ${toCount(tokens, "token")}`];
  });
  return [["Tags, for --tag:", ...align(rows)]];
}

/** Formats rows as lines with aligned columns. Long lines are not broken, so that other programs can read the lines. */
function align(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) => rows.reduce((most, row) => Math.max(most, toWidth(row[at])), 0));
  return rows.map((row) => `  ${row.map((cell, at) => padTo(cell, widths[at])).join("  ").trimEnd()}`);
}
