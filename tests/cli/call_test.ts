// `mcp call`, `mcp read` and `mcp prompt` as processes, with pipes and in a terminal, with servers of both eras.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { z } from "zod";
import { createServer, McpError, media, prompt, resource, type Server, tool, ToolError } from "../../mod.ts";
import { createInspector } from "../../src/cli/inspector/inspector.ts";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { forgetModern, inTerminal, serve } from "./servers.ts";
import { type Finished, root, run, start } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";
import { findFormMisfit } from "../../src/core/schema/form_answer.ts";
import type { Params } from "../../src/core/protocol/jsonrpc.ts";
import { CliError } from "../../src/cli/cli_error.ts";
import { toFields } from "../../src/cli/client/form_field.ts";
import { fillFields, readPresetAnswers } from "../../src/cli/client/preset_answers.ts";
import { type Random, random } from "../support/random.ts";
import { throwing } from "../support/throwing.ts";
import { connect } from "../../src/client/client.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const EVIL = "\x1b]0;owned\x07\x1b[2Jred\x9b5m\x07";
// In a terminal, the commands remove styles and escape other control characters.
const ESCAPED = "\\u{1b}]0;owned\\u{7}\\u{1b}[2Jred\\u{7}";

/** Creates the server of these tests. `onEvent` is called when the tool `wait` starts and when it is cancelled. */
function createDesk(onEvent: (event: string) => unknown = () => {}): Server {
  const take = tool({
    name: "take",
    description: "Gives back what it gets",
    input: {
      type: "object",
      properties: {
        text: { type: "string" },
        count: { type: "integer" },
        sure: { type: "boolean" },
        tags: { type: "array", items: { $ref: "#/$defs/tag" } },
        size: { enum: [1, "1x", null] },
        either: { anyOf: [{ type: "string" }, { type: "number" }] },
        nested: { type: "object" },
        any: {},
      },
      required: ["text"],
      additionalProperties: false,
      $defs: { tag: { type: "string" } },
    },
    run: (input) => JSON.stringify(input),
  });
  const fail = tool({ name: "fail", run: throwing(new ToolError("It failed.")) });
  const show = tool({
    name: "show",
    run: () => ({
      content: [{ type: "text", text: `text ${EVIL}` }, media(Uint8Array.fromBase64(PIXEL), "image/png")],
    }),
  });
  const album = tool({
    name: "album",
    run: () => ({ content: [1, 2, 3].map((each) => media(new Uint8Array([each]), "image/png")) }),
  });
  const wait = tool({
    name: "wait",
    async run(_input, ctx) {
      await ctx.progress(1, { total: 4, message: `waiting${EVIL}` });
      await ctx.log.warning(`it takes time${EVIL}`, { logger: "clock" });
      onEvent("begun");
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      onEvent("cancelled");
      return "";
    },
  });
  const form = tool({
    name: "form",
    async run(_input, ctx) {
      const schema = {
        type: "object",
        properties: {
          name: { type: "string", title: "Your name", minLength: 2 },
          age: { type: "integer", minimum: 0, default: 36 },
          colour: { type: "string", oneOf: [{ const: "#f00", title: "Red" }, { const: "#0f0", title: "Green" }] },
          likes: { type: "array", items: { type: "string", enum: ["poems", "maps"] } },
          sure: { type: "boolean" },
        },
        required: ["name", "colour", "sure"],
      };
      return JSON.stringify(await ctx.elicit("who", { message: `Who are you?${EVIL}`, schema }));
    },
  });
  const pay = tool({
    name: "pay",
    run: async (_input, ctx) => (await ctx.elicitUrl("pay", { message: "Pay", url: "https://pay.test/1" })).action,
  });
  const roots = tool({ name: "roots", run: async (_input, ctx) => JSON.stringify(await ctx.roots()) });
  const note = resource({ uri: "desk://note", name: "note", read: () => `note ${EVIL}\n` });
  const picture = resource({
    uri: "desk://picture",
    name: "picture",
    mimeType: "image/png",
    read: () => Uint8Array.fromBase64(PIXEL),
  });
  const plan = prompt({
    name: "plan",
    description: "Plans a day",
    input: { type: "object", properties: { day: { type: "string", maxLength: 20 } }, required: ["day"] },
    run: ({ day }) => `Plan my ${day}.`,
  });
  const handlers = [take, fail, show, album, wait, form, pay, roots, note, picture, plan];
  return createServer({ name: "desk", version: "1.0.0", handlers });
}

type Outcome = readonly [code: number, stdout: string, stderr: string];

/** Compares the outcome of a program. The hint at the end of standard error and the last line break are not compared. */
function assertFinished({ code, stdout, stderr }: Finished, expected: Outcome): void {
  assertEquals([code, stdout, withoutHint(stderr)], expected, stderr);
}

/** Returns standard error without the hint that names `--help`, and without the last line break. */
function withoutHint(stderr: string): string {
  return stderr.replace(/(?:\n\n.* --help)?\n$/, "");
}

Deno.test("call reads arguments according to the schema of the tool", async () => {
  const { fetch } = createDesk();
  await using server = await serve(fetch);
  await using old = await serve(forgetModern(fetch));
  const folder = await mkdtemp(`${tmpdir()}/mcp-call-`);
  await writeFile(`${folder}/text.txt`, "from a file");
  const take = (url: string, ...words: readonly string[]) => runHere(["call", url, "take", ...words]);
  const cases: readonly (readonly [words: readonly string[], taken: object])[] = [
    [["text=2", "count=2", "sure=true"], { text: "2", count: 2, sure: true }],
    [["text={}", "tags=a", "tags=2", 'nested={"a":[1]}'], { text: "{}", tags: ["a", "2"], nested: { a: [1] } }],
    [["text=a=b", 'tags=["x"]', "size=1x", "either=2"], { text: "a=b", tags: ["x"], size: "1x", either: 2 }],
    [[`text@=${folder}/text.txt`, "any=two", "size=null"], { text: "from a file", any: "two", size: null }],
    [['{"text":"","any":"1"}'], { text: "", any: "1" }],
  ];
  await Promise.all(cases.map(async ([words, taken], i) => {
    const { stdout, stderr } = await take(i % 2 ? old.url : server.url, ...words);
    assertEquals(stderr, "");
    assertEquals(JSON.parse(stdout), taken);
  }));
  await rm(folder, { recursive: true });
});

Deno.test("call reports an argument that the tool's schema does not contain, and a result without content", async () => {
  const input = { type: "object", properties: { a: { type: "number" }, limit: { type: "number" } } } as const;
  const run1 = (input: unknown) => JSON.stringify(input);
  const handlers = [
    tool({ name: "ignore", input: z.object({ a: z.number(), limit: z.number().optional() }), run: run1 }),
    tool({ name: "open", input: { ...input, additionalProperties: true }, run: run1 }),
    tool({ name: "closed", input: { ...input, additionalProperties: false }, run: run1 }),
    tool({ name: "silent", run: () => {} }),
    tool({ name: "broken", run: () => ({ content: [], isError: true }) }),
  ];
  await using server = await serve(createServer({ name: "s", version: "1.0.0", handlers }).fetch);
  const cases: readonly (readonly [words: readonly string[], expected: Outcome])[] = [
    [["ignore", "a=1", "c=4"], [0, '{"a":1}\n', sentence("c")]],
    [["ignore", '{"a":1,"c":4}'], [0, '{"a":1}\n', sentence("c")]],
    [["ignore", "a=1", "limt=4"], [2, "", sentence("ignore", "limt", "limit")]],
    [["ignore", "A=1"], [2, "", sentence("ignore", "A")]],
    [["open", "a=1", "limt=4"], [0, '{"a":1,"limt":4}\n', ""]],
    [["closed", "other=4"], [2, "", sentence("closed", "other", "a, limit")]],
    [["silent"], [0, "", sentence()]],
    [["silent", "c=1"], [0, "", `${sentence("c")}\n${sentence()}`]],
    [["broken"], [1, "", sentence()]],
  ];
  const tried = await Promise.all(cases.map(([words]) => runHere(["call", server.url, ...words])));
  tried.forEach((finished, i) => assertFinished(finished, cases[i][1]));
  const { origin } = new URL(server.url);
  const { code, stderr } = await runHere(["call", `${origin}/`]);
  assertEquals(code, 1);
  assertStringIncludes(stderr, sentence("/mcp", "-32600", origin));
  // A user may copy the URL of the inspector page, which is served at this path.
  const inspector = await createInspector({ endpoint: "/mcp" });
  await using page = await serve(async (request) => await inspector.respond(request, {}) ?? new Response());
  const opened = await runHere(["call", `${page.url.replace("/mcp", "/")}#key=1`]);
  assertStringIncludes(opened.stderr, sentence("/mcp", page.url));
  const installed = await runHere(["install", `${origin}/`, "--client", "cursor"]);
  assertFinished(installed, [2, "", sentence(`${origin}/`, `${origin}/mcp`)]);
});

Deno.test("call reports mistakes before it calls the tool, and exits with the code of the outcome", async () => {
  await using server = await serve(createDesk().fetch);
  const opening = `${sentence("Pay")}\n${sentence("pay.test")}\n  https://pay.test/1`;
  const cases: readonly (readonly [words: readonly string[], expected: Outcome])[] = [
    [["tak", "text=a"], [2, "", sentence("tak", "take")]],
    [["take"], [2, "", sentence("take", "text (string)", "text=…")]],
    [["take", "text=a", "count=two"], [2, "", sentence("count=two")]],
    [["take", "text=a", "sure=yes"], [2, "", sentence("sure=yes", "true", "false")]],
    [["take", "txt=a"], [2, "", sentence("take", "txt", "text")]],
    [["take", "text=a", "text=b"], [2, "", sentence("take", "text=…")]],
    [["take", "{text}"], [2, "", sentence("{text}")]],
    [["fail"], [1, "It failed.\n", ""]],
    [["pay"], [
      2,
      "cancel\n",
      `${opening}\n${sentence("--answer accept")}`,
    ]],
    [["pay", "--answer", "accept"], [0, "accept\n", opening]],
    [["roots"], [0, "[]\n", ""]],
  ];
  const tried = await Promise.all(cases.map(([words]) => runHere(["call", server.url, ...words])));
  tried.forEach((finished, i) => assertFinished(finished, cases[i][1]));
  // The time includes connecting, so this call does not compete with the others.
  const late = await runHere(["call", server.url, "wait", "--timeout", "5"]);
  const warning = `warning clock: it takes time${ESCAPED}\n`;
  assertFinished(late, [1, "", warning + sentence(server.url, "5 s", "--timeout")]);
});

Deno.test("--output replaces only the named file, and gives other contents free names", async () => {
  await using server = await serve(createDesk().fetch);
  const folder = await mkdtemp(`${tmpdir()}/mcp-call-`);
  const write = async (name: string) => await writeFile(`${folder}/${name}`, "before");
  await Promise.all(["out.png", "out-2.png", "out-4.png"].map(write));
  const { code } = await runHere(["call", server.url, "album", "--output", `${folder}/out.png`]);
  assertEquals(code, 0);
  const contents: Record<string, number[]> = {};
  for (const name of listNames(folder)) contents[name] = [...await readFile(`${folder}/${name}`)];
  const before = [...new TextEncoder().encode("before")];
  assertEquals(contents, {
    "out.png": [1],
    "out-2.png": before,
    "out-3.png": [2],
    "out-4.png": before,
    "out-5.png": [3],
  });
  await rm(folder, { recursive: true });
});

Deno.test("read and prompt list the resources and prompts of a server, and suggest similar names", async () => {
  await using server = await serve(createDesk().fetch);
  const cases: readonly (readonly [words: readonly string[], expected: Outcome])[] = [
    [["read", server.url], [0, "desk://note     note\ndesk://picture  picture\n", ""]],
    [["read", server.url, "desk://not"], [1, "", sentence("desk://not:", "desk://note")]],
    [["prompt", server.url], [0, "plan  Plans a day\n", ""]],
    [["prompt", server.url, "plan", "day=2"], [0, "user:\nPlan my 2.\n", ""]],
    [["prompt", server.url, "plan", "dya=2"], [2, "", sentence("plan", "dya", "day")]],
    [["prompt", server.url, "plan", `day=${"9".repeat(30)}`], [1, "", sentence("plan", "day", "-32602")]],
    [["prompt", server.url, "plane"], [2, "", sentence("plane", "plan?")]],
  ];
  const tried = await Promise.all(cases.map(([words]) => runHere(words)));
  tried.forEach((finished, i) => assertFinished(finished, cases[i][1]));
});

Deno.test("call reports unused --answer options, and a server's error after a cancelled question", async () => {
  const ask = tool({
    name: "ask",
    run: async (_input, ctx) => {
      const schema = { type: "object", properties: { age: { type: "integer", maximum: 150 } } };
      const first = await ctx.elicit("first", { message: "First?", schema });
      const name = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
      const second = await ctx.elicit("second", { message: "Second?", schema: name });
      return JSON.stringify([first.action, second.action]);
    },
  });
  const refuse = tool({
    name: "refuse",
    run: async (_input, ctx) => {
      const { action } = await ctx.elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } });
      if (action !== "accept") throw new McpError(-32000, "It was not allowed");
      return "Done.";
    },
  });
  const handlers = [ask, refuse, tool({ name: "hi", run: () => "Hi." })];
  const { fetch } = createServer({ name: "s", version: "1.0.0", handlers });
  await using server = await serve(fetch);
  await using old = await serve(forgetModern(fetch));
  const first = sentence("First?");
  const second = sentence("Second?");
  const sure = sentence("Sure?");
  const cases: readonly (readonly [words: readonly string[], expected: Outcome])[] = [
    [["hi", ...answer("sure=yes")], [0, "Hi.\n", sentence("--answer sure=…")]],
    [["hi", ...answer("decline")], [0, "Hi.\n", sentence("--answer decline")]],
    [["hi", ...answer("accept", "a=1")], [0, "Hi.\n", sentence("--answer a=… --answer accept")]],
    [["ask", ...answer("age=200", "name=abc")], [
      2,
      '["cancel","accept"]\n',
      `${first}\n${second}\n${sentence("age=200", 150)}`,
    ]],
    [["ask", ...answer("age=20", "naem=abc")], [
      2,
      '["accept","cancel"]\n',
      `${first}\n${second}\n${sentence("naem", "name")}`,
    ]],
    [["ask", ...answer("age=20", "name=abc")], [0, '["accept","accept"]\n', `${first}\n${second}`]],
    [["refuse", ...answer("accept")], [0, "Done.\n", sure]],
    [["refuse", ...answer("decline")], [1, "", `${sure}\n${sentence("It was not allowed", "-32000")}`]],
    [["refuse"], [2, "", `${sure}\n${sentence("It was not allowed", "-32000")}\n${sentence("--answer accept")}`]],
    [["hi", ...answer("decline", "a=1")], [2, "", sentence("--answer decline", "--answer a=…")]],
  ];
  const tried = await Promise.all(
    cases.flatMap(([words, expected]) =>
      [server, old].map(async ({ url }) => ({ finished: await runHere(["call", url, ...words]), expected }))
    ),
  );
  for (const { finished, expected } of tried) assertFinished(finished, expected);
});

