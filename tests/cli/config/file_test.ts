// Config files: parsing, defaults, and errors.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { platform } from "../../../src/cli/platform.ts";
import { load } from "../../../src/cli/load.ts";
import { findOffset, formatKeyPath, readJsonc } from "../../../src/cli/config/jsonc.ts";
import { connectTest } from "../../../src/testing/testing.ts";
import { schemaFile, schemaText } from "../../release/schema.ts";
import { type Files, system, toOutcome, withFolder, withServer, writeFiles } from "../folder.ts";
import { sentence } from "../../support/messages.ts";

/** Returns the error message for a folder's config file, without the path of the folder. */
async function findError(files: Files, prepare?: (folder: string) => Promise<unknown>): Promise<string> {
  let message = "";
  await withFolder(files, async (folder) => {
    await prepare?.(folder);
    const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
    assertEquals(error.name, "CliError", error.stack);
    message = error.message.replaceAll(folder, "");
  });
  return message;
}

const tool = { description: "Does it", run: ["true"] };

Deno.test("a file with comments, trailing commas and a byte order mark is parsed", async () => {
  const file = `\uFEFF// first
    {
      "$schema": "./mcp.schema.json", /* here */
      "name": "project", "version": "1.2.3", "title": "The project", "description": "All of it",
      "websiteUrl": "https://example.com",
      "instructions": { "file": "docs/INSTRUCTIONS.md" },
      "limits": { "calls": { "running": 2 } },
      "tools": { "a": { "description": "A", "run": ["true"] }, "b": { "description": "B", "run": ["true"], }, },
    }`;
  await withFolder({ "mcp.jsonc": file, "docs/INSTRUCTIONS.md": "Look around." }, async (folder) => {
    await using server = (await load(`${folder}/mcp.jsonc`)).server;
    await using client = await connectTest(server, { era: "legacy" });
    assertEquals(client.handshake?.serverInfo, {
      name: "project",
      version: "1.2.3",
      title: "The project",
      description: "All of it",
      websiteUrl: "https://example.com",
    });
    assertEquals(client.handshake?.instructions, "Look around.");
    assertEquals((await client.listTools()).map(({ name }) => name), ["a", "b"]);
  });
});

Deno.test("streams and limits of streams and sessions can be set", async () => {
  const limits = { streams: { heartbeatMs: 2000 }, sessions: { openPerClient: 1000 } };
  await withFolder({ "mcp.jsonc": { name: "quiet", tools: { a: tool }, streams: false, limits } }, async (folder) => {
    await using server = (await load(`${folder}/mcp.jsonc`)).server;
    await using client = await connectTest(server, { era: "legacy" });
    assertEquals(client.handshake?.capabilities, { tools: { listChanged: false } });
  });
  const short = { limits: { streams: { heartbeatMs: 5 } } };
  assertEquals(await findError({ "mcp.jsonc": short }), sentence("limits.streams.heartbeatMs"));
});

Deno.test("a server without a name gets the name of its folder", async () => {
  await withFolder({ "my files/mcp.jsonc": {} }, async (folder) => {
    await using server = (await load(`${folder}/my files/mcp.jsonc`)).server;
    await using client = await connectTest(server, { era: "legacy" });
    assertEquals(client.handshake?.serverInfo, { name: "my files", version: "0.0.0" });
  });
});

Deno.test("input defaults to an object without additional properties", async () => {
  const input = { properties: { a: { type: "string" } } };
  const open = { ...input, additionalProperties: true };
  const tools = { closed: { ...tool, input }, open: { ...tool, input: open }, none: tool };
  await withServer({ "mcp.jsonc": { tools } }, async (client) => {
    assertEquals((await client.listTools()).map(({ inputSchema }) => inputSchema), [
      { type: "object", additionalProperties: false, ...input },
      { type: "object", ...open },
      { type: "object", properties: {} },
    ]);
  });
});

