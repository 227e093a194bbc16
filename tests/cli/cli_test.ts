// `mcp serve`, `--help`, and CLI errors, as processes in an empty home folder.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { NAME, VERSION } from "../../src/cli/version.ts";
import { _meta, testProcesses, toRequestLine, withFiles } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { ask, type Finished, root, run, start } from "../support/processes.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { assertRefused } from "./refused.ts";

const handshake = toRequestLine("initialize", {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "test", version: "1.0.0" },
});

function toCall(name: string, args: Record<string, unknown> = {}): string {
  return toRequestLine("tools/call", { name, arguments: args, _meta });
}

/** Parses the only response in the output of a successful process. */
// deno-lint-ignore no-explicit-any
function toResponse({ code, stdout, stderr }: Finished): any {
  assertEquals(code, 0, stderr);
  const lines = stdout.trim().split("\n");
  assertEquals(lines.length, 1, stdout);
  return JSON.parse(lines[0]);
}

/** Sends a request to a running server. */
async function send(
  url: string,
  method: string,
  params: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const request = toRequest(method, params, headers);
  return await fetch(url, { method: "POST", headers: request.headers, body: await request.text() });
}

/** Arguments with valid syntax that fail. */
const validArguments = [
  ...[
    "missing.ts",
    "emtpy.ts",
    "empty.ts",
    "wrong.ts",
    "twice.ts",
    "strange.ts",
    "syntax.ts",
    "throws.ts",
    "imports.ts",
  ],
  ...["gone.jsonc", "--watch", "192.0.2.1", "http://127.0.0.1:1/mcp"],
];

Deno.test("the CLI has the version of the package", () => {
  assertEquals([NAME, VERSION], [config.name, config.version]);
});

testProcesses("the demo server needs no permissions and no packages", async () => {
  for (const words of [["deno", "run", `--allow-read=${root}src`, `${root}mod.ts`], ["bun", `${root}mod.ts`]]) {
    const { code, stdout, stderr } = await ask(words, {
      input: toCall("add", { a: 2, b: 3 }) + toRequestLine("tools/list", { _meta }),
    });
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
    const [first, second] = stdout.trim().split("\n").map((line) => JSON.parse(line).result);
    const results = [first, second].find((result) => result.content);
    assertEquals(results.content, [{ type: "text", text: "5" }]);
  }
});

testProcesses("the demo server has a resource, a completion, a prompt and progress", async () => {
  const ref = { type: "ref/resource", uri: "demo://greeting/{language}" };
  const lines = [
    toRequestLine("resources/read", { uri: "demo://greeting/french", _meta }),
    toRequestLine("completion/complete", { ref, argument: { name: "language", value: "G" }, _meta }),
    toRequestLine("prompts/get", { name: "explain", arguments: { topic: "pipes" }, _meta }),
    toRequestLine("tools/call", { name: "countdown", arguments: { from: 1 }, _meta: { ..._meta, progressToken: "p" } }),
  ];
  const { stdout } = await ask(["deno", "run", "--allow-read", "mod.ts"], { input: lines.join("") });
  assertStringIncludes(stdout, '"text":"Bonjour !"');
  assertStringIncludes(stdout, '"values":["german"]');
  assertStringIncludes(stdout, `"text":"${sentence("pipes")}"`);
  assertStringIncludes(stdout, '"method":"notifications/progress"');
  assertStringIncludes(stdout, '"text":"Zero"');
});

Deno.test("a target with a running timer does not keep the process alive after its input has ended", async () => {
  const source = `setInterval(() => {}, 1000); export default [];`;
  await withFiles({ "server.ts": source }, async (cwd) => {
    const { code } = await runHere(["server.ts"], { cwd });
    assertEquals(code, 0);
  });
});

