// `mcp install` as a process in an empty home folder, on both runtimes.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { callRemote, callStarted, readEntry } from "./client_files.ts";
import { serve } from "./servers.ts";
import { _meta, listNames, testProcesses, toRequestLine, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runtimes } from "./runtimes.ts";
import { assertRefused } from "./refused.ts";
import { ask, type Finished, root, run, start } from "../support/processes.ts";

const config = { name: "here", tools: { greet: { description: "Greets", run: ["printf", "Good day!"] } } };

function modeOf(path: string): string {
  return ((Deno.statSync(path).mode ?? 0) & 0o7777).toString(8);
}

for (const { name, program } of runtimes) {
  const install = (cwd: string, ...words: readonly string[]): Promise<Finished> =>
    run([...program, "install", ...words, "--no-check"], { cwd });

  testProcesses(
    `${name}: install preserves the mode of the file and of its backup, and new files are private`,
    async () => {
      await withFiles({ "s/mcp.jsonc": config, "client.json": '{"mcpServers":{}}' }, async (cwd) => {
        for (const mode of ["600", "644", "640"]) {
          await Deno.chmod(`${cwd}/client.json`, parseInt(mode, 8));
          const words = ["s", "--client", "cursor", "--file", "client.json", "--name", `s${mode}`];
          const { code, stderr } = await install(cwd, ...words);
          assertEquals(code, 0, stderr);
          const [, backup] = / (\/\S+\.bak)\b/.exec(stderr) ?? [];
          assertEquals([modeOf(`${cwd}/client.json`), modeOf(backup)], [mode, mode]);
        }
        const { code, stderr } = await install(cwd, "s", "--client", "cursor", "--file", "sub/new.json");
        assertEquals([code, modeOf(`${cwd}/sub/new.json`)], [0, "600"], stderr);
        assertEquals(listNames(`${cwd}/sub`), ["new.json"]);
      });
    },
  );

  testProcesses(
    `${name}: install follows a symbolic link, and rejects a broken symbolic link and a read-only file`,
    async () => {
      await withFiles({ "s/mcp.jsonc": config, "dotfiles/c.json": "{}", "fixed.json": "{}" }, async (cwd) => {
        await Deno.symlink("dotfiles/c.json", `${cwd}/client.json`);
        await Deno.symlink("nowhere/c.json", `${cwd}/lost.json`);
        await Deno.chmod(`${cwd}/fixed.json`, 0o444);
        const into = (file: string) => install(cwd, "s", "--client", "cursor", "--file", file);
        assertEquals((await into("client.json")).code, 0);
        assert((await Deno.lstat(`${cwd}/client.json`)).isSymlink);
        assertStringIncludes(await Deno.readTextFile(`${cwd}/dotfiles/c.json`), '"s": {');
        assertEquals(listNames(`${cwd}/dotfiles`), ["c.json"]);
        for (const file of ["lost.json", "fixed.json"]) await assertRefused(into(file), sentence(`${cwd}/${file}`));
        assertEquals(listNames(cwd).filter((name) => /fixed|lost|nowhere/.test(name)), ["fixed.json", "lost.json"]);
      });
    },
  );
}

const code = `import { createServer, tool } from "@x/mcp";
export default createServer({ name: "My Server!", version: "1.0.0", handlers: [
  tool({ name: "hi", run: () => "Hi!" }),
  tool({ name: "key", run: () => (globalThis.Deno ? Deno.env.get("MY_KEY") : Bun.env.MY_KEY) ?? "none" }),
] });`;

