// The package as Bun users get it: compiled to JavaScript, packed, and installed into a project.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { sentence } from "../support/messages.ts";
import { ask, root, run } from "../support/processes.ts";
import { packPackage } from "./tarball.ts";

const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of both runtimes.

const SERVER = `import { createServer, tool } from "${config.name}";
const hi = tool({ name: "hi", run: () => "Hi!" });
export default createServer({ name: "mine", version: "1.0.0", handlers: [hi] });
`;
const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};
const program = ["bun", `node_modules/${config.name}/mod.js`];

/** Runs a function with a project that contains only the package. */
async function withPackage(use: (project: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "mcp-npm-" });
  try {
    const tarball = await packPackage(root, folder);
    const project = `${folder}/project`;
    await Deno.mkdir(project);
    await Deno.writeTextFile(`${project}/package.json`, "{}");
    const added = await run(["bun", "add", "--offline", tarball], { cwd: project });
    assertEquals(added.code, 0, added.stderr);
    await use(project);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function call(project: string, target: string, name: string) {
  const params = { name, arguments: {}, _meta };
  const input = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }) + "\n";
  return await ask([...program, target], { cwd: project, input });
}

Deno.test({
  name:
    "Bun: the packed package serves a code file without any other package, and serves a config file with the packages of the CLI",
  ignore,
  fn: () =>
    withPackage(async (project) => {
      assertEquals(await run([...program, "--version"], { cwd: project }), {
        code: 0,
        stdout: `${config.version}\n`,
        stderr: "",
      });
      await Deno.writeTextFile(`${project}/server.js`, SERVER);
      const served = await call(project, "server.js", "hi");
      assertEquals([served.code, served.stderr], [0, ""]);
      assertStringIncludes(served.stdout, '"text":"Hi!"');

      await Deno.writeTextFile(`${project}/program.js`, `import "${config.name}"; console.log("imported");`);
      const imported = await run(["bun", "program.js"], { cwd: project });
      assertEquals(imported, { code: 0, stdout: "imported\n", stderr: "" });

      const written = await run([...program, "new", "weather"], { cwd: project });
      assertEquals(written.code, 0, written.stderr);
      assertMatch(await Deno.readTextFile(`${project}/weather.ts`), /from "@x\/mcp";/);
      assertEquals((await run(["bun", "test", "./weather_test.ts"], { cwd: project })).code, 0);
      assertEquals((await run([...program, "new", "notes", "--auth"], { cwd: project })).code, 0);
      const readme = await Deno.readTextFile(`${project}/notes/README.md`);
      assertStringIncludes(readme, `    bun ../node_modules/${config.name}/mod.js server.ts --http\n`);
      assert(!readme.includes(project), "README.md contains a path on this machine");

      const file = {
        tools: { greet: { description: "Greets", run: ["printf", "Good day!"] } },
        prompts: ["p.md"],
      };
      await Deno.writeTextFile(`${project}/mcp.jsonc`, JSON.stringify(file));
      await Deno.writeTextFile(`${project}/p.md`, "---\ntitle: A prompt\n---\nHi");
      const refused = await call(project, "mcp.jsonc", "greet");
      assertEquals(refused.code, 2);
      // The runtime loads files concurrently, so it can report any of several files and packages.
      const reported = refused.stderr.replace(/\.\/config\/\S+/, "FILE").replace(/Cannot find package [^;]+/, "ERROR");
      assertStringIncludes(reported, sentence("FILE", "ERROR"));
      for (const name of ["zod", "yaml", "jsonc-parser"]) {
        await Deno.symlink(`${root}node_modules/${name}`, `${project}/node_modules/${name}`);
      }
      const std = `${project}/node_modules/@jsr/std__jsonc`;
      await Deno.mkdir(std, { recursive: true });
      await Deno.writeTextFile(`${std}/package.json`, '{ "type": "module", "exports": "./mod.js" }');
      await Deno.writeTextFile(`${std}/mod.js`, `export * from "${root}node_modules/deno-std/jsonc/mod.js";`);
      const configured = await call(project, "mcp.jsonc", "greet");
      assertEquals([configured.code, configured.stderr], [0, ""]);
      assertStringIncludes(configured.stdout, '"text":"Good day!"');
    }),
});
