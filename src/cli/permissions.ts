/**
 * What Deno lets a server do.
 *
 * @module
 */
import { Problem } from "./problem.ts";

/** The kinds of permission that can be named. */
export const KINDS = ["read", "write", "net", "env", "run", "sys"] as const;

/** Paths to read and write, hosts to ask, variables, programs and facts of the system. */
export type Permissions = Readonly<Partial<Record<typeof KINDS[number], readonly string[]>>>;

/** Both together. */
export function joinPermissions(a: Permissions, b: Permissions): Permissions {
  return Object.fromEntries(KINDS.map((kind) => [kind, [...a[kind] ?? [], ...b[kind] ?? []]]));
}

/**
 * Permissions as flags of Deno; the network is denied by name if it is not needed, so that everybody sees it.
 *
 * @throws {Problem} for a value that a flag cannot hold.
 */
export function toFlags(permissions: Permissions): readonly string[] {
  const flags = KINDS.flatMap((kind) => {
    const values = [...new Set(permissions[kind])].sort();
    const comma = values.find((value) => value.includes(","));
    if (comma !== undefined) {
      throw new Problem(`Cannot permit ${comma} alone: a flag of Deno cannot hold a comma; rename it`);
    }
    return values.length ? `--allow-${kind}=${values}` : [];
  });
  return permissions.net?.length ? flags : [...flags, "--deny-net"];
}
