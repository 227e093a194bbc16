// Counts the lines of code and of comments in src/ and tests/. Blank lines do not count.
//
//   deno task lines              prints the counts of this tree, by folder
//   deno task lines REV          adds the differences from a git revision

const root = new URL("../../", import.meta.url).pathname;

interface Lines {
  readonly code: number;
  readonly comments: number;
}

const NONE: Lines = { code: 0, comments: 0 };

/** Counts the lines of code and the lines of comments. The formatter puts each comment on its own lines. */
function countLines(source: string): Lines {
  let [code, comments] = [0, 0];
  let isComment = false;
  for (const line of source.split("\n").map((line) => line.trim())) {
    isComment ||= line.startsWith("/*");
    if (isComment || line.startsWith("//")) comments += line ? 1 : 0;
    else if (line) code++;
    if (line.endsWith("*/")) isComment = false;
  }
  return { code, comments };
}

async function git(...args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("git", { args: [...args], cwd: root }).output();
  if (!success) throw new Error(`Cannot read the revision: ${new TextDecoder().decode(stderr).trim()}`);
  return new TextDecoder().decode(stdout);
}

/** Counts the lines in each folder of src/, and in src/ and tests/. `revision` is `undefined` for the working tree. */
async function countFolders(revision?: string): Promise<ReadonlyMap<string, Lines>> {
  const places = ["src", "tests"];
  const listed = revision === undefined
    ? git("ls-files", ...places)
    : git("ls-tree", "-r", "--name-only", revision, ...places);
  const counts = new Map<string, Lines>();
  for (const path of (await listed).split("\n").filter((path) => path.endsWith(".ts"))) {
    // A file that is deleted, but not in the index, has no lines.
    const source = revision === undefined
      ? await Deno.readTextFile(root + path).catch(() => "")
      : await git("show", `${revision}:${path}`);
    const { code, comments } = countLines(source);
    const top = path.split("/", 1)[0];
    const folder = path.split("/").slice(0, -1).join("/");
    for (const name of top === "src" ? new Set([folder, `all of ${top}`]) : [`all of ${top}`]) {
      const known = counts.get(name) ?? NONE;
      counts.set(name, { code: known.code + code, comments: known.comments + comments });
    }
  }
  return counts;
}

if (import.meta.main) {
  const [revision] = Deno.args;
  const own = await countFolders();
  const other = revision === undefined ? own : await countFolders(revision);
  console.log("| folder | code | comments |" + (revision === undefined ? "" : ` code, since ${revision} | comments |`));
  console.log("| --- | --: | --: |" + (revision === undefined ? "" : " --: | --: |"));
  for (const name of [...new Set([...own.keys(), ...other.keys()])].sort()) {
    const { code, comments } = own.get(name) ?? NONE;
    const before = other.get(name) ?? NONE;
    const change = revision === undefined ? "" : ` ${code - before.code} | ${comments - before.comments} |`;
    console.log(`| ${name} | ${code} | ${comments} |${change}`);
  }
}