for (
  const [words, problem, parts = []] of [
    [["missing.ts"], sentence("missing.ts:", "/missing.ts")],
    [["empty.ts"], sentence("empty.ts")],
    [["wrong.ts"], sentence("wrong.ts")],
    [["twice.ts"], sentence("twice.ts", '"hi"')],
    [["strange.ts"], sentence("strange.ts", "tool()")],
    [["syntax.ts"], sentence("syntax.ts"), [`syntax.ts:2:18\n${sentence()}\n`]],
    [["throws.ts"], sentence("throws.ts"), ["boom", "throws.ts:1"]],
    [["imports.ts"], sentence("imports.ts", "nowhere.ts"), ["/imports.ts"]],
    [["empty.ts", "wrong.ts"], sentence("empty.ts", "wrong.ts")],
    [["--htp"], sentence("--htp", "--http")],
    [["--zzz"], sentence("--zzz", "--http")],
    [["chekc"], sentence("chekc", "check")],
    [["hepl"], sentence("hepl", "help")],
    [["emtpy.ts"], sentence("emtpy.ts:", "/emtpy.ts", "empty.ts")],
    [["--stdio", "--http"], sentence("--http", "--stdio")],
    [["--stdio", "--port", "1"], sentence("--port", "--stdio")],
    [["--watch"], sentence()],
    [["gone.jsonc"], sentence("gone.jsonc:", "/gone.jsonc")],
    [["--http=yes"], sentence("--http=yes")],
    [["--port", "4000"], sentence("--port", "--http")],
    [["--http", "--port"], sentence("--port VALUE")],
    [["--http", "--port", "http"], sentence("http", 0)],
    [["--http", "--port", "65536"], sentence("65536", 0)],
    [["--http", "--path", "mcp"], sentence("/mcp")],
    [["--http", "--host", "192.0.2.1"], sentence("192.0.2.1", "3000", "--host")],
    [["call"], sentence("http:")],
    [["call", "http://127.0.0.1:1/mcp"], sentence("http://127.0.0.1:1/mcp", 1)],
  ] as const
) {
  Deno.test(`${words.join(" ")} is reported with the cause and the remedy`, async () => {
    const handler = `import { tool } from "@x/mcp";\nconst hi = tool({ name: "hi", run: () => "Hi!" });\n`;
    const files = {
      "empty.ts": "export const a = 1;",
      "wrong.ts": "export default { fetch: () => new Response() };",
      "twice.ts": `${handler}export default [hi, hi];`,
      "strange.ts": "export default [{}];",
      "syntax.ts": "\nexport const a = ;",
      "throws.ts": `throw new Error("boom");`,
      "imports.ts": `import "./nowhere.ts";`,
    };
    await withFiles(files, async (cwd) => {
      const { code, stdout, stderr } = await runHere(words, { cwd });
      for (const part of [problem, ...parts]) assertStringIncludes(stderr, part);
      // The hint about --help follows usage errors, but not errors of a file or a server.
      assertEquals(
        /\n.* --help\n$/.test(stderr),
        words.length > 1 && words[1] === "wrong.ts" ||
          !validArguments.some((word) => words.some((each) => each === word)),
        stderr,
      );
      assertEquals({ code, stdout }, { code: 2, stdout: "" });
    });
  });
}

