// Broken and malicious config files and arguments, as processes.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { _meta, listNames, testProcesses, toRequestLine } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runtimes } from "./runtimes.ts";
import { ask, run } from "../support/processes.ts";

function toCall(id: number, name: string, args: Record<string, unknown>): string {
  return toRequestLine("tools/call", { name, arguments: args, _meta }, id);
}

/** Runs `use` in a folder next to a secret file. The folder's path contains no symbolic links. */
async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const outside = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-hostile-" }));
  try {
    await Deno.mkdir(`${outside}/in`);
    await Deno.writeTextFile(`${outside}/secret.md`, "Secret");
    await use(`${outside}/in`);
  } finally {
    await Deno.remove(outside, { recursive: true });
  }
}

const tool = (run: readonly string[]) => ({ tools: { it: { description: "x", run } } });

/** Files, their content, and the error that is printed when the file is served. */
const broken: readonly (readonly [name: string, content: unknown, told: string])[] = [
  ["unknown.jsonc", { tols: {} }, sentence("unknown.jsonc:1:2:", "tols", "tools?")],
  ["proto.jsonc", '{"__proto__":{"name":"x"}}', sentence("proto.jsonc:1:2:", "__proto__")],
  ["env.jsonc", tool(["echo", "${NOT_SET_HERE}"]), sentence("env.jsonc:1:", "tools.it.run[1]", "NOT_SET_HERE")],
  ["ring.jsonc", { include: ["ring2.jsonc"] }, sentence("ring2.jsonc:1:13:", "include[0]", " ring.jsonc")],
  ["up.jsonc", { resources: [{ file: "../secret.md" }] }, sentence("up.jsonc:1:16:", "resources[0].file")],
  ["linked.jsonc", { resources: [{ file: "link" }] }, sentence("linked.jsonc:1:16:", "/link")],
  ["device.jsonc", { include: ["/dev/null"] }, sentence("device.jsonc:1:13:", "include[0]", "/dev/null")],
  ["big.jsonc", " ".repeat(1024 * 1024 + 1), sentence("big.jsonc:", "1048576")],
  ["deep.jsonc", "[".repeat(100_000), sentence("deep.jsonc:")],
  ["binary.jsonc", Uint8Array.of(123, 34, 255, 254, 0), sentence("binary.jsonc:", "UTF-8")],
  ["cycle.jsonc", { modules: ["c.ts"] }, `${sentence("c.ts")}\nReferenceError: Cannot`],
  ["/dev/zero", undefined, sentence("/dev/zero")],
  ["$(touch owned).ts", undefined, sentence("$(touch owned).ts")],
  ["", undefined, sentence('""')],
];

const beside = {
  "ring2.jsonc": '{"include":["ring.jsonc"]}',
  "c.ts": 'import d from "./d.ts"; export const c = 1; export default [d];',
  "d.ts": 'import { c } from "./c.ts"; export default c;',
  "wait.ts": 'export default (await import("./wait2.ts")).default;',
  "wait2.ts": 'export default (await import("./wait.ts")).default;',
};

for (const { name, program } of runtimes) {
  testProcesses(
    `${name}: a broken target is reported with its position, and is neither run nor printed`,
    () =>
      withFolder(async (cwd) => {
        await Deno.symlink("../secret.md", `${cwd}/link`);
        for (const [file, content] of [...broken, ...Object.entries(beside)]) {
          if (content instanceof Uint8Array) await Deno.writeFile(`${cwd}/${file}`, content);
          else if (content !== undefined) {
            const text = typeof content === "string" ? content : JSON.stringify(content);
            await Deno.writeTextFile(`${cwd}/${file}`, text);
          }
        }
        // Both runtimes read config files with the same code, so Deno, which is slower, runs fewer cases.
        const tried = name === "bun"
          ? broken
          : broken.filter(([file]) => ["linked.jsonc", "cycle.jsonc"].includes(file));
        const finished = await Promise.all(tried.map(([file]) => run([...program, file], { cwd })));
        for (const [at, [file, , told]] of tried.entries()) {
          const { code, stdout, stderr } = finished[at];
          assertEquals({ code, stdout }, { code: 2, stdout: "" }, `${file}: ${stderr}`);
          assertStringIncludes(stderr, told);
          assert(!/Secret|node_modules|src\/cli/.test(stderr), stderr);
        }
        // On Deno, the runtime itself reports a module that never finishes loading.
        const { code, stdout, stderr } = await run([...program, "wait.ts"], { cwd });
        assertEquals({ code, stdout }, { code: name === "deno" ? 1 : 2, stdout: "" });
        assertStringIncludes(stderr, name === "deno" ? "never resolved" : sentence());
        await Deno.stat(`${cwd}/owned`).then(() => assert(false, "the broken target was run"), () => {});
      }),
  );

  testProcesses(
    `${name}: no shell interprets the arguments of calls, and paths cannot leave the folder`,
    () =>
      withFolder(async (cwd) => {
        const input = { properties: { a: { type: "string" } }, required: ["a"] };
        const config = {
          tools: { it: { description: "x", input, run: ["printf", "[%s]", "{{a}}"], unsafe: ["a"] } },
          resources: [{ folder: ".", tools: true }],
        };
        const file = "$(touch owned) 'a' \"b\".jsonc";
        await Deno.writeTextFile(`${cwd}/${file}`, JSON.stringify(config));
        await Deno.symlink("../secret.md", `${cwd}/link.md`);
        const words = ["; touch owned", "$(touch owned)", "`touch owned`", "| touch owned", "a\n touch owned"];
        const paths = ["../secret.md", "link.md", "/etc/passwd", "..%2fsecret.md", "a\0b"];
        const served = await ask([...program, file], {
          cwd,
          input: [
            ...words.map((a, i) => toCall(i, "it", { a })),
            ...paths.map((path, i) => toCall(100 + i, "read", { path })),
          ].join(""),
        });
        assertEquals(served.code, 0, served.stderr);
        const answers = served.stdout.trim().split("\n").map((line) => JSON.parse(line)).sort((a, b) => a.id - b.id);
        assertEquals(answers.length, words.length + paths.length);
        for (const { id, result } of answers) {
          const { text } = result.content[0];
          if (id < 100) assertEquals(text, `[${words[id]}]`);
          else assertEquals([result.isError, text], [true, sentence()], served.stdout);
        }
        assert(!served.stdout.includes("Secret"));
        // The printed command quotes the path for a shell.
        const installed = await run([...program, "install", file, "--client", "cursor", "--dry-run"], { cwd });
        assertEquals(installed.code, 0, installed.stderr);
        const [, shown] = /^ {2}(.+)\n/m.exec(installed.stderr) ?? [];
        const pasted = await run(["sh", "-c", `printf '%s\\n' ${shown}`], { cwd });
        assertStringIncludes(pasted.stdout, `${cwd}/${file}\n`);
        assertEquals(listNames(cwd), [file, "link.md"].sort());
      }),
  );
}