Deno.test("tools, resources and prompts of included files are added, with paths relative to the included file", async () => {
  const files = {
    "mcp.jsonc": { name: "main", include: ["team/tools.jsonc", "more.jsonc"], tools: { a: tool } },
    "team/tools.jsonc": {
      description: "What the team has",
      include: ["../more.jsonc"].slice(1),
      tools: { where: { description: "Tells where", run: ["pwd"] } },
      resources: [{ file: "notes.md" }],
      prompts: ["plan.md"],
    },
    "team/notes.md": "Notes",
    "team/plan.md": "Plan {{day}}",
    "more.jsonc": { include: ["team/tools.jsonc"], tools: { b: tool } },
  };
  await withServer(files, async (client, folder) => {
    assertEquals((await client.listTools()).map(({ name }) => name), ["a", "where", "b"]);
    assertEquals(toOutcome(await client.callTool("where")).text, `${folder}/team`);
    assertEquals((await client.readResource("file:///team/notes.md")).contents[0].text, "Notes");
    const { messages } = await client.getPrompt("plan", { day: "Monday" });
    assertEquals(messages, [{ role: "user", content: { type: "text", text: "Plan Monday" } }]);
  });
});

Deno.test("a module can add handlers", async () => {
  const handler = (name: string) => `tool({ name: "${name}", run: () => "${name}!" })`;
  const files = {
    "mcp.jsonc": { modules: ["one.ts", "./more/several.ts"] },
    "one.ts": `import { tool } from "@x/mcp";\nexport default ${handler("one")};`,
    "more/several.ts": `import { tool } from "@x/mcp";\nexport default [${handler("two")}, ${handler("three")}];`,
  };
  await withServer(files, async (client) => {
    assertEquals((await client.listTools()).map(({ name }) => name), ["one", "two", "three"]);
    assertEquals(toOutcome(await client.callTool("three")).text, "three!");
  });
});

