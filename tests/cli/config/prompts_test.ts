// Prompts in Markdown files, and their templates.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { load } from "../../../src/cli/load.ts";
import { parseTemplate } from "../../../src/ready/template.ts";
import type { Connection } from "../../../src/testing/testing.ts";
import { withFolder, withServer } from "../folder.ts";

function withPrompts(texts: Readonly<Record<string, string>>) {
  return { "mcp.jsonc": { prompts: Object.keys(texts) }, ...texts };
}

async function getText(client: Connection, name: string, args?: Record<string, string>): Promise<string> {
  const { messages } = await client.getPrompt(name, args);
  assertEquals(messages.length, 1);
  assertEquals(messages[0].role, "user");
  return messages[0].content.type === "text" ? messages[0].content.text : "";
}

Deno.test("a Markdown file is a prompt that its front matter describes", async () => {
  const texts = {
    "review.md": `---
# what it is
name: code_review
title: "Review: all of it"
description: 'It''s a review'   # for people
arguments:
  code: The code
  language:
    description: Which language it is in
    required: false
    values: [go, "python", rust]
  tone:
    required: true
    values:
    - kind
    - strict
---

Review this {{ language }} code, {{tone}}:

{{code}}
`,
    "plain.md": "Say {{word}} twice: {{word}}. Not \\{{this}}, nor ${HOME}.",
    "list.md": "---\narguments: [b, a]\n---\r\n{{a}}{{b}}",
    "empty.md": "",
  };
  await withServer(withPrompts(texts), async (client) => {
    const { prompts } = await client.request("prompts/list");
    assertEquals(prompts, [
      {
        name: "code_review",
        title: "Review: all of it",
        description: "It's a review",
        arguments: [
          { name: "code", description: "The code", required: true },
          { name: "language", description: "Which language it is in" },
          { name: "tone", required: true },
        ],
      },
      { name: "plain", arguments: [{ name: "word", required: true }] },
      { name: "list", arguments: [{ name: "b", required: true }, { name: "a", required: true }] },
      { name: "empty" },
    ]);
    assertEquals(
      await getText(client, "code_review", { code: "{{tone}}\n$& $1", tone: "kind", language: "go" }),
      "Review this go code, kind:\n\n{{tone}}\n$& $1",
    );
    assertEquals(await getText(client, "code_review", { code: "x", tone: "kind" }), "Review this  code, kind:\n\nx");
    assertEquals(await getText(client, "plain", { word: "hi" }), "Say hi twice: hi. Not {{this}}, nor ${HOME}.");
    assertEquals(await getText(client, "list", { a: "1", b: "2" }), "12");
    await assertRejects(() => client.getPrompt("code_review", { code: "x" }), Error, "tone: required");
    const complete = async (name: string, value: string) => {
      const ref = { type: "ref/prompt", name: "code_review" };
      return (await client.request("completion/complete", { ref, argument: { name, value } })).completion;
    };
    assertEquals(await complete("language", "P"), { values: ["python"], total: 1, hasMore: false });
    assertEquals(await complete("tone", ""), { values: ["kind", "strict"], total: 2, hasMore: false });
    assertEquals(await complete("code", ""), { values: [], total: 0, hasMore: false });
  });
});

Deno.test("prompts from a pattern are named after their files", async () => {
  const texts = { "p/b.md": "B", "p/a.md": "A", "p/.c.md": "C", "p/d.txt": "D" };
  await withServer({ "mcp.jsonc": { prompts: ["p/*.md"] }, ...texts }, async (client) => {
    const { prompts } = await client.request("prompts/list");
    assertEquals(prompts, [{ name: "a" }, { name: "b" }]);
  });
});

Deno.test("front matter can use all of YAML", async () => {
  const texts = {
    "folded.md": `---
title: >-
  A review
  of all
description: |
  First line
    second: line
arguments:
  - name: code
    description: &about "The\\tcode"
  - { name: tone, required: false, values: &tones [kind, strict] }
  - name: other
    description: *about
    values: *tones
  - last # as a name alone
---
{{code}}`,
    "kept.md": "---\nname: yes\ntitle: 1.0\ndescription: # nothing\narguments: {a: ~, b: 'x: y'}\n---\n{{a}}{{b}}",
    "empty_head.md": "---\n# nothing\n---\nx",
  };
  await withServer(withPrompts(texts), async (client) => {
    const { prompts } = await client.request("prompts/list");
    assertEquals(prompts, [
      {
        name: "folded",
        title: "A review of all",
        description: "First line\n  second: line",
        arguments: [
          { name: "code", description: "The\tcode", required: true },
          { name: "tone" },
          { name: "other", description: "The\tcode", required: true },
          { name: "last", required: true },
        ],
      },
      {
        name: "yes",
        title: "1.0",
        arguments: [{ name: "a", description: "~", required: true }, {
          name: "b",
          description: "x: y",
          required: true,
        }],
      },
      { name: "empty_head" },
    ]);
  });
});

