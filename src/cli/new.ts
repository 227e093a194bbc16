/**
 * `mcp new`: creates the files of a server, including a test.
 */
import { NAME } from "./version.ts";
import { type Args, rejectRest, rejectSecond } from "./args.ts";
import { type Command, toEntry, toProgram, toShell } from "./command.ts";
import { findCommonJsPackage, SET_MODULE_TYPE } from "./module_type.ts";
import { isInstalled } from "./own_entries.ts";
import { findLibrary, makeFolder, refuseExisting, type ToLibrary, writeAll } from "./new_files.ts";
import { platform } from "./platform.ts";
import { UsageError } from "./cli_error.ts";

const SERVER_NAME = /^[a-z][\w-]{0,63}$/i;

export const create: Command = {
  name: "new",
  summary: "Create a server in a file, and a test for the server",
  usage: ["new [OPTIONS] NAME"],
  description: [
    "The command writes NAME.ts and NAME_test.ts into the working directory. It never overwrites a file.",
    "With --auth, it creates a folder NAME with a server that requires an API key or an OAuth access token, a test, and " +
    "a README that explains how clients get a key or token.",
    "With --github, it creates a folder NAME with a server whose users sign in with GitHub, a test, and a README.",
    "With --app, it creates a folder NAME with a server whose tool shows an app, the app's page, and a test.",
    "With --from, it creates a folder NAME with the files of a recipe: a server for a stack, a test, a README, and a " +
    "Dockerfile.",
  ],
  options: {
    auth: { text: "Create a folder with a server that authenticates its callers" },
    github: { text: "Create a folder with a server whose users sign in with GitHub" },
    app: { text: "Create a folder with a server that shows an app" },
    from: { text: "Create a folder with the files of a recipe, such as express-redis", value: "RECIPE" },
  },
  examples: [
    "new weather",
    "new notes --auth",
    "new repositories --github",
    "new dice --app",
    "new facts --from express-redis",
  ],
  run: createFiles,
};

async function createFiles(args: Args): Promise<void> {
  const { operands: [name], flags } = args;
  rejectRest(args, "new");
  if (name === undefined) {
    throw new UsageError("Cannot create a server: no name is given; write a name, such as weather");
  }
  rejectSecond(args.operands, { verb: "create", limit: "new creates one server" });
  if (!SERVER_NAME.test(name)) {
    const stem = name.replace(/\.[cm]?[jt]s$/, "");
    const remedy = stem !== name && SERVER_NAME.test(stem)
      ? `write ${stem}`
      : "start with a letter, and use up to 64 letters, digits, _ and -";
    throw new UsageError(`Cannot create ${name || '""'}: it is not a valid name; ${remedy}`);
  }
  const [one, other] = ["auth", "github", "app", "from"].filter((option) => option in flags);
  if (other !== undefined) {
    throw new UsageError(
      `Cannot create ${name} with --${one} and --${other}: each option creates a different server; create two servers, ` +
        "and merge them",
    );
  }
  if ("auth" in flags) return await createProtected(name);
  if ("github" in flags) return await createGitHub(name);
  if ("app" in flags) return await createApp(name);
  if (flags.from !== undefined) return await createFromRecipe(name, flags.from);
  const [server, test] = [`${name}.ts`, `${name}_test.ts`];
  await refuseExisting([server, test]);
  const toLibrary = await findLibrary();
  await writeAll([[server, toServerSource(name, toLibrary())], [test, toTestSource(server, toLibrary("testing"))]]);
  console.error(`Created ${server} and ${test}. ${await toSetup(toLibrary)}Run the test:

  ${toTestCommand(test)}

Serve the file, and try the server in a browser:

  ${toShell([...toProgram(), server, "--http", "--inspect"])}`);
}

