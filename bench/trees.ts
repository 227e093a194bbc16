// Copies the working tree and a git revision into one folder, so that a benchmark can compare them.

const root = new URL("../", import.meta.url).pathname;

/**
 * A copy of the project. Benchmarks use only its public entry points, because internal files differ between revisions.
 */
export interface Tree {
  readonly name: string;
  /** The folder of the copy, ending in a slash. */
  readonly folder: string;
  readonly library: string;
  /** The file of the `./stdio` export. */
  readonly stdio: string;
  /** The files of the entries that export `apiKey`, `quota` and `audit`. They do not exist in older revisions. */
  readonly auth: string;
  readonly quota: string;
  readonly observe: string;
  readonly stores: string;
  readonly openapi: string;
}

/** The two copies of a benchmark run. */
export interface Trees {
  /** The folder that contains both copies, ending in a slash. */
  readonly folder: string;
  readonly own: Tree;
  readonly other: Tree;
  remove(): Promise<void>;
}

/**
 * Copies the working tree, including uncommitted changes, and a revision into one temporary folder. Without a revision,
 * copies the working tree twice. The working tree is copied too, because both trees must have the same parent folder
 * and configuration.
 *
 * @throws {Error} if git does not know the revision.
 */
export async function copyTrees(revision?: string): Promise<Trees> {
  const verify = ["rev-parse", "--verify", "--quiet", `${revision}^{commit}`];
  const commit = revision === undefined ? undefined : (await run("git", verify)).trim();
  const folder = `${await Deno.makeTempDir({ prefix: "mcp-against-" })}/`;
  const remove = () => Deno.remove(folder, { recursive: true });
  try {
    await Deno.writeTextFile(`${folder}deno.json`, '{ "nodeModulesDir": "manual" }\n');
    await Deno.symlink(`${root}node_modules`, `${folder}node_modules`);
    for (const name of ["own", "ref"]) await Deno.mkdir(folder + name);
    const files = "git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null";
    const copyOwn = (to: string) => run("sh", ["-c", `${files} | tar c --files-from=- | tar x -C "$1"`, "sh", to]);
    await copyOwn(`${folder}own`);
    if (commit === undefined) await copyOwn(`${folder}ref`);
    else await run("sh", ["-c", 'git archive "$1" | tar x -C "$2"', "sh", commit, `${folder}ref`]);
    return {
      folder,
      own: await readTree("this", `${folder}own/`),
      other: await readTree(revision ?? "this", `${folder}ref/`),
      remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function readTree(name: string, folder: string): Promise<Tree> {
  const { exports }: { exports: Readonly<Record<string, string>> } = JSON.parse(
    await Deno.readTextFile(`${folder}deno.json`),
  );
  // Remove the configuration of the project, because with this file Deno would install packages and start more slowly.
  await Deno.remove(`${folder}deno.json`);
  await Deno.remove(`${folder}deno.lock`).catch(() => {});
  const toFile = (key: string) => folder + (exports[key] ?? "").replace(/^\.\//, "");
  // In older revisions, an entry of its own exports `quota`.
  const limits = exports["./quota"] ? "./quota" : "./layers";
  const keys = [".", "./stdio", "./auth", limits, "./observe", "./stores", "./openapi"];
  const [library, stdio, auth, quota, observe, stores, openapi] = keys.map(toFile);
  return { name, folder, library, stdio, auth, quota, observe, stores, openapi };
}

async function run(command: string, args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args: [...args], cwd: root }).output();
  if (success) return new TextDecoder().decode(stdout);
  const reason = new TextDecoder().decode(stderr).trim() || "git does not know it";
  throw new Error(`Cannot run ${command} ${args.join(" ")}: ${reason}`);
}
