/**
 * Loads a server for the skills in a folder.
 */
import { createServer } from "../library.ts";
import { skills } from "../extensions/skills/skills.ts";
import { CliError } from "./cli_error.ts";
import type { Loaded } from "./loaded.ts";
import { toBaseName } from "../ready/files/path.ts";
import { platform } from "./platform.ts";

/** Maximum number of folders to search. A folder with more folders is served without this check. */
const MAX_FOLDERS = 2000;

/**
 * Creates a server for the skills in a folder. The server does not serve other files.
 *
 * @throws {CliError} if the folder contains no skill.
 */
export async function loadSkills(target: string): Promise<Loaded> {
  const path = platform.toPath(target);
  const kind = await platform.findKind(path);
  if (kind !== "folder") {
    const state = kind ? "it is not a folder" : `there is no folder ${path}`;
    throw new CliError(`Cannot serve the skills of ${target}: ${state}; name a folder that contains skills`);
  }
  if (!await hasSkill(path)) {
    const remedy = "add a folder with a file SKILL.md";
    throw new CliError(`Cannot serve the skills of ${target}: it contains no skill; ${remedy}`);
  }
  const name = toBaseName(path) || "skills";
  const handlers = [skills({ dir: platform.toFileUrl(target) })];
  return { server: createServer({ name, version: "0.0.0", handlers }), files: [] };
}

/** Searches for a `SKILL.md` at any depth, as `skills()` does. */
async function hasSkill(root: string): Promise<boolean> {
  const folders = [root];
  for (let at = 0; at < folders.length && at < MAX_FOLDERS; at++) {
    const entries = await platform.files.list(folders[at]);
    if (entries.some(({ name, kind }) => name === "SKILL.md" && kind === "file")) return true;
    for (const { name, kind } of entries) {
      if (kind === "folder" && !name.startsWith(".") && name !== "node_modules") folders.push(`${folders[at]}/${name}`);
    }
  }
  return folders.length > MAX_FOLDERS;
}
