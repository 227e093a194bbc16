/**
 * The names of the parts of a server whose start has failed, by the error that a part has thrown.
 */
import { findDeniedAccess } from "./denied_access.ts";

const names = new WeakMap<object, string>();

/**
 * Records which part of a server has thrown an error, such as `service "db"`. If the part was started by another part,
 * the error belongs to the part that has thrown it first.
 */
export function noteFailedPart(error: unknown, name: string): void {
  if (isObject(error) && !names.has(error)) names.set(error, name);
}

/** Returns what has failed, such as `service "db" failed to start`, for a message about the start of a server. */
export function toStartFailure(error: unknown): string {
  const name = isObject(error) ? names.get(error) : undefined;
  const failed = `${name ?? "a part of the server"} failed to start`;
  const denied = error instanceof Error && error.name === "NotCapable" ? findDeniedAccess(error.message) : undefined;
  return denied ? `${failed}: ${denied.state}; start Deno with ${denied.flag}` : failed;
}

function isObject(value: unknown): value is object {
  return Object(value) === value;
}
