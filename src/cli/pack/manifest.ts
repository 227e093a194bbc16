/**
 * The two descriptions of a packed server: `manifest.json` of an MCPB bundle, and `server.json` of the MCP registry.
 */
import { CliError, UsageError } from "../cli_error.ts";
import { type Setting, toReference } from "./settings.ts";

interface Named {
  readonly name: string;
  readonly description?: string;
}

/** Facts about a server, from the server itself and from its project. */
export interface PackageInfo extends Named {
  readonly version: string;
  readonly title?: string;
  readonly description: string;
  readonly websiteUrl?: string;
  readonly license?: string;
  /** The URL of the repository without the suffix `.git`. */
  readonly repository?: string;
  readonly author: { readonly name: string; readonly email?: string; readonly url?: string };
}

/** What a bundle contains besides the code. */
export interface BundleParts {
  readonly settings: readonly Setting[];
  /** The command-line flags of Node. */
  readonly flags: readonly string[];
  readonly tools: readonly Named[];
  readonly hasPrompts: boolean;
  /** The path of the icon in the bundle. */
  readonly icon?: string;
  /** https URLs of privacy policies. */
  readonly privacy: readonly string[];
}

/** The version of the manifest format. */
const MANIFEST_VERSION = "0.3";
/** The file that Node runs. */
export const ENTRY = "server.mjs";
/** The range of Node versions that can run the bundle. */
const NODE = ">=22.18.0";

export function toManifest(info: PackageInfo, parts: BundleParts): object {
  const { title, websiteUrl, repository, license, name, version, description, author } = info;
  const { settings, flags, tools, hasPrompts, icon, privacy } = parts;
  const env = Object.fromEntries(settings.map(({ name }) => [name, toReference(name)]));
  return {
    manifest_version: MANIFEST_VERSION,
    ...{ name, ...title !== undefined && { display_name: title }, version, description, author },
    ...repository !== undefined && { repository: { type: "git", url: repository } },
    ...websiteUrl !== undefined && { homepage: websiteUrl },
    ...license !== undefined && { license },
    ...icon !== undefined && { icon },
    server: {
      type: "node",
      entry_point: ENTRY,
      mcp_config: {
        command: "node",
        args: [...flags, `\${__dirname}/${ENTRY}`],
        ...settings.length && { env },
      },
    },
    tools: tools.map(({ name, description }) => ({ name, ...description !== undefined && { description } })),
    ...privacy.length && { privacy_policies: privacy },
    ...hasPrompts && { prompts_generated: true },
    compatibility: { platforms: ["darwin", "win32", "linux"], runtimes: { node: NODE } },
    ...settings.length && { user_config: Object.fromEntries(settings.map((each) => [each.name, toOption(each)])) },
  };
}

function toOption({ name, type, description, preset }: Setting): object {
  return {
    type: type === "secret" ? "string" : type,
    title: name,
    description,
    required: preset === undefined,
    ...type === "secret" && { sensitive: true },
    ...preset && { default: type === "number" ? Number(preset) : type === "boolean" ? preset === "true" : preset },
  };
}

// The URL must be exactly this URL, because the registry reads the format version from it.
const SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/** The pattern for a server's name in the registry: a reversed domain name, a slash, and a name. */
const REGISTRY_NAME = /^(?=.{3,200}$)[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+\/[a-zA-Z0-9._-]+$/;
/** Maximum length of a description in the registry, in characters. */
const MAX_DESCRIPTION = 100;

/** The registry name of a server, and the packages from which clients install the server. */
export interface Publication {
  /** The name in the registry, such as `io.github.user/weather`. */
  readonly name: string;
  readonly settings: readonly Setting[];
  /** The URL of the bundle, and its SHA-256 digest as hexadecimal digits. */
  readonly bundle?: { readonly url: string; readonly sha256: string };
  readonly npm?: string;
  /** The URLs at which the server runs. */
  readonly remotes?: readonly string[];
}

/** @throws {CliError} if the registry would reject the entry. */
export function toRegistryEntry(info: PackageInfo, publication: Publication): object {
  const { name, settings, bundle, npm, remotes = [] } = publication;
  const { version, description, title, websiteUrl, repository } = info;
  checkRegistryEntry(info, publication);
  const common = {
    version,
    transport: { type: "stdio" },
    ...settings.length && { environmentVariables: settings.map(toVariable) },
  };
  const [, host] = /^https:\/\/(github|gitlab)\.com\//.exec(repository ?? "") ?? [];
  return {
    $schema: SCHEMA,
    ...{ name, ...title !== undefined && { title: [...title].slice(0, MAX_DESCRIPTION).join("") } },
    ...{ description, version, ...websiteUrl !== undefined && { websiteUrl } },
    ...host !== undefined && { repository: { url: repository, source: host } },
    ...(bundle || npm !== undefined) && {
      packages: [
        ...npm === undefined ? [] : [{ registryType: "npm", identifier: npm, ...common }],
        ...bundle ? [{ registryType: "mcpb", identifier: bundle.url, fileSha256: bundle.sha256, ...common }] : [],
      ],
    },
    ...remotes.length && { remotes: remotes.map((url) => ({ type: "streamable-http", url })) },
  };
}

function checkRegistryEntry({ version, description }: PackageInfo, publication: Publication): void {
  const { name, bundle, npm, remotes = [] } = publication;
  if (!REGISTRY_NAME.test(name)) {
    throw new UsageError(
      `Cannot describe ${name} for the registry: it is not a registry name; write a reversed domain, a slash and a ` +
        "name, such as io.github.user/weather",
    );
  }
  if ([...description].length > MAX_DESCRIPTION) {
    throw new CliError(
      `Cannot describe ${name} for the registry: the description has more than ${MAX_DESCRIPTION} characters; shorten ` +
        "it, or set a shorter description with --description",
    );
  }
  if (!/^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/.test(version)) {
    throw new CliError(
      `Cannot describe ${name} for the registry: ${version} is not an exact version; write a version such as 1.0.0`,
    );
  }
  const odd = remotes.find((url) => !isPublicUrl(url));
  if (odd !== undefined) {
    throw new UsageError(
      `Cannot describe ${name} for the registry: ${odd} is not the https URL of a public server; write --remote with a ` +
        "URL such as https://mcp.example.com/mcp",
    );
  }
  if (!bundle && npm === undefined && !remotes.length) {
    throw new UsageError(
      `Cannot describe ${name} for the registry: no package is named; write --url with the URL of the released .mcpb, ` +
        "--npm for the package that package.json describes, or --remote with the URL of the running server",
    );
  }
}

/** Whether clients everywhere can connect to a URL. The registry rejects loopback hosts. */
function isPublicUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === "https:" && !url.username && !/^(localhost|127\..*|\[::1\])$/.test(url.hostname);
}

function toVariable({ name, type, description, preset }: Setting): object {
  const format = isFile(type) ? "filepath" : type === "secret" ? "string" : type;
  return {
    ...{ name, description, format, isRequired: preset === undefined },
    ...type === "secret" && { isSecret: true },
    // Omit a default such as `${HOME}/notes`, because only clients that install bundles expand it.
    ...preset && !preset.includes("${") && { default: preset },
  };
}

function isFile(type: Setting["type"]): boolean {
  return type === "file" || type === "directory";
}
