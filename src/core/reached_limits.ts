/**
 * Reports limits that were reached.
 *
 * @module
 */
import type { Limits } from "./limits.ts";
import type { Observer } from "./observer.ts";

/** The parts of a server that report a limit. */
export interface Limited {
  readonly limits: Limits;
  readonly observer: Observer;
  /** The limit that was reached last. */
  reached?: string;
}

/** Reports that a limit was reached. `client` is the key of the client that reached it. */
export function reach(server: Limited, limit: string, client?: string): void {
  server.reached = limit;
  server.observer.limit?.({ limit, client });
}

/**
 * Reports the limit that an error message names in parentheses, and returns its path. If the message names several, the
 * code that found one has reported it already.
 */
export function reachNamed(server: Limited, message: string): string | undefined {
  const [, list = ""] = /\(([a-z]+\.\w+(?:, [a-z]+(?:\.\w+)?)*)\)/.exec(message) ?? [];
  const names = list.split(", ").filter((name) => isLimit(server, name));
  // A handler may pass this error on, whose limit is reported when it is reached.
  if (names.length === 1 && names[0] !== "calls.answerMs") reach(server, names[0]);
  return names.find((name) => name === server.reached) ?? names[0];
}

function isLimit({ limits }: Limited, name: string): boolean {
  const [group, key] = name.split(".");
  return Object.entries(limits).some(([name, values]) => name === group && key in values);
}
