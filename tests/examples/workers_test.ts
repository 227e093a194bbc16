// The page about Workers shows the files of the example. tests/workerd runs worker.ts.
import { assert, assertEquals } from "@std/assert";
import { readPages } from "../release/pages.ts";

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // Only Deno runs this test, because the page is the same on every runtime.

/** Removes the comment before the code. */
const cut = (text: string) => text.replace(/^(?:\/\/.*\n)+/, "");

Deno.test("the page about Workers shows the files of examples/workers", { ignore }, async () => {
  const page = (await readPages()).find(({ path }) => path === "docs/guides/workers.md");
  assert(page);
  const shown = page.blocks.map(({ text }) => cut(text));
  for (const name of ["server.ts", "worker.ts", "wrangler.jsonc"]) {
    const text = await Deno.readTextFile(new URL(`examples/workers/${name}`, root));
    assertEquals(shown.filter((each) => each === cut(text)).length, 1, name);
  }
});