for (
  const [title, file, ...names] of [
    ["no content", "", "/mcp.jsonc:1:1: "],
    ["no end", '{\n  "a": [1', "/mcp.jsonc:2:10: "],
    ["no comma", '{\n  "a": 1\n  "b": 2\n}', "/mcp.jsonc:3:3: ", '"b"'],
    ["a name without quotes", "{ name: 1 }", "/mcp.jsonc:1:3: ", "name"],
    ["an unclosed string", '{ "a": "b\n}', "/mcp.jsonc:1:8: "],
    ["a repeated key", '{\n "name": "a",\n "name": "b" }', "/mcp.jsonc:3:2: "],
    ["a list", "[]", "/mcp.jsonc:1:1: ", "object", "array"],
    ["too much nesting", "[".repeat(100_000), "/mcp.jsonc"],
    ["an unknown key", '{\n  "nmae": "x"\n}', "/mcp.jsonc:2:3: nmae: ", "name?"],
    [
      "an unknown key unlike any known key",
      { permissions: [] },
      "/mcp.jsonc:1:2: permissions: ",
      "$schema, description, include, tools",
    ],
    ["the key __proto__", '{ "tools": { "__proto__": {} } }', "/mcp.jsonc:1:14: ", "__proto__"],
    ["an unknown key of a tool", { tools: { a: { ...tool, timeout: 5 } } }, "tools.a.timeout: ", "timeoutMs"],
    [
      "a wrong type",
      '{ "tools": {\n  "a": { "description": "x", "run": ["x"],\n    "timeoutMs": "5" } } }',
      "/mcp.jsonc:3:5: tools.a.timeoutMs: ",
      "number",
      "string",
    ],
    ["a missing key", { tools: { a: { run: ["x"] } } }, "tools.a.description: "],
    ["a tool without run or fetch", { tools: { a: { description: "x" } } }, "/mcp.jsonc:1:11: tools.a: ", "run, fetch"],
    [
      "a tool with a misspelled run",
      { tools: { a: { description: "x", runs: [] } } },
      "tools.a: ",
      "run, fetch",
      "runs",
    ],
    [
      "a tool with run and fetch",
      { tools: { a: { ...tool, fetch: { url: "https://a.b" } } } },
      "tools.a.fetch: ",
      "run",
    ],
    ["an invalid name", { tools: { "a b": tool } }, 'tools["a b"]: ', 128],
    ["a command in one string", { tools: { a: { ...tool, run: "ls -l" } } }, "tools.a.run: ", "array", "string"],
    ["an empty command", { tools: { a: { ...tool, run: [] } } }, "tools.a.run: "],
    ["optional words without if", { tools: { a: { ...tool, run: ["x", { words: ["y"] }] } } }, "tools.a.run[1].if: "],
    [
      "an unknown method",
      { tools: { a: { description: "x", fetch: { url: "http://a", method: "get" } } } },
      "tools.a.fetch.method: ",
      "GET",
    ],
    ["an unknown kind of resource", { resources: [{ path: "x" }] }, "resources[0]: ", "file, glob, folder, url"],
    ["an unknown limit", { limits: { calls: { runing: 1 } } }, "limits.calls.runing: ", "running"],
    ["a limit of 0", { limits: { calls: { running: 0 } } }, "limits.calls.running: ", ">0"],
    ["a short secret", { secret: "short" }, "secret"],
    ["a secret whose variable is not set", { secret: "${MCP_NOT_SET}" }, "secret: ", "MCP_NOT_SET"],
    ["missing instructions", { instructions: { file: "gone.md" } }, "instructions.file: ", "/gone.md"],
    ["a missing file", { resources: [{ file: "gone.md" }] }, "resources[0].file: ", "/gone.md"],
    ["a missing folder", { resources: [{ folder: "gone" }] }, "resources[0].folder: ", "/gone"],
    ["a file as a folder", { resources: [{ folder: "mcp.jsonc" }] }, "resources[0].folder: /mcp.jsonc "],
    ["a folder as a file", { resources: [{ file: "." }] }, "resources[0].file: "],
    ["a pattern in a missing folder", { resources: [{ glob: "gone/*.md" }] }, "resources[0].glob: ", "/gone"],
    ["unclosed braces", { resources: [{ glob: "*.{md" }] }, "resources[0]: ", "*.{md"],
    ["too many braces", { resources: [{ glob: "{a,b}".repeat(20) }] }, "resources[0]: ", 100],
    ["a missing prompt", { prompts: ["gone.md"] }, "prompts[0]: ", "/gone.md"],
    ["a pattern that matches no prompt", { prompts: ["*.md"] }, "prompts[0]: ", "*.md"],
    ["a missing module", { modules: ["gone.ts"] }, "modules[0]: ", "/gone.ts"],
    ["a path out of the folder", { resources: [{ file: "../x" }] }, "resources[0].file: "],
    ["a path out of the folder", { resources: [{ folder: "a/../../x" }] }, "resources[0].folder: "],
    ["a path out of the folder", { resources: [{ glob: "../*" }] }, "resources[0].glob: "],
    ["a path out of the folder", { prompts: ["../x.md"] }, "prompts[0]: "],
    ["a path out of the folder", { modules: ["../x.ts"] }, "modules[0]: "],
    ["a path out of the folder", { include: ["../x.jsonc"] }, "include[0]: "],
    ["a path out of the folder", { instructions: { file: "../x" } }, "instructions.file: "],
    ["a path in the home folder", { resources: [{ file: "~/x" }] }, "resources[0].file: ~ "],
    ["a NUL character in a path", { resources: [{ file: "a\0b" }] }, "resources[0].file: ", "NUL"],
    ["a repeated URI", { resources: [{ file: "mcp.jsonc" }, { file: "mcp.jsonc" }] }, '"file:///mcp.jsonc"'],
  ] as const
) {
  Deno.test(`a config file with ${title} is rejected: ${JSON.stringify(file).slice(0, 70)}`, async () => {
    assertStringIncludes(await findError({ "mcp.jsonc": file }), sentence(...names));
  });
}

Deno.test("all errors are listed, one per line", async () => {
  const file = { nam: "x", version: 1, tools: { a: { ...tool, cdw: "x" } } };
  assertEquals((await findError({ "mcp.jsonc": file })).split("\n").map((line) => line.trim()), [
    sentence("/mcp.jsonc:"),
    sentence("/mcp.jsonc:1:2: nam: ", "name?"),
    sentence("/mcp.jsonc:1:12: version: ", "string", "number"),
    sentence("/mcp.jsonc:1:77: tools.a.cdw: ", "cwd"),
  ]);
});

