// The example extension is built on published entry points only: what it needs, anybody can have.
import { assert, assertEquals } from "@std/assert";

const isDeno = navigator.userAgent.startsWith("Deno");

Deno.test({
  name: "the task extension imports published entry points only",
  ignore: !isDeno,
  async fn() {
    const root = new URL("../../", import.meta.url);
    const { exports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", root)));
    const published = Object.values<string>(exports).map((path) => new URL(path, root).href);
    const here = new URL("task_extension.ts", import.meta.url);
    const source = await Deno.readTextFile(here);
    const names = [...source.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].map(([, name]) => name);
    assert(names.length >= 3, "the imports were not found");
    const others = names.filter((name) => !published.includes(new URL(name, here).href));
    assertEquals(others, ["zod"]);
  },
});