/** Creates a folder with a server that authenticates its callers, a test and a README. */
async function createProtected(name: string): Promise<void> {
  const [server, test, readme] = ["server.ts", "server_test.ts", "README.md"].map((file) => `${name}/${file}`);
  await refuseExisting([name]);
  const testCommand = toTestCommand("server_test.ts", toTestFlags());
  const program = toFolderProgram();
  const serve = toShell([...program, "server.ts", "--http"]);
  const { toProtectedReadme, toProtectedServer, toProtectedTest } = await import("./new_protected.ts");
  const toLibrary = await findLibrary();
  const modules = { library: toLibrary(), auth: toLibrary("auth"), oauth: toLibrary("oauth") };
  const call = toShell([...program, "call", "http://127.0.0.1:3000/mcp", "add", "text=buy milk"]);
  const doctor = toShell([...program, "doctor", "http://127.0.0.1:3000/mcp"]);
  await makeFolder(name);
  await writeAll([
    [server, toProtectedServer(name, modules)],
    [test, toProtectedTest(toLibrary("testing"), tests[platform.runtime])],
    [readme, toProtectedReadme(name, { serve, call, doctor, test: testCommand })],
  ]);
  console.error(`Created ${server}, ${test} and ${readme}. ${await toSetup(toLibrary)}Run the test:

  cd ${name}
  ${testCommand}

Start the server. It prints a new API key. The README explains how to set a permanent key, and how to use OAuth:

  ${serve}`);
}

/** Creates a folder with a server whose users sign in with GitHub, a test and a README. */
async function createGitHub(name: string): Promise<void> {
  const [server, test, readme] = ["server.ts", "server_test.ts", "README.md"].map((file) => `${name}/${file}`);
  await refuseExisting([name]);
  const testCommand = toTestCommand("server_test.ts", toTestFlags());
  const program = toFolderProgram();
  const serve = toShell([...program, "server.ts", "--http"]);
  const { toGitHubReadme, toGitHubServer, toGitHubTest } = await import("./new_github.ts");
  const toLibrary = await findLibrary();
  const url = "http://127.0.0.1:3000/mcp";
  const call = `${toShell([...program, "login", url])} && ${toShell([...program, "call", url, "list_repositories"])}`;
  const own = { client: toLibrary("client"), oauth: toLibrary("client/oauth"), testing: toLibrary("testing") };
  await makeFolder(name);
  await writeAll([
    [server, toGitHubServer(name, { library: toLibrary(), proxy: toLibrary("oauth/proxy") })],
    [test, toGitHubTest({ ...own, ...tests[platform.runtime] })],
    [readme, toGitHubReadme(name, { serve, call, test: testCommand })],
  ]);
  console.error(`Created ${server}, ${test} and ${readme}. ${await toSetup(toLibrary)}Run the test:

  cd ${name}
  ${testCommand}

The README explains how to connect the server to GitHub.`);
}

/** Creates a folder with a server that shows an app, the app's page and a test. */
async function createApp(name: string): Promise<void> {
  const [server, page, test] = ["server.ts", "app.html", "server_test.ts"].map((file) => `${name}/${file}`);
  await refuseExisting([name]);
  const { toAppPage, toAppServer, toAppTest } = await import("./new_app.ts");
  const toLibrary = await findLibrary();
  await makeFolder(name);
  await writeAll([
    [server, toAppServer(name, { library: toLibrary(), apps: toLibrary("apps") })],
    [page, toAppPage(name)],
    [test, toAppTest(toLibrary("testing"), tests[platform.runtime])],
  ]);
  console.error(`Created ${server}, ${page} and ${test}. ${await toSetup(toLibrary)}Run the test:

  cd ${name}
  ${toTestCommand("server_test.ts", ["--allow-read=."])}

Serve the file, and try the server in a browser:

  ${toShell([...toFolderProgram(), "server.ts", "--http", "--inspect"])}`);
}