Deno.test("instructions and prompts over 1 MiB are rejected", async () => {
  const text = "x".repeat(2 ** 20);
  const files = { "large.md": `---\nname: a\n---\n${text}` };
  const find = (file: object) => findError({ ...files, "mcp.jsonc": file });
  assertStringIncludes(
    await find({ instructions: { file: "large.md" } }),
    sentence("instructions.file: ", "large.md", 2 ** 20),
  );
  assertStringIncludes(await find({ prompts: ["large.md"] }), sentence("prompts[0]: ", "large.md", 2 ** 20));
});

Deno.test("files that include each other in a cycle are rejected", async () => {
  assertStringIncludes(
    await findError({ "mcp.jsonc": { include: ["mcp.jsonc"] } }),
    sentence("/mcp.jsonc:1:13: include[0]: mcp.jsonc "),
  );
  const ring = {
    "mcp.jsonc": { include: ["a.jsonc"] },
    "a.jsonc": { include: ["b.jsonc"] },
    "b.jsonc": { include: ["a.jsonc"] },
  };
  assertStringIncludes(await findError(ring), sentence("/b.jsonc:1:13: include[0]: a.jsonc "));
  const linked = { "mcp.jsonc": { include: ["link.jsonc"] } };
  assertStringIncludes(
    await findError(linked, (folder) => system("ln", "-s", "mcp.jsonc", `${folder}/link.jsonc`)),
    sentence("include[0]: link.jsonc "),
  );
});

Deno.test("an included file cannot set server options or repeat a tool's name", async () => {
  assertStringIncludes(
    await findError({ "mcp.jsonc": { include: ["a.jsonc"] }, "a.jsonc": { name: "x" } }),
    sentence("/a.jsonc:1:2: name: ", "$schema, description, include"),
  );
  assertStringIncludes(
    await findError({ "mcp.jsonc": { include: ["a.jsonc"], tools: { a: tool } }, "a.jsonc": { tools: { a: tool } } }),
    sentence("/a.jsonc:1:11: tools.a: /mcp.jsonc "),
  );
});

Deno.test("a module that cannot be loaded or exports no handlers is rejected with its position", async () => {
  assertStringIncludes(
    await findError({ "mcp.jsonc": { modules: ["a.ts"] }, "a.ts": "export default 1;" }),
    sentence("modules[0]: "),
  );
  const thrown = await findError({ "mcp.jsonc": { modules: ["a.ts"] }, "a.ts": 'throw new Error("boom");' });
  assertStringIncludes(thrown, sentence("a.ts:"));
  assertStringIncludes(thrown, "boom");
});

Deno.test("symbolic links that lead out of the folder are not followed", async () => {
  await withFolder({ "secret.md": "Secret", "secrets/a.md": "Secret" }, async (outside) => {
    const link = (to: string) => (folder: string) => system("ln", "-s", `${outside}/${to}`, `${folder}/link`);
    for (
      const [file, to] of [
        [{ resources: [{ file: "link" }] }, "secret.md"],
        [{ prompts: ["link"] }, "secret.md"],
        [{ instructions: { file: "link" } }, "secret.md"],
        [{ include: ["link"] }, "secret.md"],
        [{ modules: ["link"] }, "secret.md"],
        [{ resources: [{ folder: "link" }] }, "secrets"],
        [{ resources: [{ glob: "link/*.md" }] }, "secrets"],
      ] as const
    ) assertStringIncludes(await findError({ "mcp.jsonc": file }, link(to)), sentence("/link "), JSON.stringify(file));
    // An absolute path in the config file can lead out of the folder.
    await withServer({ "mcp.jsonc": { resources: [{ file: `${outside}/secret.md` }] } }, async (client) => {
      assertEquals((await client.readResource("file:///secret.md")).contents[0].text, "Secret");
    });
  });
});

