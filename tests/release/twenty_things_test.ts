// Follows "The twenty things you write" as a new user: all commands and files in the order of the page, on Deno, Bun and
// Node, with the package from a registry.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { start } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { type Block, type Page, readRows, type Row, type Runtime, writeFile } from "./pages.ts";
import { readShown, Shell } from "./shell.ts";
import { findPage, inFolder, type UserFolder, withRegistries } from "./user_folder.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the processes of all runtimes.

const nodes = isDeno ? await Promise.all(NODE_VERSIONS.map(findNode)) : [];
const missing = nodes.flatMap((node) => "missing" in node ? node.missing : [])[0];
const name = "a new user on Deno, Bun and Node can follow the twenty things, with every command of the page";

/** A user who follows the page from top to bottom. */
class Reader {
  readonly #runtime: Runtime;
  readonly #folder: UserFolder;
  #shell?: Shell;
  /** What `mcp` stands for. */
  #program = "";
  readonly done: string[] = [];

  constructor(runtime: Runtime, folder: UserFolder) {
    this.#runtime = runtime;
    this.#folder = folder;
  }

  get #env(): Readonly<Record<string, string>> {
    return this.#shell?.env ?? this.#folder.env;
  }

  async runRow({ name, commands }: Row): Promise<void> {
    const [first = ""] = commands;
    const [, program] = /^alias mcp="(.+)"$/.exec(first) ?? [];
    this.done.push(name);
    if (program) return this.#name(program);
    if (first.endsWith(" main.ts")) return await this.#serve(first);
    await this.#run(commands.join("\n"), name);
  }

  async runBlock(block: Block): Promise<void> {
    const { language, text } = block;
    await writeFile(block, this.#folder.path);
    if (language === "sh") await this.#install(text);
    if (language !== "console") return;
    const shell = this.#shell;
    assert(shell, "the page names mcp before its first command");
    for (const shown of readShown(text)) assertEquals(await shell.run(shown), shown.output, shown.command);
    await shell.endBlock();
  }

  #name(program: string): void {
    const { path, env } = this.#folder;
    // `npx` does not forward signals to the program that it starts.
    const server = program.startsWith("npx") ? "node_modules/.bin/mcp" : undefined;
    this.#program = program;
    this.#shell = new Shell({ cwd: path, program, server, env });
  }

  async #run(script: string, name: string): Promise<void> {
    const { code, stdout, stderr } = await this.#finish(script);
    assertEquals(code, 0, `${name}: ${stdout}${stderr}`);
  }

  async #finish(script: string) {
    const { path } = this.#folder;
    const whole = `set -e\nmcp() { ${this.#program || "false"} "$@"; }\n${script}`;
    await using running = await start(["sh", "-c", whole], { cwd: path, env: this.#env, input: "" });
    return await running.finished;
  }

  /** Runs `mcp install`, and starts the server as the client would. */
  async #install(text: string): Promise<void> {
    const { home } = this.#folder;
    // On Deno, the entry contains only the name of the package on JSR. The registry of this test has another address.
    const own = this.#runtime === "Deno" ? text.replace("--env ", "--env JSR_URL,DENO_DIR,NPM_CONFIG_REGISTRY,") : text;
    await this.#run(own, "install");
    const file = await Deno.readTextFile(`${home}/.config/Claude/claude_desktop_config.json`);
    const { mcpServers: { notes: { command, args, env } } } = JSON.parse(file);
    await using client = await connect({ command, args, env, cwd: "/" }, { onStderr() {} });
    const { structuredContent } = await client.callTool("search", { text: "milk" });
    assertEquals(structuredContent, { titles: ["todo"] });
    const names = (await client.listTools()).map(({ name }) => name);
    assert(names.includes("remove"), "the user who starts the server has all scopes");
    this.done.push("install");
  }

  /** Runs the program that listens, calls it as a client and as an orchestrator, and stops it. */
  async #serve(command: string): Promise<void> {
    const { path } = this.#folder;
    const env: Record<string, string> = { ...this.#env, PORT: "0" };
    await using running = await start(["sh", "-c", `exec ${command} 1>&2`], { cwd: path, env });
    const [, url] = await running.waitFor(/^Serving (http:\S+)$/m);
    const headers = { authorization: `Bearer ${env.ADA_KEY}` };
    for (const era of ["2026-07-28", "2025-11-25"]) {
      await using client = await connect(url, { revisions: [era], headers });
      assertEquals((await client.listTools()).length, 5);
      const { contents: [content] } = await client.readResource("note://todo");
      assertEquals(content.text, "Buy milk");
    }
    const refused = await fetch(url, { method: "POST" });
    await refused.body?.cancel();
    const ready = await fetch(new URL("/ready", url));
    await ready.body?.cancel();
    const metrics = await fetch(new URL("/metrics", url));
    assertStringIncludes(await metrics.text(), "mcp_server_operation_duration_seconds");
    assertEquals([refused.status, ready.status], [401, 200]);
    running.kill("SIGTERM");
    assertEquals((await running.finished).code, 0);
    this.done.push("main.ts");
  }
}

async function follow(page: Page, runtime: Runtime, folder: UserFolder): Promise<void> {
  const reader = new Reader(runtime, folder);
  const steps = [
    ...page.blocks.map((block) => ({ line: block.line, take: () => reader.runBlock(block) })),
    ...readRows(page, runtime).map((row) => ({ line: row.line, take: () => reader.runRow(row) })),
  ];
  for (const { take } of steps.sort((one, other) => one.line - other.line)) await take();
  assertEquals(reader.done, ["packages", "command", "tests", "install", "program", "main.ts"]);
}

Deno.test(isDeno ? needs(name, missing) : { name, ignore: true }, async (t) => {
  requireAll(missing);
  const page = await findPage("docs/guides/twenty-things.md");
  const paths = nodes.map((node) => "path" in node ? node.path.replace(/\/[^/]+$/, "") : "");
  await withRegistries(async (registries) => {
    for (const [at, version] of NODE_VERSIONS.entries()) {
      await t.step(
        `Node ${version}`,
        () => inFolder(registries, paths[at], (folder) => follow(page, "Node", folder)),
      );
    }
    for (const runtime of ["Bun", "Deno"] as const) {
      await t.step(runtime, () => inFolder(registries, paths[0], (folder) => follow(page, runtime, folder)));
    }
  });
});
