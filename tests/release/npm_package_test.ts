// The npm package as users get it: bundled, packed, and installed into a project with zod.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { listModules } from "../architecture/loaded_modules.ts";
import { sentence } from "../support/messages.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findPackages } from "../support/npm_packages.ts";
import { requireAll } from "../support/required.ts";
import { root, run } from "../support/processes.ts";
import { install, runAll } from "./npm_install.ts";

const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of all runtimes.

const SERVER = `import { createServer, tool } from "${config.name}";
import { z } from "zod";
const add = tool({ name: "add", input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => a + b });
export const server = createServer({ name: "mine", version: "1.0.0", handlers: [add] });
`;

const CALL = `import { server } from "./server.js";
async function ask(version, message, headers) {
  const response = await server.fetch(new Request("http://localhost/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": version,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
  }));
  return { session: response.headers.get("mcp-session-id"), text: await response.text() };
}
const clientInfo = { name: "test", version: "1.0.0" };
export async function callModern(name, args) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": clientInfo,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const message = { method: "tools/call", params: { name, arguments: args, _meta } };
  return (await ask("2026-07-28", message, { "mcp-method": "tools/call", "mcp-name": name })).text;
}
export async function callInSession(name, args) {
  const version = "2025-11-25";
  const params = { protocolVersion: version, capabilities: {}, clientInfo };
  const { session } = await ask(version, { method: "initialize", params }, {});
  const call = { method: "tools/call", params: { name, arguments: args } };
  return (await ask(version, call, { "mcp-session-id": session })).text;
}
if (!process.argv.includes("--quiet")) console.log(await callModern("add", { a: 1, b: 2 }));
if (process.argv.includes("--session")) console.log(await callInSession("add", { a: 2, b: 3 }));
`;

const USER = `import { createServer, type Server, tool } from "${config.name}";
import { z } from "zod";
import { server } from "./typed.ts";
const add = tool({ name: "add", input: z.object({ a: z.number() }), run: ({ a }) => a.toFixed() });
const own: Server = createServer({ name: "mine", version: "1.0.0", handlers: [add] });
const text: string = [server, own].map((each) => each.handlers.list()[0].name).join();
console.log(text);
// @ts-expect-error: the types of the package are not any
tool({ name: "add", input: z.object({ a: z.number() }), run: ({ b }) => b });
// @ts-expect-error: the types of the package are not any
createServer({ name: 1 });
`;

/** A program whose options can be `undefined`, for projects with the options of `tsc --init`. */
const EXACT = `import process from "node:process";
import { type Context, createServer, type Server, type ServerOptions, tool } from "${config.name}";
import { oauth } from "${config.name}/oauth";
import { connect, type ConnectOptions } from "${config.name}/client";
import { memoryStore, type SetOptions } from "${config.name}/stores";

const { SECRET, CLIENT, CLIENT_SECRET, TITLE, VERSION } = process.env;
const client = { clientId: CLIENT ?? "", clientSecret: CLIENT_SECRET };
const auth = oauth({
  resource: "https://mcp.example.com/mcp",
  issuers: ["https://login.example.com"],
  introspection: { ...client, secretIn: undefined, privateKey: { kty: "EC", kid: "a" } },
});
export const add = tool({ name: "add", title: TITLE, annotations: { readOnlyHint: undefined }, run: () => TITLE ?? "" });
export const server: Server = createServer({ name: "a", version: "1", auth, secret: SECRET, title: TITLE, handlers: [add] });
export const options: ServerOptions = { name: "b", version: "1", secret: SECRET, cors: undefined, limits: undefined };
const set: SetOptions = { ttlMs: 1000, version: VERSION };
await memoryStore().set("a", "b", { ...set, token: TITLE });
const opened: ConnectOptions = { headers: undefined, era: undefined };
export const call = async (url: string) => await (await connect(url, opened)).callTool("add");
export class Counter implements Partial<Pick<Context, "principal">> {
  get principal(): Context["principal"] {
    return undefined;
  }
}
`;

