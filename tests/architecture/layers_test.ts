// The ready-made layers are built with the public contract, so that anybody can write the next one.
import { assertEquals } from "@std/assert";
import { findImports } from "./rules.ts";
import { onDeno } from "../support/on_deno.ts";

const root = new URL("../../", import.meta.url);
const FOLDER = "src/layers/";

/** What a layer of a third party can import too. `./layers` exports `layer` and its types from these files. */
const PUBLIC = [
  "src/server/engine/layers.ts",
  "src/server/handlers/layer.ts",
  "src/library.ts",
  "src/extensions/extension.ts",
];

/** Helpers that check options, and recognize errors and promises, which a third party writes itself. */
const HELPERS = [
  "src/core/known_options.ts",
  "src/core/protocol/errors.ts",
  "src/core/protocol/promises.ts",
  "src/core/kit/",
];

// Only Deno has the parser.
onDeno("ready-made layers use only public names, and helpers that know nothing of a server", async () => {
  const found: string[] = [];
  let files = 0;
  for await (const { name, isFile } of Deno.readDir(new URL(FOLDER, root))) {
    // The quota has an internal companion, because its queues and counters would double the public interface.
    if (!isFile || !name.endsWith(".ts")) continue;
    files++;
    const path = FOLDER + name;
    const isAllowed = (target: string) =>
      PUBLIC.includes(target) || [FOLDER, ...HELPERS].some((start) => target.startsWith(start));
    const source = await Deno.readTextFile(new URL(path, root));
    found.push(...findImports(path, source).filter((target) => !isAllowed(target)).map((to) => `${path}: ${to}`));
  }
  assertEquals(found, []);
  assertEquals(files > 5, true);
});
