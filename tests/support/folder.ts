// Temporary folders with files, outside of the project, on either runtime.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { promisify } from "node:util";

/** The project's folder, with a trailing slash. */
export const root: string = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** Runs a system program, and waits for its end. Throws if the program fails. */
export async function system(program: string, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(program, args, { cwd: "/" })).stdout.trim();
}

/** File contents by path. Content that is not a string is written as JSON, and `"@x/mcp"` resolves to this project. */
export type Files = Readonly<Record<string, unknown>>;

export async function writeFiles(folder: string, files: Files): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = `${folder}/${name}`;
    await mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
    const text = typeof content === "string" ? content : JSON.stringify(content);
    await writeFile(path, text.replaceAll('from "@x/mcp"', `from ${JSON.stringify(`${root}mod.ts`)}`));
  }
}

/** Creates a folder with files, runs `use`, and removes the folder. The folder's path contains no symbolic links. */
export async function withFolder(files: Files, use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await realpath(await mkdtemp(`${tmpdir()}/mcp-files-`));
  try {
    await writeFiles(folder, files);
    await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