/** For each client, the path of its file in a home or project folder, and the format of its entries. */
const forms: readonly {
  readonly client: string;
  readonly file: string;
  /** The member of the file that contains the entries. Defaults to `mcpServers`. */
  readonly key?: string;
  /** Returns an entry that starts a command. By default, it has the members `command`, `args` and `env`. */
  readonly start?: (env: unknown) => object;
  /** What stands for the value of a variable. Defaults to the value itself. */
  readonly env?: string;
  /** The entry of a URL, if the client has such entries. */
  readonly remote?: object;
}[] = [
  { client: "claude-desktop", file: ".config/Claude/claude_desktop_config.json" },
  {
    client: "claude-code",
    file: ".mcp.json",
    env: "${MY_KEY}",
    remote: { type: "http", url: "URL", headers: { authorization: "Bearer ${MY_KEY}" } },
  },
  {
    client: "cursor",
    file: ".cursor/mcp.json",
    remote: { url: "URL", headers: { authorization: "Bearer ${env:MY_KEY}" } },
  },
  {
    client: "vscode",
    file: ".vscode/mcp.json",
    key: "servers",
    start: (env: unknown) => ({ type: "stdio", command: "C", args: ["A"], env }),
    env: "${env:MY_KEY}",
    remote: { type: "http", url: "URL", headers: { authorization: "Bearer ${env:MY_KEY}" } },
  },
  {
    client: "gemini",
    file: ".gemini/settings.json",
    remote: { httpUrl: "URL", headers: { authorization: "Bearer ${MY_KEY}" } },
  },
  {
    client: "windsurf",
    file: ".codeium/windsurf/mcp_config.json",
    remote: { serverUrl: "URL", headers: { authorization: "Bearer ${env:MY_KEY}" } },
  },
  {
    client: "zed",
    file: ".config/zed/settings.json",
    key: "context_servers",
    remote: { url: "URL", headers: { authorization: "Bearer value" } },
  },
  {
    client: "codex",
    file: ".codex/config.toml",
    key: "mcp_servers",
    remote: { url: "URL", bearer_token_env_var: "MY_KEY" },
  },
  {
    client: "goose",
    file: ".config/goose/config.yaml",
    key: "extensions",
    start: (envs: unknown) => ({
      ...{ name: "My-Server", type: "stdio", enabled: true, cmd: "C", args: ["A"], envs, timeout: 300 },
    }),
    remote: {
      ...{ name: "My-Server", type: "streamable_http", enabled: true, uri: "URL" },
      ...{ headers: { authorization: "Bearer value" }, envs: {}, timeout: 300 },
    },
  },
  {
    client: "opencode",
    file: ".config/opencode/opencode.json",
    key: "mcp",
    start: (environment: unknown) => ({ type: "local", command: ["C", "A"], environment }),
    remote: { type: "remote", url: "URL", headers: { authorization: "Bearer {env:MY_KEY}" } },
  },
  {
    client: "copilot",
    file: ".copilot/mcp-config.json",
    start: (env: unknown) => ({ type: "local", command: "C", args: ["A"], env, tools: ["*"] }),
    remote: { type: "http", url: "URL", headers: { authorization: "Bearer ${MY_KEY}" }, tools: ["*"] },
  },
  {
    client: "qwen",
    file: ".qwen/settings.json",
    remote: { httpUrl: "URL", headers: { authorization: "Bearer ${MY_KEY}" } },
  },
  {
    client: "cline",
    file: ".cline/data/settings/cline_mcp_settings.json",
    remote: { type: "streamableHttp", url: "URL", headers: { authorization: "Bearer value" } },
  },
  {
    client: "continue",
    file: ".continue/config.yaml",
    start: (env: unknown) => ({ name: "My-Server", type: "stdio", command: "C", args: ["A"], env }),
    remote: {
      ...{ name: "My-Server", type: "streamable-http", url: "URL" },
      requestOptions: { headers: { authorization: "Bearer ${{ secrets.MY_KEY }}" } },
    },
  },
  {
    client: "amp",
    file: ".config/amp/settings.json",
    key: "amp.mcpServers",
    remote: { url: "URL", headers: { authorization: "Bearer ${MY_KEY}" } },
  },
  {
    client: "mcp-json",
    file: "mcp.json",
    env: "${MY_KEY}",
    remote: { type: "http", url: "URL", headers: { authorization: "Bearer ${MY_KEY}" } },
  },
];

const SHARED = ["claude-code", "vscode", "mcp-json"];

/** The name of the server's file in the project's file of a client, so that it is valid for other users too. */
const PORTABLE: Readonly<Record<string, string>> = {
  "claude-code": "./my server.ts",
  vscode: "${workspaceFolder}/my server.ts",
};

