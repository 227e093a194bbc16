// `mcp pack`, and the resulting bundles on Node.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "../../src/client/client.ts";
import { textOf } from "../support/behaviour.ts";
import { isNotDeno, listNames, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { findMcpb } from "../support/mcpb.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { run } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { runHere } from "./run_here.ts";
import { assertRefused } from "./refused.ts";

const SERVER = `import { createServer, tool } from "@x/mcp";
import { readFileSync, writeFileSync } from "node:fs";

console.log("loading");
const input = { type: "object", properties: { name: { type: "string" } } } as const;
const greeting = readFileSync(new URL("./texts/hello.txt", import.meta.url), "utf8");
const greet = tool({
  name: "greet",
  description: "Greets a person.",
  input,
  run: ({ name }) => [greeting, name, process.env.KEY, process.env.MOOD].join(" "),
});
const read = tool({ name: "read", input, run: ({ name }) => readFileSync(String(name), "utf8") });
const write = tool({ name: "write", input, run: ({ name }) => writeFileSync(String(name), "written") });
export default createServer({
  name: "greeter",
  title: "The greeter",
  version: "1.2.0",
  description: "Greets people",
  handlers: [greet, read, write],
});
`;

const FILES = {
  "server.ts": SERVER,
  "texts/hello.txt": "Hello",
  "package.json": {
    name: "@ada/greeter",
    license: "MIT",
    author: "Ada <ada@example.com> (https://example.com/ada)",
    repository: "github:ada/greeter",
    homepage: "https://example.com/greeter",
  },
};

const OPTIONS = [
  ...[
    "--ask",
    "KEY:secret # Key of the service",
    "--ask",
    "MOOD=",
    "--ask",
    "NOTES:directory",
    "--ask",
    "COUNT:number=3",
  ],
  ...["--allow", "write=NOTES", "--include", "texts", "--icon", "icon.png"],
];
const URL_OF_RELEASE = "https://github.com/ada/greeter/releases/download/v1.2.0/greeter.mcpb";

/** An image of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Runs `use` in a folder with the server of these tests. */
async function withServer(use: (folder: string) => Promise<void>): Promise<void> {
  await withFiles(FILES, async (cwd) => {
    await writeFile(`${cwd}/icon.png`, Uint8Array.fromBase64(PIXEL));
    await use(cwd);
  });
}

async function readJson(path: string) {
  return JSON.parse(await readFile(path, "utf8"));
}

const nodes = isNotDeno ? [] : await Promise.all(NODE_VERSIONS.map(async (version) => ({
  version,
  ...await findNode(version),
})));
const mcpb = isNotDeno ? { missing: "Deno starts the processes" } : await findMcpb();
const missing = [...nodes, mcpb].flatMap((each) => "missing" in each ? [each.missing] : [])[0];

/** Runs a step on each installed version of Node. */
async function forNodes(t: Deno.TestContext, step: (node: string) => Promise<void>): Promise<void> {
  for (const node of nodes) {
    if ("path" in node) await t.step(`the bundle behaves as expected on Node ${node.version}`, () => step(node.path));
  }
}

/** Reads a bundle's manifest, and returns the command with which a client starts the bundle. */
async function readCommand(folder: string, config: Readonly<Record<string, string>>) {
  const { server: { mcp_config: { args, env } } } = await readJson(`${folder}/manifest.json`);
  const fill = (text: string) =>
    text.replace("${__dirname}", folder).replace(/\$\{user_config\.(\w+)\}/, (all, name) => config[name] ?? all);
  return {
    args: args.map(fill) as string[],
    env: Object.fromEntries(Object.entries<string>(env ?? {}).map(([name, value]) => [name, fill(value)])),
  };
}

const pack = (cwd: string, ...words: readonly string[]) => runHere(["pack", ...words], { cwd });

Deno.test({
  ...needs("a bundle is valid, unpacks, starts on Node alone, requests its settings and responds", missing),
  ...isNotDeno && { ignore: true },
  async fn(t) {
    requireAll(missing);
    await withServer(async (cwd) => {
      const packed = await pack(cwd, "server.ts", ...OPTIONS);
      assertEquals(packed.code, 0, packed.stderr);
      assertStringIncludes(packed.stderr, sentence("greeter.mcpb", "greeter 1.2.0", "3 tools", "4 settings"));
      assertEquals(listNames(cwd), ["greeter.mcpb", "icon.png", "package.json", "server.ts", "texts"]);
      const node = nodes.flatMap((each) => "path" in each ? [each.path] : [])[0];
      const program = "path" in mcpb ? mcpb.path : "";
      const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-unpacked-" }));
      try {
        const unpacked = await run([node, program, "unpack", `${cwd}/greeter.mcpb`, folder]);
        assertEquals(unpacked.code, 0, unpacked.stdout + unpacked.stderr);
        assertEquals(listNames(folder), ["icon.png", "manifest.json", "server.mjs", "texts"]);
        const validated = await run([node, program, "validate", `${folder}/manifest.json`]);
        assertEquals(validated.code, 0, validated.stdout + validated.stderr);
        await checkManifest(folder);
        // Remove the source, so that only the unpacked folder exists.
        await rm(`${cwd}/server.ts`);
        await forNodes(t, async (node) => {
          await checkCalls(node, folder);
          await checkMissing(node, folder);
        });
      } finally {
        await rm(folder, { recursive: true });
      }
    });
  },
});

Deno.test("packing the same files twice gives the same bundle", async () => {
  await withServer(async (cwd) => {
    for (const output of ["a.mcpb", "b.mcpb"]) {
      const { code, stderr } = await pack(cwd, "server.ts", ...OPTIONS, "--output", output);
      assertEquals(code, 0, stderr);
    }
    const [a, b] = await Promise.all(
      ["a", "b"].map(async (each) => (await readFile(`${cwd}/${each}.mcpb`)).toHex()),
    );
    assert(a === b, "the bundles differ");
  });
});

Deno.test("pack refuses code that uses Deno or Bun, and names its position", async (t) => {
  const toServer = (imports: string, run: string) =>
    `import { createServer, tool } from "@x/mcp";\n${imports}\n` +
    `const a = tool({ name: "a", input: { type: "object" } as const, run: async () => {\n  ${run}\n} });\n` +
    `export default createServer({ name: "s", version: "1.0.0", description: "d", handlers: [a] });\n`;
  const helper = "/** Deno in a comment. */\nexport function help(): string {\n" +
    '  const text: string = "Deno.cwd()" + /Bun.x/;\n  return text + Deno.cwd();\n}\n';
  const refused: readonly (readonly [imports: string, run: string, place: RegExp])[] = [
    ["", "return Bun.version;", /\n {2}Bun at \S+\/server\.ts:4:10\n/],
    ["", "return String(Deno);", /\n {2}Deno at \S+\/server\.ts:4:17\n/],
    ["", "return Deno?.version.deno;", /\n {2}Deno at \S+\/server\.ts:4:10\n/],
    ["", "return String({ Deno });", /\n {2}Deno at \S+\/server\.ts:4:\d+\n/],
    ['import { help } from "./helper.ts";', "return help();", /\n {2}Deno at \S+\/helper\.ts:4:17\n/],
    ["", 'return String(await import("bun:sqlite"));', /\n {2}bun:sqlite at \S+\/server\.ts:4:\d+\n/],
  ];
  for (const [imports, code, place] of refused) {
    await t.step(`${imports} ${code} is refused`, async () => {
      await withFiles({ "server.ts": toServer(imports, code), "helper.ts": helper }, async (cwd) => {
        const { code, stderr } = await pack(cwd, "server.ts", "--author", "Ada");
        assertEquals(code, 2, stderr);
        assertStringIncludes(stderr, sentence("server.ts", "Node"));
        assertMatch(stderr, place);
        assertEquals(listNames(cwd), ["helper.ts", "server.ts"]);
      });
    });
  }
  const accepted: readonly (readonly [imports: string, run: string])[] = [
    ["", 'return typeof Deno === "undefined" ? "node" : Deno.version.deno;'],
    ["", "return String(Object(globalThis).Deno?.version);"],
    ["", "const o = { Deno: 1, Bun: () => 2 };\n  return String(o.Deno + o.Bun());"],
    ["class Bun {}", "return String(new Bun());"],
  ];
  for (const [imports, code] of accepted) {
    await t.step(`${imports} ${code} is accepted`, async () => {
      await withFiles({ "server.ts": toServer(imports, code) }, async (cwd) => {
        const { code, stderr } = await pack(cwd, "server.ts", "--author", "Ada");
        assertEquals(code, 0, stderr);
      });
    });
  }
});

Deno.test("server.json has all fields that the registry requires", async () => {
  await withServer(async (cwd) => {
    const words = ["server.ts", ...OPTIONS, "--registry", "io.github.ada/greeter", "--url", URL_OF_RELEASE, "--npm"];
    const remotes = ["https://mcp.example.com/mcp", "https://eu.example.com:8443/greeter/mcp"];
    const { code, stderr } = await pack(cwd, ...words, ...remotes.flatMap((url) => ["--remote", url]));
    assertEquals(code, 0, stderr);
    const hash = new Uint8Array(
      await crypto.subtle.digest("SHA-256", Uint8Array.from(await readFile(`${cwd}/greeter.mcpb`))),
    );
    const { $schema, packages, ...entry } = await readJson(`${cwd}/server.json`);
    assertMatch($schema, /\/schemas\/\d{4}-\d\d-\d\d\/server\.schema\.json$/);
    assertEquals(entry, {
      name: "io.github.ada/greeter",
      title: "The greeter",
      description: "Greets people",
      version: "1.2.0",
      websiteUrl: "https://example.com/greeter",
      repository: { url: "https://github.com/ada/greeter", source: "github" },
      remotes: remotes.map((url) => ({ type: "streamable-http", url })),
    });
    const common = {
      version: "1.2.0",
      transport: { type: "stdio" },
      environmentVariables: [
        { name: "KEY", description: "Key of the service", format: "string", isRequired: true, isSecret: true },
        {
          name: "MOOD",
          description: sentence("MOOD"),
          format: "string",
          isRequired: false,
        },
        {
          name: "NOTES",
          description: sentence("NOTES"),
          format: "filepath",
          isRequired: true,
        },
        {
          ...{ name: "COUNT", description: sentence("COUNT"), format: "number" },
          ...{ isRequired: false, default: "3" },
        },
      ],
    };
    assertEquals(packages, [
      { registryType: "npm", identifier: "@ada/greeter", ...common },
      { registryType: "mcpb", identifier: URL_OF_RELEASE, fileSha256: hash.toHex(), ...common },
    ]);
  });
});

Deno.test("server.json can list a running server without packages", async () => {
  await withServer(async (cwd) => {
    const url = "https://mcp.example.com/mcp";
    const words = ["server.ts", ...OPTIONS, "--registry", "io.github.ada/greeter", "--remote", url];
    assertEquals((await pack(cwd, ...words)).code, 0);
    const { packages, remotes } = await readJson(`${cwd}/server.json`);
    assertEquals([packages, remotes], [undefined, [{ type: "streamable-http", url }]]);
  });
});

Deno.test("pack refuses a server that it cannot describe, and writes nothing", async (t) => {
  const plain = (options: string) =>
    `import { createServer } from "@x/mcp";\nexport default createServer({ name: "s", version: "1.0.0", ${options} });\n`;
  const files = {
    "server.ts": plain('description: "d"'),
    "long.ts": plain(`description: "${"d".repeat(101)}"`),
    "range.ts": plain('description: "d"').replace("1.0.0", "^1.0.0"),
    "bare.ts": plain(""),
    "params.ts": plain('description: "d", path: "/:tenant/mcp", handlers: () => []'),
    "lost.ts": 'import "./nowhere.ts";\n',
    "late.ts": `${plain('description: "d"')}export const load = () => import("./nowhere.ts");\n`,
    "mcp.jsonc": {},
  };
  const registry = ["--url", URL_OF_RELEASE, "--registry"];
  const author = ["--author", "Ada"];
  const name = "io.github.ada/s";
  const cases: readonly (readonly [words: readonly string[], ...messages: readonly string[]])[] = [
    [["server.ts"], sentence("server.ts", "--author")],
    [["bare.ts", ...author], sentence("bare.ts")],
    [["mcp.jsonc", ...author], sentence("mcp.jsonc")],
    [[".", ...author], sentence(" .:")],
    [["params.ts", ...author], sentence("params.ts", "/:tenant/mcp")],
    [["lost.ts", ...author], sentence("lost.ts:")],
    [["late.ts", ...author], sentence("late.ts", "Node"), "nowhere.ts"],
    [["server.ts", "bare.ts"], sentence("server.ts", "bare.ts")],
    [["server.ts", ...author, ...registry, "greeter"], sentence("greeter")],
    [["server.ts", ...author, ...registry, "ada/greeter"], sentence("ada/greeter")],
    [["server.ts", ...author, ...registry, "io.github.ada/a/b"], sentence("io.github.ada/a/b")],
    [["long.ts", ...author, ...registry, name], sentence(name, "100")],
    [["range.ts", ...author, ...registry, name], sentence(name, "^1.0.0")],
    [["server.ts", ...author, "--registry", name], sentence(name, "--url", "--remote")],
    [
      ["server.ts", ...author, "--registry", name, "--remote", "http://mcp.example.com/mcp"],
      sentence(name, "http://mcp"),
    ],
    [
      ["server.ts", ...author, "--registry", name, "--remote", "https://127.0.0.1/mcp"],
      sentence(name, "https://127"),
    ],
    [["server.ts", ...author, "--remote", "https://mcp.example.com/mcp"], sentence("--remote", "server.json")],
    [["server.ts", ...author, "--registry", name, "--npm"], sentence("--npm", "package.json")],
    [["server.ts", ...author, "--url", URL_OF_RELEASE], sentence("--url", "--npm", "server.json")],
    [["server.ts", ...author, "--include", "../x"], sentence("../x")],
    [["server.ts", ...author, "--include", "x"], sentence("/x:")],
    [["server.ts", ...author, "--icon", "mcp.jsonc"], sentence("mcp.jsonc", "PNG")],
    [["server.ts", ...author, "--ask", "1X"], sentence("--ask 1X", "--ask NAME")],
    [["server.ts", ...author, "--ask", "X:text"], sentence("X", "text")],
    [["server.ts", ...author, "--ask", "X:number=a"], sentence("X", "a", "number")],
    [["server.ts", ...author, "--ask", "X:boolean=1"], sentence("X", "1", "boolean")],
    [["server.ts", ...author, "--ask", "X:file="], sentence("X", "file")],
    [["server.ts", ...author, "--ask", "X", "--ask", "X=1"], sentence("X")],
    [["server.ts", ...author, "--allow", "everything"], sentence("everything")],
    [["server.ts", ...author, "--ask", "X", "--allow", "write=X"], sentence("write=X")],
  ];
  await withFiles(files, async (cwd) => {
    for (const [words, ...messages] of cases) {
      await t.step(words.join(" "), async () => {
        await assertRefused(pack(cwd, ...words), ...messages);
      });
    }
    assertEquals(listNames(cwd), Object.keys(files).sort());
  });
});

async function checkManifest(folder: string): Promise<void> {
  const manifest = await readJson(`${folder}/manifest.json`);
  const { server, user_config: settings, tools, ...facts } = manifest;
  assertEquals(facts, {
    manifest_version: "0.3",
    name: "greeter",
    display_name: "The greeter",
    version: "1.2.0",
    description: "Greets people",
    author: { name: "Ada", email: "ada@example.com", url: "https://example.com/ada" },
    repository: { type: "git", url: "https://github.com/ada/greeter" },
    homepage: "https://example.com/greeter",
    license: "MIT",
    icon: "icon.png",
    compatibility: { platforms: ["darwin", "win32", "linux"], runtimes: { node: ">=22.18.0" } },
  });
  assertEquals(tools, [{ name: "greet", description: "Greets a person." }, { name: "read" }, { name: "write" }]);
  assertEquals(server.type, "node");
  assertEquals(server.mcp_config, {
    command: "node",
    args: [
      "--permission",
      "--allow-fs-read=${__dirname}",
      "--allow-fs-read=${user_config.NOTES}",
      "--allow-fs-write=${user_config.NOTES}",
      "${__dirname}/server.mjs",
    ],
    env: {
      KEY: "${user_config.KEY}",
      MOOD: "${user_config.MOOD}",
      NOTES: "${user_config.NOTES}",
      COUNT: "${user_config.COUNT}",
    },
  });
  assertEquals(settings.KEY, {
    ...{ type: "string", title: "KEY", description: "Key of the service", required: true, sensitive: true },
  });
  assertEquals([settings.MOOD.required, settings.NOTES.type, settings.COUNT.default], [false, "directory", 3]);
}

/**
 * Calls a bundle's tools in both eras. The bundle can read its own folder and the chosen folder, and can write only to
 * the chosen folder.
 */
async function checkCalls(node: string, folder: string): Promise<void> {
  const notes = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-notes-" }));
  try {
    const { args, env } = await readCommand(folder, { KEY: "secret", NOTES: notes, COUNT: "3" });
    for (const revision of ["2026-07-28", "2025-11-25"] as const) {
      await using client = await connect({ command: node, args, env, cwd: notes }, {
        revisions: [revision],
        onStderr() {},
      });
      assertEquals(client.server.info?.name, "greeter");
      const call = (name: string, argument: string) => client.callTool(name, { name: argument });
      assertEquals(textOf(await call("greet", "Ada")), "Hello Ada secret ");
      assertEquals((await call("write", `${notes}/a.txt`)).isError ?? false, false);
      assertEquals(textOf(await call("read", `${notes}/a.txt`)), "written");
      for (const refused of [await call("read", "/etc/hosts"), await call("write", `${folder}/server.mjs`)]) {
        assert(refused.isError);
      }
    }
  } finally {
    await Deno.remove(notes, { recursive: true });
  }
}

/** Starts a bundle without a required setting. */
async function checkMissing(node: string, folder: string): Promise<void> {
  const configs: readonly Readonly<Record<string, string>>[] = [{ NOTES: folder }, { NOTES: folder, KEY: "" }];
  for (const config of configs) {
    const { args, env } = await readCommand(folder, config);
    const { code, stdout, stderr } = await run([node, ...args], { env });
    assertEquals([code, stdout, stderr], [2, "", `${sentence("greeter", "KEY")}\n`]);
  }
}