for (const { name, program } of runtimes) {
  const test = (text: string, fn: () => Promise<void>) => testProcesses(`${name}: ${text}`, fn);

  test("--output saves bytes, a pipe gets the unchanged text, and a terminal gets neither bytes nor control characters", async () => {
    await using server = await serve(createDesk().fetch);
    const folder = await mkdtemp(`${tmpdir()}/mcp-call-`);
    const file = `${folder}/out.png`;
    const [shown, piped, plain, written, refused, whole] = await Promise.all([
      run([...program, "call", server.url, "show", "--output", file]),
      run([...program, "read", server.url, "desk://note"]),
      run(inTerminal([...program, "read", server.url, "desk://note"])),
      run([...program, "read", server.url, "desk://picture", "--output", `${file}.2`]),
      run(inTerminal([...program, "read", server.url, "desk://picture"])),
      run([...program, "call", server.url, "show", "--json"]),
    ]);
    assertFinished(shown, [0, `text ${EVIL}\n${sentence("image/png", 70)}\n`, sentence(file, 70)]);
    assertEquals((await readFile(file)).toString("base64"), PIXEL);
    assertEquals(piped.stdout, `note ${EVIL}\n`);
    assertEquals([plain.code, plain.stdout], [0, `note ${ESCAPED}\r\n`]);
    assertEquals([written.code, (await readFile(`${file}.2`)).toString("base64")], [0, PIXEL]);
    assertEquals(refused.code, 2);
    assertStringIncludes(refused.stdout, `${sentence("desk://picture", "image/png", 70, "--output FILE")}\r\n`);
    assertEquals(JSON.parse(whole.stdout).content[1].data, PIXEL);
    await rm(folder, { recursive: true });
  });

  test("for servers of both eras, the terminal asks for each field of a form until the answer is valid", async () => {
    const { fetch } = createDesk();
    await using server = await serve(fetch);
    await using old = await serve(forgetModern(fetch));
    const ask = (url: string, input: string) => run(inTerminal([...program, "call", url, "form"]), { input });
    const [filled, again, declined, ended, given, listed] = await Promise.all([
      ask(server.url, "A\nAda\n\nblue\n2\nmaps,1\ny\n"),
      ask(old.url, "Ada\nold\n40\nred\n\nmaybe\nno\n"),
      ask(server.url, "Ada\n:decline\n"),
      ask(old.url, ""),
      run([...program, "call", server.url, "form", ...answer("name=Ada", "colour=green", "sure=n")]),
      run([
        ...program,
        "call",
        server.url,
        "form",
        ...answer("name=Ada", "colour=2", "sure=n", "likes=maps", "likes=1"),
      ]),
    ]);
    const accepted = (content: object) => ({ action: "accept", content });
    assertEquals(
      toLast(filled),
      accepted({ name: "Ada", age: 36, colour: "#0f0", likes: ["maps", "poems"], sure: true }),
    );
    assertStringIncludes(filled.stdout, `${sentence(server.url)}Who are you?${ESCAPED}\r\n`);
    assertStringIncludes(filled.stdout, `\n${sentence("Your name", 2)}\r`);
    assertStringIncludes(filled.stdout, `\n  1  Red (#f00)\r\n  2  Green (#0f0)\r\n${sentence("colour")}: `);
    assertEquals(toLast(again), accepted({ name: "Ada", age: 40, colour: "#f00", sure: false }));
    assertStringIncludes(again.stdout, `\n${sentence("Your name", "age", 0, "[36]")}\r`);
    assertEquals(toLast(declined), { action: "decline" });
    assertEquals(toLast(ended), { action: "cancel" });
    assertEquals(toLast(given), accepted({ name: "Ada", age: 36, colour: "#0f0", sure: false }));
    assertEquals(
      toLast(listed),
      accepted({ name: "Ada", age: 36, colour: "#0f0", likes: ["maps", "poems"], sure: false }),
    );
  });

  test("for servers of both eras, a question without a valid answer is cancelled, and the exit code is 2", async () => {
    const { fetch } = createDesk();
    await using server = await serve(fetch);
    await using old = await serve(forgetModern(fetch));
    const cancelled = { action: "cancel" };
    const cases: readonly (readonly [answers: readonly string[], stdout: object, problems: readonly string[]])[] = [
      [["name=A", "colour=green", "sure=n"], cancelled, [sentence("name=A", 2)]],
      [["name=Ada", "colour=pink", "sure=n"], cancelled, [sentence("colour=pink", "#f00 (Red), #0f0 (Green)")]],
      [["name=Ada", "age=old", "sure=perhaps", "likes=maps", "likes=war"], cancelled, [
        sentence("age=old", 0),
        sentence("likes=maps,war", "poems, maps"),
        sentence("sure=perhaps"),
      ]],
      [["name=Ada", "age=-1", "colour=2", "sure=n"], cancelled, [sentence("age=-1", 0)]],
      [["accept", "age=old"], cancelled, [sentence("age=old", 0)]],
      [["name=Ada", "name=Bob", "colour=2", "sure=n"], cancelled, [sentence("name=Ada,Bob", "--answer")]],
      [["name=Ada", "color=green", "sure=n"], cancelled, [sentence("color", "colour")]],
      [
        ["name=Ada", "colour=2", "sure=n", "something=else", "x=1"],
        { action: "accept", content: { name: "Ada", age: 36, colour: "#0f0", sure: false } },
        [
          sentence("something", "name, age, colour, likes, sure"),
          sentence("x:", "name, age, colour, likes, sure"),
        ],
      ],
      [["name=Ada"], cancelled, [sentence("colour, sure", "--answer colour=… --answer sure=…")]],
      [["accept", "name=Ada", "sure=y"], cancelled, [sentence("colour", "--answer colour=…")]],
      [[], cancelled, [
        sentence("name, colour, sure", "--answer name=… --answer colour=… --answer sure=…"),
      ]],
    ];
    const tried = await Promise.all(
      cases.map(([answers], i) =>
        run([...program, "call", i % 2 ? old.url : server.url, "form", ...answer(...answers)])
      ),
    );
    tried.forEach(({ code, stdout, stderr }, i) => {
      assertEquals([code, JSON.parse(stdout)], [2, cases[i][1]], stderr);
      const [, text] = stderr.split(`Who are you?${ESCAPED}\n`);
      assertEquals(withoutHint(text), cases[i][2].join("\n"));
      assertMatch(text, /\n\n.* call --help\n$/);
    });
    // The terminal asks only for the fields without an --answer.
    const [prompted, unasked] = await Promise.all([
      run(inTerminal([...program, "call", old.url, "form", ...answer("name=A", "colour=2", "sure=y")]), {
        input: "Ada\n\n\n",
      }),
      run(inTerminal([...program, "call", server.url, "form", ...answer("accept", "colour=2", "sure=y")])),
    ]);
    assertEquals(toLast(prompted), { action: "accept", content: { name: "Ada", age: 36, colour: "#0f0", sure: true } });
    assertStringIncludes(prompted.stdout, `\n${sentence("name=A", 2)}\r`);
    assertEquals(unasked.code, 2);
    assertStringIncludes(unasked.stdout, `\n${sentence("name", "--answer name=…")}\r\n\r\n`);
  });

  test("the first Ctrl-C cancels the call on the server, and a terminal shows the progress of the call", async () => {
    const cancel = async (wrap: (fetch: Server["fetch"]) => Parameters<typeof serve>[0]) => {
      const cancelled = Promise.withResolvers<void>();
      await using server = await serve(wrap(createDesk((event) => event === "cancelled" && cancelled.resolve()).fetch));
      await using calling = await start([...program, "call", server.url, "wait"]);
      await calling.waitFor(/it takes time/);
      calling.kill("SIGINT");
      const { code, stdout, stderr } = await calling.finished;
      assertEquals([code, stdout, stderr], [130, "", `warning clock: it takes time${ESCAPED}\n`]);
      await cancelled.promise;
    };
    await using server = await serve(createDesk().fetch);
    const { stdout } = await run(inTerminal([...program, "call", server.url, "wait", "--timeout", "5", "--log=none"]));
    await Promise.all([cancel((fetch) => fetch), cancel(forgetModern)]);
    assertStringIncludes(
      stdout,
      `\r\x1b[K[######${".".repeat(18)}] 25 %  waiting${ESCAPED.slice(0, 18)}\r\x1b[K${
        sentence("5 s", "--timeout")
      }\r\n`,
    );
    assert(!stdout.includes("it takes time"));
  });
}

