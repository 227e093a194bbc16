/**
 * Deno permissions of an installed server.
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
 * Permissions as flags of Deno. Without network permissions, `--deny-net` states it for readers of the configuration.
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
 * Explains Deno's message for a missing permission, with the flag to add. Deno names none where it cannot prompt. Returns
 * `undefined` for other messages.
 */
export function explainPermission(message: string): string | undefined {
  const [state, kind, value] = /^Requires (\w+) access(?: to "([^"\n]*)")?/.exec(message) ?? [];
  if (state === undefined || kind === undefined) return;
  // Port 0 becomes another one. Deno separates the values of a flag at commas.
  const allowed = kind === "net" ? value?.replace(/:0$/, "") : value;
  const flag = allowed && !allowed.includes(",") ? `--allow-${kind}=${allowed}` : `--allow-${kind}`;
  return `${state}; run it again with ${/\s/.test(flag) ? `'${flag}'` : flag}, or with -A for all permissions`;
}
