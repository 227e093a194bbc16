// The page about instances explains why some behaviour holds only within one instance.
import { assert } from "@std/assert";
import { readFileSync } from "node:fs";
import { PER_INSTANCE } from "../support/instances.ts";

Deno.test("the page about instances contains every reason why a behaviour holds only within one instance", () => {
  const page = readFileSync(new URL("../../docs/guides/instances.md", import.meta.url), "utf8").replace(/\s+/g, " ");
  for (const [name, reason] of Object.entries(PER_INSTANCE)) assert(page.includes(reason), name);
});
