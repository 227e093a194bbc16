/**
 * Warnings for development: repeated work, and options that are ignored.
 *
 * @module
 */
import type { Engine } from "../core/era.ts";
import type { Handler } from "../core/feature.ts";
import { RerunWatch, toWarning } from "../core/rerun_watch.ts";
import type { ServerOptions } from "./options.ts";
import { findInHandlers, findInServer, toUnknownOption, type UnknownOption } from "./unknown_options.ts";

/** Maximum number of warnings to remember, so that each is printed once. */
const MAX_WARNINGS = 1000;

/** Starts to print warnings, once for each server. Does nothing if the option `development` is `false`. */
export function startDevelopment(engine: Engine, options: Pick<ServerOptions, "name" | "development">): void {
  const { core, host } = engine;
  if (options.development === false || host.reruns) return;
  host.reruns = new RerunWatch(core.ticker.clock, (repeated) => console.warn(toWarning(repeated)));
  const printed = new Set<string>();
  const warn = (found: readonly UnknownOption[]) => {
    for (const text of found.map(toUnknownOption)) {
      if (printed.has(text) || printed.size >= MAX_WARNINGS) continue;
      printed.add(text);
      console.warn(text);
    }
  };
  warn(findUnknownOptions(engine, options));
  // The factories make all handlers.
  core.inspect = (added) => warn(findInHandlers(added as readonly Handler[]));
}

/** Finds the unknown options of a server and its handlers. */
export function findUnknownOptions(
  { registry }: Engine,
  options: Pick<ServerOptions, "name">,
): readonly UnknownOption[] {
  return [...findInServer(options), ...findInHandlers(registry.handlers)];
}
