// Config files and folders on the command line, and `mcp check`, `mcp new` and `mcp install`.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { writeFile } from "node:fs/promises";
import { connect } from "../../src/client/client.ts";
import { _meta, isNotDeno, listNames, testProcesses, toRequestLine, withFiles } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { ask, type Finished, root, run, type Running, start } from "../support/processes.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { assertRefused } from "./refused.ts";

/** Returns a request whose id is its method. */
function toRequest(method: string, params: Record<string, unknown>): string {
  return toRequestLine(method, { ...params, _meta }, method);
}

/** Returns the results in the output of a successful process, by method. */
// deno-lint-ignore no-explicit-any
function toResults({ code, stdout, stderr }: Finished): Record<string, any> {
  assertEquals(code, 0, stderr);
  const messages = stdout.trim().split("\n").map((line) => JSON.parse(line));
  return Object.fromEntries(messages.map(({ id, result, error }) => [id, result ?? error]));
}

const hi = `import { tool } from "@x/mcp";\nexport default [tool({ name: "hi", run: () => "Hi!" })];`;
const config = { name: "here", tools: { greet: { description: "Greets", run: ["printf", "Good day!"] } } };

/** The permissions that each example needs, and requests that work with these permissions. */
const examples = [
  {
    target: "examples/project/mcp.jsonc",
    flags: [
      "--allow-read=ROOTexamples/project/docs,ROOTexamples/project/mcp.jsonc,ROOTexamples/project/prompts,ROOTsrc",
      "--allow-env=PATH",
      "--allow-run=grep,wc",
      "--deny-net",
    ],
    asks: [
      ["tools/call", { name: "count_words", arguments: { text: "one two $(three)" } }, '"text":"3"'],
      ["tools/call", { name: "find_rule", arguments: { word: "REASON" } }, "5:- A comment gives a reason."],
      ["resources/read", { uri: "file:///docs/style.md" }, "# Style"],
      ["resources/list", {}, "file:///docs/style.md"],
      ["prompts/get", { name: "review", arguments: { text: "x", tone: "kind" } }, "be kind:\\n\\nx"],
    ],
  },
  {
    target: "examples/weather.jsonc",
    flags: [
      "--allow-read=ROOTexamples/weather.jsonc,ROOTsrc",
      "--allow-net=api.open-meteo.com:443",
      "--allow-env=WEATHER_AGENT",
    ],
    asks: [["tools/list", {}, '"name":"temperature"']],
  },
  {
    target: "examples/project/docs",
    flags: ["--allow-read=ROOTexamples/project/docs,ROOTsrc", "--deny-net"],
    asks: [
      ["tools/call", { name: "search", arguments: { query: "short" } }, "style.md:3: - Write short sentences."],
      ["resources/read", { uri: "file:///style.md" }, "# Style"],
    ],
  },
  ...["calc", "notes", "everything", "planned", "reasons"].map((name) => ({
    target: `examples/${name}.ts`,
    words: ["--allow-none"],
    flags: [`--allow-read=ROOTexamples/${name}.ts,ROOTsrc`, "--deny-net"],
    asks: [["tools/list", {}, '"tools":[{"name":']] as const,
  })),
] as const;

for (const { target, flags, asks, ...more } of examples) {
  testProcesses(`${target} is installed with minimal permissions, and works with these permissions`, async () => {
    const expected = flags.map((flag) => flag.replaceAll("ROOT", "./"));
    const words = ["install", target, "--client", "claude-code", "--dry-run", ..."words" in more ? more.words : []];
    const { code, stdout, stderr } = await runHere(words);
    assertEquals(code, 0, stderr);
    const [entry] = Object.values(JSON.parse(stdout).mcpServers) as { command: string; args: string[] }[];
    // The examples import names that the import map in the project's deno.json resolves.
    const config = target.endsWith(".ts") ? ["--config", "./deno.json"] : [];
    const given = ["run", ...config, ...expected, "./mod.ts", `./${target}`];
    assertEquals([entry.command, ...[...entry.args].sort()], ["deno", ...given.sort()]);
    for (const [method, params, told] of asks) {
      const finished = await ask([entry.command, entry.args[0], "--no-prompt", ...entry.args.slice(1)], {
        cwd: root,
        input: toRequest(method, params),
      });
      assertEquals(finished.code, 0, finished.stderr);
      assertStringIncludes(finished.stdout, told, finished.stderr);
    }
  });
}

testProcesses("every example is tested, and examples that cannot be installed need no permissions", async () => {
  const own = ["stdio.ts", "tsconfig.json"];
  // These examples have their own tests in tests/examples.
  own.push(
    "as_tools.ts",
    "browser",
    "authorization_server.ts",
    "clock",
    "cluster",
    "code_mode.ts",
    "connect_account.ts",
    "desk",
    "files.ts",
    "frameworks",
    "gateway",
    "gateway.ts",
    "http_api.ts",
    "inner_calls.ts",
    "locked.ts",
    "many_tools.ts",
    "mcp.lock.json",
    "openapi.ts",
    "observed.ts",
    "own_tools.ts",
    "github.ts",
    "press.ts",
    "production",
    "recipes",
    "roles.ts",
    "sign_in.ts",
    "skills",
    "team_notes.ts",
    "tenants.ts",
    "tickets",
    "validators.ts",
    "workers",
  );
  const named = [...own, ...examples.map(({ target }) => target.split("/")[1])];
  assertEquals([...new Set(named)].sort(), listNames(`${root}examples`));
  const input = toRequest("tools/call", { name: "add", arguments: { a: 2, b: 3 } });
  for (const words of [[`${root}examples/stdio.ts`], [`${root}mod.ts`], [`${root}mod.ts`, "--stdio"]]) {
    const finished = await ask(["deno", "run", "--no-prompt", "--deny-net", `--allow-read=${root}src`, ...words], {
      cwd: "/",
      input,
    });
    assertEquals(toResults(finished)["tools/call"].content, [{ type: "text", text: "5" }]);
  }
});