testProcesses("Deno: a call over HTTP needs only network permission", async () => {
  await using server = await serve(createDesk().fetch);
  const entry = `${root}mod.ts`;
  // Here, the CLI needs permission to read its own files. Loaded from a registry, it would not.
  const own = `--allow-read=${entry.replace(/mod\.ts$/, "src")}`;
  const words = ["deno", "run", "--no-prompt", own, "--allow-net=127.0.0.1", entry];
  const called = await run([...words, "call", server.url, "take", "text=a"]);
  assertEquals(called, { code: 0, stdout: '{"text":"a"}\n', stderr: "" });
  assertEquals((await run([...words, "inspect", server.url])).code, 0);
});

function answer(...answers: readonly string[]): string[] {
  return answers.flatMap((each) => ["--answer", each]);
}

/** Parses the JSON in the last line that a successful program printed. */
function toLast({ code, stdout, stderr }: Finished): unknown {
  assertEquals(code, 0, stdout + stderr);
  return JSON.parse(/(\{"action".*\})\s*$/.exec(stdout)?.[1] ?? stdout);
}

// `--answer` fills in forms. Every value either fits its form field or is refused.

const NAMES = ["name", "naem", "a b", "__proto__", "constructor", "\x1b[2J", "é", "x=y", "0", ""];
const TEXTS = [
  ...["", " ", "yes", "NO", "true", "1", "-1", "1e400", "1.5", "0x10", "NaN", "r", "Red", "RED, Green", "a,b", "2"],
  ...["2026-07-28", "a@b.c", "https://x/", "\x1b]0;owned\x07", "\u202e", "{}", "[1]", "x".repeat(5000), "__proto__"],
];
const CHOICES: readonly Params[] = [
  { enum: ["r", "g"] },
  { enum: ["1", "2", "a,b", " c ", "__proto__"], enumNames: ["one"] },
  { oneOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] },
  { enum: [1, null, {}] },
  { enum: [] },
  { oneOf: [1, { title: "x" }] },
];

