// Counts the lines of the library's code: src/ without the CLI, the client and the test kit. Comments and blank lines
// do not count.
//
//   deno task lines              prints the counts of this tree, by folder
//   deno task lines REV          adds the counts of a git revision

const LEFT_OUT = /^src\/(cli|client|testing)\//;
const root = new URL("../../", import.meta.url).pathname;

/** Counts the lines that contain code. The formatter puts each comment on its own lines. */
function countLines(source: string): number {
  let count = 0;
  let isComment = false;
  for (const line of source.split("\n").map((line) => line.trim())) {
    isComment ||= line.startsWith("/*");
    if (line && !isComment && !line.startsWith("//")) count++;
    if (line.endsWith("*/")) isComment = false;
  }
  return count;
}

async function git(...args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("git", { args: [...args], cwd: root }).output();
  if (!success) throw new Error(`Cannot read the revision: ${new TextDecoder().decode(stderr).trim()}`);
  return new TextDecoder().decode(stdout);
}

/**
 * Counts the lines in each folder of src/, and in the files directly in src/. `revision` is `undefined` for the working
 * tree.
 */
async function countFolders(revision?: string): Promise<ReadonlyMap<string, number>> {
  const listed = revision === undefined ? git("ls-files", "src") : git("ls-tree", "-r", "--name-only", revision, "src");
  const paths = (await listed).split("\n").filter((path) => path.endsWith(".ts") && !LEFT_OUT.test(path));
  const counts = new Map<string, number>();
  for (const path of paths) {
    const source = revision === undefined
      ? await Deno.readTextFile(root + path)
      : await git("show", `${revision}:${path}`);
    const folder = path.split("/").slice(0, -1).join("/");
    for (const name of [folder, "all"]) counts.set(name, (counts.get(name) ?? 0) + countLines(source));
  }
  return counts;
}

if (import.meta.main) {
  const [revision] = Deno.args;
  const own = await countFolders();
  const other = revision === undefined ? undefined : await countFolders(revision);
  const names = [...new Set([...own.keys(), ...other?.keys() ?? []])].sort();
  console.log(
    other
      ? `| folder | this | ${revision} | difference |\n| --- | --: | --: | --: |`
      : "| folder | lines |\n| --- | --: |",
  );
  for (const name of names) {
    const [now, before] = [own.get(name) ?? 0, other?.get(name) ?? 0];
    console.log(other ? `| ${name} | ${now} | ${before} | ${now - before} |` : `| ${name} | ${now} |`);
  }
}
