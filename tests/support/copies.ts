// A second copy of the library. An application can have two copies, for example if a package of handlers depends on
// another version.
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { pathToFileURL } from "node:url";

const root = new URL("../../", import.meta.url);

/** Creates a folder with a copy of the library's sources. */
export async function makeFolder(): Promise<URL> {
  const folder = pathToFileURL(`${await mkdtemp(`${tmpdir()}/mcp-copy-`)}/`);
  for (const name of ["mod.ts", "src", "deno.json"]) {
    await cp(new URL(name, root), new URL(name, folder), { recursive: true });
  }
  return folder;
}

export async function removeFolder(folder: URL): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
