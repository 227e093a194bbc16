// The page about several instances explains why some behaviours are limited to a single instance.
import { assert } from "@std/assert";
import { readFileSync } from "node:fs";
import { PER_INSTANCE } from "../support/instances.ts";

Deno.test("the page about several instances lists the behaviour that is limited to one instance", () => {
  const page = readFileSync(new URL("../../docs/guides/instances.md", import.meta.url), "utf8").replace(/\s+/g, " ");
  for (const [name, reason] of Object.entries(PER_INSTANCE)) assert(page.includes(reason), name);
});
