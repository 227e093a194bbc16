// Lets Bun run files of this project.
import { targets } from "./import_map.ts";

interface BunHost {
  plugin(plugin: { name: string; setup(build: Build): void }): void | Promise<void>;
}
interface Build {
  module(name: string, load: () => Promise<{ exports: unknown; loader: "object" }>): void;
}

const { Bun } = globalThis as unknown as { Bun: BunHost }; // Deno, which checks this file, has no types for Bun
<<<<<<< HEAD
const root = new URL("../../", import.meta.url).pathname;

/** The file or package of an entry of the import map, or undefined if Bun resolves the key itself. */
function toTarget(key: string, value: string): string | undefined {
  if (value.startsWith("./")) return root + value.slice(2);
  const parts = /^npm:\/?((?:@[^/]+\/)?[^@/]+)(?:@([^/]+))?(\/.*)?$/.exec(value);
  if (!parts) throw new Error(`Cannot map "${key}" for Bun: "${value}" is neither a file nor an npm package`);
  const [, name, version, path = ""] = parts;
  if (name + path === key) return;
  // Of two versions of a package, the one under another name is only here.
  const isSecond = name in config.imports;
  return isSecond ? `${root}node_modules/.deno/${name}@${version}/node_modules/${name}${path}` : name + path;
}

const targets = new Map<string, string>();
for (const [key, value] of Object.entries(config.imports)) {
  const target = toTarget(key, value);
  if (target !== undefined && !key.endsWith("/")) targets.set(key, target);
}
for (const [path, file] of Object.entries(config.exports)) {
  const name = config.name + path.slice(1);
  for (const key of [name, "jsr:" + name]) targets.set(key, root + file.slice(2));
}
for (const key of ["npm:zod", "npm:zod@4", "npm:zod@^4"]) targets.set(key, "zod");
=======
>>>>>>> e6ee19ce (Run the behaviour suite on Node 22 and 24)

// Bun does not call `onResolve` for imports of a running file, so each name becomes a module of its own.
await Bun.plugin({
  name: "import-map",
  setup(build) {
    for (const [key, target] of targets) {
      build.module(key, async () => ({ exports: await import(target), loader: "object" }));
    }
  },
});
