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
    const { server } = await load(`${folder}/mcp.jsonc`);
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
    await server.close();
  });
});

Deno.test("streams and limits of streams and sessions can be set", async () => {
  const limits = { streams: { heartbeatMs: 2000 }, sessions: { openPerClient: 1000 } };
  await withFolder({ "mcp.jsonc": { name: "quiet", tools: { a: tool }, streams: false, limits } }, async (folder) => {
    const { server } = await load(`${folder}/mcp.jsonc`);
    await using client = await connectTest(server, { era: "legacy" });
    assertEquals(client.handshake?.capabilities, { tools: { listChanged: false } });
    await server.close();
  });
  const short = { limits: { streams: { heartbeatMs: 5 } } };
  assertEquals(await findError({ "mcp.jsonc": short }), sentence("limits.streams.heartbeatMs"));
});

Deno.test("a server without a name gets the name of its folder", async () => {
  await withFolder({ "my files/mcp.jsonc": {} }, async (folder) => {
    const { server } = await load(`${folder}/my files/mcp.jsonc`);
    await using client = await connectTest(server, { era: "legacy" });
    assertEquals(client.handshake?.serverInfo, { name: "my files", version: "0.0.0" });
    await server.close();
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
  const { title, file, message } of [
    { title: "no content", file: "", message: sentence("/mcp.jsonc:1:1: ") },
    { title: "no end", file: '{\n  "a": [1', message: sentence("/mcp.jsonc:2:10: ") },
    { title: "no comma", file: '{\n  "a": 1\n  "b": 2\n}', message: sentence("/mcp.jsonc:3:3: ", '"b"') },
    { title: "a name without quotes", file: "{ name: 1 }", message: sentence("/mcp.jsonc:1:3: ", "name") },
    { title: "an unclosed string", file: '{ "a": "b\n}', message: sentence("/mcp.jsonc:1:8: ") },
    { title: "a repeated key", file: '{\n "name": "a",\n "name": "b" }', message: sentence("/mcp.jsonc:3:2: ") },
    { title: "a list", file: "[]", message: sentence("/mcp.jsonc:1:1: ", "object", "array") },
    { title: "too much nesting", file: "[".repeat(100_000), message: sentence("/mcp.jsonc") },
    {
      title: "an unknown key",
      file: '{\n  "nmae": "x"\n}',
      message: sentence("/mcp.jsonc:2:3: nmae: ", "name?"),
    },
    {
      title: "an unknown key unlike any known key",
      file: { permissions: [] },
      message: sentence("/mcp.jsonc:1:2: permissions: ", "$schema, description, include, tools"),
    },
    {
      title: "the key __proto__",
      file: '{ "tools": { "__proto__": {} } }',
      message: sentence("/mcp.jsonc:1:14: ", "__proto__"),
    },
    {
      title: "an unknown key of a tool",
      file: { tools: { a: { ...tool, timeout: 5 } } },
      message: sentence("tools.a.timeout: ", "timeoutMs"),
    },
    {
      title: "a wrong type",
      file: '{ "tools": {\n  "a": { "description": "x", "run": ["x"],\n    "timeoutMs": "5" } } }',
      message: sentence("/mcp.jsonc:3:5: tools.a.timeoutMs: ", "number", "string"),
    },
    { title: "a missing key", file: { tools: { a: { run: ["x"] } } }, message: sentence("tools.a.description: ") },
    {
      title: "a tool without run or fetch",
      file: { tools: { a: { description: "x" } } },
      message: sentence("/mcp.jsonc:1:11: tools.a: ", "run, fetch"),
    },
    {
      title: "a tool with a misspelled run",
      file: { tools: { a: { description: "x", runs: [] } } },
      message: sentence("tools.a: ", "run, fetch", "runs"),
    },
    {
      title: "a tool with run and fetch",
      file: { tools: { a: { ...tool, fetch: { url: "https://a.b" } } } },
      message: sentence("tools.a.fetch: ", "run"),
    },
    { title: "an invalid name", file: { tools: { "a b": tool } }, message: sentence('tools["a b"]: ', 128) },
    {
      title: "a command in one string",
      file: { tools: { a: { ...tool, run: "ls -l" } } },
      message: sentence("tools.a.run: ", "array", "string"),
    },
    { title: "an empty command", file: { tools: { a: { ...tool, run: [] } } }, message: sentence("tools.a.run: ") },
    {
      title: "optional words without if",
      file: { tools: { a: { ...tool, run: ["x", { words: ["y"] }] } } },
      message: sentence("tools.a.run[1].if: "),
    },
    {
      title: "an unknown method",
      file: { tools: { a: { description: "x", fetch: { url: "http://a", method: "get" } } } },
      message: sentence("tools.a.fetch.method: ", "GET"),
    },
    {
      title: "an unknown kind of resource",
      file: { resources: [{ path: "x" }] },
      message: sentence("resources[0]: ", "file, glob, folder, url"),
    },
    {
      title: "an unknown limit",
      file: { limits: { calls: { runing: 1 } } },
      message: sentence("limits.calls.runing: ", "running"),
    },
    {
      title: "a limit of 0",
      file: { limits: { calls: { running: 0 } } },
      message: sentence("limits.calls.running: ", ">0"),
    },
    { title: "a short secret", file: { secret: "short" }, message: sentence("secret") },
    {
      title: "a secret whose variable is not set",
      file: { secret: "${MCP_NOT_SET}" },
      message: sentence("secret: ", "MCP_NOT_SET"),
    },
    {
      title: "missing instructions",
      file: { instructions: { file: "gone.md" } },
      message: sentence("instructions.file: ", "/gone.md"),
    },
    {
      title: "a missing file",
      file: { resources: [{ file: "gone.md" }] },
      message: sentence("resources[0].file: ", "/gone.md"),
    },
    {
      title: "a missing folder",
      file: { resources: [{ folder: "gone" }] },
      message: sentence("resources[0].folder: ", "/gone"),
    },
    {
      title: "a file as a folder",
      file: { resources: [{ folder: "mcp.jsonc" }] },
      message: sentence("resources[0].folder: /mcp.jsonc "),
    },
    {
      title: "a folder as a file",
      file: { resources: [{ file: "." }] },
      message: sentence("resources[0].file: "),
    },
    {
      title: "a pattern in a missing folder",
      file: { resources: [{ glob: "gone/*.md" }] },
      message: sentence("resources[0].glob: ", "/gone"),
    },
    {
      title: "unclosed braces",
      file: { resources: [{ glob: "*.{md" }] },
      message: sentence("resources[0]: ", "*.{md"),
    },
    {
      title: "too many braces",
      file: { resources: [{ glob: "{a,b}".repeat(20) }] },
      message: sentence("resources[0]: ", 100),
    },
    { title: "a missing prompt", file: { prompts: ["gone.md"] }, message: sentence("prompts[0]: ", "/gone.md") },
    {
      title: "a pattern that matches no prompt",
      file: { prompts: ["*.md"] },
      message: sentence("prompts[0]: ", "*.md"),
    },
    { title: "a missing module", file: { modules: ["gone.ts"] }, message: sentence("modules[0]: ", "/gone.ts") },
    {
      title: "a path out of the folder",
      file: { resources: [{ file: "../x" }] },
      message: sentence("resources[0].file: "),
    },
    {
      title: "a path out of the folder",
      file: { resources: [{ folder: "a/../../x" }] },
      message: sentence("resources[0].folder: "),
    },
    {
      title: "a path out of the folder",
      file: { resources: [{ glob: "../*" }] },
      message: sentence("resources[0].glob: "),
    },
    { title: "a path out of the folder", file: { prompts: ["../x.md"] }, message: sentence("prompts[0]: ") },
    { title: "a path out of the folder", file: { modules: ["../x.ts"] }, message: sentence("modules[0]: ") },
    { title: "a path out of the folder", file: { include: ["../x.jsonc"] }, message: sentence("include[0]: ") },
    {
      title: "a path out of the folder",
      file: { instructions: { file: "../x" } },
      message: sentence("instructions.file: "),
    },
    {
      title: "a path in the home folder",
      file: { resources: [{ file: "~/x" }] },
      message: sentence("resources[0].file: ~ "),
    },
    {
      title: "a NUL character in a path",
      file: { resources: [{ file: "a\0b" }] },
      message: sentence("resources[0].file: ", "NUL"),
    },
    {
      title: "a repeated URI",
      file: { resources: [{ file: "mcp.jsonc" }, { file: "mcp.jsonc" }] },
      message: sentence('"file:///mcp.jsonc"'),
    },
  ]
) {
  Deno.test(`a config file with ${title} is rejected: ${JSON.stringify(file).slice(0, 70)}`, async () => {
    assertStringIncludes(await findError({ "mcp.jsonc": file }), message);
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