for (const { name, program, file } of runtimes) {
  testProcesses(`${name}: a file is served over stdio from any folder`, async () => {
    for (const [cwd, path] of [[root, "examples/calc.ts"], ["/", `${root}examples/calc.ts`]]) {
      const answer = toResponse(await ask([...program, path], { cwd, input: toCall("add", { a: 2, b: 3 }) }));
      assertEquals(answer.result.content, [{ type: "text", text: "5" }]);
    }
    const answer = toResponse(await ask([...program, "serve", "examples/notes.ts"], { input: handshake }));
    assertEquals(answer.result.serverInfo, { name: "notes", version: "1.0.0" });
  });

  testProcesses(`${name}: examples/stdio.ts serves when run as a program`, async () => {
    const answer = toResponse(await ask([...file, "examples/stdio.ts"], { input: toCall("add", { a: 2, b: 3 }) }));
    assertEquals(answer.result.content, [{ type: "text", text: "5" }]);
  });

  testProcesses(`${name}: serveStdio does not keep the process alive after its calls`, async () => {
    const source = `import { createServer } from "@x/mcp";
      import { serveStdio } from "${root}src/server/transports/stdio/stdio.ts";
      await serveStdio(createServer({ name: "quick", version: "1.0.0" }), { drainMs: 86_400_000 });`;
    await withFiles({ "server.ts": source }, async (cwd) => {
      assertEquals(toResponse(await run([...file, "server.ts"], { cwd, input: handshake })).id, 1);
    });
  });

  testProcesses(
    `${name}: a file that exports handlers but no server is served, and the server is named after the file`,
    async () => {
      const source = `import { tool } from "@x/mcp";\nexport default [tool({ name: "hi", run: () => "Hi!" })];`;
      await withFiles({ "my hands#1.ts": source }, async (cwd) => {
        const called = toResponse(await ask([...program, "my hands#1.ts"], { cwd, input: toCall("hi") }));
        assertEquals(called.result.content, [{ type: "text", text: "Hi!" }]);
        const begun = toResponse(await ask([...program, "my hands#1.ts"], { cwd, input: handshake }));
        assertEquals(begun.result.serverInfo.name, "my hands#1");
      });
    },
  );

  testProcesses(`${name}: output of a served file does not mix with MCP messages`, async () => {
    const source = `import { tool } from "@x/mcp";
      console.log("loading");
      export default [tool({ name: "hi", run: () => { console.log("running"); return "Hi!"; } })];`;
    await withFiles({ "server.ts": source }, async (cwd) => {
      const finished = await ask([...program, "server.ts"], { cwd, input: toCall("hi") });
      assertEquals(toResponse(finished).result.content, [{ type: "text", text: "Hi!" }]);
      assertMatch(finished.stderr, /loading[^]*running/);
    });
  });

  testProcesses(`${name}: --http prints the URL and a command that calls the server`, async () => {
    await using server = await start([...program, "--http", "--port", "0"]);
    const [notice, url, command] = await server.waitFor(
      /^.*(http:\/\/127\.0\.0\.1:\d+\/mcp)\n[^]*?\n {2}(.* call .*)\n/,
    );
    assertEquals(notice, `${sentence(url)}\n\n${sentence()}\n  ${command}\n`);
    assertEquals(await run(["sh", "-c", command], { cwd: "/" }), { code: 0, stdout: "5\n", stderr: "" });
    const listed = await run([...program, "call", url]);
    assertStringIncludes(listed.stdout, sentence("add "));
    server.kill("SIGINT");
    const { code, stdout } = await server.finished;
    assertEquals({ code, stdout }, { code: 0, stdout: "" });
  });

  testProcesses(`${name}: --path changes the path of the endpoint, even if the server sets its own path`, async () => {
    const source = `import { createServer, tool } from "@x/mcp";
      const hi = tool({ name: "hi", run: () => "Hi!" });
      export default createServer({ name: "own", version: "1.0.0", path: "/own", handlers: [hi] });`;
    await withFiles({ "server.ts": source }, async (cwd) => {
      {
        await using server = await start([...program, "server.ts", "--http", "--port=0"], { cwd });
        const [, url] = await server.waitFor(/(http:\S+:\d+\/own)\n/);
        assertEquals((await run([...program, "call", url, "hi"])).stdout, "Hi!\n");
      }
      await using server = await start([...program, "--http", "--port=0", "--path", "/other", "server.ts"], { cwd });
      const [, url] = await server.waitFor(/(http:\S+:\d+\/other)\n/);
      const response = await send(`${url}?a=1`, "tools/call", { name: "hi" });
      assertStringIncludes(await response.text(), '"text":"Hi!"');
      for (const path of ["/own", "/", "/others"]) {
        const refused = await send(new URL(path, url).href, "tools/call", { name: "hi" });
        assertEquals([path, refused.status], [path, 404]);
        await refused.body?.cancel();
      }
    });
  });

  testProcesses(`${name}: with --path, the server knows the address of the client`, async () => {
    const source = `import { createServer, tool } from "@x/mcp";
      import { customAuth } from "@x/mcp/auth";
      const who = tool({ name: "who", run: (_input, { principal }) => principal.id });
      const auth = customAuth((_request, { peer }) => ({ id: "from " + peer, scopes: [] }));
      export default createServer({ name: "own", version: "1.0.0", auth, proxies: ["127.0.0.1"], handlers: [who] });`;
    await withFiles({ "server.ts": source }, async (cwd) => {
      for (const options of [[], ["--path", "/other"]]) {
        await using server = await start([...program, "server.ts", "--http", "--port=0", ...options], { cwd });
        const [, url] = await server.waitFor(/(http:\S+:\d+\/\w+)\n/);
        for (const peer of ["127.0.0.1", "203.0.113.9"]) {
          const headers: Record<string, string> = peer === "127.0.0.1" ? {} : { "x-forwarded-for": peer };
          const response = await send(url, "tools/call", { name: "who" }, headers);
          assertStringIncludes(await response.text(), `"text":"from ${peer}"`);
        }
      }
    });
  });

  for (const [signal, second] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    testProcesses(
      `${name}: the first ${signal} lets a running call finish, and the second exits immediately`,
      async () => {
        const source = `import { tool } from "@x/mcp";
        const slow = tool({ name: "slow", run: async () => {
          console.error("begun");
          await new Promise((resolve) => setTimeout(resolve, 700));
          return "Done.";
        } });
        const never = tool({ name: "never", run: () => { console.error("begun"); return new Promise(() => {}); } });
        export default [slow, never];`;
        await withFiles({ "server.ts": source }, async (cwd) => {
          {
            await using server = await start([...program, "server.ts", "--http", "--port", "0"], { cwd });
            const [, url] = await server.waitFor(/(http:\S+)\n/);
            const answer = send(url, "tools/call", { name: "slow" }).then((response) => response.text());
            await server.waitFor(/begun/);
            server.kill(signal);
            assertStringIncludes(await answer, '"text":"Done."');
            const { code, stderr } = await server.finished;
            assertEquals(code, 0);
            assertStringIncludes(stderr, `begun\n${sentence("Ctrl-C")}\n`);
          }
          await using server = await start([...program, "server.ts", "--http", "--port", "0"], { cwd });
          const [, url] = await server.waitFor(/(http:\S+)\n/);
          const answer = send(url, "tools/call", { name: "never" }).then((response) => response.text()).catch(() => {});
          await server.waitFor(/begun/);
          server.kill(signal);
          server.kill(signal);
          // The second signal is sent repeatedly, because two signals that follow each other closely may arrive as one
          // signal.
          const again = setInterval(() => server.kill(signal), 100);
          assertEquals((await server.finished.finally(() => clearInterval(again))).code, second);
          await answer;
        });
      },
    );

    testProcesses(`${name}: a stdio server exits with code 0 after ${signal}`, async () => {
      const source = `import { tool } from "@x/mcp"; console.error("ready"); export default [];`;
      await withFiles({ "server.ts": source }, async (cwd) => {
        await using server = await start([...program, "server.ts"], { cwd });
        await server.waitFor(/ready/);
        // Fixed wait: a program prints nothing between its start and its signal.
        await new Promise((resolve) => setTimeout(resolve, 800)); // The delay lasts until the loaded file is also served.
        server.kill(signal);
        assertEquals((await server.finished).code, 0);
      });
    });
  }

  testProcesses(`${name}: a port in use is reported with a remedy`, async () => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    await assertRefused(
      run([...program, "--http", "--port", String(taken.addr.port)]),
      sentence(taken.addr.port, "127.0.0.1", "--port"),
    );
  });

  testProcesses(`${name}: --help prints the usage, and --version prints the version`, async () => {
    for (const words of [["--help"], ["-h"], ["serve", "--help"]]) {
      const { code, stdout, stderr } = await run([...program, ...words]);
      assertEquals({ code, stderr }, { code: 0, stderr: "" });
      for (const option of ["--http", "--port PORT", "--host ADDRESS", "--path PATH"]) {
        assertStringIncludes(stdout, option);
      }
    }
    assertEquals((await run([...program, "--version"])).stdout, `${config.version}\n`);
    const { stdout } = await run([...program, "--help"]);
    const list = stdout.split("\n\n").find((section) => /^ {2}serve {2}/m.test(section));
    assert(list, stdout);
    const names = [...list.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name);
    for (const command of name === "deno" ? names : names.slice(-1)) {
      const { code, stdout } = await run([...program, command, "--help"]);
      assertEquals(code, 0);
      assertMatch(stdout, /\n\n\S.*:\n( +\S.*\n)+\n\S.*:\n {2}0 +\S.*\n/, command);
    }
  });

  testProcesses(
    `${name}: in a terminal, a server uses HTTP or prints the next steps for stdio`,
    async () => {
      // `script` from util-linux runs a program in a terminal and keeps the program's input open.
      const inTerminal = (words: readonly string[]) => {
        const command = `${words.join(" ")} 2>&1 >/dev/null | cat >&2`;
        return start(["sh", "-c", `exec script -qec "${command}" /dev/null >&2`]);
      };
      {
        await using server = await inTerminal([...program, `${root}examples/calc.ts`, "--port", "0"]);
        await server.waitFor(/calc\.ts.* http:\/\/127\.0\.0\.1:\d+\/mcp\r?\n/);
        server.kill("SIGTERM");
        await server.finished;
      }
      const words = [...program, `${root}examples/calc.ts`];
      await using server = await inTerminal([...words, "--stdio"]);
      await server.waitFor(/"mcpServers"/);
      server.kill("SIGTERM");
      const { stderr } = await server.finished;
      const text = stderr.replaceAll("\r", "");
      assertStringIncludes(text, sentence("calc.ts"));
      assertStringIncludes(text, `${words.join(" ")} --http`);
      assertStringIncludes(text, '{"mcpServers":{"calc":{"command"');
      assertEquals(text.includes(`"--config","${root}deno.json","${root}mod.ts"`), name === "deno");
    },
  );
}