for (
  const { text, message } of [
    {
      text: "---\nname: x\n",
      message: "1: the front matter is not closed; write a second --- line below the last key",
    },
    { text: "---\nname\n---\n", message: '2: the front matter is the text "name"; write lines such as key: value' },
    {
      text: "---\ntitel: x\n---\n",
      message: "2: unknown key titel; the known keys are name, title, description, arguments",
    },
    { text: "---\nname: a\n\nname: b\n---\n", message: "4: the key name is repeated; remove the repetition" },
    { text: "---\nname: {a: b}\n---\n", message: "2: name is a list or a map; write a single string" },
    { text: "---\nname: [a]\n---\n", message: "2: name is a list or a map; write a single string" },
    { text: "---\n- a\n---\n", message: "2: the front matter is a list; write lines such as key: value" },
    { text: "---\n[a]: b\n---\n", message: "2: a key is not a string; write each entry as key: value" },
    {
      text: "---\narguments:\n- description: x\n---\n",
      message: "3: an argument has no name; write its name, or a map with the key name",
    },
    {
      text: "---\narguments:\n- name: x\n  must: y\n---\n",
      message: "4: unknown key must; the keys of an argument are description, required, values",
    },
    { text: "---\nname: *b\n---\n", message: "2: the alias *b has no anchor before it; define &b above the alias" },
    { text: '---\nname: "x\n---\n', message: "2: a quoted string is not closed; add the closing quotation mark" },
    { text: "---\nname: 'x\n---\n", message: "2: a quoted string is not closed; add the closing quotation mark" },
    { text: "---\narguments:\n\ta: x\n---\n", message: "3: the line is indented with a tab; use spaces" },
    {
      text: "---\narguments:\n  a: x\n b: y\n---\n",
      message:
        "4: the front matter is not valid YAML (all mapping items must start at the same column); correct the YAML, or put the value in quotes",
    },
    {
      text: "---\narguments: a\n---\n",
      message: "2: arguments is not a list of names; write [first, second], or one line for each argument",
    },
    {
      text: "---\narguments:\n  a: [b]\n---\n",
      message: "3: the argument a is a list; write a: description, or a map",
    },
    {
      text: "---\narguments:\n  a:\n    must: true\n---\n",
      message: "4: unknown key must; the keys of an argument are description, required, values",
    },
    { text: "---\narguments:\n  a:\n    required: yes\n---\n", message: "4: required is yes; write true or false" },
    { text: "---\narguments:\n  a:\n    values: b\n---\n", message: "4: values is not a list; write [first, second]" },
    { text: "---\nname:\n  a: b\n---\n", message: "2: name is a list or a map; write a single string" },
    {
      text: "---\narguments: [a]\n---\n{{a}}\n\n{{b}}",
      message: "6: {{b}} is not an argument; add b to the arguments in the front matter",
    },
    {
      text: "one\ntwo {{three four}}",
      message: "2: {{ begins an argument, such as {{name}}; write \\{{ for a literal {{",
    },
  ]
) {
  Deno.test(`an invalid prompt is rejected with the line of the error: ${JSON.stringify(text)}`, async () => {
    await withFolder(withPrompts({ "p.md": text }), async (folder) => {
      const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      assertEquals(error.message, `Cannot use p.md:${message}`);
    });
  });
}

for (
  const { text, names, filled } of [
    { text: "plain", names: [], filled: "plain" },
    { text: "{{a}}", names: ["a"], filled: "<a>" },
    { text: "x{{ a.b-c }}y{{a}}{{a}}", names: ["a.b-c", "a"], filled: "x<a.b-c>y<a><a>" },
    { text: "\\{{a}} \\${A} $ { }} $A", names: [], filled: "{{a}} ${A} $ { }} $A" },
    { text: "${A}${B:-b c}${C:-}", names: [], filled: "valueb c" },
  ]
) {
  Deno.test(`the template ${text} is filled`, () => {
    const template = parseTemplate(text, (name) => name === "A" ? "value" : undefined);
    assertEquals(template.names, names);
    assertEquals(template.fill((name) => `<${name}>`), filled);
  });
}

Deno.test("the value of a variable is not expanded again, and a missing variable is an error", () => {
  const template = parseTemplate("${A}", () => "{{a}}${B}");
  assertEquals([template.names, template.fill(() => "x")], [[], "{{a}}${B}"]);
  assertThrows(
    () => parseTemplate("${A}", () => undefined),
    TypeError,
    "the environment variable A is not set; set it",
  );
  assertThrows(() => parseTemplate("${A-B}", () => "x"), TypeError, "${ begins an environment variable");
});
