// Prompts in Markdown files, and their templates.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { load } from "../../../src/cli/load.ts";
import { parseTemplate } from "../../../src/ready/template.ts";
import type { Connection } from "../../../src/testing/testing.ts";
import { withFolder, withServer } from "../folder.ts";
import { sentence } from "../../support/messages.ts";

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
    await assertRejects(() => client.getPrompt("code_review", { code: "x" }), Error, sentence("tone:"));
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
  const [text, ...names] of [
    ["---\nname: x\n", "p.md:1: ", "---"],
    ["---\nname\n---\n", "p.md:2: ", '"name"'],
    ["---\ntitel: x\n---\n", "p.md:2: ", "titel", "name, title, description, arguments"],
    ["---\nname: a\n\nname: b\n---\n", "p.md:4: ", "name"],
    ["---\nname: {a: b}\n---\n", "p.md:2: ", "name"],
    ["---\nname: [a]\n---\n", "p.md:2: ", "name"],
    ["---\n- a\n---\n", "p.md:2: "],
    ["---\n[a]: b\n---\n", "p.md:2: "],
    ["---\narguments:\n- description: x\n---\n", "p.md:3: ", "name"],
    ["---\narguments:\n- name: x\n  must: y\n---\n", "p.md:4: ", "must", "description, required, values"],
    ["---\nname: *b\n---\n", "p.md:2: ", "*b", "&b"],
    ['---\nname: "x\n---\n', "p.md:2: "],
    ["---\nname: 'x\n---\n", "p.md:2: "],
    ["---\narguments:\n\ta: x\n---\n", "p.md:3: "],
    ["---\narguments:\n  a: x\n b: y\n---\n", "p.md:4: ", "YAML"],
    ["---\narguments: a\n---\n", "p.md:2: ", "arguments"],
    ["---\narguments:\n  a: [b]\n---\n", "p.md:3: ", " a "],
    ["---\narguments:\n  a:\n    must: true\n---\n", "p.md:4: ", "must", "description, required, values"],
    ["---\narguments:\n  a:\n    required: yes\n---\n", "p.md:4: ", "required", "yes", "true"],
    ["---\narguments:\n  a:\n    values: b\n---\n", "p.md:4: ", "values"],
    ["---\nname:\n  a: b\n---\n", "p.md:2: ", "name"],
    ["---\narguments: [a]\n---\n{{a}}\n\n{{b}}", "p.md:6: ", "{{b}}"],
    ["one\ntwo {{three four}}", "p.md:2: ", "{{name}}", "\\{{"],
  ] as const
) {
  Deno.test(`an invalid prompt is rejected with the line of the error: ${JSON.stringify(text)}`, async () => {
    await withFolder(withPrompts({ "p.md": text }), async (folder) => {
      const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      assertEquals(error.message, sentence(...names));
    });
  });
}

for (
  const [text, names, filled] of [
    ["plain", [], "plain"],
    ["{{a}}", ["a"], "<a>"],
    ["x{{ a.b-c }}y{{a}}{{a}}", ["a.b-c", "a"], "x<a.b-c>y<a><a>"],
    ["\\{{a}} \\${A} $ { }} $A", [], "{{a}} ${A} $ { }} $A"],
    ["${A}${B:-b c}${C:-}", [], "valueb c"],
  ] as const
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
  assertThrows(() => parseTemplate("${A}", () => undefined), TypeError, sentence(" A "));
  assertThrows(() => parseTemplate("${A-B}", () => "x"), TypeError, sentence("${"));
});
