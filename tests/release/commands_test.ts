// Runs the commands in the documentation as shown, in a folder with the page's files and on both runtimes. The command
// `mcp` is this project's own CLI.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { root } from "../support/processes.ts";
import { isTested } from "../support/runtimes.ts";
import { type Page, readPages, writeFile, writeFiles } from "./pages.ts";
import { readShown, Shell } from "./shell.ts";
import config from "../../deno.json" with { type: "json" };

const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of both runtimes.

const runtimes = {
  deno: `deno run -A ${root}mod.ts`,
  bun: `bun ${root}mod.ts`,
} as const;

/** The package under the names that a page's files import. On Deno, a served file uses this project's import map. */
const paths = Object.fromEntries(
  Object.entries(config.exports).map(([name, file]) => [`@x/mcp${name.slice(1)}`, [root + file.slice(2)]]),
);

async function runPage(t: Deno.TestContext, page: Page, runtime: keyof typeof runtimes): Promise<void> {
  const home = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-commands-" }));
  const folder = `${home}/project`;
  try {
    await writeFiles(page, folder);
    await Deno.writeTextFile(`${home}/tsconfig.json`, JSON.stringify({ compilerOptions: { paths } }));
    const imports = Object.fromEntries(Object.entries(paths).map(([name, [path]]) => [name, path]));
    await Deno.writeTextFile(`${home}/deno.json`, JSON.stringify({ imports }));
    await using shell = new Shell({ cwd: folder, program: runtimes[runtime] });
    for (const block of page.blocks) {
      await writeFile(block, folder); // a page can show a file again, in a later state
      if (block.language !== "console") continue;
      for (const shown of readShown(block.text)) {
        // A block that names a runtime is only for this runtime.
        if (runtime === "bun" && /\bdeno\b/i.test(shown.command + shown.output)) continue;
        await t.step(shown.command, async () => assertEquals(await shell.run(shown), shown.output));
      }
      await shell.endBlock();
    }
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

for (const runtime of ["deno", "bun"] as const) {
  Deno.test(`${runtime}: the commands in the documentation print the documented output`, {
    ignore: ignore || !isTested(runtime),
  }, async (t) => {
    for (const page of await readPages()) {
      if (page.blocks.some(({ language }) => language === "console")) {
        await t.step(page.path, (t) => runPage(t, page, runtime));
      }
    }
  });
}

Deno.test("the documentation shows every command", { ignore }, async () => {
  const blocks = (await readPages()).flatMap(({ blocks }) => blocks.filter(({ language }) => language === "console"));
  const shown = blocks.flatMap(({ text }) => readShown(text)).map(({ command }) => command);
  const named = new Set(shown.map((command) => /^mcp (\w+)/.exec(command)?.[1] ?? "serve"));
  for (
    const name of [
      "call",
      "check",
      "completions",
      "doctor",
      "install",
      "inspect",
      "new",
      "pack",
      "prompt",
      "read",
      "serve",
    ]
  ) assertStringIncludes([...named].join(), name);
});