/** Returns the paths of all files in a folder and its subfolders. */
async function listFiles(folder: string, path = ""): Promise<readonly string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/${path}`)) {
    files.push(...isDirectory ? await listFiles(folder, `${path}${name}/`) : [path + name]);
  }
  return files;
}

/** Returns the sources that each file of the package contains, according to the comments of the bundler. */
async function readSources(installed: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const files = new Map<string, readonly string[]>();
  for (const name of await listFiles(installed)) {
    if (!name.endsWith(".js")) continue;
    const sources = (await Deno.readTextFile(`${installed}/${name}`)).matchAll(/^\/\/ (\S+\.(?:ts|m?js))$/gm);
    files.set(name, [...sources].map(([, source]) => source.replace(/^(\.\.\/)+/, "")));
  }
  return files;
}

/** Returns the sources that a file of the package loads. */
async function listLoaded(
  installed: string,
  file: string,
  sources: ReadonlyMap<string, readonly string[]>,
): Promise<ReadonlySet<string>> {
  const files = new Set([file]);
  for (const name of files) {
    const text = await Deno.readTextFile(`${installed}/${name}`);
    for (const [, path] of text.matchAll(/^(?:import|export)\b[^"\n]*"(\.\.?\/[^"]+)";$/gm)) {
      files.add(new URL(path, `file:///${name}`).pathname.slice(1));
    }
  }
  return new Set([...files].flatMap((name) => sources.get(name) ?? []));
}

async function checkContents(installed: string): Promise<void> {
  const { name, version, license, type, engines, bin, exports, dependencies, peerDependencies } = JSON.parse(
    await Deno.readTextFile(`${installed}/package.json`),
  );
  assertEquals([name, version, license, type], [config.name, config.version, config.license, "module"]);
  assertEquals(engines, { node: ">=22.18" });
  assertEquals([Object.keys(dependencies), Object.keys(peerDependencies)], [
    ["jose", "oauth4webapi", "srvx", "@scalar/openapi-upgrader"],
    ["@opentelemetry/api"],
  ]);
  assertEquals(bin, { mcp: "./bin.js" });
  const keys = Object.keys(config.exports).filter((key) => key !== "./cli");
  assertEquals(Object.keys(exports), [...keys, "./package.json"]);
  const named = keys.flatMap((key): string[] => [exports[key].types, exports[key].default]);
  for (const path of ["README.md", "LICENSE", ...named]) {
    assert((await Deno.stat(`${installed}/${path}`)).isFile, `${path} is not a file`);
  }
}

async function checkChunks(installed: string): Promise<void> {
  const sources = await readSources(installed);
  const all = [...sources.values()].flat();
  assertEquals(
    all.filter((path, at) => all.indexOf(path) !== at),
    [],
    "a module is in two files, so it would have two states",
  );
  // The CLI contains the code of its packages.
  const packages = /\bnode_modules\/(?:.*\/)?(zod|yaml|smol-toml|jsonc-parser|acorn)\/|usingCtx/;
  assertEquals(all.filter((path) => !/^src\/.*\.ts$|^mod\.ts$/.test(path) && !packages.test(path)), []);
  assert(all.includes("src/server/eras/legacy/legacy.ts") && all.includes("src/server/call/call.ts"), all.join(", "));
  const common = ["mod.ts", "src/server/transports/stdio/stdio.ts", "src/server/eras/legacy/legacy.ts"];
  const shared = new Set((await Promise.all(common.map(listModules))).flat());
  for (const [key, source] of Object.entries(config.exports)) {
    if (key === "./cli") continue;
    const file = key === "." ? "index.js" : `${key.slice("./".length)}.js`;
    const loaded = await listLoaded(installed, file, sources);
    const own = new Set(await listModules(source.slice("./".length)));
    const hasValues = /^export (?!type\b)/m.test(await Deno.readTextFile(root + source));
    assert(loaded.size > 1 || own.size === 1 || !hasValues, `${file} loads nothing`);
    const needsServer = key !== "./client" && key !== "./worker";
    assert(needsServer || !loaded.has("src/server/server.ts"), `${file} loads a server`);
    // Entries other than the main entry can load the modules that servers share. Only the skills entries load the YAML
    // parser.
    const isParser = (path: string) => /\/skills$/.test(key) && /\bnode_modules\/(?:.*\/)?yaml\//.test(path);
    const strange = [...loaded].filter((path) =>
      !own.has(path) && (key === "." || !shared.has(path)) && !isParser(path)
    );
    assertEquals(strange, [], `${file} loads modules that ${source} does not load`);
  }
}

