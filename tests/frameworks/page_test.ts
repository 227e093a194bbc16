// The programs on the frameworks page are the same as the programs that the tests run.
import { assert, assertEquals } from "@std/assert";
import { readPages } from "../release/pages.ts";
import { root } from "../support/processes.ts";

const ignore = typeof Deno === "undefined"; // Only Deno runs this test, because the page is the same on every runtime.

async function readExamples(): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const { name } of Deno.readDir(`${root}examples/frameworks`)) {
    const text = await Deno.readTextFile(`${root}examples/frameworks/${name}`);
    texts.push(text.replace(/^(?:\/\/.*\n)+/, ""));
  }
  return texts.sort();
}

Deno.test({
  name: "the frameworks page shows the programs that the tests run",
  ignore,
  async fn() {
    const page = (await readPages()).find(({ path }) => path === "docs/guides/frameworks.md");
    assert(page);
    assertEquals(page.blocks.map(({ text }) => text).sort(), await readExamples());
  },
});
