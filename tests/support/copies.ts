// A second copy of the library, such as a package of handlers may depend on.
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { pathToFileURL } from "node:url";

const root = new URL("../../", import.meta.url);

/** A folder with a copy of the library's sources. */
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
