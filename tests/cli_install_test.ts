// `install` as a user meets it: real processes, in an empty home, on both runtimes.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { type Finished, root, run } from "./processes.ts";

const ignore = typeof Deno === "undefined"; // Deno starts the processes, those of Bun too

const runtimes = [
  { name: "deno", program: ["deno", "run", "-A", `${root}mod.ts`] },
  { name: "bun", program: ["bun", `${root}mod.ts`] },
] as const;

const config = { name: "here", tools: { greet: { description: "Greets", run: ["printf", "Good day!"] } } };

/** A folder with files of the user's, outside of the project; its path has no links. */
async function withFiles(files: Record<string, unknown>, use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-files-" }));
  try {
    for (const [name, content] of Object.entries(files)) {
      await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
      const text = typeof content === "string" ? content : JSON.stringify(content);
      await Deno.writeTextFile(`${folder}/${name}`, text.replaceAll('"@x/mcp"', JSON.stringify(`${root}mod.ts`)));
    }
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore, fn });
}

function modeOf(path: string): string {
  return ((Deno.statSync(path).mode ?? 0) & 0o7777).toString(8);
}

function listNames(path: string): string[] {
  return [...Deno.readDirSync(path)].map(({ name }) => name).sort();
}

for (const { name, program } of runtimes) {
  const install = (cwd: string, ...words: string[]): Promise<Finished> =>
    run([...program, "install", ...words, "--no-check"], { cwd });

  test(`${name}: install keeps the mode of a file for it and its backup, and makes files for their owner only`, async () => {
    await withFiles({ "s/mcp.jsonc": config, "client.json": '{"mcpServers":{}}' }, async (cwd) => {
      for (const mode of ["600", "644", "640"]) {
        await Deno.chmod(`${cwd}/client.json`, parseInt(mode, 8));
        const words = ["s", "--client", "cursor", "--file", "client.json", "--name", `s${mode}`];
        const { code, stderr } = await install(cwd, ...words);
        assertEquals(code, 0, stderr);
        const [, backup] = /What it was before is in (\S+)\./.exec(stderr) ?? [];
        assertEquals([modeOf(`${cwd}/client.json`), modeOf(backup)], [mode, mode]);
      }
      const { code, stderr } = await install(cwd, "s", "--client", "cursor", "--file", "sub/new.json");
      assertEquals([code, modeOf(`${cwd}/sub/new.json`)], [0, "600"], stderr);
      assertEquals(listNames(`${cwd}/sub`), ["new.json"]);
    });
  });

  test(`${name}: install writes through a link, and refuses one that leads nowhere and a read-only file`, async () => {
    await withFiles({ "s/mcp.jsonc": config, "dotfiles/c.json": "{}", "fixed.json": "{}" }, async (cwd) => {
      await Deno.symlink("dotfiles/c.json", `${cwd}/client.json`);
      await Deno.symlink("nowhere/c.json", `${cwd}/lost.json`);
      await Deno.chmod(`${cwd}/fixed.json`, 0o444);
      const into = (file: string) => install(cwd, "s", "--client", "cursor", "--file", file);
      assertEquals((await into("client.json")).code, 0);
      assert((await Deno.lstat(`${cwd}/client.json`)).isSymlink);
      assertStringIncludes(await Deno.readTextFile(`${cwd}/dotfiles/c.json`), '"s": {');
      assertEquals(listNames(`${cwd}/dotfiles`), ["c.json"]);
      for (const [file, told] of [["lost.json", "it is a link that leads nowhere"], ["fixed.json", "it is read-only"]]) {
        const { code, stderr } = await into(file);
        assertEquals(code, 2, stderr);
        assertStringIncludes(stderr, `Cannot change ${cwd}/${file}: ${told}; `);
      }
      assertEquals(listNames(cwd).filter((name) => /fixed|lost|nowhere/.test(name)), ["fixed.json", "lost.json"]);
    });
  });
}