function makeField({ pick, below }: Random): unknown {
  const choices = pick(CHOICES);
  return pick<unknown>([
    { type: "string", format: pick(["email", "uri", "date", "date-time", "other"]), minLength: below(3) },
    { type: "string", maxLength: below(9), title: pick(TEXTS), description: pick(TEXTS), default: pick(TEXTS) },
    { type: pick(["number", "integer"]), minimum: below(3) - 1, maximum: below(9) },
    { type: "boolean", default: "maybe" },
    { type: "string", ...choices },
    { type: "array", items: choices, minItems: below(3), maxItems: 1 + below(4) },
    { type: "array", items: 5 },
    { type: pick(["object", "null", ["string"]]) },
    {},
    7,
  ]);
}

function makeWords({ pick, below }: Random): string[] {
  const words = () => pick([() => `${pick(NAMES)}=${pick(TEXTS)}`, () => pick(["accept", "decline", "cancel"])])();
  return Array.from({ length: 1 + below(4) }, words);
}

const toArgs = (answer: readonly string[]) => ({ operands: [], flags: {}, all: { answer } });

Deno.test("an answer to a form either fits its field or is refused with an error that is one printable line", async () => {
  let filled = 0;
  let refused = 0;
  let lines = 0;
  for (let seed = 0; seed < 5000; seed++) {
    const draw = random(seed);
    const properties = Object.fromEntries(
      Array.from({ length: draw.below(5) }, () => [draw.pick(NAMES), makeField(draw)]),
    );
    const words = makeWords(draw);
    const shown = `seed ${seed}: ${JSON.stringify({ properties, words })}`;
    const answers = await readPresetAnswers(toArgs(words)).catch((reason) => {
      assert(
        reason instanceof CliError && /^Cannot \S.*; \S/.test(reason.message),
        shown,
      );
    });
    if (!answers) continue;
    const { content, errors } = fillFields(toFields({ properties }), answers);
    assertEquals(findFormMisfit({ properties }, content), undefined, shown);
    for (const name of Object.keys(content)) assert(answers.values.has(name), shown);
    for (const line of errors.values()) {
      assert(/^Cannot [^\p{Cc}\p{Cf}]*(; [^\p{Cc}\p{Cf}]+)$/u.test(line), `${shown}\n${line}`);
    }
    lines += errors.size;
    filled += Object.keys(content).length;
    if (errors.size) refused++;
  }
  assert(filled > 100 && refused > 300 && lines > 300, `${filled} filled, ${refused} refused, ${lines} lines`);
});

