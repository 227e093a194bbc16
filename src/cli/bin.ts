#!/usr/bin/env node
/**
 * The program of the npm package. `npx` and `bunx` keep the package outside of the user's folder, so that the file of a
 * user who has not installed it cannot import it by its name: then the name leads to this copy.
 *
 * @module
 */
import { main } from "./main.ts";
import { bun } from "./runtime_globals.ts";
import { NAME } from "./version.ts";

/** Whether a specifier names this package or one of its entries. */
function isOwn(specifier: string): boolean {
  return specifier === NAME || specifier.startsWith(`${NAME}/`);
}

/** Whether a folder, or one above it, has installed this package. */
function isInstalled(folder: string): boolean {
  const { existsSync } = process.getBuiltinModule("fs");
  for (let at = new URL("file://" + encodeURI(folder.replaceAll("\\", "/")) + "/");; at = new URL("..", at)) {
    if (existsSync(new URL(`node_modules/${NAME}/package.json`, at))) return true;
    if (at.pathname === "/" || at.href === new URL("..", at).href) return false;
  }
}

/** The names of the entries, and their files. */
async function listEntries(): Promise<readonly (readonly [name: string, file: string])[]> {
  const { default: { exports } } = await import(new URL("./package.json", import.meta.url).href, {
    with: { type: "json" },
  });
  const entries = Object.entries<{ readonly default?: string }>(exports);
  return entries.flatMap(([key, { default: file }]) =>
    file === undefined ? [] : [[NAME + key.slice(1), new URL(file, import.meta.url).href] as const]
  );
}

async function resolveToSelf(): Promise<void> {
  if (isInstalled(process.cwd())) return;
  const entries = await listEntries();
  if (bun) {
    bun.plugin({
      name: "own-entries",
      setup(build) {
        // Bun does not call `onResolve` for packages.
        for (const [name, file] of entries) {
          build.module(name, async () => ({ exports: await import(file), loader: "object" }));
        }
      },
    });
    return;
  }
  const files = new Map(entries);
  const { registerHooks } = process.getBuiltinModule("module");
  registerHooks({
    resolve(specifier, context, next) {
      const file = isOwn(specifier) ? files.get(specifier) : undefined;
      return file === undefined ? next(specifier, context) : { url: file, format: "module", shortCircuit: true };
    },
    // Without it, Deno resolves the imports of a file before it calls the first hook.
    load: (url, context, next) => next(url, context),
  });
}

await resolveToSelf();
await main();
