// Arguments with the format "path": a call can choose only paths in the working directory of the program.
import { assert, assertEquals } from "@std/assert";
import { findRequiredPermissions } from "../../../src/cli/config/required_permissions.ts";
import { system, toOutcome, withFolder, withServer } from "../folder.ts";
import { sentence } from "../../support/messages.ts";

const page = { type: "string", format: "path", description: "The page" };

/** Returns a config file with one tool, `it`, and some files. */
function withTool(tool: Record<string, unknown>, properties: Record<string, unknown> = { page }) {
  const input = { properties, required: Object.keys(properties) };
  return {
    "mcp.jsonc": { tools: { it: { description: "Does it", input, ...tool } } },
    "docs/a.md": "one two",
    "docs/deep/b.md": "one",
    "secret.md": "secret",
  };
}

Deno.test("a path argument is passed as a path in the working directory, whatever its text means to the program", async () => {
  await withServer(withTool({ run: ["printf", "[%s]", "-f", "{{page}}"], cwd: "docs" }), async (client, folder) => {
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
    const files = withTool({
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
    withTool({ run: ["cat", "--", "{{page}}"], cwd: "docs" }, { page: list }),
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
  await withServer(withTool(tool), async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { page: "a.md" })).text.trim(), "2 ./a.md");
    assert(toOutcome(await client.callTool("it", { page: "/etc/passwd" })).isError);
  });
});

Deno.test("a default is checked like an argument, and a missing optional path adds no word", async () => {
  const properties = { page: { ...page, default: "../secret.md" } };
  await withServer(withTool({ run: ["cat", "{{page}}"], cwd: "docs", input: { properties } }), async (client) => {
    assert(toOutcome(await client.callTool("it")).isError);
    assertEquals(toOutcome(await client.callTool("it", { page: "a.md" })).text, "one two");
  });
  const run = ["printf", "[%s]", "x", { if: "page", words: ["{{page}}"] }];
  await withServer(withTool({ run, input: { properties: { page } } }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it")).text, "[x]");
  });
});

Deno.test("clients see paths as strings, because some model APIs reject unknown formats", async () => {
  const properties = { page, pages: { type: "array", items: page }, day: { type: "string", format: "date" } };
  const run = ["cat", "{{page}}", "{{pages}}"];
  await withServer(withTool({ run, unsafe: ["day"] }, properties), async (client) => {
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
  await withFolder(withTool({ run: ["wc", "{{page}}"], cwd: "docs" }), async (folder) => {
    const { permissions } = await findRequiredPermissions("mcp.jsonc", `${folder}/mcp.jsonc`);
    assertEquals([...permissions.read ?? []].sort(), [`${folder}/docs`, `${folder}/mcp.jsonc`]);
  });
  await withFolder(withTool({ run: ["wc"], cwd: "docs" }, {}), async (folder) => {
    const { permissions } = await findRequiredPermissions("mcp.jsonc", `${folder}/mcp.jsonc`);
    assertEquals(permissions.read, [`${folder}/mcp.jsonc`]);
  });
});
