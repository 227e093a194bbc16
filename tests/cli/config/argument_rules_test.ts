// Command arguments: each argument stays one word, and is limited unless the config file names it in `unsafe`.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { check } from "../../../src/cli/check.ts";
import { readArgs } from "../../../src/cli/args.ts";
import { toFlags } from "../../../src/cli/command.ts";
import { load } from "../../../src/cli/load.ts";
import { system, toOutcome, withFolder, withServer } from "../folder.ts";
import { sentence } from "../../support/messages.ts";
import { findRequiredPermissions } from "../../../src/cli/config/required_permissions.ts";

const text = { type: "string" };
const path = { type: "string", format: "path" };
const withTool = (tool: object, properties: Record<string, unknown> = { a: text }) => ({
  "mcp.jsonc": {
    tools: { it: { description: "Does it", input: { properties, required: Object.keys(properties) }, ...tool } },
  },
});

/** Commands that break a rule, with the position of the error and the names in its message. */
const rejected: readonly {
  readonly run: readonly string[];
  readonly stdin?: string;
  readonly properties?: Record<string, unknown>;
  readonly key: string;
  readonly names: readonly string[];
}[] = [
  { run: ["wc", "-w", "--", "{{a}}"], key: "run[3]", names: [" a ", "enum", '"format": "path"'] },
  { run: ["docker", "exec", "pod", "{{a}}"], key: "run[3]", names: [" a ", "enum", '"format": "path"'] },
  { run: ["my-tool", "--name={{a}}"], key: "run[1]", names: [" a "] },
  { run: ["my-tool", "{{b}}-{{a}}"], properties: { a: text, b: { enum: ["x"] } }, key: "run[1]", names: [" b "] },
  { run: ["kubectl", "exec", "pod", "--", "{{a}}"], key: "run[4]", names: [" a "] },
  { run: ["sh"], stdin: "echo {{a}}", key: "stdin", names: [" a ", "enum"] },
  { run: ["wc", "-w"], stdin: "{{a}}", key: "stdin", names: [" a ", "enum"] },
  { run: ["my-tool"], stdin: '{"name":"{{a}}"}', properties: { a: path }, key: "stdin", names: [" a ", "enum"] },
  { run: ["x"], key: "env[0]", names: [] },
  // These schemas allow any text.
  ...[
    {},
    { type: ["number", "string"] },
    { anyOf: [{ type: "number", minimum: 0 }] },
    { type: "array", items: { type: "string" } },
    { type: "array", items: { type: "number", minimum: 0 }, prefixItems: [{ type: "string" }] },
    { type: "array" },
    { type: "array", items: { type: ["array"], items: { type: "string", format: "path" } } },
    { type: "object" },
    { $ref: "#", enum: ["a"] },
    { type: "string", pattern: "^a$" },
    { type: "string", format: "uuid" },
    { format: "path" },
    { type: ["string", "array"], format: "path" },
    { type: "array", format: "path", items: { type: "string" } },
  ].map((a) => ({ run: ["x", "-n", "{{a}}"], properties: { a }, key: "run[2]", names: [" a ", '"format": "path"'] })),
  // These numbers can be negative.
  ...[
    { type: "integer" },
    { type: "number", minimum: -1 },
    { type: "integer", maximum: 5 },
    { type: ["integer", "null"], maximum: 5 },
    { type: "array", items: { type: "number", exclusiveMinimum: -1 } },
  ].map((a) => ({ run: ["x", "-n", "{{a}}"], properties: { a }, key: "run[2]", names: [" a ", '"minimum": 0'] })),
];

for (const { run, stdin, properties, key, names } of rejected) {
  const name = JSON.stringify(stdin ?? run) + JSON.stringify(properties?.a ?? text);
  Deno.test(`a command is rejected with its position and a remedy, unless the command is marked unsafe: ${name}`, async () => {
    const env = key.startsWith("env") ? ["A={{a}}"] : undefined;
    await withFolder(withTool({ run, stdin, env }, properties), async (folder) => {
      const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      const remedy = env ? [] : ['"unsafe": ["'];
      assertStringIncludes(error.message, sentence(`tools.it.${key}: `, ...names, ...remedy));
    });
    if (env) return;
    for (const unsafe of [true, Object.keys(properties ?? { a: text })]) {
      await withFolder(withTool({ run, stdin, unsafe }, properties), async (folder) => {
        await (await load(`${folder}/mcp.jsonc`)).server.close();
      });
    }
    for (const unsafe of [false, []]) {
      await withFolder(withTool({ run, stdin, unsafe }, properties), async (folder) => {
        await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      });
    }
  });
}

