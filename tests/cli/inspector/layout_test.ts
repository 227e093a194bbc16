// Forms, results and dialogs of the inspector page are readable, named, narrow enough, and usable with the keyboard.
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Page } from "playwright-core";
import { findCut, findFaint, findNameless } from "./audit.ts";
import { type Opened, test } from "./browser.ts";

async function audit(page: Page, name: string): Promise<void> {
  for (const find of [findFaint, findNameless, findCut]) {
    assertEquals(await page.evaluate<unknown[]>(`(${find})()`), [], `${find.name}: ${name}`);
  }
  const wide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  assert(wide <= 0, `${name} is ${wide} pixels too wide`);
}

const looks = [["light", 1320], ["dark", 1320], ["light", 390], ["dark", 320]] as const;

async function forEachLook({ page }: Opened, look: (name: string) => Promise<void>): Promise<void> {
  for (const [colorScheme, width] of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await look(`${colorScheme}, ${width}`);
    const back = page.locator(".back:visible");
    if (await back.count()) await back.click();
  }
}

test("forms and the connection dialog fit every theme and width", async (opened) => {
  const { page, panel, choose, press } = opened;
  await choose("nested");
  await press("Add: geo");
  await press("Add an item to grid");
  await press("Add an item to grid, item");
  await panel.getByRole("combobox", { name: "shape", exact: true }).selectOption("kind: circle");
  await press("Call");
  await page.getByRole("button", { name: /^Log/ }).click();
  await forEachLook(opened, async (name) => {
    const back = page.locator(".back:visible");
    if (!await back.count()) await choose("nested");
    await audit(page, `form, ${name}`);
    await page.getByRole("button", { name: "Connection", exact: true }).click();
    await page.getByRole("button", { name: "Add a header" }).click();
    await audit(page, `connection, ${name}`);
    await page.keyboard.press("Escape");
  });
}, { file: "tests/cli/inspector/forms.ts" });

test("results fit every theme and width", async (opened) => {
  const { page, panel, choose, press, turn, readResult } = opened;
  await page.getByRole("button", { name: /^Log/ }).click();
  await forEachLook(opened, async (name) => {
    await turn("Tools");
    for (const tool of ["lines", "long", "media", "unseen", "empty"]) {
      const back = page.locator(".back:visible");
      if (await back.count()) await back.click();
      await choose(tool);
      await press("Call");
      await readResult("Done");
      if (tool === "lines") await panel.getByLabel("Find in text").fill("needle");
      await audit(page, `${tool}, ${name}`);
    }
    await turn("Resources");
    const back = page.locator(".back:visible");
    if (await back.count()) await back.click();
    await choose("readme");
    await press("Read");
    await readResult("Done");
    await audit(page, `readme, ${name}`);
  });
}, { file: "tests/cli/inspector/results.ts" });

test(
  "forms, results and the dialog work with the keyboard, and results are announced to screen readers",
  async (opened) => {
    const { page, panel, choose, readResult } = opened;
    const { keyboard } = page;
    const focused = () =>
      page.evaluate<string>(
        "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent).trim()",
      );
    await choose("many");
    await panel.getByRole("textbox", { name: "pick" }).focus();
    await keyboard.type("value 3");
    await keyboard.press("Control+Enter");
    await readResult("Done");
    assertMatch(
      await page.locator("[role=status].unseen").innerText(),
      /^Call: Done, [\d.]+ m?s · [\d.]+ k characters$/,
    );

    await choose("nested");
    await panel.getByRole("button", { name: "Add: geo" }).focus();
    await keyboard.press("Enter");
    assertEquals(await focused(), "x");
    await panel.getByRole("button", { name: "Add an item to points" }).focus();
    await keyboard.press("Space");
    assertEquals(await focused(), "x");
    const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
    assertEquals(outline, "solid");
    await keyboard.press("Tab");
    assertEquals(await focused(), "y");
    await keyboard.press("Tab");
    assertEquals(await focused(), "Remove this item from points");
    await keyboard.press("Enter");
    assertEquals(await focused(), "Add an item to points");

    await page.getByRole("button", { name: "Connection", exact: true }).focus();
    await keyboard.press("Enter");
    await keyboard.press("ArrowDown");
    assertEquals(await page.getByLabel("Another server").isChecked(), true);
    await keyboard.press("Tab");
    assertEquals(await focused(), "URL of the server");
    await keyboard.press("Tab");
    assertEquals(await focused(), "Protocol revision");
    await keyboard.press("Tab");
    assertEquals(await focused(), "Token");
    await keyboard.press("Escape");
    assertEquals(await focused(), "Connection");
  },
  { file: "tests/cli/inspector/forms.ts" },
);
