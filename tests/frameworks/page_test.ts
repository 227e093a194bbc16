// The programs on the frameworks page are programs that the tests run, and the table of checks is the
// table of the record.
import { assert, assertEquals } from "@std/assert";
import { readPages } from "../release/pages.ts";
import { root } from "../support/processes.ts";
import { projects, toShown } from "./projects.ts";
import { pageFile, readRecord, toNotes, toTable, toVersions } from "./record.ts";
import { withTables } from "../release/page_tables.ts";

const ignore = typeof Deno === "undefined"; // Only Deno runs this test, because the page is the same on every runtime.

/** Returns the programs in examples/frameworks, by path. */
async function readExamples(): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const folder of ["examples/frameworks", "examples/frameworks/apps"]) {
    for await (const { name, isFile } of Deno.readDir(`${root}${folder}`)) {
      if (!isFile) continue;
      const text = toShown(name, await Deno.readTextFile(`${root}${folder}/${name}`));
      texts.set(`${folder}/${name}`, text.replace(/^(?:\/\/.*\n)+/, ""));
    }
  }
  return texts;
}

Deno.test({
  name: "every program on the frameworks page is a program that the tests run",
  ignore,
  async fn() {
    const page = (await readPages()).find(({ path }) => path === "docs/guides/frameworks.md");
    assert(page);
    const programs = page.blocks.filter(({ language }) => ["ts", "js"].includes(language)).map(({ text }) => text);
    const examples = await readExamples();
    assertEquals(programs.filter((text) => ![...examples.values()].includes(text)), [], "not in examples/frameworks");
    assert(programs.length > 10, `${programs.length} programs`);
  },
});

Deno.test({
  name: "the page with the framework checks shows the record, which has the versions and settings of every app",
  ignore,
  async fn() {
    const [page, record] = [await Deno.readTextFile(pageFile), await readRecord()];
    assertEquals(page, withTables(page, [toTable(record)]), "run `deno task frameworks`");
    const recorded = Object.entries(record).map(([name, { versions, notes }]) => [name, versions, notes]);
    const expected = Object.entries(projects).map(([name, project]) => [name, toVersions(project), toNotes(project)]);
    assertEquals(recorded, expected, "run `deno task frameworks`");
  },
});