/** The variables that move the files of clients. */
const PATH_VARIABLES = [
  ...["XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "CONTINUE_GLOBAL_DIR"],
  ...["CLINE_DIR", "CLINE_DATA_DIR", "CLINE_MCP_SETTINGS_PATH"],
];

/** Runs the CLI in a home folder, with a secret in the environment. */
async function runAt(
  home: string,
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const [command, ...args] = words;
  const unset = Object.fromEntries(PATH_VARIABLES.map((name) => [name, ""]));
  const env = { ...unset, HOME: home, MY_KEY: "value", NO_COLOR: "1", ...more };
  const output = await new Deno.Command(command, { args, cwd: home, env, stdin: "null" }).output();
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code: output.code, stdout: decode(output.stdout), stderr: decode(output.stderr) };
}

for (const { name: runtime, program } of runtimes) {
  const install = (cwd: string, ...words: readonly string[]): Promise<Finished> =>
    run([...program, "install", ...words, "--no-check"], { cwd });

  const startCommand = (env: unknown) => ({ command: "C", args: ["A"], env });
  for (const { client, file, key = "mcpServers", start: toExpected = startCommand, env = "value", remote } of forms) {
    testProcesses(
      `${runtime}: install writes a command and a URL in the format of ${client}, and both entries work`,
      async () => {
        await withFiles({ "my server.ts": code }, async (home) => {
          const allow = runtime === "deno" ? ["--allow-env", "MY_KEY"] : [];
          const words = ["install", "my server.ts", "--client", client, "--env", "MY_KEY", ...allow];
          const started = await runAt(home, [...program, ...words]);
          assertEquals(started.code, 0, started.stderr);
          assertStringIncludes(started.stderr, sentence("2 tools", "hi, key"));
          const path = `${home}/${file}`;
          const entry = await readEntry(path, key);
          assertEquals(entry.name, "My-Server");
          const { cmd, command, args = [], ...rest } = entry.fields;
          const [executable, ...given] = [cmd ?? command, args].flat(2).map(String);
          const server = PORTABLE[client] ?? `${home}/my server.ts`;
          assertEquals(given.slice(-2), [`${root}mod.ts`, server]);
          assertEquals(executable.includes("/"), !SHARED.includes(client));
          const flags = [
            "run",
            `--allow-read=${[`${home}/my server.ts`, `${root}src`].sort()}`.replace(`${home}/my server.ts`, server),
            "--allow-env=MY_KEY",
            "--deny-net",
          ];
          assertEquals(given.slice(0, -2), runtime === "deno" ? flags : []);
          const short = cmd !== undefined
            ? { cmd: "C", args: ["A"] }
            : Array.isArray(command)
            ? { command: ["C", "A"] }
            : { command: "C", args: ["A"] };
          const shape = { ...rest, ...short };
          assertEquals(shape, toExpected({ MY_KEY: env }));
          assertEquals((await Deno.readTextFile(path)).includes("value"), !SHARED.includes(client));
          assertEquals(modeOf(path), "600");

          // Clients with project files start servers in the project's folder, and other clients can start servers in
          // any folder.
          const cwd = SHARED.includes(client) ? home : "/";
          const variables = { MY_KEY: "value" };
          assertEquals(await callStarted(client, entry, { variables, cwd, tool: "key" }), "value");

          const sent = new Set<string | null>();
          const hi = tool({ name: "hi", run: () => "Hi!" });
          const { fetch } = createServer({ name: "My Server!", version: "1.0.0", handlers: [hi] });
          await using served = await serve((request) => {
            sent.add(request.headers.get("authorization"));
            return fetch(request);
          });
          const { url } = served;
          const connected = await runAt(home, [
            ...[...program, "install", url, "--client", client, "--header", "authorization=Bearer ${MY_KEY}"],
            ...["--name", "My-Server", "--force"],
          ]);
          if (!remote) {
            assertEquals(connected.code, 2);
            assertStringIncludes(connected.stderr, sentence(url));
            return;
          }
          assertEquals(connected.code, 0, connected.stderr);
          assertStringIncludes(connected.stderr, sentence("1 tool", "hi"));
          const written = await readEntry(path, key);
          assertEquals(written.name, "My-Server");
          assertEquals(JSON.parse(JSON.stringify(written.fields).replaceAll(url, "URL")), remote);
          assertEquals(await callRemote(client, written, { variables, tool: "hi" }), "Hi!");
          assertEquals([...sent], ["Bearer value"]);
        });
      },
    );
  }

  testProcesses(`${runtime}: an entry in a project's file works after the project has moved`, async () => {
    const cases = [
      { client: "claude-code", file: ".mcp.json", key: "mcpServers", path: "./tools/s.ts" },
      { client: "claude-code", file: ".mcp.json", key: "mcpServers", path: "./tools/s.ts", project: ".hidden" },
      { client: "cursor", file: ".cursor/mcp.json", key: "mcpServers", path: "${workspaceFolder}/tools/s.ts" },
      { client: "opencode", file: "opencode.json", key: "mcp", path: "./tools/s.ts" },
      // The project of this file is `tools`.
      { client: "opencode", file: "tools/opencode.json", key: "mcp", path: "./s.ts", folder: "tools" },
      // It is not known in which folder this client starts servers.
      { client: "qwen", file: ".qwen/settings.json", key: "mcpServers" },
    ];
    for (const { client, file, key, path, folder = "", project = "before" } of cases) {
      await withFiles({ [`${project}/tools/s.ts`]: code, [`${project}/tools/data/a.md`]: "" }, async (cwd) => {
        const before = `${cwd}/${project}`;
        const allow = runtime === "deno" ? ["--allow-read", "tools/data", "--allow-env", "MY_KEY"] : [];
        const words = ["install", "tools/s.ts", "--client", client, "--file", file, ...allow];
        const { code: exitCode, stderr } = await run([...program, ...words], { cwd: before });
        assertEquals(exitCode, 0, stderr);
        const { fields } = await readEntry(`${before}/${file}`, key);
        const text = JSON.stringify(fields);
        assertEquals(text.includes(before), path === undefined, text);
        if (path === undefined) return;
        assert(text.includes(path), text);
        await Deno.rename(before, `${cwd}/after`);
        const entry = await readEntry(`${cwd}/after/${file}`, key);
        const moved = `${cwd}/after/${folder}`.replace(/\/$/, "");
        assertEquals(await callStarted(client, entry, { variables: {}, cwd: moved, tool: "hi" }), "Hi!");
      });
    }
  });

  testProcesses(
    `${runtime}: install finds the file of a client at the path that the client's variable sets`,
    async () => {
      const cases = [
        ["opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"],
        ["amp", "XDG_CONFIG_HOME", "amp/settings.json"],
        ["copilot", "COPILOT_HOME", "mcp-config.json"],
        ["qwen", "QWEN_HOME", "settings.json"],
        ["continue", "CONTINUE_GLOBAL_DIR", "config.yaml"],
        ["cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"],
        ["cline", "CLINE_DATA_DIR", "settings/cline_mcp_settings.json"],
        ["cline", "CLINE_MCP_SETTINGS_PATH", ""],
      ];
      await withFiles({}, async (home) => {
        for (const [client, variable, file] of cases) {
          const folder = `${home}/${variable}`;
          const words = ["install", "https://mcp.example.com/mcp", "--client", client, "--no-check"];
          const { code, stderr } = await runAt(home, [...program, ...words], { [variable]: folder });
          assertEquals(code, 0, stderr);
          const path = file ? `${folder}/${file}` : folder;
          assertStringIncludes(stderr, sentence(path, "mcp.example.com"));
          await Deno.remove(folder, { recursive: true });
        }
        // The runtimes keep their caches in the home folder.
        assertEquals(listNames(home).filter((name) => name !== ".cache" && name !== ".bun"), []);
      });
    },
  );

  testProcesses(
    `${runtime}: install writes nothing if the server does not start, unless --no-check is used`,
    async () => {
      const broken = 'throw new Error("no luck\\x1b[2J");';
      await withFiles({ "s.ts": broken }, async (cwd) => {
        const words = ["s.ts", "--client", "cursor", "--file", "c.json", "--allow-none"];
        await assertRefused(
          run([...program, "install", ...words], { cwd }),
          sentence("s.ts"),
          "no luck\\u{1b}[2J",
          sentence("--no-check"),
        );
        assertEquals(listNames(cwd), ["s.ts"]);
        assertEquals((await install(cwd, ...words)).code, 0);
        assertEquals(listNames(cwd), ["c.json", "s.ts"]);
        await assertRefused(
          run([...program, "install", "http://127.0.0.1:1/mcp", ...words.slice(1, -1)], {
            cwd,
          }),
          sentence("http://127.0.0.1:1/mcp"),
        );
      });
    },
  );

  testProcesses(`${runtime}: install makes a short key from any name of a server`, async () => {
    const hi = tool({ name: "hi", run: () => "Hi!" });
    const { fetch } = createServer({ name: `a${".".repeat(200_000)}b`, version: "1.0.0", handlers: [hi] });
    await using served = await serve(fetch);
    await withFiles({}, async (cwd) => {
      const { code, stderr } = await run([
        ...[...program, "install", served.url, "--client", "cursor", "--file", "mcp.json"],
      ], { cwd });
      assertEquals(code, 0, stderr);
      assertEquals(Object.keys(JSON.parse(await Deno.readTextFile(`${cwd}/mcp.json`)).mcpServers), ["a"]);
    });
  });

  testProcesses(`${runtime}: install writes no secret to a shared file`, async () => {
    await withFiles({ "s.ts": code }, async (cwd) => {
      const url = "https://mcp.example.com/mcp";
      const allow = runtime === "deno" ? ["--allow-none"] : [];
      const cases: readonly (readonly [names: readonly string[], words: readonly string[]])[] = [
        [
          [".mcp.json", "authorization"],
          [url, "--client", "claude-code", "--header", "authorization=Bearer s3cret"],
        ],
        [[".vscode/mcp.json", "x-api-key"], [url, "--client", "vscode", "--header", "x-api-key: s3cret"]],
        [["zed.json", "cookie"], [url, "--client", "zed", "--file", "zed.json", "--header", "cookie=s3cret"]],
        [["zed.json", "HOME"], ["s.ts", "--client", "zed", "--file", "zed.json", "--env", "HOME", ...allow]],
        [["--header"], ["https://me:s3cret@example.com/mcp", "--client", "cursor"]],
      ];
      for (const [names, words] of cases) {
        const refused = install(cwd, ...words);
        await assertRefused(refused, sentence(...names));
        assertEquals((await refused).stderr.includes("s3cret"), false);
      }
      assertEquals(listNames(cwd), ["s.ts"]);
      assertEquals(
        (await install(cwd, "s.ts", "--client", "cursor", "--file", "c.json", "--env", "HOME", ...allow)).code,
        0,
      );
      assertStringIncludes(await Deno.readTextFile(`${cwd}/c.json`), '"HOME": "${env:HOME}"');
    });
  });
}