/** Checks that the name of each file states what the file contains, because stack traces contain the names. */
async function checkNames(installed: string): Promise<void> {
  assertEquals((await listFiles(installed)).filter((path) => path.endsWith(".map")), []);
  for (const [file, sources] of await readSources(installed)) {
    const [, name] = /^lib\/(.+?)(?:\.exports)?\.js$/.exec(file) ?? [];
    if (name === undefined || ["server", "shared", "links", "shared_links", "usingCtx"].includes(name)) continue;
    const [, inPackage] = /^packages\/(.+)$/.exec(name) ?? [];
    const source = `src/${name}.ts`;
    const folder = inPackage ? `/node_modules/${inPackage}/` : source.replace(/[^/]+$/, "");
    // A source that only exports other sources has no code of its own.
    const isNamed = !sources.length || sources.some((path) => path === source || path.includes(folder));
    assert(inPackage || (await Deno.stat(root + source)).isFile);
    assert(isNamed, `${file} contains ${sources.join(", ")}`);
  }
}

async function checkTypes(project: string, node: string): Promise<void> {
  const modules = Object.keys(config.exports).filter((key) => key !== "./cli");
  const imports = modules.map((key, at) => `import * as m${at} from "${config.name}${key.slice(1)}";`).join("\n");
  const uses = modules.map((_key, at) => `console.log(m${at});`).join("\n");
  await Deno.writeTextFile(`${project}/all.ts`, `${imports}\n${uses}\n`);
  await Deno.writeTextFile(`${project}/typed.ts`, SERVER);
  await Deno.writeTextFile(`${project}/user.ts`, USER);
  await runAll(["deno", "check", "--quiet", "all.ts", "user.ts"], project);
  const strict = ["--noEmit", "--strict", "--target", "esnext", "--lib", "esnext,dom,dom.iterable,dom.asynciterable"];
  for (const resolution of [["nodenext", "nodenext"], ["esnext", "bundler"]]) {
    const options = ["--module", resolution[0], "--moduleResolution", resolution[1], "--allowImportingTsExtensions"];
    const compiler = `${root}node_modules/typescript/lib/tsc.js`;
    assertEquals(await runAll([node, compiler, ...strict, ...options, "all.ts", "user.ts"], project), "");
  }
  // The default libraries of an older target, without the types of a runtime.
  const plain = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "false"];
  assertEquals(await runAll([node, `${root}node_modules/typescript/lib/tsc.js`, ...plain, "all.ts"], project), "");
  await checkExactTypes(project, node);
}

/** Checks the types with the options of `tsc --init`, and with checks of all declaration files. */
async function checkExactTypes(project: string, node: string): Promise<void> {
  const types = await findPackages("node-types", ["@types/node@26.6.6"]);
  requireAll("missing" in types ? types.missing : undefined);
  if ("missing" in types) return;
  await Deno.writeTextFile(`${project}/exact.ts`, EXACT);
  const compiler = `${root}node_modules/typescript/lib/tsc.js`;
  const nodeTypes = ["--types", "node", "--typeRoots", `${types.folder}/node_modules/@types`];
  // A project for Node has no types of the DOM.
  for (const libs of [["esnext"], ["esnext,dom"]]) {
    for (const resolution of [["nodenext", "nodenext"], ["esnext", "bundler"]]) {
      const words = [
        ...[node, compiler, "--target", "esnext", "--lib", ...libs, ...nodeTypes],
        ...["--module", resolution[0], "--moduleResolution", resolution[1]],
        ...["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck", "false"],
        ...["--verbatimModuleSyntax", "--isolatedModules", "--moduleDetection", "force"],
        ...["--declaration", "--emitDeclarationOnly", "--outDir", `${project}/emitted`],
      ];
      assertEquals(await runAll([...words, "all.ts", "exact.ts"], project), "", words.join(" "));
    }
  }
}

const ANSWER = '"content":[{"type":"text","text":"3"}]';

async function checkCalls(project: string, node: string): Promise<void> {
  await Deno.writeTextFile(`${project}/server.js`, SERVER);
  await Deno.writeTextFile(`${project}/call.js`, CALL);
  for (const words of [["deno", "run", "--no-prompt"], ["bun"], [node]]) {
    const printed = await runAll([...words, "call.js", "--session"], project);
    assertStringIncludes(printed, ANSWER);
    assertStringIncludes(printed, '"content":[{"type":"text","text":"5"}]');
  }
}

