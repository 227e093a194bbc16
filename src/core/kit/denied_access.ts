/**
 * Reads Deno's messages about missing permissions.
 */

export interface DeniedAccess {
  readonly message: string;
  /** What was denied, such as `Requires read access to "/home/me/a.ts"`. */
  readonly state: string;
  /** The option of Deno that permits it, such as `--allow-read=/home/me/a.ts`, quoted for a shell if necessary. */
  readonly flag: string;
}

const DENIED = /(Requires (\w+) access(?: to "([^"\n]*)")?)(?:, run again with .*)?/;

/** Finds Deno's message about a missing permission in a text. */
export function findDeniedAccess(text: string): DeniedAccess | undefined {
  const [message, state, kind, value] = DENIED.exec(text) ?? [];
  if (message === undefined) return;
  // For port 0, suggest all ports of the host, because the system chooses the actual port. For a value with a comma,
  // suggest all values, because Deno separates values at commas.
  const allowed = kind === "net" ? value?.replace(/:0$/, "") : value;
  const flag = allowed && !allowed.includes(",") ? `--allow-${kind}=${allowed}` : `--allow-${kind}`;
  return { message, state, flag: /\s/.test(flag) ? `'${flag}'` : flag };
}
