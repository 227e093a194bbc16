// Inputs that scripts and typing errors produce: empty values, contradictory options, misplaced arguments, and outputs
// that cannot be written. Each input is refused before the command has an effect.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { createServer, type Handler, resource, tool } from "../../mod.ts";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { run, start } from "../support/processes.ts";
import { inTerminal, serve } from "./servers.ts";

const source = `import { createServer, tool } from "@x/mcp";
const params = { type: "object", properties: { tenant: { type: "string" }, area: { type: "string" } } };
const where = tool({ name: "where", run: (_input, ctx) => JSON.stringify(ctx.route(params)) });
export default createServer({ name: "s", version: "1.0.0", path: "/:tenant/:area/mcp", params, handlers: [where] });
`;
const files = {
  "s.ts": `import { tool } from "@x/mcp";\nexport default [tool({ name: "hi", run: () => "Hi!" })];`,
  "two.ts": source,
  "mcp.jsonc": `{ "tools": { "t": { "description": "x", "run": ["true"] } } }`,
  "notes/a.txt": "not code ".repeat(10_000),
  "bad.yaml": "a: [",
};

function createTarget(calls: string[]) {
  const object = { type: "object", properties: { k: { type: "integer" } } } as const;
  const send = tool({
    name: "send",
    input: { type: "object", properties: { text: { type: "string" }, box: object } },
    run({ text }) {
      calls.push("send");
      return String(String(text).length);
    },
  });
  const ask = tool({
    name: "ask",
    run: async (_input, ctx) => {
      const schema = { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] };
      return JSON.stringify((await ctx.elicit("sure", { message: "Sure?", schema })).content ?? null);
    },
  });
  const note = resource({ uri: "x://note", name: "note", read: () => "A note." });
  const handlers: Handler[] = [send, ask, note];
  return createServer({ name: "target", version: "1.0.0", handlers });
}

// The test replaces URL with the URL of a running server.
const refused: readonly (readonly [words: readonly string[], message: RegExp])[] = [
  [["call", "URL", "send", "--output", ""], /^Cannot read --output: it needs a value; write --output VALUE\n/],
  [["call", "URL", "send", "--output="], /^Cannot read --output: it needs a value/],
  [["call", "URL", "ask", "--answer", ""], /^Cannot read --answer: it needs a value/],
  [["call", "URL", "ask", "--root", ""], /^Cannot read --root: it needs a value/],
  [["s.ts", "--http", "--path", ""], /^Cannot read --path: it needs a value/],
  [["s.ts", "--http", "--host", ""], /^Cannot read --host: it needs a value/],
  [["install", "s.ts", "--client", "cursor", "--allow-net", ""], /^Cannot read --allow-net: it needs a value/],
  [["call", "URL", "send", "--output", "notes"], /^Cannot write notes: it is a folder; name a file in it\n/],
  [
    ["call", "URL", "send", "--output", "gone/x"],
    /^Cannot write gone\/x: there is no folder .*gone; create it first\n/,
  ],
  [["read", "URL", "x://note", "--output", "."], /^Cannot write \.: it is a folder; name a file in it\n/],
  [["call", "URL", ""], /^Cannot call "": the server has no such tool; the known names are send, ask\n/],
  [["call", "URL", "send", "text@="], /^Cannot read text@=: it names no file; write text@=FILE\n/],
  [["call", "URL", "send", "text@=big.txt"], /^Cannot read big\.txt: it has more than 16 MiB; send a smaller file\n/],
  [["call", "URL", "send", "box=no"], /^Cannot use box=no: expected a JSON object \{ k\? \}\n/],
  [["check", "--"], /^Cannot use --: check takes no arguments after --; remove them\n/],
  [["check", "--", "true"], /^Cannot use -- true: check takes no arguments after --; remove them\n/],
  [["new", "weather", "--", "x"], /^Cannot use -- x: new takes no arguments after --; remove them\n/],
  [["completions", "bash", "--", "x"], /^Cannot use -- x: completions takes no arguments after --/],
  [["install", "mcp.jsonc", "--client", "cursor", "--", "x"], /^Cannot use -- x: install takes no arguments/],
  [
    ["install", "s.ts", "--client", "cursor", "--allow-all", "--allow-none"],
    /^Cannot use --allow-all with --allow-none: the options contradict each other; remove one of the two\n/,
  ],
  [
    ["install", "s.ts", "--client", "cursor", "--allow-none", "--allow-net", "x"],
    /^Cannot use --allow-none with --allow-net: the options contradict each other; remove one of the two\n/,
  ],
  [
    ["install", "mcp.jsonc", "--client", "goose", "--no-check", "--file", "bad.yaml"],
    /^Cannot .*[^:]; fix the file by hand$/m,
  ],
  [
    ["s.ts", "--http", "--stdio"],
    /^Cannot use --http with --stdio: a server uses one transport; remove one of the two options\n/,
  ],
  [["Serve", "s.ts"], /^Cannot run Serve: there is no such command, and no such file; did you mean serve\?\n/],
  [["help", "chekc"], /^Cannot print the help of chekc: there is no such command; did you mean check\?\n/],
  [
    ["notes/*.txt"],
    /^Cannot serve notes\/\*\.txt: notes\/a\.txt is not a JavaScript or TypeScript file, or is a test, or its name begins with _; write/,
  ],
  [["check", "/dev/null"], /^Cannot serve \/dev\/null: it is neither a file nor a folder; check the path\n/],
];

