// The programs that README.md shows, run as a user runs them: from the package as a registry has it, on both runtimes.
// A program exits by itself; a server is started, called and stopped by a signal.
import { assert, assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { connect } from "../../src/client/client.ts";
import { serveRegistry } from "./registry.ts";
import { packPackage } from "./tarball.ts";

const root = new URL("../../", import.meta.url).pathname.slice(0, -1);
const ignore = typeof Deno === "undefined"; // Deno starts the processes, of both runtimes

/** Milliseconds that a program may take, its downloads and compilation included. */
const MOST_MS = 20_000;

interface Program {
  readonly name: string;
  readonly text: string;
  /** The path of the endpoint, if the program is a server. */
  readonly path?: string;
}

function readPrograms(markdown: string): readonly Program[] {
  return [...markdown.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text], i) => {
    const [, path = "/mcp"] = /\bpath: "([^"]+)"/.exec(text) ?? [];
    return { name: `block${i + 1}`, text, path: /^export default/m.test(text) ? path : undefined };
  });
}

/** A folder of a user, and the words that run one of its files. */
interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly run: readonly string[];
  readonly serve: readonly string[];
}

/** A folder to which `deno add jsr:@x/mcp npm:zod` has added the package. */
async function prepareDeno(cwd: string, JSR_URL: string): Promise<Place> {
  const imports = { [config.name]: `jsr:${config.name}@^${config.version}`, zod: config.imports.zod };
  await Deno.writeTextFile(`${cwd}/deno.json`, JSON.stringify({ imports }));
  const env = { JSR_URL, DENO_DIR: `${cwd}/cache`, NO_COLOR: "1" };
  const serve = ["deno", "serve", "-A", "--host", "127.0.0.1", "--port", "0"];
  return { cwd, env, run: ["deno", "run", "-A"], serve };
}

/** A folder with the package in node_modules. */
async function prepareBun(cwd: string): Promise<Place> {
  await Deno.mkdir(`${cwd}/package`);
  const tarball = await packPackage(root, `${cwd}/package`);
  const dependencies = { [config.name]: `file:${tarball}`, zod: config.imports.zod.replace("npm:zod@", "") };
  await Deno.writeTextFile(`${cwd}/package.json`, JSON.stringify({ type: "module", dependencies }));
  const { success, stderr } = await new Deno.Command("bun", { args: ["install"], cwd }).output();
  assert(success, new TextDecoder().decode(stderr));
  return { cwd, env: { BUN_PORT: "0", NO_COLOR: "1" }, run: ["bun"], serve: ["bun"] };
}

interface Running {
  readonly child: Deno.ChildProcess;
  /** Waits for text on standard output or standard error. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  /** Everything printed, once both streams have ended. */
  readonly printed: Promise<string>;
}

function start([command, ...args]: readonly string[], { cwd, env }: Place): Running {
  const child = new Deno.Command(command, { args, cwd, env: { ...env }, stdout: "piped", stderr: "piped" }).spawn();
  let text = "";
  let grown = Promise.withResolvers<void>();
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
      text += piece;
      grown.resolve();
      grown = Promise.withResolvers();
    }
  };
  let isOver = false;
  const printed = Promise.all([read(child.stdout), read(child.stderr)]).then(() => {
    isOver = true;
    grown.resolve();
    return text;
  });
  const waitFor = async (pattern: RegExp) => {
    for (;;) {
      const found = pattern.exec(text);
      if (found) return found;
      if (isOver) throw new Error(`${command} ended without ${pattern}:\n${text}`);
      await grown.promise;
    }
  };
  return { child, waitFor, printed };
}

async function runProgram({ name }: Program, place: Place): Promise<void> {
  const { child, printed } = start([...place.run, `${name}.ts`], place);
  const late = setTimeout(() => child.kill("SIGKILL"), MOST_MS);
  const { code, signal } = await child.status;
  clearTimeout(late);
  assertEquals({ code, signal }, { code: 0, signal: null }, `${name} printed:\n${await printed}`);
}

async function serveProgram({ name, path = "" }: Program, place: Place): Promise<void> {
  const { child, waitFor, printed } = start([...place.serve, `${name}.ts`], place);
  const late = setTimeout(() => child.kill("SIGKILL"), MOST_MS);
  try {
    const [, port] = await waitFor(/(?:Listening on|server:) http:\/\/\S+?:(\d+)/);
    for (const versions of [["2026-07-28"], ["2025-11-25"]]) {
      await using client = await connect(`http://127.0.0.1:${port}${path}`, { versions });
      assertEquals(client.server.version, versions[0]);
      const tools = client.server.capabilities.tools ? await client.listTools() : [];
      if (tools.some((tool) => tool.name === "add")) {
        assertEquals((await client.callTool("add", { a: 1, b: 2 })).content, [{ type: "text", text: "3" }]);
      }
    }
  } finally {
    child.kill("SIGTERM");
    const { signal } = await child.status;
    clearTimeout(late);
    await printed;
    assert(signal !== "SIGKILL", `${name} did not end after SIGTERM`);
  }
}

async function runAll(t: Deno.TestContext, place: Place): Promise<void> {
  const programs = readPrograms(await Deno.readTextFile(`${root}/README.md`));
  assert(programs.some(({ path }) => path) && programs.some(({ path }) => !path), "README.md has no programs");
  for (const program of programs) {
    await Deno.writeTextFile(`${place.cwd}/${program.name}.ts`, program.text);
    const [first] = program.text.split("\n");
    await t.step(`${program.name}, ${program.path ? "a server" : "a program"}: ${first}`, async () => {
      await (program.path ? serveProgram : runProgram)(program, place);
    });
  }
}

Deno.test({
  name: "the programs in README.md run on Deno from the published package",
  ignore,
  async fn(t) {
    const cwd = await Deno.makeTempDir({ prefix: "mcp-readme-deno-" });
    await using registry = await serveRegistry(root);
    try {
      await runAll(t, await prepareDeno(cwd, registry.url));
      assertEquals(registry.missing, []);
    } finally {
      await Deno.remove(cwd, { recursive: true });
    }
  },
});

Deno.test({
  name: "the programs in README.md run on Bun from the packed package",
  ignore,
  async fn(t) {
    const cwd = await Deno.makeTempDir({ prefix: "mcp-readme-bun-" });
    try {
      await runAll(t, await prepareBun(cwd));
    } finally {
      await Deno.remove(cwd, { recursive: true });
    }
  },
});
