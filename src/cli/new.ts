/**
 * `mcp new`: creates a server in one file, and a test for it.
 *
 * @module
 */
import type { Args } from "./args.ts";
import { type Command, toEntry, toProgram, toShell } from "./command.ts";
import { platform } from "./platform.ts";
import { CliError, UsageError } from "./cli_error.ts";

const NAME = /^[a-z][\w-]{0,63}$/i;

/** The command `new`. */
export const create: Command = {
  name: "new",
  summary: "Create a server in one file, and a test for it",
  usage: ["new NAME"],
  description: ["The command writes NAME.ts and NAME_test.ts into the working directory. It never overwrites a file."],
  options: {},
  examples: ["new weather"],
  run: createFiles,
};

async function createFiles({ operands: [name, extra] }: Args): Promise<void> {
  if (name === undefined) {
    throw new UsageError("Cannot create a server: no name is given; write one, such as weather");
  }
  if (extra !== undefined) throw new UsageError(`Cannot create ${name} and ${extra}: name one server`);
  if (!NAME.test(name)) {
    const stem = name.replace(/\.[cm]?[jt]s$/, "");
    const remedy = stem !== name && NAME.test(stem)
      ? `write ${stem}`
      : "start with a letter, and use up to 64 letters, digits, _ and -";
    throw new UsageError(`Cannot create ${name || '""'}: it is not a name; ${remedy}`);
  }
  const [server, test] = [`${name}.ts`, `${name}_test.ts`];
  const entry = toEntry();
  const library = entry.includes("/node_modules/") ? "@x/mcp" : entry;
  const testing = library.endsWith("/mod.ts")
    ? library.replace(/mod\.ts$/, "src/testing/testing.ts")
    : `${library}/testing`;
  const existing = await findExisting([server, test]);
  if (existing !== undefined) throw new CliError(`Cannot write ${existing}: it already exists; choose another name`);
  await writeBoth([[server, toServerSource(name, library)], [test, toTestSource(server, testing)]]);
  const command = platform.runtime === "deno" ? "deno test" : `bun test ./${test}`;
  console.error(`Created ${server} and ${test}. Run the test:

  ${command}${platform.runtime === "deno" ? ` ${test}` : ""}

Serve it, and try it in a browser:

  ${toShell([...toProgram(), server, "--http", "--inspect"])}`);
}

async function findExisting(names: readonly string[]): Promise<string | undefined> {
  for (const name of names) {
    try {
      // A link that leads nowhere would take the file elsewhere.
      if (await platform.files.lstat(platform.toPath(name))) return name;
    } catch (error) {
      throw createWriteError(name, error);
    }
  }
}

/** Writes all files or, if one cannot be written, none. */
async function writeBoth(files: readonly (readonly [name: string, text: string])[]): Promise<void> {
  const written: string[] = [];
  for (const [name, text] of files) {
    const path = platform.toPath(name);
    try {
      await platform.files.write(path, text, { isNew: true });
      written.push(path);
    } catch (error) {
      await Promise.all(written.map((each) => platform.files.remove(each).catch(() => {})));
      throw createWriteError(name, error);
    }
  }
}

function createWriteError(name: string, error: unknown): CliError {
  return new CliError(`Cannot write ${name}: ${error instanceof Error ? error.message : error}; check the folder`);
}

function toServerSource(name: string, library: string): string {
  return `import { createServer, tool } from ${JSON.stringify(library)};

export const greet = tool({
  name: "greet",
  description: "Greets a person by name",
  // JSON Schema, or a schema of zod, valibot or arktype, which also types the arguments of \`run\`.
  input: {
    type: "object",
    properties: { name: { type: "string", description: "The person to greet" } },
    required: ["name"],
  },
  annotations: { readOnlyHint: true },
  run: ({ name }) => \`Hello, \${name}!\`,
});

export default createServer({ name: ${JSON.stringify(name)}, version: "0.1.0", handlers: [greet] });
`;
}

function toTestSource(server: string, testing: string): string {
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
