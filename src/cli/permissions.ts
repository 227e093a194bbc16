/**
 * The Deno permissions of an installed server.
 *
 * @module
 */
import { CliError } from "./cli_error.ts";

/** The kinds of permission that options and config files can grant. */
export const KINDS = ["read", "write", "net", "env", "run", "sys"] as const;

/** The allowed values by kind: paths, hosts, environment variables, programs and system facts. */
export type Permissions = Readonly<Partial<Record<typeof KINDS[number], readonly string[]>>>;

/** Merges two sets of permissions. */
export function joinPermissions(a: Permissions, b: Permissions): Permissions {
  return Object.fromEntries(KINDS.map((kind) => [kind, [...a[kind] ?? [], ...b[kind] ?? []]]));
}

/**
 * Converts permissions to Deno flags. If there are no network permissions, adds `--deny-net`, so that the restriction
 * is visible in the configuration.
 *
 * @throws {CliError} if a value contains a comma, which separates the values of a flag.
 */
export function toDenoFlags(permissions: Permissions): readonly string[] {
  const flags = KINDS.flatMap((kind) => {
    const values = [...new Set(permissions[kind])].sort();
    const comma = values.find((value) => value.includes(","));
    if (comma !== undefined) {
      throw new CliError(`Cannot permit ${comma}: Deno separates values at commas; rename it`);
    }
    return values.length ? `--allow-${kind}=${values}` : [];
  });
  return permissions.net?.length ? flags : [...flags, "--deny-net"];
}

/**
 * Explains Deno's message about a missing permission, with the flag to add. Deno does not mention the flag if it cannot
 * prompt. Returns `undefined` for other messages.
 */
export function explainPermission(message: string): string | undefined {
  const [state, kind, value] = /^Requires (\w+) access(?: to "([^"\n]*)")?/.exec(message) ?? [];
  if (state === undefined || kind === undefined) return;
  // Suggest all ports of the host for port 0, because the system chooses the actual port. Suggest all values for a
  // value with a comma, because Deno separates values at commas.
  const allowed = kind === "net" ? value?.replace(/:0$/, "") : value;
  const flag = allowed && !allowed.includes(",") ? `--allow-${kind}=${allowed}` : `--allow-${kind}`;
  return `${state}; run it again with ${/\s/.test(flag) ? `'${flag}'` : flag}, or with -A for all permissions`;
}