/** Waits until a watching server has reported `times` failures to reload, and returns the last line of the report. */
async function waitForFailure(server: Running, times = 1): Promise<string | undefined> {
  // Each report ends with a paragraph of one line.
  const [printed] = await server.waitFor(new RegExp(`Ctrl-C(?:[^]*\\n\\n.+\\n){${times}}`));
  return printed.trimEnd().split("\n").at(-1);
}

Deno.test("an invalid config file is reported with its position", async () => {
  await withFiles({ "mcp.jsonc": '{\n  "tols": {}\n}' }, async (cwd) => {
    await assertRefused(runHere([], { cwd }), sentence("./mcp.jsonc:2:3", "tols", "tools"));
  });
});

Deno.test("check reports token counts and problems, and fails if there are errors", async () => {
  const hinted = { ...config, tools: { greet: { ...config.tools.greet, annotations: { readOnlyHint: true } } } };
  const source = `import { prompt, resource, tool } from "@x/mcp";
      const input = { type: "object", properties: { a: { type: "string", default: 1 } }, required: ["a", "b"] };
      const annotations = { readOnlyHint: true };
      export default [
        tool({ name: "bad.name", annotations, input, run: () => "" }),
        tool({ name: "fine", annotations, description: "Does it", input: { type: "object", properties: { a: { type: "string", description: "A" } } }, run: () => "" }),
        tool({ name: "top", annotations, description: "Does it", input: { type: "object", anyOf: [{ required: ["a"] }] }, run: () => "" }),
        tool({ name: "odd", description: "Does it", output: { type: "array" }, annotations: { readOnlyHint: true, destructiveHint: true }, run: () => [] }),
        tool({ name: "l".repeat(50), annotations, description: "Does it", run: () => "" }),
        tool({ name: "l".repeat(51), annotations, description: "Does it", run: () => "" }),
        prompt({ name: "ask", input: { type: "object", properties: { q: {} } }, run: () => "" }),
        resource({ uri: "x://y", name: "y", read: () => "" }),
      ];`;
  await withFiles({ "s.ts": source, "mcp.jsonc": hinted }, async (cwd) => {
    const { code, stdout } = await runHere(["check", "s.ts"], { cwd });
    assertEquals(code, 1);
    const [counts, cost] = stdout.split("\n");
    assertEquals(counts, sentence("s.ts", 6, 1, 0));
    assertEquals(cost.replace(/\d+/, "N"), sentence("N"));
    assertEquals(stdout.match(/^(?:error|warning): .*$/gm), [
      `error: tool bad.name: ${sentence(64)}`,
      `error: tool bad.name: ${sentence()}`,
      `error: tool bad.name: ${sentence(" b")}`,
      `warning: tool bad.name: ${sentence(" a ")}`,
      `error: tool bad.name: ${sentence(" a ", "string", "number")}`,
      `warning: tool top: ${sentence("anyOf")}`,
      `warning: tool odd: ${sentence()}`,
      `error: tool odd: ${sentence("readOnlyHint", "destructiveHint")}`,
      `warning: tool ${"l".repeat(51)}: ${sentence(51)}`,
      `warning: prompt ask: ${sentence()}`,
      `warning: prompt ask: ${sentence(" q ")}`,
    ]);
    const here = await runHere(["check"], { cwd });
    assertEquals(here.code, 0, here.stdout);
    assertEquals(
      here.stdout.replaceAll(/\d{2,}/g, "N"),
      `${sentence("./mcp.jsonc", 1)}\n${sentence("N")}\n  greet  ${sentence("N")}\n${sentence()}\n`,
    );
    const small = await runHere(["check", "--max-tokens", "5", "--json"], { cwd });
    assertEquals(small.code, 1);
    const { tools, tokens, findings } = JSON.parse(small.stdout);
    assertEquals(tools, [{ name: "greet", tokens, headers: [] }]);
    assertEquals(findings[0].state.replace(/\d+/, "N"), sentence("N", 5));
    const mirrored = `import { tool } from ${
      JSON.stringify(`${root}mod.ts`)
    }; export default [tool({ name: "m", description: "x", run: () => "",
        input: { type: "object", properties: { r: { type: "string", description: "R", "x-mcp-header": "Region" } } } })];`;
    await writeFile(`${cwd}/m.ts`, mirrored);
    const headers = await runHere(["check", "m.ts"], { cwd });
    assertStringIncludes(
      headers.stdout.replaceAll(/\d{2,}/g, "N"),
      `\n  m  ${sentence("N", "r", "Mcp-Param-Region")}\n`,
    );
    const header = `export { default } from "./h.ts";`;
    await writeFile(`${cwd}/header.ts`, header);
    await writeFile(
      `${cwd}/h.ts`,
      `import { tool } from "${root}mod.ts"; export default [tool({ name: "h", description: "x", run: () => "",
          input: { type: "object", properties: { a: { type: "number", "x-mcp-header": "A" } } } })];`,
    );
    const wrong = await runHere(["check", "header.ts"], { cwd });
    assert(wrong.code !== 0);
    assertStringIncludes(wrong.stderr, sentence("x-mcp-header", '"a"', '"number"'));
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: the default target is ./mcp.jsonc, ./server.ts or the demo server`, async () => {
    const list = toRequest("tools/list", {});
    const names = async (files: Record<string, unknown>) => {
      let found: string[] = [];
      await withFiles(files, async (cwd) => {
        const { tools } = toResults(await ask(program, { cwd, input: list }))["tools/list"];
        found = tools.map((tool: { name: string }) => tool.name);
      });
      return found;
    };
    assertEquals(await names({ "mcp.jsonc": config, "server.ts": hi }), ["greet"]);
    assertEquals(await names({ "server.ts": hi, "mcp.jsonc/x": "" }), ["hi"]);
    assertEquals(await names({ "other.ts": hi }), ["add", "bake", "countdown", "roll"]);
  });

  testProcesses(
    `${name}: config files and folders relative to the working directory are served over HTTP`,
    async () => {
      await withFiles({ "sub/my.json": config, "sub/a.md": "# A" }, async (cwd) => {
        for (
          const [target, tool, told] of [["sub/my.json", "greet", "Good day!"], ["./sub/", "list", "a.md (3 bytes)"]]
        ) {
          await using server = await start([...program, target, "--http", "--port", "0"], { cwd });
          const [, url] = await server.waitFor(/(http:\S+)\n/);
          assertStringIncludes((await run([...program, "call", url, tool])).stdout, told);
          server.kill("SIGTERM");
          assertEquals((await server.finished).code, 0);
        }
      });
    },
  );

  for (const kind of ["config", "module"] as const) {
    testProcesses(`${name}: --watch reloads a changed ${kind} without disconnecting clients`, async () => {
      const toConfig = (tool: string) => JSON.stringify({ tools: { [tool]: { description: "x", run: ["true"] } } });
      const toModule = (tool: string) =>
        `import { createServer, tool } from ${JSON.stringify(`${root}mod.ts`)};
        export default createServer({ name: "s", version: "1.0.0", handlers: [tool({ name: "${tool}", run: () => 1 })] });`;
      const [target, toText] = kind === "config" ? ["mcp.jsonc", toConfig] : ["s.ts", toModule] as const;
      await withFiles({ [target]: toText("first") }, async (cwd) => {
        await using server = await start([...program, target, "--watch", "--http", "--port", "0"], { cwd });
        const [, url] = await server.waitFor(/(http:\S+)\n/);
        for (const [times, era] of [[1, "modern"], [2, "legacy"]] as const) {
          await Deno.writeTextFile(`${cwd}/${target}`, toText("first"));
          await using client = await connect(url, { era });
          await until(async () => (await client.listTools())[0].name === "first", "the first version");
          // Fixed wait: the watcher of a file does not report when it has handled the last change.
          await new Promise((done) => setTimeout(done, 100)); // This delay is long enough for any further output about the change.
          await using changes = await client.subscribe({ toolsListChanged: true });
          const next = changes[Symbol.asyncIterator]().next();
          await Deno.writeTextFile(`${cwd}/${target}`, kind === "config" ? "{" : "export default {};");
          assertEquals(await waitForFailure(server, times), sentence());
          assertEquals((await client.listTools()).map(({ name }) => name), ["first"]);
          await Deno.writeTextFile(`${cwd}/${target}`, toText("second"));
          assertEquals((await next).value?.method, "notifications/tools/list_changed");
          // The notification may be a late one about the first version.
          await until(async () => (await client.listTools())[0].name === "second", "the second version");
        }
      });
    });
  }

  testProcesses(`${name}: --watch refuses new servers while other machines can reach the server`, async () => {
    const toConfig = (more: object) => JSON.stringify({ tools: { hi: { description: "x", run: ["true"] } }, ...more });
    await withFiles({ "mcp.jsonc": toConfig({}) }, async (cwd) => {
      const words = ["mcp.jsonc", "--watch", "--http", "--host", "0.0.0.0", "--port", "0"];
      await using server = await start([...program, ...words], { cwd });
      const [, port] = await server.waitFor(/http:\S+:(\d+)\/mcp/);
      await using client = await connect(`http://127.0.0.1:${port}/mcp`);
      const refused = toConfig({ servers: { other: { command: program[0], args: program.slice(1) } } });
      await Deno.writeTextFile(`${cwd}/mcp.jsonc`, refused);
      const [, printed] = await server.waitFor(/^(Cannot listen.*)\n\nThe previous version/m);
      assertEquals(printed, sentence("0.0.0.0", "other"));
      assertEquals((await client.listTools()).map(({ name }) => name), ["hi"]);
      assertEquals(printed, (await run([...program, ...words], { cwd })).stderr.split("\n")[0]);
    });
  });

  testProcesses(
    `${name}: --watch follows the imports of files that a pattern matches, and finds new files`,
    async () => {
      const toHandler = (tool: string) =>
        `import { tool } from ${JSON.stringify(`${root}mod.ts`)};
      import { greeting } from "./_shared/greeting.ts";
      import { starts } from "./_shared/state.ts";
      export const ${tool} = tool({ name: "${tool}", run: () => greeting + starts });`;
      const files = {
        "handlers/hello.ts": toHandler("hello"),
        "handlers/_shared/greeting.ts": `export { words as greeting } from "./words.ts";`,
        "handlers/_shared/words.ts": `export const words = "Hello";`,
        "handlers/_shared/state.ts": `export const starts = " " + Math.random();`,
      };
      await withFiles(files, async (cwd) => {
        const words = [...program, "handlers/*.ts", "--watch", "--http", "--port", "0"];
        await using server = await start(words, { cwd });
        const [, url] = await server.waitFor(/(http:\S+)\n/);
        await using client = await connect(url);
        const say = async (tool: string) => {
          const [block] = (await client.callTool(tool)).content;
          return block.type === "text" ? block.text : "";
        };
        const first = await say("hello");
        await using changes = await client.subscribe({ toolsListChanged: true });
        const iterator = changes[Symbol.asyncIterator]();
        await Deno.writeTextFile(`${cwd}/handlers/_shared/words.ts`, `export const words = "Bye";`);
        await iterator.next();
        // A file keeps its state if none of its imports has changed.
        assertEquals(await say("hello"), first.replace("Hello", "Bye"));
        // Write a syntax error into an imported file, and then fix it.
        await Deno.writeTextFile(`${cwd}/handlers/_shared/words.ts`, `export const words = ;`);
        assertEquals(await waitForFailure(server), sentence());
        assertEquals(await say("hello"), first.replace("Hello", "Bye"));
        await Deno.writeTextFile(`${cwd}/handlers/_shared/words.ts`, `export const words = "Back";`);
        await iterator.next();
        assertEquals(await say("hello"), first.replace("Hello", "Back"));
        await Deno.writeTextFile(`${cwd}/handlers/other.ts`, toHandler("other"));
        await iterator.next();
        assertEquals((await client.listTools()).map(({ name }) => name), ["hello", "other"]);
        assertEquals(await say("other"), await say("hello"));
      });
    },
  );

  testProcesses(
    `${name}: new --auth creates a server that refuses unauthenticated requests, and a passing test`,
    async () => {
      await withFiles({}, async (cwd) => {
        const { code, stderr } = await run([...program, "new", "notes", "--auth"], { cwd });
        assertEquals(code, 0, stderr);
        assertEquals(listNames(`${cwd}/notes`), ["README.md", "server.ts", "server_test.ts"]);
        const [, tests] = /\n\n {2}cd notes\n {2}(.+)\n/.exec(stderr) ?? [];
        const tested = await run(tests.split(" "), { cwd: `${cwd}/notes` });
        assertEquals(tested.code, 0, tested.stdout + tested.stderr);
        assertMatch(tested.stdout + tested.stderr, /3 pass/);

        await assertRefused(run([...program, "new", "notes", "--auth"], { cwd }), sentence("notes:"));

        const words = [...program, "server.ts", "--http", "--port", "0"];
        {
          await using serving = await start(words, { cwd: `${cwd}/notes` });
          const [line, key] = await serving.waitFor(/^.*: ([\da-f-]{36})(?=\n)/m);
          assertEquals(line, sentence(key));
          const [, url] = await serving.waitFor(/server\.ts.* (http:\S+)/);
          assertEquals((await run([...program, "call", url, "add", "text=milk"])).code, 1);
          const readme = await Deno.readTextFile(`${cwd}/notes/README.md`);
          const [, call] = /^ {4}(\S.* call .*) --header "authorization=Bearer \$MCP_KEY"$/m.exec(readme) ?? [];
          const [target, ...rest] = [...call.replace("'text=buy milk'", "text=milk").matchAll(/\S+/g)].map(([word]) =>
            word
          );
          const typed = [target, ...rest].map((word) => word === "http://127.0.0.1:3000/mcp" ? url : word);
          const called = await run([...typed, "--header", `authorization=Bearer ${key}`]);
          assertEquals(called.stdout, `${sentence(1)}\n`, called.stderr);
          const diagnosed = await run([...program, "doctor", url, "--header", `authorization=Bearer ${key}`]);
          assertEquals(diagnosed.code, 0, diagnosed.stdout);
        }
        const env = { MCP_ISSUERS: "http://127.0.0.1:9", MCP_RESOURCE: "http://127.0.0.1:3000/mcp" };
        await using serving = await start(words, { cwd: `${cwd}/notes`, env });
        const [printed, url] = await serving.waitFor(/[^]*server\.ts.* (http:\S+)/);
        assert(!/[\da-f-]{36}\n/.test(printed), printed);
        const metadata = await fetch(new URL("/.well-known/oauth-protected-resource/mcp", url));
        assertEquals((await metadata.json()).authorization_servers, ["http://127.0.0.1:9"]);
      });
    },
  );

  testProcesses(`${name}: new --github creates a server whose users sign in, and a passing test`, async () => {
    await withFiles({}, async (cwd) => {
      const { code, stderr } = await run([...program, "new", "repositories", "--github"], { cwd });
      assertEquals(code, 0, stderr);
      const folder = `${cwd}/repositories`;
      assertEquals(listNames(folder), ["README.md", "server.ts", "server_test.ts"]);
      const [, tests] = /\n\n {2}cd repositories\n {2}(.+)\n/.exec(stderr) ?? [];
      const tested = await run(tests.split(" "), { cwd: folder });
      assertEquals(tested.code, 0, tested.stdout + tested.stderr);
      assertMatch(tested.stdout + tested.stderr, /2 pass/);
      const env = { GITHUB_CLIENT_ID: "id", GITHUB_CLIENT_SECRET: "secret", GITHUB_USERS: "ada" };
      await using serving = await start([...program, "server.ts", "--http", "--port", "0"], { cwd: folder, env });
      const [, url] = await serving.waitFor(/server\.ts.* (http:\S+)/);
      const metadata = await (await fetch(new URL("/.well-known/oauth-authorization-server", url))).json();
      assertEquals(metadata.issuer, "http://127.0.0.1:3000");
      const both = await run([...program, "new", "both", "--app", "--github"], { cwd });
      assertStringIncludes(both.stderr, sentence("--github", "--app"));
    });
  });

  testProcesses(`${name}: new --app creates a server with an app, and a passing test`, async () => {
    await withFiles({}, async (cwd) => {
      const { code, stderr } = await run([...program, "new", "dice", "--app"], { cwd });
      assertEquals(code, 0, stderr);
      assertEquals(listNames(`${cwd}/dice`), ["app.html", "server.ts", "server_test.ts"]);
      const [, tests] = /\n\n {2}cd dice\n {2}(.+)\n/.exec(stderr) ?? [];
      const tested = await run(tests.split(" "), { cwd: `${cwd}/dice` });
      assertEquals(tested.code, 0, tested.stdout + tested.stderr);
      assertMatch(tested.stdout + tested.stderr, /2 pass/);
      assertEquals((await run([...program, "check", "--strict", "server.ts"], { cwd: `${cwd}/dice` })).code, 0);
      const input = toRequest("resources/read", { uri: "ui://dice" });
      const { "resources/read": read } = toResults(await ask([...program, "server.ts"], { cwd: `${cwd}/dice`, input }));
      assertMatch(JSON.stringify(read), /text\/html;profile=mcp-app.*Roll again/);

      await assertRefused(run([...program, "new", "dice", "--app"], { cwd }), sentence("dice:"));
      const both = await run([...program, "new", "both", "--app", "--auth"], { cwd });
      assertEquals([both.code, listNames(cwd)], [2, ["dice"]]);
      assertStringIncludes(both.stderr, sentence("--auth", "--app"));
    });
  });

  testProcesses(`${name}: new creates a server and a passing test, and overwrites nothing`, async () => {
    await withFiles({}, async (cwd) => {
      const { code, stderr } = await run([...program, "new", "weather"], { cwd });
      assertEquals(code, 0, stderr);
      const [, tests] = /\n\n {2}(.+)\n/.exec(stderr) ?? [];
      const tested = await run(tests.split(" "), { cwd });
      assertEquals(tested.code, 0, tested.stdout + tested.stderr);
      assertMatch(tested.stdout + tested.stderr, /1 pass/);
      const input = toRequest("tools/call", { name: "greet", arguments: { name: "Ada" } });
      const { "tools/call": called } = toResults(await ask([...program, "weather.ts"], { cwd, input }));
      assertEquals(called.content, [{ type: "text", text: sentence("Ada") }]);
      assertEquals((await run([...program, "check", "--strict", "weather.ts"], { cwd })).code, 0);
      await Deno.remove(`${cwd}/weather.ts`);
      await assertRefused(run([...program, "new", "weather"], { cwd }), sentence("weather_test.ts"));
      await Deno.remove(`${cwd}/weather_test.ts`);
      for (const bad of ["../x", "a/b", "-", "1a", "a b", "a.ts"]) {
        assertEquals((await run([...program, "new", bad], { cwd })).code, 2);
      }
      assertEquals(listNames(cwd), []);
    });
  });
}