/** Programs for a browser, and for a server that does not listen itself. */
const BUNDLED: Readonly<Record<string, string>> = {
  browser: `import { signIn } from "${config.name}/client/oauth"; console.log(typeof signIn);`,
  neutral: `import { createServer } from "${config.name}"; console.log(typeof createServer);`,
};

/** Checks that bundles of programs that do not listen contain no code of srvx. */
async function checkBundles(project: string, node: string): Promise<void> {
  for (const [platform, program] of Object.entries(BUNDLED)) {
    await Deno.writeTextFile(`${project}/bundled.js`, program);
    const options = ["--bundle", "--format=esm", `--platform=${platform}`, "--log-level=error", "--outfile=bundle.js"];
    await runAll(["deno", "run", "-A", "--quiet", config.imports.esbuild, "bundled.js", ...options], project);
    assert(!(await Deno.readTextFile(`${project}/bundle.js`)).includes("sendNodeResponse"), platform);
    assertEquals(await runAll([node, "bundle.js"], project), "function\n");
  }
}

const LISTEN = `import { createServer, tool } from "${config.name}";
import { serve } from "${config.name}/serve";
const ping = tool({ name: "ping", run: () => "pong" });
const server = createServer({ name: "listening", version: "1.0.0", handlers: [ping] });
const served = await serve(server, { port: 0, signals: false }).catch(({ message }) => console.log(message));
if (served) {
  console.log((await fetch(served.url)).status);
  await served.close();
}
`;

/** Checks that a program listens, and that a program on Node names the package that is missing. */
async function checkListening(project: string, node: string): Promise<void> {
  await Deno.writeTextFile(`${project}/listening.js`, LISTEN);
  const commands = [["deno", "run", "--allow-net", "--allow-env", "listening.js"], ["bun", "listening.js"], [
    node,
    "listening.js",
  ]];
  for (const words of commands) assertEquals(await runAll(words, project), "405\n");
  await Deno.rename(`${project}/node_modules/srvx`, `${project}/srvx`);
  assertEquals(await runAll([node, "listening.js"], project), `${sentence("listening")}\n`);
  for (const words of commands.slice(0, 2)) assertEquals(await runAll(words, project), "405\n");
  await Deno.rename(`${project}/srvx`, `${project}/node_modules/srvx`);
}

const COPIES = `import { createServer, McpError, service, tool } from "${config.name}";
import { apiKey } from "${config.name}/auth";
import * as other from "copy";
import { memoryStore } from "copy/stores";
import { callModern } from "./call.js";
import { server as first } from "./server.js";

const refuse = (McpError) => () => { throw new McpError(-32001, "refused"); };
const count = other.service("count", () => ({ value: 1 }));
const handlers = [
  other.tool({ name: "plain", run: () => "from the copy" }),
  other.tool({ name: "error", run: refuse(McpError) }),
  tool({ name: "copied_error", run: refuse(other.McpError) }),
  other.tool({ name: "failure", run: () => { throw new other.ToolError("failed"); } }),
  tool({ name: "count", services: { count }, run: (_, { services }) => String(services.count.value) }),
];
first.fetch = createServer({ name: "both", version: "1.0.0", handlers, store: memoryStore() }).fetch;
for (const { name } of handlers) console.log(await callModern(name, {}));
`;

/**
 * Checks that a second copy of the package works together with the first copy. A program has two copies if two of its
 * dependencies each have their own.
 */
async function checkCopies(project: string, installed: string, node: string): Promise<void> {
  const copy = `${project}/node_modules/copy`;
  await runAll(["cp", "-rL", installed, copy], project);
  const text = await Deno.readTextFile(`${copy}/package.json`);
  await Deno.writeTextFile(`${copy}/package.json`, text.replace(`"${config.name}"`, '"copy"'));
  await Deno.writeTextFile(`${project}/copies.js`, COPIES);
  for (const words of [["deno", "run", "--no-prompt", "--allow-env"], ["bun"], [node]]) {
    const lines = (await runAll([...words, "copies.js", "--quiet"], project)).trim().split("\n");
    assertEquals(lines.length, 5);
    assertStringIncludes(lines[0], '"text":"from the copy"');
    assertStringIncludes(lines[1], '"error":{"code":-32001,"message":"refused"');
    assertStringIncludes(lines[2], '"error":{"code":-32001,"message":"refused"');
    assertStringIncludes(lines[3], '"content":[{"type":"text","text":"failed"}],"isError":true');
    assertStringIncludes(lines[4], '"text":"1"');
  }
}

