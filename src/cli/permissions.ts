/**
 * The Deno permissions of an installed server.
 */
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
      throw new CliError(`Cannot permit ${comma}: Deno separates values at commas; use a name without a comma`);
    }
    return values.length ? `--allow-${kind}=${values}` : [];
  });
  return permissions.net?.length ? flags : [...flags, "--deny-net"];
}

/**
 * Explains Deno's message about a missing permission, and names the flag to add. Deno does not name the flag if there
 * is no terminal to prompt in. Returns `undefined` for any other message.
 */
export function explainPermission(message: string): string | undefined {
  const [state, kind, value] = /^Requires (\w+) access(?: to "([^"\n]*)")?/.exec(message) ?? [];
  if (state === undefined || kind === undefined) return;
  // For port 0, suggest all ports of the host, because the system chooses the actual port. For a value with a comma,
  // suggest all values, because Deno separates values at commas.
  const allowed = kind === "net" ? value?.replace(/:0$/, "") : value;
  const flag = allowed && !allowed.includes(",") ? `--allow-${kind}=${allowed}` : `--allow-${kind}`;
  return `${state}; run the command again with ${/\s/.test(flag) ? `'${flag}'` : flag}, or with -A for all permissions`;
}