for (const { name, program } of runtimes) {
  testProcesses(`${name}: invalid inputs are refused before the command has an effect`, async () => {
    const calls: string[] = [];
    await using server = serve(createTarget(calls).fetch);
    await withFiles(files, async (cwd) => {
      await Deno.writeFile(`${cwd}/big.txt`, new Uint8Array(16 * 1024 * 1024 + 1).fill(120));
      const before = listNames(cwd);
      const failures: string[] = [];
      for (let i = 0; i < refused.length; i += 4) {
        await Promise.all(
          refused.slice(i, i + 4).map(async ([words, message]) => {
            const args = words.map((word) => word === "URL" ? server.url : word);
            const { code, stdout, stderr } = await run([...program, ...args], { cwd });
            if (code === 2 && stdout === "" && message.test(stderr)) return;
            failures.push(`${words.join(" ")} -> ${code} ${stdout.slice(0, 300)} ${stderr.slice(0, 500)}`);
          }),
        );
      }
      assert(!failures.length, failures.join("\n"));
      assertEquals([listNames(cwd), calls], [before, []]);
    });
  });

  testProcesses(`${name}: --param can be repeated for a path with several parameters`, async () => {
    await withFiles(files, async (cwd) => {
      const words = ["call", "two.ts", "where", "--param", "tenant=acme", "--param", "area=eu"];
      const called = await run([...program, ...words], { cwd });
      assertEquals([called.code, called.stdout], [0, '{"tenant":"acme","area":"eu"}\n'], called.stderr);
      const twice = await run([...program, ...words, "--param", "area=us"], { cwd });
      assertEquals(twice.code, 2);
      assertMatch(twice.stderr, /^Cannot read --param area=us: area is given twice; remove one of the two options\n/);
    });
  });

  testProcesses(`${name}: unusual but unambiguous arguments are accepted`, async () => {
    await using server = serve(createTarget([]).fetch);
    await withFiles(files, async (cwd) => {
      const [version, spaced] = await Promise.all([
        run([...program, "version"], { cwd }),
        run([...program, "call", server.url, "ask", "--answer", " sure =yes"], { cwd }),
      ]);
      assertEquals([version.code, /^\d+\.\d+\.\d+\n$/.test(version.stdout)], [0, true], version.stderr);
      assertEquals([spaced.code, spaced.stdout], [0, '{"sure":true}\n'], spaced.stderr);
    });
  });

  testProcesses(
    `${name}: a result that cannot be written is an error, unless the reader has closed the pipe`,
    async () => {
      await using server = serve(createTarget([]).fetch);
      const toShell = (
        redirect: string,
      ) => ["sh", "-c", `"$@" ${redirect}`, "sh", ...program, "call", server.url, "send"];
      const full = await run(toShell(">/dev/full"));
      assertEquals(full.code, 2);
      assertMatch(full.stderr, /^Cannot write the result: .*; check where standard output goes\n$/);
      const closed = await run([
        "bash",
        "-c",
        '"$@" | true; exit ${PIPESTATUS[0]}',
        "sh",
        ...program,
        "read",
        server.url,
      ]);
      assert([0, 141].includes(closed.code) && closed.stderr === "", `${closed.code} ${closed.stderr}`);
    },
  );

  testProcesses(`${name}: after Ctrl-C at a question, the shell prompt starts on a new line`, async () => {
    await using server = serve(createTarget([]).fetch);
    // On a slow machine, the signal may arrive while the command is still connecting, with the same outcome.
    const interrupted = ["sh", "-c", '(sleep 3; kill -INT $$) & exec "$@"', "sh", ...program];
    await using asking = await start(inTerminal([...interrupted, "call", server.url, "ask"]));
    const { code, stdout } = await asking.finished;
    assertEquals(code, 130, stdout);
    assert(stdout.endsWith("\r\n"), JSON.stringify(stdout.slice(-80)));
  });
}