Deno.test("an argument whose schema has members beside a `$ref` counts as a text", async () => {
  const input = { $ref: "#/$defs/any", $defs: { any: {} }, properties: { a: { type: "integer" } }, required: ["a"] };
  await withFolder(withTool({ run: ["git", "-c", "{{a}}"], input }), async (folder) => {
    await assertRejects(() => load(`${folder}/mcp.jsonc`), Error, sentence("tools.it.run[2]: ", " a "));
  });
});

Deno.test("unsafe names arguments of the tool", async () => {
  await withFolder(withTool({ run: ["my-tool", "{{a}}"], unsafe: ["b"] }), async (folder) => {
    await assertRejects(() => load(`${folder}/mcp.jsonc`), Error, sentence("tools.it.unsafe[0]: ", "b "));
  });
  // The rules hold for the other arguments.
  const properties = { a: text, b: text };
  await withFolder(withTool({ run: ["my-tool", "{{a}}", "{{b}}"], unsafe: ["a"] }, properties), async (folder) => {
    await assertRejects(() => load(`${folder}/mcp.jsonc`), Error, sentence("tools.it.run[2]: ", " b "));
  });
  await withFolder(withTool({ run: ["my-tool", "{{a}}={{b}}"], unsafe: ["a"] }, properties), async (folder) => {
    await assertRejects(() => load(`${folder}/mcp.jsonc`), Error, sentence("tools.it.run[1]: ", " b "));
  });
});

Deno.test("a number, a boolean or a listed value can follow an option, and a listed value can begin with a dash", async () => {
  for (
    const [a, value] of [
      [{ type: "integer", minimum: 0 }, 3],
      [{ type: "number", exclusiveMinimum: 0 }, 0.5],
      [{ type: "boolean" }, true],
      [{ enum: ["-x", "y"] }, "-x"],
      [{ const: "-x" }, "-x"],
      [{ enum: [-1, 1] }, -1],
      [{ type: "array", items: { type: "number", minimum: 0 } }, [1, 2]],
      [{ type: ["integer", "null"], minimum: 0 }, null],
    ] as const
  ) {
    await withServer(withTool({ run: ["printf", "[%s]", "[-n]", "{{a}}"] }, { a }), async (client) => {
      const { text } = toOutcome(await client.callTool("it", { a: value }));
      assertEquals(text, `[[-n]]${[value].flat().map((each) => `[${each}]`).join("")}`);
    });
  }
});

Deno.test("a text can begin with a dash only directly after --, and not after a program that follows --", async () => {
  const unsafe = ["a"];
  await withServer(withTool({ run: ["printf", "--", "{{a}}"], unsafe }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { a: "-x" })).text, "-x");
  });
  await withServer(withTool({ run: ["printf", "[%s]", "--", "tar", "{{a}}"], unsafe }), async (client) => {
    const { text, isError } = toOutcome(await client.callTool("it", { a: "--checkpoint-action=exec=sh" }));
    assert(isError);
    assertStringIncludes(text, sentence("printf", "a ", '"-"'));
  });
  // An option can take the two dashes as its value. For example, `tar -I -- …` runs a program named "--", and
  // interprets the following words as options.
  for (const option of ["-I", "--file", "-cf"]) {
    await withServer(withTool({ run: ["printf", "[%s]", option, "--", "{{a}}"], unsafe }), async (client) => {
      const { text, isError } = toOutcome(await client.callTool("it", { a: "--checkpoint-action=exec=sh" }));
      assert(isError);
      assertStringIncludes(text, sentence("printf", "a ", '"-"'));
      assertEquals(toOutcome(await client.callTool("it", { a: "x" })).text, `[${option}][--][x]`);
    });
  }
  for (const before of [["--file=b"], ["-n", "--"]]) {
    await withServer(withTool({ run: ["printf", "[%s]", ...before, "--", "{{a}}"], unsafe }), async (client) => {
      assertStringIncludes(toOutcome(await client.callTool("it", { a: "-x" })).text, "[-x]");
    });
  }
  // The two dashes are optional, so a call can omit them.
  const optional = withTool({ run: ["printf", "[%s]", { if: "b", words: ["--"] }, "{{a}}"], unsafe }, {
    a: text,
    b: { type: "boolean" },
  });
  await withServer(optional, async (client) => {
    assert(toOutcome(await client.callTool("it", { a: "-x", b: false })).isError);
    assertEquals(toOutcome(await client.callTool("it", { a: "-x", b: true })).text, "[--][-x]");
  });
});

