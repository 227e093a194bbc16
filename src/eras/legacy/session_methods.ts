/**
 * The methods that only sessions have.
 *
 * @see specification/2025-11-25/basic/utilities/ping
 * @see specification/2025-11-25/server/utilities/logging
 * @see specification/2025-11-25/server/resources (Subscriptions)
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../../protocol/errors.ts";
import { LOG_LEVELS } from "../../protocol/types.ts";
import type { Call } from "../../core/call.ts";
import type { Core } from "../../core/core.ts";
import { mayWatch } from "../../core/limits.ts";
import type { Session } from "./session.ts";

/** Runs one of them; false if the method is none of them. Their result is always empty. */
export function runSessionMethod(core: Core, session: Session, call: Call): boolean {
  const { method, params } = call;
  switch (method) {
    case "ping":
      return true;
    case "logging/setLevel":
      session.client.logLevel = readLevel(params.level);
      return true;
    case "resources/subscribe":
    case "resources/unsubscribe":
      if (!("resources" in core.registry.capabilities)) return false;
      watch(core, session, call);
      return true;
    default:
      return false;
  }
}

function readLevel(level: unknown): typeof LOG_LEVELS[number] {
  const known = LOG_LEVELS.find((each) => each === level);
  if (!known) throw new McpError(INVALID_PARAMS, `Cannot set the log level: ${quote(level)} is not one`);
  return known;
}

// What a caller may not see can be watched like what does not exist: whether it may hear is asked when it changes.
function watch(core: Core, { watched }: Session, { method, params: { uri } }: Call): void {
  if (typeof uri !== "string") throw new McpError(INVALID_PARAMS, "Cannot subscribe: uri is not a string");
  if (method === "resources/unsubscribe") return void watched.delete(uri);
  if (!mayWatch([...new Set(watched).add(uri)], core.limits)) {
    throw new McpError(
      INVALID_PARAMS,
      "Cannot subscribe: too many resources are watched, or too long ones (subscriptions)",
    );
  }
  watched.add(uri);
}
