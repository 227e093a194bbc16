// The page about clients, which is written from the record and from other sources.
import { assert, assertEquals } from "@std/assert";
import { isNotDeno } from "../support/command_line.ts";
import { withTables } from "../release/page_tables.ts";
import { agents } from "./agents/agents.ts";
import { frameworks } from "./frameworks/frameworks.ts";
import { packages, toPackage } from "./packages.ts";
import { pageFile, toTables } from "./page.ts";
import { readRecords } from "./record.ts";
import sourced from "./sourced.json" with { type: "json" };

/** Registers a test that runs on Deno only, because files are read with Deno. */
function testOnDeno(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: isNotDeno, fn });
}

testOnDeno("the page about clients matches the record and the sources", async () => {
  const page = await Deno.readTextFile(pageFile);
  const tables = toTables(await readRecords());
  assertEquals(page, withTables(page, tables), `${pageFile.pathname} is out of date; run "deno task docs:clients"`);
});

testOnDeno("the record contains every agent and every framework, in the pinned version", async () => {
  const records = await readRecords();
  const names = [...agents, ...frameworks].map(({ name }) => name);
  assertEquals(Object.keys(records), names.toSorted());
  assertEquals(names.filter((name) => !(name in packages)), []);
  for (const [name, record] of Object.entries(records)) {
    assertEquals({ package: record.package, version: record.version }, toPackage(name), name);
  }
});

testOnDeno("every source that a fact refers to is listed, and no other source", async () => {
  const page = await Deno.readTextFile(pageFile);
  const sources = await Deno.readTextFile(new URL("../project/client-checks.md", pageFile));
  const facts = JSON.stringify(sourced) + page;
  const cited = new Set([...facts.matchAll(/\[([A-Z]{1,2})\]/g)].map(([, letter]) => letter));
  const listed = [...sources.matchAll(/^\| ([A-Z]{1,2}) +\|/gm)].map(([, letter]) => letter);
  assertEquals(listed.toSorted(), [...cited].toSorted());
  assert(listed.length > 0, "the page lists no source");
});
