// Test files do not quote messages of the library, because a reworded message would break them: `sentence()` stands for a
// message. A few quotes are left, which show the grammar of each kind of message.
import { assert, assertEquals } from "@std/assert";
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts"; // Deno's linter provides the syntax tree.
import { visitFile } from "./rules.ts";

const root = new URL("../../", import.meta.url);
/** Number of quotes that test files can contain. */
const MOST_QUOTES = 60;
/** A text counts as a sentence if it has this many words. */
const WORDS = 4;

interface Text {
  readonly text: string;
  readonly line: number;
}

/** Calls whose first argument is a title. */
const TITLED = /^(?:test|behaviour|testProcesses|needs|clean|step)$/;
/** Calls whose argument, from this position on, describes a failure. */
const REASONS: Readonly<Record<string, number>> = { assert: 1, until: 1, assertEquals: 2, assertStringIncludes: 2 };

/** Returns the strings in a source that have several words, without titles of tests. */
function listTexts(path: string, source: string): readonly Text[] {
  const texts: Text[] = [];
  const add = (text: string, { range }: Deno.lint.Node) => {
    const words = text.split(/\s+/).filter((word) => /^["'(]?[A-Za-z]{2,}/.test(word));
    if (words.length >= WORDS) texts.push({ text, line: source.slice(0, range[0]).split("\n").length });
  };
  visitFile(path, source, {
    Literal(node) {
      if (typeof node.value === "string") {
        if (!isTitle(node)) add(node.value, node);
      } else if (node.raw.startsWith("/")) add(node.raw.replaceAll(/\\(.)|^\/|\/\w*$/g, "$1"), node);
    },
    TemplateElement(node) {
      if (node.parent.type === "TemplateLiteral" && !isTitle(node.parent)) add(node.cooked, node);
    },
  });
  return texts;
}

/** Tests whether a string is the title of a test, or describes a failure. */
function isTitle(node: Deno.lint.StringLiteral | Deno.lint.TemplateLiteral): boolean {
  const { parent } = node;
  if (parent.type === "Property") return parent.key.type === "Identifier" && parent.key.name === "name";
  if (parent.type !== "CallExpression") return false;
  const { callee } = parent;
  const named = callee.type === "MemberExpression" ? callee.property : callee;
  const name = named.type === "Identifier" ? named.name : "";
  const at = parent.arguments.findIndex(({ range }) => range[0] === node.range[0]);
  return at === 0 && TITLED.test(name) || at >= (REASONS[name] ?? Infinity);
}

onDeno(`test files contain at most ${MOST_QUOTES} quotes of the library's messages`, async () => {
  const sources: string[] = [];
  for (const path of await listSources("src/")) {
    if (path.startsWith("src/cli/inspector/")) continue; // the texts of a page
    for (const { text } of listTexts(path, await Deno.readTextFile(new URL(path, root)))) sources.push(text);
  }
  const all = sources.join("\u0000");
  assert(sources.length > 2000, "the test did not find the messages");
  const quotes: string[] = [];
  for (const path of await listSources("tests/")) {
    for (const { text, line } of listTexts(path, await Deno.readTextFile(new URL(path, root)))) {
      if (all.includes(text)) quotes.push(`${path}:${line} ${text}`);
    }
  }
  assert(quotes.length <= MOST_QUOTES, `${quotes.length} quotes; use sentence():\n${quotes.join("\n")}`);
});

onDeno("the search finds quotes, and ignores titles and reasons", () => {
  const find = (source: string) => listTexts("a.ts", source).map(({ text }) => text);
  const text = "Cannot read the file: it is gone";
  assertEquals(find(`assertEquals(a, "${text}");`), [text]);
  assertEquals(find(`const rows = [["x", \`${text} \${path}\`]];`), [`${text} `]);
  assertEquals(find(`assertMatch(a, /${text}/);`), [text]);
  assertEquals(find(`Deno.test("${text}", () => {}); until(() => true, "${text}"); assert(a, "${text}");`), []);
  assertEquals(find(`until(() => true, "${text}"); assertEquals(a, b, "${text}"); f("two words");`), []);
});
