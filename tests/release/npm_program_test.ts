// The npm package's program, run in a folder without installed packages. `npx`, `bunx --bun` and `deno run` each start
// it from their own location.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client";
// @ts-types="@modelcontextprotocol/sdk/client/stdio"
import { StdioClientTransport as FirstStdioTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
// @ts-types="@modelcontextprotocol/sdk/client/streamableHttp"
import { StreamableHTTPClientTransport as FirstHttpTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import config from "../../deno.json" with { type: "json" };
import { connect } from "../../src/client/client.ts";
import { startOidc } from "../auth/oidc.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findFreePort, root, run, start } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { checkCommands, type Options, SERVER, toTarball, withPackage } from "./npm_program.ts";
import type { NpmRegistry } from "./npm_registry.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the processes of all runtimes.

const WORKER = `import { exposeWorker } from "${config.name}/worker";
export default exposeWorker(({ a }: { a: number }) =>
  2 * a + (Object(globalThis).isMain ? " in the server" : " in a thread")
);
`;

const WORKER_SERVER = `import { createServer, tool } from "${config.name}";
import { worker } from "${config.name}/worker";
import type twice from "./twice.ts";

Object.assign(globalThis, { isMain: true });
const input = { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const;
const run = worker<typeof twice>(new URL("./twice.ts", import.meta.url));
export default createServer({ name: "calc", version: "1.0.0", handlers: [tool({ name: "twice", input, run })] });
`;

const PROTECTED = `import process from "node:process";
import { createServer, tool } from "${config.name}";
import { oauth } from "${config.name}/oauth";

const { RESOURCE: resource = "", ISSUER = "" } = process.env;
const whoami = tool({ name: "whoami", run: (_input, { principal }) => principal?.id ?? "nobody" });
const auth = oauth({ resource, issuers: [ISSUER], scopes: ["notes:read"] });
export default createServer({ name: "protected", version: "1.0.0", auth, handlers: [whoami] });
`;

interface Runner {
  readonly name: string;
  readonly missing?: string;
  /** Returns the command that starts the program installed in a folder. */
  readonly toWords: (installed: string) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns a PATH in which the folder's programs take precedence over the machine's programs. */
function toPath(folder: string): Readonly<Record<string, string>> {
  return { PATH: `${folder}:${Deno.env.get("PATH")}` };
}

async function listRunners(): Promise<readonly Runner[]> {
  const nodes = await Promise.all(NODE_VERSIONS.map(async (version) => {
    const found = await findNode(version);
    const name = `Node ${version}`;
    if ("missing" in found) return { name, missing: found.missing, toWords: () => [] };
    return { name, toWords: (installed: string) => [found.path, `${installed}/bin.js`] };
  }));
  const oldest = await findNode(NODE_VERSIONS[0]);
  const path = "path" in oldest ? oldest.path : undefined;
  return [
    ...nodes,
    { name: "Bun", toWords: (installed) => ["bun", `${installed}/bin.js`] },
    { name: "Deno", toWords: (installed) => ["deno", "run", "-A", "--quiet", `${installed}/bin.js`] },
    { name: "bunx", toWords: (installed) => ["bunx", "--bun", "--package", toTarball(installed), "mcp"] },
    ...path === undefined ? [] : [{
      name: "npx",
      toWords: (installed: string) => ["npx", "--yes", "--package", toTarball(installed), "mcp"],
      env: toPath(path.replace(/\/[^/]+$/, "")),
    }],
  ];
}

/** Returns variables for package managers, with a cache that the processes of a test share. */
function toEnv({ url, cache }: NpmRegistry): Readonly<Record<string, string>> {
  return { NPM_CONFIG_REGISTRY: url, NPM_CONFIG_CACHE: cache, NPM_CONFIG_AUDIT: "false" };
}

async function checkServing(words: readonly string[], options: Options): Promise<void> {
  await using serving = await start([...words, "server.ts", "--http", "--port", "0", "--inspect"], options);
  const [, url] = await serving.waitFor(/ at (http:\S+\/mcp)/);
  for (const era of ["modern", "legacy"] as const) {
    const client = await connect(url, { revisions: [era === "modern" ? "2026-07-28" : "2025-11-25"] });
    assertEquals(textOf(await client.callTool("inc", { a: 2 })), "3");
    await client.close();
  }
  const page = await fetch(new URL("/", url));
  assertEquals(page.status, 200);
  assertStringIncludes(await page.text(), "<title>");
  serving.kill("SIGTERM");
  const { code } = await serving.finished;
  // npm does not return the exit code of the program, and does not wait for it.
  if (words[0] === "npx") await assertRejects(() => fetch(url), TypeError);
  else assertEquals(code, 0);
}

/** Installs a server, removes all caches, and starts the installed entry. `env.TMPDIR` contains the caches. */
async function checkInstalling(words: readonly string[], url: string, { cwd, env }: Options): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "mcp-home-" });
  try {
    // Clients pass on only a few variables, so name the registry in a file.
    await Deno.writeTextFile(`${home}/.npmrc`, `registry=${url}\n`);
    const file = `${home}/desktop.json`;
    const install = [...words, "install", "server.ts", "--client", "claude-desktop", "--file", file];
    const { code, stderr } = await run(install, { cwd, env: { ...env, HOME: home }, timeoutMs: 60_000 });
    assertEquals(code, 0, stderr);
    const config = await Deno.readTextFile(file);
    assert(!/_npx|bunx-/.test(config), config);
    for (const folder of [home, `${env?.TMPDIR}`]) {
      for (const { name } of Deno.readDirSync(folder)) {
        if (name !== ".npmrc") await Deno.remove(`${folder}/${name}`, { recursive: true });
      }
    }
    const [{ command, args }] = Object.values<{ command: string; args: string[] }>(JSON.parse(config).mcpServers);
    const PATH = env?.PATH ?? Deno.env.get("PATH") ?? "";
    await using client = await connect({ command, args, cwd: "/", env: { PATH, HOME: home } });
    assertEquals(textOf(await client.callTool("inc", { a: 2 })), "3");
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

/**
 * Serves a protected server, signs in to the server, and uses the token. Every process runs in a folder without
 * installed packages, with an empty home folder.
 */
async function checkSignIn(
  words: readonly string[],
  { cwd, env }: Options,
  afterwards?: (url: string, options: Options) => Promise<void>,
): Promise<void> {
  await using oidc = await startOidc();
  const user = await Deno.makeTempDir({ prefix: "mcp-user-" });
  try {
    const port = findFreePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    await Deno.writeTextFile(`${cwd}/protected.ts`, PROTECTED);
    const script = `#!/bin/sh\nexec deno run -q -A --no-check ${root}tests/cli/sign_in/browser.ts "$1"\n`;
    await Deno.writeTextFile(`${user}/browser`, script, { mode: 0o700 });
    const own = { RESOURCE: url, ISSUER: oidc.issuers.second };
    const serving = [...words, "protected.ts", "--http", "--port", `${port}`];
    await using served = await start(serving, { cwd, env: { ...env, ...own } });
    await served.waitFor(/ at (http:\S+\/mcp)/);
    const browser = { BROWSER: `${user}/browser`, TEST_USER: "ada", TEST_PAGES: `${user}/pages` };
    const options = { cwd, env: { ...env, ...browser, XDG_CONFIG_HOME: user }, timeoutMs: 60_000 };
    const login = await run([...words, "login", url], options);
    assertEquals(login.code, 0, login.stderr);
    assertStringIncludes(login.stderr, "notes:read");
    const called = await run([...words, "call", url, "whoami"], options);
    assertEquals([called.code, /^oauth:.*ada/.test(called.stdout)], [0, true], called.stdout + called.stderr);
    const [command, ...args] = [...words, "bridge", url];
    await using client = await connect({
      command,
      args,
      cwd,
      env: { PATH: Deno.env.get("PATH") ?? "", ...options.env },
    });
    assertMatch(textOf(await client.callTool("whoami")), /^oauth:.*ada/);
    await afterwards?.(url, options);
    served.kill("SIGTERM");
  } finally {
    await Deno.remove(user, { recursive: true });
    await Deno.remove(`${cwd}/protected.ts`);
  }
}

/** Connects the official clients to a file that Node serves. */
async function checkClients(words: readonly string[], cwd: string): Promise<void> {
  const [command, ...args] = [...words, "server.ts"];
  const call = { name: "inc", arguments: { a: 3 } };
  const first = new FirstClient({ name: "v1", version: "1.0.0" });
  await first.connect(new FirstStdioTransport({ command, args, cwd }));
  assertEquals(textOf(await first.callTool(call) as { content: unknown[] }), "4");
  await first.close();
  const second = new Client({ name: "v2", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await second.connect(new StdioClientTransport({ command, args, cwd }));
  assertEquals([textOf(await second.callTool(call)), second.getProtocolEra()], ["4", "modern"]);
  await second.close();
  await using serving = await start([...words, "server.ts", "--http", "--port", "0"], { cwd });
  const [, url] = await serving.waitFor(/ at (http:\S+\/mcp)/);
  const third = new FirstClient({ name: "v1", version: "1.0.0" });
  await third.connect(new FirstHttpTransport(new URL(url)));
  assertEquals(textOf(await third.callTool(call) as { content: unknown[] }), "4");
  await third.close();
}

const runners = isDeno ? await listRunners() : [];
const missing = runners.flatMap(({ missing }) => missing ?? [])[0];

Deno.test({
  ...isDeno
    ? needs(
      "the npm package's program serves, calls and inspects a file in a folder without an installed package",
      missing,
    )
    : {
      name: "the npm package serves, calls and inspects a file in a folder that has not installed it",
      ignore: true,
    },
  async fn(t) {
    requireAll(missing);
    await withPackage(async (installed, cwd, registry) => {
      for (const { name, toWords, env: own } of runners) {
        await t.step(name, async () => {
          const env = { ...toEnv(registry), ...own };
          await checkCommands(toWords(installed), { cwd, env });
          await checkServing(toWords(installed), { cwd, env });
        });
      }
      const nodes = runners.filter(({ name }) => name.startsWith("Node"));
      for (const { name, toWords } of nodes) {
        await t.step(
          `the official clients can use the program started with ${name}`,
          () => checkClients(toWords(installed), cwd),
        );
      }
      await t.step("the program signs in to a server that it protects", async (t) => {
        for (const { name, toWords, env: own } of runners) {
          await t.step(
            name,
            () => checkSignIn(toWords(installed), { cwd, env: { ...toEnv(registry), ...own } }),
          );
        }
      });
      await t.step("after a sign-in to one server, calls to other servers load no code for a sign-in", async () => {
        const [{ toWords }] = runners;
        const words = toWords(installed);
        await checkSignIn(words, { cwd, env: toEnv(registry) }, async (url, options) => {
          await using other = await start([...words, "server.ts", "--http", "--port", "0"], { cwd });
          const [, unprotected] = await other.waitFor(/ at (http:\S+\/mcp)/);
          const jose = `${installed.replace(/\/@x\/mcp$/, "")}/jose`;
          await Deno.rename(jose, `${jose}-away`);
          try {
            const called = await run([...words, "call", unprotected, "inc", "a=1"], options);
            assertEquals([called.code, called.stdout, called.stderr], [0, "2\n", ""]);
            const failed = await run([...words, "call", url, "whoami"], options);
            assertEquals(failed.code, 1, failed.stderr);
            assertStringIncludes(failed.stderr, "'jose'");
          } finally {
            await Deno.rename(`${jose}-away`, jose);
          }
        });
      });
      await t.step("the program can be started from a registry, by the name of the package", async (t) => {
        const [oldest, newest] = runners.slice(0, 2).map(({ toWords }) =>
          toWords(installed)[0].replace(/\/[^/]+$/, "")
        );
        const starters = [
          { name: "Deno", words: ["deno", "run", "-A", "--quiet", `npm:${config.name}`] },
          { name: "bunx", words: ["bunx", "--bun", config.name] },
          { name: "npx, oldest", words: ["npx", "--yes", config.name], path: oldest },
          { name: "npx, newest", words: ["npx", "--yes", config.name], path: newest },
        ];
        for (const { name, words, path } of starters) {
          await t.step(name, async () => {
            // Use empty caches instead of this machine's caches.
            const caches = await Deno.makeTempDir({ prefix: "mcp-caches-" });
            const env = {
              NPM_CONFIG_REGISTRY: registry.url,
              TMPDIR: caches,
              ...{ DENO_DIR: caches, NPM_CONFIG_CACHE: caches, BUN_INSTALL_CACHE_DIR: caches },
              ...path === undefined ? {} : toPath(path),
            };
            const before = registry.served.length;
            try {
              await checkCommands(words, { cwd, env });
              assert(
                registry.served.slice(before).includes(`${config.name}.tgz`),
                "the package did not come from this registry",
              );
              if (path === undefined) await checkServing(words, { cwd, env });
              if (name !== "Deno") await checkInstalling(words, registry.url, { cwd, env });
            } finally {
              await Deno.remove(caches, { recursive: true });
            }
          });
        }
      });
      await t.step("the installed package can start a worker thread", async () => {
        const project = installed.replace(/\/node_modules\/.*$/, "");
        await Deno.writeTextFile(`${project}/twice.ts`, WORKER);
        await Deno.writeTextFile(`${project}/server.ts`, WORKER_SERVER);
        for (const { name, toWords } of runners.filter(({ name }) => /^(Node|Bun|Deno)/.test(name))) {
          const { code, stdout, stderr } = await run([...toWords(installed), "call", "server.ts", "twice", "a=4"], {
            cwd: project,
            timeoutMs: 60_000,
          });
          assertEquals([code, stdout], [0, "8 in a thread\n"], `${name}: ${stderr}`);
        }
      });
      await t.step("the error for a missing package names the command that installs it", async () => {
        const file = `import { z } from "zod";\n${SERVER}`;
        // Without a node_modules folder, Bun would download packages.
        await Deno.mkdir(`${cwd}/bare/node_modules`, { recursive: true });
        await Deno.writeTextFile(
          `${cwd}/bare/server.ts`,
          file.replace("export default", "z.string();\nexport default"),
        );
        for (const { name, toWords } of runners.filter(({ name }) => /^(Node|Bun|Deno)/.test(name))) {
          const { code, stderr } = await run([...toWords(installed), "check", "server.ts"], { cwd: `${cwd}/bare` });
          assertEquals(code, 2, `${name}: ${stderr}`);
          const command = name === "Bun" ? "bun add zod" : name === "Deno" ? "deno add npm:zod" : "npm install zod";
          assertStringIncludes(stderr, sentence(command), name);
        }
        await Deno.remove(`${cwd}/bare`, { recursive: true });
      });
      await t.step("pack works with each runtime's bundler, and with esbuild on Node", async () => {
        const pack = (words: readonly string[]) =>
          run([...words, "pack", "server.ts", "--author", "Ada", "--description", "d"], { cwd, timeoutMs: 60_000 });
        const [node, others] = [runners[0], runners.filter(({ name }) => name === "Bun" || name === "Deno")];
        for (const { toWords } of others) {
          const { code, stderr } = await pack(toWords(installed));
          assert(code === 0, stderr);
        }
        const { code, stderr } = await pack(node.toWords(installed));
        assertEquals(code, 2);
        assertStringIncludes(stderr, sentence("server.ts", "npm install --save-dev esbuild"));
        await Deno.mkdir(`${cwd}/node_modules`);
        await Deno.symlink(`${root}node_modules/esbuild`, `${cwd}/node_modules/esbuild`);
        const packed = await pack(node.toWords(installed));
        assert(packed.code === 0, packed.stderr);
        await Deno.remove(`${cwd}/node_modules`, { recursive: true });
        await Deno.remove(`${cwd}/calc.mcpb`);
      });
      await t.step("commands can be run from their own files", async () => {
        for (const { toWords } of runners.slice(0, 3)) {
          for (const words of [["doctor", "--help"], ["install", "--help"], ["check", "server.ts"], ["new", "fresh"]]) {
            const { code, stderr } = await run([...toWords(installed), ...words], { cwd });
            assert(code === 0, `${words.join(" ")}: ${stderr}`);
          }
          await Deno.remove(`${cwd}/fresh.ts`);
          await Deno.remove(`${cwd}/fresh_test.ts`);
        }
      });
    });
  },
  sanitizeResources: false, // The official clients leave streams of their processes open.
  sanitizeOps: false,
});