Deno.test("a config file that is huge, binary or missing, or that is a folder or a pipe, is rejected", async () => {
  await withFolder({ "big/mcp.jsonc": " ".repeat(1024 * 1024 + 1), "folder.jsonc/x": "" }, async (folder) => {
    const findMessage = async (name: string) =>
      (await assertRejects(() => load(`${folder}/${name}`), Error)).message.replaceAll(folder, "");
    assertEquals(await findMessage("big/mcp.jsonc"), sentence("/big/mcp.jsonc", 1_048_576));
    assertEquals(await findMessage("gone.jsonc"), sentence("/gone.jsonc"));
    await system("mkfifo", `${folder}/pipe.jsonc`);
    assertEquals(await findMessage("pipe.jsonc"), sentence("/pipe.jsonc"));
    await system("cp", "/bin/true", `${folder}/binary.jsonc`);
    assertEquals(await findMessage("binary.jsonc"), sentence("/binary.jsonc", "UTF-8"));
  });
});

Deno.test("a reload applies all changes to the files, or no change if a file is invalid", async () => {
  const described = (name: string) => ({ tools: { [name]: tool }, prompts: ["p.md"] });
  await withFolder({ "mcp.jsonc": described("a"), "p.md": "one" }, async (folder) => {
    const { server, reload, files } = await load(`${folder}/mcp.jsonc`);
    assert(reload);
    assertEquals(files, [`${folder}/mcp.jsonc`, `${folder}/p.md`]);
    await using client = await connectTest(server);
    const subscription = await client.subscribe({ toolsListChanged: true, promptsListChanged: true });
    await writeFiles(folder, {
      "mcp.jsonc": { ...described("b"), include: ["c.jsonc"] },
      "p.md": "two",
      "c.jsonc": {},
    });
    assertEquals(await reload([]), [`${folder}/mcp.jsonc`, `${folder}/c.jsonc`, `${folder}/p.md`]);
    assertEquals((await client.listTools()).map(({ name }) => name), ["b"]);
    assertEquals((await client.getPrompt("p")).messages[0].content, { type: "text", text: "two" });
    assertEquals((await subscription.take(2)).map(({ method }) => method).sort(), [
      "notifications/prompts/list_changed",
      "notifications/tools/list_changed",
    ]);
    for (
      const broken of ["{", { tols: {} }, { tools: { b: { ...tool, cwd: "gone" } } }, {
        resources: [{ file: "p.md" }, { file: "p.md" }],
      }]
    ) {
      await writeFiles(folder, { "mcp.jsonc": broken });
      const error = await assertRejects(() => reload([]), Error);
      assertEquals(error.name, "CliError");
      assertEquals((await client.listTools()).map(({ name }) => name), ["b"]);
    }
    await server.close();
  });
});

Deno.test("the position of a key path is found in a text with comments", () => {
  const text = '{ // "a": 1\n "a": [1, {"b\\"": /* , */ 2}], "c": "x,]}", }';
  const { root, value } = readJsonc(text, "f");
  assertEquals(value, { a: [1, { 'b"': 2 }], c: "x,]}" });
  const at = (...path: (string | number)[]) => text.slice(findOffset(root, path), findOffset(root, path) + 6);
  assertEquals([at("a"), at("a", 0), at("a", 1, 'b"'), at("c"), at()], [
    '"a": [',
    '1, {"b',
    '"b\\"":',
    '"c": "',
    text.slice(0, 6),
  ]);
  assertEquals([at("a", 2), at("d"), at("a", 0, "x")], ['"a": [', text.slice(0, 6), '1, {"b']);
  assertEquals(formatKeyPath(["a", 1, 'b"', "c-d"]), 'a[1]["b\\""].c-d');
});

Deno.test("mcp.schema.json matches the schema of config files", async () => {
  const bytes = await platform.files.read(decodeURIComponent(schemaFile.pathname), 1_000_000);
  assertEquals(new TextDecoder().decode(bytes), schemaText, "mcp.schema.json is out of date; run `deno task schema`");
});

Deno.test("the platform functions make relative paths absolute", () => {
  assertEquals(platform.toPath("/a/./b/../c//d/"), "/a/c/d");
  assertEquals(platform.toPath("/../.."), "/");
  assertEquals(platform.toFileUrl("/a b/%#?.ts"), "file:///a%20b/%25%23%3F.ts");
});