testProcesses(
  "deno: install requires the exact version of a package, and grants network access by host and port",
  async () => {
    const tools = {
      plain: { description: "x", fetch: { url: "http://api.example.com/" } },
      safe: {
        description: "x",
        fetch: { url: "https://api.example.com/{{id}}" },
        input: { properties: { id: {} }, required: ["id"] },
      },
      port: { description: "x", fetch: { url: "http://[::1]:8080/x" } },
    };
    await withFiles({ "mcp.jsonc": { tools } }, async (cwd) => {
      const words = ["deno", "run", "-A", `${root}mod.ts`, "install"];
      const dry = ["--client", "cursor", "--no-check", "--dry-run"];
      const { code, stdout, stderr } = await run([...words, "mcp.jsonc", ...dry], { cwd });
      assertEquals(code, 0, stderr);
      assertStringIncludes(stdout, '"--allow-net=[::1]:8080,api.example.com:443,api.example.com:80"');
      for (const target of ["jsr:@a/b", "npm:c", "jsr:@a/b@^1.0.0", "npm:@a/c@1", "jsr:@a/b@1.2/x"]) {
        await assertRefused(run([...words, target, ...dry, "--allow-none"], { cwd }), sentence(target));
      }
      for (const target of ["jsr:@a/b@1.2.3", "npm:c@1.2.3-rc.1/x"]) {
        assertEquals((await run([...words, target, ...dry, "--allow-none"], { cwd })).code, 0);
      }
    });
  },
);

