// Provides the import map of deno.json to a program on Node.
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { targets } from "../support/import_map.ts";

registerHooks({
  resolve(specifier, context, next) {
    const target = targets.get(specifier);
    if (target === undefined) return next(specifier, context);
    return next(target.startsWith("/") ? pathToFileURL(target).href : target, context);
  },
});
