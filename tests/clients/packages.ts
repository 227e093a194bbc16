// The clients' npm packages, and the folder into which they are installed. Deno only.
import { NODE_VERSIONS } from "../support/node_versions.ts";
import pinned from "./packages.json" with { type: "json" };

/** The clients and their npm packages. The first package of each client is the client itself. */
export const packages: Readonly<Record<string, readonly string[]>> = pinned;

/** The Node version under which clients are installed and run. npm installs older packages under older versions. */
export const NODE = NODE_VERSIONS[1];

/** Returns the folder for installed clients, unless an option names another folder. */
export function toCache(): string {
  return `${Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`}/x-mcp-clients`;
}

/** Returns the name and the version of a client's package. */
export function toPackage(name: string): { readonly package: string; readonly version: string } {
  const [first = ""] = packages[name] ?? [];
  const at = first.lastIndexOf("@");
  return { package: first.slice(0, at), version: first.slice(at + 1) };
}
