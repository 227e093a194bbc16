// Inputs that scripts and typing errors produce: empty values, contradictory options, misplaced arguments, and outputs
// that cannot be written. Each input is refused before the command has an effect.
import { assert, assertEquals } from "@std/assert";
import { writeFile } from "node:fs/promises";
import { createServer, type Handler, resource, tool } from "../../mod.ts";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runtimes } from "./runtimes.ts";
import { runHere } from "./run_here.ts";
import { run, start } from "../support/processes.ts";
import { inTerminal, serve } from "./servers.ts";
import { assertRefused } from "./refused.ts";

const source = `import { createServer, tool } from "@x/mcp";
const pathSchema = { type: "object", properties: { tenant: { type: "string" }, area: { type: "string" } } };
const where = tool({ name: "where", run: (_input, ctx) => JSON.stringify(ctx.pathParams(pathSchema)) });
export default createServer({ name: "s", version: "1.0.0", path: "/:tenant/:area/mcp", pathSchema, handlers: [where] });
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
const refused: readonly (readonly [words: readonly string[], message: string])[] = [
  [["call", "URL", "send", "--output", ""], sentence("--output VALUE")],
  [["call", "URL", "send", "--output="], sentence("--output VALUE")],
  [["call", "URL", "ask", "--answer", ""], sentence("--answer VALUE")],
  [["call", "URL", "ask", "--root", ""], sentence("--root VALUE")],
  [["s.ts", "--http", "--path", ""], sentence("--path VALUE")],
  [["s.ts", "--http", "--host", ""], sentence("--host VALUE")],
  [["install", "s.ts", "--client", "cursor", "--allow-net", ""], sentence("--allow-net VALUE")],
  [["call", "URL", "send", "--output", "notes"], sentence("notes")],
  [["call", "URL", "send", "--output", "gone/x"], sentence("gone/x")],
  [["read", "URL", "x://note", "--output", "."], sentence(" .:")],
  [["call", "URL", ""], sentence('""', "send, ask")],
  [["call", "URL", "send", "text@="], sentence("text@=", "text@=FILE")],
  [["call", "URL", "send", "text@=big.txt"], sentence("big.txt", "16 MiB")],
  [["call", "URL", "send", "box=no"], sentence("box=no", "{ k? }")],
  [["check", "--"], sentence("--", "check")],
  [["check", "--", "true"], sentence("-- true", "check")],
  [["new", "weather", "--", "x"], sentence("-- x", "new")],
  [["completions", "bash", "--", "x"], sentence("-- x", "completions")],
  [["install", "mcp.jsonc", "--client", "cursor", "--", "x"], sentence("-- x", "install")],
  [
    ["install", "s.ts", "--client", "cursor", "--allow-all", "--allow-none"],
    sentence("--allow-all", "--allow-none"),
  ],
  [
    ["install", "s.ts", "--client", "cursor", "--allow-none", "--allow-net", "x"],
    sentence("--allow-none", "--allow-net"),
  ],
  [["install", "mcp.jsonc", "--client", "goose", "--no-check", "--file", "bad.yaml"], sentence("bad.yaml")],
  [["s.ts", "--http", "--stdio"], sentence("--http", "--stdio")],
  [["Serve", "s.ts"], sentence("Serve", "serve?")],
  [["help", "chekc"], sentence("chekc", "check?")],
  [["notes/*.txt"], sentence("notes/*.txt", "notes/a.txt")],
  [["check", "/dev/null"], sentence("/dev/null")],
];

Deno.test("invalid inputs are refused before the command has an effect", async () => {
  const calls: string[] = [];
  await using server = await serve(createTarget(calls).fetch);
  await withFiles(files, async (cwd) => {
    await writeFile(`${cwd}/big.txt`, new Uint8Array(16 * 1024 * 1024 + 1).fill(120));
    const before = listNames(cwd);
    for (const [words, message] of refused) {
      await assertRefused(runHere(words.map((word) => word === "URL" ? server.url : word), { cwd }), message);
    }
    assertEquals([listNames(cwd), calls], [before, []]);
  });
});

Deno.test("--param can be repeated for a path with several parameters", async () => {
  await withFiles(files, async (cwd) => {
    const words = ["call", "two.ts", "where", "--param", "tenant=acme", "--param", "area=eu"];
    const called = await runHere(words, { cwd });
    assertEquals([called.code, called.stdout], [0, '{"tenant":"acme","area":"eu"}\n'], called.stderr);
    await assertRefused(runHere([...words, "--param", "area=us"], { cwd }), sentence("--param area=us"));
  });
});

Deno.test("unusual but unambiguous arguments are accepted", async () => {
  await using server = await serve(createTarget([]).fetch);
  await withFiles(files, async (cwd) => {
    const [version, spaced] = await Promise.all([
      runHere(["version"], { cwd }),
      runHere(["call", server.url, "ask", "--answer", " sure =yes"], { cwd }),
    ]);
    assertEquals([version.code, /^\d+\.\d+\.\d+\n$/.test(version.stdout)], [0, true], version.stderr);
    assertEquals([spaced.code, spaced.stdout], [0, '{"sure":true}\n'], spaced.stderr);
  });
});

for (const { name, program } of runtimes) {
  testProcesses(
    `${name}: a result that cannot be written is an error, unless the reader has closed the pipe`,
    async () => {
      await using server = await serve(createTarget([]).fetch);
      const toShell = (
        redirect: string,
      ) => ["sh", "-c", `"$@" ${redirect}`, "sh", ...program, "call", server.url, "send"];
      await assertRefused(run(toShell(">/dev/full")), sentence());
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
    await using server = await serve(createTarget([]).fetch);
    // On a slow machine, the signal may arrive while the command is still connecting, with the same outcome.
    const interrupted = ["sh", "-c", '(sleep 3; kill -INT $$) & exec "$@"', "sh", ...program];
    await using asking = await start(inTerminal([...interrupted, "call", server.url, "ask"]));
    const { code, stdout } = await asking.finished;
    assertEquals(code, 130, stdout);
    assert(stdout.endsWith("\r\n"), JSON.stringify(stdout.slice(-80)));
  });
}
