// Forms on the inspector page, in a real browser, for schemas of every shape and size.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { sentence } from "../../support/messages.ts";
import { readAlert, test } from "./browser.ts";
import { matchesPattern } from "../../../src/cli/inspector/browser/pattern.ts";

const file = "tests/cli/inspector/forms.ts";

test("a form has fields for objects, lists of objects and unions", async (opened, step) => {
  const { panel, choose, press, readResult } = opened;
  const readGiven = async () => {
    await readResult("Done");
    return JSON.parse(await panel.locator(".output pre").last().innerText()).given;
  };
  await choose("nested");

  await step("required fields are marked, and problems are shown at their fields", async () => {
    assertEquals(await panel.getByText("required", { exact: true }).count(), 6);
    await press("Call");
    const problems = await panel.getByRole("alert").filter({ visible: true, hasText: /./ }).allInnerTexts();
    assertEquals(problems, [
      sentence("2"),
      sentence(),
      sentence(),
      sentence(),
      sentence("^(a+)+$"),
    ]);
    const street = panel.getByLabel("street");
    assertEquals(await street.evaluate((element) => element.matches(":focus")), true);
    assertEquals(await street.getAttribute("aria-invalid"), "true");
    await street.fill("Main Street");
    await press("Call");
    assertEquals(await street.getAttribute("aria-invalid"), null);
  });

  await step("the JSON view keeps incomplete input", async () => {
    await press("JSON");
    assertEquals(JSON.parse(await panel.getByLabel("Arguments as JSON").inputValue()), {
      address: { street: "Main Street" },
      points: [{ y: 0 }],
      options: { deep: true, level: 4 },
      slow: `${"a".repeat(60)}!`,
    });
    await press("Form");
    assertEquals(await panel.getByLabel("street").inputValue(), "Main Street");
  });

  await step("the description of an object is shown before its fields", async () => {
    const address = panel.getByRole("group", { name: "address" });
    assertMatch(await address.innerText(), /^address\s+object\s+required\s+Where to deliver\s+street/);
  });

  await step("a form edits nested objects and lists of objects", async () => {
    await press("Add: geo");
    const geo = panel.getByRole("group", { name: "geo" });
    await geo.getByLabel("x").fill("1.5");
    const points = panel.getByRole("group", { name: "points", exact: true });
    await points.getByLabel("x").fill("1");
    await press("Add an item to points");
    await points.getByLabel("x").nth(1).fill("2");
    await press("Add an item to points");
    await points.getByLabel("x").nth(2).fill("3");
    await press("Call");
    assertEquals(await readAlert(panel, "2"), sentence("2"));
    await points.getByRole("button", { name: "Remove this item" }).nth(1).click();
  });

  await step("a form edits a list of lists", async () => {
    await press("Add an item to grid");
    await press("Add an item to grid, item");
    await panel.getByRole("group", { name: "grid", exact: true }).getByRole("spinbutton").fill("7");
  });

  await step("unions", async () => {
    const shape = panel.getByRole("combobox", { name: "shape", exact: true });
    assertEquals(await shape.locator("option").allInnerTexts(), ["Choose …", "kind: circle", "kind: square"]);
    await shape.selectOption("kind: circle");
    await panel.getByLabel("radius").fill("0");
    // Choosing the variant sets `kind`, so the form has no field for it.
    assertEquals(await panel.getByLabel("kind", { exact: true }).count(), 0);
    const either = panel.getByRole("combobox", { name: "either", exact: true });
    assertEquals(await either.locator("option").allInnerTexts(), ["Choose …", "string", "integer", "null"]);
    await either.selectOption("integer");
    await panel.getByLabel("either, integer").fill("5");
    await press("Call");
    assertEquals(await readAlert(panel, "1"), sentence("1"));
    await shape.selectOption("kind: square");
  });

  await step("a form edits additional fields", async () => {
    await panel.getByLabel("labels", { exact: true }).fill(`{"a":"b"}`);
    await press("Add: open");
    const open = panel.getByRole("group", { name: "open", exact: true });
    await open.getByLabel("Other fields").fill(`{"more":1}`);
    await open.getByLabel("known").fill("k");
  });

  const given = {
    address: { street: "Main Street", geo: { x: 1.5, y: 0 } },
    points: [{ x: 1, y: 0 }, { x: 3, y: 0 }],
    grid: [[7]],
    shape: { kind: "square", side: 3 },
    either: 5,
    labels: { a: "b" },
    options: { deep: true, level: 4 },
    open: { known: "k", more: 1 },
  };

  await step("a pattern is checked without the browser's regular expressions", async () => {
    await panel.locator(".type").filter({ hasText: "^(a+)+$" }).waitFor();
    // With a regular expression, checking the default value of this field would take years.
    await press("Call");
    assertEquals(await readAlert(panel), sentence("^(a+)+$"));
    assertEquals(await panel.locator("[pattern]").count(), 0);
    await panel.getByLabel("slow").fill("aa");
    await press("Call");
    assertEquals(await readGiven(), { ...given, slow: "aa" });
  });

  await step("a form and its JSON view have the same values", async () => {
    await press("JSON");
    const area = panel.getByLabel("Arguments as JSON");
    assertEquals(JSON.parse(await area.inputValue()), { ...given, slow: "aa" });
    const changed = {
      ...given,
      slow: "a",
      either: null,
      shape: { kind: "circle", radius: 2 },
      points: [{ x: 9, y: 9 }],
    };
    await area.fill(JSON.stringify(changed));
    await press("Form");
    assertEquals(await panel.getByLabel("radius").inputValue(), "2");
    await press("Call");
    assertEquals(await readGiven(), changed);
    await press("Remove: open");
    await press("Call");
    const { open: _, ...rest } = changed;
    assertEquals(await readGiven(), rest);
  });
}, { file });

