// Runs the programs in the documentation as users do: with the published package, on both runtimes. Ordinary programs
// must exit by themselves. Servers are started, called, and stopped with a signal. Tests are run with the runtime's
// test runner.
import { assert, assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { connect } from "../../src/client/client.ts";
import { isTested } from "../support/runtimes.ts";
import { type Block, type Page, readPages, writeFiles } from "./pages.ts";
import { serveRegistry } from "./registry.ts";
import { packPackage } from "./tarball.ts";

const root = new URL("../../", import.meta.url).pathname;
const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of both runtimes.

/** Timeout of a program in milliseconds, including its downloads and compilation. */
const PROGRAM_MS = 30_000;

/** Values that servers in the documentation read from the environment. */
const VARIABLES = {
  MCP_SECRET: "a secret for the programs of the documentation",
  ADA_KEY: "ada-2f6c1e0b9d4a7853",
  PORT: "0",
};

/** Further packages that programs in the documentation import. */
const PACKAGES = [
  "@opentelemetry/api",
  "@opentelemetry/context-async-hooks",
  "@opentelemetry/core",
  "@opentelemetry/exporter-metrics-otlp-http",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-metrics",
  "@opentelemetry/sdk-trace",
  "zod",
  "valibot",
  "@valibot/to-json-schema",
  "arktype",
  "hono",
  "jose",
  "oauth4webapi",
  "@scalar/openapi-upgrader",
  "quickjs-wasi",
  "yaml",
] as const;

interface Program {
  /** The path of the file in the page's folder. */
  readonly file: string;
  readonly text: string;
  /** The path of the endpoint if the program is a server. */
  readonly path?: string;
}

/** A user's folder, and how to run a file in it. */
interface Place {
  readonly runtime: "deno" | "bun";
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly run: readonly string[];
  readonly serve: readonly string[];
  readonly test: readonly string[];
}

/** Creates a folder to which `deno add jsr:@x/mcp npm:zod` has added the packages. */
async function prepareDeno(cwd: string, JSR_URL: string): Promise<Place> {
  const packages = Object.fromEntries(PACKAGES.map((name) => [name, config.imports[name]]));
  const imports = { [config.name]: `jsr:${config.name}@^${config.version}`, ...packages };
  await Deno.writeTextFile(`${cwd}/deno.json`, JSON.stringify({ imports }));
  const env = { JSR_URL, DENO_DIR: `${cwd}/cache`, NO_COLOR: "1", ...VARIABLES };
  const serve = ["deno", "serve", "-A", "--host", "127.0.0.1", "--port", "0"];
  return { runtime: "deno", cwd, env, run: ["deno", "run", "-A"], serve, test: ["deno", "test", "-A"] };
}

/** Creates a folder with the packages in node_modules. */
async function prepareBun(cwd: string): Promise<Place> {
  await Deno.mkdir(`${cwd}/package`);
  const tarball = await packPackage(root, `${cwd}/package`);
  const packages = PACKAGES.map((name) => [name, config.imports[name].replace(`npm:${name}@`, "")]);
  const dependencies = { [config.name]: `file:${tarball}`, ...Object.fromEntries(packages) };
  await Deno.writeTextFile(`${cwd}/package.json`, JSON.stringify({ type: "module", dependencies }));
  const { success, stderr } = await new Deno.Command("bun", { args: ["install"], cwd }).output();
  assert(success, new TextDecoder().decode(stderr));
  const env = { BUN_PORT: "0", NO_COLOR: "1", ...VARIABLES };
  return { runtime: "bun", cwd, env, run: ["bun"], serve: ["bun"], test: ["bun", "test"] };
}

/**
 * Returns whether a runtime can run a block. JavaScript blocks run on Bun, blocks that name Deno run on Deno, and all
 * other blocks run on both runtimes.
 */
function runsOn({ language, flags, text, file }: Block, runtime: "deno" | "bun"): boolean {
  if (flags.includes("ignore") || (file && !/\.[jt]s$/.test(file))) return false;
  if (language === "js") return runtime === "bun";
  return language === "ts" && (runtime === "deno" || !/\bDeno\./.test(text));
}

/** Returns whether a program serves HTTP until it is stopped, with its default export or with `serve`. */
function isServer(text: string): boolean {
  if (/^export default\b/m.test(text)) return /createServer|app/.test(text);
  return /\bawait serve\(/.test(text) && !/\.close\(\)|\bawait using\b/.test(text);
}

async function writePrograms(page: Page, { cwd, runtime }: Place): Promise<readonly Program[]> {
  const folder = page.path.replace(/\.md$/, "");
  await writeFiles(page, `${cwd}/${folder}`);
  const programs: Program[] = [];
  const last = new Map(page.blocks.map((block) => [block.file, block]));
  for (const block of page.blocks) {
    if (!runsOn(block, runtime)) continue;
    // If a page shows a file again, in a later state, the earlier state gets its own file.
    const name = last.get(block.file) === block ? block.file : undefined;
    const file = `${folder}/${name ?? `line_${block.line}.${block.language}`}`;
    await Deno.writeTextFile(`${cwd}/${file}`, block.text);
    const [, path = "/mcp"] = /\bpath: "([^"]+)"/.exec(block.text) ?? [];
    programs.push({ file, text: block.text, path: isServer(block.text) ? path : undefined });
  }
  return programs;
}