/** A test file for Jest that can begin with `import` or with `require`. */
function toJestFile(load: (names: string, entry: string) => string): string {
  return `${load("createServer, tool", config.name)}
${load("connectTest", `${config.name}/testing`)}
test("add adds", async () => {
  const input = { type: "object", properties: { a: { type: "number" } } };
  const add = tool({ name: "add", input, run: ({ a }) => String(a + 1) });
  const client = await connectTest(createServer({ name: "calc", version: "1.0.0", handlers: [add] }));
  expect((await client.callTool("add", { a: 2 })).content[0].text).toBe("3");
  await client.close();
});
`;
}

/** Checks that Jest runs tests with the flag that docs/guides/node.md names, on each version of Node. */
async function checkJest(project: string, installed: string): Promise<void> {
  const jest = await findPackages("jest", ["jest@30.5.2"]);
  requireAll("missing" in jest ? jest.missing : undefined);
  if ("missing" in jest) return;
  const folder = `${project}/jest`;
  await Deno.mkdir(`${folder}/node_modules/${config.name}`.replace(/\/[^/]+$/, ""), { recursive: true });
  await Deno.symlink(installed, `${folder}/node_modules/${config.name}`);
  await Deno.writeTextFile(`${folder}/package.json`, '{ "type": "commonjs" }');
  const toImport = (names: string, entry: string) => `import { ${names} } from "${entry}";`;
  const toRequire = (names: string, entry: string) => `const { ${names} } = require("${entry}");`;
  await Deno.writeTextFile(`${folder}/import.test.mjs`, toJestFile(toImport));
  await Deno.writeTextFile(`${folder}/require.test.js`, toJestFile(toRequire));
  for (const version of NODE_VERSIONS) {
    const found = await findNode(version);
    if ("missing" in found) throw new Error(found.missing);
    const program = `${jest.folder}/node_modules/jest/bin/jest.js`;
    const runJest = (flags: readonly string[], match: string) =>
      run([found.path, ...flags, program, "--rootDir", folder, "--testMatch", `**/${match}`], { cwd: folder });
    const without = await runJest([], "require.test.js");
    assertEquals(without.code, 1);
    assertStringIncludes(without.stderr, "Must use import to load ES Module");
    const files = version.startsWith("22.") ? ["import.test.mjs"] : ["import.test.mjs", "require.test.js"];
    for (const file of files) {
      const { code, stderr } = await runJest(["--experimental-vm-modules"], file);
      assertEquals(code, 0, stderr);
    }
  }
}

Deno.test(
  "the npm package serves on Deno, Bun and Node, includes its types, works in two copies, and loads only the modules that it needs",
  { ignore },
  async (t) => {
    const folder = await Deno.makeTempDir({ prefix: "mcp-npm-" });
    const project = `${folder}/project`;
    try {
      const found = await findNode(NODE_VERSIONS[0]);
      if ("missing" in found) throw new Error(found.missing);
      const node = found.path;
      const installed = await install(folder, project);
      await t.step("package.json names every entry with its types", () => checkContents(installed));
      await t.step(
        "no module is in two files, and an entry loads only the modules that it needs",
        () => checkChunks(installed),
      );
      await t.step("each file is named after what it contains", () => checkNames(installed));
      await t.step("a server responds on Deno, Bun and Node", () => checkCalls(project, node));
      await t.step(
        "two copies of the package work together in one process",
        () => checkCopies(project, installed, node),
      );
      await t.step("Jest runs tests of a server", () => checkJest(project, installed));
      await t.step("bundles of programs that do not listen contain no srvx", () => checkBundles(project, node));
      await t.step(
        "a server listens on Deno, Bun and Node, and only Node needs srvx",
        () => checkListening(project, node),
      );
      await t.step("Deno and TypeScript resolve the types", () => checkTypes(project, node));
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);

Deno.test("the npm package refuses to overwrite files", { ignore }, async () => {
  const folder = await Deno.makeTempDir({ prefix: "mcp-npm-" });
  try {
    await Deno.writeTextFile(`${folder}/mine.txt`, "");
    const { code, stderr } = await run(["deno", "run", "-A", "tests/release/npm_package.ts", folder], { cwd: root });
    assertEquals(code, 1);
    assertStringIncludes(stderr, sentence(folder, "mine.txt"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
