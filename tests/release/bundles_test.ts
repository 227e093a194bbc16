// A bundle of a server contains no CLI code, and running the bundle does not start the CLI.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { sentence } from "../support/messages.ts";
import { root, run } from "../support/processes.ts";
import { createServer, prompt, resource, tool } from "../../mod.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";

const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of both runtimes.

const SERVER = `import { createServer } from "${root}mod.ts";
console.log(createServer({ name: "bundled", version: "1.0.0" }).handlers.list().length, "handlers");
`;

const bundlers: Readonly<Record<string, (output: string) => readonly string[]>> = {
  "deno bundle": (output) => ["deno", "bundle", "--quiet", "-o", output],
  "bun build": (output) => ["bun", "build", "--target=bun", `--outfile=${output}`],
  "bun build --target=browser": (output) => ["bun", "build", "--target=browser", `--outfile=${output}`],
  esbuild: (output) => ["deno", "run", "-A", "--quiet", config.imports.esbuild, ...ESBUILD, `--outfile=${output}`],
};
const CLIENT = { name: "test", version: "1.0.0" };
const ESBUILD = ["--bundle", "--format=esm", "--target=esnext", "--log-level=error"];

const STDIO = `import { createServer, tool } from "${root}mod.ts";
import { serveStdio } from "${root}src/server/transports/stdio/stdio.ts";
const input = { type: "object", properties: { a: { type: "integer" } } };
const add = tool({ name: "add", input, run: ({ a }) => new Map([["sum", a + 1]]) });
await serveStdio(createServer({ name: "compiled", version: "1.0.0", handlers: [add] }));
`;

Deno.test(
  "an executable compiled by Bun serves stdio, including code that is loaded on demand",
  { ignore },
  async () => {
    const folder = await Deno.makeTempDir({ prefix: "mcp-executable-" });
    try {
      await Deno.writeTextFile(`${folder}/stdio.ts`, STDIO);
      const options = ["--compile", "--bytecode", "--format=esm", "--minify", `--outfile=${folder}/calc`];
      const args = ["build", ...options, `${folder}/stdio.ts`];
      const built = await new Deno.Command("bun", { args, cwd: root }).output();
      assert(built.success, new TextDecoder().decode(built.stderr));
      const text = ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: CLIENT }) +
        ask("tools/call", { name: "add", arguments: { a: 1 } }) +
        ask("tools/call", { name: "add", arguments: { a: "x" } });
      const { code, stdout, stderr } = await run([`${folder}/calc`], { cwd: folder, input: text, responses: 3 });
      assertEquals({ code, stderr }, { code: 0, stderr: "" });
      assertStringIncludes(stdout, '"serverInfo":{"name":"compiled"');
      assertStringIncludes(stdout, '"structuredContent":{"sum":2}');
      const refused = stdout.split("\n").find((line) => line.includes('"isError":true')) ?? "";
      assertEquals(JSON.parse(refused).result.content[0].text, sentence("a", "integer", "string"));
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);

let id = 0;

function ask(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params }) + "\n";
}

for (const [name, toWords] of Object.entries(bundlers)) {
  // The package's main file has one of these names, so the bundle could be mistaken for it.
  for (const output of ["server.js", "mod.js"]) {
    Deno.test(`${name}: ${output} contains no CLI code, and does not start the CLI`, { ignore }, async () => {
      const folder = await Deno.makeTempDir({ prefix: "mcp-bundle-" });
      try {
        await Deno.writeTextFile(`${folder}/server.ts`, SERVER);
        const [command, ...args] = toWords(`${folder}/${output}`);
        const built = await new Deno.Command(command, { args: [...args, `${folder}/server.ts`], cwd: root }).output();
        assert(built.success, new TextDecoder().decode(built.stderr));
        const text = await Deno.readTextFile(`${folder}/${output}`);
        assertStringIncludes(text, "server/discover");
        assert(!text.includes(".mcpb"), "the bundle contains CLI code");
        for (const words of [["deno", "run", "--no-prompt"], ["deno", "run", "-A"], ["bun"]]) {
          const finished = await run([...words, `${folder}/${output}`, "--version"], { cwd: folder });
          assertEquals(finished, { code: 0, stdout: "0 handlers\n", stderr: "" });
        }
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    });
  }
}

// Servers can be created at the top level of a module. Some platforms forbid randomness, timers and requests there.

Deno.test("creating a server uses no randomness, starts no timer and sends no request", () => {
  const taken: string[] = [];
  const watched = [
    [crypto, "getRandomValues"],
    [crypto, "randomUUID"],
    [Math, "random"],
    [globalThis, "setTimeout"],
    [globalThis, "setInterval"],
    [globalThis, "fetch"],
  ] as const;
  const before = watched.map(([owner, name]) => Reflect.get(owner, name));
  const replace = (i: number, value: unknown) =>
    Object.defineProperty(watched[i][0], watched[i][1], { value, configurable: true, writable: true });
  watched.forEach(([owner, name], i) =>
    replace(i, (...args: unknown[]) => {
      taken.push(name);
      return before[i].apply(owner, args);
    })
  );
  try {
    for (const secret of [undefined, "a secret of more than thirty-two characters"]) {
      const server = createServer({
        name: "early",
        version: "1.0.0",
        secret,
        handlers: [
          tool({ name: "t", run: () => "" }),
          prompt({ name: "p", run: () => "" }),
          resource({ uri: "note://{id}", name: "r", read: () => "" }),
        ],
      });
      server.handlers.add(tool({ name: "t2", run: () => "" }));
      httpSse(server);
      webSocket(server);
    }
  } finally {
    watched.forEach((_, i) => replace(i, before[i]));
  }
  assertEquals(taken, []);
});