interface Running {
  readonly child: Deno.ChildProcess;
  /** Waits until standard output or standard error contains a match. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves to the whole output when both streams have ended. */
  readonly printed: Promise<string>;
}

function start([command, ...args]: readonly string[], { cwd, env }: Place): Running {
  const child = new Deno.Command(command, {
    args,
    cwd,
    env: { ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  })
    .spawn();
  let text = "";
  let grown = Promise.withResolvers<void>();
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
      text += piece;
      grown.resolve();
      grown = Promise.withResolvers();
    }
  };
  let hasEnded = false;
  const printed = Promise.all([read(child.stdout), read(child.stderr)]).then(() => {
    hasEnded = true;
    grown.resolve();
    return text;
  });
  const waitFor = async (pattern: RegExp) => {
    for (;;) {
      const found = pattern.exec(text);
      if (found) return found;
      if (hasEnded) throw new Error(`${command} ended before printing ${pattern}:\n${text}`);
      await grown.promise;
    }
  };
  return { child, waitFor, printed };
}

/** Runs a program, or the tests in a file, and waits for its end. */
async function runProgram({ file }: Program, place: Place): Promise<void> {
  const words = file.endsWith("_test.ts") ? [...place.test, `./${file}`] : [...place.run, file];
  const { child, printed } = start(words, place);
  const late = setTimeout(() => child.kill("SIGKILL"), PROGRAM_MS);
  const { code, signal } = await child.status;
  clearTimeout(late);
  assertEquals({ code, signal }, { code: 0, signal: null }, `${file} printed:\n${await printed}`);
}

async function serveProgram({ file, text, path = "" }: Program, place: Place): Promise<void> {
  const [, token = VARIABLES.ADA_KEY] = /(?:keys: \{ \w+: "|"Bearer )([\w-]+)"/.exec(text) ?? [];
  const headers = { authorization: `Bearer ${token}` }; // servers without authentication ignore it
  const words = /^export default\b/m.test(text) ? place.serve : place.run;
  const { child, waitFor, printed } = start([...words, file], place);
  const late = setTimeout(() => child.kill("SIGKILL"), PROGRAM_MS);
  try {
    const [, port] = await waitFor(/(?:Listening on|server:|Serving) http:\/\/\S+?:(\d+)/);
    // The issuer on the page does not exist, so the test has no tokens for this server.
    if (/\b(?:auth|login) = oauth(?:Proxy)?\(/.test(text)) {
      return await checkProtected(`http://127.0.0.1:${port}${path}`);
    }
    for (const revisions of [["2026-07-28"], ["2025-11-25"]]) {
      await using client = await connect(`http://127.0.0.1:${port}${path}`, { revisions, headers });
      assertEquals(client.server.version, revisions[0]);
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
    assert(signal !== "SIGKILL", `${file} did not exit after SIGTERM`);
  }
}

async function checkProtected(url: string): Promise<void> {
  const response = await fetch(url, { method: "POST" });
  await response.body?.cancel();
  const [, metadata = ""] = /resource_metadata="([^"]+)"/.exec(response.headers.get("www-authenticate") ?? "") ?? [];
  assertEquals(response.status, 401);
  const { resource } = await (await fetch(new URL(new URL(metadata).pathname, url))).json();
  assertEquals(new URL(resource).pathname, new URL(url).pathname);
}

async function runAll(t: Deno.TestContext, place: Place): Promise<void> {
  const pages = await readPages();
  for (const page of pages) {
    const programs = await writePrograms(page, place);
    if (page.path === "README.md") {
      assert(programs.some(({ path }) => path) && programs.some(({ path }) => !path), "README.md contains no programs");
    }
    if (programs.length) await t.step(page.path, (t) => runPage(t, programs, place));
  }
}

async function runPage(t: Deno.TestContext, programs: readonly Program[], place: Place): Promise<void> {
  if (place.runtime === "deno") {
    await t.step("types", async () => {
      const files = programs.map(({ file }) => file);
      const { child, printed } = start(["deno", "check", "--quiet", ...files], place);
      assertEquals((await child.status).code, 0, await printed);
    });
  }
  for (const program of programs) {
    const [first] = program.text.split("\n");
    await t.step(`${program.file} runs: ${first}`, async () => {
      await (program.path ? serveProgram : runProgram)(program, place);
    });
  }
}

Deno.test("the programs in the documentation run on Deno, from the published package", {
  ignore: ignore || !isTested("deno"),
}, async (t) => {
  const cwd = await Deno.makeTempDir({ prefix: "mcp-pages-deno-" });
  await using registry = await serveRegistry(root.slice(0, -1));
  try {
    await runAll(t, await prepareDeno(cwd, registry.url));
    assertEquals(registry.missing, []);
  } finally {
    await Deno.remove(cwd, { recursive: true });
  }
});

Deno.test("the programs in the documentation run on Bun, from the packed package", {
  ignore: ignore || !isTested("bun"),
}, async (t) => {
  const cwd = await Deno.makeTempDir({ prefix: "mcp-pages-bun-" });
  try {
    await runAll(t, await prepareBun(cwd));
  } finally {
    await Deno.remove(cwd, { recursive: true });
  }
});
