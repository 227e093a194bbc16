// `mcp inspect` with correct servers of both eras and with malicious servers.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { createServer, prompt, tool } from "../../mod.ts";
import { createLibrary } from "../client/server.ts";
import { testProcesses } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { forgetModern, inTerminal, serve } from "./servers.ts";
import { root, run } from "../support/processes.ts";
import { demo } from "../../src/cli/demo.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

const inspect = (...words: readonly string[]) => runHere(["inspect", ...words]);

Deno.test("inspect shows servers of both eras, given by URL or by command", async () => {
  await using server = await serve(createLibrary().fetch);
  await using old = await serve(forgetModern(createLibrary().fetch));
  const [here, there, started] = await Promise.all([
    inspect(server.url),
    inspect(old.url),
    inspect("--revision", "2025-06-18", "--", "deno", "run", "-A", "tests/client/server.ts"),
  ]);
  const [facts, ...rest] = here.stdout.split("\n\nTools (7)\n");
  assertEquals([here.code, here.stderr], [0, ""]);
  assertMatch(facts, /^library 1\.0\.0\n\n {2}revision {6}2026-07-28\n {2}capabilities {2}completions, /);
  assertMatch(rest[0], /\n {2}echo\n {4}Says it again\n {6}text {3}string {3}required\n {6}times {2}integer\n/);
  assertMatch(rest[0], /\nResources \(3\)\n\n {2}book:\/\/1 {2}book 1 {2}text\/plain\n/);
  assertMatch(rest[0], /\n.* \(1\)\n\n {2}shelf:\/\/\{letter\} {2}shelf\n/);
  assertMatch(rest[0], /\nPrompts \(1\)\n\n {2}review\n {6}book {2}required\n$/);
  for (const [text, revision] of [[there.stdout, "2025-11-25"], [started.stdout, "2025-06-18"]]) {
    assertEquals(text.split("\n\nTools (7)\n")[1], rest[0]);
    assertStringIncludes(text, sentence("revision", revision));
  }
});

Deno.test("inspect --json prints one document, and --header sends headers", async () => {
  const library = createLibrary();
  const seen: (string | null)[] = [];
  await using server = await serve((request) => {
    seen.push(request.headers.get("x-key"));
    return library.fetch(request);
  });
  const { stdout } = await inspect(server.url, "--json", "--header", "x-key=a=b", "--header", "y: 1");
  const { revision, tools, templates, instructions } = JSON.parse(stdout);
  assertEquals([revision, tools.length, instructions], ["2026-07-28", 7, "Be quiet."]);
  assertEquals(templates[0].uriTemplate, "shelf://{letter}");
  assertEquals([...new Set(seen)], ["a=b"]);
});

Deno.test("inspect reports a server that is missing, exits, floods or stays silent", async () => {
  // The exit code is 2 for a usage error, and 1 for an error of the server.
  const cases: readonly (readonly [words: readonly string[], code: number, told: string])[] = [
    [["--", "no-such-program"], 2, sentence("no-such-program")],
    [["--", "sh", "-c", "exit 3"], 1, sentence("sh -c 'exit 3'", "code 3")],
    [["--", "yes"], 1, sentence("yes", "MCP")],
    [["--timeout", "0.2", "--", "sleep", "60"], 1, sentence("sleep 60", "200 ms", "--timeout")],
    [["localhost:1/mcp"], 2, sentence("localhost:1/mcp", "http://")],
  ];
  // One after the other, because the flood keeps this process from noticing the timeout of another case in time.
  for (const [words, wanted, told] of cases) {
    const { code, stdout, stderr } = await inspect(...words);
    assertEquals([code, stdout], [wanted, ""], stderr);
    assertStringIncludes(stderr, told);
  }
});

for (const { name, program } of runtimes) {
  const inspect = (...words: readonly string[]) => run([...program, "inspect", ...words], { cwd: root });

  testProcesses(
    `${name}: inspect prints no control characters that the server sends, and fits the width of the terminal`,
    async () => {
      const long = "A line that goes on and on. ".repeat(20);
      const evil = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5m\rback\x07 \u202eback";
      await using server = await serve(
        createServer({
          name: `n${evil}`,
          version: "1",
          instructions: `${long}${evil}`,
          handlers: [
            tool({
              name: "t",
              description: long + evil,
              input: {
                type: "object",
                properties: {
                  [`p${evil}`]: { type: "string", description: `${evil}${"x".repeat(200)}`, default: evil },
                },
              },
              run: () => "",
            }),
            prompt({ name: "q", description: evil, run: () => "" }),
          ],
        }).fetch,
      );
      const [{ stdout, code }, terminal, colourful, json] = await Promise.all([
        inspect(server.url),
        run(inTerminal([...program, "inspect", server.url])),
        run(inTerminal(["env", "-u", "NO_COLOR", ...program, "inspect", server.url])),
        inspect(server.url, "--json"),
      ]);
      assertEquals(code, 0);
      const lines = terminal.stdout.trimEnd().split("\r\n");
      assertEquals(lines.filter((line) => line.length > 60), []);
      assert(lines.length > 30, terminal.stdout);
      assert(!terminal.stdout.includes("\x1b"));
      assert(
        colourful.stdout.startsWith(
          "\x1b[1mn\\u{1b}]0;owned\\u{7}\\u{1b}[2Jred back\\u{7} \\u{202e}back\x1b[22m 1\r\n",
        ),
        colourful.stdout,
      );
      assertEquals(JSON.parse(json.stdout).tools[0].description, long + evil);
      assert(!json.stdout.includes("\x9b") && !json.stdout.includes("\u202e"));
      assert(stdout.includes("n\\u{1b}]0;") && stdout.includes("p\\u{1b}]0;"), stdout);
      // deno-lint-ignore no-control-regex
      assertEquals(stdout.match(/[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]/g), null);
      assertEquals(stdout.split("\n").filter((line) => line.length > 80), []);
    },
  );
}

// The demo server: a tool that elicits, a task, an app, a resource and a prompt.

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`the demo server elicits, draws and counts (${era})`, async () => {
    await using server = demo();
    const onElicit = () => ({ action: "accept", content: { flavor: "plum" } }) as const;
    await using client = await connectTest(server, { era, onElicit });
    assertEquals(textOf(await client.callTool("bake")), sentence("plum"));
    assertEquals(textOf(await client.callTool("roll")).replaceAll(/[1-6]/g, "N"), sentence("N"));
    assertStringIncludes(JSON.stringify(await client.readResource("ui://dice")), "mcpApp.on");
    assertEquals(textOf(await client.callTool("countdown", { from: 1 })), sentence());
    await using plain = await connectTest(server, { era });
    assertEquals((await plain.callTool("bake").catch((error) => error)).name, "McpError");
  });
}

Deno.test("the demo server offers a task to clients that support tasks", async () => {
  await using server = demo();
  await using client = await connectTest(server, { extensions: [taskClient()] });
  const { resultType } = await client.request("tools/call", { name: "countdown", arguments: { from: 6 } }, {
    finish: false,
  });
  assertEquals(resultType, "task");
});