Deno.test("limited arguments can stand in any word and on standard input, whatever the program is", async () => {
  const properties = { a: { enum: ["x"] }, b: { type: "integer", minimum: 0 }, c: path, d: { type: "integer" } };
  for (
    const { run, stdin } of [
      { run: ["find", "{{c}}"] },
      { run: ["sed", "-n", "{{b}}", "{{c}}"] },
      { run: ["sh", "-c", "echo $1", "sh", "{{a}}"] },
      { run: ["python3", "{{a}}", { if: "b", words: ["--count", "{{b}}"] }] },
      { run: ["bc"], stdin: "{{b}} + {{d}}" },
      { run: ["my-tool"], stdin: '{"kind":"{{a}}","count":{{b}}}' },
    ]
  ) {
    await withFolder(withTool({ run, stdin }, properties), async (folder) => {
      await (await load(`${folder}/mcp.jsonc`)).server.close();
    });
  }
});

Deno.test("check reports a command that breaks a rule", async () => {
  const checkFile = async (folder: string) =>
    await check.run(await readArgs([`${folder}/mcp.jsonc`], toFlags(check.options)));
  await withFolder(withTool({ run: ["tar", "-I", "{{a}}"] }), async (folder) => {
    await assertRejects(() => checkFile(folder), Error, sentence("tools.it.run[2]: ", " a "));
  });
  const { log } = console;
  let printed = "";
  console.log = (line: unknown) => void (printed += `${line}\n`);
  try {
    await withFolder(
      withTool({ run: ["git", "log", "-n", "{{a}}"] }, {
        a: { type: "integer", minimum: 0, description: "The number" },
      }),
      async (folder) => assertEquals(await checkFile(folder), 0),
    );
  } finally {
    console.log = log;
  }
  assertEquals(printed.trimEnd().split("\n").at(-1), sentence());
});

// Arguments with the format "path": a call can choose only paths in the working directory of the program.

const page = { type: "string", format: "path", description: "The page" };

/** Returns a config file with one tool, `it`, and some files. */
function withPages(tool: Record<string, unknown>, properties: Record<string, unknown> = { page }) {
  const input = { properties, required: Object.keys(properties) };
  return {
    "mcp.jsonc": { tools: { it: { description: "Does it", input, ...tool } } },
    "docs/a.md": "one two",
    "docs/deep/b.md": "one",
    "secret.md": "secret",
  };
}

Deno.test("a path argument is passed as a path in the working directory, whatever its text means to the program", async () => {
  await withServer(withPages({ run: ["printf", "[%s]", "-f", "{{page}}"], cwd: "docs" }), async (client, folder) => {
    for (
      const [given, passed] of [
        ["a.md", "./a.md"],
        ["./deep//b.md", "./deep/b.md"],
        ["deep/../a.md", "./a.md"],
        [".", "."],
        ["deep/..", "."],
        [`${folder}/docs/a.md`, "./a.md"],
        ["missing/new.md", "./missing/new.md"],
        // These texts would be an option, a URL, a host and a file list if they did not begin with "./".
        ["-x", "./-x"],
        ["--output=x", "./--output=x"],
        ["https://evil.example/x", "./https:/evil.example/x"],
        ["host:file", "./host:file"],
        ["@list", "./@list"],
        ["~", "./~"],
        ["a b;$(c)", "./a b;$(c)"],
      ]
    ) {
      const { text, isError } = toOutcome(await client.callTool("it", { page: given }));
      assertEquals([text, isError], [`[-f][${passed}]`, false], given);
    }
  });
});

