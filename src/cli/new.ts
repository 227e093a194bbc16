/**
 * `mcp new name`: writes a server of one file, and its test.
 *
 * @module
 */
import type { Args } from "./args.ts";
import { type Command, toEntry, toProgram, toShell } from "./command.ts";
import { platform } from "./platform.ts";
import { isCoded } from "./platform_files.ts";
import { Problem, UsageProblem } from "./problem.ts";

/** Begins a server. */
export const create: Command = {
  name: "new",
  summary: "Write a server of one file, and a test of it",
  usage: `new name

For example:
  new weather`,
  flags: {},
  run: createFiles,
};

async function createFiles({ operands: [name, extra] }: Args): Promise<void> {
  if (name === undefined) throw new UsageProblem("Cannot begin a server: name it, such as weather");
  if (extra !== undefined) throw new UsageProblem(`Cannot begin ${extra} beside ${name}: name one server`);
  if (!/^[a-z][\w-]{0,63}$/i.test(name)) {
    throw new UsageProblem(`Cannot begin ${name}: a name begins with a letter, and has letters, digits, _ and -`);
  }
  const [server, test] = [`${name}.ts`, `${name}_test.ts`];
  const entry = toEntry();
  const library = entry.includes("/node_modules/") ? "@x/mcp" : entry;
  const testing = library.endsWith("/mod.ts")
    ? library.replace(/mod\.ts$/, "src/testing/testing.ts")
    : `${library}/testing`;
  const taken = await findTaken([server, test]);
  if (taken !== undefined) throw new Problem(`Cannot write ${taken}: it is there already; choose another name`);
  await platform.files.write(platform.toPath(server), toServer(name, library), { isNew: true });
  await platform.files.write(platform.toPath(test), toTest(server, testing), { isNew: true });
  const command = platform.runtime === "deno" ? "deno test" : `bun test ./${test}`;
  console.error(`${server} is a server, ${test} tests it:

  ${command}${platform.runtime === "deno" ? ` ${test}` : ""}

Serve it, and see it and try it in a browser:

  ${toShell([...toProgram(), server, "--http", "--inspect"])}`);
}

async function findTaken(names: readonly string[]): Promise<string | undefined> {
  for (const name of names) {
    try {
      if (await platform.files.look(platform.toPath(name))) return name;
    } catch (error) {
      throw new Problem(`Cannot write ${name}: ${isCoded(error) ? error.message : String(error)}`);
    }
  }
}

function toServer(name: string, library: string): string {
  return `import { createServer, tool } from ${JSON.stringify(library)};

export const greet = tool({
  name: "greet",
  description: "Greets somebody by name",
  // Raw JSON Schema, or a schema of zod, valibot or arktype, which gives \`run\` its types.
  input: {
    type: "object",
    properties: { name: { type: "string", description: "Who is greeted" } },
    required: ["name"],
  },
  annotations: { readOnlyHint: true },
  run: ({ name }) => \`Hello, \${name}!\`,
});

export default createServer({ name: ${JSON.stringify(name)}, version: "0.1.0", handlers: [greet] });
`;
}

function toTest(server: string, testing: string): string {
  const isDeno = platform.runtime === "deno";
  return `${isDeno ? "" : 'import { test } from "bun:test";\n'}import { connect } from ${JSON.stringify(testing)};
import server from "./${server}";

${isDeno ? "Deno.test" : "test"}("greet says hello", async () => {
  await using client = await connect(server);
  const { content } = await client.callTool("greet", { name: "Ada" });
  const expected = [{ type: "text", text: "Hello, Ada!" }];
  if (JSON.stringify(content) !== JSON.stringify(expected)) throw new Error(JSON.stringify(content));
});
`;
}
