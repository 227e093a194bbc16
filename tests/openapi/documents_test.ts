// Tests all operations of published documents: each becomes a tool that sends what its document describes.
import { assert, assertEquals } from "@std/assert";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { measureHeap } from "../support/heap.ts";
import { onDeno } from "../support/on_deno.ts"; // The packages are installed with a function of Deno.
import { findDocuments, PACKAGES, type PublishedDocument } from "./documents.ts";
import { type Figures, tryDocument } from "./try_document.ts";

const TABLE = new URL("documents.json", import.meta.url);

async function findAll(): Promise<readonly PublishedDocument[]> {
  const found = await findDocuments();
  if ("missing" in found) throw new Error(found.missing);
  return found;
}

onDeno(
  "all operations of published documents become tools, whose requests are what the documents describe",
  async () => {
    const documents = await findAll();
    assert(documents.length >= 60, `${documents.length} documents`);
    const table: Record<string, Figures> = {};
    const differences: string[] = [];
    const uncalled: string[] = [];
    for (const { name, read } of documents) {
      const tried = await tryDocument(await read());
      table[name] = tried.figures;
      differences.push(...tried.differences.map((each) => `${name} ${each}`));
      uncalled.push(...tried.uncalled.map((each) => `${name} ${each}`));
    }
    const sum = (key: keyof Figures) => Object.values(table).reduce((total, figures) => total + figures[key], 0);
    const [operations, skipped, called] = [sum("operations"), sum("skipped"), sum("called")];
    assertEquals(differences, []);
    assert(skipped <= operations / 100, `${skipped} of ${operations} operations were left out`);
    assert(
      called >= operations * 0.9,
      `${called} of ${operations} operations were called: ${uncalled.slice(0, 20).join("\n")}`,
    );
    if (Deno.env.get("WRITE_DOCUMENTS")) await Deno.writeTextFile(TABLE, `${JSON.stringify(table, null, 2)}\n`);
    assertEquals(
      table,
      JSON.parse(await Deno.readTextFile(TABLE)),
      "run the test with WRITE_DOCUMENTS=1, and check the table",
    );
    assertEquals(
      new Set(documents.map(({ name }) => PACKAGES.find((each) => name.startsWith(each.name)))).size,
      PACKAGES.length,
    );
  },
);

onDeno("the tools of GitHub's document use at most 40 MB, because they do not hold the document", async () => {
  const bytes = await measureHeap(new URL("heap.ts", import.meta.url));
  assert(bytes < 40_000_000, `${bytes} bytes`);
});

Deno.test("hostile: 100,000 paths are served", () => {
  const paths = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`/p${i}`, { get: {} }]));
  const { operations } = openapi({ openapi: "3.1.0", paths }, { fetch: () => new Response() });
  assertEquals(operations.length, 100_000);
});