// Root can read every file, so as root the test runs as the user nobody, if nobody can read this project.
const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const isRoot = !isNotDeno && Deno.uid() === 0;
const canBecomeNobody = isRoot &&
  await new Deno.Command(asNobody[0], { args: [...asNobody.slice(1), "test", "-r", `${root}mod.ts`] })
    .output().then(({ success }) => success, () => false);

Deno.test(
  "a folder with unreadable parts is served",
  { ignore: isNotDeno || isRoot && !canBecomeNobody },
  () =>
    withFiles(
      { "f/a.md": "A", "f/b/c.md": "C", "mcp.jsonc": { resources: [{ folder: "f", tools: true }] } },
      async (cwd) => {
        await Deno.chmod(cwd, 0o755);
        await Deno.chmod(`${cwd}/f/b`, 0o000);
        const words = [...isRoot ? asNobody : [], "bun", `${root}mod.ts`, `${cwd}/mcp.jsonc`];
        const input = toRequest("tools/call", { name: "read", arguments: { path: "b/c.md" } }) +
          toRequest("resources/list", {});
        const results = toResults(await ask(words, { cwd: "/", input }));
        assertEquals(results["tools/call"].content, [{
          type: "text",
          text: sentence("b/c.md", "EACCES"),
        }]);
        assertEquals(results["resources/list"].resources.length, 1);
        await Deno.chmod(`${cwd}/f/b`, 0o755);
      },
    ),
);

