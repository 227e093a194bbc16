/**
 * Finds the files that configure a project.
 *
 * @module
 */
import { joinPath, toFolder } from "./path.ts";
import { platform } from "./platform.ts";

/** The size up to which a file is read, in bytes. */
const MAX_BYTES = 1024 * 1024;

/** The nearest file with one of the names, in a folder or above it, whose text passes the test. */
export async function findProjectFile(
  start: string,
  { names, test }: { readonly names: readonly string[]; readonly test: (text: string) => boolean },
): Promise<{ readonly path: string; readonly text: string } | undefined> {
  for (let folder = start;; folder = toFolder(folder)) {
    for (const path of names.map((name) => joinPath(folder, name))) {
      const text = await readFile(path).catch(() => undefined);
      if (text !== undefined && test(text)) return { path, text };
    }
    if (toFolder(folder) === folder) return;
  }
}

async function readFile(path: string): Promise<string | undefined> {
  // Deno would prompt for each folder.
  if (!platform.mayRead(path) || await platform.findKind(path) !== "file") return;
  return new TextDecoder().decode(await platform.files.read(path, MAX_BYTES));
}
