// Lists the source files of the project.
const root = new URL("../../", import.meta.url);

/** Returns the sorted paths of the TypeScript files in a folder such as `src/`, relative to the project. Deno only. */
export async function listSources(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, root))) {
    if (isDirectory) paths.push(...await listSources(`${folder}${name}/`));
    else if (name.endsWith(".ts")) paths.push(folder + name);
  }
  return paths.sort();
}
