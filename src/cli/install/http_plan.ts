/**
 * Plans the installation of a URL.
 */
import type { Args } from "../args.ts";
import { readHeaders } from "../header_flags.ts";
import { KINDS } from "../permissions.ts";
import { platform } from "../platform.ts";
import { CliError, UsageError } from "../cli_error.ts";
import { toShell } from "../command.ts";
import type { Destination, InstallPlan } from "./plan.ts";
import { toCommand, toPortable } from "./stdio_plan.ts";

const VARIABLE = /\$\{([A-Za-z_]\w*)\}/g;
const SECRET_HEADER = /auth|cookie|key|secret|token|password/i;

/**
 * @throws {CliError} if an option cannot be used with a URL, or if the client's configuration file must not contain a
 * header.
 */
export async function planHttp(
  target: string,
  destination: Destination,
  { flags, all }: Args,
): Promise<InstallPlan> {
  const { client } = destination;
  const { toHttpEntry } = client;
  const url = readUrl(target);
  const stdioOptions = ["env", "server", "param", "allow-all", "allow-none", ...KINDS.map((kind) => `allow-${kind}`)];
  const unusable = stdioOptions.find((name) => name in flags);
  if (unusable) {
    throw new UsageError(
      `Cannot use --${unusable}: the option is for a server that the client starts; remove the option`,
    );
  }
  if (!toHttpEntry || "bridge" in flags) return await planBridge(target, url, destination, all.header);
  const typed = Object.entries(readHeaders(all.header));
  const headers = Object.fromEntries(typed.map(([name, text]) => [name, toHeaderValue(name, text, destination)]));
  const expanded = Object.fromEntries(typed.map(([name, text]) => [name, expandVariables(text)]));
  return {
    toEntry: (name) => toHttpEntry({ url: target, ...Object.keys(headers).length && { headers } }, name),
    summary: target,
    defaultName: url.hostname,
    target: { url: target, headers: expanded },
    notes: [],
  };
}

/** For a client that cannot sign in, or whose configuration file cannot contain a URL. */
async function planBridge(
  target: string,
  url: URL,
  destination: Destination,
  headers?: readonly string[],
): Promise<InstallPlan> {
  const { client } = destination;
  if (headers) {
    throw new CliError(
      `Cannot install ${target}: ${client.title} starts a command, and all users of this machine can read a header ` +
        "in its arguments; remove --header, and sign in to the server instead",
    );
  }
  const permissions = platform.runtime === "deno" ? ["-A"] : [];
  const [command, ...words] = toCommand(destination, permissions, ["bridge", target]);
  const args = await toPortable(words, destination);
  return {
    toEntry: (name) => client.toStdioEntry({ command, args }, name),
    summary: toShell([command, ...args]),
    defaultName: url.hostname,
    target: { url: target, headers: {} },
    notes: [`${client.title} starts the bridge command, which passes all messages on to ${target}.`],
  };
}

function readUrl(target: string): URL {
  if (!URL.canParse(target)) {
    throw new UsageError(
      `Cannot install ${target}: it is not a valid URL; check the spelling`,
    );
  }
  const url = new URL(target);
  if (!url.username && !url.password) return url;
  throw new UsageError(
    "Cannot install the URL: it contains a user name or password; remove both from the URL, and write " +
      "--header authorization=…",
  );
}

/** The value contains references to variables if the client expands references. */
function toHeaderValue(name: string, text: string, { client, isShared, file }: Destination): string {
  const { toReference } = client;
  const hasVariables = text.search(VARIABLE) >= 0;
  if (hasVariables && toReference) return text.replace(VARIABLE, (_, variable) => toReference(variable));
  if (isShared && (hasVariables || SECRET_HEADER.test(name))) {
    const remedy = toReference
      ? `refer to a variable, such as --header '${name}=\${TOKEN}'`
      : "name a file outside of the project with --file";
    throw new CliError(`Cannot write the header ${name} to ${file}: other users may read the file; ${remedy}`);
  }
  return expandVariables(text);
}

function expandVariables(text: string): string {
  return text.replace(VARIABLE, (_, variable) => {
    const value = platform.env(variable);
    if (value !== undefined) return value;
    throw new CliError(`Cannot send \${${variable}}: the environment has no such variable; set it first`);
  });
}