const mapped = `import { createServer, tool } from "server-library";
export default createServer({ name: "mapped", version: "1.0.0", handlers: [tool({ name: "hi", run: () => "Hi!" })] });`;

const importing = `import { hi } from "./lib/hi.ts";
import about from "./lib/name.json" with { type: "json" };
import { createServer } from "@x/mcp";
export default createServer({ name: about.name, version: "1.0.0", handlers: [hi] });`;
const imported = {
  "s.ts": importing,
  "lib/hi.ts": `import { tool } from "@x/mcp";
import { text } from "../more/text.ts";
export const hi = tool({ name: "hi", description: "Greets", run: async () => \`\${text} \${(await import("./late.ts")).late} \${
    globalThis.Deno?.env.get("MY_KEY") ?? ""}\` });`,
  "lib/late.ts": 'export const late = "later";',
  "lib/name.json": '{ "name": "imports" }',
  "more/text.ts": 'export const text = "Hi";',
  "other.ts": "export const secret = 1;",
  "mcp.jsonc": { modules: ["modules/b.ts"] },
  "handlers/a.ts": 'export { hi } from "../lib/hi.ts";',
  "modules/b.ts": 'export { hi as default } from "../lib/hi.ts";',
};

testProcesses(
  "deno: install lets code read the files that it imports and the variables that are passed",
  async () => {
    await withFiles(imported, async (cwd) => {
      const words = ["deno", "run", "-A", `${root}mod.ts`, "install"];
      for (const target of ["s.ts", "mcp.jsonc", "handlers/*.ts"]) {
        const file = `${await Deno.makeTempDir()}/client.json`;
        const options = ["--client", "claude-desktop", "--file", file, "--name", "s", "--env", "MY_KEY"];
        const { code, stderr } = await run([...words, target, ...options], { cwd, env: { MY_KEY: "value" } });
        assertEquals(code, 0, stderr);
        const { mcpServers: { s: { command, args, env } } } = JSON.parse(await Deno.readTextFile(file));
        assert(args.includes("--allow-env=MY_KEY") && !args.includes("-A"), args.join(" "));
        assertEquals(args.join().includes("other.ts"), false);
        const call = toRequestLine("tools/call", { name: "hi", arguments: {}, _meta });
        const { stdout, stderr: errors } = await ask([command, ...args], { cwd: "/", input: call, env });
        assertStringIncludes(stdout, '"Hi later value"', errors);
      }
      const all = ["s.ts", "--client", "cursor", "--dry-run", "--no-check", "-A"];
      assertStringIncludes((await run([...words, ...all], { cwd })).stdout, '"-A"');
    });
  },
);

