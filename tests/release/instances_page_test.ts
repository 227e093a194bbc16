// The page about several instances lists every reason why a behaviour holds within one of them only.
import { assert } from "@std/assert";
import { readFileSync } from "node:fs";
import { PER_INSTANCE } from "../support/instances.ts";

Deno.test("the page about several instances says what holds for one of them", () => {
  const page = readFileSync(new URL("../../docs/guides/instances.md", import.meta.url), "utf8").replace(/\s+/g, " ");
  for (const [name, reason] of Object.entries(PER_INSTANCE)) assert(page.includes(reason), name);
});
