/**
 * The Deno permissions of an installed server.
 */
import { type DeniedAccess, findDeniedAccess } from "../core/kit/denied_access.ts";
import { CliError } from "./cli_error.ts";

/** The kinds of permissions that options and config files can grant. */
export const KINDS = ["read", "write", "net", "env", "run", "sys"] as const;

/** The allowed values for each kind: paths, hosts, environment variables, programs or system information. */
export type Permissions = Readonly<Partial<Record<typeof KINDS[number], readonly string[]>>>;

export function joinPermissions(a: Permissions, b: Permissions): Permissions {
  return Object.fromEntries(KINDS.map((kind) => [kind, [...a[kind] ?? [], ...b[kind] ?? []]]));
}

/**
 * Converts permissions to Deno flags. If there are no network permissions, adds `--deny-net`, so that users see the
 * restriction in the configuration.
 *
 * @throws {CliError} if a value contains a comma, which separates the values of a flag.
 */
export function toDenoFlags(permissions: Permissions): readonly string[] {
  const flags = KINDS.flatMap((kind) => {
    const values = [...new Set(permissions[kind])].sort();
    const comma = values.find((value) => value.includes(","));
    if (comma !== undefined) {
      throw new CliError(
        `Cannot grant permission for ${comma}: Deno separates values at commas; use a name without a comma`,
      );
    }
    return values.length ? `--allow-${kind}=${values}` : [];
  });
  return permissions.net?.length ? flags : [...flags, "--deny-net"];
}

/**
 * The port is always included, because Deno would otherwise allow all ports of the host.
 *
 * @throws {CliError} if the host is a pattern, which a URL can contain, and which Deno would apply to other hosts.
 */
export function toNetAddress({ protocol, hostname, port }: URL): string {
  if (hostname.includes("*")) {
    throw new CliError(
      `Cannot grant permission for ${hostname}: Deno would allow all matching hosts; write the name of one host`,
    );
  }
  return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

/**
 * Explains Deno's message about a missing permission, and names the flag to add. Deno does not name the flag's value.
 * Returns `undefined` for any other message.
 */
export function explainPermission(message: string): string | undefined {
  const denied = findDeniedAccess(message);
  return denied && message.startsWith(denied.message) ? toRemedy(denied) : undefined;
}

/** Replaces Deno's message in the text of an error with an explanation. */
export function explainWithin(text: string): string {
  const denied = findDeniedAccess(text);
  // An explained message has another remedy, and ends with its state.
  return denied && denied.message !== denied.state ? text.replace(denied.message, () => toRemedy(denied)) : text;
}

export function explainUnreadable(path: string): string | undefined {
  return explainPermission(`Requires read access to "${path}"`);
}

function toRemedy({ state, flag }: DeniedAccess): string {
  return `${state}; run the command again with ${flag}, or with -A for all permissions`;
}
