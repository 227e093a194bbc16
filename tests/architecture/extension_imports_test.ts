// The page about extensions names the functions that tasks, apps and skills import although no entry point exports them.
import { assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts"; // Only Deno reads the sources.

const root = new URL("../../", import.meta.url);
/** Entry points, and files whose names entry points export. */
const PUBLIC = [...Object.values(config.exports), "./src/library.ts"];

onDeno("docs/guides/extensions.md names the internal functions that the extensions import", async () => {
  const page = await Deno.readTextFile(new URL("docs/guides/extensions.md", root));
  const unnamed: string[] = [];
  for (const path of await listSources("src/extensions/")) {
    if (/\/(client|browser)\//.test(path)) continue;
    const text = await Deno.readTextFile(new URL(path, root));
    for (const [, names, from] of text.matchAll(/^import (?!type )\{([^}]*)\} from "(\.\.\/[^"]+)";/gm)) {
      const file = new URL(from, new URL(path, root)).href.slice(root.href.length);
      if (/^src\/(core|extensions)\//.test(file) || PUBLIC.includes(`./${file}`)) continue;
      const values = names.split(",").map((name) => name.trim()).filter((name) => name && !name.startsWith("type "));
      unnamed.push(...values.filter((name) => !page.includes(`\`${name}\``)).map((name) => `${path}: ${name}`));
    }
  }
  assertEquals(unnamed, []);
});