// The test counts the elements that a form creates, because times would depend on the load of the machine.
test("for large and deep schemas, a form initially creates few fields", async (opened, step) => {
  const { page, panel, choose, press, readResult } = opened;
  const countFields = () => panel.locator("input, textarea, select").count();

  await step("a form with thousands of fields shows some fields at a time", async () => {
    await choose("wide");
    await panel.getByRole("button", { name: "Show 100 more of 8900 fields" }).waitFor();
    assert(await countFields() < 200);
    assertMatch(await panel.locator(".field").first().innerText(), /field_5000/);
    await press("Show 100 more of 8900 fields");
    await panel.getByRole("button", { name: "Show 100 more of 8800 fields" }).waitFor();
    await press("Call");
    await readResult("Done");
  });

  await step("the result of a long form is scrolled into view", async () => {
    const { top, bottom } = await panel.locator(".output > .block").first().evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return { top, bottom };
    });
    assert(top > 0 && top < 500, `the result begins at ${top} and ends at ${bottom}`);
  });

  await step("a form for deeply nested objects creates few fields", async () => {
    await choose("deep");
    assert(await countFields() < 20);
    await panel.getByLabel("part_0", { exact: true }).last().fill("{}");
    await press("Call");
    await readResult("Tool error");
  });

  await step("a form for circular references creates few fields", async () => {
    await choose("circle");
    await panel.getByRole("heading", { name: "circle" }).waitFor();
    const count = await countFields();
    assert(count < 400, `${count}`);
  });

  await step("a field offers more choices and items than a page can contain", async () => {
    await choose("many");
    await panel.locator(".type").filter({ hasText: "20000" }).waitFor();
    await panel.getByLabel("pick").fill("value 7");
    assert(await countFields() < 10);
    await press("Call");
    await readResult("Done");
  });

  assertEquals(await page.title(), "forms · Inspector");
}, { file });

// Patterns from untrusted servers match like the runtime's regular expressions, without exponential backtracking.

const patterns = [
  "abc",
  "^abc$",
  "a|b|",
  "^(?:a|bc)+$",
  "^[a-z0-9]+(?:-[a-z0-9]+)*$",
  "^\\d{4}-\\d{2}-\\d{2}$",
  "^\\d{2,}$",
  "^\\d{2,3}$",
  "^\\d{0}a?$",
  "^(a{2}){1,2}$",
  "^(?<year>\\d{4})\\/x$",
  "[^\\]\\-a]",
  "^[\\p{Lu}_]\\w*$",
  "^\\p{L}+$",
  "^.$",
  "^\\.$",
  "^\\u0061\\x62$",
  "a*?b+?$",
  "(^a|b$)",
  "^$",
  "x^",
  "$a",
  "^((a*)*)*b$",
  "",
  "[]",
  "[^]",
  "\\(\\)\\[\\]\\{\\}",
  "\\cA|\\t|\\0",
];
const texts = [
  "",
  "a",
  "b",
  "ab",
  "abc",
  "xabcx",
  "bca",
  "aaaa",
  "aaa",
  "a-b-c1",
  "a--b",
  "2026-07-28",
  "12",
  "123",
  "1234",
]
  .concat(["2026/x", "]", "-", "Ä_b", "ä", "日本", "😀", ".", "\n", "a\nb", "()[]{}", "\u0001", "\t", "\0", "aab"]);

for (const pattern of patterns) {
  Deno.test(`the pattern ${JSON.stringify(pattern)} matches as a regular expression does`, () => {
    const expected = texts.map((text) => [text, new RegExp(pattern, "u").test(text)]);
    assertEquals(texts.map((text) => [text, matchesPattern(pattern, text)]), expected);
  });
}

Deno.test("patterns whose backtracking would take years are matched in linear time", () => {
  const text = `${"a".repeat(400)}!`;
  for (const pattern of ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*)*$b", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"]) {
    assertEquals(matchesPattern(pattern, text), false, pattern);
  }
});

Deno.test("patterns that are invalid, too large or not supported give no verdict", () => {
  for (
    const pattern of ["(", "a{2,1}", "\\", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(a)\\1", "\\ba", "\\B", "(?i:a)"]
  ) {
    assertEquals(matchesPattern(pattern, "a"), undefined, pattern);
  }
  assertEquals(matchesPattern("(a{100}){100}", "a"), undefined);
  assertEquals(matchesPattern("((a{9}){9}){9}{9}", "a"), undefined);
  assertEquals(matchesPattern("a".repeat(3000), "a"), undefined);
  assertEquals(matchesPattern("a", "a".repeat(3000)), undefined);
});
