// Results on the inspector page, in a real browser: long, empty, rendered and malicious results.
import { assert, assertEquals, assertMatch, assertNotMatch, assertStringIncludes } from "@std/assert";
import { sentence } from "../../support/messages.ts";
import { test } from "./browser.ts";
import { lexMarkdown } from "../../../src/cli/inspector/browser/markdown_lexer.ts";

const file = "tests/cli/inspector/results.ts";

test(
  "a long result can be searched, copied and collapsed",
  async ({ page, panel, choose, press, readResult }, step) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);

    await step("text", async () => {
      await choose("lines");
      await press("Call");
      await readResult("Done");
      const find = panel.getByLabel("Find in text");
      await find.fill("needle.*");
      await panel.getByText("1 of 4", { exact: true }).waitFor();
      assertEquals(await panel.locator("mark").allInnerTexts(), Array(4).fill("Needle.*"));
      await page.keyboard.press("Enter");
      await panel.getByText("2 of 4", { exact: true }).waitFor();
      await page.keyboard.press("Shift+Enter");
      await panel.getByRole("button", { name: "Previous match" }).click();
      await panel.getByText("4 of 4", { exact: true }).waitFor();
      assertEquals(
        await panel.locator("mark[aria-current]").evaluate((element) => {
          const { top } = element.getBoundingClientRect();
          return top > 0 && top < 820;
        }),
        true,
      );
      await find.fill("no such words");
      assertEquals(await panel.locator(".finder").getByRole("status").innerText(), sentence());
      await find.fill("");
      assertEquals(await panel.locator("mark").count(), 0);
      await panel.getByRole("button", { name: "Copy", exact: true }).first().click();
      assertMatch(await page.evaluate<string>("navigator.clipboard.readText()"), /^Line 0 has the Needle[^]*Line 399$/);
      const folder = panel.getByRole("button", { name: "Collapse" });
      await folder.click();
      assertEquals(await panel.locator(".output .body").first().isVisible(), false);
      await panel.getByRole("button", { name: "Expand" }).click();
    });

    await step("JSON", async () => {
      await choose("long");
      await press("Call");
      await readResult("Done");
      const find = panel.getByLabel("Find in JSON").last();
      await find.fill(`"needle": true`);
      await panel.getByText("1 of 3", { exact: true }).waitFor();
      assert(await panel.locator("pre").last().evaluate((element) => element.textContent!.length < 60_000));
    });
  },
  { file },
);

test("Markdown is rendered safely and can be shown raw", async (opened, step) => {
  const { page, panel, problems, choose, press, turn, readResult } = opened;
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const title = await page.title();

  await step("a Markdown resource is rendered", async () => {
    await turn("Resources");
    await choose("readme");
    await press("Read");
    await readResult("Done");
    const prose = panel.locator(".prose");
    assertEquals(await prose.locator("h3").innerText(), "A title with code");
    assertEquals(await prose.locator("strong").allInnerTexts(), ["bold", "1"]);
    assertEquals(await prose.locator("em").allInnerTexts(), ["emphasis"]);
    assertEquals(await prose.locator("pre").innerText(), `alert("fence")`);
    assertEquals(await prose.locator("th").allInnerTexts(), ["Name", "Value"]);
    assertMatch(await prose.locator("ul").first().innerText(), /one\s+two\s+inner\s+☑ done/);
    assertEquals(await prose.locator("blockquote blockquote").innerText(), "twice");
    const text = await prose.innerText();
    assertStringIncludes(text, "*star*, snake_case_name");
    assertStringIncludes(text, `<script>document.title='broken'</script>`);
    const links = await prose.locator("a").evaluateAll((all) =>
      all.map((each) => [each.getAttribute("href"), each.getAttribute("rel"), each.getAttribute("target")])
    );
    const safe = ["noopener noreferrer", "_blank"];
    assertEquals(links, [
      ["https://example.com/docs", ...safe],
      ["mailto:ada@example.com", ...safe],
      ["https://example.org/auto", ...safe],
      ["https://evil.example/login", ...safe],
    ]);
    assertStringIncludes(text, "https://bank.example (evil.example)");
    assertStringIncludes(text, "Image, not loaded: tracker http://127.0.0.1:9/pixel.png");
    assertEquals(await prose.locator("img, script, iframe, style").count(), 0);
    for (const code of ["202E", "202C", "200B", "E0041", "61C", "200E"]) {
      assertStringIncludes(text, `‹U+${code.padStart(4, "0")}›`);
    }
  });

  await step("the view switches between rendered and raw", async () => {
    await press("Raw");
    assertEquals(await panel.locator(".prose").count(), 0);
    assertStringIncludes(await panel.locator(".output pre").first().innerText(), "# A title with `code`");
    await press("Rendered");
    await panel.locator(".prose").waitFor();
  });

  await step("text that only resembles Markdown is initially shown raw", async () => {
    await turn("Tools");
    await choose("prose");
    await press("Call");
    assertStringIncludes(await readResult("Done"), "**bold**");
    await press("Rendered");
    await panel.locator(".prose").waitFor();
  });

  // Each check waits for the rendered text. With a lexer that takes quadratic time or recurses deeply, the text would
  // not appear.
  await step("unclosed and deeply nested marks are rendered", async () => {
    await choose("unclosed");
    for (const mark of ["[", "**", "`", "![", "<", "> ", "- ", "_a", "*a ", "[](", "|", "\\n|-|"]) {
      await panel.getByLabel("mark").fill(mark);
      await press("Call");
      await readResult("Done");
      await press("Rendered");
      await panel.locator(".prose").waitFor();
    }
  });

  assertEquals(await page.title(), title);
  assertEquals(asked.filter((url) => !url.startsWith("http://127.0.0.1") || url.includes(":9/")), []);
  assertEquals(problems, []);
}, { file });