Deno.test("an answer can be any choice of a list, even a choice that contains a comma", async () => {
  const fields = toFields({
    properties: { tags: { type: "array", items: { enum: ["a,b", "c", "d"] } }, ["__proto__"]: { type: "string" } },
  });
  const fill = async (...words: readonly string[]) =>
    fillFields(fields, await readPresetAnswers(toArgs(words))).content;
  assertEquals(await fill("tags=a,b"), { tags: ["a,b"] });
  assertEquals(await fill("tags=c, d", "tags=a,b"), { tags: ["c", "d", "a,b"] });
  assertEquals(Object.entries(await fill("__proto__=x")), [["__proto__", "x"]]);
  await assertRejects(() => readPresetAnswers(toArgs(["accept", "cancel"])), CliError, sentence("accept", "cancel"));
  await assertRejects(
    () => readPresetAnswers(toArgs(["tags=c", "decline"])),
    CliError,
    sentence("decline", "--answer tags=…"),
  );
});

Deno.test("an answer can be the title of a choice", () => {
  const fields = toFields({
    properties: {
      old: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
      one: { type: "string", oneOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] },
      many: { type: "array", items: { anyOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] } },
    },
  });
  assertEquals(fields.map(({ read }) => read("green")), [{ value: "g" }, { value: "g" }, { value: ["g"] }]);
});