Deno.test("an argument whose name is a member of all objects can be missing", async () => {
  const names = ["constructor", "valueOf", "toString"];
  for (const more of [{}, { format: "path" }]) {
    const properties = Object.fromEntries(names.map((name) => [name, { type: "string", ...more }]));
    const files = withPages({
      run: ["printf", "[%s]", "-f", ...names.map((name) => ({ if: name, words: [`{{${name}}}`] }))],
      input: { properties },
      unsafe: true,
    });
    await withServer(files, async (client) => {
      assertEquals(toOutcome(await client.callTool("it", {})).text, "[-f]");
      const given = { valueOf: "a", toString: "b" };
      assertEquals(
        toOutcome(await client.callTool("it", given)).text,
        "format" in more ? "[-f][./a][./b]" : "[-f][a][b]",
      );
    });
  }
});

Deno.test("a path that leads out of the working directory is refused, also through symbolic links", async () => {
  const list = { type: "array", items: { type: "string", format: "path" } };
  await withServer(
    withPages({ run: ["cat", "--", "{{page}}"], cwd: "docs" }, { page: list }),
    async (client, folder) => {
      await system("ln", "-s", "../secret.md", `${folder}/docs/link.md`);
      await system("ln", "-s", "..", `${folder}/docs/up`);
      await system("ln", "-s", "../not-yet.md", `${folder}/docs/dangling.md`);
      await system("ln", "-s", "loop.md", `${folder}/docs/loop.md`);
      await system("ln", "-s", "deep", `${folder}/docs/inner`);
      const paths = [
        "/etc/passwd",
        "../secret.md",
        "deep/../../secret.md",
        "..",
        "/",
        `${folder}/docs-other/a.md`,
        `${folder}/secret.md`,
        "link.md",
        "up/secret.md",
        "up/new.md",
        "dangling.md",
        "loop.md",
        "",
        "a\0.md",
      ];
      for (const path of paths) {
        const { text, isError } = toOutcome(await client.callTool("it", { page: ["a.md", path] }));
        assert(isError, path);
        assertEquals(text, sentence("page"), path);
      }
      const { text } = toOutcome(await client.callTool("it", { page: ["a.md", "inner/b.md"] }));
      assertEquals(text, "one twoone");
    },
  );
});

Deno.test("the reported attack fails: a word count cannot read other files", async () => {
  const tool = { run: ["wc", "-w", "--", "{{page}}"], cwd: "docs" };
  await withServer(withPages(tool), async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { page: "a.md" })).text.trim(), "2 ./a.md");
    assert(toOutcome(await client.callTool("it", { page: "/etc/passwd" })).isError);
  });
});

Deno.test("a default is checked like an argument, and a missing optional path adds no word", async () => {
  const properties = { page: { ...page, default: "../secret.md" } };
  await withServer(withPages({ run: ["cat", "{{page}}"], cwd: "docs", input: { properties } }), async (client) => {
    assert(toOutcome(await client.callTool("it")).isError);
    assertEquals(toOutcome(await client.callTool("it", { page: "a.md" })).text, "one two");
  });
  const run = ["printf", "[%s]", "x", { if: "page", words: ["{{page}}"] }];
  await withServer(withPages({ run, input: { properties: { page } } }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it")).text, "[x]");
  });
});

Deno.test("clients see paths as strings, because some model APIs reject unknown formats", async () => {
  const properties = { page, pages: { type: "array", items: page }, day: { type: "string", format: "date" } };
  const run = ["cat", "{{page}}", "{{pages}}"];
  await withServer(withPages({ run, unsafe: ["day"] }, properties), async (client) => {
    const [{ inputSchema }] = await client.listTools();
    const shown = { type: "string", description: "The page" };
    assertEquals(Object(inputSchema).properties, {
      page: shown,
      pages: { type: "array", items: shown },
      day: { type: "string", format: "date" },
    });
  });
});

Deno.test("install permits reading the working directory of a tool with paths, and of no other tool", async () => {
  await withFolder(withPages({ run: ["wc", "{{page}}"], cwd: "docs" }), async (folder) => {
    const { permissions } = await findRequiredPermissions("mcp.jsonc", `${folder}/mcp.jsonc`);
    assertEquals([...permissions.read ?? []].sort(), [`${folder}/docs`, `${folder}/mcp.jsonc`]);
  });
  await withFolder(withPages({ run: ["wc"], cwd: "docs" }, {}), async (folder) => {
    const { permissions } = await findRequiredPermissions("mcp.jsonc", `${folder}/mcp.jsonc`);
    assertEquals(permissions.read, [`${folder}/mcp.jsonc`]);
  });
});
