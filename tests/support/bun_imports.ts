// Lets Bun run files of this project that use the import map.
import { targets } from "./import_map.ts";

interface BunHost {
  plugin(plugin: { name: string; setup(build: Build): void }): void | Promise<void>;
}
interface Build {
  module(name: string, load: () => Promise<{ exports: unknown; loader: "object" }>): void;
}

const { Bun } = globalThis as unknown as { Bun: BunHost }; // Deno type-checks this file, but has no types for Bun.

// Bun does not call `onResolve` for imports in a file that it runs, so register a module for each name.
await Bun.plugin({
  name: "import-map",
  setup(build) {
    for (const [key, target] of targets) {
      build.module(key, async () => ({ exports: await import(target), loader: "object" }));
    }
  },
});