/**
 * Sorts the paths in a permission. Their order depends on the machine, because they include the paths of the checkout
 * and of the temporary folder.
 */
function sortReads(text: string): string {
  return text.replace(/(?<=--allow-read=)[^"\s]+/g, (list) => list.split(",").sort().join());
}

const FILE = ["--file", "client.json"];

/** Installs into a file with the given content. Returns the new content, and all files in the folder. */
async function installInto(before: string | undefined, words: readonly string[]) {
  let result: { finished: Finished; after?: string; files: Record<string, string> } | undefined;
  await withFiles(
    { "s/mcp.jsonc": config, ...(before === undefined ? {} : { "client.json": before }) },
    async (cwd) => {
      const finished = await runHere(["install", "s", ...words.includes("--file") ? [] : FILE, ...words], { cwd });
      const files: Record<string, string> = {};
      for (const { name, isFile } of Deno.readDirSync(cwd)) {
        if (isFile) {
          files[name] = Deno.readTextFileSync(`${cwd}/${name}`);
        }
      }
      for (const [name, text] of Object.entries(files)) files[name] = sortReads(text.replaceAll(cwd, ""));
      result = { finished, after: files["client.json"], files };
    },
  );
  assert(result);
  return result;
}

const entry = (indent: string) =>
  `{
  "command": "deno",
  "args": [
    "run",
    "--allow-read=${["./s", `${root}src`].sort()}",
    "--deny-net",
    "${root}mod.ts",
    "./s"
  ]
}`.replaceAll("\n", `\n${indent}`);

const code = ["--client", "claude-code", "--name", "s", "--no-check"];

for (
  const { says, before, after } of [
    { says: "nothing", before: "", after: `{\n  "mcpServers": {\n    "s": ${entry("    ")}\n  }\n}\n` },
    { says: "an empty object", before: "{}", after: `{\n  "mcpServers": {\n    "s": ${entry("    ")}\n  }\n}` },
    {
      says: "comments and other entries",
      before: `// mine
{
  "theme": "dark", // at night
  "mcpServers": {
    // the first
    "other": { "command": "x", "args": [] } // keep
    /* the end */
  },
}
`,
      after: `// mine
{
  "theme": "dark", // at night
  "mcpServers": {
    // the first
    "other": { "command": "x", "args": [] }, // keep
    /* the end */
    "s": ${entry("    ")}
  },
}
`,
    },
    {
      says: "no servers, and a trailing comma",
      before: `{\n  "a": [1, 2], // one\n}\n`,
      after: `{\n  "a": [1, 2], // one\n  "mcpServers": {\n    "s": ${entry("    ")}\n  }\n}\n`,
    },
    {
      says: "an entry of the same name",
      before: `{ "mcpServers": {\n  "s": { "command": "old" }, /* x */ "t": {} } }`,
      after: `{ "mcpServers": {\n  "s": ${entry("  ")}, /* x */ "t": {} } }`,
    },
    {
      says: "an empty list of servers",
      before: `{\n  "mcpServers": {\n    // none yet\n  }\n}`,
      after: `{\n  "mcpServers": {\n    // none yet\n    "s": ${entry("    ")}\n  }\n}`,
    },
    {
      says: "a byte order mark",
      before: `\uFEFF{\n  "mcpServers": {}\n}`,
      after: `\uFEFF{\n  "mcpServers": {\n    "s": ${entry("    ")}\n  }\n}`,
    },
  ]
) {
  testProcesses(`install preserves the rest of a file with ${says}`, async () => {
    const { finished, after: found, files } = await installInto(before, [...code, "--force"]);
    assertEquals(finished.code, 0, finished.stderr);
    assertEquals(found, after);
    assertEquals(files["client.json.bak"], before);
    assertEquals(Object.keys(files).length, 2);
  });
}

testProcesses("install preserves the style of a file: tabs and Windows line breaks", async () => {
  const { after } = await installInto('{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}\r\n', code);
  const lines = entry("\t\t").replaceAll(/(?<=\n\t\t)( {2})+/g, (spaces) => "\t".repeat(spaces.length / 2));
  assertEquals(
    after,
    `{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t\t"s": ${lines.replaceAll("\n", "\r\n")}\r\n\t}\r\n}\r\n`,
  );
});

testProcesses("install creates a missing file, reports it, and changes nothing when it is repeated", async () => {
  await withFiles({ "s/mcp.jsonc": config }, async (cwd) => {
    const start = ["install", "s/mcp.jsonc", "--no-check"];
    const words = [...start, "--client", "claude-code", "--name", "s"];
    const first = await runHere(words, { cwd });
    assertEquals(first.code, 0);
    assertStringIncludes(
      first.stderr,
      `${sentence(" s ", `${cwd}/.mcp.json`, "Claude Code")}\n\n  deno run --allow-read=`,
    );
    const text = await Deno.readTextFile(`${cwd}/.mcp.json`);
    const second = await runHere(words, { cwd });
    assertStringIncludes(second.stderr, sentence(`${cwd}/.mcp.json`, " s."));
    const third = await runHere(
      [...start, "--name", "t", "--env", "HOME", "--client", "cursor", "--file", ".mcp.json"],
      { cwd },
    );
    assertEquals(third.code, 0);
    const fourth = await runHere([...start, "--client", "claude-code", "--name", "u"], { cwd });
    assertStringIncludes(fourth.stderr, sentence(`${cwd}/.mcp.json.2.bak`));
    const { mcpServers } = JSON.parse(await Deno.readTextFile(`${cwd}/.mcp.json`));
    assertEquals(Object.keys(mcpServers), ["s", "t", "u"]);
    assertEquals(Object.keys(mcpServers.t.env), ["HOME"]);
    assertEquals(await Deno.readTextFile(`${cwd}/.mcp.json.bak`), text);
    assertEquals(listNames(cwd), [
      ".mcp.json",
      ".mcp.json.2.bak",
      ".mcp.json.bak",
      "s",
    ]);
  });
});

testProcesses("install --dry-run writes nothing", async () => {
  const { finished, files } = await installInto('{"mcpServers":{}}', [...code, "--dry-run"]);
  assertEquals(finished.code, 0);
  assertEquals(Object.keys(JSON.parse(finished.stdout).mcpServers), ["s"]);
  assertEquals(files, { "client.json": '{"mcpServers":{}}' });
});

for (
  const { says, before, words, told } of [
    {
      says: "no client",
      words: [],
      told: sentence("--client", "claude-desktop, claude-code, cursor"),
    },
    {
      says: "an unknown client",
      words: ["--client", "emacs"],
      told: sentence("emacs", "--client"),
    },
    {
      says: "a broken file",
      before: '{\n  "mcpServers": {',
      words: code,
      told: sentence("/client.json:2:18"),
    },
    {
      says: "a list",
      before: "[]",
      words: code,
      told: sentence("/client.json:1:1"),
    },
    {
      says: "a list of servers",
      before: '{ "mcpServers": [] }',
      words: code,
      told: sentence("/client.json:1:17"),
    },
    {
      says: "a variable that is not set",
      before: "{}",
      words: ["--client", "cursor", "--env", "MCP_NOT_SET", "--file", "/nowhere/client.json"],
      told: sentence("MCP_NOT_SET"),
    },
  ]
) {
  testProcesses(`install rejects ${says}, and changes nothing`, async () => {
    const { finished, files } = await installInto(before, words);
    assertEquals(finished.code, 2);
    assertStringIncludes(finished.stderr.replaceAll(/\/\S*\/client\.json/g, "/client.json"), told);
    assertEquals(files, before === undefined ? {} : { "client.json": before });
  });
}

testProcesses("install requires permissions to be named for code, and grants only these permissions", async () => {
  const withModule = { "mcp.jsonc": { modules: ["lib/m.ts"] }, "lib/m.ts": hi, "s.ts": hi };
  await withFiles(withModule, async (cwd) => {
    const install = (...words: string[]) => runHere(["install", ...words, ...code, "--dry-run"], { cwd });
    for (const target of ["s.ts", "mcp.jsonc"]) await assertRefused(install(target), sentence(target, "--allow-none"));
    const flags = async (...words: string[]) => {
      const { stdout, stderr } = await install(...words);
      assert(stdout, stderr);
      const [{ args }] = Object.values(JSON.parse(stdout).mcpServers) as { args: string[] }[];
      return args.slice(1, -2).map((flag) =>
        flag.replaceAll(cwd, "").replaceAll("./", "/").replace(`,${root}src`, "").replace(`${root}src,`, "")
      );
    };
    assertEquals(await flags("s.ts", "--allow-none"), ["--allow-read=/s.ts", "--deny-net"]);
    assertEquals(await flags("s.ts", "--allow-all"), ["-A"]);
    assertEquals(
      await flags("s.ts", "--allow-net", "b.example,a.example", "--allow-read=/data", "--allow-sys=hostname"),
      [
        "--allow-read=/data,/s.ts",
        "--allow-net=a.example,b.example",
        "--allow-sys=hostname",
      ],
    );
    assertEquals(await flags("mcp.jsonc", "--allow-env=X"), [
      "--allow-read=/lib/m.ts,/mcp.jsonc",
      "--allow-env=X",
      "--deny-net",
    ]);
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: new imports the library by its name in the folder's import map`, async () => {
    const mapped: Record<string, unknown> = { "@x/mcp": `${root}mod.ts` };
    const sub = { ...mapped, "@x/mcp/": `${root}src/` };
    for (
      const [file, value, library, testing] of [
        ["deno.json", { imports: mapped }, true, false],
        ["deno.json", { imports: { "@x/mcp": "jsr:@x/mcp@^0.1.0" } }, true, true],
        ["deno.jsonc", `{ /* here */ "imports": ${JSON.stringify(sub)}, }`, true, true],
        ["../deno.json", { imports: { "@x/mcp": "npm:@x/mcp" } }, true, true],
        ["deno.json", { imports: { "@x/mcp-other": "jsr:@x/mcp-other" } }, false, false],
        ["package.json", { devDependencies: { "@x/mcp": "1.0.0" } }, true, true],
        ["package.json", { name: "@x/mcp-app" }, false, false],
      ] as const
    ) {
      if (name === "bun" && !file.startsWith("package")) continue;
      await withFiles({ "in/a": "" }, async (cwd) => {
        await Deno.writeTextFile(`${cwd}/in/${file}`, typeof value === "string" ? value : JSON.stringify(value));
        const { code, stderr } = await run([...program, "new", "weather"], { cwd: `${cwd}/in` });
        assertEquals(code, 0, stderr);
        const texts = ["weather.ts", "weather_test.ts"].map((name) => Deno.readTextFileSync(`${cwd}/in/${name}`));
        const names = JSON.stringify(value);
        assertEquals(/from "@x\/mcp";/.test(texts[0]), library, names);
        assertEquals(/from "@x\/mcp\/testing";/.test(texts[1]), testing, names);
      });
    }
  });
}

testProcesses("Deno: the error for a permission that a config file lacks names the flag", async () => {
  const tools = {
    web: { description: "x", fetch: { url: "https://api.example.com/" } },
    here: { description: "x", run: ["printf", "x"] },
  };
  await withFiles({ "mcp.jsonc": { tools } }, async (cwd) => {
    const withFlags = (...flags: string[]) =>
      ask(["deno", "run", "--no-prompt", ...flags, `${root}mod.ts`, `${cwd}/mcp.jsonc`], {
        cwd,
        input: ["web", "here"].map((name) => toRequest("tools/call", { name }).replace("tools/call", name)).join(""),
      });
    const unread = await withFlags(`--allow-read=${root}src`);
    assertStringIncludes(unread.stderr, sentence(`${cwd}/mcp.jsonc:`, `"${cwd}/mcp.jsonc"`, "--allow-read"));
    const { stderr } = await withFlags("--allow-read");
    assertStringIncludes(stderr, sentence(`${cwd}/mcp.jsonc:1:`, "tools.here", '"PATH"', "--allow-env"));
    const { web, here } = toResults(await withFlags("--allow-read", "--allow-env", "--deny-net"));
    assertStringIncludes(web.content[0].text, sentence("--allow-net=api.example.com"));
    assertStringIncludes(here.content[0].text, sentence("printf:", '"printf"', "--allow-run"));
  });
});

testProcesses(
  "on Bun, install writes no permission flags, and prints that Bun does not restrict permissions",
  async () => {
    await withFiles({ "s.ts": hi }, async (cwd) => {
      const { code, stdout, stderr } = await run([
        "bun",
        `${root}mod.ts`,
        "install",
        "s.ts",
        "--client",
        "vscode",
        "--dry-run",
      ], { cwd });
      assertEquals(code, 0, stderr);
      assertEquals(JSON.parse(stdout).servers.s, {
        type: "stdio",
        command: "bun",
        args: [`${root}mod.ts`, "${workspaceFolder}/s.ts"],
      });
      assertEquals(stderr.trimEnd().split("\n").at(-1), sentence());
    });
  },
);

testProcesses("install rejects a path with a comma, because commas separate the values of a flag", async () => {
  await withFiles({ "a,b/mcp.jsonc": config, "a,b/c.md": "" }, async (cwd) => {
    await assertRefused(
      runHere(["install", "a,b", "--client", "cursor", "--dry-run"], { cwd }),
      sentence(`${cwd}/a,b`),
    );
  });
});

testProcesses("install uses the file and the format of each client", async () => {
  for (
    const [client, file, holder] of [
      ["claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"],
      ["cursor", ".cursor/mcp.json", "mcpServers"],
      ["gemini", ".gemini/settings.json", "mcpServers"],
      ["vscode", ".vscode/mcp.json", "servers"],
      ["claude-code", ".mcp.json", "mcpServers"],
    ]
  ) {
    await withFiles({ "docs/a.md": "" }, async (cwd) => {
      const { code, stderr } = await runHere(["install", "docs", "--client", client], { cwd, env: { HOME: cwd } });
      assertEquals(code, 0, stderr);
      const written = JSON.parse(await Deno.readTextFile(`${cwd}/${file}`));
      assertEquals(Object.keys(written), [holder]);
      const { type, command, args } = written[holder].docs;
      assertEquals(type, client === "vscode" ? "stdio" : undefined);
      const docs = { "claude-code": "./docs", vscode: "${workspaceFolder}/docs" }[client] ?? `${cwd}/docs`;
      assertEquals(args, [
        "run",
        `--allow-read=${[`${cwd}/docs`, `${root}src`].sort()}`.replace(`${cwd}/docs`, docs),
        "--deny-net",
        `${root}mod.ts`,
        docs,
      ]);
      // Desktop clients get the program's path, because they may not find the program by its name.
      assertEquals(command.includes("/"), !["vscode", "claude-code"].includes(client));
    });
  }
});
