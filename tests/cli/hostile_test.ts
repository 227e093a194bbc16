// Broken and malicious config files and arguments, as processes.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { _meta, isNotDeno, listNames, toRequestLine } from "../support/command_line.ts";
import { runtimes } from "./runtimes.ts";
import { run } from "../support/processes.ts";

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
const broken: readonly (readonly [name: string, content: unknown, told: RegExp])[] = [
  ["unknown.jsonc", { tols: {} }, /unknown\.jsonc:1:2: tols: unknown key; did you mean tools\?/],
  ["proto.jsonc", '{"__proto__":{"name":"x"}}', /proto\.jsonc:1:2: __proto__ is a reserved name/],
  [
    "env.jsonc",
    tool(["echo", "${NOT_SET_HERE}"]),
    /env\.jsonc:1:\d+: tools\.it\.run\[1\]: the environment variable NOT_SET_HERE is not set/,
  ],
  ["ring.jsonc", { include: ["ring2.jsonc"] }, /ring2\.jsonc:1:13: include\[0\]: ring\.jsonc includes this file/],
  ["up.jsonc", { resources: [{ file: "../secret.md" }] }, /up\.jsonc:1:16: resources\[0\]\.file: it leads out of/],
  [
    "linked.jsonc",
    { resources: [{ file: "link" }] },
    /linked\.jsonc:1:16: .*link is a symbolic link that leads out of/,
  ],
  ["device.jsonc", { include: ["/dev/null"] }, /device\.jsonc:1:13: include\[0\]: \/dev\/null is not a regular file/],
  ["big.jsonc", " ".repeat(1024 * 1024 + 1), /big\.jsonc: it has more than 1048576 bytes/],
  ["deep.jsonc", "[".repeat(100_000), /deep\.jsonc: it is nested too deeply/],
  ["binary.jsonc", Uint8Array.of(123, 34, 255, 254, 0), /binary\.jsonc: it is not UTF-8 text/],
  ["cycle.jsonc", { modules: ["c.ts"] }, /Cannot load c\.ts: it threw an error while loading:\nReferenceError: Cannot/],
  [
    "/dev/zero",
    undefined,
    /Cannot serve \/dev\/zero: (it is neither a file nor a folder|there is no file \/dev\/zero); check the path/,
  ],
  ["$(touch owned).ts", undefined, /Cannot serve \$\(touch owned\)\.ts: there is no file/],
  ["", undefined, /Cannot use "": the target is empty; name a file or a folder/],
];

const beside = {
  "ring2.jsonc": '{"include":["ring.jsonc"]}',
  "c.ts": 'import d from "./d.ts"; export const c = 1; export default [d];',
  "d.ts": 'import { c } from "./c.ts"; export default c;',
  "wait.ts": 'export default (await import("./wait2.ts")).default;',
  "wait2.ts": 'export default (await import("./wait.ts")).default;',
};

for (const { name, program } of runtimes) {
  Deno.test({
    name: `${name}: a broken target is reported with its position, and is neither run nor printed`,
    ignore: isNotDeno,
    fn: () =>
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
        await Promise.all(tried.map(async ([file, , told]) => {
          const { code, stdout, stderr } = await run([...program, file], { cwd });
          assertEquals({ code, stdout }, { code: 2, stdout: "" }, `${file}: ${stderr}`);
          assertMatch(stderr, told);
          assert(!/Secret|node_modules|src\/cli/.test(stderr), stderr);
        }));
        // On Deno, the runtime itself reports a module that never finishes loading.
        const { code, stdout, stderr } = await run([...program, "wait.ts"], { cwd });
        assertEquals({ code, stdout }, { code: name === "deno" ? 1 : 2, stdout: "" });
        assertMatch(
          stderr,
          name === "deno" ? /never resolved/ : /^Cannot continue: the loaded modules wait for each other/,
        );
        await Deno.stat(`${cwd}/owned`).then(() => assert(false, "the broken target was run"), () => {});
      }),
  });

  Deno.test({
    name: `${name}: no shell interprets the arguments of calls, and paths cannot leave the folder`,
    ignore: isNotDeno,
    fn: () =>
      withFolder(async (cwd) => {
        const input = { properties: { a: { type: "string" } }, required: ["a"] };
        const config = {
          tools: { it: { description: "x", input, run: ["printf", "[%s]", "{{a}}"] } },
          resources: [{ folder: ".", tools: true }],
        };
        const file = "$(touch owned) 'a' \"b\".jsonc";
        await Deno.writeTextFile(`${cwd}/${file}`, JSON.stringify(config));
        await Deno.symlink("../secret.md", `${cwd}/link.md`);
        const words = ["; touch owned", "$(touch owned)", "`touch owned`", "| touch owned", "a\n touch owned"];
        const paths = ["../secret.md", "link.md", "/etc/passwd", "..%2fsecret.md", "a\0b"];
        const served = await run([...program, file], {
          cwd,
          input: [
            ...words.map((a, i) => toCall(i, "it", { a })),
            ...paths.map((path, i) => toCall(100 + i, "read", { path })),
          ].join(""),
        });
        assertEquals(served.code, 0, served.stderr);
        const answers = served.stdout.trim().split("\n").map((line) => JSON.parse(line));
        assertEquals(answers.length, words.length + paths.length);
        for (const { id, result } of answers) {
          if (id < 100) assertEquals(result.content[0].text, `[${words[id]}]`);
          else {assert(
              result.isError && /outside of the folder|no such file/.test(result.content[0].text),
              served.stdout,
            );}
        }
        assert(!served.stdout.includes("Secret"));
        // The printed command quotes the path for a shell.
        const installed = await run([...program, "install", file, "--client", "cursor", "--dry-run"], { cwd });
        assertEquals(installed.code, 0, installed.stderr);
        const [, shown] = /start the server with\n\n {2}(.+)\n/.exec(installed.stderr) ?? [];
        const pasted = await run(["sh", "-c", `printf '%s\\n' ${shown}`], { cwd });
        assertStringIncludes(pasted.stdout, `${cwd}/${file}\n`);
        assertEquals(listNames(cwd), [file, "link.md"].sort());
      }),
  });
}