test("images and audio of safe types are shown without running or loading anything", async (opened) => {
  const { page, panel, problems, choose, press, turn, readResult } = opened;
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const title = await page.title();
  await choose("media");
  await press("Call");
  const result = await readResult("Done");
  const sources = await panel.locator("img, audio").evaluateAll((all) =>
    all.map((each) => each.getAttribute("src")?.replace(/,.*/, ""))
  );
  assertEquals(sources, [
    "data:image/png;base64",
    "data:image/svg+xml;base64",
    "data:audio/wav;base64",
  ]);
  assertEquals(
    await panel.locator("img").first().evaluate((element) => "naturalWidth" in element && element.naturalWidth),
    1,
  );
  assertMatch(result, /text\/html, \d+ bytes/);
  assertMatch(result, /image\/x-icon, 70 bytes/);
  await panel.getByRole("button", { name: "Raw" }).first().click();
  assertEquals(await panel.locator("img").count(), 1);
  await turn("Resources");
  await choose("svg");
  await press("Read");
  assertStringIncludes(await readResult("Done"), "<script>document.title");
  await press("Rendered");
  await panel.locator("img").waitFor();
  assertEquals(await page.title(), title);
  assertEquals(asked.filter((url) => url.includes(":9/")), []);
  assertEquals(problems, []);
}, { file });

test("empty results and invisible characters are shown", async (opened) => {
  const { panel, choose, press, turn, readResult } = opened;
  const readNothing = async () => {
    await readResult("Done");
    return await panel.locator(".nothing").innerText();
  };
  await choose("empty");
  await press("Call");
  assertEquals(await readNothing(), sentence());
  await choose("blank");
  await press("Call");
  assertEquals(await readNothing(), sentence());
  await choose("unseen");
  await press("Call");
  const text = await readResult("Done");
  assertStringIncludes(
    text,
    "a‹U+0007›b‹U+001B›[31mc‹U+202E›d‹U+2066›e‹U+200F›f‹U+2028›g‹U+3164›h‹U+FEFF›‹U+FE01›i‹U+0000›j‹U+000D›k",
  );
  // deno-lint-ignore no-control-regex
  assertNotMatch(text, /[\u0000-\u0008\u001b\u202e\u2066\u200f\u2028\u3164\ufeff]/);
  await turn("Prompts");
  await choose("talkative");
  assertEquals(await panel.locator(".fields > p.muted").innerText(), sentence("300", "2000"));
  assertEquals(await panel.locator(".field").count(), 300);
  await choose("silent");
  await press("Get");
  assertEquals(await readNothing(), sentence());
  await panel.getByLabel("Filter prompts").fill("x");
  assertEquals(await panel.locator(".side > p").filter({ visible: true }).innerText(), sentence());
}, { file });

// Markdown from untrusted servers is split into tokens in linear time.

/** Returns the types of the tokens in each block. */
function toTypes(text: string): unknown[] {
  return lexMarkdown(text).map((block) =>
    "tokens" in block ? (block.tokens ?? []).map(({ type }) => type) : block.type
  );
}

Deno.test("a paragraph of ordinary length is split into tokens", () => {
  const text = "Some *emphasis* and `code`.\r\nMore [text](https://example.com).";
  assertEquals(toTypes(text), [["text", "em", "text", "codespan", "text", "link", "text"]]);
  assert(lexMarkdown(text).every(({ raw }) => !raw.includes("\r")));
});

// For repetitions of these marks, the lexer takes quadratic time, which amounts to seconds for a long text.
for (const mark of ["_a", "*a ", "a])**~", "!**~)'", "]_a", "**a"]) {
  Deno.test(`a long paragraph of repeated ${JSON.stringify(mark)} is one token`, () => {
    const text = mark.repeat(Math.ceil(2001 / mark.length));
    assertEquals(toTypes(`${text}\n\nShort *emphasis*.`), [["text"], "space", ["text", "em", "text"]]);
  });
}
