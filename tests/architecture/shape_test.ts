// The library works without the older revisions: a copy of the project without their folder, and without the only
// import of it, still compiles and passes its tests.
import { assert, assertEquals, assertMatch } from "@std/assert";

const root = new URL("../../", import.meta.url);
const FOLDER = "src/server/eras/legacy";

async function copyFolder(from: URL, to: string): Promise<string[]> {
  await Deno.mkdir(to, { recursive: true });
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) files.push(...await copyFolder(new URL(`${name}/`, from), `${to}/${name}`));
    else {
      await Deno.copyFile(new URL(name, from), `${to}/${name}`);
      files.push(`${to}/${name}`);
    }
  }
  return files;
}

async function run(folder: string, args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: folder,
    env: { NO_COLOR: "1" },
  }).output();
  const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert(success, `deno ${args.slice(0, 2).join(" ")} failed:\n${output}`);
  return output;
}

Deno.test({
  name:
    "without the folder for the older revisions and its import in src/library.ts, the project compiles and passes its tests",
  ignore: typeof Deno === "undefined", // Deno checks and tests the copy
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "shape-" });
    try {
      const sources = await copyFolder(new URL("src/", root), `${folder}/src`);
      await copyFolder(new URL("tests/", root), `${folder}/tests`);
      await Deno.copyFile(new URL("deno.lock", root), `${folder}/deno.lock`);
      const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", root)));
      // The copy gets its packages from Deno's cache, so it needs no node_modules.
      await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ ...config, nodeModulesDir: "none" }));
      await Deno.remove(`${folder}/${FOLDER}`, { recursive: true });
      const library = await Deno.readTextFile(new URL("src/library.ts", root));
      const cut = library
        .replace(/(?<=^const loadOlder: LoadOlder = ).*import\(".*eras\/legacy\/.*(?=;$)/m, "fail")
        .replace("readRevisions(options?.revisions)", 'readRevisions(["2026-07-28"])');
      assertEquals(
        library.length - cut.length > 0 && !cut.includes("legacy"),
        true,
        "src/library.ts does not combine the eras as expected",
      );
      const fail = `async function fail(): Promise<never> { throw new Error("There are no older revisions"); }`;
      await Deno.writeTextFile(`${folder}/src/library.ts`, `${cut}\n${fail}\n`);
      await Deno.copyFile(new URL("mod.ts", root), `${folder}/mod.ts`);

      const left = sources.filter((path) => path.endsWith(".ts") && !path.startsWith(`${folder}/${FOLDER}/`));
      await run(folder, ["check", "--quiet", "mod.ts", ...left]);
      const output = await run(folder, [
        "test",
        "-A",
        "--no-check",
        "--filter",
        "(2026-07-28 over memory)",
        ...["lists", "tools"].map((name) => `tests/behaviour/${name}_test.ts`),
      ]);
      assertMatch(output, /ok \| \d\d+ passed .*\| 0 failed/);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
