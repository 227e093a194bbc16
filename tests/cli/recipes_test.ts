// What `mcp new` copies: the recipes of examples/recipes, whose own tests pass, and examples/github.ts.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { readFileSync } from "node:fs";
import config from "../../deno.json" with { type: "json" };
import { testProcesses, withFiles } from "../support/command_line.ts";
import { root, run } from "../support/processes.ts";
import { toGitHubServer } from "../../src/cli/new_github.ts";
import { recipes } from "../../src/cli/recipes_bundle.ts";

const program = ["deno", "run", "-A", "--config", `${root}deno.json`, `${root}mod.ts`];

testProcesses(
  "the bundle of the recipes is up to date, and each recipe needs this version of the library",
  async () => {
    const { BUNDLE, bundleRecipes } = await import("../release/recipes_bundle.ts");
    const message = 'src/cli/recipes_bundle.ts is out of date; run "deno task recipes:bundle"';
    assertEquals(await Deno.readTextFile(BUNDLE), await bundleRecipes(), message);
    for (const [name, files] of Object.entries(recipes)) {
      const own = `${files["package.json"] ?? ""}${files["deno.json"] ?? ""}`;
      assertStringIncludes(own, `^${config.version}`, name);
      assert(files["README.md"].startsWith("# "), name);
      // Cloudflare runs a Worker, so it has no image.
      assertEquals("Dockerfile" in files, name !== "worker-durable-object", name);
      assert(Object.keys(files).some((file) => /[._]test\.ts$/.test(file)), name);
    }
  },
);

testProcesses(
  "new --from copies a recipe into a new folder, and names the recipes if there is no such recipe",
  async () => {
    await withFiles({}, async (cwd) => {
      for (const [recipe, files] of Object.entries(recipes)) {
        const { code, stderr } = await run([...program, "new", `my-${recipe}`, "--from", recipe], { cwd });
        assertEquals(code, 0, stderr);
        for (const [file, text] of Object.entries(files)) {
          assertEquals(await Deno.readTextFile(`${cwd}/my-${recipe}/${file}`), text);
        }
      }
      const again = await run([...program, "new", "my-deno-file", "--from", "deno-file"], { cwd });
      assertEquals(again.code, 2);
      const unknown = await run([...program, "new", "other", "--from", "__proto__"], { cwd });
      assertEquals(unknown.code, 2);
      for (const recipe of Object.keys(recipes)) assertStringIncludes(unknown.stderr, recipe);
      assertEquals((await run([...program, "new", "other", "--from", "deno-file", "--app"], { cwd })).code, 2);
    });
  },
);

testProcesses("the tests of the recipes pass", async () => {
  await withFiles({}, async (folder) => {
    const words = ["deno", "test", "-A", "--no-check", `${root}examples/recipes`];
    const { code, stdout, stderr } = await run(words, { env: { NOTES: `${folder}/notes.json` } });
    assertEquals(code, 0, stdout + stderr);
    assertStringIncludes(stdout, "ok | ");
  });
});

Deno.test("mcp new --github and examples/github.ts decide in the same way who may sign in", () => {
  const lines = (text: string) => text.split("\n").filter((line) => /who: |GITHUB_USERS\./.test(line));
  const example = readFileSync(new URL("../../examples/github.ts", import.meta.url), "utf8");
  assertEquals(lines(toGitHubServer("github", { library: "@x/mcp", proxy: "@x/mcp/oauth/proxy" })), lines(example));
  assertEquals(lines(example).length, 2);
});
