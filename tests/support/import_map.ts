// deno.json's import map for other runtimes: maps its names, and the project's own name, to files or packages.
import config from "../../deno.json" with { type: "json" };

const root = new URL("../../", import.meta.url).pathname;

/**
 * Returns the file or package for an entry of the import map; `undefined` if other runtimes can resolve the key
 * themselves.
 */
function toTarget(key: string, value: string): string | undefined {
  if (value.startsWith("./")) return root + value.slice(2);
  const parts = /^npm:\/?((?:@[^/]+\/)?[^@/]+)(?:@([^/]+))?(\/.*)?$/.exec(value);
  if (!parts) {
    throw new Error(`Cannot map "${key}" for other runtimes: "${value}" is neither a file nor an npm package`);
  }
  const [, name, version, path = ""] = parts;
  if (name + path === key) return;
  // If the map has two versions of a package, only the map contains the second version's name.
  const isSecond = name in config.imports;
  return isSecond ? `${root}node_modules/.deno/${name}@${version}/node_modules/${name}${path}` : name + path;
}

/** The target of each name in the map: a file path or a package. */
export const targets: Map<string, string> = new Map();
for (const [key, value] of Object.entries(config.imports)) {
  const target = toTarget(key, value);
  if (target !== undefined && !key.endsWith("/")) targets.set(key, target);
}
for (const [path, file] of Object.entries(config.exports)) {
  const name = config.name + path.slice(1);
  for (const key of [name, "jsr:" + name]) targets.set(key, root + file.slice(2));
}
for (const key of ["npm:zod", "npm:zod@4", "npm:zod@^4"]) targets.set(key, "zod");
