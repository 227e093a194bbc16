// The package as users get it: from a registry, with an empty cache, outside of this project.
import { assert, assertEquals, assertMatch, assertStringIncludes, fail } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { findFreePort } from "../support/processes.ts";
import { readRows } from "./pages.ts";
import { findPage } from "./user_folder.ts";
import { type Registry, rewriteImports, serveRegistry } from "./registry.ts";

const root = new URL("../../", import.meta.url).pathname.slice(0, -1);
const ignore = typeof Deno === "undefined"; // Only Deno supports jsr: specifiers and JSR_URL.

/** Registers a test that runs with an empty folder, an empty cache, and the test registry in place of JSR. */
function testRegistry(
  name: string,
  run: (registry: Registry, options: Deno.CommandOptions) => Promise<void>,
): void {
  Deno.test(name, { ignore }, async () => {
    const folder = await Deno.makeTempDir();
    try {
      await using registry = await serveRegistry(root);
      const env = { JSR_URL: registry.url, DENO_DIR: `${folder}/cache`, NO_COLOR: "1" };
      const cwd = `${folder}/work`;
      await Deno.mkdir(cwd);
      await run(registry, { cwd, env });
      assertEquals(registry.missing, []);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

async function runDeno(
  options: Deno.CommandOptions,
  args: readonly string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await new Deno.Command("deno", { ...options, args: [...args], stdin: "null" })
    .output();
  return { code, stdout: new TextDecoder().decode(stdout), stderr: new TextDecoder().decode(stderr) };
}

async function readLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream.values({ preventCancel: true })) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n")) break;
  }
  return text.slice(0, text.indexOf("\n") + 1);
}

Deno.test("a published package imports packages, and no entries of the import map", () => {
  const imports = { zod: "npm:zod@^4", "sdk/": "npm:/sdk@1/" };
  const source =
    `import { z } from "zod";\nimport 'zod';\nexport * from "sdk/a.js";\nconst m = await import("zod");\n` +
    `import { a } from "./zod.ts";\nconst zod = "zod";\n`;
  assertEquals(
    rewriteImports(source, imports),
    `import { z } from "npm:zod@^4";\nimport 'npm:zod@^4';\nexport * from "npm:sdk@1/a.js";\n` +
      `const m = await import("npm:zod@^4");\nimport { a } from "./zod.ts";\nconst zod = "zod";\n`,
  );
});

testRegistry(
  "running the published package with deno run responds to a client over stdio",
  async (registry, options) => {
    const others = registry.files.filter((file) => !file.startsWith("/src/"));
    assertEquals(others.sort(), ["/LICENSE", "/README.md", "/deno.json", "/mcp.schema.json", "/mod.ts"]);
    const child = new Deno.Command("deno", {
      ...options,
      args: ["run", "--quiet", "--no-lock", `jsr:${config.name}`],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const stderr = new Response(child.stderr).text();
    const late = setTimeout(() => child.kill("SIGKILL"), 30_000);
    try {
      const message = {
        jsonrpc: "2.0",
        id: 1,
        method: "server/discover",
        params: {
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "registry-test", version: "1.0.0" },
            "io.modelcontextprotocol/clientCapabilities": {},
          },
        },
      };
      const writer = child.stdin.getWriter();
      await writer.write(new TextEncoder().encode(JSON.stringify(message) + "\n"));
      const line = await readLine(child.stdout);
      if (line === "") fail(`no response; stderr: ${await stderr}`);
      const answer = JSON.parse(line);
      assertEquals([answer.jsonrpc, answer.id, answer.result?.resultType], ["2.0", 1, "complete"]);
      assert(answer.result.supportedVersions.includes("2026-07-28"));
      await writer.close();
      assertEquals((await child.status).code, 0, "the process did not exit with 0 when its input ended");
    } finally {
      clearTimeout(late);
      try {
        child.kill("SIGKILL");
      } catch {
        // Ignore the error, because the process has already exited.
      }
      await child.stdout.cancel();
      await child.status;
      await stderr;
    }
  },
);

testRegistry("every export of the published package type-checks in a user's file", async (_registry, options) => {
  const names = Object.keys(config.exports).map((path) => `jsr:${config.name}${path.slice(1)}`);
  const source = names.map((name, i) => `import * as m${i} from "${name}";\nconsole.log(m${i});\n`).join("");
  await Deno.writeTextFile(`${options.cwd}/user.ts`, source);
  const { success, stderr } = await new Deno.Command("deno", {
    ...options,
    args: ["check", "--quiet", "--no-lock", "--all", "user.ts"],
  }).output();
  assert(success, new TextDecoder().decode(stderr));
});

testRegistry(
  "the published package serves a config file with only the permissions and packages that it needs",
  async (_registry, options) => {
    const folder = await Deno.realPath(String(options.cwd));
    const file = { tools: { greet: { description: "Greets", run: ["printf", "Good day!"] } } };
    await Deno.writeTextFile(`${folder}/mcp.jsonc`, JSON.stringify(file));
    const params = {
      name: "greet",
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    };
    const call = async (...args: string[]) => {
      const child = new Deno.Command("deno", {
        ...options,
        args: ["run", "--quiet", "--no-lock", "--no-prompt", ...args],
        stdin: "piped",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
      const writer = child.stdin.getWriter();
      await writer.write(
        new TextEncoder().encode(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }) + "\n"),
      );
      await writer.close();
      const { stdout, stderr } = await child.output();
      return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    };
    const fetched = async () => {
      const hosts = await Array.fromAsync(Deno.readDir(`${options.env?.DENO_DIR}/npm`));
      return (await Promise.all(
        hosts.map(({ name }) => Array.fromAsync(Deno.readDir(`${options.env?.DENO_DIR}/npm/${name}`))),
      )).flat().map(({ name }) => name);
    };
    const [refused] = (await call(`jsr:${config.name}`)).split("\n");
    assertEquals(JSON.parse(refused).error.message, sentence("greet"));
    assertEquals(await fetched(), [], "the demo server downloaded a package");
    const flags = [`--allow-read=${folder}/mcp.jsonc`, "--allow-env=PATH", "--allow-run=printf", "--deny-net"];
    assertMatch(await call(...flags, `jsr:${config.name}`, `${folder}/mcp.jsonc`), /"text":"Good day!"/);
    assertEquals((await fetched()).sort(), ["jsonc-parser", "zod"]);
  },
);

const SERVER = `import { createServer, tool } from "jsr:${config.name}";
const hi = tool({ name: "hi", run: () => "Hi!" });
export default createServer({ name: "mine", version: "1.0.0", handlers: [hi] });
`;

testRegistry(
  "a program that imports the published library loads neither the CLI nor any package",
  async (registry, options) => {
    await Deno.writeTextFile(`${options.cwd}/program.ts`, SERVER.replace("export default", ""));
    const { code, stderr } = await runDeno(options, ["run", "--quiet", "--no-prompt", "program.ts"]);
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
    assert(registry.served.includes("/src/library.ts"), registry.served.join(", "));
    assertEquals(registry.served.filter((path) => path.includes("/cli/") || path.includes("@std")), []);
  },
);

testRegistry(
  "running the published package with deno run needs no permission, and loads only the files that the command needs",
  async (registry, options) => {
    const { code, stdout, stderr } = await runDeno(options, [
      "run",
      "--quiet",
      "--no-prompt",
      `jsr:${config.name}`,
      "--version",
    ]);
    assertEquals({ code, stdout, stderr }, { code: 0, stdout: `${config.version}\n`, stderr: "" });
    const parts = ["inspector", "config", "doctor", "serve_http", "target_watcher"];
    assertEquals(registry.served.filter((path) => parts.some((part) => path.includes(`/cli/${part}`))), []);
  },
);

testRegistry("serving a code file does not change a project's frozen lock file", async (_registry, options) => {
  await Deno.writeTextFile(`${options.cwd}/server.ts`, SERVER);
  await Deno.writeTextFile(`${options.cwd}/deno.json`, "{}");
  const cached = await runDeno(options, ["cache", "server.ts"]);
  assertEquals(cached.code, 0, cached.stderr);
  const before = await Deno.readTextFile(`${options.cwd}/deno.lock`);
  for (const flags of [[], ["--frozen"]]) {
    const words = ["run", "--quiet", "--no-prompt", "--allow-read", ...flags, `jsr:${config.name}`, "server.ts"];
    const { code, stderr } = await runDeno(options, words);
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
    assertEquals(await Deno.readTextFile(`${options.cwd}/deno.lock`), before);
  }
});

testRegistry(
  "if the CLI is not in the cache, the error names the remedy; after the remedy, the CLI works offline",
  async (_registry, options) => {
    const words = ["run", "--quiet", "--no-prompt", "--no-lock", "--cached-only", `jsr:${config.name}`];
    const cache = async (name: string) => {
      const { code, stderr } = await runDeno(options, ["cache", "--no-lock", name]);
      assertEquals(code, 0, stderr);
    };
    await cache(`jsr:${config.name}`);
    const lacking = await runDeno(options, [...words, "--version"]);
    assertEquals([lacking.code, lacking.stdout], [1, ""]);
    assertStringIncludes(lacking.stderr.replaceAll(config.version, "VERSION"), sentence("jsr:@x/mcp/cli"));
    await cache(`jsr:${config.name}/cli`);
    assertEquals((await runDeno(options, [...words, "--version"])).stdout, `${config.version}\n`);
    assertMatch((await runDeno(options, [...words, "--help"])).stdout, /completions/);
    await Deno.writeTextFile(`${options.cwd}/mcp.jsonc`, '{ "tools": {} }');
    const checked = await runDeno(options, [...words.slice(0, -1), "-A", `jsr:${config.name}`, "check", "mcp.jsonc"]);
    assertEquals(checked.code, 0, checked.stderr);
  },
);

testRegistry(
  "the commands in README.md run with the published package, in an otherwise empty folder",
  async (_registry, { cwd, env }) => {
    const readme = await findPage("README.md");
    const read = (language: string) => readme.blocks.filter((block) => block.language === language);
    const [{ text: server }] = read("ts");
    const rows = readRows(readme, "Deno").map(({ name, commands: [command] }) => [name, command]);
    const { serve: inspect, call } = Object.fromEntries(rows);
    const stdio = inspect.replace(/ --http.*/, " --stdio");
    const install = read("sh").flatMap(({ text }) => text.trim().split("\n")).find((line) =>
      line.includes(" install ")
    );
    assert(install);
    const home = `${cwd}/home`;
    await Deno.mkdir(home);
    const options = { cwd, env: { ...env, HOME: home, XDG_CONFIG_HOME: `${home}/.config` } };
    await Deno.writeTextFile(`${cwd}/server.ts`, server);
    const imports = { "@x/mcp": `jsr:${config.name}`, zod: config.imports.zod };
    await Deno.writeTextFile(`${cwd}/deno.json`, JSON.stringify({ imports }));
    const toArgs = (command: string, port = 3000) =>
      command.replace("jsr:@x/mcp", `jsr:${config.name}`).replace("3000", `${port}`).split(/\s+/).slice(1);

    const port = findFreePort();
    const serving = new Deno.Command("deno", {
      ...options,
      args: [...toArgs(inspect), "--port", `${port}`],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const told = new Response(serving.stderr).text();
    try {
      const url = `http://127.0.0.1:${port}/mcp`;
      await until(async () => {
        const response = await fetch(url).catch(() => undefined);
        await response?.body?.cancel();
        return response !== undefined;
      }, "the server");
      const called = await runDeno(options, toArgs(call, port));
      assertEquals([called.code, called.stdout.trim()], [0, "5"], called.stderr);
    } finally {
      serving.kill("SIGTERM");
      await serving.status;
      assertMatch(await told, /inspect/);
    }

    const piped = new Deno.Command("deno", {
      ...options,
      args: toArgs(stdio),
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    })
      .spawn();
    const writer = piped.stdin.getWriter();
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
    const hello = { jsonrpc: "2.0", id: 1, method: "initialize", params };
    await writer.write(new TextEncoder().encode(`${JSON.stringify(hello)}\n`));
    assertEquals(JSON.parse(await readLine(piped.stdout)).result.protocolVersion, "2025-11-25");
    await writer.close();
    await piped.stdout.cancel();
    assertEquals((await piped.status).code, 0);

    // Use --no-check, because the check would start the server as the client does, without JSR_URL.
    const installed = await runDeno(options, [...toArgs(install), "--no-check"]);
    assertEquals(installed.code, 0, installed.stderr);
    // Claude Code reads a project's servers from a file in the project's folder.
    const { mcpServers } = JSON.parse(await Deno.readTextFile(`${cwd}/.mcp.json`));
    const [{ args }] = Object.values<{ readonly args: readonly string[] }>(mcpServers);
    assert(args.includes("./server.ts"), args.join(" "));
  },
);
