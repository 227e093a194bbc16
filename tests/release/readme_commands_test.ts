// The commands that README.md shows, run as it shows them: its files in a folder, `mcp` as this project's own.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { root, start } from "../support/processes.ts";

const ignore = typeof Deno === "undefined"; // Deno starts the processes

interface Block {
  /** The file that the line before it names. */
  readonly file?: string;
  readonly language: string;
  readonly text: string;
}

interface Shown {
  readonly command: string;
  readonly output: string;
}

function readBlocks(markdown: string): readonly Block[] {
  const blocks = markdown.matchAll(/(?:`([\w./-]+)`:\n\n)?^```(\w+)[^\n]*\n([^]*?)^```$/gm);
  return [...blocks].map(([, file, language, text]) => ({ file, language, text }));
}

/** The commands of a block behind `$`, each with what it prints. */
function readShown(text: string): readonly Shown[] {
  return text.split(/^\$ /m).slice(1).map((part) => {
    const [command, ...lines] = part.split("\n");
    return { command, output: lines.join("\n").trim() };
  });
}

/** What a command prints about a server at the address that it names; how long that took is told as `output` tells it. */
async function runAgainst(command: string, cwd: string, output: string): Promise<string> {
  const [, shown] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(command) ?? [];
  const program = ["deno", "run", "-A", `${root}mod.ts`];
  await using server = await start([...program, "mcp.jsonc", "--http", "--port", "0"], { cwd });
  const [, address] = await server.waitFor(/at (http:\/\/[\d.:]+)/);
  const words = command.replace(shown, address).split(" ").slice(1);
  await using process = await start([...program, ...words], { cwd, input: "" });
  const { code, stdout, stderr } = await process.finished;
  assertEquals(code, output.includes("problem  ") ? 1 : 0, stderr);
  const times = output.match(/\d+ ms/g) ?? [];
  return stdout.trim().replaceAll(address.slice(7), shown.slice(7)).replace(/\d+ ms/g, (ms) => times.shift() ?? ms);
}

/** What a command prints. One that serves is ended when it has said where; the port is any, told as the one that is shown. */
async function run(command: string, cwd: string): Promise<string> {
  const isServing = command.includes("--http");
  const line = command.replace(/--port \d+/, "--port 0");
  const shell = `mcp() { deno run -A ${root}mod.ts "$@"; }\n${
    isServing ? `exec ${line.replace("mcp", `deno run -A ${root}mod.ts`)}` : line
  }`;
  await using process = await start(["sh", "-c", shell], isServing ? { cwd } : { cwd, input: "" });
  if (!isServing) {
    const { code, stdout, stderr } = await process.finished;
    assertEquals(code, 0, stderr);
    return stdout.trim();
  }
  const [said] = await process.waitFor(/Serving .*\n/);
  process.kill("SIGTERM");
  await process.finished;
  const [, port] = /--port (\d+)/.exec(command) ?? [];
  return said.trim().replace(/:\d+\//, `:${port}/`);
}

Deno.test({
  name: "the commands in README.md do what it says",
  ignore,
  async fn(t) {
    const blocks = readBlocks(await Deno.readTextFile(`${root}README.md`));
    const home = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-readme-" }));
    const folder = `${home}/project`;
    try {
      await Deno.mkdir(`${folder}/docs`, { recursive: true });
      await Deno.writeTextFile(`${folder}/docs/style.md`, "# Style\n");
      for (const { file, text } of blocks) {
        if (file === undefined) continue;
        await Deno.mkdir(`${folder}/${file}`.replace(/\/[^/]*$/, ""), { recursive: true });
        await Deno.writeTextFile(`${folder}/${file}`, text);
      }
      const shown = blocks.filter(({ language }) => language === "console").flatMap(({ text }) => readShown(text));
      const named = new Set(shown.map(({ command }) => /^mcp (\w+)/.exec(command)?.[1] ?? "serve"));
      for (
        const name of ["call", "check", "completions", "doctor", "install", "inspect", "new", "prompt", "read", "serve"]
      ) {
        assertStringIncludes([...named].join(), name);
      }
      for (const { command, output } of shown) {
        await t.step(command, async () => {
          const isAsking = command.startsWith("mcp doctor");
          const printed = isAsking ? await runAgainst(command, folder, output) : await run(command, folder);
          assertEquals(
            // From a registry, the command line needs no permission to read its own files.
            printed.replaceAll(folder, "/home/me/project").replaceAll(`,${root}src`, "").replaceAll(`${root}src,`, "")
              .replaceAll(`${root}mod.ts`, "jsr:@x/mcp"),
            output,
          );
        });
      }
    } finally {
      await Deno.remove(home, { recursive: true });
    }
  },
});