testProcesses("Deno: the error for a missing permission names the cause and the flag", async () => {
  const words = ["deno", "run", "--no-prompt", `--allow-read=${root}src`, `${root}mod.ts`];
  await assertRefused(run([...words, "--http", "--port", "0"]), sentence("--allow-net=127.0.0.1", "-A"));
  const calc = `${root}examples/calc.ts`;
  await assertRefused(
    run([...words, "examples/calc.ts"]),
    sentence("examples/calc.ts:", `"${calc}"`, `--allow-read=${calc}`, "-A"),
  );
  for (
    const [command, problem] of [
      [`install ${calc} --client cursor --allow-none`, sentence('"HOME"', "--allow-env=HOME", "-A")],
      ["new weather", sentence("weather.ts:", '"/weather.ts"', "--allow-read=/weather.ts")],
      ["call -- deno", sentence("deno:", '"deno"', "--allow-run=deno")],
      [`${root}gone.jsonc`, sentence("gone.jsonc:", `--allow-read=${root}gone.jsonc`, "-A")],
      [`check ${root}examples`, sentence("examples:", `--allow-read=${root}examples`, "-A")],
    ]
  ) await assertRefused(run([...words, ...command.split(" ")], { cwd: "/" }), problem);
});

testProcesses("Deno: the error for a missing permission to read the CLI's files names the remedy", async () => {
  for (const words of [[], ["--version"], ["examples/calc.ts"]]) {
    const { code, stdout, stderr } = await run(["deno", "run", "--no-prompt", `${root}mod.ts`, ...words]);
    assertEquals({ code, stdout, stderr }, {
      code: 1,
      stdout: "",
      stderr: `${sentence("-A", `--allow-read=${root}src`)}\n`,
    });
  }
});

for (
  const { name, words } of [
    { name: "deno serve", words: ["deno", "serve", "--port", "0", "--host", "127.0.0.1", "examples/calc.ts"] },
    { name: "bun", words: ["bun", "--port", "PORT", "examples/calc.ts"] },
  ]
) {
  testProcesses(`${name} serves a file that imports mod.ts, to clients of every revision`, async () => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    await using server = await start(words.map((word) => word === "PORT" || word === "0" ? String(port) : word));
    const url = `http://127.0.0.1:${port}/mcp`;
    let response: Response | undefined;
    await until(async () => {
      response = await send(url, "tools/call", { name: "add", arguments: { a: 2, b: 3 } }).catch(() => undefined);
      return response !== undefined;
    }, "an answer");
    assert(response, "no answer");
    assertStringIncludes(await response.text(), '"text":"5"');
    const begun = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: handshake,
    });
    assertEquals((await readReply(begun)).result.protocolVersion, "2025-06-18");
    server.kill("SIGTERM");
    assert(!(await server.finished).stderr.includes("demonstration"));
  });
}