/** Creates a folder with the files of a recipe. */
async function createFromRecipe(name: string, recipe: string): Promise<void> {
  const { recipes } = await import("./recipes_bundle.ts");
  if (!Object.hasOwn(recipes, recipe)) {
    throw new UsageError(
      `Cannot create ${name}: there is no recipe "${recipe}"; write one of ${Object.keys(recipes).join(", ")}`,
    );
  }
  await refuseExisting([name]);
  const files = Object.entries(recipes[recipe]);
  const folders = files.map(([file]) => `${name}/${file}`.replace(/\/[^/]*$/, ""));
  for (const folder of new Set(folders)) await makeFolder(folder);
  await writeAll(files.map(([file, text]) => [`${name}/${file}`, text]));
  console.error(`Created ${files.length} files in ${name}. ${name}/README.md has the commands to test and serve it.`);
}

/** The path to an installed package is relative, so that the command also works on other machines. */
function toFolderProgram(): readonly string[] {
  const packages = platform.toPath("node_modules");
  return toProgram().map((word) =>
    word.startsWith(`${packages}/`) ? `../node_modules${word.slice(packages.length)}` : word
  );
}

/**
 * Returns the commands without which the test cannot run in the working directory, as text before "Run the test". On
 * Deno, the files contain the complete specifiers of their imports.
 */
async function toSetup(toLibrary: ToLibrary): Promise<string> {
  if (platform.runtime === "deno") return "";
  const folder = platform.toPath(".");
  const isMissing = toLibrary() === NAME && !isInstalled(folder);
  const commands = [
    ...await findCommonJsPackage(folder).catch(() => undefined) ? [SET_MODULE_TYPE] : [],
    ...isMissing ? [`${platform.runtime === "bun" ? "bun add" : "npm install"} ${NAME}`] : [],
  ];
  return commands.length ? `Set up the folder:\n\n  ${commands.join("\n  ")}\n\n` : "";
}

function toTestCommand(test: string, flags: readonly string[] = []): string {
  if (platform.runtime === "deno") return toShell(["deno", "test", ...flags, test]);
  return `${platform.runtime === "bun" ? "bun test" : "node --test"} ./${test}`;
}

/**
 * Returns the `deno test` flags for a test that reads environment variables. If the server imports a source copy of
 * this library, the flags include the copy's configuration, which maps the copy's packages.
 */
function toTestFlags(): readonly string[] {
  const entry = toEntry();
  return ["--allow-env", ...entry.endsWith("/mod.ts") ? ["--config", entry.replace(/mod\.ts$/, "deno.json")] : []];
}

function toServerSource(name: string, library: string): string {
  return `import { createServer, tool } from ${JSON.stringify(library)};

export const greet = tool({
  name: "greet",
  title: "Greet a person",
  description: "Greets a person by name",
  // JSON Schema, or a schema of zod, valibot or arktype, which also types the arguments of \`run\`.
  input: {
    type: "object",
    properties: { name: { type: "string", description: "The person to greet" } },
    required: ["name"],
  },
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: ({ name }) => \`Hello, \${name}!\`,
});

export default createServer({ name: ${JSON.stringify(name)}, version: "0.1.0", handlers: [greet] });
`;
}

/** The parts of a test that depend on the runtime. */
const tests = {
  deno: { imports: "", test: "Deno.test" },
  bun: { imports: 'import { test } from "bun:test";\n', test: "test" },
  node: { imports: 'import { test } from "node:test";\n', test: "test" },
};

function toTestSource(server: string, testing: string): string {
  const { imports, test } = tests[platform.runtime];
  return `${imports}import { connectTest } from ${JSON.stringify(testing)};
import server from "./${server}";

${test}("greet says hello", async () => {
  const client = await connectTest(server);
  const { content } = await client.callTool("greet", { name: "Ada" });
  await client.close();
  const expected = [{ type: "text", text: "Hello, Ada!" }];
  if (JSON.stringify(content) !== JSON.stringify(expected)) throw new Error(JSON.stringify(content));
});
`;
}
