import { assertEquals } from "@std/assert";

const ignore = typeof Deno === "undefined"; // files are read with Deno
const root = new URL("../", import.meta.url);

async function listFiles(folder: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, root))) {
    if (isDirectory) names.push(...await listFiles(`${folder}${name}/`));
    else names.push(folder + name);
  }
  return names;
}

/** The files that the map names: words under a folder, up to the two spaces before what they are for. */
function readMap(readme: string): string[] {
  const [, map = ""] = /## The files\n[^]*?```\n([^]*?)```/.exec(readme) ?? [];
  let folder = "";
  return map.split("\n").flatMap((line) => {
    const [, path, words] = /^(src\/\S*\/)? *(.*)/.exec(line) ?? [];
    if (/^\S/.test(line)) folder = path ?? "";
    if (!line.startsWith("  ")) return line.match(/\bsrc\/\w+\.ts\b/g) ?? [];
    return folder ? words.split("  ")[0].split(" ").map((name) => `${folder}${name}.ts`) : [];
  });
}

Deno.test({
  name: "the map in README.md names every file of src/, and no other",
  ignore,
  async fn() {
    const named = new Set(readMap(await Deno.readTextFile(new URL("README.md", root))));
    const files = (await listFiles("src/")).filter((file) => file.endsWith(".ts")).sort();
    assertEquals(files.filter((file) => !named.has(file)), [], "files that the map leaves out");
    const gone = [...named].filter((file) => !files.includes(file));
    assertEquals(gone, [], "files that are not there");
  },
});
