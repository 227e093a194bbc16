// Atomic replacement of files: content, mode and links, on the current runtime.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { platform } from "../../src/cli/platform.ts";
import { system, withFolder } from "./folder.ts";

async function modeOf(path: string): Promise<string> {
  const { mode } = await platform.files.stat(path) ?? {};
  return (mode ?? 0).toString(8);
}

async function readText(path: string): Promise<string> {
  return new TextDecoder().decode(await platform.files.read(path, 1_000_000));
}

for (const mode of ["600", "640", "644", "660", "666", "755"]) {
  Deno.test(`a replaced file keeps its mode ${mode}`, async () => {
    await withFolder({ "a.json": "before" }, async (folder) => {
      await system("chmod", mode, `${folder}/a.json`);
      await platform.files.replace(`${folder}/a.json`, "after");
      assertEquals([await readText(`${folder}/a.json`), await modeOf(`${folder}/a.json`)], ["after", mode]);
      assertEquals((await platform.files.list(folder)).map(({ name }) => name), ["a.json"]);
    });
  });
}

Deno.test("a new file is readable only by its owner, unless a mode is given", async () => {
  await withFolder({}, async (folder) => {
    await platform.files.replace(`${folder}/a`, "a");
    await platform.files.create(`${folder}/b`, "b");
    await platform.files.create(`${folder}/c`, "c", 0o664);
    assertEquals(await Promise.all(["a", "b", "c"].map((name) => modeOf(`${folder}/${name}`))), ["600", "600", "664"]);
    await assertRejects(() => platform.files.create(`${folder}/b`, "other"));
    assertEquals(await readText(`${folder}/b`), "b");
  });
});

Deno.test("a symbolic link is kept, and its target is replaced", async () => {
  await withFolder({ "real/a.json": "before", "links/x": "" }, async (folder) => {
    await system("ln", "-s", "../real/a.json", `${folder}/links/one`);
    await system("ln", "-s", "one", `${folder}/links/two`);
    await system("chmod", "640", `${folder}/real/a.json`);
    await platform.files.replace(`${folder}/links/two`, "after");
    assertEquals(await readText(`${folder}/real/a.json`), "after");
    assertEquals(await modeOf(`${folder}/real/a.json`), "640");
    for (const name of ["one", "two"]) {
      assertEquals((await platform.files.lstat(`${folder}/links/${name}`))?.kind, "link");
    }
    assertEquals((await platform.files.list(`${folder}/real`)).length, 1);
  });
});

Deno.test("concurrent readers see the old content or the new content, never a mixture", async () => {
  const texts = ["a", "b"].map((letter) => letter.repeat(300_000));
  await withFolder({ "a.json": texts[0] }, async (folder) => {
    let isOver = false;
    const seen = new Set<string>();
    const reading = (async () => {
      while (!isOver) seen.add(await readText(`${folder}/a.json`));
    })();
    for (let i = 1; i <= 100; i++) await platform.files.replace(`${folder}/a.json`, texts[i % 2]);
    isOver = true;
    await reading;
    assert([...seen].every((text) => texts.includes(text)), `${seen.size} different contents were seen`);
  });
});

Deno.test("a failed replacement changes neither the file nor its folder", async () => {
  await withFolder({ "a/b/c": "before" }, async (folder) => {
    await assertRejects(() => platform.files.replace(`${folder}/a/b`, "after"));
    assertEquals((await platform.files.list(`${folder}/a`)).map(({ name }) => name), ["b"]);
    await assertRejects(() => platform.files.replace(`${folder}/none/c`, "after"));
  });
});