for (const { name, program } of runtimes) {
  testProcesses(`${name}: a started server prints a command that adds the server to a client`, async () => {
    await withFiles(imported, async (cwd) => {
      for (const target of ["s.ts", "mcp.jsonc"]) {
        const file = `${cwd}/${target}.client.json`;
        await using serving = await start([...program, target, "--http", "--port", "0"], { cwd });
        const [, printed] = await serving.waitFor(/^ {2}(.+ install .+)\n/m);
        const { code, stderr } = await run([...printed.split(" "), "--file", file], { cwd });
        assertEquals(code, 0, stderr);
        assertStringIncludes(stderr, sentence("1 tool", "hi"));
      }
    });
  });
}

testProcesses("deno: install passes the deno.json of the code, so that the entry works in any folder", async () => {
  const files = {
    "app/deno.jsonc": `{ /* names */ "imports": { "server-library": "@x/mcp" } }`,
    "app/src/deno.json": { tasks: {} },
    "app/src/server/server.ts": mapped,
    "app/mcp.jsonc": { name: "config", modules: ["src/server/server.ts"] },
    "plain/server.ts": code,
  };
  await withFiles(files, async (cwd) => {
    const app = `${cwd}/app`;
    const words = ["deno", "run", "-A", `${root}mod.ts`, "install"];
    const options = ["--client", "cursor", "--file", `${cwd}/c.json`, "--allow-none"];
    const { code, stderr } = await run([...words, "src/server/server.ts", ...options, "--name", "s"], { cwd: app });
    assertEquals(code, 0, stderr);
    assertStringIncludes(stderr, sentence("1 tool", "hi"));
    const { mcpServers: { s: { command, args } } } = JSON.parse(await Deno.readTextFile(`${cwd}/c.json`));
    assertEquals(args.slice(0, 3), ["run", "--config", `${app}/deno.jsonc`]);
    const elsewhere = await ask([command, ...args], { cwd: "/", input: toRequestLine("tools/list", { _meta }) });
    assertStringIncludes(elsewhere.stdout, '"name":"hi"', elsewhere.stderr);
    // Do not start the server, because reading the config file would require packages.
    const dry = ["--client", "cursor", "--file", `${cwd}/d.json`, "--allow-none", "--no-check", "--dry-run"];
    const config = await run([...words, `${app}/mcp.jsonc`, ...dry], { cwd });
    const file = "${workspaceFolder}/app/deno.jsonc";
    assertStringIncludes(config.stdout.replace(/\s+/g, " "), `"run", "--config", "${file}", "--allow-read=`);
    const { stdout } = await run([...words, `${cwd}/plain/server.ts`, ...dry], { cwd });
    assertEquals(stdout.includes('"--config"'), false);
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: install replaces no entry under a name that the server reports`, async () => {
    const { fetch } = createServer({
      name: "GitHub",
      version: "1.0.0",
      handlers: [tool({ name: "hi", run: () => "" })],
    });
    await using served = await serve(fetch);
    const mine = { url: "https://mcp.example.com/mine" };
    const texts = {
      "cursor.json": ["cursor", JSON.stringify({ mcpServers: { github: mine } })],
      "codex.toml": ["codex", `[mcp_servers.github]\nurl = ${JSON.stringify(mine.url)}\n`],
      "goose.yaml": ["goose", `extensions:\n  github:\n    uri: ${mine.url}\n`],
      "continue.yaml": ["continue", `mcpServers:\n  - uses: a/b\n  - name: github\n    url: ${mine.url}\n`],
    };
    const files = Object.fromEntries(Object.entries(texts).map(([file, [, text]]) => [file, text]));
    await withFiles(files, async (cwd) => {
      for (const [file, [client, text]] of Object.entries(texts)) {
        const path = `${cwd}/${file}`;
        const into = (...words: string[]) =>
          run([...program, "install", served.url, "--client", client, "--file", path, ...words], { cwd });
        for (const words of [[], ["--dry-run"], ["--name", "github"], ["--name", "GITHUB", "--no-check"]]) {
          await assertRefused(into(...words), sentence(path, "github", "--name", "--force"));
        }
        await assertRefused(into("--force"), sentence("--force", "--name"));
        assertEquals(await Deno.readTextFile(path), text);

        const beside = await into("--name", "other", "--no-check");
        assertStringIncludes(beside.stderr, sentence("other", path));
        const replaced = await into("--name", "github", "--force", "--no-check");
        assertStringIncludes(replaced.stderr, sentence("github", path));
        const again = await into("--name", "github", "--no-check");
        assertStringIncludes(again.stderr, sentence(path, "github"));
        assertEquals((await Deno.readTextFile(path)).includes("/mine"), false);
      }
    });
  });

  testProcesses(
    `${name}: install tests the entry in another folder, and its output contains no escape codes`,
    async () => {
      const here = `const { cwd } = globalThis.Deno ?? process;
console.error("in", cwd(), "no color", (globalThis.Deno?.env.get("NO_COLOR") ?? process.env.NO_COLOR));
throw new Error("no luck");`;
      await withFiles({ "s.ts": here }, async (cwd) => {
        const words = [...program, "install", "s.ts", "--allow-read", "/", "--allow-env", "NO_COLOR"];
        const desktop = await run([...words, "--client", "claude-desktop"], { cwd });
        assertEquals(desktop.code, 2);
        assertStringIncludes(desktop.stderr, "\nin / no color 1\n");
        assertEquals(desktop.stderr.includes("\\u{1b}") || desktop.stderr.includes("\x1b"), false, desktop.stderr);
        const project = await run([...words, "--client", "claude-code"], { cwd });
        assertStringIncludes(project.stderr, `\nin ${cwd} no color 1\n`);
      });
    },
  );
}
