// Config files: how they are read, and what is told of those that cannot be used.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { platform } from "../../../src/cli/platform.ts";
import { load } from "../../../src/cli/load.ts";
import { findOffset, readJsonc, toKey } from "../../../src/cli/config/jsonc.ts";
import { connect } from "../../../src/testing/testing.ts";
import { schemaFile, schemaText } from "../../release/schema.ts";
import { type Files, system, toOutcome, withFolder, withServer, writeFiles } from "../../support/folder.ts";

/** What is told of a folder's config file, without the folder. */
async function fail(files: Files, prepare?: (folder: string) => Promise<unknown>): Promise<string> {
  let told = "";
  await withFolder(files, async (folder) => {
    await prepare?.(folder);
    const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
    assertEquals(error.name, "Problem", error.stack);
    told = error.message.replaceAll(folder, "");
  });
  return told;
}

const tool = { description: "Does it", run: ["true"] };

Deno.test("a file with comments, trailing commas and a byte order mark says who the server is", async () => {
  const file = `\uFEFF// first
    {
      "$schema": "./mcp.schema.json", /* here */
      "name": "project", "version": "1.2.3", "title": "The project", "description": "All of it",
      "websiteUrl": "https://example.com",
      "instructions": { "file": "docs/INSTRUCTIONS.md" },
      "limits": { "calls": { "pageItems": 2 } },
      "tools": { "a": { "description": "A", "run": ["true"] }, "b": { "description": "B", "run": ["true"], }, },
    }`;
  await withFolder({ "mcp.jsonc": file, "docs/INSTRUCTIONS.md": "Look around." }, async (folder) => {
    const { server } = await load(`${folder}/mcp.jsonc`);
    await using client = await connect(server, { era: "legacy" });
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

Deno.test("a server without a name is named like its folder", async () => {
  await withFolder({ "my files/mcp.jsonc": {} }, async (folder) => {
    const { server } = await load(`${folder}/my files/mcp.jsonc`);
    await using client = await connect(server, { era: "legacy" });
    assertEquals(client.handshake?.serverInfo, { name: "my files", version: "0.0.0" });
    await server.close();
  });
});

Deno.test("input is an object with the properties it names, unless it says something else", async () => {
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

Deno.test("tools, resources and prompts of included files are there too, seen from their own folder", async () => {
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

Deno.test("a module gives its handlers", async () => {
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
  const { says, file, told } of [
    { says: "nothing", file: "", told: "Cannot read /mcp.jsonc:1:1: the text ends too early" },
    { says: "no end", file: '{\n  "a": [1', told: "Cannot read /mcp.jsonc:2:10: the text ends too early" },
    {
      says: "no comma",
      file: '{\n  "a": 1\n  "b": 2\n}',
      told: 'Cannot read /mcp.jsonc:3:3: unexpected "b"; look for',
    },
    {
      says: "a name without quotes",
      file: "{ name: 1 }",
      told: "Cannot read /mcp.jsonc:1:3: unexpected name; look for",
    },
    { says: "an open text", file: '{ "a": "b\n}', told: "Cannot read /mcp.jsonc:1:8: unexpected " },
    {
      says: "a key twice",
      file: '{\n "name": "a",\n "name": "b" }',
      told: "Cannot read /mcp.jsonc:3:2: this key is there already",
    },
    { says: "a list", file: "[]", told: "Cannot use /mcp.jsonc:1:1: expected object, received array" },
    { says: "far too many levels", file: "[".repeat(100_000), told: "Cannot read /mcp.jsonc" },
    {
      says: "an unknown key",
      file: '{\n  "nmae": "x"\n}',
      told: "Cannot use /mcp.jsonc:2:3: nmae: there is no such key; did you mean name?",
    },
    {
      says: "an unknown key, like no other",
      file: { permissions: [] },
      told:
        "Cannot use /mcp.jsonc:1:2: permissions: there is no such key; there are $schema, description, include, tools",
    },
    {
      says: "a prototype",
      file: '{ "tools": { "__proto__": {} } }',
      told: "Cannot use /mcp.jsonc:1:14: __proto__ is the name of something else here; choose another",
    },
    {
      says: "an unknown key of a tool",
      file: { tools: { a: { ...tool, timeout: 5 } } },
      told: "tools.a.timeout: there is no such key; did you mean timeoutMs?",
    },
    {
      says: "a wrong type",
      file: '{ "tools": {\n  "a": { "description": "x", "run": ["x"],\n    "timeoutMs": "5" } } }',
      told: "Cannot use /mcp.jsonc:3:5: tools.a.timeoutMs: expected number, received string (Milliseconds before the",
    },
    {
      says: "a missing key",
      file: { tools: { a: { run: ["x"] } } },
      told: "tools.a.description: it is missing (What the tool does, for the model that decides to call it)",
    },
    {
      says: "a tool that does nothing",
      file: { tools: { a: { description: "x" } } },
      told: "Cannot use /mcp.jsonc:1:11: tools.a: it needs one of run, fetch",
    },
    {
      says: "a tool that does nothing that is known",
      file: { tools: { a: { description: "x", runs: [] } } },
      told: "tools.a: it needs one of run, fetch; did you mean run where it says runs?",
    },
    {
      says: "a tool that does two things",
      file: { tools: { a: { ...tool, fetch: { url: "https://a.b" } } } },
      told: "tools.a.fetch: it stands beside run; keep one of the two",
    },
    { says: "a name that is none", file: { tools: { "a b": tool } }, told: 'tools["a b"]: a name is 1 to 128 letters' },
    {
      says: "a command that is a line",
      file: { tools: { a: { ...tool, run: "ls -l" } } },
      told: "tools.a.run: expected array, received string (The program and its",
    },
    { says: "an empty command", file: { tools: { a: { ...tool, run: [] } } }, told: "tools.a.run: " },
    {
      says: "words without if",
      file: { tools: { a: { ...tool, run: ["x", { words: ["y"] }] } } },
      told: "tools.a.run[1].if: it is missing",
    },
    {
      says: "an unknown method",
      file: { tools: { a: { description: "x", fetch: { url: "http://a", method: "get" } } } },
      told: "tools.a.fetch.method: expected one of",
    },
    {
      says: "an unknown kind of resource",
      file: { resources: [{ path: "x" }] },
      told: "resources[0]: it needs one of file, glob, folder, url",
    },
    {
      says: "an unknown limit",
      file: { limits: { calls: { pageItem: 1 } } },
      told: "limits.calls.pageItem: there is no such key; did you mean pageItems?",
    },
    {
      says: "a limit of nothing",
      file: { limits: { calls: { pageItems: 0 } } },
      told: "limits.calls.pageItems: expected number to be >0",
    },
    { says: "a secret that is too short", file: { secret: "short" }, told: "secret" },
    {
      says: "a secret that is not set",
      file: { secret: "${MCP_NOT_SET}" },
      told: "secret: the environment has no MCP_NOT_SET",
    },
    {
      says: "instructions that are not there",
      file: { instructions: { file: "gone.md" } },
      told: "instructions.file: there is no file /gone.md",
    },
    {
      says: "a file that is not there",
      file: { resources: [{ file: "gone.md" }] },
      told: "resources[0].file: there is no file /gone.md; check the path",
    },
    {
      says: "a folder that is not there",
      file: { resources: [{ folder: "gone" }] },
      told: "resources[0].folder: there is no folder /gone",
    },
    {
      says: "a folder that is a file",
      file: { resources: [{ folder: "mcp.jsonc" }] },
      told: "resources[0].folder: /mcp.jsonc is no folder",
    },
    {
      says: "a file that is a folder",
      file: { resources: [{ file: "." }] },
      told: "resources[0].file:  is no regular file",
    },
    {
      says: "a pattern of nowhere",
      file: { resources: [{ glob: "gone/*.md" }] },
      told: "resources[0].glob: there is no folder /gone",
    },
    {
      says: "braces that do not close",
      file: { resources: [{ glob: "*.{md" }] },
      told: "resources[0]: the braces of *.{md do not match",
    },
    {
      says: "braces without end",
      file: { resources: [{ glob: "{a,b}".repeat(20) }] },
      told: "stand for too many patterns",
    },
    {
      says: "a prompt that is not there",
      file: { prompts: ["gone.md"] },
      told: "prompts[0]: there is no file /gone.md",
    },
    { says: "prompts that are not there", file: { prompts: ["*.md"] }, told: "prompts[0]: no file fits *.md in " },
    {
      says: "a module that is not there",
      file: { modules: ["gone.ts"] },
      told: "modules[0]: there is no file /gone.ts",
    },
    {
      says: "a path above",
      file: { resources: [{ file: "../x" }] },
      told: "resources[0].file: it leads out of ; write the path in full if that is meant: ",
    },
    {
      says: "a path above",
      file: { resources: [{ folder: "a/../../x" }] },
      told: "resources[0].folder: it leads out of ",
    },
    { says: "a path above", file: { resources: [{ glob: "../*" }] }, told: "resources[0].glob: it leads out of " },
    { says: "a path above", file: { prompts: ["../x.md"] }, told: "prompts[0]: it leads out of " },
    { says: "a path above", file: { modules: ["../x.ts"] }, told: "modules[0]: it leads out of " },
    { says: "a path above", file: { include: ["../x.jsonc"] }, told: "include[0]: it leads out of " },
    { says: "a path above", file: { instructions: { file: "../x" } }, told: "instructions.file: it leads out of " },
    {
      says: "a home",
      file: { resources: [{ file: "~/x" }] },
      told: "resources[0].file: ~ is not known here; write the path in full",
    },
    {
      says: "NUL in a path",
      file: { resources: [{ file: "a\0b" }] },
      told: "resources[0].file: it has a NUL character",
    },
    {
      says: "one URI twice",
      file: { resources: [{ file: "mcp.jsonc" }, { file: "mcp.jsonc" }] },
      told: 'resource "file:///mcp.jsonc": it is registered already',
    },
  ]
) {
  Deno.test(`a config file with ${says} is told: ${JSON.stringify(file).slice(0, 70)}`, async () => {
    assertStringIncludes(await fail({ "mcp.jsonc": file }), told);
  });
}

Deno.test("all mistakes are told, one a line", async () => {
  const file = { nam: "x", version: 1, tools: { a: { ...tool, cdw: "x" } } };
  assertEquals(
    (await fail({ "mcp.jsonc": file })).split("\n").map((line) => line.trim().replace(/\(.*\)$/, "").trim()),
    [
      "Cannot use /mcp.jsonc:",
      "/mcp.jsonc:1:2: nam: there is no such key; did you mean name?",
      "/mcp.jsonc:1:12: version: expected string, received number",
      "/mcp.jsonc:1:77: tools.a.cdw: there is no such key; did you mean cwd?",
    ],
  );
});

Deno.test("files that include each other are told", async () => {
  assertStringIncludes(
    await fail({ "mcp.jsonc": { include: ["mcp.jsonc"] } }),
    "Cannot use /mcp.jsonc:1:13: include[0]: it leads back to mcp.jsonc, which is being read; take it out",
  );
  const ring = {
    "mcp.jsonc": { include: ["a.jsonc"] },
    "a.jsonc": { include: ["b.jsonc"] },
    "b.jsonc": { include: ["a.jsonc"] },
  };
  assertStringIncludes(await fail(ring), "Cannot use /b.jsonc:1:13: include[0]: it leads back to a.jsonc");
  const linked = { "mcp.jsonc": { include: ["link.jsonc"] } };
  assertStringIncludes(
    await fail(linked, (folder) => system("ln", "-s", "mcp.jsonc", `${folder}/link.jsonc`)),
    "it leads back to link.jsonc",
  );
});

Deno.test("what an included file may not say is told, and so are its mistakes and a name that is taken", async () => {
  assertStringIncludes(
    await fail({ "mcp.jsonc": { include: ["a.jsonc"] }, "a.jsonc": { name: "x" } }),
    "Cannot use /a.jsonc:1:2: name: there is no such key; there are $schema, description, include",
  );
  assertStringIncludes(
    await fail({ "mcp.jsonc": { include: ["a.jsonc"], tools: { a: tool } }, "a.jsonc": { tools: { a: tool } } }),
    "Cannot use /a.jsonc:1:11: tools.a: there is a tool a in /mcp.jsonc; rename one of the two",
  );
});

Deno.test("a module that cannot be loaded, or gives no handlers, is told with its place", async () => {
  assertStringIncludes(
    await fail({ "mcp.jsonc": { modules: ["a.ts"] }, "a.ts": "export default 1;" }),
    "modules[0]: its default export is no tool, resource or prompt, nor an array of them",
  );
  assertMatch(
    await fail({ "mcp.jsonc": { modules: ["a.ts"] }, "a.ts": 'throw new Error("boom");' }),
    /^Cannot load a\.ts: it threw an error while loading:\n[^]*boom/,
  );
});

Deno.test("links that lead out of the folder are not followed", async () => {
  await withFolder({ "secret.md": "Secret", "secrets/a.md": "Secret" }, async (outside) => {
    const link = (to: string) => (folder: string) => system("ln", "-s", `${outside}/${to}`, `${folder}/link`);
    const state = "/link is a link that leads out of ; write the path it leads to in full";
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
    ) assertStringIncludes(await fail({ "mcp.jsonc": file }, link(to)), state, JSON.stringify(file));
    // Written in full, it is meant.
    await withServer({ "mcp.jsonc": { resources: [{ file: `${outside}/secret.md` }] } }, async (client) => {
      assertEquals((await client.readResource("file:///secret.md")).contents[0].text, "Secret");
    });
  });
});

Deno.test("a file that is huge, binary, not there, a folder or a pipe is not read", async () => {
  await withFolder({ "big/mcp.jsonc": " ".repeat(1024 * 1024 + 1), "folder.jsonc/x": "" }, async (folder) => {
    const tell = async (name: string) =>
      (await assertRejects(() => load(`${folder}/${name}`), Error)).message.replaceAll(folder, "");
    assertEquals(await tell("big/mcp.jsonc"), "Cannot use /big/mcp.jsonc: it has more than 1048576 bytes");
    assertEquals(await tell("gone.jsonc"), "Cannot use /gone.jsonc: there is no file /gone.jsonc; check the path");
    await system("mkfifo", `${folder}/pipe.jsonc`);
    assertMatch(await tell("pipe.jsonc"), /there is no file/);
    await system("cp", "/bin/true", `${folder}/binary.jsonc`);
    assertEquals(await tell("binary.jsonc"), "Cannot use /binary.jsonc: it is not a text in UTF-8");
  });
});

Deno.test("a reload takes over what the files say now, or nothing of it", async () => {
  const described = (name: string) => ({ tools: { [name]: tool }, prompts: ["p.md"] });
  await withFolder({ "mcp.jsonc": described("a"), "p.md": "one" }, async (folder) => {
    const { server, reload, files } = await load(`${folder}/mcp.jsonc`);
    assert(reload);
    assertEquals(files, [`${folder}/mcp.jsonc`, `${folder}/p.md`]);
    await using client = await connect(server);
    const subscription = await client.subscribe({ toolsListChanged: true, promptsListChanged: true });
    await writeFiles(folder, {
      "mcp.jsonc": { ...described("b"), include: ["c.jsonc"] },
      "p.md": "two",
      "c.jsonc": {},
    });
    assertEquals(await reload(), [`${folder}/mcp.jsonc`, `${folder}/c.jsonc`, `${folder}/p.md`]);
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
      const error = await assertRejects(() => reload(), Error);
      assertEquals(error.name, "Problem");
      assertEquals((await client.listTools()).map(({ name }) => name), ["b"]);
    }
    await server.close();
  });
});

Deno.test("a text with comments is found again by its keys", () => {
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
  assertEquals(toKey(["a", 1, 'b"', "c-d"]), 'a[1]["b\\""].c-d');
});

Deno.test("mcp.schema.json is what config files are checked by", async () => {
  const bytes = await platform.files.read(decodeURIComponent(schemaFile.pathname), 1_000_000);
  assertEquals(new TextDecoder().decode(bytes), schemaText, "run `deno task schema`");
});

Deno.test("host: a path becomes an absolute one", () => {
  assertEquals(platform.toPath("/a/./b/../c//d/"), "/a/c/d");
  assertEquals(platform.toPath("/../.."), "/");
  assertEquals(platform.toFileUrl("/a b/%#?.ts"), "file:///a%20b/%25%23%3F.ts");
});
