// A task extension, a token check and a metrics observer import only published entries, which shows that the public API
// is sufficient for them.
import { assert, assertEquals } from "@std/assert";
import { readdir, readFile } from "node:fs/promises";
import config from "../../deno.json" with { type: "json" };

const published = Object.keys(config.exports).map((path) => config.name + path.slice(1));
const tests = new URL("../", import.meta.url);

/** By folder, the files of each program, and the packages that the program imports. */
const proofs = {
  "extensions/": { files: /^task_extension\.ts$/, packages: ["zod"] },
  "auth/": { files: /^token_check\.ts$/, packages: [] },
  "core/": { files: /^metrics(_program|_server)?\.ts$/, packages: [] },
};

for (const [folder, { files, packages }] of Object.entries(proofs)) {
  Deno.test(`${folder} has a program that imports only published entries`, async () => {
    const names = (await readdir(new URL(folder, tests))).filter((name) => files.test(name));
    assert(names.length, "the test did not find the files");
    const own = names.map((name) => `./${name}`);
    for (const name of names) {
      const source = await readFile(new URL(folder + name, tests), "utf8");
      const imports = [...source.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].map(([, name]) => name);
      assert(imports.some((name) => published.includes(name)), `${name} does not import the library`);
      const others = imports.filter((name) => ![...published, ...packages, ...own].includes(name));
      assertEquals(others, [], name);
    }
  });
}
