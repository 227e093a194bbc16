// A task extension, a token check and a metrics observer use published entry points only. This shows that the public
// API is sufficient for them.
import { assert, assertEquals } from "@std/assert";
import { readdir, readFile } from "node:fs/promises";
import config from "../../deno.json" with { type: "json" };

const published = Object.keys(config.exports).map((path) => config.name + path.slice(1));
const tests = new URL("../", import.meta.url);

/** The files of each program by folder, and the packages that the program uses. */
const proofs = {
  "extensions/": { files: /^task_extension\.ts$/, packages: ["zod"] },
  "auth/": { files: /^token_check\.ts$/, packages: [] },
  "core/": { files: /^metrics(_program|_server)?\.ts$/, packages: [] },
};

for (const [folder, { files, packages }] of Object.entries(proofs)) {
  Deno.test(`${folder} has a program that uses published entry points only`, async () => {
    const names = (await readdir(new URL(folder, tests))).filter((name) => files.test(name));
    assert(names.length, "the files were not found");
    const own = names.map((name) => `./${name}`);
    for (const name of names) {
      const source = await readFile(new URL(folder + name, tests), "utf8");
      const imports = [...source.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].map(([, name]) => name);
      assert(imports.some((name) => published.includes(name)), `${name} imports nothing of the library`);
      const others = imports.filter((name) => ![...published, ...packages, ...own].includes(name));
      assertEquals(others, [], name);
    }
  });
}
