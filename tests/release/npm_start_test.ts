// The npm package's program on the newest version of Node, in a folder without installed packages, as `npx` starts it.
// npm_program_test.ts runs the program on every version of each runtime.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { run, start } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { checkCommands, SERVER, toTarball, withPackage } from "./npm_program.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the processes of all runtimes.
const node = isDeno ? await findNode(NODE_VERSIONS[NODE_VERSIONS.length - 1]) : { missing: "Deno" };
const missing = "missing" in node ? node.missing : undefined;
const name = "the installed program calls and lists tools of a file in a folder without installed packages";

Deno.test(isDeno ? needs(name, missing) : { name, ignore: true }, async () => {
  requireAll(missing);
  assert("path" in node);
  await withPackage((installed, cwd) => checkCommands([node.path, `${installed}/bin.js`], { cwd }));
});

const ends = "the program ends when npm is killed, but continues if the script started it in the background";

Deno.test(isDeno ? needs(ends, missing) : { name: ends, ignore: true }, async (t) => {
  requireAll(missing);
  assert("path" in node);
  const folder = node.path.replace(/\/[^/]+$/, "");
  await withPackage(async (installed, cwd, { url: NPM_CONFIG_REGISTRY, cache: NPM_CONFIG_CACHE }) => {
    const PATH = `${folder}:${installed.replace(/\/@x\/mcp$/, "/.bin")}:${Deno.env.get("PATH")}`;
    const options = { cwd, env: { PATH, NPM_CONFIG_REGISTRY, NPM_CONFIG_CACHE, NPM_CONFIG_AUDIT: "false" } };
    const command = "mcp server.ts --http --port 0";
    const scripts = { start: command, background: `${command} &` };
    await Deno.writeTextFile(`${cwd}/package.json`, JSON.stringify({ type: "module", scripts }));
    const handlers = `tool({ name: "pid", run: () => String(process.pid) }), tool({ name: "slow", run }) `;
    const run = "function run() { return new Promise((resolve) => setTimeout(() => resolve('done'), 2500)); }";
    await Deno.writeTextFile(
      `${cwd}/server.ts`,
      `${SERVER.replace("handlers: [inc, self]", `handlers: [${handlers}]`)}\n${run}`,
    );
    const npx = ["npx", "--yes", "--package", toTarball(installed), ...command.split(" ")];
    const npm = ["npm", "start"];
    const cases = { npx, npm, group: npm, background: ["npm", "run", "background"] };
    for (const [name, words] of Object.entries(cases)) {
      await t.step(name, async () => {
        await using serving = await start(words, options);
        const [, url] = await serving.waitFor(/ at (http:\S+\/mcp)/);
        const client = await connect(url);
        const pid = Number(textOf(await client.callTool("pid")));
        await client.close();
        const hasEnded = () => fetch(url).then(() => false, () => true);
        if (name === "group") {
          // Like systemd, which signals all processes of a service: running calls still end.
          const calling = await connect(url);
          const called = calling.callTool("slow");
          // Fixed wait: the request must arrive before the server closes.
          await new Promise((resolve) => setTimeout(resolve, 300));
          Deno.kill(pid, "SIGTERM");
          serving.kill("SIGTERM");
          assertEquals(textOf(await called), "done");
          await calling.close().catch(() => {});
          return await until(hasEnded, "the program ends");
        }
        serving.kill("SIGTERM");
        try {
          if (name !== "background") return await until(hasEnded, "the program ends");
          // Fixed wait: longer than the interval at which a program checks whether npm has ended.
          await new Promise((resolve) => setTimeout(resolve, 1500));
          assert(!await hasEnded());
        } finally {
          if (!await hasEnded()) Deno.kill(pid, "SIGKILL");
        }
      });
    }
  });
});

const explained = "errors in a file are explained: unknown imports, syntax of Node, and permissions of Deno";

Deno.test(isDeno ? needs(explained, missing) : { name: explained, ignore: true }, async (t) => {
  requireAll(missing);
  assert("path" in node);
  const runners = { node: [node.path], bun: ["bun"], deno: ["deno", "run", "-A", "--quiet", "--no-check"] };
  const files: Readonly<Record<string, readonly [text: string, remedy: string]>> = {
    "entry.ts": [`import { memoryStore } from "@x/mcp/store"; export default memoryStore;`, "@x/mcp/stores?"],
    "name.ts": [`import { memoryStore } from "@x/mcp"; export default memoryStore;`, "@x/mcp/stores."],
    "similar.ts": [`import { creatServer } from "@x/mcp"; export default creatServer;`, "createServer?"],
  };
  await withPackage(async (installed, empty) => {
    for (const [name, words] of Object.entries(runners)) {
      for (const cwd of [empty, installed.replace(/\/node_modules\/.*/, "")]) {
        await t.step(`${name} in ${cwd === empty ? "an empty folder" : "a project"}`, async () => {
          for (const [file, [text, remedy]] of Object.entries(files)) {
            await Deno.writeTextFile(`${cwd}/${file}`, text);
            const { code, stderr } = await run([...words, `${installed}/bin.js`, "check", file], { cwd });
            assertEquals(code, 2, stderr);
            assert(stderr.trimEnd().endsWith(remedy), stderr);
          }
        });
      }
    }
    for (const [name, words] of Object.entries(runners)) {
      await t.step(`${name} explains the URL of a running server, without frames of the runtime`, async () => {
        const { code, stderr } = await run([...words, `${installed}/bin.js`, "check", "http://127.0.0.1:1/mcp"], {
          cwd: empty,
        });
        assertEquals(code, 2, stderr);
        assertEquals(stderr.trimEnd().split("\n").at(-1), sentence("call", "inspect", "doctor"));
        assertEquals(/^ +at /m.test(stderr), false, stderr);
      });
    }
    const syntax: Readonly<Record<string, readonly [text: string, remedy: string]>> = {
      "enum.ts": ["enum Color { Red }\nexport default Color;", "as const"],
      "property.ts": ["export default class { constructor(private a: number) {} }", "constructor"],
      "namespace.ts": ["namespace N { export const a = 1; }\nexport default N;", "namespace"],
      "imports.ts": ['import "./enum.ts";\nexport default 1;', "as const"],
    };
    await t.step("deno explains a missing permission", async () => {
      for (const cwd of [empty, installed.replace(/\/node_modules\/.*/, "")]) {
        await Deno.writeTextFile(`${cwd}/server.ts`, SERVER);
        const check = (...flags: string[]) =>
          run(["deno", "run", "--no-prompt", "--quiet", ...flags, `${installed}/bin.js`, "check", "server.ts"], {
            cwd,
          });
        const none = await check();
        assertEquals([none.code, none.stdout], [2, ""], none.stderr);
        const flag = `--allow-read=${installed}`;
        assertStringIncludes(none.stderr.replace(flag, "FLAG"), sentence("FLAG"));
        const some = await check(flag);
        assertEquals([some.code, some.stdout], [2, ""], some.stderr);
        assert(some.stderr.includes(`--allow-read=${cwd}/server.ts`), some.stderr);
      }
    });
    await t.step("node explains syntax that it does not compile", async () => {
      for (const [file, [text, remedy]] of Object.entries(syntax)) {
        await Deno.writeTextFile(`${empty}/${file}`, text);
        const { code, stderr } = await run([node.path, `${installed}/bin.js`, "check", file], { cwd: empty });
        assertEquals(code, 2, stderr);
        assertStringIncludes(stderr, sentence(remedy, "Deno or Bun", "erasableSyntaxOnly"));
      }
    });
  });
});
