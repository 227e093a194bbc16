// The messages in all messages.json files keep the form of the project's messages. Each kind of mistake here was seen.
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts";
import { visitFile } from "./rules.ts";

const tests = new URL("../", import.meta.url);

/** Returns all sentences of a stored value. */
function list(stored: unknown): string[] {
  return typeof stored === "string" ? [stored] : Object.values(Object(stored)).flatMap(list);
}

const sentences = readdirSync(tests, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith("messages.json"))
  .flatMap((path) => list(JSON.parse(readFileSync(new URL(path.replaceAll("\\", "/"), tests), "utf8"))));

const MISTAKES: Readonly<Record<string, (sentence: string) => boolean>> = {
  "a remedy after a full stop": (sentence) => /[\p{L}\p{N})"']\.; /u.test(sentence),
  "no subject after the action": (sentence) => /^(\w+: )?Cannot [^:]+: (cannot|could not|must|may not) /.test(sentence),
  "a shortened text without its closing quotation mark": (sentence) =>
    sentence.includes("…") && (sentence.match(/(?<!\\)"/g)?.length ?? 0) % 2 === 1,
  // deno-lint-ignore no-control-regex
  "a control character": (sentence) => /[\0-\x08\x0b-\x1f\x7f]/.test(sentence),
};

for (const [name, isMistake] of Object.entries(MISTAKES)) {
  Deno.test(`no message has ${name}`, () => {
    assertEquals(sentences.filter(isMistake), []);
  });
}

// Test files do not quote messages of the library, because a reworded message would break them: `sentence()` stands for a
// message. A few quotes are left, which show the grammar of each kind of message.

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
    // The texts of a page, and the files of recipes.
    if (path.startsWith("src/cli/inspector/") || path === "src/cli/recipes_bundle.ts") continue;
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

// The product does not decide by the wording of its own messages, because a reworded message would silently change exit
// codes, remedies or events. Code that must recognize an error reads a class, a code or a symbol-keyed property.

/** Files that match texts which other programs write, each with the writer. */
const FOREIGN: Readonly<Record<string, string>> = {
  "src/cli/call.ts": "results of servers of the official SDK and of FastMCP",
  "src/cli/config/front_matter.ts": "errors of the package yaml",
  "src/cli/config/validation_errors.ts": "issues of the package zod",
  "src/cli/connection_errors.ts": "network errors of Deno, Bun and Node",
  "src/cli/install/yaml_edit.ts": "errors of the package yaml",
  "src/cli/module_type.ts": "syntax errors of Node",
  "src/cli/load_error.ts": "errors of the module loaders of Deno and Bun",
  "src/cli/own_imports.ts": "errors of the module loaders of Deno, Bun and Node",
  "src/cli/pack/bundle.ts": "errors of the bundlers of Deno and Bun",
  "src/cli/permissions.ts": "permission errors of Deno",
  "src/hand_over.ts": "permission errors of Deno",
  "src/core/kit/denied_access.ts": "permission errors of Deno",
  "src/core/kit/frozen_error.ts": "type errors of V8 and JavaScriptCore",
  "src/core/kit/stack.ts": "the stack that a runtime builds from a message",
  "src/observe/json_log.ts": "the stack that a runtime builds from a message",
  "src/ready/code/program_error.ts": "errors of QuickJS",
  "src/ready/http_request.ts": "network errors of Deno, Bun and Node",
  "src/server/routes.ts": "the copy of an error that fetch of Deno makes",
  "src/stores/deno_kv.ts": "errors of Deno KV",
  "src/stores/redis/redis.ts": "errors of Redis",
  "src/stores/sqlite.ts": "errors of SQLite",
  "src/testing/test_task.ts": "the stack that a runtime builds from a message",
  "src/server/transports/stdio/stdout_guard.ts": "the stack that a runtime builds from a message",
  "src/ready/worker/thread.ts": "the report of Bun for an error in a worker",
};

/** Files that match texts other than messages, each with the text. */
const OTHER: Readonly<Record<string, string>> = {
  "src/cli/directories.ts": "descriptions of arguments that ask for the conversation",
  "src/cli/model_text.ts": "texts of servers that read like orders to a model",
  "src/cli/completions.ts": "the help of an option, which is shortened for display",
  "src/server/capacity/account.ts": "the key of an account",
};

/** Methods that compare or search a text. */
const METHODS =
  /^(?:includes|startsWith|endsWith|indexOf|lastIndexOf|match|matchAll|test|exec|search|split|replace|replaceAll)$/;
/** Names of variables and properties with the text of an error. */
const TEXTS = /^(?:message|stack|stderr)$/;

/** Whether a pattern consists of words, such as `Cannot reach`, or separates the parts of a message. */
function isProse(pattern: string): boolean {
  const plain = pattern.replaceAll(/\\[sSwWdDbB]|\[[^\]]*\]/g, "");
  return /[A-Za-z]{2,}[,;:]? \(?\\?["'A-Za-z(]/.test(plain) || /^[/^]*[;:] /.test(plain) ||
    /^[A-Z][a-z]+ $/.test(plain);
}

interface Match {
  readonly line: number;
  readonly text: string;
}

/** Returns the places in a source that compare or search a text with prose, or search the text of an error. */
function listMatches(path: string, source: string): readonly Match[] {
  const found = new Map<number, Match>();
  const add = ({ range: [start, end] }: Deno.lint.Node) =>
    found.set(start, { line: source.slice(0, start).split("\n").length, text: source.slice(start, end).slice(0, 80) });
  const toPattern = (node: Deno.lint.Node) => {
    if (node.type === "Literal") return node.raw.slice(1).replace(/["'/]\w*$/, "");
    if (node.type === "TemplateLiteral") return node.quasis.map(({ raw }) => raw).join("0");
    return "";
  };
  const sentences = new Set<string>();
  visitFile(path, source, {
    VariableDeclarator({ id, init }) {
      if (id.type === "Identifier" && /^[A-Z]/.test(id.name) && init && isProse(toPattern(init))) {
        sentences.add(id.name);
      }
    },
  });
  const isMatched = (node: Deno.lint.Node) =>
    isProse(toPattern(node)) || isErrorText(node) || node.type === "Identifier" && sentences.has(node.name);
  visitFile(path, source, {
    BinaryExpression(node) {
      if (!/^[!=]==?$/.test(node.operator)) return;
      const sides = [node.left, node.right];
      if (sides.some((each) => each.type === "Identifier" && each.name === "undefined")) return;
      if (sides.some(isMatched)) add(node);
    },
    SwitchCase(node) {
      if (node.test && isProse(toPattern(node.test))) add(node.test);
    },
    Literal(node) {
      if (node.raw.startsWith("/") && isProse(toPattern(node))) add(node);
    },
    // A sentence in a type is an identifier that is easily taken for a message.
    TSLiteralType(node) {
      if (node.literal.type === "Literal" && /\w \w/.test(String(node.literal.value))) add(node);
    },
    CallExpression(node) {
      const { arguments: args } = node;
      const callee = node.callee.type === "ChainExpression" ? node.callee.expression : node.callee;
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return;
      if (!METHODS.test(callee.property.name)) return;
      const isSearched = isErrorText(callee.object) ||
        /^(?:test|exec)$/.test(callee.property.name) && args.some(isErrorText);
      if (isSearched || args.slice(0, 1).some((each) => isProse(toPattern(each)))) add(node);
    },
  });
  return [...found.values()];
}

/** Tests whether an expression is the text of an error, such as `message` or `error.message`. */
function isErrorText(node: Deno.lint.Node): boolean {
  if (node.type === "Identifier") return TEXTS.test(node.name);
  if (node.type === "ChainExpression") return isErrorText(node.expression);
  if (node.type !== "MemberExpression" || node.property.type !== "Identifier") return false;
  return !node.computed && TEXTS.test(node.property.name);
}

onDeno("no file of src/ matches a message by its words, unless another program writes the message", async () => {
  const paths = (await listSources("src/")).filter((path) =>
    !/\/(page_bundle|bridge_script|web\/script)\.ts$/.test(path)
  );
  const known = { ...FOREIGN, ...OTHER };
  const found = new Map<string, readonly Match[]>();
  for (const path of paths) {
    const matches = listMatches(path, await Deno.readTextFile(new URL(path, root)));
    if (matches.length) found.set(path, matches);
  }
  const unknown = [...found].filter(([path]) => !(path in known));
  const list = unknown.flatMap(([path, matches]) => matches.map(({ line, text }) => `${path}:${line} ${text}`));
  assertEquals(list, []);
  assertEquals(Object.keys(known).filter((path) => !found.has(path)), [], "these files match no text any more");
});

for (
  const [source, isFound] of [
    ['if (error.message.includes("; ")) f();', true],
    ["const [, url] = /^Cannot reach (https?:\\S+): /.exec(text) ?? [];", true],
    ["if (/ended with code \\d+$/.test(state)) f();", true],
    ['if (reason.startsWith("Cannot ")) f();', true],
    ['const remedy = problem.includes("; ") ? "" : "; correct the value";', true],
    ["const hasEnded = reason.message === CALL_ENDED;", true],
    ['if (found === "cut off") f();', true],
    ['const UNPROVEN = "the token is bound"; if (reason === UNPROVEN) f();', true],
    ['type Found = "marked" | "cut off";', true],
    ["text.replace(/(?<=Internal error \\()[0-9a-f]{8}/, name);", true],
    ["if (`the scheme ${name} in the header` === form) f();", true],
    ['switch (found) { case "not known": f(); }', true],
    ["if (failure.kind === 'not-started') f();", false],
    ["if (/^\\/[\\w./-]*$/.test(path)) f();", false],
    ['const kind = isFound ? "the tool" : "no tool";', false],
    ['if (type.startsWith("text/event-stream")) f();', false],
    ['if (text?.includes("Cannot start")) f();', true],
    ['text.split(", ");', false],
  ] as const
) {
  onDeno(`the search for matched messages ${isFound ? "finds" : "skips"} ${source}`, () => {
    assert(listMatches("src/a.ts", source).length > 0 === isFound);
  });
}