Deno.test("a field with a single allowed number is answered with the number", () => {
  const [field] = toFields({ properties: { version: { type: "integer", const: 2 } } });
  assertEquals(field.read("2"), { value: 2 });
});

// A handler that does not await its question is reported to the person who runs the server, in every command.

/** A server whose tool `remove` ignores the answer of the user, and whose tool `keep` does not. */
const source = `import { createServer, tool } from "@x/mcp";
const schema = { type: "object", properties: { ok: { type: "boolean", default: true } } };
const ask = (ctx) => ctx.elicit("sure", { message: "Remove everything?", schema });
export default createServer({ name: "files", version: "1", handlers: [
  tool({ name: "remove", run: (_input, ctx) => { ask(ctx); return "removed"; } }),
  tool({ name: "keep", run: async (_input, ctx) => (await ask(ctx)).action }),
] });
`;

/** Returns the lines about questions that a program printed. */
function toReports(stderr: string): string[] {
  return stderr.split("\n").filter((line) => line.includes("ctx.elicit"));
}

const report = sentence('ctx.elicit("sure")', 'tools/call "remove"');

Deno.test("mcp call prints a report about a question that the handler does not await", async () => {
  await withFiles({ "server.js": source }, async (cwd) => {
    const words = ["--answer", "accept"];
    const removed = await runHere(["call", "server.js", "remove", ...words], { cwd });
    assertEquals([removed.code, removed.stdout.trim()], [0, "removed"], removed.stderr);
    assertEquals(toReports(removed.stderr), [report]);
    const kept = await runHere(["call", "server.js", "keep", ...words], { cwd });
    assertEquals([kept.stdout.trim(), toReports(kept.stderr)], ["accept", []], kept.stderr);
  });
});

for (const { name, program } of runtimes) {
  testProcesses(`${name}: mcp serve prints one report about a question that the handler does not await`, async () => {
    await withFiles({ "server.js": source }, async (cwd) => {
      for (const revision of ["2026-07-28", "2025-11-25"] as const) {
        await using running = await start([...program, "server.js", "--http", "--port", "0"], { cwd });
        const [url] = await running.waitFor(/http:\/\/\S+\/mcp/);
        await using client = await connect(url, {
          revisions: [revision],
          onElicit: () => ({ action: "accept", content: { ok: true } }),
        });
        for (const tool of ["keep", "remove", "remove"]) await client.callTool(tool);
        await running.waitFor(/ctx\.elicit/);
        running.kill("SIGTERM");
        const { stderr } = await running.finished;
        assertEquals(toReports(stderr), [report], revision);
      }
    });
  });
}
