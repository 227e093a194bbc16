// Runs the commands in the documentation as shown, in a folder with the page's files and on both runtimes. The command
// `mcp` is this project's own CLI.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { root, type Running, start } from "../support/processes.ts";
import { isTested } from "../support/runtimes.ts";
import { type Page, readPages, writeFiles } from "./pages.ts";
import config from "../../deno.json" with { type: "json" };

const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of both runtimes.

const runtimes = {
  deno: `deno run -A ${root}mod.ts`,
  bun: `bun ${root}mod.ts`,
} as const;

/** The package under the names that a page's files import. On Deno, a served file uses this project's import map. */
const paths = Object.fromEntries(
  Object.entries(config.exports).map(([name, file]) => [`@x/mcp${name.slice(1)}`, [root + file.slice(2)]]),
);

interface Shown {
  readonly command: string;
  readonly output: string;
}

/** Returns the commands in a block, which follow `$`, each with its output. */
function readShown(text: string): readonly Shown[] {
  return text.split(/^\$ /m).slice(1).map((part) => {
    const [command, ...lines] = part.split("\n");
    return { command, output: lines.join("\n").trimEnd() };
  });
}

/** Runs the commands of one page, with free ports in place of the page's ports. */
class Shell implements AsyncDisposable {
  readonly #cwd: string;
  readonly #program: string;
  /** The addresses on the page, and the address that is really served for each. */
  readonly #addresses = new Map<string, string>();
  readonly #background: Running[] = [];

  constructor(cwd: string, program: string) {
    this.#cwd = cwd;
    this.#program = program;
  }

  /** Runs a command. Returns its output as the page would show it. */
  async run({ command, output }: Shown): Promise<string> {
    const isServer = /^mcp\b.* --http\b/.test(command);
    const printed = isServer ? await this.#serve(command) : await this.#finish(command);
    return this.#normalize(printed, output);
  }

  /**
   * Starts a server. The server is stopped when it has printed its address. With `&`, the server is stopped at the end
   * of the block.
   */
  async #serve(command: string): Promise<string> {
    const line = command.replace(/--port \d+/, "--port 0").replace(/ &$/, "").replace(/^mcp/, `exec ${this.#program}`);
    const server = await start(["sh", "-c", line], { cwd: this.#cwd });
    this.#background.push(server);
    const [printed, address] = await server.waitFor(/.* http:\/\/([\d.:]+).*\n/);
    const [, port = "3000"] = /--port (\d+)/.exec(command) ?? [];
    this.#addresses.set(`127.0.0.1:${port}`, address);
    if (!command.endsWith(" &")) await this.stop();
    return command.endsWith(" &") ? "" : printed;
  }

  async #finish(command: string): Promise<string> {
    let line = command;
    for (const [shown, address] of this.#addresses) line = line.replaceAll(shown, address);
    const script = `mcp() { ${this.#program} "$@"; }\n${line}`;
    await using process = await start(["sh", "-c", script], { cwd: this.#cwd, input: "" });
    const { code, stdout, stderr } = await process.finished;
    // Messages about package downloads are not part of a command's output.
    return code === 0 ? stdout : stdout + stderr.replace(/^Download .*\n/gm, "");
  }

  /** Replaces values that differ between machines with the values on the page. */
  #normalize(printed: string, output: string): string {
    let text = printed.trimEnd();
    for (const [shown, address] of this.#addresses) text = text.replaceAll(address, shown);
    const times = output.match(/\d+ ms/g) ?? [];
    // If the CLI is installed from a registry, it needs no permission to read its own files.
    return text.replace(/\d+ ms/g, (ms) => times.shift() ?? ms)
      .replaceAll(this.#cwd, "/home/me/project").replaceAll(`,${root}src`, "").replaceAll(`${root}src,`, "")
      .replaceAll(`${root}mod.ts`, "jsr:@x/mcp");
  }

  /** Stops the servers in the background. */
  async stop(): Promise<void> {
    for (const server of this.#background.splice(0)) {
      server.kill("SIGTERM");
      await server.finished;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

async function runPage(t: Deno.TestContext, page: Page, runtime: keyof typeof runtimes): Promise<void> {
  const home = await Deno.realPath(await Deno.makeTempDir({ prefix: "mcp-commands-" }));
  const folder = `${home}/project`;
  try {
    await writeFiles(page, folder);
    await Deno.writeTextFile(`${home}/tsconfig.json`, JSON.stringify({ compilerOptions: { paths } }));
    const imports = Object.fromEntries(Object.entries(paths).map(([name, [path]]) => [name, path]));
    await Deno.writeTextFile(`${home}/deno.json`, JSON.stringify({ imports }));
    for (const { language, text } of page.blocks) {
      if (language !== "console") continue;
      await using shell = new Shell(folder, runtimes[runtime]);
      for (const shown of readShown(text)) {
        // A block that names a runtime is only for this runtime.
        if (runtime === "bun" && /\bdeno\b/i.test(shown.command + shown.output)) continue;
        await t.step(shown.command, async () => assertEquals(await shell.run(shown), shown.output));
      }
    }
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

for (const runtime of ["deno", "bun"] as const) {
  Deno.test({
    name: `${runtime}: the commands in the documentation print the documented output`,
    ignore: ignore || !isTested(runtime),
    async fn(t) {
      for (const page of await readPages()) {
        if (page.blocks.some(({ language }) => language === "console")) {
          await t.step(page.path, (t) => runPage(t, page, runtime));
        }
      }
    },
  });
}

Deno.test({
  name: "the documentation shows every command",
  ignore,
  async fn() {
    const blocks = (await readPages()).flatMap(({ blocks }) => blocks.filter(({ language }) => language === "console"));
    const shown = blocks.flatMap(({ text }) => readShown(text)).map(({ command }) => command);
    const named = new Set(shown.map((command) => /^mcp (\w+)/.exec(command)?.[1] ?? "serve"));
    for (
      const name of [
        "call",
        "check",
        "completions",
        "doctor",
        "install",
        "inspect",
        "new",
        "pack",
        "prompt",
        "read",
        "serve",
      ]
    ) assertStringIncludes([...named].join(), name);
  },
});
