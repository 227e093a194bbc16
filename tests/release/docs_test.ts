// Holds that the map of the files is the one that the files themselves give.
import { assertEquals } from "@std/assert";
import { renderPage } from "./map.ts";

Deno.test({
  name: "the map in docs/architecture.md is what the files say of themselves",
  ignore: typeof Deno === "undefined", // files are read with Deno
  async fn() {
    const { page, wanted } = await renderPage();
    // Tables are laid out by the formatter.
    const toRows = (text: string) => text.replace(/ +/g, " ").replace(/-{3,}/g, "---");
    assertEquals(toRows(page), toRows(wanted), "run `deno task docs:map`");
  },
});
